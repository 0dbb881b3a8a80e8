import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.markers import MarkerStyle

from capcal_lib.metrics import adjusted, gains
from capcal_lib.places import RECORDED_RUNS
from capcal_lib.plots import MARKERS
from capcal_lib.results import (
    Counting,
    brier_terms,
    compare_with_constant,
    costs,
    load_results,
    subjects,
)
from capcal_lib.results.nearest import compare_with_nearest_probe, keep_asked_and_nearest_probe
from capcal_lib.studies.main_table import draw_prices, draw_printed_prices, score_by_price

MODEL = "smollm2-135m"


@pytest.fixture(scope="module")
def results() -> pd.DataFrame:
    return load_results(RECORDED_RUNS, MODEL, datasets=["mini-exam", "mini-capitals"])


def test_one_probe_stands_for_all_and_what_has_no_price_is_left_out(results: pd.DataFrame) -> None:
    mine = results.assign(mine=0.5)
    kept = keep_asked_and_nearest_probe(mine)
    assert {*kept} - {"votes correct", "votes total", "votes term", "votes plug-in"} == {
        "correct",
        "total",
        "Verbalized confidence",
        "P(True)",
        "Response consistency",
        "Probe",
    }
    own = kept.loc["mini-exam", "Probe"]
    assert own.equals(results.loc["mini-exam", "Probe (Mini exam)"].rename("Probe"))


def test_nothing_solved_is_nothing_to_price(results: pd.DataFrame) -> None:
    hopeless = results.assign(correct=0)
    tokens = costs(Counting(RECORDED_RUNS, MODEL))
    assert score_by_price(hopeless, tokens, compare_with_constant(hopeless)).empty
    judged = compare_with_nearest_probe(hopeless)
    counts = judged.groupby("method", observed=False)["verdict"].value_counts()
    assert counts.to_list() == [0] * 9  # of three methods and three verdicts


def test_a_score_stands_beside_its_price_and_its_verdict(results: pd.DataFrame) -> None:
    tokens = costs(Counting(RECORDED_RUNS, MODEL))
    judged = compare_with_constant(results)
    table = score_by_price(results, tokens, judged).set_index(["dataset", "method"])
    assert (table["tokens"].xs("Probe", level="method") == 0).all()
    assert (table["tokens"].xs("Best constant", level="method") == 0).all()
    price = tokens.loc["mini-exam", "Verbalized confidence"]
    assert table.loc[("mini-exam", "Verbalized confidence"), "tokens"] == pytest.approx(price)
    terms = brier_terms(results).loc["mini-exam"]
    assert table.loc[("mini-exam", "P(True)"), "brier"] == pytest.approx(terms["P(True)"].mean())
    judged = judged.set_index(["dataset", "method"])["verdict"]
    assert table.loc[("mini-exam", "P(True)"), "verdict"] == judged["mini-exam", "P(True)"]
    own = judged["mini-exam", "Probe (Mini exam)"]
    assert table.loc[("mini-exam", "Probe"), "verdict"] == own
    assert table.loc[("mini-exam", "Best constant"), "verdict"] == ""


def test_a_method_has_its_own_mark_in_the_legend_as_in_its_panels(results: pd.DataFrame) -> None:
    tokens = costs(Counting(RECORDED_RUNS, MODEL))
    grid = draw_prices(score_by_price(results, tokens, compare_with_constant(results)))
    handles = grid.figure.legends[0].legend_handles
    assert {one.get_label() for one in handles} >= {"P(True)", "Verbalized confidence", "Probe"}
    for handle in handles:
        mark = MarkerStyle(MARKERS.get(handle.get_label(), "o"))
        wanted = mark.get_transform().transform_path(mark.get_path())
        np.testing.assert_allclose(handle.get_paths()[0].vertices, wanted.vertices)
    plt.close("all")


def test_what_takes_tokens_is_judged_against_the_nearest_probe(results: pd.DataFrame) -> None:
    judged = compare_with_nearest_probe(results)
    assert {*judged["method"]} == {"Verbalized confidence", "P(True)", "Response consistency"}
    kept = keep_asked_and_nearest_probe(results)
    terms = brier_terms(kept).loc[["mini-exam"]][["Probe", "P(True)"]].dropna()
    alone = gains(terms, "Probe", clusters=subjects(terms)).loc["P(True)"]
    row = judged.set_index(["dataset", "method"]).loc[("mini-exam", "P(True)")]
    assert row["estimate"] == pytest.approx((terms["Probe"] - terms["P(True)"]).mean())
    assert row[["low", "high", "p"]].tolist() == pytest.approx(alone[["low", "high", "p"]].tolist())
    together = adjusted(judged["p"].to_numpy(np.float64), "holm")
    assert judged["p (Holm)"].tolist() == pytest.approx(together.tolist())


def test_printed_prices_are_marks_around_their_mean_in_a_panel_a_model() -> None:
    rows = [
        ("one", "Probe", 0.1, 0.0, 0.05),
        ("one", "Probe", 0.3, 0.0, 0.15),
        ("one", "P(True)", 0.5, 1.0, 0.05),
        ("one", "P(True)", 0.1, 3.0, 0.15),
        ("two", "P(True)", 0.2, 1.0, 0.3),
    ]
    columns = ["model", "method", "brier", "tokens", "constant"]
    grid = draw_printed_prices(pd.DataFrame(rows, columns=columns))
    assert [*grid.axes_dict] == ["one", "two"]
    one, two = grid.axes_dict.values()
    marks = [each.get_offsets().tolist() for each in one.collections]
    assert marks[0] == [[0, 0.1], [0, 0.3]]
    assert marks[1] == [pytest.approx([0, 0.2])]
    assert marks[2] == [[1, 0.5], [3, 0.1]]
    assert marks[3] == [pytest.approx([2, 0.3])]
    constants = [axes.get_lines()[0].get_ydata()[0] for axes in (one, two)]
    assert constants == pytest.approx([0.1, 0.3])
    names = [text.get_text() for text in grid.figure.legends[0].get_texts()]
    assert names == ["Best constant", "Probe", "P(True)"]
    plt.close(grid.figure)
