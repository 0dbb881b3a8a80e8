"""Read verdicts that came with samples, on the scale of a log or a table."""

from typing import Any

import pandas as pd

from capcal_lib.errors import InputError, check_known
from capcal_lib.text import counted, sanitize

MISSING = ["", "none", "nan", "null"]  # how a verdict that is not there is spelled
SCALE: dict[str, str | None] = {"correct": "correct", "incorrect": "incorrect"}
SCALE |= {"1": "correct", "0": "incorrect", "true": "correct", "false": "incorrect"}
SCALE |= {"c": "correct", "i": "incorrect", "n": "no_answer", "no_answer": "no_answer"}
SCALE |= dict.fromkeys([*MISSING, "not_scored", "p"])  # p: partial, of inspect_ai
RULE = "verdicts are 1/0, true/false, C/I or correct/incorrect; --correct VALUE names another"
# Metrics that compare an answer with a gold one, as the rules do; others measure something else.
COMPARING = {"exact_match", "acc", "em", "math_verify"}


def take_verdicts(
    samples: pd.DataFrame, scorer: str | None, correct: str | None, notes: list[str]
) -> bool:
    """Give samples the ``verdict`` of a scorer among their ``scores``; say whether there is one.

    Without a name, it is the scorer with a verdict on most samples, words before numbers. A sample
    on which it has none is not scored. `InputError` for an unknown scorer, and for scores that are
    no verdicts."""
    scores = pd.DataFrame([*samples["scores"]], samples.index, dtype=object)
    names = [name for name in map(str, scores) if scorer in (None, name, *name.split(","))]
    if scorer and not names:
        check_known("scorer", scorer, [*map(str, scores)])
    verdicts, ranks, unread = {}, {}, []
    for name in names:
        values = scores[name].map(_value).map(spell_value)
        verdicts[name], unknown = read_verdicts(values, correct)
        ranks[name] = verdicts[name].count(), not values.str.contains(r"\d").any()
        if unknown:
            unread.append(f"{name} has {sanitize(', '.join(unknown), 80)}")
    taken = max(names, key=lambda name: ranks[name], default="")
    if not names or not verdicts[taken].count():
        comparing = {name.partition(",")[0] for name in names} & COMPARING
        if unread or (names and not comparing):
            raise InputError(
                f"no verdict on each sample by {', '.join(names)} ({'; '.join(unread)}); {RULE}, "
                "--scorer NAME another scorer, and --regrade has the rules compare the answers"
            )
        notes.append("the log has no verdict on each sample: the rules grade it")
        return False
    silent = (samples["response"].str.strip() == "") & (verdicts[taken] != "correct")
    samples["verdict"] = verdicts[taken].mask(silent, "no_answer").fillna("not_scored")
    answers = [score.get("answer") if isinstance(score, dict) else None for score in scores[taken]]
    samples["extracted"] = samples["extracted"].fillna(pd.Series(answers, samples.index))
    notes.append(f"verdicts of the log: {taken}; its scorers: {', '.join(map(str, scores))}")
    if odd := (samples["verdict"] == "not_scored").sum():
        notes.append(f"{counted(odd, 'sample')} without a verdict left out; {RULE}")
    return True


def _value(score: Any) -> Any:
    """Return the value of a score, as inspect_ai keeps one or as it is."""
    return score.get("value") if isinstance(score, dict) else score


def read_verdicts(
    values: "pd.Series[str]", correct: str | None = None
) -> tuple["pd.Series[str]", list[str]]:
    """Return the verdict of each spelled value, None if it is none, and the values that are not
    known: if there are any, nothing is a verdict. All but ``correct`` are incorrect if it is given.
    """
    scale = SCALE
    if correct is not None:
        scale = dict.fromkeys(values, "incorrect") | dict.fromkeys(MISSING)
        scale[spell_value(correct)] = "correct"
    unknown = sorted({*values} - scale.keys())
    return values.map({} if unknown else scale), unknown


def spell_value(value: Any) -> str:
    """Spell the value of a score in one way.

    >>> [spell_value(value) for value in (" Correct ", 1.0, "1", True, None)]
    ['correct', '1', '1', 'true', 'none']
    """
    text = str(value).strip().lower()
    try:
        return f"{float(text) + 0:g}"  # of -0.0, 0
    except ValueError:
        return text
