"""Sessions: what each sitting of drawing asked for, a line of ``sessions.jsonl`` each. Facts of the
making, which decide no row.
"""

import json
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np

from capcal_lib.runs.files import inside, plain_errors
from capcal_lib.runs.run import Run

FILE = "sessions.jsonl"


class Ask(NamedTuple):
    """What a session was asked to draw."""

    questions: int  # how many of the split; ``questions.subset`` says which
    k: int  # samples of each of them, at least


def read_lines(run: Run) -> list[str]:
    """Read the lines on record, one of which a kill may have torn."""
    path = inside(run.folder, FILE)
    if not path.exists():
        return []
    with plain_errors(path):
        return [line for line in path.read_text("utf-8", "replace").splitlines() if line]


def add_lines(run: Run, lines: Iterable[str]) -> None:
    """Append lines to the record, the first on a new line if the last one was torn."""
    path = inside(run.folder, FILE)
    with plain_errors(path), path.open("a", encoding="utf-8") as file:
        file.writelines(f"\n{line}\n" for line in lines)


def note_ask(run: Run, ask: Ask) -> None:
    """Record what a session asks for, before it draws."""
    started = datetime.now(UTC).isoformat()
    add_lines(run, [json.dumps({"started": started, "ask": ask._asdict()})])


def open_ask(run: Run, present: Iterable[tuple[str, int]]) -> tuple[Ask, int]:
    """Return what a session asked for that is lacking most, or else was most, and how many samples
    it lacks.

    ``present`` are the keys of the samples that are there. What was asked is looked for at the
    questions with most samples. Where no session is on record, as in a run that was imported,
    nothing lacks."""
    samples = Counter(name for name, _ in present)  # of each question
    most_first = np.sort([*samples.values()])[::-1]
    sizes: dict[Ask, tuple[int, int]] = {}  # what is lacking of an ask, and all of it
    for line in read_lines(run):
        try:
            asked = json.loads(line)["ask"]
        except ValueError:  # a kill has torn it
            continue
        ask = Ask(asked["questions"], asked["k"])
        drawn = np.minimum(most_first[: ask.questions], ask.k).sum()
        sizes[ask] = ask.questions * ask.k - int(drawn), ask.questions * ask.k
    if not sizes:
        return Ask(questions=len(samples), k=1), 0
    largest = max(sizes, key=lambda ask: sizes[ask])
    lacking, _ = sizes[largest]
    return largest, lacking
