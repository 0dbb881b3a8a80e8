"""The one exception for input that a person can put right."""

from collections.abc import Iterable


class InputError(ValueError):
    """Refuse bad input in one line: what was wrong, what is allowed, what to do.

    The command line prints the line and exits with status 2; a notebook shows it without a traceback.
    """

    def _render_traceback_(self) -> list[str]:
        """Tell IPython what to show instead of a traceback."""
        return [f"InputError: {self}"]


def unknown(what: str, name: object, allowed: Iterable[str]) -> InputError:
    """Build the error for a name that is not in a closed list.

    Examples
    --------
    >>> print(unknown("model", "gpt-9", ["simulated", "smollm2-135m"]))
    unknown model 'gpt-9'; known: simulated, smollm2-135m
    """
    return InputError(f"unknown {what} {name!r}; known: {', '.join(sorted(allowed)) or 'none'}")
