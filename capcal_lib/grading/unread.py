"""Report responses in which the rules find no answer, mostly because of an unknown format."""

from collections import Counter

import pandas as pd

from capcal_lib.text import counted, sanitize

LINE = 60  # characters of a last line that are shown


def describe_unread(responses: "pd.Series[str]", unread: "pd.Series[bool]") -> list[str]:
    """Report, with the commonest last lines, if the rules find no answer in more than a third of
    the responses.

    >>> responses = pd.Series(["So: 4 it is", "Hm.\\nI see.", "I see.", "The answer is 4."])
    >>> describe_unread(responses, pd.Series([False, True, True, False]))
    ['2 of 4 samples have no answer that the rules read; commonest last lines: 2 times "I see."']
    """
    number = int(unread.sum())
    if 3 * number <= len(responses):
        return []
    lines = Counter(one.strip().rpartition("\n")[2][-LINE:] for one in responses[unread])
    commonest = ", ".join(
        f'{counted(times, "time")} "{sanitize(line)}"' for line, times in lines.most_common(3)
    )
    return [
        f"{number} of {counted(len(responses), 'sample')} have no answer that the rules read; "
        f"commonest last lines: {commonest}"
    ]
