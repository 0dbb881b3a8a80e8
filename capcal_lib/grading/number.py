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
from dataclasses import dataclass
from fractions import Fraction

from capcal_lib.grading import units
from capcal_lib.grading.latex import LONGEST, MOST_DIGITS, clean
from capcal_lib.grading.units import Unit


@dataclass(frozen=True, slots=True)
class Number:
    """An exact value, its unit, and the words after it where they are no known unit."""

    value: Fraction
    unit: Unit = units.NONE
    words: str = ""


_SMALL = {
    name: value
    for value, name in enumerate(
        re.findall(
            r"\w+",
            "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
            "fifteen sixteen seventeen eighteen nineteen",
        )
    )
}
_TENS = {
    name: 10 * value
    for value, name in enumerate(
        re.findall(r"\w+", "twenty thirty forty fifty sixty seventy eighty ninety"), 2
    )
}
_SCALES = {
    "hundred": 100,
    "thousand": 1_000,
    "million": 10**6,
    "billion": 10**9,
    "trillion": 10**12,
    "dozen": 12,
}
_SHORT_SCALES = {"k": 1_000, "bn": 10**9, "mn": 10**6, "mln": 10**6, "bln": 10**9, "tn": 10**12}
ORDINALS = {
    "first": 1,
    "second": 2,
    "third": 3,
    "fifth": 5,
    "eighth": 8,
    "ninth": 9,
    "twelfth": 12,
} | {
    name.removesuffix("y") + ("ieth" if name.endswith("y") else "th"): value
    for name, value in (_SMALL | _TENS | _SCALES).items()
    if name not in ("one", "two", "three", "five", "eight", "nine", "twelve", "zero", "dozen")
}
_DENOMINATORS = {name: value for name, value in ORDINALS.items() if value > 2} | {
    "half": 2,
    "quarter": 4,
    "halve": 2,
}
_TWO_WORDS = {"ten": 10, "hundred": 100}  # ten thousandths, hundred thousandths


@dataclass(slots=True)
class _Words:
    """The words of a number, taken from the left."""

    left: list[str]

    def take(self, *options: dict[str, int]) -> int | None:
        """Take the next word where one of these has it."""
        for known in options:
            if self.left and self.left[0] in known:
                return known[self.left.pop(0)]
        return None

    def skip(self, *words: str) -> bool:
        """Take these words where they come next."""
        there = tuple(self.left[: len(words)]) == words
        if there:
            del self.left[: len(words)]
        return there


def _cardinal(words: _Words) -> int | None:
    """Take a cardinal number; each part must be smaller than the part before leaves room for."""
    total, part, room, largest = 0, None, 1_000, 10**15
    while words.left:
        word = words.left[0]
        after_and = word == "and" and bool(total or part) and room >= 100 and len(words.left) > 1
        number = words.left[1] if after_and else word
        value = (_SMALL | _TENS).get(number)
        if value is not None and value < room and (value or part is None):
            del words.left[: 1 + after_and]
            part = (part or 0) + value
            room = 10 if number in _TENS else 1
        elif word == "hundred" and part and part < 100 and room <= 10:
            words.left.pop(0)
            part, room = part * 100, 100
        elif word in _SCALES and word != "hundred" and part and _SCALES[word] < largest:
            largest = _SCALES[words.left.pop(0)]
            total, part, room = total + part * largest, 0, min(largest, 1_000)
        else:
            break
    return None if part is None else total + part


def cardinal(words: list[str]) -> tuple[int, int] | None:
    """Read a cardinal number at the start of words; return it, and how many words it takes.

    >>> cardinal(["forty", "two", "apples"]), cardinal(["apples"])
    ((42, 2), None)
    """
    rest = _Words(list(words))
    value = _cardinal(rest)
    return None if value is None else (value, len(words) - len(rest.left))


def _denominator(words: _Words, *, plural: bool) -> int | None:
    """Take the denominator of a fraction in words: halves, hundredths, ten thousandths."""
    first = _TWO_WORDS.get(words.left[0], 0) if len(words.left) > 1 else 0
    name = words.left[bool(first)] if words.left else ""
    value = _DENOMINATORS.get(name.removesuffix("s") if plural else name)
    if value is None or name.endswith("s") != plural or (first and value < 1_000):
        return None
    del words.left[: 1 + bool(first)]
    return value * (first or 1)


def _fraction(words: _Words) -> Fraction | None:
    """Take a fraction below or above one: half, a third, two thirds; or put the words back."""
    before = list(words.left)
    if words.skip("half") or words.skip("a", "half"):
        return Fraction(1, 2)
    top = 1 if words.skip("a") else _cardinal(words)
    bottom = _denominator(words, plural=top != 1) if top else None
    if top and bottom:
        return Fraction(top, bottom)
    words.left = before
    return None


def in_words(text: str) -> tuple[Fraction, str] | None:
    """Read a number in words at the start of a text; return it with what follows it.

    >>> in_words("twelve hundred and five apples"), in_words("negative two thirds")
    ((Fraction(1205, 1), 'apples'), (Fraction(-2, 3), ''))
    >>> in_words("no one")
    """
    pieces = re.split(r"[\s-]+", text.strip())
    words = _Words([piece.lower() for piece in pieces])
    sign = -1 if words.skip("minus") or words.skip("negative") else 1
    value = _fraction(words)
    if value is None:
        before = list(words.left)
        if words.skip("a") and words.left and words.left[0] in _SCALES:
            words.left.insert(0, "one")
        else:
            words.left = before
        whole = _cardinal(words)
        if whole is None:
            return None
        value = whole + _further(words, digits=False)
    return sign * value, " ".join(pieces[len(pieces) - len(words.left) :])


def _further(words: _Words, *, digits: bool) -> Fraction:
    """Take what adds to a whole number: and a half, point two five."""
    before = list(words.left)
    if words.skip("and") and (more := _fraction(words)) and more < 1:
        return more
    words.left = before
    if digits or not words.skip("point"):
        return Fraction()
    places = ""
    while (
        digit := words.take({name: value for name, value in _SMALL.items() if value < 10})
    ) is not None:
        places += str(digit)
    return Fraction(f"0.{places}") if places else Fraction()


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
        value, rest = _value(parts), parts.get("rest", "").strip()
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
    words = _Words([piece.lower() for piece in pieces])
    short = _SHORT_SCALES | ({"m": 10**6, "b": 10**9} if currency else {})
    taken = False
    while scale := words.take(_SCALES, {f"{name}s": size for name, size in _SCALES.items()}, short):
        value *= scale
        taken = True
    if not taken and value.denominator == 1 and words.left[0] not in ("quarter", "quarters"):
        if bottom := _denominator(words, plural=value != 1):
            value /= bottom
            taken = True
        elif more := _further(words, digits=True):
            value += more if value >= 0 else -more
            taken = True
    return (value, " ".join(pieces[len(pieces) - len(words.left) :])) if taken else (value, rest)


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
        top, bottom = parts["top"], parts["bottom"]
        if exact(bottom) == 0 or ("whole" in parts and (top + bottom).strip("0123456789")):
            return None
        value = exact(top) / exact(bottom) + int(parts.get("whole", 0))
    signs = parts.get("sign", "") + parts.get("inner", "")
    return None if len(signs) > 1 else -value if signs == "-" else value


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
    one, two = gold.unit, other.unit
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
    return f"{number.value} {number.words}".strip() if number else " ".join(text.split()).lower()
