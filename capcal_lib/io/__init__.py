"""What people bring: tables of confidences and counts, logs of samples; how they are scored and
imported.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from capcal_lib.errors import naming_extra

if TYPE_CHECKING:
    from capcal_lib.io.importing import import_samples
    from capcal_lib.io.score_file import score_files, score_table

__all__ = ["import_samples", "score_files", "score_table"]


def __getattr__(name: str) -> Any:
    """Import a name when it is first asked for: to score a file takes no run store."""
    if name in __all__:
        module = "importing" if name == "import_samples" else "score_file"
        with naming_extra():
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
