r"""Find the final answer in a response; comparing it comes later and elsewhere.

Searched is what follows the reasoning, up to a new turn or a new question. The answer is the last
box; else the last labelled statement ("the answer is", ``####``) that reads as an answer of its
kind; else all of a short response; else what a plain last sentence states as its one value. Nothing
else is an answer: no last number of a text, no stray letter. ``book/reference/grading.md`` says it
by cases."""

import re
from collections.abc import Iterator

from capcal_lib.grading import choice, number, numerals, short
from capcal_lib.grading.latex import LONGEST, clean
from capcal_lib.manifests import Kind
from capcal_lib.questions.reasoning import answer_text

SEARCHED = 20_000  # characters at the end of a response
SHORT = 120  # characters of a response that states one thing
# One line of at most 60 characters and eight words.
_BARE = re.compile(r"(?=.{1,60}$)(?:[\W\d_]*+[^\W\d_]++){0,8}+[\W\d_]*")

# Control, format and surrogate characters can hide text and break files.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ud800-\udfff"
    "\ufe0f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_FULL_WIDTH = {mark: mark - 0xFEE0 for mark in range(0xFF01, 0xFF5F)} | {0x3002: "."}
_TURN = re.compile(
    r"(?im)<\|(?:user|im_start|start_header_id|start|return|end|im_end|endoftext|eot_id)\|>|</s>|\[INST\]"
    r"|<start_of_turn>|###\s?(?:Instruction|Human|User)\b"
    r"|^[ \t#*>().\d-]{0,6}(?:Problem|Question|Exercise|Q|Human|User)(?:\s?\d{1,3})?\W{0,3}:"
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
    text = _INVISIBLE.sub("", answer[-SEARCHED:]).translate(_FULL_WIDTH)
    return next(filter(None, map(str.strip, _TURN.split(text))), "")


_BOX = re.compile(r"(?s)(\\(?:boxed|fbox)\s{0,3}\{|\{)|(\})|\\.")
_BARE_BOX = re.compile(
    r"\\(?:boxed|fbox)(?![A-Za-z{])[ \t]{0,3}([^\s{}$\\]{1,100}?)(?=[.,;]*(?:[\s{}$\\]|$))"
)
_TWO_BOXES = re.compile(
    r"(\\(?:boxed|fbox)\s{0,3}\{[^{}]*)\}[\s$,.*]{0,6}\b(or|and)\b[\s$*]{0,6}\\(?:boxed|fbox)\s{0,3}\{"
)
_DENIED_BOX = re.compile(
    r"(?i)(?:\b(?:not|instead of|rather than|says?|said|might (?:think|guess|say))|n't(?: be)?"
    r"|\b(?:wrong|incorrect)(?: answer)?(?: is)?)[\s$*:(]{0,8}$"
)


def boxed(text: str) -> str | None:
    r"""Return the content of the last balanced, non-empty box that is not denied, and with it that
    of one before it that it is joined to by "or" or "and".

    >>> boxed(r"\boxed{1} so \boxed{\frac{1}{2}} and \boxed{3"), boxed(r"\boxed 5.")
    ('\\frac{1}{2}', '5')
    >>> boxed(r"\boxed{1}, not \boxed{2}."), boxed(r"\boxed{1} or \boxed{2}")
    ('1', '1 \\text{ or } 2')
    """
    text = _BARE_BOX.sub(r"\\boxed{\1}", text)
    text = _TWO_BOXES.sub(r"\1 \\text{ \2 } ", text)
    last = None
    opened: list[re.Match[str]] = []
    for match in _BOX.finditer(text):
        if match[1]:
            opened.append(match)
        elif match[2] and opened:
            start, end = opened.pop().span()
            content = text[end : match.start()].strip()
            denied = _DENIED_BOX.search(text, max(0, start - 80), start)
            if end - start > 1 and content and "\\boxed" not in content and not denied:
                last = content
    return last


_LABEL = re.compile(
    r"""(?imx)
      \bans(?:wer)?(?:\s(?:to|for)\s[^.:\n]{1,80}?)?[\s*_]{0,4}
      (?:\bis\b|\bare\b|\bwas\b|\b(?:would|should|must)\sbe\b|:|=)
      (?:\s(?:thus|therefore|hence|then|simply|just|indeed)\b)?[\s*_]{0,4}:?
    | \b(?:correct|right|best)\s(?:option|choice)[\s*_]{0,4}(?:\bis\b|:)
    | ^[\#*_\ ]{0,8}final\sanswer[*_:\ ]{0,8}$
    | ^\#{4}\ (?=[-\d$.])
    | \b(?:antwort|respuesta|réponse|risposta|resposta|jawaban|cevap|ответ)
      (?:\s(?:ist|lautet|es|est|è|é|adalah)\b)?[\s*_]{0,4}:?[\s*_]{0,4}
    | (?:答案|答え|回答|답변|정답|답|الإجابة|الجواب|उत्तर)[\s*_]{0,4}[是は은는هي:]{0,3}[\s*_]{0,4}:?
    """
)
_CHOSEN = re.compile(
    _LABEL.pattern
    + r"""
    | (?:\b(?:option|choice)\s[\s*(]{0,3}
      |(?:^|\b(?:so|thus),?\s|[.,]\s)[(*]{0,3})(?-i:([A-J]))[)*]{0,3}
      \sis\s(?:the\s)?(?:correct|right|best)\b(?=\s?(?:[.,!*]|$|answer|option|choice|because|since))
    | (?:\bI(?:'d|'ll|\swould|\swill)?\s(?:choose|pick|select|go\swith)|^choose
      |\bit(?:'s|\sis|\smust\sbe))\s(?:option\s|answer\s)?
      [(*]{0,3}(?-i:([A-J]))\b[)*]{0,3}(?=\s?(?:[.,!]|$))
    """
)
# What before a statement in its sentence makes it none: denials, hypotheses, what others say.
_NOT_SAID = re.compile(
    r"(?i)n't\b|\b(?:not|never|cannot|wrong|incorrect|false|says?|said|claims?|thinks?|suppose|"
    r"according|unable|doubts?|nobody|rule out|might|wrote|asks?|asked|whether)\b|\"[^\"]{0,40}$"
)
_NO_VALUE = re.compile(
    r"(?i)(?:not|correct|incorrect|wrong|right|helpful|clear|as follows|below|above|"
    r"given|written|expressed|rounded|found|obtained)\b"
)
_DENIED_AFTER = re.compile(
    r"\W*(?:which|that|but|this|it)\b[^.]{0,20}\b(?:is|was) (?:wrong|not|false|incorrect)\b"
)
_STATED = re.compile(
    r"(?i)^(?:\\(?:text\w*|mathrm|mbox)\s?\{\s*)?(?:the )?(?:final |correct )?answer(?: is|:)[\s:]*"
    r"(?:([^{}]*)\})?"
)
_DISPLAY = re.compile(r"(?s)\s*(?:\$\$|\\\[)(.{1,500}?)(?:\$\$|\\\])")
_INLINE = re.compile(r"(?:\$|\\\()([^$]+?)(?:\$|\\\))(?![^.]*(?:[\d$\\]|\b(?:or|and)\b)).*")
_SENTENCE_END = re.compile(  # no full stop of an abbreviation
    r"(?i)(?<!\b[^\W\d_])(?<!\b(?:st|dr|mr|ms|jr|sr|mt|ft|vs|no|lt))(?<!\b(?:mrs|gen|col|gov|rev))"
    r"(?<!\b(?:prof|capt))\.\s+(?=\S)|[!?]\s+(?=\S)|,?\s+because\b"
    r"|,\s+(?:which|since|as|not|rather|instead)\b"
)
_QUESTION = re.compile(  # the name of a song may be one
    r"(?i)\W{0,3}(?:who|what|why|where|when|which|how|do|does|did|are|is|don't|can|will|would|shall)\b"
)


def _labelled(text: str, kind: Kind, aliases: tuple[str, ...]) -> str | None:
    """Return what the last labelled statement that reads says that the answer is."""
    for match in reversed([*(_CHOSEN if kind == "choice" else _LABEL).finditer(text)]):
        before = text[max(0, match.start() - 200) : match.start()]
        if _NOT_SAID.search(re.split(r"[.!?,]\s|\n|\bbut\b", before)[-1]):
            continue
        value = next(filter(None, match.groups()), None) or _value(text[match.end() :], kind)
        if value and _reads(value, kind, aliases):
            return value
    return None


def _value(rest: str, kind: Kind) -> str | None:
    """Return what follows a label, to its sentence's end; None where that denies it or asks."""
    rest = rest[: 2 * LONGEST]
    if display := _DISPLAY.match(rest):
        return display[1]
    line = rest.strip(" \t\n*_:").partition("\n")[0]
    value = _SENTENCE_END.split(line, 1)[0]
    remark = line[len(value) : len(value) + 60]
    value = re.sub(r"[*_]+(?=[.!]?$)", "", value.strip())
    asks = (value + remark[:1]).endswith("?") and not _QUESTION.match(value)
    if asks or _NO_VALUE.match(value) or _DENIED_AFTER.match(remark):
        return None
    if kind in ("math", "number") and (formula := _INLINE.fullmatch(value)):
        return formula[1]
    return re.sub(r"(?:!|\s\([^()\d]{1,60}\))\s?[.!]?$", "", value) if kind == "number" else value


_BOLD = re.compile(r"(?<![\w)\]}])\*\*(?=\S)(.+?)(?<=\S)\*\*")
_FORMULA = re.compile(r"\$[^$]+\$\.?|\$\$[^$]+\$\$|\\\(.+\\\)\.?|\\\[.+\\\]")
_STATES = (
    "=",
    r"(?i):\s|\b(?:is|are|was|were|be|equals?|makes|gives|get|has|have|costs?|totals?)\s(?:(?:also|just|"
    r"only|exactly|now|then|still)\s)?",
    r"(?i)\b(?:number|total|of|to)\s",
)
# What makes another number of the one that a sentence states, or none.
_UNSURE = re.compile(
    r"(?i)n't\b|\b(?:not|never|cannot|no|than|least|most|between|or|from|step|question|if|would|false|"
    r"wrong|incorrect|unlike|half|third|quarter|double|twice|triple|square|cube|root|power|"
    r"negative|minus|opposite|inverse|reciprocal|factorial|multiple|fraction|logarithm|log)\b|\?"
)
_STATEMENT = re.compile(r"(?i)(?:it|the\s(?:\S+\s){1,6}?of\s(?:\S+\s){1,5}?)\s?is\s(?=\S)")


_DECORATION = re.compile(  # signs, arrows and markdown, at either end of a line
    r"^(?:[*`\s{0}]|(?:=>|\#{{1,6}}|[→⇒➜∴—•>])\s+)+|[*`\s{0}]+$".format(
        "©®\u2300-\u23ff\u25a0-\u2775\u2794-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff\ufffd"
    )
)


def _undecorated(line: str) -> str:
    return _DECORATION.sub("", _BOLD.sub(r"\1", line))


def _stated(text: str, kind: Kind) -> str | None:
    """Return the one value that a plain last sentence states; None where that denies it, or where
    words make another number of it.
    """
    last = text.splitlines()[-1].strip()
    sentence = re.split(r"[.!?;]\s", _undecorated(last).rstrip(".! "))[-1]
    begun, ended = (len(re.findall(pattern, text)) for pattern in (r"\\[(\[]", r"\\[)\]]"))
    if begun != ended or text.count("```") % 2 or _UNSURE.search(sentence):
        return None
    whole = "=" in sentence or len(text) <= SHORT or re.search(r"[.!$)\]*]$", last)
    for states in _STATES if whole else ():
        *before, value = re.split(states, sentence)
        bare = re.sub(r"(?<!\\)\$(?!\d)|\\[()]", "", value.strip())
        if before and number.literal(numerals.digits(clean(bare)), variables=kind == "math"):
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
    if not text:
        return None, "unfinished reasoning" if text is None else "empty response"
    for value, where in _candidates(text, kind, aliases):
        if value:
            return _tidied(value, kind), where
    return None, "nothing extractable"


def _candidates(
    text: str, kind: Kind, aliases: tuple[str, ...]
) -> Iterator[tuple[str | None, str]]:
    """Yield what may be the answer, the surest first, and where it stands."""
    yield _STATED.sub(r"\1", boxed(text) or ""), "boxed"
    yield _labelled(text, kind, aliases), "phrase"
    if kind == "choice" and len(text) > 1:
        yield choice.letter(text), "opening option"
    line = _undecorated(text)
    bare = _BARE.fullmatch(line)
    if kind == "number":
        bare = None if _UNSURE.search(line) else bare
        line = line.rpartition("=")[2].strip()
    formula = kind != "math" or _FORMULA.fullmatch(line) or number.read(line)
    yield line if bare and formula and _reads(line, kind, aliases) else None, "bare line"
    if kind in ("math", "number"):
        yield _stated(text, kind), "last sentence"


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
        text = re.sub(r"(?<![\\.,;])[.,;]{1,9}$", "", " ".join(value.strip("*` ").split()))
    text = text or value
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
