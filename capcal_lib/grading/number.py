r"""Numbers, compared exactly as fractions: no tolerance, so ``0.333`` is not ``1/3``.

Read are integers with or without thousands separators, decimals, ``3/4``, ``\frac{3}{4}``, mixed
numbers, ``1.2e-3``, ``6 \times 10^{5}``, repeating decimals under ``\overline``, numbers in words,
``3 million``, ``12th``, a leading ``x =``, and a unit or a currency.

A unit may be left out; where both answers name one of the short list here, it must be the same. A
percent sign is read both as a unit and as a hundredth: ``50%`` equals ``50`` and ``0.5``; a number
up to one is no percentage, so ``0.2%`` is not ``0.2``. Other words say what is counted."""

import re
from fractions import Fraction
from typing import NamedTuple

from capcal_lib.grading.latex import LONGEST, MOST_DIGITS, clean


class Number(NamedTuple):
    """An exact value, and its unit where that is one of the list."""

    value: Fraction
    unit: str = ""


_SMALL = re.findall(
    r"\w+",
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen",
)
_TENS = re.findall(r"\w+", "twenty thirty forty fifty sixty seventy eighty ninety")
_VALUES = {name: value for value, name in enumerate(_SMALL)} | {
    name: 10 * value for value, name in enumerate(_TENS, 2)
}
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_ONES = "|".join(_SMALL[:0:-1])
_HUNDRED = rf"(?:(?:{'|'.join(_TENS)})(?:[\s-](?:{'|'.join(_SMALL[1:10])}))?|{_ONES}|zero)"
_THOUSAND = rf"(?:(?:{_HUNDRED}|a)\shundred(?:\s(?:and\s)?{_HUNDRED})?|{_HUNDRED})"
_IN_WORDS = re.compile(
    rf"\b(?:(?:(?:{_THOUSAND}|a)\s(?:{'|'.join(_SCALES)})\b[,\s]*(?:and\s)?)+(?:{_THOUSAND}\b)?|"
    rf"{_THOUSAND}\b)",
    re.IGNORECASE,
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
        if word in _SCALES:
            total += (part or 1) * _SCALES[word]
            part = 0
        elif word == "hundred":
            part = 100 * (part or 1)
        else:
            part += _VALUES.get(word, 0)
    return str(total + part) + match[0][len(match[0].rstrip()) :]


# One a line: the name that stands for a unit, and its other names; an s at the end may be left out.
_UNITS = {
    name: line.split()[0]
    for line in """
        mm millimeter millimetre|cm centimeter centimetre|m meter metre|km kilometer kilometre
        inch in inches|ft foot feet|yard yd|mile mi|mg milligram|g gram gm|kg kilogram|lb pound
        oz ounce|ml milliliter millilitre|l liter litre|second sec s|minute min|hour hr h|day|week
        acre|month|year yr|a.m am|p.m pm|degree deg|radian rad|$ dollar usd us$|cent ¢|€ euro eur
        £ gbp|¥ yen jpy|rs rupee ₹|% percent|mph|unit
    """.replace("\n", "|").split("|")
    for name in line.split()
}
_POWERS = {"squared": "^2", "cubed": "^3", "square": "^2", "sq": "^2", "cubic": "^3"}


def unit(text: str) -> str | None:
    r"""Name the unit that a text is, "" for other words; None where the text is more than words.

    >>> unit(r"\text{ square inches}"), unit("inch^2"), unit("apples"), unit("and 3 pears")
    ('inch^2', 'inch^2', '', None)
    """
    text = re.sub(r"\\text\s?\{([^{}]*)\}", r" \1 ", text).replace("\\%", "%").replace("\\$", "$")
    text = (
        re.sub(r"\s?\^\s?\{?\s?(-?[234])\s?\}?", r"^\1", text.lower())
        .strip(" .,")
        .removeprefix("(")
    )
    if text and not re.fullmatch(
        r"(?:[^\W\d_]|[$%€£¥₹¢])(?:[^\W\d_]|[$%€£¥₹¢.'’()/-]|\^-?[234]|\s)*", text
    ):
        return None
    words = re.sub(r"\bper\b|/", " / ", text.removesuffix(" old")).split()
    if len(words) > MOST_WORDS or _CHANGING & set(words) or words[:1] in (["squared"], ["cubed"]):
        return None
    name = power = ""
    for word in words:
        if word in ("square", "sq", "sq.", "cubic"):
            power = _POWERS[word.strip(".")]
            continue
        if word in ("squared", "cubed"):
            name += _POWERS[word]
            continue
        stem, _, exponent = word.partition("^")
        known = _UNITS.get(stem) or _UNITS.get(stem.rstrip(".")) or _UNITS.get(stem.rstrip("s"))
        if known is None and word != "/":
            return ""
        name += (known or word) + (f"^{exponent}" if exponent else "") + power
        power = ""
    return name


MOST_WORDS = 4  # after a number; more of them are a sentence
_CHANGING = frozenset(
    re.findall(
        r"\w+",
        "and but or to plus minus times over between through versus than modulo mod divided "
        "factorial dozen dozens hundred hundreds half halves third thirds quarter quarters tenth "
        "tenths hundredth hundredths thousandth thousandths millionth millionths that into we is "
        "are was have with if then",
    )
)
_DECIMAL = r"(?:(?:\d{1,3}(?:,\d{3})+|\d{1,3}(?:\x20\d{3})+|\d+)(?:\.\d*)?|\.\d+)"
_CURRENCY = r"(?:(?:US)?\\?\$|[€£¥₹]|USD\b|Rs\.?)"
_POWER_OF_TEN = r"\{{?10\}}?\s?\^\s?\{{?\s?(?P<{}>[+-]?\s?\d{{1,3}})\s?\}}?"
_NUMBER = re.compile(
    rf"""(?P<sign>[+-]?)\s?(?P<currency>{_CURRENCY})?\s?(?P<inner>[+-]?)\s?
    (?:
        (?P<whole>\d+)?\s?\\frac\s?\{{\s?(?P<top>-?{_DECIMAL})\s?\}}\s?\{{\s?(?P<bottom>-?{_DECIMAL})\s?\}}
      | (?:(?P<whole_of>\d+)\s)?(?P<top_of>{_DECIMAL})\s?/\s?(?P<bottom_of>{_DECIMAL})
      | {_POWER_OF_TEN.format("power")}
      | (?P<decimal>{_DECIMAL})(?:\\overline\s?\{{(?P<repeating>\d+)\}})?
        (?:[eE](?P<exponent>[+-]?\d{{1,3}})|\s?(?:\\cdot|x)\s?{_POWER_OF_TEN.format("scale")})?
    )
    (?:st|nd|rd|th)?(?![A-Za-z]?\d)
    (?:\s?\\?(?:text\{{\s?)?(?P<words>thousand|million|billion|trillion)\}}?(?![a-z]))?
    (?P<rest>.*)""",
    re.VERBOSE,
)
_LETTERS = re.compile(r"(?<![A-Za-z])[A-Za-z](?![A-Za-z])")


def literal(text: str, *, variables: bool = False) -> Number | None:
    r"""Read text from `latex.clean` that is a number from end to end; where letters may be
    ``variables``, ``2m`` is no number.

    >>> literal(r"1\frac{4}{5}").value, literal("2m").unit, literal("2m", variables=True)
    (Fraction(9, 5), 'm', None)
    """
    if inside := re.fullmatch(r"\\text\{([^{}]*)\}", text):
        text = inside[1].strip()
    text = re.sub(r"^(?:negative|minus)\s(?=\S)", "-", digits(text), flags=re.IGNORECASE)
    match = _NUMBER.fullmatch(text)
    value = (
        _value({name: part or "" for name, part in match.groupdict().items()}) if match else None
    )
    if match is None or value is None:
        return None
    bare = re.sub(r"\\text\s?\{[^{}]*\}", "", match["rest"])
    if _LETTERS.search(bare) and (variables or not (unit(bare) or bare.strip().isupper())):
        return None
    if variables and bare.strip() and not inside and unit(bare) == "" and len(bare.strip()) < 4:
        return None
    currency = re.sub(r".*\$", "$", match["currency"] or "")
    name = unit(
        f"{currency} {re.sub('^ ?(?:dollars|USD)', '', match['rest'])}"
        if currency
        else match["rest"]
    )
    return None if name is None else Number(value, name)


def _value(parts: dict[str, str]) -> Fraction | None:
    def exact(written: str) -> Fraction:
        return Fraction(re.sub(r"[, ]", "", written).removesuffix("."))

    signs = parts["sign"] + parts["inner"]
    if top := parts["top"] or parts["top_of"]:
        bottom = exact(parts["bottom"] or parts["bottom_of"])
        whole = parts["whole"] or parts["whole_of"]
        if bottom == 0 or (whole and "-" in top):
            return None
        value = exact(top) / bottom + int(whole or 0)
    else:
        value = exact(parts["decimal"] or "1")
        if repeating := parts["repeating"]:
            places = len(parts["decimal"].partition(".")[2])
            value += Fraction(int(repeating), (10 ** len(repeating) - 1) * 10**places)
        exponent = parts["power"] or parts["exponent"] or parts["scale"] or "0"
        value *= Fraction(10) ** int(exponent.replace(" ", ""))
    value *= _SCALES.get(parts["words"], 1)
    return None if len(signs) > 1 else -value if signs == "-" else value


_RELATION = re.compile(r"(?<![<>!:])=|\\approx(?![A-Za-z])")


def read(text: str) -> Number | None:
    r"""Read an answer that is a number from end to end, else None; what stands before the last
    ``=`` is a label.

    >>> read("x = $1,234.50").value, read("18 or 19"), read("3 million people").value
    (Fraction(2469, 2), None, Fraction(3000000, 1))
    """
    if len(text) > LONGEST or sum(map(str.isnumeric, text)) > MOST_DIGITS:
        return None
    return literal(_RELATION.split(clean(text))[-1].strip())


def equal(gold: Number, other: Number) -> bool:
    """Compare two numbers exactly; see the module for units and percent.

    >>> equal(Number(Fraction(1, 2)), Number(Fraction(50), "%"))
    True
    """
    if gold.unit and other.unit:
        return gold == other
    alike = gold.value == other.value
    for percent, bare in ((gold, other), (other, gold)):
        if percent.unit == "%":
            return percent.value / 100 == bare.value or (alike and abs(bare.value) > 1)
    return alike


def normal(text: str) -> str:
    """Return one text for all spellings of a number, so that votes for ``0.5`` and ``1/2`` fall
    together.

    >>> normal("0.50"), normal("1/2"), normal("about it"), normal("five")
    ('1/2', '1/2', 'about it', '5')
    """
    number = read(text)
    return str(number.value) if number else " ".join(text.split()).lower()
