import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capcal_lib.errors import InputError
from capcal_lib.runs import Run
from capcal_lib.runs import sessions as sessions_module
from capcal_lib.runs.files import SUMS
from capcal_lib.runs.samples import Sample
from capcal_lib.runs.sessions import (
    FILE,
    Ask,
    Session,
    add_sessions,
    mend_sessions,
    rates,
    read_sessions,
    session,
    wanted,
)

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


def test_a_killed_session_is_known_up_to_its_last_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions_module, "FIRST_BEAT", 0.0)
    meter = sessions_module.Meter(Run(tmp_path), ASK, {})
    meter.write("drawing")
    meter.add([sampled(3)])
    kept(tmp_path, [1])
    assert [(one.state, one.rows) for one in read_sessions(Run(tmp_path))] == [
        ("drawing", 1),
        ("ended", 1),
    ]


def test_a_file_cut_at_any_byte_is_refused_and_mended_but_for_the_torn_line(tmp_path: Path) -> None:
    for tokens in ([1], [2, 3]):
        kept(tmp_path, tokens)
    path, sums = tmp_path / FILE, tmp_path / SUMS
    whole, digests = path.read_bytes(), sums.read_bytes()
    lines = whole.splitlines(keepends=True)
    ends = [sum(map(len, lines[: number + 1])) for number in range(len(lines))]
    for cut in range(0, len(whole), 7):
        path.write_bytes(whole[:cut])
        sums.write_bytes(digests)
        with pytest.raises(InputError, match="its digest is not the one in"):
            read_sessions(Run(tmp_path))
        notes: list[str] = []
        mend_sessions(Run(tmp_path), notes)
        assert notes == ["sessions.jsonl was damaged: kept what can be read of it"]
        there = sum(end - 1 <= cut for end in ends)  # a line that lacks its newline alone is whole
        before = len(read_sessions(Run(tmp_path)))
        assert before == {0: 0, 1: 1, 2: 1, 3: 2, 4: 2}[there]
        kept(tmp_path, [9])
        assert len(read_sessions(Run(tmp_path))) == before + 1


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


def test_sessions_of_another_copy_are_added_once(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        folder.mkdir()
        kept(folder, [1])
    for _ in range(2):
        add_sessions(Run(one), Run(two))
        assert len(read_sessions(Run(one))) == 2
        assert len((one / FILE).read_text().splitlines()) == 4


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
