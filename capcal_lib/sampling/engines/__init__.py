"""Engines draw answers from a model: one module an engine, what they share in ``base``."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from importlib.util import find_spec

from capcal_lib.errors import InputError, unknown
from capcal_lib.manifests import Model, load_prompts
from capcal_lib.sampling.engines.base import (
    SAMPLES_A_REQUEST,
    Engine,
    EnumeratingEngine,
    Failure,
    Layers,
    LikelyAnswers,
    Request,
    Sample,
)

__all__ = [
    "ENGINES",
    "REPRODUCIBLE",
    "SAMPLES_A_REQUEST",
    "Engine",
    "EnumeratingEngine",
    "Failure",
    "Layers",
    "LikelyAnswers",
    "Request",
    "Sample",
    "check_engine",
    "engine_name",
    "engines_stay_open",
    "open_engine",
]

ENGINES = {  # the module of this name holds the class
    "simulated": "SimulatedEngine",
    "transformers": "TransformersEngine",
    "vllm": "VllmEngine",
    "openai": "OpenAIEngine",
}

REPRODUCIBLE = {
    "simulated": "yes: the same seed gives the same rows",
    "transformers": "up to rounding, coarse in bfloat16: the same seed gives the same rows, whatever else is drawn",
    "vllm": "up to rounding: the same seed gives the same rows, but sums depend on the batch, much so in bfloat16",
    "openai": "not promised: the seed of every sample is sent, but servers differ in what they make of it",
}

_OPEN: ContextVar[dict[tuple[object, ...], Engine] | None] = ContextVar("open engines", default=None)


def engine_name(model: Model, name: str | None = None) -> str:
    """Return the name of the engine to use: ``name``, or the one in the model's manifest; `InputError` if unknown."""
    name = name or model.engine
    if name not in ENGINES:
        raise InputError(f"{unknown('engine', name, ENGINES)}; choose one with --engine")
    return name


def check_engine(model: Model, name: str | None = None) -> None:
    """Check that the engine can be opened here, before any work is done for it.

    Raises
    ------
    InputError
        For an unknown engine, vLLM where it is not installed, or a server that is not named.
    """
    name = engine_name(model, name)
    if name == "vllm" and find_spec("vllm") is None:
        raise InputError(
            f"{model.name!r} is to be drawn with vLLM, which is not installed; on Linux with a GPU say: "
            "pip install -e '.[vllm]'; or name a server of the model with --engine openai and OPENAI_BASE_URL"
        )
    if name == "openai" and load_prompts(model.prompt_style).completion:
        raise InputError(f"{model.name!r} is asked by completion, which the openai engine cannot; take another")
    if name == "openai" and not os.environ.get("OPENAI_BASE_URL"):
        raise InputError(
            "the openai engine needs the address of a server; say for instance: export OPENAI_BASE_URL="
            "http://127.0.0.1:8000/v1 (and OPENAI_API_KEY, where the server wants a key)"
        )


def open_engine(model: Model, name: str | None = None) -> Engine:
    """Open the engine ``name``, or the one in the model's manifest; `InputError` as `check_engine`.

    Examples
    --------
    >>> from capcal_lib.manifests import load_model
    >>> open_engine(load_model("simulated")).family
    'simulated'
    """
    check_engine(model, name)
    name, kept = engine_name(model, name), _OPEN.get()
    key = name, model.name, model.prompt_style, model.dtype
    if kept is not None and key in kept:
        return kept[key]
    engine: Engine = getattr(import_module(f"{__name__}.{name}"), ENGINES[name])(model)
    if kept is not None:
        kept.clear()  # one model is in memory at a time
        kept[key] = engine
    return engine


@contextmanager
def engines_stay_open() -> Iterator[None]:
    """Keep the engine that is opened within, so that several steps in a row load the model once."""
    token = _OPEN.set({})
    try:
        yield
    finally:
        _OPEN.reset(token)
