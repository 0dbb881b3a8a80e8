r"""Find the final answer in a response; comparing it comes later and elsewhere.

Searched is only what follows the reasoning: a block of it that is not closed has no answer after
it. The order is that of :func:`extract`, and ``book/reference/grading.md`` says it by cases. A box
counts unless it is denied, a phrase only where its clause affirms
(:mod:`capcal_lib.grading.clauses`). A number or a letter must be all of a phrase; a number that
stands alone must be all of its line, or what follows the last ``=``, "is" or "equals" in it, or the
only number in a plain sentence that ends with it, with nothing that governs it; mathematics must be
a number or one formula between delimiters. Nothing else is an answer: no last number, no last
capital letter."""

import re
from typing import NamedTuple

from capcal_lib.grading import choice, clauses, number, short
from capcal_lib.grading.latex import LONGEST
from capcal_lib.manifests import Kind
from capcal_lib.questions.reasoning import answer_text

SEARCHED = 20_000  # characters at the end of a response
BARE_WORDS = 8
BARE_CHARACTERS = 60

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
_JOINT = re.compile(r"[\s$,.*]{0,6}\b(or|and)\b[\s$*]{0,6}")
_BARE_BOX = re.compile(r"\\(?:boxed|fbox)(?![A-Za-z{])[ \t]{0,3}([^\s{}$\\]{1,100})")


class _Box(NamedTuple):
    content: str
    start: int
    end: int


def boxed(text: str) -> str | None:
    r"""Return the content of the last balanced, non-empty box that is not denied, and with it that
    of one before it that it is joined to by "or" or "and".

    >>> boxed(r"\boxed{1} so \boxed{\frac{1}{2}} and \boxed{3"), boxed(r"\boxed 5.")
    ('\\frac{1}{2}', '5')
    >>> boxed(r"\boxed{1}, not \boxed{2}."), boxed(r"\boxed{1} or \boxed{2}")
    ('1', '1 \\text{ or } 2')
    """
    if not _A_BOX.search(text):
        return None
    answer = ""
    after: _Box | None = None
    for box in reversed(_boxes(text)):
        if clauses.denied_box(text, box.start, box.end):
            continue
        joint = _JOINT.fullmatch(text[box.end : after.start]) if after else None
        if after and not joint:
            break
        answer = box.content + (rf" \text{{ {joint[1]} }} " if joint else "") + answer
        after = box
    return answer or None


def _boxes(text: str) -> list[_Box]:
    """Return the outermost balanced boxes with something in them, in order."""
    found: list[_Box] = []
    open_braces: list[re.Match[str]] = []
    for match in _BOX.finditer(text):
        mark = match[0]
        if mark.endswith("{") and len(mark) != 2:
            open_braces.append(match)
        elif mark == "}" and open_braces:
            opening = open_braces.pop()
            content = text[opening.end() : match.start()].strip()
            if len(opening[0]) > 1 and content:
                box = _Box(content, opening.start(), match.end())
                if found and found[-1].start > box.start:
                    box = found[-1]
                while found and found[-1].start > opening.start():
                    found.pop()
                found.append(box)
    for match in _BARE_BOX.finditer(text):
        found.append(_Box(match[1].rstrip(".,;"), match.start(), match.end()))
    return sorted(found, key=lambda box: box.start)


_PHRASE = re.compile(
    r"""
      \bans(?:wer)?(?:\s(?:to|for)\s[^.:\n]{1,80}?)?[\s*_]{0,4}
      (?:\bis\b|\bare\b|\bwas\b|\b(?:would|should|must)\sbe\b|:|=)
      (?:\s(?:thus|therefore|hence|then|simply|just|indeed)\b)?[\s*_]{0,4}:?
    | \b(?:correct|right|best)\s(?:option|choice)[\s*_]{0,4}(?:\bis\b|:)
    | ^[\#*_\ ]{0,8}final\sanswer[*_:\ ]{0,8}$
    | ^\#{4}\ (?=[-\d$.])
    """,
    re.VERBOSE | re.IGNORECASE | re.MULTILINE,
)
_CHOSEN = re.compile(
    r"""
      \b(?:option|choice)\s[\s*(]{0,3}(?-i:([A-J]))[)*]{0,3}\sis\s(?:the\s)?(?:correct|right|best)\b(?=\s?(?:[.,!*]|$|answer|option|choice|because|since))
    | (?<![\w'])[(*]{0,3}(?-i:([A-J]))[)*]{0,3}\sis\sthe\s(?:correct|right|best)\s(?:answer
    |option|choice)\b
    | (?:\bI(?:'d|'ll|\swould|\swill)?\s(?:choose|pick|select|go\swith)|^choose|^it(?:'s
    |\sis))\s(?:option\s|answer\s)?[(*]{0,3}(?-i:([A-J]))\b[)*]{0,3}(?=\s?(?:[.,!]|$))
    """,
    re.VERBOSE | re.IGNORECASE | re.MULTILINE,
)
_STATED = re.compile(
    r"^(?:the\s)?(?:final\s|correct\s)?answer(?:\sis(?:\s?:)?|:)\s*(?=\S)", re.IGNORECASE
)
_LEADING_TEXT = re.compile(
    r"^\\(?:text\w*|mathrm|mbox)\s*\{\s*((?:the\s)?(?:final\s|correct\s)?answer\b[^{}]*)\}",
    re.IGNORECASE,
)
_CONCLUSION = re.compile(r"\b(?:so|thus|therefore|hence|finally|final|conclu\w+)\b|####")
_MOST_PHRASES = 100
_NO_VALUE = re.compile(
    r"(?:not|correct|incorrect|wrong|right|helpful|clear|as follows|below|above|"
    r"given|written|expressed|rounded|found|obtained)\b",
    re.IGNORECASE,
)
_DISPLAY = re.compile(r"\s*(?:\$\$(.{1,500}?)\$\$|\\\[(.{1,500}?)\\\])", re.DOTALL)
_INLINE = re.compile(r"(?:\$([^$]+)\$|\\\((.+?)\\\))(.*)")
_REMARK = re.compile(r"(?:!|\s\([^()\d]{1,60}\))\s?[.!]?$")
_SENTENCE_END = re.compile(
    r"[.!?]\s+(?=\S)|,?\s+because\b|,\s+(?:which|since|as|not|rather|instead)\b"
)
_ABBREVIATIONS = frozenset(
    re.findall(r"\w+", "st dr mr mrs ms jr sr mt ft vs no prof gen col lt gov capt rev")
)


def _phrases(text: str, kind: Kind, aliases: tuple[str, ...]) -> str | None:
    """Return what the phrases affirm that the answer is: the first of them, but a correction takes
    the place of what it corrects, and a conclusion that of what led to it.
    """
    matches = list(_PHRASE.finditer(text))
    if kind == "choice":
        matches = sorted([*matches, *_CHOSEN.finditer(text)], key=lambda match: match.start())
    answer = None
    concluded = False
    end = 0
    for match in matches[:_MOST_PHRASES]:
        if not clauses.affirms(text, match.start()):
            continue
        value = _value(text, match, kind)
        if value is None or not _reads(value, kind, aliases):
            continue
        clause = clauses.clause_before(text, match.start()) + match[0].lower()
        concludes = bool(_CONCLUSION.search(clause))
        if answer is None or clauses.corrects(text[end : match.start()]) or concludes > concluded:
            answer = value
            concluded = concludes
        end = match.end()
    return answer


def _value(text: str, match: re.Match[str], kind: Kind) -> str | None:
    """Return what a phrase says, to its sentence's end; None where that denies it."""
    if match.re is _CHOSEN:
        return next(group for group in match.groups() if group)
    rest = text[match.end() : match.end() + 2 * LONGEST]
    if display := _DISPLAY.match(rest):
        value = display[1] or display[2]
        remark = ""
    else:
        line = next(iter(rest.strip(" \t\n*_:").splitlines()), "")
        value = _first_sentence(line)
        remark = re.split(r"[.!]\s", line[len(value) :], maxsplit=1)[0]
    value = re.sub(r"[*_]+(?=[.!]?$)", "", value.strip())
    asks = (value + remark[:1]).endswith("?") and not _QUESTION.match(value)
    denied = asks or clauses.denies_after(remark)
    if not value or denied or _A_BOX.search(value) or _NO_VALUE.match(value):
        return None
    if kind in ("math", "number"):
        value = _formula(value)
    return _REMARK.sub("", value) if kind == "number" else value


def _first_sentence(line: str) -> str:
    for match in _SENTENCE_END.finditer(line):
        if match[0][0] not in ".!?":
            return line[: match.start()]
        last = re.split(r"[\s.]", line[: match.start()])[-1].lower()
        if match.start() and last not in _ABBREVIATIONS and not (len(last) == 1 and last.isalpha()):
            return line[: match.start()]
    return line


def _formula(value: str) -> str:
    """Take the leading formula of a value where only words follow it."""
    match = _INLINE.fullmatch(value)
    if match and not re.search(r"[\d$\\]|\b(?:or|and)\b", match[3]):
        return match[1] or match[2]
    return value


_WORD = re.compile(r"[^\W\d_]+")
_RESULT = re.compile(r"=|\bis\b|\bequals\b")
_ONE_NUMBER = re.compile(
    r"(?:\(?[^\W\d_]\S*\s(?<!\d\s)){1,13}(?:is|are|was|were|be|equals|makes|gives|get|costs?|has|"
    r"have|totals|number|total|"
    r"(?:number|total|sum|to|equal) (?:of|to|is))\s(?:(?:also|just|only|simply|exactly|now|then"
    r"|still)\s)?\\?\$?(\d[\d,.]{0,20})[.!]?"
)
_DENIES = re.compile(r"n't\b|\b(?:not|never|cannot)\b", re.IGNORECASE)
# What makes another number of the one that stands at the end of a sentence, or none.
_UNSURE = re.compile(
    r"n't\b|\b(?:not|never|cannot|no|than|least|most|over|under|between|or|from|step|question|if|"
    r"would|false|wrong)\b",
    re.IGNORECASE,
)
_GOVERNS = re.compile(
    r"\b(?:half|third|quarter|double|twice|triple|thrice|square|cube|root|power|negative|minus|"
    r"opposite|inverse|reciprocal|"
    r"factorial|multiple|fraction|percent|logarithm|log|wrong|incorrect|false|unlike|if|would|"
    r"than)\b",
    re.IGNORECASE,
)
_QUESTION = re.compile(  # the name of a song may be one
    r"\W{0,3}(?:who|what|why|where|when|which|how|do|does|did|are|is|don't|can|will|would|shall)\b",
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
    if 0 < len(line) <= BARE_CHARACTERS and len(_WORD.findall(line)) <= BARE_WORDS:
        return line
    return None


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
    if content:
        content = _STATED.sub("", _LEADING_TEXT.sub(r"\1", content, count=1), count=1)
    if content and (kind != "short" or short.normal(content[:LONGEST])):
        return _tidied(content, kind), "boxed"
    value = _phrases(text, kind, aliases)
    if value is not None:
        return _tidied(value, kind), "phrase"
    if kind == "choice" and (opening := choice.opening(text)):
        return opening, "opening option"
    line = _bare_line(text)
    if kind == "number":
        line = _number_stated(text, line)
    formula = kind != "math" or (line and (_FORMULA.fullmatch(line) or number.read(line)))
    if line is not None and formula and _reads(line, kind, aliases):
        return _tidied(line, kind), "bare line"
    return None, "nothing extractable"


def _number_stated(text: str, line: str | None) -> str:
    """Return what a plain sentence, or a short line, says that it all comes to; nothing where it
    denies that, or where words make another number of it.
    """
    phrase = _PHRASE.search(text)
    if phrase and not clauses.affirms(text, phrase.start()):
        return ""
    if sentence := _ONE_NUMBER.fullmatch(text):
        if _UNSURE.search(text) or _GOVERNS.search(text):
            return ""
        return sentence[1]
    *before, last = _RESULT.split(line or "")
    clause = re.split(r"[.!?;]\s", " ".join(before))[-1]
    if _DENIES.search(line or "") or _GOVERNS.search(clause):
        return ""
    return last.strip()


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
