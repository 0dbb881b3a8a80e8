r"""Find the final answer in a response; comparing it comes later and elsewhere.

Searched is what follows the reasoning, up to a new turn or a new question. The answer is the last
box; else the last labelled statement ("the answer is", ``####``) that reads as an answer of its
kind; else all of a short response; else what a plain last sentence states as its one value. Nothing
else is an answer: no last number of a text, no stray letter. ``book/reference/grading.md`` says it
by cases."""

import re
import unicodedata

from capcal_lib.grading import choice, number, short
from capcal_lib.grading.latex import LONGEST, clean
from capcal_lib.manifests import Kind
from capcal_lib.questions.reasoning import answer_text

SEARCHED = 20_000  # characters at the end of a response
BARE_WORDS = 8
BARE_CHARACTERS = 60

_END_MARKS = re.compile(r"(?:\s*(?:<\|(?:return|end|im_end|endoftext|eot_id)\|>|</s>))+$")
# Control, format and surrogate characters can hide text and break files.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ud800-\udfff"
    "\ufe0f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_FULL_WIDTH = {mark: mark - 0xFEE0 for mark in range(0xFF01, 0xFF5F)} | {0x3002: "."}
_NEW_TURN = re.compile(
    r"<\|(?:user|im_start|start_header_id|start)\|>|\[INST\]|<start_of_turn>|###\s?(?:Instruction|Human|User)\b"
    r"|^[ \t#*>().\d-]{0,6}(?:Problem|Question|Exercise|Q|Human|User)(?:\s?\d{1,3})?\W{0,3}:",
    re.IGNORECASE | re.MULTILINE,
)


def final_text(response: str) -> str | None:
    """Return the end of what follows the reasoning, up to a new turn or question, without invisible
    characters and end marks; None where the reasoning does not end.

    >>> final_text("<think>7? no, 8</think>8<|im_end|>"), final_text("<think>7")
    ('8', None)
    >>> final_text("4\\n\\nQuestion: What is 3 + 3?\\nAnswer: 6")
    '4'
    """
    answer = answer_text(response)
    if answer is None:
        return None
    text = _INVISIBLE.sub("", answer[-SEARCHED:]).translate(_FULL_WIDTH).strip()
    text = _END_MARKS.sub("", text)
    turns = (text[: turn.start()].strip() for turn in _NEW_TURN.finditer(text))
    return next(filter(None, turns), text)


_BOX = re.compile(r"\\(?:boxed|fbox)\s{0,3}\{|\\.|[{}]", re.DOTALL)
_BARE_BOX = re.compile(
    r"\\(?:boxed|fbox)(?![A-Za-z{])[ \t]{0,3}([^\s{}$\\]{1,100}?)(?=[.,;]*(?:[\s{}$\\]|$))"
)
_TWO_BOXES = re.compile(
    r"(\\(?:boxed|fbox)\s{0,3}\{[^{}]*)\}[\s$,.*]{0,6}\b(or|and)\b[\s$*]{0,6}\\(?:boxed|fbox)\s{0,3}\{"
)
_DENIED_BOX = re.compile(
    r"(?:\b(?:not|instead of|rather than)|n't(?: be)?|\b(?:says?|said|might (?:think|guess|say))"
    r"|\b(?:wrong|incorrect)(?: answer)?(?: is)?)[\s$*:(]{0,8}$",
    re.IGNORECASE,
)


def boxed(text: str) -> str | None:
    r"""Return the content of the last balanced, non-empty box that is not denied, and with it that
    of one before it that it is joined to by "or" or "and".

    >>> boxed(r"\boxed{1} so \boxed{\frac{1}{2}} and \boxed{3"), boxed(r"\boxed 5.")
    ('\\frac{1}{2}', '5')
    >>> boxed(r"\boxed{1}, not \boxed{2}."), boxed(r"\boxed{1} or \boxed{2}")
    ('1', '1 \\text{ or } 2')
    """
    if "boxed" not in text and "fbox" not in text:
        return None
    text = _BARE_BOX.sub(r"\\boxed{\1}", text)
    text = _TWO_BOXES.sub(r"\1 \\text{ \2 } ", text)
    last = (-1, "")
    opened: list[re.Match[str]] = []
    for match in _BOX.finditer(text):
        if match[0].endswith("{") and match[0] != r"\{":
            opened.append(match)
        elif match[0] == "}" and opened:
            start, end = opened.pop().span()
            content = text[end : match.start()].strip()
            denied = _DENIED_BOX.search(text[max(0, start - 80) : start])
            if end - start > 1 and content and "\\boxed" not in content and not denied:
                last = max(last, (start, content))
    return last[1] or None


_LABEL = re.compile(
    r"""
      \bans(?:wer)?(?:\s(?:to|for)\s[^.:\n]{1,80}?)?[\s*_]{0,4}
      (?:\bis\b|\bare\b|\bwas\b|\b(?:would|should|must)\sbe\b|:|=)
      (?:\s(?:thus|therefore|hence|then|simply|just|indeed)\b)?[\s*_]{0,4}:?
    | \b(?:correct|right|best)\s(?:option|choice)[\s*_]{0,4}(?:\bis\b|:)
    | ^[\#*_\ ]{0,8}final\sanswer[*_:\ ]{0,8}$
    | ^\#{4}\ (?=[-\d$.])
    | \b(?:antwort|respuesta|réponse|risposta|resposta|jawaban|cevap|ответ)
      (?:\s(?:ist|lautet|es|est|è|é|adalah)\b)?[\s*_]{0,4}:?[\s*_]{0,4}
    | (?:答案|答え|回答|답변|정답|답|الإجابة|الجواب|उत्तर)[\s*_]{0,4}[是は은는هي:]{0,3}[\s*_]{0,4}:?
    """,
    re.VERBOSE | re.IGNORECASE | re.MULTILINE,
)
_CHOSEN = re.compile(
    r"""
      (?:\b(?:option|choice)\s[\s*(]{0,3}|(?:^|\b(?:so|thus),?\s|[.,]\s)[(*]{0,3})(?-i:([A-J]))[)*]{0,3}
      \sis\s(?:the\s)?(?:correct|right|best)\b(?=\s?(?:[.,!*]|$|answer|option|choice|because|since))
    | (?:\bI(?:'d|'ll|\swould|\swill)?\s(?:choose|pick|select|go\swith)|^choose
      |\bit(?:'s|\sis|\smust\sbe))\s(?:option\s|answer\s)?
      [(*]{0,3}(?-i:([A-J]))\b[)*]{0,3}(?=\s?(?:[.,!]|$))
    """,
    re.VERBOSE | re.IGNORECASE | re.MULTILINE,
)
# What before a statement in its sentence makes it none: denials, hypotheses, what others say.
_NOT_SAID = re.compile(
    r"n't\b|\b(?:not|never|cannot|wrong|incorrect|false|says?|said|claims?|thinks?|suppose|"
    r"according|unable|doubts?|nobody|rule out|might|wrote|asks?|asked|whether)\b|\"[^\"]{0,40}$",
    re.IGNORECASE,
)
_NO_VALUE = re.compile(
    r"(?:not|correct|incorrect|wrong|right|helpful|clear|as follows|below|above|"
    r"given|written|expressed|rounded|found|obtained)\b",
    re.IGNORECASE,
)
_DENIED_AFTER = re.compile(
    r"\W*(?:which|that|but|this|it)\b[^.]{0,20}\b(?:is|was) (?:wrong|not|false|incorrect)\b"
)
_STATED_IN_TEXT = re.compile(
    r"^\\(?:text\w*|mathrm|mbox)\s?\{([^{}]*answer[^{}]*)\}", re.IGNORECASE
)
_STATED = re.compile(r"^(?:the )?(?:final |correct )?answer(?: is|:)[\s:]*", re.IGNORECASE)
_DISPLAY = re.compile(r"\s*(?:\$\$(.{1,500}?)\$\$|\\\[(.{1,500}?)\\\])", re.DOTALL)
_INLINE = re.compile(r"(?:\$([^$]+)\$|\\\((.+?)\\\))(?![^.]*(?:[\d$\\]|\b(?:or|and)\b)).*")
_ABBREVIATION = re.compile(
    r"(?:^|[\s.])(?:st|dr|mr|mrs|ms|jr|sr|mt|ft|vs|no|prof|gen|col|lt|gov|capt|rev|[^\W\d_])$",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(
    r"[.!?]\s+(?=\S)|,?\s+because\b|,\s+(?:which|since|as|not|rather|instead)\b"
)
_QUESTION = re.compile(  # the name of a song may be one
    r"\W{0,3}(?:who|what|why|where|when|which|how|do|does|did|are|is|don't|can|will|would|shall)\b",
    re.IGNORECASE,
)
_MOST_LABELS = 100


def _labelled(text: str, kind: Kind, aliases: tuple[str, ...]) -> str | None:
    """Return what the last labelled statement that reads says that the answer is."""
    matches = list(_LABEL.finditer(text))
    if kind == "choice":
        matches += _CHOSEN.finditer(text)
    for match in sorted(matches, key=lambda match: match.start())[: -_MOST_LABELS - 1 : -1]:
        before = text[max(0, match.start() - 200) : match.start()]
        sentence = re.split(r"[.!?]\s|\n|\bbut\b", before)[-1]
        if _NOT_SAID.search(re.split(r",\s", sentence)[-1]):
            continue
        value = next(filter(None, match.groups()), None) or _value(text[match.end() :], kind)
        if value and _reads(value, kind, aliases):
            return value
    return None


def _value(rest: str, kind: Kind) -> str | None:
    """Return what follows a label, to its sentence's end; None where that denies it or asks."""
    rest = rest[: 2 * LONGEST]
    if display := _DISPLAY.match(rest):
        return display[1] or display[2]
    line = next(iter(rest.strip(" \t\n*_:").splitlines()), "")
    value = _first_sentence(line)
    remark = line[len(value) : len(value) + 60]
    value = re.sub(r"[*_]+(?=[.!]?$)", "", value.strip())
    asks = (value + remark[:1]).endswith("?") and not _QUESTION.match(value)
    if asks or _NO_VALUE.match(value) or _DENIED_AFTER.match(remark):
        return None
    if kind in ("math", "number") and (formula := _INLINE.fullmatch(value)):
        return formula[1] or formula[2]
    return re.sub(r"(?:!|\s\([^()\d]{1,60}\))\s?[.!]?$", "", value) if kind == "number" else value


def _first_sentence(line: str) -> str:
    for match in _SENTENCE_END.finditer(line):
        if match[0][0] not in ".!?" or not _ABBREVIATION.search(line[: match.start()]):
            return line[: match.start()]
    return line


_BOLD = re.compile(r"(?<![\w)\]}])\*\*(?=\S)(.+?)(?<=\S)\*\*")
_FORMULA = re.compile(r"\$[^$]+\$\.?|\$\$[^$]+\$\$|\\\(.+\\\)\.?|\\\[.+\\\]")
_STATES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        "=",
        r":\s|\b(?:is|are|was|were|be|equals?|makes|gives|get|has|have|costs?|totals?)\s(?:(?:also|just|"
        r"only|exactly|now|then|still)\s)?",
        r"\b(?:number|total|of|to)\s",
    )
)
# What makes another number of the one that a sentence states, or none.
_UNSURE = re.compile(
    r"n't\b|\b(?:not|never|cannot|no|than|least|most|between|or|from|step|question|if|would|false|"
    r"wrong|incorrect|unlike|half|third|quarter|double|twice|triple|square|cube|root|power|"
    r"negative|minus|opposite|inverse|reciprocal|factorial|multiple|fraction|logarithm|log)\b|\?",
    re.IGNORECASE,
)
_STATEMENT = re.compile(
    r"(?:it|the\s(?:\S+\s){1,6}?of\s(?:\S+\s){1,5}?)\s?is\s(?=\S)", re.IGNORECASE
)


def _undecorated(line: str) -> str:
    """Take signs, arrows and markdown off both ends of a line."""
    line = _BOLD.sub(r"\1", line).strip("*` ")
    signs = "".join(mark for mark in {*line} - {"°"} if unicodedata.category(mark) == "So")
    line = re.sub(r"^(?:(?:=>|#{1,6}|[→⇒➜∴—•>])\s+)+", "", line.lstrip(signs + " "))
    return line.strip(signs + "*` ")


def _stated(text: str, kind: Kind) -> str | None:
    """Return the one value that a plain last sentence states; None where that denies it, or where
    words make another number of it.
    """
    last = text.splitlines()[-1].strip()
    pairs = (r"\[", r"\]"), (r"\(", r"\)")
    unfinished = text.count("```") % 2 or any(text.count(a) != text.count(b) for a, b in pairs)
    sentence = re.split(r"[.!?;]\s", _undecorated(last).rstrip(".! "))[-1]
    if unfinished or _UNSURE.search(sentence) or re.search(r"[=+/*-]\s*$", last.rstrip("*")):
        return None
    values = [states.split(sentence)[-1] for states in _STATES if states.search(sentence)]
    if bold := re.fullmatch(r"\D*\*\*([^*]+)\*\*\W*", last):
        values.append(bold[1])
    ended = "=" in sentence or len(text) <= 2 * BARE_CHARACTERS or re.search(r"[.!$)\]*]$", last)
    for value in values if ended else ():
        bare = re.sub(r"(?<!\\)\$(?!\d)|\\[()]", "", value.strip())
        if number.literal(clean(bare), variables=kind == "math"):
            return bare
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
    content = _STATED.sub("", _STATED_IN_TEXT.sub(r"\1", content or ""))
    if content and (kind != "short" or short.normal(content[:LONGEST])):
        return _tidied(content, kind), "boxed"
    if (value := _labelled(text, kind, aliases)) is not None:
        return _tidied(value, kind), "phrase"
    if kind == "choice" and (opening := choice.letter(text)) and len(text) > 1:
        return opening, "opening option"
    line = _undecorated(text)
    words = len(re.findall(r"[^\W\d_]+", line))
    bare = "\n" not in line and 0 < len(line) <= BARE_CHARACTERS and words <= BARE_WORDS
    if kind == "number":
        bare = bare and not _UNSURE.search(line)
        line = line.rpartition("=")[2].strip()
    formula = kind != "math" or _FORMULA.fullmatch(line) or number.read(line)
    if bare and formula and _reads(line, kind, aliases):
        return _tidied(line, kind), "bare line"
    if kind in ("math", "number") and (stated := _stated(text, kind)):
        return _tidied(stated, kind), "last sentence"
    return None, "nothing extractable"


def _reads(value: str, kind: Kind, aliases: tuple[str, ...]) -> bool:
    """Say whether a text reads as an answer of its kind from end to end."""
    if kind == "number":
        return number.read(value) is not None
    if kind == "choice":
        letter = choice.letter(value)
        return bool(letter and (letter <= "J" or letter in aliases)) or short.equal(aliases, value)
    return bool(short.normal(value) if kind == "short" else value.strip())


def _tidied(value: str, kind: Kind) -> str:
    """Return the answer without decoration, cut at the limit."""
    if kind == "choice":
        text = choice.letter(value) or short.plain(value)
    elif kind == "short":
        text = short.plain(_STATEMENT.sub("", _undecorated(value), count=1))
    else:
        text = re.sub(
            r"(?<![\\.,;])[.,;]{1,9}$", "", " ".join(_BOLD.sub(r"\1", value).strip("*` ").split())
        )
    text = text or value
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
