"""Every notebook runs for every model in the manifests, from what is recorded, with no network."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import jupytext
import matplotlib as mpl
import pytest

from capcal_lib.book.pipeline import DEFAULT_MODEL, notebook_names
from capcal_lib.manifests import NOTEBOOKS, RECORDED_RUNS, ROOT, model_names
from capcal_lib.results.evaluation import evaluated

PAIRS = [(name, model) for name in notebook_names() for model in model_names()]
PAIRS.remove(("00_live_sampling", DEFAULT_MODEL))  # a minute of real sampling: `make book` runs it


def run_cells(name: str, **parameters: object) -> dict[str, Any]:
    """Run a notebook's code the way papermill does: its parameters, then the given ones, then the rest."""
    mpl.use("agg")
    cells = [cell for cell in jupytext.read(NOTEBOOKS / f"{name}.py").cells if cell.cell_type == "code"]
    injected = "# Parameters\n" + "\n".join(f"{key} = {value!r}" for key, value in parameters.items())
    namespace: dict[str, Any] = {"__name__": "__main__", "In": [injected]}
    for code in (cells[0].source, injected, *(cell.source for cell in cells[1:])):
        exec(compile(code, name, "exec"), namespace)
    return namespace


@pytest.mark.parametrize(("name", "model"), PAIRS, ids=["-".join(pair) for pair in PAIRS])
def test_it_runs(name: str, model: str) -> None:
    study = run_cells(name, model=model)["study"]
    assert study.model.name == model
    html = study._repr_html_()
    if model == "simulated":
        assert all(one.sampled and one.evidence == "simulated" for one in study.evaluations)
    elif recorded := evaluated(RECORDED_RUNS, model):
        assert sorted(one.dataset.name for one in study.evaluations) == recorded
        assert all(one.sampled and one.evidence == "measured" for one in study.evaluations)
    else:
        assert not any(one.sampled for one in study.evaluations)
        assert "nothing here is measured" in html
        assert f"capcal sample --model {model}" in html
        assert ("reported" in html) == study.reported


def test_another_seed_draws_other_numbers() -> None:
    one, same, other = (
        run_cells("06_budget_allocation", model="gpt-oss-20b", seed=seed)["study"] for seed in (0, 0, 1)
    )
    counts = [study.evaluations[0].counts.correct for study in (one, same, other)]
    assert (counts[0] == counts[1]).all()
    assert (counts[0] != counts[2]).any()


def papermill(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("papermill")), "notebooks/06_budget_allocation.ipynb", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=180, check=False)


def test_papermill_prints_the_notebook_when_no_output_is_named() -> None:
    done = papermill("-p", "model", "gpt-oss-20b")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("{")
    assert "gpt-oss-20b" in done.stdout


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("modle", "gpt-oss-20b", "InputError: unknown parameter 'modle'; known: k_eval, model, seed, store"),
        ("k_eval", "many", "InputError: parameter k_eval must be of type int; got 'many', which is of type str"),
    ],
)
def test_papermill_ends_with_one_clear_line(name: str, value: str, message: str, tmp_path: Path) -> None:
    done = papermill(str(tmp_path / "out.ipynb"), "-p", name, value)
    assert done.returncode != 0
    assert message in done.stderr
