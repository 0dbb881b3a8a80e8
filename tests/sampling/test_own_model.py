"""A model of one's own: a folder or a GGUF file on this machine, the hub's cache without a network,
a base model.
"""

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from capcal_lib.errors import InputError  # noqa: E402 -- the rest needs torch
from capcal_lib.manifests import Model, Weights, load_dataset, load_model  # noqa: E402
from capcal_lib.sampling.draw import can_sample_here  # noqa: E402
from capcal_lib.sampling.engines import check_engine  # noqa: E402
from capcal_lib.sampling.engines.transformers import TransformersEngine  # noqa: E402
from capcal_lib.sampling.weights import ensure_weights, weights_digest, weights_folder  # noqa: E402
from tests.sampling.engines.tiny_models import SIZES, make_weights  # noqa: E402
from tests.sampling.test_weights import make_gguf  # noqa: E402

COMMIT = "0123456789" * 4


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAPCAL_CACHE_DIR", str(tmp_path / "cache"))


def manifest(*ways: Weights, **changes: object) -> Model:
    update = {"name": "tiny", "weights": ways, "hidden_size": None, **changes}
    return load_model("smollm2-135m").model_copy(update=update)


def test_a_folder_is_opened_where_it_lies(tmp_path: Path) -> None:
    source = make_weights(tmp_path / "checkpoint", "llama")
    model = manifest(Weights(path=str(source)))
    engine = TransformersEngine(model)
    assert engine.network.config.num_hidden_layers == SIZES["num_hidden_layers"]
    folder = weights_folder(model)
    assert folder
    assert (folder / "model.safetensors").samefile(source / "model.safetensors")
    first = weights_digest(model)
    other = make_weights(tmp_path / "other", "qwen2")
    assert weights_digest(manifest(Weights(path=str(other)))) != first
    twin = make_weights(tmp_path / "twin", "llama")
    assert weights_digest(manifest(Weights(path=str(twin)))) == first, (
        "the path is no part of what a model is"
    )


def test_a_gguf_file_is_converted(tmp_path: Path) -> None:
    (tmp_path / "mine.gguf").write_bytes(make_gguf(tmp_path / "scratch.gguf"))
    model = manifest(Weights(path=str(tmp_path / "mine.gguf")))
    assert (ensure_weights(model) / "config.json").exists()
    assert len(weights_digest(model)) == 64


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for place, reason in (
        ("empty", "not a model in the format of transformers"),
        ("nowhere", "No such file"),
    ):
        with pytest.raises(InputError, match=reason) as raised:
            ensure_weights(manifest(Weights(path=str(tmp_path / place))))
        assert str(tmp_path / place) in str(raised.value)


def test_a_pinned_commit_comes_from_the_hubs_cache_without_a_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    make_weights(tmp_path / "hub" / "models--a--b" / "snapshots" / COMMIT, "llama")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    model = manifest(Weights(hub="a/b", revision=COMMIT))
    assert (ensure_weights(model) / "model.safetensors").exists()
    assert weights_digest(model) == f"a/b@{COMMIT}"
    with pytest.raises(InputError, match="could not get the weights"):
        ensure_weights(manifest(Weights(hub="a/c", revision=COMMIT)))


def test_a_server_is_not_asked_to_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    with pytest.raises(InputError, match="is asked by completion, which the openai engine cannot"):
        check_engine(manifest(prompt_style="completion"), "openai")


def test_the_names_of_folders_stay(tmp_path: Path) -> None:
    (tmp_path / "cache" / "models" / "smollm2-135m-d63e54442ca4").mkdir(parents=True)
    assert weights_folder(load_model("smollm2-135m"))
    assert can_sample_here(load_model("smollm2-135m"), load_dataset("mini-exam"))
