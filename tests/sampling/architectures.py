"""Tiny checkpoints of the paper's three architectures.

Random weights, four layers, heads of 64, which vLLM's attention asks for on a CPU, and the embedded
model's tokenizer and template."""

from pathlib import Path
from typing import Any

import pytest

from capcal_lib.manifests import Model, load_model
from capcal_lib.questions import load_questions
from capcal_lib.sampling.engines import Request
from capcal_lib.sampling.weights import weights_folder

LONG = 160  # words: longer than every window

SIZES: dict[str, Any] = {
    "hidden_size": 128,
    "intermediate_size": 192,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "max_position_embeddings": 2048,
    "initializer_range": 0.15,  # wide, so that tokens have unlike probabilities
    "tie_word_embeddings": False,
}
# gpt-oss keeps its own window of 128; Olmo's is shorter than the longest prompt of the tests too.
ARCHITECTURES: dict[str, dict[str, Any]] = {
    "qwen3": {},
    "olmo3": {"sliding_window": 64},
    "gpt_oss": {"num_local_experts": 4, "num_experts_per_tok": 2},
}


def checkpoint(folder: Path, architecture: str) -> Path:
    """Save a checkpoint with random weights; skip the test where the tokenizer is not here."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    source = weights_folder(load_model("smollm2-135m"))
    if source is None:
        pytest.skip("the weights of smollm2-135m are not here")
    tokenizer = AutoTokenizer.from_pretrained(source)
    tokenizer.save_pretrained(folder)
    ends = {
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": tokenizer.bos_token_id,
    }
    settings = SIZES | ARCHITECTURES[architecture] | ends
    config = AutoConfig.for_model(architecture, vocab_size=len(tokenizer), **settings)
    torch.manual_seed(0)
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    return folder


def manifest() -> Model:
    """Return the manifest of such a checkpoint: the embedded model's, with other weights."""
    changes = {"name": "tiny", "weights": (), "layers": None, "hidden_size": None}
    return load_model("smollm2-135m").model_copy(update=changes)


def asked(samples: int = 0) -> list[Request]:
    """A short question, and one whose prompt is longer than the window of every architecture."""
    questions = load_questions("mini-capitals")[:2]
    texts = questions[0].text, " ".join(["why"] * LONG) + questions[1].text
    return [
        Request(one, ({"role": "user", "content": text},), tuple(range(samples)))
        for one, text in zip(questions, texts, strict=True)
    ]
