"""Tokens per second of an engine and of the naive ways to draw the same samples, on the same
prompts, in one run.

    OMP_NUM_THREADS=1 python benchmarks/sampling.py transformers
    VLLM_CPU_OMP_THREADS_BIND=0 build/vllm/bin/python benchmarks/sampling.py vllm
    VLLM_CPU_OMP_THREADS_BIND=0 build/vllm/bin/python benchmarks/sampling.py openai

``openai`` starts a vLLM server on this machine. The naive ways are one request for one sample after
the other, with nothing shared between them, and what a batch of the same software makes of it:
``generate`` with ``num_return_sequences``, or all requests for one sample submitted at once. With
vLLM, each naive request has a salt of its own, so that it finds nothing of the others in the prefix
cache; the engine finds there what vLLM would keep.

Two kinds of prompt: one of the project's own, with examples and short answers, and one that asks
for reasoning. Rates are by the clock and per second of processor time of this process and those
that it started; ratios are to one request after the other. Each way is run twice, by turns, and the
better is taken."""

import argparse
import os
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from typing import Any

import httpx2
import psutil

from capcal_lib.manifests import Sampling, load_model
from capcal_lib.questions import Answer, Question, load_questions
from capcal_lib.questions.prompts import ask_for_answer, load_prompts
from capcal_lib.sampling.engines import Engine, Failure, Request
from capcal_lib.sampling.weights import ensure_weights

MODEL = load_model("smollm2-135m")
AT_ONCE = 64  # requests of the plain way to ask a server
QUESTIONS, ROUNDS = 4, 2
# samples of a question that are asked for one after the other, at a rate that does not depend on
# how many
FEW = 2
START_SECONDS = 1_500  # for a server, on a busy machine
CLERK = (
    "A clerk at a railway station sells tickets for the morning and the evening train. In the "
    "morning, {0} people buy "
    "a ticket for 4 euros each, and 7 of them come back at noon and return it for half of the "
    "price. In the evening "
    "twice as many people buy a ticket as in the morning, but every second ticket is sold to a "
    "child and costs only "
    "1 euro. How many euros does the clerk have at the end of the day?"
)

Way = Callable[
    [Sequence[Request], Sampling], int
]  # draws what is asked and returns the number of tokens drawn
Salts = count()


def prompts(samples: int) -> dict[str, tuple[list[Request], Sampling]]:
    """Return what is asked, and how, by kind of prompt."""
    few_shot = load_questions("mini-capitals")[:QUESTIONS]
    clerk = [
        Question(f"clerk/{people}", CLERK.format(people), Answer("number", "0"))
        for people in range(20, 60, 10)
    ]
    indices = tuple(range(samples))
    return {
        "with examples": (
            [Request(one, ask_for_answer(one, load_prompts("short")), indices) for one in few_shot],
            Sampling(temperature=0.8, max_tokens=24, context_tokens=2_048),
        ),
        "reasoning": (
            [Request(one, ask_for_answer(one, load_prompts("paper")), indices) for one in clerk],
            Sampling(temperature=0.8, max_tokens=48, context_tokens=2_048),
        ),
    }


def engine_way(engine: Engine) -> Way:
    """Draw through an engine."""

    def draw(requests: Sequence[Request], sampling: Sampling) -> int:
        tokens = 0
        for group in engine.sample(requests, sampling, next(Salts)):
            assert not isinstance(group, Failure), group
            tokens += sum(sample.completion_tokens for sample in group)
        return tokens

    return draw


@contextmanager
def with_transformers() -> Iterator[dict[str, Way]]:
    """Draw with `generate`, one sample at a time and all of a question together, and with the
    engine.
    """
    import torch
    from transformers import AutoModelForCausalLM

    from capcal_lib.sampling.engines.chat import encode_all
    from capcal_lib.sampling.engines.transformers import TransformersEngine

    engine = TransformersEngine(MODEL)
    plain = AutoModelForCausalLM.from_pretrained(
        engine.network.name_or_path, dtype=engine.network.dtype
    )
    plain.to(engine.device)
    ends = torch.tensor(sorted(engine.ends), device=engine.device)

    def generate(request: Request, sampling: Sampling, number: int) -> int:
        prompt = encode_all(engine.tokenizer, MODEL, [request])
        ids = torch.tensor(prompt, device=engine.device)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rows = plain.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                do_sample=True,
                temperature=sampling.temperature,
                top_k=0,
                top_p=1.0,
                num_return_sequences=number,
                max_new_tokens=sampling.max_tokens,
            )
        ended = torch.isin(rows[:, ids.shape[1] :], ends).int()
        return int((ended.cumsum(1) - ended == 0).sum())  # what pads shorter answers does not count

    yield {
        "one by one": lambda requests, sampling: sum(
            generate(request, sampling, 1) for request in requests for _ in request.sample_indices
        ),
        "num_return_sequences": lambda requests, sampling: sum(
            generate(request, sampling, len(request.sample_indices)) for request in requests
        ),
        "engine": engine_way(engine),
    }


@contextmanager
def with_vllm() -> Iterator[dict[str, Way]]:
    """Draw with vLLM in process: requests for one sample each, one by one and all at once, and the
    engine.
    """
    from vllm import SamplingParams

    from capcal_lib.sampling.engines.chat import encode_all
    from capcal_lib.sampling.engines.vllm import VllmEngine

    engine: Any = VllmEngine(MODEL)

    def generate(requests: Sequence[Request], sampling: Sampling) -> int:
        prompts = [
            {
                "prompt_token_ids": encode_all(engine.tokenizer, MODEL, [request])[0],
                "cache_salt": f"salt {next(Salts)}",
            }
            for request in requests
        ]
        parameters = SamplingParams(
            temperature=sampling.temperature, max_tokens=sampling.max_tokens, detokenize=False
        )
        outputs = engine._llm.generate(prompts, parameters, use_tqdm=False)
        found = any(output.num_cached_tokens for output in outputs)
        assert not found, "a naive request found something in the cache"
        return sum(len(choice.token_ids) for output in outputs for choice in output.outputs)

    def each_sample(requests: Sequence[Request]) -> list[Request]:
        return [request for request in requests for _ in request.sample_indices]

    yield {
        "one by one": lambda requests, sampling: sum(
            generate([request], sampling) for request in each_sample(requests)
        ),
        "all at once": lambda requests, sampling: generate(each_sample(requests), sampling),
        "engine": engine_way(engine),
    }


@contextmanager
def with_openai() -> Iterator[dict[str, Way]]:
    """Draw from a server: requests for one sample each, one by one and 64 at a time, and the
    engine.
    """
    from capcal_lib.sampling.engines.openai import OpenAIEngine

    with serving() as url, httpx2.Client(timeout=None) as client:
        engine = OpenAIEngine(MODEL, base_url=url)

        def ask(request: Request, sampling: Sampling) -> int:
            body = {
                "model": engine.name,
                "messages": list(request.messages),
                "max_tokens": sampling.max_tokens,
                "temperature": sampling.temperature,
                "top_p": sampling.top_p,
                "cache_salt": f"salt {next(Salts)}",
            }
            answer = client.post(f"{url}/chat/completions", json=body).raise_for_status()
            return int(answer.json()["usage"]["completion_tokens"])

        def one_by_one(requests: Sequence[Request], sampling: Sampling) -> int:
            return sum(
                ask(request, sampling) for request in requests for _ in request.sample_indices
            )

        def at_once(requests: Sequence[Request], sampling: Sampling) -> int:
            with ThreadPoolExecutor(AT_ONCE) as pool:
                jobs = [
                    pool.submit(ask, one, sampling) for one in requests for _ in one.sample_indices
                ]
                return sum(job.result() for job in jobs)

        yield {
            "one by one": one_by_one,
            f"{AT_ONCE} at a time": at_once,
            "engine": engine_way(engine),
        }


@contextmanager
def serving() -> Iterator[str]:
    """Serve the model with vLLM on this machine, as on a CPU it must be, and give the address."""
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
    command += ["--served-model-name", MODEL.name, "--host", "127.0.0.1", "--port", str(port)]
    command += [
        "--dtype",
        "float32",
        "--enforce-eager",
        "--no-enable-chunked-prefill",
        "--max-num-seqs",
        "256",
    ]
    command += [
        "--max-model-len",
        "2048",
        "--kv-cache-memory-bytes",
        str(2 << 30),
        "--block-size",
        "32",
    ]
    quiet = os.environ | {"VLLM_NO_USAGE_STATS": "1", "VLLM_LOGGING_LEVEL": "WARNING"}
    with subprocess.Popen([*command, "--disable-uvicorn-access-log"], env=quiet) as process:
        try:
            for _ in range(START_SECONDS):
                time.sleep(1)
                assert process.poll() is None, "the server ended"
                try:
                    if httpx2.get(f"http://127.0.0.1:{port}/health", timeout=5).status_code == 200:
                        break
                except httpx2.TransportError:
                    continue
            else:
                raise TimeoutError("the server did not start")
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()


def processor() -> float:
    """Return the processor time in seconds of this process and of those that it started."""
    own = psutil.Process()
    times = [process.cpu_times() for process in (own, *own.children(recursive=True))]
    return float(sum(one.user + one.system for one in times))


def fewer(requests: Sequence[Request], samples: int) -> list[Request]:
    """Ask for fewer samples of each question."""
    return [Request(one.question, one.messages, one.sample_indices[:samples]) for one in requests]


def measure(way: Way, requests: Sequence[Request], sampling: Sampling) -> tuple[float, float]:
    """Return tokens per second by the clock, and per second of processor time."""
    clock, used = time.perf_counter(), processor()
    tokens = way(requests, sampling)
    return tokens / (time.perf_counter() - clock), tokens / (processor() - used)


def main() -> None:
    """Print the rates of all ways and their ratios."""
    engines = {"transformers": with_transformers, "vllm": with_vllm, "openai": with_openai}
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("engine", choices=engines)
    parser.add_argument(
        "--samples", type=int, default=64, help="of each of 4 questions (default 64)"
    )
    given = parser.parse_args()
    with engines[given.engine]() as ways:
        for kind, (requests, sampling) in prompts(given.samples).items():
            best: dict[str, Any] = {}
            for way in ways.values():
                way(fewer(requests[:1], 1), sampling)  # what a first call sets up does not count
            for _ in range(ROUNDS):
                for name, way in ways.items():
                    rates = measure(
                        way, fewer(requests, FEW) if name == "one by one" else requests, sampling
                    )
                    best[name] = tuple(map(max, rates, best.get(name, rates)))
            print(
                f"{given.engine}, prompts {kind}, {QUESTIONS} questions x {given.samples} samples",
                flush=True,
            )
            for name, (clock, used) in best.items():
                first = best["one by one"]
                print(
                    f"  {name:<22}{clock:7.0f} tokens/s, ratio {clock / first[0]:5.1f};"
                    f"{used:7.0f} tokens per processor second, ratio {used / first[1]:5.1f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
