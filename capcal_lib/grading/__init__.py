r"""Grading as a measuring instrument: extract the final answer, compare it with the right one, and
know the grader's own error."""

from capcal_lib.grading.agreement import Agreement, judge_agreement
from capcal_lib.grading.core import (
    GRADER_VERSION,
    Outcome,
    Verdict,
    grade,
    grade_file,
    grade_many,
    normalize,
)
from capcal_lib.grading.counts import accuracy_bounds, count_run, count_verdicts
from capcal_lib.grading.error import GraderError, corrected_mean, corrected_mu, grader_error
from capcal_lib.grading.judgements import judge_run, judges, read_judgements, verdicts_by
from capcal_lib.grading.verdicts import grade_run, read_verdicts, run_questions

__all__ = [
    "GRADER_VERSION",
    "Agreement",
    "GraderError",
    "Outcome",
    "Verdict",
    "accuracy_bounds",
    "corrected_mean",
    "corrected_mu",
    "count_run",
    "count_verdicts",
    "grade",
    "grade_file",
    "grade_many",
    "grade_run",
    "grader_error",
    "judge_agreement",
    "judge_run",
    "judges",
    "normalize",
    "read_judgements",
    "read_verdicts",
    "run_questions",
    "verdicts_by",
]
