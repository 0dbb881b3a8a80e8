"""Grading as a measuring instrument: extract the final answer, and compare it with the right one.

What takes a run is in modules of its own: verdicts, counts, judgements, labels."""

from capcal_lib.grading.compare import canonical
from capcal_lib.grading.core import GRADER_VERSION, Outcome, Verdict, grade, grade_file, grade_many

__all__ = [
    "GRADER_VERSION",
    "Outcome",
    "Verdict",
    "canonical",
    "grade",
    "grade_file",
    "grade_many",
]
