"""The transformers engine, against plain transformers, on tiny models with random weights."""

import gc
import itertools
import json
import weakref
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

from capcal_lib.errors import InputError
from capcal_lib.probes.features import extract_features
from capcal_lib.questions import Answer, Question
from capcal_lib.sampling.engines import answer_requests

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from capcal_lib.sampling.engines.transformers import TransformersEngine  # noqa: E402 -- needs torch
from tests.sampling.engines.tiny_models import (  # noqa: E402
    ARCHITECTURES,
    OTHERS,
    WORDS,
    chi_square_p,
    draw,
    make_weights,
    manifest,
    naive_probabilities,
    plain,
    plain_logits,
    prompt_of,
    request,
    settings,
)


def test_whole_answers_come_with_their_probabilities(
    engines: Callable[[str], TransformersEngine],
) -> None:
    engine, sampling = engines("llama"), settings(max_tokens=2, temperature=1.5)
    asked = request("one two", 5_000)
    prompt = prompt_of(engine, asked)
    exact: dict[str, float] = {}
    for tokens in itertools.product(range(len(WORDS)), repeat=2):
        said, p = [], 1.0
        for token in tokens:
            p *= naive_probabilities(plain_logits(engine, [*prompt, *said]), sampling)[token]
            said.append(token)
            if token == 0:
                break
        if tokens == (*said, *[0] * (2 - len(said))):  # count an answer that ended early once
            exact[" ".join(WORDS[token] for token in said if token)] = p
    assert sum(exact.values()) == pytest.approx(1)
    counts = Counter(sample.response for sample in draw(engine, [asked], sampling))
    assert set(counts) <= set(exact)
    assert (
        chi_square_p(np.array([counts[text] for text in exact]), np.array(list(exact.values())))
        > 1e-4
    )


def test_temperature_zero_is_greedy(engines: Callable[[str], TransformersEngine]) -> None:
    engine = engines("qwen2")
    asked = request("two four", 3)
    ids = prompt = prompt_of(engine, asked)
    while len(ids) < len(prompt) + 6 and (len(ids) == len(prompt) or ids[-1] != 0):
        ids = [*ids, int(plain_logits(engine, ids).argmax())]
    said = [WORDS[token] for token in ids[len(prompt) :] if token]
    samples = draw(engine, [asked], settings(temperature=0.0))
    assert {sample.response for sample in samples} == {" ".join(said)}
    assert {sample.completion_tokens for sample in samples} == {len(ids) - len(prompt)}


def test_samples_count_their_tokens_and_say_why_they_ended(
    engines: Callable[[str], TransformersEngine],
) -> None:
    samples = draw(engines("llama"), [request("one", 200)], settings(temperature=2.0))
    assert {sample.finish_reason for sample in samples} == {"stop", "length"}
    for sample in samples:
        words = len(sample.response.split())
        assert sample.completion_tokens == words + (sample.finish_reason == "stop")
        assert sample.finish_reason == "stop" or words == 6
        assert sample.prompt_tokens == 3
        assert sample.reasoning is None


def test_the_context_bounds_the_answer(engines: Callable[[str], TransformersEngine]) -> None:
    samples = draw(
        engines("llama"), [request("one", 50)], settings(temperature=2.0, context_tokens=5)
    )
    assert max(sample.completion_tokens for sample in samples) == 2
    with pytest.raises(
        InputError, match=r"question 'one': the prompt has 3 tokens, .* context_tokens = 3"
    ):
        draw(engines("llama"), [request("one", 1)], settings(context_tokens=3))


MIXED = [
    "one",
    "two " * 30,
    "three four",
    "one",
    "one two " * 7,
    "three four five",
]  # some begin alike, two are equal


@pytest.mark.parametrize("architecture", ["llama", "olmo2"])
def test_hidden_states_and_logprobs_equal_plain_transformers(
    architecture: str, engines: Callable[[str], TransformersEngine]
) -> None:
    engine = engines(architecture)
    requests = [request(content) for content in MIXED]
    states = engine.hidden_states(requests)
    largest, embedded, last = (engine.hidden_states(requests, one) for one in ("max", "0", "3"))
    with pytest.raises(InputError, match="the model's layers are 0 to 3; got 4"):
        engine.hidden_states(requests, "4")
    logprobs, _ = engine.next_token_logprobs(requests, ["one", "no such", "five"], settings(), 0)
    assert states.shape == (6, 32)
    assert states.dtype == np.float32
    assert np.isnan(logprobs[:, 1]).all()
    for row, asked in enumerate(requests):
        with torch.inference_mode():
            out = plain(engine)(torch.tensor([prompt_of(engine, asked)]), output_hidden_states=True)
        layers = torch.stack([layer[0, -1] for layer in out.hidden_states])
        assert len(layers) == 4
        for found, expected in (
            (states, layers.mean(0)),
            (largest, layers.max(0).values),
            (embedded, layers[0]),
            (last, layers[3]),
        ):
            assert np.allclose(found[row], expected, rtol=1e-5, atol=1e-4)  # values of about 20
        assert np.allclose(
            logprobs[row, [0, 2]], out.logits[0, -1].log_softmax(-1)[[3, 7]], atol=5e-4
        )


def test_features_are_read_after_the_very_tokens_that_sampling_reads(
    engines: Callable[[str], TransformersEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = engines("llama")
    monkeypatch.setattr(engine, "model", manifest(chat_template={"loud": True}))
    questions = [
        Question(text, text, Answer("short", "one")) for text in ("one", "two three", "one two")
    ]
    read: list[list[int]] = []
    plain_read = engine._read
    monkeypatch.setattr(
        engine,
        "_read",
        lambda network, prompt, **options: (
            read.append(prompt) or plain_read(network, prompt, **options)
        ),
    )
    extract_features(engine, engine.model, questions)
    for_features, read[:] = sorted(read), []
    asked = answer_requests(engine.model, questions, {one.id: (0,) for one in questions})
    draw(engine, asked, settings(max_tokens=1, context_tokens=128))
    assert for_features == sorted(read)
    assert len(for_features) == 3
    assert all(WORDS[ids[-2]] == "five" and WORDS[ids[-1]] == "say" for ids in for_features)


def test_nothing_asked_gives_empty_arrays(engines: Callable[[str], TransformersEngine]) -> None:
    assert engines("llama").hidden_states([]).shape == (0, 32)
    assert engines("llama").next_token_logprobs([], ["one"], settings(), 0)[0].shape == (0, 1)
    assert draw(engines("llama"), [request("one")], settings()) == set()


@pytest.mark.parametrize("architecture", OTHERS)
def test_other_attention_is_read_and_not_sampled(architecture: str, tmp_path: Path) -> None:
    folder = make_weights(tmp_path, architecture, **OTHERS[architecture])
    engine = TransformersEngine(manifest(), folder)
    engine.tokenizer = transformers.PreTrainedTokenizerFast.from_pretrained(folder)
    requests = [request(content) for content in MIXED]
    states = engine.hidden_states(requests)
    logprobs, _ = engine.next_token_logprobs(requests, ["one", "five"], settings(), 0)
    for row, asked in enumerate(requests):
        ids = torch.tensor([prompt_of(engine, asked)])
        with torch.inference_mode():
            out = plain(engine)(ids, output_hidden_states=True, use_cache=False)
        expected = torch.stack([layer[0, -1] for layer in out.hidden_states]).mean(0)
        np.testing.assert_allclose(states[row], expected, rtol=1e-4, atol=2e-4)
        expected = out.logits[0, -1].log_softmax(-1)[[3, 7]]
        np.testing.assert_allclose(logprobs[row], expected, atol=5e-4)
    with pytest.raises(
        InputError, match=rf"attention of a '{architecture}' model; use --engine vllm"
    ):
        draw(engine, [request("one", 1)], settings())


@pytest.mark.parametrize(
    ("architecture", "dtype"),
    [("nemotron", "float32"), ("diffllama", "bfloat16"), ("llama", "bfloat16")],
)
def test_a_network_that_steps_without_its_prompt_is_not_sampled(
    architecture: str, dtype: str, tmp_path: Path
) -> None:
    folder = make_weights(tmp_path, architecture, initializer_range=0.02)
    engine = TransformersEngine(manifest(dtype=dtype), folder)
    assert engine.shares_prefixes == (architecture in ARCHITECTURES)


def test_tensors_that_are_missing_are_refused(tmp_path: Path) -> None:
    folder = make_weights(tmp_path, "llama")
    tensors = load_file(folder / "model.safetensors")
    fewer = {name: one for name, one in tensors.items() if ".layers.1." not in name}
    save_file(fewer, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(
        InputError,
        match=r"'tiny' lack 9 tensors, such as model\.layers\.1\.input_layernorm\.weight",
    ):
        TransformersEngine(manifest(), folder)
    renamed = {f"_orig_mod.{name}": one for name, one in tensors.items()}
    save_file(renamed, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InputError, match=r"lack 30 tensors, such as lm_head\.weight"):
        TransformersEngine(manifest(), folder)


def test_tensors_without_a_use_are_named_in_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    folder = make_weights(tmp_path, "llama")
    tensors = load_file(folder / "model.safetensors")
    tensors["model.layers.3.bias"] = torch.zeros(1)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    capfd.readouterr()
    TransformersEngine(manifest(), folder)
    assert caplog.messages == [
        "the network of 'tiny' does not use 1 tensor of its weights, such as model.layers.3.bias"
    ]
    assert capfd.readouterr() == ("", "")


def test_a_head_tied_to_the_embedding_is_no_missing_tensor(tmp_path: Path) -> None:
    folder = make_weights(tmp_path, "llama", tie_word_embeddings=True)
    assert "lm_head.weight" not in load_file(folder / "model.safetensors")
    assert draw(TransformersEngine(manifest(), folder), [request("one", 2)], settings())


CLOSED: dict[str, dict[str, Any]] = {
    "GPTQ": {"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128}},
    "own code": {
        "model_type": "ownlm",
        "auto_map": {"AutoConfig": "own.Config", "AutoModelForCausalLM": "own.ForCausalLM"},
    },
    "newer": {"model_type": "futurelm"},
}


@pytest.mark.parametrize("changes", CLOSED.values(), ids=CLOSED)
def test_a_checkpoint_that_transformers_cannot_open_is_refused_in_one_line(
    changes: dict[str, Any], tmp_path: Path
) -> None:
    config = make_weights(tmp_path, "llama") / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | changes))
    with pytest.raises(InputError, match=r"transformers could not open 'tiny': [A-Z]") as refused:
        TransformersEngine(manifest(), tmp_path)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 350


def test_a_context_beyond_the_positions_of_the_model_is_refused(
    engines: Callable[[str], TransformersEngine],
) -> None:
    engine = engines("llama")
    asked = [request("one", 1)]
    assert draw(engine, asked, settings(context_tokens=128))
    wide = settings(context_tokens=129)
    message = "'tiny' has 128 positions, fewer than context_tokens = 129"
    with pytest.raises(InputError, match=message):
        draw(engine, asked, wide)
    with pytest.raises(InputError, match=message):
        engine.next_token_logprobs(asked, ["one"], wide, 0)


def test_the_mark_after_an_assistants_turn_ends_an_answer(tmp_path: Path) -> None:
    """Although neither the configuration nor the tokenizer names it."""
    words = ["end", "ask", "say", "one", "<|turn|>"]
    folder = make_weights(tmp_path, "llama", words)
    tokenizer = transformers.PreTrainedTokenizerFast.from_pretrained(folder)
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|turn|>"]})
    tokenizer.chat_template = (
        "{% for one in messages %}{{ one.role }} {{ one.content }}<|turn|>\n{% endfor %}"
    )
    tokenizer.save_pretrained(folder)
    engine = TransformersEngine(manifest(), folder)
    assert engine.ends == {0, 4}
    rows = draw(engine, [request("one", 200)], settings(temperature=2.0, max_tokens=20))
    assert {row.finish_reason for row in rows} == {"stop"}


def test_the_head_over_the_vocabulary_is_left_out_of_hidden_states(
    engines: Callable[[str], TransformersEngine],
) -> None:
    engine = engines("llama")
    head = engine.network.lm_head.register_forward_hook(lambda *_: pytest.fail("it is used"))
    try:
        engine.hidden_states([request(content) for content in MIXED])
    finally:
        head.remove()


def test_what_is_read_before_changes_no_number(
    engines: Callable[[str], TransformersEngine],
) -> None:
    """Also not where reading was interrupted."""
    engine = engines("qwen3")
    asked = [request("two two three"), request("two two three four")]
    alone = np.concatenate([engine.hidden_states([one]) for one in asked])
    draw(engine, [request("two two", 3)], settings())
    stop = engine.network.model.layers[1].register_forward_pre_hook(
        lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)
    )
    with pytest.raises(KeyboardInterrupt):
        engine.hidden_states([request("two two three five")])
    stop.remove()
    np.testing.assert_allclose(engine.hidden_states(asked), alone, atol=1e-4)


def test_bfloat16_is_near(tmp_path: Path) -> None:
    folder = make_weights(tmp_path, "qwen2")
    exact, rounded = (
        TransformersEngine(manifest(dtype=dtype), folder) for dtype in ("float32", "bfloat16")
    )
    for one in (exact, rounded):
        one.tokenizer = transformers.PreTrainedTokenizerFast.from_pretrained(folder)
    asked = [request("one two")]
    ours, theirs = (
        one.next_token_logprobs(asked, WORDS, settings(), 0)[0] for one in (exact, rounded)
    )
    assert 1e-4 < np.abs(ours - theirs).max() < 0.3
    assert draw(rounded, [request("one", 5)], settings())


def test_a_closed_engine_gives_the_memory_of_its_network_back(tmp_path: Path) -> None:
    make_weights(tmp_path, "llama", **ARCHITECTURES["llama"])
    engine = TransformersEngine(manifest(), tmp_path)
    engine.hidden_states([request("one two")])
    weights = [weakref.ref(part) for part in engine.network.parameters()]
    cache = weakref.ref(engine._cache)
    engine.close()
    gc.collect()
    assert not [one for one in (*weights, cache) if one() is not None]
