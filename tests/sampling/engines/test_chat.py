"""Reasoning and answer, in texts and in tokens."""

import pytest

from capcal_lib.errors import InputError
from capcal_lib.manifests import load_model
from capcal_lib.questions import Answer, Question
from capcal_lib.sampling.engines import Request

tokenizers = pytest.importorskip("tokenizers")
transformers = pytest.importorskip("transformers")

from capcal_lib.sampling.engines.chat import decode, encode  # noqa: E402 -- what it is given comes from transformers

MODEL = load_model("smollm2-135m")


def make(special: bool) -> tuple[object, dict[str, int]]:
    """A tokenizer of words, whose marks of reasoning are special tokens or not."""
    words = {
        word: index
        for index, word in enumerate(["ask", "hm", "Paris", "<think>", "</think>", "end"])
    }
    core = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="ask"))
    core.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    marks = [tokenizers.AddedToken(mark, special=special) for mark in ("<think>", "</think>")]
    (core.add_special_tokens if special else core.add_tokens)(marks)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=core, eos_token="end"), words


@pytest.mark.parametrize("special", [False, True])
def test_marks_are_seen_whether_special_or_not(special: bool) -> None:
    tokenizer, words = make(special)
    said = [words[word] for word in ("<think>", "hm", "</think>", "Paris")]
    reasoning, answer = decode(tokenizer, MODEL, [words["ask"]], said)
    assert (reasoning, answer.strip()) == ("hm", "Paris")


def test_reasoning_may_be_opened_in_the_prompt() -> None:
    tokenizer, words = make(False)
    prompt = [words["ask"], words["<think>"]]
    assert decode(tokenizer, MODEL, prompt, [words["hm"]]) == ("hm", "")
    assert decode(tokenizer, MODEL, prompt[:1], [words["hm"]]) == (None, "hm")


def test_a_model_without_a_chat_template_completes_a_text() -> None:
    tokenizer, words = make(False)
    request = Request(
        Question("q", "hm", Answer("short", "Paris")), ({"role": "user", "content": "hm"},)
    )
    with pytest.raises(
        InputError,
        match="'smollm2-135m' has no chat template; ask it with prompt_style: completion",
    ):
        encode(tokenizer, MODEL, request)
    base = MODEL.model_copy(update={"prompt_style": "completion"})
    read = encode(tokenizer, base, request)
    assert read == [words["ask"], words["hm"], words["ask"]]  # Q: and A: are unknown words here
    assert decode(tokenizer, base, read, [words["Paris"]]) == (None, "Paris")


def test_the_date_of_a_template_is_that_of_the_manifest() -> None:
    tokenizer, words = make(False)
    tokenizer.add_tokens(["2026-02-13"])  # type: ignore[attr-defined]
    tokenizer.chat_template = "ask {{ strftime_now('%Y-%m-%d') }}"  # type: ignore[attr-defined]
    request = Request(
        Question("q", "hm", Answer("short", "Paris")), ({"role": "user", "content": "hm"},)
    )
    dated = MODEL.model_copy(update={"chat_template": {"date": "2026-02-13"}})
    assert encode(tokenizer, dated, request) == [words["ask"], len(words)]
    assert encode(tokenizer, MODEL, request) == [
        words["ask"],
        words["ask"],
    ]  # today is another word
