"""Manifests that allow any rows, and repositories of a few."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from capcal_lib import manifests
from capcal_lib.manifests import load_dataset
from capcal_lib.places import MANIFESTS, OWN_MANIFESTS
from tests.questions.files import HUB, MINI_SETS, Describe


@pytest.fixture
def unpinned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Copies of the manifests that allow any rows, so that a few serve."""
    folder = Path(shutil.copytree(MANIFESTS, tmp_path / "manifests"))
    for path in folder.glob("datasets/*.yaml"):
        if path.stem in MINI_SETS:
            continue
        path.write_text(
            re.sub(r"^    (rows|hub_rows|digest): .*\n", "", path.read_text(), flags=re.MULTILINE)
        )
    monkeypatch.setattr(manifests, "MANIFESTS", folder)
    return folder


@pytest.fixture
def data_dir(tmp_path: Path, unpinned: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that CAPCAL_DATA_DIR names."""
    monkeypatch.setenv("CAPCAL_DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture
def hub(tmp_path: Path, unpinned: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Manifests whose repositories are folders with a few rows in the columns of the hub."""
    import datasets

    for name, rows in HUB.items():
        dataset = load_dataset(name)
        entry = dataset.splits[dataset.evaluation_split]
        repository = tmp_path / name
        repository.mkdir()
        (repository / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (repository / "README.md").write_text(
            f"---\nconfigs:\n- config_name: {entry.config or 'default'}\n  data_files:\n"
            f"  - split: {entry.hub_split}\n    path: rows.jsonl\n---\n"
        )
        path = unpinned / "datasets" / f"{name}.yaml"
        text = path.read_text().replace(f"hub: {entry.hub}", f"hub: {repository}")
        path.write_text(text.replace(f"revision: {entry.revision}", "revision: null"))
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.delenv("CAPCAL_DATA_DIR", raising=False)
    datasets.disable_progress_bars()
    yield
    datasets.enable_progress_bars()


@pytest.fixture
def describe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Describe:
    """Write the manifest of a data set ``law`` and return where its file belongs."""
    monkeypatch.setenv(OWN_MANIFESTS, str(tmp_path))
    (tmp_path / "datasets").mkdir()

    def write(file: str = "law.jsonl", kind: str = "short", more: str = "") -> Path:
        text = f"name: law\ndomain: law\nkind: {kind}\n{more}splits: {{all: {{file: {file}}}}}\n"
        (tmp_path / "datasets" / "law.yaml").write_text(text)
        return tmp_path / "datasets" / file

    return write
