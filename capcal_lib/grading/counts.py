"""Counts: how many of a question's samples are correct, of how many that were scored."""

from collections.abc import Iterable
from typing import get_args

import pandas as pd

from capcal_lib.errors import InputError
from capcal_lib.grading.core import Outcome
from capcal_lib.grading.judgements import verdicts_by
from capcal_lib.runs.artifacts import MOST_SAMPLES, VERDICTS
from capcal_lib.runs.run import Run
from capcal_lib.runs.store import KEY


def count_verdicts(parts: Iterable[pd.DataFrame], *, k: int) -> pd.DataFrame:
    """Count the verdicts of the first k samples of each question.

    The parts, read one after the other, have a row a sample: question_id, sample_index, verdict.
    Returns a row a question, sorted by its id: ``correct``, ``total`` (scored samples: correct,
    incorrect and no_answer; a question with fewer than k keeps those that it has), ``incorrect``,
    ``no_answer`` and ``not_scored``. `InputError` where there is no such sample.

    >>> rows = [("q", 0, "correct"), ("q", 1, "no_answer"), ("q", 2, "not_scored"),
    ...     ("q", 3, "correct")]
    >>> verdicts = pd.DataFrame(rows, columns=["question_id", "sample_index", "verdict"])
    >>> count_verdicts([verdicts], k=3).to_dict("records")
    [{'correct': 1, 'total': 2, 'incorrect': 0, 'no_answer': 1, 'not_scored': 1}]
    """
    names = ["question_id", "verdict"]
    sizes = pd.concat([rows[rows["sample_index"] < k].groupby(names).size() for rows in parts])
    if sizes.empty:
        raise InputError(f"no samples with an index below {k}; draw more, or raise k_eval")
    table = sizes.groupby(names).sum().unstack(fill_value=0)
    table = table.reindex(columns=[*get_args(Outcome)], fill_value=0)
    table.insert(1, "total", table[["correct", "incorrect", "no_answer"]].sum(axis="columns"))
    return table.rename_axis(columns=None)


def count_run(run: Run, k_eval: int | None = None, verdicts: str = "rules") -> pd.DataFrame:
    """Count the verdicts, by the rules or a judge, of the first k_eval samples of a run's
    questions; of all for None.

    Those by the rules are counted as they are read, so that memory grows with questions only.
    """
    rules = verdicts == "rules"
    parts = run.batches(VERDICTS, [*KEY, "verdict"]) if rules else [verdicts_by(run, verdicts)]
    return count_verdicts(parts, k=MOST_SAMPLES if k_eval is None else k_eval)
