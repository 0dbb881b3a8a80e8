"""Draw with vLLM on the GPUs of this machine: thousands of samples in flight."""

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import count, islice
from multiprocessing import active_children
from multiprocessing.connection import wait
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np

from capcal_lib.errors import InputError
from capcal_lib.manifests import Model, Sampling
from capcal_lib.sampling.engines import Request, question_seed
from capcal_lib.sampling.engines.chat import LocalEngine, Prompt, Reply, turn_ends
from capcal_lib.sampling.weights import ensure_weights
from capcal_lib.text import sanitize

REQUESTS_IN_FLIGHT = 2_000  # more than vLLM runs at once, so that it never waits
# Samples of a question in one request. They come back together, so a kill loses up to nine that are
# done of each.
GROUP = 10


class VllmEngine(LocalEngine):
    """Sample with vLLM, in the checkpoint's type, with the manifest's settings under ``vllm``.

    It is one process with one copy of the model, on one GPU or as many as ``tensor_parallel_size``
    says. For several copies, start a server (``vllm serve --data-parallel-size 8``) and use the
    engine ``openai``, or start a process a GPU, each with its part of the questions. Because of
    rounding, sums depend on the batch, most of all in bfloat16, so a draw near such a difference
    may change.

    ``folder`` holds the weights; None gets them with `ensure_weights`.
    """

    family = "vllm"

    def __init__(self, model: Model, folder: Path | None = None) -> None:
        os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")
        os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
        from transformers import AutoTokenizer
        from vllm import LLM

        self.model = model
        folder = folder or ensure_weights(model)
        settings: dict[str, Any] = {"max_model_len": model.sampling.context_tokens}
        if model.dtype:
            settings["dtype"] = model.dtype
        settings |= model.vllm
        try:
            self.tokenizer: Any = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
            self._llm: Any = LLM(str(folder), **settings)
        except Exception as error:  # of vLLM, transformers and what they load
            raise InputError(f"vLLM could not open {model.name!r}: {sanitize(error)}") from error
        self.turn_ends = sorted(turn_ends(self.tokenizer, model))  # beside the model's own ends
        self._numbers = count()  # of requests
        processes = [process.sentinel for process in active_children()]
        if processes:
            outputs = self._llm.llm_engine.engine_core.outputs_queue
            Thread(target=_tell_of_end, args=(processes, outputs), daemon=True).start()

    def close(self) -> None:
        """End vLLM's processes."""
        self._llm.llm_engine.engine_core.shutdown()
        del self._llm

    def _draw(self, prompts: list[Prompt], sampling: Sampling, seed: int) -> Iterator[Reply | None]:
        from vllm import SamplingParams

        most = GROUP if sampling.temperature else 1  # vLLM refuses several likeliest answers
        wanted = [
            (prompt, group) for prompt in prompts for group in groups(prompt.sample_indices, most)
        ]
        jobs = (
            (
                prompt.tokens,
                SamplingParams(
                    n=len(group),
                    temperature=sampling.temperature,
                    top_p=sampling.top_p,
                    top_k=sampling.top_k or -1,
                    max_tokens=prompt.limit,
                    stop_token_ids=self.turn_ends,
                    # vLLM adds 0, 1, 2 and so on for the samples of a request
                    seed=question_seed(seed, prompt.question_id) + group[0],
                ),
            )
            for prompt, group in wanted
        )
        for done in self._finished(jobs):
            for number, choices in done:
                prompt, group = wanted[number]
                for index, choice in zip(group, choices, strict=True):
                    yield Reply(prompt, (index,), choice.token_ids, choice.finish_reason == "stop")
            yield None

    def _logprobs(self, prompts: list[list[int]], tokens: list[int]) -> np.ndarray:
        from vllm import SamplingParams

        result = np.empty((len(prompts), len(tokens)))
        settings = {"max_tokens": 1, "temperature": 0, "logprob_token_ids": sorted({*tokens})}
        for done in self._finished((prompt, SamplingParams(**settings)) for prompt in prompts):
            for number, [choice] in done:
                [logprobs] = choice.logprobs
                result[number, :] = [logprobs[token].logprob for token in tokens]
        return result

    def hidden_states(
        self,
        requests: Sequence[Request],  # noqa: ARG002
        layers: str = "mean",  # noqa: ARG002
    ) -> np.ndarray:
        """Raise `InputError`: vLLM does not give them."""
        raise InputError("the vllm engine gives no hidden states; use --engine transformers")

    def _finished(self, jobs: Iterable[tuple[list[int], Any]]) -> Iterator[list[tuple[int, Any]]]:
        """Run prompts; yield after each step the numbers and answers of those that it finished."""
        from vllm.sampling_params import RequestOutputKind
        from vllm.v1.engine.exceptions import EngineDeadError

        engine = self._llm.llm_engine
        waiting = iter(enumerate(jobs))
        under_way: dict[str, int] = {}  # the number of each request
        try:
            while True:
                free = REQUESTS_IN_FLIGHT - len(under_way)
                for number, (tokens, parameters) in islice(waiting, free):
                    parameters.output_kind = RequestOutputKind.FINAL_ONLY
                    parameters.detokenize = False
                    name = str(next(self._numbers))
                    engine.add_request(name, {"prompt_token_ids": tokens}, parameters)
                    under_way[name] = number
                if not under_way:
                    return
                outputs = [output for output in engine.step() if output.finished]
                yield [(under_way.pop(output.request_id), output.outputs) for output in outputs]
        except EngineDeadError as error:
            under_way.clear()
            raise InputError(
                "vLLM stopped, for the reason that it printed above; the samples are kept, and the "
                "same command goes on from there"
            ) from error
        finally:
            engine.abort_request([*under_way])


def _tell_of_end(processes: list[int], outputs: Any) -> None:
    """Wake who waits for outputs when vLLM's process has ended, since its client waits for ever if
    the process was killed.
    """
    from vllm.v1.engine.exceptions import EngineDeadError

    wait(processes)
    outputs.put(EngineDeadError())


def groups(indices: Sequence[int], most: int) -> Iterator[Sequence[int]]:
    """Divide indices that rise into groups of neighbours, of so many at most.

    >>> list(groups((0, 1, 2, 5, 6), 2))
    [(0, 1), (2,), (5, 6)]
    """
    start = 0
    for stop in range(1, len(indices) + 1):
        parted = stop == len(indices) or indices[stop] != indices[stop - 1] + 1
        if parted or stop - start == most:
            yield indices[start:stop]
            start = stop
