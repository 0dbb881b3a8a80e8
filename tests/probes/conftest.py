"""Stores of the simulated model: made once, and copied for each test."""

import shutil
from pathlib import Path

import pytest

from capcal_lib.probes import keep_predictions
from tests.probes.stores import MODEL, OTHER, SET, with_states


@pytest.fixture(scope="session")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = tmp_path_factory.mktemp("two_runs")
    with_states(store, split="train")
    with_states(store)
    return store


@pytest.fixture(scope="session")
def with_predictions(two_runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = shutil.copytree(two_runs, tmp_path_factory.mktemp("trained") / "store")
    keep_predictions(store, MODEL)
    return store


@pytest.fixture(scope="session")
def several_sets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = tmp_path_factory.mktemp("several_sets")
    for name in (SET, OTHER, "mini-arithmetic"):
        with_states(store, dataset=name, limit=10)
    for name in (SET, OTHER):
        with_states(store, dataset=name, split="train", limit=30)
    return store


@pytest.fixture
def store(two_runs: Path, tmp_path: Path) -> Path:
    """A store with a training and an evaluation run, and no probe."""
    return shutil.copytree(two_runs, tmp_path / "store")


@pytest.fixture
def trained(with_predictions: Path, tmp_path: Path) -> Path:
    """The same store, with the tuned probe's predictions."""
    return shutil.copytree(with_predictions, tmp_path / "store")


@pytest.fixture
def mixed(several_sets: Path, tmp_path: Path) -> Path:
    """A store with two training runs and three evaluation runs, and no probe."""
    return shutil.copytree(several_sets, tmp_path / "store")
