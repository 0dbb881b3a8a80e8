"""Kill the sampler at random moments, truncate its files at random offsets, and compare with an
undisturbed run.

Each round starts a real `capcal sample`, ends it with SIGKILL a random time after it began to draw
(one in eight whenever it may be), and in half of the rounds cuts the file that was written last, or
now and then any other, at a random byte. The next command must name a part or a record that was
cut, which is then deleted, as the message says. A last round runs to the end. The rows must then be
those of a run that nobody disturbed, to the last character.

Usage: python benchmarks/survive_kills.py [kills [model [k]]]
"""

import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from capcal_lib.places import ROOT
from capcal_lib.runs import Run, open_runs
from capcal_lib.runs.store import read_samples

# The command itself, with smaller parts than it makes, so that a short run has many.
COMMAND = (
    "from capcal_lib import cli; from capcal_lib.runs import files, store; "
    "store.ROWS, files.WRITE_SECONDS = {rows}, 0.05; {before}; cli.main()"
)
PART = "samples-"


@dataclass
class Figures:
    """What was done to a run, and what became of it."""

    rounds: int = 0
    kills: int = 0
    kills_while_drawing: int = 0
    cuts: Counter[str] = field(default_factory=Counter)  # by kind of file
    refusals: int = 0  # of a file that was cut
    rows: int = 0
    same: bool = False
    seconds: float = 0.0


def survive(
    store: Path,
    *,
    kills: int,
    seed: int,
    model: str = "simulated",
    engine: str | None = None,
    dataset: str = "mini-capitals",
    k: int = 20,
    limit: int = 140,
    rows_per_shard: int = 1_000,
    before: str = "pass",
    say: Callable[[str], None] = lambda line: None,  # noqa: ARG005
) -> Figures:
    """Do it in a folder, and return the figures; ``same`` tells whether the rows are those of the
    undisturbed run.

    ``before`` is what each process does first, in Python."""
    rng, figures = random.Random(seed), Figures()
    what = ["--model", model, "--dataset", dataset, "--k", str(k), "--limit", str(limit)]
    what += ["--engine", engine] if engine else []
    command = [
        sys.executable,
        "-u",
        "-c",
        COMMAND.format(before=before, rows=rows_per_shard),
        "sample",
        *what,
        "--store",
    ]
    started = time.monotonic()
    subprocess.run(
        [*command, str(store / "undisturbed")], cwd=ROOT, check=True, capture_output=True
    )
    (whole,) = [run.folder for run in open_runs(store / "undisturbed")]
    asked = (whole / "sessions.jsonl").stat().st_mtime  # the drawing began
    drawing = max(path.stat().st_mtime for path in whole.glob(f"{PART}*")) - asked
    disturbed = store / "disturbed"
    while figures.kills < kills and figures.rounds < 3 * kills:
        _kill_one([*command, str(disturbed)], disturbed, rng, drawing / kills, figures)
        if rng.random() < 0.5:
            path = _cut_one(disturbed, rng, figures)
            if path and path.suffix in (".parquet", ".json"):
                _refuse([*command, str(disturbed)], path)
                figures.refusals += 1
        if figures.rounds % 10 == 0:
            say(f"{figures.kills} kills, {_rows(disturbed)} rows, cuts {dict(figures.cuts)}")
    subprocess.run([*command, str(disturbed)], cwd=ROOT, check=True, capture_output=True)
    (folder,) = [run.folder for run in open_runs(disturbed)]
    rows = read_samples(Run(folder))
    figures.rows, figures.same = len(rows), bool(rows.equals(read_samples(Run(whole))))
    figures.seconds = time.monotonic() - started
    return figures


def _kill_one(
    command: list[str], store: Path, rng: random.Random, span: float, figures: Figures
) -> None:
    before = _size(store)
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    if rng.random() < 1 / 8:
        time.sleep(rng.uniform(0, 2))
    else:
        known = _size(store, "sessions.jsonl")
        while process.poll() is None and _size(store, "sessions.jsonl") <= known:
            time.sleep(0.002)
        while figures.rounds % 2 and process.poll() is None and _size(store) <= before:
            time.sleep(0.002)  # in every second round the kill comes after a batch of this process
        time.sleep(rng.uniform(0, span))
    drew = _size(store) > before  # at least one batch
    process.kill()
    process.wait()
    killed = process.returncode == -9
    figures.rounds += 1
    figures.kills += killed
    figures.kills_while_drawing += killed and drew


def _cut_one(store: Path, rng: random.Random, figures: Figures) -> Path | None:
    """Truncate the newest file of the run, or in one of four cases any; None before there is
    one.
    """
    files = [path for path in store.rglob("*") if path.is_file() and path.stat().st_size]
    if not files:
        return None
    newest = max(files, key=lambda path: path.stat().st_mtime_ns)
    path = rng.choice(files) if rng.random() < 0.25 else newest
    with path.open("rb+") as file:
        file.truncate(rng.randrange(path.stat().st_size))
    kind = path.name
    if kind.startswith(PART):
        kind = "part"
    elif kind.startswith("."):
        kind = "half-written part"
    figures.cuts[kind] += 1
    return path


def _refuse(command: list[str], path: Path) -> None:
    """See that the command names a file that was cut, in its last line, and delete the file."""
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    *_, line = done.stderr.splitlines()  # after what vLLM says as it opens
    if done.returncode != 2 or path.name not in line:
        raise RuntimeError(f"{path.name} was cut, and the command said: {line}")
    path.unlink()


def _size(store: Path, *patterns: str) -> int:
    """Return the bytes of the files of a run, by default its parts; they may come and go
    meanwhile.
    """
    total = 0
    for path in [
        path for pattern in patterns or (f"{PART}*.parquet",) for path in store.rglob(pattern)
    ]:
        try:
            total += path.stat().st_size
        except FileNotFoundError:
            continue
    return total


def _rows(store: Path) -> str:
    try:
        return f"{sum(len(read_samples(run)) for run in open_runs(store)):,}"
    except ValueError:
        return "some damaged"


def main(kills: int, model: str, k: int) -> None:
    """Run it and print the figures."""
    with tempfile.TemporaryDirectory() as folder:
        figures = survive(
            Path(folder),
            kills=kills,
            seed=0,
            model=model,
            k=k,
            say=lambda line: print(line, flush=True),
        )
    print(
        f"{model}: {figures.kills} of {figures.rounds} rounds ended by SIGKILL, "
        f"{figures.kills_while_drawing} of them "
        f"after they drew; "
        f"cuts {dict(figures.cuts)}, {figures.refusals} of them refused; {figures.seconds:.0f} s"
    )
    print(
        f"{figures.rows:,} rows, {'the same' if figures.same else 'NOT the same'} as those of the "
        "undisturbed run"
    )
    if not figures.same:
        sys.exit(1)


if __name__ == "__main__":
    given = sys.argv[1:]
    main(
        int(given[0]) if given else 100,
        given[1] if len(given) > 1 else "simulated",
        int(given[2]) if len(given) > 2 else 300,
    )
