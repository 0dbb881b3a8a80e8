"""Importing the library is cheap, and imports between rooms run one way."""

import ast
import importlib
import inspect
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
{call}
"""
COMMAND = "from capcal_lib.cli import main; main()"
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


@pytest.mark.parametrize(
    "statement",
    [
        "import capcal_lib",
        "import capcal_lib.cli",
        "import capcal_lib.metrics",
        "from capcal_lib.results import load_results",
    ],
)
def test_importing_loads_nothing_heavy(statement: str) -> None:
    code = f"{statement}; import sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()).isdisjoint(HEAVY)


def test_scoring_a_file_takes_a_small_install(tmp_path: Path) -> None:
    lines = [line for name in ("runs", "hub", "plots") for line in EXTRAS[name]]
    lacking = ["sklearn", *(Requirement(line).name.replace("-", "_") for line in lines)]
    assert {"pyarrow", "datasets", "matplotlib", "math_verify"} < set(lacking)
    (tmp_path / "mine.csv").write_text("question_id,confidence,correct,total\na,.5,1,2\nb,1,2,2\n")
    code = LACKING.format(lacking=lacking, call=COMMAND)
    logs = ROOT / "tests" / "io" / "logs"
    for asked, status, said in (
        (["score", "mine.csv"], 0, "too few to tell mine.csv and"),
        (["score", str(logs / "counts.json")], 0, "verdicts by match"),
        (["score", str(logs / "counts.eval")], 0, "verdicts by match"),
        (["score", str(logs / "samples_counts.jsonl")], 0, "graded by the rules"),
        (["score", "mine.csv", "--html", "a.html"], 2, "pip install 'capcal[plots]'"),
        (["sample", "--model", "simulated", "--dataset", "mini-exam", "--k", "1"], 2, "[runs]'"),
    ):
        command = [sys.executable, "-c", code, *asked]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stderr
        assert said in (done.stderr if status else done.stdout)
        assert not (status and done.stdout)
        assert "Traceback" not in done.stderr


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
    lines = [line for name in ("runs", "hub", "plots") for line in EXTRAS[name]]
    lacking = ["sklearn", *(Requirement(line).name.replace("-", "_") for line in lines)]
    tried = f"""
import capcal_lib as c
from pathlib import Path
for call in {[*LIBRARY_CALLS]}:
    try:
        eval(call)
    except Exception as error:
        refused = isinstance(error, ImportError) and isinstance(error, c.errors.InputError)
        print(call, error if refused else repr(error), sep=": ")
"""
    done = subprocess.run(
        [sys.executable, "-c", LACKING.format(lacking=lacking, call=tried)],
        env={name: value for name, value in os.environ.items() if name != "CAPCAL_DATA_DIR"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    said = done.stdout.splitlines()
    assert len(said) == len(LIBRARY_CALLS)
    for line, (call, extra) in zip(said, LIBRARY_CALLS.items(), strict=True):
        assert line.startswith(f"{call}: this needs ")
        assert line.endswith(f", which is not installed; run: pip install 'capcal[{extra}]'")


@pytest.mark.parametrize(
    ("typed", "extra"),
    [
        ("sample --model simulated --dataset mini-exam --k 1", "runs"),
        ("score --model smollm2-135m", "runs"),
        ("notebooks --model simulated", "book"),
        ("book", "book"),
    ],
)
def test_the_extra_that_is_named_brings_what_is_lacking(
    typed: str, extra: str, tmp_path: Path
) -> None:
    lacking = ["pyarrow", "papermill", "jupyter_book", "torch", "vllm"]
    command = [sys.executable, "-c", LACKING.format(lacking=lacking, call=COMMAND), *typed.split()]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.endswith(f"not installed; run: pip install 'capcal[{extra}]'\n")


def test_rooms_are_attributes_that_load_when_asked_for() -> None:
    code = (
        "import capcal_lib as c, sys; print(*(m for m in sys.modules if m[:10] == "
        "c.__name__), '/', *c.__all__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded, rooms = done.stdout.split("/")
    assert loaded.split() == ["capcal_lib"]
    assert rooms.split() == sorted(set(ROOMS) - {"cli", "__main__"})
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


@pytest.mark.parametrize("room", sorted(set(ROOMS) - {"cli", "__main__"}))
def test_a_room_has_all_that_it_offers(room: str) -> None:
    module = importlib.import_module(f"capcal_lib.{room}")
    if hasattr(module, "__path__") and room not in ("book", "studies"):
        assert module.__all__
        assert [name for name in module.__all__ if not hasattr(module, name)] == []
