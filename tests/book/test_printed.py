import hashlib
import re
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import pandas as pd
import pytest

from capcal_lib.book import printed
from capcal_lib.book.map import load_items
from capcal_lib.book.style import NARROW
from capcal_lib.manifests import load_model, model_names
from capcal_lib.plots import ScoreDisplay
from capcal_lib.reported import constant_score

PAPER_MODELS = [name for name in model_names() if load_model(name).paper_name]


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    outputs: list[Any] = []
    monkeypatch.setattr("IPython.display.display", outputs.append)
    return outputs


def test_items_are_those_of_the_paper() -> None:
    assert {*printed.ITEMS} <= {item.key for item in load_items()}


@pytest.mark.parametrize("item", printed.ITEMS)
def test_every_item_is_shown_with_all_its_numbers_of_a_model(item: str, shown: list[Any]) -> None:
    for model in PAPER_MODELS:
        shown.clear()
        printed.display(item, model)
        values = printed.numbers_of(item, model)["value"]
        assert bool(shown) == bool(len(values))
        digits = printed.ITEMS[item].digits
        missing = [value for value in values if f"{value:,.{digits}f}" not in shown[-1].html]
        assert missing == []


def test_a_column_of_one_k_says_what_it_counts() -> None:
    """Page 5 predicts pass@k, page 6 spends budgets, and page 7 counts votes."""
    heads = {"table-3": "pass@4", "table-8": "pass@4", "figure-10": "B = 4", "table-6": "5 votes"}
    for item, head in heads.items():
        _, table = printed.draw(item, printed.numbers_of(item, "gpt-oss-20b"))
        assert f"<th>{head}</th>" in table.html


def test_a_model_that_the_paper_does_not_have_shows_nothing(shown: list[Any]) -> None:
    printed.display("table-2", "simulated")
    assert shown == []
    assert printed.numbers_of("table-2", "simulated").empty
    assert {*printed.numbers_of("figure-11", "qwen3-8b")["model"]} == {"qwen3-8b"}


def test_scores_have_the_best_constant_in_each_data_set() -> None:
    scores = printed.scores_and_constant("qwen3-8b").set_index(["dataset", "method"])
    constant = scores["brier"].xs("Best constant", level="method")
    assert constant.to_dict() == {
        name: constant_score("qwen3-8b", name) for name in scores.index.unique("dataset")
    }
    assert pd.notna(scores["brier"]).all()


@pytest.fixture(scope="module")
def page() -> tuple[str, dict[str, dict[str, str]]]:
    before = dict(matplotlib.rcParams)
    made = printed.printed_page()
    assert dict(matplotlib.rcParams) == before  # others who draw keep their look
    return made


def test_the_page_has_a_tab_with_all_numbers_of_each_model(page: Any) -> None:
    tabs = page[0].split("\n::::{tab-item} ")[1:]
    names = [re.findall(r"^:name: (.*)$", tab, flags=re.MULTILINE) for tab in tabs]
    assert sorted(names) == sorted([model] for model in PAPER_MODELS)
    for (model,), tab in zip(names, tabs, strict=True):
        assert tab.startswith(f"{load_model(model).paper_name}\n")
        for item in ("table-2", "table-4", "figure-4"):
            values, digits = printed.numbers_of(item, model)["value"], printed.ITEMS[item].digits
            assert [value for value in values if f"{value:,.{digits}f}" not in tab] == []


def test_a_table_of_the_page_stands_before_its_figure(page: Any) -> None:
    for tab in page[0].split("\n::::{tab-item} ")[1:]:
        parts = re.findall(r"^```\{raw\}|^:::\{image\}", tab, flags=re.MULTILINE)
        assert parts == ["```{raw}", ":::{image}", "```{raw}", "```{raw}", ":::{image}"]


def test_probes_that_share_a_mark_are_named_by_their_training_sets() -> None:
    """On MMLU all three are out of domain; on GSM8K each is as far as no other."""
    probes = [f"Probe ({name})" for name in ("TriviaQA", "GSM8K", "MATH")]
    rows = pd.DataFrame(
        {
            "dataset": ["mmlu"] * 3 + ["gsm8k"] * 3,
            "method": probes * 2,
            "brier": [0.2, 0.1, 0.3, 0.1, 0.2, 0.3],
        }
    )
    ax = ScoreDisplay.from_scores(rows).ax
    printed.name_probes(ax, rows)
    named = {text.get_text(): (text.xy[0], text.get_position()) for text in ax.texts}
    assert named == {"G": (0.1, (-10, 0)), "T": (0.2, (0, -10)), "M": (0.3, (10, 0))}
    plt.close(ax.figure)


def test_data_sets_are_named_beside_marks_that_differ_in_tokens() -> None:
    """The first of two marks that are close has its name at the left."""
    prices = pd.DataFrame(
        {
            "dataset": ["MMLU", "GPQA", "AIME25", "GSM8K", "SimpleQA"],
            "method": ["Probe", "Probe", "P(True)", "P(True)", "P(True)"],
            "tokens": [0.0, 0.0, 100.0, 120.0, 500.0],
            "brier": [0.1, 0.2, 0.1, 0.1, 0.1],
        }
    )
    _, ax = plt.subplots()
    printed.name_sets(ax, prices)
    named = {text.get_text(): (*text.xy, text.get_position()[0]) for text in ax.texts}
    assert named == {"AI": (100, 0.1, -12), "GS": (120, 0.1, 12), "Si": (500, 0.1, 12)}
    plt.close(ax.figure)


def test_a_figure_of_the_page_has_a_file_a_narrow_form_and_a_description(page: Any) -> None:
    text, figures = page
    shown = re.findall(r"\{image\} printed/(\w+)\.svg\n.*\n:alt: (.+)\n", text)
    assert sorted(name for name, _ in shown) == sorted(figures)
    assert len(figures) == 2 * len(PAPER_MODELS)
    for name, alt in shown:
        assert hashlib.sha256(figures[name]["image/svg+xml"].encode()).hexdigest() == name
        assert figures[name][NARROW].startswith("<?xml")
        assert len(alt) > 40


def test_the_page_is_the_same_each_time(page: Any) -> None:
    assert printed.printed_page() == page
