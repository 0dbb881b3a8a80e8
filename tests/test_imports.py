"""Importing the library is cheap, and imports between rooms run one way."""

import ast
import importlib
import inspect
import subprocess
import sys

import pytest

import capcal_lib
from capcal_lib.manifests import ROOT

HEAVY = ("torch", "vllm", "transformers", "datasets", "sklearn", "math_verify", "papermill")
ROOMS = [  # each may import from those above it
    "errors",
    "manifests",
    "metrics",
    "applications",
    "questions",
    "reported",
    "runs",
    "sampling",
    "grading",
    "confidence",
    "probes",
    "results",
    "plots",
    "reproduce",
    "book",
    "cli",
]


def imported_rooms(path) -> set[str]:  # type: ignore[no-untyped-def]
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if (
            isinstance(node, ast.ImportFrom)
            and node.module
            and node.module.split(".")[0] == "capcal_lib"
        ):
            parts = node.module.split(".")[1:]
            names |= {parts[0]} if parts else {alias.name for alias in node.names}
    return names


@pytest.mark.parametrize(
    "statement", ["import capcal_lib", "import capcal_lib.cli", "import capcal_lib.metrics"]
)
def test_importing_loads_nothing_heavy(statement: str) -> None:
    code = f"{statement}; import sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()).isdisjoint(HEAVY)


def test_rooms_are_attributes_that_load_when_asked_for() -> None:
    code = (
        "import capcal_lib as c, sys; print(*(m for m in sys.modules if m[:10] == "
        "c.__name__), '/', *c.__all__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded, rooms = done.stdout.split("/")
    assert loaded.split() == ["capcal_lib"]
    assert rooms.split() == sorted(set(ROOMS) - {"cli"})
    assert set(rooms.split()) < set(dir(capcal_lib))
    assert capcal_lib.metrics.capability_brier(0.5, [1, 2], 2) == 0.125
    with pytest.raises(AttributeError, match="its rooms: applications, "):
        capcal_lib.metric  # noqa: B018


@pytest.mark.parametrize("room", ["metrics", "applications", "probes"])
def test_signatures_are_short(room: str) -> None:
    functions = inspect.getmembers(getattr(capcal_lib, room), inspect.isfunction)
    assert functions
    for name, function in functions:
        assert len(str(inspect.signature(function))) < 300, name


def test_imports_run_one_way() -> None:
    library = ROOT / "capcal_lib"
    wrong = []
    for path in library.rglob("*.py"):
        room = path.relative_to(library).parts[0].removesuffix(".py")
        if room != "__init__":
            above = ROOMS[: ROOMS.index(room) + 1]
            wrong += [
                f"{path.relative_to(library)} imports {name}"
                for name in imported_rooms(path) - set(above)
            ]
    assert wrong == []


@pytest.mark.parametrize("room", sorted(set(ROOMS) - {"cli"}))
def test_a_room_has_all_that_it_offers(room: str) -> None:
    module = importlib.import_module(f"capcal_lib.{room}")
    if hasattr(module, "__path__") and room != "book":
        assert module.__all__
        assert [name for name in module.__all__ if not hasattr(module, name)] == []
