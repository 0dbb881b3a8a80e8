"""A question, its right answer, its options, and the digest that shows a run and a manifest to have
the same questions.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Final, get_args

from capcal_lib.errors import InputError, check_known
from capcal_lib.manifests import Kind

LETTERS: Final = ascii_uppercase  # of options
NOT_STATED = "(not stated)"  # the answer to an imported question, where verdicts came instead


@dataclass(frozen=True, slots=True)
class Answer:
    """The right answer to a question, and how other answers are compared with it.

    ``math`` is a LaTeX expression; ``number`` a number; ``choice`` the letter of an option, with
    its full text as an alias; ``short`` a name or phrase. `InputError` for an unknown kind or an
    empty gold answer.

    >>> Answer(kind="short", gold="Paris", aliases=("City of Light",)).gold
    'Paris'
    """

    kind: Kind
    gold: str
    aliases: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_known("answer kind", self.kind, get_args(Kind))
        if not isinstance(self.gold, str) or not self.gold.strip():
            raise InputError(f"the gold answer must be a text and not empty; got {self.gold!r}")


@dataclass(frozen=True, slots=True)
class Question:
    """One question, with an id that stays the same from sampling to the last figure."""

    id: str
    text: str  # as it is asked, options included
    answer: Answer
    subject: str = ""
    options: int = 0  # how many lettered options the text has


def with_options(text: str, options: Sequence[str]) -> str:
    r"""Put lettered options under a question, one a line, 26 at most.

    >>> with_options("Which is even?", ["1", "2"])
    'Which is even?\nA. 1\nB. 2'
    """
    if not 2 <= len(options) <= len(LETTERS):
        raise InputError(f"a question has 2 to {len(LETTERS)} options; got {len(options)}")
    lines = [
        f"{letter}. {option.strip()}" for letter, option in zip(LETTERS, options, strict=False)
    ]
    return "\n".join([text.strip(), *lines])


def questions_digest(questions: Iterable[Question]) -> str:
    """Return the SHA-256 of texts, kinds and right answers, in order; aliases in any order.

    >>> from capcal_lib.questions import Answer
    >>> question = Question("q", "What is 6 × 7?", Answer("number", "42"))
    >>> questions_digest([question])[:8], questions_digest([question, question])[:8]
    ('646cc86b', '06799dcb')
    """
    return digest_of(
        [
            [one.text, one.answer.kind, one.answer.gold, sorted(one.answer.aliases)]
            for one in questions
        ]
    )


def digest_of(content: object) -> str:
    """Return the SHA-256 of what JSON can hold, whatever the order of its keys."""
    text = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
