from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from capcal_lib.metrics import adjusted
from capcal_lib.places import RECORDED_RUNS
from capcal_lib.reproduce import LEAN, PAPER, reproduce
from capcal_lib.results import load_results
from capcal_lib.results.transfer import (
    ALL_QUESTIONS,
    BY_PAPER,
    BY_TUNING,
    compare_mixture,
    compare_order,
    compare_recipes,
    correlation,
    gains_of_labels,
    near_probes,
    recipe_terms,
    score_labels,
    varied_datasets,
)
from capcal_lib.shifts import shift
from tests.reproduce.orders import small

MODEL = "qwen2.5-coder-1.5b"
JUDGE = "simulated"  # which judges itself


@pytest.fixture(scope="module")
def results() -> pd.DataFrame:
    loaded = load_results(RECORDED_RUNS, MODEL, datasets=["gsm8k", "math500", "triviaqa"])
    return loaded.filter(regex=r"^correct$|^total$|^Probe \(").query("total > 1")


def test_a_correlation_is_pearsons_and_its_interval_holds_it() -> None:
    rng = np.random.default_rng(0)
    mu = pd.Series(rng.random(80))
    confidence = pd.DataFrame({"mine": mu + rng.normal(0, 0.3, 80)})
    groups = pd.Series(range(80)).map(str)
    found = correlation(confidence, mu, groups)
    r = np.corrcoef(confidence["mine"], mu)[0, 1]
    assert found["estimate"] == pytest.approx(r)
    assert found["low"] < r < found["high"]
    assert found["verdict"] == "better"
    turned = correlation(-confidence, mu, groups)
    assert turned["estimate"] == pytest.approx(-r)
    assert turned["low"] == pytest.approx(-found["high"])
    assert turned["verdict"] == "worse"


def test_the_order_of_probes_is_judged_together(results: pd.DataFrame) -> None:
    order = compare_order(results)
    assert not order["method"].str.contains("+", regex=False).any()
    for _, row in order.iterrows():
        own = results.loc[row["dataset"], ["correct", "total", row["method"]]].dropna()
        mu = own["correct"] / own["total"]
        assert row["estimate"] == pytest.approx(own[row["method"]].corr(mu))
        assert row["off"] == pytest.approx(own[row["method"]].mean() - mu.mean())
        assert row["shift"] == shift(row["method"], row["dataset"])
    assert order["p (Holm)"].tolist() == pytest.approx(
        adjusted(order["p"].to_numpy(np.float64), "holm").tolist()
    )


def test_data_sets_without_questions_that_differ_are_left_out(results: pd.DataFrame) -> None:
    alike = results.assign(correct=1, total=4)
    assert varied_datasets(alike) == []
    assert compare_order(alike).empty
    assert near_probes(alike) == []
    assert score_labels(alike).empty
    assert gains_of_labels(score_labels(alike)).empty
    assert compare_mixture(alike, "Probe (TriviaQA + GSM8K)").empty


def test_twenty_labels_are_worth_what_their_draws_say(results: pd.DataFrame) -> None:
    one = results.loc[["math500"]]
    scores = score_labels(one, seed=3)
    assert scores.index.unique("dataset").tolist() == ["math500"]
    assert scores.groupby(["dataset", "method"]).size().tolist() == [400]
    assert scores.equals(score_labels(one, seed=3))
    gains = gains_of_labels(scores).xs("constant", level="rival").iloc[0]
    lowered = scores["constant"] - scores["recalibrated"]
    assert gains["gain"] == pytest.approx(lowered.mean())
    assert gains["low"] == pytest.approx(lowered.quantile(0.025))
    assert gains["high"] == pytest.approx(lowered.quantile(0.975))


def test_recipes_are_compared_on_the_same_questions() -> None:
    terms = recipe_terms(RECORDED_RUNS, ["smollm2-135m"])
    judged = compare_recipes(terms)
    assert judged["dataset"].iloc[0] == ALL_QUESTIONS
    difference = terms[BY_PAPER] - terms[BY_TUNING]
    assert judged["estimate"].iloc[0] == pytest.approx(difference.mean())
    by_pair = difference.groupby(["model", "dataset"]).mean()
    for _, row in judged.iloc[1:].iterrows():
        assert row["estimate"] == pytest.approx(by_pair[row["model"], row["dataset"]])
    nothing = recipe_terms(RECORDED_RUNS, [])
    assert compare_recipes(nothing).empty


def test_a_judges_verdicts_are_compared_with_the_probes_that_learnt_from_them(
    tmp_path: Path,
) -> None:
    for recipe in (PAPER, LEAN):  # whose samples are among those of the first
        reproduce(small(tmp_path, limit=12, recipe=replace(recipe, judge=JUDGE)))
    terms = recipe_terms(tmp_path, [JUDGE], verdicts=f"judge:{JUDGE}")
    assert terms.index.unique("dataset").tolist() == ["mini-exam"]
    assert recipe_terms(tmp_path, [JUDGE]).empty, "no probe has learnt from the rules"
