"""Sessions: what each sitting of drawing asked for, did and took. Facts of the making, which decide
no row.

A run keeps them in ``sessions.jsonl``, one line each time a session has something new to say; its
last line counts. A session that was killed says so by never having said that it ended."""

import json
import math
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from capcal_lib.errors import InputError
from capcal_lib.manifests import Manifest
from capcal_lib.runs.files import hold, read_bytes, read_sums, write_file
from capcal_lib.runs.run import Run
from capcal_lib.runs.samples import Sample

FILE = "sessions.jsonl"
FIRST_BEAT = (
    5.0  # seconds; then each time the session is a tenth older, which is a hundred lines a day
)


class Ask(Manifest):
    """What a session was asked to draw."""

    # how many of the split; ``questions.subset`` says which
    questions: Annotated[int, Field(ge=0, le=1 << 20)]
    k: Annotated[int, Field(ge=1, le=1 << 20)]  # samples a question, at most
    precision: None = None  # as earlier versions wrote it


class Session(Manifest):
    """One sitting, as far as it got."""

    started: str  # UTC, ISO 8601
    ask: Ask
    state: Literal["drawing", "ended"]
    seconds: float  # of wall time so far
    rows: int
    tokens: int  # completion tokens
    made_with: dict[str, str]  # versions, hardware


def read_sessions(run: Run) -> list[Session]:
    """Read the sessions of a run, each as it last was, in the order of their start."""
    last = {
        (session.started, session.made_with.get("machine", "")): session
        for session in _parsed(_lines(run))
    }
    return sorted(last.values(), key=lambda session: session.started)


def wanted(asks: Iterable[Ask]) -> list[int]:
    """Return how many samples were asked for of each question, most first.

    The questions of a smaller ask are a part of those of a larger one, so the asks make a
    staircase.

    >>> wanted([Ask(questions=4, k=10), Ask(questions=2, k=100)])
    [100, 100, 10, 10]
    """
    steps = sorted(asks, key=lambda ask: ask.questions)
    return [
        max(ask.k for ask in steps if ask.questions > rank)
        for rank in range(steps[-1].questions if steps else 0)
    ]


def add_sessions(run: Run, other: Run) -> None:
    """Add the lines of another copy of a run that this one does not have."""
    with hold(run.folder):
        own = set(_lines(run))
        _append(run, [line for line in _lines(other) if line not in own])


def mend_sessions(run: Run, notes: list[str]) -> None:
    """Keep what can be read of a damaged file."""
    path = run.folder / FILE
    try:
        _lines(run)
    except InputError:
        lines = (
            path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else []
        )
        _write(path, (line for line in lines if _parsed([line])))
        notes.append(f"{FILE} was damaged: kept what can be read of it")


class Meter:
    """Count what a session draws. Made by ``session``."""

    def __init__(self, run: Run, ask: Ask, made_with: dict[str, str]) -> None:
        self.rows = self.tokens = 0
        self._run = run
        self._clock = time.monotonic()
        self._next = FIRST_BEAT
        self._facts: dict[str, Any] = {
            "started": datetime.now(UTC).isoformat(),
            "ask": ask,
            "made_with": made_with,
        }

    def add(self, samples: Iterable[Sample]) -> None:
        """Count samples, and now and then write down how many there are."""
        for sample in samples:
            self.rows += 1
            self.tokens += sample.completion_tokens
        age = time.monotonic() - self._clock
        if age >= self._next:
            self.write("drawing")
            self._next = 1.1 * age

    def write(self, state: Literal["drawing", "ended"]) -> None:
        """Write down how far the session is."""
        seconds = round(time.monotonic() - self._clock, 3)
        session = Session(
            **self._facts, state=state, seconds=seconds, rows=self.rows, tokens=self.tokens
        )
        _append(self._run, [json.dumps(session.model_dump())])


@contextmanager
def session(run: Run, ask: Ask, made_with: dict[str, str]) -> Iterator[Meter]:
    """Keep account of a session, from its start to its end by whatever means but a kill."""
    meter = Meter(run, ask, made_with)
    meter.write("drawing")
    try:
        yield meter
    finally:
        meter.write("ended")


def rates(sessions: Iterable[Session]) -> tuple[float, float, float]:
    """Return the wall time in seconds, and samples and tokens a second; NaN where no time is on
    record.
    """
    took = list(sessions)
    seconds = math.fsum(session.seconds for session in took)
    if not seconds:
        return 0.0, math.nan, math.nan
    return (
        seconds,
        sum(session.rows for session in took) / seconds,
        sum(session.tokens for session in took) / seconds,
    )


def _lines(run: Run) -> list[str]:
    path = run.folder / FILE
    if path.exists() or FILE in read_sums(run.folder):
        return read_bytes(path).decode(errors="replace").splitlines()
    return []


def _parsed(lines: Iterable[str]) -> list[Session]:
    sessions = []
    for line in lines:
        with suppress(ValidationError):  # a line that was torn, in runs of earlier versions
            sessions.append(Session.model_validate_json(line))
    return sessions


def _append(run: Run, lines: list[str]) -> None:
    """Append lines; where that fails, the disk is full or the like, which the rows themselves will
    say.
    """
    with suppress(InputError), hold(run.folder):
        if lines:
            _write(run.folder / FILE, [*_lines(run), *lines])


def _write(path: Path, lines: Iterable[str]) -> None:
    write_file(path, lambda file: file.write("".join(f"{line}\n" for line in lines).encode()))
