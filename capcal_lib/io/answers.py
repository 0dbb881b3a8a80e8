"""Read the right answers that came with samples: golds, aliases and options."""

from typing import Any

import pandas as pd

from capcal_lib import manifests
from capcal_lib.errors import InputError
from capcal_lib.questions import NOT_STATED
from capcal_lib.questions.columns import read_options, right_option
from capcal_lib.questions.question import LETTERS
from capcal_lib.rows import as_list, listed, read_list
from capcal_lib.text import sanitize


def read_answers(samples: pd.DataFrame, *, lists: bool) -> pd.DataFrame:
    """Return the ``gold`` of each sample, and tuples of its ``aliases`` and ``choices``.

    Golds that stand as lists in texts are ``lists`` where all are, see :func:`are_lists`. The gold
    of a question with choices is the letter of an option, which was named by its number, letter or
    text. `InputError` for one that names no option, or two."""
    golds: Any = map(read_list if lists else as_list, samples["gold"])
    known: dict[str, Any] = {}
    answers = []
    rows = samples[["path", "row", "aliases", "choices"]].itertuples(index=False)
    for gold, (path, row, aliases, choices) in zip(golds, rows, strict=True):
        key = str((gold, aliases, choices))
        if key not in known:
            try:
                known[key] = _answer(gold, aliases, choices)
            except ValueError as error:
                raise InputError(f"{path}, row {row}: {sanitize(error)}") from None
        answers.append(known[key])
    return pd.DataFrame(answers, samples.index, ["gold", "aliases", "choices"], dtype=object)


def are_lists(golds: "pd.Series[Any]") -> bool:
    """Tell whether all golds are lists that stand in texts."""
    return all(map(read_list, golds))


def kind_of(items: pd.DataFrame) -> manifests.Kind:
    """Tell of which kind the answers of a log are: choices where all have options or are letters of
    some, numbers, formulas where one is written in LaTeX, else short answers.
    """
    if items["choices"].map(len).all() or items["gold"].str.fullmatch(r"[A-J]|\([A-J]\)").all():
        return "choice"
    if items["gold"].str.fullmatch(r"[-+]?[\d,]*\.?\d+").all():
        return "number"
    return "math" if items["gold"].str.contains(r"\\[a-zA-Z]|\^").any() else "short"


def _answer(
    golds: list[Any], aliases: Any, choices: Any
) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Return the right answer, others that are right, and the choices where an answer is stated."""
    others = listed(aliases)
    if not golds:
        return NOT_STATED, tuple(map(str, others)), ()
    options, labels = read_options(choices)
    if options and len(golds) == 1:
        place = _place(golds[0], options, labels)
        return LETTERS[place], (options[place],), tuple(options)
    if fields := [name for gold in golds if isinstance(gold, dict) for name in gold]:
        raise ValueError(
            f"the right answer is an object of {', '.join(map(str, fields))}; name the text in it, "
            f"as in --column gold=answer.{fields[0]}"
        )
    # GSM8K writes its solution, then #### and the answer.
    texts = [str(gold).rpartition("####")[2].strip() for gold in golds]
    return texts[0], (*texts[1:], *map(str, others)), ()


def _place(gold: Any, options: list[str], labels: list[str]) -> int:
    """Return the place of the right option; an integer is its number, from 0 on."""
    if len(options) > len(LETTERS):
        raise ValueError(f"{len(options)} options; a question has 2 to {len(LETTERS)}")
    if isinstance(gold, float) and gold.is_integer():  # as tables make one of an integer
        gold = int(gold)
    if isinstance(gold, str) and gold.strip().isdecimal() and gold.strip() in options:
        number, text = int(gold), options.index(gold.strip())
        if not labels and number < len(options) and number != text:
            raise ValueError(
                f"{gold!r} is the text of one option and the number of another; write its letter"
            )
    return right_option(gold, options, labels)
