"""Importing the library is cheap, and imports between rooms run one way."""

import ast
import importlib
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import capcal_lib
from capcal_lib.places import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
HEAVY = ("torch", "vllm", "transformers", "datasets", "sklearn", "math_verify", "papermill")
LACKING = """
import sys
class Lacking:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {lacking}:
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Lacking())
{body}
"""
ROOMS = [  # each may import from those above it
    "text",
    "errors",
    "disk",
    "places",
    "probe_names",
    "rows",
    "manifests",
    "shifts",
    "metrics",
    "applications",
    "questions",
    "reported",
    "claims",
    "runs",
    "sampling",
    "grading",
    "confidence",
    "probes",
    "plots",
    "results",
    "io",
    "studies",
    "reproduce",
    "book",
    "cli",
    "__main__",
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


def python(code: str, folder: Path = ROOT) -> list[str]:
    """Run a program in a process of its own; return the lines that it prints."""
    environment = {name: value for name, value in os.environ.items() if name != "CAPCAL_DATA_DIR"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


def without(extras: tuple[str, ...]) -> list[str]:
    """Return the packages of extras, which a program is to lack; scikit-learn is of several."""
    lines = [line for name in extras for line in EXTRAS[name]]
    return ["sklearn", *(Requirement(line).name.replace("-", "_") for line in lines)]


def test_importing_loads_nothing_heavy() -> None:
    rooms = "import capcal_lib.cli, capcal_lib.metrics, capcal_lib.results.results, sys"
    loaded = python(f"{rooms}; print(*sys.modules, sep='\\n')")
    assert "capcal_lib.results.results" in loaded
    assert set(loaded).isdisjoint(HEAVY)


COMMANDS = """
import contextlib, io, json
from capcal_lib.cli import main
for words in {asked}:
    sys.argv = ["capcal", *words]
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            main()
        except SystemExit as ended:
            status = ended.code or 0
    print(json.dumps([status, said.getvalue()]))
"""


def test_scoring_a_file_takes_a_small_install_and_what_lacks_is_named(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("question_id,confidence,correct,total\na,.5,1,2\nb,1,2,2\n")
    logs = ROOT / "tests" / "io" / "logs"
    asked = {
        "score mine.csv": (0, "too few to tell mine.csv and"),
        f"score {logs / 'counts.json'}": (0, "verdicts by match"),
        f"score {logs / 'counts.eval'}": (0, "verdicts by match"),
        f"score {logs / 'samples_counts.jsonl'}": (0, "graded by the rules"),
        "score mine.csv --html a.html": (2, "pip install 'capcal[plots]'\n"),
        "sample --model simulated --dataset mini-exam --k 1": (2, "pip install 'capcal[runs]'\n"),
        "score --model smollm2-135m": (2, "pip install 'capcal[runs]'\n"),
        "notebooks --model simulated": (2, "pip install 'capcal[book]'\n"),
        "book": (2, "pip install 'capcal[book]'\n"),
    }
    lacking = [*without(("runs", "hub", "plots")), "papermill", "jupyter_book"]
    assert {"pyarrow", "datasets", "matplotlib", "math_verify"} < set(lacking)
    body = COMMANDS.format(asked=[line.split() for line in asked])
    printed = python(LACKING.format(lacking=lacking, body=body), tmp_path)
    for line, (status, said) in zip(printed, asked.values(), strict=True):
        ended, text = json.loads(line)
        assert ended == status, text
        assert text.endswith(said) if status else said in text
        assert not status or text.count("\n") == 1


LIBRARY_CALLS = {
    "c.plots.ReliabilityDisplay.from_counts([0.5], [1], [2])": "plots",
    "c.plots.palette(['P(True)'])": "plots",
    "next(c.rows.stream_rows(Path('mine.parquet')))": "runs",
    "c.metrics.Calibrator": "runs",
    "c.runs.open_runs('store')": "runs",
    "c.sampling": "runs",
    "c.confidence": "runs",
    "c.probes": "runs",
    "c.results.load_results": "runs",
    "c.io.import_samples": "runs",
    "c.reproduce": "runs",
    "c.grading.grade('x + 1', c.questions.Answer('math', '2 x'))": "runs",
    "c.questions.load_questions('gsm8k')": "hub",
}


def test_calls_of_the_library_name_the_extra_that_they_lack(tmp_path: Path) -> None:
    (tmp_path / "mine.parquet").write_bytes(b"")
    body = f"""
import capcal_lib as c
from pathlib import Path
for call in {[*LIBRARY_CALLS]}:
    try:
        eval(call)
    except Exception as error:
        refused = isinstance(error, ImportError) and isinstance(error, c.errors.InputError)
        print(call, error if refused else repr(error), sep=": ")
"""
    lacking = without(("runs", "hub", "plots"))
    printed = python(LACKING.format(lacking=lacking, body=body), tmp_path)
    for line, (call, extra) in zip(printed, LIBRARY_CALLS.items(), strict=True):
        assert line.startswith(f"{call}: this needs ")
        assert line.endswith(f", which is not installed; run: pip install 'capcal[{extra}]'")


def test_rooms_are_attributes_that_load_when_asked_for() -> None:
    names = "*(name for name in sys.modules if name.startswith('capcal_lib'))"
    code = f"import capcal_lib, sys; print({names}); print(*capcal_lib.__all__)"
    loaded, rooms = python(code)
    assert loaded.split() == ["capcal_lib"]
    assert rooms.split() == sorted(set(ROOMS) - {"cli", "__main__"})
    assert set(rooms.split()) < set(dir(capcal_lib))
    assert capcal_lib.metrics.capability_brier(0.5, [1, 2], 2) == 0.125
    with pytest.raises(AttributeError, match="its rooms: applications, "):
        capcal_lib.metric  # noqa: B018


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


@pytest.mark.parametrize("room", sorted(set(ROOMS) - {"cli", "__main__"}))
def test_a_room_has_all_that_it_offers(room: str) -> None:
    module = importlib.import_module(f"capcal_lib.{room}")
    if hasattr(module, "__path__") and room not in ("book", "studies"):
        assert module.__all__
        assert [name for name in module.__all__ if not hasattr(module, name)] == []
