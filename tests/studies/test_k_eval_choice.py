import numpy as np
import pandas as pd
import pytest

from capcal_lib.metrics import capability_brier_terms, mean_interval
from capcal_lib.results import estimates
from capcal_lib.results.estimated import cases_of
from capcal_lib.results.terms import NUMBERS
from capcal_lib.studies.k_eval_choice import (
    deep_questions,
    growths_of,
    interval_growth,
    interval_width,
)


def made(total: int = 100, questions: int = 60, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    mu = rng.random(questions)
    index = pd.MultiIndex.from_product(
        [["gsm8k"], [f"q{place}" for place in range(questions)]], names=["dataset", "question_id"]
    )
    correct = rng.binomial(total, mu)
    right = {"Probe (GSM8K)": mu, "far off": 0.5}
    return pd.DataFrame({"correct": correct, "total": total} | right, index)


def test_deep_questions_are_those_with_most_samples() -> None:
    few, many = made(12, 40), made(100, 20, seed=1)
    few.index = few.index.set_levels(few.index.levels[1] + "-few", level=1)
    assert deep_questions(pd.concat([few, many])).index.equals(many.index)
    assert deep_questions(made(10)).empty
    assert deep_questions(made().assign(correct=3)).empty
    assert deep_questions(made().iloc[:0]).empty


def test_all_samples_have_one_interval() -> None:
    judged = estimates(made(), "far off")[NUMBERS]
    terms = capability_brier_terms(*judged.to_numpy().T, corrected=True)
    _, low, high = mean_interval(terms, bounds=(0, 1))
    rng = np.random.default_rng(0)
    assert interval_width(judged, 100, rng=rng) == pytest.approx(high - low)


def test_growth_is_that_of_widths() -> None:
    growth = interval_growth(made(), seed=5)
    for method in ("Probe (GSM8K)", "far off"):
        rng = np.random.default_rng(5)
        judged = estimates(made(), method)[NUMBERS]
        by_all = interval_width(judged, 100, rng=rng)
        rows = growth[growth["method"] == method].set_index("k")
        for k in (5, 10, 20, 50):
            expected = 100 * (interval_width(judged, k, rng=rng) / by_all - 1)
            assert rows.loc[k, "percent"] == pytest.approx(expected)
        assert {*rows["samples"]} == {100}
        assert {*rows["kind"]} == {cases_of(made()).loc[("gsm8k", method), "kind"]}
    uneven = made()
    uneven.iloc[0, 1] = 120
    assert {*interval_growth(uneven)["samples"]} == {100}, "as many as each question has"


def test_the_fewer_samples_the_wider_the_interval() -> None:
    growth = interval_growth(made())
    percents = growth.set_index(["k", "method"])["percent"].unstack("k")
    assert (percents.diff(axis="columns").iloc[:, 1:] < 0).all(axis=None)  # ever fewer samples
    assert (percents[5] > 5).all()


def test_there_is_nothing_to_draw_from_few_samples() -> None:
    assert interval_growth(made(10)).empty
    assert {*interval_growth(made(20))["k"]} == {5, 10}
    votes = made().rename(columns={"far off": "Response consistency"})
    assert {*interval_growth(votes)["method"]} == {"Probe (GSM8K)"}


def test_a_probe_by_the_papers_recipe_is_one_case() -> None:
    names = {"Probe (GSM8K)": "Probe (GSM8K) [0]", "far off": "Probe (GSM8K) [1]"}
    results = made().rename(columns=names)
    five = interval_growth(results, seed=1)
    rng = np.random.default_rng(1)  # one for all members
    judged = estimates(results).groupby("member")[NUMBERS]
    growths = [growths_of(member, ks=[5, 10, 20, 50], most=100, rng=rng) for _, member in judged]
    assert five["percent"].tolist() == pytest.approx(np.mean(growths, axis=0).tolist())


def test_a_method_of_ones_own_moves_no_number_of_another() -> None:
    alone = interval_growth(made().drop(columns="far off"))
    both = interval_growth(made()).query("method == 'Probe (GSM8K)'").reset_index(drop=True)
    pd.testing.assert_frame_equal(alone, both)
