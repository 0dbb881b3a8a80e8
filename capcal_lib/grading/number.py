r"""Numbers, compared exactly as fractions: no tolerance, so ``0.333`` is not ``1/3``.

Read are integers with or without thousands separators, decimals, ``3/4``, ``\frac{3}{4}``, mixed
numbers, ``1.2e-3``, ``6 \times 10^{5}``, repeating decimals under ``\overline``, numbers in words
(:func:`in_words`), ``3 million``, ``7 hundredths``, ``12th``, a leading ``x =``, and a unit or a
currency of :mod:`capcal_lib.grading.units`.

A unit may be left out. Where both answers name one, they are compared as quantities: ``5 cm`` is
``50 mm`` and never ``5 m``. A percent sign is read both as a unit and as a hundredth: ``50%``
equals ``50`` and ``0.5``; a number up to one is no percentage, so ``0.2%`` is not ``0.2``. Words
after a number that are no known unit may change it, so that such an answer cannot be compared."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import takewhile

from capcal_lib.grading import units
from capcal_lib.grading.latex import LONGEST, MOST_DIGITS, clean
from capcal_lib.grading.units import Unit


@dataclass(frozen=True, slots=True)
class Number:
    """An exact value, its unit, and the words after it where they are no known unit."""

    value: Fraction
    unit: Unit = units.NONE
    words: str = ""


def _numbered(names: str, first: int = 0, step: int = 1) -> dict[str, int]:
    return {name: step * value for value, name in enumerate(names.split(), first)}


_SMALL = _numbered(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen"
)
_TENS = _numbered("twenty thirty forty fifty sixty seventy eighty ninety", 2, 10)
_SCALES = {"hundred": 100, "dozen": 12} | {
    name: 1_000**power for name, power in _numbered("thousand million billion trillion", 1).items()
}
_SHORT_SCALES = {"k": 1_000, "bn": 10**9, "mn": 10**6, "mln": 10**6, "bln": 10**9, "tn": 10**12}
ORDINALS = (
    _numbered(
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth", 1
    )
    | {f"{name}th": value for name, value in _SMALL.items() if value > 12}
    | {f"{name[:-1]}ieth": value for name, value in _TENS.items()}
    | {f"{name}th": value for name, value in _SCALES.items() if name != "dozen"}
)
_DENOMINATORS = {name: value for name, value in ORDINALS.items() if value > 2} | {
    "half": 2,
    "quarter": 4,
    "halve": 2,
}
_TWO_WORDS = {"ten": 10, "hundred": 100}  # ten thousandths, hundred thousandths


def cardinal(words: Sequence[str]) -> tuple[int, int] | None:
    """Read a cardinal number at the start of words; return it, and how many words it takes.

    Each part must be smaller than the part before leaves room for.

    >>> cardinal(["forty", "two", "apples"]), cardinal(["twenty", "thirty"]), cardinal(["apples"])
    ((42, 2), (20, 1), None)
    """
    total = 0
    part = 0
    room = 1_000
    largest = 10**15
    used = 0
    for place, word in enumerate(words):
        value = (_SMALL | _TENS).get(word)
        scale = _SCALES.get(word, 0)
        if value is not None and value < room and (value or not place):
            part += value
            room = 10 if word in _TENS else 1
        elif scale == 100 and 0 < part < 100 and room <= 10:
            part *= 100
            room = 100
        elif scale != 100 and part and 0 < scale < largest:
            total += part * scale
            part = 0
            room = min(scale, 1_000)
            largest = scale
        elif word == "and" and place and room >= 100:
            continue  # it counts only where a number follows
        else:
            break
        used = place + 1
    return (total + part, used) if used else None


def _denominator(words: Sequence[str], *, plural: bool) -> tuple[int, int]:
    """Read a denominator in words, and how many it takes: halves, hundredths, ten thousandths."""
    first = _TWO_WORDS.get(words[0], 0) if len(words) > 1 else 0
    name = words[bool(first)] if words else ""
    value = _DENOMINATORS.get(name.removesuffix("s") if plural else name)
    if value is None or name.endswith("s") != plural or (first and value < 1_000):
        return 0, 0
    return value * (first or 1), 1 + bool(first)


def _fraction(words: Sequence[str]) -> tuple[Fraction, int]:
    """Read a fraction, and how many words it takes: half, a third, two thirds."""
    article = words[:1] == ["a"]
    if words[article : article + 1] == ["half"]:
        return Fraction(1, 2), 1 + article
    top, used = (1, 1) if article else cardinal(words) or (0, 0)
    bottom, more = _denominator(words[used:], plural=top != 1)
    if top and bottom:
        return Fraction(top, bottom), used + more
    return Fraction(), 0


def in_words(text: str) -> tuple[Fraction, str] | None:
    """Read a number in words at the start of a text; return it with what follows it.

    >>> in_words("twelve hundred and five apples"), in_words("negative two thirds")
    ((Fraction(1205, 1), 'apples'), (Fraction(-2, 3), ''))
    >>> in_words("no one")
    """
    pieces = re.split(r"[\s-]+", text.strip())
    words = [piece.lower() for piece in pieces]
    negative = words[0] in ("minus", "negative")
    start = int(negative)
    value, used = _fraction(words[start:])
    if not used:
        if words[start] == "a" and words[start + 1 : start + 2] and words[start + 1] in _SCALES:
            words[start] = "one"
        whole = cardinal(words[start:])
        if whole is None:
            return None
        more, places = _further(words[start + whole[1] :])
        value = whole[0] + more
        used = whole[1] + places
    return -value if negative else value, " ".join(pieces[start + used :])


def _further(words: Sequence[str]) -> tuple[Fraction, int]:
    """Read what adds to a whole number, and how many words it takes: and a half, point two five."""
    if words[:1] == ["and"]:
        more, used = _fraction(words[1:])
        if 0 < more < 1:
            return more, used + 1
        return Fraction(), 0
    digits = [_SMALL.get(word, 10) for word in words[1:]] if words[:1] == ["point"] else []
    places = "".join(map(str, takewhile(lambda digit: digit < 10, digits)))
    if places:
        return Fraction(f"0.{places}"), 1 + len(places)
    return Fraction(), 0


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
_NEGATIVE = re.compile(r"(?:negative|minus)\s+(?=[\d.\\$])", re.IGNORECASE)
_ORDINAL = re.compile(r"(?:st|nd|rd|th)\b\.?", re.IGNORECASE)
# Among variables, 2m is a product: only these are units outside of \text{}, and longer words.
_UNITS_AMONG_VARIABLES = frozenset(
    re.findall(r"\w+", "mm cm km ft yd kg gm mg ml lb lbs oz hr hrs min sec mph deg usd am pm")
)
_JOINING = frozenset(
    re.findall(
        r"\w+", "and but or to plus minus times over between through versus than modulo divided"
    )
)
_MOST_WORDS = 3  # after a number; more of them are a sentence


def literal(text: str, *, variables: bool = False) -> Number | None:
    r"""Read text from `latex.clean` that is a number from end to end, with an optional currency and
    unit.

    Where letters may be ``variables``, ``2m`` is no number, and only known units or long words are
    units.

    >>> literal(r"1\frac{4}{5}").value, literal("2m").value, literal("2m", variables=True)
    (Fraction(9, 5), Fraction(2, 1), None)
    >>> literal("seven dozen").value, literal("7 squared").words
    (Fraction(84, 1), 'squared')
    """
    # {,} and the like are gone; a text that is all in \text{} is taken out of it.
    inside = re.fullmatch(r"\\text\{([^{}]*)\}", text)
    text = _NEGATIVE.sub("-", inside[1].strip() if inside else text, count=1)
    if match := _NUMBER.fullmatch(text):
        parts = {name.partition("_")[0]: text for name, text in match.groupdict().items() if text}
        value = _value(parts)
        rest = parts.get("rest", "").strip()
        if value is None:
            return None
        value, rest = _scaled(value, rest, currency="currency" in parts)
        if currency := parts.get("currency", "").strip("."):
            rest = re.sub(r".*\$", "$", currency) + " " + re.sub(r"^(?:dollars?|USD)\b", "", rest)
    elif (text[:1].isalpha() or text[:2] == "a ") and (found := in_words(text)):
        value, rest = found
    else:
        return None
    return _with_unit(value, rest, variables=variables and not inside)


def _scaled(value: Fraction, rest: str, *, currency: bool) -> tuple[Fraction, str]:
    """Take the words after digits that make them another number, and the ending of an ordinal."""
    if match := _ORDINAL.match(rest):
        return value, rest[match.end() :].strip()
    inside = re.fullmatch(r"\\text\{([^{}]*)\}", rest)
    pieces = re.split(r"[\s-]+", inside[1].strip() if inside else rest)
    words = [piece.lower() for piece in pieces]
    scales = _SCALES | _SHORT_SCALES | ({"m": 10**6, "b": 10**9} if currency else {})
    used = 0
    while used < len(words) and (scale := scales.get(words[used].removesuffix("s"))):
        value *= scale
        used += 1
    if not used and value.denominator == 1 and not words[0].startswith("quarter"):
        bottom, used = _denominator(words, plural=value != 1)
        if bottom:
            value /= bottom
        elif words[0] == "and":
            more, used = _further(words)
            value += more if value >= 0 else -more
    if used:
        return value, " ".join(pieces[used:])
    return value, rest


def _with_unit(value: Fraction, rest: str, *, variables: bool) -> Number | None:
    """Read what follows a number; None where it is neither a unit nor words."""
    if not rest.strip("*"):
        return Number(value)
    plain = re.sub(r"\\text\{([^{}]*)\}", " ", rest) if variables else ""
    for word in re.findall(r"[A-Za-z]+", plain):
        if len(word) < 4 and word not in _UNITS_AMONG_VARIABLES:
            return None
    unit = units.read(rest)
    if unit is not None:
        return Number(value, unit)
    words = re.sub(r"\\text\{([^{}]*)\}", r" \1 ", rest).lower().split()
    wordy = all(re.fullmatch(r"\(?[^\W\d_][^\W\d_]+[.,!)]?|a|i", word) for word in words)
    if not wordy or len(words) > _MOST_WORDS or _JOINING & set(words):
        return None
    return Number(value, words=" ".join(words))


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
        top = parts["top"]
        bottom = parts["bottom"]
        if exact(bottom) == 0 or ("whole" in parts and (top + bottom).strip("0123456789")):
            return None
        value = exact(top) / exact(bottom) + int(parts.get("whole", 0))
    signs = parts.get("sign", "") + parts.get("inner", "")
    if len(signs) > 1:
        return None
    if signs == "-":
        return -value
    return value


_RELATION = re.compile(r"(?<![<>!:])=|\\approx(?![A-Za-z])")


def read(text: str) -> Number | None:
    r"""Read an answer that is a number from end to end, else None; what stands before the last
    ``=`` is a label.

    >>> read("x = $1,234.50").value, read("18 or 19"), read("3 million people").value
    (Fraction(2469, 2), None, Fraction(3000000, 1))
    """
    if len(text) > LONGEST or sum(mark.isnumeric() for mark in text) > MOST_DIGITS:
        return None
    sides = [side.strip() for side in _RELATION.split(clean(text))]
    return literal(
        sides[0] if len(sides) == 2 and len(sides[1]) == 1 and sides[1].isalpha() else sides[-1]
    )  # 2 = x


def equal(gold: Number, other: Number) -> bool | None:
    """Compare two numbers exactly, None where they cannot be; see the module for units and percent.

    The gold answer's own words say what it counts; another's unknown words may change its value.

    >>> equal(Number(Fraction(1, 2)), Number(Fraction(50), units.read("%")))
    True
    >>> equal(Number(Fraction(7)), Number(Fraction(7), words="squared")) is None
    True
    """
    alike = gold.value == other.value
    if other.words:
        return alike if other.words == gold.words else None
    one = gold.unit
    two = other.unit
    if one.powers and two.powers:
        return _same_quantity(gold, other)
    nouns_differ = bool(one.nouns and two.nouns) and not one.nouns & two.nouns
    lacking = bool(two.nouns and (one.powers or gold.words)) or bool(one.nouns and two.powers)
    if alike and (nouns_differ or (lacking and not one.nouns & two.nouns)):
        return None
    for percent, bare in ((gold, other), (other, gold)):
        if percent.unit.powers == (("percent", 1),):
            return percent.value / 100 == bare.value or (alike and abs(bare.value) > 1)
    return alike


def _same_quantity(gold: Number, other: Number) -> bool:
    """Compare two numbers that have units; degrees may be those of an angle or of a thermometer."""
    dimensions = {gold.unit.powers, other.unit.powers}
    if len(dimensions) == 1:
        return gold.value * gold.unit.factor == other.value * other.unit.factor
    plain = (("degree", 1),) in dimensions
    warm = bool(dimensions & {(("celsius", 1),), (("fahrenheit", 1),)})
    return plain and warm and gold.value == other.value


def normal(text: str) -> str:
    """Return one text for all spellings of a number, so that votes for ``0.5`` and ``1/2`` fall
    together.

    >>> normal("0.50"), normal("1/2"), normal("about five"), normal("five")
    ('1/2', '1/2', 'about five', '5')
    """
    number = read(text)
    if number:
        return f"{number.value} {number.words}".strip()
    return " ".join(text.split()).lower()
