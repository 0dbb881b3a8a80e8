"""From messages to tokens and back, by a model's own tokenizer and chat template."""

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from capcal_lib.errors import InputError
from capcal_lib.manifests import Model, Sampling, load_prompts
from capcal_lib.questions.prompts import completion_answer, completion_text
from capcal_lib.sampling.engines import Request

HARMONY = "<|channel|>"  # gpt-oss: every message names its channel
END = "</think>"  # Qwen, DeepSeek and many others
MARKS = (HARMONY, END)

_MESSAGE = re.compile(r"<\|channel\|>(?P<channel>[^<]{0,200})(?:<\|constrain\|>[^<]{0,200})?<\|message\|>")
_SPECIAL = re.compile(r"<\|(?:start|end|message|channel|constrain|return|call)\|>")


def encode(tokenizer: Any, model: Model, request: Request) -> list[int]:
    """Return the token ids of the messages as the model reads them, ready for its answer.

    A model without a chat template reads them as the beginning of a text, in the prompt style ``completion``.
    """
    if load_prompts(model.prompt_style).completion:
        return list(tokenizer(completion_text(request.messages))["input_ids"])
    if tokenizer.chat_template is None:
        raise InputError(f"{model.name!r} has no chat template; ask it with prompt_style: completion in its manifest")
    encoded = tokenizer.apply_chat_template(
        list(request.messages), add_generation_prompt=True, tokenize=True, return_dict=True, **model.chat_template
    )
    return list(encoded["input_ids"])


def decode(tokenizer: Any, model: Model, prompt: Sequence[int], said: Sequence[int]) -> tuple[str | None, str]:
    """Return the reasoning, if any, and the answer in what was said after a prompt, its end-of-turn token left out.

    A chat template may open the reasoning in the prompt itself. Of a completion only the answer is kept.
    """
    if load_prompts(model.prompt_style).completion:
        return None, completion_answer(tokenizer.decode(said, skip_special_tokens=True))
    text = tokenizer.decode(said, skip_special_tokens=not _marks_are_special(tokenizer))
    opened = tokenizer.decode(prompt[-4:]).rstrip().endswith("<think>")
    return split_reasoning(f"<think>{text}" if opened else text)


def answer_limit(prompt: Sequence[int], request: Request, sampling: Sampling) -> int:
    """Return how many tokens an answer may have: ``max_tokens``, or what the prompt leaves of ``context_tokens``."""
    room = sampling.context_tokens - len(prompt)
    if room < 1:
        raise InputError(
            f"question {request.question.id!r}: the prompt has {len(prompt)} tokens, which leaves no room for an "
            f"answer in context_tokens = {sampling.context_tokens}; raise it or leave the question out"
        )
    return min(sampling.max_tokens, room)


def single_tokens(tokenizer: Any, words: Sequence[str]) -> dict[int, int]:
    """Return the token ids of those words that are a single token, by their places."""
    tokens = (tokenizer.encode(word, add_special_tokens=False) for word in words)
    return {place: ids[0] for place, ids in enumerate(tokens) if len(ids) == 1}


@cache
def _marks_are_special(tokenizer: Any) -> bool:
    """Tell whether leaving out special tokens would leave out the marks of reasoning (as in gpt-oss)."""
    return any(token.special and token.content in MARKS for token in tokenizer.added_tokens_decoder.values())


def split_reasoning(text: str) -> tuple[str | None, str]:
    """Return (reasoning or None, answer); reasoning that never ends leaves an empty answer.

    Text between think tags is reasoning, also where the prompt has opened the tag. In gpt-oss's harmony format what
    stands in the channel ``final`` is the answer and everything else is reasoning; its marks must still be in the text.

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
