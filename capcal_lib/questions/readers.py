"""Rows of the paper's data sets, of the hub or of local copies, in the usual columns."""

import random
import re
from collections.abc import Callable

from capcal_lib.questions.question import LETTERS
from capcal_lib.rows import Row

GPQA_SEED = 42
# What a row, local or from the hub, is in the usual columns, by its split and its position there.
# One function each for the sets whose rows need more than naming their columns.
Reader = Callable[[Row, str, int], Row]


def _triviaqa(row: Row, split: str, position: int) -> Row:  # noqa: ARG001
    text = row["question"].strip()
    # Some carry the quoting of CSV: quotes around, quotes inside doubled.
    if quoted := re.fullmatch(r'"((?:[^"]|"")+)"', text):
        text = quoted[1].replace('""', '"')
    # The local copies have no canonical value: their first alias stands for it. Their training
    # questions are a part of the hub's, so a row's position would not identify one.
    accepted = row.get("aliases") or [row["answer"]["value"], *row["answer"]["aliases"]]
    name = row.get("id")
    if name is None and split == "train":
        name = f"triviaqa/train/{row['question_id']}"
    return {"id": name, "question": text, "answer": accepted}


def _simpleqa(row: Row, split: str, position: int) -> Row:  # noqa: ARG001
    if "problem" not in row:
        return row | {"subject": row["topic"]}
    # On the hub the topic stands in a text that looks like a Python dictionary.
    topic = re.search(r"'topic': '([^']*)'", str(row["metadata"]))
    subject = topic[1] if topic else ""
    return row | {"id": f"simpleqa/{position}", "question": row["problem"], "subject": subject}


def _gsm8k(row: Row, split: str, position: int) -> Row:  # noqa: ARG001
    _, mark, gold = row["answer"].rpartition("####")
    if not mark:
        raise ValueError("no #### before the final answer")
    return row | {"answer": gold}


def _math(row: Row, split: str, position: int) -> Row:
    name = row.get("unique_id") or f"{split}/row-{position}"  # of training questions on the hub
    return row | {"id": f"math/{name}", "question": row["problem"]}


def _aime25(row: Row, split: str, position: int) -> Row:  # noqa: ARG001
    if "url" in row:
        return row
    paper, number = divmod(
        position, 15
    )  # on the hub all of the first paper, then all of the second
    # One answer carries a degree sign there; the exam asks for the integer.
    gold = re.sub(r"[^0-9]", "", str(row["answer"]))
    name = f"aime2025/{'I' * (paper + 1)}-{number + 1}"
    return {"id": name, "question": row["problem"], "answer": gold}


def _mmlu(row: Row, split: str, position: int) -> Row:
    place = LETTERS.index(row["answer"]) if isinstance(row["answer"], str) else row["answer"]
    name = row.get("id") or f"mmlu/{split}/{row['subject']}/{position}"
    return row | {"id": name, "answer": place}


def _gpqa(row: Row, split: str, position: int) -> Row:  # noqa: ARG001
    # The options have no fixed order. This one is that of the authors' code, by the row's number.
    names = ["Correct Answer", *(f"Incorrect Answer {i}" for i in (1, 2, 3))]
    random.Random(GPQA_SEED + position).shuffle(names)
    return {
        "id": f"gpqa/{row['Record ID']}",
        "question": row["Question"],
        "answer": names.index("Correct Answer"),
        "choices": [row[name] for name in names],
        "subject": row["Subdomain"],
    }


READERS: dict[str, Reader] = {
    "aime25": _aime25,
    "gpqa": _gpqa,
    "later-gpqa": _gpqa,
    "gsm8k": _gsm8k,
    "math500": _math,
    "mmlu": _mmlu,
    "simpleqa": _simpleqa,
    "triviaqa": _triviaqa,
}
