"""The one exception for input that a person can put right."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager


class InputError(ValueError):
    """Reject bad input with one line: what is wrong, what is allowed, what to do.

    The command line prints the line and exits with status 2; a notebook shows it without a
    traceback."""

    def _render_traceback_(self) -> list[str]:
        """Tell IPython what to show instead of a traceback."""
        return [f"InputError: {self}"]


class DiskError(InputError):
    """A file could not be read or written; it may be intact, and is left as it is."""


def check_known(what: str, name: object, known: Collection[str], remedy: str = "") -> None:
    """Raise `InputError` if a name is not among the known ones, and say what to do.

    >>> check_known("model", "gpt-9", ["simulated", "smollm2-135m"])
    Traceback (most recent call last):
    ...
    capcal_lib.errors.InputError: unknown model 'gpt-9'; known: simulated, smollm2-135m
    """
    if name in known:
        return
    listed = ", ".join(sorted(known)) or "none"
    message = f"unknown {what} {name!r}; known: {listed}"
    if remedy:
        message += f"; {remedy}"
    raise InputError(message)


EXTRAS = {"datasets": "hub", "huggingface_hub": "hub", "matplotlib": "plots", "seaborn": "plots"}
EXTRAS |= {"papermill": "book", "jupyter_book": "book", "jupytext": "book"}
EXTRAS |= {"torch": "local", "transformers": "local", "gguf": "local", "vllm": "vllm"}


class NotInstalled(ModuleNotFoundError, InputError):
    """Say which extra brings a package that is not installed."""


def not_installed(error: ModuleNotFoundError) -> NotInstalled:
    """Build the error for a package that is not installed, with the extra that brings it."""
    package = str(error.name).partition(".")[0]
    extra = EXTRAS.get(package, "runs")
    return NotInstalled(
        f"this needs {package}, which is not installed; run: pip install 'capcal[{extra}]'",
        name=package,
    )


@contextmanager
def naming_extra() -> Iterator[None]:
    """Name the extra to install if a package that the ``with`` statement imports is missing.

    >>> with naming_extra():  # what is there and broken says itself what is wrong
    ...     raise ImportError("a symbol is not found", name="torch")
    Traceback (most recent call last):
    ImportError: a symbol is not found
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise not_installed(error) from None
