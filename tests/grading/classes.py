"""Classes of made answers, right ones in other forms and wrong ones that look right, each drawn
fresh from a seed: the tests ask how many of a class are judged wrong, the benchmark prints them."""

import random
import re
from collections.abc import Callable
from fractions import Fraction
from math import comb
from typing import NamedTuple

from capcal_lib.manifests import Kind


class Case(NamedTuple):
    """One answer of a class; a wrong one may be incorrect, no answer or not scored."""

    kind: Kind
    gold: str
    response: str
    right: bool


Draw = random.Random
CLASSES: dict[str, Callable[[Draw], Case]] = {}


def class_of(name: str) -> Callable[[Callable[[Draw], Case]], Callable[[Draw], Case]]:
    """Enter a class under its name."""

    def enter(make: Callable[[Draw], Case]) -> Callable[[Draw], Case]:
        CLASSES[name] = make
        return make

    return enter


def cases(name: str, number: int, seed: int = 0) -> list[Case]:
    """Draw cases of a class, the same ones for the same seed."""
    draw = random.Random(f"{name} {seed}")
    return [CLASSES[name](draw) for _ in range(number)]


def box(text: str) -> str:
    return rf"\boxed{{{text}}}"


# --- phrases


def answered(draw: Draw) -> tuple[Kind, str, str]:
    """Draw a kind of answer, a gold answer, and another one."""
    kind = draw.choice(["choice", "number", "short"])
    golds = {
        "choice": "ABCD",
        "number": [str(draw.randrange(2, 900)), str(draw.randrange(2, 900) / 4)],
        "short": ["Paris", "Marie Curie", "Lake Victoria", "The Beatles", "Jupiter", "gold"],
    }[kind]
    gold = draw.choice(golds)
    other = draw.choice([each for each in golds if each != gold])
    return kind, gold, other


NAMES = [
    "Bob",
    "Anna",
    "My teacher",
    "The book",
    "A friend",
    "Wikipedia",
    "The author",
    "Tom's father",
]


@class_of("phrase: denied")
def _(draw: Draw) -> Case:
    kind, gold, _ = answered(draw)
    frame = draw.choice(
        [
            "The wrong answer is {}.",
            "I don't think the answer is {}.",
            "I do not believe that the correct answer is {}.",
            "It is false that the answer is {}.",
            "It is not the case that the answer is {}.",
            "It isn't true that the final answer is {}.",
            "Nobody can say that the answer is {}.",
            "A common wrong answer is {}.",
            "One tempting but incorrect answer is {}.",
            "An incorrect answer is {}.",
            "I doubt that the answer is {}.",
            "There is no way the answer is {}.",
            "We can rule out that the answer is {}.",
            "Never would I say the answer is {}.",
            "The answer is {}, which is wrong.",
            "The answer is {}, which is not correct.",
            "The only impossible answer is {}.",
            "The least likely answer is {}.",
            "It would be a mistake to think the answer is {}.",
            "We have shown that it cannot be that the answer is {}.",
        ]
    )
    return Case(kind, gold, frame.format(gold), right=False)


@class_of("phrase: hypothesis, question or another's opinion")
def _(draw: Draw) -> Case:
    kind, gold, _ = answered(draw)
    name = draw.choice(NAMES)
    frame = draw.choice(
        [
            "If we forget the last step, the answer is {}.",
            "Suppose the answer is {}.",
            "Suppose that the correct answer is {}. Does that fit?",
            "Assume the answer is {} for a moment.",
            "Unless I am mistaken about the units, the answer is {}.",
            "If the sum were odd, the answer would be {}.",
            f"{name} says the answer is {{}}.",
            f"{name} claims that the answer is {{}}.",
            f"{name} thinks that the final answer is {{}}.",
            f"According to {name}, the answer is {{}}.",
            f'{name} wrote: "The answer is {{}}."',
            f"{name}'s answer is {{}}.",
            "Some people would say that the answer is {}.",
            "Many students think that the answer is {}.",
            "One might guess that the answer is {}.",
            "Is it possible that the answer is {}?",
            "Could it be that the answer is {}?",
            "We must check whether the answer is {}.",
            "Without rounding, one would believe the answer is {}.",
            "The question is how to show that the answer is {}.",
            "The answer is {}?",
            "The expected wrong answer is {}.",
        ]
    )
    return Case(kind, gold, frame.format(gold), right=False)


@class_of("phrase: affirmed")
def _(draw: Draw) -> Case:
    kind, gold, _ = answered(draw)
    opening = draw.choice(
        [
            "",
            "So ",
            "Thus, ",
            "Therefore, ",
            "Hence ",
            "Finally, ",
            "In conclusion, ",
            "We see that ",
            "I think ",
            "Clearly, ",
            "Since all the rest is impossible, ",
            "As shown above, so ",
            "Based on the text, ",
            "After adding both parts, ",
            "We conclude that ",
            "Given this, ",
            "It follows that ",
            "Overall, ",
            "This means that ",
            "By the second law, ",
            "Yes, ",
            "In this case, ",
        ]
    )
    subject = draw.choice(
        [
            "the answer is",
            "the final answer is",
            "the correct answer is",
            "the answer is:",
            "my answer is",
            "the best answer is",
            "the right answer is",
            "the answer to the question is",
        ]
    )
    shown = draw.choice(["{}", "**{}**", "{}"] + (["({})"] if kind == "choice" else []))
    closing = draw.choice(
        [".", "", ".", ". I hope this helps!", ".\n\nLet me know if you have questions."]
    )
    text = f"{opening}{subject}" if opening else subject[0].upper() + subject[1:]
    working = draw.choice(["", "First we read the question.\n", "Let me think about it. "])
    return Case(kind, gold, f"{working}{text} {shown.format(gold)}{closing}", right=True)


@class_of("phrase: headed")
def _(draw: Draw) -> Case:
    kind, gold, _ = answered(draw)
    frame = draw.choice(
        [
            "Answer: {}",
            "**Answer:** {}",
            "Final answer: {}",
            "**Final Answer**: {}",
            "### Final Answer\n\n{}",
            "The answer:\n{}",
            "Correct answer: {}",
            "Explanation: it is known.\n\nAnswer: {}",
            "My answer: {}",
            "- Answer: {}",
            "So the answer = {}",
        ]
    )
    return Case(kind, gold, frame.format(gold), right=True)


@class_of("phrase: later remark on another answer")
def _(draw: Draw) -> Case:
    kind, gold, other = answered(draw)
    remark = draw.choice(
        [
            "A common wrong answer is {}.",
            "Many people think that the answer is {}.",
            "In the other version of the question, the answer is {}.",
            "If it were different, the answer would be {}.",
            "Bob says the answer is {}.",
            "It is a mistake to say that the answer is {}.",
            "In last year's exam the answer was {}.",
            "I don't think the answer is {}.",
        ]
    )
    return Case(kind, gold, f"The answer is {gold}. {remark.format(other)}", right=True)


@class_of("phrase: corrected")
def _(draw: Draw) -> Case:
    kind, gold, other = answered(draw)
    correction = draw.choice(
        [
            "Wait, that is wrong. The answer is {}.",
            "No, the answer is {}.",
            "Actually, the answer is {}.",
            "Sorry, I made a mistake. The correct answer is {}.",
            "Wait. The answer is {}.",
            "Let me check again. The answer is {}.",
            "Correction: the answer is {}.",
            "Hmm, wait, the right answer is {}.",
            "On second thought, the answer is {}.",
            "But that forgets a step, so the answer is {}.",
        ]
    )
    right = draw.random() < 0.5
    first, last = (other, gold) if right else (gold, other)
    return Case(kind, gold, f"The answer is {first}. {correction.format(last)}", right=right)


# --- boxes


@class_of("box: denied, joined or another's")
def _(draw: Draw) -> Case:
    gold = str(draw.randrange(2, 900))
    other = str(int(gold) + draw.randrange(1, 9))
    first, second = draw.sample([box(gold), box(other)], 2)
    frame = draw.choice(
        [
            f"{first} or {second}",
            f"The answer is {first} or {second}.",
            f"It is not {box(gold)}.",
            f"not {box(gold)}",
            f"The answer isn't ${box(gold)}$.",
            f"I don't think the answer is ${box(gold)}$.",
            f"It is false that the answer is {box(gold)}.",
            f"The wrong answer is {box(gold)}.",
            f"It cannot be {box(gold)}.",
            f"{box(other)}, not {box(gold)}.",
            f"{box(other)} rather than {box(gold)}",
            f"Some people say {box(gold)}.",
            f"If it were even, the answer would be {box(gold)}.",
            f"${first}$ or ${second}$",
            f"Either {first} or {second}",
            f"{box(gold)} is wrong.",
        ]
    )
    return Case(draw.choice(["math", "number"]), gold, frame, right=False)


@class_of("box: with remarks")
def _(draw: Draw) -> Case:
    gold = str(draw.randrange(2, 900))
    other = str(int(gold) + draw.randrange(1, 9))
    frame = draw.choice(
        [
            f"{box(gold)}. A common wrong answer is {box(other)}.",
            f"So it is {box(gold)}, not {box(other)}.",
            f"First {box(other)}. No: {box(gold)}.",
            f"The number that is not prime is ${box(gold)}$.",
            f"Since 7 does not divide it, the answer is {box(gold)}.",
            f"The answer is {box(gold)} instead of {box(other)}.",
            f"If $x=3$, then the value is ${box(gold)}$.",
            f"Thus {box(gold)}. One might think {box(other)}.",
            f"The number of cases that are not allowed is {box(gold)}.",
            f"Therefore, $n = {box(gold)}$.",
            f"So there are \\[{box(gold)}\\] ways.",
        ]
    )
    return Case(draw.choice(["math", "number"]), gold, frame, right=True)


@class_of("box: text inside")
def _(draw: Draw) -> Case:
    gold = str(draw.randrange(2, 900))
    inside = draw.choice(
        [
            r"\text{The answer is }@",
            r"\text{The answer is: }@",
            r"\text{Answer: }@",
            r"\text{The final answer is }@",
            r"\text{The answer is @}",
            "The answer is @",
            r"\mathrm{Answer: }@",
            r"\text{@}",
            r"@\text{ ways}",
            r"\text{the correct answer is } @",
        ]
    )
    return Case("math", gold, box(inside.replace("@", gold)), right=True)


# --- numbers


@class_of("number at the end of a sentence: governed")
def _(draw: Draw) -> Case:
    gold = str(draw.randrange(2, 900))
    frame = draw.choice(
        [
            "The result is negative {}",
            "It is minus {}",
            "It is the square root of {}.",
            "The result is half of {}",
            "So it is double {}",
            "It cannot be {}",
            "The value is twice {}.",
            "The result is the cube of {}.",
            "It is less than {}",
            "It is at most {}.",
            "We know it is not {}.",
            "It is a multiple of {}",
            "The result is one more than {}.",
            "The total is more than {}.",
            "The value is the reciprocal of {}.",
            "Half of the result is {}.",
            "Twice the number is {}.",
            "The square of the result is {}.",
            "The opposite of the number is {}",
            "It is anything but {}",
            "The result is about half of {}.",
            "The sum is a third of {}.",
            "It lies above {}.",
            "Nobody gets {}",
            "The total is never {}.",
        ]
    )
    return Case("number", gold, frame.format(gold), right=False)


@class_of("number at the end of a sentence: plain")
def _(draw: Draw) -> Case:
    gold = str(draw.randrange(2, 900))
    frame = draw.choice(
        [
            "The total number of eggs is {}.",
            "The result is {}",
            "It is {}.",
            "The number of ways is {}.",
            "The atomic number of the element is {}.",
            "So she has {}.",
            "In total he pays ${}.",
            "The element has the atomic number {}.",
            "Altogether that makes {}.",
            "The sum equals {}.",
            "x = {}",
            "3 + 4 + 5 = {}",
            "The total cost of the trip is ${}.",
            "That gives {}.",
        ]
    )
    if "pays" in frame:
        frame = "The amount that he pays is ${}."
    return Case("number", gold, frame.format(gold), right=True)


@class_of("number: words that change it")
def _(draw: Draw) -> Case:
    gold = draw.randrange(2, 99)
    word = draw.choice(
        re.findall(
            r"\S+",
            "hundredths dozens bn hundred thousand million tenths thousandths squared cubed "
            "factorial halves thirds "
            "percentiles mod-5 times-ten lakh crore gross scores k millionths less-than-zero "
            "below-zero degrees-below-zero "
            "in-base-3 base-2 to-the-power-2 modulo-nine over-two divided-by-two and-a-half "
            "point-five plus-one minus-one "
            "or-more or-so or-fewer-than-that squares-of-a-number short-of-ten out-of-ten "
            "quintillion",
        )
    ).replace("-", " ")
    kind: Kind = draw.choice(["number", "math"])
    spelt = rf"{gold}\text{{ {word}}}" if kind == "math" else f"{gold} {word}"
    return Case(kind, str(gold), box(spelt), right=False)


@class_of("number: counted things")
def _(draw: Draw) -> Case:
    gold = draw.randrange(2, 99)
    thing = draw.choice(
        re.findall(
            r"\S+",
            "apples eggs dollars people marbles cookies pages students hours days books tickets "
            "pencils cents ways "
            "points minutes bags boxes children cars dogs flowers pounds miles slices oranges "
            "cups pieces coins "
            "toys trees solutions integers triangles units sides",
        )
    )
    after = draw.choice(["", "", "", " left", " in total", " per day", " each"])
    kind: Kind = draw.choice(["number", "math"])
    spelt = rf"{gold}\text{{ {thing}{after}}}" if kind == "math" else f"{gold} {thing}{after}"
    response = box(spelt) if kind == "math" or draw.random() < 0.5 else f"The answer is {spelt}."
    return Case(kind, str(gold), response, right=True)


UNITS = [
    ["m/s", "meters per second"],
    ["m/s^2", "m/s²"],
    ["km/h", "kph", "kilometers per hour"],
    ["mph", "miles per hour"],
    ["J", "joules"],
    ["kJ", "kilojoules"],
    ["N", "newtons"],
    ["W", "watts"],
    ["kW", "kilowatts"],
    ["Pa", "pascals"],
    ["Hz", "hertz"],
    ["kHz"],
    ["V", "volts"],
    ["A", "amperes"],
    ["kg", "kilograms"],
    ["g", "grams"],
    ["mg", "milligrams"],
    ["m", "meters", "metres"],
    ["cm", "centimeters"],
    ["km", "kilometers"],
    ["ft", "feet"],
    ["inches"],
    ["miles"],
    ["m^2", "square meters"],
    ["cm^2", "square centimeters", "sq cm"],
    ["cm^3", "cubic centimeters"],
    ["L", "liters"],
    ["mL", "milliliters"],
    ["s", "seconds"],
    ["min", "minutes"],
    ["h", "hours"],
    ["days"],
    ["°C", "degrees Celsius"],
    ["°F", "degrees Fahrenheit"],
    ["a.m.", "AM"],
    ["p.m.", "PM"],
    ["%", "percent"],
    ["euros", "€"],
    ["dollars", "USD"],
    ["cents"],
    ["years"],
    ["months"],
    ["gallons"],
    ["acres"],
    ["mol", "moles"],
    ["kg m/s", "kg*m/s"],
]


@class_of("units: different ones")
def _(draw: Draw) -> Case:
    one, other = draw.sample(UNITS, 2)
    value = str(draw.randrange(2, 900))
    return Case(
        "number", f"{value} {draw.choice(one)}", box(f"{value} {draw.choice(other)}"), right=False
    )


@class_of("units: the same one, or left out")
def _(draw: Draw) -> Case:
    unit = draw.choice(UNITS)
    value = str(draw.randrange(2, 900))
    spelt = draw.choice(
        [f"{value} {draw.choice(unit)}", value, rf"{value}\text{{ {draw.choice(unit)}}}"]
    )
    if spelt.endswith("{ %}"):
        spelt = rf"{value}\%"
    return Case("number", f"{value} {draw.choice(unit)}", box(spelt), right=True)


@class_of("units: converted")
def _(draw: Draw) -> Case:
    large, small, factor = draw.choice(
        [
            ("km", "m", 1000),
            ("m", "cm", 100),
            ("kJ", "J", 1000),
            ("kg", "g", 1000),
            ("L", "mL", 1000),
            ("hours", "minutes", 60),
            ("feet", "inches", 12),
            ("kW", "W", 1000),
            ("m^2", "cm^2", 10_000),
            ("dollars", "cents", 100),
            ("minutes", "seconds", 60),
        ]
    )
    value, right = draw.randrange(2, 90), draw.random() < 0.5
    wrong = value * factor * draw.choice([10, 2, 100])
    return Case(
        "number",
        f"{value} {large}",
        box(f"{value * factor if right else wrong} {small}"),
        right=right,
    )


@class_of("percent")
def _(draw: Draw) -> Case:
    value = draw.randrange(2, 99)
    gold, spelt, right = draw.choice(
        [
            (f"{value}", rf"{value}\%", True),
            (f"{value / 100}", rf"{value}\%", True),
            (rf"{value}\%", f"{value / 100}", True),
            (rf"{value}\%", f"{value} percent", True),
            (f"{value / 100}", rf"{value / 100}\%", False),
            (rf"{value}\%", rf"{value / 100}\%", False),
            (f"{value}", rf"{value / 100}\%", False),
        ]
    )
    return Case("number", gold, box(spelt), right)


SMALL = re.findall(
    r"\S+",
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen",
)
TENS = re.findall(r"\S+", "_ _ twenty thirty forty fifty sixty seventy eighty ninety")


def spelled(value: int) -> str:
    """Write a number below a billion in words."""
    if value < 20:
        return SMALL[value]
    if value < 100:
        return TENS[value // 10] + (f"-{SMALL[value % 10]}" if value % 10 else "")
    for size, name in ((10**6, "million"), (1000, "thousand"), (100, "hundred")):
        if value >= size:
            rest = value % size
            return f"{spelled(value // size)} {name}" + (
                f" {'and ' * (rest < 100)}{spelled(rest)}" if rest else ""
            )
    raise ValueError(value)


@class_of("numbers in words")
def _(draw: Draw) -> Case:
    value = draw.choice(
        [draw.randrange(21), draw.randrange(100), draw.randrange(10_000), draw.randrange(10**7)]
    )
    text = spelled(value)
    form = draw.choice(["{}", "{} dollars", "{} eggs"]).format(
        text if draw.random() < 0.8 else text.replace("-", " ")
    )
    sign = draw.random() < 0.1
    kind: Kind = draw.choice(["number", "number", "short"])
    gold = -value if sign else value
    if kind == "short":
        form = text
    response = (
        f"The answer is {'negative ' * sign}{form}."
        if draw.random() < 0.5
        else box("minus " * sign + form)
    )
    return Case(kind, str(gold), response, right=True)


@class_of("numbers in words: others")
def _(draw: Draw) -> Case:
    value = draw.randrange(2, 1000)
    text = spelled(value)
    other = draw.choice(
        [
            spelled(value + draw.randrange(1, 20)),
            f"{text} hundred thousand",
            f"minus {text}",
            f"half of {text}",
            f"{text} and a half",
            f"{text} dozen",
            f"{text} squared",
            f"{text} or {spelled(value + 1)}",
            f"not {text}",
            f"{text} hundredths",
            f"{text} point five",
        ]
    )
    return Case(draw.choice(["number", "short"]), str(value), box(other), right=False)


@class_of("fractions in words")
def _(draw: Draw) -> Case:
    name, bottom = draw.choice(
        [
            ("third", 3),
            ("quarter", 4),
            ("fifth", 5),
            ("eighth", 8),
            ("tenth", 10),
            ("hundredth", 100),
            ("thousandth", 1000),
        ]
    )
    top = draw.choice([each for each in (1, 2, 3, 7) if each < bottom])
    whole = draw.randrange(3, 40)
    gold, text = draw.choice(
        [
            (Fraction(top, bottom), f"{spelled(top)} {name}{'s' * (top > 1)}"),
            (Fraction(1, 2), "one half"),
            (Fraction(2 * whole + 1, 2), f"{whole} and a half"),
            (Fraction(2 * whole + 1, 2), f"{spelled(whole)} and a half"),
            (Fraction(3, 4), "three quarters"),
            (Fraction(12 * whole), f"{whole} dozen"),
        ]
    )
    return Case("number", str(gold), box(text), right=True)


@class_of("ordinals")
def _(draw: Draw) -> Case:
    value = draw.randrange(4, 20)
    right = draw.random() < 0.6
    shown = value if right else value + 1
    form = draw.choice(
        [
            "{}^{{th}}",
            r"{}^{{\text{{th}}}}",
            r"{}^\text{{th}}",
            r"{}\text{{th}}",
            "{}th",
            r"{}^{{\mathrm{{th}}}}",
        ]
    )
    return Case("math", str(value), box(form.format(shown)), right)


# --- mathematics


@class_of("real odd roots")
def _(draw: Draw) -> Case:
    base, degree = draw.randrange(2, 9), draw.choice([3, 5])
    gold = -base
    right = draw.random() < 0.6
    inside = gold**degree
    form = draw.choice(
        [
            rf"\sqrt[{degree}]{{{inside}}}",
            rf"-\sqrt[{degree}]{{{-inside}}}",
            rf"({inside})^{{1/{degree}}}",
            rf"({inside})^{{\frac{{1}}{{{degree}}}}}",
            rf"\frac{{\sqrt[{degree}]{{{inside * 2**degree}}}}}{{2}}",
            rf"1+\sqrt[{degree}]{{{inside}}}-1",
        ]
    )
    return Case("math", str(gold if right else -gold), box(form), right)


@class_of("nested real roots")
def _(draw: Draw) -> Case:
    n = draw.randrange(1, 6)
    # t = cbrt(q + s) + cbrt(q - s) with t^3 + 3 p t = 2 q, s^2 = q^2 + p^3
    p = draw.randrange(1, 8)
    q2 = n**3 + 3 * p * n
    square = Fraction(q2 * q2, 4) + p**3
    half = rf"\frac{{{q2}}}{{2}}"
    root = rf"\sqrt{{\frac{{{square.numerator}}}{{{square.denominator}}}}}"
    right = draw.random() < 0.6
    text = rf"\sqrt[3]{{{half}+{root}}}+\sqrt[3]{{{half}-{root}}}"
    return Case("math", str(n if right else n + 1), box(text), right)


@class_of("degrees in functions")
def _(draw: Draw) -> Case:
    name, angle, value = draw.choice(
        [
            ("sin", 30, r"\frac{1}{2}"),
            ("cos", 60, r"\frac12"),
            ("tan", 45, "1"),
            ("sin", 60, r"\frac{\sqrt{3}}{2}"),
            ("cos", 45, r"\frac{\sqrt2}{2}"),
            ("tan", 60, r"\sqrt{3}"),
            ("sin", 150, "0.5"),
            ("cos", 120, r"-\frac{1}{2}"),
            ("sin", 90, "1"),
            ("cos", 180, "-1"),
        ]
    )
    right = draw.random() < 0.6
    form = draw.choice(
        [
            r"\{} {}^\circ",
            r"\{} {}^{{\circ}}",
            r"\{}({}^\circ)",
            r"\{}\left({}^{{\circ}}\right)",
            r"\{}{{{}^\circ}}",
        ]
    )
    return Case("math", value, box(form.format(name, angle if right else angle + 7)), right)


def matrix(rows: list[list[int]], style: str) -> str:
    body = r"\\".join("&".join(map(str, row)) for row in rows)
    if style == "array":
        return rf"\left[\begin{{array}}{{{'c' * len(rows[0])}}}{body}\end{{array}}\right]"
    if style == "round array":
        return rf"\left(\begin{{array}}{{{'r' * len(rows[0])}}}{body}\end{{array}}\right)"
    if style == "brackets":
        return rf"\left[\begin{{matrix}}{body}\end{{matrix}}\right]"
    return rf"\begin{{{style}}}{body}\end{{{style}}}"


@class_of("matrices")
def _(draw: Draw) -> Case:
    rows = [
        [draw.randrange(-9, 10) for _ in range(draw.choice([2]))]
        for _ in range(draw.choice([1, 2, 3]))
    ]
    gold = matrix(rows, draw.choice(["pmatrix", "bmatrix"]))
    right = draw.random() < 0.6
    other = [list(row) for row in rows]
    if not right:
        other[0][0] += 1
    return Case(
        "math",
        gold,
        box(matrix(other, draw.choice(["array", "round array", "brackets", "pmatrix", "bmatrix"]))),
        right,
    )


@class_of("scalar times matrix")
def _(draw: Draw) -> Case:
    factor = draw.choice([2, 3, -1, -2, 5])
    width = draw.choice([1, 2])
    rows = [[draw.randrange(-5, 6) for _ in range(width)] for _ in range(2)]
    right = draw.random() < 0.6
    product = [[factor * each + (not right) for each in row] for row in rows]
    spelt = "-" if factor == -1 else str(factor)
    joint = draw.choice(["", r"\cdot ", r"\,"]) if factor != -1 else ""
    style = draw.choice(["pmatrix", "bmatrix", "array", "round array"])
    half = draw.random() < 0.3
    if half:
        doubled = [[2 * each for each in row] for row in product]
        return Case(
            "math",
            matrix(product, "pmatrix"),
            box(rf"\frac{{1}}{{2}}{matrix(doubled, style)}"),
            right=True,
        )
    return Case(
        "math", matrix(product, "pmatrix"), box(f"{spelt}{joint}{matrix(rows, style)}"), right
    )


@class_of("repeating decimals")
def _(draw: Draw) -> Case:
    fixed = draw.choice(["", "", str(draw.randrange(1, 10)), f"{draw.randrange(10, 100)}"])
    period = str(draw.randrange(1, 10)) if draw.random() < 0.5 else f"{draw.randrange(10, 99)}"
    whole = draw.choice([0, 0, 3])
    value = (
        whole
        + Fraction(int(fixed or 0), 10 ** len(fixed))
        + Fraction(int(period), (10 ** len(period) - 1) * 10 ** len(fixed))
    )
    dots = "".join(rf"\dot{{{digit}}}" for digit in period)
    form = draw.choice([rf"\overline{{{period}}}", f"({period})", dots, rf"\bar{{{period}}}"])
    right = draw.random() < 0.6
    gold = value if right else value + Fraction(1, 90)
    return Case(
        draw.choice(["math", "number"]),
        rf"\frac{{{gold.numerator}}}{{{gold.denominator}}}",
        box(f"{whole}.{fixed}{form}"),
        right,
    )


@class_of("combinations")
def _(draw: Draw) -> Case:
    n = draw.randrange(5, 12)
    k = draw.randrange(2, n - 1)
    form = draw.choice(
        [
            "C({n},{k})",
            r"\binom{{{n}}}{{{k}}}",
            "{{}}_{{{n}}}C_{{{k}}}",
            "_{n}C_{k}" if n < 10 and k < 10 else "C({n}, {k})",
            r"\dbinom{{{n}}}{{{k}}}",
            r"{{{n} \choose {k}}}",
        ]
    )
    right = draw.random() < 0.6
    return Case("math", str(comb(n, k) + (not right)), box(form.format(n=n, k=k)), right)


@class_of("complements")
def _(draw: Draw) -> Case:
    point = draw.randrange(-9, 10)
    gold = rf"(-\infty,{point})\cup({point},\infty)"
    right = draw.random() < 0.6
    shown = point if right else point + 1
    form = draw.choice(
        [
            r"x\ne{}",
            r"x \neq {}",
            r"\mathbb{{R}}\setminus\{{{}\}}",
            r"\mathbb R - \{{{}\}}",
            r"x \in \mathbb{{R}}, x \ne {}",
            r"\text{{all real numbers except }}{}",
            r"\{{x \mid x \neq {}\}}",
        ]
    )
    return Case("math", gold, box(form.format(shown)), right)


@class_of("inequalities moved over")
def _(draw: Draw) -> Case:
    bound, slope, shift = draw.randrange(-9, 10), draw.randrange(2, 6), draw.randrange(1, 9)
    sign = draw.choice([">", "<", r"\ge", r"\le"])
    turned = {">": "<", "<": ">", r"\ge": r"\le", r"\le": r"\ge"}
    right = draw.random() < 0.6
    end = bound if right else bound + draw.choice([-1, 1])
    moved = f"x{-end:+d}" if end else "x"
    form = draw.choice(
        [
            f"{moved} {sign} 0",
            f"{slope}x {sign} {slope * end}",
            f"-x {turned[sign]} {-end}",
            f"{slope}x+{shift} {sign} {slope * end + shift}",
            f"{end} {turned[sign]} x",
            f"0 {turned[sign]} {moved}",
            f"x-{shift} {sign} {end - shift}",
            rf"\frac{{1}}{{2}}x {sign} \frac{{{end}}}{{2}}",
        ]
    )
    interval = {
        ">": rf"({bound},\infty)",
        r"\ge": rf"[{bound},\infty)",
        "<": rf"(-\infty,{bound})",
        r"\le": rf"(-\infty,{bound}]",
    }[sign]
    return Case("math", draw.choice([f"x {sign} {bound}", interval]), box(form), right)


@class_of("double inequalities")
def _(draw: Draw) -> Case:
    low = draw.randrange(-9, 5)
    high = low + draw.randrange(1, 9)
    slope, shift = draw.randrange(2, 5), draw.randrange(1, 9)
    right = draw.random() < 0.6
    end = high if right else high + 1
    form = draw.choice(
        [
            f"{low}<x<{end}",
            f"{slope * low} < {slope}x < {slope * end}",
            f"{low + shift} < x+{shift} < {end + shift}",
            f"{end}>x>{low}",
            f"{slope * low - shift} < {slope}x - {shift} < {slope * end - shift}",
            rf"x>{low} \text{{ and }} x<{end}" if False else rf"x \in ({low},{end})",
        ]
    )
    return Case("math", f"({low},{high})", box(form), right)


@class_of("one-element sets")
def _(draw: Draw) -> Case:
    value = draw.choice(
        [
            str(draw.randrange(-9, 99)),
            rf"\frac{{{draw.randrange(1, 9)}}}{{7}}",
            rf"\sqrt{{{draw.choice([2, 3, 5])}}}",
        ]
    )
    right = draw.random() < 0.6
    shown = value if right else draw.choice([f"{value}, 100", f"{value}+1"])
    one, other = value, rf"\{{{shown}\}}"
    if right and draw.random() < 0.5:
        one, other = other, one
    return Case("math", one, box(other), right)


VARIABLES = "xyabt"


@class_of("logarithms and roots")
def _(draw: Draw) -> Case:
    x, y = draw.sample(VARIABLES, 2)
    n = draw.randrange(2, 6)
    one, other, right = draw.choice(
        [
            (rf"{n}\ln {x}", rf"\ln {x}^{n}", True),
            (rf"\sqrt{{{x}}}\sqrt{{{y}}}", rf"\sqrt{{{x}{y}}}", True),
            (rf"\ln({x}{y})", rf"\ln {x}+\ln {y}", True),
            (rf"\frac{{\sqrt{{{x}}}}}{{\sqrt{{{y}}}}}", rf"\sqrt{{\frac{{{x}}}{{{y}}}}}", True),
            (rf"\ln\frac{{{x}}}{{{y}}}", rf"\ln {x} - \ln {y}", True),
            (rf"e^{{{n}\ln {x}}}", f"{x}^{n}", True),
            (rf"\log_{n} {x}", rf"\frac{{\ln {x}}}{{\ln {n}}}", True),
            (rf"{x}^{{1/2}}", rf"\sqrt{{{x}}}", True),
            (rf"({x}^{n})^{{\frac{{1}}{{2}}}}", rf"{x}^{{\frac{{{n}}}{{2}}}}", n != 2),
            (rf"\ln({x}+{y})", rf"\ln {x} \ln {y}", False),
            (rf"{n}\ln {x}", rf"(\ln {x})^{n}", False),
            (rf"\sqrt{{{x}+{y}}}", rf"\sqrt{{{x}}}+\sqrt{{{y}}}", False),
            (rf"\ln {x}^{n}", rf"\ln {n}{x}", False),
            (x, rf"\sqrt{{{x}^2}}", False),
            (rf"\log {x}", rf"\ln {x}", False),
            (rf"\sqrt[3]{{{x}}}", rf"{x}^{{1/3}}", True),
        ]
    )
    return Case("math", one, box(other), right)


@class_of("polynomials and fractions")
def _(draw: Draw) -> Case:
    x = draw.choice(VARIABLES)
    a, b, c, d = (draw.randrange(1, 9) for _ in range(4))
    right = draw.random() < 0.5
    off = 0 if right else draw.choice([-1, 1])
    one, other = draw.choice(
        [
            (f"({a}{x}+{b})({c}{x}-{d})", f"{a * c}{x}^2{b * c - a * d:+d}{x}{-b * d + off:+d}"),
            (rf"\frac{{{x}+{a}}}{{{b}}}", rf"\frac{{{x}}}{{{b}}}+\frac{{{a + off}}}{{{b}}}"),
            (rf"\frac{{1}}{{{x}+{a}}}", rf"({x}+{a + off})^{{-1}}"),
            (rf"({x}+{a})^3", f"{x}^3+{3 * a}{x}^2+{3 * a * a}{x}+{a**3 + off}"),
            (rf"\frac{{{x}^2-{a * a}}}{{{x}-{a}}}", f"{x}+{a + off}"),
            (rf"{a}\sqrt{{{b * b * c}}}", rf"{a * b + off}\sqrt{{{c}}}"),
        ]
    )
    return Case("math", one, box(other), right)


@class_of("products that vanish at few points")
def _(draw: Draw) -> Case:
    x = draw.choice(VARIABLES)
    points = draw.sample(
        ["0.618", "1.4427", "0.739", "1", "2", "0.5", "3", "0.1", "1.7321", "2.236", "2.6854", "0"],
        draw.randrange(2, 6),
    )
    product = "".join(f"({x}{draw.choice('+-')}{point})" for point in points)
    gold = draw.choice([x, f"{x}^2+1", rf"\frac{{{x}}}{{2}}"])
    return Case("math", gold, box(f"{gold}+{product}"), right=False)


@class_of("near one, near zero")
def _(draw: Draw) -> Case:
    n = draw.randrange(30, 400)
    gold, other = draw.choice(
        [
            ("1", rf"\tanh({n})"),
            ("0", rf"e^{{-{n}}}"),
            ("1", rf"1-10^{{-{n}}}"),
            ("1", rf"1+2^{{-{n}}}"),
            ("0", rf"\pi^{{-{n}}}"),
            ("x", rf"x+10^{{-{n}}}"),
        ]
    )
    return Case("math", gold, box(other), right=False)


@class_of("large powers: equal or not scored")
def _(draw: Draw) -> Case:
    base, power = draw.choice([2, 3, 5, 10]), draw.randrange(50, 3000)
    return Case(
        "math",
        f"{base}^{{{2 * power}}}",
        box(draw.choice([f"{base**2}^{{{power}}}", f"({base}^{{{power}}})^2"])),
        right=True,
    )


@class_of("large powers: others")
def _(draw: Draw) -> Case:
    base, power = draw.choice([2, 3, 5, 10]), draw.randrange(50, 30_000)
    return Case(
        "math",
        f"{base}^{{{2 * power}}}",
        box(
            draw.choice(
                [
                    f"{base**2}^{{{power + 1}}}",
                    f"{base}^{{{2 * power}}}+1",
                    f"{base + 1}^{{{2 * power}}}",
                ]
            )
        ),
        right=False,
    )


# --- short answers and options


@class_of("symbols that carry meaning")
def _(draw: Draw) -> Case:
    one, other = draw.sample(["C++", "C#", "C", "C-", "F#", "F"], 2)
    pairs = [
        (one, other),
        ("A+", "A-"),
        ("A+", "A"),
        ("B-", "B"),
        ("Na+", "Na"),
        ("Cl-", "Cl"),
        ("Ca2+", "Ca"),
        ("$5", "5 %"),
        ("$20", "20%"),
        ("5%", "$5"),
        ("Fe3+", "Fe2+"),
        ("100%", "$100"),
    ]
    gold, said = draw.choice(pairs)
    return Case(
        "short", gold, draw.choice([box(said), f"The answer is {said}.", said]), right=False
    )


@class_of("symbols: the same")
def _(draw: Draw) -> Case:
    gold, said = draw.choice(
        [
            ("C++", "c++"),
            ("C#", "C#"),
            ("A+", "A+"),
            ("Na+", "Na+"),
            ("Ca2+", r"\text{Ca}^{2+}"),
            ("$5", "5 dollars"),
            ("50%", "50 percent"),
            ("$200", "$200.00"),
            ("Simon & Garfunkel", "Simon and Garfunkel"),
            ("Marks & Spencer", "Marks and Spencer"),
            ("B-", "B-"),
            ("20 %", "20%"),
        ]
    )
    return Case(
        "short",
        gold,
        box(said) if "text" in said else draw.choice([box(said), f"The answer is {said}.", said]),
        right=True,
    )


@class_of("initials")
def _(draw: Draw) -> Case:
    first, second = draw.sample("BCDFGHJKLMNPRSTVW", 2)
    last = draw.choice(["Rowling", "Lewis", "Abrams", "Milne", "Wells", "Jackson"])
    right = draw.random() < 0.6
    other = (
        second
        if right
        else draw.choice([each for each in "BCDFGHJKLM" if each not in (first, second)])
    )
    spell = ["{}. {}. " + last, "{}.{}. " + last, "{}{} " + last, "{} {} " + last]
    if draw.random() < 0.3:
        spell = ["{}.{}.", "{}{}", "{}. {}."]
    one, two = draw.sample(spell, 2)
    said = two.format(first, other)
    return Case(
        "short",
        one.format(first, second),
        draw.choice([box(said), f"The answer is {said}", said]),
        right,
    )


MONTHS = re.findall(
    r"\S+", "January February March April May June July August September October November December"
)


@class_of("dates")
def _(draw: Draw) -> Case:
    day, month, year = draw.randrange(1, 29), draw.randrange(1, 13), draw.randrange(1500, 2025)
    right = draw.random() < 0.6
    said_day = day if right else day + 1
    ending = (
        "th"
        if said_day not in (1, 2, 3, 21, 22, 23, 31)
        else {1: "st", 2: "nd", 3: "rd"}[said_day % 10]
    )
    name = MONTHS[month - 1]
    forms = [
        "{m} {d}, {y}",
        "{d} {m} {y}",
        "{d}{e} {m} {y}",
        "{m} {d}{e}, {y}",
        "the {d}{e} of {m}, {y}",
        "{y}-{n:02d}-{d:02d}",
        "{a} {d}, {y}",
        "{d} {m}, {y}",
    ]
    one, two = draw.sample(forms[:2] + forms[3:5], 1)[0], draw.choice(forms)
    gold = one.format(
        m=name,
        d=day,
        e="th" if day not in (1, 2, 3, 21, 22, 23) else {1: "st", 2: "nd", 3: "rd"}[day % 10],
        y=year,
    )
    said = two.format(
        m=name, a=name[:3] if name != "May" else name, d=said_day, e=ending, y=year, n=month
    )
    return Case("short", gold, draw.choice([box(said), f"The answer is {said}.", said]), right)


@class_of("numbers within names")
def _(draw: Draw) -> Case:
    value = draw.randrange(2, 60)
    thing = draw.choice(["Monkeys", "Angry Men", "Steps", "Days Later", "Musketeers", "Dalmatians"])
    right = draw.random() < 0.6
    said = spelled(value if right else value + 1).title()
    return Case("short", f"{value} {thing}", box(f"{said} {thing}"), right)


@class_of("options")
def _(draw: Draw) -> Case:
    gold, other = draw.sample("ABCD", 2)
    right = draw.random() < 0.6
    said = gold if right else other
    form = draw.choice(
        [
            "{}",
            "({})",
            "{}.",
            "{})",
            "**{}**",
            "Option {}",
            "The answer is {}.",
            "The correct option is {}.",
            "The answer is ({}).",
            "Answer: {}",
            r"\boxed{{{}}}",
            r"\boxed{{\text{{{}}}}}",
            r"\boxed{{({})}}",
            "{}. It is the only one that fits.",
            "So the correct answer is **{}**.",
            "Option {} is correct.",
            "{} is the correct answer.",
            "The correct choice is {}.",
            "I choose {}.",
            "I would choose option {}.",
            "My answer is {}.",
            "The best option is ({}).",
            "The answer is option {}.",
            "Therefore, option {} is the correct answer.",
            "Choice {} is correct.",
            "It is {}.",
            "The answer is {} because the others fail.",
            "The right choice is: {}",
            "I'd go with {}.",
            "Choose {}.",
        ]
    )
    return Case("choice", gold, form.format(said), right)


@class_of("options: none chosen")
def _(draw: Draw) -> Case:
    gold, other = draw.sample("ABCD", 2)
    form = draw.choice(
        [
            "{} or {o}",
            "The answer is {} or {o}.",
            "Option {} is not correct.",
            "Option {} is wrong.",
            "I doubt that option {} is correct.",
            "If option {} is correct, then {o} is too.",
            "{} is not the correct answer.",
            "Neither {} nor {o}.",
            "I would not choose {}.",
            "Some would choose {}.",
            "It is not {}.",
            "All but {}.",
            "It isn't true that option {} is correct.",
            "I don't choose {}.",
            "Is option {} the correct answer?",
            "Vitamin {}",
        ]
    )
    return Case("choice", gold, form.format(gold, o=other), right=False)
