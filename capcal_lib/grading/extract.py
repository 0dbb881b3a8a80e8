r"""Find the final answer of a response. Comparing answers is done elsewhere.

Only the text after the reasoning is searched. The answer is the first of these that exists: the
content of the last closed box; what the last label ("the answer is", ``####``, ``<answer>``)
introduces; a single short line; the number at which the last sentence arrives. Nothing else is an
answer, such as the last number of a text or a stray letter."""

import re

from capcal_lib.grading.compare import LONGEST, letter, option, read_number
from capcal_lib.manifests import Kind
from capcal_lib.questions.reasoning import answer_text

SEARCHED = 20_000  # characters at the end of a response
SHORT = 60  # characters of a line that is an answer
WORDS = 8  # of it

_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u200b-\u200f\u202a-\u202e\ud800-\udfff\ufeff]"
)
_END = re.compile(r"<\|\w+\|>|</s>|</answer>")
_BRACE = re.compile(r"(\\(?:boxed|fbox)\s?)?\{|\}|(\\[{}])")
_CONFIDENCE = re.compile(
    r"(?im)^[^\w\n]*(?:confidence|probability)[^\w\n]*:[^\w\n]*(?:\\boxed\{)?\d*\.?\d+\s?(?:\\?%)?\W*$"
)
_LABEL = re.compile(
    r"(?im)\b(?:answer(?:\s(?:to|for)\s[^.:\n]{1,80})?|guess)[\s*_]*(?:\b(?:is|was|would be)\b|:|=)"
    r"|\b(?:correct|right|best)\s(?:option|choice)\sis\b|^[ \t]*####|<answer>"
    r"|^[^\w\n]*final\sanswer[^\w\n]*$"
)
_OPTION = re.compile(
    r"(?m)^[^\w\n]*([A-J])(?:[.):]|[^\w\n]*$)|(?<=\s)(?:\(([A-J])\)|([A-J])\.)(?=[ \t]+\S)"
)
_SENTENCE = re.compile(
    r"(?<!\b[A-Z])(?<!\b(?:St|Dr|Mr|Ms|Jr|Sr|Mt|vs|No))(?<!\bMrs)[.!?](?:\s|$)|,?\sbecause\b"
    r"|,\s(?:which|since|as|not|rather|so)\b"
)
_STATED = re.compile(
    r".*(?:=|≈|:\s|\b(?:is|are|was|were|equals?|makes|has|have|gets?|costs?|(?:number|total)(?:\sof)?)\s)(.+)"
)
# "The capital of Chad is N'Djamena", where a name is asked for
_STATEMENT = re.compile(r"(?i)^(?:it|the\s(?:\S+\s){1,6}?of\s.+?)\s(?:is|was)\s(?=\S)")


def boxed(text: str) -> str | None:
    r"""Return the content of the last closed box that is not empty.

    >>> boxed(r"\boxed{1} so \boxed{\frac{1}{2}}, \boxed{}, \boxed{3")
    '\\frac{1}{2}'
    """
    opened: list[int | None] = []  # where the content of each open brace begins, if of a box
    last = None
    for match in _BRACE.finditer(text):
        if match[0] == "}":
            start = opened.pop() if opened else None
            if start is not None and text[start : match.start()].strip():
                last = text[start : match.start()].strip()
        elif match[2] is None:
            opened.append(match.end() if match[1] else None)
    return last


def extract(response: str, kind: Kind, aliases: tuple[str, ...] = ()) -> tuple[str | None, str]:
    r"""Extract the final answer as the response writes it, and say where it was found.

    If there is no answer, the first value is None and the second says why. ``aliases`` are texts of
    the right option, which a line may give in place of the letter.

    >>> extract(r"So $\boxed{\frac{1}{2}}$.", "math"), extract("The answer is A.", "choice")
    (('\\frac{1}{2}', 'boxed'), ('A', 'phrase'))
    >>> extract("It depends on A.", "choice"), extract("So 2 * 3 = 6 pens.", "number")
    ((None, 'nothing extractable'), ('6 pens', 'last sentence'))
    """
    answer = answer_text(response)
    if answer is None:
        return None, "unfinished reasoning"
    parts = _END.split(_INVISIBLE.sub("", answer[-SEARCHED:]))
    text = next(filter(None, map(str.strip, parts)), "")
    text = _CONFIDENCE.sub("", text).strip() or text
    if not text:
        return None, "empty response"
    value, where = _find(text, kind, aliases)
    if value and len(value) > LONGEST:
        value = f"{value[: LONGEST - 1]}…"
    return value, where


def _find(text: str, kind: Kind, aliases: tuple[str, ...]) -> tuple[str | None, str]:
    """Find the answer in a final text, and say where."""
    if content := boxed(text):
        return content, "boxed"
    labels = [*_LABEL.finditer(text)]
    for label in reversed(labels):
        line = text[label.end() :].lstrip(" \t\n*_:$").partition("\n")[0][: 2 * LONGEST]
        value = _tidied(_SENTENCE.split(line, maxsplit=1)[0])
        if value.lower().startswith("not "):
            continue
        if kind == "short":
            value = _STATEMENT.sub("", value)
        if _reads(value, kind):
            return value, "phrase"
    line = _tidied(text)
    if kind == "choice" and (chosen := letter(line.partition("\n")[0])):
        options = {name for names in _OPTION.findall(text) for name in names if name}
        if options <= {chosen}:  # not a list of them
            return chosen, "opening option"
        return None, "nothing extractable"
    is_short = "\n" not in line and len(line) <= SHORT and len(line.split()) <= WORDS and not labels
    if kind == "short":
        line = _tidied(_STATEMENT.sub("", line))
    if kind == "choice":
        is_short = is_short and option(line) in map(option, aliases)
    if is_short and _reads(line, kind) and (kind != "math" or read_number(line)):
        return line, "bare line"
    if kind in ("number", "math"):
        last = _SENTENCE.split(text.splitlines()[-1][-LONGEST:].rstrip(".! "))[-1]
        stated = _STATED.match(_tidied(last))
        if stated and read_number(value := _tidied(stated[1])):
            return value, "last sentence"
    if is_short and _reads(line, kind):
        return line, "bare line"
    return None, "nothing extractable"


def _reads(value: str, kind: Kind) -> bool:
    """Tell whether a text reads as an answer of its kind."""
    if kind == "number":
        return read_number(value) is not None
    return any(map(str.isalnum, value))


def _tidied(text: str) -> str:
    return text.strip().strip("*_$#\"'` ").rstrip(".,;!。").strip("*_$#\"'` ")
