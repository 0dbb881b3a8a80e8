"""Choose the questions of a workshop: what a class guesses, and what the live page asks."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import beta

from capcal_lib.manifests import RECORDED_RUNS
from capcal_lib.questions import load_questions
from capcal_lib.results import load_results

CLASS_MODEL = "smollm2-135m"
CLASS_MEAN, CONCENTRATION = 0.35, 3
CLASS_SETS = ("mini-capitals", "mini-elements")
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
    live page asks.
    """
    sets = results.index.get_level_values("dataset")
    live = evenly(results[sets == LIVE_SET], LIVE_QUESTIONS)
    rows = results[sets.isin(CLASS_SETS)].drop(live.index)
    names = rows.index.get_level_values("question_id")
    subjects = pd.Series(names.str.split("-of-").str[-1])
    return rows[~subjects.duplicated().to_numpy()]


def spread(results: pd.DataFrame, number: int = 10, *, seed: int = 2026) -> pd.DataFrame:
    """Choose rows of ``correct`` and ``total`` whose expected accuracies are spread as a Beta
    distribution of mean `CLASS_MEAN`, so that one half is not the best constant; and mix them.

    >>> counts = pd.DataFrame({"correct": [9, 0, 10, 1, 3], "total": 10})
    >>> sorted(spread(counts, 3)["correct"])
    [1, 3, 9]
    """
    mixed = results.sample(frac=1, random_state=np.random.default_rng(seed))
    mu = mixed["correct"] / mixed["total"]
    chosen: list[Any] = []
    number = min(number, len(results))
    even = (np.arange(number) + 0.5) / number
    shares = beta.ppf(even, CONCENTRATION * CLASS_MEAN, CONCENTRATION * (1 - CLASS_MEAN))
    for share in shares:  # the nearest question that is left
        chosen.append((mu.drop(chosen) - share).abs().idxmin())
    return results.loc[chosen].sample(frac=1, random_state=np.random.default_rng(seed))


def class_set(number: int = 10, *, seed: int = 2026, store: Path = RECORDED_RUNS) -> pd.DataFrame:
    """Choose questions whose expected accuracies are spread from 0 to 1, for a class to guess and
    `capcal score`.

    >>> list(class_set(2))
    ['question_id', 'question', 'confidence', 'correct', 'total']
    """
    results = load_results(store, CLASS_MODEL, datasets=CLASS_SETS)[["correct", "total"]]
    results = to_guess(results).droplevel("dataset")
    texts = {each.id: each.text for name in CLASS_SETS for each in load_questions(name)}
    rows = spread(results, number, seed=seed)
    rows.insert(0, "question", [" ".join(texts[name].split()) for name in rows.index])
    rows.insert(1, "confidence", "")
    return rows.rename_axis("question_id").reset_index()
