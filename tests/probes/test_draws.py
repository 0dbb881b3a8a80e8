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
from tests.folders import verify_run
from tests.probes.test_training import MODEL, SET, make, with_states


def stores(store: Path, questions: int = 60) -> tuple[Run, Run]:
    return Run(with_states(store, split="train", limit=questions)), Run(with_states(store))


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
    again = draw_labels(questions, 100, 0)
    np.testing.assert_array_equal(again, drawn[0])
    assert not np.array_equal(drawn[0][0], drawn[1][0])


def check_drawn(source: Run, run: Run, predicted: pd.DataFrame, labels: int, number: int) -> None:
    """Train the probe of one draw again, and compare its predictions with those that are kept."""
    questions, features = training_data(source)
    names, states = read_features(run)
    places, graded = draw_labels(questions, labels, number)
    probe = TunedProbe().fit(features[places], graded, np.ones(labels, int))
    assert predicted.index.tolist() == names
    np.testing.assert_allclose(predicted[number], probe.predict(states), atol=1e-4)


def test_what_is_kept_is_what_training_finds(tmp_path: Path) -> None:
    source, run = stores(tmp_path)
    table = keep_draws(tmp_path, MODEL)
    assert table.loc[SET, "draws"].to_dict() == {20: DRAWS[20], 50: DRAWS[50]}
    assert table["made"].all()
    predicted = predict_by_labels(tmp_path, MODEL)
    assert [*predicted] == [(SET, 20), (SET, 50)]
    for labels, number in ((20, 0), (20, 7), (50, 3)):
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
    for labels, number in ((20, 0), (50, 9)):
        check_drawn(source, run, predicted[dataset, labels], labels, number)


def test_every_recorded_data_set_with_training_questions_has_its_draws() -> None:
    models = ("qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b", "simulated", "smollm2-135m")
    kept = [name for model in models for name, _ in predict_by_labels(RECORDED_RUNS, model)]
    assert len({*kept}) == 8
    assert kept.count("gsm8k") >= 12


def test_what_is_there_stays_until_what_it_was_made_from_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, run = stores(tmp_path, 20)
    keep_draws(tmp_path, MODEL)
    path = run.path(PREDICTIONS, NAME)
    first = path.read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(draws, "draw_labels", lambda *_: pytest.fail("drawn"))
        assert not keep_draws(tmp_path, MODEL)["made"].any()
    assert path.read_bytes() == first
    make(tmp_path, split="train", k=5)
    assert predict_by_labels(tmp_path, MODEL) == {}
    assert keep_draws(tmp_path, MODEL)["made"].all()
    assert [*predict_by_labels(tmp_path, MODEL)] == [(SET, 20)]


def test_the_command_keeps_draws_where_it_is_asked_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, run = stores(tmp_path, 20)
    options = ("probe", "--model", MODEL, "--store", tmp_path)
    assert run_command(monkeypatch, capsys, *options)[0] == 0
    assert not run.has(PREDICTIONS, NAME)
    status, printed, _ = run_command(monkeypatch, capsys, *options, "--draws")
    assert status == 0
    assert "labels" in printed
    assert run.has(PREDICTIONS, NAME)


def test_merging_keeps_what_is_kept_and_verifying_says_where_it_is_stale(tmp_path: Path) -> None:
    _, run = stores(tmp_path / "one", questions=30)
    keep_draws(tmp_path / "one", MODEL)
    assert [*check_predictions(run)] == []
    assert all(merged.notes == () for merged in merge(tmp_path / "all", [tmp_path / "one"]))
    copied = find_run(tmp_path / "all", MODEL, SET, "test")
    pd.testing.assert_frame_equal(
        predict_by_labels(tmp_path / "all", MODEL)[SET, 20],
        predict_by_labels(tmp_path / "one", MODEL)[SET, 20],
    )
    make(tmp_path / "all", split="train", limit=30, k=40)  # grades more samples
    (problem,) = check_predictions(copied)
    assert "(draws) is stale, since" in problem
    merge(tmp_path / "all", [tmp_path / "one"])  # what is there stands
    assert predict_by_labels(tmp_path / "all", MODEL) == {}
    assert problem in verify_run(copied).problems


def test_probes_of_all_labels_are_kept_beside_them(tmp_path: Path) -> None:
    _, run = stores(tmp_path, 20)
    keep_draws(tmp_path, MODEL)
    keep_predictions(tmp_path, MODEL)
    assert sorted(run.names(PREDICTIONS)) == [NAME, "tuned"]
    assert [*check_predictions(run)] == []
