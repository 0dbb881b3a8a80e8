"""Units as quantities, from a table: what it does not have is no unit.

A unit is a factor and powers of base dimensions, so that ``km/h`` and ``mph``, or ``J`` and ``kJ``,
are compared by what they measure. Scales with a zero of their own (Celsius, Fahrenheit, a.m. and
p.m.) are dimensions of their own, and so are percent, degrees, radians and each currency: nothing
is converted between them. Nouns that are counted (``7 apples``) come from a list and have no
dimension; months are not converted to days."""

import re
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import prod


@dataclass(frozen=True, slots=True)
class Unit:
    """What one of a unit is: a factor, powers of base dimensions, and nouns that were counted."""

    factor: Fraction = Fraction(1)
    powers: tuple[tuple[str, int], ...] = ()
    nouns: frozenset[str] = frozenset()


NONE = Unit()

# names = factor and units that stand above; without a factor the names are a base dimension.
# A star: the symbols up to the first long name take the prefixes of SI, and so do the long names.
_TABLE = r"""
    * m meter metre | * g gram gm | * s second sec | * A ampere amp | * mol mole | * bit
    month | percent pct % | degree deg ° | radian rad | celsius centigrade °C | fahrenheit °F
    K kelvin kelvins | am | pm | dollar usd $ buck | euro eur € | yen ¥ jpy | rupee rs ₹ inr
    peso | yuan rmb
    pound lb £ gbp | decibel dB | candela cd | lumen lm | lux lx | unit | franc | won | ruble | pH
    cent ¢ penny = 0.01 dollar
    inch in ″ = 0.0254 m | foot feet ft = 0.3048 m | yard yd = 0.9144 m | mile mi = 1609.344 m
    angstrom Å = 1/10000000000 m | furlong = 201.168 m
    * ton tonne = 1000000 g | ounce oz = 28.349523125 g | carat = 0.2 g
    minute min = 60 s | hour h hr = 3600 s | day = 86400 s | week wk = 604800 s
    year yr = 12 month | decade = 120 month | century = 1200 month
    acre = 4046.8564224 m^2 | hectare ha = 10000 m^2
    * L l liter litre = 0.001 m^3 | cc = 0.000001 m^3 | gallon gal = 3.785411784 L
    quart qt = 0.946352946 L
    pint pt = 0.473176473 L | cup = 0.2365882365 L | tablespoon tbsp tbs = 0.01478676478125 L
    teaspoon tsp = 0.00492892159375 L
    mph = 1 mi/h | kph kmh kmph = 1 km/h | knot kn = 1852 m/h | fps = 1 ft/s
    * N newton = 1000 g m/s^2 | * J joule = 1 N m | * W watt = 1 J/s | * Pa pascal = 1 N/m^2
    * Hz hertz = 1 /s | rpm = 1 /min | bpm = 1 /min | kWh = 3600000 J
    * V volt = 1 W/A | * Ω ohm = 1 V/A | * coulomb = 1 A s | * farad = 1 A s/V
    * T tesla = 1 V s/m^2 | * henry = 1 V s/A
    * cal calorie = 4.184 J | * eV electronvolt = 0.0000000000000000001602176634 J
    Btu btu = 1055.06 J
    horsepower hp = 745.7 W | psi = 6894.757 Pa | atm atmosphere = 101325 Pa | * bar = 100000 Pa
    torr mmHg = 133.322 Pa | * B byte = 8 bit
"""
_PREFIXES = {
    "pico p": Fraction(1, 10**12),
    "nano n": Fraction(1, 10**9),
    "micro µ μ u": Fraction(1, 10**6),
    "milli m": Fraction(1, 1000),
    "centi c": Fraction(1, 100),
    "deci d": Fraction(1, 10),
    "kilo k": Fraction(1000),
    "mega M": Fraction(10**6),
    "giga G": Fraction(10**9),
    "tera T": Fraction(10**12),
}
_NOUNS = frozenset(
    re.findall(
        r"\w+",
        """
        acorns ads adults grades instructions laundry masks raspberries albums alligators
        ambulances animals answers ants apartments
        apples apps aprons arms arrangements arrows articles artifacts athletes attempts
        attendees avocados awards babies baby bacteria badges bags balloons balls
        bananas bandages bands barrels bars basketballs baskets batches bats batteries
        beads beans bears beds bees beetles bells berries bicycles big bikes bills birds
        biscuits black blankets blocks blue blueberries boards boats bolts bones bonuses
        books boots bottles bouquets bowls boxes boys bracelets branches bricks bridges
        brothers brown brownies buckets bugs buildings bulbs bundles bunnies burgers
        buses bushels businesses butterflies buttons cabinets cakes calls camels campers
        candies candles candy canes cans caps cards caribou carrots cars cartons cases
        caterpillars cats cattle cells centers chairs chapters characters checks cheeses
        cherries chickens children chips chocolate chocolates choices circles cities
        classes clients clips clothes clouds coats coconuts codes coins colors colours
        columns combinations comics committees computers cones containers cookies
        corners counters countries cousins cows crabs crackers crates crayons crickets
        crystals cucumbers cupcakes cups customers cuts cycles dates daughters deer
        desks diagonals diamonds dice different digits dimes dinners dinosaurs discs
        dishes distinct divisors dogs dolls dolphins donuts doors doughnuts drawings
        dresses drinks drivers drops ducklings ducks earrings ears edges eggs electrons
        elements elephants elevators emails employees envelopes episodes erasers errors
        events exams exercises extra eyes faces factors families fans feathers female
        females fields figures files fingers fires fish fishes flags fleas flies flights
        floors flour flowers followers football forks friends frogs fruit fruits full
        functions games geese gems ghosts giraffes girls glasses goals goats goldfish
        golf graduates grapes green grey groups guests guitars gumballs guppies
        hamburgers hands hats heads hens highlighters holes homes horses hotdogs hotels
        houses ice individuals insects integers intersections invitations items jars
        jelly jellybeans jellyfish jobs jokes juice jumps keys kids kittens knives labs
        ladders lambs lamps laps laptops large leaves legs lemons lessons letters levels
        lights lines lions lists litters loads loaves lobsters lollipops long machines
        magazines magnets male males mangoes maps marbles markers marks marshmallows
        matches meals medals melons members men messages mice milk monkeys monsters
        moons mosquitoes motorcycles mountains movies muffins multiples nails names
        necklaces nests new newspapers nickels nights notebooks novels nurses nuts
        objects octopuses officers old onions orange oranges ordered orders outcomes
        outfits owls packages packets packs pages pails paintings pairs pamphlets
        pancakes panels paper papers parents parties partners parts passengers pastries
        paths patients patterns peaches peanuts pears pebbles pencils penguins pens
        people peppers permutations persons pets phones photos pickles pictures pieces
        pies pigeons pigs pills pineapples pink pizza pizzas places planets planks
        plants plates players points polygons polynomials positions possibilities
        possible posters posts potatoes pots presents primes prizes problems products
        programs protons pumpkins pupils puppies purple questions rabbits racers rats
        real rectangles red regions reports requests rice right rings rocks rods rolls
        rooms roosters roses rounds routes rows rulers sacks sales sandwiches scarves
        schools scoops screws seals seashells seats sections seeds segments sentences
        servings sessions sets sharks sheep sheets shells shelves ships shirts shoes
        shops short shots shrimp siblings sides sisters sites skips skirts slices slots
        small snacks snails snakes socks sodas soldiers solutions songs sons spaces
        spiders spoons spots squirrels stairs stamps stars states stations statues steps
        stickers sticks stones stores stories strawberries streets strings stripes
        students subjects subsets sugar suits swans sweaters sweets swimmers symbols
        tables tablets tadpoles tails tall tanks tasks taxis teachers teams teeth tennis
        tents terms tests texts tickets tiles tires toads toes tokens tomatoes tools
        toothbrushes total towels towers towns toy toys trains trays treats trees
        triangles trips trophies trucks tubes tulips turns turtles tvs umbrellas unique
        values vans vehicles vertices victories videos villages violins visitors visits
        volunteers votes wagons walls watches water watermelons ways weeds whales wheels
        white whole widgets windows winners wins wolves women wood words workers worms
        yarns yellow young zebras zeros
        """,
    )
)
_WITHOUT_MEANING = re.compile(
    r"\b(?:in (?:total|all|the end)|of|the|altogether|total|left(?: over)?|remaining|old|exactly"
    r"|more|fewer)\b"
)
# Spellings of what stands in the table, in this order.
_SPELLINGS = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\\text\s?\{([^{}]*)\}", r" \1 "),
        (r"\\frac\s?\{([^{}]*)\}\s?\{([^{}]*)\}", r"\1/\2"),
        (r"\\([%$])", r"\1"),
        (r"\\cdot(?![A-Za-z])|[·⋅×*~]|(?<=\w)-(?=[^\W\d_])", " "),
        (r"\b([ap])\.\s?m\b\.?", r"\1m "),
        (r"\b([AP])\.?\s?M\b\.?", r"\1M "),
        (r"\bper\s?cent\b", "percent"),
        (r"(?:\bdegrees?\b|\bdeg\b|°)\s?(?:C\b|[Cc]elsius\b)", " celsius "),
        (r"(?:\bdegrees?\b|\bdeg\b|°)\s?(?:F\b|[Ff]ahrenheit\b)", " fahrenheit "),
        (r"\b(?:per|an?|each|every)\b", "/"),
        (r"(?<=[A-Za-z])[.,](?!\w)", ""),
    )
)
_TOKEN = re.compile(r"[^\W\d_]+|\^\s?\{?\s?-?\d\s?\}?|\S")
_SHAPES = {"square": 2, "sq": 2, "cubic": 3, "cu": 3}
_RAISED = {"squared": 2, "cubed": 3}


@cache
def _table() -> dict[str, Unit]:
    """Return the units of the table by name, with the prefixes of SI."""
    units: dict[str, Unit] = {}
    for entry in _TABLE.replace("\n", "|").split("|"):
        before, _, definition = entry.partition("=")
        names = before.replace("*", "").split()
        if not names:
            continue
        unit = Unit(powers=((names[0], 1),))
        if definition:
            factor, measured = definition.split(maxsplit=1)
            base = _product(measured, units)
            assert base is not None, entry
            unit = Unit(Fraction(factor) * base.factor, base.powers)
        for name in names:
            units[name] = unit
            for prefix, size in _PREFIXES.items() if "*" in before else ():
                long, *symbols = prefix.split()
                for each in [long] if len(name) > 3 else symbols:
                    units.setdefault(each + name, Unit(unit.factor * size, unit.powers))
    return units


def known(word: str) -> bool:
    """Say whether a word is a unit of the table, or a noun of the list.

    >>> known("kilometres"), known("apple"), known("dozens")
    (True, True, False)
    """
    return _named(word, _table()) is not None


def _named(word: str, units: dict[str, Unit]) -> Unit | None:
    """Return the unit or noun that a word names, in the plural too, and in capitals."""
    for name in (word, word.lower()) if len(word) > 1 else (word,):
        for each in (name, name.removesuffix("s"), name.removesuffix("es"), name[:-3] + "y"):
            if each in units and (each == name or name.endswith("s")):
                return units[each]
    word = word.lower()
    singular = word.removesuffix("s")
    if {word, word + "s", word + "es", singular} & _NOUNS:
        return Unit(nouns=frozenset({singular}))
    return None


def read(text: str) -> Unit | None:
    r"""Read what stands after a number as a unit; None where any word of it is unknown.

    >>> read("km/h") == read("kilometers per hour"), read("J") == read("kJ"), read("apples").nouns
    (True, False, frozenset({'apple'}))
    >>> read("dozens"), read(r"\text{m}/\text{s}^2").powers
    (None, (('m', 1), ('s', -2)))
    """
    for pattern, replacement in _SPELLINGS:
        text = pattern.sub(replacement, text)
    return _product(_WITHOUT_MEANING.sub(" ", text), _table())


def _product(text: str, units: dict[str, Unit]) -> Unit | None:
    """Multiply the units of a text; a stroke divides by the next one, or by all in brackets."""
    parts: list[tuple[Unit, int]] = []
    side = 1
    shape = 1
    bracketed = False
    for token in _TOKEN.findall(text):
        if token == "/":
            side = -1
        elif token in ("(", ")"):
            bracketed = token == "(" and side < 0
        elif token in _SHAPES:
            shape = _SHAPES[token]
        elif token[:1] == "^" or token in _RAISED:
            if not parts or token == "^":
                return None
            unit, power = parts.pop()
            parts.append((unit, power * (_RAISED.get(token) or int(re.sub(r"[^\d-]", "", token)))))
        elif found := _named(token, units):
            parts.append((found, side * shape))
            if not bracketed:
                side = 1
            shape = 1
        else:
            return None
    if bool(parts) != bool(text.strip()) or text.count("(") != text.count(")"):
        return None
    powers = Counter[str]()
    for unit, power in parts:
        for name, each in unit.powers:
            powers[name] += each * power
    return Unit(
        prod((unit.factor**power for unit, power in parts), start=Fraction(1)),
        tuple(sorted((name, power) for name, power in powers.items() if power)),
        frozenset(noun for unit, _ in parts for noun in unit.nouns),
    )
