import numpy as np
import pandas as pd
import pytest

from capcal_lib.metrics import Calibrator, bounds_over_constant, capability_brier, mean_interval
from capcal_lib.places import RECORDED_RUNS
from capcal_lib.probes import predict_by_labels
from capcal_lib.results import BEST_CONSTANT, best_constant, brier_terms, estimates, load_results
from capcal_lib.results.terms import NUMBERS
from capcal_lib.studies.probe_generalization import (
    PROBE_OF_SET,
    compare_mixture,
    labels_curve,
    over_draws,
    recalibrated_gains,
)

MODEL = "qwen2.5-coder-1.5b"
JUDGE = "simulated"  # which judges itself


@pytest.fixture(scope="module")
def results() -> pd.DataFrame:
    loaded = load_results(RECORDED_RUNS, MODEL, datasets=["gsm8k", "math500", "triviaqa"])
    return loaded.filter(regex=r"^correct$|^total$|^Probe \(").query("total > 1")


def hand_made(questions: int = 600, dataset: str = "gsm8k", **columns: object) -> pd.DataFrame:
    """Make results in which mu is known: from .1 to .9, a hundred samples each."""
    index = pd.MultiIndex.from_product([[dataset], map(str, range(questions))])
    index.names = ["dataset", "question_id"]
    mu = 0.1 + 0.8 * np.arange(questions) / (questions - 1)
    correct = (100 * mu).round().astype(int)
    return pd.DataFrame({"correct": correct, "total": 100} | columns, index)


def curve_of(results: pd.DataFrame, **options: int) -> pd.DataFrame:
    return labels_curve(results, {}, **options)


def test_a_mixture_is_compared_with_the_nearer_of_its_single_probes() -> None:
    mu = hand_made()["correct"] / 100
    names = {"Probe (TriviaQA)": mu, "Probe (GSM8K)": mu**2, "Probe (TriviaQA + GSM8K)": mu**3}
    results = hand_made(**names)
    [gain] = compare_mixture(results).reset_index().to_dict("records")
    assert (gain["dataset"], gain["rival"]) == ("gsm8k", "Probe (GSM8K)")
    terms = brier_terms(results)
    naive = (terms["Probe (GSM8K)"] - terms["Probe (TriviaQA + GSM8K)"]).mean()
    assert gain["estimate"] == pytest.approx(naive)
    assert compare_mixture(results.drop(columns="Probe (TriviaQA + GSM8K)")).empty


def test_a_confidence_that_knows_mu_gains_its_variance_with_labels_enough() -> None:
    results = hand_made()
    mu = results["correct"] / results["total"]
    curve = curve_of(results.assign(mine=mu**3)).set_index("labels")["estimate"]
    assert curve.index.tolist() == [20, 50, 100, 250]
    assert curve[250] == pytest.approx(mu.var(), abs=0.003)
    assert curve.is_monotonic_increasing
    assert curve[20] > 0.02


def test_a_confidence_that_knows_nothing_loses_with_few_labels_and_then_gains_nothing() -> None:
    mine = np.random.default_rng(1).random(1200)
    curve = curve_of(hand_made(1200, mine=mine)).set_index("labels")
    assert curve.loc[20, "high"] < -0.01
    assert curve.loc[1000, "estimate"] == pytest.approx(0, abs=0.002)
    assert (curve["low"] < curve["estimate"]).all()
    assert (curve["estimate"] < curve["high"]).all()


def test_a_gain_is_a_difference_of_corrected_scores_of_the_questions_that_are_left() -> None:
    results = hand_made(200)
    mine = np.random.default_rng(2).random(200)
    judged = estimates(results.assign(mine=mine), "mine")[NUMBERS]
    constant = best_constant(results)
    gains = recalibrated_gains(judged, constant, 50, np.random.default_rng(3))
    assert (gains.isna().sum() == 50).all()
    rng = np.random.default_rng(3)
    order = rng.permutation(200)
    labelled, rest = judged.iloc[order[:50]], judged.iloc[order[50:]]
    right = rng.hypergeometric(labelled["correct"], 100 - labelled["correct"], 1)
    platt = Calibrator("platt").fit(labelled["confidence"], right, 1)
    counts = rest["correct"], rest["total"]
    naive = capability_brier(constant[rest.index], *counts, corrected=True)
    naive -= capability_brier(platt.predict(rest["confidence"]), *counts, corrected=True)
    assert gains.loc[rest.index, 0].mean() == pytest.approx(naive)
    assert gains[0].isna().equals(~judged.index.to_series().isin(rest.index))


def test_votes_and_their_rival_are_judged_by_the_samples_that_did_not_vote() -> None:
    results = load_results(RECORDED_RUNS, "simulated", datasets=["mini-capitals"])
    curve = curve_of(results)
    votes = estimates(results, "Response consistency")[NUMBERS]
    gains = recalibrated_gains(votes, best_constant(results), 20, np.random.default_rng(0))
    mine = curve.set_index(["method", "labels"]).loc[("Response consistency", 20)]
    assert mine["estimate"] == pytest.approx(gains.mean(axis=1).mean())
    assert votes["total"].max() == 90


def test_the_data_sets_own_probe_is_judged_on_all_questions(results: pd.DataFrame) -> None:
    own = load_results(RECORDED_RUNS, "simulated")
    predicted = predict_by_labels(RECORDED_RUNS, "simulated")
    curve = labels_curve(own, predicted)
    rows = curve[curve["method"] == PROBE_OF_SET].set_index(["dataset", "labels"])
    assert {*rows.index} == {*predicted}
    for (dataset, labels), confidences in predicted.items():
        table = own.loc[[dataset], ["correct", "total"]]
        each = []
        for _, confidence in confidences.items():
            terms = brier_terms(table.assign(mine=confidence[table.loc[dataset].index].to_numpy()))
            each.append((terms[BEST_CONSTANT] - terms["mine"]).mean())
        row = rows.loc[(dataset, labels)]
        assert row["estimate"] == pytest.approx(np.mean(each))
    assert labels_curve(results, predicted).empty, "of another model"


def test_an_interval_holds_questions_and_draws() -> None:
    rng = np.random.default_rng(4)
    index = hand_made(300).index
    groups = pd.Series(index.get_level_values(1), index)
    of_question = rng.normal(0, 0.1, 300)
    bounds = (-1.0, 1.0)
    alike = pd.DataFrame(dict.fromkeys(range(5), of_question), index)
    point = over_draws(alike, groups, bounds)
    alone = mean_interval(of_question, bounds=bounds)
    assert [point["estimate"], point["low"], point["high"]] == pytest.approx([*alone])
    apart = alike + np.array([-0.02, -0.01, 0.0, 0.01, 0.02])
    wide = over_draws(apart, groups, bounds)
    arm = 2.7764451 * np.std([-0.02, -0.01, 0, 0.01, 0.02], ddof=1) / np.sqrt(5)
    assert wide["estimate"] == pytest.approx(alone.estimate)
    assert wide["spread"] == pytest.approx(np.std([-0.02, -0.01, 0, 0.01, 0.02], ddof=1))
    assert wide["high"] - wide["estimate"] == pytest.approx(
        np.hypot(alone.high - alone.estimate, arm)
    )
    # A question counts once, however often it is judged; a draw's luck with its questions is none.
    holes = alike.where(rng.random(alike.shape) < 0.7)
    left = holes.dropna(how="all").mean(axis="columns")
    assert over_draws(holes, groups, bounds)["estimate"] == pytest.approx(left.mean())


def test_one_subject_or_one_draw_says_nothing_of_its_spread() -> None:
    index = hand_made(50).index
    gains = pd.DataFrame(np.random.default_rng(5).normal(size=(50, 3)) / 10, index)
    one_subject = over_draws(gains, pd.Series("law", index), (-1, 1))
    assert np.isfinite(one_subject["estimate"])
    assert np.isnan([one_subject["low"], one_subject["high"]]).all()
    groups = pd.Series(index.get_level_values(1), index)
    assert np.isnan(over_draws(gains[[0]], groups, (-1, 1))["low"])


def test_there_is_no_row_where_too_few_questions_would_judge_or_none_is_solved() -> None:
    results = hand_made(59, mine=0.5)
    assert curve_of(results)["labels"].tolist() == [20], "nine would be left to judge of 59 and 50"
    assert curve_of(hand_made(60, mine=0.5))["labels"].tolist() == [20, 50]
    assert curve_of(results.assign(mine=[0.5] * 25 + [None] * 34)).empty
    assert curve_of(results.assign(correct=0)).empty
    one_sample = results.assign(total=1, correct=np.arange(59) % 2)
    assert curve_of(one_sample).empty, "no score is corrected by one sample"
    assert curve_of(results.drop(columns="mine")).empty
    bounds = bounds_over_constant(best_constant(results))
    assert curve_of(results)[["low", "high"]].stack().between(*bounds).all()


def test_a_curve_is_the_same_each_time_and_another_by_another_seed() -> None:
    results = hand_made(100, mine=np.random.default_rng(6).random(100))
    first = curve_of(results)
    pd.testing.assert_frame_equal(first, curve_of(results))
    other = labels_curve(results, {}, seed=1)
    assert not np.allclose(first["estimate"], other["estimate"])


def test_a_method_of_ones_own_moves_no_number_of_another() -> None:
    rng = np.random.default_rng(6)
    results = hand_made(100, mine=rng.random(100))
    both = curve_of(
        results.assign(earlier=rng.random(100))[["correct", "total", "earlier", "mine"]]
    )
    mine = both[both["method"] == "mine"].reset_index(drop=True)
    pd.testing.assert_frame_equal(mine, curve_of(results))
