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
        **dict.fromkeys("−–‐‑", "-"),
        **dict.fromkeys("\u00a0\u2009\u202f\t\r\n~", " "),
        "×": r"\times ",
        "·": r"\cdot ",
        "π": r"\pi ",
        "√": r"\sqrt ",
        "²": "^2",
        "³": "^3",
    }
)
_TEXT = re.compile(r"\\(?:text\w*|mathrm|mbox)\s?\{([^{}]*)\}(?:\^\{?[23]\}?)?")
_SPELLINGS = (
    (r"\\(?:left|right)(?![a-z])\.?|\\?\$|\\[()\[\]!]|\*\*", ""),
    (r"(?<!\\)\\[,;:> ]", " "),
    (r"\\[dtc]frac", r"\\frac"),
    (r"\\frac\s?(\d)\s?(\d)", r"\\frac{\1}{\2}"),
    (r"\s?(?:\^\s?\{?\s?\\circ\s?\}?|°)", r"\\text{ degrees}"),
    (r"\^\s?\{?\s?(?:\\\w+\{)?(st|nd|rd|th)\}*", r"\1"),
    (r"\s+", " "),
)


def clean(text: str) -> str:
    r"""Write mathematics in one spelling.

    >>> clean(r"$\dfrac12\,$."), clean(r"\left( −1, 2 \right]")
    ('\\frac{1}{2}', '( -1, 2 ]')
    """
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
_NAME = re.compile(r"(?:\\?[A-Za-z]+(?:_\{?\w\}?|\(\w\))?|[^A-Za-z,;]*)\s?=\s?([^=;]*)")
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
      (?: [\s.,'()/-]* [^\W\d_]++ (?: [\s.,'()/-]+ [^\W\d_]++ )* )? )
    [\s.)]*
    """
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
    text = clean(text)
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
    words = " ".join(match["words"].lower().strip(" .,()").split())
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
_GROUP = re.compile(r"[(\[{][^()\[\]{}]*[)\]}]")
_BETWEEN = re.compile(r"[,;]?\s?(?<![a-zA-Z\\])(?:or|and)(?![a-zA-Z])|[,;]|\\cup")
_INEQUALITY = re.compile(r"[<>]|\\[lg]eq?(?![a-z])")
_ALIKE = ({"", "{}"}, {"", "()"})  # a list without brackets may be a set, or a tuple
_ASSIGNED = re.compile(r"^\\?[A-Za-z]+(?:\(\w\)|_\{?\w\}?)?\s?(?:=|\\in(?![a-z]))")
_UNIT = re.compile(rf"(?<=\S)\s?{_TEXT.pattern}\s?$")


def mathematics(extracted: str, *golds: str) -> bool:
    r"""Compare with Math-Verify. This may take long, so only workers should call it.

    >>> mathematics(r"\frac{x}{2}", "0.5x"), mathematics("(1, 2)", "(2, 1)")
    (True, False)
    >>> mathematics("2, 1", "1, 2"), mathematics(r"[-\infty, 0]", r"(-\infty, 0]")
    (True, False)
    """
    with naming_extra():
        from math_verify import verify

    answer = clean(extracted)
    for gold in map(clean, golds):
        if _PROSE.fullmatch(without_commands(gold)):
            if option(gold) == option(answer) or letter(gold) == letter(answer) is not None:
                return True
            continue
        # Math-Verify takes the right side of an equation.
        equations = {"=" in _ASSIGNED.sub("", text) for text in (gold, answer)}
        alike = _alike(gold, answer)
        if _BY_TEXT.search(gold + answer) or len(equations) > 1 or not alike:
            continue
        one, two = (parse(_UNIT.sub("", text)) for text in alike)
        settings: Any = {"float_rounding": 15, "timeout_seconds": None}
        readable = one is not None and two is not None
        if readable and verify([one], [two], allow_set_relation_comp=True, **settings):
            return True
    return False


def _alike(gold: str, answer: str) -> tuple[str, str] | None:
    """Return two answers ready to be compared; None if they have not the same brackets and as many
    members. Math-Verify would compare a tuple with a set, and sets without what is there twice.
    """
    (shape, count), (other, others) = members(gold), members(answer)
    if 1 in (count, others) and _INEQUALITY.search(gold + answer):  # it may stand for an interval
        return gold, answer
    if count != others or not (shape == other or count == 1 or {shape, other} in _ALIKE):
        return None
    if count > 1 and {shape, other} == {"", "()"}:
        gold, answer = (gold if shape else f"({gold})"), (answer if other else f"({answer})")
    return gold, answer


def members(text: str) -> tuple[str, int]:
    r"""Return the brackets around an answer, and the number of its members.

    >>> members("[1, 2)"), members(r"\{(1, 2), (3, 4)\}"), members(r"\frac{1}{2} or 3")
    (('[)', 2), ('{}', 2), ('', 2))
    """
    flat = _ASSIGNED.sub("", without_commands(text)).replace("\\{", "{").replace("\\}", "}").strip()
    while not _GROUP.fullmatch(flat):
        inner = _GROUP.sub("", flat)
        if inner == flat:
            return "", len(_BETWEEN.findall(flat)) + 1
        flat = inner.strip()
    return flat[0] + flat[-1], len(_BETWEEN.findall(flat)) + 1


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
