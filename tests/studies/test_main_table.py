from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.markers import MarkerStyle

from capcal_lib.grading.verdicts import grade_run, read_verdicts, write_verdicts
from capcal_lib.metrics import adjusted, gains
from capcal_lib.places import RECORDED_RUNS
from capcal_lib.plots import MARKERS
from capcal_lib.results import (
    Counting,
    brier_terms,
    compare_with_constant,
    compare_with_nearest_probe,
    costs,
    load_results,
    recalibrate,
    score,
    subjects,
)
from capcal_lib.results.judged import TAKES_TOKENS
from capcal_lib.runs.artifacts import GIVEN
from capcal_lib.sampling.draw import sample
from capcal_lib.studies.main_table import accuracies, draw_prices, score_by_price

MODEL = "smollm2-135m"


@pytest.fixture(scope="module")
def results() -> pd.DataFrame:
    return load_results(RECORDED_RUNS, MODEL, datasets=["mini-exam", "mini-capitals"])


def test_nothing_solved_is_nothing_to_price(results: pd.DataFrame) -> None:
    hopeless = results.assign(correct=0)
    tokens = costs(Counting(RECORDED_RUNS, MODEL))
    scores = score(hopeless).assign(recalibrated=0.0)
    assert score_by_price(scores, tokens, compare_with_constant(hopeless)).empty
    judged = compare_with_nearest_probe(hopeless)
    counts = judged.groupby("method", observed=False)["verdict"].value_counts()
    assert counts.to_list() == [0] * 9  # of three methods and three verdicts


@pytest.fixture(scope="module")
def scores(results: pd.DataFrame) -> pd.DataFrame:
    """The scores of the methods, and of what takes tokens once it is recalibrated."""
    again = score(recalibrate(results))["brier"]
    asked = again.index.isin(TAKES_TOKENS, level="method")
    return score(results).assign(recalibrated=again[asked])


def test_a_score_stands_beside_its_price(results: pd.DataFrame, scores: pd.DataFrame) -> None:
    tokens = costs(Counting(RECORDED_RUNS, MODEL))
    judged = compare_with_constant(results)
    table = score_by_price(scores, tokens, judged).set_index(["dataset", "method"])
    assert (table["tokens"].xs("Probe", level="method") == 0).all()
    assert {*table} == {"brier", "low", "high", "recalibrated", "tokens", "constant"}
    price = tokens.loc["mini-exam", "Verbalized confidence"]
    assert table.loc[("mini-exam", "Verbalized confidence"), "tokens"] == pytest.approx(price)
    terms = brier_terms(results).loc["mini-exam"]
    assert table.loc[("mini-exam", "P(True)"), "brier"] == pytest.approx(terms["P(True)"].mean())
    asked = table.loc[("mini-exam", "P(True)")]
    assert asked["recalibrated"] < asked["brier"]
    assert table["recalibrated"].xs("Probe", level="method").isna().all()
    assert table.loc[("mini-exam", "P(True)"), "constant"] == pytest.approx(
        terms["Best constant"].mean()
    )


def test_a_method_has_its_own_mark_in_the_legend_as_in_its_panels(
    results: pd.DataFrame, scores: pd.DataFrame
) -> None:
    tokens = costs(Counting(RECORDED_RUNS, MODEL))
    prices = score_by_price(scores, tokens, compare_with_constant(results))
    grid = draw_prices(prices, "dataset")
    assert grid.axes[0].get_xticklabels()[0].get_text() == "0", "the cheapest first"
    handles = grid.figure.legends[0].legend_handles
    assert {one.get_label() for one in handles} >= {"P(True)", "Verbalized confidence", "Probe"}
    for handle in handles:
        mark = MarkerStyle(MARKERS.get(handle.get_label(), "o"))
        wanted = mark.get_transform().transform_path(mark.get_path())
        np.testing.assert_allclose(handle.get_paths()[0].vertices, wanted.vertices)
    plt.close("all")


def test_bounds_stand_beside_all_if_one_data_set_has_many_that_were_not_scored(
    tmp_path: Path,
) -> None:
    """Of twelve samples, three were not scored; the other data set was scored whole."""
    for dataset in ("mini-exam", "mini-capitals"):
        run = sample("simulated", dataset, k=4, limit=3, store=tmp_path).run
        grade_run(run)
    verdicts = read_verdicts(run).assign(verdict=["correct"] * 9 + ["not_scored"] * 3)
    write_verdicts(run, verdicts, GIVEN)
    table = accuracies(Counting(tmp_path, "simulated"))
    columns = ["not scored", "μ, these wrong", "μ, these right"]
    assert table.loc["mini-capitals", columns].tolist() == [0.25, 0.75, 1.0]
    assert table.loc["mini-exam", "not scored"] == 0


def test_what_takes_tokens_is_judged_against_the_nearest_probe(results: pd.DataFrame) -> None:
    judged = compare_with_nearest_probe(results)
    assert {*judged["method"]} == {"Verbalized confidence", "P(True)", "Response consistency"}
    terms = brier_terms(results).loc[["mini-exam"]].rename(columns={"Probe (Mini exam)": "Probe"})
    terms = terms[["Probe", "P(True)"]].dropna()
    alone = gains(terms, "Probe", clusters=subjects(terms)).loc["P(True)"]
    row = judged.set_index(["dataset", "method"]).loc[("mini-exam", "P(True)")]
    assert row["estimate"] == pytest.approx((terms["Probe"] - terms["P(True)"]).mean())
    assert row[["low", "high", "p"]].tolist() == pytest.approx(alone[["low", "high", "p"]].tolist())
    together = adjusted(judged["p"].to_numpy(np.float64), "holm")
    assert judged["p (Holm)"].tolist() == pytest.approx(together.tolist())
