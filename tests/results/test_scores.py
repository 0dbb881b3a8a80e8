import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capcal_lib.applications import pass_at_k, simulate_pass_at_k
from capcal_lib.errors import InputError
from capcal_lib.metrics import mean_interval
from capcal_lib.places import RECORDED_RUNS
from capcal_lib.probe_names import read_column
from capcal_lib.results import (
    best_constant,
    brier_terms,
    confidence_columns,
    load_results,
    methods,
    score,
    subjects,
)
from capcal_lib.results.targets import sets_to_show

NAN = np.nan


def results(rows: dict[str, list[float]], dataset: str = "mini-exam") -> pd.DataFrame:
    columns = ["correct", "total", "P(True)", "Verbalized confidence"]
    index = pd.MultiIndex.from_product([[dataset], rows], names=["dataset", "question_id"])
    return pd.DataFrame(list(rows.values()), index=index, columns=columns).astype(
        {"correct": int, "total": int}
    )


FOUR = results(
    {"a": [3, 4, 0.5, 1], "b": [0, 4, 0.25, NAN], "c": [4, 4, 1, NAN], "d": [1, 1, 0.5, 1]}
)


@pytest.mark.parametrize(
    "table",
    [FOUR.droplevel("dataset"), FOUR.reset_index(), FOUR.drop(columns="total")],
    ids=["no data set", "no index", "no counts"],
)
def test_a_table_that_is_no_results_is_refused_with_what_to_do(table: pd.DataFrame) -> None:
    with pytest.raises(
        InputError, match=r"dataset and question_id and .* capcal_lib\.io\.score_table"
    ):
        score(table)


def test_terms_by_hand() -> None:
    terms = brier_terms(FOUR).loc["mini-exam"]
    assert methods(FOUR) == ["P(True)", "Verbalized confidence"]
    assert list(terms) == [
        "Uniform random",
        "Best constant",
        "P(True)",
        "Verbalized confidence",
        "Oracle RC",
        "Oracle CC",
    ]
    np.testing.assert_allclose(terms["P(True)"], [1 / 16 - 3 / 16 / 3, 1 / 16, 0, NAN], atol=1e-15)
    np.testing.assert_allclose(
        terms["Verbalized confidence"], [1 / 16 - 3 / 16 / 3, NAN, NAN, NAN], atol=1e-15
    )
    np.testing.assert_allclose(terms["Oracle RC"], [3 * 1 / (4 * 3), 0, 0, NAN])
    constant = [1 / 16 - 3 / 16 / 3, (7 / 8) ** 2, (5 / 8) ** 2, NAN]  # 1/2, 7/8 and 3/8
    np.testing.assert_allclose(terms["Best constant"], constant)
    np.testing.assert_allclose(terms["Uniform random"], [1 / 3 - 3 / 12, 1 / 3, 1 / 3, NAN])


def test_the_papers_protocol_is_plug_in_and_fills_gaps_with_one_half() -> None:
    terms = brier_terms(FOUR, protocol="paper").loc["mini-exam"]
    np.testing.assert_allclose(terms["Verbalized confidence"], [1 / 16, 1 / 4, 1 / 4, NAN])
    np.testing.assert_allclose(terms["Oracle RC"], [3 / 16, 0, 0, NAN])
    never = FOUR.assign(**{"Verbalized confidence": NAN})
    assert (
        brier_terms(never, protocol="paper")["Verbalized confidence"].isna().all()
    )  # never asked is no gap


def test_scores_by_hand() -> None:
    table = score(FOUR)
    assert table.index.names == ["dataset", "method"]
    row = table.loc[("mini-exam", "P(True)")]
    assert row["brier"] == pytest.approx(1 / 48)
    assert row["plug_in"] == pytest.approx((1 / 16 + 1 / 16) / 3)
    assert row["low"] <= row["brier"] <= row["high"]
    assert (row["missing"], row["questions"]) == (0, 3)
    verbalized = table.loc[("mini-exam", "Verbalized confidence")]
    assert (verbalized["missing"], verbalized["questions"]) == (2, 1)
    paper = score(FOUR, protocol="paper").loc[("mini-exam", "Verbalized confidence")]
    assert paper["brier"] == paper["plug_in"] == pytest.approx((1 / 16 + 1 / 4 + 1 / 4) / 3)


def test_the_interval_of_a_set_in_subjects_draws_them_whole(recorded: pd.DataFrame) -> None:
    own = recorded.loc[["mmlu"]]
    terms = brier_terms(own)["P(True)"]
    limits = mean_interval(terms, clusters=subjects(own), bounds=(0, 1))
    assert limits != mean_interval(terms, bounds=(0, 1))
    found = score(recorded).loc[("mmlu", "P(True)"), ["brier", "low", "high"]]
    assert found.tolist() == pytest.approx([*limits])


def test_missing_are_confidences_of_questions_that_others_are_scored_on() -> None:
    table = results({name: [2, 4, 0.5, 1] for name in "abc"} | {"d": [1, 1, NAN, NAN]})
    table.loc[("mini-exam", "a"), "P(True)"] = NAN
    for protocol in ("corrected", "paper"):
        assert score(table, protocol=protocol).loc[("mini-exam", "P(True)"), "missing"] == 1
    one = pd.concat({"mini-exam": FIVE.loc["mini-exam"]}, names=["dataset"])
    one.loc[one.index[0], "Probe (MATH) [3]"] = NAN
    one.loc[one.index[1], "Probe (MATH) [0]"] = NAN
    assert score(one).loc[("mini-exam", "Probe (MATH)"), "missing"] == 0, "a fifth each, of two"
    one.loc[one.index[0], [f"Probe (MATH) [{fold}]" for fold in range(5)]] = NAN
    assert score(one).loc[("mini-exam", "Probe (MATH)"), "missing"] == 1
    votes = table.rename(columns={"P(True)": "Response consistency"})
    row = score(votes, protocol="paper").loc[("mini-exam", "Response consistency")]
    assert (row["missing"], row["questions"]) == (0, 2), "too few samples to vote"


FIVE = FOUR.drop(columns="P(True)").assign(
    **{f"Probe (MATH) [{fold}]": [0.2 * fold, 0.5, 1 - 0.25 * fold, 0.5] for fold in range(5)}
)


def test_a_probe_of_the_papers_recipe_has_the_mean_of_five_scores() -> None:
    assert methods(FIVE) == ["Verbalized confidence", "Probe (MATH)"]
    assert len(FIVE.filter(like="Probe (MATH)").columns) == 5
    terms = brier_terms(FIVE, protocol="paper").loc["mini-exam", "Probe (MATH)"]
    mean = np.mean([(0.2 * fold - 0.75) ** 2 for fold in range(5)])
    far = np.mean([(0.25 * fold) ** 2 for fold in range(5)])
    np.testing.assert_allclose(terms, [mean, 1 / 4, far, NAN])
    row = score(FIVE, protocol="paper").loc[("mini-exam", "Probe (MATH)")]
    assert row["brier"] == pytest.approx((mean + 1 / 4 + far) / 3)
    parts = [
        score(FIVE[["correct", "total", name]].rename(columns={name: "one"}), protocol="paper")
        for name in FIVE.filter(like="Probe (MATH)").columns
    ]
    alone = [part.loc[("mini-exam", "one"), "brier"] for part in parts]
    assert row["brier"] == pytest.approx(np.mean(alone))
    assert row["spread"] == pytest.approx(np.std(alone, ddof=1))
    assert row["missing"] == 0
    asked = score(FIVE, protocol="paper").loc[("mini-exam", "Verbalized confidence")]
    assert np.isnan(asked["spread"])
    assert "spread" not in score(FOUR)


def test_the_error_of_pass_at_1_is_the_score_of_the_main_table() -> None:
    """By the paper's protocol they are one number, of which two pages show each."""
    results = load_results(
        RECORDED_RUNS, "qwen2.5-coder-1.5b", datasets=["gsm8k"], recipe="paper", held_out=False
    )
    counts = results["correct"], results["total"]
    errors = {
        name: (simulate_pass_at_k(results[name].fillna(0.5), [1]) - pass_at_k(*counts, [1]))[:, 0]
        ** 2
        for name in confidence_columns(results)
    }
    scores = score(results, protocol="paper").loc["gsm8k"]
    mean = pd.DataFrame(errors).mean().groupby(lambda name: read_column(name)[0], sort=False).mean()
    assert "Probe (GSM8K)" in mean
    pd.testing.assert_series_equal(mean, scores.loc[mean.index, "brier"], check_names=False)
    ensemble = results.filter(like="Probe (GSM8K) [").mean(axis="columns")
    lower = ((ensemble - counts[0] / counts[1]) ** 2).mean()
    assert lower < scores.loc["Probe (GSM8K)", "brier"]


def test_neither_baselines_nor_oracles_compete() -> None:
    wrong = results({f"q{place}": [place % 3, 8, 0.9, 1] for place in range(12)})
    best = score(wrong).loc["mini-exam", "may_be_best"]
    assert best.dropna().to_dict() == {"P(True)": True, "Verbalized confidence": False}
    briers = score(wrong).loc["mini-exam", "brier"]
    assert briers["Uniform random"] < briers["P(True)"]


def test_a_method_alone_is_not_called_best() -> None:
    alone = results({f"q{place}": [place % 3, 8, 0.9, NAN] for place in range(12)})
    assert score(alone)["may_be_best"].isna().all()


def test_of_fewer_than_ten_questions_nothing_is_called_best() -> None:
    questions = {f"q{place}": [place % 3, 8, 0.5, 0.9] for place in range(10)}
    assert score(results(questions))["may_be_best"].any()
    questions["q9"][3] = NAN
    best = score(results(questions)).loc["mini-exam", "may_be_best"]
    assert best.isna().all(), "one that competes is left"
    del questions["q9"]
    assert score(results(questions))["may_be_best"].isna().all()


@settings(max_examples=3)
@given(st.permutations(list(range(12))))
def test_neither_the_order_of_rows_nor_other_data_sets_change_a_score(order: list[int]) -> None:
    rng = np.random.default_rng(3)
    some = results(
        {f"q{i:02}": [rng.integers(0, 9), 8, rng.random(), rng.random()] for i in range(12)}
    )
    other = results({f"p{i}": [i, 8, 0.5, NAN] for i in range(6)}, "mini-capitals")
    alone = score(some)
    together = score(pd.concat([other, some.iloc[order]]).sort_index())
    pd.testing.assert_frame_equal(together.loc[["mini-exam"]], alone)
    shuffled = score(some.iloc[order])
    columns = ["brier", "plug_in", "missing", "questions"]
    pd.testing.assert_frame_equal(shuffled[columns], alone[columns])


def test_empty_results_have_no_scores() -> None:
    assert score(FOUR.iloc[:0]).empty
    assert score(FOUR[FOUR["total"] < 2]).empty


def test_an_unknown_protocol_is_refused() -> None:
    with pytest.raises(InputError, match="unknown protocol 'papers'; known: corrected, paper"):
        score(FOUR, protocol="papers")  # type: ignore[arg-type]


def test_the_best_constant_is_the_mean_of_the_others_within_a_data_set() -> None:
    index = pd.MultiIndex.from_tuples(
        [("a", "1"), ("b", "1"), ("a", "2"), ("a", "3"), ("c", "1")],
        names=["dataset", "question_id"],
    )
    counts = pd.DataFrame({"correct": [1, 3, 2, 0, 1], "total": [2, 4, 2, 0, 2]}, index)
    constant = best_constant(counts)
    assert constant.index.equals(index)
    assert constant["a"].iloc[:2].tolist() == [1.0, 0.5]
    assert constant.isna().tolist() == [False, True, False, True, True]


def test_the_papers_data_sets_stand_beside_one_if_they_have_samples_and_differ() -> None:
    rows = {"a": [3, 40, 0.5, 1], "b": [20, 40, 0.5, 1]}
    alike = {"a": [0, 40, 0.5, 1], "b": [0, 40, 0.5, 1]}
    few = {"a": [1, 4, 0.5, 1], "b": [4, 4, 0.5, 1]}

    def beside(aime: dict[str, list[float]]) -> list[str]:
        sets = [results(aime, "aime25"), results(rows, "gsm8k"), results(rows, "math500")]
        return sets_to_show(pd.concat(sets), "gsm8k")

    assert beside(rows) == ["gsm8k", "math500", "aime25"]
    assert beside(alike) == ["gsm8k", "math500"]
    assert beside(few) == ["gsm8k", "math500"]
