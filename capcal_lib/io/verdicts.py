"""Read verdicts that came with samples."""

from typing import Any

import pandas as pd

from capcal_lib.errors import InputError, check_known
from capcal_lib.rows import MISSING
from capcal_lib.text import sanitize

SCALE = {"correct": "correct", "incorrect": "incorrect", "no_answer": "no_answer"}
SCALE |= {"1": "correct", "0": "incorrect", "true": "correct", "false": "incorrect"}
SCALE |= {"c": "correct", "i": "incorrect", "n": "no_answer"}  # of inspect_ai; p: partial
SCALE |= dict.fromkeys([*MISSING, "not_scored", "p"], "not_scored")
RULE = "verdicts are 1/0, true/false, C/I or correct/incorrect"


def read_verdicts(values: "pd.Series[Any]") -> "pd.Series[str]":
    """Return the verdict for each value.

    `InputError` where a value is none, and might mean anything: grades A to C, for example."""
    spelled = values.map(spell_value)
    unknown = sorted({*spelled} - SCALE.keys())
    if unknown:
        raise InputError(f"no verdicts: {sanitize(', '.join(unknown), 80)}; {RULE}")
    return spelled.map(SCALE)


def choose_scorer(scores: pd.DataFrame, scorer: str | None) -> str | None:
    """Choose whose scores, a column each, are the verdicts; None if nobody has scored a sample.

    `InputError` for an unknown name, where several have verdicts, and where nobody has."""
    names = [name for name in scores if scorer in (None, name, *name.split(","))]
    if scorer and not names:
        check_known("scorer", scorer, [*scores])
    names = [name for name in names if scores[name].notna().any()]
    if not names:
        return None
    judges = [name for name in names if {*scores[name].map(spell_value)} <= SCALE.keys()]
    if not judges:
        values = ", ".join(map(str, scores[names[0]].unique()))
        raise InputError(
            f"no verdicts by {', '.join(names)}: {sanitize(values, 80)}; {RULE}; --regrade has the "
            "rules compare the answers"
        )
    if len(judges) > 1:
        raise InputError(f"verdicts by {' and '.join(judges)}; choose with --scorer NAME")
    return judges[0]


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
