"""Compare scored files, with one of them or with the best constant, and say so in words."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from capcal_lib import metrics
from capcal_lib.errors import InputError
from capcal_lib.io.tables import CLUSTERS
from capcal_lib.results.terms import (
    COUNTS,
    FEWEST,
    constant_terms,
    decimals_of,
    gain_bounds,
    question_terms,
)
from capcal_lib.text import counted, sanitize, spell

MOST = 1_000_000  # questions, more of which are not counted
SAME_CONFIDENCE = 1e-9  # confidences of two files are the same, but for rounding
CONSTANT = "the best constant"
BEST = "may be best: no other is significantly better on questions that both have"
SENTENCES = {
    "better": "{file} is better than {rival} by {gain}, on {both}",
    "worse": "{rival} is better than {file} by {loss}, on {both}",
    "inconclusive": "these data cannot tell {file} and {rival} apart ({gain}, on {both}): about "
    "{needed:,.0f} questions or more would",
    "unplanned": "these data cannot tell {file} and {rival} apart ({gain}, on {both}), and are too "
    "few to say how many would",
    "too few": "too few to tell {file} and {rival} apart: {both}",
    "same": "{file} and {rival} have the same confidences, or accuracies, on {both}",
    "apart": "{file} and {rival} ask different questions: not compared",
    "one question": "one question says nothing of others: scores and intervals take two or more",
    "one sample": "with one scored sample a question, questions that differ and the noise of "
    "sampling cannot be told apart: draw two or more of each",
    "no confidence": "{noise:.0%} of the spread over questions is noise of sampling; a confidence "
    "has to beat {constant}, the score of always saying {accuracy}",
    "few counts": "too few to say what a confidence has to beat: {questions}",
    "no spread": "these samples show no difference between questions beyond the noise of sampling: "
    "they can show of no confidence that it is better than the best constant",
}


def compare_files(tables: Mapping[str, pd.DataFrame], against: str) -> pd.DataFrame:
    """Compare every file with one of them, on the questions that both have.

    Tables of confidences are compared by capability Brier score, logs by accuracy. Returns a row a
    file, ``against`` aside: ``estimate`` with the interval ``low`` to ``high``, positive where the
    file is better, ``p`` and ``verdict`` as from :func:`~capcal_lib.metrics.gains`, or ``same``,
    ``apart``, or, below ten questions, ``too few``; the number of ``questions`` that both have and,
    where inconclusive, of those ``needed``, see :func:`~capcal_lib.metrics.questions_needed`; a
    ``sentence``.

    `InputError` where confidences stand beside logs, and where two files count a question
    differently, give it another answer, or group it otherwise."""
    kinds = {"confidence" in table for table in tables.values()}
    if len(kinds) > 1:
        raise InputError("logs without confidences are not compared with files that have them")
    clusters = labels_of(tables)
    same = [*COUNTS] if True in kinds else ["gold"]
    if clusters is not None:
        same.append("cluster")
    facts = pd.concat(table[same] for table in tables.values())
    unlike = facts[~facts.reset_index().duplicated().to_numpy()].index
    twice = unlike[unlike.duplicated()].get_level_values(0)
    if len(twice):
        what = f"other {' and '.join(same)} in one file than in another"
        raise InputError(f"question {sanitize(twice[0], 80)!r} has {what}")
    return _compare(file_terms(tables), against, clusters)


def labels_of(tables: Mapping[str, pd.DataFrame]) -> "pd.Series[str] | None":
    """Return which questions of all tables belong together; None where no table says it.

    `InputError` where only some do."""
    labels = [table["cluster"] for table in tables.values() if "cluster" in table]
    if not labels:
        return None
    if len(labels) < len(tables):
        raise InputError(
            f"some files have a column {' or '.join(CLUSTERS)} and others none; give it in all, or "
            "in the --key"
        )
    joined = pd.concat(labels)
    return joined[~joined.index.duplicated()]


def file_terms(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return a term of each question by each file, lower being better: of the plug-in Brier score,
    or the share of wrong samples.
    """
    terms = {}
    for name, table in tables.items():
        if "confidence" in table:
            terms[name] = question_terms(table["confidence"], table, corrected=False)
        else:
            terms[name] = 1 - table["correct"] / table["total"]
    return pd.DataFrame(terms)


def _compare(
    terms: pd.DataFrame,
    against: str,
    clusters: "pd.Series[str] | None" = None,
    bounds: tuple[float, float] = (-1.0, 1.0),
) -> pd.DataFrame:
    """Test and say by how much each column is better than another."""
    if clusters is not None:
        clusters = clusters.reindex(terms.index)
    table = metrics.gains(terms, against, clusters=clusters, bounds=bounds)
    gaps = terms[table.index].rsub(terms[against], axis="index")
    table["questions"] = gaps.count()
    few = table["questions"] < FEWEST
    table.loc[few, ["low", "high", "p"]] = np.nan
    table["verdict"] = (
        table["verdict"]
        .mask(few, "too few")
        .mask(gaps.abs().max() < SAME_CONFIDENCE, "same")
        .mask(table["questions"] == 0, "apart")
    )
    table["needed"] = np.nan
    for name in table.index[(table["verdict"] == "inconclusive") & table["p"].notna()]:
        needed = np.ceil(metrics.questions_needed(gaps[name], clusters=clusters, bounds=bounds))
        table.loc[name, "needed"] = np.clip(needed, table.loc[name, "questions"] + 1, MOST)
    sentences = [_sentence(name, against, row) for name, row in table.iterrows()]
    return table.assign(sentence=sentences)


def _sentence(name: Any, against: str, row: "pd.Series[Any]") -> str:
    """Say what came of one comparison."""
    verdict = row["verdict"]
    if verdict == "inconclusive" and np.isnan(row["needed"]):
        verdict = "unplanned"
    both = counted(row["questions"], "question")
    if against != CONSTANT:
        both += " that both have"
    decimals = decimals_of(row["questions"])
    estimate, low, high = row["estimate"], row["low"], row["high"]
    return SENTENCES[verdict].format(
        file=_spoken(name),
        rival=_spoken(against),
        both=both,
        gain=spell(estimate, low, high, decimals),
        loss=spell(-estimate, -high, -low, decimals),
        needed=row["needed"],
    )


def _spoken(name: str) -> str:
    """Name a file in a sentence, where ``-`` would read as a dash."""
    return "standard input" if name == "-" else name


def in_words(name: str, table: pd.DataFrame, scores: pd.DataFrame) -> str:
    """Say in a sentence what a file's score says."""
    value = scores["value"]
    if len(table) < 2:
        return SENTENCES["one question"]
    if "best constant" not in value:
        return SENTENCES["one sample"]
    known = table[table["total"] > 1]
    flat = len(known) >= FEWEST and value["best constant"] <= 0
    if "confidence" not in table:
        return SENTENCES["no spread"] if flat else _words_on_counts(scores)
    columns = {name: question_terms(table["confidence"], known), CONSTANT: constant_terms(known)}
    comparison = _compare(
        pd.DataFrame(columns), CONSTANT, known.get("cluster"), gain_bounds(known)
    ).iloc[0]
    if flat and comparison["verdict"] == "inconclusive":
        return SENTENCES["no spread"]
    return str(comparison["sentence"])


def _words_on_counts(scores: pd.DataFrame) -> str:
    """Say what counts without confidences say."""
    value = scores["value"]
    questions = scores["questions"]["best constant"]
    if questions < FEWEST:
        return SENTENCES["few counts"].format(questions=counted(questions, "question"))
    decimals = decimals_of(questions)
    return SENTENCES["no confidence"].format(
        noise=value["noise"],
        constant=f"{value['best constant']:z.{decimals}f}",
        accuracy=f"{value['accuracy']:.2f}",
    )
