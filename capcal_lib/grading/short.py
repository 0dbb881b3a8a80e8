r"""Names and phrases, compared by equality after normalising: never by containment, either way.

The normal form is that of the official TriviaQA evaluation: lower case, punctuation to spaces,
articles and superfluous spaces removed. It is extended: accents of Latin and Greek letters and all
Unicode punctuation go (``Málaga`` is ``Malaga``, but ``パリ`` is no ``バリ``); ``+``, ``#``, a
dollar and a percent sign stay, and ``&`` is ``and``; indices are digits (``H₂O`` is ``H2O``), and
exponents follow a ``^``; initials are written together (``U.S.`` is ``US``), dates as day, month
and year, and numbers in words as digits. Where both answers are numbers, bare or with a unit, they
are compared as numbers. An article that is all of the answer stays. An answer of which nothing
remains, such as ``...``, is none; one that is a symbol is itself."""

import re
import unicodedata
from functools import lru_cache

from capcal_lib.grading import number, numerals
from capcal_lib.grading.latex import respelt, undressed

CACHED = 1 << 16  # texts, of which a run of a thousand questions has tens of thousands
_ARTICLES = re.compile(r"(?<!\S)(?:a|an|the)(?!\S)")
_WRAPPED = re.compile(r"\\(?:text\w*|mbox|hbox|mathrm|mathbf|mathit|emph)\s?\{([^{}]*)\}")
_MARKS = re.compile(r"\*\*|\\[()\[\]]|\\(?=[&%$#_])|(?<!\\)\$(?!\s?\d[^$]*$)")
_EXPONENT_SIGNS = "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ"
_SUPERSCRIPTS = str.maketrans(_EXPONENT_SIGNS, "0123456789+-n")
_SUBSCRIPTS = str.maketrans("₀₁₂₃₄₅₆₇₈₉₊₋ₙ", "0123456789+-n")
_INDICES = (
    (r"(?<=\w|[)\]])\s?\^\s?\{\s?([\w+-]{1,6})\s?\}", r"^\1"),
    (r"(?<=[A-Za-z)\]])_\s?(?:\{\s?([\w+-]{1,6})\s?\}|(\d))", r"\1\2"),
    (r"\^(?=\d*[+-](?!\w))", ""),  # of ions
)
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_MONTH = rf"({'|'.join(_MONTHS)})[a-z]*"
_MEANINGFUL = (
    (r"(?<![\d.])(\d+)\.(?=\d+(?![\d.]))", r"\1point"),  # of a version, not of a sentence
    (r"(?<=[\w)])[-−–]$", "−"),  # of an ion, or a mark
    (r"(?<=\d),(?=\d{3}(?!\d))", ""),
    (r"\\?\$(?=\s?\d[^$]*$)", " dollar "),
    (r"\\?%", " percent "),
    (r"\\?&", " and "),
    (r"(?<!\w)([^\W\d_])\.\s?(?=[^\W\d_](?!\w))", r"\1"),  # initials
    (r"(?<!\w)([A-Z])\s(?=[A-Z](?!\w))", r"\1"),
)
_ORDINALS = re.findall(
    r"\w+", "zeroth first second third fourth fifth sixth seventh eighth ninth tenth"
)
_ORDINAL = re.compile(rf"\b({'|'.join(_ORDINALS)})\b|(?<=\d)(?:st|nd|rd|th)\b")
_ISO_DATE = re.compile(r"(?<![\d-])(\d{4})-(0[1-9]|1[0-2])-(\d{2})(?![\d-])")
_DATES = (
    (r"^(?:in|on) (?=(?:the )?(?:year )?\d{1,4}\b|[a-z]{3,9} \d)", ""),
    (r"^(?:the )?year (?=\d{1,4}$)", ""),
    (r"\b1([0-9]|20) (\d\d)\b", r"\1\2"),
    (rf"\b(?:the )?0?(\d{{1,2}})(?:st|nd|rd|th)? (?:of )?{_MONTH}\b", r"\1 \2"),
    (rf"\b{_MONTH} (?:the )?0?(\d{{1,2}})(?:st|nd|rd|th)?\b", r"\2 \1"),
    (rf"\b{_MONTH}(?: of)? (?=\d{{4}})", r"\1 "),
)


def plain(text: str) -> str:
    r"""Take a name out of LaTeX and markdown: ``\text{}``, ``$``, bold, quotes, the final full
    stop.

    >>> plain(r"**\text{Marie~Curie}**."), plain('"Paris"')
    ('Marie Curie', 'Paris')
    """
    text = re.sub(r"~|\\[ ,]", " ", _MARKS.sub("", _WRAPPED.sub(r"\1", undressed(text))))
    return " ".join(text.split()).strip("*_\"'“”` ").rstrip(".!,;").strip("*_\"'“”` ")


def normal(text: str) -> str:
    """Return the normal form; empty where nothing remains.

    >>> normal("The  Beatles!"), normal("Málaga"), normal("A."), normal("...")
    ('beatles', 'malaga', 'a', '')
    >>> normal("C++"), normal("J. K. Rowling"), normal("July 20th, 1969"), normal("Twelve Monkeys")
    ('c++', 'jk rowling', '20 jul 1969', '12 monkeys')
    """
    value = _number(text)
    return str(value.value) if value else _words(text)


@lru_cache(maxsize=CACHED)
def _number(text: str) -> number.Number | None:
    """Read a number, bare or with a unit: ``12 Monkeys``, ``1960s`` and ``12th`` are none."""
    text = re.sub(r"(?i)^(?:a|an|the)\s+", "", text.strip())
    value = number.read(text)
    if value is None or re.search(r"(?i)\d'?(?:s|st|nd|rd|th)s?\b", text):
        return None
    return value if value.units or not re.search(r"\d\W*[^\W\d_]", numerals.digits(text)) else None


@lru_cache(maxsize=CACHED)
def _words(text: str) -> str:
    signs = "".join(text.split()).lower()
    text = respelt(_ISO_DATE.sub(_in_words, _with_indices(text)), _MEANINGFUL)
    marks = "".join(
        " " if mark == "`" or (mark not in "+#" and unicodedata.category(mark)[0] == "P") else mark
        for mark in _without_accents(plain(text))
    )
    text = marks.lower()
    text = numerals.digits(" ".join(text.split()))
    text = _ORDINAL.sub(lambda match: f"{_ORDINALS.index(match[1]) if match[1] else ''}th", text)
    text = respelt(text, _DATES)
    text = " ".join(_ARTICLES.sub(" ", text).split()) or text
    return text or (signs if any(unicodedata.category(mark)[0] == "S" for mark in signs) else "")


def _with_indices(text: str) -> str:
    """Write indices and exponents in one way: H₂O and H_2O as H2O, m² and m^{2} as m^2."""
    text = re.sub(
        f"[{_EXPONENT_SIGNS}]+", lambda match: "^" + match[0].translate(_SUPERSCRIPTS), text
    )
    return respelt(text.translate(_SUBSCRIPTS), _INDICES)


def _in_words(match: re.Match[str]) -> str:
    """Write a date of digits with its month in words."""
    year, month, day = match.groups()
    return f"{int(day)} {_MONTHS[int(month) - 1]} {year}"


def _without_accents(text: str) -> str:
    """Take away the accents of Latin and Greek letters, and stress; what makes another letter
    stays, such as the marks of kana and the bow of the Cyrillic й.
    """
    letters = []
    base = ""
    for mark in unicodedata.normalize("NFD", text):
        if unicodedata.category(mark) != "Mn":
            base = mark
        elif base < "\u0400" or mark in _STRESS or (mark == "\u0308" and base in "еЕ"):
            continue
        letters.append(mark)
    return unicodedata.normalize("NFC", "".join(letters))


_STRESS = "\u0300\u0301\u064b\u064c\u064d\u064e\u064f\u0650\u0651\u0652"  # and vowels of Arabic


def equal(golds: tuple[str, ...], extracted: str) -> bool:
    """Say whether the answer equals any of the right ones.

    >>> equal(("Norway",), "no"), equal(("Norway", "Kingdom of Norway"), "the Kingdom of Norway")
    (False, True)
    """
    words, value = _words(extracted), _number(extracted)
    rights = [(_words(gold), _number(gold)) for gold in golds]
    return any(
        number.equal(right, value) if value and right else words == gold != ""
        for gold, right in rights
    )
