"""Static checks of the book's sources; building the book is what checks the rest."""

import json
import pkgutil
import re
import runpy
from pathlib import Path
from posixpath import dirname, join, normpath

import pytest
import typer
import yaml

from capcal_lib.book.pipeline import book_pages
from capcal_lib.cli import app
from capcal_lib.grading import grade
from capcal_lib.manifests import load_model, manifest_problems
from capcal_lib.places import BOOK, NOTEBOOKS, ROOT
from capcal_lib.questions import Answer, load_questions

CONFIG = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
CSS = (BOOK / "static" / "capcal.css").read_text(encoding="utf-8")
PAGES = sorted(BOOK.rglob("*.md"))
SOURCES = [*PAGES, *sorted(NOTEBOOKS.glob("[0-9]*.py"))]
FENCE = re.compile(r"^```.*?^```$", flags=re.DOTALL | re.MULTILINE)


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def listed() -> list[str]:
    toc = yaml.safe_load((BOOK / "_toc.yml").read_text(encoding="utf-8"))
    return [
        toc["root"],
        *(
            page["file"]
            for part in toc["parts"]
            for chapter in part["chapters"]
            for page in (chapter, *chapter.get("sections", ()))
        ),
    ]


def fenced(page: str, language: str) -> list[str]:
    text = (BOOK / page).read_text(encoding="utf-8")  # an absolute path stands for itself
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)


def console_lines() -> list[tuple[str, str]]:
    return [
        (name(page), command.split("#")[0].strip())
        for page in PAGES
        for block in fenced(str(page), "console")
        for line in block.splitlines()
        if line.startswith("$ ")
        for command in line.removeprefix("$ ").split(" && ")
    ]


def test_the_contents_are_the_written_pages_and_the_executed_notebooks():
    # of a workshop, packed by a tool of their own
    apart = ("start.md", "slides.md", "handout.md", "key.md")
    pages = [page for page in PAGES if page.name not in apart]
    written = {page.relative_to(BOOK).with_suffix("").as_posix() for page in pages}
    executed = {f"notebooks/{page}" for page in book_pages()}
    assert sorted(listed()) == sorted(written | executed)


def test_a_chapter_has_the_number_of_its_notebook():
    toc = yaml.safe_load((BOOK / "_toc.yml").read_text(encoding="utf-8"))
    parts = [part["chapters"] for part in toc["parts"] if "numbered" in part]
    chapters = [Path(page["file"]).name for part in parts for page in part]
    assert chapters == [path.stem for path in sorted(NOTEBOOKS.glob("[0-9]*.py"))]
    assert [int(name[:2]) for name in chapters] == [*range(1, len(chapters) + 1)]


def test_every_address_that_a_page_had_leads_to_one():
    moved = CONFIG["sphinx"]["config"]["redirects"]
    targets = {normpath(join(dirname(old), new.partition("#")[0])) for old, new in moved.items()}
    assert targets <= {f"{page}.html" for page in listed()}
    assert not set(moved) & set(listed())
    gone = {
        "00_live_sampling",
        "09_paper_audit",
        "10_small_models",
        "11_applications",
        "12_selective_prediction",
        "13_live_sampling",
        "14_try_it",
        "15_protocol",
        "16_theorems",
        "17_grading",
        "10_paper_audit",
        "11_probe_lab",
        "11_small_models",
        "12_applications",
        "13_selective_prediction",
        "14_routing",
        "15_first_success",
        "16_live_sampling",
        "17_try_it",
        "18_protocol",
        "19_exact_expected_accuracy",
        "19_theorems",
        "20_grading",
        "20_theorems",
        "21_interval_coverage",
        "22_audit_in_detail",
        "24_claims_in_detail",
        "26_applications",
        "27_later_numbers",
    }
    assert {f"notebooks/{name}" for name in gone} <= set(moved)


def test_every_work_cited_is_in_the_references():
    entries = re.findall(
        r"^@\w+\{([^,]+),",
        (BOOK / "references.bib").read_text(encoding="utf-8"),
        flags=re.MULTILINE,
    )
    cited = {
        key.strip()
        for source in SOURCES
        for keys in re.findall(r"\{cite(?::\w+)?\}`([^`]+)`", source.read_text(encoding="utf-8"))
        for key in keys.split(",")
    }
    assert cited <= set(entries)


def test_a_link_has_words_beside_a_formula():
    """A formula is drawn, and a link with nothing else has no name to be read aloud."""
    for page in SOURCES:
        text = page.read_text(encoding="utf-8")
        assert re.findall(r"\[\$[^]$]*\$\]\(", text) == [], page


def test_every_link_leads_to_a_page():
    known = {BOOK / (entry + ending) for entry in listed() for ending in (".md", ".ipynb")}
    for page in PAGES:
        links = re.findall(
            r"\]\(([^)#:]+\.(?:md|ipynb))(?:#[^)]*)?\)", page.read_text(encoding="utf-8")
        )
        assert [link for link in links if (page.parent / link).resolve() not in known] == [], page


def test_every_equation_referred_to_has_a_label():
    texts = [source.read_text(encoding="utf-8") for source in SOURCES]
    labels = [
        label
        for text in texts
        for label in re.findall(r"^(?:# )?\$\$ \(([\w-]+)\)$", text, flags=re.MULTILINE)
    ]
    assert len(set(labels)) == len(labels)
    assert {label for text in texts for label in re.findall(r"\{eq\}`([\w-]+)`", text)} <= set(
        labels
    )


def test_no_result_is_typed_into_prose():
    for page in PAGES:
        if page.stem == "paper_map":  # it says to within what curves are read off
            continue
        prose = re.sub(r"`[^`]*`", "", FENCE.sub("", page.read_text(encoding="utf-8")))
        assert re.findall(r"(?<![\d.])0\.\d{3,}", prose) == [], page


def test_a_page_asks_nobody_outside():
    assert CONFIG["sphinx"]["config"]["nb_ipywidgets_js"] == {}
    assert "sphinx-mathjax-offline" in CONFIG["sphinx"]["config"]["extensions"]
    for path in [
        ROOT / "_config.yml",
        *(BOOK / "static").glob("*.css"),
        *(BOOK / "static").glob("*.svg"),
    ]:
        text = re.sub(r"(?m)^#.*$", "", path.read_text(encoding="utf-8"))
        outside = re.findall(
            r"(?:https?:)?//[a-z][^\s\"')]*", text
        )  # the buttons are links, and off
        assert [url for url in outside if url != "http://www.w3.org/2000/svg"] == [], path


def test_the_book_executes_nothing():
    assert CONFIG["execute"]["execute_notebooks"] == "off"


@pytest.mark.parametrize("evidence", ["measured", "reported", "simulated"])
def test_each_kind_of_evidence_has_its_mark_in_light_and_dark_and_in_the_legend(evidence):
    assert f".evidence.{evidence} {{" in CSS
    assert CSS.count(f"--capcal-{evidence}-ink:") == CSS.count(f"--capcal-{evidence}-ground:") == 2
    assert f"[{evidence}]{{.evidence .{evidence}}}" in (BOOK / "index.md").read_text(
        encoding="utf-8"
    )


def test_every_command_shown_exists_with_its_options():
    known = typer.main.get_command(app).commands
    for page, line in console_lines():
        if line.startswith("capcal "):
            command, *words = line.removeprefix("capcal ").split()
            assert command in known, page
            options = {option for parameter in known[command].params for option in parameter.opts}
            assert {word for word in words if word.startswith("--")} <= options, (page, line)


def test_every_make_target_shown_exists():
    targets = re.findall(
        r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    shown = {line.removeprefix("make ") for _, line in console_lines() if line.startswith("make ")}
    assert shown
    assert shown <= set(targets)


def test_every_promise_has_its_test():
    table = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    promised = re.findall(r"\| `(\S+\.py)::(\w+)` \|$", table, flags=re.MULTILINE)
    assert promised
    for place, name in promised:
        source = (ROOT / "tests" / place).read_text(encoding="utf-8")
        assert f"\ndef {name}(" in source, (place, name)


def test_every_notebook_shown_exists():
    shown = {line.split()[1] for _, line in console_lines() if "papermill" in line}
    assert shown
    assert {Path(path).stem for path in shown} <= {
        path.stem for path in NOTEBOOKS.glob("[0-9]*.py")
    }


def test_the_manifests_shown_work(tmp_path, monkeypatch):
    model, served, dataset = fenced("guide/bring_your_own.md", "yaml")
    served = served.replace("name: my-model", "name: served")
    shown = {"models/my-model": model, "models/served": served, "datasets/law": dataset}
    for name, text in shown.items():
        place = f"{name}.yaml"
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_text(text)
    (tmp_path / "datasets" / "law.csv").write_text(
        "key,stem,gold,a,b,c,d,e,field\n007,Which?,b,no,yes,,,,tort\n"
    )
    monkeypatch.setenv("CAPCAL_MANIFESTS", str(tmp_path))
    assert manifest_problems() == []
    assert load_model("my-model").weights[0].path
    assert load_model("served").served_as == "owner/my-model"
    [question] = load_questions("law")
    assert (question.id, question.answer.gold, question.options) == ("007", "B", 2)


def test_the_responses_shown_are_graded_as_correct():
    [rows] = [block for block in fenced("guide/bring_your_own.md", "text") if block.startswith("{")]
    for row in map(json.loads, rows.splitlines()):
        answer = Answer(kind=row["kind"], gold=row["gold"], aliases=tuple(row.get("aliases", ())))
        assert grade(row["response"], answer).verdict == "correct", row


def test_the_code_shown_runs():
    for page in (ROOT / "README.md", *PAGES):
        for block in fenced(page, "python"):
            if "place_confidence" in block or "MLPRegressor" in block:
                continue  # needs a run: test_bring_your_own
            if "ray.data" in block:
                continue  # needs Ray
            if re.search(r'"(commas|lists|samples|words)\.(csv|json)"', block):
                continue  # needs these files: tests/io/test_guide.py
            exec(compile(block, page.name, "exec"), {})


def test_every_name_that_a_docstring_refers_to_exists():
    """A reference without a module is to a name of its own module, or of a room that offers it."""
    for path in sorted((ROOT / "capcal_lib").rglob("*.py")):
        own = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for name in re.findall(
            r":(?:func|class|mod|meth|attr):`~?([\w.]+)`", path.read_text(encoding="utf-8")
        ):
            assert any(map(found, (name, f"{own}.{name}", f"{own.rpartition('.')[0]}.{name}"))), (
                own,
                name,
            )


def found(name):
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError, ValueError):
        return False
    return True


def test_the_pages_of_functions_list_what_is_public() -> None:
    text = "\n".join(path.read_text("utf-8") for path in (BOOK / "reference" / "api").glob("*.md"))
    listed = set()
    for module, names in re.findall(r"automodule:: (\S+)\n   :members: (.+)", text):
        listed |= {f"{module}.{name}" for name in names.split(", ")}
    assert text.count("automodule::") == len(re.findall(r"automodule:: .*\n   :members: \w", text))
    listed |= {*re.findall(r"auto(?:function|class):: (\S+)", text)}
    for name in listed:
        place, _, last = name.rpartition(".")
        public = getattr(pkgutil.resolve_name(place), "__all__", [last])
        assert found(name), name
        assert last in public, name
        assert not last.startswith("_"), name
    packages = ("metrics", "applications", "results", "plots", "probes", "io", "runs", "grading")
    assert len(listed) > 60
    assert {place.split(".")[1] for place in listed} >= {*packages}


def test_the_drawings_are_those_of_their_script():
    drawn = runpy.run_path(str(BOOK / "figures.py"))["figures"]()
    assert {
        name: (BOOK / "static" / f"{name}.svg").read_text(encoding="utf-8") for name in drawn
    } == drawn
