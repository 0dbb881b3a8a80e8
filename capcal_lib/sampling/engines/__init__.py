"""Engines draw answers from a model. One file an engine; this file holds what they share."""

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal, Protocol, runtime_checkable

import numpy as np

from capcal_lib.errors import InputError, unknown
from capcal_lib.manifests import Model, Sampling
from capcal_lib.questions import Question
from capcal_lib.questions.prompts import Messages

BASE_URL = "OPENAI_BASE_URL"  # the environment variable that names a server
SAMPLES_A_REQUEST = 16

FinishReason = Literal["stop", "length"]
Purpose = Literal["answer", "verbalized"]
Layers = Literal["mean", "max", "all"]  # of the embedding and every layer: their mean, their maximum, each of them


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of a model about one question.

    ``sample_indices`` are the samples wanted; none where only log-probabilities or hidden states are.
    """

    question: Question
    messages: Messages
    sample_indices: tuple[int, ...] = ()
    purpose: Purpose = "answer"  # an answer, or a confidence in words


@dataclass(frozen=True, slots=True)
class Sample:
    """One drawn answer, identified by (question_id, sample_index) within its run."""

    question_id: str
    sample_index: int
    response: str
    reasoning: str | None  # kept apart from the answer and never graded
    finish_reason: FinishReason
    prompt_tokens: int
    completion_tokens: int  # every generated token, the end-of-turn token included


@dataclass(frozen=True, slots=True)
class LikelyAnswers:
    """Answers that a model may give to a question, each with the probability of drawing it.

    The probabilities add up to 1 less what lies in the answers that were left out. A response may stand there
    more than once: different tokens can spell the same text.
    """

    question_id: str
    responses: tuple[str, ...]
    probabilities: tuple[float, ...]
    passes: int  # times that the network was asked for a next token


@dataclass(frozen=True, slots=True)
class Failure:
    """Samples that could not be drawn. They stay absent, and the next run tries them again."""

    question_id: str
    sample_indices: tuple[int, ...]
    reason: str  # one line, bounded


def consecutive(indices: Sequence[int], most: int | None = None) -> Iterator[tuple[int, ...]]:
    """Cut sample indices into runs of consecutive ones, what one request asks for: 16, or ``most``, at most.

    Few enough that one long question does not hold many, and enough that its prompt is seldom read.

    Examples
    --------
    >>> list(consecutive((0, 1, 2, 5, 6), most=2))
    [(0, 1), (2,), (5, 6)]
    """
    start = 0
    for end in range(1, len(indices) + 1):
        if end == len(indices) or indices[end] != indices[end - 1] + 1 or end - start == (most or SAMPLES_A_REQUEST):
            yield tuple(indices[start:end])
            start = end


def question_seed(seed: int, question_id: str) -> int:
    """Return the seed of a question's sample 0; that of sample i is i more, as vLLM numbers the choices of a request.

    It has 48 bits, which every reader of JSON keeps whole.
    """
    return int.from_bytes(hashlib.sha256(repr((seed, question_id)).encode()).digest()[:6], "little")


class Engine(Protocol):
    """What every engine can do. ``family`` names it in the digest of a run."""

    family: str

    def sample(self, requests: Sequence[Request], sampling: Sampling, seed: int) -> Iterator[list[Sample] | Failure]:
        """Draw every wanted sample, yielding them in groups as they finish, or saying of which it could not."""
        ...

    def next_token_logprobs(self, requests: Sequence[Request], words: Sequence[str]) -> np.ndarray:
        """Return the log-probability, at temperature 1, that the first answer token is exactly each word.

        Shape (n_requests, n_words), in [-inf, 0]; NaN where a word is not a single token or the
        engine does not say.
        """
        ...

    def hidden_states(self, requests: Sequence[Request], layers: Layers = "mean") -> np.ndarray:
        """Return the last prompt token's hidden states: after the embedding, and after every layer.

        ``mean`` and ``max`` pool these layers + 1 states, number by number: shape (n_requests, hidden_size).
        ``all`` keeps them: shape (n_requests, layers + 1, hidden_size). Always float32, and pooled as such.
        """
        ...


@runtime_checkable
class EnumeratingEngine(Engine, Protocol):
    """An engine that can also say how probable each whole answer is."""

    def likely_answers(
        self, requests: Sequence[Request], sampling: Sampling, epsilon: float
    ) -> Iterator[LikelyAnswers]:
        """Yield the answers to each request, under the settings they are sampled with, in any order.

        An answer is left out where it, or its beginning, has a probability below ``epsilon``.
        """
        ...


def _transformers(model: Model) -> Engine:
    from capcal_lib.sampling.engines.transformers import TransformersEngine

    return TransformersEngine(model)


def _simulated(model: Model) -> Engine:
    from capcal_lib.sampling.engines.simulated import SimulatedEngine

    return SimulatedEngine(model)


def _vllm(model: Model) -> Engine:
    from capcal_lib.sampling.engines.vllm import VllmEngine

    return VllmEngine(model)


def _openai(model: Model) -> Engine:
    from capcal_lib.sampling.engines.openai import OpenAIEngine

    return OpenAIEngine(model)


ENGINES: dict[str, Callable[[Model], Engine]] = {
    "simulated": _simulated,
    "transformers": _transformers,
    "vllm": _vllm,
    "openai": _openai,
}

REPRODUCIBLE = {
    "simulated": "yes: the same seed gives the same rows",
    "transformers": "up to rounding, coarse in bfloat16: the same seed gives the same rows, whatever else is drawn",
    "vllm": "up to rounding: the same seed gives the same rows, but sums depend on the batch, much so in bfloat16",
    "openai": "not promised: the seed of every sample is sent, but servers differ in what they make of it",
}


def engine_name(model: Model, name: str | None = None) -> str:
    """Return the name of the engine to use: ``name``, or the one in the model's manifest.

    Raises
    ------
    InputError
        For an engine that there is not.
    """
    name = name or model.engine
    if name not in ENGINES:
        raise InputError(f"{unknown('engine', name, ENGINES)}; choose one with --engine")
    return name


def check_engine(model: Model, name: str | None = None) -> None:
    """Check that the engine can be opened here, before any work is done for it.

    Raises
    ------
    InputError
        For an engine that there is not, vLLM where it is not installed, or a server that is not named.
    """
    name = engine_name(model, name)
    if name == "vllm" and find_spec("vllm") is None:
        raise InputError(
            f"{model.name!r} is to be drawn with vLLM, which is not installed; on Linux with a GPU say: "
            "pip install -e '.[vllm]'; or name a server of the model with --engine openai and OPENAI_BASE_URL"
        )
    if name == "openai" and not os.environ.get(BASE_URL):
        raise InputError(
            f"the openai engine needs the address of a server; say for instance: export {BASE_URL}="
            "http://127.0.0.1:8000/v1 (and OPENAI_API_KEY, where the server wants a key)"
        )


def open_engine(model: Model, name: str | None = None) -> Engine:
    """Open the engine ``name``, or the one in the model's manifest.

    Raises
    ------
    InputError
        For an engine that there is not, or that cannot be opened here.

    Examples
    --------
    >>> from capcal_lib.manifests import load_model
    >>> open_engine(load_model("simulated")).family
    'simulated'
    """
    check_engine(model, name)
    return ENGINES[engine_name(model, name)](model)
