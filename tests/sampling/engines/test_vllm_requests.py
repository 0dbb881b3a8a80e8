"""How vLLM is asked, with a stand-in for vLLM that answers at once.

What it does with a request for several samples is what vLLM does: sample i is drawn with the seed
plus i, and all come back together, in order. `test_vllm.py` holds the same against vLLM itself."""

import asyncio
import random
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from capcal_lib.manifests import Sampling
from capcal_lib.runs.store import Sample
from capcal_lib.sampling.engines import Request, question_seed
from capcal_lib.sampling.engines import vllm as vllm_engine
from capcal_lib.sampling.engines.chat import encode
from capcal_lib.sampling.engines.vllm import VllmEngine, groups
from tests.sampling.engines.tiny_models import make_weights, manifest, request, settings
from tests.sampling.engines.vllm_stand_in import put_vllm

END = 0  # the token that ends an answer
MOST = vllm_engine.GROUP


class Answering:
    """vLLM's AsyncLLM as far as it is asked. What a sample says follows from its seed alone."""

    def __init__(self) -> None:
        self.output_handler = SimpleNamespace(cancel=lambda: None)
        self.asked: list[tuple[Any, Any]] = []
        self.events: list[str] = []
        self.turns = 1  # of the loop, until there is an answer
        self.under_way = self.most_under_way = 0

    def shutdown(self) -> None:
        pass

    async def generate(
        self, prompt: Any, parameters: Any, request_id: str, *, data_parallel_rank: int | None
    ) -> AsyncIterator[Any]:
        self.asked.append((prompt, parameters))
        self.events.append("asked")
        self.under_way += parameters.n
        self.most_under_way = max(self.most_under_way, self.under_way)
        for _ in range(self.turns):
            await asyncio.sleep(0)
        self.events.append("answered")
        self.under_way -= parameters.n
        choices = []
        for index in range(parameters.n):
            rng = random.Random(parameters.seed + index)
            said = rng.choices(range(1, 8), k=rng.randint(1, 5))
            ended = rng.random() < 0.5
            choices.append(
                SimpleNamespace(
                    token_ids=[*said, END] if ended else said,
                    finish_reason="stop" if ended else "length",
                )
            )
        yield SimpleNamespace(outputs=choices)


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> Answering:
    llm = Answering()
    put_vllm(monkeypatch, 1, lambda *_, **__: llm)
    return llm


@pytest.fixture
def engine(answering: Answering, tmp_path: Path) -> Iterator[VllmEngine]:
    opened = VllmEngine(manifest(), make_weights(tmp_path, "qwen2"))
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


def test_a_prompt_is_asked_in_tokens_with_the_seed_of_the_first_sample_of_its_group(
    engine: VllmEngine, answering: Answering
) -> None:
    indices = (0, 1, 2, 5, *range(10, 13 + MOST))
    one = replace(request("two three"), sample_indices=indices)
    draw(engine, [one])
    tokens = encode(engine.tokenizer, engine.model, one)
    assert all(
        prompt == {"type": "token", "prompt_token_ids": tokens} for prompt, _ in answering.asked
    )
    seed = question_seed(3, "two three")
    said = [(parameters.n, parameters.seed - seed) for _, parameters in answering.asked]
    assert said == [(3, 0), (1, 5), (MOST, 10), (3, 10 + MOST)]
    kinds = {(one.output_kind, one.detokenize) for _, one in answering.asked}
    assert kinds == {("FINAL_ONLY", False)}


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


def test_the_likeliest_answer_is_asked_one_by_one(engine: VllmEngine, answering: Answering) -> None:
    """vLLM refuses several of them in a request."""
    assert len(draw(engine, [request("one", 4)], settings(temperature=0.0))) == 4
    assert [parameters.n for _, parameters in answering.asked] == [1, 1, 1, 1]


def test_answers_come_while_others_are_asked(engine: VllmEngine, answering: Answering) -> None:
    draw(engine, [request(f"one {number}", MOST, f"q{number}") for number in range(50)])
    assert answering.events.count("asked") == 50
    assert answering.events.index("answered") < 5


def test_no_more_samples_are_under_way_than_vllm_runs(
    engine: VllmEngine, answering: Answering, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vllm_engine, "SAMPLES_IN_FLIGHT", MOST + 4)
    answering.turns = 20
    rows = draw(engine, [request("one", 3 * MOST), request("two", 7), request("three", 4)])
    assert len(rows) == 3 * MOST + 11
    assert answering.most_under_way == MOST + 1
