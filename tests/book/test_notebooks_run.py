"""Every notebook runs from what is recorded, with no network: for a measured model and for a
reported one.
"""

import json
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import jupytext
import matplotlib as mpl
import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pytest
from click.testing import CliRunner, Result
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from scipy.stats import spearmanr

from capcal_lib.book.page import EndOfPage
from capcal_lib.book.pipeline import book_pages
from capcal_lib.confidence.of_run import estimate, place_confidence
from capcal_lib.grading.labels import load_labels, measured_error
from capcal_lib.grading.verdicts import grade_run
from capcal_lib.io.importing import import_samples
from capcal_lib.places import NOTEBOOKS, OWN_MANIFESTS, RECORDED_RUNS, ROOT
from capcal_lib.reproduce import RECIPES, Order, reproduce
from capcal_lib.results import estimates
from capcal_lib.runs import open_runs
from capcal_lib.sampling.draw import sample
from tests.folders import sample_unlike_totals

# `make book` executes every page with the model that it opens with; here each is run with one of
# the paper.
REPORTED = "gpt-oss-20b"
NAMES = [*book_pages()]


def run_cells(name: str, until: str = "", **parameters: object) -> dict[str, Any]:
    """Run a notebook's code the way papermill does: its parameters, then the given ones, then the
    rest, or only what makes a name.
    """
    mpl.use("agg")
    cells = [
        cell for cell in jupytext.read(NOTEBOOKS / f"{name}.py").cells if cell.cell_type == "code"
    ]
    injected = "# Parameters\n" + "\n".join(
        f"{key} = {value!r}" for key, value in parameters.items()
    )
    namespace: dict[str, Any] = {"__name__": "__main__", "In": [injected]}
    with suppress(EndOfPage):
        for code in (cells[0].source, injected, *(cell.source for cell in cells[1:])):
            exec(compile(code, name, "exec"), namespace)
            plt.close("all")
            if until in namespace:
                break
    return namespace


@pytest.mark.parametrize("name", NAMES)
def test_it_runs(name: str) -> None:
    assert run_cells(name, model=REPORTED)["model"] == REPORTED


@pytest.mark.parametrize("name", ["09_statements", "10_uses"])
def test_a_page_of_all_models_says_that_its_own_has_to_have_samples(name: str) -> None:
    source = (NOTEBOOKS / f"{name}.py").read_text(encoding="utf-8")
    assert "# one of `capcal models` with samples" in source
    assert "models" not in run_cells(name, model="gpt-oss-20b")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
def test_another_model_in_a_live_kernel_shows_what_it_would_in_a_new_one() -> None:
    """As in JupyterLab: a page ends for one model, and all its cells run again for the next."""
    page = nbformat.read(NOTEBOOKS / "04_main_table.ipynb", as_version=4)
    client = NotebookClient(page, kernel_name="python3", resources={"metadata": {"path": ROOT}})
    code = [(place, cell) for place, cell in enumerate(page.cells) if cell.cell_type == "code"]
    parameters = code[0][1]
    page_parameters = parameters.source
    with client.setup_kernel():
        for model in ("gpt-oss-20b", "simulated"):
            parameters.source = re.sub(
                "model: str = .*", f"model: str = {model!r}", page_parameters
            )
            ended = run_until_the_end(client, code)
            assert ended == (model == "gpt-oss-20b")
    shown = " ".join(str(cell.outputs) for _, cell in code)
    assert "Simulated model" in shown
    assert "beats the best constant" in shown


def run_until_the_end(client: NotebookClient, code: list[tuple[int, Any]]) -> bool:
    """Run cells in a kernel, and say whether the page ended before its last cell."""
    for place, cell in code:
        try:
            client.execute_cell(cell, place)
        except CellExecutionError as error:
            if error.ename != EndOfPage.__name__:
                raise
            return True
    return False


@pytest.mark.parametrize("recipe", ["lean", "paper"])
def test_the_page_has_the_numbers_of_the_command(tmp_path: Path, recipe: str) -> None:
    asked: dict[str, Any] = {"datasets": ["mini-exam"], "limit": 20}
    chosen = replace(RECIPES[recipe], judge=None)
    order = Order(model="simulated", store=tmp_path, recipe=chosen, **asked)
    expected = reproduce(order).scores
    protocol = chosen.protocol
    page = run_cells("04_main_table", model="simulated", store=str(tmp_path), protocol=protocol)
    scores = page["scores"]
    ten = {"Response consistency, 10 votes": "Response consistency"}  # as many vote on the page
    expected = expected.rename(index=ten, level="method")
    extra = expected.index.get_level_values("method").str.fullmatch(r"Response .*, \d+ votes")
    assert extra.any() == (recipe == "paper")  # of table 6, which is on another page
    for column in ("brier", "low", "high"):
        assert scores[column].to_dict() == expected.loc[~extra, column].to_dict()


@pytest.mark.parametrize("name", NAMES)
def test_it_runs_on_a_store_with_one_built_in_set(name: str, tmp_path: Path) -> None:
    for split in ("test", "train"):
        recorded = RECORDED_RUNS / f"simulated/mini-elements-{split}"
        shutil.copytree(recorded, tmp_path / f"simulated/mini-elements-{split}")
    run_cells(name, model="simulated", store=str(tmp_path))


@pytest.fixture(scope="module")
def holes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of three data sets: of the largest one sample a question, of the next no confidence,
    and of the smallest a verbalized one and one of a method that is called almost as probes are.
    """
    store = tmp_path_factory.mktemp("holes")
    sample("simulated", "mini-elements", k=1, limit=30, store=store)
    sample("simulated", "mini-capitals", k=12, limit=20, store=store)
    sample("simulated", "mini-exam", k=12, limit=12, store=store)
    for run in open_runs(store):
        grade_run(run)
    (smallest,) = open_runs(store, dataset="mini-exam")
    stated = estimate(smallest, "verbalized")["confidence"]
    rows = [{"question_id": name, "confidence": s} for name, s in stated.items()]
    place_confidence(smallest, "Probe-x", rows)
    return store


@pytest.mark.parametrize("name", NAMES)
def test_it_runs_where_not_every_method_is_on_every_data_set(name: str, holes: Path) -> None:
    page = run_cells(name, model="simulated", store=str(holes))
    if name == "04_main_table":
        assert page["shown"] == "mini-exam"
        rows = page["scores"].loc["mini-exam"]
        assert rows.loc["Probe-x"].equals(rows.loc["Verbalized confidence"])
        assert "Probe" not in page["results"]
        assert page["gain"].mean() == pytest.approx(page["case"]["estimate"])
    if "\ndataset: " in (NOTEBOOKS / f"{name}.py").read_text(encoding="utf-8"):
        run_cells(name, model="simulated", store=str(holes), dataset="mini-elements")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of two data sets, with all that a model's row needs."""
    store = tmp_path_factory.mktemp("whole")
    asked: dict[str, Any] = {"datasets": ["mini-capitals", "mini-exam"], "limit": 20}
    reproduce(Order(model="simulated", store=store, **asked))
    return store


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "lacking",
    [
        {"mini-exam": ["confidence-verbalized*"], "mini-capitals": ["confidence-p-true*"]},
        {"mini-exam": ["confidence-p-true*", "predictions-*"], "mini-capitals": ["*verbalized*"]},
    ],
)
def test_it_runs_where_a_method_lacks_on_a_data_set(
    name: str, lacking: dict[str, list[str]], whole: Path, tmp_path: Path
) -> None:
    store = Path(shutil.copytree(whole, tmp_path / "store"))
    for dataset, kinds in lacking.items():
        (run,) = open_runs(store, dataset=dataset, split="test")
        for kind in kinds:
            removed = [*run.folder.glob(kind)]
            assert removed
            for file in removed:
                file.unlink()
    run_cells(name, model="simulated", store=str(store))


@pytest.mark.parametrize("protocol", ["corrected", "paper"])
def test_rank_correlations_of_the_page_are_those_of_scipy(protocol: str) -> None:
    """The samples that did not vote judge all methods; by the paper's protocol all samples do."""
    page = run_cells("03_confidence_estimators", "ranks", model="simulated", protocol=protocol)
    results, ranks = page["results"], page["ranks"]
    held_out = ["votes correct", "votes total"]
    judges = held_out if protocol == "corrected" else ["correct", "total"]
    for (dataset, method), found in ranks.stack().items():
        members = estimates(results.loc[[dataset]], method).groupby("member")["confidence"]
        correlations = []
        for _, confidence in members:
            c, n = results.loc[confidence.index, judges].to_numpy().T
            correlations.append(spearmanr(confidence, c / n).statistic)
        assert len(correlations) == (5 if protocol == "paper" and "Probe" in method else 1)
        assert found == pytest.approx(np.mean(correlations))
    assert ranks.shape == (4, 7)


def test_a_corrected_accuracy_gives_the_mean_verdict_back() -> None:
    page = run_cells("15_grading", model="smollm2-135m")
    measured = page["corrected"].dropna().to_dict()
    assert {"gsm8k", "triviaqa"} <= {*measured}
    for dataset, mu in measured.items():
        error = measured_error(load_labels().query("dataset == @dataset"))
        by_rules = error.sensitivity * mu + (1 - error.specificity) * (1 - mu)
        assert by_rules == pytest.approx(page["by_rules"][dataset])


@pytest.mark.parametrize("name", ["09_statements", "10_uses"])
def test_a_page_of_all_models_shows_a_simulated_one_alone(name: str) -> None:
    assert list(run_cells(name, model="simulated")["models"]) == ["simulated"]


def test_pages_run_on_samples_without_a_confidence(tmp_path: Path) -> None:
    sample("simulated", "mini-exam", k=4, limit=20, store=tmp_path)
    (run,) = open_runs(tmp_path)
    grade_run(run)
    given = {"model": "simulated", "store": str(tmp_path)}
    run_cells("01_targets_divergence", **given)
    page = run_cells("10_uses", **given)
    assert page["comparisons"].empty
    assert "counts" not in page


def test_the_page_on_pass_at_k_ends_on_one_question(tmp_path: Path) -> None:
    sample("simulated", "mini-exam", k=10, limit=1, store=tmp_path)
    (run,) = open_runs(tmp_path)
    grade_run(run)
    page = run_cells("05_pass_at_k", model="simulated", store=str(tmp_path))
    assert page["judged"].empty
    assert "title" not in page


def test_the_page_of_corrections_ends_where_all_answers_are_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(OWN_MANIFESTS, str(tmp_path))
    rows = [
        {"question_id": f"q{n}", "gold": "a", "question": f"Which? {n}", "response": "a"}
        for n in range(10)
    ] * 4
    log = tmp_path / "rows.jsonl"
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    store, settings = tmp_path / "store", {"temperature": 1.0}
    imported = import_samples([log], model="mine", dataset="alike", store=store, settings=settings)
    grade_run(imported.run)
    page = run_cells("13_protocol", model="mine", store=str(store))
    assert page["shifts"].empty
    assert "sizes" not in page


@pytest.mark.parametrize("name", ["13_protocol", "12_try_it"])
def test_it_runs_on_fifteen_questions(name: str, tmp_path: Path) -> None:
    reproduce(Order(model="simulated", store=tmp_path, datasets=["mini-elements"], limit=15))
    run_cells(name, model="simulated", store=str(tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["lean", "paper"])
def test_the_error_of_one_attempt_is_the_score(tmp_path: Path, recipe: str) -> None:
    asked: dict[str, Any] = {"datasets": ["mini-capitals"], "limit": 20}
    chosen = replace(RECIPES[recipe], judge=None)
    order = Order(model="simulated", store=tmp_path, recipe=chosen, **asked)
    expected = reproduce(order).scores["brier"].loc["mini-capitals"]
    protocol = chosen.protocol
    page = run_cells("05_pass_at_k", model="simulated", store=str(tmp_path), protocol=protocol)
    if protocol == "paper":
        errors = page["table"].loc["mini-capitals", "pass@1"]
    else:
        errors = page["scored"].loc["pass@1, 20 questions"]["brier"]
    probe = next(name for name in expected.index if name.startswith("Probe"))
    errors = errors.rename({"Probe, plug-in": probe})
    for method in (probe, "Verbalized confidence", "P(True)"):
        assert errors[method] == pytest.approx(expected[method], abs=1e-12)


@pytest.fixture(scope="module")
def unlike(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = tmp_path_factory.mktemp("store")
    sample_unlike_totals(store, "mini-capitals")
    return store


def test_a_budget_is_at_most_half_of_the_samples() -> None:
    """With six samples, the table of gains has no budget of three."""
    page = run_cells("06_budget_allocation", "judged", model="qwen2.5-coder-0.5b", k_eval=6)
    assert {*page["judged"]["B"]} == {1, 2}


def test_no_rule_solves_a_question_that_is_never_solved() -> None:
    page = run_cells("06_budget_allocation", "rates", dataset="aime25")
    assert {*page["rates"].loc["AIME25"].stack().dropna()} == {0.0}


@pytest.mark.slow
def test_pages_show_many_samples_of_the_questions_that_have_them(unlike: Path) -> None:
    """Twenty questions have a hundred samples, forty have twelve."""
    given = {"model": "simulated", "store": str(unlike)}
    page = run_cells("02_k_eval_choice", **given)
    assert {*page["growth"]["samples"]} == {100}
    assert {*page["growth"]["k"]} == {5, 10, 20, 50}
    page = run_cells("05_pass_at_k", **given)
    assert page["scored"].index.unique("dataset").tolist() == [
        "pass@1, 60 questions",
        "pass@4, 60 questions",
        "pass@16, 20 questions",
    ]
    page = run_cells("06_budget_allocation", **given)
    assert {*page["judged"]["B"]} == {1, 2, 4, 8}
    assert page["rates"].index.unique("questions").tolist() == [20]
    assert page["rates"].columns.tolist() == [1, 2, 4, 8, 16, 32, 64]
    page = run_cells("07_response_consistency", **given)
    assert page["scores"].groupby("votes").size().to_dict() == {5: 60, 10: 60, 20: 20}
    assert page["whole"].groupby("dataset").size().tolist() == [20]
    page = run_cells("11_live_sampling", **given)
    assert {*page["recorded"]["total"]} == {100}


@pytest.fixture
def papermill(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """The command, in this process, at the root."""
    from papermill.cli import papermill as command

    monkeypatch.chdir(ROOT)
    page = "notebooks/06_budget_allocation.ipynb"
    return lambda *arguments: CliRunner().invoke(command, [page, *map(str, arguments)])


@pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore:the file is not specified"
)
def test_papermill_prints_the_notebook_when_no_output_is_named(
    papermill: Callable[..., Result],
) -> None:
    done = papermill("-p", "model", REPORTED)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("{")
    assert REPORTED in done.stdout


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("modle", "gpt-oss-20b", "unknown parameter 'modle'; known: "),
        ("model", "gpt-9", "unknown model 'gpt-9'"),
        ("k_eval", 0, "k_eval must be a whole number"),
        ("protocol", "papers", "unknown protocol 'papers'"),
    ],
)
def test_papermill_ends_with_one_clear_line(
    tmp_path: Path, papermill: Callable[..., Result], name: str, value: object, message: str
) -> None:
    done = papermill(tmp_path / "out.ipynb", "-p", name, value)
    assert done.exit_code != 0
    assert f"InputError: {message}" in str(done.exception)
