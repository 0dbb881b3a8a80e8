"""An architecture of the paper's models, at a small size, against plain transformers."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from capcal_lib.confidence.p_true import NO, YES
from capcal_lib.manifests import Sampling
from capcal_lib.questions.prompts import p_true_messages
from capcal_lib.sampling.engines import Request
from capcal_lib.sampling.engines.chat import encode, single_tokens
from tests.sampling.architectures import (
    LONG,
    QUESTIONS,
    asked,
    check_reasoning,
    checkpoint,
    manifest,
    reasoning_checkpoint,
)

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from capcal_lib.sampling.engines.transformers import TransformersEngine  # noqa: E402 -- needs torch

SAMPLING = Sampling(temperature=0.8, max_tokens=8, context_tokens=2048)


@pytest.mark.parametrize("architecture", ["qwen3"])
def test_it_says_what_plain_transformers_says(architecture: str, tmp_path: Path) -> None:
    folder = checkpoint(tmp_path, architecture)
    engine = TransformersEngine(manifest(), folder)
    plain: Any = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager"
    )
    prompts = [encode(engine.tokenizer, engine.model, request) for request in asked()]
    assert len(prompts[0]) < 64
    assert len(prompts[1]) > LONG

    greedy = SAMPLING.model_copy(update={"temperature": 0.0})
    said = {row.question_id: row for group in engine.sample(asked(1), greedy, 0) for row in group}
    states = engine.hidden_states(asked())
    for place, (request, prompt) in enumerate(zip(asked(), prompts, strict=True)):
        with torch.inference_mode():
            out = plain(torch.tensor([prompt]), output_hidden_states=True)
            tokens = plain.generate(torch.tensor([prompt]), max_new_tokens=8, do_sample=False)
        expected = torch.stack([layer[0, -1] for layer in out.hidden_states]).mean(0).numpy()
        assert states[place].shape == (128,)
        np.testing.assert_allclose(states[place], expected, atol=1e-4 * np.abs(expected).max())
        row = said[request.question.id]
        new = tokens[0, len(prompt) :]
        assert row.completion_tokens == len(new)
        assert row.response == engine.tokenizer.decode(new, skip_special_tokens=True)

    drawn = [row for group in engine.sample(asked(6), SAMPLING, 0) for row in group]
    again = [row for group in engine.sample(asked(6)[::-1], SAMPLING, 0) for row in group]
    assert set(drawn) == set(again)
    assert len({row.response for row in drawn}) > 2

    true = [Request(one, p_true_messages(one, engine.model.prompt_style)) for one in QUESTIONS[:2]]
    words = [*YES, *NO]
    single = single_tokens(engine.tokenizer, words)
    got = engine.next_token_logprobs(true, words, SAMPLING, 0)[0]
    for place, request in enumerate(true):
        prompt = encode(engine.tokenizer, engine.model, request)
        with torch.inference_mode():
            logprobs = plain(torch.tensor([prompt])).logits[0, -1].log_softmax(-1)
        expected = logprobs[list(single.values())].numpy()
        np.testing.assert_allclose(got[place, list(single)], expected, atol=1e-4)


@pytest.mark.parametrize("architecture", ["qwen3"])
def test_its_answers_are_told_from_the_reasoning_before_them(
    architecture: str, tmp_path: Path
) -> None:
    folder = reasoning_checkpoint(tmp_path, architecture)
    check_reasoning(TransformersEngine(manifest(), folder), architecture)
