"""Samples a second of one process that asks vLLM: the engine, and vLLM's own `generate`, in one
run.

    build/vllm/bin/python benchmarks/vllm_front.py [questions samples tokens]

What one process asks and reads is vLLM's own front end, whole: its renderer, its processors of
input and output, and its client, which speaks to the engine's process over sockets. Only that
process is a stand-in, which has no network and no scheduler: it runs 1,024 samples at most, gives
each a token every 10 ms, and takes tokens and lengths from the sample's seed. So a sample costs
here what it costs beside a card that never waits.

Ways to ask: `generate` with ``n`` samples a question, all questions at once, which gives tokens;
the same with texts; `generate` with a request a sample; and the engine, which renders the prompts,
decodes the answers and parts them from the reasoning. Figures are microseconds of processor time of
this process a sample, and samples a second by the clock. Each way is run three times, by turns, and
the least is taken."""

import gc
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import uuid4

from capcal_lib.manifests import Sampling, load_model
from capcal_lib.places import ROOT
from capcal_lib.questions import load_questions
from capcal_lib.sampling.engines import Request, answer_requests, question_seed

MODEL = load_model("smollm2-135m")
SHAPES = [(200, 20, 9), (4_000, 1, 9), (200, 20, 123)]  # questions, samples of each, their tokens
ROUNDS = 3
RUNNING = 1024  # samples at a time
STEP = 0.01  # seconds
END = 2  # the token that ends a turn
TOKENS = "CAPCAL_STAND_IN_TOKENS"  # the environment variable that says how long answers are


def answer(seed: int | None, tokens: int, limit: int) -> list[int]:
    """Return the tokens that a sample with this seed says, half as many as said to half more."""
    rng = random.Random(seed)
    length = max(1, round(tokens * rng.uniform(0.5, 1.5)))
    return [*rng.choices(range(300, 7000), k=length - 1), END][:limit]


def stand_in(inputs: str, outputs: str) -> None:
    """Speak to vLLM's client as its engine's process does, until the client's process ends."""
    import zmq
    from vllm.v1.engine import (
        EngineCoreOutput,
        EngineCoreOutputs,
        EngineCoreRequest,
        EngineCoreRequestType,
        FinishReason,
        UtilityOutput,
    )
    from vllm.v1.serial_utils import MsgpackDecoder, MsgpackEncoder, UtilityResult

    tokens = int(os.environ[TOKENS])
    context = zmq.Context()
    asked, said = context.socket(zmq.DEALER), context.socket(zmq.PUSH)
    for socket in (asked, said):
        socket.set_hwm(0)
    asked.setsockopt(zmq.IDENTITY, (0).to_bytes(2, "little"))
    asked.connect(inputs)
    said.connect(outputs)
    asked.send(b"")  # ready
    encode, decode = MsgpackEncoder().encode, MsgpackDecoder(EngineCoreRequest).decode
    decode_list = MsgpackDecoder().decode
    waiting: dict[str, list[int]] = {}  # what each will say, by its name
    running: dict[str, list[int]] = {}
    parent, due = os.getppid(), time.monotonic()
    while os.getppid() == parent:
        while asked.poll(0 if waiting or running else 1000):
            kind, *frames = asked.recv_multipart()
            if kind == EngineCoreRequestType.ADD.value:
                request = decode(frames)
                settings = request.sampling_params
                waiting[request.request_id] = answer(settings.seed, tokens, settings.max_tokens)
            elif kind == EngineCoreRequestType.ABORT.value:
                for name in decode_list(frames):
                    waiting.pop(name, None)
                    running.pop(name, None)
            else:  # what the engine can do
                _, number, *_ = decode_list(frames)
                result = UtilityOutput(number, result=UtilityResult(("generate",)))
                said.send_multipart(encode(EngineCoreOutputs(utility_output=result)))
        for name in [*waiting][: RUNNING - len(running)]:
            running[name] = waiting.pop(name)[::-1]
        if not running:
            continue
        step = []
        for name, rest in [*running.items()]:
            output = EngineCoreOutput(name, [rest.pop()])
            if not rest:
                ended = output.new_token_ids == [END]
                output.finish_reason = FinishReason.STOP if ended else FinishReason.LENGTH
                del running[name]
            step.append(output)
        due = max(due + STEP, time.monotonic())
        time.sleep(max(0, due - time.monotonic()))
        said.send_multipart(encode(EngineCoreOutputs(outputs=step)))


def put_in_place() -> None:
    """Let vLLM's client speak to the stand-in."""
    from vllm.v1.engine.core_client import MPClient

    start_client = MPClient.__init__

    def start(client: Any, **given: Any) -> None:
        addresses = [f"ipc://@{uuid4().hex}" for _ in range(2)]  # sockets that are no files
        command = [sys.executable, "-m", "benchmarks.vllm_front", *addresses]
        subprocess.Popen(command, cwd=ROOT)  # which ends with this process
        places = dict(zip(("input_address", "output_address"), addresses, strict=True))
        start_client(client, client_addresses=places, **given)

    MPClient.__init__ = start


def requests(questions: int, samples: int) -> list[Request]:
    """Ask so many questions, the few of a built-in set over and over."""
    few = load_questions("mini-capitals")
    many = [replace(few[i % len(few)], id=f"capitals/{i:06}") for i in range(questions)]
    return answer_requests(MODEL, many, {one.id: tuple(range(samples)) for one in many})


def generate(
    engine: Any, prompts: Sequence[list[int]], sampling: Sampling, samples: int, n: int, texts: bool
) -> int:
    """Ask vLLM itself, in requests for ``n`` samples, all at once; return how many it gave."""
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind

    asked, settings = [], []
    for number, prompt in enumerate(prompts):
        for start in range(0, samples, n):
            asked.append({"prompt_token_ids": prompt})
            settings.append(
                SamplingParams(
                    n=n,
                    temperature=sampling.temperature,
                    max_tokens=sampling.max_tokens,
                    seed=question_seed(0, str(number)) + start,
                    detokenize=texts,
                    output_kind=RequestOutputKind.FINAL_ONLY,
                )
            )
    outputs = engine._llm.generate(asked, settings, use_tqdm=False)
    return sum(len(output.outputs) for output in outputs)


def draw(engine: Any, asked: Sequence[Request], sampling: Sampling) -> int:
    """Draw through the engine; return how many samples it gave."""
    return sum(len(group) for group in engine.sample(asked, sampling, 0))


def measure(ways: dict[str, Callable[[], int]]) -> dict[str, tuple[float, float]]:
    """Return of each way the microseconds of processor time a sample, and the samples a second."""
    best: dict[str, tuple[float, float]] = {}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            gc.collect()  # what the way before has left
            clock, used = time.perf_counter(), time.process_time()
            drawn = way()
            clock, used = time.perf_counter() - clock, time.process_time() - used
            last = best.get(name, (float("inf"), 0.0))
            best[name] = min(last[0], 1e6 * used / drawn), max(last[1], drawn / clock)
    return best


def main(shapes: list[tuple[int, int, int]]) -> None:
    """Print the figures of all ways and their ratios."""
    from capcal_lib.sampling.engines.chat import encode_all
    from capcal_lib.sampling.engines.vllm import VllmEngine

    put_in_place()
    for questions, samples, tokens in shapes:
        os.environ[TOKENS] = str(tokens)
        engine: Any = VllmEngine(MODEL)
        try:
            asked = requests(questions, samples)
            settings = {"temperature": 0.7, "max_tokens": 2 * tokens}
            sampling = MODEL.sampling.model_copy(update=settings)
            prompts = encode_all(engine.tokenizer, MODEL, asked)
            plain = partial(generate, engine, prompts, sampling, samples)
            ways: dict[str, Callable[[], int]] = {
                "generate, n samples, tokens": partial(plain, samples, False),
                "generate, n samples, texts": partial(plain, samples, True),
                "generate, a request a sample": partial(plain, 1, False),
                "the engine": partial(draw, engine, asked, sampling),
            }
            draw(engine, asked[:2], sampling)  # what a first call sets up does not count
            figures = measure(ways)
        finally:
            engine.close()
        print(f"{questions} questions x {samples} samples of {tokens} tokens", flush=True)
        first = figures["generate, n samples, tokens"]
        for name, (used, rate) in figures.items():
            print(
                f"  {name:<30}{used:6.0f} us a sample, ratio {used / first[0]:4.2f};"
                f"{rate:7,.0f} samples/s, ratio {rate / first[1]:4.2f}",
                flush=True,
            )


if __name__ == "__main__":
    if sys.argv[1:] and not sys.argv[1].isdigit():
        stand_in(*sys.argv[1:])
    else:
        given = [int(one) for one in sys.argv[1:]]
        main([(given[0], given[1], given[2])] if given else SHAPES)
