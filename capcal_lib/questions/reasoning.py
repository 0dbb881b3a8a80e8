"""Tell which part of a response is reasoning, for every room that reads a response.

Reasoning is a block between marks such as ``<think>`` and ``</think>``; the first mark may be in
the prompt. In the harmony format of gpt-oss, it is all that is not in the channel ``final``, even
if its special tokens are missing. If reasoning does not end, no answer follows it. Marks in plain
words open reasoning only at the beginning of a text. Granite's marks open it only if its end
follows, because other models begin their answers with the same words."""

import re

HARMONY = "<|channel|>"  # every message names its channel
WORD = "(?:think|thinking|thought|reasoning|scratchpad)"
MARKS = (  # what begins a reasoning, and what ends it
    (  # <think> (Qwen, DeepSeek), <seed:think>, <|START_THINKING|> (Cohere), <|begin_of_thought|>
        rf"<\|?\s?(?:seed:|begin_of_|start_)?{WORD}\s?\|?>",
        rf"<\|?\s?(?:/|end_of_|end_)(?:seed:)?{WORD}\s?\|?>",
    ),
    (rf"◁\s?{WORD}\s?▷", rf"◁\s?/{WORD}\s?▷"),  # Kimi
    (r"(?-i:\[THINK\])", r"(?-i:\[/THINK\])"),  # Mistral
)
# In plain words, at the beginning of a text only.
GRANITE = (r"Here(?:['’]s| is) my thought process:", r"Here(?:['’]s| is) my response:")
OLLAMA = (r"^Thinking\.\.\.[ \t]*$", r"^\.\.\.done thinking\.")
MARK = re.compile(
    "|".join(begins for begins, _ in MARKS)
    + f"|(?P<end>{'|'.join(ends for _, ends in MARKS)})"
    + f"|(?P<granite>{GRANITE[0]})|(?P<ollama>{OLLAMA[0]})|(?P<words_end>{GRANITE[1]}|{OLLAMA[1]})",
    re.IGNORECASE | re.MULTILINE,
)
_HEADER = re.compile(
    r"""
    (?:<\|end\|>)?(?:<\|start\|>[^<]{0,80})?
    <\|channel\|>(?P<channel>[^<]{0,200})(?:<\|constrain\|>[^<]{0,200})?<\|message\|>
    """,
    re.VERBOSE,
)
_SPECIAL = re.compile(r"<\|(?:start|end|message|channel|constrain|return|call)\|>")
_BARE_FINAL = "assistantfinal"  # the header of the final channel without its special tokens


def _is_end(mark: re.Match[str]) -> bool:
    return bool(mark["end"] or mark["words_end"])


def answer_start(text: str) -> int | None:
    """Return where the answer begins: 0 if there is no reasoning, None if it does not end.

    >>> answer_start("4"), answer_start("<think>2 + 2</think>4"), answer_start("<think>2 + 2")
    (0, 20, None)
    """
    start = 0
    if HARMONY in text:
        headers = _HEADER.finditer(text)
        ends = [one.end() for one in headers if one["channel"].split()[:1] == ["final"]]
        if not ends:
            return None
        start = ends[-1]
    elif text.startswith("analysis") and text[8:9].isupper():
        if _BARE_FINAL not in text:
            return None
        start = text.rindex(_BARE_FINAL) + len(_BARE_FINAL)
    first = len(text) - len(text[start:].lstrip())
    inside = False
    granite_start = None
    for mark in MARK.finditer(text, start):
        if (mark["granite"] or mark["ollama"]) and mark.start() != first:
            continue
        if mark["words_end"] and not inside:
            continue
        inside = not _is_end(mark)
        granite_start = start if mark["granite"] else None
        start = mark.end()
    return granite_start if inside else start


def answer_text(text: str) -> str | None:
    """Return the text after the reasoning; None if the reasoning does not end.

    >>> answer_text("[THINK]2 + 2[/THINK]4"), answer_text("[THINK]2 + 2")
    ('4', None)
    """
    start = answer_start(text)
    return None if start is None else _text_from(text, start)


def _text_from(text: str, start: int) -> str:
    """Return the answer that begins at ``start``."""
    answer = text[start:]
    return _SPECIAL.split(answer, maxsplit=1)[0] if HARMONY in text else answer


def split_reasoning(text: str) -> tuple[str | None, str]:
    """Return (reasoning or None, answer); the answer is empty if the reasoning does not end.

    >>> split_reasoning("<think>2 + 2</think>4")
    ('2 + 2', '4')
    >>> thought, said = "<|channel|>analysis<|message|>2 + 2<|end|>", "<|channel|>final<|message|>4"
    >>> split_reasoning(f"{thought}<|start|>assistant{said}")
    ('2 + 2', '4')
    """
    start = answer_start(text)
    if start == 0:  # as in most texts
        return None, text
    thought = text[:start]
    for marks in (_HEADER, _SPECIAL, MARK):
        thought = marks.sub("\n", thought)
    answer = "" if start is None else _text_from(text, start)
    return thought.strip().removesuffix(_BARE_FINAL) or None, answer


def opened(prompt: str) -> bool | None:
    """Tell whether a prompt ends with a mark that opens reasoning (True) or closes it (False); None
    if it ends with neither.

    >>> opened("2 + 2? <think>"), opened("2 + 2? <think></think> "), opened("2 + 2?")
    (True, False, None)
    """
    prompt = prompt.rstrip()
    opens = {mark.end(): not _is_end(mark) for mark in MARK.finditer(prompt)}
    return opens.get(len(prompt))


def ends_first(reply: str) -> bool:
    """Tell whether a reply ends a reasoning that it has not begun, as the prompt has done that.

    >>> ends_first("2 + 2</think>4"), ends_first("<think>2 + 2</think>4"), ends_first("4")
    (True, False, False)
    """
    first = MARK.search(reply)
    return first is not None and first["end"] is not None
