"""Draw with vLLM on this machine: thousands of samples in flight, on its GPUs or, for trying out,
its CPU.
"""

import logging
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from inspect import signature
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from anyio.from_thread import start_blocking_portal

from capcal_lib.errors import InputError
from capcal_lib.manifests import Model, Sampling
from capcal_lib.sampling.engines import Request, pool_layers, question_seed
from capcal_lib.sampling.engines.chat import LocalEngine, Prompt, Reply, encode_all
from capcal_lib.sampling.engines.streams import stream_results
from capcal_lib.sampling.weights import ensure_weights
from capcal_lib.text import counted, sanitize

if TYPE_CHECKING:
    from torch import Tensor
    from vllm import SamplingParams
    from vllm.outputs import CompletionOutput
    from vllm.v1.engine.async_llm import AsyncLLM

SAMPLES_IN_FLIGHT = 1 << 14  # more than vLLM runs at once on eight GPUs, so that it never waits
# Samples of a question in one request. They come back together, so a kill loses up to nine that are
# done of each; twenty would cost a process no less.
GROUP = 10
# How vLLM is opened on a CPU, where one only tries out.
CPU = {
    "dtype": "float32",  # bfloat16 is mostly slower there
    "enforce_eager": True,
    "max_num_seqs": 256,
    "kv_cache_memory_bytes": 2 << 30,
    # of the prefix cache; what is left over of a prompt is read again for every sample
    "block_size": 32,
    "enable_chunked_prefill": False,  # a seeded prompt that is read in pieces stops the CPU build
}
ENVIRONMENT = {"VLLM_LOGGING_LEVEL": "WARNING", "VLLM_NO_USAGE_STATS": "1"}
# Nothing here has been tried with the newer runner of models (V2) of the CPU build. On a GPU vLLM
# chooses it by itself: the older one draws the samples of a step one by one where each has a seed.
CPU_ENVIRONMENT = {"VLLM_USE_V2_MODEL_RUNNER": "0"}
# How a checkpoint says that it is a mixture of experts; the names that vLLM looks for.
EXPERTS = ("num_experts", "moe_num_experts", "n_routed_experts", "num_local_experts")


class VllmEngine(LocalEngine):
    """Sample with vLLM: the checkpoint's type on GPUs, float32 on the CPU.

    It is opened with the defaults of vLLM's own ``LLM`` and the manifest's settings under ``vllm``.
    A copy of the model takes one GPU, or as many as these settings say, and vLLM's data parallelism
    makes as many copies as fit; a mixture of experts has one copy, see `settings_of`. Samples of a
    question share its prompt in vLLM's prefix cache, and are returned one by one when done. Because
    of rounding, sums depend on the batch, most of all in bfloat16, so a draw near such a difference
    may change.

    ``folder`` holds the weights; None gets them with `ensure_weights`.
    """

    family = "vllm"

    def __init__(self, model: Model, folder: Path | None = None) -> None:
        for name, value in ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        from transformers import AutoTokenizer

        self.model = model
        folder = folder or ensure_weights(model)
        self.tokenizer: Any = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
        self._numbers = count()  # of requests
        with ExitStack() as stack:
            # vLLM lives in a loop in another thread
            self._loop = stack.enter_context(start_blocking_portal(name="vllm"))
            try:
                gpus = count_gpus()
                if not gpus:
                    for name, value in CPU_ENVIRONMENT.items():
                        os.environ.setdefault(name, value)
                self._llm: Any = self._loop.call(_open, settings_of(model, folder, gpus))
            except (RuntimeError, ValueError, ImportError, OSError) as error:
                raise InputError(
                    f"vLLM could not open {model.name!r}: {sanitize(error)}"
                ) from error
            stack.callback(self._loop.call, self._llm.shutdown)
            # first, or it reports that the processes are gone
            stack.callback(self._loop.call, self._llm.output_handler.cancel)
            self._stack = stack.pop_all()

    def close(self) -> None:
        """End vLLM's processes."""
        self._stack.close()

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
                    # vLLM adds 0, 1, 2 and so on for the samples of a request
                    seed=question_seed(seed, prompt.question_id) + group[0],
                ),
            )
            for prompt, group in wanted
        )
        for number, choices in self._finished(jobs, pause=(0, [])):
            if not choices:
                yield None
                continue
            prompt, group = wanted[number]
            for index, choice in zip(group, choices, strict=True):
                yield Reply(prompt, (index,), choice.token_ids, choice.finish_reason == "stop")

    def _logprobs(self, prompts: list[list[int]], tokens: list[int]) -> np.ndarray:
        from vllm import SamplingParams

        result = np.empty((len(prompts), len(tokens)))
        settings = {"max_tokens": 1, "temperature": 0, "logprob_token_ids": sorted({*tokens})}
        jobs = [(prompt, SamplingParams(**settings)) for prompt in prompts]
        for number, [choice] in self._finished(jobs):
            [logprobs] = choice.logprobs or [{}]
            result[number] = [logprobs[token].logprob for token in tokens]
        return result

    def hidden_states(self, requests: Sequence[Request], layers: str = "mean") -> np.ndarray:
        """Return hidden states as `Engine` says.

        Every copy of the model reads one prompt at a time, all of them side by side, and of each
        only the last position is kept. Where vLLM has compiled the network, what was written is
        run in its place meanwhile."""
        import torch
        from vllm import SamplingParams

        core = self._llm.engine_core
        once = {"max_tokens": 1, "temperature": 0, "skip_reading_prefix_cache": True}
        prompts = encode_all(self.tokenizer, self.model, requests)
        size = self._llm.model_config.get_hidden_size()
        result = np.empty((len(prompts), size), dtype=np.float32)

        def tell(copy: Any, method: str, *given: list[int]) -> Any:
            """Call a method of `PositionWatcher` on every GPU of a copy of the model."""
            call = core._call_utility_async
            return self._loop.call(
                lambda: call("collective_rpc", method, None, given, None, engine=copy)
            )

        for start in range(0, len(prompts), len(core.core_engines)):
            copies = list(zip(core.core_engines, prompts[start:], strict=False))
            for copy, prompt in copies:
                tell(copy, "watch_prompt", prompt)
            try:
                jobs = [(prompt, SamplingParams(**once)) for _, prompt in copies]
                list(self._finished(jobs, on_copies=True))
            finally:
                watched = [tell(copy, "end_watch")[0] for copy, _ in copies]
            for row, (states, seen) in enumerate(watched, start):
                if not states:
                    raise InputError(
                        f"the vllm engine could not read the layers of {self.model.name!r}: "
                        f"{seen}; extract hidden states with --engine transformers"
                    )
                every = torch.frombuffer(bytearray(states), dtype=torch.float32).view(-1, size)
                result[row] = pool_layers(every, layers).numpy()
        return result

    def _finished(
        self,
        jobs: Iterable[tuple[list[int], "SamplingParams"]],
        *,
        on_copies: bool = False,
        pause: "tuple[int, list[CompletionOutput]] | None" = None,
    ) -> Iterator[tuple[int, "list[CompletionOutput]"]]:
        """Run prompts, the first on the first copy and so on where asked, and yield the number and
        the answers of each as it is done, and ``pause`` as `stream_results` does.
        """
        from vllm.sampling_params import RequestOutputKind
        from vllm.v1.engine.exceptions import EngineDeadError

        async def run(job: Any) -> "tuple[int, list[CompletionOutput]]":
            number, (prompt, parameters) = job
            parameters.output_kind = RequestOutputKind.FINAL_ONLY
            parameters.detokenize = False
            stream = self._llm.generate(
                {"type": "token", "prompt_token_ids": prompt},
                parameters,
                str(next(self._numbers)),
                data_parallel_rank=number if on_copies else None,
            )
            (output,) = [output async for output in stream]
            return number, output.outputs

        try:
            yield from stream_results(
                enumerate(jobs),
                run,
                in_flight=SAMPLES_IN_FLIGHT,
                weigh=lambda job: job[1][1].n,
                loop=self._loop,
                pause=pause,
            )
        except EngineDeadError as error:
            raise InputError(
                "vLLM stopped, for the reason that it printed above; the samples are kept, and the "
                "same command goes on from there"
            ) from error


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


class PositionWatcher:
    """Keep the hidden states of a prompt's last token, in float32; vLLM mixes this into its
    workers, which hold the network.

    It looks at what enters each layer and at what the final norm puts out, so the network has to
    run as it is written, not compiled, with one prompt at a time. Only the first pass over the end
    of the prompt counts: vLLM runs others of its own, such as those that keep pace with another
    rank, over whatever tokens and positions its buffers hold."""

    get_model: Any  # the worker's, and so is
    model_config: Any

    def watch_prompt(self, prompt: list[int]) -> None:
        """Keep the states of the last of these tokens from now on."""
        network = self.get_model()
        decoder = getattr(network, "model", None)
        self.passes = 0
        self.row: int | None = None  # of the last token, in the pass that is running
        self.watched_states: list[Tensor] = []

        def begin(_: Any, __: Any, named: dict[str, Any]) -> None:
            self.passes += 1
            self.row = None
            if not self.watched_states:
                self.row = last_row(prompt, named["positions"], named.get("input_ids"))

        def keep(*parts: Any) -> None:
            """Keep a stream of states: whole, or in two parts whose sum the next layer takes."""
            if self.row is not None:
                rows = [part.flatten(0, -2)[self.row] for part in parts if part is not None]
                self.watched_states.append(sum(rows).float())

        def enter(layer: Any, given: tuple[Any, ...], named: dict[str, Any]) -> None:
            inputs = signature(layer.forward).bind(*given, **named).arguments
            if "hidden_states" in inputs:
                keep(inputs["hidden_states"], inputs.get("residual"))

        def leave(_: Any, __: Any, normed: Any) -> None:
            keep(normed[0] if isinstance(normed, tuple) else normed)

        # vLLM's own switch: a network that it has compiled runs as it is written.
        self.compiled = [
            part for part in network.modules() if getattr(part, "do_not_compile", None) is False
        ]
        for part in self.compiled:
            part.do_not_compile = True
        self.watching = [network.register_forward_pre_hook(begin, with_kwargs=True)]
        for layer in getattr(decoder, "layers", ()):
            self.watching.append(layer.register_forward_pre_hook(enter, with_kwargs=True))
        if norm := getattr(decoder, "norm", None):
            self.watching.append(norm.register_forward_hook(leave))

    def end_watch(self) -> tuple[bytes, str]:
        """Return the states as bytes, (n_layers + 1, hidden_size), float32; none where there are
        not so many, with what was seen instead.
        """
        import torch

        for hook in self.watching:
            hook.remove()
        for part in self.compiled:
            part.do_not_compile = False
        states = self.watched_states
        expected = self.model_config.get_total_num_hidden_layers() + 1
        if len(states) != expected:
            return b"", (
                f"{len(states)} states of the last token in {counted(self.passes, 'run')} of the "
                f"network, where {expected} are expected"
            )
        return bytes(torch.stack(states).cpu().numpy().tobytes()), ""


def last_row(prompt: list[int], positions: "Tensor", tokens: "Tensor | None") -> int | None:
    """Return the row of a prompt's last token in a pass, or None where the pass does not end the
    prompt.

    ``positions`` and ``tokens`` of the pass have shape (n_rows,). Without tokens, because the
    network is given something else, only the positions decide."""
    ends = (positions == len(prompt) - 1).nonzero()[:1, 0].tolist()
    if not ends:
        return None  # an earlier part is read, or nothing of it
    row: int = ends[0]
    if tokens is not None:
        size = min(row + 1, len(prompt))  # an earlier part may be cached
        if tokens[row + 1 - size : row + 1].tolist() != prompt[-size:]:
            return None
    return row


async def _open(settings: dict[str, Any]) -> "AsyncLLM":
    """Open vLLM as its ``LLM`` does, but for any number of copies."""
    from vllm import AsyncEngineArgs
    from vllm.usage.usage_lib import UsageContext
    from vllm.v1.engine.async_llm import AsyncLLM

    return AsyncLLM.from_engine_args(
        AsyncEngineArgs(**settings), usage_context=UsageContext.LLM_CLASS
    )


def count_gpus() -> int:
    """Return how many GPUs vLLM sees here; 0 for its CPU build."""
    from vllm.platforms import current_platform

    return 0 if current_platform.is_cpu() else int(current_platform.device_count())


def has_experts(folder: Path) -> bool:
    """Return whether a checkpoint is a mixture of experts, by its configuration."""
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(folder, trust_remote_code=False).get_text_config()
    return any(getattr(config, name, 0) for name in EXPERTS)


def settings_of(model: Model, folder: Path, gpus: int) -> dict[str, Any]:
    """Return the arguments that open vLLM on so many GPUs, or on the CPU for none. The manifest's
    arguments come before ours; all others are vLLM's defaults. A manifest cannot choose other
    weights, or run their code.

    vLLM's data parallelism makes copies of a model, but divides the experts of a mixture of experts
    among all ranks, which then wait for each other at every layer. So such a model has one copy
    here, and if GPUs are left, a line says how to use them."""
    watcher = f"{PositionWatcher.__module__}.{PositionWatcher.__qualname__}"
    settings: dict[str, Any] = {
        "max_model_len": model.sampling.context_tokens,
        "enable_prefix_caching": True,
        "disable_log_stats": True,
    }
    if not gpus:
        settings |= CPU
        # a prompt is read at once
        settings["max_num_batched_tokens"] = max(model.sampling.context_tokens, 2048)
    else:
        sizes = ("tensor_parallel_size", "pipeline_parallel_size")
        ranks = math.prod(int(model.vllm.get(size, 1)) for size in sizes)  # of a copy
        copies = max(1, gpus // ranks)
        if copies > 1 and "data_parallel_size" not in model.vllm and has_experts(folder):
            logging.getLogger(__name__).warning(
                f"{model.name!r} is a mixture of experts, of which vLLM makes no copies: this "
                f"process takes {ranks} of {gpus} GPUs. To use all, start {copies} processes, each "
                f"with its own CUDA_VISIBLE_DEVICES, --store and part, 1/{copies} to "
                f"{copies}/{copies}, and merge their stores, the first by: capcal reproduce "
                f"--model {model.name} --part 1/{copies}"
            )
            copies = 1
        settings["data_parallel_size"] = copies
    if model.dtype:
        settings["dtype"] = model.dtype
    ours = {"model": str(folder), "worker_extension_cls": watcher, "trust_remote_code": False}
    return settings | model.vllm | ours
