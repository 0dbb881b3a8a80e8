"""Columns of a row become a question."""

from pathlib import Path

import pytest

from capcal_lib.errors import InputError
from capcal_lib.questions import load_questions
from tests.questions.files import write


def test_malformed_options(data_dir: Path) -> None:
    row = {
        "id": "m",
        "subject": "anatomy",
        "question": "Which?",
        "choices": ["w", "x"],
        "answer": "D",
    }
    write(data_dir, "mmlu/val.jsonl.gz", [row])
    with pytest.raises(InputError, match="row 0: malformed"):
        load_questions("mmlu")
