"""P(True) and verbalized confidence of models that reason first, on a network whose every
probability is known.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from capcal_lib.confidence.p_true import p_true  # noqa: E402
from capcal_lib.confidence.verbalized import verbalized  # noqa: E402
from capcal_lib.questions import load_questions  # noqa: E402
from capcal_lib.sampling.engines import Request  # noqa: E402
from capcal_lib.sampling.engines.transformers import TransformersEngine  # noqa: E402
from tests.confidence.tables import tabulate  # noqa: E402
from tests.sampling.engines.tiny_models import make_weights, manifest, settings  # noqa: E402

QUESTIONS = load_questions("mini-capitals")[:40]
SIZE = 32
TAIL = {
    "Yes": 0.00025,
    "No": 0.00075,
}  # at the first token of a reply, where P(True) must not be read
NEXT = {  # the probability of each token after each other: a Markov chain
    "harmony": {
        "assistant": {"<|channel|>": 0.999, **TAIL},
        "<|channel|>": {"analysis": 0.5, "final": 0.5},
        "analysis": {"<|message|>": 1.0},
        "final": {"<|message|>": 1.0},
        "<|message|>": {"hm": 0.3, "Yes": 0.3, "No": 0.1, r"\boxed{0.7}": 0.3},
        "hm": {"<|end|>": 1.0},
        "<|end|>": {"<|start|>": 1.0},
        "<|start|>": {"assistant": 1.0},
    },
    "think": {
        "assistant": {"<think>": 0.999, **TAIL},
        "<think>": {"hm": 0.8, "Yes": 0.05, "No": 0.15},
        "hm": {"</think>": 0.7, "hm": 0.2, "end": 0.1},
        "</think>": {"\n": 1.0},
        "\n": {"Yes": 0.45, "No": 0.15, r"\boxed{0.7}": 0.4},
    },
}
ENDS = {
    "harmony": "<|start|> assistant",
    "think": "assistant",
    "opened": "assistant <think>",
    "closed": "</think>{{ '\n' }}",
}


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def make(folder: Path, style: str) -> TransformersEngine:
    """Write the chain into a Llama whose layers add nothing: the head says what follows a token."""
    chain = NEXT["harmony" if style == "harmony" else "think"]
    named = dict.fromkeys(["end", "ask", *chain, *(word for row in chain.values() for word in row)])
    words = [*named, *(f"filler{i}" for i in range(SIZE - len(named)))]
    make_weights(folder, "llama", words, num_hidden_layers=1, max_position_embeddings=4096)
    tokenizer = transformers.PreTrainedTokenizerFast.from_pretrained(folder)
    marks = [word for word in named if word.startswith("<|")]
    tokenizer.add_tokens([transformers.AddedToken(mark, special=True) for mark in marks])
    tokenizer.add_tokens(
        [transformers.AddedToken(mark, normalized=False) for mark in ("<think>", "</think>", "\n")]
    )
    tokenizer.chat_template = "{{ messages[-1]['content'].split()[0] }} " + ENDS[style]
    network = transformers.AutoModelForCausalLM.from_pretrained(folder)
    head = torch.full((SIZE, SIZE), -40.0)
    head[0] = 0.0  # what is not in the chain ends
    for word, row in chain.items():
        head[:, words.index(word)] = -40.0
        for following, probability in row.items():
            head[words.index(following), words.index(word)] = np.log(probability)
    with torch.no_grad():
        network.model.embed_tokens.weight.copy_(torch.eye(SIZE))
        network.lm_head.weight.copy_(head / SIZE**0.5)
        network.model.layers[0].self_attn.o_proj.weight.zero_()
        network.model.layers[0].mlp.down_proj.weight.zero_()
    network.save_pretrained(folder)
    engine = TransformersEngine(
        manifest(sampling=settings(max_tokens=24, context_tokens=4096)), folder
    )
    engine.tokenizer = tokenizer  # AutoTokenizer would make it into one of Llama's own kind
    return engine


@pytest.fixture(scope="module", params=["harmony", "think", "opened"])
def reasoning(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[TransformersEngine, str]:
    return make(tmp_path_factory.mktemp("weights"), request.param), request.param


def test_p_true_is_read_where_the_answer_begins_and_nowhere_else(
    reasoning: tuple[TransformersEngine, str],
) -> None:
    engine, style = reasoning
    found = tabulate(p_true(engine, engine.model, QUESTIONS, seed=0))
    known = found.dropna(subset="confidence")
    np.testing.assert_allclose(known["confidence"], 0.75, atol=1e-5)
    assert 5 < len(known) < len(QUESTIONS)  # some reasonings end without an answer
    # The marks, and a word of reasoning where there must be one.
    assert known["tokens"].min() == {"harmony": 4, "think": 5, "opened": 4}[style]
    assert found["tokens"].nunique() > 2
    other = tabulate(p_true(engine, engine.model, QUESTIONS, seed=1))
    assert not other["tokens"].equals(found["tokens"])


def test_a_reasoning_that_the_prompt_has_closed_costs_nothing(tmp_path: Path) -> None:
    engine = make(tmp_path, "closed")
    found = tabulate(p_true(engine, engine.model, QUESTIONS, seed=0))
    np.testing.assert_allclose(found["confidence"], 0.75, atol=1e-5)
    assert set(found["tokens"]) == {1}


def test_what_is_said_in_words_is_read_behind_the_reasoning(
    reasoning: tuple[TransformersEngine, str],
) -> None:
    engine, style = reasoning
    sampling = engine.model.sampling
    asked = Request(QUESTIONS[0], ({"role": "user", "content": "ask"},), tuple(range(100)))
    group = [sample for group in engine.sample([asked], sampling, 0) for sample in group]
    answered = {sample.response.strip() for sample in group}
    assert answered >= {"", "Yes", "No", r"\boxed{0.7}"}
    assert not any("<" in text for text in answered)
    assert {sample.reasoning for sample in group} - {None}
    found = tabulate(verbalized(engine, engine.model, QUESTIONS, seed=0))
    known = found["confidence"].dropna()
    assert len(known) > 5
    assert set(known) == {0.7}
    assert found["tokens"].min() >= {"harmony": 5, "think": 6, "opened": 5}[style]
