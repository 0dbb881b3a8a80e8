"""Measure what the run store costs: time a row, bytes a row, time to resume, and memory as the run
grows.

Rows are appended 16 at a time, as sampling does it, and parts are written on the way. Beside it, in
the same run, the two ways that scripts usually take: appending lines of JSON to a file, which is as
fast as it gets and neither notices a torn line nor a row that is there twice, and writing one file
anew after every batch.

Then, for runs of two sizes, everything that reads or writes a whole run is done in a process of its
own, and shown is by how much the peak of its resident memory rises above that of the imported
library.

    python benchmarks/store.py [--rows 100000 1000000]

That memory grows with questions and not with samples shows itself at 2,000,000 and 20,000,000 rows.
"""

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from itertools import chain, islice
from pathlib import Path

from capcal_lib.grading.counts import count_run
from capcal_lib.grading.verdicts import grade_run
from capcal_lib.manifests import load_model
from capcal_lib.questions import load_questions
from capcal_lib.runs import Run, open_runs
from capcal_lib.runs.files import gather
from capcal_lib.runs.merge import merge
from capcal_lib.runs.status import run_status
from capcal_lib.runs.store import Sample, open_writer
from capcal_lib.runs.verify import verify_run
from capcal_lib.sampling.draw import describe

DATASET, SPLIT = "mini-arithmetic", "train"
ALL = load_questions(DATASET, SPLIT)
QUESTIONS = ALL[:200]
SAMPLES_A_BATCH = 16
RECORD = describe(load_model("simulated"), DATASET, SPLIT, ALL, engine="simulated", seed=0)
TIMED, REWRITTEN = (
    100_000,
    4_800,
)  # rows; writing a file anew takes longer with every row, so fewer of them


def samples(rows: int) -> Iterator[Sample]:
    """Make rows of 80 words of working and an answer, the same ones for every number of rows."""
    draw = random.Random(0)
    words = [
        "".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(2, 9)))
        for _ in range(2_000)
    ]
    weights = [1 / rank for rank in range(1, len(words) + 1)]  # as often as words are in texts
    for number in range(rows):
        question, index = QUESTIONS[number % len(QUESTIONS)], number // len(QUESTIONS)
        working = " ".join(draw.choices(words, weights, k=80))
        answer = question.answer.gold if draw.random() < 0.5 else str(draw.randrange(100))
        yield Sample(question.id, index, f"{working} \\boxed{{{answer}}}", None, "stop", 60, 24)


def batches(rows: int) -> Iterator[list[Sample]]:
    """Group rows as an engine yields them."""
    made = samples(rows)
    while batch := list(islice(made, SAMPLES_A_BATCH)):
        yield batch


def write(store: Path, batches: Iterable[list[Sample]]) -> None:
    """Write a run as sampling does."""
    with open_writer(store, RECORD) as writer:
        for samples in gather(chain.from_iterable(batches)):
            writer.append(samples)


def write_lines(path: Path, batches: Iterable[list[Sample]]) -> None:
    """Append lines of JSON."""
    with path.open("a", encoding="utf-8") as file:
        for batch in batches:
            file.writelines(json.dumps(asdict(sample)) + "\n" for sample in batch)
            file.flush()


def write_anew(path: Path, batches: Iterable[list[Sample]]) -> None:
    """Write one file of JSON anew after every batch."""
    rows: list[dict[str, object]] = []
    for batch in batches:
        rows += map(asdict, batch)
        path.write_text(json.dumps(rows), encoding="utf-8")


def resume(store: Path) -> None:
    """Open a run for drawing and find that nothing is missing."""
    with open_writer(store, RECORD) as writer:
        k = len(writer.present) // len(QUESTIONS)
        assert not writer.missing({question.id: k for question in QUESTIONS})


def resume_lines(path: Path) -> None:
    """Read the keys back from lines of JSON."""
    with path.open(encoding="utf-8") as file:
        assert {(row["question_id"], row["sample_index"]) for row in map(json.loads, file)}


def count(run: Path) -> None:
    """Read the counts that all metrics start from."""
    assert count_run(Run(run))["total"].all()


def verify(run: Path) -> None:
    """Check a run, which must be whole."""
    problems = verify_run(Run(run)).problems
    assert not problems, problems


def tasks(folder: Path, rows: int) -> dict[str, Callable[[], object]]:
    """List what is done to a run, in order; a merge finds half of the rows there already."""
    store, target = folder / "store", folder / "target"

    def run() -> Path:
        return open_runs(store)[0].folder

    return {
        "nothing": lambda: None,
        "write": lambda: write(store, batches(rows)),
        "write half of it elsewhere": lambda: write(target, batches(rows // 2)),
        "grade": lambda: grade_run(Run(run())),
        "resume": lambda: resume(store),
        "read the counts": lambda: count(run()),
        "status": lambda: run_status(Run(run())),
        "verify": lambda: verify(run()),
        "merge": lambda: merge(target, [store]),
    }


def seconds(call: Callable[[], object]) -> float:
    """Return the processor time that a call takes."""
    started = time.process_time()
    call()
    return time.process_time() - started


def compare(folder: Path) -> None:
    """Print time and bytes of a row beside those of the usual ways."""
    drawn = list(batches(TIMED))
    store, lines, anew = folder / "store", folder / "lines.jsonl", folder / "anew.json"
    ours, plain = seconds(lambda: write(store, drawn)), seconds(lambda: write_lines(lines, drawn))
    few = drawn[: REWRITTEN // SAMPLES_A_BATCH]
    small = seconds(lambda: write(folder / "few", few)) / REWRITTEN
    slow = seconds(lambda: write_anew(anew, few)) / REWRITTEN
    (run,) = [run.folder for run in open_runs(store)]
    size, plain_size = (
        sum(path.stat().st_size for path in run.glob("samples-*")),
        lines.stat().st_size,
    )
    again, plain_again = seconds(lambda: resume(store)), seconds(lambda: resume_lines(lines))
    print(f"\n{TIMED:,} rows, {SAMPLES_A_BATCH} at a time; processor time")
    print(
        f"append: {ours / TIMED * 1e6:.1f} µs a row; lines of JSON {plain / TIMED * 1e6:.1f}, "
        f"ratio {ours / plain:.1f}"
    )
    print(
        f"append {REWRITTEN:,}: {small * 1e6:.1f} µs a row; one file written anew "
        f"{slow * 1e6:.0f}, "
        f"ratio {slow / small:.0f}, and in proportion to the rows"
    )
    print(f"on disk: {size / TIMED:.0f} bytes a row; lines of JSON {plain_size / TIMED:.0f}")
    print(
        f"resume: {again:.2f} s; reading lines of JSON {plain_again:.2f} s, ratio "
        f"{plain_again / again:.1f}"
    )


def peaks(rows: list[int]) -> None:
    """Print time and memory of each task at each size, in a process of its own."""
    table: dict[str, list[str]] = {}
    for number in rows:
        with tempfile.TemporaryDirectory() as name:
            idle = 0.0
            for task in tasks(Path(name), number):
                command = [
                    sys.executable,
                    __file__,
                    "--rows",
                    str(number),
                    "--task",
                    task,
                    "--folder",
                    name,
                ]
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                peak, took = map(float, done.stdout.split())
                idle = idle or peak
                table.setdefault(task, []).append(f"{took:8.1f} s{peak - idle:8.0f} MiB")
    print("processor time, and peak of memory above that of the imported library")
    print(f"{'':<28}" + "".join(f"{number:>15,} rows" for number in rows))
    for task, cells in list(table.items())[1:]:
        print(f"{task:<28}" + "".join(f"{cell:>20}" for cell in cells))


def main() -> None:
    """Print all of it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--rows", type=int, nargs="+", default=[100_000, 1_000_000], help="sizes of the runs"
    )
    parser.add_argument("--task", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.task:
        took = seconds(tasks(given.folder, given.rows[0])[given.task])
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, took)
        return
    peaks(given.rows)  # first: a process starts with the peak of the one that started it
    with tempfile.TemporaryDirectory() as folder:
        compare(Path(folder))


if __name__ == "__main__":
    main()
