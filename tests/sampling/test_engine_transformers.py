"""The transformers engine, against plain transformers, on tiny models with random weights."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from capcal_lib.errors import InputError
from capcal_lib.manifests import Model, Sampling, load_model
from capcal_lib.probes.features import extract_features
from capcal_lib.questions import Answer, Question
from capcal_lib.runs.samples import Sample
from capcal_lib.sampling.engines import Request, answer_requests
from capcal_lib.sampling.engines.chat import encode
from capcal_lib.sampling.engines.token_sampling import draw_tokens
from capcal_lib.sampling.weights import weights_folder

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from capcal_lib.sampling.engines.transformers import TransformersEngine  # noqa: E402 -- needs torch

WORDS = ["end", "ask", "say", "one", "two", "three", "four", "five"]
TEMPLATE = (
    "{% for message in messages %}ask {{ message['content'] }} {% endfor %}"
    "{% if loud %}five {% endif %}{% if add_generation_prompt %}say{% endif %}"
)
SIZES: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 128,
    "initializer_range": 0.5,
    "bos_token_id": None,
    "eos_token_id": 0,
    "pad_token_id": 0,
    "tie_word_embeddings": False,
}
TINY = {"name": "tiny", "weights": (), "hidden_size": None}
LAYERS = ["sliding_attention", "full_attention", "sliding_attention"]
ARCHITECTURES: dict[str, dict[str, Any]] = {
    "llama": {},
    "qwen2": {},
    "qwen3": {},
    "olmo2": {},
}
OTHERS: dict[str, dict[str, Any]] = {
    "olmo3": {"layer_types": LAYERS, "sliding_window": 5},
    "mistral": {"sliding_window": 7},
    "gpt_oss": {"num_local_experts": 4, "num_experts_per_tok": 2},
    "gemma2": {},
}


def prompt_of(engine: TransformersEngine, asked: Request) -> list[int]:
    return encode(engine.tokenizer, engine.model, asked)


def manifest(**changes: Any) -> Model:
    return load_model("smollm2-135m").model_copy(update={**TINY, **changes})


def settings(**changes: Any) -> Sampling:
    return Sampling(**{"temperature": 1.0, "max_tokens": 6, "context_tokens": 64, **changes})


def make_weights(folder: Path, architecture: str, words: list[str] = WORDS, **changes: Any) -> Path:
    """Save a tiny model whose tokens are words, and give its attention something to tell apart."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    vocabulary = {word: i for i, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="ask"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="end")
    fast.chat_template = TEMPLATE
    fast.save_pretrained(folder)
    torch.manual_seed(7)
    config = transformers.AutoConfig.for_model(
        architecture, vocab_size=len(words), **{**SIZES, **changes}
    )
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def engines(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[[str], TransformersEngine]]:
    made: dict[str, TransformersEngine] = {}

    def engine(architecture: str) -> TransformersEngine:
        if architecture not in made:
            folder = tmp_path_factory.mktemp(architecture)
            make_weights(folder, architecture, **ARCHITECTURES[architecture])
            made[architecture] = TransformersEngine(manifest(), folder)
            # AutoTokenizer would make the words into a tokenizer of the architecture's own kind.
            made[architecture].tokenizer = transformers.PreTrainedTokenizerFast.from_pretrained(
                folder
            )
        return made[architecture]

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield engine
    torch.set_num_threads(threads)


def request(content: str, samples: int = 0, name: str | None = None) -> Request:
    question = Question(name or content, content, Answer("short", "one"))
    return Request(question, ({"role": "user", "content": content},), tuple(range(samples)))


def draw(
    engine: TransformersEngine, requests: list[Request], sampling: Sampling, seed: int = 0
) -> set[Sample]:
    return {sample for group in engine.sample(requests, sampling, seed) for sample in group}


@cache
def plain(engine: TransformersEngine) -> Any:
    """The same weights in plain transformers, with its own attention."""
    folder = engine.network.name_or_path
    return transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager"
    )


def plain_logits(engine: TransformersEngine, ids: list[int]) -> Any:
    """Next-token logits of one sequence, without a cache."""
    with torch.inference_mode():
        return plain(engine)(torch.tensor([ids]), use_cache=False).logits[0, -1].double()


def chi_square_p(counts: np.ndarray, probabilities: np.ndarray) -> float:
    from scipy.stats import chisquare

    assert counts[probabilities == 0].sum() == 0
    order = np.argsort(probabilities)[::-1]
    counts, expected = counts[order], probabilities[order] * counts.sum()
    common = expected >= 8
    counts = np.append(counts[common], counts[~common].sum())
    expected = np.append(expected[common], expected[~common].sum())
    keep = expected > 1e-6 * counts.sum()
    return float(
        chisquare(counts[keep], expected[keep] * counts[keep].sum() / expected[keep].sum()).pvalue
    )


def naive_probabilities(logits: Any, sampling: Sampling) -> np.ndarray:
    """Temperature, then top-k, then top-p, token by token, as the words say."""
    logits = np.asarray(logits, dtype=np.float64) / sampling.temperature
    p = np.exp(logits - logits.max())
    p /= p.sum()
    order = list(np.argsort(-p, kind="stable"))[: sampling.top_k]
    kept, total, wanted = [], 0.0, sampling.top_p * p[order].sum()
    for token in order:
        if total >= wanted:
            break
        kept.append(token)
        total += p[token]
    result = np.zeros_like(p)
    result[kept] = p[kept] / total
    return result


SETTINGS = [
    settings(),
    settings(temperature=0.4),
    settings(temperature=1.7),
    settings(top_k=5),
    settings(top_p=0.6),
    settings(temperature=2.0, top_p=0.9, top_k=1500),
    settings(temperature=8.0, top_p=0.97),
]


@pytest.mark.parametrize("sampling", SETTINGS, ids=str)
@pytest.mark.parametrize("vocabulary", [8, 256, 3000])
def test_tokens_are_drawn_with_their_probabilities(vocabulary: int, sampling: Sampling) -> None:
    rng = np.random.default_rng(0)
    logits = torch.tensor(rng.normal(scale=2, size=(3, vocabulary)), dtype=torch.float32)
    rows = torch.arange(3).repeat(20_000)
    tokens = draw_tokens(logits.clone(), rows, torch.tensor(rng.random(len(rows))), sampling)
    for row in range(3):
        counts = np.bincount(tokens[rows == row].numpy(), minlength=vocabulary)
        assert chi_square_p(counts, naive_probabilities(logits[row].numpy(), sampling)) > 1e-4


@pytest.mark.parametrize("sampling", SETTINGS, ids=str)
def test_the_boundaries_between_tokens_are_exact(sampling: Sampling) -> None:
    logits = torch.tensor(
        np.random.default_rng(1).normal(scale=2, size=(1, 700)), dtype=torch.float32
    )
    edges = np.cumsum(naive_probabilities(logits[0].numpy(), sampling))
    for nudge, side in ((-3e-7, "left"), (3e-7, "right")):
        uniforms = np.clip(edges + nudge, 0, 1 - 1e-9)
        drawn = draw_tokens(
            logits.clone(), torch.zeros(700, dtype=torch.long), torch.tensor(uniforms), sampling
        )
        inside = np.diff(edges, prepend=0) > 1e-6
        clear = inside & np.roll(inside, -1) if side == "right" else inside
        clear[-1] = False
        expected = np.searchsorted(edges, uniforms, side="right")
        assert np.array_equal(drawn.numpy()[clear], expected[clear])


def test_the_ends_of_the_unit_interval_draw_tokens_that_have_probability() -> None:
    logits = torch.full((1, 2000), -torch.inf)
    logits[0, 700], logits[0, 1201] = 0.0, 1.0
    uniforms = torch.tensor([0.0, np.nextafter(1, 0)], dtype=torch.float64)
    assert draw_tokens(logits, torch.zeros(2, dtype=torch.long), uniforms, settings()).tolist() == [
        700,
        1201,
    ]


def test_tokens_that_tie_at_a_limit_stay_together() -> None:
    logits = torch.tensor([[2.0, 1.0, 1.0, 0.0]])
    uniforms = torch.linspace(0, 0.999, 200, dtype=torch.float64)
    for sampling in (settings(top_k=2), settings(top_p=0.7)):
        assert set(
            draw_tokens(
                logits.clone(), torch.zeros(200, dtype=torch.long), uniforms, sampling
            ).tolist()
        ) == {
            0,
            1,
            2,
        }


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_step_has_the_logits_of_plain_transformers(
    architecture: str, engines: Callable[[str], TransformersEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = engines(architecture)
    seen: dict[tuple[int, ...], Any] = {}
    step, begin = engine._step, engine._begin

    def recording_step(branches: Any, tails: Any) -> Any:
        logits = step(branches, tails)
        seen.update(
            {
                (*b.group.prompt.tokens, *b.tokens): row.clone()
                for b, row in zip(branches, logits, strict=True)
            }
        )
        return logits

    def recording_begin(group: Any) -> Any:
        logits = begin(group)
        seen[tuple(group.prompt.tokens)] = logits[0].clone()
        return logits

    monkeypatch.setattr(engine, "_step", recording_step)
    monkeypatch.setattr(engine, "_begin", recording_begin)
    monkeypatch.setattr("capcal_lib.sampling.engines.transformers.SAMPLES_IN_FLIGHT", 25)
    requests = [
        request("one", 20),
        request("two three", 3),
        request("four " * 9, 11),
        request("five two one", 60),
    ]
    draw(engine, requests, settings(max_tokens=9, temperature=1.5))
    assert len(seen) > 150
    for ids, logits in seen.items():
        assert np.allclose(logits, plain_logits(engine, list(ids)), atol=5e-4)


def test_whole_answers_come_with_their_probabilities(
    engines: Callable[[str], TransformersEngine],
) -> None:
    engine, sampling = engines("llama"), settings(max_tokens=3, temperature=1.5)
    asked = request("one two", 20_000)
    prompt = prompt_of(engine, asked)
    exact: dict[str, float] = {}
    for tokens in itertools.product(range(len(WORDS)), repeat=3):
        said, p = [], 1.0
        for token in tokens:
            p *= naive_probabilities(plain_logits(engine, [*prompt, *said]), sampling)[token]
            said.append(token)
            if token == 0:
                break
        if tokens == (*said, *[0] * (3 - len(said))):  # count an answer that ended early once
            exact[" ".join(WORDS[token] for token in said if token)] = p
    assert sum(exact.values()) == pytest.approx(1)
    counts = Counter(sample.response for sample in draw(engine, [asked], sampling))
    assert set(counts) <= set(exact)
    assert (
        chi_square_p(np.array([counts[text] for text in exact]), np.array(list(exact.values())))
        > 1e-4
    )


def test_a_sample_is_the_same_whatever_else_is_in_the_batch(
    engines: Callable[[str], TransformersEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = engines("qwen3")
    requests = [request("one", 30), request("two two two", 40), request("three " * 12, 25)]
    everything = draw(engine, requests, settings())
    assert len(everything) == 95
    assert draw(engine, requests[::-1], settings()) == everything
    part = Request(requests[1].question, requests[1].messages, (39, 4))
    assert draw(engine, [part], settings()) == {
        s for s in everything if s.question_id == "two two two" and s.sample_index in (4, 39)
    }
    for size in (1, 7, 33):
        monkeypatch.setattr("capcal_lib.sampling.engines.transformers.SAMPLES_IN_FLIGHT", size)
        assert draw(engine, requests, settings()) == everything


def test_another_seed_question_or_index_gives_another_answer(
    engines: Callable[[str], TransformersEngine],
) -> None:
    engine = engines("llama")
    first = {
        s.sample_index: s.response for s in draw(engine, [request("one", 40, "a")], settings())
    }
    seeded = {
        s.sample_index: s.response
        for s in draw(engine, [request("one", 40, "a")], settings(), seed=1)
    }
    renamed = {
        s.sample_index: s.response for s in draw(engine, [request("one", 40, "b")], settings())
    }
    assert first != seeded
    assert first != renamed
    assert len(set(first.values())) > 10


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


def test_the_chat_template_gets_its_switches(engines: Callable[[str], TransformersEngine]) -> None:
    engine = engines("llama")
    assert prompt_of(engine, request("one")) == [
        WORDS.index(word) for word in ("ask", "one", "say")
    ]
    loud = TransformersEngine(
        manifest(chat_template={"loud": True}), Path(engine.network.name_or_path)
    )
    assert prompt_of(loud, request("one")) == [
        WORDS.index(word) for word in ("ask", "one", "five", "say")
    ]


MIXED = [
    "one",
    "two " * 30,
    "three four",
    "one",
    "one two " * 7,
    "three four five",
]  # some begin alike, two are equal


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_hidden_states_and_logprobs_equal_plain_transformers(
    architecture: str, engines: Callable[[str], TransformersEngine]
) -> None:
    engine = engines(architecture)
    requests = [request(content) for content in MIXED]
    states = engine.hidden_states(requests)
    largest, embedded, last = (engine.hidden_states(requests, one) for one in ("max", "0", "3"))
    with pytest.raises(InputError, match="the model has the layers 0 to 3; got 4"):
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


@pytest.mark.parametrize(("architecture", "side"), [("llama", "left"), ("qwen3", "right")])
def test_every_layer_is_read_at_the_last_token_whatever_was_read_before(
    architecture: str,
    side: str,
    engines: Callable[[str], TransformersEngine],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = engines(architecture)
    monkeypatch.setattr(engine.tokenizer, "padding_side", side)
    shared = "two three four five " * 10  # a beginning that is read before those that share it
    requests = [
        request(content) for content in [*MIXED, f"{shared} one", f"{shared} five", f"{shared} two"]
    ]
    states = engine.hidden_states(requests)
    assert states.shape == (9, 32)
    assert states.dtype == np.float32
    for row, asked in enumerate(requests):
        with torch.inference_mode():
            out = plain(engine)(torch.tensor([prompt_of(engine, asked)]), output_hidden_states=True)
        expected = torch.stack([layer[0, -1] for layer in out.hidden_states]).mean(0)
        assert np.allclose(states[row], expected, rtol=1e-5, atol=2e-4)  # values of about 20


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


def test_reasoning_is_kept_apart(tmp_path: Path) -> None:
    words = ["end", "ask", "say", "<think>", "</think>", "one"]
    engine = TransformersEngine(manifest(), make_weights(tmp_path, "llama", words))
    samples = draw(engine, [request("one", 300)], settings(temperature=3.0))
    assert all("</think>" not in sample.response for sample in samples)
    assert any(sample.reasoning and sample.response for sample in samples)
    assert any(sample.reasoning and not sample.response for sample in samples)


@pytest.fixture(scope="module")
def smollm() -> TransformersEngine:
    model = load_model("smollm2-135m")
    if weights_folder(model) is None:
        pytest.skip(
            "the weights of smollm2-135m are not here: capcal sample --model smollm2-135m gets them"
        )
    return TransformersEngine(model)


def test_the_embedded_model_draws_with_its_probabilities(
    smollm: TransformersEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("capcal_lib.sampling.engines.transformers.SAMPLES_IN_FLIGHT", 20_000)
    asked, sampling = request("What is the capital of Norway?", 20_000), settings(max_tokens=1)
    p = naive_probabilities(plain_logits(smollm, prompt_of(smollm, asked)), sampling)
    texts = [smollm.tokenizer.decode([token], skip_special_tokens=True) for token in range(len(p))]
    counts = Counter(sample.response for sample in draw(smollm, [asked], sampling))
    exact: Counter[str] = Counter()
    for text, probability in zip(texts, p, strict=True):
        exact[text] += probability
    assert (
        chi_square_p(np.array([counts[text] for text in exact]), np.array(list(exact.values())))
        > 1e-4
    )


@pytest.mark.parametrize("architecture", OTHERS)
def test_attention_that_looks_at_less_is_refused(architecture: str, tmp_path: Path) -> None:
    folder = make_weights(tmp_path, architecture, **OTHERS[architecture])
    with pytest.raises(InputError, match=rf"attention of a '{architecture}' model; use vllm"):
        TransformersEngine(manifest(), folder)


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
