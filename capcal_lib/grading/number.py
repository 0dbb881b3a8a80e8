r"""Numbers, compared exactly as fractions: no tolerance, so ``0.333`` is not ``1/3``.

Read are integers with or without thousands separators, decimals, ``3/4``, ``\frac{3}{4}``, mixed
numbers, ``1.2e-3``, ``6 \times 10^{5}``, repeating decimals under ``\overline``, ``3 million``, a
leading ``x =``, a currency and a unit.

A unit may be left out. Where both answers name one, the two must agree (``5 cm`` is not ``5 m``);
nothing is converted. A percent sign is read both as a unit and as a hundredth: ``50%`` equals
``50`` and ``0.5``, and ``0.5%`` never ``50%``."""

import re
from dataclasses import dataclass
from fractions import Fraction

from capcal_lib.grading.latex import LONGEST, MOST_DIGITS, clean


@dataclass(frozen=True, slots=True)
class Number:
    """An exact value, and its unit where that is one of the well-known ones."""

    value: Fraction
    unit: str = ""


_MULTIPLIERS = {
    "hundred": 100,
    "thousand": 1_000,
    "million": 10**6,
    "billion": 10**9,
    "trillion": 10**12,
    "dozen": 12,
}
# Words after a number that make it another number, or no number.
_NOT_UNITS = re.findall(
    r"\w+",
    "and but cubed divided equals half halves minus modulo no not or out over plus point quarter "
    "quarters "
    "remainder squared than then third thirds times to too",
)
_UNITS = {
    name: names.split()[0]
    for names in r"""
        percent \% pct | degree degrees deg ° | radian radians rad | mph
        dollar dollars usd \$ $ bucks | cent cents ¢ | euro euros eur € | pound pounds £ gbp lb lbs
        rupee rupees ₹ rs | yen ¥ jpy
        mm millimeter millimeters millimetre millimetres
        cm centimeter centimeters centimetre centimetres
        m meter meters metre metres | km kilometer kilometers kilometre kilometres
        inch inches | foot feet ft | yard yards | mile miles
        g gram grams gm | kg kilogram kilograms | mg milligram milligrams | ounce ounces oz
        second seconds sec s | minute minutes min mins | hour hours hr hrs h | day days | week weeks
        month months | year years
        ml milliliter milliliters millilitre millilitres | l liter liters litre litres
        gallon gallons
    """.replace("\n", "|").split("|")
    for name in names.split()
}

_DECIMAL = r"(?:(?:\d{1,3}(?:,\d{3})+|\d{1,3}(?:\x20\d{3})+|\d+)(?:\.\d*)?|\.\d+)"
_CURRENCY = r"(?:(?:US)?\\?\$|[€£¥₹]|USD\b|Rs\.?)"
_POWER = r"10\s?\^\s?(?:\{{\s?(?P<{0}>[+-]?\s?\d{{1,3}})\s?\}}|(?P<{0}_bare>[+-]?\d{{1,3}}))"
_NUMBER = re.compile(
    rf"""(?P<sign>[+-]?)\s?(?P<currency>{_CURRENCY})?\s?(?P<inner>[+-]?)\s?
    (?:
        {_POWER.format("power")}
      | (?P<whole>\d+)?\s?\\frac
        \s?\{{\s?(?P<top>[+-]?\s?{_DECIMAL})\s?\}}\s?\{{\s?(?P<bottom>[+-]?\s?{_DECIMAL})\s?\}}
      | (?:(?P<whole_plain>\d+)\s)?(?P<top_plain>{_DECIMAL})\s?/\s?(?P<bottom_plain>{_DECIMAL})
      | (?P<decimal>{_DECIMAL})(?:\\overline\s?\{{(?P<repeating>\d+)\}})?
        (?:[eE](?P<exponent>[+-]?\d{{1,3}})|\s?(?:\\cdot|x)\s?{_POWER.format("scale")})?
    )(?P<rest>.*)""",
    re.VERBOSE,
)
_UNIT_TEXT = re.compile(r"(\\text\{[^{}]*\}|\\%)(\s?\^\s?\{?\s?\d\s?\}?)?")
_PLAIN_UNIT = re.compile(r"(?:[A-Za-z]+(?:/[A-Za-z]+)?\.?|[€£¥₹¢])(?:\s?\^\s?\{?\s?([23])\s?\}?)?")


def literal(text: str, *, variables: bool = False) -> Number | None:
    r"""Read text from `latex.clean` that is a number from end to end, with an optional currency and
    unit.

    Where letters may be ``variables``, ``2m`` is no number, and only known units or long words are
    units.

    >>> literal(r"1\frac{4}{5}").value, literal("2m"), literal("2m", variables=True)
    (Fraction(9, 5), Number(value=Fraction(2, 1), unit='m'), None)
    """
    # {,} and the like are gone; a text that is all in \text{} is taken out of it.
    inside = re.fullmatch(r"\\text\{([^{}]*)\}", text)
    match = _NUMBER.fullmatch(inside[1].strip() if inside else text)
    if match is None:
        return None
    parts = {name.partition("_")[0]: text for name, text in match.groupdict().items() if text}
    value = _value(parts)
    unit = _unit(parts.get("rest", "").strip(), variables)
    if value is None or unit is None:
        return None
    words, power = unit
    if words and words[0] in _MULTIPLIERS:
        value *= _MULTIPLIERS[words[0]]
        words = words[1:]
    known = next((_UNITS[word] for word in words if word in _UNITS), "")
    if not known:
        known = _UNITS.get(parts.get("currency", "").removeprefix("US").lower(), "")
    return Number(value, known + power if known else "")


def _value(parts: dict[str, str]) -> Fraction | None:
    def exact(digits: str) -> Fraction:
        return Fraction(digits.replace(",", "").replace(" ", "").removesuffix("."))

    if "power" in parts:
        value = Fraction(10) ** int(parts["power"].replace(" ", ""))
    elif decimal := parts.get("decimal"):
        value = exact(decimal)
        if repeating := parts.get("repeating"):
            if "." not in decimal:
                return None
            places = len(decimal.partition(".")[2])
            value += Fraction(int(repeating), (10 ** len(repeating) - 1) * 10**places)
        if scale := parts.get("exponent") or parts.get("scale"):
            value *= Fraction(10) ** int(scale.replace(" ", ""))
    else:
        top, bottom = parts["top"], parts["bottom"]
        if exact(bottom) == 0 or ("whole" in parts and (top + bottom).strip("0123456789")):
            return None
        value = exact(top) / exact(bottom) + int(parts.get("whole", 0))
    signs = parts.get("sign", "") + parts.get("inner", "")
    return None if len(signs) > 1 else -value if signs == "-" else value


def _unit(rest: str, variables: bool) -> tuple[list[str], str] | None:
    """Split what follows a number into unit words and a power; None where it is no unit."""
    words: list[str] = []
    power = ""
    while rest:
        if match := _UNIT_TEXT.match(rest):
            content = match[1] if match[1] == r"\%" else match[1][6:-1]
            words += [word.strip(".,()").lower() for word in content.split()]
            power = re.sub(r"\D", "", match[2] or "") or power
        elif match := _PLAIN_UNIT.match(rest):
            word = match[0].partition("^")[0].strip(". ").lower()
            for part in word.split("/"):
                if len(part) == 1 and part.isalpha() and (variables or part not in _UNITS):
                    return None
                if variables and len(part) < 4 and part not in _UNITS:
                    return None
            words.append(word)
            power = match[1] or power
        else:
            return None
        rest = rest[match.end() :].strip()
    words = [word for word in words if word]
    if (
        any(word in _NOT_UNITS or any(mark.isdigit() for mark in word) for word in words)
        or len(words) > 4
    ):
        return None
    for name, exponent in (("square", "2"), ("sq", "2"), ("cubic", "3"), ("cu", "3")):
        if name in words:
            power = exponent
    return words, f"^{power}" if power else ""


_KNOWN_WORDS = (
    _UNITS.keys() | _MULTIPLIERS.keys() | {"text", "frac", "cdot", "overline", "e", "x", "us"}
)
_WORDS = re.compile(r"[^\W\d_]+")
_RELATION = re.compile(r"(?<![<>!:])=|\\approx(?![A-Za-z])")


def read(text: str, *, any_unit: bool = True) -> Number | None:
    r"""Read an answer that is a number from end to end, else None; what stands before the last
    ``=`` is a label.

    Any words may follow as a unit, or only well-known ones, as ``12 Monkeys`` is no number.

    >>> read("x = $1,234.50").value, read("18 or 19"), read("3 million people").value
    (Fraction(2469, 2), None, Fraction(3000000, 1))
    """
    if len(text) > LONGEST or not 0 < sum(mark.isnumeric() for mark in text) <= MOST_DIGITS:
        return None
    sides = [side.strip() for side in _RELATION.split(clean(text))]
    text = (
        sides[0] if len(sides) == 2 and len(sides[1]) == 1 and sides[1].isalpha() else sides[-1]
    )  # 2 = x
    if not any_unit and any(word.lower() not in _KNOWN_WORDS for word in _WORDS.findall(text)):
        return None
    return literal(text)


def equal(gold: Number, other: Number) -> bool:
    """Compare two numbers exactly; see the module for units and percent.

    >>> equal(Number(Fraction(1, 2)), Number(Fraction(50), "percent"))
    True
    """
    if gold.unit and other.unit:
        return gold == other
    if gold.value == other.value:
        return True
    if gold.unit == "percent":
        return gold.value / 100 == other.value
    return other.unit == "percent" and gold.value == other.value / 100


def normal(text: str) -> str:
    """Return one text for all spellings of a number, so that votes for ``0.5`` and ``1/2`` fall
    together.

    >>> normal("0.50"), normal("1/2"), normal("about five")
    ('1/2', '1/2', 'about five')
    """
    number = read(text)
    return str(number.value) if number else " ".join(text.split()).lower()
