"""Tiny models with random weights, in the engine and in plain transformers."""

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from capcal_lib.manifests import Model, Sampling, load_model
from capcal_lib.questions import Answer, Question
from capcal_lib.runs.store import Sample
from capcal_lib.sampling.engines import Request
from tests.sampling.engines.encoded import encode

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from capcal_lib.sampling.engines.transformers import TransformersEngine  # noqa: E402 -- needs torch

WORDS = ["end", "ask", "say", "one", "two", "three", "four", "five"]
TEMPLATE = (
    "{% for message in messages %}ask {{ message['content'] }} {% endfor %}"
    "{% if loud %}five {% endif %}{% if add_generation_prompt %}say{% endif %}"
)
SIZES: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 128,
    "initializer_range": 0.5,
    "bos_token_id": None,
    "eos_token_id": 0,
    "pad_token_id": 0,
    "tie_word_embeddings": False,
}
TINY = {"name": "tiny", "weights": (), "hidden_size": None}
LAYERS = ["sliding_attention", "full_attention", "sliding_attention"]
ARCHITECTURES: dict[str, dict[str, Any]] = {
    "llama": {},
    "qwen2": {},
    "qwen3": {},
    "olmo2": {},
}
OTHERS: dict[str, dict[str, Any]] = {
    "olmo3": {"layer_types": LAYERS, "sliding_window": 5},
    "gpt_oss": {"num_local_experts": 4, "num_experts_per_tok": 2},
    "gemma2": {},
}


def prompt_of(engine: TransformersEngine, asked: Request) -> list[int]:
    return encode(engine.tokenizer, engine.model, asked)


def manifest(**changes: Any) -> Model:
    return load_model("smollm2-135m").model_copy(update={**TINY, **changes})


def settings(**changes: Any) -> Sampling:
    return Sampling(**{"temperature": 1.0, "max_tokens": 6, "context_tokens": 64, **changes})


def make_weights(folder: Path, architecture: str, words: list[str] = WORDS, **changes: Any) -> Path:
    """Save a tiny model whose tokens are words, and give its attention something to tell apart."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    vocabulary = {word: i for i, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="ask"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="end")
    fast.chat_template = TEMPLATE
    fast.save_pretrained(folder)
    torch.manual_seed(7)
    config = transformers.AutoConfig.for_model(
        architecture, vocab_size=len(words), **{**SIZES, **changes}
    )
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    return folder


def open_engines(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[[str], TransformersEngine]]:
    """Yield what opens the engine of an architecture, once; it computes on one thread."""
    made: dict[str, TransformersEngine] = {}

    def engine(architecture: str) -> TransformersEngine:
        if architecture not in made:
            folder = tmp_path_factory.mktemp(architecture)
            make_weights(folder, architecture, **ARCHITECTURES[architecture])
            made[architecture] = TransformersEngine(manifest(), folder)
            # AutoTokenizer would make the words into a tokenizer of the architecture's own kind.
            made[architecture].tokenizer = transformers.PreTrainedTokenizerFast.from_pretrained(
                folder
            )
        return made[architecture]

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield engine
    torch.set_num_threads(threads)


def request(content: str, samples: int = 0, name: str | None = None) -> Request:
    question = Question(name or content, content, Answer("short", "one"))
    return Request(question, ({"role": "user", "content": content},), tuple(range(samples)))


def draw(
    engine: TransformersEngine, requests: list[Request], sampling: Sampling, seed: int = 0
) -> set[Sample]:
    return {sample for group in engine.sample(requests, sampling, seed) for sample in group}


@cache
def plain(engine: TransformersEngine) -> Any:
    """The same weights in plain transformers, with its own attention."""
    folder = engine.network.name_or_path
    return transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager"
    )


def plain_logits(engine: TransformersEngine, ids: list[int]) -> Any:
    """Next-token logits of one sequence, without a cache."""
    with torch.inference_mode():
        return plain(engine)(torch.tensor([ids]), use_cache=False).logits[0, -1].double()


def chi_square_p(counts: np.ndarray, probabilities: np.ndarray) -> float:
    from scipy.stats import chisquare

    assert counts[probabilities == 0].sum() == 0
    order = np.argsort(probabilities)[::-1]
    counts, expected = counts[order], probabilities[order] * counts.sum()
    common = expected >= 8
    counts = np.append(counts[common], counts[~common].sum())
    expected = np.append(expected[common], expected[~common].sum())
    keep = expected > 1e-6 * counts.sum()
    return float(
        chisquare(counts[keep], expected[keep] * counts[keep].sum() / expected[keep].sum()).pvalue
    )


def naive_probabilities(logits: Any, sampling: Sampling) -> np.ndarray:
    """Temperature, then top-k, then top-p, token by token, as the words say."""
    logits = np.asarray(logits, dtype=np.float64) / sampling.temperature
    p = np.exp(logits - logits.max())
    p /= p.sum()
    order = list(np.argsort(-p, kind="stable"))[: sampling.top_k]
    kept, total, wanted = [], 0.0, sampling.top_p * p[order].sum()
    for token in order:
        if total >= wanted:
            break
        kept.append(token)
        total += p[token]
    result = np.zeros_like(p)
    result[kept] = p[kept] / total
    return result
