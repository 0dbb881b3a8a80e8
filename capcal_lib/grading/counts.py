"""Counts: how many of a question's samples are correct, and how many were scored."""

from typing import get_args

import pandas as pd

from capcal_lib.errors import InputError
from capcal_lib.grading.core import Outcome
from capcal_lib.grading.judgements import verdicts_by
from capcal_lib.runs.run import Run


def count_verdicts(rows: pd.DataFrame, *, k: int) -> pd.DataFrame:
    """Count the verdicts of the first k samples of each question.

    The table has one row per sample: question_id, sample_index, verdict. Returns one row per
    question, sorted by id: ``correct``, ``total`` (scored samples, which are correct, incorrect or
    no_answer; fewer than k if the question has fewer), ``incorrect``, ``no_answer`` and
    ``not_scored``. `InputError` if there is no such sample.

    >>> rows = [("q", 0, "correct"), ("q", 1, "no_answer"), ("q", 2, "not_scored"),
    ...     ("q", 3, "correct")]
    >>> verdicts = pd.DataFrame(rows, columns=["question_id", "sample_index", "verdict"])
    >>> count_verdicts(verdicts, k=3).to_dict("records")
    [{'correct': 1, 'total': 2, 'incorrect': 0, 'no_answer': 1, 'not_scored': 1}]
    """
    first = rows[rows["sample_index"] < k]
    sizes = first.groupby(["question_id", "verdict"]).size().unstack(fill_value=0)
    counts = sizes.reindex(columns=[*get_args(Outcome)], fill_value=0)
    total = counts["correct"] + counts["incorrect"] + counts["no_answer"]
    counts.insert(1, "total", total)
    if counts.empty:
        raise InputError(f"no sample has an index below {k}; draw more, or raise k_eval")
    return counts.rename_axis(columns=None)


def count_run(run: Run, k_eval: int | None = None, verdicts: str = "rules") -> pd.DataFrame:
    """Count the verdicts, from the rules or a judge, on the first k_eval samples of each question
    of a run; None counts all samples.
    """
    rows = verdicts_by(run, verdicts)
    return count_verdicts(rows, k=rows["sample_index"].max() + 1 if k_eval is None else k_eval)
