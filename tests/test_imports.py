"""Importing the library is cheap, and imports run one way."""

import ast
import subprocess
import sys

import pytest

from capcal_lib.paths import ROOT

HEAVY = ("torch", "vllm", "transformers", "datasets", "sklearn", "math_verify", "papermill")
ORDER = (  # a module may import from its own line and from those above it
    ("errors", "paths"),
    ("manifests", "inputs"),
    ("questions", "mini"),
    ("prompts",),
    ("engines", "weights"),
    ("store",),
    ("sessions",),
    ("sampling",),
    ("grading",),
    ("counts", "verdicts"),
    ("metrics", "scores", "intervals", "reliability"),
    ("confidence", "exact", "probes"),
    ("passk", "budget", "simulation", "stopping", "recalibration", "power"),
    ("reported", "estimates", "adaptive", "votes"),
    ("status", "verify"),
    ("evaluation",),
    ("live", "tables"),
    ("review", "diagnosis", "convergence", "generalisation"),
    ("merging", "contests"),
    ("paper",),
    ("figures",),
    ("notebook",),
    ("pipeline",),
    ("cli",),
)
LEVEL = {name: level for level, names in enumerate(ORDER) for name in names}
FILES = sorted(
    path
    for path in ROOT.joinpath("capcal_lib").rglob("*.py")
    if path.parent.name + path.name != "capcal_lib__init__.py"
)


def room(module: str) -> str:
    """The first name under capcal_lib: capcal_lib.grading.math is in the room grading."""
    return module.split(".")[1]


def loaded_after(statement: str) -> set[str]:
    code = f"{statement}; import sys; print(*sys.modules)"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


@pytest.mark.parametrize("statement", ["import capcal_lib", "import capcal_lib.cli", "import capcal_lib.metrics"])
def test_importing_loads_nothing_heavy(statement: str) -> None:
    assert loaded_after(statement).isdisjoint(HEAVY)


def test_the_test_above_can_fail() -> None:
    assert "sklearn" in loaded_after("import sklearn")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT / "capcal_lib")))
def test_imports_run_downwards(path) -> None:  # type: ignore[no-untyped-def]
    own = LEVEL[room(".".join(path.relative_to(ROOT).with_suffix("").parts))]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("capcal_lib."):
            assert LEVEL[room(node.module)] <= own, f"{path.name} imports {node.module}"
