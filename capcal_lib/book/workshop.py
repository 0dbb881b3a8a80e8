"""Choose the questions of a workshop: what the live page asks, and what the page to try asks, which
a class has not guessed.
"""

import numpy as np
import pandas as pd

CLASS_SETS = ("mini-capitals", "mini-elements")
# Of the questions that ask for an element, ten evenly from the hardest to the easiest, by name.
CLASS_QUESTIONS = [
    "mini-elements/test/element-of-ar",
    "mini-elements/test/element-of-be",
    "mini-elements/test/element-of-bi",
    "mini-elements/test/element-of-ho",
    "mini-elements/test/element-of-nd",
    "mini-elements/test/element-of-rb",
    "mini-elements/test/heavier-germanium-neon",
    "mini-elements/test/heavier-holmium-beryllium",
    "mini-elements/test/heavier-protactinium-rubidium",
    "mini-elements/test/heavier-radium-molybdenum",
]
LIVE_SET, LIVE_QUESTIONS = "mini-capitals", 16  # what the live page asks


def evenly(results: pd.DataFrame, number: int) -> pd.DataFrame:
    """Choose rows of ``correct`` and ``total`` that lie evenly from the hardest to the easiest.

    >>> evenly(pd.DataFrame({"correct": [9, 0, 10, 1, 5], "total": 10}), 2)["correct"].tolist()
    [1, 9]
    """
    mu = (results["correct"] / results["total"]).sort_values(kind="stable")
    number = min(number, len(mu))
    places = (np.arange(number) + 0.5) / number * len(mu)
    return results.loc[mu.index[places.astype(int)]]


def to_guess(results: pd.DataFrame) -> pd.DataFrame:
    """Keep what can be guessed: of the sets for guessing one question a subject, and none that the
    class guesses or the live page asks.
    """
    sets = results.index.get_level_values("dataset")
    live = evenly(results[sets == LIVE_SET], LIVE_QUESTIONS)
    rows = results[sets.isin(CLASS_SETS)].drop(live.index)
    names = rows.index.get_level_values("question_id")
    subjects = pd.Series(names.str.split("-of-").str[-1], rows.index)
    guessed = subjects[names.isin(CLASS_QUESTIONS)]
    return rows[~subjects.duplicated() & ~subjects.isin(guessed)]


def typical_question(both: pd.DataFrame) -> str:
    """Choose the question to show: of those that were answered both rightly and wrongly when they
    were recorded, or of all where there is none, the one whose share correct has changed by a
    middling amount.

    ``both`` is indexed by question id, with ``correct`` and ``total`` as recorded, and ``live
    correct`` and ``live total``.

    >>> columns = ["correct", "total", "live correct", "live total"]
    >>> rows = [[0, 10, 9, 10], [5, 10, 5, 10], [5, 10, 6, 10], [5, 10, 9, 10]]
    >>> typical_question(pd.DataFrame(rows, list("abcd"), columns))
    'c'
    """
    unsure = both.query("0 < correct < total")
    if unsure.empty:
        unsure = both
    before = unsure["correct"] / unsure["total"]
    now = unsure["live correct"] / unsure["live total"]
    change = (now - before).abs().sort_values(kind="stable")
    return str(change.index[len(change) // 2])
