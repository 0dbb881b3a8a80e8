"""Keep a model's reasoning apart from its answer, in the two ways in which open models mark it."""

import re

HARMONY = "<|channel|>"  # gpt-oss: every message names its channel
END = "</think>"  # Qwen, DeepSeek and many others
MARKS = (HARMONY, END)

_MESSAGE = re.compile(r"<\|channel\|>(?P<channel>[^<]{0,200})(?:<\|constrain\|>[^<]{0,200})?<\|message\|>")
_SPECIAL = re.compile(r"<\|(?:start|end|message|channel|constrain|return|call)\|>")


def split_reasoning(text: str) -> tuple[str | None, str]:
    """Return (reasoning or None, answer); reasoning that never ends leaves an empty answer.

    Text between think tags is reasoning, also where the prompt has opened the tag. In gpt-oss's harmony format what
    stands in the channel ``final`` is the answer and everything else is reasoning; its marks must still be in the text.

    Examples
    --------
    >>> split_reasoning("<think>2 + 2</think>4")
    ('2 + 2', '4')
    >>> split_reasoning("<|channel|>analysis<|message|>2 + 2<|end|><|start|>assistant<|channel|>final<|message|>4")
    ('2 + 2', '4')
    """
    if text.startswith(HARMONY):
        return _split_harmony(text)
    before, end, after = text.rpartition(END)
    if end:
        return before.replace("<think>", "", 1).strip(), after
    if text.lstrip().startswith("<think>"):
        return text.replace("<think>", "", 1).strip(), ""
    return None, text


def _split_harmony(text: str) -> tuple[str | None, str]:
    reasoning: list[str] = []
    answer: list[str] = []
    marks = list(_MESSAGE.finditer(text))
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    for mark, end in zip(marks, ends, strict=False):
        said = _SPECIAL.split(text[mark.end() : end], maxsplit=1)[0]
        (answer if mark["channel"].split(maxsplit=1)[:1] == ["final"] else reasoning).append(said)
    return "\n".join(reasoning).strip() or None, "".join(answer)
