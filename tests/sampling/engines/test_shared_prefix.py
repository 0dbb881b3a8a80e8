"""Samples that share their prompt are those that do not."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from capcal_lib.sampling.engines import Request

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from capcal_lib.sampling.engines.transformers import TransformersEngine  # noqa: E402 -- needs torch
from tests.sampling.engines.tiny_models import draw, plain, plain_logits, request, settings  # noqa: E402


@pytest.mark.parametrize(("architecture", "scaling"), [("qwen3", 0.1), ("olmo2", 0.25)])
def test_every_step_has_the_logits_of_plain_transformers(
    architecture: str,
    scaling: float,
    engines: Callable[[str], TransformersEngine],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = engines(architecture)
    for layer in [*engine.network.model.layers, *plain(engine).model.layers]:
        monkeypatch.setattr(layer.self_attn, "scaling", scaling)
    for name, empty in (("_cache", None), ("_cached", [])):  # as of a new engine, and back
        monkeypatch.setattr(engine, name, empty)
    seen: dict[tuple[int, ...], Any] = {}
    step, begin = engine._step, engine._begin

    def recording_step(branches: Any, tails: Any) -> Any:
        logits = step(branches, tails)
        seen.update(
            {
                (*b.group.prompt.tokens, *b.tokens): row.clone()
                for b, row in zip(branches, logits, strict=True)
            }
        )
        return logits

    def recording_begin(group: Any) -> Any:
        logits = begin(group)
        seen[tuple(group.prompt.tokens)] = logits[0].clone()
        return logits

    monkeypatch.setattr(engine, "_step", recording_step)
    monkeypatch.setattr(engine, "_begin", recording_begin)
    monkeypatch.setattr("capcal_lib.sampling.engines.transformers.SAMPLES_IN_FLIGHT", 25)
    requests = [
        request("one", 10),
        request("two three", 3),
        request("four " * 9, 5),
        request("five two one", 20),
    ]
    draw(engine, requests, settings(max_tokens=6, temperature=1.5))
    assert len(seen) > 60
    for ids, logits in seen.items():
        assert np.allclose(logits, plain_logits(engine, list(ids)), atol=5e-4)


def test_a_sample_is_the_same_whatever_else_is_in_the_batch(
    engines: Callable[[str], TransformersEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = engines("qwen3")
    requests = [request("one", 30), request("two two two", 40), request("three " * 12, 25)]
    everything = draw(engine, requests, settings())
    assert len(everything) == 95
    assert draw(engine, requests, settings(), seed=1) != everything
    assert draw(engine, requests[::-1], settings()) == everything
    part = Request(requests[1].question, requests[1].messages, (39, 4))
    assert draw(engine, [part], settings()) == {
        s for s in everything if s.question_id == "two two two" and s.sample_index in (4, 39)
    }
    for size in (1, 7, 33):
        monkeypatch.setattr("capcal_lib.sampling.engines.transformers.SAMPLES_IN_FLIGHT", size)
        assert draw(engine, requests, settings()) == everything
