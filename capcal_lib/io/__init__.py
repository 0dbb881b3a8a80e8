"""What people bring: tables of confidences and counts, logs of samples; how they are scored and
imported.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from capcal_lib.io.importing import import_samples
    from capcal_lib.io.score_file import score_files

__all__ = ["import_samples", "score_files"]
MODULES = {"import_samples": "importing", "score_files": "score_file"}


def __getattr__(name: str) -> Any:
    """Import a name when it is first asked for: to score a file takes no run store."""
    if name in MODULES:
        return getattr(import_module(f"{__name__}.{MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
