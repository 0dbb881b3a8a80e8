"""Rows and files of a few questions, in the forms of the data sets."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from capcal_lib.manifests import dataset_names, load_dataset

MINI_SETS = [name for name in dataset_names() if load_dataset(name).builtin]
Rows = list[dict[str, Any]]
Describe = Callable[..., Path]


def jsonl(rows: Rows) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def write(folder: Path, name: str, rows: Rows) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    return path


GSM8K = [
    {"id": "gsm8k/test/0", "question": " How many?\n", "answer": "2+2=<<2+2=4>>4\n#### 4"},
    {"id": "gsm8k/test/1", "question": "How much?", "answer": "So\n#### 1,000"},
]
# The columns of the hub, where they are not those of the local copies.
HUB: dict[str, Rows] = {
    "triviaqa": [
        {
            "question": "Who?",
            "question_id": "tc_1",
            "answer": {"value": "Ada", "aliases": ["Ada", "Countess"], "normalized_value": "ada"},
        }
    ],
    "simpleqa": [
        {
            "metadata": "{'topic': 'Art', 'answer_type': 'Person'}",
            "problem": " Who? ",
            "answer": "Ada ",
        },
        {"metadata": "", "problem": "When?", "answer": "1815"},
    ],
    "simpleqa-verified": [
        {"original_index": 7, "problem": " Who? ", "answer": "Ada ", "topic": "Art", "urls": []}
    ],
    "triviaqa-1000": [
        {
            "question": "Who?",
            "question_id": f"tc_{number}",
            "answer": {
                "value": f"Ada {number}",
                "aliases": aliases,
                "normalized_value": "ada",
            },
        }
        # A block of web pages, then one of Wikipedia's, which has most questions again.
        for numbers, aliases in (
            (range(1200), ["Ada", "Countess", ""]),
            (range(1199, 300, -1), ["Lovelace"]),
        )
        for number in numbers
    ],
    "gsm8k": [{key: row[key] for key in ("question", "answer")} for row in GSM8K],
    "math500": [
        {
            "problem": "Find $x$.",
            "answer": "2",
            "subject": "Algebra",
            "level": 1,
            "unique_id": "test/algebra/7.json",
        }
    ],
    "aime25": [
        {"id": str(number), "problem": f"Find {number}.", "answer": f"{number}^\\circ"}
        for number in range(30)
    ],
    "mmlu": [
        {"question": "Which?", "subject": subject, "choices": ["w", "x", "y", "z"], "answer": 2}
        for subject in ("anatomy", "anatomy", "virology")
    ],
    "gpqa": [
        {
            "Record ID": f"rec{number}",
            "Question": "Which?",
            "Correct Answer": "right\n",
            "Incorrect Answer 1": "wrong 1",
            "Incorrect Answer 2": "wrong 2",
            "Incorrect Answer 3": "wrong 3",
            "Subdomain": "Genetics",
        }
        for number in range(40)
    ],
}
