"""An architecture of the paper's models, at a small size, against plain transformers."""

from pathlib import Path

import pytest

from tests.sampling.architectures import check_reasoning, manifest, reasoning_checkpoint

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from capcal_lib.sampling.engines.transformers import TransformersEngine  # noqa: E402 -- needs torch


@pytest.mark.parametrize("architecture", ["qwen3"])
def test_its_answers_are_told_from_the_reasoning_before_them(
    architecture: str, tmp_path: Path
) -> None:
    folder = reasoning_checkpoint(tmp_path, architecture)
    check_reasoning(TransformersEngine(manifest(), folder), architecture)
