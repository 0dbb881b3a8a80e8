"""Import a file of many rows, ten samples a question with short answers, in a process of its own:
time, and the peak of memory, the imported library included.

    python benchmarks/importing.py [--rows 100000 1000000]
"""

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from capcal_lib.io.importing import import_samples
from capcal_lib.places import OWN_MANIFESTS

K = 10


def write(path: Path, rows: int) -> None:
    """Write samples of which six in ten are right."""
    draw = random.Random(0)
    with path.open("w") as file:
        for number in range(rows // K):
            gold = str(draw.randrange(1000))
            row = {"question_id": f"q{number}", "question": f"Number {number}?", "gold": gold}
            for sample in range(K):
                said = gold if draw.random() < 0.6 else str(draw.randrange(1000))
                drawn = {"sample": sample, "response": f"The answer is {said}."}
                file.write(json.dumps(row | drawn) + "\n")


def main() -> None:
    """Print a line for each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.file:
        started, processor = time.perf_counter(), time.process_time()
        done = import_samples(
            [given.file],
            model="any",
            dataset="many",
            store=given.file.parent,
            settings={"temperature": 1.0},
        )
        took, clock = time.process_time() - processor, time.perf_counter() - started
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{done.new:,} rows: {took:.1f} s, {clock:.1f} s by the clock, {peak:.0f} MiB")
        return
    for rows in given.rows:
        with tempfile.TemporaryDirectory() as folder:
            file, own = Path(folder) / "rows.jsonl", Path(folder) / "manifests"
            own.mkdir()
            write(file, rows)
            command = [sys.executable, __file__, "--file", str(file)]
            subprocess.run(command, check=True, env=os.environ | {OWN_MANIFESTS: str(own)})


if __name__ == "__main__":
    main()
