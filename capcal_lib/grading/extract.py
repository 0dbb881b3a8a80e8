r"""Find the final answer in a response; comparing it comes later and elsewhere.

Searched is only what follows the reasoning: a block of it that is not closed has no answer after
it. The order is that of :func:`extract`, and ``book/reference/grading.md`` says it by cases. A
number or a letter must be all of a phrase; a number that stands alone must be all of its line, or
what follows the last ``=``, "is" or "equals" in it, or the only number in a plain sentence that
ends with it and denies nothing; mathematics must be a number or one formula between delimiters.
Nothing else is an answer: no last number, no last capital letter."""

import re

from capcal_lib.grading import choice, number, short
from capcal_lib.grading.latex import LONGEST
from capcal_lib.manifests import Kind
from capcal_lib.questions.reasoning import answer_text

SEARCHED = 20_000  # characters at the end of a response
BARE_WORDS, BARE_CHARACTERS = 8, 60

_END_MARKS = ("<|return|>", "<|end|>", "<|im_end|>", "<|endoftext|>", "<|eot_id|>", "</s>")
# Control, format and surrogate characters can hide text and break files.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ud800-\udfff"
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def final_text(response: str) -> str | None:
    """Return the end of what follows the reasoning, without invisible characters and end marks;
    None where the reasoning does not end.

    >>> final_text("<think>7? no, 8</think>8<|im_end|>"), final_text("<think>7")
    ('8', None)
    """
    answer = answer_text(response)
    if answer is None:
        return None
    text = _INVISIBLE.sub("", answer[-SEARCHED:]).strip()
    while text.endswith(_END_MARKS):
        text = text[: text.rindex("<")].rstrip()
    return text


_A_BOX = re.compile(r"\\(?:boxed|fbox)")
_BOX = re.compile(r"\\(?:boxed|fbox)\s{0,3}\{|\\.|[{}]", re.DOTALL)
_BARE_BOX = re.compile(r"\\(?:boxed|fbox)(?![A-Za-z{])[ \t]{0,3}([^\s{}$\\]{1,100})")


def boxed(text: str) -> str | None:
    r"""Return the content of the last balanced, non-empty box.

    >>> boxed(r"\boxed{1} so \boxed{\frac{1}{2}} and \boxed{3"), boxed(r"\boxed 5.")
    ('\\frac{1}{2}', '5')
    """
    if not _A_BOX.search(text):
        return None
    best, best_start = None, -1
    open_braces: list[tuple[int, bool]] = []
    for match in _BOX.finditer(text):
        mark = match[0]
        if mark.endswith("{") and len(mark) != 2:
            open_braces.append((match.end(), len(mark) > 1))
        elif mark == "}" and open_braces:
            start, is_box = open_braces.pop()
            if is_box and start > best_start and (content := text[start : match.start()].strip()):
                best, best_start = content, start
    for match in _BARE_BOX.finditer(text):
        if match.start() > best_start:
            best, best_start = match[1].rstrip(".,;"), match.start()
    return best or None


_PHRASE = re.compile(
    r"""
      \banswer(?:\s(?:to|for)\s[^.:\n]{1,80}?)?[\s*_]{0,4}
      (?:\bis\b|\bare\b|\bwas\b|\b(?:would|should|must)\sbe\b|:|=)[\s*_]{0,4}:?
    | \b(?:correct|right|best)\s(?:option|choice)[\s*_]{0,4}(?:\bis\b|:)
    | ^[\#*_\ ]{0,8}final\sanswer[*_:\ ]{0,8}$
    | ^\#{4}\ (?=[-\d$.])
    """,
    re.VERBOSE | re.IGNORECASE | re.MULTILINE,
)
_CHOSEN = re.compile(
    r"""
      \b(?:option|choice)\s[\s*(]{0,3}(?-i:([A-J]))[)*]{0,3}\sis\s(?:the\s)?(?:correct|right|best)\b
      (?=\s?(?:[.,!*]|$|answer|option|choice|because|since))
    | (?<![\w'])[(*]{0,3}(?-i:([A-J]))[)*]{0,3}
      \sis\sthe\s(?:correct|right|best)\s(?:answer|option|choice)\b
    """,
    re.VERBOSE | re.IGNORECASE | re.MULTILINE,
)
_STATED = re.compile(
    r"(?:the\s)?(?:final\s|correct\s)?answer(?:\sis(?:\s?:)?|:)\s*(?=\S)", re.IGNORECASE
)
_MOST_PHRASES = 20
_NO_VALUE = re.compile(
    r"(?:not|correct|incorrect|wrong|right|helpful|clear|as follows|below|above|"
    r"given|written|expressed|rounded|found|obtained)\b",
    re.IGNORECASE,
)
_DISPLAY = re.compile(r"\s*(?:\$\$(.{1,500}?)\$\$|\\\[(.{1,500}?)\\\])", re.DOTALL)
_INLINE = re.compile(r"(?:\$([^$]+)\$|\\\((.+?)\\\))(.*)")
_REMARK = re.compile(r"(?:!|\s\([^()\d]{1,60}\))\s?[.!]?$")
_SENTENCE_END = re.compile(
    r"(\S+?)[.!?]\s+(?=\S)|,?\s+because\b|,\s+(?:which|since|as|not|rather|instead)\b"
)
_ABBREVIATIONS = frozenset(
    re.findall(r"\w+", "st dr mr mrs ms jr sr mt ft vs no prof gen col lt gov capt rev")
)


def _phrases(text: str, kind: Kind) -> list[str]:
    """Return what the phrases say the answer is, the last one first."""
    matches = list(_PHRASE.finditer(text))
    if kind == "choice":
        matches = sorted([*matches, *_CHOSEN.finditer(text)], key=lambda match: match.start())
    values = []
    for match in matches[-_MOST_PHRASES:][::-1]:
        if match.re is _CHOSEN:
            values.append(match[1] or match[2])
            continue
        rest = text[match.end() : match.end() + 2 * LONGEST]
        if display := _DISPLAY.match(rest):
            value = display[1] or display[2]
        else:
            lines = rest.strip(" \t\n*_:").splitlines()
            value = _first_sentence(lines[0]) if lines else ""
        value = value.strip()
        if value and not _A_BOX.search(value) and not _NO_VALUE.match(value):
            values.append(value)
    return values


def _first_sentence(line: str) -> str:
    for match in _SENTENCE_END.finditer(line):
        word = match[1]
        if word is None:
            return line[: match.start()]
        last = re.split(r"[\s.]", word)[-1].lower()
        if last not in _ABBREVIATIONS and not (len(last) == 1 and last.isalpha()):
            return line[: match.end(1)]
    return line


def _formula(value: str) -> str:
    """Take the leading formula of a value where only words follow it."""
    match = _INLINE.fullmatch(value)
    if match and not re.search(r"[\d$\\]|\b(?:or|and)\b", match[3]):
        return match[1] or match[2]
    return value


_WORD = re.compile(r"[^\W\d_]+")
_RESULT = re.compile(r"=|\bis\b|\bequals\b")
_ONE_NUMBER = re.compile(r"(?:\(?[^\W\d_]\S*\s(?<!\d\s)){3,14}\\?\$?(\d[\d,.]{0,20})[.!]?")
_DENIES = re.compile(r"n't\b|\b(?:not|never)\b", re.IGNORECASE)
_UNSURE = re.compile(
    r"n't\b|\b(?:not|never|no|than|least|most|over|under|between|or|from|step|question)\b",
    re.IGNORECASE,
)
_STATEMENT = re.compile(
    r"(?:it|the\s(?:\S+\s){1,6}?of\s(?:\S+\s){1,5}?)\s?is\s(?=\S)", re.IGNORECASE
)


_FORMULA = re.compile(r"\$[^$]+\$\.?|\$\$[^$]+\$\$|\\\(.+\\\)\.?|\\\[.+\\\]")
_BOLD = re.compile(r"(?<![\w)\]}])\*\*(?=\S)(.+?)(?<=\S)\*\*")
_POWER = r"(?<=[\w)\]}])\*\*(?=[\d({\\-]|[A-Za-z](?![A-Za-z]))|(?<=[\w)\]}]\s)\*\*(?=\s[\w({\\-])"
_NO_POWER = re.compile(rf"{_POWER}|(\*\*)")


def _unbold(text: str) -> str:
    """Take off markdown's bold, its pairs and what is left of one; the power ``x**2`` stays."""
    if text.count("**") == 3 and text.startswith("**") and text.endswith("**"):
        return text[2:-2]  # a power in bold
    return _NO_POWER.sub(lambda match: "" if match[1] else match[0], _BOLD.sub(r"\1", text))


def _bare_line(text: str) -> str | None:
    line = text.strip()
    if "\n" in line or _A_BOX.search(line) or len(line) > BARE_CHARACTERS + 4:  # four asterisks
        return None
    line = _unbold(line).strip("*_` ")
    return (
        line
        if 0 < len(line) <= BARE_CHARACTERS and len(_WORD.findall(line)) <= BARE_WORDS
        else None
    )


def extract(response: str, kind: Kind, aliases: tuple[str, ...] = ()) -> tuple[str | None, str]:
    r"""Extract the final answer as the response writes it, and say where it was found, or why there
    is none (None).

    For ``choice`` the ``aliases`` are full texts of the right option: an answer where they are all
    of the response.

    >>> extract(r"So $\boxed{\frac{1}{2}}$.", "math")
    ('\\frac{1}{2}', 'boxed')
    >>> extract("The answer depends on A.", "choice")
    (None, 'nothing extractable')
    """
    text = final_text(response)
    if text is None:
        return None, "unfinished reasoning"
    if not text:
        return None, "empty response"
    content = boxed(text)
    if content and (stated := _STATED.match(content)):
        content = content[stated.end() :]
    if content and (kind != "short" or short.normal(content)):
        return _tidied(content, kind), "boxed"
    for value in _phrases(text, kind):
        if kind in ("math", "number"):
            value = _formula(value)
        if kind == "number":
            value = _REMARK.sub("", value)
        if _reads(value, kind, aliases):
            return _tidied(value, kind), "phrase"
    if kind == "choice" and (opening := choice.opening(text)):
        return opening, "opening option"
    line = _bare_line(text)
    if kind == "number" and (sentence := _ONE_NUMBER.fullmatch(text)) and not _UNSURE.search(text):
        line = sentence[1]
    elif line is not None and kind == "number":
        line = "" if _DENIES.search(line) else _RESULT.split(line)[-1].strip()
    formula = kind != "math" or (line and (_FORMULA.fullmatch(line) or number.read(line)))
    if line is not None and formula and _reads(line, kind, aliases):
        return _tidied(line, kind), "bare line"
    return None, "nothing extractable"


def _reads(value: str, kind: Kind, aliases: tuple[str, ...]) -> bool:
    """Say whether a text reads as an answer of its kind from end to end."""
    if kind == "number":
        return number.read(value) is not None
    if kind == "choice":
        return choice.letter(value) is not None or short.equal(aliases, value)
    return bool(short.normal(value) if kind == "short" else value.strip())


def _tidied(value: str, kind: Kind) -> str:
    """Return the answer without decoration, cut one character over the limit."""
    if kind == "choice":
        text = choice.letter(value) or short.plain(value)
    elif kind == "short":
        text = short.plain(_STATEMENT.sub("", value, count=1) if _STATEMENT.match(value) else value)
    else:
        text = re.sub(r"(?<![\\.,;])[.,;]{1,9}$", "", " ".join(_unbold(value).split()))
    return (text or value)[: LONGEST + 1]
