"""Probes of few labels: the predictions that are kept are those of training."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from capcal_lib.places import RECORDED_RUNS
from capcal_lib.probes import (
    TunedProbe,
    draws,
    keep_draws,
    keep_predictions,
    predict_by_labels,
    predictions_of,
    read_features,
    training_data,
)
from capcal_lib.probes.draws import DRAWS, NAME, draw_labels
from capcal_lib.probes.predictions import check_predictions
from capcal_lib.runs import Run, find_run
from capcal_lib.runs.artifacts import PREDICTIONS
from capcal_lib.runs.merge import merge
from tests.command import run as run_command
from tests.probes.stores import MODEL, SET, make, with_states


def test_a_draw_is_of_different_questions_with_one_of_their_answers_each() -> None:
    questions = pd.DataFrame({"correct": [0, 3, 1, 2] * 50, "total": [3, 3, 3, 3] * 50})
    drawn = [draw_labels(questions, 100, number) for number in range(40)]
    for places, graded in drawn:
        assert len({*places}) == len(graded) == 100
        assert {*graded} == {0, 1}
        assert not graded[places % 4 == 0].any()
        assert graded[places % 4 == 1].all()
    places, graded = (np.concatenate(each) for each in zip(*drawn, strict=True))
    for kind, mu in ((2, 1 / 3), (3, 2 / 3)):
        assert graded[places % 4 == kind].mean() == pytest.approx(mu, abs=0.06)
    np.testing.assert_array_equal(draw_labels(questions, 100, 0), drawn[0])
    assert not np.array_equal(drawn[0][0], drawn[1][0])


def check_drawn(source: Run, run: Run, predicted: pd.DataFrame, labels: int, number: int) -> None:
    """Train the probe of one draw again, and compare its predictions with those that are kept."""
    questions, features = training_data(source)
    names, states = read_features(run)
    places, graded = draw_labels(questions, labels, number)
    probe = TunedProbe().fit(features[places], graded, np.ones(labels, int))
    assert predicted.index.tolist() == names
    np.testing.assert_allclose(predicted[number], probe.predict(states), atol=1e-4)


@pytest.fixture
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draws, "DRAWS", {20: 2, 50: 1})


@pytest.mark.usefixtures("few_draws")
def test_what_is_kept_is_what_training_finds(tmp_path: Path) -> None:
    source, run = with_states(tmp_path, split="train", limit=60), with_states(tmp_path)
    table = keep_draws(tmp_path, MODEL)
    assert table.loc[SET, "draws"].to_dict() == {20: 2, 50: 1}
    assert table["made"].all()
    predicted = predict_by_labels(tmp_path, MODEL)
    assert [*predicted] == [(SET, 20), (SET, 50)]
    for labels, number in ((20, 1), (50, 0)):
        check_drawn(source, run, predicted[SET, labels], labels, number)
    assert predictions_of(run)[0].empty, "they are no probe of the table"


@pytest.mark.parametrize(
    ("model", "dataset"), [("qwen2.5-coder-1.5b", "gsm8k"), ("smollm2-135m", "mini-exam")]
)
def test_the_recorded_predictions_are_those_of_training(model: str, dataset: str) -> None:
    source, run = (find_run(RECORDED_RUNS, model, dataset, split) for split in ("train", "test"))
    predicted = predict_by_labels(RECORDED_RUNS, model)
    questions, _ = training_data(source)
    assert {
        labels: table.shape[1] for (name, labels), table in predicted.items() if name == dataset
    } == {labels: number for labels, number in DRAWS.items() if labels <= len(questions)}
    check_drawn(source, run, predicted[dataset, 50], 50, 9)


@pytest.mark.usefixtures("few_draws")
def test_what_is_there_stays_until_what_it_was_made_from_changes(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = find_run(store, MODEL, SET, "test")
    keep_predictions(store, MODEL)
    assert run.names(PREDICTIONS) == ["tuned"]
    command = ("probe", "--model", MODEL, "--store", store, "--draws")
    status, printed, _ = run_command(monkeypatch, capsys, *command)
    assert (status, "labels" in printed) == (0, True)
    assert sorted(run.names(PREDICTIONS)) == [NAME, "tuned"]
    assert [*check_predictions(run)] == []
    with monkeypatch.context() as patched:
        patched.setattr(draws, "draw_labels", lambda *_: pytest.fail("drawn"))
        assert not keep_draws(store, MODEL)["made"].any()

    assert all(merged.notes == () for merged in merge(tmp_path / "all", [store]))
    pd.testing.assert_frame_equal(
        predict_by_labels(tmp_path / "all", MODEL)[SET, 20],
        predict_by_labels(store, MODEL)[SET, 20],
    )
    make(store, split="train", k=5)  # grades more samples
    assert predict_by_labels(store, MODEL) == {}
    assert "(draws) is stale, since" in " ".join(check_predictions(run))
    assert keep_draws(store, MODEL)["made"].all()
    assert [*predict_by_labels(store, MODEL)] == [(SET, 20)]
