"""Questions and their answers; load a data set."""

from capcal_lib.questions.question import (
    NOT_STATED,
    Answer,
    Question,
    questions_digest,
    with_options,
)
from capcal_lib.questions.sets import (
    at_hand,
    check_questions,
    load_questions,
    load_split,
    planned_rows,
    rank_questions,
    subjects_of,
    subset,
)

__all__ = [
    "NOT_STATED",
    "Answer",
    "Question",
    "at_hand",
    "check_questions",
    "load_questions",
    "load_split",
    "planned_rows",
    "questions_digest",
    "rank_questions",
    "subjects_of",
    "subset",
    "with_options",
]
