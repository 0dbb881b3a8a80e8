"""Read the right answers that came with samples."""

import ast
from typing import Any

import pandas as pd

from capcal_lib import manifests
from capcal_lib.questions import NOT_STATED

LIST = 1 << 16  # characters of a list of texts that Python wrote


def read_answers(samples: pd.DataFrame) -> pd.DataFrame:
    """Return the ``gold`` of each sample, and tuples of its ``aliases`` and ``choices``.

    Golds that Python wrote as lists of texts are lists where all are."""
    lists = [_list_of_texts(gold) for gold in samples["gold"]]
    golds = lists if all(lists) else map(_listed, samples["gold"])
    answers = map(_answer, golds, samples["aliases"], samples["choices"])
    return pd.DataFrame(answers, samples.index, ["gold", "aliases", "choices"], dtype=object)


def kind_of(items: pd.DataFrame) -> manifests.Kind:
    """Tell of which kind the answers of a log are: choices where all have them, numbers, formulas
    where one is written in LaTeX, else short answers.
    """
    if items["choices"].map(len).all():
        return "choice"
    if items["gold"].str.fullmatch(r"[-+]?[\d,]*\.?\d+").all():
        return "number"
    return "math" if items["gold"].str.contains(r"\\[a-zA-Z]|\^").any() else "short"


def _answer(golds: Any, aliases: Any, choices: Any) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Return the right answer, others that are right, and the choices where an answer is stated."""
    others = tuple(str(alias) for alias in _listed(aliases))
    # GSM8K writes its solution, then #### and the answer.
    texts = [str(gold).rpartition("####")[2].strip() for gold in golds]
    if not texts:
        return NOT_STATED, others, ()
    options = tuple(str(choice) for choice in _listed(choices))
    return texts[0], (*texts[1:], *others), options


def _listed(value: Any) -> list[Any]:
    if value is None or value == "" or value != value:
        return []
    return value if isinstance(value, list) else [value]


def _list_of_texts(text: Any) -> list[str] | None:
    """Read a list of texts as Python writes it."""
    if not isinstance(text, str) or not text.startswith("[") or len(text) > LIST:
        return None
    try:
        value = ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None
    return value if isinstance(value, list) and {*map(type, value)} == {str} else None
