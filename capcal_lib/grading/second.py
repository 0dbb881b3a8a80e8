r"""A second opinion on every verdict, built on other principles than the first grader and sharing no code with it.

Where the two disagree, one of them is wrong, and a person looks; that is all it is for. It is the more lenient of the
two and fails in other ways:

- it reads the last box, else what follows "answer" in the last line that has it; else the first line for an option, the
  last one for a number, and the only one for the rest, from its last colon or "is" on;
- a number is the only number there is in that, compared in floating point to one part in a billion;
- an option is the only capital letter that stands alone in it, else the option whose words it holds;
- a short answer shares nine tenths of its words with an accepted one (the F1 of SQuAD), or nearly all its letters;
- mathematics is evaluated, by a small parser of its own, in complex floating point at random points.

No text is ever evaluated as code, no integer is computed exactly, and every step is bounded by the length of its text.
"""

import cmath
import difflib
import math
import random
import re
import unicodedata
from collections import Counter
from collections.abc import Callable

from capcal_lib.grading.grader import Verdict
from capcal_lib.questions import Answer

READ = 20_000  # characters at the end of a response
LONGEST = 400  # characters of an answer
DEEPEST = 25  # nested brackets of an expression
POINTS = 5  # random points at which expressions are compared
CLOSE = 1e-9  # relative difference of equal numbers
F1, LETTERS = 0.9, 0.93  # shares of words and letters from which names are alike


def second_opinion(response: str, answer: Answer) -> Verdict:
    r"""Grade a response a second time, independently of :func:`capcal_lib.grading.grade`.

    Returns
    -------
    Verdict
        ``correct``, ``incorrect`` or ``no_answer``, never ``not_scored``.

    Examples
    --------
    >>> second_opinion(r"So \boxed{\frac{2}{4}}", Answer("math", "0.5")).verdict
    'correct'
    >>> second_opinion("Colour me surprised: Marie Currie", Answer("short", "Marie Curie")).verdict
    'correct'
    """
    text = _after_reasoning(response)
    if text is None:
        return Verdict("no_answer", None, "reasoning only")
    found, where = _final(text, answer)
    if not found:
        return Verdict("no_answer", None, where)
    if len(found) > LONGEST:
        return Verdict("incorrect", found[:LONGEST], f"{where}, long")
    alike = {"number": _number, "choice": _choice, "short": _short, "math": _math}[answer.kind]
    equal = alike(found, answer)
    if equal is None:
        return Verdict("no_answer", None, f"{where}, unreadable as {answer.kind}")
    return Verdict("correct" if equal else "incorrect", found, where)


# --- reading


def _after_reasoning(response: str) -> str | None:
    """Take the last piece between marks of channels and closed thoughts; None where the last one is a thought."""
    lowered = response.lower()
    if "<|channel|>" in lowered:
        pieces = [piece for piece in response.split("<|channel|>") if piece.lstrip().startswith("final")]
        if not pieces:
            return None
        response = pieces[-1].partition("<|message|>")[2].partition("<|")[0]
    elif lowered.startswith("analysis") and response[8:9].isupper():
        if "assistantfinal" not in response:
            return None
        response = response.split("assistantfinal")[-1]
    for mark in ("think", "thinking", "reasoning", "thought"):
        close, start = f"</{mark}>", f"<{mark}>"
        lowered = response.lower()
        if close in lowered:
            response = response[lowered.rindex(close) + len(close) :]
        if start in response.lower():
            return None
    return "".join(mark for mark in response[-READ:] if mark.isprintable() or mark == "\n")


def _final(text: str, answer: Answer) -> tuple[str, str]:
    start = max(text.rfind("\\boxed{"), text.rfind("\\fbox{"))
    while start >= 0:
        content = _until_closed(text, text.index("{", start) + 1)
        if content is not None and content.strip():
            return content.strip(), "last box"
        start = max(text.rfind("\\boxed{", 0, start), text.rfind("\\fbox{", 0, start))
    lines = [line.strip(" *#_`>\t") for line in text.splitlines()]
    lines = [line for line in lines if line]
    if not lines:
        return "", "empty"
    stated = [line for line in lines if re.search(r"\banswer\b.*(?:\bis\b|\bbe\b|:|=)\W*\w", line, re.IGNORECASE)]
    if stated:
        return _value(re.split(r"\banswer\b", stated[-1], flags=re.IGNORECASE)[-1]), "answer line"
    if answer.kind == "choice":
        return lines[0][:LONGEST], "first line"
    if answer.kind == "number":
        return _value(lines[-1])[:LONGEST], "last line"
    if len(lines) > 1 or len(lines[0].split()) > 12:
        return "", "no answer line"
    return _value(lines[0]), "only line"


def _until_closed(text: str, start: int) -> str | None:
    depth = 1
    for place in range(start, min(len(text), start + 5 * LONGEST)):
        if text[place - 1] == "\\":
            continue
        depth += (text[place] == "{") - (text[place] == "}")
        if not depth:
            return text[start:place]
    return None


def _value(line: str) -> str:
    """Take what follows the last colon, "is" or "are" of a line, without the full stop."""
    value = re.split(r"(?<!\d):(?!\d)|\bis\b|\bare\b|\bwould be\b", line)[-1]
    return value.strip(" .*_`\"'").replace("**", "") or line.strip(" .*_`:")


# --- numbers and letters

_DIGITS = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:[eE][+-]?\d{1,2}(?!\d))?|-?\.\d+")


def _floats(text: str) -> list[float]:
    text = re.sub(r"\\[,!;: ]|\{,\}|(?<=\d)[\s,](?=\d{3}(?!\d))", "", text.replace("−", "-").replace("–", "-"))
    text = re.sub(r"\\[dt]?frac\s*\{?(-?\d+)\}?\s*\{?(\d+)\}?", r"\1/\2", text)
    whole = re.fullmatch(r"[^\d]*?(?:(\d+)\s+)?(-?\d+(?:\.\d+)?)\s*/\s*(\d+(?:\.\d+)?)[^\d]*", text)
    if whole and float(whole[3]):
        return [float(whole[1] or 0) + float(whole[2]) / float(whole[3])]
    return [float(token.replace(",", "")) for token in _DIGITS.findall(text)[:20]]


def _number(found: str, answer: Answer) -> bool | None:
    values = _floats(found.split("=")[-1])
    if not values:
        return None
    for word, scale in (("million", 1e6), ("billion", 1e9), ("thousand", 1e3), ("dozen", 12.0)):
        if re.search(rf"\d\s*{word}", found):
            values = [value * scale for value in values]
    return len(set(values)) == 1 and any(
        len(golds := _floats(gold)) == 1 and _near(values[0], golds[0]) for gold in (answer.gold, *answer.aliases)
    )


def _near(one: complex, two: complex) -> bool:
    return abs(one - two) <= CLOSE * max(abs(one), abs(two), 1e-12)


def _choice(found: str, answer: Answer) -> bool | None:
    plain = re.sub(r"\\[a-z]+|[{}$*]", " ", found)
    leading = re.match(r"\W*([A-J])\s*(?:[).:\]]|$)", plain)
    letters = {leading[1]} if leading else set(re.findall(r"(?<![\w'])[A-J](?![\w'])", plain))
    if not leading and len(plain.split()) > 3:
        letters -= {"A", "I"}  # an article and a pronoun
    if len(plain.strip()) == 1:
        letters = {plain.strip().upper()}
    if len(letters) == 1:
        return letters == {answer.gold.strip("() .").upper()}
    said = _tokens(plain)
    return True if any(_f1(said, _tokens(text)) >= F1 for text in answer.aliases) else None


# --- names


def _tokens(text: str) -> list[str]:
    text = re.sub(r"\\(?:text\w*|mathrm|mathbf|emph)\s*", " ", text)
    text = "".join(mark for mark in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(mark))
    words = re.findall(r"[^\W_]+", re.sub(r"(?<=\d),(?=\d{3})|['’]", "", text))
    return [word for word in words if word not in ("a", "an", "the")] or words


def _f1(one: list[str], two: list[str]) -> float:
    shared = sum((Counter(one) & Counter(two)).values())
    return 2 * shared / (len(one) + len(two)) if shared else 0.0


def _short(found: str, answer: Answer) -> bool | None:
    said = _tokens(found)
    if not said:
        return None
    if len(said) > 60:
        return False
    letters = " ".join(said)
    for accepted in (answer.gold, *answer.aliases):
        words = _tokens(accepted)
        if _f1(said, words) >= F1:
            return True
        other = " ".join(words)
        digits = re.findall(r"\d+", letters) == re.findall(r"\d+", other)
        if not digits or abs(len(letters) - len(other)) > 3 or min(len(letters), len(other)) < 6:
            continue
        if difflib.SequenceMatcher(None, letters, other, autojunk=False).ratio() >= LETTERS:
            return True
    return False


# --- mathematics

_DROPPED = re.compile(
    r"\\(?:left|right|displaystyle|!|,|;|:|quad|qquad| )(?![A-Za-z])|\\(?:text|mathrm|mbox|textbf|mathbf)\s*\{\s*"
    r"(?:[a-z. ]{2,}(?:\^?\d)?|and|or)\s*\}|\^\s*\{?\s*\\circ\s*\}?|\\circ|\\degree|°|\\%|%|\\\$|\$|~|\\[()\[\]]"
)
_SYMBOL = re.compile(r"\\[A-Za-z]+|\d+\.?\d*|\.\d+|[A-Za-z]|[-+*/^_(){}\[\]|!,]")
_FUNCTIONS: dict[str, Callable[[complex], complex]] = {
    r"\sin": cmath.sin,
    r"\cos": cmath.cos,
    r"\tan": cmath.tan,
    r"\cot": lambda x: 1 / cmath.tan(x),
    r"\sec": lambda x: 1 / cmath.cos(x),
    r"\csc": lambda x: 1 / cmath.sin(x),
    r"\arcsin": cmath.asin,
    r"\arccos": cmath.acos,
    r"\arctan": cmath.atan,
    r"\ln": cmath.log,
    r"\exp": cmath.exp,
}


class _UnreadableError(Exception):
    """The expression is none that the small parser reads."""


class _Parser:
    """Evaluates an expression of LaTeX while it reads it, at one point."""

    def __init__(self, symbols: list[str], seed: int) -> None:
        self.symbols, self.place, self.depth, self.seed = symbols, 0, 0, seed

    def peek(self) -> str:
        return self.symbols[self.place] if self.place < len(self.symbols) else ""

    def take(self, wanted: str = "") -> str:
        symbol = self.peek()
        if not symbol or (wanted and symbol != wanted):
            raise _UnreadableError
        self.place += 1
        return symbol

    def value(self) -> complex:
        result = self.sum()
        if self.peek():
            raise _UnreadableError
        return result

    def sum(self) -> complex:
        self.depth += 1
        if self.depth > DEEPEST:
            raise _UnreadableError
        result = self.product()
        while self.peek() in ("+", "-"):
            result += self.product() if self.take() == "+" else -self.product()
        self.depth -= 1
        return result

    def product(self) -> complex:
        signs = 1
        while self.peek() in ("+", "-"):
            signs *= -1 if self.take() == "-" else 1
        result = self.power()
        while True:
            symbol = self.peek()
            if symbol in ("*", r"\cdot", r"\times"):
                self.take()
                result *= self.power()
            elif symbol in ("/", r"\div"):
                self.take()
                result /= self.power()
            elif symbol in ("", "+", "-", ")", "}", "]", "|", ",", "!", "^", "_"):
                return signs * result
            else:
                result *= self.power()

    def power(self) -> complex:
        base = self.atom()
        if self.peek() == "!":
            self.take()
            base = math.gamma(base.real + 1)
        if self.peek() == "^":
            self.take()
            return complex(base) ** self.argument()
        return base

    def argument(self) -> complex:
        """Read a group in braces, or one symbol."""
        if self.peek() == "{":
            return self.group("{", "}")
        if self.peek() == "-":
            self.take()
            return -self.argument()
        if len(self.peek()) > 1 and self.peek().isdigit():  # \frac12
            digit = self.symbols[self.place][0]
            self.symbols[self.place] = self.symbols[self.place][1:]
            return float(digit)
        return self.atom()

    def group(self, opening: str, closing: str) -> complex:
        self.take(opening)
        result = self.sum()
        self.take(closing)
        return result

    def atom(self) -> complex:
        symbol = self.peek()
        for opening, closing in (("(", ")"), ("{", "}"), ("[", "]")):
            if symbol == opening:
                return self.group(opening, closing)
        if symbol == "|":
            return abs(self.group("|", "|"))
        self.take()
        if symbol[0].isdigit() or symbol[0] == ".":
            return float(symbol)
        if symbol in (r"\frac", r"\dfrac", r"\tfrac"):
            return self.argument() / self.argument()
        if symbol == r"\sqrt":
            root = self.group("[", "]") if self.peek() == "[" else 2
            return complex(self.argument()) ** (1 / root)
        if symbol == r"\log":
            base: complex = 10
            if self.peek() == "_":
                self.take()
                base = self.argument()
            return cmath.log(self.applied()) / cmath.log(base)
        if symbol in _FUNCTIONS:
            exponent: complex = 1
            if self.peek() == "^":
                self.take()
                exponent = self.argument()
            return complex(_FUNCTIONS[symbol](self.applied())) ** exponent
        if symbol in (r"\pi", "π"):
            return math.pi
        if symbol in ("e", "i"):
            return math.e if symbol == "e" else 1j
        return self.variable(symbol)

    def applied(self) -> complex:
        return self.power() if self.peek() in ("(", "{", "|") else self.product()

    def variable(self, symbol: str) -> complex:
        if not (symbol.isalpha() or symbol in _GREEK):
            raise _UnreadableError
        if self.peek() == "_":
            self.take()
            if self.peek() == "{":
                self.take()
            symbol += "_" + self.take()
            if self.peek() == "}":
                self.take()
        return random.Random(f"{self.seed} {symbol}").uniform(0.3, 2.7)


_GREEK = frozenset({r"\alpha", r"\beta", r"\gamma", r"\theta", r"\lambda", r"\mu", r"\phi", r"\sigma", r"\omega"})


def _values(text: str) -> list[complex] | None:
    """Evaluate an expression at the random points; None where it cannot be read or its value is not finite."""
    text = _DROPPED.sub(" ", re.sub(r"(?<=\d)(?:\{,\}|,\s?\\!|,)(?=\d{3}(?!\d))", "", text))
    text = re.sub(r"(?<![\\A-Za-z])(pi|sqrt)(?![A-Za-z])", r"\\\1", text).replace("π", r"\pi ").replace("−", "-")
    text = re.sub(r"(?<=\d)\s*\\[dt]?frac(?=\s*\{?\d)(?!.*[A-Za-z]\s*\()", r"+\\frac", text) if _mixed(text) else text
    symbols = _SYMBOL.findall(text)
    if not symbols or "".join(symbols) != re.sub(r"\s", "", text):
        return None
    values = []
    for point in range(POINTS):
        try:
            value = complex(_Parser(list(symbols), point).value())
        except (_UnreadableError, ArithmeticError, ValueError, IndexError):
            return None
        if not cmath.isfinite(value):
            return None
        values.append(value)
    return values


def _mixed(text: str) -> bool:
    """Say whether the text is a mixed number such as 1\\frac{2}{3}."""
    return bool(re.fullmatch(r"\s*-?\d+\s*\\[dt]?frac\s*\{?\d+\}?\s*\{?\d+\}?\s*", text)) and "-" not in text


def _elements(text: str) -> tuple[str, list[str]]:
    """Split at commas outside brackets: the outer brackets, if these hold all, and the elements."""
    text = re.sub(r"\\left|\\right|\\[,!;: ]", "", text.strip().strip("$").strip())
    text = re.sub(r"\\(?:text|mbox)\s*\{\s*,?\s*(?:and|or)\s*\}|\b(?:and|or)\b", ",", text).replace("\\{", "<")
    text = text.replace("\\}", ">").replace(r"\cup", ",")
    for name in ("p", "b", "", "small"):
        text = text.replace(rf"\begin{{{name}matrix}}", "(").replace(rf"\end{{{name}matrix}}", ")")
    text = text.replace(r"\\", ",").replace("&", ",")
    brackets = ""
    if text and text[0] in "([<" and text[-1] in ")]>" and _closes_last(text):
        brackets, text = text[0] + text[-1], text[1:-1]
    if not re.search(r"\d,\d{3}(?!\d)", text) or brackets:
        depth, pieces = 0, [""]
        for mark in text:
            depth += (mark in "([{<") - (mark in ")]}>")
            if mark in ",;" and depth == 0:
                pieces.append("")
            else:
                pieces[-1] += mark
        elements = [piece.strip() for piece in pieces if piece.strip()]
    else:
        elements = [text]
    expanded = []
    for element in elements:
        expanded += [element.replace(r"\pm", "+"), element.replace(r"\pm", "-")] if r"\pm" in element else [element]
    return brackets, expanded


def _closes_last(text: str) -> bool:
    depth = 0
    for place, mark in enumerate(text):
        depth += (mark in "([<") - (mark in ")]>")
        if depth == 0:
            return place == len(text) - 1
    return False


def _bare(text: str) -> str:
    text = re.sub(r"\\(?:text\w*|mathrm|mathbf|mbox|left|right|[,!;: ])", "", text)
    text = re.sub(r"[\s${}().]", "", re.sub(r"\}\s*\{", "|", re.sub(r"\\[dt]frac", r"\\frac", text)))
    return text if len(text) < 3 else text.casefold()


def _same_value(one: str, two: str) -> bool:
    if "=" in one and "=" in two:
        return _same_equation(one, two)
    one, two = ((text.split("=")[-1] if re.match(r"\s*\\?\w+(?:\(\w\))?\s*=", text) else text) for text in (one, two))
    if "=" in one or "=" in two:
        return False
    left, right = _values(one), _values(two)
    if left is None or right is None:
        return _bare(one) == _bare(two)
    return all(_near(first, second) for first, second in zip(left, right, strict=True))


def _same_equation(one: str, two: str) -> bool:
    sides = [_values(side) for text in (one, two) for side in text.split("=", 1)]
    if any(side is None for side in sides):
        return _bare(one) == _bare(two)
    first, second, third, fourth = (side or [] for side in sides)
    ratios = [(a - b) / (c - d) for a, b, c, d in zip(first, second, third, fourth, strict=True) if abs(c - d) > CLOSE]
    return len(ratios) > 1 and all(_near(ratio, ratios[0]) and abs(ratio) > CLOSE for ratio in ratios)


def _math(found: str, answer: Answer) -> bool:
    return any(_same_math(gold, found) for gold in (answer.gold, *answer.aliases))


def _same_math(gold: str, found: str) -> bool:
    (outer, golds), (other, parts) = _elements(gold), _elements(found)
    if len(golds) != len(parts) or len(golds) > 20:
        return False
    if len(golds) == 1:
        return _same_value(golds[0], parts[0])
    if outer and other and outer != other:
        return False
    if "(" in outer + other or "[" in outer + other:
        return all(_same_value(one, two) for one, two in zip(golds, parts, strict=True))
    left = list(parts)
    for one in golds:
        match = next((two for two in left if _same_value(one, two)), None)
        if match is None:
            return False
        left.remove(match)
    return True
