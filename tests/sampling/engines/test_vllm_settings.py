"""What is asked of vLLM, by the number of GPUs, with a stand-in for vLLM that opens nothing."""

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from capcal_lib.errors import InputError
from capcal_lib.manifests import Model
from capcal_lib.sampling.engines.vllm import VllmEngine, count_gpus, has_experts, settings_of
from tests.sampling import architectures
from tests.sampling.engines.vllm_stand_in import put_vllm

pytest.importorskip("transformers")
RUNNER = "VLLM_USE_V2_MODEL_RUNNER"


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], dict[str, Any]]:
    """Put a vLLM in place that sees so many GPUs, or a CPU for none; return what it is opened
    with.
    """

    def with_gpus(gpus: int) -> dict[str, Any]:
        opened: dict[str, Any] = {}

        def open_llm(arguments: dict[str, Any], **_: object) -> None:
            opened.update(arguments)
            raise RuntimeError("nothing is opened here")

        put_vllm(monkeypatch, gpus, open_llm)
        return opened

    return with_gpus


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A tiny checkpoint of each architecture of the paper."""
    return {
        name: architectures.checkpoint(tmp_path_factory.mktemp(name), name)
        for name in architectures.ARCHITECTURES
    }


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return what the library has said."""
    return [one.getMessage() for one in caplog.records if one.name.startswith("capcal_lib")]


def manifest(**arguments: object) -> Model:
    return architectures.manifest().model_copy(update={"vllm": arguments})


@pytest.mark.parametrize(
    ("architecture", "gpus", "copies"),
    [("qwen3", 1, 1), ("qwen3", 8, 8), ("olmo3", 8, 8), ("gpt_oss", 1, 1), ("gpt_oss", 8, 1)],
)
def test_a_dense_model_has_a_copy_a_gpu_and_a_mixture_of_experts_one(
    architecture: str,
    gpus: int,
    copies: int,
    machine: Callable[[int], dict[str, Any]],
    folders: dict[str, Path],
    caplog: pytest.LogCaptureFixture,
) -> None:
    folder = folders[architecture]
    opened = machine(gpus)
    with pytest.raises(InputError, match="could not open 'tiny': nothing is opened here"):
        VllmEngine(manifest(), folder)
    assert opened["data_parallel_size"] == copies
    assert opened["model"] == str(folder)
    if copies == gpus:
        assert lines(caplog) == []
    else:
        assert lines(caplog) == [
            "'tiny' is a mixture of experts, of which vLLM makes no copies: this process takes 1 "
            "of 8 GPUs. To use all, start 8 processes, each with its own CUDA_VISIBLE_DEVICES, "
            "--store and "
            "part, 1/8 to 8/8, and merge their stores, the first by: capcal reproduce --model tiny "
            "--part 1/8"
        ]


def test_a_copy_takes_as_many_gpus_as_the_manifest_says(
    folders: dict[str, Path], caplog: pytest.LogCaptureFixture
) -> None:
    dense, experts = folders["qwen3"], folders["gpt_oss"]
    assert (has_experts(dense), has_experts(experts)) == (False, True)
    split = manifest(tensor_parallel_size=2, quantization="fp8")
    settings = settings_of(split, dense, gpus=8)
    assert (settings["tensor_parallel_size"], settings["data_parallel_size"]) == (2, 4)
    assert settings["quantization"] == "fp8"
    both = manifest(tensor_parallel_size=2, pipeline_parallel_size=2)
    assert settings_of(both, dense, gpus=8)["data_parallel_size"] == 2
    assert settings_of(manifest(tensor_parallel_size=8), dense, gpus=1)["data_parallel_size"] == 1
    assert not lines(caplog)

    assert settings_of(split, experts, gpus=8)["data_parallel_size"] == 1
    (line,) = lines(caplog)
    assert "takes 2 of 8 GPUs. To use all, start 4 processes" in line


def test_what_the_manifest_says_of_copies_is_done_and_nothing_is_said_of_it(
    folders: dict[str, Path], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        settings = settings_of(manifest(data_parallel_size=8), folders["gpt_oss"], gpus=8)
    assert settings["data_parallel_size"] == 8
    assert not lines(caplog)


def test_weights_and_code_are_not_the_manifests_to_say() -> None:
    folder = Path("weights")
    evil = manifest(trust_remote_code=True, model="stranger/other", worker_extension_cls="evil.W")
    settings = settings_of(evil, folder, gpus=0)
    assert settings["trust_remote_code"] is False
    assert settings["model"] == str(folder)
    assert settings["worker_extension_cls"].endswith(".PositionWatcher")


def test_the_older_runner_is_named_on_the_cpu_alone(
    machine: Callable[[int], dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    folders: dict[str, Path],
) -> None:
    for gpus, given, asked in ((8, None, None), (0, None, "0"), (0, "1", "1"), (1, "0", "0")):
        monkeypatch.setenv(RUNNER, "")  # so that it is as it was afterwards
        monkeypatch.delenv(RUNNER)
        if given is not None:
            monkeypatch.setenv(RUNNER, given)
        opened = machine(gpus)
        with pytest.raises(InputError, match="nothing is opened here"):
            VllmEngine(manifest(), folders["qwen3"])
        assert os.environ.get(RUNNER) == asked, (gpus, given)
        assert ("dtype" in opened) == (gpus == 0)  # float32 on the CPU, else the checkpoint's


@pytest.mark.parametrize("gpus", [0, 1, 8])
def test_gpus_are_counted_and_a_cpu_is_none(monkeypatch: pytest.MonkeyPatch, gpus: int) -> None:
    put_vllm(monkeypatch, gpus, dict)
    assert count_gpus() == gpus
