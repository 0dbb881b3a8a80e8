"""Spell numbers and foreign text in messages and tables."""

import math
import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

NUMBERS = ["none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]


def counted(number: int, noun: str) -> str:
    """Spell a number with its noun.

    >>> counted(1, "sample"), counted(2_000, "sample")
    ('1 sample', '2,000 samples')
    """
    return f"{number:,} {noun if number == 1 else f'{noun}s'}"


def in_words(number: int) -> str:
    """Write a count up to ten in words.

    >>> in_words(0), in_words(7), in_words(1531)
    ('none', 'seven', '1,531')
    """
    return NUMBERS[number] if number < len(NUMBERS) else f"{number:,}"


def share_in_words(part: int, whole: int, noun: str) -> str:
    """Write how many of a whole something is true of, with their noun.

    >>> [share_in_words(part, 4, "case") for part in (0, 1, 4)]
    ['none of the four cases', 'one of the four cases', 'all four cases']
    >>> share_in_words(2, 2, "case"), share_in_words(1, 1, "case"), share_in_words(0, 1, "case")
    ('both cases', 'the only case', 'no case')
    >>> share_in_words(0, 2, "case"), share_in_words(0, 0, "case")
    ('neither of the two cases', 'no case, as there is none')
    """
    if not whole:
        return f"no {noun}, as there is none"
    if whole == 1:
        return f"the only {noun}" if part else f"no {noun}"
    if part < whole:
        number = "neither" if whole == 2 and not part else in_words(part)
        return f"{number} of the {in_words(whole)} {noun}s"
    return f"both {noun}s" if whole == 2 else f"all {in_words(whole)} {noun}s"


def respelt(text: str, spellings: Sequence[tuple[str, str]]) -> str:
    """Replace regular expression after regular expression.

    >>> respelt("0,8 of 1", [(",", "."), ("of", "/")])
    '0.8 / 1'
    """
    for pattern, replacement in spellings:
        text = re.sub(pattern, replacement, text)
    return text


def spell(estimate: float, low: float, high: float, decimals: int = 3) -> str:
    """Spell an estimate, with its interval if it has one.

    >>> spell(0.25, -0.0001, 0.5), spell(0.25, float("nan"), float("nan"), 2)
    ('0.250 [0.000, 0.500]', '0.25')
    """
    text = f"{estimate:z.{decimals}f}"
    if math.isnan(low):
        return text
    return f"{text} [{low:z.{decimals}f}, {high:z.{decimals}f}]"


def spell_time(seconds: float) -> str:
    """Spell a time in hours, minutes and seconds.

    >>> spell_time(3_725.4)
    '1:02:05'
    """
    return str(timedelta(seconds=round(seconds)))


def spell_cell(cell: Any) -> str:
    """Spell a cell with at most four decimals; whole numbers above 1 have none.

    >>> [spell_cell(cell) for cell in (300.0, 1, 0.25, -0.00001, True, None, "a")]
    ['300', '1', '0.2500', '0.0000', 'yes', '', 'a']
    """
    import pandas as pd  # slow to import

    if isinstance(cell, str):
        return cell
    if pd.isna(cell):
        return ""
    if pd.api.types.is_bool(cell):
        return "yes" if cell else "no"
    whole = not isinstance(cell, float) or (cell > 1 and cell.is_integer())
    return f"{cell:,.0f}" if whole else f"{cell:z,.4f}"


def sanitize(text: object, characters: int = 300) -> str:
    """Make foreign text safe for a message: one bounded line without control characters.

    >>> sanitize("out of\\n memory\\x1b[2J")
    'out of memory\\\\x1b[2J'
    """
    safe = printable(" ".join(str(text)[: 4 * characters].split()))
    if len(safe) <= characters:
        return safe
    return f"{safe[: characters - 1]}…"


def printable(text: object) -> str:
    r"""Spell out characters that a terminal would act on, such as an escape in a file name.

    >>> print(printable("run\x1b[2J"))
    run\x1b[2J
    """
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in str(text))
