import json
from collections.abc import Iterable
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capcal_lib.runs import KEY, Run
from capcal_lib.runs.sessions import (
    FILE,
    MOST_LINES,
    Ask,
    Session,
    open_ask,
    open_session,
    read_sessions,
)
from capcal_lib.runs.store import present_of

ASK = Ask(questions=3, k=5)


def test_a_session_says_what_it_did(tmp_path: Path) -> None:
    with open_session(Run(tmp_path), ASK) as counted:
        counted.rows += 2
    (one,) = read_sessions(Run(tmp_path))
    assert (one.rows, one.ask) == (2, ASK)
    assert one.seconds >= 0


def test_what_earlier_versions_wrote_of_a_session_is_read(tmp_path: Path) -> None:
    line = {"started": "2026-01-01", "ask": {"questions": 3, "k": 5}, "made_with": {"capcal": "1"}}
    (tmp_path / FILE).write_text(json.dumps(line | {"seconds": 2.5, "rows": 15, "tokens": 99}))
    (one,) = read_sessions(Run(tmp_path))
    assert (one.ask, one.rows, one.seconds) == (ASK, 15, 2.5)


def test_a_session_that_an_error_ends_has_ended(tmp_path: Path) -> None:
    def interrupted() -> None:
        with open_session(Run(tmp_path), ASK) as counted:
            counted.rows += 1
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [one.rows for one in read_sessions(Run(tmp_path))] == [1]


def test_what_a_killed_session_was_asked_for_is_known_and_a_torn_line_is_left_out(
    tmp_path: Path,
) -> None:
    with open_session(Run(tmp_path), ASK):
        pass
    path = tmp_path / FILE
    first, _, second = path.read_text().strip().partition("\n\n")
    for text in (first, first + "\n" + second[:20]):
        path.write_text(text)
        assert [(one.ask, one.rows) for one in read_sessions(Run(tmp_path))] == [(ASK, 0)]


def test_no_file_is_no_sessions(tmp_path: Path) -> None:
    assert read_sessions(Run(tmp_path)) == []


@given(st.integers(1, 6), st.integers(1, 9), st.data())
def test_what_lacks_is_what_was_asked_for_without_what_is_there(
    tmp_path_factory: pytest.TempPathFactory, questions: int, k: int, data: st.DataObject
) -> None:
    wanted = {(question, index) for question in range(questions) for index in range(k)}
    there = wanted - data.draw(st.sets(st.sampled_from(sorted(wanted))))
    run = Run(tmp_path_factory.mktemp("run"))
    less = Ask(questions=max(1, questions - 1), k=max(1, k - 1))
    for ask in (less, Ask(questions=questions, k=k)):
        with open_session(run, ask):
            pass
    assert open_ask(run, present_of([keys(there)]))[1] == len(wanted - there)


def keys(samples: Iterable[tuple[int, int]]) -> pd.DataFrame:
    """Return the keys of samples as a table."""
    table = pd.DataFrame(sorted(samples), columns=KEY)
    return table.assign(question_id=table["question_id"].map(str))


def test_of_two_asks_the_one_that_lacks_most_is_open(tmp_path: Path) -> None:
    for questions, k in ((2, 4), (9, 1)):
        with open_session(Run(tmp_path), Ask(questions=questions, k=k)):
            pass
    first = {(name, index) for name in "ab" for index in range(4)}
    assert open_ask(Run(tmp_path), first) == (Ask(questions=9, k=1), 7)
    rest = {(name, 0) for name in "cdefghi"}
    some = first - {("b", 1), ("b", 3)} | rest
    assert open_ask(Run(tmp_path), some) == (Ask(questions=2, k=4), 2)
    assert open_ask(Run(tmp_path / "none"), first) == (Ask(questions=2, k=1), 0)


@pytest.mark.parametrize(
    "line",
    [
        '{"started": "%d", "ask": {"questions": 2, "k": %d}}',
        "{}",
        '{"started": "%d", "ask": {"questions": 1%030d, "k": 1}}',
    ],
)
def test_of_very_many_sessions_the_last_are_read(tmp_path: Path, line: str) -> None:
    number = 200_000
    lines = [line % (place, place) if "%" in line else line for place in range(number)]
    last = Session(started="now", ask=ASK).model_dump_json()
    (tmp_path / FILE).write_text("\n".join([*lines, last]))
    sessions = read_sessions(Run(tmp_path))
    _, lacking = open_ask(Run(tmp_path), {("a", 0)})
    assert len(sessions) <= MOST_LINES
    assert sessions[-1].ask == ASK
    assert lacking >= 14
