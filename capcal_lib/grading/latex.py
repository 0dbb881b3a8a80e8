"""One spelling for what LaTeX and Unicode spell in many ways, and the limits on what is read at
all.

Everything here works on text of at most ``LONGEST`` characters, so no pattern can run long.
"""

import itertools
import re

LONGEST = 500  # characters of an extracted answer; the longest answer of MATH has 159
DEEPEST = 10  # nested brackets
MOST_DIGITS = 100  # of one number
LARGEST_POWER = 10_000  # exponent of a number
LARGEST_FACTORIAL = 3_000  # what a factorial or binomial may be taken of
MOST_POWER = 10_000  # product of all exponents of numbers and brackets in one expression
LARGEST_NESTED = 100  # number in an exponent that has an exponent
MOST_POWERS_NESTED = 3

_COMMANDS = (
    "times cdot cdot div pm mp pi theta infty sqrt lfloor rfloor lceil rceil "
    "setminus le ge neq approx in cup emptyset"
)
_CHARACTERS = str.maketrans(
    {
        **dict.fromkeys("−–‒﹣－", "-"),
        **dict.fromkeys("\u00a0\u2007\u2009\u200a\u202f\t\r\n", " "),
        **dict.fromkeys("⁄∕", "/"),
        **dict.fromkeys("“”‘’", "'"),
        **{chr(0xFF10 + digit): str(digit) for digit in range(10)},
        **{mark: f"^{power} " for power, mark in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")},
        **{mark: rf"\frac{{{n}}}{{{d}}}" for mark, n, d in ("½12", "⅓13", "⅔23", "¼14", "¾34")},
        **{
            mark: rf"\{name} "
            for mark, name in zip("×·⋅÷±∓πθ∞√⌊⌋⌈⌉∖≤≥≠≈∈∪∅", _COMMANDS.split(), strict=True)
        },
        "°": r"^\circ ",
        "ℝ": r"\mathbb{R}",
        "％": "%",
    }
)

_END = r"(?![A-Za-z])"
_DEGREE = rf"(?:\^\s*(?:\\circ|\{{\s*\\circ\s*\}})|\\degree){_END}"
_ANGLE = re.compile(rf"(\d+(?:\.\d+)?)\s*{_DEGREE}")
_OF_AN_ANGLE = re.compile(r"\\(?:sin|cos|tan|cot|sec|csc)")
_SPELLINGS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"(?<=\d)(?:\{,\}\s?|,\s?\\!\s?)(?=\d{3})", ""),  # thousands, as in 10{,}080 and 10,\!080
        (r"\\!", ""),
        (r"\\\\\s?\[-?[\d.]+\s?[a-z]{2}\]", r"\\\\"),  # \\[2pt]
        (r"\bUS\s?\$(?=\s?\d)|^\s*\$(?=\s?[\d.][^$]*$)", r"\\$"),  # a dollar, not a delimiter
        (rf"\\(?:left|right)\s*\.|\\(?:left|right|[bB]igg?[lrm]?){_END}", ""),
        (r"(?<!\\)((?:\\\\)*)(?:\\[()\[\]]|\$)", r"\1"),  # mathematics delimiters; \$ stays
        (rf"(?<!\\)\\[,;:> ]|~|\\(?:q?quad|thinspace|enspace){_END}", " "),
        (rf"\\(?:displaystyle|textstyle|limits|rm|bf){_END}", ""),
        (rf"\\[dtc]frac{_END}", r"\\frac"),
        (r"\\[dt]?binom\s*(\d)\s*(\d)", r"\\binom{\1}{\2}"),
        (rf"\\[dt]binom{_END}", r"\\binom"),
        *(
            (pattern, rf"\\{command}{{\1}}{{\2}}")
            for name, command in (("over", "frac"), ("choose", "binom"))
            for pattern in (
                rf"\{{([^{{}}\\]+)\\{name}{_END}([^{{}}\\]+)\}}",
                rf"^([^{{}}\\]+)\\{name}{_END}([^{{}}\\]+)$",
            )
        ),
        (rf"\\(?:[lr]?vert|mid){_END}", "|"),
        (r"\{:\}", ":"),
        (rf"\\(?:lor|vee){_END}", r"\\text{ or }"),
        (r"\\begin\s*\{array\}\s*\{[clr|\s]*\}", r"\\begin{matrix}"),
        (r"\\end\s*\{array\}", r"\\end{matrix}"),
        (r"\\mathbb\s*\{?\s*R\s*\}?", r"(-\\infty,\\infty)"),
        (r"\\log\s*_\s*(?:(\d+)\s+|(\d|[A-Za-z]))", r"\\log_{\1\2}"),
        (
            r"\\(?:text(?:normal|rm|bf|it|sf|tt)?|mbox|hbox|mathrm|mathbf|mathit|mathsf|"
            r"operatorname|boldsymbol)"
            r"\*?\s*(?=\{)",
            r"\\text",
        ),
        (r"\\text\{\s*\}", " "),
        (r"\\text\{\s*(\\[$%])\s*\}", r"\1"),
        (r"_\s*\{?\s*\\text\{\s*(\d+)\s*\}\s*\}?", r"_{\1}"),
        (r"(?<![\d}\s])\\text\{\s*([A-Za-z])\s*\}", r" \1 "),
        (rf"{_DEGREE}\s*(?:C|\\text\{{\s*C\s*\}}){_END}", r"\\text{ celsius}"),
        (rf"{_DEGREE}\s*(?:F|\\text\{{\s*F\s*\}}){_END}", r"\\text{ fahrenheit}"),
        (_DEGREE, r"\\text{ degrees}"),
        (r"\\text\{([^{}]*)\\text\{([^{}]*)\}([^{}]*)\}", r"\\text{\1\2\3}"),
        (  # 12^{th} and 12\text{th}
            r"(?<=\d)\s*\^?\s*(?:\{\s*\\text\{\s*(st|nd|rd|th)\s*\}\s*\}|(?:\\text\s*)?\{\s*(st|"
            r"nd|rd|th)\s*\})",
            r"\1\2",
        ),
        (
            r"(\.\d*)\\(?:dot|bar)\s*\{?(\d+)\}?(?:(\d*)\\dot\s*\{?(\d)\}?)?",
            r"\1\\overline{\2\3\4}",
        ),
        (r"(\.\d*)\((\d+)\)", r"\1\\overline{\2}"),
        (r"\\overline\s*(\d)", r"\\overline{\1}"),
        (r"(?<![A-Za-z\\])C\s?\(\s*(\d+)\s*,\s*(\d+)\s*\)", r"\\binom{\1}{\2}"),
        (
            r"(?:(?<![^\s=(])|\{\})\s*[_^]\s*\{?(\d+)\}?\s*(?:C|\\text\{C\})\s*_\s*\{?(\d+)\}?",
            r"\\binom{\1}{\2}",
        ),
        (r"(?<![A-Za-z\\])C\s*_\s*\{?(\d+)\}?\s*\^\s*\{?(\d+)\}?", r"\\binom{\1}{\2}"),
        (r"(?<![A-Za-z\\])C\s*\^\s*\{?(\d+)\}?\s*_\s*\{?(\d+)\}?", r"\\binom{\2}{\1}"),
        (
            r"(?:\\text\{)?\s*(?:all |any )?real(?: number)?s?,? (?:except|excluding|other "
            r"than)(?: for)?\s*\}?",
            r"(-\\infty,\\infty)\\setminus ",
        ),
        (r"(?<!\\)%", r"\\%"),
        (rf"\\leq(?:slant)?{_END}", r"\\le"),
        (rf"\\geq(?:slant)?{_END}", r"\\ge"),
        (r"<=", r"\\le "),
        (r">=", r"\\ge "),
        (rf"\\ne{_END}", r"\\neq"),
        (rf"\\lbrace{_END}", r"\\{"),
        (rf"\\rbrace{_END}", r"\\}"),
        (rf"\\varnothing{_END}|\\\{{\s*\\\}}", r"\\emptyset"),
        (rf"\\(?:smallsetminus|backslash){_END}|(?<=[)\]}}])\s?-\s?(?=\\\{{)", r"\\setminus "),
        (r"\*\*\s{0,3}\(([^()]*)\)", r"^{(\1)}"),  # x**2 is a power
        (r"\*\*\s{0,3}(-?\s?(?:\d+(?:\.\d+)?|[A-Za-z]))", r"^{\1}"),
        (r"\*\*", "^"),
        (rf"\\(?:cdot|times|ast){_END}|\*", r"\\cdot "),
        (rf"(?<![A-Za-z\\])(sqrt|pi|infinity|sin|cos|tan|cot|sec|csc|log|ln|theta){_END}", r"\\\1"),
        (rf"\\infinity{_END}", r"\\infty"),
        (rf"\+\s*\\infty{_END}", r"\\infty"),
        (r"\\sqrt\s*\(([^()]*)\)", r"\\sqrt{\1}"),
        (r"\\sqrt\s*(\d+|[A-Za-z])", r"\\sqrt{\1}"),
        (r"\\frac\s*(\d)\s*(\d)", r"\\frac{\1}{\2}"),
        (r"\\frac\s*(\d)\s*(?=\{)", r"\\frac{\1}"),
        (r"(\\frac\s*\{[^{}]*\})\s*(\d|[A-Za-z])", r"\1{\2}"),
        (r"\s+", " "),
    )
)
# Every spelling above but the last has one of these in it.
_MARKS = re.compile(
    r"[\\$~%<>*_^{(]|real|"
    r"(?<![A-Za-z])(?:sqrt|pi|infinity|sin|cos|tan|cot|sec|csc|log|ln|theta)(?![A-Za-z])"
)


def clean(text: str) -> str:
    r"""Spell an expression in one way: fractions, spacing, delimiters, units as ``\text``, degrees.

    >>> clean(r"$\dfrac43\,\mathrm{cm}$"), clean(r"11,\! 111"), clean("−½")
    ('\\frac{4}{3} \\text{cm}', '11111', '-\\frac{1}{2}')
    """
    text = text.translate(_CHARACTERS)
    if _OF_AN_ANGLE.search(text):
        text = _ANGLE.sub(r"\\frac{\1\\pi}{180}", text)
    spellings = _SPELLINGS if _MARKS.search(text) else _SPELLINGS[-1:]
    for pattern, replacement in spellings:
        text = pattern.sub(replacement, text)
    return text.strip().rstrip(".,;").strip()


_TOKEN = re.compile(
    r"\\begin\s*\{[a-z]+\*?\}|\\end\s*\{[a-z]+\*?\}|\\[A-Za-z]+|\\.|\d+(?:\.\d+)?|\.\d+|[^\s]"
)
_OPEN = {"(", "[", "{", r"\{", r"\langle", r"\lfloor", r"\lceil"}
_CLOSE = {")", "]", "}", r"\}", r"\rangle", r"\rfloor", r"\rceil"}


def tokens(text: str) -> list[str]:
    r"""Split cleaned LaTeX into commands, numbers and single characters.

    >>> tokens(r"\frac{12}{x}")
    ['\\frac', '{', '12', '}', '{', 'x', '}']
    """
    return _TOKEN.findall(text)


def depths(parts: list[str]) -> list[int] | None:
    """Return how many brackets are open after each token; None where they do not balance.

    A round bracket may close a square one, as in a half-open interval.
    """
    level = 0
    levels = []
    for part in parts:
        if part in _OPEN or part.startswith(r"\begin"):
            level += 1
        elif part in _CLOSE or part.startswith(r"\end"):
            level -= 1
        if level < 0:
            return None
        levels.append(level)
    return levels if level == 0 else None


_SMALL_TOWER = re.compile(r"^[^^]*\^\{?-[^^]*$")  # a tower of numbers, but 10^{10^{-6}}
_DIGIT_RUN = re.compile(rf"\d{{{MOST_DIGITS + 1}}}")


def too_large(text: str) -> bool:
    r"""Say whether an expression is too long or stands for something too large to evaluate.

    >>> too_large("2^{2^{2^{49}}}"), too_large("10000000!"), too_large(r"e^{x^2} + 2^{10}")
    (True, True, False)
    """
    if len(text) > LONGEST or _DIGIT_RUN.search(text.replace(",", "").replace(" ", "")):
        return True
    parts = tokens(clean(text))
    if max(depths(parts) or [0]) > DEEPEST:
        return True
    total = 1.0
    for index, part in enumerate(parts):
        if part == "!":
            operand = parts[index - 1] if index else ""
            if operand in ("!", ")", "}") or (
                operand[:1].isdecimal() and float(operand) > LARGEST_FACTORIAL
            ):
                return True
        elif part == r"\binom":
            if any(
                later[0].isdecimal() and float(later) > LARGEST_FACTORIAL
                for later in parts[index + 1 : index + 7]
            ):
                return True
        elif part in ("^", r"\sp"):
            exponent = _operand(parts, index + 1)
            numbers = [float(piece) for piece in exponent if piece[0].isdecimal()]
            if "^" in exponent and (
                exponent.count("^") >= MOST_POWERS_NESTED
                or any(number > LARGEST_NESTED for number in numbers)
                or not (any(map(str.isalpha, exponent)) or _SMALL_TOWER.search("".join(exponent)))
            ):
                return True
            if numbers and not (index and parts[index - 1].isalpha()):
                total *= max(1.0, *numbers)
            if total > MOST_POWER or any(number > LARGEST_POWER for number in numbers):
                return True
    return False


def _operand(parts: list[str], start: int) -> list[str]:
    """Return the tokens of the exponent that begins at ``start``: a group or single token, with its
    own exponents.
    """
    level = 0
    operand = []
    for part, after in itertools.pairwise([*parts[start:], ""]):
        operand.append(part)
        level += (part in _OPEN) - (part in _CLOSE)
        if level <= 0 and part not in ("-", "+", "^") and after != "^":
            break
    return operand
