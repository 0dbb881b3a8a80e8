r"""Names and phrases, compared by equality after normalising: never by containment, either way.

The normal form is that of the official TriviaQA evaluation: lower case, punctuation to spaces,
articles and superfluous spaces removed. It is extended: accents and all Unicode punctuation go
(``Málaga`` is ``Malaga``); symbols that carry meaning stay (``C++``, ``C#``, ``A-``, ``Na+``, a
dollar, a percent sign), and ``&`` is ``and``; initials are written together (``U.S.`` is ``US``),
dates as day, month and year, and numbers in words as digits. A quirk that comes with it: ``The
Who`` is ``who``. Where both answers are numbers, bare or with a unit, they are compared as numbers
instead; ``12 Monkeys`` and ``20 July`` are no numbers. An article that is all of the answer stays,
as the letter ``A`` may be right. An answer of which nothing remains, such as ``...``, is none.
"""

import re
import string
import unicodedata
from functools import lru_cache

from capcal_lib.grading import number

_PUNCTUATION = frozenset(string.punctuation + "‘’´`")
_ARTICLES = re.compile(r"(?<!\S)(?:a|an|the)(?!\S)")
_LEADING_ARTICLE = re.compile(r"^(?:a|an|the)\s+", re.IGNORECASE)
_WRAPPED = re.compile(
    r"\\(?:text(?:normal|rm|bf|it|sf|tt)?|mbox|hbox|mathrm|mathbf|mathit|emph)\s?\{([^{}]*)\}"
)
_MARKS = re.compile(r"\*\*|\\[()\[\]]|\\(?=[&%$#_])|(?<!\\)\$(?!\s?\d[^$]*$)")
_CODE = re.compile(r"`+([^`]*)`+")
_NUMBER_AND_ENDING = re.compile(r"\d'?(?:s|st|nd|rd|th)\b", re.IGNORECASE)
_ORDINAL = re.compile(r"(\d)(?:st|nd|rd|th)")
# What carries meaning although it is punctuation, before this goes.
_MEANINGFUL = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"(?<=\d),(?=\d{3}(?!\d))", ""),
        (r"\\?\$(?=\s?\d[^$]*$)", " dollar "),
        (r"\\?%", " percent "),
        (r"\\?&", " and "),
        (r"(?<!\w)([^\W\d_])\.\s?(?=[^\W\d_](?!\w))", r"\1"),  # initials
        (r"(?<!\w)([A-Z])\s(?=[A-Z](?!\w))", r"\1"),
        (r"[−⁻]", "-"),
        (r"⁺", "+"),
        (r"\^\s?\{?\s?(\d?[+-])\s?\}?", r"\1"),  # of an ion
        (r"\b(\d{4})-(\d\d)-(\d\d)\b", r" \3 month\2 \1 "),
        (r"\b(1[3-9]|2\d|3[01])/(\d{1,2})/(?=\d{4}\b)", r" \1 month\2 "),
        (r"\b(\d{1,2})/(1[3-9]|2\d|3[01])/(?=\d{4}\b)", r" \2 month\1 "),
    )
)
# A plus, a sharp and a final minus of a word: C++, C#, Na+, A-.
_SYMBOL = re.compile(r"(?<=\w)(?:\++|\\?#)(?!\w)|(?<=\w)-$")
_KEPT = {"+": "\ue000", "#": "\ue001", "\\": "\ue001", "-": "\ue002"}
_UNKEPT = str.maketrans({"\ue000": "+", "\ue001": "#", "\ue002": "-"})
_MONTHS = re.findall(r"\w+", "jan feb mar apr may jun jul aug sep oct nov dec")
_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|"
    r"sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?|month(?:0?[1-9]|1[0-2]))\b"
)
_WEEKDAY = r"(?:\b(?:mon|tues|wednes|thurs|fri|satur|sun)day )?"
_DATES = tuple(
    re.compile(pattern)
    for pattern in (
        rf"{_WEEKDAY}\b(?:the )?(?P<day>\d{{1,2}})(?:th)? (?:of )?{_MONTH}(?: "
        rf"(?P<year>\d{{4}})\b)?",
        rf"{_WEEKDAY}\b{_MONTH} (?:the )?(?P<day>\d{{1,2}})(?:th)?\b(?: (?P<year>\d{{4}})\b)?",
        rf"\b{_MONTH} (?:of )?(?P<year>\d{{4}})\b",
    )
)


def plain(text: str) -> str:
    r"""Take a name out of LaTeX and markdown: ``\text{}``, ``$``, bold, quotes, the final full
    stop.

    >>> plain(r"**\text{Marie~Curie}**."), plain('"Paris"')
    ('Marie Curie', 'Paris')
    """
    for _ in range(3):  # \textbf{\text{...}}
        text = _WRAPPED.sub(r"\1", text)
    text = (
        _CODE.sub(r"\1", _MARKS.sub("", text))
        .replace("~", " ")
        .replace("\\ ", " ")
        .replace("\\,", " ")
    )
    return " ".join(text.split()).strip("*_\"'“” ").rstrip(".!,;").strip("*_\"'“” ")


def normal(text: str) -> str:
    """Return the normal form; empty where nothing remains.

    >>> normal("The  Beatles!"), normal("Málaga"), normal("A."), normal("...")
    ('beatles', 'malaga', 'a', '')
    >>> normal("C++"), normal("J. K. Rowling"), normal("July 20th, 1969"), normal("Twelve Monkeys")
    ('c++', 'jk rowling', '20 jul 1969', '12 monkeys')
    """
    value = _number(text)
    return str(value.value) if value else _words(text)


@lru_cache(maxsize=8192)
def _number(text: str) -> number.Number | None:
    """Read a number, bare or with a unit: ``12 Monkeys``, ``1960s`` and ``12th`` are none."""
    bare = _LEADING_ARTICLE.sub("", text.strip())
    if bare.replace(" ", "").isalpha() and number.in_words(bare) is None:
        return None  # most names: soon told
    value = number.read(bare)
    if value is None or value.words or value.unit.nouns or _NUMBER_AND_ENDING.search(text):
        return None
    return value


@lru_cache(maxsize=8192)
def _words(text: str) -> str:
    for pattern, replacement in _MEANINGFUL:
        text = pattern.sub(replacement, text)
    marks = unicodedata.normalize("NFD", plain(text))
    text = unicodedata.normalize(
        "NFC", "".join(mark for mark in marks if unicodedata.category(mark) != "Mn")
    ).lower()
    text = _SYMBOL.sub(lambda match: _KEPT[match[0][0]] * len(match[0]), text)
    text = "".join(
        " " if mark in _PUNCTUATION or unicodedata.category(mark)[0] == "P" else mark
        for mark in text
    )
    text = _counted(text)
    for pattern in _DATES:
        text = pattern.sub(_date, text)
    text = " ".join(_ARTICLES.sub(" ", text).split()) or text
    return text.translate(_UNKEPT)


def _counted(text: str) -> str:
    """Write numbers in words as digits: twelve as 12, and first as 1st as 1th."""
    words = text.split()
    counted = []
    while words:
        found = number.cardinal(words)
        value, used = found or (0, 0)
        after = words[used] if used < len(words) else ""
        if (
            used
            and 10 < value <= 20
            and (years := number.cardinal(words[used:]))
            and 9 < years[0] < 100
        ):
            value, used = 100 * value + years[0], used + years[1]  # nineteen eighty-four
            counted.append(str(value))
        elif after in number.ORDINALS and (not used or value % 10 == 0 < value):
            counted.append(f"{value + number.ORDINALS[after]}th")
            used += 1
        elif used:
            counted.append(str(value))
        else:
            counted.append(_ORDINAL.sub(r"\1th", after))
            used = 1
        words = words[used:]
    return " ".join(counted)


def _date(match: re.Match[str]) -> str:
    parts = match.groupdict()
    name = parts["month"]
    month = _MONTHS[int(name[5:]) - 1] if name.startswith("month") else name[:3]
    pieces = [str(int(parts.get("day") or 0)), month, parts["year"] or ""]
    return " ".join(pieces).removeprefix("0 ").strip()


def equal(golds: tuple[str, ...], extracted: str) -> bool:
    """Say whether the answer equals any of the right ones.

    >>> equal(("Norway",), "no"), equal(("Norway", "Kingdom of Norway"), "the Kingdom of Norway")
    (False, True)
    """
    words = _words(extracted)
    value = _number(extracted)

    def alike(gold: str) -> bool:
        right = _number(gold)
        if value and right:
            return bool(number.equal(right, value))
        if (value or right) and any(map(str.isdigit, gold if value else extracted)):
            return False  # 3.14 is not 3 14, but 1984 may be in words
        return bool(words) and words == _words(gold)

    return any(map(alike, golds))
