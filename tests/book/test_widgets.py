"""What a widget puts on its page; ``test_in_a_browser`` plays with them."""

import json
import re

import pandas as pd
import pytest
from bs4 import BeautifulSoup

from capcal_lib.book.tables import Html
from capcal_lib.book.widgets import verdict_grid, widget
from capcal_lib.places import BOOK, NOTEBOOKS

TABLE = Html("<p>table</p>")


def test_answers_of_a_model_stay_text():
    data = {"answers": ["</script><script>alert(1)</script>", "<!--", "μ & 'ν'"]}
    html = widget("coin", data, "Ask <b>once</b>.", fallback=TABLE, evidence="measured").html
    assert html.lower().count("</script") == 1
    assert "<!--" not in html
    assert "<b>" not in html
    [kept] = re.findall(r"<script type='application/json'>(.*?)</script>", html)
    assert json.loads(kept) == data


def test_where_no_scripts_run_a_widget_says_where_they_do() -> None:
    drawn = widget("coin", {}, "Ask.", fallback=TABLE, evidence="measured")
    page = BeautifulSoup(drawn.html, "html.parser")
    fallback = page.select_one(".cw-fallback")
    assert fallback.text.startswith("The experiment runs in the built book, which capcal book ")
    assert fallback.text.endswith("table")
    assert page.figcaption.text == "Ask. · measured"


def test_what_no_script_reads_is_refused():
    with pytest.raises(ValueError, match="not JSON compliant"):
        widget("coin", {"share": float("nan")}, "Ask.", fallback=TABLE, evidence="measured")


def test_the_script_draws_every_kind():
    script = (BOOK / "static" / "widgets.js").read_text(encoding="utf-8")
    [kinds] = re.findall(r"const kinds = \{ (.*) \};", script)
    pages = [*NOTEBOOKS.glob("*.py"), *BOOK.rglob("*.md")]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    asked = re.findall(r"""(?:widget\(\s*"|data-widget=['"])(\w+)""", text)
    assert set(kinds.split(", ")) == set(asked)


def test_verdicts_are_counted_of_those_that_could_be_won() -> None:
    verdicts = ["better", "better", "worse", "inconclusive", "worse"]
    kinds = ["P(True)"] * 4 + ["other"]
    cases = {"kind": kinds, "model": "A & B", "dataset": [*"abcde"], "verdict": verdicts}
    cases["could be won"] = [True, True, False, True, True]
    rows = ["other", "P(True)", "none"]
    drawn = verdict_grid(pd.DataFrame(cases), rows=rows, caption="All.", evidence="measured")
    page = BeautifulSoup(drawn.html, "html.parser")
    heads = [head.text for head in page.select("thead th")]
    assert heads == ["confidence", "worse", "cannot tell", "better"]
    texts = [[cell.text for cell in row.select("td")] for row in page.select("tbody tr")]
    assert texts == [
        ["1 of 1", "0 of 1", "0 of 1"],
        ["1 of 4", "1 of 4", "2 of 3"],
        ["0 of 0", "0 of 0", "0 of 0"],
    ]
    marks = [(mark["class"], mark["title"]) for mark in page.select("tbody i")]
    assert (["better"], "a, A & B: better") in marks
    assert (["inconclusive"], "d, A & B: cannot tell") in marks
    assert (["worse", "faint"], "c, A & B: worse, could not be won") in marks
    assert len(marks) == len(verdicts)
