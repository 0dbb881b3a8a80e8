r"""Numbers, compared exactly as fractions: no tolerance, so ``0.333`` is not ``1/3``.

Read are integers with or without thousands separators, decimals, ``3/4``, ``\frac{3}{4}``, mixed
numbers, ``1.2e-3``, ``6 \times 10^{5}``, repeating decimals under ``\overline``, numbers in words,
``3 million``, ``12th``, a leading ``x =``, and a unit or a currency.

A unit may be left out; where both answers name one of the short list here, it must be the same. A
percent sign is read both as a unit and as a hundredth: ``50%`` equals ``50`` and ``0.5``; a number
up to one is no percentage, so ``0.2%`` is not ``0.2``. Other words say what is counted."""

import re
from fractions import Fraction
from itertools import groupby
from typing import NamedTuple

from capcal_lib.grading.latex import LONGEST, MOST_DIGITS, clean, respelt


class Number(NamedTuple):
    """An exact value, and its unit where that is one of the list."""

    value: Fraction
    unit: str = ""


_ONES = (
    "zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|"
    "fifteen|sixteen|seventeen|eighteen|nineteen"
)
_TENS = "twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"
_SCALE = "thousand|million|billion|trillion"
_VALUES = dict(
    zip(
        f"{_ONES}|{_TENS}|hundred|{_SCALE}".split("|"),
        [*range(20), *range(20, 101, 10), 10**3, 10**6, 10**9, 10**12],
        strict=True,
    )
)
_HUNDRED = rf"(?:(?:{_TENS})(?:[\s-](?!zero)(?:{_ONES}))?|{_ONES})"
_THOUSAND = rf"(?:(?:{_HUNDRED}|a)\shundred(?:\s(?:and\s)?{_HUNDRED})?|{_HUNDRED})"
_IN_WORDS = re.compile(
    rf"(?i)\b(?:(?:{_THOUSAND}|a)\s(?:{_SCALE})(?:,?\s(?:and\s)?{_THOUSAND}(?:\s(?:{_SCALE}))?)*"
    rf"|{_THOUSAND})\b"
)


def digits(text: str) -> str:
    """Write numbers in words as digits.

    >>> digits("forty-two apples"), digits("Twelve Monkeys"), digits("a hundred and five")
    ('42 apples', '12 Monkeys', '105')
    """
    return _IN_WORDS.sub(_spelt, text)


def _spelt(match: re.Match[str]) -> str:
    total = part = 0
    for word in re.findall(r"[a-z]+", match[0].lower()):
        value = _VALUES.get(word, 0)
        if value > 100:
            total += max(part, 1) * value
            part = 0
        else:
            part = max(part, 1) * 100 if value == 100 else part + value
    return str(total + part)


# The name that stands for a unit, and its other names; an s at the end may be left out.
_UNITS = {
    name: line.split()[0]
    for line in """
        mm millimeter millimetre|cm centimeter centimetre|m meter metre|km kilometer kilometre
        inch in inches inche|ft foot feet|yard yd|mile mi|mg milligram|g gram gm|kg kilogram
        lb pound|oz ounce|ml milliliter millilitre|l liter litre|second sec s|minute min|hour hr h
        day|week|acre|month|year yr|a.m am|p.m pm|degree deg|radian rad|$ dollar usd us$|cent ¢
        € euro eur|£ gbp|¥ yen jpy|rs rupee ₹|% percent|mph|unit
        ^2 square squared sq|^3 cubic cubed|^-1|^-2|^4|/ per
    """.replace("\n", "|").split("|")
    for name in line.split()
}
# Words that make another number of the one before them, or a sentence.
_CHANGING = (
    "squared|cubed|(?:.*[\\s/])?(?:and|but|or|to|plus|minus|times|over|between|through|versus|than|modulo|"
    "mod|divided|factorial|dozens?|hundreds?|half|halves|thirds?|quarters?|tenths?|hundredths?|"
    "thousand\\w*|[mbtr]+illion\\w*|that|into|we|is|are|was|have|with|if|then)(?!\\w)"
)
_WORDS = re.compile(
    rf"(?!{_CHANGING})(?:[^\W\d_]|[$%€£¥₹¢])(?:[^\W\d_]|[$%€£¥₹¢.'’()/-]|\^-?[234]|\s)*|"
)
MOST_WORDS = 4  # after a number; more of them are a sentence


def unit(text: str) -> str | None:
    r"""Name the unit that a text is, "" for other words; None where the text is more than words.

    >>> unit(r"\text{ square inches}"), unit("inch^2"), unit("apples"), unit("and 3 pears")
    ('^2 inch', '^2 inch', '', None)
    """
    text = re.sub(r"\\text\s?\{([^{}]*)\}", r" \1 ", text).replace("\\%", "%").replace("\\$", "$")
    text = re.sub(r"\s?\^\s?\{?\s?(-?[234])\s?\}?", r"^\1", text.lower())
    text = text.strip(" .,").removeprefix("(").removesuffix(" old")
    words = re.findall(r"\^\S+|/|[^\s/^]+", text)
    if len(words) > MOST_WORDS or not _WORDS.fullmatch(text):
        return None
    names = [_UNITS.get(word, _UNITS.get(word.rstrip(".s"), "")) for word in words]
    names = [name for name, _ in groupby(names)]  # $5 dollars
    return " ".join(sorted(names)) if all(names) else ""


_DECIMAL = r"(?:(?:\d{1,3}(?:,\d{3})+|\d{1,3}(?:\x20\d{3})+|\d+)(?:\.\d*)?|\.\d+)"
_CURRENCY = r"(?:(?:US)?\\?\$|[€£¥₹]|USD\b|Rs\.?)"
_TEN = r"\{?10\}?\s?\^\s?\{?\s?([+-]?)\s?(\d{1,3})\s?\}?"
_PLAIN = (
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
    (?:st|nd|rd|th)?(?![A-Za-z]?\d)
    (?:\s?\\?(?:text\{{\s?)?(?P<scale>{_SCALE})\}}?(?![a-z]))?
    (?P<rest>.*?)\s*"""
)
_LETTERS = re.compile(r"(?<![A-Za-z])[A-Za-z](?![A-Za-z])")


def literal(text: str, *, variables: bool = False) -> Number | None:
    r"""Read text from `latex.clean` that is a number from end to end; where letters may be
    ``variables``, ``2m`` is no number.

    >>> literal(r"1\frac{4}{5}").value, literal("2m").unit, literal("2m", variables=True)
    (Fraction(9, 5), 'm', None)
    """
    match = _NUMBER.fullmatch(respelt(text, _PLAIN))
    if not match:
        return None
    rest = match["rest"]
    bare = re.sub(r"\\text\s?\{[^{}]*\}", "", rest).strip()
    if _LETTERS.search(bare) and (variables or not (unit(bare) or bare.isupper())):
        return None
    if variables and 0 < len(bare) < 4 and unit(bare) == "":
        return None
    name, value = unit(f"{match['currency'] or ''} {rest}"), _value(match)
    return None if name is None or value is None else Number(value, name)


def _value(match: re.Match[str]) -> Fraction | None:
    top, bottom = (
        Fraction(re.sub("[, ]", "", part or "1")) for part in match.group("top", "bottom")
    )
    if not bottom:
        return None
    value = int(match["whole"] or 0) + top / bottom
    if repeating := match["repeating"]:
        places = len(match["top"].partition(".")[2])
        value += Fraction(int(repeating), (10 ** len(repeating) - 1) * 10**places)
    value *= _VALUES.get(match["scale"], 1)
    return -value if match["sign"] == "-" else value


_RELATION = re.compile(r"(?<![<>!:])=|\\approx(?![A-Za-z])")


def read(text: str, *, variables: bool = False) -> Number | None:
    r"""Read an answer that is a number from end to end, else None; what stands before the last
    ``=`` is a label, where letters are no ``variables``.

    >>> read("x = $1,234.50").value, read("18 or 19"), read("3 million people").value
    (Fraction(2469, 2), None, Fraction(3000000, 1))
    """
    if len(text) > LONGEST or sum(map(str.isnumeric, text)) > MOST_DIGITS:
        return None
    text = re.sub(r"^\\text\s?\{([^{}]*)\}$", r"\1", clean(text))
    spelt = digits(text if variables else _RELATION.split(text)[-1])
    if variables and not spelt.isdecimal():  # two lines are not two circles
        spelt = text
    return literal(spelt, variables=variables)


def equal(gold: Number | None, other: Number | None) -> bool:
    """Compare two numbers exactly; see the module for units and percent. None equals nothing.

    >>> equal(Number(Fraction(1, 2)), Number(Fraction(50), "%"))
    True
    """
    if not (gold and other) or (gold.unit and other.unit):
        return gold is not None and gold == other
    return bool(_readings(gold) & _readings(other))


def _readings(number: Number) -> set[Fraction]:
    value, unit = number
    if unit != "%":
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
