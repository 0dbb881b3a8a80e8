"""Classes of made answers, right ones in other forms and wrong ones that look right, each drawn
fresh from a seed: the tests ask how many of a class are judged wrong, the benchmark prints them."""

import random
import re
from collections.abc import Callable
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


# --- what both sides name, and what multiplies


@class_of("units: different ones")
def _(draw: Draw) -> Case:
    one, other = draw.sample(UNITS, 2)
    value = draw.randrange(2, 900)
    gold, said = f"{value} {draw.choice(one)}", f"{value} {draw.choice(other)}"
    return Case("number", gold, box(said), right=False)


MULTIPLIERS = [
    ("lakh", 10**5),
    ("crore", 10**7),
    ("Millionen", 10**6),
    ("mil", 10**3),
    ("mil millones", 10**9),
    ("milliards", 10**9),
    ("miliardi", 10**9),
    ("milhões", 10**6),
    ("juta", 10**6),
    ("milyar", 10**9),
    ("миллионов", 10**6),
    ("万", 10**4),
    ("億", 10**8),
    ("억", 10**8),
    ("करोड़", 10**7),
    ("مليون", 10**6),
    ("bn", 10**9),
    ("k", 10**3),
    ("dozen", 12),
]


@class_of("words that multiply")
def _(draw: Draw) -> Case:
    word, size = draw.choice(MULTIPLIERS)
    value, right = draw.randrange(2, 90), draw.random() < 0.5
    said = draw.choice([box(f"{value} {word}"), f"The answer is {value} {word}."])
    return Case("number", str(value * size if right else value), said, right)


@class_of("fractions in words")
def _(draw: Draw) -> Case:
    whole, right = draw.randrange(2, 40), draw.random() < 0.7
    top, bottom, said = draw.choice(
        [
            (2 * whole + 1, 2, f"{spelled(whole)} and a half"),
            (whole, 7, f"{whole} sevenths"),
            (whole, 10, f"{spelled(whole)} tenths"),
            (3 * whole + 2, 3, f"{whole} and two thirds"),
        ]
    )
    return Case("number", f"{top + (not right)}/{bottom}", box(said), right)


@class_of("roots of products")
def _(draw: Draw) -> Case:
    one, two = draw.sample("abcpqxyz", 2)
    number = draw.randrange(2, 9)
    gold, said, right = draw.choice(
        [
            (rf"\sqrt{{{one}{two}}}", rf"\sqrt{{{one}}}\sqrt{{{two}}}", True),
            (rf"\sqrt{{{number**2}{one}}}", rf"{number}\sqrt{{{one}}}", True),
            (rf"\sqrt{{{one}}}/\sqrt{{{two}}}", rf"\sqrt{{{one}/{two}}}", True),
            (rf"\sqrt{{{one}+{two}}}", rf"\sqrt{{{one}}}+\sqrt{{{two}}}", False),
            (one, rf"\sqrt{{{one}^2}}", False),
        ]
    )
    return Case("math", gold, box(said), right)


@class_of("tiny values")
def _(draw: Draw) -> Case:
    number, right = draw.randrange(20, 300), draw.random() < 0.4
    more = number + draw.randrange(1, 4)
    gold, same, other = draw.choice(
        [
            (f"1/{number}!", rf"{number + 1}/{number + 1}!", f"1/{more}!"),
            (f"3^{{-{2 * number}}}", f"9^{{-{number}}}", f"3^{{-{2 * more}}}"),
            (rf"\pi/{number}!", rf"2\pi/(2 \cdot {number}!)", rf"\pi/{more}!"),
        ]
    )
    return Case("math", gold, box(same if right else other), right)


# --- where the answer stands


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
            "In last year's exam the answer was {}.",
            "I don't think the answer is {}.",
        ]
    )
    return Case(kind, gold, f"The answer is {gold}. {remark.format(other)}", right=True)


@class_of("box: corrected")
def _(draw: Draw) -> Case:
    kind, gold, other = answered(draw)
    right = draw.random() < 0.5
    first, last = (other, gold) if right else (gold, other)
    said = draw.choice(
        [
            rf"\boxed{{{first}}} Hmm, I was wrong: \boxed{{{last}}}",
            rf"\boxed{{{first}}} is wrong. It is \boxed{{{last}}}",
            f"The answer is {first}. But that is wrong, it is {last}.",
            f"Answer: {first}\n\nCorrection: {last}",
        ]
    )
    return Case(kind, gold, said, right)


@class_of("answers in tags and JSON")
def _(draw: Draw) -> Case:
    kind, gold, other = answered(draw)
    right = draw.random() < 0.7
    frame = draw.choice(
        [
            "We look at it.\n<answer>{}</answer>",
            "<ANSWER>\n{}\n</ANSWER>",
            '{{"why": "as shown", "answer": "{}"}}',
            '```json\n{{"final_answer": "{}"}}\n```',
            "<answer>The answer is {}.</answer>",
        ]
    )
    return Case(kind, gold, frame.format(gold if right else other), right)
