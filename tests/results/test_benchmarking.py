import shutil

import numpy as np
import pandas as pd
import pytest

from capcal_lib.grading.counts import count_run
from capcal_lib.metrics import adjusted, judge_gain
from capcal_lib.places import RECORDED_RUNS
from capcal_lib.probes import describe_probes
from capcal_lib.results import load_results
from capcal_lib.results.benchmarking import (
    TRAINING,
    count_ranked,
    miss_accuracies,
    training_accuracies,
)
from capcal_lib.runs import find_run

MODEL = "smollm2-135m"


def made(accuracy, said, questions=80, seed=0):
    """Results of a model on a data set, and what it says of every question."""
    rng = np.random.default_rng(seed)
    mu = (accuracy + rng.normal(0, 0.05, questions)).clip(0, 1)
    names = pd.Index([f"q{place}" for place in range(questions)], name="question_id")
    columns = {"correct": rng.binomial(50, mu), "total": 50, "P(True)": said, "Probe (GSM8K)": mu}
    return pd.concat({"gsm8k": pd.DataFrame(columns, names)}, names=["dataset"])


def test_a_miss_is_the_mean_confidence_less_the_accuracy():
    results = {"a": made(0.3, 0.9), "b": made(0.7, 0.2)}
    trained = {"a": pd.Series({"gsm8k": 0.35}), "b": pd.Series(dtype=float)}
    misses = miss_accuracies(results, trained).set_index(["model", "method"])
    own = results["a"]
    accuracy = 100 * (own["correct"] / 50).mean()
    assert misses.loc[("a", "P(True)"), "miss"] == pytest.approx(90 - accuracy)
    assert misses.loc[("a", TRAINING), "miss"] == pytest.approx(35 - accuracy)
    assert ("b", TRAINING) not in misses.index
    assert misses.loc[("a", "P(True)"), "verdict"] == "too high"
    assert misses.loc[("b", "P(True)"), "verdict"] == "too low"
    assert misses.loc[("a", "Probe"), "verdict"] == "cannot tell"
    assert pd.isna(misses.loc[("a", TRAINING), "verdict"])
    expected = judge_gain(own["Probe (GSM8K)"] - own["correct"] / 50)
    row = misses.loc[("a", "Probe")]
    limits = [100 * expected["low"], 100 * expected["high"], expected["p"]]
    assert row[["low", "high", "p"]].tolist() == pytest.approx(limits)


def test_the_cases_of_a_method_are_judged_together():
    said = np.linspace(0.3, 0.36, 8)
    results = {str(place): made(0.3, s, seed=place) for place, s in enumerate(said)}
    none = {name: pd.Series(dtype=float) for name in results}
    misses = miss_accuracies(results, none)
    for _, own in misses.groupby("method"):
        clear = adjusted(own["p"].to_numpy(), "holm") < 0.05
        assert (own["verdict"] != "cannot tell").tolist() == clear.tolist()


def test_the_five_probes_of_the_papers_recipe_have_their_mean():
    own = made(0.3, 0.5).rename(columns={"Probe (GSM8K)": "Probe (GSM8K) [0]"})
    own["Probe (GSM8K) [1]"] = 1.0
    misses = miss_accuracies({"a": own}, {"a": pd.Series(dtype=float)}).set_index("method")
    mean = (own["Probe (GSM8K) [0]"] + 1) / 2
    assert misses.loc["Probe", "miss"] == pytest.approx(100 * (mean - own["correct"] / 50).mean())


def test_only_pairs_that_differ_are_ranked():
    results = {"a": made(0.3, 0.6), "b": made(0.7, 0.4), "c": made(0.7, 0.4)}
    none = {name: pd.Series(dtype=float) for name in results}
    ranked = count_ranked(results, miss_accuracies(results, none))
    assert ranked.loc["P(True)"].tolist() == [0, 2]  # a is worse than b and c, and says the most
    assert ranked.loc["Probe"].tolist() == [2, 2]
    alike = {name: results[name] for name in ("b", "c")}
    assert count_ranked(alike, miss_accuracies(alike, none)).empty


def test_no_model_is_no_case():
    misses = miss_accuracies({}, {})
    assert misses.empty
    assert count_ranked({}, misses).empty


def test_the_training_accuracy_is_that_of_the_nearest_probe():
    results = load_results(RECORDED_RUNS, MODEL, datasets=["mini-exam"])
    trained = training_accuracies(RECORDED_RUNS, MODEL, results)
    about = describe_probes(RECORDED_RUNS, MODEL).loc["Probe (Mini exam)"]
    run = find_run(RECORDED_RUNS, MODEL, "mini-exam", "train")
    assert run.folder.name == about["run"]
    counts = count_run(run)
    assert trained.to_dict() == {
        "mini-exam": pytest.approx((counts["correct"] / counts["total"]).mean())
    }
    assert training_accuracies(RECORDED_RUNS, MODEL, results.filter(["correct", "total"])).empty


def test_a_probe_without_its_training_run_has_no_rival(tmp_path):
    place = f"{MODEL}/mini-exam-test"
    shutil.copytree(RECORDED_RUNS / place, tmp_path / place)
    results = load_results(tmp_path, MODEL)
    assert "Probe (Mini exam)" in results
    assert training_accuracies(tmp_path, MODEL, results).empty
