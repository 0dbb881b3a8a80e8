"""From messages to tokens and back, by a model's own tokenizer and chat template."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import date
from functools import cache
from itertools import accumulate
from typing import Any

import numpy as np

from capcal_lib.errors import InputError
from capcal_lib.manifests import Model, Sampling, load_prompts
from capcal_lib.questions import reasoning
from capcal_lib.questions.prompts import completion_answer, completion_text
from capcal_lib.sampling.engines import Request


def encode(tokenizer: Any, model: Model, request: Request) -> list[int]:
    """Return the token ids of the messages as the model reads them, ready for its answer or the
    rest of it.

    A model without a chat template reads them as the beginning of a text, in the prompt style
    ``completion``. The date that a template writes is the manifest's switch ``date``, or else
    today's."""
    if load_prompts(model.prompt_style).completion:
        return [*tokenizer(completion_text(request.messages))["input_ids"], *request.said]
    if tokenizer.chat_template is None:
        raise InputError(
            f"{model.name!r} has no chat template; ask it with prompt_style: completion in its "
            "manifest"
        )
    switches = dict(model.chat_template)
    if "date" in switches:
        switches["strftime_now"] = date.fromisoformat(
            switches["date"]
        ).strftime  # what templates call
    encoded = tokenizer.apply_chat_template(
        list(request.messages),
        add_generation_prompt=True,
        tokenize=True,
        return_dict=True,
        **switches,
    )
    return [*encoded["input_ids"], *request.said]


def decode(
    tokenizer: Any, model: Model, prompt: Sequence[int], said: Sequence[int]
) -> tuple[str | None, str]:
    """Return the reasoning, if any, and the answer in what was said after a prompt, its end-of-turn
    token left out.

    A chat template may open the reasoning in the prompt itself. Of a completion only the answer is
    kept."""
    if load_prompts(model.prompt_style).completion:
        return None, completion_answer(tokenizer.decode(said, skip_special_tokens=True))
    text = tokenizer.decode(said, skip_special_tokens=not _marks_are_special(tokenizer))
    return reasoning.split_reasoning(f"<think>{text}" if _opened(tokenizer, prompt) else text)


def _opened(tokenizer: Any, prompt: Sequence[int]) -> bool | None:
    return reasoning.opened(tokenizer.decode(prompt[-16:]))


def begin_answers(
    tokenizer: Any,
    model: Model,
    requests: Sequence[Request],
    draw: Callable[[list[Request]], Iterable[tuple[str, Sequence[int]]]],
) -> tuple[dict[int, Request], np.ndarray]:
    """Let a model reason before it answers, if it has marks for that, which the prompt has not
    closed already.

    ``draw`` yields a reply to each request that it is given: the question's id, and tokens.
    Returns, by their places, the requests with what was said before the answer, but those whose
    reply came to none; and, (n_requests,), the tokens up to the first one of the answer."""
    known = f"{tokenizer.chat_template} {tokenizer.get_added_vocab()}"
    marked = _has_mark(known) and not load_prompts(model.prompt_style).completion
    begun = dict(enumerate(requests))
    tokens = np.ones(len(requests), dtype=np.int64)
    opened = {}
    for place, request in enumerate(requests):
        prompt = encode(tokenizer, model, request)
        inside = _opened(tokenizer, prompt) if marked else False
        if inside is not False:
            opened[request.question.id] = place, bool(inside)
            del begun[place]
    for name, said in draw(
        [replace(requests[place], sample_indices=(0,)) for place, _ in opened.values()]
    ):
        place, inside = opened[name]
        pieces = [tokenizer.decode([token]) for token in said]
        start = answer_start(["<think>" * inside + pieces[0], *pieces[1:]])
        tokens[place] = len(said) if start is None else start + 1
        if start is not None:
            begun[place] = replace(requests[place], said=tuple(said[:start]))
    return begun, tokens


def answer_start(pieces: Sequence[str]) -> int | None:
    """Return the place of the first token of the answer among the tokens of a reply; None where it
    has no answer.

    That is the first one behind the reasoning, if there is any, that is not blank.

    >>> (answer_start(["<think>", "2+2", "</think>", " ", "4"]), answer_start(["4"]),
    ...     answer_start(["<think>", "2"]))
    (4, 0, None)
    """
    begin = reasoning.answer_start("".join(pieces))
    if begin is None:
        return None
    for place, (piece, stop) in enumerate(zip(pieces, accumulate(map(len, pieces)), strict=True)):
        if stop > begin and piece.strip():
            if stop - len(piece) >= begin:
                return place
            return None
    return None


def answer_limit(prompt: Sequence[int], request: Request, sampling: Sampling) -> int:
    """Return how many tokens an answer may have: ``max_tokens``, or what the prompt leaves of
    ``context_tokens``.
    """
    room = sampling.context_tokens - len(prompt)
    if room < 1:
        raise InputError(
            f"question {request.question.id!r}: the prompt has {len(prompt)} tokens, which leaves "
            "no room for an "
            f"answer in context_tokens = {sampling.context_tokens}; raise it or leave the "
            "question out"
        )
    return min(sampling.max_tokens, room)


def single_tokens(tokenizer: Any, words: Sequence[str]) -> dict[int, int]:
    """Return the token ids of those words that are a single token, by their places."""
    tokens = (tokenizer.encode(word, add_special_tokens=False) for word in words)
    return {place: ids[0] for place, ids in enumerate(tokens) if len(ids) == 1}


def _has_mark(text: str) -> bool:
    return reasoning.HARMONY in text or reasoning.MARK.search(text) is not None


@cache
def _marks_are_special(tokenizer: Any) -> bool:
    """Tell whether leaving out special tokens would leave out the marks of reasoning (as in
    gpt-oss).
    """
    return any(
        token.special and _has_mark(token.content)
        for token in tokenizer.added_tokens_decoder.values()
    )
