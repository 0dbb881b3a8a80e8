"""Score one's own files: tables of question_id, confidence, correct, total, and logs of others as
they are.

A log of lm-evaluation-harness (``samples_*.jsonl``) or inspect_ai (``.eval``, ``.json``) has counts
and no confidences: it is scored by its accuracy, and says what a confidence would have to beat."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from capcal_lib import metrics
from capcal_lib.applications import deep_samples, pass_at_k
from capcal_lib.io.comparing import BEST, compare_files, file_terms, in_words, labels_of
from capcal_lib.io.tables import check_counts, check_table, read_file
from capcal_lib.results.terms import (
    COUNTS,
    FEWEST,
    NUMBERS,
    constant_terms,
    decimals_of,
    gain_bounds,
    mark_best,
    question_terms,
)
from capcal_lib.rows import QUESTION_ID, plain_head
from capcal_lib.text import counted, spell

POWERS = (2, 4, 8, 16, 32, 64)  # the k of pass@k, as far as ten questions have samples, or all
CORRECTED = "capability Brier, corrected"
CAPABILITY_PLUG_IN = "capability Brier, plug-in"
ECE = "ECE, ten bins, corrected"
RESPONSE = "expected response Brier"
SIZES = "questions, scored samples"
SPLIT = "miscalibration, discrimination (in sample)"
GAIN = "gain over the best constant"
SUMMARY = ["accuracy", CORRECTED, "best constant", GAIN, SPLIT, "AUROC"]


class Scored(NamedTuple):
    """What is shown of scores: a table, with what is said above and below it."""

    above: list[str]
    table: pd.DataFrame
    below: list[str]
    rows: list[pd.DataFrame]  # the same for programs
    parts: dict[str, tuple[pd.DataFrame, pd.DataFrame]]  # of a report: scores, and their questions
    problems: Sequence[str] = ()  # what is damaged


def score_files(files: Sequence[Path], *, every: bool = False, **options: Any) -> Scored:
    """Score files, and compare the others with the first.

    What is shown are the metrics that matter most, or ``every`` one; the rows for programs always
    have all. The other ``options`` are those of
    :func:`~capcal_lib.io.tables.read_file`. `InputError` for whatever
    reading and comparing refuse."""
    notes: list[str] = []
    tables, scores, parts, shown = {}, {}, {}, {}
    for name in map(str, files):
        table, of_file = read_file(Path(name), **options)
        notes += [f"{name}: {note}" for note in of_file]
        tables[name] = table
        scores[name] = score_counts(table)
        shown[name] = spell_scores(scores[name]) if every else summarize(scores[name])
        parts[name] = shown[name].to_frame("value"), table
        notes += [f"{name}: {note}" for note in _notes_on(scores[name], table, every)]
    rival = str(files[0])
    rows = [pd.concat(scores, names=["file"]).reset_index()]
    if len(tables) == 1:
        above = [f"{rival}: {intervals_of(len(table))}"]
        below = [*notes, in_words(rival, table, scores[rival])]
        return Scored(above, parts[rival][0], below, rows, parts)
    comparison = compare_files(tables, rival)
    rows.append(comparison.rename_axis("file").reset_index().assign(against=rival))
    marks = mark_best(file_terms(tables), labels_of(tables)).fillna(False)
    if best := [name for name in tables if marks[name]]:
        notes.append(f"{' and '.join(best)} {BEST}")
    overview = pd.concat(shown, axis="columns").fillna("")
    return Scored([], overview, [*notes, *comparison["sentence"]], rows, parts)


def intervals_of(questions: int) -> str:
    """Say of what the intervals are, or why there are none."""
    if questions < FEWEST:
        return f"{counted(questions, 'question')}, too few for intervals"
    return "95 % intervals for questions like these"


def _notes_on(scores: pd.DataFrame, table: pd.DataFrame, every: bool) -> list[str]:
    """Say what scores mean that no true one can have."""
    notes = []
    value = scores["value"]
    if min(value.get(CORRECTED, 0.0), value.get("best constant", 0.0)) < 0:
        notes.append("a corrected score below 0 is noise of sampling: the true one is 0 or more")
    if every and np.isinf(value.get("log loss", 0.0)):
        unlike = table["correct"] / table["total"] != table["confidence"]
        sure = int((unlike & table["confidence"].isin([0, 1])).sum())
        notes.append(
            f"log loss is infinite: {counted(sure, 'question')} with a confidence of 0 or 1 and "
            "samples to the contrary"
        )
    return notes


def score_table(
    table: pd.DataFrame,
    *,
    drop_missing: bool = False,
    columns: Mapping[str, str] = MappingProxyType({}),
) -> pd.DataFrame:
    """Score a table of one's own: ``question_id``, ``confidence``, ``correct`` and ``total``.

    The questions may be the index. Without a ``total`` each row is one sample, and without a
    ``confidence`` the counts alone are scored. ``columns`` say what is called otherwise, as in
    ``{"confidence": "p"}``; rows without a confidence are refused, or left out with
    ``drop_missing``. The result is that of :func:`score_counts`.

    `InputError` for whatever :func:`~capcal_lib.io.tables.read_confidences` refuses in a file.

    >>> table = pd.DataFrame({"confidence": [0.9, 0.2], "correct": [8, 1], "total": 10})
    >>> round(score_table(table).loc["capability Brier, plug-in", "value"], 4)
    0.01
    """
    heads = {*map(plain_head, map(str, table)), *columns}
    names = {plain_head(name) for name in QUESTION_ID}
    in_index = "total" in heads or plain_head(str(table.index.name)) in names
    if in_index and heads.isdisjoint(names):
        table = table.assign(question_id=table.index.map(str))
    table = table.reset_index(drop=True)
    if "confidence" not in heads:
        return score_counts(check_counts("the table", table, columns).table)
    checked = check_table("the table", table, drop_missing=drop_missing, columns=columns)
    return score_counts(checked.table)


def score_counts(table: pd.DataFrame) -> pd.DataFrame:
    """Score what a file holds, checked: confidences, or counts alone, with a row a question.

    Returns a table indexed by ``metric``: its ``value``, where there is one the 95 % interval
    ``low`` to ``high`` for questions like these, and the number of ``questions`` that it rests on.
    Fewer than ten questions have no interval. A corrected score may fall below 0, where no true
    one lies; its interval then begins at the score itself. ``noise`` is the share of the
    variance of mu_hat over questions that comes from few samples, and not from questions that
    differ; ``best constant`` is the corrected score of always saying the mean of the other
    questions, which a confidence has to beat. The corrected scores are those of the questions with
    two scored samples or more. Where the table has a ``cluster``, whole clusters vary."""
    mu_hat = table["correct"] / table["total"]
    twice = table["total"] > 1
    corrected = bool(twice.any())
    known = table[twice] if corrected else table
    clusters = table.get("cluster")
    constant = constant_terms(table)
    floor = 0 - question_terms(mu_hat, table).mean()
    spread = mu_hat[twice].var()
    rows = {
        "questions": _number(len(table), table),
        "scored samples": _number(int(table["total"].sum()), table),
        "accuracy": _mean(mu_hat, clusters),
    }
    deep = deep_samples(table["total"])
    for k in POWERS:
        if k <= deep:
            solved = pd.Series(pass_at_k(table["correct"], table["total"], [k])[:, 0], table.index)
            rows[f"pass@{k}"] = _mean(solved, clusters)
    if spread > 0:
        rows["noise"] = _number(min(1.0, floor / spread), known)
    rows["best constant"] = _mean(constant, clusters)
    if corrected:
        uniform = metrics.uniform_baseline_brier_terms(*known[COUNTS].to_numpy().T, corrected=True)
        uniform_terms = pd.Series(uniform, known.index)
        rows["uniform random"] = _mean(uniform_terms, clusters, (1 / 12, 1 / 3))
    if "confidence" in table:
        triple = table[NUMBERS].to_numpy().T
        plug_in = question_terms(table["confidence"], table, corrected=False)
        brier = question_terms(table["confidence"], table)
        parts = metrics.isotonic_split(*known[NUMBERS].to_numpy().T, corrected=corrected)
        rows[CAPABILITY_PLUG_IN] = _mean(plug_in, clusters)
        rows[CORRECTED] = _mean(brier, clusters)
        rows[GAIN] = _mean(constant - brier, clusters, gain_bounds(known))
        rows["noise floor of the plug-in"] = _number(floor, known)
        rows["miscalibration"] = _number(parts.miscalibration, known)
        rows["discrimination"] = _number(parts.discrimination, known)
        rows[RESPONSE] = _number(metrics.expected_response_brier(*triple), table)
        if corrected:
            variance = metrics.correctness_variance(table["correct"], table["total"])
            rows["correctness variance"] = _number(variance, table)
        rows["log loss"] = _log_loss(table, clusters)
        ece = metrics.binned_ece(*triple, corrected=False)
        rows["ECE, ten bins, plug-in"] = _number(ece, table)
        rows[ECE] = _number(metrics.binned_ece(*triple), table)
        rows["AUROC"] = _number(metrics.soft_auroc(*triple), table)
        rows["Spearman with mu_hat"] = _number(metrics.spearman(*triple), table)
    result = pd.DataFrame(rows, ["value", "low", "high", "questions"], dtype=object).T
    return result.rename_axis("metric").dropna(subset="value")


def _number(value: float, questions: pd.DataFrame) -> list[float]:
    """Return the row of a number without an interval, which rests on these questions."""
    return [value, np.nan, np.nan, len(questions)]


def _mean(
    terms: "pd.Series[float]",
    clusters: "pd.Series[str] | None",
    bounds: tuple[float, float] = (0, 1),
) -> list[float]:
    """Return the row of a mean over questions, with its limits; NaN where there are too few
    questions for any, and where no true mean lies between them.
    """
    if clusters is not None:
        clusters = clusters[terms.index]
    estimate, low, high = metrics.mean_interval(terms, clusters=clusters, bounds=bounds)
    questions = int(terms.count())
    if questions < FEWEST or high <= bounds[0]:
        return [estimate, np.nan, np.nan, questions]
    return [estimate, low, high, questions]


def _log_loss(table: pd.DataFrame, clusters: "pd.Series[str] | None") -> list[float]:
    """Return the row of the log loss.

    A question may cost as much as the surest confidence does if it is wrong. Where that is 0 or 1,
    an unseen question may make the loss infinite, so that it has no interval.
    """
    loss = metrics.expected_response_loss(*table[NUMBERS].to_numpy().T, score="log")
    doubt = np.minimum(table["confidence"], 1 - table["confidence"]).min()
    if doubt == 0:
        return _number(float(loss.mean()), table)
    return _mean(pd.Series(loss, table.index), clusters, (0, -np.log(doubt)))


def spell_scores(scores: pd.DataFrame) -> "pd.Series[str]":
    """Spell each score with its interval, with as many decimals as the number of questions is
    worth; what rests on fewer questions than the file has says so.
    """
    most = scores["questions"].max()
    texts = {}
    for name, questions in scores["questions"].items():
        text = spell_score(scores, str(name))
        texts[name] = text if questions == most else f"{text} on {counted(questions, 'question')}"
    return pd.Series(texts).rename_axis("metric")


def spell_score(scores: pd.DataFrame, metric: str) -> str:
    """Spell a row of :func:`score_counts`."""
    row: Any = scores.loc[metric]
    if isinstance(row["value"], int):
        return f"{row['value']:,}"
    return spell(row["value"], row["low"], row["high"], decimals_of(row["questions"]))


def summarize(scores: pd.DataFrame) -> "pd.Series[str]":
    """Spell what matters most of scores: seven rows, or fewer where something is not known.

    Counts alone have pass@k and the noise; single samples the Brier score of responses."""
    texts = spell_scores(scores)
    texts[SIZES] = f"{texts['questions']}, {texts['scored samples']}"
    names = [SIZES, *SUMMARY]
    if "miscalibration" in texts:
        parts = spell_score(scores, "miscalibration"), texts["discrimination"]
        texts[SPLIT] = ", ".join(parts)
        if CORRECTED not in texts:
            names.insert(2, RESPONSE)
    else:
        names[2:2] = [*texts.filter(regex="^pass@").index[-1:], "noise"]
    return texts[[name for name in names if name in texts]]
