"""Tables as a reader gets them: parsed back from their HTML."""

import base64
import io
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from bs4 import BeautifulSoup

from capcal_lib.book.tables import Html, badge, intervals, show, show_scores, titled
from capcal_lib.errors import InputError
from capcal_lib.places import OWN_MANIFESTS

TABLE = pd.DataFrame(
    {"method": ["a", "b"], "Brier": [0.12345, np.nan], "n": [1200, 3], "note": ["<b>", None]}
)


def read_back(shown: Html) -> list[pd.DataFrame]:
    tables = []
    for table in BeautifulSoup(shown.html, "html.parser").find_all("table"):
        *_, head = [list(row.stripped_strings) for row in table.select("thead tr")]
        rows = [
            [cell.get_text() for cell in row.find_all(["th", "td"])]
            for row in table.select("tbody tr")
        ]
        text = pd.DataFrame(rows, columns=head).to_csv(index=False)
        tables.append(pd.read_csv(io.StringIO(text), na_values=["–"], thousands=","))
    return tables


def csv_of(shown: Html) -> pd.DataFrame:
    data = re.search(r"href='data:text/csv;base64,([^']*)'", shown.html)
    assert data
    return pd.read_csv(io.BytesIO(base64.b64decode(data[1])))


def test_a_table_reads_back_with_three_digits_and_downloads_with_all() -> None:
    shown = show(TABLE, "Scores & more.", evidence="measured")
    [table] = read_back(shown)
    assert list(table) == ["method", "Brier", "n", "note"]
    assert table["Brier"].tolist()[0] == 0.123
    assert np.isnan(table["Brier"][1])
    assert table["n"].tolist() == [1200, 3]
    pd.testing.assert_frame_equal(csv_of(shown), TABLE, check_dtype=False)
    assert "download='scores-more.csv'" in shown.html


def test_nothing_in_a_table_is_markup_of_its_own() -> None:
    hostile = "<script>alert('1')</script>"
    html = show(pd.DataFrame({hostile: [hostile]}), hostile).html
    assert "<script" not in html
    assert html.count("&lt;script&gt;") == 4  # caption, label, head and cell


def test_every_row_has_a_head_and_an_interval_a_line_of_its_own() -> None:
    page = BeautifulSoup(show(TABLE, "Scores.", evidence="reported").html, "html.parser")
    assert [head.text for head in page.select("tbody th")] == ["a", "b"]
    assert [head.text for head in page.select("thead th")] == list(TABLE)
    spelt = pd.DataFrame({"name": ["a [b]"], "gain": ["−0.2 [-0.3, -0.1]"]})
    html = show(spelt, "Gains.", evidence="measured").html
    assert "<th>a [b]</th>" in html
    assert "<td>−0.2 <br><small>[-0.3, -0.1]</small></td>" in html


def test_zero_has_no_sign_and_formats_are_used() -> None:
    table = pd.DataFrame({"a": [-1e-9], "b": [0.25], "c": ["x"]})
    html = show(
        table, "T.", evidence="simulated", digits=2, b="{:.1%}", c=lambda value: f"<{value}>"
    ).html
    assert [text in html for text in (">0.00<", ">25.0%<", ">&lt;x&gt;<")] == [True] * 3


def test_an_index_with_a_name_heads_the_rows() -> None:
    shown = show(TABLE.groupby("method")[["n"]].sum(), "Sums.", evidence="measured")
    assert read_back(shown)[0].to_numpy().tolist() == [["a", 1200], ["b", 3]]


def test_what_is_long_is_folded_and_not_cut() -> None:
    long = pd.DataFrame({"name": [f"row {i} " + "x" * 80 for i in range(67)], "n": range(67)})
    shown = show(long, "Many.", evidence="measured")
    pd.testing.assert_frame_equal(read_back(shown)[0], long)
    assert "<details><summary>All 67 rows</summary>" in shown.html
    assert "<details>" not in show(long[:20], "Few.", evidence="measured").html


def test_evidence_stands_in_the_caption_and_in_rows_where_they_differ() -> None:
    assert show(TABLE, "T.", evidence="measured").html.count(badge("measured")) == 1
    two = show(TABLE.assign(evidence=["measured", "read off"]), "T.")
    caption = BeautifulSoup(two.html, "html.parser").figcaption
    assert caption.text == "T. · measured · read off · CSV"
    assert two.html.count(badge("measured")) == two.html.count(badge("read off")) == 2
    assert csv_of(two)["evidence"].tolist() == ["measured", "read off"]


def test_a_table_that_should_not_be_drawn_is_refused() -> None:
    for table, given, message in (
        (TABLE[:0], {"evidence": "measured"}, "the table 'T.' is empty; leave it out"),
        (
            TABLE,
            {},
            "the table 'T.' names no evidence; give one of: measured, reported, read off, "
            "simulated",
        ),
        (TABLE, {"evidence": "guessed"}, "unknown evidence 'guessed'"),
    ):
        with pytest.raises(InputError, match=re.escape(message)):
            show(table, "T.", **given)  # type: ignore[arg-type]


def test_no_cell_of_a_csv_is_a_formula() -> None:
    hostile = [
        "=cmd|' /C calc'!A0",
        "\n=1",
        " =1",
        "＝1",
        "@SUM(1)",
        "+1+1",
        "-0.5 [-1.0, 0.0]",
        "a",
    ]
    table = csv_of(show(pd.DataFrame({"=head": hostile}), "T."))
    assert list(table) == ["'=head"]
    assert table["'=head"].tolist() == [*(f"'{cell}" for cell in hostile[:6]), *hostile[6:]]


SCORES = pd.DataFrame(
    [
        ("Uniform random", "mmlu", 0.2, 0.18, 0.22, False, 0, 10),
        ("P(True)", "mmlu", 0.1, 0.05, 0.15, True, 1, 10),
        ("Probe (GSM8K)", "mmlu", 0.3, 0.2, 0.4, False, 0, 10),
        ("Oracle CC", "mmlu", 0.0, 0.0, 0.0, None, 0, 10),
        ("Uniform random", "triviaqa", 0.2, 0.1, 0.3, True, 0, 10),
        ("P(True)", "triviaqa", 0.19, 0.1, 0.3, True, 0, 10),
        ("Uniform random", "gsm8k", 0.2, np.nan, np.nan, False, 0, 10),
    ],
    columns=["method", "dataset", "brier", "low", "high", "may_be_best", "missing", "questions"],
).astype({"may_be_best": "boolean"})


def test_scores_are_a_row_a_method_and_a_column_a_data_set_by_domain() -> None:
    page = BeautifulSoup(show_scores(SCORES, "Scores.", evidence="measured").html, "html.parser")
    above, below = [[head.text for head in row.select("th")] for row in page.select("thead tr")]
    assert above == ["", "factual knowledge", "mathematical reasoning", "general exams"]
    assert below == ["Method", "TriviaQA", "GSM8K", "MMLU"]
    heads = [head.text for head in page.select("tbody th")]
    assert heads == ["Uniform random", "P(True)", "Probe (GSM8K)", "Oracle CC"]
    assert page.select("tbody tr")[2].select("td")[0].text == "–"


def test_no_intervals_are_no_texts() -> None:
    nothing = pd.DataFrame({"gain": [], "low": [], "high": []})
    assert intervals(nothing, "gain", 1).tolist() == []


def test_data_sets_of_ones_own_stand_last_by_their_domains_and_none_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(OWN_MANIFESTS, str(tmp_path))
    (tmp_path / "datasets").mkdir()
    own = {"tort": ("law", "Cases"), "lied": ("art", "Songs"), "bgb": ("law", "Cases")}
    for name, (domain, title) in own.items():
        text = f"name: {name}\ndomain: {domain}\ntitle: {title}\nkind: short\n"
        path = tmp_path / "datasets" / f"{name}.yaml"
        path.write_text(text + f"splits: {{test: {{file: {name}.jsonl}}}}\n")
    names = ["tort", "lied", "bgb", "unknown", "mmlu"]
    briers = [0.1, 0.2, 0.3, 0.4, 0.5]
    scores = pd.DataFrame({"dataset": names, "method": "P(True)", "brier": briers})
    [table] = read_back(show_scores(scores, "Scores.", evidence="measured"))
    assert list(table) == ["Method", "unknown", "MMLU", "Cases", "Cases (bgb)", "Songs"]
    assert table.iloc[0, 1:].astype(float).tolist() == [0.4, 0.5, 0.1, 0.3, 0.2]


def test_bold_is_only_who_is_best_alone() -> None:
    html = show_scores(SCORES, "Scores.", evidence="measured").html
    assert (
        "<td><strong>0.100</strong><br><small>[0.050, 0.150]</small>"
        "<br><small>10.0% missing</small>" in html
    )
    assert html.count(">≈ ") == 2
    assert html.count("<strong>0.") == 1
    again = SCORES.set_axis([0] * len(SCORES))  # tables of several runs, one below the other
    assert show_scores(again, "Scores.", evidence="measured").html == html
    assert "every method but baselines and oracles, or the lowest printed; ≈: not" in html
    reported = SCORES.drop(columns=["low", "high", "may_be_best", "missing", "questions"])
    plain = show_scores(reported, "As printed.", digits=4, evidence="reported").html
    assert ">0.1000</td>" in plain
    assert "<small>" not in plain
    assert "bold" not in plain


def test_where_no_two_questions_differ_nothing_is_marked() -> None:
    html = show_scores(SCORES.assign(varies=False), "Scores.", evidence="measured").html
    assert html.count("<sup>‡</sup>") == len(SCORES)
    assert "<strong>" not in html
    assert "≈" not in html
    assert "‡: all questions are alike" in html


def test_a_score_on_fewer_questions_than_others_says_on_how_many() -> None:
    scores = SCORES.copy()
    scores.loc[1, ["missing", "questions"]] = [0, 6]  # as of votes: too few samples on four
    html = show_scores(scores, "Scores.", evidence="measured").html
    assert "<small>[0.050, 0.150]</small><br><small>6 of 10 questions</small>" in html
    assert html.count(" questions</small>") == 1
    assert "missing" not in html


def test_the_oracles_come_last_whichever_method_a_data_set_lacks() -> None:
    rows = [("mmlu", "Oracle CC", 0.0), ("mmlu", "P(True)", 0.2), ("gsm8k", "Probe (GSM8K)", 0.1)]
    shown = show_scores(
        pd.DataFrame(rows, columns=["dataset", "method", "brier"]), "Scores.", evidence="measured"
    )
    assert read_back(shown)[0].iloc[:, 0].tolist()[-3:] == ["P(True)", "Probe (GSM8K)", "Oracle CC"]


def test_a_probe_is_tinted_by_its_shift_and_the_legend_says_so() -> None:
    html = show_scores(SCORES.set_index(["dataset", "method"]), "Scores.", evidence="measured").html
    assert "<span class='out-of-domain'>0.300</span><sup>c</sup>" in html
    assert html.endswith("; c: out-of-domain probe.</p></figure>")


def test_printed_scores_stand_under_their_domains_with_costs_and_marks() -> None:
    rows = [
        ("P(True)", "gsm8k", 0.25, "1", "second"),
        ("P(True)", "mmlu", 0.125, "1", "best"),
        ("Probe (GSM8K)", "gsm8k", 0.0625, "<1", "best"),
        ("Probe (GSM8K)", "mmlu", 0.5, "<1", ""),
    ]
    table = pd.DataFrame(rows, columns=["method", "dataset", "brier", "cost", "printed"])
    html = show_scores(table, "As printed.", digits=4, evidence="reported").html
    assert "<th>mathematical reasoning</th>" in html
    assert "<td>&lt;1</td>" in html
    assert "<strong>0.0625</strong>" in html
    assert "<u>0.2500</u>" in html
    assert "underlined: second lowest printed" in html


def test_columns_that_are_no_data_sets_have_no_domain() -> None:
    for name, heads in (("pass@1", ["Method", "pass@1"]), ("gsm8k", ["Method", "GSM8K"])):
        scores = pd.DataFrame({"dataset": [name], "method": ["P(True)"], "brier": [0.2]})
        page = show_scores(scores, "Errors.", evidence="measured").html
        assert [
            head.text for head in BeautifulSoup(page, "html.parser").select("thead th")
        ] == heads


def test_models_and_data_sets_have_the_names_that_readers_know() -> None:
    table = pd.DataFrame({"model": ["qwen3-8b", "smollm2-135m"], "dataset": ["gsm8k", None]})
    assert titled(table)["model"].tolist() == ["Qwen3-8B", "SmolLM2-135M"]
    assert titled(table)["dataset"][0] == "GSM8K"
    assert titled(table)["dataset"].isna()[1]  # a mean over data sets has no name
    assert titled(table.assign(dataset=""))["dataset"].tolist() == ["", ""]
    assert titled(pd.DataFrame({"k": [1]})).equals(pd.DataFrame({"k": [1]}))
    with pytest.raises(InputError, match="unknown model 'gpt-9'"):
        titled(table.assign(model="gpt-9"))


def test_the_names_that_a_manifest_gives_are_no_markup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hostile = "<script>alert(1)</script></td></table> A & B"
    (tmp_path / "datasets").mkdir()
    for name in ("evil", "law"):
        lines = f"name: {name}", f"title: {hostile}", f"domain: {name} <b>", "kind: short"
        text = "\n".join([*lines, "splits: {test: {file: a.csv}}"])
        (tmp_path / "datasets" / f"{name}.yaml").write_text(text)
    monkeypatch.setenv("CAPCAL_MANIFESTS", str(tmp_path))
    rows = {"dataset": ["law", "gsm8k", "evil"], "method": "P(True)", "brier": 0.25}
    shown = show_scores(pd.DataFrame(rows), "Scores.", evidence="measured").html
    page = BeautifulSoup(shown, "html.parser")
    domains, titles = page.select("thead tr")
    assert [*domains.stripped_strings] == ["mathematical reasoning", "law <b>", "evil <b>"]
    assert [*titles.stripped_strings] == ["Method", "GSM8K", hostile, hostile]
    assert not page.find_all(["script", "b"])
