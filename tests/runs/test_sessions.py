import json
from collections.abc import Iterable
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capcal_lib.runs import KEY, Run
from capcal_lib.runs.sessions import FILE, Ask, open_ask, open_session, read_sessions
from capcal_lib.runs.store import present_of

ASK = Ask(questions=3, k=5)


def test_a_session_says_what_it_did(tmp_path: Path) -> None:
    with open_session(Run(tmp_path), ASK, {"machine": "here"}) as counted:
        for tokens in (3, 4):
            counted.rows += 1
            counted.tokens += tokens
    (one,) = read_sessions(Run(tmp_path))
    assert (one.rows, one.tokens, one.ask) == (2, 7, ASK)
    assert one.seconds >= 0
    last = (tmp_path / FILE).read_text().splitlines()[-1]
    assert json.loads(last)["made_with"] == {"machine": "here"}


def test_a_session_that_an_error_ends_has_ended(tmp_path: Path) -> None:
    def interrupted() -> None:
        with open_session(Run(tmp_path), ASK, {}) as counted:
            counted.rows += 1
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [one.rows for one in read_sessions(Run(tmp_path))] == [1]


def test_what_a_killed_session_was_asked_for_is_known_and_a_torn_line_is_left_out(
    tmp_path: Path,
) -> None:
    with open_session(Run(tmp_path), ASK, {}):
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
        with open_session(run, ask, {}):
            pass
    assert open_ask(run, present_of([keys(there)]))[1] == len(wanted - there)


def keys(samples: Iterable[tuple[int, int]]) -> pd.DataFrame:
    """Return the keys of samples as a table."""
    table = pd.DataFrame(sorted(samples), columns=KEY)
    return table.assign(question_id=table["question_id"].map(str))


def test_of_two_asks_the_one_that_lacks_most_is_open(tmp_path: Path) -> None:
    for questions, k in ((2, 4), (9, 1)):
        with open_session(Run(tmp_path), Ask(questions=questions, k=k), {}):
            pass
    first = {"a": 0b1111, "b": 0b1111}
    assert open_ask(Run(tmp_path), first) == (Ask(questions=9, k=1), 7)
    rest = dict.fromkeys("cdefghi", 1)
    assert open_ask(Run(tmp_path), {**first, **rest, "b": 0b101}) == (Ask(questions=2, k=4), 2)
    assert open_ask(Run(tmp_path / "none"), first) == (Ask(questions=2, k=1), 0)
