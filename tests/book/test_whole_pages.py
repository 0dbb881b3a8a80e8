"""Every page is whole where papermill made it: in the book, for a model of the paper, for data of
one's own, and for a store with one set. And JupyterLab shows its figure."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from capcal_lib.book.pipeline import book_pages, end
from capcal_lib.places import OWN_MANIFESTS, RECORDED_RUNS, ROOT
from tests.pages import Run, one_kernel

NAMES = [*book_pages()]
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def one_set(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = tmp_path_factory.mktemp("store")
    for split in ("test", "train"):
        run = f"simulated/mini-elements-{split}"
        shutil.copytree(RECORDED_RUNS / run, store / run)
    return store


@pytest.fixture(scope="module")
def unsolved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with one data set, of which no question is solved."""
    store = tmp_path_factory.mktemp("unsolved")
    run = "qwen2.5-coder-1.5b/aime25-test"
    shutil.copytree(RECORDED_RUNS / run, store / run)
    return store


def texts(cell: dict[str, Any]) -> Iterator[str]:
    """List what a reader reads of a cell, but not its code."""
    if cell["cell_type"] == "markdown":
        yield cell["source"]
    for output in cell.get("outputs", ()):
        yield output.get("text", "")
        data = output.get("data", {})
        yield data.get("text/markdown", "")
        yield re.sub(r"<[^>]*>|base64,\S*", " ", data.get("text/html", ""))


def faults(notebook: dict[str, Any]) -> list[str]:
    """List placeholders, roles, dead links and headings, figures that only the book shows,
    warnings, and paths of this machine.
    """
    found = []
    heading = ""
    for cell in notebook["cells"]:
        source = cell["source"]
        for text in texts(cell):
            plain = re.sub(r"\$\$.*?\$\$|\$[^$]*\$|`[^`]*`", "", text, flags=re.DOTALL)
            # A placeholder or a role, and not the argument of a command of LaTeX.
            found += re.findall(r"(?<![\w^_{}\\])\{\w*(?::[^}]*)?\}", plain)
            found += re.findall(r"\]\(\.\./[^)]*\)|\bnan\b|<bound method|<Figure", plain)
            found += [str(path) for path in (ROOT, Path(sys.prefix)) if str(path) in text]
        for output in cell.get("outputs", ()):
            if output.get("name") == "stderr":
                found.append(output["text"])
            data = output.get("data", {})
            if "image/svg+xml" in data and "image/png" not in data:
                found.append(f"no PNG: {source[:60]}")
            elif "image/png" in data and int.from_bytes(b64decode(data["image/png"])[16:20]) < 640:
                found.append(f"a narrow PNG: {source[:60]}")
        if cell["cell_type"] == "markdown":
            marks = re.findall(r"^(#+) (.+)$", source, flags=re.MULTILINE)
            if marks and heading and len(marks[0][0]) <= len(heading.split()[0]):
                found.append(f"a heading over nothing: {heading}")
            after = source.rsplit("\n#", 1)[-1] if marks else source
            bare = marks and "\n" not in after.strip()
            heading = " ".join(marks[-1]) if bare else ""
        else:
            heading = ""
    return found


@pytest.fixture(scope="module")
def run() -> Iterator[Run]:
    with one_kernel() as run:
        yield run


CASES = [(name, "gpt-oss-20b") for name in NAMES]  # the model of a user's own command
OWN_CASES = [(name, "imported") for name in NAMES]
OWN_CASES += [(name, "judged") for name in ("07_response_consistency", "12_try_it")]
if "CAPCAL_EVERY_PAGE" in os.environ:
    OWN_CASES += [(name, "template") for name in NAMES]
    CASES = [
        (name, case) for name, _ in CASES for case in ("gpt-oss-20b", "smollm2-135m", "one set")
    ]
else:  # what shows confidences by data set
    OWN_CASES += [(name, "template") for name in ("04_main_table", "10_uses")]
    CASES += [(name, "one set") for name in ("04_main_table", "05_pass_at_k", "10_uses")]


@pytest.fixture(scope="module")
def own_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with manifests, imported samples of 60 questions with confidences in ``imported``,
    the same with a verdict each and no answer in ``judged``, and samples of the data set that
    ``capcal new dataset`` writes in ``template``.
    """
    folder = tmp_path_factory.mktemp("own")
    rng = np.random.default_rng(0)
    rows = [
        {"question_id": f"q{n}", "question": f"{n} + 1?", "gold": n + 1, "response": n + int(right)}
        for n, mu in enumerate(rng.random(60))
        for right in rng.random(12) < mu
    ]
    verdicts = [row | {"verdict": row["response"] == row["gold"]} for row in rows]
    for name, table in (("rows", rows), ("judged", verdicts)):
        log = "".join(json.dumps(row) + "\n" for row in table)
        (folder / f"{name}.jsonl").write_text(log)
    stated = "".join(f"q{n},{s:.2f}\n" for n, s in enumerate(rng.random(60)))
    (folder / "mine.csv").write_text("id,confidence\n" + stated)
    imported = "--model mine --dataset sums --store imported"
    judged = imported.replace("imported", "judged")
    template = "--model simulated --dataset law --store template"
    environment = os.environ | {OWN_MANIFESTS: str(folder)}
    for command in (
        f"import rows.jsonl {imported} --temperature 1",
        f"grade {imported}",
        f"confidence {imported} --from mine.csv --name stated",
        f"import judged.jsonl {judged} --temperature 1",
        f"confidence {judged} --from mine.csv --name stated",
        "new dataset law",
        f"sample {template} --k 12",
        f"grade {template}",
        f"confidence {template} --method p-true",
        f"confidence {template} --method verbalized",
    ):
        words = [sys.executable, "-m", "capcal_lib", *command.split()]
        subprocess.run(words, cwd=folder, env=environment, check=True)
    return folder


@pytest.fixture(scope="module")
def run_own(own_data: Path) -> Iterator[Run]:
    with one_kernel(**{OWN_MANIFESTS: str(own_data)}) as run:
        yield run


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("name", NAMES)
def test_a_page_of_the_book_is_whole(name: str, of_the_book: Path) -> None:
    page = of_the_book / f"{name}.ipynb"
    assert faults(as_read(json.loads(page.read_text(encoding="utf-8")))) == []


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize(("name", "case"), OWN_CASES)
def test_a_page_of_ones_own_data_is_whole(
    name: str, case: str, own_data: Path, run_own: Run
) -> None:
    model = "simulated" if case == "template" else "mine"
    page = as_read(run_own(name, model=model, store=str(own_data / case)))
    assert faults(page) == []
    if case == "judged":
        said = " ".join(texts(page["cells"][-1]))
        assert ("capcal import --regrade" in said) == (name == "07_response_consistency")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize(("name", "case"), CASES)
def test_a_page_is_whole(name: str, case: str, one_set: Path, run: Run) -> None:
    given = {"model": case}
    if case == "one set":
        given = {"model": "simulated", "store": str(one_set)}
    notebook = as_read(run(name, **given))
    assert faults(notebook) == []
    if case == "one set" and name != "15_grading":  # whose labelled answers are measured
        assert "evidence measured" not in json.dumps(notebook)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("01_targets_divergence", ""),
        ("03_confidence_estimators", "no two questions differ in accuracy"),
        ("04_main_table", "no two questions differ in accuracy"),
        ("05_pass_at_k", "no data set has both a probe of its own and eight samples"),
        ("06_budget_allocation", "no two questions differ in accuracy"),
        ("08_probe_generalization", "No probe predicts questions whose accuracy varies"),
    ],
)
def test_a_page_says_where_nothing_is_solved(
    name: str, reason: str, unsolved: Path, run: Run
) -> None:
    notebook = as_read(run(name, model="qwen2.5-coder-1.5b", store=str(unsolved)))
    assert faults(notebook) == []
    assert reason in " ".join(texts(notebook["cells"][-1]))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
def test_the_page_on_pass_at_k_says_where_samples_are_too_few(run: Run) -> None:
    notebook = as_read(run("05_pass_at_k", model="simulated", k_eval=5))
    assert faults(notebook) == []
    reason = "With k_eval = 5, no data set has both a probe of its own and eight samples"
    assert reason in " ".join(texts(notebook["cells"][-1]))


def as_read(notebook: dict[str, Any]) -> dict[str, Any]:
    """Make a page what the book shows: without what is below its end, and each text in one."""
    end(notebook)
    for cell in notebook["cells"]:
        cell["source"] = "".join(cell["source"])
        for output in cell.get("outputs", ()):
            output["text"] = "".join(output.get("text", ""))
            data = output.get("data", {})
            output["data"] = {kind: "".join(text) for kind, text in data.items()}
    return notebook


@pytest.mark.parametrize(
    ("cell", "fault"),
    [
        ({"cell_type": "markdown", "source": "On {held} of {runs} sets."}, "{held}"),
        ({"cell_type": "markdown", "source": "See {term}`probe`."}, "{term}"),
        ({"cell_type": "markdown", "source": "See [it](../theory/a.md)."}, "](../theory/a.md)"),
        (
            {
                "cell_type": "code",
                "source": "f",
                "outputs": [{"data": {"image/svg+xml": "<svg/>"}}],
            },
            "no PNG: f",
        ),
        (
            {
                "cell_type": "code",
                "source": "f",
                "outputs": [{"name": "stderr", "text": "a.py:1: UserWarning: few"}],
            },
            "a.py:1: UserWarning: few",
        ),
        ({"cell_type": "markdown", "source": f"It lies in {ROOT}/runs."}, str(ROOT)),
    ],
)
def test_what_is_wrong_with_a_page_is_seen(cell: dict[str, Any], fault: str) -> None:
    assert fault in faults({"cells": [cell]})


def test_formulas_and_whole_sections_are_no_faults() -> None:
    text = "Text with $\\hat{\\mu}_{eval}$ and `{code}`, as in \\boxed{P}."
    sources = ["# Title", text, "## A section\n\nText."]
    cells = [{"cell_type": "markdown", "source": source} for source in sources]
    assert faults({"cells": cells}) == []
    dead = [{"cell_type": "markdown", "source": source} for source in ("## One", "## Two\n\nText")]
    assert faults({"cells": dead}) == ["a heading over nothing: ## One"]


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
def test_jupyterlab_shows_the_figure_and_folds_the_solutions(
    of_the_book: Path, tmp_path: Path
) -> None:
    pytest.importorskip("jupyterlab")
    from playwright.sync_api import sync_playwright

    page = Path(shutil.copy(of_the_book / "07_response_consistency.ipynb", tmp_path))
    lab = [str(Path(sys.executable).with_name("jupyter-lab")), "--no-browser", "--allow-root"]
    lab += ["--ServerApp.port=0", "--IdentityProvider.token=", f"--ServerApp.root_dir={tmp_path}"]
    home = {f"JUPYTER_{kind}_DIR": str(tmp_path / kind) for kind in ("CONFIG", "RUNTIME")}
    home["JUPYTERLAB_SETTINGS_DIR"] = str(tmp_path / "settings")
    settings = tmp_path / "settings" / "@jupyterlab" / "notebook-extension"
    settings.mkdir(parents=True)  # cells out of sight are drawn too
    (settings / "tracker.jupyterlab-settings").write_text('{"windowingMode": "none"}')
    cells = json.loads(page.read_text(encoding="utf-8"))["cells"]
    code = sum(cell["cell_type"] == "code" for cell in cells)
    with (
        (tmp_path / "log").open("w") as log,
        subprocess.Popen(lab, stderr=log, env=os.environ | home) as server,
        sync_playwright() as playwright,
    ):
        try:
            address = None
            while not address:
                assert server.poll() is None, (tmp_path / "log").read_text()
                time.sleep(0.2)
                address = re.search(r"http://127\.0\.0\.1:\d+/", (tmp_path / "log").read_text())
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            tab = browser.new_page(viewport={"width": 1280, "height": 6000})
            tab.goto(f"{address[0]}lab/tree/{page.name}")
            figure = tab.locator(".jp-RenderedImage img").first
            figure.wait_for(timeout=180_000)
            assert figure.evaluate("image => image.naturalWidth") > 500
            assert "<Figure" not in tab.locator(".jp-NotebookPanel").inner_text()
            drawn = "count => document.querySelectorAll('.jp-CodeCell').length === count"
            tab.wait_for_function(drawn, arg=code, timeout=60_000)
            solution = tab.locator(".jp-CodeCell").last
            assert solution.locator(".jp-InputCollapser, .jp-Placeholder").count() > 0
            assert "consistency(" not in solution.inner_text()
            if shot := os.environ.get("CAPCAL_SHOT"):
                tab.screenshot(path=shot)
            browser.close()
        finally:
            server.terminate()
