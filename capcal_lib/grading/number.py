r"""Numbers, compared exactly as fractions: no tolerance, so ``0.333`` is not ``1/3``.

Read are integers with or without thousands separators, decimals, ``3/4``, ``\frac{3}{4}``, mixed
numbers, ``1.2e-3``, ``6 \times 10^{5}``, repeating decimals under ``\overline``, numbers and
fractions in words, ``3 million``, ``12th``, a leading ``x =``, and a unit or a currency.

A unit may be left out; where both answers name one, they are compared as quantities: 5 cm are 50 mm
and never 5 m. A percent sign is read both as a unit and as a hundredth: ``50%`` equals ``50`` and
``0.5``; a number up to one is no percentage, so ``0.2%`` is not ``0.2``. Other words say what is
counted."""

import re
from fractions import Fraction
from typing import NamedTuple

from capcal_lib.grading import units
from capcal_lib.grading.latex import LONGEST, MOST_DIGITS, TEXT_COMMAND, clean, respelt, unwrapped
from capcal_lib.grading.numerals import multiplied, with_fractions
from capcal_lib.grading.units import Unit


class Number(NamedTuple):
    """An exact value, and the units that its words may name."""

    value: Fraction
    units: tuple[Unit, ...] = ()


# Words that make another number of the one before them, or a sentence.
_CHANGING = (
    "squared|cubed|(?:.*[\\s/])?(?:and|but|or|to|plus|minus|times|over|between|through|versus|than|"
    "modulo|mod|divided|factorial|base|below|above|half|halves|thirds?|quarters? of|tenths?|"
    "hundredths?|thousandths?|percentiles?|scores?|point [^\\W\\d_]+|"
    "(?:squares|cubes|short|out) of|that|into|we|is|are|was|have|with|if|then|einhalb|"
    "(?:y|et|e|und)\\s?(?:medi[ao]|demie?|mezz[oa]|meia|halbe?))(?!\\w)|半|반"
)
_MARK = (
    r"\u0300-\u036f\u064b-\u0655\u0900-\u0d7f\u0e31-\u0e4e"  # signs of other scripts upon letters
)
_CURRENCY_SIGNS = "€£¥₹₽₩₺"  # and $, which is escaped
_WORD_SIGN = rf"[^\W\d_]|[$%{_CURRENCY_SIGNS}¢°{_MARK}]"
_TRAILING_WORDS = re.compile(
    rf"(?!{_CHANGING})(?:{_WORD_SIGN}|\()(?:{_WORD_SIGN}|[.,'’()/*·-]|\^-?\d|\s)*"
)
MOST_WORDS = 4  # after a number and its unit; more of them are a sentence


def unit(text: str) -> tuple[Unit, ...] | None:
    r"""Return the units that a text may be, none for other words; None where it is more than words.

    >>> len(unit(r"\text{ square inches}")), unit("apples"), unit("and 3 pears")
    (1, (), None)
    """
    text = unwrapped(text).replace(r"\%", "%").replace(r"\$", "$").replace(r"\cdot", "*")
    text = re.sub(r"\s?\^\s?\{?\s?(-?\d)\s?\}?", r"^\1", text).strip(" .,")
    text = text.removesuffix(" old")
    if not text:
        return ()
    if not _TRAILING_WORDS.fullmatch(text.lower()):
        return None
    named, left = units.read(text)
    return None if left > MOST_WORDS else named


_DECIMAL = (
    r"(?:(?:\d{1,3}(?:,\d{3})+|\d{1,3}(?:'\d{3})+|\d{1,3}(?:\x20\d{3})+|\d+)(?:\.\d*)?|\.\d+)"
)
_LAKHS = re.compile(r"(?<![\d.,])\d{1,2}(?:,\d{2})+,\d{3}(?![\d,])")  # 12,34,567
_CURRENCY = (
    rf"(?:(?:US|AU|CA|NZ|HK|R|A|C)?\\?\$|[{_CURRENCY_SIGNS}]"
    r"|(?:USD|EUR|GBP|JPY|CNY|INR|CAD|AUD|CHF|BRL|RUB|KRW|IDR|TRY|MXN)\b|R[sp]\.?(?![A-Za-z]))"
)
_TEN = r"\{?10\}?\s?\^\s?\{?\s?([+-]?)\s?(\d{1,3})\s?\}?"
_PLAIN = (
    (rf"^\\text\s?\{{\s*({_CURRENCY})\s*\}}", r"\1 "),
    (r"(?i)^\s*(?:negative|minus)\s(?=\S)", "-"),
    (r"\s?\\frac\s?\{\s?([^{}]*?)\s?\}\s?\{\s?([^{}]*?)\s?\}", r" \1/\2"),
    (rf"(?<=[\d.}}])\s?(?:\\cdot|x)\s?{_TEN}", r"e\1\2"),
    (rf"(?<![\d.}}]){_TEN}", r"1e\1\2"),
    (rf"^({_CURRENCY})\s?-", r"-\1"),
)
_NUMBER = re.compile(
    rf"""(?x)\s*(?P<sign>[+-])?\s?(?P<currency>{_CURRENCY})?\s?
    (?:(?P<whole>\d+)\s(?={_DECIMAL}\s?/\s?-?{_DECIMAL}))?(?P<top>{_DECIMAL}(?:[eE][+-]?\d{{1,3}})?)
    (?:\\overline\s?\{{(?P<repeating>\d+)\}}|\s?/\s?(?P<bottom>-?{_DECIMAL}))?
    (?:st|nd|rd|th)?(?![A-Za-z]?\d)(?P<rest>.*?)\s*"""
)
_SINGLE_LETTER = re.compile(r"(?<![A-Za-z])[A-Za-z](?![A-Za-z])")
# Among variables, 2mn is a product: of words so short only these are units.
_SHORT_UNITS = frozenset(
    re.findall(r"\w+", "mm cm km ft yd kg gm mg ml lb lbs oz hr hrs min sec mph deg usd am pm in")
)


def literal(text: str, *, variables: bool = False) -> Number | None:
    r"""Read text from `latex.clean` that is a number from end to end; where letters may be
    ``variables``, ``2m`` is no number.

    >>> literal(r"1\frac{4}{5}").value, literal("2m", variables=True), literal("2 lakh").value
    (Fraction(9, 5), None, Fraction(200000, 1))
    """
    match = _NUMBER.fullmatch(respelt(text, _PLAIN))
    if not match:
        return None
    rest, currency = match["rest"], match["currency"] or ""
    if variables and _has_variables(rest):
        return None
    multiplier, words = multiplied(unwrapped(rest), money=bool(currency))
    if not variables and _is_symbol(words):
        return None
    named, value = unit(f"{currency} {words}"), _value(match)
    if named is None or value is None:
        return None
    return Number(value * multiplier, named)


def _has_variables(rest: str) -> bool:
    """Say whether what stands behind a number, outside of text, may be a product of letters."""
    bare = TEXT_COMMAND.sub("", rest)
    words = re.findall(r"[A-Za-z]+", bare)
    return any(len(word) < 4 and word.lower() not in _SHORT_UNITS for word in words)


def _is_symbol(words: str) -> bool:
    """Say whether a single letter behind a number is no unit: a variable, and no abbreviation."""
    return bool(_SINGLE_LETTER.search(words)) and not (unit(words) or words.isupper())


def _value(match: re.Match[str]) -> Fraction | None:
    top, bottom = (
        Fraction(re.sub("[, ']", "", part or "1")) for part in match.group("top", "bottom")
    )
    if not bottom:
        return None
    value = int(match["whole"] or 0) + top / bottom
    if repeating := match["repeating"]:
        places = len(match["top"].partition(".")[2])
        value += Fraction(int(repeating), (10 ** len(repeating) - 1) * 10**places)
    return -value if match["sign"] == "-" else value


_RELATION = re.compile(r"(?<![<>!:])=|\\approx(?![A-Za-z])")


def read(text: str, *, variables: bool = False) -> Number | None:
    r"""Read an answer that is a number from end to end, else None; what stands before the last
    ``=`` is a label, where letters are no ``variables``.

    >>> read("x = $1,234.50").value, read("18 or 19"), read("3 million people").value
    (Fraction(2469, 2), None, Fraction(3000000, 1))
    >>> read("(-18)").value, read("one and a half").value, read("12,34,567").value
    (Fraction(-18, 1), Fraction(3, 2), Fraction(1234567, 1))
    """
    if len(text) > LONGEST or sum(map(str.isnumeric, text)) > MOST_DIGITS:
        return None
    text = clean(text)
    if words := TEXT_COMMAND.fullmatch(text):
        text = words[1]
    if variables:  # only what is a number in words from end to end: two lines are not two circles
        spelt = with_fractions(text)
        return literal(spelt if re.fullmatch(r"[\d /]+", spelt) else text, variables=True)
    value = re.sub(r"^\s*\(([^()]*)\)\s*$", r"\1", _RELATION.split(text)[-1])
    return literal(with_fractions(_LAKHS.sub(lambda match: match[0].replace(",", ""), value)))


def equal(gold: Number | None, other: Number | None) -> bool:
    """Compare two numbers exactly; see the module for units and percent. None equals nothing.

    >>> equal(Number(Fraction(1, 2)), Number(Fraction(50), (_PERCENT,)))
    True
    """
    if gold is None or other is None:
        return False
    if gold.units and other.units:
        sizes = units.ratios(gold.units, other.units)
        return any(gold.value * size == other.value for size in sizes)
    return bool(_readings(gold) & _readings(other))


_PERCENT = units.read("%")[0][0]


def _readings(number: Number) -> set[Fraction]:
    value, named = number
    if named != (_PERCENT,):
        return {value}
    return {value, value / 100} if abs(value) > 1 else {value / 100}


def normal(text: str) -> str:
    """Return one text for all spellings of a number, so that votes for ``0.5`` and ``1/2`` fall
    together.

    >>> normal("0.50"), normal("1/2"), normal("about it"), normal("five")
    ('1/2', '1/2', 'about it', '5')
    """
    number = read(text)
    return str(number.value) if number else text.lower()
