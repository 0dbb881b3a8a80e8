"""What all engines share: what is asked of them, what they give, and how a sample gets its seed."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import numpy as np

from capcal_lib.errors import InputError
from capcal_lib.manifests import Model, Sampling
from capcal_lib.questions import Question
from capcal_lib.questions.prompts import Messages

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
class Failure:
    """Samples that could not be drawn. They stay absent, and the next run tries them again."""

    question_id: str
    sample_indices: tuple[int, ...]
    reason: str  # one line, bounded


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
    """What every engine can do; each says only where it differs.

    A sample follows from the model, the messages, the settings and (seed, question id, sample index) alone, up to
    rounding. An `InputError` is raised for a prompt that leaves no room for an answer in ``context_tokens``, and for
    a model that the engine cannot do.
    """

    family: str  # its name in the digest of a run

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

        The last layer's is taken after the final norm, as in transformers' ``output_hidden_states``. ``mean`` and
        ``max`` pool these layers + 1 states, number by number: shape (n_requests, hidden_size). ``all`` keeps them:
        shape (n_requests, layers + 1, hidden_size). Always float32, and pooled as such.
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


def consecutive(indices: Sequence[int], most: int = SAMPLES_A_REQUEST) -> Iterator[tuple[int, ...]]:
    """Cut sample indices into runs of consecutive ones, ``most`` at most: what one request to a server asks for.

    Few enough that one long question does not hold many, and enough that its prompt is seldom read.

    Examples
    --------
    >>> list(consecutive((0, 1, 2, 5, 6), most=2))
    [(0, 1), (2,), (5, 6)]
    """
    start = 0
    for end in range(1, len(indices) + 1):
        if end == len(indices) or indices[end] != indices[end - 1] + 1 or end - start == most:
            yield tuple(indices[start:end])
            start = end


def check_shape(model: Model, layers: int, hidden_size: int) -> None:
    """Refuse a manifest that gives another number of layers or hidden size than the model has that was opened."""
    for what, said, found in (("layers", model.layers, layers), ("hidden_size", model.hidden_size, hidden_size)):
        if said not in (None, found):
            raise InputError(f"the manifest of {model.name!r} has {what}: {said}, the model {found}; correct it")


def question_seed(seed: int, question_id: str) -> int:
    """Return the seed of a question's sample 0; that of sample i is i more, as vLLM numbers the choices of a request.

    It has 48 bits, which every reader of JSON keeps whole.
    """
    return int.from_bytes(hashlib.sha256(repr((seed, question_id)).encode()).digest()[:6], "little")
