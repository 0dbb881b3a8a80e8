"""How vLLM is asked, with a stand-in for vLLM that answers at once."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from capcal_lib.errors import InputError
from capcal_lib.manifests import Sampling
from capcal_lib.runs.store import Sample
from capcal_lib.sampling.engines import Request, question_seed
from capcal_lib.sampling.engines import vllm as vllm_engine
from capcal_lib.sampling.engines.vllm import VllmEngine, groups
from tests.sampling.engines.encoded import encode
from tests.sampling.engines.tiny_models import make_weights, manifest, request, settings
from tests.sampling.engines.vllm_stand_in import LLM, put_in_place

MOST = vllm_engine.GROUP


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_weights(tmp_path_factory.mktemp("qwen2"), "qwen2")


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Iterator[VllmEngine]:
    put_in_place(monkeypatch)
    opened = VllmEngine(manifest(), folder)
    yield opened
    opened.close()


def draw(
    engine: VllmEngine, asked: list[Request], sampling: Sampling | None = None
) -> list[Sample]:
    rows = [row for group in engine.sample(asked, sampling or settings(), 3) for row in group]
    return sorted(rows, key=lambda row: (row.question_id, row.sample_index))


def test_neighbours_are_grouped_up_to_the_most() -> None:
    assert [*groups((), 3)] == []
    assert [*groups((4,), 3)] == [(4,)]
    assert [*groups((0, 1, 2, 3, 4, 5, 6), 3)] == [(0, 1, 2), (3, 4, 5), (6,)]
    assert [*groups((0, 2, 3, 7, 8, 9, 10), 3)] == [(0,), (2, 3), (7, 8, 9), (10,)]
    assert [*groups((5, 6, 7), 1)] == [(5,), (6,), (7,)]


def test_the_settings_of_the_manifest_open_it(
    monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    put_in_place(monkeypatch)
    plain: Any = VllmEngine(manifest(), folder)
    assert plain._llm.settings == {"max_model_len": 2048}
    changed = manifest(dtype="bfloat16", vllm={"max_model_len": 512, "tensor_parallel_size": 2})
    other: Any = VllmEngine(changed, folder)
    assert other._llm.settings == {
        "max_model_len": 512,
        "tensor_parallel_size": 2,
        "dtype": "bfloat16",
    }
    with pytest.raises(InputError, match="does not know 'thinking'"):
        VllmEngine(manifest(chat_template={"thinking": True}), folder)

    def refuse(*_: object, **__: object) -> None:
        raise ValueError("max_model_len (4096) is greater\n than 128")

    monkeypatch.setattr(LLM, "__init__", refuse)
    with pytest.raises(InputError, match=r"could not open 'tiny': max_model_len .* than 128$"):
        VllmEngine(manifest(), folder)


def test_a_prompt_is_asked_in_tokens_with_the_seed_of_the_first_sample_of_its_group(
    engine: VllmEngine,
) -> None:
    indices = (0, 1, 2, 5, *range(10, 13 + MOST))
    one = replace(request("two three"), sample_indices=indices)
    engine.turn_ends = [5]
    draw(engine, [one])
    tokens = encode(engine.tokenizer, engine.model, one)
    asked = engine._llm.asked
    assert all(prompt == {"prompt_token_ids": tokens} for prompt, _ in asked)
    seed = question_seed(3, "two three")
    said = [(parameters.n, parameters.seed - seed) for _, parameters in asked]
    assert said == [(3, 0), (1, 5), (MOST, 10), (3, 10 + MOST)]
    kinds = {(one.output_kind, one.detokenize, *one.stop_token_ids) for _, one in asked}
    assert kinds == {("FINAL_ONLY", False, 5)}


def test_the_rows_are_those_of_one_request_a_sample(engine: VllmEngine) -> None:
    asked = [request(words, 2 * MOST + 3) for words in ("one", "two three", "four")]
    rows = draw(engine, asked)
    one_by_one = [
        row
        for one in asked
        for index in one.sample_indices
        for row in draw(engine, [replace(one, sample_indices=(index,))])
    ]
    assert sorted(one_by_one, key=lambda row: (row.question_id, row.sample_index)) == rows
    assert len({row.response for row in rows}) > MOST
    assert {row.finish_reason for row in rows} == {"stop", "length"}
    assert not any("end" in row.response for row in rows)
    # what is lacking after a kill
    lacking = (1, 2, 7, 8, 2 * MOST)
    again = draw(engine, [replace(one, sample_indices=lacking) for one in asked])
    assert again == [row for row in rows if row.sample_index in lacking]


def test_the_likeliest_answer_is_asked_one_by_one(engine: VllmEngine) -> None:
    """vLLM refuses several of them in a request."""
    assert len(draw(engine, [request("one", 4)], settings(temperature=0.0))) == 4
    assert [parameters.n for _, parameters in engine._llm.asked] == [1, 1, 1, 1]


def test_answers_come_while_others_are_asked(
    engine: VllmEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vllm_engine, "REQUESTS_IN_FLIGHT", 4)
    asked = [request(f"one {number}", MOST, f"q{number}") for number in range(50)]
    stream = engine.sample(asked, settings(), 3)
    assert len(next(stream)) == 1
    assert len(engine._llm.asked) == 4
    assert sum(map(len, stream)) == 50 * MOST - 1
    assert engine._llm.most_under_way == 4


def test_stopping_early_leaves_nothing_under_way(engine: VllmEngine) -> None:
    stream = engine.sample([request("one", 3 * MOST)], settings(), 3)
    next(stream)
    assert engine._llm.under_way
    stream.close()  # type: ignore[attr-defined]
    assert not engine._llm.under_way
    assert len(draw(engine, [request("one", 2)])) == 2


def test_what_was_drawn_before_vllm_stopped_is_given(engine: VllmEngine) -> None:
    engine._llm.dies_at = 2
    stream = engine.sample([request("one", 5 * MOST)], settings(), 3)
    rows = [row for group in islice(stream, 2 * MOST + 2) for row in group]  # and two pauses
    assert len(rows) == 2 * MOST
    with pytest.raises(InputError, match=r"vLLM stopped, .* the same command goes on from there"):
        next(stream)


def test_hidden_states_are_left_to_transformers(engine: VllmEngine) -> None:
    with pytest.raises(InputError, match="gives no hidden states; use --engine transformers"):
        engine.hidden_states([request("one")])
