"""Read verdicts that came with samples, on the scale of a log or a table."""

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pandas as pd

from capcal_lib.errors import InputError, check_known
from capcal_lib.text import counted, sanitize

MISSING = ["", "none", "nan", "null"]  # how a verdict that is not there is spelled
Scale = dict[str, str | None]  # what a spelled value stands for
Tally = dict[str, Counter[tuple[str, bool]]]  # of each scorer: a value, and of a blank response
SCALE: Scale = {"correct": "correct", "incorrect": "incorrect"}
SCALE |= {"1": "correct", "0": "incorrect", "true": "correct", "false": "incorrect"}
SCALE |= {"c": "correct", "i": "incorrect", "n": "no_answer", "no_answer": "no_answer"}
SCALE |= dict.fromkeys([*MISSING, "not_scored", "p"])  # p: partial, of inspect_ai
RULE = "verdicts are 1/0, true/false, C/I or correct/incorrect; --correct VALUE names another"
# Metrics that compare an answer with a gold one, as the rules do; others measure something else.
COMPARING = {"exact_match", "acc", "em", "math_verify"}


def tally_scores(samples: pd.DataFrame, tally: Tally) -> int:
    """Count the values of each scorer among the ``scores`` of samples, those of a blank response
    apart; return how many responses are blank.
    """
    scores = pd.DataFrame([*samples["scores"]], samples.index, dtype=object)
    blank = samples["response"].str.strip() == ""
    for name in map(str, scores):
        spelled = scores[name].map(_value).map(spell_value)
        tally.setdefault(name, Counter()).update(zip(spelled, blank, strict=True))
    return int(blank.sum())


def choose_verdicts(
    tally: Tally, unblank: int, scorer: str | None, correct: str | None, notes: list[str]
) -> tuple[str, Scale] | None:
    """Choose whose verdicts are taken, by the counts of all samples, of which so many are not
    blank; None where nobody has any.

    Without a name, it is the scorer with a verdict on most samples, words before numbers. A sample
    on which it has none is not scored. `InputError` for an unknown scorer, and for scores that are
    no verdicts."""
    names = [name for name in tally if scorer in (None, name, *name.split(","))]
    if scorer and not names:
        check_known("scorer", scorer, [*tally])
    scales, ranks, unread = {}, {}, []
    for name in names:
        values = Counter[str]()
        for (value, _), number in tally[name].items():
            values[value] += number
        scales[name], unknown = _scale(values, correct)
        read = sum(number for value, number in values.items() if scales[name].get(value))
        ranks[name] = read, not any(re.search(r"\d", value) for value in values)
        if unknown:
            unread.append(f"{name} has {sanitize(', '.join(unknown), 80)}")
    taken = max(names, key=lambda name: ranks[name], default="")
    if not names or not ranks[taken][0]:
        comparing = {name.partition(",")[0] for name in names} & COMPARING
        if unread or (names and not comparing):
            raise InputError(
                f"no verdict on each sample by {', '.join(names)} ({'; '.join(unread)}); {RULE}, "
                "--scorer NAME another scorer, and --regrade has the rules compare the answers"
            )
        notes.append("the log has no verdict on each sample: the rules grade it")
        return None
    notes.append(f"verdicts of the log: {taken}; its scorers: {', '.join(tally)}")
    scale = scales[taken]
    counts = tally[taken].items()
    given = sorted({value for value, _ in tally[taken]})
    if correct is not None and spell_value(correct) not in given:
        notes.append(
            f"no verdict is {sanitize(correct, 80)!r}, so none is correct; some are "
            f"{sanitize(', '.join(given), 80)}"
        )
    scored = sum(number for (value, blank), number in counts if not blank and scale.get(value))
    if odd := unblank - scored:
        notes.append(f"{counted(odd, 'sample')} without a verdict left out; {RULE}")
    return taken, scale


def give_verdicts(samples: pd.DataFrame, taken: str, scale: Scale) -> pd.DataFrame:
    """Give samples the ``verdict`` of a scorer, and the answer that it found."""
    scores = samples["scores"].map(lambda one: one.get(taken))
    verdicts = scores.map(_value).map(spell_value).map(scale)
    silent = (samples["response"].str.strip() == "") & (verdicts != "correct")
    answers = scores.map(lambda score: score.get("answer") if isinstance(score, dict) else None)
    return samples.assign(
        verdict=verdicts.mask(silent, "no_answer").fillna("not_scored"),
        extracted=samples["extracted"].fillna(answers),
    )


def _value(score: Any) -> Any:
    """Return the value of a score, as inspect_ai keeps one or as it is."""
    return score.get("value") if isinstance(score, dict) else score


def read_verdicts(values: "pd.Series[str]") -> tuple["pd.Series[str]", list[str]]:
    """Return the verdict of each spelled value, None if it is none, and the values that are not
    known: if there are any, nothing is a verdict.
    """
    scale, unknown = _scale(values, None)
    return values.map(scale), unknown


def _scale(values: Iterable[str], correct: str | None) -> tuple[Scale, list[str]]:
    """Return what each spelled value stands for, nothing if some of them are not known, and these.
    All but ``correct`` are incorrect if it is given.
    """
    scale = SCALE
    if correct is not None:
        scale = dict.fromkeys(values, "incorrect") | dict.fromkeys(MISSING)
        scale[spell_value(correct)] = "correct"
    unknown = sorted({*values} - scale.keys())
    return {} if unknown else scale, unknown


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
