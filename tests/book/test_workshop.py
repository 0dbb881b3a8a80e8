"""The slides say what the pages say, and the class set is spread over the range of expected
accuracy.
"""

import json

import pytest
from typer.testing import CliRunner

from capcal_lib.book.workshop import (
    CLASS_MODEL,
    CLASS_SETS,
    LIVE_QUESTIONS,
    LIVE_SET,
    class_set,
    evenly,
    pack,
    slides,
    to_guess,
)
from capcal_lib.cli import app
from capcal_lib.errors import InputError
from capcal_lib.manifests import RECORDED_RUNS
from capcal_lib.results import load_results

KEPT = {
    "data": {"application/papermill.record/text/plain": "0.25"},
    "metadata": {"scrapbook": {"name": "share"}},
}
DRAWN = {"data": {"image/svg+xml": ["<svg>", "</svg>"]}, "metadata": {}}
NAMED = {"mystnb": {"figure": {"name": "fig-a"}, "image": {"alt": "a 'line'"}}}


@pytest.fixture
def executed(tmp_path):
    page = {"cells": [{"metadata": {}, "outputs": [KEPT]}, {"metadata": NAMED, "outputs": [DRAWN]}]}
    (tmp_path / "05_page.ipynb").write_text(json.dumps(page))
    return tmp_path


def test_slides_take_numbers_and_figures_from_pages(executed):
    html = slides("# One\n\n{{05_page:share:.1%}}\n\n---\n\n{{05_page:fig-a}}\n", executed)
    assert html.count("<section>") == 2
    assert "<p>25.0%</p>" in html
    assert '<img alt="a &#x27;line&#x27;" src="data:image/svg+xml;base64,PHN2Zz48L3N2Zz4=">' in html


@pytest.mark.parametrize(
    ("place", "said"),
    [("06_none:a", "no executed notebook"), ("05_page:b", "which is not on page 05_page")],
)
def test_slides_refuse_what_no_page_has(executed, place, said):
    with pytest.raises(InputError, match=said):
        slides(f"{{{{{place}}}}}", executed)


def test_a_class_guesses_questions_from_impossible_to_sure(tmp_path):
    chosen = class_set(10)
    share = chosen["correct"] / chosen["total"]
    assert share.min() < 0.1
    assert share.max() > 0.9
    assert share.sort_values().diff().max() < 0.2
    assert chosen["question_id"].is_unique
    chosen.assign(confidence=0.5).to_csv(tmp_path / "mine.csv", index=False)
    assert CliRunner().invoke(app, ["score", str(tmp_path / "mine.csv")]).exit_code == 0


def test_a_class_guesses_what_no_page_asks():
    results = load_results(RECORDED_RUNS, CLASS_MODEL, datasets=CLASS_SETS)
    free = to_guess(results)
    live = evenly(results.loc[[LIVE_SET]], LIVE_QUESTIONS)
    assert len(live) == LIVE_QUESTIONS
    assert free.index.intersection(live.index).empty
    subjects = [name.split("-of-")[-1] for _, name in free.index if "-of-" in name]
    assert len(subjects) == len(set(subjects))
    assert set(class_set()["question_id"]) <= set(free.index.get_level_values("question_id"))


def test_there_is_no_archive_without_a_book(tmp_path):
    with pytest.raises(InputError, match="run `capcal book` first"):
        pack(tmp_path)
