"""Hidden states of all layers, kept by their principal coordinates."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from capcal_lib.errors import InputError
from capcal_lib.manifests import Model
from capcal_lib.probes import features
from capcal_lib.probes.coordinates import FILE, keep_coordinates, layer_thirds, read_coordinates
from capcal_lib.probes.features import extract, read_features
from capcal_lib.runs import Run
from capcal_lib.runs.files import write_table
from capcal_lib.sampling.draw import sample
from capcal_lib.sampling.engines import simulated
from capcal_lib.sampling.engines.simulated import SimulatedEngine
from tests.probes.probe_sets import MODEL, rng


def test_coordinates_are_principal_and_blind_to_scale() -> None:
    states = rng().normal(size=(30, 12, 5)).astype(np.float32)
    training, others = (thirds[:, 1, :6] for thirds in layer_thirds(states, states[:7]))
    np.testing.assert_allclose(others, training[:7], atol=1e-4)
    covariance = training.T @ training
    np.testing.assert_allclose(covariance - np.diag(np.diag(covariance)), 0, atol=1e-2)
    scale = np.repeat(np.array([1, 10, 100, 1000], np.float32), 3)[None, :, None]
    scaled = layer_thirds(states * scale)[0][:, 1, :6]
    np.testing.assert_allclose(np.abs(scaled), np.abs(training), rtol=0.01, atol=0.02)


def test_coordinates_are_kept_beside_the_samples(tmp_path: Path) -> None:
    one, other = (
        sample(MODEL, "mini-capitals", k=1, limit=12, store=tmp_path, split=split).run.folder
        for split in ("train", "test")
    )
    with pytest.raises(
        InputError,
        match="make them with: capcal coordinates --model simulated --dataset mini-capitals",
    ):
        read_coordinates(Run(one))
    keep_coordinates(Run(one), Run(other))
    states = [extract(Run(folder), layers="all") for folder in (one, other)]
    for folder, points in zip((one, other), layer_thirds(*states), strict=True):
        kept = read_coordinates(Run(folder))
        assert kept.question_ids == sorted(kept.question_ids)
        assert kept.directions == one.name
        np.testing.assert_allclose(kept.points, points, rtol=2e-3, atol=0.05)
    write_table(one / FILE, pq.read_table(one / FILE).drop_columns("coordinates"))
    with pytest.raises(InputError, match="not a file of `capcal coordinates`"):
        read_coordinates(Run(one))


def test_what_was_read_before_a_stop_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    class Stopping(SimulatedEngine):
        def hidden_states(self, requests, layers="mean"):  # type: ignore[no-untyped-def]
            if len(read) == 9:
                raise KeyboardInterrupt
            read.extend(request.question.id for request in requests)
            return super().hidden_states(requests, layers)

    one, other = (
        sample(MODEL, "mini-capitals", k=1, limit=6, store=tmp_path, split=split).run
        for split in ("train", "test")
    )
    keep_coordinates(one, other)
    points = [read_coordinates(run).points for run in (one, other)]
    for run in (one, other):
        (run.folder / FILE).unlink()
    monkeypatch.setattr(features, "BATCH", 3)
    monkeypatch.setattr(features, "open_engine", lambda model, name=None: Stopping(model))
    with pytest.raises(KeyboardInterrupt):
        keep_coordinates(one, other)
    assert not any((run.folder / FILE).exists() for run in (one, other))
    assert [len(list(run.folder.glob("features-all.part-*"))) for run in (one, other)] == [2, 1]
    seen = {*read}
    read.clear()
    keep_coordinates(one, other)
    assert len(read) == 3
    assert not seen & {*read}
    for run, before in zip((one, other), points, strict=True):
        np.testing.assert_array_equal(read_coordinates(run).points, before)
        assert [file.name for file in run.folder.glob("features*")] == ["features.parquet"]


def test_the_features_of_both_runs_come_from_the_same_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = (
        sample(MODEL, "mini-capitals", k=1, limit=6, store=tmp_path, split=split).run
        for split in ("train", "test")
    )
    alone = [extract(run) for run in (one, other)]
    for run in (one, other):
        features.features_file(run).unlink()
    keep_coordinates(one, other)
    monkeypatch.delattr(features, "open_engine")
    for run, before in zip((one, other), alone, strict=True):
        np.testing.assert_allclose(extract(run), before, rtol=2e-3, atol=2e-3)


def test_corrupt_features_stop_it_before_anything_is_written(tmp_path: Path) -> None:
    one, other = (
        sample(MODEL, "mini-capitals", k=1, limit=6, store=tmp_path, split=split).run
        for split in ("train", "test")
    )
    extract(one)
    path = features.features_file(one)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(InputError, match="missing or corrupt"):
        keep_coordinates(one, other)
    assert not any((run.folder / FILE).exists() for run in (one, other))
    path.unlink()
    keep_coordinates(one, other)
    assert not any(list(run.folder.glob("features-all*")) for run in (one, other))


def test_the_model_is_loaded_once_for_both_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[str] = []

    class Counting(SimulatedEngine):
        def __init__(self, model: Model) -> None:
            loaded.append(model.name)
            super().__init__(model)

    one, other = (
        sample(MODEL, "mini-capitals", k=1, limit=3, store=tmp_path, split=split).run
        for split in ("train", "test")
    )
    monkeypatch.setattr(simulated, "SimulatedEngine", Counting)
    keep_coordinates(one, other)
    assert loaded == [MODEL]


def test_a_file_of_all_layers_that_was_there_stays(tmp_path: Path) -> None:
    one, other = (
        sample(MODEL, "mini-capitals", k=1, limit=6, store=tmp_path, split=split).run
        for split in ("train", "test")
    )
    extract(one, layers="all")
    keep_coordinates(one, other)
    assert len(read_features(one, "all")[0]) == 6
    assert not list(other.folder.glob("features-all*"))


def test_each_third_of_the_layers_has_its_own_coordinates() -> None:
    states = rng().normal(size=(30, 7, 5)).astype(np.float32)
    thirds = layer_thirds(states)[0]
    for place, part in enumerate((states[:, :3], states[:, 3:5], states[:, 5:])):
        flat = part.reshape(30, -1)
        values = np.linalg.eigvalsh(np.corrcoef(flat.T))[
            ::-1
        ]  # the variance along each principal direction
        kept = min(thirds.shape[2], len(values))
        np.testing.assert_allclose(thirds[:, place].var(axis=0)[:kept], values[:kept], atol=1e-4)
