r"""Compare an extracted answer with the right answers.

Numbers are compared exactly, as fractions. Options are compared by their letter or their exact
text, and names in the normal form of TriviaQA's official evaluation. Mathematics is compared by
Math-Verify, part by part, with the brackets and the number of parts of the right answer. There is
no tolerance, no algebra on words, and no table of units."""

import re
import string
import unicodedata
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

from capcal_lib.errors import naming_extra
from capcal_lib.manifests import Kind
from capcal_lib.text import respelt

LONGEST = 500  # characters of an extracted answer; the longest answer of MATH has 159
MOST_DIGITS = 100  # of one number

_CHARACTERS = str.maketrans(
    {
        **dict.fromkeys("−–‐‑‒﹣", "-"),
        **dict.fromkeys("\u00a0\u2007\u2009\u200a\u202f\t\r\n~", " "),
        **dict.fromkeys("⁄∕", "/"),
        "×": r"\times ",
        "·": r"\cdot ",
        "⋅": r"\cdot ",
        "π": r"\pi ",
        "∞": r"\infty ",
        "√": r"\sqrt ",
        "≤": r"\le ",
        "≥": r"\ge ",
        "∪": r"\cup ",
        "±": r"\pm ",
        "½": r"\frac{1}{2}",
        "¼": r"\frac{1}{4}",
        "¾": r"\frac{3}{4}",
    }
)
_SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ"
_EXPONENT = re.compile(f"[{_SUPERSCRIPTS}]+")
_INDEX = re.compile("[₀-₉]+")
_PLAIN_SIGNS = str.maketrans(f"{_SUPERSCRIPTS}₀₁₂₃₄₅₆₇₈₉", "0123456789+-n0123456789")
_WORDS = r"\\(?:text\w*|mathrm|mathbf|mathit|mbox|hbox|operatorname)\*?\s?\{([^{}]*)\}"
_SPELLINGS = (
    (r"\\(?:phantom|hspace|vspace|label)\*?\s?\{[^{}]*\}", ""),
    (r"(?<=\d)(?:\{,\}\s?|,\s?\\!\s?)(?=\d{3})", ","),
    (r"\\(?:left|right)\s?\.|\\(?:left|right|[bB]igg?[lr]?)(?![a-zA-Z])|\*\*", ""),
    (r"(?<!\\)\\[!()\[\]]", ""),
    (r"(?<!\\)\$(?!\s?\d[^$]*$)", ""),  # of mathematics, not of money
    (r"(?<!\\)\\[,;:> ]|\\q?quad(?![a-zA-Z])", " "),
    (r"(?<![A-Za-z\\])(sqrt|pi|sin|cos|tan|log|ln|infty)(?![A-Za-z])", r"\\\1"),
    (r"\\sqrt\s?(?:\(([^()]*)\)|(\d+|[a-zA-Z]))", r"\\sqrt{\1\2}"),
    (r"\\[dtc]frac(?![a-zA-Z])", r"\\frac"),
    (r"\\frac\s?(\d)\s?(\d)", r"\\frac{\1}{\2}"),
    (r"\\(?:leqslant|leq)(?![a-zA-Z])|<=", r"\\le"),
    (r"\\(?:geqslant|geq)(?![a-zA-Z])|>=", r"\\ge"),
    (r"\\mathbb\s?\{?\s?R\s?\}?|ℝ", r"(-\\infty,\\infty)"),
    (r"\+\s?\\infty", r"\\infty"),
    (r"\s?(?:\^\s?\{?\s?\\circ\s?\}?|\\degree|°)", r"\\text{ degrees}"),
    (r"_\s?\{\s?(\w)\s?\}", r"_\1"),
    (r"\s+", " "),
)


def clean(text: str) -> str:
    r"""Write mathematics in one spelling.

    >>> clean(r"$\dfrac12\,$."), clean("10²³"), clean(r"\left( −1, 2 \right]")
    ('\\frac{1}{2}', '10^{23}', '( -1, 2 ]')
    """
    text = text.translate(_CHARACTERS)
    text = _EXPONENT.sub(lambda signs: f"^{{{signs[0].translate(_PLAIN_SIGNS)}}}", text)
    text = _INDEX.sub(lambda signs: f"_{{{signs[0].translate(_PLAIN_SIGNS)}}}", text)
    return respelt(text, _SPELLINGS).strip().rstrip(".,;").strip()


def without_commands(text: str) -> str:
    r"""Take words out of ``\text{}`` and similar commands.

    >>> without_commands(r"\text{Lake Chad}")
    'Lake Chad'
    """
    return re.sub(_WORDS, r" \1", text).strip()


class Number(NamedTuple):
    """The exact number in an answer."""

    value: Fraction
    words: str  # what is counted; empty where nothing is said
    is_percent: bool


_MULTIPLIERS = {
    "dozen": 12,
    "hundred": 100,
    "thousand": 10**3,
    "million": 10**6,
    "billion": 10**9,
    "trillion": 10**12,
    "k": 10**3,
    "K": 10**3,
    "M": 10**6,
}
_NUMBER_SPELLINGS = (
    (_WORDS, r" \1"),
    (r"\\frac\s?\{\s?(-?\d+)\s?\}\s?\{\s?(\d+)\s?\}", r" \1/\2"),
    (r"\^\s?\{?\s*(st|nd|rd|th)\s?\}?", r"\1"),
    (r"(\d)\s+out of\s+(\d)", r"\1/\2"),
    (r"\s\([^()]*\)$", ""),  # a remark
    (r"(\d)\s?(?:\\times|\\cdot|[*x])\s?10\s?\^\s?\{?\s?([+-]?\d{1,3})\s?\}?", r"\1e\2"),
    (r"^([+-]?)\s?10\s?\^\s?\{?\s?([+-]?\d{1,3})\s?\}?(?=$|\s)", r"\g<1>1e\2"),
    (r"\s+", " "),
)
_EQUATION = re.compile(  # of a name, of numbers alone, or a chain that comes to a number
    r"(?:\\?[A-Za-z]+(?:_\{?\w\}?|\(\w\))?\s?|[^A-Za-z,;]*|[^,;]*?=[^,;]*)=([^=;]*)"
)
_SEVERAL = re.compile(r"(?<![a-zA-Z\\])(?:or|and)(?![a-zA-Z])|\\cup")
_NOT_COUNTED = "and|or|squared|cubed|tenths?|hundredths?|thousandths?"  # make another number
_WORD = r"[^\W\d_]++(?:\^\{?[23]\}?)?"
_NUMBER = re.compile(
    rf"""(?x)
    (?P<sign>[+-]?) \s? (?: (?:\\?[$] | [€£¥]) \s? (?P<sign_behind>-?) )?
    (?: (?P<whole>\d+) \s (?=\d+\s?/) )?
    (?P<top> \d{{1,3}} (?:,\d{{3}})+ (?:\.\d*)? | \d+ (?:\.\d*)? | \.\d+ )
    (?: [eE] (?P<exponent>[+-]?\d{{1,3}}) )? (?: \s? / \s? (?P<bottom>\d+) )?
    (?: \s? (?P<multiplier>{"|".join(name for name in _MULTIPLIERS if len(name) > 1)}) \b
      | (?P<suffix>[kKM]) \b )?
    \s? (?P<percent> \\?% | percent\b | per\scent\b )?
    (?P<words> (?! \s?(?:{_NOT_COUNTED})\b | [a-zA-Z]\b )  # 5x is no number of things
      (?: [\s.,'()/-]* {_WORD} (?: [\s.,'()/-]+ {_WORD} )* )? ) [\s.)]*
    """
)
_ONES = {
    "zero": 0,
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
    "eleven": 11,
    "twelve": 12,
    "thirteen": 13,
    "fourteen": 14,
    "fifteen": 15,
    "sixteen": 16,
    "seventeen": 17,
    "eighteen": 18,
    "nineteen": 19,
    "twenty": 20,
}


@lru_cache(maxsize=1 << 16)  # a run of a thousand questions has tens of thousands
def read_number(text: str) -> Number | None:
    r"""Read a text as a number; None if it is none. Words after the number say what is counted.

    >>> read_number(r"x = \$1,234.50").value, read_number("2x + 1")
    (Fraction(2469, 2), None)
    >>> read_number(r"2 million \text{ people}")
    Number(value=Fraction(2000000, 1), words='people', is_percent=False)
    """
    if len(text) > LONGEST:
        return None
    text = clean(text)
    if "=" in text:
        equation = _EQUATION.fullmatch(text)
        if not equation or _SEVERAL.search(text):
            return None
        first, _, text = text.rpartition("=")
        if re.fullmatch(r"\s*[\d.]+\s*", first) and read_number(first) != read_number(text):
            return None  # 41 = 42
    text = respelt(text.strip(), _NUMBER_SPELLINGS).strip()
    first, _, rest = text.partition(" ")
    if first.lower() in _ONES:
        text = f"{_ONES[first.lower()]} {rest}"
    match = _NUMBER.fullmatch(text)
    if not match or not int(match["bottom"] or 1) or len(match["top"]) > MOST_DIGITS:
        return None
    value = Fraction(match["top"].replace(",", "")) * Fraction(10) ** int(match["exponent"] or 0)
    value = int(match["whole"] or 0) + value / int(match["bottom"] or 1)
    value *= _MULTIPLIERS.get(match["multiplier"] or match["suffix"] or "", 1)
    if "-" in (match["sign"], match["sign_behind"]):
        value = -value
    return Number(
        value, " ".join(match["words"].lower().strip(" .,()").split()), bool(match["percent"])
    )


_LETTERS = re.compile(r"[-/]\s?[a-z](?:[-/\s]+[a-z])*|[a-z](?:,\s?-?[a-z])+")  # of 3-x and 1,i,-i


def same_number(right: Number, other: Number) -> bool:
    """Compare two numbers exactly.

    If both have words, the words must be the same. Letters of a formula after one of the numbers
    must be after the other too. A percentage is also a share, unless this share is a whole number
    above 1: 50% is 0.5, but 4200% is not 42.

    >>> def same(gold, answer): return same_number(read_number(gold), read_number(answer))
    >>> same("5 km", "5"), same("50%", "0.5"), same("44 BC", "44 AD"), same("5", "5.001")
    (True, True, False, False)
    """
    counted, others = (number.words.replace(" ", "").rstrip("s") for number in (right, other))
    if counted and others and counted != others:
        return False
    if counted != others and (_LETTERS.fullmatch(right.words) or _LETTERS.fullmatch(other.words)):
        return False
    if right.value == other.value:
        return True
    if right.is_percent == other.is_percent:
        return False
    percent, share = (right.value, other.value) if right.is_percent else (other.value, right.value)
    is_share = abs(share) <= 1 or share.denominator > 1
    return is_share and share == percent / 100


_LETTER = re.compile(r"(?:(?i:option|choice)\s)?[(\[]?\s?([A-Za-z])\s?[)\]]?\s?(?:[.:)](?:\s.*)?)?")
_LETTER_AND_TEXT = re.compile(
    r"[(\[]?([A-J])(?:[)\].:,]{1,2}\s(?!\W*[A-J]\b)|\s[-–—]\s|\s(?=\()).+"
)


def letter(text: str) -> str | None:
    r"""Return the letter of an option, alone or before the text of the option.

    >>> letter("(c)"), letter(r"\text{C. water}"), letter("A dog")
    ('C', 'C', None)
    """
    text = without_commands(text.replace("*", "").strip().strip("$"))
    match = _LETTER.fullmatch(text) or _LETTER_AND_TEXT.fullmatch(text)
    return match[1].upper() if match else None


_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_PUNCTUATION = string.punctuation + "‘’´“”‐–—"


@lru_cache(maxsize=1 << 16)
def name(text: str) -> str:
    """Return the normal form of TriviaQA's official evaluation, without accents and indices.

    >>> name("The  Beatles!"), name("Málaga")
    ('beatles', 'malaga')
    """
    marks = unicodedata.normalize("NFKD", without_commands(text).lower())
    letters = "".join(mark for mark in marks if not "\u0300" <= mark <= "\u036f")
    words = "".join(" " if mark in _PUNCTUATION else mark for mark in letters)
    return " ".join(_ARTICLES.sub(" ", words).split()) or without_commands(text).lower()


def option(text: str) -> str:
    """Return the text of an option without regard to case, spaces and a full stop."""
    return " ".join(clean(without_commands(text)).casefold().split())


def canonical(text: str, kind: Kind) -> str:
    """Return a text that is the same for answers that are easily seen to be equal, to group votes.

    >>> canonical("0.5", "number"), canonical("The Moon", "short"), canonical("c", "choice")
    ('1/2', 'moon', 'C')
    """
    if kind == "choice":
        return letter(text) or option(text)
    if number := read_number(text):
        return str(number.value)
    if kind == "math":
        return clean(text).replace(" ", "")
    return name(text)


def equal(kind: Kind, golds: tuple[str, ...], extracted: str) -> bool | None:
    """Compare an answer with the right answers, of which the first is the gold one.

    None means that `mathematics` must decide, in a worker.
    """
    if len(extracted) >= LONGEST:
        return False
    if kind == "choice":
        chosen = letter(extracted)
        if chosen and (chosen <= "J" or chosen == letter(golds[0])):
            return chosen == letter(golds[0])
        return option(extracted) in map(option, golds[1:])
    if extracted in golds:
        return True
    if kind == "short":
        return any(_same_name(gold, extracted) for gold in golds)
    number = read_number(extracted)
    rights = [read_number(gold) for gold in golds]
    if number and any(right and same_number(right, number) for right in rights):
        return True
    if kind == "number" or (number and all(rights)) or _TOO_DEEP.search(extracted):
        return False
    texts = [canonical(gold, "math") for gold in golds]
    if canonical(extracted, "math") in texts:
        return True
    answer = clean(extracted)
    results = [_same(clean(gold), answer, _undecided) for gold in golds]
    if True in results:
        return True
    return None if None in results else False


def _same_name(gold: str, other: str) -> bool:
    number = read_number(other)
    right = read_number(gold) if number else None
    if number and right and not right.words:  # a name may begin with a number
        return same_number(right, number)
    return name(gold) == name(other)


_TOO_DEEP = re.compile(r"(?:[(\[{][^()\[\]{}]*){10}")  # takes longer to read than to write
_ORDERED = ("()", "[]", "[)", "(]")
# Brackets that say the same: a list without any may be a set, or a tuple.
_ALIKE = [{shape} for shape in ("", r"\{\}", *_ORDERED)] + [{"", r"\{\}"}, {"", "()"}]
_TOKENS = re.compile(
    r"(\\text\s?\{\s?(?:or|and)\s?\}|(?<![a-zA-Z\\])(?:or|and)(?![a-zA-Z])|\\cup|\\[{}]|[,;()\[\]{}])"
)
_BRACKETED = re.compile(r"([(\[]|\\\{)(.*)([)\]]|\\\})")
_RELATION = re.compile(r"[<>=]|\\(?:le|ge|neq?|in|equiv)(?![a-z])")
_INEQUALITY = re.compile(r"[<>]|\\(?:le|ge)(?![a-z])")
_NAMED = re.compile(r"(\\?[A-Za-z]+(?:\([a-z]\)|_\{?\w\}?)?)\s?(?:=|\\in(?![a-z]))(.*)")
# Ratios, times, primes, dots, and numbers in a base, which Math-Verify reads as something else.
_BY_TEXT = re.compile(r"[:']|\\[lc]?dots|\d\)?_")
_FRACTION = re.compile(r"(?<![\w.}^)])(\d+)/(\d+)(?![\d.^!(a-zA-Z\\])")
_BEHIND = re.compile(rf"(?<=\S)\s?(?:{_WORDS}(?:\^\{{?[23]\}}?)?|\^\s?\{{?\\circ\}}?|\\%)\s?$")


Ask = Callable[[str, str], bool | None]  # about two parts that no rule here tells apart


def mathematics(extracted: str, *golds: str) -> bool:
    r"""Compare with Math-Verify, part by part. This may take long, so only workers should call it.

    >>> mathematics(r"\frac{x}{2}", "0.5x"), mathematics("(1, 2)", "(2, 1)")
    (True, False)
    >>> mathematics("2, 1", "1, 2"), mathematics(r"[-\infty, 0]", r"(-\infty, 0]")
    (True, False)
    """
    return any(_same(clean(gold), clean(extracted), _verified) for gold in golds)


def _undecided(_gold: str, _other: str) -> bool | None:
    return None


def _same(gold: str, other: str, ask: Ask) -> bool | None:
    """Compare two cleaned answers: the same number of parts, in the same brackets, each equal.

    None means that some part is undecided and none is unequal.
    """
    if re.fullmatch(_WORDS, gold) and option(gold) == option(other):
        return True
    if _BY_TEXT.search(f"{gold} {other}"):
        return gold.replace(" ", "") == other.replace(" ", "")
    gold, other = _without_name(gold, other), _without_name(other, gold)
    shape, parts = _parts(gold)
    other_shape, others = _parts(other)
    if len(parts) == len(others) == 1:
        return _same_part(gold, other, ask)
    if 1 in (len(parts), len(others)):  # an interval may be written as an inequality
        return ask(gold, other) if _INEQUALITY.search(gold + other) else False
    if len(parts) != len(others) or {shape, other_shape} not in _ALIKE:
        return False
    if {shape, other_shape} & {*_ORDERED}:
        results = [_same(*pair, ask) for pair in zip(parts, others, strict=True)]
    else:
        results = []
        for part in parts:
            verdicts = [_same(part, one, ask) for one in others]
            if True in verdicts:
                others.pop(verdicts.index(True))
                results.append(True)
            else:
                results.append(None if None in verdicts else False)
    if False in results:
        return False
    return None if None in results else True


def _without_name(text: str, other: str) -> str:
    """Drop the name from "x = 5" if the other answer has none, and whatever surrounds words."""
    words = re.fullmatch(_WORDS, text)  # such as "A, C"
    named = _NAMED.fullmatch(words[1] if words else text)
    if named and not _RELATION.search(other):
        return named[2].strip()
    return words[1] if words else text


def _parts(text: str) -> tuple[str, list[str]]:
    r"""Split an answer at its outermost commas, and return the brackets around them.

    >>> _parts("(1, [2, 3])"), _parts(r"1 \text{ or } 2"), _parts("(x+1)(x+2)")
    (('()', ['1', '[2, 3]']), ('', ['1', '2']), ('', ['(x+1)(x+2)']))
    """
    if read_number(text):  # 1,234
        return "", [text]
    parts = _split(text)
    bracketed = _BRACKETED.fullmatch(text)
    if len(parts) == 1 and bracketed:
        inside = _split(bracketed[2])
        if len(inside) > 1:
            return bracketed[1] + bracketed[3], inside
    return "", parts


def _split(text: str) -> list[str]:
    pieces, depth = [""], 0
    for token in _TOKENS.split(text):
        if token in ("(", "[", "{", r"\{"):
            depth += 1
        elif token in (")", "]", "}", r"\}"):
            depth -= 1
        elif depth == 0 and _TOKENS.fullmatch(token):
            pieces.append("")
            continue
        pieces[-1] += token
    parts = []
    for piece in filter(None, map(str.strip, pieces)):
        signs = ("+", "-") if r"\pm" in piece else ("",)
        parts += [piece.replace(r"\pm", sign).strip() for sign in signs]
    return parts


def _same_part(gold: str, other: str, ask: Ask) -> bool | None:
    """Compare two parts as numbers or as words, or else with ``ask``."""
    if gold.replace(" ", "") == other.replace(" ", ""):
        return True
    right, number = read_number(gold), read_number(other)
    if right and number:
        return same_number(right, number)
    if re.match(r"\\text", gold) or re.match(r"\\text", other):
        is_letter = letter(gold) is not None and letter(gold) == letter(other)
        return is_letter or option(gold) == option(other)
    if re.fullmatch(r"[A-Za-z -]*[A-Za-z]{4}[A-Za-z -]*", gold):  # words, and no product of letters
        return option(gold) == option(other)
    named, other_named = _NAMED.fullmatch(gold), _NAMED.fullmatch(other)
    if named and other_named:
        same_names = named[1] == other_named[1]
        return same_names and _same_part(named[2].strip(), other_named[2].strip(), ask)
    if ("=" in gold) != ("=" in other):
        return False
    gold, other = _BEHIND.sub("", gold), _BEHIND.sub("", other)
    if _variables(gold) != _variables(other) and not _INEQUALITY.search(gold + other):
        return False
    return ask(gold, other)


def _variables(text: str) -> set[str]:
    """Return the letters other than e and i that do not belong to a command or an environment."""
    text = re.sub(r"\\(?:begin|end)\s?\{[a-z]+\}|\\[A-Za-z]+", " ", text)
    return {*re.findall("[A-Za-z]", text)} - {"e", "i"}


def _verified(gold: str, other: str) -> bool | None:
    """Compare with Math-Verify. A text that it cannot read is not equal."""
    with naming_extra():
        from math_verify import verify

    one, two = parse(gold), parse(other)
    if one is None or two is None or _differ(one, two):
        return False
    return bool(
        verify([one], [two], float_rounding=15, timeout_seconds=None, allow_set_relation_comp=True)
    )


def _differ(one: Any, two: Any) -> bool:
    """Tell whether two expressions have different values at one point, a quick test before a full
    comparison.
    """
    import sympy

    if not isinstance(one, sympy.Expr) or not isinstance(two, sympy.Expr):
        return False
    values = []
    for expression in (one, two):
        symbols = sorted(expression.free_symbols, key=str)
        point = {symbol: sympy.Rational(15 + 7 * ord(str(symbol)[0]), 97) for symbol in symbols}
        value = expression.subs(point).evalf()
        if not value.is_number or not value.is_finite:
            return False
        values.append(value)
    return bool(abs(values[0] - values[1]) > 1e-9 * max(map(abs, values)))


@lru_cache(maxsize=1 << 12)
def parse(text: str) -> Any:
    """Parse a text as a SymPy object; None if Math-Verify cannot."""
    with naming_extra():
        import math_verify
        import sympy
        from latex2sympy2_extended import NormalizationConfig

    # Its stripping of units would read 2m as 2.
    settings = NormalizationConfig(units=False, malformed_operators=True, nits=False, boxed="none")
    config = math_verify.LatexExtractionConfig(
        boxed_match_priority=-1, normalization_config=settings
    )
    text = _FRACTION.sub(r"\\frac{\1}{\2}", text)
    with sympy.evaluate(False):  # which for some binomials takes hours
        parsed = math_verify.parse(
            f"${text}$", [config], fallback_mode="no_fallback", parsing_timeout=None
        )
    return parsed[0] if parsed and not isinstance(parsed[0], str) else None
