"""The slides say what the pages say, and the class guesses questions that are chosen by a rule."""

import json
import re
from zipfile import ZipFile

import pack_workshop
import pandas as pd
import pytest
from pack_workshop import (
    KEY,
    STATIC,
    WORKSHOP,
    class_facts,
    class_page,
    class_set,
    fill,
    pack,
    printed,
    slides,
    speaker_notes,
)
from typer.testing import CliRunner

from capcal_lib.cli import app
from capcal_lib.errors import InputError
from capcal_lib.manifests import model_names
from capcal_lib.places import BOOK, NOTEBOOKS, ROOT

KEPT = {
    "data": {"application/papermill.record/text/plain": "0.25"},
    "metadata": {"scrapbook": {"name": "share"}},
}
DRAWN = {"data": {"image/svg+xml": ["<svg>", "</svg>"]}, "metadata": {}}
NAMED = {"label": "fig-a.b", "mystnb": {"image": {"alt": "a 'line'"}}}


@pytest.fixture
def executed(tmp_path):
    page = {"cells": [{"metadata": {}, "outputs": [KEPT]}, {"metadata": NAMED, "outputs": [DRAWN]}]}
    (tmp_path / "05_page.ipynb").write_text(json.dumps(page))
    return tmp_path


def test_slides_take_numbers_and_figures_from_pages(executed):
    text = "# One\n\n{{05_page:share:.1%}}\n\n---\n\n{{05_page:fig-a.b}}\n\n{{class:half}}\n"
    html = slides(fill(text, executed, {"half": "0.25"}))
    assert html.count("<section>") == 2
    assert "<p>25.0%</p>" in html
    assert "<p>0.25</p>" in html
    image = '<img class=\'figure\' alt="a &#x27;line&#x27;" src="data:image/svg+xml;base64,'
    assert f'{image}PHN2Zz48L3N2Zz4=">' in html


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{{06_none:a}}", "no executed notebook"),
        ("{{05_page:b}}", "which is not on page 05_page"),
        ("{{05_page:fig-none-1.5b}}", "which is not on page 05_page"),
        ("{{class:c}}", "which is not on page class"),
        ("{{05_page share}}", "as it is"),
        ("the mean of $\\mu$", "as it is"),
    ],
)
def test_slides_refuse_what_no_page_has_and_what_would_be_read_as_it_is(executed, text, said):
    with pytest.raises(InputError, match=said):
        fill(text, executed, {})


def test_a_slide_keeps_its_note_for_the_speaker_and_the_time():
    text = "# One\n\nA\n\nNote (3 min): say a\n\n---\n\n## Two\n\nB\n\nNote (4 min): say b"
    html = slides(text)
    assert "<aside class='notes'><p>say b</p>" in html
    assert "<p class='minutes'>3 to 7 min</p>" in html
    notes = speaker_notes(text)
    assert "<h2>Minute 3 to 7: Two</h2><p>say b</p>" in notes
    assert "<p>B</p>" not in notes


def test_all_that_follows_a_guess_comes_after_it():
    text = "# One\n\nA\n\n*Guess first: how far?*\n\nIt is far.\n\nAnd wide.\n\nNote (3 min): say"
    html = slides(text)
    answer = "<div class='fragment'><p>It is far.</p>\n<p>And wide.</p>\n</div>"
    assert f"<p><em>Guess first: how far?</em></p>\n{answer}<p class='minutes'>" in html
    assert html.count("fragment") == 1
    assert "fragment" not in slides("# One\n\nNothing is guessed.")


def test_no_slide_shows_a_number_or_figure_of_a_page_before_the_guess():
    text = (WORKSHOP / "slides.md").read_text(encoding="utf-8")
    *parts, last = text.split("\n---\n")
    assert "Take home" in last  # which says again what was guessed
    guessed = 0
    for part in parts:
        question = part.split("*Guess first:")[0]
        shown = [found["page"] for found in re.finditer(KEY, question) if found["key"] != "asked"]
        assert {*shown} <= {"class", "static"}, part
        guessed += question != part
    assert guessed == 8


def test_the_live_check_looks_for_what_the_live_page_says_when_it_has_drawn():
    asked, said = re.search(
        r"-p k_eval (\d+)\n.*grep -q '(.*?)'", (ROOT / "Makefile").read_text(encoding="utf-8")
    ).groups()
    source = (NOTEBOOKS / "11_live_sampling.py").read_text(encoding="utf-8")
    assert said not in source
    assert said.replace(asked, "{len(samples)}") in source


def test_a_hat_stands_over_its_letter():
    page = printed("# One\n\nThe key μ̂ is there.")
    assert "The key <span class='hat'>μ</span> is there." in page
    assert ".hat::after" in page
    assert "\u0302" not in slides("# One\n\nμ̂\n\nNote (3 min): μ̂")


def test_the_page_of_the_class_has_the_class_set_and_shows_no_count():
    page = class_page(class_set())
    data, *shown = re.findall(r"<script type='application/json'>(.*?)</script>", page)
    assert shown == []
    asked = json.loads(data)["questions"]
    assert [one["id"] for one in asked] == class_set()["question_id"].tolist()
    assert [one["correct"] for one in asked] == class_set()["correct"].tolist()
    rows = re.findall(r"<tr>(.*?)</tr>", page.replace(data, ""), flags=re.DOTALL)
    assert [len(re.findall(r"<t[dh]", row)) for row in rows] == [1] * 10


def test_the_archive_has_at_its_root_a_page_that_leads_to_the_others(tmp_path):
    html, executed = tmp_path / "book" / "_build" / "html", tmp_path / "notebooks"
    html.mkdir(parents=True)
    (html / "index.html").write_text("the book")
    texts = [path.read_text(encoding="utf-8") for path in WORKSHOP.glob("*.md")]
    wanted = {(found["page"], found["key"]) for text in texts for found in re.finditer(KEY, text)}
    executed.mkdir()
    for page in {page for page, _ in wanted} - {"class", "static"}:
        notebook = json.loads((NOTEBOOKS / f"{page}.ipynb").read_text(encoding="utf-8"))
        for cell in notebook["cells"]:
            if "label" in cell["metadata"]:
                cell["outputs"] = [DRAWN]
        for key in {key for name, key in wanted if name == page and not key.startswith("fig-")}:
            kept = {
                "data": {"application/papermill.record/text/plain": "1"},
                "metadata": {"scrapbook": {"name": key}},
            }
            notebook["cells"].append({"metadata": {}, "outputs": [kept]})
        (executed / f"{page}.ipynb").write_text(json.dumps(notebook))
    with ZipFile(pack(tmp_path)) as archive:
        names = set(archive.namelist())
        start = archive.read("index.html").decode()
    links = re.findall(r'href="([^"]+)"', start)
    inside = {link for link in links if not link.startswith("book/")}
    assert inside <= names
    assert inside >= {name for name in names if re.fullmatch(r"[^/]+\.(html|csv)", name)} - {
        "index.html"
    }
    contents = (BOOK / "_toc.yml").read_text(encoding="utf-8")
    for link in {*links} - inside - {"book/index.html"}:
        page = link.removeprefix("book/").removesuffix(".html")
        assert f"file: {page}\n" in contents, link


def test_the_slides_take_the_minutes_of_the_plan():
    text = (WORKSHOP / "slides.md").read_text(encoding="utf-8")
    plan = (WORKSHOP / "plan.md").read_text(encoding="utf-8")
    short = plan[plan.index("## Ninety minutes") : plan.index("## Half a day")]
    minutes = [int(each) for each in re.findall(r"^\* - (\d+)$", short, flags=re.MULTILINE)]
    assert sum(map(int, re.findall(r"^Note \((\d+) min\)", text, flags=re.MULTILINE))) == 90
    assert sum(minutes) == 90
    for slide in text.split("\n---\n"):
        assert re.search(r"^Note \(\d+ min\): ", slide, flags=re.MULTILINE), slide


@pytest.mark.parametrize("name", ["start", "slides", "handout", "key"])
def test_every_key_stands_in_the_source_of_its_page(name):
    facts = class_facts(class_set())
    text = (WORKSHOP / f"{name}.md").read_text(encoding="utf-8")
    for found in re.finditer(KEY, text):
        page, key = found["page"].split("/")[0], found["key"]
        if page == "class":
            assert key in facts
        elif page == "static":
            assert (STATIC / f"{key}.svg").exists()
        else:
            source = (NOTEBOOKS / f"{page}.py").read_text(encoding="utf-8")
            figure = next((each for each in model_names() if key.endswith(f"-{each}")), "")
            key = key.removesuffix(f"-{figure}") if figure else key
            named = f'label="{key}"' in source  # a figure
            assert named or re.search(rf"\b{key}=", source), found[0]


def test_the_key_is_that_of_the_counts():
    chosen = pd.DataFrame({"question": ["a?", "b?"], "correct": [1, 9], "total": [10, 10]})
    facts = class_facts(chosen)
    assert "| 2 | b? | 9 of 10 | 0.90 |" in facts["key"]
    assert facts["half"] == f"{0.16 - 0.01:.3f}"  # less mu (1 - mu) / (n - 1) = 0.09 / 9
    assert facts["constant"] == f"{0.8**2 - 0.01:.3f}"  # each says the share of the other
    assert facts["uniform"] == f"{1 / 3 - 0.09 - 0.01:.3f}"
    assert [facts["low_0"], facts["high_0"]] == ["0.00", "0.22"]


def test_a_class_guesses_hard_questions_on_which_the_constant_is_worth_something(tmp_path):
    chosen = class_set()
    assert len(chosen) == 10
    assert [*chosen] == ["question_id", "question", "confidence", "correct", "total"]
    share = chosen["correct"] / chosen["total"]
    assert share.min() < 0.1
    assert share.max() > 0.7
    assert share.mean() == pytest.approx(0.2, abs=0.02)
    assert chosen["question_id"].is_unique
    chosen.assign(confidence=0.5).to_csv(tmp_path / "mine.csv", index=False)
    done = CliRunner().invoke(app, ["score", str(tmp_path / "mine.csv"), "--json"])
    assert done.exit_code == 0
    facts = class_facts(chosen)
    rows = {row["metric"]: row["value"] for row in map(json.loads, done.stdout.splitlines())}
    assert f"{rows['best constant']:.3f}" == facts["constant"]
    assert float(facts["constant"]) == pytest.approx(float(facts["half"]) / 2, abs=0.001)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
def test_the_slides_take_all_from_pages_as_they_are_executed(of_the_book):
    text = (WORKSHOP / "slides.md").read_text(encoding="utf-8")
    filled = fill(text, of_the_book, class_facts(class_set()))
    assert filled.count("<img class='figure'") == len(re.findall(r"\{\{\w+:fig-", text)) > 0


def test_there_is_no_archive_without_a_book(tmp_path):
    with pytest.raises(InputError, match="run `capcal book` first"):
        pack(tmp_path)


def test_what_is_missing_is_said_in_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(pack_workshop.pack, "__defaults__", (tmp_path,))
    with pytest.raises(SystemExit) as ended:
        pack_workshop.main()
    assert ended.value.code == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"there is no built book in {tmp_path}")
    assert said.err.count("\n") == 1
