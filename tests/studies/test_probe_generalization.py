import numpy as np
import pandas as pd
import pytest

from capcal_lib.metrics import adjusted
from capcal_lib.places import RECORDED_RUNS
from capcal_lib.results import brier_terms, load_results
from capcal_lib.shifts import shift
from capcal_lib.studies.probe_generalization import (
    OVERLAPS,
    compare_mixture,
    compare_order,
    compare_without_overlaps,
    correlation,
    varied_datasets,
)

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
    turned = correlation(-confidence, mu, groups)
    assert turned["estimate"] == pytest.approx(-r)
    assert turned["low"] == pytest.approx(-found["high"])


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
    assert compare_mixture(alike, "Probe (TriviaQA + GSM8K)").empty


def test_gains_without_overlaps_are_those_of_the_other_questions() -> None:
    overlaps = pd.read_csv(OVERLAPS, index_col=["dataset", "question_id"])
    like = overlaps.loc["triviaqa"].index[:10]
    names = [*like, *(f"triviaqa/validation/new-{place}" for place in range(30))]
    index = pd.MultiIndex.from_product([["triviaqa"], names], names=["dataset", "question_id"])
    mu = np.r_[np.ones(10), np.tile([0.2, 0.6], 15)]
    columns = {"correct": np.round(10 * mu).astype(int), "total": 10}
    columns["Probe (TriviaQA)"] = np.r_[np.ones(10), np.full(30, 0.4)]
    results = pd.DataFrame(columns, index)
    [row] = compare_without_overlaps(results).to_dict("records")
    assert [row["method"], row["questions"], row["exact"], row["13 words"]] == [
        "Probe (TriviaQA)",
        40,
        0,
        0,
    ]
    assert row["alike"] == 10
    terms = brier_terms(results)
    gain = terms["Best constant"] - terms["Probe (TriviaQA)"]
    assert row["gain"] == pytest.approx(gain.mean())
    assert row["without"] == pytest.approx(gain.iloc[10:].mean())
    assert row["low"] < row["without"] < row["high"]
    assert compare_without_overlaps(results.drop(columns="Probe (TriviaQA)")).empty
