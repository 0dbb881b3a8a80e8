"""Questions: data sets, prompts, and what the right answer to a question is."""

from capcal_lib.questions.datasets import (
    Answer,
    Question,
    at_hand,
    check_questions,
    field_of,
    load_questions,
    load_split,
    questions_digest,
    read_rows,
    stream_rows,
    subjects_of,
    subset,
    with_options,
)

__all__ = [
    "Answer",
    "Question",
    "at_hand",
    "check_questions",
    "field_of",
    "load_questions",
    "load_split",
    "questions_digest",
    "read_rows",
    "stream_rows",
    "subjects_of",
    "subset",
    "with_options",
]
