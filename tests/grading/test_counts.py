import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capcal_lib.errors import InputError
from capcal_lib.grading.counts import count_run, count_verdicts
from capcal_lib.grading.verdicts import read_verdicts
from capcal_lib.places import RECORDED_RUNS
from capcal_lib.runs import open_runs

VERDICTS = ("correct", "incorrect", "no_answer", "not_scored")


def frame(rows: list[tuple[str, int, str]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["question_id", "sample_index", "verdict"])


@settings(max_examples=25)
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


def test_counts_of_a_run_are_those_of_its_verdicts() -> None:
    (run,) = open_runs(RECORDED_RUNS, model="simulated", dataset="mini-exam", split="test")
    verdicts = read_verdicts(run)
    for k, samples in ((3, 3), (None, 120)):
        pd.testing.assert_frame_equal(count_run(run, k), count_verdicts(verdicts, k=samples))
