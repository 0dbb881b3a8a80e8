r"""Grading as a measuring instrument: extract the final answer, then compare it with the right one.

The two steps are apart, have one file for each kind of answer, and no settings. Each module says what it decides:
:mod:`~capcal_lib.grading.extract`, :mod:`~capcal_lib.grading.math`, :mod:`~capcal_lib.grading.number`,
:mod:`~capcal_lib.grading.choice`, :mod:`~capcal_lib.grading.short`.
"""

from capcal_lib.grading.extract import extract
from capcal_lib.grading.file import grade_file
from capcal_lib.grading.grader import (
    GRADER_VERSION,
    Outcome,
    Verdict,
    extract_answer,
    grade,
    grade_many,
    normalize,
)

__all__ = [
    "GRADER_VERSION",
    "Outcome",
    "Verdict",
    "extract",
    "extract_answer",
    "grade",
    "grade_file",
    "grade_many",
    "normalize",
]
