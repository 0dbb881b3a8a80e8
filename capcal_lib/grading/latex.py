r"""One spelling for what LaTeX and Unicode spell in many ways."""

import re
from collections.abc import Sequence

LONGEST = 500  # characters of an extracted answer; the longest answer of MATH has 159
MOST_DIGITS = 100  # of one number

_COMMANDS = (
    "times cdot cdot div pm mp pi theta infty sqrt setminus le ge neq approx in cup emptyset "
    "dots circ"
)
_CHARACTERS = str.maketrans(
    {
        **dict.fromkeys("−–‒﹣", "-"),
        **dict.fromkeys("\u00a0\u2007\u2009\u200a\u202f\t\r\n~", " "),
        **dict.fromkeys("⁄∕", "/"),
        **dict.fromkeys("“”‘’", "'"),
        **{mark: f"^{power} " for power, mark in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")},
        **{mark: rf"\frac{{{n}}}{{{d}}}" for mark, n, d in ("½12", "⅓13", "⅔23", "¼14", "¾34")},
        **{
            mark: rf"\{name} "
            for mark, name in zip("×·⋅÷±∓πθ∞√∖≤≥≠≈∈∪∅…°", _COMMANDS.split(), strict=True)
        },
        "ℝ": r"\mathbb{R}",
    }
)
# Colours, sizes and fonts that say nothing, around a text or before it.
_DRESS = (
    (
        r"\\(?:textcolor|colorbox)\s?(?:\[\w*\])?\{[^{}]*\}\s?(?=\{)|\\color\s?(?:\[\w*\])?\{[^{}]*\}",
        "",
    ),
    (r"\\fcolorbox\s?\{[^{}]*\}\s?\{[^{}]*\}\s?(?=\{)", ""),
    (r"\\(?:underline|uline|emph|bm|pmb|boldsymbol|ensuremath)\s?(?=\{)", ""),
    (
        r"\\(?:tiny|scriptsize|footnotesize|small|normalsize|[lL]arge|LARGE|[hH]uge|bf|it|rm|sf|tt|em|"
        r"bfseries|itshape|rmfamily|sffamily|ttfamily|textstyle|scriptstyle|displaystyle|boldmath|"
        r"centering|hfill|null|strut|mathstrut|limits)(?![A-Za-z])\s?",
        "",
    ),
    (r"\\(?:phantom|hspace|vspace|label|tag)\*?\s?\{[^{}]*\}", ""),
)
_BALANCED = r"((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)"
_BRACES = re.compile(rf"^\s*\{{{_BALANCED}\}}\s*$")
_FONT = re.compile(  # around a formula; around words it says that they are words
    rf"^\s*\\(?:text|math)(?:bf|it|sf|tt|rm)?\s?\{{(?=[^{{}}]*\\[A-Za-z]){_BALANCED}\}}\s*$"
)


def undressed(text: str) -> str:
    r"""Take colours, sizes and fonts from an expression, and the braces that were around it all.

    >>> undressed(r"\color{red}{5}"), undressed(r"{\large \bf 5}"), undressed(r"\textbf{\pi}")
    ('5', '5', '\\pi')
    """
    if "\\" in text:
        text = respelt(text, _DRESS)
    while whole := _BRACES.match(text) or _FONT.match(text):
        text = whole[1]
    return text.strip()


_BLANKS = ((r"\s+", " "),)
_SPELLINGS = (
    (r"(?<=\d)(?:\{,\}\s?|,\s?\\!\s?)(?=\d{3})", ""),  # 10{,}080 and 10,\!080
    (r"(\\\\)\s?\[-?[\d.]+\s?[a-z]{2}\]", r"\1"),
    (r"\\!", ""),
    (
        r"\b(?:US|AU|CA|NZ|HK|[RAC])\s?\$(?=\s?\d)|^\s*\$(?=\s?[\d.][^$]*$)",
        r"\\$",
    ),  # a dollar, not a delimiter
    (r"\\(?:left|right)\s*\.|\\(?:left|right|[bB]igg?[lrm]?)(?![A-Za-z])", ""),
    (r"(?<!\\)((?:\\\\)*)(?:\\[()\[\]]|\$)", r"\1"),  # delimiters of mathematics; \$ stays
    (r"(?<!\\)\\[,;:> ]|\\(?:q?quad|thinspace)(?![A-Za-z])", " "),
    (r"\\[dtc]frac(?![A-Za-z])", r"\\frac"),
    (r"\\[dt]binom", r"\\binom"),
    (r"\\binom\s*(\d)\s*(\d)", r"\\binom{\1}{\2}"),
    (r"^([^{}\\]+)\\choose([^{}\\]+)$", r"\\binom{\1}{\2}"),
    (r"\{([^{}\\]+)\\choose([^{}\\]+)\}", r"\\binom{\1}{\2}"),
    (r"\{([^{}\\]+)\\over(?![A-Za-z])([^{}\\]+)\}", r"\\frac{\1}{\2}"),
    (r"^([^{}\\]+)\\over(?![A-Za-z])([^{}\\]+)$", r"\\frac{\1}{\2}"),
    (r"\{:\}", ":"),
    (r"\\langle(?![A-Za-z])", "("),
    (r"\\rangle(?![A-Za-z])", ")"),
    (r"\\(?:lor|vee)(?![A-Za-z])", r"\\text{ or }"),
    (r"\\begin\s*\{array\}\s*\{[clr|\s]*\}", r"\\begin{matrix}"),
    (r"\\end\s*\{array\}", r"\\end{matrix}"),
    (r"\\mathbb\s*\{?\s*R\s*\}?", r"(-\\infty,\\infty)"),
    (
        r"\\(?:text\w*|mbox|hbox|mathrm|mathbf|mathit|mathsf|operatorname|boldsymbol)\*?\s*(?=\{)",
        r"\\text",
    ),
    (r"\\text\{\s*(\\[$%])?\s*\}", r"\1 "),
    (r"\{\\text\{\s*(\d+)\s*\}\s*\}|(?<=_)\\text\{\s*(\d+)\s*\}", r"{\1\2}"),
    (
        r"(\\(?:sin|cos|tan|cot|sec|csc)\s*[({]?\s*)([\d.]+)\s*\^\s*\{?\s*\\circ(?![A-Za-z])\s*\}?",
        r"\1\\frac{\2\\pi}{180}",
    ),
    (r"(\.\d*)\((\d+)\)", r"\1\\overline{\2}"),
    (r"(?:\{\})?_\s?\{?(\d+)\}?\s?C\s?_\s?\{?(\d+)\}?", r"\\binom{\1}{\2}"),  # {}_9C_6
    (r"(?<![A-Za-z\\])C\s?\(\s*(\d+)\s*,\s*(\d+)\s*\)", r"\\binom{\1}{\2}"),
    (r"\^\s*(?:\\circ|\{\s*\\circ\s*\})|\\(?:degree|circ)(?![A-Za-z])", r"\\text{ degrees}"),
    (r"(?<=\d)\s*\^?\s*(?:\{|\\text\{)+\s*(st|nd|rd|th)\s*\}+", r"\1"),  # 12^{\text{th}}
    (r"(\.\d*)\\(?:dot|bar)\s*\{?(\d+)\}?", r"\1\\overline{\2}"),
    (r"\\(?:l|c|dotsc|dotsb)?dots\w?(?![A-Za-z])|\.{3}", r"\\dots "),
    (r"(?<!\\)%", r"\\%"),
    (r"\\leq(?:slant)?(?![A-Za-z])|<=", r"\\le "),
    (r"\\geq(?:slant)?(?![A-Za-z])|>=", r"\\ge "),
    (r"\\ne(?![A-Za-z])", r"\\neq"),
    (r"\\lt(?![A-Za-z])", "<"),
    (r"\\gt(?![A-Za-z])", ">"),
    (r"\\times(?![A-Za-z])", r"\\cdot"),
    (r"(?<=\})\*+|\*+(?=\\text)|^\*+|\*+$", ""),
    (r"\*", r"\\cdot "),
    (r"\\(?:varnothing)(?![A-Za-z])|\\\{\s*\\\}", r"\\emptyset"),
    (r"(?<![A-Za-z\\])(sqrt|pi|infinity|sin|cos|tan|log|ln|theta)(?![A-Za-z])", r"\\\1"),
    (r"\\infinity|\\text\{infinity\}", r"\\infty"),
    (r"\+\s*\\infty", r"\\infty"),
    (r"\\sqrt\s*\(([^()]*)\)", r"\\sqrt{\1}"),
    (r"\\sqrt\s*(\d+|[A-Za-z])", r"\\sqrt{\1}"),
    (r"\\frac\s*(\d)\s*(\d)", r"\\frac{\1}{\2}"),
    (r"\\frac\s*(\d)\s*(?=\{)", r"\\frac{\1}"),
    (r"(\\frac\s*\{[^{}]*\})\s*(\d|[A-Za-z])", r"\1{\2}"),
    (r"\(?\b([A-F]*\d[0-9A-F]*)\)?\s*_\s*\{?\s*(\d{1,2})\s*(?:\}|(?=\W|$))", r"\1_\2 "),
    (r"^\s*\\begin\s*\{[a-z]*matrix\}([^&]*?)(?:\\\\\s*)?\\end\s*\{[a-z]*matrix\}\s*$", r"(\1)"),
    (r"\\\\(?=[^&]*\)$)", ","),
    (
        r"^\s*\\\{(?:\s?[a-z]\s?(?:\\mid|\||:|\\vert))?(?!\s*\\emptyset)((?:[^,\\]|\\[A-Za-z])*)\\\}\s*$",
        r"\1",
    ),
    (r"^\\text\{([^{}]*[\d,][^{}]*)\}$", r"\1"),
    (r"(?<![\w}_^])\s?\\text\{\s*(-?\d[\d.,]*)\s*\}", r" \1"),
    *_BLANKS,
)
# Without any of these, only blanks are spelt in several ways.
_LATEX_SIGNS = re.compile(
    r"[\\$~%<>*^{(.]|(?<![A-Za-z])(?:sqrt|pi|infinity|sin|cos|tan|log|ln|theta)(?![A-Za-z])"
)


def clean(text: str) -> str:
    r"""Spell an expression in one way: fractions, spaces, delimiters, units as ``\text``, dots.

    >>> clean(r"$\dfrac43\,\mathrm{cm}$"), clean(r"11,\! 111"), clean("−½")
    ('\\frac{4}{3} \\text{cm}', '11111', '-\\frac{1}{2}')
    """
    text = undressed(text).translate(_CHARACTERS)
    text = respelt(text, _SPELLINGS if _LATEX_SIGNS.search(text) else _BLANKS)
    return text.strip().rstrip(".,;").strip()


_APPROXIMATELY = re.compile(r"\s*\\approx(?![A-Za-z])\s*")
_NAME = re.compile(r"\\?[A-Za-z]+(?:_\s?(?:\w|\{\w+\}))?|")


def alternatives(text: str) -> list[str]:
    r"""Return the answers that a cleaned text gives at once: a value and its decimals.

    >>> alternatives(r"\sqrt{2} \approx 1.41"), alternatives(r"x \approx 5"), alternatives("5")
    (['\\sqrt{2}', '1.41'], ['x = 5'], ['5'])
    """
    first, *others = _APPROXIMATELY.split(text)
    if others and _NAME.fullmatch(first):
        return [f"{first} = {other}" if first else other for other in others]
    return [first, *others]


TEXT_COMMAND = re.compile(r"\\text\s?\{([^{}]*)\}")


def unwrapped(text: str) -> str:
    r"""Take texts out of their ``\text{}``, spaces around them.

    >>> unwrapped(r"\text{km}/\text{h}").split()
    ['km', '/', 'h']
    """
    while (bare := TEXT_COMMAND.sub(r" \1 ", text)) != text:
        text = bare
    return text


def respelt(text: str, spellings: Sequence[tuple[str, str]]) -> str:
    """Replace pattern after pattern."""
    for pattern, replacement in spellings:
        text = re.sub(pattern, replacement, text)
    return text
