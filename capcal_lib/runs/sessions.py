"""Sessions: what each sitting of drawing asked for, did and took. Facts of the making, which decide
no row.

``sessions.jsonl`` has a line of each when it starts, and one when it ends; the last one counts, so
that one that was killed has drawn nothing on record, and what it asked for is known."""

import json
import math
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from capcal_lib.manifests import Manifest
from capcal_lib.runs.files import plain_errors, read_bytes, size_of
from capcal_lib.runs.run import Run
from capcal_lib.runs.samples import Sample

FILE = "sessions.jsonl"


class Ask(Manifest):
    """What a session was asked to draw."""

    # how many of the split; ``questions.subset`` says which
    questions: Annotated[int, Field(ge=0, le=1 << 20)]
    k: Annotated[int, Field(ge=1, le=1 << 20)]  # samples a question, at most
    named: bool = False  # whether the questions were named one by one
    precision: None = None  # as earlier versions wrote it


class Session(Manifest):
    """One sitting, as far as it got."""

    started: str  # UTC, ISO 8601
    ask: Ask
    state: Literal["drawing", "ended"]
    seconds: float  # of wall time
    rows: int
    tokens: int  # completion tokens
    made_with: dict[str, str]  # versions, hardware


def read_sessions(run: Run) -> list[Session]:
    """Read the sessions of a run, in the order of their start; a torn line is left out."""
    last = {}
    for line in read_lines(run):
        with suppress(ValidationError):
            session = Session.model_validate_json(line)
            last[session.started, session.made_with.get("machine", "")] = session
    return sorted(last.values(), key=lambda session: session.started)


def read_lines(run: Run) -> list[str]:
    """Read the lines of a run's sessions."""
    path = run.folder / FILE
    text = read_bytes(path).decode(errors="replace") if size_of(path) is not None else ""
    return [line for line in text.splitlines() if line]


def add_lines(run: Run, lines: Iterable[str]) -> None:
    """Add lines to a run's sessions; after one that was torn begins a new one."""
    path = run.folder / FILE
    size_of(path)
    with plain_errors(run.folder), path.open("a", encoding="utf-8") as file:
        file.write("".join(f"\n{line}\n" for line in lines))


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


class Meter:
    """Count what a session draws. Made by ``session``."""

    rows = tokens = 0

    def add(self, samples: Iterable[Sample]) -> None:
        """Count samples."""
        for sample in samples:
            self.rows += 1
            self.tokens += sample.completion_tokens


@contextmanager
def session(run: Run, ask: Ask, made_with: dict[str, str]) -> Iterator[Meter]:
    """Keep account of a session, from its start to its end by whatever means but a kill."""
    meter = Meter()
    clock = time.monotonic()
    facts: dict[str, Any] = {"started": datetime.now(UTC).isoformat(), "ask": ask.model_dump()}

    def write(state: str) -> None:
        seconds = round(time.monotonic() - clock, 3)
        counted = {"seconds": seconds, "rows": meter.rows, "tokens": meter.tokens}
        add_lines(run, [json.dumps(facts | {"state": state, "made_with": made_with} | counted)])

    write("drawing")
    try:
        yield meter
    finally:
        write("ended")


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
