"""Read verdicts that came with samples."""

from typing import Any

import pandas as pd

from capcal_lib.errors import check_known
from capcal_lib.rows import MISSING
from capcal_lib.text import sanitize

SCALE = {"correct": "correct", "incorrect": "incorrect", "no_answer": "no_answer"}
SCALE |= {"1": "correct", "0": "incorrect", "true": "correct", "false": "incorrect"}
SCALE |= {"c": "correct", "i": "incorrect", "n": "no_answer"}  # of inspect_ai; p: partial
SCALE |= dict.fromkeys([*MISSING, "not_scored", "p"], "not_scored")
RULE = "verdicts are 1/0, true/false, C/I or correct/incorrect"


def choose_scorer(scores: pd.DataFrame, scorer: str | None) -> str | None:
    """Choose whose scores, a column each, are the verdicts; None if nobody has scored a sample.

    `InputError` for an unknown name; ``ValueError`` where several have verdicts, and where nobody
    has."""
    known = [*map(str, scores)]
    names = [name for name in known if scorer in (None, name, *name.split(","))]
    if scorer and not names:
        check_known("scorer", scorer, known)
    names = [name for name in names if scores[name].notna().any()]
    judges = [name for name in names if {*scores[name].map(spell_value)} <= SCALE.keys()]
    if len(judges) > 1:
        raise ValueError(f"verdicts by {' and '.join(judges)}; choose: --scorer {judges[0]}")
    if names and not judges:
        values = sanitize(", ".join(map(str, scores[names[0]].unique())), 80)
        raise ValueError(
            f"no verdicts by {', '.join(names)}: {values}; {RULE}; --regrade has the "
            "rules compare the answers"
        )
    return judges[0] if judges else None


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
