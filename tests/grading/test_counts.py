import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capcal_lib.errors import InputError
from capcal_lib.grading.counts import count_run, count_verdicts
from capcal_lib.grading.verdicts import read_verdicts
from capcal_lib.places import RECORDED_RUNS
from capcal_lib.runs import files, open_runs

VERDICTS = ("correct", "incorrect", "no_answer", "not_scored")


def frame(rows: list[tuple[str, int, str]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["question_id", "sample_index", "verdict"])


def test_hand_counted() -> None:
    rows = [
        ("b", 0, "correct"),
        ("b", 1, "not_scored"),
        ("a", 0, "incorrect"),
        ("a", 1, "no_answer"),
        ("a", 2, "correct"),
    ]
    counts = count_verdicts(frame(rows), k=2)
    assert counts.index.tolist() == ["a", "b"]
    assert counts.correct.tolist() == [0, 1]
    assert counts.total.tolist() == [2, 1]
    assert counts.no_answer.tolist() == [1, 0]
    assert counts.not_scored.tolist() == [0, 1]


@given(
    st.dictionaries(
        st.tuples(st.sampled_from("abc"), st.integers(0, 8)), st.sampled_from(VERDICTS), min_size=1
    ),
    st.integers(1, 6),
)
def test_equals_a_naive_count(rows: dict[tuple[str, int], str], k: int) -> None:
    chosen = {key: verdict for key, verdict in rows.items() if key[1] < k}
    table = frame([(*key, verdict) for key, verdict in rows.items()])
    if not chosen:
        with pytest.raises(InputError, match="no sample has an index below"):
            count_verdicts(table, k=k)
        return
    counts = count_verdicts(table, k=k)
    for name, row in counts.iterrows():
        said = [verdict for (question, _), verdict in chosen.items() if question == name]
        assert row["correct"] == said.count("correct")
        assert row["total"] == len(said) - said.count("not_scored")
        assert row["no_answer"] == said.count("no_answer")
        assert row["not_scored"] == said.count("not_scored")
    assert set(counts.index) == {question for question, _ in chosen}


@pytest.mark.parametrize("k", [0, 3])
def test_no_samples_are_refused(k: int) -> None:
    with pytest.raises(InputError, match=f"no sample has an index below {k}; draw more"):
        count_verdicts(frame([("a", 3, "correct")]), k=k)


def test_counts_of_a_run_are_those_of_its_verdicts_however_few_are_read_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (run,) = open_runs(RECORDED_RUNS, model="simulated", dataset="mini-exam", split="test")
    verdicts = read_verdicts(run)
    for batch, k in ((700, 120), (10**6, 3), (7_000, 1)):
        monkeypatch.setattr(files, "BATCH", batch)
        expected = count_verdicts(verdicts, k=k)
        pd.testing.assert_frame_equal(count_run(run, None if k == 120 else k), expected)
