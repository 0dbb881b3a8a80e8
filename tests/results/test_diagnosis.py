from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from capcal_lib.applications import difference_components, questions_needed
from capcal_lib.metrics import soft_auroc, spearman
from capcal_lib.results import diagnosis, tables
from capcal_lib.results.evaluation import Evaluation
from tests.results.test_tables import EDGES, FOUR, NAN, evaluation, rng

N = 60
MU = np.linspace(0.05, 0.95, N)
GROUPS = np.repeat([f"subject {number}" for number in range(12)], 5)


def world(evidence: str = "measured") -> Evaluation:
    correct = rng(1).binomial(40, MU).tolist()
    gaps = np.where(np.arange(N) % 4 == 0, NAN, MU)
    confidences = {
        "squeezed": (0.5 + 0.3 * (MU - 0.5)).tolist(),
        "noisy": np.clip(MU + rng(2).normal(0, 0.15, N), 0, 1).tolist(),
        "constant": [0.9] * N,
        "gaps": gaps.tolist(),
        "nothing": [NAN] * N,
    }
    return evaluation(correct, [40] * N, confidences, evidence=evidence)  # type: ignore[arg-type]


def test_parts_add_up_to_the_score_of_the_main_table() -> None:
    one = world()
    table = diagnosis.parts(one, rng()).set_index("method")
    scores = tables.main_table([one], rng()).set_index("method")
    assert table.index.tolist() == ["squeezed", "noisy", "constant", "gaps", diagnosis.PERFECT]
    for method in ("squeezed", "noisy", "constant", "gaps"):
        row = table.loc[method]
        assert row["brier"] == pytest.approx(scores.loc[method, "brier"])
        assert row["brier"] == pytest.approx(row["miscalibration"] - row["discrimination"] + row["uncertainty"])
        assert row["evidence"] == "measured"
    assert table.loc["constant", "discrimination"] == pytest.approx(0, abs=1e-12)
    assert table.loc["gaps", "missing"] == pytest.approx(0.25)
    s = one.confidences["noisy"].values
    assert table.loc["noisy", "concordance"] == soft_auroc(s, one.counts.correct, one.counts.total)
    assert table.loc["noisy", "rank"] == spearman(s, one.counts.correct, one.counts.total)


def test_a_perfect_estimator_is_simulated_and_nearly_without_fault() -> None:
    row = diagnosis.parts(world(), rng()).set_index("method").loc[diagnosis.PERFECT]
    assert row["evidence"] == "simulated"
    assert abs(row["brier"]) < 0.003
    assert row["miscalibration"] < 0.005
    assert row["rank"] > 0.9
    other = diagnosis.parts(world(), rng(1)).set_index("method").loc[diagnosis.PERFECT]
    assert row["brier"] != other["brier"]


def test_recalibration_mends_the_scale_and_not_the_order() -> None:
    table = diagnosis.recalibrated(world(), rng()).set_index(["method", "recalibration"])
    assert set(table.index.get_level_values(0)) == {"squeezed", "noisy", "constant", "gaps"}
    assert table.loc[("squeezed", "logistic"), "for sure"] == "lower"
    assert table.loc[("squeezed", "logistic"), "after"] < 0.1 * table.loc[("squeezed", "logistic"), "before"]
    assert table.loc[("constant", "isotonic"), "after"] > 0.05  # the mean for all, at best
    change = table["after"] - table["before"]
    np.testing.assert_allclose(table["change"], change, atol=1e-12)
    scores = tables.main_table([world()], rng()).set_index("method")["brier"]
    for method, _ in table.index:
        assert table.loc[method, "before"].iloc[0] == pytest.approx(scores[method])


def test_recalibration_keeps_subjects_together_and_draws_them_whole() -> None:
    alone = diagnosis.recalibrated(world(), rng())
    grouped = diagnosis.recalibrated(replace(world(), groups=GROUPS), rng())
    assert (alone["after"] != grouped["after"]).any()
    assert (alone["95 % interval"] != grouped["95 % interval"]).any()
    single = replace(world(), groups=np.array(["one"] * N))
    assert diagnosis.recalibrated(single, rng()).empty


def test_settling_compares_with_the_lowest_on_shared_questions() -> None:
    one = world()
    table = diagnosis.settling(one, rng(), ks=(5, 50)).set_index("method")
    scores = tables.main_table([one], rng()).set_index("method")["brier"]
    assert set(table["against"]) == {"gaps"}
    assert table.index.tolist() == ["squeezed", "noisy", "constant"]
    there = ~np.isnan(one.confidences["gaps"].values)
    c, n = one.counts.correct[there], one.counts.total[there]
    pilot = difference_components(one.confidences["noisy"].values[there], one.confidences["gaps"].values[there], c, n)
    assert table.loc["noisy", "difference"] == pytest.approx(pilot.estimate)
    assert table.loc["noisy", "questions at k = 5"] == questions_needed(pilot, 5)
    assert table.loc["noisy", "questions"] == there.sum()
    assert 0 < table.loc["noisy", "from samples"] < 1
    assert scores["gaps"] < scores["noisy"]


def test_settling_takes_fewer_than_two_methods_as_nothing_to_settle() -> None:
    assert diagnosis.settling(evaluation([1, 2], [4, 4], {"P(True)": [0.1, 0.2]}), rng()).empty
    assert diagnosis.settling(evaluation([1, 2], [4, 4]), rng()).empty


@pytest.mark.parametrize("one", [FOUR, *EDGES.values()], ids=["four", *EDGES])
def test_nothing_stumbles_over_an_edge(one: Evaluation) -> None:
    for table in (diagnosis.parts(one, rng()), diagnosis.recalibrated(one, rng()), diagnosis.settling(one, rng())):
        assert isinstance(table, pd.DataFrame)
        tables.show(table, "Edge.").to_html()


def test_the_formats_are_of_columns_that_are_there() -> None:
    assert set(diagnosis.FORMATS) <= set(diagnosis.settling(world(), rng()).columns)
