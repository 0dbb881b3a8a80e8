"""vLLM for real, with the embedded model: in process, and as a server with two data-parallel ranks.

Run with ``make test-vllm``, which makes an environment with vLLM's CPU build.
"""

import math
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import numpy as np
import pytest

from capcal_lib.confidence.p_true import NO, YES
from capcal_lib.errors import InputError
from capcal_lib.manifests import Sampling, load_model
from capcal_lib.questions import load_questions
from capcal_lib.questions.prompts import p_true_messages
from capcal_lib.runs.samples import Sample
from capcal_lib.sampling.engines import Engine, Failure, Request
from capcal_lib.sampling.engines.chat import encode
from capcal_lib.sampling.engines.openai import OpenAIEngine
from capcal_lib.sampling.weights import ensure_weights
from tests.sampling import architectures

pytest.importorskip("vllm")
pytestmark = [pytest.mark.vllm, pytest.mark.filterwarnings("default")]

MODEL = load_model("smollm2-135m")
SAMPLING = Sampling(temperature=0.8, max_tokens=12, context_tokens=2048)
QUESTIONS = load_questions("mini-capitals")
START_SECONDS = 1500


def requests(questions: int, samples: int) -> list[Request]:
    indices = tuple(range(samples))
    return [
        Request(one, ({"role": "user", "content": one.text},), indices)
        for one in QUESTIONS[:questions]
    ]


def draw(
    engine: Engine, asked: list[Request], sampling: Sampling = SAMPLING, seed: int = 0
) -> list[Sample]:
    rows: list[Sample] = []
    for group in engine.sample(asked, sampling, seed):
        assert not isinstance(group, Failure), group.reason
        rows += group
    return sorted(rows, key=lambda row: (row.question_id, row.sample_index))


def part(asked: list[Request], start: int, stop: int) -> list[Request]:
    return [Request(one.question, one.messages, one.sample_indices[start:stop]) for one in asked]


@pytest.fixture(scope="module")
def engine() -> Engine:
    from capcal_lib.sampling.engines.vllm import VllmEngine

    return VllmEngine(MODEL)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of a vLLM server with two data-parallel ranks."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "vllm.entrypoints.openai.api_server",
        "--model",
        str(ensure_weights(MODEL)),
    ]
    options = [
        "--served-model-name",
        MODEL.name,
        "--dtype",
        "float32",
        "--enforce-eager",
        "--max-model-len",
        "2048",
    ]
    ranks = [
        "--data-parallel-size",
        "2",
        "--no-enable-chunked-prefill",
        "--kv-cache-memory-bytes",
        str(1 << 30),
        "--max-num-seqs",
        "128",
    ]
    where = ["--host", "127.0.0.1", "--port", str(port)]
    quiet = os.environ | {"VLLM_NO_USAGE_STATS": "1"}
    url = f"http://127.0.0.1:{port}"
    with subprocess.Popen(
        [*command, *options, *ranks, *where], env=quiet, stdout=subprocess.DEVNULL
    ) as process:
        try:
            deadline = time.monotonic() + START_SECONDS
            while True:
                assert process.poll() is None, "the server ended"
                assert time.monotonic() < deadline, "the server did not start"
                try:
                    if httpx2.get(f"{url}/health", timeout=5).status_code == 200:
                        break
                except httpx2.TransportError:
                    time.sleep(1)
            yield f"{url}/v1"
        finally:
            process.terminate()


def test_samples_are_those_of_the_manifest_and_come_once_each(engine: Engine) -> None:
    rows = draw(engine, requests(4, 20))
    wanted = [
        (one.id, index)
        for one in sorted(QUESTIONS[:4], key=lambda one: one.id)
        for index in range(20)
    ]
    assert [(row.question_id, row.sample_index) for row in rows] == wanted
    assert all(1 <= row.completion_tokens <= 12 and row.prompt_tokens > 20 for row in rows)
    assert {row.finish_reason for row in rows} <= {"stop", "length"}
    assert not any("<|im_end|>" in row.response for row in rows)
    assert len({row.response for row in rows}) > 8


def test_a_row_follows_from_the_seed_alone(engine: Engine) -> None:
    asked = requests(3, 20)
    rows = draw(engine, asked)
    assert draw(engine, asked[::-1]) == rows
    pieces = [
        row for start in range(0, 20, 7) for row in draw(engine, part(asked, start, start + 7))
    ]
    assert sorted(pieces, key=lambda row: (row.question_id, row.sample_index)) == rows
    assert draw(engine, asked, seed=1) != rows


def test_temperature_zero_says_the_likeliest(engine: Engine) -> None:
    greedy = SAMPLING.model_copy(update={"temperature": 0.0})
    rows = draw(engine, requests(2, 3), greedy)
    assert len({(row.question_id, row.response) for row in rows}) == 2


def test_both_engines_draw_from_one_distribution(engine: Engine) -> None:
    """Top-k and top-p, too: compared by how often each first token comes."""
    from capcal_lib.sampling.engines.transformers import TransformersEngine

    other = TransformersEngine(MODEL)
    for settings in ({}, {"top_k": 3}, {"top_p": 0.5}):
        sampling = SAMPLING.model_copy(update={"max_tokens": 1, **settings})
        said = [
            [row.response for row in draw(one, requests(1, 300), sampling)]
            for one in (engine, other)
        ]
        words = sorted({*said[0], *said[1]})
        counts = np.array([[column.count(word) for word in words] for column in said]) / 300
        assert np.abs(counts[0] - counts[1]).max() < 4 * math.sqrt(0.5 / 300)


def test_prompts_and_first_token_probabilities_are_those_of_transformers(engine: Engine) -> None:
    from capcal_lib.sampling.engines.transformers import TransformersEngine

    asked = [Request(one, p_true_messages(one, MODEL.prompt_style)) for one in QUESTIONS[:3]]
    words = [*YES, *NO, "two words"]
    ours, theirs = (
        one.next_token_logprobs(asked, words, SAMPLING, 0)[0]
        for one in (engine, TransformersEngine(MODEL))
    )
    assert np.isnan(ours[:, -1]).all()
    np.testing.assert_allclose(ours, theirs, atol=2e-3)


@pytest.mark.parametrize("architecture", architectures.ARCHITECTURES)
def test_the_architectures_of_the_paper_are_those_of_transformers(
    architecture: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from capcal_lib.sampling.engines import vllm
    from capcal_lib.sampling.engines.transformers import TransformersEngine

    monkeypatch.setattr(vllm, "CPU_CACHE_BYTES", 1 << 28)
    monkeypatch.setattr(vllm, "CPU_REPLICAS", 2)
    folder, model = architectures.checkpoint(tmp_path, architecture), architectures.manifest()
    ours, theirs = vllm.VllmEngine(model, folder), TransformersEngine(model, folder)
    replicas = ours.engines
    asked = architectures.asked
    try:
        # So many tokens that every window leaves the beginning of the shorter prompt behind, too.
        greedy = SAMPLING.model_copy(update={"temperature": 0.0, "max_tokens": 100})
        assert draw(ours, asked(1), greedy) == draw(theirs, asked(1), greedy)

        rows = draw(ours, asked(20))
        assert len({row.response for row in rows}) > 20
        assert draw(ours, asked(20), seed=1) != rows
        pieces = [
            row
            for start in range(0, 20, 7)
            for row in draw(ours, part(asked(20)[::-1], start, start + 7))
        ]
        assert sorted(pieces, key=lambda row: (row.question_id, row.sample_index)) == rows
        for replica in replicas:
            ours.engines = [replica]
            assert draw(ours, asked(20)) == rows
        ours.engines = replicas

        states, expected = (one.hidden_states(asked(), "all") for one in (ours, theirs))
        size = np.abs(expected).max(axis=(0, 2), keepdims=True)
        assert (np.abs(states - expected) / size).max() < 1e-3
        true = [Request(one, p_true_messages(one, model.prompt_style)) for one in QUESTIONS[:3]]
        said, known = (
            np.exp(one.next_token_logprobs(true, [*YES, *NO], SAMPLING, 0)[0])
            for one in (ours, theirs)
        )
        np.testing.assert_allclose(said, known, atol=1e-5)
    finally:
        for replica in replicas:
            replica.engine_core.shutdown()


@pytest.mark.parametrize("architecture", architectures.REASONERS)
def test_answers_are_told_from_the_reasoning_before_them(
    architecture: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from capcal_lib.sampling.engines import vllm

    monkeypatch.setattr(vllm, "CPU_CACHE_BYTES", 1 << 28)
    folder = architectures.reasoning_checkpoint(tmp_path, architecture)
    engine = vllm.VllmEngine(architectures.manifest(), folder)
    try:
        architectures.check_reasoning(engine, architecture)
    finally:
        engine.engines[0].engine_core.shutdown()


def test_a_prompt_that_fills_the_context_is_refused(engine: Engine) -> None:
    short = Sampling(temperature=0.8, max_tokens=12, context_tokens=20)
    with pytest.raises(InputError, match="leaves no room for an answer in context_tokens = 20"):
        draw(engine, requests(1, 1), short)
    wide = Sampling(temperature=0.8, max_tokens=12, context_tokens=4096)
    with pytest.raises(InputError, match="more than the 2048 of the manifest"):
        draw(engine, requests(1, 1), wide)


def test_hidden_states_are_those_of_transformers_whatever_is_cached(engine: Engine) -> None:
    """Prompts of many lengths, a whole block of the prefix cache among them, before, after and
    between samples.
    """
    from capcal_lib.sampling.engines.transformers import TransformersEngine

    other = TransformersEngine(MODEL)
    texts = [" ".join(["why"] * count) for count in (1, 2, 7, *range(34, 67), 150)]
    asked = [
        Request(one, ({"role": "user", "content": text},))
        for one, text in zip(QUESTIONS, texts, strict=False)
    ]
    assert {32, 64, 96} <= {len(encode(other.tokenizer, MODEL, request)) for request in asked}
    rows = draw(engine, requests(2, 3))
    ours, theirs = (one.hidden_states(asked, "all") for one in (engine, other))
    assert ours.shape == (len(asked), 31, 576)
    assert ours.dtype == np.float32
    size = np.abs(theirs).max(axis=(0, 2), keepdims=True)  # of each layer: from 0.6 to 600
    assert (np.abs(ours - theirs) / size).max() < 1e-5
    for layers, pooled in (("mean", theirs.mean(1)), ("max", theirs.max(1))):
        np.testing.assert_allclose(
            engine.hidden_states(asked[::-1], layers)[::-1], pooled, atol=1e-3
        )
    assert draw(engine, requests(2, 3)) == rows
    np.testing.assert_allclose(
        engine.hidden_states(requests(2, 0)), other.hidden_states(requests(2, 0)), atol=1e-3
    )
    assert engine.hidden_states([]).shape == (0, 576)
    assert engine.hidden_states([], "all").shape == (0, 31, 576)


def test_stopping_early_leaves_nothing_behind(engine: Engine) -> None:
    stream = engine.sample(requests(8, 16), SAMPLING, 0)
    next(stream)
    stream.close()  # type: ignore[attr-defined]
    states = engine.hidden_states(requests(3, 0))
    assert len(draw(engine, requests(1, 2))) == 2
    np.testing.assert_array_equal(engine.hidden_states(requests(3, 0)), states)


def test_two_replicas_give_the_rows_of_one_until_one_of_them_dies(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    from capcal_lib.sampling.engines import vllm

    asked = requests(4, 40)
    rows, states = draw(engine, asked), engine.hidden_states(asked)
    monkeypatch.setattr(vllm, "CPU_REPLICAS", 2)
    monkeypatch.setattr(vllm, "CPU_CACHE_BYTES", 1 << 29)
    two = vllm.VllmEngine(MODEL)
    shares = []
    for one in two.engines:
        add = one.add_request
        monkeypatch.setattr(
            one, "add_request", lambda *given, add=add, one=one: shares.append(one) or add(*given)
        )
    again = draw(two, asked)
    assert [shares.count(one) for one in two.engines] == [6, 6]  # of parts of 16, 16 and 8 samples
    assert [(row.question_id, row.sample_index) for row in again] == [
        (r.question_id, r.sample_index) for r in rows
    ]
    assert (
        np.mean([one == other for one, other in zip(again, rows, strict=True)]) > 0.95
    )  # up to rounding
    np.testing.assert_allclose(two.hidden_states(asked), states, atol=1e-3)
    two.engines[1].engine_core.resources.engine_manager.processes[0].kill()
    with pytest.raises(InputError, match="vLLM stopped"):
        draw(two, asked)
    two.engines[0].engine_core.shutdown()


def test_a_server_with_two_ranks_gives_the_rows_of_the_engine_in_process(
    engine: Engine, server: str
) -> None:
    remote = OpenAIEngine(MODEL, base_url=server)
    asked = requests(4, 20)
    rows = draw(remote, asked)
    assert remote.does_n is True
    here = draw(engine, asked)
    assert [(row.question_id, row.sample_index) for row in rows] == [
        (r.question_id, r.sample_index) for r in here
    ]
    same = np.mean([one == other for one, other in zip(rows, here, strict=True)])
    assert same > 0.95  # up to rounding: the ranks batch differently
    assert draw(OpenAIEngine(MODEL, base_url=server, in_flight=3), part(asked, 3, 9)) == [
        row for row in rows if 3 <= row.sample_index < 9
    ]


def test_the_server_gives_the_first_token_probabilities_of_the_engine(
    engine: Engine, server: str
) -> None:
    asked = [Request(one, p_true_messages(one, MODEL.prompt_style)) for one in QUESTIONS[:3]]
    ours, theirs = (
        one.next_token_logprobs(asked, [*YES, *NO], SAMPLING, 0)[0]
        for one in (engine, OpenAIEngine(MODEL, base_url=server))
    )
    known = ~np.isnan(theirs)
    assert known.any()
    np.testing.assert_allclose(theirs[known], ours[known], atol=2e-3)
