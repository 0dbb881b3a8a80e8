"""What was asked for: lines that say what is still lacking."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capcal_lib.runs import Run
from capcal_lib.runs.sessions import FILE, Ask, note_ask, open_ask, read_lines

ASK = Ask(questions=3, k=5)


def test_what_was_asked_for_is_known_and_a_torn_line_is_left_out(tmp_path: Path) -> None:
    note_ask(Run(tmp_path), ASK)
    path = tmp_path / FILE
    for torn in (
        "",
        '\n{"started": "2026-01-01", "ask": {"questions": 4, "k": 5}',
        '{"started": "2026',
        '\n{"started": "2026-01-01", "ask": {"questions": 4, "k"',
    ):
        path.write_text(path.read_text() + torn)
        note_ask(Run(tmp_path), ASK)
        assert open_ask(Run(tmp_path), set()) == (ASK, 15)


def test_what_earlier_versions_wrote_of_a_session_is_read(tmp_path: Path) -> None:
    line = {"started": "2026-01-01", "ask": {"questions": 3, "k": 5}, "made_with": {"capcal": "1"}}
    (tmp_path / FILE).write_text(json.dumps(line | {"seconds": 2.5, "rows": 15, "tokens": 99}))
    assert open_ask(Run(tmp_path), set()) == (ASK, 15)


def test_no_file_is_no_sessions(tmp_path: Path) -> None:
    assert read_lines(Run(tmp_path)) == []
    assert open_ask(Run(tmp_path), {("a", 0)}) == (Ask(questions=1, k=1), 0)


@settings(max_examples=25)
@given(st.integers(1, 6), st.integers(1, 9), st.data())
def test_what_lacks_is_what_was_asked_for_without_what_is_there(
    tmp_path_factory: pytest.TempPathFactory, questions: int, k: int, data: st.DataObject
) -> None:
    wanted = {(str(question), index) for question in range(questions) for index in range(k)}
    there = wanted - data.draw(st.sets(st.sampled_from(sorted(wanted))))
    run = Run(tmp_path_factory.mktemp("run"))
    less = Ask(questions=max(1, questions - 1), k=max(1, k - 1))
    for ask in (less, Ask(questions=questions, k=k)):
        note_ask(run, ask)
    assert open_ask(run, there)[1] == len(wanted - there)


def test_of_two_asks_the_one_that_lacks_most_is_open(tmp_path: Path) -> None:
    for questions, k in ((2, 4), (9, 1)):
        note_ask(Run(tmp_path), Ask(questions=questions, k=k))
    first = {(name, index) for name in "ab" for index in range(4)}
    assert open_ask(Run(tmp_path), first) == (Ask(questions=9, k=1), 7)
    rest = {(name, 0) for name in "cdefghi"}
    some = first - {("b", 1), ("b", 3)} | rest
    assert open_ask(Run(tmp_path), some) == (Ask(questions=2, k=4), 2)
