"""The same random questions for everybody."""

import hashlib
from collections.abc import Iterable, Sequence

from capcal_lib.metrics.validation import check_int
from capcal_lib.questions.question import Question

SUBSET_SEED = 42


def subset(questions: Sequence[Question], limit: int) -> tuple[Question, ...]:
    """Take a random subset of questions, in their own order: the same one whoever asks, and a part
    of every larger one.

    Each question's rank is the SHA-256 of ``SUBSET_SEED`` and its id, and the lowest ranks are
    taken. The choice thus depends neither on the order of the rows, nor on the model, k or seed of
    a run.

    >>> from capcal_lib.questions import load_questions
    >>> questions = load_questions("mini-capitals")
    >>> few, more = subset(questions, 2), subset(questions, 3)
    >>> [question.id for question in few], set(few) < set(more)
    (['mini-capitals/test/capital-of-belize', 'mini-capitals/test/continent-of-jamaica'], True)
    """
    few = {*rank_questions(questions)[: check_int("limit", limit, least=1)]}
    return tuple(question for question in questions if question in few)


def rank_questions(questions: Iterable[Question]) -> list[Question]:
    """Sort questions in the order in which ``subset`` takes them."""
    return sorted(
        questions,
        key=lambda question: hashlib.sha256(f"{SUBSET_SEED} {question.id}".encode()).digest(),
    )
