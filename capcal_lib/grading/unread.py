"""Say where the rules read no answer: mostly a format that they do not know."""

import pandas as pd

from capcal_lib.grading.extract import extract
from capcal_lib.questions import Answer
from capcal_lib.text import counted, sanitize

LINE = 60  # characters of a last line that are shown


def is_unread(response: str, answer: Answer) -> bool:
    """Say whether the rules read no answer in a response.

    >>> is_unread("Hm.", Answer("number", "4")), is_unread("It is 5.", Answer("number", "4"))
    (True, False)
    """
    extracted, _ = extract(response, answer.kind, answer.aliases)
    return not extracted


def describe_unread(responses: "pd.Series[str]", unread: "pd.Series[bool]") -> list[str]:
    """Say it where more than a third of the responses have no answer that the rules read, with the
    commonest last lines of these.

    >>> responses = pd.Series(["So: 4 it is", "Hm.\\nI see.", "I see.", "The answer is 4."])
    >>> describe_unread(responses, pd.Series([False, True, True, False]))
    ['2 of 4 samples have no answer that the rules read; commonest last lines: 2 times "I see."']
    """
    if 3 * unread.sum() <= len(unread):
        return []
    lines = responses[unread].str.strip().str.rpartition("\n")[2].str[-LINE:].map(sanitize)
    commonest = ", ".join(
        f'{counted(number, "time")} "{line}"' for line, number in lines.value_counts()[:3].items()
    )
    return [
        f"{unread.sum()} of {counted(len(unread), 'sample')} have no answer that the rules read; "
        f"commonest last lines: {commonest}"
    ]
