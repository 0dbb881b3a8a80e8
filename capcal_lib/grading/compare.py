r"""Compare an extracted answer with the right answers.

Numbers are compared exactly, as fractions. Options are compared by their letter or their exact
text, and names in the normal form of TriviaQA's official evaluation. Mathematics is compared by
Math-Verify. There is no tolerance and no table of units."""

import re
import string
import unicodedata
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
_RAISED = re.compile("[¹²³ʰ-ʸˡ-ˣᴬ-ᵡ\u2070-\u207f]+")
_LOWERED = re.compile("[ᵢ-ᵪⱼ\u2080-\u209c]+")
_TEXT = re.compile(r"\\(?:text\w*|mathrm|mbox)\s?\{([^{}]*)\}")
_SPELLINGS = (
    (r"(?<=\d)(?:\{,\}\s?|,\s?\\!\s?)(?=\d{3})", ","),
    (r"\\(?:left|right)(?![a-z])\.?|\\?\$|\\[()\[\]!]|\*\*", ""),
    (r"(?<!\\)\\[,;:> ]|\\q?quad(?![a-z])", " "),
    (r"\\sqrt\s?(?:\(([^()]*)\)|(\d+|[a-zA-Z]))", r"\\sqrt{\1\2}"),
    (r"\\[dtc]frac", r"\\frac"),
    (r"\\frac\s?(\d)\s?(\d)", r"\\frac{\1}{\2}"),
    (r"\s?(?:\^\s?\{?\s?\\circ\s?\}?|°)", r"\\text{ degrees}"),
    (r"\^\s?\{?\s?(?:\\\w+\{)?(st|nd|rd|th)\}*", r"\1"),
    (r"_\s?\{\s?(\w)\s?\}", r"_\1"),
    (r"\s+", " "),
)


def clean(text: str) -> str:
    r"""Write mathematics in one spelling.

    >>> clean(r"$\dfrac12\,$."), clean("a³²"), clean(r"\left( −1, 2 \right]")
    ('\\frac{1}{2}', 'a^{32}', '( -1, 2 ]')
    """
    text = _RAISED.sub(lambda signs: f"^{{{unicodedata.normalize('NFKC', signs[0])}}}", text)
    text = _LOWERED.sub(lambda signs: f"_{{{unicodedata.normalize('NFKC', signs[0])}}}", text)
    return respelt(text.translate(_CHARACTERS), _SPELLINGS).strip().rstrip(".,;").strip()


def without_commands(text: str) -> str:
    r"""Take words out of ``\text{}`` and similar commands.

    >>> without_commands(r"\text{Lake Chad}")
    'Lake Chad'
    """
    return _TEXT.sub(r" \1", text).strip()


class Number(NamedTuple):
    """The exact number in an answer."""

    value: Fraction
    words: str  # what is counted; empty where nothing is said
    is_percent: bool


_WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen twenty"
)
_ONES = {word: str(number) for number, word in enumerate(_WORDS.split())}
_FRACTION = re.compile(r"\\frac\s?\{\s?(-?\d+)\s?\}\s?\{\s?(\d+)\s?\}")
_NAME = re.compile(
    r"(?![\d.]+\s?=)(?:\\?[A-Za-z]+(?:_\{?\w\}?|\(\w\))?|[^A-Za-z,;]*)\s?=\s?([^=;]*)"
)
_NUMBER = re.compile(
    r"""(?x)
    (?P<sign>-?) \s? [+€£¥]? \s? (?P<sign_behind>-?)
    (?: (?P<whole>\d+) \s (?=\d+\s?/) )?
    (?P<top> \d{1,3} (?:,\d{3})+ (?:\.\d*)? | \d+ (?:\.\d*)? | \.\d+ )
    (?: [eE] (?P<exponent>[+-]?\d{1,3}) )? (?: \s? / \s? (?P<bottom>\d+) )?
    \s? (?P<percent> \\?% | percent\b )?
    (?P<words>  # 5x is no number of things, and 5 million another number
      (?! [a-zA-Z]\b
      | \s?(?:and|or|squared|cubed|dozen|(?:hundred|thousand)(?:ths?)?|tenths?|million|billion)\b )
      (?: [\s.,'()/-]* WORD (?: [\s.,'()/-]+ WORD )* )? )
    [\s.)]*
    """.replace("WORD", r"(?: (?:[^\W\d_]{2,}|m) \^\{?[23]\}? | [^\W\d_]++ )")
)


@lru_cache(maxsize=1 << 16)  # a run of a thousand questions has tens of thousands
def read_number(text: str) -> Number | None:
    r"""Read a text as a number; None if it is none. Words after the number say what is counted.

    >>> read_number(r"x = \$1,234.50").value, read_number("2x + 1")
    (Fraction(2469, 2), None)
    >>> read_number(r"2 \text{ people}")
    Number(value=Fraction(2, 1), words='people', is_percent=False)
    """
    if len(text) > LONGEST:
        return None
    text = re.sub(r"\s\([^()]*\)$", "", clean(text))  # a remark
    if named := _NAME.fullmatch(text):
        text = named[1]
    text = " ".join(without_commands(_FRACTION.sub(r" \1/\2", text)).split())
    first, _, rest = text.partition(" ")
    match = _NUMBER.fullmatch(f"{_ONES.get(first.lower(), first)} {rest}".strip())
    if not match or not int(match["bottom"] or 1) or len(match["top"]) > MOST_DIGITS:
        return None
    if match["sign"] and match["sign_behind"]:
        return None
    value = Fraction(match["top"].replace(",", "")) * Fraction(10) ** int(match["exponent"] or 0)
    value = int(match["whole"] or 0) + value / int(match["bottom"] or 1)
    if match["sign"] or match["sign_behind"]:
        value = -value
    words = " ".join(re.sub("[{}]", "", match["words"]).lower().strip(" .,()").split())
    return Number(value, words, bool(match["percent"]))


_LETTERS = re.compile(r"[-/]\s?[a-z](?:[-/\s]+[a-z])*|[a-z](?:,\s?-?[a-z])+")  # of 3-x and 1,i,-i


def same_number(right: Number, other: Number) -> bool:
    """Compare two numbers exactly. If both have words, these must be the same. A percentage is also
    a share.

    >>> def same(gold, answer): return same_number(read_number(gold), read_number(answer))
    >>> same("5 km", "5"), same("50%", "0.5"), same("44 BC", "44 AD"), same("5", "5.001")
    (True, True, False, False)
    """
    counted, others = (number.words.replace(" ", "").rstrip("s") for number in (right, other))
    if counted and others and counted != others:
        return False
    if counted != others and (_LETTERS.fullmatch(right.words) or _LETTERS.fullmatch(other.words)):
        return False
    if right.is_percent == other.is_percent or right.value == other.value:
        return right.value == other.value
    percent, share = (right.value, other.value) if right.is_percent else (other.value, right.value)
    is_share = abs(share) <= 1 or share.denominator > 1  # 50% is 0.5, but 4200% is not 42
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
_PUNCTUATION = str.maketrans(dict.fromkeys(string.punctuation + "‘’´“”‐–—", " "))


@lru_cache(maxsize=1 << 16)
def name(text: str) -> str:
    """Return the normal form of TriviaQA's official evaluation, without accents and indices.

    >>> name("The  Beatles!"), name("Málaga")
    ('beatles', 'malaga')
    """
    plain = without_commands(text).lower()
    marks = unicodedata.normalize("NFKD", plain)
    letters = "".join(mark for mark in marks if not "\u0300" <= mark <= "\u036f")
    return " ".join(_ARTICLES.sub(" ", letters.translate(_PUNCTUATION)).split()) or plain


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
        if chosen and (chosen <= "J" or chosen == letter(golds[0])):  # an option may be one letter
            return chosen == letter(golds[0])
        return option(extracted) in map(option, golds[1:])
    if extracted in golds:
        return True
    number = read_number(extracted)
    rights = [read_number(gold) if number else None for gold in golds]
    if kind == "short":  # a name may begin with a number
        rights = [right if right and not right.words else None for right in rights]
    if number and any(right and same_number(right, number) for right in rights):
        return True
    if kind == "short":
        names = [gold for gold, right in zip(golds, rights, strict=True) if not right]
        return name(extracted) in map(name, names)
    if kind == "number" or (number and all(rights)):
        return False
    if canonical(extracted, "math") in [canonical(gold, "math") for gold in golds]:
        return True
    return None


# Ratios, times, primes, and numbers in a base, which Math-Verify reads as something else.
_BY_TEXT = re.compile(r"[:']|\d\)?_")
_PROSE = re.compile(r"[A-Za-z() ,-]*[A-Za-z]{3}[A-Za-z() ,-]*")
_PIECES = re.compile(r"([()\[\]{},;]|(?<![a-zA-Z\\])(?:or|and)(?![a-zA-Z])|\\cup)")
_INEQUALITY = re.compile(r"[<>]|\\[lg]eq?(?![a-z])")
# Brackets that say the same: a list without any may be a set, or a tuple.
_ALIKE = ({"", "{}"}, {"", "()"})
_ASSIGNED = re.compile(r"^\\?[A-Za-z]+(?:\(\w\)|_\{?\w\}?)?\s?(?:=|\\in(?![a-z]))")
_UNIT = re.compile(rf"(?<=\S)\s?{_TEXT.pattern}(?:\^\{{?[23]\}}?)?\s?$")


def mathematics(extracted: str, *golds: str) -> bool:
    r"""Compare with Math-Verify. This may take long, so only workers should call it.

    >>> mathematics(r"\frac{x}{2}", "0.5x"), mathematics("(1, 2)", "(2, 1)")
    (True, False)
    >>> mathematics("2, 1", "1, 2"), mathematics(r"[-\infty, 0]", r"(-\infty, 0]")
    (True, False)
    """
    return any(_same(clean(gold), clean(extracted)) for gold in golds)


def _same(gold: str, answer: str) -> bool:
    """Compare two answers, which must have as many members, in the same brackets.

    Math-Verify by itself would take a tuple for a set, and leave out what a set has twice.
    """
    (shape, parts), (other, others) = members(gold), members(answer)
    is_interval = 1 in (len(parts), len(others)) and _INEQUALITY.search(gold + answer)
    if is_interval or len(parts) == len(others) == 1:
        return _same_member(gold, answer)
    if len(parts) != len(others) or not (shape == other or {shape, other} in _ALIKE):
        return False
    if not {shape, other} <= {"", "{}"}:
        return all(map(_same, parts, others))
    for part in parts:
        match = next((one for one in others if _same(part, one)), None)
        if match is None:
            return False
        others.remove(match)
    return True


def members(text: str) -> tuple[str, list[str]]:
    r"""Return the brackets around an answer, and its members.

    >>> members("[1, 2)"), members(r"\{(1, 2), (3, 4)\}"), members(r"\frac{1}{2} or 3")
    (('[)', ['1', '2']), ('{}', ['(1, 2)', '(3, 4)']), ('', ['\\frac{1}{2}', '3']))
    """
    flat = without_commands(text).replace("\\{", "{").replace("\\}", "}").strip()
    if flat.count("=") <= 1:
        flat = _ASSIGNED.sub("", flat).strip()
    if read_number(flat):  # 1,234
        return "", [flat]
    parts = _split(flat)
    if len(parts) == 1 and flat[:1] in "([{" and flat[-1:] in ")]}":
        inside = _split(flat[1:-1])
        if len(inside) > 1:
            return flat[0] + flat[-1], inside
    return "", parts


def _split(text: str) -> list[str]:
    """Split an answer at its outermost commas and similar words, and at plus or minus."""
    pieces, depth = [""], 0
    for piece in _PIECES.split(text):
        if piece in ("(", "[", "{"):
            depth += 1
        elif piece in (")", "]", "}"):
            depth -= 1
        elif depth == 0 and _PIECES.fullmatch(piece):
            pieces.append("")
            continue
        pieces[-1] += piece
    parts = []
    for piece in filter(None, map(str.strip, pieces)):
        signs = ("+", "-") if "\\pm" in piece else ("",)
        parts += [piece.replace("\\pm", sign) for sign in signs]
    return parts


def _same_member(gold: str, answer: str) -> bool:
    """Compare two single answers, as numbers or words if they are, and else with Math-Verify."""
    with naming_extra():
        from math_verify import verify

    if gold.replace(" ", "") == answer.replace(" ", ""):
        return True
    for pattern in (_ASSIGNED, _UNIT):  # a name or a unit that both have must be the same
        matches = [*filter(None, map(pattern.search, (gold, answer)))]
        stated = {option(match[0]).replace(" ", "") for match in matches}
        if len(stated) > 1:
            return False
    right, number = read_number(gold), read_number(answer)
    if right and number:
        return same_number(right, number)
    if _PROSE.fullmatch(without_commands(gold)):
        return option(gold) == option(answer) or letter(gold) == letter(answer) is not None
    # Math-Verify takes the right side of an equation.
    equations = {"=" in _ASSIGNED.sub("", text) for text in (gold, answer)}
    if _BY_TEXT.search(gold + answer) or len(equations) > 1:
        return False
    one, two = (parse(_UNIT.sub("", text)) for text in (gold, answer))
    settings: Any = {"float_rounding": 15, "timeout_seconds": None}
    readable = one is not None and two is not None
    return readable and verify([one], [two], allow_set_relation_comp=True, **settings)


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
    with sympy.evaluate(False):  # which for some binomials takes hours
        parsed = math_verify.parse(
            f"${text}$", [config], fallback_mode="no_fallback", parsing_timeout=None
        )
    return parsed[0] if parsed and not isinstance(parsed[0], str) else None
