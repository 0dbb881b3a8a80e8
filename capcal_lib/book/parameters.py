"""The parameters of a page: checked, and the run store that they name."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from capcal_lib.errors import InputError, check_known
from capcal_lib.places import ROOT
from capcal_lib.results.scores import Protocol

ALLOWED: dict[str | type, Any] = {  # of parameters, by name or type
    "k_eval": Annotated[int, Field(ge=2)],
    "n_questions": Annotated[int, Field(ge=1)],
    "protocol": Protocol,
    "risk": Annotated[float, Field(ge=0, lt=1)],
    int: Annotated[int, Field(ge=0)],
}
INJECTED = "# Parameters"  # the first line of the cell in which papermill puts what it was given


def check_parameters(namespace: Mapping[str, Any]) -> None:
    """Refuse parameters that the notebook does not declare, and values of another type.

    papermill only warns of the first and does not look at the second. The declared ones are the
    annotated names of the notebook; the given ones are those assigned in a cell that papermill
    injected.

    >>> check_parameters({"__annotations__": {"k": int}, "k": "three",
    ...     "In": ["# Parameters\\nk = 'three'"]})
    Traceback (most recent call last):
    ...
    capcal_lib.errors.InputError: parameter k should be a valid integer; got 'three'
    """
    declared: dict[str, type] = namespace.get("__annotations__", {})
    injected = "\n".join(cell for cell in namespace.get("In", ()) if cell.startswith(INJECTED))
    for given in re.findall(r"^(\w+) = ", injected, flags=re.MULTILINE):
        check_known("parameter", given, declared)
    for name, kind in declared.items():
        try:
            allowed = TypeAdapter(ALLOWED.get(name, ALLOWED.get(kind, kind)))
            allowed.validate_python(namespace[name], strict=True)
        except ValidationError as error:
            wrong = error.errors()[0]["msg"].replace("Input", f"parameter {name}")
            raise InputError(f"{wrong}; got {namespace[name]!r}") from None


def open_store(path: str | Path) -> Path:
    """Find the folder of a run store, from where one stands, or else from the root of the
    repository; or refuse it.

    >>> open_store("runs/recorded").name
    'recorded'
    """
    for store in (Path(path), ROOT / path):
        if store.is_dir():
            return store
    raise InputError(
        f"parameter store names no folder: {str(path)!r}; looked in {Path.cwd()} and {ROOT}. Give "
        "one with -p store DIR: "
        "a store made by `capcal sample` or `capcal import`, or a checkout's runs/recorded"
    )
