"""A prediction for one question is that of the probe for a run's, and its interval covers as it
says.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from capcal_lib.errors import InputError
from capcal_lib.manifests import RECORDED_RUNS
from capcal_lib.probes import (
    conformal_half_width,
    load_predictor,
    read_predictions,
    train,
    training_data,
)
from capcal_lib.probes.features import read_features
from capcal_lib.questions import load_questions
from capcal_lib.results import load_results
from capcal_lib.runs import find_run
from capcal_lib.sampling.engines.simulated import SimulatedEngine


def test_a_question_is_predicted_as_in_its_run_and_covered_before_any_token_is_decoded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(SimulatedEngine, "sample")
    monkeypatch.delattr(SimulatedEngine, "next_token_logprobs")
    predictor = load_predictor(RECORDED_RUNS, "simulated", "mini-exam")
    questions = load_questions("mini-exam", "test")
    found = np.array([predictor(question) for question in questions])
    names = [("mini-exam", question.id) for question in questions]
    kept = read_predictions(RECORDED_RUNS, "simulated")["Probe (Mini exam)"]
    np.testing.assert_allclose(found[:, 0], kept[names], atol=2e-3)  # those were kept as float16
    counts = load_results(RECORDED_RUNS, "simulated", datasets=["mini-exam"]).loc[names]
    mu = (counts["correct"] / counts["total"]).to_numpy()
    assert np.mean((found[:, 1] <= mu) & (mu <= found[:, 2])) >= 0.9
    assert 0 <= predictor("What is 6 × 7?\nA. 42\nB. 13").estimate <= 1
    assert ((found[:, 1] >= 0) & (found[:, 2] <= 1)).all()


def test_half_widths_of_recorded_models_cover_as_they_say() -> None:
    covered = []
    for model, dataset, split in (
        ("smollm2-135m", "mini-capitals", "test"),
        ("qwen2.5-coder-1.5b", "triviaqa", "validation"),
    ):
        source = find_run(RECORDED_RUNS, model, dataset, "train")
        probe = train(source)
        names, features = read_features(find_run(RECORDED_RUNS, model, dataset, split))
        counts = (
            load_results(RECORDED_RUNS, model, datasets=[dataset])
            .loc[dataset]
            .loc[names]
            .query("total > 0")
        )
        predicted = pd.Series(probe.predict(features), names)[counts.index]
        away = (predicted - counts["correct"] / counts["total"]).abs()
        learned, _ = training_data(source)
        covered += list(
            away <= conformal_half_width(probe.out_of_fold_, learned["correct"] / learned["total"])
        )
    assert 0.88 <= np.mean(covered) <= 0.96, np.mean(covered)


def test_what_cannot_be_learned_from_is_refused(tmp_path: Path) -> None:
    for dataset, message in (("simpleqa", "no training split"), ("mini-exam", "capcal sample")):
        with pytest.raises(InputError, match=message):
            load_predictor(tmp_path, "simulated", dataset)
