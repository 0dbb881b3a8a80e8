"""Probes of few labels: what is kept of them is what training finds."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from capcal_lib.errors import InputError
from capcal_lib.places import RECORDED_RUNS
from capcal_lib.probes import (
    TunedProbe,
    draws,
    keep_draws,
    predict_by_labels,
    read_features,
    training_data,
)
from capcal_lib.probes.draws import DRAWS, DRAWS_FILE, check_draws, draw_labels, read_draws
from capcal_lib.runs import Run, find_run, open_runs
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


def test_what_is_kept_is_what_training_finds(tmp_path: Path) -> None:
    source, run = stores(tmp_path)
    table = keep_draws(tmp_path, MODEL)
    assert table.loc[SET, "draws"].to_dict() == {20: DRAWS[20], 50: DRAWS[50]}
    assert table["made"].all()
    questions, features = training_data(source)
    names, states = read_features(run)
    predicted = predict_by_labels(tmp_path, MODEL)
    assert [*predicted] == [(SET, 20), (SET, 50)]
    assert predicted[SET, 20].index.tolist() == names
    for labels, number in ((20, 0), (20, 7), (50, 3)):
        places, graded = draw_labels(questions, labels, number)
        probe = TunedProbe().fit(features[places], graded, np.ones(labels, int))
        np.testing.assert_allclose(predicted[SET, labels][number], probe.predict(states), atol=1e-4)


@pytest.mark.parametrize(
    ("model", "dataset", "split"),
    [("qwen2.5-coder-1.5b", "gsm8k", "train"), ("smollm2-135m", "mini-exam", "train")],
)
def test_the_recorded_decays_are_those_that_are_chosen_again(
    model: str, dataset: str, split: str
) -> None:
    run = find_run(RECORDED_RUNS, model, dataset, split)
    questions, features = training_data(run)
    record = read_draws(run)
    assert record is not None
    assert record.questions == len(questions)
    assert {labels: len(decays) for labels, decays in record.decays.items()} == {
        labels: number for labels, number in DRAWS.items() if labels <= len(questions)
    }
    for labels, number in ((20, 0), (50, 9)):
        places, graded = draw_labels(questions, labels, number)
        probe = TunedProbe().fit(features[places], graded, np.ones(labels, int))
        assert record.decays[labels][number] == probe.weight_decay_


def test_every_recorded_training_run_has_its_draws() -> None:
    kept = {run.folder for run in open_runs(RECORDED_RUNS) if (run.folder / DRAWS_FILE).exists()}
    assert len(kept) == 17
    assert all(read_draws(Run(folder)) for folder in kept)


def test_what_is_there_stays_until_what_it_was_made_from_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, _ = stores(tmp_path, 20)
    keep_draws(tmp_path, MODEL)
    first = (source.folder / DRAWS_FILE).read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(draws, "train", lambda *_: pytest.fail("trained"))
        assert not keep_draws(tmp_path, MODEL)["made"].any()
    assert (source.folder / DRAWS_FILE).read_bytes() == first
    make(tmp_path, split="train", k=5)
    assert read_draws(source) is None
    assert predict_by_labels(tmp_path, MODEL) == {}
    assert keep_draws(tmp_path, MODEL)["made"].all()
    assert read_draws(source) is not None


@pytest.mark.parametrize(
    "text", ["", "[]", '{"made_from": ""}', '{"made_from": "", "decays": {"20": [-1]}}']
)
def test_a_damaged_file_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    source, _ = stores(tmp_path, 20)
    (source.folder / DRAWS_FILE).write_text(text)
    with pytest.raises(
        InputError, match=f"{DRAWS_FILE}: not a record .* capcal probe --draws"
    ) as refused:
        predict_by_labels(tmp_path, MODEL)
    assert "\n" not in str(refused.value)


def test_the_command_keeps_draws_where_it_is_asked_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source, _ = stores(tmp_path, 20)
    options = ("probe", "--model", MODEL, "--store", tmp_path)
    assert run_command(monkeypatch, capsys, *options)[0] == 0
    assert not (source.folder / DRAWS_FILE).exists()
    status, printed, _ = run_command(monkeypatch, capsys, *options, "--draws")
    assert status == 0
    assert "labels" in printed
    assert read_draws(source) is not None


def test_merging_keeps_what_is_kept_and_verifying_says_where_it_is_stale(tmp_path: Path) -> None:
    source, _ = stores(tmp_path / "one", questions=30)
    keep_draws(tmp_path / "one", MODEL)
    assert [*check_draws(source)] == []
    taken = merge(tmp_path / "all", [tmp_path / "one"])
    assert all(run.notes == () for run in taken)
    copied = find_run(tmp_path / "all", MODEL, SET, "train")
    assert read_draws(copied) == read_draws(source) is not None

    make(tmp_path / "all", split="train", limit=30, k=40)  # grades more samples
    assert read_draws(copied) is None
    (problem,) = check_draws(copied)
    assert problem.startswith(
        "draws.json is stale, since the hidden states or the verdicts changed"
    )
    merge(tmp_path / "all", [tmp_path / "one"])  # what is there stands
    assert read_draws(copied) is None
    assert problem in verify_run(copied).problems

    (copied.folder / DRAWS_FILE).write_text("{}")
    with pytest.raises(InputError, match="not a record of probes of few labels; delete it"):
        [*check_draws(copied)]
