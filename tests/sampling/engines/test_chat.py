"""Reasoning and answer, in texts and in tokens."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from capcal_lib.errors import InputError
from capcal_lib.manifests import Model, Sampling, load_model
from capcal_lib.questions import Answer, Question
from capcal_lib.sampling.engines import Request

tokenizers = pytest.importorskip("tokenizers")
transformers = pytest.importorskip("transformers")

from capcal_lib.sampling.engines.chat import (  # noqa: E402 -- what they are given comes from transformers
    PROMPTS_AT_ONCE,
    LocalEngine,
    Prompt,
    Reply,
    encode_all,
    turn_ends,
)
from tests.sampling.engines.encoded import encode  # noqa: E402

MODEL = load_model("smollm2-135m")


def make(special: bool) -> tuple[Any, dict[str, int]]:
    """A tokenizer of words, whose marks of reasoning are special tokens or not."""
    words = {
        word: index
        for index, word in enumerate(["ask", "hm", "Paris", "<think>", "</think>", "end"])
    }
    core = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="ask"))
    core.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    marks = [tokenizers.AddedToken(mark, special=special) for mark in ("<think>", "</think>")]
    (core.add_special_tokens if special else core.add_tokens)(marks)
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=core, eos_token="end")
    tokenizer.chat_template = "{{ messages[0]['content'] }}"
    return tokenizer, words


class Saying(LocalEngine):
    """An engine that says the same to every prompt."""

    def __init__(self, model: Model, tokenizer: Any, said: list[int]) -> None:
        self.model, self.tokenizer, self.said = model, tokenizer, said

    def _draw(self, prompts: list[Prompt], sampling: Sampling, seed: int) -> Iterator[Reply]:
        for prompt in prompts:
            yield Reply(prompt, prompt.sample_indices, self.said, ended=False)

    def _logprobs(self, prompts: list[list[int]], tokens: list[int]) -> np.ndarray:
        raise NotImplementedError


def divided(
    tokenizer: Any, asked: str, said: list[int], model: Model = MODEL
) -> tuple[str | None, str]:
    """Return the reasoning and the answer of what was said after a prompt."""
    question = Question("q", asked, Answer("short", "Paris"))
    request = Request(question, ({"role": "user", "content": asked},), (0,))
    ((row,),) = Saying(model, tokenizer, said).sample([request], model.sampling, 0)
    return row.reasoning, row.response


@pytest.mark.parametrize("special", [False, True])
def test_marks_are_seen_whether_special_or_not(special: bool) -> None:
    tokenizer, words = make(special)
    said = [words[word] for word in ("<think>", "hm", "</think>", "Paris")]
    reasoning, answer = divided(tokenizer, "ask", said)
    assert (reasoning, answer.strip()) == ("hm", "Paris")


def test_reasoning_may_be_opened_in_the_prompt() -> None:
    tokenizer, words = make(False)
    assert divided(tokenizer, "ask <think>", [words["hm"]]) == ("hm", "")
    assert divided(tokenizer, "ask", [words["hm"]]) == (None, "hm")
    closed = "ask <think> hm </think>"
    assert divided(tokenizer, closed, [words["Paris"]]) == (None, "Paris")


def test_a_model_without_a_chat_template_completes_a_text() -> None:
    tokenizer, words = make(False)
    tokenizer.chat_template = None
    request = Request(
        Question("q", "hm", Answer("short", "Paris")), ({"role": "user", "content": "hm"},)
    )
    with pytest.raises(
        InputError,
        match="'smollm2-135m' has no chat template; put prompt_style: completion",
    ):
        encode(tokenizer, MODEL, request)
    base = MODEL.model_copy(update={"prompt_style": "completion"})
    read = encode(tokenizer, base, request)
    assert read == [words["ask"], words["hm"], words["ask"]]  # Q: and A: are unknown words here
    said = [words["Paris"], words["end"]]
    assert divided(tokenizer, "hm", said, base) == (None, "Paris"), "without the special token"


@pytest.mark.parametrize(
    ("number", "style"), [(2 * PROMPTS_AT_ONCE + 1, "short"), (3, "completion")]
)
def test_prompts_read_together_are_those_read_one_by_one(number: int, style: str) -> None:
    tokenizer, words = make(False)
    model = MODEL.model_copy(update={"prompt_style": style})
    texts = [" ".join(["hm"] * (place % 7) + ["Paris"]) for place in range(number)]
    asked = [
        Request(Question("q", text, Answer("short", "Paris")), ({"role": "user", "content": text},))
        for text in texts
    ]
    read = encode_all(tokenizer, model, asked)
    assert read == [encode(tokenizer, model, one) for one in asked]
    if style == "short":
        assert read == [[words[word] for word in text.split()] for text in texts]


def asked(words: str = "hm") -> Request:
    question = Question("q", words, Answer("short", "Paris"))
    return Request(question, ({"role": "user", "content": words},))


def test_a_switch_that_the_template_does_not_know_is_refused() -> None:
    tokenizer, words = make(False)
    tokenizer.chat_template = "ask{% if enable_thinking is false %} hm{% endif %}"
    known = MODEL.model_copy(update={"chat_template": {"enable_thinking": False}})
    assert encode(tokenizer, known, asked()) == [words["ask"], words["hm"]]
    for name in ("thinking", "enable_thought"):
        unknown = MODEL.model_copy(update={"chat_template": {name: False}})
        with pytest.raises(InputError, match=f"template of 'smollm2-135m' does not know '{name}'"):
            encode(tokenizer, unknown, asked())
        with pytest.raises(InputError, match="does not know"):
            turn_ends(tokenizer, unknown)


def test_a_template_that_raises_is_refused_in_its_own_words() -> None:
    tokenizer, _ = make(False)
    tokenizer.chat_template = "{{ raise_exception('roles must alternate') }}"
    with pytest.raises(InputError, match=r"refuses the messages: roles must alternate$"):
        encode(tokenizer, MODEL, asked())
    assert turn_ends(tokenizer, MODEL) == set()


@pytest.mark.parametrize(
    ("template", "end"),
    [
        ("{% for one in messages %}{{ one.content }}</think>{% endfor %}", True),
        ("{% for one in messages %}{{ one.content }} \n</think>\n{% endfor %}", True),
        ("{% for one in messages %}</think>{{ one.content }} hm{% endfor %}", False),
        ("{{ messages[0].content }}</think>", False),  # says nothing of an assistant
    ],
)
def test_the_special_token_after_an_assistants_turn_is_an_end(template: str, end: bool) -> None:
    tokenizer, words = make(True)
    tokenizer.chat_template = template
    assert turn_ends(tokenizer, MODEL) == ({words["</think>"]} if end else set())
    completes = MODEL.model_copy(update={"prompt_style": "completion"})
    assert turn_ends(tokenizer, completes) == set()


def test_the_date_of_a_template_is_that_of_the_manifest() -> None:
    tokenizer, words = make(False)
    tokenizer.add_tokens(["2026-02-13"])
    tokenizer.chat_template = "ask {{ strftime_now('%Y-%m-%d') }}"
    request = Request(
        Question("q", "hm", Answer("short", "Paris")), ({"role": "user", "content": "hm"},)
    )
    dated = MODEL.model_copy(update={"chat_template": {"date": "2026-02-13"}})
    assert encode(tokenizer, dated, request) == [words["ask"], len(words)]
    today = words["ask"]  # another word
    assert encode(tokenizer, MODEL, request) == [words["ask"], today]
