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
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import psutil
import pytest

from benchmarks import vllm_front
from benchmarks.survive_kills import survive
from capcal_lib.confidence.p_true import NO, YES
from capcal_lib.errors import InputError
from capcal_lib.manifests import Model, Sampling, load_model
from capcal_lib.questions import load_questions
from capcal_lib.questions.prompts import p_true_messages
from capcal_lib.runs.store import Sample
from capcal_lib.sampling.engines import Engine, Failure, Request, close_engine, open_engine
from capcal_lib.sampling.engines.chat import single_tokens
from capcal_lib.sampling.engines.openai import OpenAIEngine
from capcal_lib.sampling.weights import ensure_weights
from tests.sampling import architectures

pytest.importorskip("vllm")
pytestmark = [pytest.mark.vllm, pytest.mark.filterwarnings("default")]

os.environ.setdefault("VLLM_USE_V2_MODEL_RUNNER", "0")  # the CPU build stops with the newer one
# On a CPU, a seeded prompt that is read in pieces stops the build, so it is read at once.
CPU = {
    "dtype": "float32",
    "enforce_eager": True,
    "enable_chunked_prefill": False,
    "max_num_batched_tokens": 2048,
    "max_num_seqs": 256,
    "block_size": 32,
    "kv_cache_memory_bytes": 1 << 30,
}
MODEL = load_model("smollm2-135m").model_copy(update={"vllm": CPU})
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
def engine() -> Iterator[Engine]:
    from capcal_lib.sampling.engines.vllm import VllmEngine

    opened = VllmEngine(MODEL)
    yield opened
    opened.close()


def with_arguments(model: Model = MODEL, **changes: object) -> Model:
    """Return the model with other arguments of vLLM, and little memory."""
    small = {"kv_cache_memory_bytes": 1 << 28}
    return model.model_copy(update={"vllm": CPU | small | changes})


def processes() -> list[str]:
    """List vLLM's processes below this one."""
    found = []
    for one in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # one that ends meanwhile
            if one.status() != psutil.STATUS_ZOMBIE and "VLLM" in " ".join(one.cmdline()):
                found.append(one.name())
    return found


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
    for size in (1, 7):  # a request a sample, and others than its groups
        pieces = [
            row
            for start in range(0, 20, size)
            for row in draw(engine, part(asked, start, start + size))
        ]
        assert sorted(pieces, key=lambda row: (row.question_id, row.sample_index)) == rows
    assert draw(engine, asked, seed=1) != rows


def test_killed_runs_end_with_the_rows_of_an_undisturbed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a stand-in for the engine's process, whose rows follow from the seeds to the letter."""
    monkeypatch.setenv(vllm_front.TOKENS, "12")
    figures = survive(
        tmp_path,
        kills=4,
        seed=1,
        model=MODEL.name,
        engine="vllm",
        k=60,
        limit=100,
        rows_per_shard=100,
        before="from benchmarks import vllm_front; vllm_front.put_in_place()",
    )
    assert figures.kills == 4
    assert figures.kills_while_drawing >= 1
    assert figures.rows == 6_000
    assert figures.same


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
def test_the_architectures_of_the_paper_are_those_of_plain_transformers(
    architecture: str, tmp_path: Path
) -> None:
    from capcal_lib.sampling.engines.vllm import VllmEngine

    folder = architectures.checkpoint(tmp_path, architecture)
    model = with_arguments(architectures.manifest())
    ours, plain = VllmEngine(model, folder), architectures.Plain(model, folder)
    asked = architectures.asked
    try:
        # So many tokens that every window leaves the beginning of the shorter prompt behind, too.
        greedy = SAMPLING.model_copy(update={"temperature": 0.0, "max_tokens": 100})
        assert [row.response for row in draw(ours, asked(1), greedy)] == [
            plain.answer(request, 100) for request in asked()
        ]
        rows = draw(ours, asked(20))
        assert len({row.response for row in rows}) > 20
        assert draw(ours, asked(20), seed=1) != rows
        pieces = [
            row
            for start in range(0, 20, 7)
            for row in draw(ours, part(asked(20)[::-1], start, start + 7))
        ]
        assert sorted(pieces, key=lambda row: (row.question_id, row.sample_index)) == rows

        true = [Request(one, p_true_messages(one, model.prompt_style)) for one in QUESTIONS[:3]]
        words = [*YES, *NO]
        said = ours.next_token_logprobs(true, words, SAMPLING, 0)[0]
        single = single_tokens(plain.tokenizer, words)
        for row, request in zip(said, true, strict=True):
            known = plain.logprobs(request)[list(single.values())]
            np.testing.assert_allclose(np.exp(row[list(single)]), np.exp(known), atol=1e-5)
    finally:
        ours.close()


@pytest.mark.parametrize("architecture", architectures.REASONERS)
def test_answers_are_told_from_the_reasoning_before_them(architecture: str, tmp_path: Path) -> None:
    from capcal_lib.sampling.engines.vllm import VllmEngine

    folder = architectures.reasoning_checkpoint(tmp_path, architecture)
    engine = VllmEngine(with_arguments(architectures.manifest()), folder)
    try:
        architectures.check_reasoning(engine, architecture)
    finally:
        engine.close()


def test_a_model_is_closed_before_the_next_is_opened() -> None:
    """As a judge's is after the model's."""
    before = len(processes())
    counts = []
    for changes in ({}, {"max_num_seqs": 64}):
        engine = open_engine(with_arguments(**changes), "vllm")
        assert len(draw(engine, requests(1, 2))) == 2
        counts.append(len(processes()) - before)
    close_engine()
    assert counts == [2, 2]  # an engine and its worker
    assert len(processes()) == before


def test_more_context_than_the_model_has_positions_is_refused(tmp_path: Path) -> None:
    from capcal_lib.sampling.engines.vllm import VllmEngine

    folder = architectures.checkpoint(tmp_path, "qwen3")
    wide = with_arguments(architectures.manifest(), max_model_len=4096)
    with pytest.raises(InputError, match=r"vLLM could not open 'tiny': .*max_model_len"):
        VllmEngine(wide, folder)


def test_an_engine_whose_process_dies_says_so(tmp_path: Path) -> None:
    from capcal_lib.sampling.engines.vllm import VllmEngine

    folder = architectures.checkpoint(tmp_path, "qwen3")
    engine: Any = VllmEngine(with_arguments(architectures.manifest()), folder)
    try:
        assert len(draw(engine, architectures.asked(2))) == 4
        manager = engine._llm.llm_engine.engine_core.resources.engine_manager
        manager.processes[0].kill()
        with pytest.raises(InputError, match="vLLM stopped"):
            draw(engine, architectures.asked(200))
    finally:
        engine.close()


def test_a_server_with_two_ranks_gives_the_rows_of_the_engine_in_process(
    engine: Engine, server: str
) -> None:
    remote = OpenAIEngine(MODEL, base_url=server)
    asked = requests(4, 20)
    rows = draw(remote, asked)
    here = draw(engine, asked)
    assert [(row.question_id, row.sample_index) for row in rows] == [
        (r.question_id, r.sample_index) for r in here
    ]
    same = np.mean([one == other for one, other in zip(rows, here, strict=True)])
    assert same > 0.95  # up to rounding: the ranks batch differently
    assert draw(OpenAIEngine(MODEL, base_url=server, in_flight=3), part(asked, 3, 9)) == [
        row for row in rows if 3 <= row.sample_index < 9
    ]
