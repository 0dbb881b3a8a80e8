r"""Find the final answer of a response. Comparing answers is done elsewhere.

Only the text after the reasoning and before a new turn is searched. The answer is the first of
these that exists: the text between tags or in JSON; the content of the last closed box; what the
last label ("the answer is", ``####``) introduces; a single short line; the number at which the last
sentence arrives. Nothing else is an answer, such as the last number of a text or a stray letter."""

import json
import re

from capcal_lib.grading.compare import LONGEST, letter, option, read_number
from capcal_lib.manifests import Kind
from capcal_lib.questions.reasoning import answer_text

SEARCHED = 20_000  # characters at the end of a response
SHORT = 60  # characters of a line that is an answer
WORDS = 8  # of it

_INVISIBLE = re.compile(  # control, format and surrogate characters can hide text and break files
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufe0f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_FULL_WIDTH = {mark: mark - 0xFEE0 for mark in range(0xFF01, 0xFF5F)} | {0x3002: "."}
_COMMENT = re.compile(  # and what is not shown
    r"(?s)<!--.*?(?:-->|\Z)|(?m:^[ \t]*%.*$)|\\[hv]?phantom\s?\{(?:[^{}]|\{[^{}]*\})*\}"
)
_TURN = re.compile(
    r"(?im)<\|\w+\|>|</s>"
    r"|\[INST\]|<start_of_turn>|###\s?(?:Instruction|Human|User)\b|^(?:Human|User):"
    r"|(?<=\n\n)(?:Problem|Question|Q):"
)
_USER_TURN = re.compile(  # a conversation that the response makes up
    r"(?ims)\A(?:<\|user\|>|(?:### ?)?(?:Human|User):)"
    r".*?(?:<\|assistant\|>|^(?:### ?)?(?:Assistant|AI):)"
)
_CONFIDENCE = re.compile(
    r"(?im)^[^\w\n]*(?:confidence|probability)[^\w\n]*:[^\w\n]*(?:\\boxed\{)?\d*\.?\d+\s?(?:\\?%)?\W*$"
)
_TAGGED = re.compile(r"(?is)<(final_?)?answer>(?P<inside>.*?)(?:</(?:final_?)?answer>|\Z)")
_IN_JSON = re.compile(r"""(?i)"(?:final_?|correct_?)?answer"\s*:\s*("(?:[^"\\]|\\.)*"|-?[\d.]+)""")
_COMMAND = re.compile(r"(?<!\\)\\(?=[A-Za-z]{2})")  # of LaTeX, which JSON would double
_BRACE = re.compile(r"(\\(?:boxed|fbox)\s{0,3})?\{|\}|(\\[{}])")
_BOX = re.compile(r"\\(?:boxed|fbox)\s?\{")
_BARE_BOX = re.compile(r"\\boxed\s([^\s{}$\\.,]+)")
_LABEL = re.compile(
    r"(?im)(?:\b(?P<before>\w+(?:n't)?\s)?(?:answer(?:\s(?:to|for)\s[^.:\n]{1,80})?|guess)[\s*_]*"
    r"(?:\bis\b|\bwas\b|\bwould be\b|:|=)"
    r"|\b(?:correct|right|best)\s(?:option|choice)\sis\b|^[ \t]*####"
    r"|^[^\w\n]*final\sanswer[^\w\n]*$)"
)
_DENIALS = {"incorrect", "wrong", "false", "not", "other", "previous"}
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


def final_text(response: str) -> str | None:
    """Return the end of the text after the reasoning and before a new turn, without comments,
    invisible characters, end marks and a turn of the user; None if the reasoning does not end.

    >>> final_text("<think>7? no, 8</think>8<|im_end|>"), final_text("<think>7")
    ('8', None)
    >>> final_text("User: 42?\\nAssistant: I do not know")
    'I do not know'
    """
    answer = answer_text(response)
    if answer is None:
        return None
    text = _COMMENT.sub("", _INVISIBLE.sub("", answer[-SEARCHED:]).translate(_FULL_WIDTH))
    text = _USER_TURN.sub("", text.lstrip())
    return next(filter(None, map(str.strip, _TURN.split(text))), "")


def enclosed(text: str) -> str | None:
    r"""Return the last answer between tags or in JSON.

    >>> enclosed("So it is:\n<answer>42</answer>"), enclosed('{"why": "6 * 7", "answer": 42}')
    ('42', '42')
    """
    for match in reversed([*_TAGGED.finditer(text)]):
        if match["inside"].strip():
            return str(match["inside"]).strip()
    for match in reversed([*_IN_JSON.finditer(text)]):
        try:
            return str(json.loads(_COMMAND.sub(r"\\\\", match[1]))).strip() or None
        except ValueError:  # of no language that JSON knows
            return str(match[1]).strip('" ') or None
    return None


def boxed(text: str) -> str | None:
    r"""Return the content of the last closed box that is not empty.

    >>> boxed(r"\boxed{1} so \boxed{\frac{1}{2}}, \boxed{}, \boxed{3"), boxed(r"\boxed 5.")
    ('\\frac{1}{2}', '5')
    """
    opened: list[int | None] = []  # where the content of each open brace begins, if of a box
    last = None
    for match in _BRACE.finditer(_BARE_BOX.sub(r"\\boxed{\1}", text)):
        if match[0] == "}":
            start = opened.pop() if opened else None
            inside = match.string[start : match.start()].strip() if start is not None else ""
            last = last if _BOX.search(inside) else inside or last
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
    text = final_text(response)
    if text is None:
        return None, "unfinished reasoning"
    if not text:
        return None, "empty response"
    without_confidence = _CONFIDENCE.sub("", text).strip()
    is_answer = kind in ("short", "choice") or read_number(_tidied(without_confidence))
    if boxed(without_confidence) or _LABEL.search(without_confidence) or is_answer:
        text = without_confidence or text
    inside = enclosed(text)
    value, where = _find(inside or text, kind, aliases)
    if inside and not value:
        value, where = inside, "enclosed"
    if value and len(value) > LONGEST:
        value = f"{value[: LONGEST - 1]}…"
    return value, where


# "The capital of Chad is N'Djamena", where a name is asked for
_STATEMENT = re.compile(r"(?i)^(?:it|the\s(?:\S+\s){1,6}?of\s.+?)\s(?:is|was)\s(?=\S)")


def _find(text: str, kind: Kind, aliases: tuple[str, ...]) -> tuple[str | None, str]:
    """Find the answer in a final text, and say where: in a box, after a label that is not denied,
    as an option that opens the text, as a short line, or as the number of the last sentence.
    """
    if content := boxed(text):
        return content, "boxed"
    is_denied = False
    for label in reversed([*_LABEL.finditer(text)]):
        if (label["before"] or "").strip().lower() in _DENIALS:
            is_denied = True
            continue
        rest = text[label.end() : label.end() + 2 * LONGEST]
        line = rest.lstrip(" \t\n*_:$").partition("\n")[0]
        value = _tidied(_SENTENCE.split(line, maxsplit=1)[0])
        if value.lower().startswith("not "):
            is_denied = True
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
    if is_denied:
        return None, "nothing extractable"
    is_short = "\n" not in line and len(line) <= SHORT and len(line.split()) <= WORDS
    is_short = is_short and not _LABEL.search(text)
    if is_short and kind == "short":
        line = _tidied(_STATEMENT.sub("", line))
    if kind == "choice":
        is_short = is_short and option(line) in map(option, aliases)
    if is_short and (read_number(line) or kind in ("short", "choice")) and _reads(line, kind):
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
    return text.strip().strip("*_$#\"'` ").rstrip(".,;!").strip("*_$#\"'` ")
