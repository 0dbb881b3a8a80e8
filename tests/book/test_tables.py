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


def test_nothing_in_a_table_is_markup_of_its_own() -> None:
    hostile = "<script>alert('1')</script>"
    html = show(pd.DataFrame({hostile: [hostile]}), hostile).html
    assert "<script" not in html
    assert html.count("&lt;script&gt;") == 3  # caption, head and cell


def test_every_row_and_column_has_a_head() -> None:
    page = BeautifulSoup(show(TABLE, "Scores.", evidence="reported").html, "html.parser")
    assert [head.text for head in page.select("tbody th")] == ["a", "b"]
    assert [head.text for head in page.select("thead th")] == list(TABLE)


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
    assert "<td>measured</td>" in two.html
    assert csv_of(two)["evidence"].tolist() == ["measured", "read off"]


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


def test_no_intervals_are_no_texts() -> None:
    nothing = pd.DataFrame({"gain": [], "low": [], "high": []})
    assert intervals(nothing, "gain", 1).tolist() == []


def test_the_oracles_come_last_whichever_method_a_data_set_lacks() -> None:
    rows = [("mmlu", "Oracle CC", 0.0), ("mmlu", "P(True)", 0.2), ("gsm8k", "Probe (GSM8K)", 0.1)]
    shown = show_scores(
        pd.DataFrame(rows, columns=["dataset", "method", "brier"]), "Scores.", evidence="measured"
    )
    assert read_back(shown)[0].iloc[:, 0].tolist()[-3:] == ["P(True)", "Probe (GSM8K)", "Oracle CC"]


def test_models_and_data_sets_have_the_names_that_readers_know() -> None:
    table = pd.DataFrame({"model": ["qwen3-8b", "smollm2-135m"], "dataset": ["gsm8k", None]})
    assert titled(table)["model"].tolist() == ["Qwen3-8B", "SmolLM2-135M"]
    assert titled(table)["dataset"][0] == "GSM8K"
    assert titled(table)["dataset"].isna()[1]  # a mean over data sets has no name
    assert titled(table.assign(dataset=""))["dataset"].tolist() == ["", ""]
    assert titled(pd.DataFrame({"k": [1]})).equals(pd.DataFrame({"k": [1]}))


def test_a_table_without_rows_has_its_heads() -> None:
    shown = show(TABLE[:0], "T & U.", evidence="measured")
    assert read_back(shown)[0].columns.tolist() == [*TABLE]
    assert "T &amp; U." in shown.html


def test_numbers_need_an_evidence() -> None:
    with pytest.raises(InputError, match="has no evidence"):
        show(TABLE, "T.")
    with pytest.raises(InputError, match="unknown evidence 'guessed'"):
        show(TABLE, "T.", evidence="guessed")


def test_scores_are_a_row_a_method_and_a_column_a_data_set() -> None:
    scores = SCORES.assign(cost=[np.nan, 1.0, 0.0, np.nan, np.nan, 1.0, np.nan])
    [table] = read_back(show_scores(scores, "Scores.", evidence="measured"))
    assert list(table) == ["method", "cost", "MMLU", "TriviaQA", "GSM8K"]
    assert table["method"].tolist() == ["Uniform random", "P(True)", "Probe (GSM8K)", "Oracle CC"]
    assert table.loc[2, "TriviaQA":].isna().all()


def test_a_star_is_only_for_who_is_best_alone() -> None:
    html = show_scores(SCORES, "Scores.", evidence="measured").html
    assert "<td>★ 0.100 [0.050, 0.150] 1 missing</td>" in html
    assert html.count(">≈ ") == 2
    assert html.count("<td>★") == 1
    assert "A star: significantly lower than every other method" in html
    fewer = SCORES.assign(questions=[10, 6, 10, 10, 10, 10, 10], missing=0)
    assert " on 6 of 10</td>" in show_scores(fewer, "Scores.", evidence="measured").html
    bare = SCORES[["method", "dataset", "brier"]]
    assert "<td>0.100</td>" in show_scores(bare, "As printed.", evidence="reported").html


def test_the_names_that_a_manifest_gives_are_no_markup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hostile = "<script>alert(1)</script></td></table> A & B"
    (tmp_path / "datasets").mkdir()
    lines = "name: evil", f"title: {hostile}", "domain: <b>", "kind: short"
    text = "\n".join([*lines, "splits: {test: {file: a.csv}}"])
    (tmp_path / "datasets" / "evil.yaml").write_text(text)
    monkeypatch.setenv(OWN_MANIFESTS, str(tmp_path))
    rows = {"dataset": ["gsm8k", "evil"], "method": "<b>P(True)</b>", "brier": 0.25}
    table = pd.DataFrame(rows)
    for shown in (
        show_scores(table, "Scores.", evidence="measured"),
        show(table, "Scores.", evidence="measured"),
    ):
        page = BeautifulSoup(shown.html, "html.parser")
        assert hostile in [cell.get_text() for cell in page.find_all(["th", "td"])]
        assert not page.find_all(["script", "b"])
