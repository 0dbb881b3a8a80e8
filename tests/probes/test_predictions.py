"""Predictions that are kept: made once, made again where something changed."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from capcal_lib.errors import InputError
from capcal_lib.manifests import load_dataset
from capcal_lib.places import RECORDED_RUNS
from capcal_lib.probes import (
    PaperProbe,
    ProbeRecipe,
    TunedProbe,
    describe_probes,
    keep_predictions,
    predictions,
    predictions_of,
    read_features,
    train,
    training_data,
)
from capcal_lib.results import load_results
from capcal_lib.runs import Run, find_run, open_runs
from capcal_lib.runs.artifacts import PREDICTIONS
from tests.folders import verify_run
from tests.probes.stores import MODEL, OTHER, PROBE, SET, change, make, with_states

MIXED = "Probe (Mini exam + Mini capitals)"


def runs_of(store: Path) -> tuple[Run, Run]:
    """Find the training and the evaluation run of a store."""
    return find_run(store, MODEL, SET, "train"), find_run(store, MODEL, SET, "test")


def test_what_is_kept_is_what_the_probe_predicts(store: Path) -> None:
    source, run = runs_of(store)
    before = load_results(store, MODEL)
    assert keep_predictions(store, MODEL).loc[(SET, PROBE), "made"]
    predicted, stale = predictions_of(run)
    names, features = read_features(run)
    probe = train(source)
    assert stale == []
    np.testing.assert_allclose(predicted[PROBE][names], probe.predict(features), atol=1e-7)
    about = describe_probes(store, MODEL).loc[PROBE]
    assert about["concentration"] == probe.concentration_
    assert about["questions"] == len(probe.out_of_fold_)
    assert verify_run(run).problems == []
    after = load_results(store, MODEL)
    assert list(after) == [*before, PROBE], "behind all others"
    pd.testing.assert_frame_equal(after[list(before)], before)
    assert after[PROBE].notna().all()


def test_nothing_is_trained_where_nothing_changed(
    trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = runs_of(trained)[1].path(PREDICTIONS, "tuned")
    first = path.read_bytes()
    monkeypatch.setattr(predictions, "train", lambda *_, **__: pytest.fail("trained"))
    assert not keep_predictions(trained, MODEL)["made"].any()
    assert path.read_bytes() == first


@pytest.mark.parametrize("changed", ["verdicts", "features", "recipe", "run"])
def test_what_is_stale_is_named_not_read_and_made_again(
    trained: Path, changed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = runs_of(trained)[1]
    training = f"{SET}-train/[0-9a-f]+"
    why = f"{training}/{changed}.parquet changed"
    if changed == "verdicts":
        make(trained, split="train", k=5)
    elif changed == "features":
        with_states(trained, split="train", limit=30)
        why = f"{training}/features.parquet and {training}/verdicts.parquet changed"
    elif changed == "recipe":
        monkeypatch.setattr(predictions, "VERSION", predictions.VERSION + 1)
        why = "the recipe is another"
    else:
        with_states(trained, limit=25)
        why = f"since {SET}-test/[0-9a-f]+/features.parquet changed"
    predicted, stale = predictions_of(run)
    assert predicted.empty
    assert len(stale) == 1
    assert re.search(why, stale[0])
    assert "capcal probe --model simulated" in stale[0]
    assert "is stale, since" in " ".join(verify_run(run).problems)
    results = load_results(trained, MODEL)
    assert PROBE not in results
    assert results.attrs["stale"] == stale
    assert describe_probes(trained, MODEL).empty
    assert keep_predictions(trained, MODEL)["made"].all()
    assert predictions_of(run)[1] == []


def test_a_run_that_moved_without_its_training_run_keeps_its_predictions(
    trained: Path, tmp_path: Path
) -> None:
    source, run = runs_of(trained)
    source.folder.rename(tmp_path / "elsewhere")
    predicted, stale = predictions_of(run)
    assert list(predicted) == [PROBE]
    assert stale == []


def test_a_probe_is_not_kept_for_prompts_of_another_style(store: Path) -> None:
    source, run = runs_of(store)
    change(source, prompt_style="steps")
    assert keep_predictions(store, MODEL).empty
    assert not run.path(PREDICTIONS, "tuned").exists()


def test_a_damaged_file_is_refused(trained: Path) -> None:
    run = runs_of(trained)[1]
    path = run.path(PREDICTIONS, "tuned")
    table = pq.read_table(path)
    damaged = {
        "not a record of probes": table.replace_schema_metadata({b"sources": b"[{}]"}),
        "not a record of probes .*duplicate": pa.concat_tables([table, table]),
        "not a file of `capcal probe`": pa.table({"question_id": ["a"]}),
    }
    for message, other in damaged.items():
        pq.write_table(other, path)
        with pytest.raises(InputError, match=message):
            predictions_of(run)


def test_named_data_sets_are_predicted_alone(mixed: Path) -> None:
    made = keep_predictions(mixed, MODEL, datasets=["mini-arithmetic"])
    assert made.index.unique("dataset").tolist() == ["mini-arithmetic"]
    with pytest.raises(InputError, match="unknown data set"):
        keep_predictions(mixed, MODEL, datasets=["nothing"])
    assert keep_predictions(mixed, "gpt-oss-20b").empty


def test_every_recorded_run_with_hidden_states_has_fresh_predictions() -> None:
    found = 0
    for run in open_runs(RECORDED_RUNS):
        if load_dataset(run.identity.dataset).evaluation_split != run.identity.split:
            continue
        for recipe in ("tuned", "paper"):
            predicted, stale = predictions_of(run, recipe=recipe)  # type: ignore[arg-type]
            assert stale == []
            found += predicted.shape[1]
    assert found > 50
    with pytest.raises(InputError, match="unknown recipe 'best'; known: paper, tuned"):
        predictions_of(run, recipe="best")  # type: ignore[arg-type]


@pytest.mark.parametrize("recipe", ["tuned", "paper"])
def test_one_probe_learns_from_several_training_sets(mixed: Path, recipe: ProbeRecipe) -> None:
    before = load_results(mixed, MODEL, recipe=recipe)
    made = keep_predictions(mixed, MODEL, mix=[SET, OTHER], recipe=recipe)
    assert made["made"].all()
    assert made.index.tolist() == [(name, MIXED) for name in ("mini-arithmetic", OTHER, SET)]
    assert (made["questions"] == 60).all()
    after = load_results(mixed, MODEL, recipe=recipe)
    columns = [MIXED] if recipe == "tuned" else [f"{MIXED} [{fold}]" for fold in range(5)]
    assert list(after) == [*before, *columns]

    runs = [find_run(mixed, MODEL, name, "train") for name in (SET, OTHER)]
    (first, one), (second, other) = map(training_data, runs)
    counts = pd.concat([first, second])
    naive = (TunedProbe if recipe == "tuned" else PaperProbe)()
    naive.fit(np.vstack([one, other]), counts["correct"], counts["total"])
    names, features = read_features(find_run(mixed, MODEL, "mini-arithmetic", "test"))
    predicted = after.loc["mini-arithmetic"].loc[names, columns]
    np.testing.assert_allclose(predicted.T, naive.predict_splits(features), atol=1e-6)


def test_a_mixture_is_stale_by_any_source_and_made_again_by_the_command_that_is_said(
    mixed: Path,
) -> None:
    keep_predictions(mixed, MODEL, mix=[SET, OTHER])
    make(mixed, dataset=OTHER, split="train", k=5, limit=30)
    run = find_run(mixed, MODEL, "mini-arithmetic", "test")
    predicted, stale = predictions_of(run)
    assert predicted.empty
    assert MIXED in stale[0]
    assert f"{OTHER}-train" in stale[0]
    assert stale[0].endswith(f"--mix {SET},{OTHER} --store {mixed}")
    assert keep_predictions(mixed, MODEL, mix=[SET, OTHER])["made"].all()
    assert predictions_of(run)[1] == []


def test_a_mixture_of_two_styles_of_prompt_predicts_both(mixed: Path) -> None:
    for split in ("test", "train"):
        change(find_run(mixed, MODEL, OTHER, split), prompt_style="steps")
    assert (OTHER, PROBE) not in keep_predictions(mixed, MODEL).index
    assert (OTHER, MIXED) in keep_predictions(mixed, MODEL, mix=[SET, OTHER]).index
    change(find_run(mixed, MODEL, OTHER, "train"), weights="another")
    with pytest.raises(InputError, match="they differ in weights"):
        keep_predictions(mixed, MODEL, mix=[SET, OTHER])


def test_a_mixture_of_what_is_not_there_is_refused(mixed: Path) -> None:
    for mix in ([SET], [SET, SET], [SET, "gsm8k"]):
        with pytest.raises(InputError, match="mini-capitals, mini-exam; got mini-exam"):
            keep_predictions(mixed, MODEL, mix=mix)


def test_a_kill_loses_at_most_one_split(store: Path) -> None:
    source, run = runs_of(store)
    command = [sys.executable, "-m", "capcal_lib.cli", "probe", "--model", MODEL]
    command += ["--recipe", "paper", "--store", str(store)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr or ():
            if "split 2 of 5" in line:
                process.kill()
    assert predictions_of(run, recipe="paper")[0].empty
    assert verify_run(source).problems == []
    said: list[str] = []
    keep_predictions(store, MODEL, recipe="paper", say=said.append)
    trained = [line.split(" in ")[0] for line in said]
    assert trained[0] == f"training {PROBE}"
    assert trained[-2:] == ["split 4 of 5", "split 5 of 5"]
    assert "split 2 of 5" not in trained
    assert not list(source.folder.glob(".*"))
    # As if nothing had been killed, each of the five in a column of its own.
    predicted, _ = predictions_of(run, recipe="paper")
    assert list(predicted) == [f"{PROBE} [{fold}]" for fold in range(5)]
    names, features = read_features(run)
    whole = train(source, recipe="paper").predict_splits(features)
    np.testing.assert_allclose(predicted.loc[names].T, whole, atol=1e-7)
    results = load_results(store, MODEL, recipe="paper").loc[SET]
    pd.testing.assert_frame_equal(results[list(predicted)], predicted.loc[results.index])
    assert PROBE not in results
