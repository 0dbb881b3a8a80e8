"""Sessions: what each sitting of drawing asked for and took. Facts of the making, which decide no
row.

``sessions.jsonl`` has a line of each when it starts, and one when it ends; the last one counts, so
that one that was killed has drawn nothing on record, and what it asked for is known."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Annotated

import numpy as np
from pydantic import BaseModel, Field, ValidationError

from capcal_lib.runs import files
from capcal_lib.runs.run import Run

FILE = "sessions.jsonl"
LARGEST = 1 << 22  # bytes of it that are read, and
MOST_LINES = 20_000  # lines: the last ones
Number = Annotated[int, Field(ge=0, lt=1 << 31)]


class Ask(BaseModel, frozen=True):
    """What a session was asked to draw."""

    questions: Number  # how many of the split; ``questions.subset`` says which
    k: Number  # samples of each of them, at least


class Session(BaseModel):
    """One session, with what it has drawn so far."""

    started: str  # UTC, ISO 8601
    ask: Ask
    seconds: float = 0.0  # of wall time
    rows: int = 0


def read_sessions(run: Run) -> list[Session]:
    """Read the sessions of a run; a torn line is left out."""
    path = run.folder / FILE
    if not files.exists(path):
        return []
    sessions = {}
    with files.open_file(path) as file:
        file.seek(max(0, path.stat().st_size - LARGEST))
        for line in file.read(LARGEST).splitlines()[-MOST_LINES:]:
            with suppress(ValidationError):
                session = Session.model_validate_json(line)
                sessions[session.started] = session
    return [*sessions.values()]


def add_sessions(run: Run, sessions: Iterable[Session]) -> None:
    """Append sessions to a run's record, on a new line if the last one was torn."""
    path = run.folder / FILE
    files.refuse_irregular(path)
    text = "".join(f"\n{session.model_dump_json()}\n" for session in sessions)
    with files.plain_errors(run.folder), path.open("a", encoding="utf-8") as file:
        file.write(text)


@contextmanager
def open_session(run: Run, ask: Ask) -> Iterator[Session]:
    """Record a session from its start to its end, unless it is killed; the code that draws adds to
    its ``rows``.
    """
    clock = time.monotonic()
    session = Session(started=datetime.now(UTC).isoformat(), ask=ask)
    add_sessions(run, [session])
    try:
        yield session
    finally:
        session.seconds = round(time.monotonic() - clock, 3)
        add_sessions(run, [session])


def open_ask(run: Run, present: Iterable[tuple[str, int]]) -> tuple[Ask, int]:
    """Return what a session asked for that is lacking most, or else was most, and how many samples
    it lacks.

    ``present`` are the keys of the samples that are there. What was asked is looked for at the
    questions with most samples. Where no session is on record, as in a run that was imported,
    nothing lacks."""
    samples = Counter(name for name, _ in present)  # of each question
    most_first = np.sort([*samples.values()])[::-1]
    sizes: dict[Ask, tuple[int, int]] = {}  # what is lacking of an ask, and all of it
    for session in read_sessions(run):
        ask = session.ask
        if ask in sizes:
            continue
        wanted = ask.questions * ask.k
        drawn = np.minimum(most_first[: ask.questions], ask.k).sum()
        sizes[ask] = wanted - int(drawn), wanted
    if not sizes:
        return Ask(questions=len(samples), k=1), 0
    largest = max(sizes, key=lambda ask: sizes[ask])
    lacking, _ = sizes[largest]
    return largest, lacking
