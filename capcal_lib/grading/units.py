r"""Units: what the words after a number measure, and how large a unit is.

Known are the SI with its prefixes, the customary units of length, mass, volume, time and
temperature, and currencies; and what is made of them (``km/h``, ``square feet``, ``kg m/s^2``).
Other words say what is counted, and are no unit. A name may have several meanings: ``pound`` is a
mass and a currency."""

import re
from collections import Counter
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import NamedTuple


class Unit(NamedTuple):
    """What is measured, as base units with their exponents, and the size in those."""

    powers: tuple[tuple[str, int], ...]
    size: Fraction


# Symbols and names that take the prefixes of the SI, and what they are made of; a base unit is made
# of nothing.
_SI = {
    "m meter metre": "",
    "g gram gramme": "",
    "s second sec": "",
    "A ampere amp": "",
    "K kelvin": "",
    "mol mole": "",
    "cd candela": "",
    "rad radian": "",
    "lm lumen": "",
    "bit": "",
    "B byte": "8 bit",
    "N newton": "kg m s^-2",
    "J joule": "N m",
    "W watt": "J s^-1",
    "Wh watt-hour": "W hour",
    "Pa pascal": "N m^-2",
    "Hz hertz": "s^-1",
    "C coulomb": "A s",
    "V volt": "W A^-1",
    "Ω \u2126 ohm": "V A^-1",
    "F farad": "C V^-1",
    "S siemens": "A V^-1",
    "Wb weber": "V s",
    "T tesla": "Wb m^-2",
    "H henry": "Wb A^-1",
    "Bq becquerel": "s^-1",
    "Gy gray": "J kg^-1",
    "Sv sievert": "J kg^-1",
    "lx lux": "lm m^-2",
    "L l liter litre": "1/1000 m^3",
    "bar": "100000 Pa",
    "eV electronvolt": "1602176634/10000000000000000000000000000 J",
    "cal calorie": "523/125 J",
    "t tonne": "1000 kg",
    "pc parsec": "",
}
_PREFIXES = {
    "T tera": Fraction(10**12),
    "G giga": Fraction(10**9),
    "M mega": Fraction(10**6),
    "k kilo": Fraction(10**3),
    "h hecto": Fraction(10**2),
    "d deci": Fraction(1, 10),
    "c centi": Fraction(1, 100),
    "m milli": Fraction(1, 10**3),
    "\u00b5 \u03bc u micro": Fraction(1, 10**6),
    "n nano": Fraction(1, 10**9),
    "p pico": Fraction(1, 10**12),
}
# All others; a name in two lines has two meanings.
_OTHERS = (
    ("min minute", "60 s"),
    ("h hr hour", "60 min"),
    ("day", "24 h"),
    ("week wk", "7 day"),
    ("fortnight", "2 week"),
    ("month mo", ""),
    ("year yr", "12 month"),
    ("decade", "10 year"),
    ("century centuries", "100 year"),
    ("inch inche in", "254/10000 m"),
    ("ft foot feet", "12 inch"),
    ("yd yard", "3 ft"),
    ("mi mile", "5280 ft"),
    ("nmi nauticalmile", "1852 m"),
    ("furlong", "220 yd"),
    ("fathom", "6 ft"),
    ("micron", "1/1000000 m"),
    ("angstrom å ångström", "1/10000000000 m"),
    ("ly lightyear", ""),
    ("au", ""),
    ("lb pound lbs", "45359237/100000000 kg"),
    ("oz ounce", "1/16 lb"),
    ("stone", "14 lb"),
    ("ton", ""),
    ("carat ct", "1/5 g"),
    ("gm gms", "g"),
    ("cc", "cm^3"),
    ("gal gallon", "231 inch^3"),
    ("qt quart", "1/4 gal"),
    ("pt pint", "1/2 qt"),
    ("cup", "1/2 pt"),
    ("floz fluidounce", "1/8 cup"),
    ("tablespoon tbsp", "1/16 cup"),
    ("teaspoon tsp", "1/3 tablespoon"),
    ("barrel bbl", ""),
    ("acre", "43560 ft^2"),
    ("ha hectare", "10000 m^2"),
    ("mph", "mi h^-1"),
    ("kph kmh kmph", "km h^-1"),
    ("knot kn kt", "1852 m h^-1"),
    ("rpm revolution", ""),
    ("atm atmosphere", "101325 Pa"),
    ("gauss", "1/10000 T"),
    ("psi", "lb inch^-2"),
    ("mmhg torr", ""),
    ("hp horsepower", ""),
    ("btu", ""),
    ("db decibel", ""),
    ("dalton amu", ""),
    ("° deg degree", ""),
    ("celsius centigrade °c ℃ C ° deg degree", ""),
    ("fahrenheit °f ℉ F ° deg degree", ""),
    ("% percent pct", ""),
    ("‰ permille", ""),
    ("a.m am", ""),
    ("p.m pm", ""),
    ("$ dollar usd us$ buck a$ c$ aud cad", ""),
    ("cent ¢", "1/100 $"),
    ("cent ¢", "1/100 €"),
    ("€ euro eur", ""),
    ("£ gbp quid pound", ""),
    ("pence penny pennies p", "1/100 £"),
    ("penny pennies", "1/100 $"),
    ("yen jpy 円 ¥", ""),
    ("yuan cny rmb renminbi 元 ¥", ""),
    ("₹ rs rupee inr रुपये रुपए", ""),
    ("₽ ruble rouble rub руб рубль рублей рубля", ""),
    ("₩ won krw 원", ""),
    ("₺ lira try", ""),
    ("franc chf", ""),
    ("peso mxn", ""),
    ("r$ real reais brl", ""),
    ("rupiah rp idr", ""),
    ("unit", ""),
)
_DEFINITIONS: dict[str, list[tuple[str, str]]] = {}  # by name: symbol, and what it is made of
for _names, _parts in (*_SI.items(), *_OTHERS):
    for _name in _names.split():
        _DEFINITIONS.setdefault(_name, []).append((_names.split()[0], _parts))
_PREFIXABLE = {name for names in _SI for name in names.split()}
_FACTOR = re.compile(r"([\d/]+)|([^\s^]+)(?:\^(-?\d+))?")


def _made_of(symbol: str, parts: str) -> Unit:
    """Return the unit that a line of the tables defines."""
    if not parts:
        return Unit(((symbol, 1),), Fraction(1))
    size = Fraction(1)
    powers = Counter[str]()
    for number, part, exponent in _FACTOR.findall(parts):
        if number:
            size *= Fraction(number)
            continue
        times = int(exponent or 1)
        unit = _meanings(part)[0]
        size *= unit.size**times
        powers.update({base: power * times for base, power in unit.powers})
    return _unit(powers, size)


def _unit(powers: Counter[str], size: Fraction) -> Unit:
    return Unit(tuple(sorted((base, power) for base, power in powers.items() if power)), size)


@lru_cache(maxsize=4096)
def _meanings(name: str) -> tuple[Unit, ...]:
    """Return what a symbol or name without a plural ending means; nothing where it is unknown."""
    if name in _DEFINITIONS:
        return tuple(_made_of(symbol, parts) for symbol, parts in _DEFINITIONS[name])
    for prefixes, size in _PREFIXES.items():
        for prefix in prefixes.split():
            rest = name.removeprefix(prefix)
            if rest != name and rest in _PREFIXABLE and (len(prefix) > 2) == (len(rest) > 3):
                symbol, parts = _DEFINITIONS[rest][0]
                unit = _made_of(symbol, parts)
                return (Unit(unit.powers, size * unit.size),)
    return ()


def _look_up(word: str) -> tuple[Unit, ...]:
    """Return the meanings of a word: as it is, in lower case, and without an s at its end."""
    for spelt in (word, word.lower()):
        for name in (spelt, spelt.removesuffix("s")):
            if name and (meanings := _meanings(name)):
                return meanings
    return ()


_RAISING = {"square": 2, "sq": 2, "cubic": 3, "cu": 3}  # before a unit
_RAISED = {"squared": 2, "cubed": 3}  # behind one
_TWO_WORDS = re.compile(
    r"(?i)\b(nautical|light|fluid|fl)[.\s-]\s?(?=miles?\b|years?\b|ounces?\b|oz\b)"
)
_DEGREES = re.compile(r"(?i)(?:degrees?|deg\.?|°)\s*(celsius|centigrade|fahrenheit|[cf]\b)")
_TOKEN = re.compile(r"\^\s?\{?\s?(-?\d)\s?\}?|[/()]|[^\s/()^*·⋅\\-]+")
# A preposition unless it stands where a unit must.
_INCH = re.compile(r"(?i)(?:^|/|\bper|\bsq\.?|\bcu\.?|\bsquare|\bcubic)\s?in(?:$|\.|\s?[\^/])")


@lru_cache(maxsize=8192)
def read(text: str) -> tuple[tuple[Unit, ...], int]:
    r"""Return the units that the words after a number may name, and how many words are left.

    The units are none where the first word is none.

    >>> [unit.powers for unit in read("m/s")[0]], read("apples"), read("cm long")[1]
    ([(('m', 1), ('s', -1))], ((), 1), 1)
    >>> read("square inches")[0] == read("inch^2")[0], len(read("pounds")[0])
    (True, 2)
    """
    text = _TWO_WORDS.sub(r"\1", text)
    text = _DEGREES.sub(lambda match: f" °{match[1][0].lower()} ", text.strip())
    tokens = [match[0] for match in _TOKEN.finditer(text)]
    factors: list[tuple[tuple[Unit, ...], int]] = []
    raising, sign, group = 1, 1, 1
    for place, token in enumerate(tokens):
        word = token.strip(".,")
        exponent = _exponent(token)
        if token == "/" or word.lower() == "per":
            sign = -1
        elif token == "(":
            group, sign = sign, 1
        elif token == ")":
            group = 1
        elif word.lower() in _RAISING:
            raising = _RAISING[word.lower()]
        elif exponent and factors:
            factors[-1] = (factors[-1][0], factors[-1][1] * exponent)
        else:
            meanings = _look_up(word)
            if not meanings or (word.lower() == "in" and not _INCH.search(text)):
                return _products(factors), len(tokens) - place
            if factors[-1:] != [(meanings, 1)]:  # $5 dollars
                factors.append((meanings, group * sign * raising))
            raising, sign = 1, 1
    return _products(factors), 0


def _exponent(token: str) -> int:
    """Return the exponent that a token is, 0 where it is none."""
    if token.startswith("^"):
        return int(re.sub(r"[^\d-]", "", token))
    return _RAISED.get(token.lower().strip(".,"), 0)


def _products(factors: list[tuple[tuple[Unit, ...], int]]) -> tuple[Unit, ...]:
    """Multiply units, in all their meanings."""
    if not factors:
        return ()
    units = set()
    for meanings in product(*(meanings for meanings, _ in factors)):
        powers = Counter[str]()
        size = Fraction(1)
        for unit, (_, times) in zip(meanings, factors, strict=True):
            size *= unit.size**times
            for base, power in unit.powers:
                powers[base] += power * times
        units.add(_unit(powers, size))
    return tuple(sorted(units))


def ratios(units: tuple[Unit, ...], others: tuple[Unit, ...]) -> set[Fraction]:
    """Return how many of the others one unit may be; nothing where they measure other things.

    >>> ratios(read("m")[0], read("cm")[0]), ratios(read("J")[0], read("W")[0])
    ({Fraction(100, 1)}, set())
    """
    return {
        one.size / other.size for one in units for other in others if one.powers == other.powers
    }
