import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capcal_lib.runs import Run
from capcal_lib.runs.samples import Sample
from capcal_lib.runs.sessions import Ask, Session, rates, read_sessions, session, wanted

ASK = Ask(questions=3, k=5)


def sampled(tokens: int) -> Sample:
    return Sample("a", 0, "Paris", None, "stop", 10, tokens)


def kept(folder: Path, tokens: list[int]) -> None:
    with session(Run(folder), ASK, {"machine": "here"}) as meter:
        meter.add(map(sampled, tokens))


def test_a_session_says_what_it_did(tmp_path: Path) -> None:
    kept(tmp_path, [3, 4])
    (one,) = read_sessions(Run(tmp_path))
    assert (one.state, one.rows, one.tokens, one.ask, one.made_with) == (
        "ended",
        2,
        7,
        ASK,
        {"machine": "here"},
    )
    assert one.seconds >= 0


def test_a_session_that_an_error_ends_has_ended(tmp_path: Path) -> None:
    def interrupted() -> None:
        with session(Run(tmp_path), ASK, {}) as meter:
            meter.add([sampled(3)])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [(one.state, one.rows) for one in read_sessions(Run(tmp_path))] == [("ended", 1)]


def test_no_file_is_no_sessions_and_no_rate(tmp_path: Path) -> None:
    assert read_sessions(Run(tmp_path)) == []
    seconds, *speeds = rates([])
    assert seconds == 0
    assert all(map(math.isnan, speeds))


def test_rates_are_over_all_sessions() -> None:
    def took(seconds: float, rows: int, tokens: int) -> Session:
        return Session(
            started=str(rows),
            ask=ASK,
            state="ended",
            seconds=seconds,
            rows=rows,
            tokens=tokens,
            made_with={},
        )

    assert rates([took(1.0, 10, 100), took(3.0, 50, 300)]) == (4.0, 15.0, 100.0)


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(1, 9)), max_size=4))
def test_what_is_wanted_is_the_union_of_all_asks(asks: list[tuple[int, int]]) -> None:
    rows = {
        (question, index)
        for questions, k in asks
        for question in range(questions)
        for index in range(k)
    }
    stairs = wanted(Ask(questions=questions, k=k) for questions, k in asks)
    assert {(question, index) for question, k in enumerate(stairs) for index in range(k)} == rows
