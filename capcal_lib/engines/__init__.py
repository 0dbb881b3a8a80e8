"""Engines draw answers from a model. One file an engine; this file holds what they share."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import numpy as np

from capcal_lib.errors import InputError, unknown
from capcal_lib.manifests import Model, Sampling
from capcal_lib.prompts import Messages
from capcal_lib.questions import Question

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


class Engine(Protocol):
    """What every engine can do. ``family`` names it in the digest of a run."""

    family: str

    def sample(self, requests: Sequence[Request], sampling: Sampling, seed: int) -> Iterator[list[Sample]]:
        """Draw every wanted sample, yielding them in groups as they finish."""
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
    from capcal_lib.engines.transformers import TransformersEngine

    return TransformersEngine(model)


def _simulated(model: Model) -> Engine:
    from capcal_lib.engines.simulated import SimulatedEngine

    return SimulatedEngine(model)


ENGINES: dict[str, Callable[[Model], Engine]] = {"simulated": _simulated, "transformers": _transformers}


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


def open_engine(model: Model, name: str | None = None) -> Engine:
    """Open the engine ``name``, or the one in the model's manifest.

    Raises
    ------
    InputError
        For an engine that there is not.

    Examples
    --------
    >>> from capcal_lib.manifests import load_model
    >>> open_engine(load_model("simulated")).family
    'simulated'
    """
    return ENGINES[engine_name(model, name)](model)
