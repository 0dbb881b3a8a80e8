"""Importing the library is cheap, and imports between rooms run one way."""

import ast
import subprocess
import sys

import pytest

from capcal_lib.manifests import ROOT

HEAVY = ("torch", "vllm", "transformers", "datasets", "sklearn", "math_verify", "papermill")
ROOMS = [  # each may import from those above it
    "errors",
    "manifests",
    "metrics",
    "applications",
    "questions",
    "reported",
    "sampling",
    "grading",
    "confidence",
    "probes",
    "results",
    "reproduce",
    "book",
    "cli",
]


def imported_rooms(path) -> set[str]:  # type: ignore[no-untyped-def]
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "capcal_lib":
            parts = node.module.split(".")[1:]
            names |= {parts[0]} if parts else {alias.name for alias in node.names}
    return names


@pytest.mark.parametrize("statement", ["import capcal_lib", "import capcal_lib.cli", "import capcal_lib.metrics"])
def test_importing_loads_nothing_heavy(statement: str) -> None:
    code = f"{statement}; import sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()).isdisjoint(HEAVY)


def test_imports_run_one_way() -> None:
    library = ROOT / "capcal_lib"
    wrong = []
    for path in library.rglob("*.py"):
        room = path.relative_to(library).parts[0].removesuffix(".py")
        if room != "__init__":
            above = ROOMS[: ROOMS.index(room) + 1]
            wrong += [f"{path.relative_to(library)} imports {name}" for name in imported_rooms(path) - set(above)]
    assert wrong == []
