"""Turn messages into tokens and back, with a model's own tokenizer and chat template."""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from datetime import date
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from capcal_lib.errors import InputError
from capcal_lib.manifests import Model, Sampling
from capcal_lib.questions import reasoning
from capcal_lib.questions.prompts import completion_answer, completion_text
from capcal_lib.runs.store import FinishReason, Sample
from capcal_lib.sampling.engines import Request
from capcal_lib.text import sanitize

PROMPTS_AT_ONCE = 256  # read by the tokenizer's threads, which keep much of each while they work


def encode_all(tokenizer: Any, model: Model, requests: Sequence[Request]) -> list[list[int]]:
    """Return the token ids of each request's messages as the model reads them, ready for its
    answer.

    A model without a chat template reads them as the beginning of a text, in the prompt style
    ``completion``. A template writes the date of the manifest's switch ``date``, or else today's.
    """
    completes = model.prompts.completion
    switches = {} if completes else template_switches(tokenizer, model)
    tokens: list[list[int]] = []
    for start in range(0, len(requests), PROMPTS_AT_ONCE):
        some = requests[start : start + PROMPTS_AT_ONCE]
        if completes:
            encoded = tokenizer([completion_text(one.messages) for one in some])
        else:
            try:
                encoded = tokenizer.apply_chat_template(
                    [list(one.messages) for one in some],
                    add_generation_prompt=True,
                    tokenize=True,
                    return_dict=True,
                    **switches,
                )
            except Exception as error:  # a template is a program
                raise InputError(
                    f"the chat template of {model.name!r} refuses the messages: {sanitize(error)}"
                ) from error
        tokens += encoded["input_ids"]
    return tokens


def template_switches(tokenizer: Any, model: Model) -> dict[str, Any]:
    """Return what a model's chat template is given beside the messages; `InputError` if it has no
    template, or one that does not know a switch of the manifest.
    """
    template = tokenizer.chat_template
    if template is None:
        raise InputError(
            f"{model.name!r} has no chat template; put prompt_style: completion into its manifest"
        )
    for name in model.chat_template:
        if name != "date" and not re.search(rf"\b{re.escape(name)}\b", str(template)):
            raise InputError(
                f"the chat template of {model.name!r} does not know {name!r}; correct or remove it "
                "under chat_template in the manifest"
            )
    switches = dict(model.chat_template)
    if "date" in switches:  # what templates call
        switches["strftime_now"] = date.fromisoformat(switches["date"]).strftime
    return switches


def turn_ends(tokenizer: Any, model: Model) -> set[int]:
    """Return the special token that the chat template writes after an assistant's turn, if any.

    Some checkpoints do not list it among their ends, and would go on with an invented turn."""
    if model.prompts.completion:
        return set()
    switches = template_switches(tokenizer, model)
    turns = [{"role": "user", "content": "Question"}, {"role": "assistant", "content": "Answer"}]
    try:
        text = tokenizer.apply_chat_template(turns, tokenize=False, **switches)
    except Exception:  # it refuses this conversation, but may take those that are asked
        return set()
    _, answer, rest = text.rpartition("Answer")
    return {
        number
        for number, token in tokenizer.added_tokens_decoder.items()
        if answer and token.special and rest.lstrip().startswith(token.content)
    }


class Prompt(NamedTuple):
    """The tokens of one question's prompt."""

    question_id: str
    tokens: list[int]
    limit: int  # tokens of an answer: ``max_tokens``, or what the prompt leaves of the context
    sample_indices: tuple[int, ...]  # the samples wanted
    completes: bool  # a text, where the model has no chat template
    opened: bool | None  # whether it opens a reasoning at its end, or closes one (False)


def decode(tokenizer: Any, prompt: Prompt, tokens: Sequence[int]) -> tuple[str | None, str]:
    """Return the reasoning, if any, and the answer in a reply, without its end-of-turn token.

    A chat template may open the reasoning in the prompt itself. For a completion only the answer is
    kept."""
    if prompt.completes:
        return None, completion_answer(tokenizer.decode(tokens, skip_special_tokens=True))
    text = tokenizer.decode(tokens, skip_special_tokens=not _marks_are_special(tokenizer))
    return reasoning.split_reasoning(f"<think>{text}" if prompt.opened else text)


class Reply(NamedTuple):
    """The text of samples that answer a prompt alike."""

    prompt: Prompt
    sample_indices: Sequence[int]
    tokens: Sequence[int]
    ended: bool  # by the model, with its last token, and not by the limit


class LocalEngine(ABC):
    """The base of engines that hold a model; each draws and reads in its own way."""

    model: Model
    tokenizer: Any
    positions: float = math.inf  # that the model has for a prompt and its answer

    @abstractmethod
    def _draw(self, prompts: list[Prompt], sampling: Sampling, seed: int) -> Iterator[Reply | None]:
        """Draw every wanted sample, yielding each as it is done, or None while none is."""

    @abstractmethod
    def _logprobs(self, prompts: list[list[int]], tokens: list[int]) -> np.ndarray:
        """Return the log-probability that each token follows each prompt."""

    def _prompts(self, requests: Sequence[Request], sampling: Sampling) -> list[Prompt]:
        if sampling.context_tokens > self.positions:
            raise InputError(
                f"{self.model.name!r} has {self.positions:,} positions, fewer than context_tokens "
                f"= {sampling.context_tokens:,}; lower context_tokens in the manifest"
            )
        prompts = []
        completes = self.model.prompts.completion
        encoded = encode_all(self.tokenizer, self.model, requests)
        for request, tokens in zip(requests, encoded, strict=True):
            name = request.question.id
            room = sampling.context_tokens - len(tokens)
            if room < 1:
                raise InputError(
                    f"question {name!r}: the prompt has {len(tokens)} tokens, which leaves no room "
                    f"for an answer in context_tokens = {sampling.context_tokens}; raise that, or "
                    "leave out the question"
                )
            limit = min(sampling.max_tokens, room)
            opened = reasoning.opened(self.tokenizer.decode(tokens[-16:]))
            indices = request.sample_indices
            prompts.append(Prompt(name, tokens, limit, indices, completes, opened))
        return prompts

    def sample(
        self, requests: Sequence[Request], sampling: Sampling, seed: int
    ) -> Iterator[list[Sample]]:
        """Draw every wanted sample, and yield each when it is done, together with samples of the
        same text.
        """
        for reply in self._draw(self._prompts(requests, sampling), sampling, seed):
            if reply is None:
                yield []
                continue
            prompt = reply.prompt
            tokens = reply.tokens[:-1] if reply.ended else reply.tokens
            reasoning, response = decode(self.tokenizer, prompt, tokens)
            finish: FinishReason = "stop" if reply.ended else "length"
            rest = response, reasoning, finish, len(prompt.tokens), len(reply.tokens)
            yield [Sample(prompt.question_id, index, *rest) for index in reply.sample_indices]

    def next_token_logprobs(
        self, requests: Sequence[Request], words: Sequence[str], sampling: Sampling, seed: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return log-probabilities and tokens as `Engine` says.

        A model with marks of reasoning reasons first, unless the prompt has closed the reasoning
        already."""
        tokenizer = self.tokenizer
        prompts = self._prompts(requests, sampling)
        texts = [prompt.tokens for prompt in prompts]
        spent = np.ones(len(texts), dtype=np.int64)
        rows = {prompt.question_id: row for row, prompt in enumerate(prompts)}
        known = f"{tokenizer.chat_template} {tokenizer.get_added_vocab()}"
        marked = _has_mark(known) and not self.model.prompts.completion
        reasoning = [
            prompt._replace(sample_indices=(0,))
            for prompt in prompts
            if marked and prompt.opened is not False
        ]
        for prompt, _, reply, _ in filter(None, self._draw(reasoning, sampling, seed)):
            opening = "<think>" if prompt.opened else ""
            pieces = [opening, *(tokenizer.decode([token]) for token in reply)]
            start = answer_start(pieces)
            row = rows[prompt.question_id]
            spent[row] = start or len(reply)
            texts[row] = [*prompt.tokens, *reply[: start - 1]] if start else []
        answered = [row for row, text in enumerate(texts) if text]
        single = single_tokens(tokenizer, words)
        logprobs = self._logprobs([*filter(None, texts)], [*single.values()])
        result = np.full((len(texts), len(words)), np.nan)
        result[np.ix_(answered, [*single])] = logprobs
        return result, spent


def answer_start(pieces: Sequence[str]) -> int | None:
    """Return the place of the answer's first token among the tokens of a reply; None if there is no
    answer.

    It is the first token after the reasoning, if any, that is not blank.

    >>> (answer_start(["<think>", "2+2", "</think>", " ", "4"]), answer_start(["4"]),
    ...     answer_start(["<think>", "2"]))
    (4, 0, None)
    """
    begin = reasoning.answer_start("".join(pieces))
    stop = 0
    for place, piece in enumerate(pieces):
        start, stop = stop, stop + len(piece)
        if begin is not None and stop > begin and piece.strip():
            return place if start >= begin else None
    return None


def single_tokens(tokenizer: Any, words: Sequence[str]) -> dict[int, int]:
    """Return the token ids of the words that are a single token, by the places of the words."""
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
