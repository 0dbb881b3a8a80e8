"""What one does in the browser: toss the coin of recorded answers, guess how often questions are
answered correctly, and explore a score. ``book/static/widgets.js`` draws all three.
"""

import json
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

import numpy as np
import pandas as pd

from capcal_lib.book.tables import Html, badge
from capcal_lib.grading.verdicts import read_verdicts
from capcal_lib.manifests import load_dataset
from capcal_lib.plots import method_color, palette
from capcal_lib.probe_names import is_probe
from capcal_lib.probes import nearest_probes
from capcal_lib.questions import at_hand, load_questions
from capcal_lib.results import methods
from capcal_lib.runs.run import Run

COLORS = {"You": "#17616b", "Uniform random": "#1a1a1a", "constant": "#6b6b6b"}


def widget(
    kind: str, data: Mapping[str, Any], caption: str, *, fallback: Html, evidence: str
) -> Html:
    """Draw a widget of ``book/static/widgets.js``, with a table for readers without scripts.

    >>> "<figcaption>Ask." in widget("coin", {}, "Ask.", fallback=Html("<p>0 of 0</p>"),
    ...     evidence="measured").html
    True
    """
    text = json.dumps(data, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    return Html(
        f"<figure class='capcal-widget' data-widget='{kind}' data-label='{escape(caption)}'>"
        f"<script type='application/json'>{text}</script>"
        f"<div class='cw-fallback'>{fallback.html}</div>"
        f"<figcaption>{escape(caption)} · {badge(evidence)}</figcaption></figure>"
    )


def evenly(results: pd.DataFrame, number: int) -> pd.DataFrame:
    """Choose rows of ``correct`` and ``total`` that lie evenly from the hardest to the easiest.

    >>> evenly(pd.DataFrame({"correct": [9, 0, 10, 1, 5], "total": 10}), 2)["correct"].tolist()
    [1, 9]
    """
    mu = (results["correct"] / results["total"]).sort_values(kind="stable")
    number = min(number, len(mu))
    places = (np.arange(number) + 0.5) / number * len(mu)
    return results.loc[mu.index[places.astype(int)]]


def first_lines(keys: "pd.Index[Any]") -> "pd.Series[str]":
    """Return the first line of each question, (dataset, question id), or its id where its text is
    not on this machine.
    """
    texts: dict[tuple[str, str], str] = {}
    for name in keys.unique("dataset"):
        if at_hand(name, load_dataset(name).evaluation_split):
            texts |= {(name, question.id): question.text for question in load_questions(name)}
    lines = [texts.get(key, key[1]).splitlines()[0] for key in keys]
    return pd.Series(lines, keys, dtype=str)


def recorded_answers(run: Run, shown: pd.DataFrame, k: int) -> list[dict[str, Any]]:
    """Return the first ``k`` scored answers to each question shown: its ``text``, ``verdicts`` as a
    text of 1 (correct) and 0, and the ``answers``.
    """
    verdicts = read_verdicts(run).query("verdict != 'not_scored'").sort_values("sample_index")
    by_question = verdicts.groupby("question_id")
    questions = []
    for key, text in zip(shown.index, first_lines(shown.index), strict=True):
        answers = by_question.get_group(key[1]).head(k)
        right = (answers["verdict"] == "correct").astype(int).astype(str)
        extracted = answers["extracted"].fillna("").str.slice(0, 40).replace("", "no answer")
        question = {"text": text, "verdicts": "".join(right), "answers": extracted.tolist()}
        questions.append(question)
    return questions


def guess_data(ten: pd.DataFrame) -> dict[str, Any]:
    """Return what the widget of guesses takes: questions with their counts, and confidences."""
    rows = zip(ten.index, first_lines(ten.index), ten["correct"], ten["total"], strict=True)
    questions = [
        {"id": key[1], "text": text, "correct": int(correct), "total": int(total)}
        for key, text, correct, total in rows
    ]
    confidences = ten.drop(columns=["correct", "total"])
    colors = {str(name): method_color(str(name)) for name in confidences}
    return {
        "questions": questions,
        "methods": confidences.round(3).to_dict("list"),
        "colors": colors | COLORS,
    }


def explorer_data(results: pd.DataFrame, names: Iterable[str]) -> dict[str, Any]:
    """Return what the widget of scores takes: counts and confidences of each data set, with its
    nearest probes.
    """
    sets = []
    for name in names:
        present = methods(results.loc[[name]].dropna(axis="columns", how="all"))
        plain = [method for method in present if not is_probe(method)]
        shown = [*plain, *nearest_probes(present, name)]
        values = results.loc[[name], shown].round(3).astype(object)
        sets.append(
            {
                "title": load_dataset(name).title,
                "colors": palette(shown, name),
                "correct": results.loc[[name], "correct"].tolist(),
                "total": results.loc[[name], "total"].tolist(),
                "methods": values.where(values.notna(), None).to_dict("list"),
            }
        )
    return {"sets": sets, "colors": COLORS}
