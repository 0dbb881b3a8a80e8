import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capcal_lib.errors import InputError
from capcal_lib.reported import (
    FOLDERS,
    beta_from_moments,
    beta_moments,
    constant_score,
    load_reported,
    printed_curves,
    printed_distances,
)
from tests.outside import FACTS, PAPER, needs_facts, needs_paper

MODELS = {
    "Olmo-3-7B-Instruct": "olmo-3-7b-instruct",
    "Qwen3-8B": "qwen3-8b",
    "Qwen-3B": "qwen3-8b",  # the paper's name for it in the table of hyperparameters
    "gpt-oss-20b": "gpt-oss-20b",
}
MODEL_NAMES = sorted(set(MODELS.values()))
DATASETS = {
    "TriviaQA": "triviaqa",
    "SimpleQA": "simpleqa",
    "GSM8K": "gsm8k",
    "MATH": "math500",
    "MATH-500": "math500",
    "AIME25": "aime25",
    "MMLU": "mmlu",
    "GPQA": "gpqa",
}
METHODS = {
    "Uniform random baseline": "Uniform random",
    "Verbalized confidence": "Verbalized confidence",
    "P(True)": "P(True)",
    "Probe (train on TriviaQA)": "Probe (TriviaQA)",
    "Probe (train on GSM8K)": "Probe (GSM8K)",
    "Probe (train on MATH)": "Probe (MATH)",
    "Probing (TriviaQA)": "Probe (TriviaQA)",
    "Probing (GSM8K)": "Probe (GSM8K)",
    "Probing (TriviaQA + GSM8K)": "Probe (TriviaQA + GSM8K)",
    "Probe-MATH": "Probe (MATH)",
    "Oracle RC": "Oracle RC",
    "Oracle CC": "Oracle CC",
}
SETTINGS = {
    "Number of layer activations used": "layers used",
    "Hidden dimension": "hidden size",
    "Epochs": "epochs",
    "Batch size": "batch size",
    "Weight decay": "weight decay",
    "Feature standardization": "feature standardization",
}
WORDS = {"Pooling method": "Mean pooling", "Loss function": "BCE loss"}


def plain(cell: str) -> str:
    """Strip a LaTeX table cell of everything that does not print."""
    cell = re.sub(r"\\cellcolor\{[^}]*\}|\\hspace\{[^}]*\}|\\multicolumn\{\d\}\{[^}]*\}", "", cell)
    cell = re.sub(r"\\(?:textbf|underline|mbox)\b", "", cell)
    return re.sub(r"[{}$]|\\", "", cell).strip()


def tabulars(tex: str):
    """Yield each tabular of the paper as a list of rows of plain cells."""
    for body in re.findall(r"\\begin\{tabularx?\}(.*?)\\end\{tabularx?\}", tex, flags=re.DOTALL):
        rows = (row.split("&") for row in re.split(r"\\\\", body[body.index("\\toprule") :]))
        rule = r"\\(?:top|mid|bottom)rule|\\cmidrule\(lr\)\{[^}]*\}|\\addlinespace\[[^]]*\]"
        yield [[plain(re.sub(rule, "", cell)) for cell in row] for row in rows]


def number(text: str) -> float | None:
    if scientific := re.fullmatch(r"(\d+) times 10\^(-\d)", text):
        return float(f"{scientific[1]}e{scientific[2]}")
    if text.endswith("%"):
        return round(float(text[:-1]) / 100, 6)
    if text in ("True", "False"):
        return float(text == "True")
    return float(text) if re.fullmatch(r"\d+(\.\d+)?", text) else None


def printed_cells(tex: str) -> dict:
    """Collect every number in a table of the paper under (table, model, method, dataset, k)."""
    cells = {}
    kinds = iter(
        (
            "main",
            "passk_math500",
            "mean_accuracy",
            "hyperparameters",
            "consistency",
            "mixing",
            "passk_aime25",
        )
    )
    for rows in tabulars(tex):
        if not any(number(cell) is not None for row in rows for cell in row[1:]):
            continue
        table, model, head = next(kinds), "", []
        for label, *rest in rows:
            if any(cell in DATASETS or cell in MODELS or cell.startswith("pass@") for cell in rest):
                head = rest
                continue
            if label in WORDS:
                assert rest == [WORDS[label]] * len(MODEL_NAMES)
                continue
            if label in MODELS and not any(rest):
                model = MODELS[label]
                continue
            if not any(number(cell) is not None for cell in rest):
                continue  # the row of domains, and what is left after the last row
            for column, text in zip(head, rest, strict=True):
                value = number(text)
                if column == "Cost":
                    continue
                assert value is not None, (table, label, column, text)
                if table == "mean_accuracy":
                    key = (MODELS[label], "", DATASETS[column], None)
                elif table == "hyperparameters":
                    rate = re.fullmatch(r"Learning rate \((.*)\)", label)
                    setting, dataset = (
                        ("learning rate", DATASETS[rate[1]]) if rate else (SETTINGS[label], "")
                    )
                    key = (MODELS[column], setting, dataset, None)
                elif table == "consistency":
                    k = re.fullmatch(r"Consistency \(k=(\d+)\)", label)[1]
                    key = (model, "Response consistency", DATASETS[column], int(k))
                elif table.startswith("passk"):
                    key = (
                        model,
                        METHODS[label],
                        table.removeprefix("passk_"),
                        int(column.removeprefix("pass@")),
                    )
                else:
                    key = (model, METHODS[label], DATASETS[column], None)
                assert (table, *key) not in cells
                cells[table, *key] = value
    assert next(kinds, None) is None
    for name, model in MODELS.items():
        if setting := re.search(
            re.escape(name) + r"~\\cite[^.]*?temperature=([\d.]+) and top-p=([\d.]+\d)", tex
        ):
            cells["sampling", model, "temperature", "", None] = float(setting[1])
            cells["sampling", model, "top_p", "", None] = float(setting[2])
    return cells


def stored_cells() -> dict:
    rows = load_reported().astype({"k": object}).itertuples(index=False)
    return {
        (
            row.table,
            row.model,
            row.method,
            row.dataset,
            row.k if isinstance(row.k, int) else None,
        ): row.value
        for row in rows
    }


@needs_paper
def test_every_cell_is_the_papers_and_none_is_missing():
    printed = printed_cells(PAPER.read_text(encoding="utf-8"))
    assert len(printed) == 126 + 21 + 63 + 63 + 36 + 36 + 27 + 6
    assert stored_cells() == printed


def test_columns_and_types():
    everything = load_reported()
    assert tuple(everything.columns) == ("table", "model", "method", "dataset", "k", "value")
    assert str(everything["k"].dtype) == "Int64"
    assert everything["value"].dtype == np.float64
    assert everything["value"].notna().all()
    assert not everything[["table", "model", "method", "dataset"]].isna().any(axis=None)


def test_tables_that_repeat_a_number_agree():
    main = load_reported("main").set_index(["model", "method", "dataset"])["value"]
    mixing = load_reported("mixing").set_index(["model", "method", "dataset"])["value"]
    single = mixing[mixing.index.get_level_values("method") != "Probe (TriviaQA + GSM8K)"]
    assert (main[single.index] == single).all()


def test_a_caller_cannot_change_what_the_next_one_reads():
    mine = load_reported("main")
    mine["value"] = 0.0
    assert (load_reported("main")["value"] > 0).all()


def test_unknown_table_names_the_known_ones():
    with pytest.raises(
        InputError, match=r"^unknown table of the paper 'mian'; known: consistency, .*, sampling$"
    ):
        load_reported("mian")


def test_beta_moments_by_hand():
    mean, spread = beta_moments("olmo-3-7b-instruct", "triviaqa")
    assert mean == 0.5397
    assert spread == pytest.approx((1 / 3 - 0.2745) * 100 / 99)


def test_a_constant_scores_the_variance_that_two_printed_numbers_leave():
    baseline = load_reported("main").query("method == 'Uniform random'")
    for row in load_reported("mean_accuracy").itertuples():
        of = (baseline["model"] == row.model) & (baseline["dataset"] == row.dataset)
        second = row.value - 1 / 3 + float(baseline.loc[of, "value"].iloc[0])  # E[mu_hat^2]
        assert constant_score(row.model, row.dataset) == pytest.approx(second - row.value**2)


@pytest.mark.parametrize(
    ("model", "dataset", "message"),
    [
        ("smollm2-135m", "mmlu", "unknown model of the paper 'smollm2-135m'; known: gpt-oss-20b, "),
        ("qwen3-8b", "mini-exam", "unknown data set of the paper 'mini-exam'; known: aime25, "),
    ],
)
def test_beta_moments_refuse_what_the_paper_does_not_have(model, dataset, message):
    with pytest.raises(InputError, match=re.escape(message)):
        beta_moments(model, dataset)


SHAPES = st.floats(0.01, 50)


@settings(max_examples=25)
@given(SHAPES, SHAPES)
def test_moments_lead_back_to_the_shapes(a, b):
    mean = a / (a + b)
    spread = a * b / ((a + b) * (a + b + 1))  # E[mu] - E[mu^2]
    assert beta_from_moments(mean, spread) == pytest.approx((a, b), rel=1e-9)


@pytest.mark.parametrize(
    ("mean", "spread", "message"),
    [
        (0.0, 0.1, "no Beta has mean 0.0 and E[mu(1-mu)] = 0.1; the mean must lie between 0 and 1"),
        (0.5, 0.25, "E[mu(1-mu)] between 0 and mean(1-mean) = 0.25"),
        (0.5, float("nan"), "no Beta has mean 0.5"),
    ],
)
def test_impossible_moments_are_refused(mean, spread, message):
    with pytest.raises(InputError) as error:
        beta_from_moments(mean, spread)
    assert message in str(error.value)


LATER = "reference code"


def printed_later(head: str) -> list[list[str]]:
    """Return the cells of all table rows under a heading of the notes on the authors' code."""
    lines = FACTS.read_text(encoding="utf-8").splitlines()
    start = next(row for row, line in enumerate(lines) if line.startswith(head))
    end = next(row for row in range(start + 1, len(lines)) if lines[row].startswith("#"))
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in lines[start:end]
        if line.startswith("|")
    ]


@needs_facts
@pytest.mark.parametrize(
    ("head", "table", "per_cell", "first"),
    [
        ("### 7.8", "k_eval_curve", 3, 2),
        ("### 7.10", "budget", 1, 2),
        ("### 7.11", "tokens", 0, 1),
        ("### 7.6", ("recalibrated", "few_shot"), 1, 2),
        ("### 7.7", "spearman", 1, 2),
    ],
)
def test_later_cells_are_those_of_the_notes_and_none_is_missing(head, table, per_cell, first):
    _, _, *rows = printed_later(head)
    printed = [float(value) for row in rows for cell in row[first:] for value in cell.split(" / ")]
    assert not per_cell or len(printed) == per_cell * sum(len(row) - first for row in rows)
    tables = (table,) if isinstance(table, str) else table
    stored = [value for name in tables for value in load_reported(name, source=LATER)["value"]]
    assert sorted(stored) == sorted(printed)
    if len(tables) == 1:
        assert stored == printed


FITTED = "fitted on MATH"


@pytest.mark.parametrize(
    ("table", "key", "value"),
    [
        ("k_eval_curve", ("gpt-oss-20b", "Probe (MATH)", "gpqa", 200, ""), 0.1422),
        ("recalibrated", ("qwen3-8b", "P(True) + isotonic", "mmlu", None, FITTED), 0.1057),
        ("temperature_accuracy", ("qwen3-8b", "", "gsm8k", None, "temperature 0.175"), 0.9361),
        ("later_ece", ("olmo-3-7b-instruct", "P(True)", "aime24-26", None, ""), 0.2062),
        ("oracle_rc", ("qwen3-8b", "Oracle RC", "gpqa", None, "ECE"), 0.2581),
    ],
)
def test_a_later_cell_by_hand(table, key, value):
    rows = load_reported(table, source=LATER).astype({"k": object})
    k = [None if not isinstance(one, int) else one for one in rows["k"]]
    keys = list(
        zip(rows["model"], rows["method"], rows["dataset"], k, rows["setting"], strict=True)
    )
    assert rows["value"].iloc[keys.index(key)] == value


def test_later_numbers_say_what_they_are():
    later = load_reported(source=LATER)
    assert tuple(later.columns) == (
        *("table", "model", "method", "dataset", "k"),
        *("setting", "value", "generation", "source", "precision"),
    )
    assert (later["precision"] > 0).all()
    assert later["generation"].str.contains(r"^G[123]").all()
    assert (later[["source", "model", "dataset"]] != "").all(axis=None)


def test_other_questions_have_other_names():
    later = load_reported(source=LATER)
    g3 = later[later["generation"] == "G3"]
    assert not g3["dataset"].isin(["aime25", "mmlu"]).any()
    assert (
        not later[later["generation"] != "G3"]["dataset"]
        .isin(["aime24-26", "mmlu-test-1000"])
        .any()
    )


def test_the_two_sources_never_mix():
    assert not {*load_reported()["table"]} & {*load_reported(source=LATER)["table"]}
    with pytest.raises(InputError, match=r"^unknown table of the paper 'budget'; known: "):
        load_reported("budget")
    with pytest.raises(
        InputError, match=r"^unknown table of the reference code 'main'; known: budget, "
    ):
        load_reported("main", source=LATER)
    with pytest.raises(
        InputError,
        match=r"^unknown source of reported numbers 'blog'; known: paper, reference code$",
    ):
        load_reported(source="blog")


@pytest.mark.parametrize("source", ["paper", LATER])
def test_a_number_is_in_its_file_once_and_says_where_it_is_from(source):
    names = [path.stem for path in FOLDERS[source].glob("*.csv")]
    tables = {name: load_reported(name, source=source) for name in names}
    assert set(load_reported(source=source)["table"]) == set(names)
    assert all(f"``{name}``" in load_reported.__doc__ for name in names)
    for name, table in tables.items():
        assert set(table["table"]) == {name}
        assert np.isfinite(table["value"]).all()
    table = pd.concat(tables.values()).drop(
        columns=["value", "source", "precision"], errors="ignore"
    )
    assert not table.duplicated().any()
    if source == LATER:
        later = load_reported(source=LATER)
        assert (later[["generation", "source"]] != "").all(axis=None)
        assert np.isfinite(later["precision"]).all()


def test_the_distance_of_a_response_follows_from_the_printed_baseline() -> None:
    printed = load_reported("main").query("method == 'Uniform random'")
    score = printed.set_index(["model", "dataset"])["value"]["qwen3-8b", "gsm8k"]
    found = printed_distances(corrected=False).set_index(["model", "dataset"])["distance"]
    assert len(found) == len(printed)
    assert found["qwen3-8b", "gsm8k"] == pytest.approx(2 / 3 - 2 * score)
    unbiased = printed_distances().set_index(["model", "dataset"])["distance"]
    assert (unbiased / found).tolist() == pytest.approx([100 / 99] * len(found))


def test_printed_curves_begin_at_the_printed_accuracy() -> None:
    curves = printed_curves([1, 8]).set_index(["model", "dataset", "k"])["estimate"].sort_index()
    accuracy = load_reported("mean_accuracy").set_index(["model", "dataset"])["value"]
    assert len(curves) == 12  # three models on two sets
    for model, dataset in curves.index.droplevel("k").unique():
        assert curves[model, dataset, 1] == pytest.approx(accuracy[model, dataset])
        a, b = beta_from_moments(*beta_moments(model, dataset))
        mu = np.random.default_rng(0).beta(a, b, 200_000)
        assert curves[model, dataset, 8] == pytest.approx((1 - (1 - mu) ** 8).mean(), abs=0.005)
