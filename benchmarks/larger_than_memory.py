"""Grade, count, show, check and merge a run of many rows, 200 samples a question, each in a process
of its own: time, and the peak of memory, the imported library included.

    python benchmarks/larger_than_memory.py [--rows 2000000 20000000]
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from capcal_lib.grading.counts import count_run
from capcal_lib.grading.verdicts import grade_run
from capcal_lib.manifests import load_model
from capcal_lib.places import OWN_MANIFESTS
from capcal_lib.questions import load_questions
from capcal_lib.runs import open_runs
from capcal_lib.runs.artifacts import VERDICTS
from capcal_lib.runs.merge import merge
from capcal_lib.runs.status import run_status
from capcal_lib.runs.store import ROWS, SCHEMA, open_writer
from capcal_lib.runs.verify import verify_run
from capcal_lib.sampling.draw import describe

K = 200
MANIFEST = """name: many
domain: sums
kind: number
splits: {test: {file: many.jsonl}}
"""


def write(store: Path, rows: int) -> None:
    """Write a data set, and samples of its questions with verdicts, a part at a time."""
    folder = Path(os.environ[OWN_MANIFESTS]) / "datasets"
    folder.mkdir(parents=True)
    (folder / "many.yaml").write_text(MANIFEST)
    with (folder / "many.jsonl").open("w") as file:
        for number in range(rows // K):
            row = {"id": f"many/{number}", "question": f"{number} times 7,919?"}
            file.write(json.dumps(row | {"answer": str(number * 7_919)}) + "\n")
    questions = load_questions("many")
    record = describe(
        load_model("simulated"), "many", "test", questions, engine="simulated", seed=0
    )
    index = np.tile(np.arange(K, dtype=np.int32), ROWS // K)
    with open_writer(store, record) as writer:
        path = writer.run.path(VERDICTS)
        with pq.ParquetWriter(path, VERDICTS.schema.with_metadata({"grader": "0"})) as verdicts:
            for start in range(0, rows, ROWS):
                question = np.repeat(np.arange(start // K, (start + ROWS) // K), K)
                names = pa.array(np.char.add("many/", question.astype(str)))
                answer = pa.array((question * 7_919 + index % 3).astype(str))
                stop, none = pa.array(["stop"] * ROWS), pa.nulls(ROWS, pa.string())
                tokens = pa.array(np.full(ROWS, 20, np.int32))
                columns = [names, pa.array(index), answer, none, stop, tokens, tokens]
                writer.add_part(pa.table(columns, schema=SCHEMA).to_pandas())
                said = pa.array(np.where(index % 3, "incorrect", "correct"))
                columns = [names, pa.array(index), said, answer, stop]
                verdicts.write_table(pa.table(columns, schema=VERDICTS.schema))


def grade(store: Path, _: int) -> None:
    """Grade the samples in place of the verdicts that were written with them."""
    grade_run(open_runs(store)[0])


TASKS: dict[str, Callable[[Path, int], object]] = {
    "write": write,
    "grade": grade,
    "count": lambda store, _: count_run(open_runs(store)[0]),
    "status": lambda store, _: run_status(open_runs(store)[0]),
    "verify": lambda store, _: verify_run(open_runs(store)[0]),
    "merge": lambda store, _: merge(store / "merged", [open_runs(store)[0].folder]),
}


def main() -> None:
    """Print a line of each task at each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[2_000_000])
    parser.add_argument("--task", choices=TASKS, help=argparse.SUPPRESS)
    parser.add_argument("--store", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.task:
        started = time.process_time()
        TASKS[given.task](given.store, given.rows[0])
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{given.task}: {time.process_time() - started:.1f} s, {peak:.0f} MiB")
        return
    for rows in given.rows:
        with tempfile.TemporaryDirectory() as store:
            print(f"{rows:,} rows", flush=True)
            for task in TASKS:
                given_again = ["--rows", str(rows), "--task", task, "--store", store]
                own = {OWN_MANIFESTS: str(Path(store) / ".manifests")}
                command = [sys.executable, __file__, *given_again]
                subprocess.run(command, check=True, env=os.environ | own)


if __name__ == "__main__":
    main()
