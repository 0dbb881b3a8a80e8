r"""Find the final answer in a response; comparing it comes later and elsewhere.

Searched is what follows the reasoning, up to a new turn, or to another question behind an answer;
where the answer stands between tags or in JSON, that alone. The answer is the last box; else the
last labelled statement ("the answer is", ``####``) that reads as an answer of its kind; else all of
a short response; else what a plain last sentence states as its one value. Nothing else is an
answer: no last number of a text, no stray letter. ``book/reference/grading.md`` says it by
cases."""

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
    r"(?i)<\|(?:user|im_start|start_header_id|start|return|end|im_end|endoftext|eot_id)\|>|</s>|\[INST\]"
    r"|<start_of_turn>|###\s?(?:Instruction|Human|User)\b"
    r"|^[ \t#*>().\d-]{0,6}(?:Human|User)\W{0,3}:",
    re.MULTILINE,
)
_QUESTION_AGAIN = re.compile(
    r"(?im)^[ \t#*>().\d-]{0,6}(?:Problem|Question|Exercise|Q)(?:\s?\d{1,3})?\W{0,3}:"
)
_DOUBLED_COMMAND = re.compile(r"\\\\(?:boxed|fbox|[dt]?frac|sqrt|text|left|cdot|times)(?![A-Za-z])")


def final_text(response: str) -> str | None:
    """Return the end of what follows the reasoning, up to a new turn, without invisible characters
    and end marks; None where the reasoning does not end.

    >>> final_text("<think>7? no, 8</think>8<|im_end|>"), final_text("<think>7")
    ('8', None)
    """
    answer = answer_text(response)
    if answer is None:
        return None
    text = _INVISIBLE.sub("", answer[-SEARCHED:]).translate(_FULL_WIDTH)
    text = next(filter(None, map(str.strip, _TURN.split(text))), "")
    return _with_single_backslashes(text)


def _with_single_backslashes(text: str) -> str:
    r"""Undo the escaping of a response that was written as JSON: \\\\boxed is \\boxed."""
    if _DOUBLED_COMMAND.search(text) and all(len(run) % 2 == 0 for run in re.findall(r"\\+", text)):
        return text.replace("\\\\", "\\")
    return text


_TAGGED = re.compile(
    r"(?is)<(?P<tag>(?:final[_ ]?)?answer)>(?P<text>.*?)(?:</(?P=tag)>|\Z)"
    r"|<\|begin_of_box\|>(?P<box>.*?)(?:<\|end_of_box\|>|\Z)"
)
_IN_JSON = re.compile(
    r"""(?ix)["'](?:(?:final|correct)[_\s]?)?answer["']\s*:\s*
    (?:"(?P<double>(?:[^"\\]|\\.)*)"|'(?P<single>(?:[^'\\]|\\.)*)'|(?P<bare>-?[\d.][\d.eE+-]*|true|false))"""
)
_ESCAPED = re.compile(r"""\\(?:u([0-9A-Fa-f]{4})|(["'/\\]))""")


def _unescaped(match: re.Match[str]) -> str:
    return chr(int(match[1], 16)) if match[1] else match[2]


def enclosed(text: str) -> str | None:
    r"""Return the last answer that stands between tags or in JSON, where no other answer follows.

    >>> enclosed("So it is:\n<answer>42</answer>"), enclosed('{"why": "6 * 7", "answer": 42}')
    ('42', '42')
    >>> enclosed(r'{"answer": "\\frac{1}{2}"}'), enclosed(r"<answer>1</answer> No: \boxed{2}")
    ('\\frac{1}{2}', None)
    """
    answer, end = None, 0
    for match in _TAGGED.finditer(text):
        inside = (match["text"] or match["box"] or "").strip()
        if inside:
            answer, end = inside, match.end()
    for match in _IN_JSON.finditer(text, end):
        inside = match["double"] or match["single"] or match["bare"] or ""
        if inside.strip():
            answer, end = _ESCAPED.sub(_unescaped, inside), match.end()
    if answer is None or boxed(text[end:]) or _ANSWER_LABEL.search(text, end):
        return None
    return answer.strip()


_BOXES = r"\\(?:boxed|fbox|framebox)"
_BOX = re.compile(rf"(?s)({_BOXES}\s{{0,3}}(?:\[\w*\]){{0,2}}\{{|\{{)|(\}})|\\.")
_BARE_BOX = re.compile(
    rf"{_BOXES}(?![A-Za-z{{\[])[ \t]{{0,3}}([^\s{{}}$\\]{{1,100}}?)(?=[.,;]*(?:[\s{{}}$\\]|$))"
)
_TWO_BOXES = re.compile(
    rf"({_BOXES}\s{{0,3}}\{{[^{{}}]*)\}}[\s$,.*]{{0,6}}\b(or|and)\b[\s$*]{{0,6}}{_BOXES}\s{{0,3}}\{{"
)
# What before a box says that it is not the answer. "I was wrong: 13" denies what came before.
_DENIED_BOX = re.compile(
    r"""(?ix)(?:
      \b(?:not|instead\sof|rather\sthan|says?|said|cannot\sbe|can\snot\sbe|never)
    | \b(?:might|would|could)\s(?:think|guess|say|believe)
    | n't(?:\sbe|\s(?:think|believe)(?:\sthat)?)?
    | \b(?:not\s(?:think|believe)|rule\sout|thinks|claims?)(?:\sthat)?
    | \b(?:false|untrue|impossible|no\sway)\sthat
    | \b(?:wrong|incorrect|false)\s(?:answer|result|value|solution|choice)s?
      (?:\s(?:is|are|would\sbe))?
    | (?:^|[.!?]\s|\n)[*_]{0,2}wrong | \bif\b[^.!?\n]{0,60}\bwould\sbe
    )[\s$*:("]{0,8}
    (?:(?:the\s)?(?:final\s|correct\s)?(?:answer|result|value)\s(?:is|was)[\s$*:(]{0,8})?$"""
)
_BOX_DENIED = re.compile(
    r"""(?ix)[\s$*)\]]{0,5}(?:,?\s?which\s)?(?:
      (?:is|was)\s(?:wrong|incorrect|false|not\s(?:right|correct|it\b|possible|the\sanswer))
    | (?:isn't|wasn't)\s(?:right|correct|it\b|possible|the\sanswer) | cannot\sbe\b | can't\sbe\b
    | \?\s(?:no|nope|wait)\b )"""
)


def boxes(text: str) -> list[str]:
    r"""Return the contents of the balanced, non-empty boxes that are not denied, the last one
    first, two that "or" or "and" joins as one.

    >>> boxes(r"\boxed{1} so \boxed{\frac{1}{2}} and \boxed{3"), boxes(r"\boxed 5.")
    (['\\frac{1}{2}', '1'], ['5'])
    >>> boxes(r"\boxed{1}, not \boxed{2}."), boxes(r"I was wrong: \boxed{1} or \boxed{2}")
    (['1'], ['1 \\text{ or } 2'])
    """
    text = _BARE_BOX.sub(r"\\boxed{\1}", text)
    text = _TWO_BOXES.sub(r"\1 \\text{ \2 } ", text)
    contents = []
    opened: list[re.Match[str]] = []
    for match in _BOX.finditer(text):
        if match[1]:
            opened.append(match)
        elif match[2] and opened:
            start, end = opened.pop().span()
            content = text[end : match.start()].strip()
            if end - start == 1 or not content or re.search(_BOXES, content):
                continue
            before = text[max(0, start - 120) : start]
            if not _DENIED_BOX.search(before) and not _BOX_DENIED.match(text, match.end()):
                contents.append(content)
    return contents[::-1]


def boxed(text: str) -> str | None:
    """Return the content of the last box that counts."""
    return next(iter(boxes(text)), None)


_ANSWER_LABEL = re.compile(
    r"""(?imx)
      \bans(?:wer)?(?:\s(?:to|for)\s[^.:\n]{1,80}?)?[\s*_]{0,4}
      (?:\bis\b|\bare\b|\bwas\b|\b(?:would|should|must)\sbe\b|:|=)
      (?:\s(?:thus|therefore|hence|then|simply|just|indeed)\b)?[\s*_]{0,4}:?
    | \b(?:correct|right|best)\s(?:option|choice)[\s*_]{0,4}(?:\bis\b|:)
    | ^[\#*_\ ]{0,8}final\sanswer[*_:\ ]{0,8}$
    | (?:^|(?<=\s))\#{4}\ (?=[-\d$.(])
    | \bcorrection[\s*_]{0,4}: | \bactually,?\sit(?:'s|\sis)\b
    | \b(?:wrong|incorrect|mistaken|not\s(?:right|correct))[*_]{0,2}[,;:.]\s
      (?:it|this|that|the\s(?:result|total|value|number))\s(?:is|should\sbe|must\sbe|equals)\b
    | \b(?:antwort|respuesta|réponse|risposta|resposta|jawaban(?:nya)?|cevap|ответ)
      (?:\s(?:correct[ae]|corrett[ao]|corret[ao]|giusta|esatta|exata|certa|finale?|yang\sbenar|akhir(?:nya)?))?
      (?:\s(?:ist|lautet|es|est|è|é|adalah|ialah|будет)\b|\s[—–-](?=\s))?[\s*_]{0,4}:?[\s*_]{0,4}
    | (?:答案|答え|正解|回答|답변|정답|답|الإجابة|الجواب|उत्तर)
      (?:\s(?:الصحيحة|النهائية|الصحيح|النهائي))?[\s*_]{0,4}[是为はが은는이هي:]{0,3}[\s*_]{0,4}:?
    """
)
# Of a solution that ends with "A: 18", as those of GSM8K do; of a choice it would be an option.
_SOLVED = re.compile(_ANSWER_LABEL.pattern + r"""| (?:^|(?<=\?\s))(?-i:A):\s(?=[^\n]*\Z)""")
_CHOSEN = re.compile(
    _ANSWER_LABEL.pattern
    + r"""
    | (?:\b(?:option|choice)\s[\s*(]{0,3}
      |(?:^|\b(?:so|thus),?\s|[.,]\s)[(*]{0,3})(?-i:([A-J]))[)*]{0,3}
      \sis\s(?:the\s)?(?:correct|right|best)\b(?=\s?(?:[.,;!*]|$|answer|option|choice|because|since))
    | \b(?:opción|opzione|opção|alternativa|option)\s(?:correct[ae]|corrett?[ao])\s(?:es|est|è|é)
    | (?:选择?|選)(?=\s?[A-J])
    | (?:\bI(?:'d|'ll|\swould|\swill)?\s(?:choose|pick|select|go\swith)|^choose
      |\bit(?:'s|\sis|\smust\sbe))\s(?:option\s|answer\s)?
      [(*]{0,3}(?-i:([A-J]))\b[)*]{0,3}(?=\s?(?:[.,!]|$))
    """
)
# What before a statement in its clause makes it none: denials, hypotheses, what others say.
_NOT_SAID = re.compile(
    r"(?i)n't\b|\b(?:not|never|cannot|wrong|incorrect|false|says?|said|claim(?:s|ed)?|thinks?|"
    r"thought|believed|suppose|according|unable|doubts?|nobody|rule out|might|wrote|asks?|asked|"
    r"whether|no (?:way|chance)|(?:least|un)\s?likely|worst|to show that|would believe)\b"
    r"|\"[^\"]{0,40}$|\bmy \w+'s\s$"
    r"|\b(?:if|when)\s(?:the\s)?(?:final\s|correct\s)?$"
    r"|\b(?!(?-i:Let|It|What|That)'s)(?-i:[A-Z])\w+'s\s$"
)
# What in its sentence makes it the answer to something else, or to nothing.
_ELSEWHERE = re.compile(
    r"""(?ix)
      \b(?:other|another|different|similar|previous|earlier|former|alternative)
      (?:\syear's|\sweek's)?\s(?:\w+\s)?
      (?:version|variant|edition|exam|test|quiz|question|problem|puzzle|task|exercise|year|book|paper)s?\b
    | \b(?:last|next|previous)\s(?:year|week)'s\b | ^\W*unless\b
    | \b(?:if|had|were|without|suppos\w+|assum\w+)\b.*\bwould\b
    | \bif\s(?:we|you|one|I)\s(?:forgot|forget|ignored?|neglect|omit|skip|misread)
    | \b(?:many|some|most|others|people|students)\b.*\b(?:think|believe|guess|claim)\b
    | \baccording\sto\s(?:my|his|her|(?-i:[A-Z])\w+'s)\b
    | \bcommon\s(?:mistake|error) | \bit\sis\sa\smistake\b
    """
)
_NO_VALUE = re.compile(
    r"(?i)(?:not|correct|incorrect|wrong|right|helpful|clear|as follows|below|above|"
    r"given|written|expressed|rounded|found|obtained)\b"
)
_DENIED_AFTER = re.compile(
    r"[^\w.]*(?:which|that|but|this|it)\b[^.]{0,20}\b(?:is|was) (?:wrong|not|false|incorrect)\b"
    r"|(?i:[\s.]*(?:but )?(?:that|this|it) (?:is|was) "
    r"(?:wrong|false|incorrect|not (?:right|correct))\b)"
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
    labels = _CHOSEN if kind == "choice" else _SOLVED
    for match in reversed([*labels.finditer(text)]):
        before = text[max(0, match.start() - 200) : match.start()]
        if _denies(before, match[0]):
            continue
        value = next(filter(None, match.groups()), None) or _value(text[match.end() :], kind)
        if value and _reads(value, kind, aliases):
            return value
    return None


def _denies(before: str, statement: str) -> bool:
    """Say whether what stands before a statement in its sentence makes it none; only a condition
    that "would be" so stands in both.
    """
    sentence = re.split(r"[.!?]\s|\n", before)[-1]
    clause = re.split(r"[,;]\s|\bbut\b", sentence)[-1]
    condition = " would" if "would" in statement.lower() else ""
    return bool(_NOT_SAID.search(clause) or _ELSEWHERE.search(sentence + condition))


_NOT_BUT = re.compile(  # not London but Paris
    r"(?i)^not\s(?:[^\s,]+\s){1,4}?but\s(?:rather\s)?(?=\S+(?:\s\S+){0,5}$)"
)
_COPULA = re.compile(r"(?<=[^\sA-Za-z]|[A-J\d])\s?(?:です|である|입니다|이다|है|'dir|'dır)[.。]?$")
_DENIED_IN_BRACKETS = re.compile(r"(?i)\s\((?:not|instead of|rather than)\s[^()]{1,60}\)(?=[.!]?$)")
_ARTICLE = re.compile(
    r"(?i)^(?:(?:la|el|le|il|die|der|das|a|o)\s)?(?:(?:opción|opzione|opção|letra|option)\s)?"
)


def _value(rest: str, kind: Kind) -> str | None:
    """Return what follows a label, to its sentence's end; None where that denies it or asks."""
    rest = rest[: 2 * LONGEST]
    if display := _DISPLAY.match(rest):
        return display[1]
    line = _NOT_BUT.sub("", rest.strip(" \t\n*_:").partition("\n")[0])
    value = _SENTENCE_END.split(line, 1)[0]
    remark = line[len(value) : len(value) + 60]
    value = re.sub(r"[*_]+(?=[.!]?$)", "", value.strip())
    asks = (value + remark[:1]).endswith("?") and not _QUESTION.match(value)
    if asks or _NO_VALUE.match(value) or _DENIED_AFTER.match(remark):
        return None
    value = _COPULA.sub("", _DENIED_IN_BRACKETS.sub("", value).rstrip("。"))
    if kind in ("math", "number") and (formula := _INLINE.fullmatch(value)):
        return formula[1]
    if kind == "choice" and choice.letter(value) is None:
        return _ARTICLE.sub("", value)
    if kind == "number":
        return re.sub(r"(?:!|\s\([^()\d]{1,60}\))\s?[.!]?$", "", value)
    return value


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
_STATEMENT = re.compile(
    r"(?i)(?:it|the\s(?:\S+\s){1,6}?of\s(?:\S+\s){1,5}?)\s?"
    r"(?:is|was|happened|occurred|took\splace)\s(?=\S)"
)
_DENIED_BEHIND = re.compile(
    r"(?i)(?:,\s|\s\()(?:not|rather\sthan|instead\sof|and\snot)\s[^.\n]{1,40}$"
)


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
    if _denies(sentence, ""):
        return None
    if not ("=" in sentence or len(text) <= SHORT or re.search(r"[.!$)\]*]$", last)):
        return None  # a long response that breaks off
    for states in _STATES:
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
    inside = enclosed(text)
    if inside is not None:
        for value, where in _candidates(inside, kind, aliases):
            if value:
                where = "tag or JSON" if where == "bare line" else where
                return _tidied(value, kind), where
        if "\n" not in inside:
            return _tidied(inside, kind), "tag or JSON"
    pieces = [piece for piece in map(str.strip, _QUESTION_AGAIN.split(text)) if piece]
    for place, piece in enumerate(pieces, 1):
        for value, where in _candidates(piece, kind, aliases):
            # A question that is said again ends an answer only behind one.
            if value and (place == len(pieces) or not _ANNOUNCEMENT.match(value)):
                return _tidied(value, kind), where
    return None, "nothing extractable"


_ANNOUNCEMENT = re.compile(
    r"(?i)\W*(?:sure|ok(?:ay)?|certainly|of course|let(?:'s| us| me)|i(?:'ll|'m| will| can| need)|"
    r"here(?:'s| is| are)|we |first|now|to (?:solve|answer|find)|the (?:question|problem) )"
)


def _candidates(
    text: str, kind: Kind, aliases: tuple[str, ...]
) -> Iterator[tuple[str | None, str]]:
    """Yield what may be the answer, the surest first, and where it stands."""
    contents = [_STATED.sub(r"\1", content) for content in boxes(text)]
    if kind == "choice":  # a formula in a box is no option
        options = (content for content in contents if _reads(content, kind, aliases))
        yield next(options, None), "boxed"
    else:
        yield next(iter(contents), None), "boxed"
    yield _labelled(text, kind, aliases), "phrase"
    if kind == "choice" and len(text) > 1:
        yield choice.letter(text), "opening option"
    line = _undecorated(text)
    if kind != "choice":  # whose text may be a denial
        line = _DENIED_BEHIND.sub("", line)
    bare = _BARE.fullmatch(line)
    if kind == "number":
        bare = None if _UNSURE.search(line) else bare
        line = line.rpartition("=")[2].strip()
    formula = kind != "math" or _FORMULA.fullmatch(line) or number.read(line)
    yield line if bare and formula and _reads(line, kind, aliases) else None, "bare line"
    if kind in ("math", "number"):
        yield _stated(text, kind), "last sentence"
    yield next(iter(contents), None), "boxed"


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
    value = _DENIED_IN_BRACKETS.sub("", value)
    if kind == "choice":
        text = choice.letter(value) or short.plain(value)
    elif kind == "short":
        text = short.plain(_STATEMENT.sub("", _undecorated(value), count=1))
    else:
        text = re.sub(r"(?<![\\.,;])[.,;]{1,9}$", "", " ".join(value.strip("*` ").split()))
    text = text or value
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
