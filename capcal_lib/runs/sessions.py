"""Sessions: what each sitting of drawing asked for and took. Facts of the making, which decide no
row.

``sessions.jsonl`` has a line of each when it starts, and one when it ends; the last one counts, so
that one that was killed has drawn nothing on record, and what it asked for is known."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

from pydantic import BaseModel, ValidationError

from capcal_lib.runs import files
from capcal_lib.runs.run import Run

FILE = "sessions.jsonl"


class Ask(BaseModel, frozen=True):
    """What a session was asked to draw."""

    questions: int  # how many of the split; ``questions.subset`` says which
    k: int  # samples of each of them, at least


class Session(BaseModel):
    """One sitting, as far as it got."""

    started: str  # UTC, ISO 8601
    ask: Ask
    made_with: dict[str, str] = {}
    seconds: float = 0.0  # of wall time
    rows: int = 0
    tokens: int = 0  # completion tokens


def read_sessions(run: Run) -> list[Session]:
    """Read the sessions of a run; a torn line is left out."""
    path = run.folder / FILE
    if not files.exists(path):
        return []
    sessions = {}
    with files.open_file(path) as file:
        for line in file.read(files.FOOTER).splitlines():
            with suppress(ValidationError):
                session = Session.model_validate_json(line)
                sessions[session.started] = session
    return [*sessions.values()]


def add_session(run: Run, session: Session) -> None:
    """Add what is known of a session to a run; after a line that was torn begins a new one."""
    path = run.folder / FILE
    files.exists(path)
    with files.plain_errors(run.folder), path.open("a", encoding="utf-8") as file:
        file.write(f"\n{session.model_dump_json()}\n")


@contextmanager
def open_session(run: Run, ask: Ask, made_with: dict[str, str]) -> Iterator[Session]:
    """Keep account of a session, from its start to its end by whatever means but a kill: who draws
    adds to its ``rows`` and ``tokens``.
    """
    clock = time.monotonic()
    session = Session(started=datetime.now(UTC).isoformat(), ask=ask, made_with=made_with)
    add_session(run, session)
    try:
        yield session
    finally:
        session.seconds = round(time.monotonic() - clock, 3)
        add_session(run, session)


def open_ask(run: Run, present: Mapping[str, int]) -> tuple[Ask, int]:
    """Return what a session asked for that is lacking most, or else was most, and how many samples
    it lacks.

    ``present`` has a number for each question, whose set bits are its samples. What was asked is
    looked for at the questions with most samples. Where no session is on record, as in a run that
    was imported, nothing lacks."""
    sizes = sorted(map(int.bit_count, present.values()), reverse=True)

    def lacking(ask: Ask) -> int:
        return ask.questions * ask.k - sum(min(size, ask.k) for size in sizes[: ask.questions])

    asks = [session.ask for session in read_sessions(run)] or [Ask(questions=len(sizes), k=1)]
    ask = max(asks, key=lambda ask: (lacking(ask), ask.k * ask.questions))
    return ask, lacking(ask)
