"""Capability calibration of language models.

Does a model's confidence match mu, the probability that a freshly sampled answer
to this question is right?
"""

from importlib import import_module
from types import ModuleType

__version__ = "0.1.0"

__all__ = [
    "applications",
    "book",
    "claims",
    "confidence",
    "disk",
    "errors",
    "grading",
    "io",
    "manifests",
    "metrics",
    "places",
    "plots",
    "probe_names",
    "probes",
    "questions",
    "reported",
    "reproduce",
    "results",
    "rows",
    "runs",
    "sampling",
    "shifts",
    "studies",
    "text",
]


def __getattr__(name: str) -> ModuleType:
    """Import a room when it is first asked for."""
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(
        f"module {__name__!r} has no attribute {name!r}; its rooms: {', '.join(__all__)}"
    )


def __dir__() -> list[str]:
    return ["__version__", *__all__]
