"""Digests of questions, by which a run and a manifest know that they are the same."""

import hashlib
import json
from collections.abc import Iterable

from capcal_lib.questions.question import Question


def questions_digest(questions: Iterable[Question]) -> str:
    """Return the SHA-256 of texts, kinds and right answers, in order; aliases in any order.

    >>> from capcal_lib.questions import Answer
    >>> question = Question("q", "What is 6 × 7?", Answer("number", "42"))
    >>> questions_digest([question])[:8], questions_digest([question, question])[:8]
    ('646cc86b', '06799dcb')
    """
    pairs = ((question.text, question.answer) for question in questions)
    content = [[text, answer.kind, answer.gold, sorted(answer.aliases)] for text, answer in pairs]
    return digest_of(content)


def digest_of(content: object) -> str:
    """Return the SHA-256 of what JSON can hold, whatever the order of its keys."""
    canonical = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()
