import numpy as np
import pandas as pd
import pytest

from capcal_lib.applications import score_components
from capcal_lib.metrics import capability_brier_terms, mean_interval
from capcal_lib.places import RECORDED_RUNS
from capcal_lib.results import estimates, load_results
from capcal_lib.results.constant import kind_of_method
from capcal_lib.results.terms import NUMBERS
from capcal_lib.studies.k_eval_choice import (
    deep_questions,
    interval_growth,
    interval_width,
    score_parts,
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
    growth = interval_growth(made(), rng=np.random.default_rng(5))
    rng = np.random.default_rng(5)
    for method in ("Probe (GSM8K)", "far off"):
        judged = estimates(made(), method)[NUMBERS]
        by_all = interval_width(judged, 100, rng=rng)
        rows = growth[growth["method"] == method].set_index("k")
        for k in (5, 10, 20, 50):
            expected = 100 * (interval_width(judged, k, rng=rng) / by_all - 1)
            assert rows.loc[k, "percent"] == pytest.approx(expected)
        assert {*rows["samples"]} == {100}
        assert {*rows["kind"]} == {kind_of_method(method, "gsm8k")}


def test_the_fewer_samples_the_wider_the_interval() -> None:
    growth = interval_growth(made(), rng=np.random.default_rng(0))
    percents = growth.set_index(["k", "method"])["percent"].unstack("k")
    assert (percents.diff(axis="columns").iloc[:, 1:] < 0).all(axis=None)  # ever fewer samples
    assert (percents[5] > 5).all()


def test_there_is_nothing_to_draw_from_few_samples() -> None:
    rng = np.random.default_rng(0)
    assert interval_growth(made(10), rng=rng).empty
    assert {*interval_growth(made(20), rng=rng)["k"]} == {5, 10}
    votes = made().rename(columns={"far off": "Response consistency"})
    assert {*interval_growth(votes, rng=rng)["method"]} == {"Probe (GSM8K)"}


def test_a_probe_by_the_papers_recipe_is_one_case() -> None:
    names = {"Probe (GSM8K)": "Probe (GSM8K) [0]", "far off": "Probe (GSM8K) [1]"}
    five = interval_growth(made().rename(columns=names), rng=np.random.default_rng(1))
    alone = interval_growth(made(), rng=np.random.default_rng(1))
    means = alone.groupby("k")["percent"].mean()
    assert five.set_index("k")["percent"].to_dict() == pytest.approx(means.to_dict())
    parts = score_parts(made().rename(columns=names)).loc[("gsm8k", "Probe (GSM8K)")]
    assert parts.to_list() == pytest.approx(score_parts(made()).mean().to_list())


def test_parts_are_those_of_a_pilot() -> None:
    results = load_results(RECORDED_RUNS, "smollm2-135m", datasets=["mini-exam"])
    parts = score_parts(results)
    assert "Response consistency" not in parts.index.get_level_values("method")
    judged = estimates(results, "P(True)")[NUMBERS]
    expected = score_components(*judged.to_numpy().T)
    assert parts.loc[("mini-exam", "P(True)")].tolist() == pytest.approx([*expected])
