"""Report responses in which the rules find no answer, mostly because of an unknown format."""

from collections import Counter

import pandas as pd

from capcal_lib.grading.extract import extract
from capcal_lib.questions import Answer
from capcal_lib.text import counted, sanitize

LINE = 60  # characters of a last line that are shown
MOST_LINES = 1 << 17  # last lines that are counted


def is_unread(response: str, answer: Answer) -> bool:
    """Return whether the rules found no answer in a response.

    >>> is_unread("Hm.", Answer("number", "4")), is_unread("It is 5.", Answer("number", "4"))
    (True, False)
    """
    extracted, _ = extract(response, answer.kind, answer.aliases)
    return not extracted


class Unread:
    """Count the responses without an answer that the rules read, and their last lines."""

    def __init__(self) -> None:
        self.samples = 0
        self.unread = 0
        self.lines = Counter[str]()

    def add(self, responses: "pd.Series[str]", unread: "pd.Series[bool]") -> None:
        """Count responses, and which of them have none."""
        self.samples += len(responses)
        self.unread += int(unread.sum())
        self.lines.update(one.strip().rpartition("\n")[2][-LINE:] for one in responses[unread])
        if len(self.lines) > MOST_LINES:  # of which only the commonest are shown
            self.lines = Counter(dict(self.lines.most_common(MOST_LINES // 2)))

    def describe(self) -> list[str]:
        """Say it where they are more than a third, with their commonest last lines."""
        if 3 * self.unread <= self.samples:
            return []
        commonest = ", ".join(
            f'{counted(number, "time")} "{sanitize(line)}"'
            for line, number in self.lines.most_common(3)
        )
        return [
            f"{self.unread} of {counted(self.samples, 'sample')} have no answer that the rules "
            f"read; commonest last lines: {commonest}"
        ]


def describe_unread(responses: "pd.Series[str]", unread: "pd.Series[bool]") -> list[str]:
    """Report, with the commonest last lines, if the rules find no answer in more than a third of
    the responses.

    >>> responses = pd.Series(["So: 4 it is", "Hm.\\nI see.", "I see.", "The answer is 4."])
    >>> describe_unread(responses, pd.Series([False, True, True, False]))
    ['2 of 4 samples have no answer that the rules read; commonest last lines: 2 times "I see."']
    """
    counts = Unread()
    counts.add(responses, unread)
    return counts.describe()
