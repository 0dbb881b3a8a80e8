"""Engines draw answers from a model. Each has its own module; this one has what they share.

A sample depends only on the model, the messages, the settings and (seed, question id, sample
index), up to rounding."""

import atexit
import hashlib
import logging
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

import numpy as np

from capcal_lib.errors import InputError, check_known
from capcal_lib.manifests import Model, Sampling
from capcal_lib.places import IN_CHECKOUT
from capcal_lib.questions import Question
from capcal_lib.questions.prompts import Messages, ask_for_answer
from capcal_lib.runs.store import Sample

if TYPE_CHECKING:
    from torch import Tensor

GROUP = "capcal.engines"  # of the entry points by which other packages offer engines: module:class


class NotOpened(InputError):
    """An engine could not be opened, so none of its requests can be answered."""


class Source(NamedTuple):
    """The package of an engine, and what is known about it before it is opened."""

    place: str  # module:class
    modules: tuple[str, ...] = ()  # what it imports
    extra: str = ""  # of this package, which brings the modules


ENGINES = {
    "simulated": Source("capcal_lib.sampling.engines.simulated:SimulatedEngine"),
    "transformers": Source(
        place="capcal_lib.sampling.engines.transformers:TransformersEngine",
        modules=("torch", "transformers"),
        extra="local",
    ),
    "vllm": Source(
        place="capcal_lib.sampling.engines.vllm:VllmEngine",
        modules=("vllm",),
        extra="vllm",
    ),
    "openai": Source("capcal_lib.sampling.engines.openai:OpenAIEngine"),
}

Purpose = Literal["answer", "verbalized"]


@dataclass(frozen=True, slots=True)
class Request:
    """A request to a model about one question."""

    question: Question
    messages: Messages
    sample_indices: tuple[
        int, ...
    ] = ()  # the samples wanted; none for log-probabilities or hidden states
    purpose: Purpose = "answer"  # an answer, or a confidence in words


def answer_requests(
    model: Model,
    questions: Iterable[Question],
    indices: Mapping[str, tuple[int, ...]] = MappingProxyType({}),
) -> list[Request]:
    """Make a request for each question in the model's prompt style, with the sample indices listed
    under its id, if any.
    """
    prompts = model.prompts
    return [
        Request(question, ask_for_answer(question, prompts), indices.get(question.id, ()))
        for question in questions
    ]


@dataclass(frozen=True, slots=True)
class Failure:
    """Samples that could not be drawn. They stay absent, and the next run tries them again."""

    question_id: str
    sample_indices: tuple[int, ...]
    reason: str  # one line, bounded


class Engine(Protocol):
    """The interface of every engine; an engine documents only where it differs. `InputError` for
    what an engine cannot do.
    """

    family: str  # its name in the digest of a run

    def sample(
        self, requests: Sequence[Request], sampling: Sampling, seed: int
    ) -> Iterator[list[Sample] | Failure]:
        """Draw every wanted sample; yield groups of samples as they finish, or a `Failure` for
        those that could not be drawn; an empty group while nothing finishes, so that what is done
        is written.
        """
        ...

    def next_token_logprobs(
        self, requests: Sequence[Request], words: Sequence[str], sampling: Sampling, seed: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return, for each word, the log-probability that it is the first token of the answer, and
        the number of tokens spent.

        A model that reasons does so first, once, with these settings; its template marks where the
        answer begins. Log-probabilities have shape (n_requests, n_words), in [-inf, 0], at
        temperature 1; NaN if a word is not a single token, the engine does not report it, or the
        reasoning reached no answer. Tokens up to the one that was read have shape (n_requests,): 1
        without reasoning, 0 without a reply."""
        ...

    def hidden_states(self, requests: Sequence[Request], layers: str = "mean") -> np.ndarray:
        """Return the last prompt token's hidden states, pooled over layers by `pool_layers`, shape
        (n_requests, hidden_size), float32.

        The layers are the embedding and every layer's output, the last one after the final norm, as
        in transformers' ``output_hidden_states``."""
        ...

    def close(self) -> None:
        """Free the model's memory and processes; the engine cannot be used afterwards."""
        ...


def pool_layers(states: "Tensor", layers: str) -> "Tensor":
    """Pool the states of all layers, shape (n_layers + 1, hidden_size): their ``mean``, their
    maximum (``max``), or one layer, from 0, the embedding, to n_layers.
    """
    if layers == "mean":
        return states.mean(0)
    if layers == "max":
        return states.amax(0)
    if int(layers) >= len(states):
        raise InputError(f"the model's layers are 0 to {len(states) - 1}; got {layers}")
    return states[int(layers)]


def warn_unanswered(reasons: Iterable[str], requests: int) -> None:
    """Log how many requests got no answer, if any, and the commonest reasons."""
    if counted := Counter(reasons):
        why = "; ".join(f"{number} times: {reason}" for reason, number in counted.most_common(3))
        logging.getLogger(__name__).warning(
            f"{counted.total()} of {requests} questions were not answered: {why}"
        )


def question_seed(seed: int, question_id: str) -> int:
    """Return the seed of a question's sample 0; that of sample i is i more.

    It has 48 bits, which every reader of JSON keeps whole.
    """
    return hashed(seed, question_id) % (1 << 48)


def hashed(*key: object) -> int:
    """Return a 128-bit number that depends on a key, as a seed for random numbers."""
    return int.from_bytes(hashlib.sha256(repr(key).encode()).digest()[:16], "little")


def engine_name(model: Model, name: str | None = None) -> str:
    """Return the name of the engine to use: ``name``, or the one in the model's manifest;
    `InputError` if unknown.
    """
    name = name or model.engine
    known = engine_sources()
    check_known("engine", name, known, "choose one with --engine")
    return name


def engine_sources() -> dict[str, Source]:
    """Return the known engines by name: ours, and those of other packages."""
    return {point.name: Source(point.value) for point in entry_points(group=GROUP)} | ENGINES


def check_engine(model: Model, name: str | None = None, *, url: str | None = None) -> str:
    """Return the name of the engine to use, like `engine_name`; `InputError` if it cannot be opened
    here: unknown, not installed, or a server without an address.
    """
    name = engine_name(model, name)
    source = engine_sources()[name]
    lacking = [module for module in source.modules if find_spec(module) is None]
    if lacking:
        package = f"-e '.[{source.extra}]'" if IN_CHECKOUT else f"'capcal[{source.extra}]'"
        raise InputError(
            f"{model.name!r} runs with {name}, which needs {' and '.join(lacking)}, not installed; "
            f"run: pip install {package}; or use a server: --engine openai, with its address in "
            "OPENAI_BASE_URL"
        )
    if name != "openai":
        return name
    if model.prompts.completion:
        raise InputError(
            f"{model.name!r} is asked by completion, which the openai engine cannot do; use another"
        )
    if not (url or os.environ.get("OPENAI_BASE_URL")):
        raise InputError(
            "the openai engine needs the address of a server (and OPENAI_API_KEY, if the server "
            "wants a key); for instance: export OPENAI_BASE_URL=http://127.0.0.1:8000/v1"
        )
    return name


def open_engine(
    model: Model, name: str | None = None, *, url: str | None = None, in_flight: int | None = None
) -> Engine:
    """Open the engine ``name``, or the one in the model's manifest. `InputError` as in
    `check_engine`, and `NotOpened` if the model cannot be loaded or the server cannot be reached.

    One model is in memory at a time: an open engine is reused for the same model, and closed before
    another is opened; ``simulated`` and ``openai`` hold no model. ``url`` is the address of a
    server (default: ``OPENAI_BASE_URL``), and ``in_flight`` the largest number of samples requested
    at a time; other engines need neither.

    >>> from capcal_lib.manifests import load_model
    >>> open_engine(load_model("simulated")).family
    'simulated'
    """
    name = check_engine(model, name, url=url)
    module, _, kind = engine_sources()[name].place.partition(":")
    how_asked = {"sampling", "by_dataset", "prompt_style", "notes"}
    key = name, model.model_dump_json(exclude=how_asked), model.prompts.completion
    if key in _open:
        return _open[key]
    opened: Callable[..., Engine] = getattr(import_module(module), kind)
    try:
        if name == "openai":
            return opened(model, base_url=url, in_flight=in_flight)
        if name != "simulated":
            close_engine()
        engine = opened(model)
    except InputError as error:
        raise NotOpened(*error.args) from error
    if name != "simulated":
        _open[key] = engine
    return engine


def close_engine() -> None:
    """Close the engine that holds a model, if one is open."""
    while _open:
        _, engine = _open.popitem()
        if hasattr(engine, "close"):  # another package's may have none
            engine.close()


_open: dict[tuple[object, ...], Engine] = {}  # the one that holds a model
atexit.register(close_engine)  # before what the engine itself does at the end
