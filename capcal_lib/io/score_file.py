"""Score one's own files: tables of question_id, confidence, correct, total, and logs of others as
they are.

A log of lm-evaluation-harness (``samples_*.jsonl``) or inspect_ai (``.eval``, ``.json``) has counts
and no confidences: it is scored by its accuracy, and says what a confidence would have to beat."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from capcal_lib import metrics
from capcal_lib.applications import deep_samples, pass_at_k
from capcal_lib.errors import InputError
from capcal_lib.io.tables import check_counts, check_table, read_file
from capcal_lib.results.terms import (
    COUNTS,
    FEWEST,
    NUMBERS,
    constant_terms,
    decimals_of,
    gain_bounds,
    question_terms,
)
from capcal_lib.rows import QUESTION_IDS
from capcal_lib.text import counted, sanitize, spell

POWERS = (2, 4, 8, 16, 32, 64)  # the k of pass@k, as far as ten questions have samples, or all
CORRECTED = "capability Brier, corrected"
CAPABILITY_PLUG_IN = "capability Brier, plug-in"
RESPONSE = "expected response Brier"
GAIN = "gain over the best constant"
SIZES = "questions, scored samples"
SPLIT = "miscalibration, discrimination (in sample)"
SUMMARY = ["accuracy", CORRECTED, "best constant", GAIN, SPLIT, "AUROC"]
BELOW_ZERO = "a corrected score below 0 is noise of sampling: the true one is 0 or more"
SENTENCES = {
    "better": "{file} is better than {rival} by {gain}, on {both}",
    "worse": "{file} is worse than {rival} by {gain}, on {both}",
    "inconclusive": "these data cannot tell {file} and {rival} apart: {gain}, on {both}",
    "too few": "too few to tell {file} and {rival} apart: {both}",
}


class Scored(NamedTuple):
    """What is shown of scores: a table, with what is said above and below it."""

    above: list[str]
    table: pd.DataFrame
    below: list[str]
    rows: list[pd.DataFrame]  # the same for programs
    parts: dict[str, tuple[pd.DataFrame, pd.DataFrame]]  # of a report: scores, and their questions
    problems: Sequence[str] = ()  # what is damaged


def score_files(files: Sequence[Path], **options: Any) -> Scored:
    """Score files, and compare the others with the first.

    What is shown are the metrics that matter most; the rows for programs have all. The ``options``
    are those of :func:`~capcal_lib.io.tables.read_file`. `InputError` for whatever reading and
    comparing refuse."""
    above, notes = [], []
    tables, scores, parts = {}, {}, {}
    for name in map(str, files):
        table, of_file = read_file(Path(name), **options)
        tables[name] = table
        scores[name] = score_counts(table)
        parts[name] = summarize(scores[name]).to_frame("value"), table
        intervals = "95 % intervals for questions like these"
        if len(table) < FEWEST:
            intervals = f"{counted(len(table), 'question')}, too few for intervals"
        above.append(f"{name}: {intervals}")
        notes += [f"{name}: {note}" for note in of_file]
        if scores[name]["value"].get(CORRECTED, 0.0) < 0:
            notes.append(f"{name}: {BELOW_ZERO}")
    rows = [pd.concat(scores, names=["file"]).reset_index()]
    if len(tables) > 1:
        comparison = compare_files(tables, str(files[0]))
        rows.append(comparison.reset_index().assign(against=str(files[0])))
        notes += [*comparison["sentence"]]
    else:
        notes += [_against_constant(name, one) for name, one in scores.items() if GAIN in one.index]
    shown = pd.concat({name: part["value"] for name, (part, _) in parts.items()}, axis="columns")
    if len(tables) == 1:
        shown.columns = ["value"]
    return Scored(above, shown.fillna(""), notes, rows, parts)


def score_table(table: pd.DataFrame) -> pd.DataFrame:
    """Score a table of one's own: ``question_id``, ``confidence``, ``correct`` and ``total``.

    The questions may be the index. Without a ``total`` each row is one sample, and without a
    ``confidence`` the counts alone are scored. Rename other columns, and drop rows without a
    confidence, before. The result is that of :func:`score_counts`.

    `InputError` for whatever :func:`~capcal_lib.io.tables.check_table` refuses.

    >>> table = pd.DataFrame({"confidence": [0.9, 0.2], "correct": [8, 1], "total": 10})
    >>> round(score_table(table).loc["capability Brier, plug-in", "value"], 4)
    0.01
    """
    if {*table}.isdisjoint(QUESTION_IDS):
        table = table.assign(question_id=table.index.map(str))
    table = table.reset_index(drop=True)
    if "confidence" not in table:
        return score_counts(check_counts("the table", table).table)
    return score_counts(check_table("the table", table).table)


def score_counts(table: pd.DataFrame) -> pd.DataFrame:
    """Score what a file holds, checked: confidences, or counts alone, with a row a question.

    Returns a table indexed by ``metric``: its ``value``, where there is one the 95 % interval
    ``low`` to ``high`` for questions like these, and the number of ``questions`` that it rests on.
    Fewer than ten questions have no interval. A corrected score may fall below 0, where no true
    one lies; its interval then begins at the score itself. ``best constant`` is the corrected score
    of always saying the mean of the other questions, which a confidence has to beat. The corrected
    scores are those of the questions with two scored samples or more. Where the table has a
    ``cluster``, whole clusters vary."""
    mu_hat = table["correct"] / table["total"]
    twice = table["total"] > 1
    corrected = bool(twice.any())
    known = table[twice] if corrected else table
    clusters = table.get("cluster")
    constant = constant_terms(table)
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
    rows["best constant"] = _mean(constant, clusters)
    if corrected:
        uniform = metrics.uniform_baseline_brier_terms(*known[COUNTS].to_numpy().T, corrected=True)
        rows["uniform random"] = _mean(pd.Series(uniform, known.index), clusters, (1 / 12, 1 / 3))
    if "confidence" in table:
        triple = table[NUMBERS].to_numpy().T
        brier = question_terms(table["confidence"], table)
        plug_in = question_terms(table["confidence"], table, corrected=False)
        parts = metrics.isotonic_split(*known[NUMBERS].to_numpy().T, corrected=corrected)
        rows[CORRECTED] = _mean(brier, clusters)
        rows[GAIN] = _mean(constant - brier, clusters, gain_bounds(known))
        rows["miscalibration"] = _number(parts.miscalibration, known)
        rows["discrimination"] = _number(parts.discrimination, known)
        rows[CAPABILITY_PLUG_IN] = _mean(plug_in, clusters)
        rows[RESPONSE] = _number(metrics.expected_response_brier(*triple), table)
        if corrected:
            variance = metrics.correctness_variance(table["correct"], table["total"])
            rows["correctness variance"] = _number(variance, table)
        ece = metrics.binned_ece(*triple, corrected=False)
        rows["ECE, ten bins, plug-in"] = _number(ece, table)
        rows["ECE, ten bins, corrected"] = _number(metrics.binned_ece(*triple), table)
        rows["AUROC"] = _number(metrics.soft_auroc(*triple), table)
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

    Counts alone have pass@k; single samples the Brier score of responses."""
    texts = spell_scores(scores)
    texts[SIZES] = f"{texts['questions']}, {texts['scored samples']}"
    names = [SIZES, *SUMMARY]
    if "miscalibration" in texts:
        texts[SPLIT] = f"{spell_score(scores, 'miscalibration')}, {texts['discrimination']}"
        if CORRECTED not in texts:
            names.insert(2, RESPONSE)
    else:
        names[2:2] = texts.filter(regex="^pass@").index[-1:]
    return texts[[name for name in names if name in texts]]


def compare_files(tables: Mapping[str, pd.DataFrame], rival: str) -> pd.DataFrame:
    """Compare every file with one of them, on the questions that both have.

    Tables of confidences are compared by capability Brier score, logs by accuracy. Returns a row a
    ``file``, the rival aside: ``estimate`` with the interval ``low`` to ``high``, positive where
    the file is better, ``p`` and ``verdict`` as from :func:`~capcal_lib.metrics.gains`, or below
    ten questions ``too few``; the number of ``questions`` that both have; and a ``sentence``.

    `InputError` where confidences stand beside logs, and where two files count a question
    differently, give it another answer, or group it otherwise."""
    kinds = {("confidence" in table, "cluster" in table) for table in tables.values()}
    if len(kinds) > 1:
        raise InputError("files are compared that all have confidences and subjects, or none")
    [(confident, grouped)] = kinds
    same = [*COUNTS] if confident else ["gold", "question"]
    if grouped:
        same.append("cluster")
    facts = pd.concat(table[same].rename_axis("question_id") for table in tables.values())
    facts = facts.reset_index().drop_duplicates()
    again = facts["question_id"].duplicated()
    if again.any():
        name = sanitize(facts.loc[again, "question_id"].iloc[0], 80)
        raise InputError(
            f"question {name!r} has other {' and '.join(same)} in one file than in another"
        )
    terms = {}
    for name, table in tables.items():
        if confident:
            terms[name] = question_terms(table["confidence"], table, corrected=False)
        else:
            terms[name] = 1 - table["correct"] / table["total"]
    by_file = pd.DataFrame(terms)
    clusters = None
    if grouped:
        clusters = facts.set_index("question_id")["cluster"].reindex(by_file.index)
    compared = metrics.gains(by_file, rival, clusters=clusters).rename_axis("file")
    both = by_file[compared.index].notna() & by_file[[rival]].notna().to_numpy()
    compared["questions"] = both.sum()
    few = compared["questions"] < FEWEST
    compared.loc[few, ["low", "high", "p"]] = np.nan
    compared["verdict"] = compared["verdict"].mask(few, "too few")
    compared["sentence"] = [
        _sentence(row, rival, " that both have")
        for row in compared.reset_index().to_dict("records")
    ]
    return compared


def _against_constant(name: str, scores: pd.DataFrame) -> str:
    """Say whether the confidences of a file beat the best constant."""
    gain: Any = scores.rename(columns={"value": "estimate"}).loc[GAIN]
    verdict = "inconclusive"
    if np.isnan(gain["low"]):
        verdict = "too few"
    elif gain["low"] > 0:
        verdict = "better"
    elif gain["high"] < 0:
        verdict = "worse"
    return _sentence({**gain, "file": name, "verdict": verdict}, "the best constant")


def _sentence(row: Mapping[Any, Any], rival: str, which: str = "") -> str:
    """Say what came of one comparison."""
    gain = row["estimate"], row["low"], row["high"]
    if row["verdict"] == "worse":
        gain = -row["estimate"], -row["high"], -row["low"]
    return SENTENCES[row["verdict"]].format(
        file=row["file"],
        rival=rival,
        gain=spell(*gain, decimals_of(row["questions"])),
        both=f"{counted(row['questions'], 'question')}{which}",
    )
