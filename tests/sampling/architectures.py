"""Tiny checkpoints of the paper's three architectures.

Random weights, four layers, heads of 64, which vLLM's attention asks for on a CPU, and the embedded
model's tokenizer and template."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from capcal_lib.manifests import Model, Sampling, load_model
from capcal_lib.questions import load_questions
from capcal_lib.questions.prompts import p_true_messages
from capcal_lib.sampling.engines import Request
from capcal_lib.sampling.weights import weights_folder
from tests.sampling.engines.encoded import encode

QUESTIONS = load_questions("mini-capitals")
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


class Way(NamedTuple):
    """What a tiny model may say with some switches, and what of it is reasoning and answer."""

    switches: dict[str, bool]  # of the chat template, as the manifest has them
    replies: tuple[str, ...]  # each token is followed by any that follows it in one of them
    divided: set[tuple[str | None, str]]
    answers_begin: set[int]  # the number of the first token of an answer, from 1


class Reasoner(NamedTuple):
    """A tiny model that reasons before it answers."""

    marks: tuple[str, ...]  # tokens beside those of the embedded model
    special: bool  # whether its tokenizer counts the marks among its special tokens
    end: str
    ways: tuple[Way, ...]


ANALYSIS = "<|channel|>analysis<|message|>Yes<|end|><|start|>assistant"
REASONERS = {
    "qwen3": Reasoner(
        marks=("<think>", "</think>"),
        special=False,
        end="<|im_end|>",
        ways=(
            Way(
                switches={},
                replies=("<think>hm</think>Yes", "<think>wait</think>Yes"),
                divided={("hm", "Yes"), ("wait", "Yes")},
                answers_begin={4},
            ),
            Way(
                switches={"enable_thinking": False},
                replies=("Yes",),
                divided={(None, "Yes")},
                answers_begin={1},
            ),
        ),
    ),
    "gpt_oss": Reasoner(
        marks=("<|channel|>", "<|message|>", "<|start|>", "<|end|>", "<|return|>"),
        special=True,
        end="<|return|>",
        ways=(
            Way(
                switches={},
                replies=(f"{ANALYSIS}<|channel|>final<|message|>Yes",),
                divided={("Yes", "Yes"), (None, "Yes"), ("Yes", ""), ("Yes\nYes", "")},
                answers_begin={4, 12},
            ),
        ),
    ),
}
CLOSED = "{% if enable_thinking is false %}{{ '<think>\n\n</think>\n\n' }}{% endif %}"
REPLY_TOKENS = 13  # of the reply of gpt_oss, so that none goes on behind it


def checkpoint(
    folder: Path, architecture: str, marks: Sequence[str] = (), *, special: bool = False
) -> Path:
    """Save a checkpoint with random weights; skip the test where the tokenizer is not here."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    source = weights_folder(load_model("smollm2-135m"))
    if source is None:
        pytest.skip("the weights of smollm2-135m are not here")
    tokenizer = AutoTokenizer.from_pretrained(source)
    tokenizer.add_tokens(list(marks), special_tokens=special)
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


def reasoning_checkpoint(folder: Path, architecture: str) -> Path:
    """Save a checkpoint whose next token follows from the last one, by what the reasoner says.

    The layers stay random. They cannot drown an embedding that is so much longer than what they
    add to it, and the head looks along it for the tokens that may follow."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    reasoner = REASONERS[architecture]
    checkpoint(folder, architecture, reasoner.marks, special=reasoner.special)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.chat_template += CLOSED
    tokenizer.save_pretrained(folder)

    followers: dict[int, set[int]] = {}
    for way in reasoner.ways:
        prompt = encode(tokenizer, manifest(**way.switches), asked()[0])
        for reply in way.replies:
            said = tokenizer.encode(reply + reasoner.end, add_special_tokens=False)
            for token, following in pairwise([prompt[-1], *said]):
                followers.setdefault(token, set()).add(following)

    network: Any = AutoModelForCausalLM.from_pretrained(folder)
    embedding = network.get_input_embeddings().weight
    head = network.get_output_embeddings().weight
    with torch.no_grad():
        head[sorted(set().union(*followers.values()))] = 0
        for direction, (token, following) in enumerate(followers.items()):
            embedding[token] = 0
            embedding[token, direction] = 10_000
            head[sorted(following), direction] = 4
    network.generation_config.eos_token_id = tokenizer.convert_tokens_to_ids(reasoner.end)
    network.save_pretrained(folder)
    return folder


def check_reasoning(engine: Any, architecture: str) -> None:
    """Check that answers are told from the reasoning before them, in samples and for P(True)."""
    sampling = Sampling(temperature=1.0, max_tokens=REPLY_TOKENS, context_tokens=2048)
    style = manifest().prompt_style
    whether = [Request(one, p_true_messages(one, style)) for one in QUESTIONS[:30]]
    for way in REASONERS[architecture].ways:
        engine.model = manifest(**way.switches)
        rows = [row for group in engine.sample(asked(60), sampling, 0) for row in group]
        assert len(rows) == 120
        divided = {(row.reasoning, row.response) for row in rows}
        assert divided == way.divided, divided

        logprobs, tokens = engine.next_token_logprobs(whether, ["Yes"], sampling, 0)
        answered = np.isfinite(logprobs[:, 0])
        assert set(tokens[answered]) == way.answers_begin, tokens
        assert answered.all() == all(answer for _, answer in way.divided)
        np.testing.assert_allclose(logprobs[answered], 0, atol=1e-6)


def manifest(**switches: bool) -> Model:
    """Return the manifest of such a checkpoint: the embedded model's, with other weights."""
    changes = {
        "name": "tiny",
        "weights": (),
        "hidden_size": None,
        "chat_template": switches,
    }
    return load_model("smollm2-135m").model_copy(update=changes)


def asked(samples: int = 0) -> list[Request]:
    """A short question, and one whose prompt is longer than the window of every architecture."""
    texts = QUESTIONS[0].text, " ".join(["why"] * LONG) + QUESTIONS[1].text
    return [
        Request(one, ({"role": "user", "content": text},), tuple(range(samples)))
        for one, text in zip(QUESTIONS[:2], texts, strict=True)
    ]


class Plain:
    """A checkpoint in plain transformers, with its own attention and without a cache."""

    def __init__(self, model: Model, folder: Path) -> None:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self.model = model
        self.tokenizer: Any = AutoTokenizer.from_pretrained(folder)
        self.network: Any = AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float32, attn_implementation="eager"
        )

    def read(self, request: Request, said: Sequence[int] = ()) -> Any:
        """Return what the network puts out for a prompt and what was said."""
        import torch

        ids = [*encode(self.tokenizer, self.model, request), *said]
        with torch.inference_mode():
            return self.network(torch.tensor([ids]), use_cache=False)

    def answer(self, request: Request, most: int) -> str:
        """Return the likeliest token after the likeliest, as text."""
        said: list[int] = []
        while len(said) < most:
            said.append(int(self.read(request, said).logits[0, -1].argmax()))
            if said[-1] == self.tokenizer.eos_token_id:
                break
        return str(self.tokenizer.decode(said, skip_special_tokens=True))

    def logprobs(self, request: Request) -> np.ndarray:
        """Return the log-probability of each first token."""
        return np.asarray(self.read(request).logits[0, -1].log_softmax(-1).numpy())
