"""What the experiments of the page to try show: recorded answers, questions to guess, and scores to
explore, as the widgets of ``book/static/widgets.js`` take them.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from capcal_lib import plots
from capcal_lib.applications import risk_coverage
from capcal_lib.book.style import ACCENT
from capcal_lib.book.workshop import evenly, to_guess
from capcal_lib.grading.verdicts import read_verdicts
from capcal_lib.manifests import load_dataset
from capcal_lib.probe_names import NEAREST_PROBE, is_probe
from capcal_lib.probes import nearest_probe, nearest_probes
from capcal_lib.questions import at_hand, load_questions
from capcal_lib.results import estimates, methods
from capcal_lib.results.terms import NUMBERS
from capcal_lib.runs.run import Run
from capcal_lib.shifts import IN_DISTRIBUTION


def without_probes(names: Iterable[str]) -> list[str]:
    """List the methods that are no probes."""
    return [name for name in names if not is_probe(name)]


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


def ten_to_guess(
    results: pd.DataFrame, sets: list[str], shown: pd.DataFrame, *, public: bool, seed: int
) -> pd.DataFrame:
    """Choose ten questions to guess, from the hardest to the easiest and shuffled, with all that
    the methods say of them; of ``public`` sets none of another page or of the class.
    """
    plain = without_probes(methods(results))
    guessed = results.loc[sets, ["correct", "total", *plain]]
    nearest = {name: nearest_probe(map(str, results), name) for name in sets}
    probes = [results.loc[[name], probe] for name, probe in nearest.items() if probe]
    if probes:
        guessed[NEAREST_PROBE] = pd.concat(probes)
    full = guessed.dropna(axis="columns", how="all").dropna()
    fresh = full.drop(shown.index, errors="ignore")
    if public:
        fresh = to_guess(fresh)
    ten = evenly(fresh if len(fresh) > 9 else full, 10)
    return ten.sample(frac=1, random_state=seed)


def guess_data(ten: pd.DataFrame) -> dict[str, Any]:
    """Return what the widget of guesses takes: questions with their counts, and confidences."""
    lines = first_lines(ten.index)
    counts = ten[["correct", "total"]].itertuples()
    questions = [
        {"id": key[1], "text": lines[key], "correct": int(c), "total": int(n)}
        for key, c, n in counts
    ]
    confidences = ten.drop(columns=["correct", "total"])
    return {
        "questions": questions,
        "methods": confidences.round(3).to_dict("list"),
        "colors": colors_of(map(str, confidences)),
    }


def colors_of(names: Iterable[str]) -> dict[str, str]:
    """Return the colours of methods, of the baselines and of the reader."""
    plain = {name: plots.method_color(name) for name in without_probes(names)}
    return plain | {
        NEAREST_PROBE: plots.SHIFT_COLORS[IN_DISTRIBUTION],
        "Uniform random": plots.INK,
        "constant": plots.MUTED,
        "You": ACCENT,
    }


def explorer_data(results: pd.DataFrame, names: Iterable[str]) -> dict[str, Any]:
    """Return what the widgets of scores and of abstaining take: counts and confidences of each data
    set, with its nearest probes.
    """
    plain = without_probes(methods(results))
    sets = []
    for name in names:
        subset = results.loc[[name]].dropna(axis="columns", how="all")
        shown = [method for method in plain if method in subset] + nearest_probes(
            map(str, subset), name
        )
        values = subset[shown].round(3).astype(object)
        sets.append(
            {
                "title": load_dataset(name).title,
                "colors": plots.palette(values.columns, name),
                "correct": subset["correct"].tolist(),
                "total": subset["total"].tolist(),
                "methods": values.where(values.notna(), None).to_dict("list"),
            }
        )
    return {"sets": sets, "colors": colors_of(plain)}


def accuracies_by_coverage(results: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return the accuracy on one data set where a quarter, half and all of the questions are
    answered, the most confident first: a row a ``method``.
    """
    subset = results.loc[[name]].dropna(axis="columns", how="all")
    rows = {}
    for method, judged in estimates(subset).groupby("method", observed=True)[NUMBERS]:
        curve = risk_coverage(*judged.to_numpy().T)
        rows[method] = 1 - np.interp([0.25, 0.5, 1], curve["coverage"], curve["risk"])
    return pd.DataFrame(rows, ["25 %", "50 %", "100 %"]).T.rename_axis("method")
