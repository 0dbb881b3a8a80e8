"""Predictions that are kept: made once, made again where something changed."""

import re
import shutil
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
from tests.probes.test_training import MODEL, PROBE, SET, change, make, with_states


def stores(store: Path) -> tuple[Run, Run]:
    return Run(with_states(store, split="train")), Run(with_states(store))


def test_what_is_kept_is_what_the_probe_predicts(tmp_path: Path) -> None:
    source, run = stores(tmp_path)
    made = keep_predictions(tmp_path, MODEL)
    assert made.loc[(SET, PROBE), "made"]
    predicted, stale = predictions_of(run)
    names, features = read_features(run)
    trained = train(source)
    expected = trained.predict(features)
    assert stale == []
    np.testing.assert_allclose(predicted[PROBE][names], expected, atol=1e-7)
    about = describe_probes(tmp_path, MODEL).loc[PROBE]
    assert about["concentration"] == trained.concentration_
    assert about["questions"] == len(trained.out_of_fold_)
    assert about["run"] == source.identity.key
    assert verify_run(run).problems == []


def test_results_have_a_column_a_probe_behind_all_others(tmp_path: Path) -> None:
    stores(tmp_path)
    before = load_results(tmp_path, MODEL)
    assert PROBE not in before
    keep_predictions(tmp_path, MODEL)
    after = load_results(tmp_path, MODEL)
    assert list(after) == [*before, PROBE]
    pd.testing.assert_frame_equal(after[list(before)], before)
    assert after[PROBE].notna().all()


def test_nothing_is_trained_where_nothing_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, run = stores(tmp_path)
    keep_predictions(tmp_path, MODEL)
    path = run.path(PREDICTIONS, "tuned")
    first = path.read_bytes()
    monkeypatch.setattr(predictions, "train", lambda *_, **__: pytest.fail("trained"))
    assert not keep_predictions(tmp_path, MODEL)["made"].any()
    assert path.read_bytes() == first


def test_the_five_probes_of_the_papers_recipe_are_kept_and_read_apart(tmp_path: Path) -> None:
    source, run = stores(tmp_path)
    keep_predictions(tmp_path, MODEL, recipe="paper")
    names, features = read_features(run)
    predicted, _ = predictions_of(run, recipe="paper")
    columns = [f"{PROBE} [{fold}]" for fold in range(5)]
    assert list(predicted) == columns
    for column, probe in zip(columns, train(source, recipe="paper").probes_, strict=True):
        np.testing.assert_allclose(predicted[column][names], probe.predict(features), atol=1e-7)
    results = load_results(tmp_path, MODEL, recipe="paper").loc[SET]
    pd.testing.assert_frame_equal(results[columns], predicted.loc[results.index])
    assert PROBE not in results


@pytest.mark.parametrize("changed", ["verdicts", "features", "recipe", "run"])
def test_what_is_stale_is_named_not_read_and_made_again(
    tmp_path: Path, changed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, run = stores(tmp_path)
    keep_predictions(tmp_path, MODEL)
    training = f"{SET}-train/[0-9a-f]+"
    why = f"{training}/{changed}.parquet changed"
    if changed == "verdicts":
        make(tmp_path, split="train", k=5)
    elif changed == "features":
        with_states(tmp_path, split="train", limit=30)
        why = f"{training}/features.parquet and {training}/verdicts.parquet changed"
    elif changed == "recipe":
        monkeypatch.setattr(predictions, "VERSION", predictions.VERSION + 1)
        why = "the recipe is another"
    else:
        with_states(tmp_path, limit=25)
        why = f"since {SET}-test/[0-9a-f]+/features.parquet changed"
    predicted, stale = predictions_of(run)
    assert predicted.empty
    assert len(stale) == 1
    assert re.search(why, stale[0])
    assert "capcal probe --model simulated" in stale[0]
    said = " ".join(verify_run(run).problems)
    assert "is stale, since" in said
    results = load_results(tmp_path, MODEL)
    assert PROBE not in results
    assert results.attrs["stale"] == stale
    assert describe_probes(tmp_path, MODEL).empty
    assert keep_predictions(tmp_path, MODEL)["made"].all()
    assert predictions_of(run)[1] == []


def test_a_run_that_moved_without_its_training_run_keeps_its_predictions(tmp_path: Path) -> None:
    source, run = stores(tmp_path)
    keep_predictions(tmp_path, MODEL)
    source.folder.rename(tmp_path / "elsewhere")
    predicted, stale = predictions_of(run)
    assert list(predicted) == [PROBE]
    assert stale == []


def test_a_probe_is_not_kept_for_prompts_of_another_style(tmp_path: Path) -> None:
    source, run = stores(tmp_path)
    change(source.folder, prompt_style="steps")
    assert keep_predictions(tmp_path, MODEL).empty
    assert not run.path(PREDICTIONS, "tuned").exists()


@pytest.mark.parametrize(
    ("rows", "sources", "message"),
    [
        ([("a", "mini-exam", 0, 0.5)], b"[{}]", "not a record of probes"),
        ([("a", "mini-exam", 0, 0.5)] * 2, None, "not a record of probes .*duplicate"),
    ],
)
def test_a_damaged_file_is_refused(
    tmp_path: Path, rows: list[tuple[str, str, int, float]], sources: bytes | None, message: str
) -> None:
    _, run = stores(tmp_path)
    keep_predictions(tmp_path, MODEL)
    path = run.path(PREDICTIONS, "tuned")
    given = sources or pq.read_schema(path).metadata[b"sources"]
    columns = dict(zip(PREDICTIONS.schema.names, map(list, zip(*rows, strict=True)), strict=True))
    table = pa.table(columns, schema=PREDICTIONS.schema).replace_schema_metadata(
        {b"sources": given}
    )
    pq.write_table(table, path)
    with pytest.raises(InputError, match=message):
        predictions_of(run)


def test_other_columns_are_refused(tmp_path: Path) -> None:
    _, run = stores(tmp_path)
    path = run.path(PREDICTIONS, "tuned")
    pq.write_table(pa.table({"question_id": ["a"]}), path)
    with pytest.raises(InputError, match="not a file of `capcal probe`"):
        predictions_of(run)


def test_named_data_sets_are_predicted_alone(tmp_path: Path) -> None:
    stores(tmp_path)
    with_states(tmp_path, dataset="mini-arithmetic")
    made = keep_predictions(tmp_path, MODEL, datasets=["mini-arithmetic"])
    assert made.index.tolist() == [("mini-arithmetic", PROBE)]
    with pytest.raises(InputError, match="unknown data set"):
        keep_predictions(tmp_path, MODEL, datasets=["nothing"])
    assert keep_predictions(tmp_path, "gpt-oss-20b").empty


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


def test_a_recipe_that_is_unknown_is_refused() -> None:
    run = find_run(RECORDED_RUNS, MODEL, SET, "test")
    with pytest.raises(InputError, match="unknown recipe 'best'; known: paper, tuned"):
        predictions_of(run, recipe="best")  # type: ignore[arg-type]


OTHER = "mini-capitals"
MIXED = "Probe (Mini exam + Mini capitals)"


def mixed_store(store: Path) -> None:
    for name in (SET, OTHER, "mini-arithmetic"):
        with_states(store, dataset=name, limit=10)
    for name in (SET, OTHER):
        with_states(store, dataset=name, split="train", limit=30)


@pytest.mark.parametrize("recipe", ["tuned", "paper"])
def test_one_probe_learns_from_several_training_sets(tmp_path: Path, recipe: ProbeRecipe) -> None:
    mixed_store(tmp_path)
    keep_predictions(tmp_path, MODEL, recipe=recipe)
    before = load_results(tmp_path, MODEL, recipe=recipe)
    made = keep_predictions(tmp_path, MODEL, mix=[SET, OTHER], recipe=recipe)
    assert made["made"].all()
    assert made.index.tolist() == [(name, MIXED) for name in ("mini-arithmetic", OTHER, SET)]
    assert (made["questions"] == 60).all()
    after = load_results(tmp_path, MODEL, recipe=recipe)
    columns = [MIXED] if recipe == "tuned" else [f"{MIXED} [{fold}]" for fold in range(5)]
    assert list(after) == [*before, *columns]
    pd.testing.assert_frame_equal(after[list(before)], before)

    runs = [find_run(tmp_path, MODEL, name, "train") for name in (SET, OTHER)]
    (first, one), (second, other) = map(training_data, runs)
    counts = pd.concat([first, second])
    naive = (TunedProbe if recipe == "tuned" else PaperProbe)()
    naive.fit(np.vstack([one, other]), counts["correct"], counts["total"])
    names, features = read_features(find_run(tmp_path, MODEL, "mini-arithmetic", "test"))
    predicted = after.loc["mini-arithmetic"].loc[names, columns]
    np.testing.assert_allclose(predicted.T, naive.predict_splits(features), atol=1e-6)


@pytest.mark.parametrize("changed", [SET, OTHER])
def test_a_mixture_is_stale_by_either_source_and_made_again_by_the_command_that_is_said(
    tmp_path: Path, changed: str
) -> None:
    mixed_store(tmp_path)
    keep_predictions(tmp_path, MODEL, mix=[SET, OTHER])
    make(tmp_path, dataset=changed, split="train", k=5, limit=30)
    run = find_run(tmp_path, MODEL, "mini-arithmetic", "test")
    predicted, stale = predictions_of(run)
    assert predicted.empty
    assert MIXED in stale[0]
    assert f"{changed}-train" in stale[0]
    assert stale[0].endswith(f"--mix {SET},{OTHER} --store {tmp_path}")
    assert keep_predictions(tmp_path, MODEL, mix=[SET, OTHER])["made"].all()
    assert predictions_of(run)[1] == []


def test_a_mixture_of_two_styles_of_prompt_predicts_both(tmp_path: Path) -> None:
    mixed_store(tmp_path)
    for split in ("test", "train"):
        change(find_run(tmp_path, MODEL, OTHER, split).folder, prompt_style="steps")
    predicted = keep_predictions(tmp_path, MODEL).index
    assert (OTHER, PROBE) not in predicted
    assert (OTHER, MIXED) in keep_predictions(tmp_path, MODEL, mix=[SET, OTHER]).index
    change(find_run(tmp_path, MODEL, OTHER, "train").folder, weights="another")
    with pytest.raises(InputError, match="they differ in weights"):
        keep_predictions(tmp_path, MODEL, mix=[SET, OTHER])


@pytest.mark.parametrize("mix", [[SET], [SET, SET], [SET, "gsm8k"], [SET, "nothing"]])
def test_a_mixture_of_what_is_not_there_is_refused(tmp_path: Path, mix: list[str]) -> None:
    mixed_store(tmp_path)
    with pytest.raises(InputError, match="mini-capitals, mini-exam; got mini-exam"):
        keep_predictions(tmp_path, MODEL, mix=mix)
    assert predictions_of(find_run(tmp_path, MODEL, SET, "test"))[0].empty


def test_a_kill_loses_at_most_one_split(tmp_path: Path) -> None:
    source, run = stores(tmp_path / "stopped")
    shutil.copytree(tmp_path / "stopped", tmp_path / "whole")
    command = [sys.executable, "-m", "capcal_lib.cli", "probe", "--model", MODEL]
    command += ["--recipe", "paper", "--store", str(tmp_path / "stopped")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr or ():
            if "split 2 of 5" in line:
                process.kill()
    assert predictions_of(run, recipe="paper")[0].empty
    assert verify_run(source).problems == []
    said: list[str] = []
    keep_predictions(tmp_path / "stopped", MODEL, recipe="paper", say=said.append)
    trained = [line.split(" in ")[0] for line in said]
    assert trained[0] == f"training {PROBE}"
    assert trained[-2:] == ["split 4 of 5", "split 5 of 5"]
    assert "split 2 of 5" not in trained
    assert not list(source.folder.glob(".*"))
    keep_predictions(tmp_path / "whole", MODEL, recipe="paper")
    assert (
        run.path(PREDICTIONS, "paper").read_bytes()
        == Run(tmp_path / "whole" / run.folder.relative_to(tmp_path / "stopped"))
        .path(PREDICTIONS, "paper")
        .read_bytes()
    )
