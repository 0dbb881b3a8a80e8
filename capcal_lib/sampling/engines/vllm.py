"""Draw with vLLM on this machine: thousands of samples in flight, on its GPUs or, for trying out,
its CPU.
"""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from capcal_lib.errors import InputError, sanitize
from capcal_lib.manifests import Model, Sampling
from capcal_lib.runs.samples import FinishReason, Sample
from capcal_lib.sampling.engines import (
    SAMPLES_A_REQUEST,
    Layers,
    Request,
    check_shape,
    consecutive,
    pooled,
    question_seed,
)
from capcal_lib.sampling.engines.chat import (
    answer_limit,
    begin_answers,
    decode,
    encode,
    single_tokens,
)
from capcal_lib.sampling.weights import ensure_weights

if TYPE_CHECKING:
    from torch import Tensor
    from vllm import LLMEngine, SamplingParams
    from vllm.outputs import CompletionOutput

SAMPLES_IN_FLIGHT = 8192  # several times what vLLM runs at once, so that it never waits for us
POLL_SECONDS = 0.002
SHARE_OF_WEIGHTS = 0.6  # of a GPU's memory; the rest is for keys and values
CPU_SAMPLES_AT_ONCE = 256
CPU_TOKENS_AT_ONCE = 2048
CPU_CACHE_BYTES = 2 << 30  # keys and values
CPU_REPLICAS = 1  # more are for trying out: they share the cores


class VllmEngine:
    """Sample with vLLM: the checkpoint's type on GPUs, float32 on the CPU.

    As few GPUs as hold the model make a replica, an engine in its own process, and there are as
    many as fit. Samples of a question share its prompt in vLLM's prefix cache. They are asked for
    in parts of 16 at most, each of the replica with the least to do, and given back when done.
    Rounding: sums depend on the batch, the more so in bfloat16, and a draw that falls inside such a
    difference changes.

    ``folder`` holds the weights; None gets them through `ensure_weights`.
    """

    family = "vllm"

    def __init__(self, model: Model, folder: Path | None = None) -> None:
        for name, value in {"VLLM_LOGGING_LEVEL": "WARNING", "VLLM_NO_USAGE_STATS": "1"}.items():
            os.environ.setdefault(name, value)
        from transformers import AutoTokenizer

        self.folder = folder or ensure_weights(model)
        self.model = model
        self.tokenizer: Any = AutoTokenizer.from_pretrained(self.folder)
        self.context = model.sampling.context_tokens
        self.engines = self._open()
        config = self.engines[0].model_config
        check_shape(model, config.get_total_num_hidden_layers(), config.get_hidden_size())

    def sample(
        self, requests: Sequence[Request], sampling: Sampling, seed: int
    ) -> Iterator[list[Sample]]:
        """Draw every wanted sample, yielding up to 16 of a question together as they are done."""
        if sampling.context_tokens > self.context:
            raise InputError(
                f"context_tokens = {sampling.context_tokens} is more than the {self.context} of "
                "the manifest of "
                f"{self.model.name!r}, with which vLLM was opened; change the manifest"
            )
        for request, indices, prompt, choices in self._draw(requests, sampling, seed):
            yield [
                self._sample(request, index, prompt, choice)
                for index, choice in zip(indices, choices, strict=True)
            ]

    def _draw(
        self, requests: Sequence[Request], sampling: Sampling, seed: int
    ) -> Iterator[tuple[Request, tuple[int, ...], list[int], list["CompletionOutput"]]]:
        """Yield a request, some of its samples, its prompt and what was said, as they are done."""
        from vllm import SamplingParams

        wanted = [request for request in requests if request.sample_indices]
        most = 1 if sampling.temperature == 0 else SAMPLES_A_REQUEST
        parts = []
        jobs = []
        for request, prompt in zip(wanted, self._prompts(wanted, sampling), strict=True):
            for indices in consecutive(request.sample_indices, most):
                parameters = SamplingParams(
                    n=len(indices),
                    temperature=sampling.temperature,
                    top_p=sampling.top_p,
                    top_k=sampling.top_k or -1,
                    max_tokens=answer_limit(prompt, request, sampling),
                    seed=question_seed(seed, request.question.id)
                    + indices[0],  # vLLM adds each choice's index
                    detokenize=False,
                )
                parts.append((request, indices))
                jobs.append((prompt, parameters))
        for number, choices in self._finished(jobs):
            yield *parts[number], jobs[number][0], choices

    def next_token_logprobs(
        self, requests: Sequence[Request], words: Sequence[str], sampling: Sampling, seed: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return log-probabilities and tokens as `Engine` says."""
        from vllm import SamplingParams

        def draw(asked: list[Request]) -> Iterator[tuple[str, list[int]]]:
            replies = self._draw(asked, sampling, seed)
            return (
                (request.question.id, list(choice.token_ids)) for request, _, _, [choice] in replies
            )

        begun, tokens = begin_answers(self.tokenizer, self.model, requests, draw)
        single = single_tokens(self.tokenizer, words)
        places = list(begun)
        result = np.full((len(requests), len(words)), np.nan)
        if not single:
            return result, tokens
        parameters = SamplingParams(
            max_tokens=1,
            temperature=0,
            logprob_token_ids=sorted(set(single.values())),
            detokenize=False,
        )
        prompts = self._prompts(list(begun.values()), sampling)
        for row, [choice] in self._finished([(prompt, parameters.clone()) for prompt in prompts]):
            [said] = choice.logprobs or [{}]
            for column, token in single.items():
                result[places[row], column] = said[token].logprob
        return result, tokens

    def hidden_states(self, requests: Sequence[Request], layers: Layers = "mean") -> np.ndarray:
        """Return hidden states as `Engine` says.

        Every replica reads one prompt at a time, all of them side by side, each from where it parts
        from those in the prefix cache, and of each only the last position is kept. A network that
        vLLM has compiled cannot be looked into, so on GPUs it is opened anew, as it is written,
        when hidden states are first asked for; sampling after that is slower."""
        if not (config := self.engines[0].model_config).enforce_eager:
            for engine in self.engines:
                engine.engine_core.shutdown()
            self.engines = self._open(enforce_eager=True)
        width = config.get_hidden_size()
        shape = (config.get_total_num_hidden_layers() + 1, width) if layers == "all" else (width,)
        result = np.empty((len(requests), *shape), dtype=np.float32)
        prompts = self._prompts(requests, self.model.sampling)
        with _death_told():
            for start in range(0, len(prompts), len(self.engines)):
                read = self._states(prompts[start : start + len(self.engines)], layers)
                for row, states in enumerate(read, start):
                    if not states:
                        raise InputError(
                            f"the vllm engine cannot tell the layers of {self.model.name!r} apart; "
                            "extract hidden states with --engine transformers"
                        )
                    result[row] = np.frombuffer(states, dtype=np.float32).reshape(shape)
        return result

    def _states(self, prompts: list[list[int]], layers: Layers) -> list[bytes]:
        """Read a prompt on each replica, at most as many as there are, and return their states."""
        from vllm import SamplingParams

        busy = self.engines[: len(prompts)]
        jobs = []
        for engine, prompt in zip(busy, prompts, strict=True):
            engine.collective_rpc("watch_position", args=(len(prompt) - 1,))
            jobs.append((prompt, SamplingParams(max_tokens=1, temperature=0, detokenize=False)))
        try:
            for _ in self._finished(jobs):  # each on the idlest: the first on the first, and so on
                pass
        finally:
            # Every GPU of a replica has them.
            states = [engine.collective_rpc("end_watch", args=(layers,))[0] for engine in busy]
        return states

    def _prompts(self, requests: Sequence[Request], sampling: Sampling) -> list[list[int]]:
        """Return the prompts as tokens; one that leaves no room for an answer is refused."""
        prompts = [encode(self.tokenizer, self.model, request) for request in requests]
        for request, prompt in zip(requests, prompts, strict=True):
            answer_limit(prompt, request, sampling)
        return prompts

    def _open(self, **settings: Any) -> list["LLMEngine"]:
        from vllm import EngineArgs, LLMEngine

        settings = {
            "model": str(self.folder),
            "max_model_len": self.context,
            "enable_prefix_caching": True,
        } | settings
        watcher = f"{PositionWatcher.__module__}.{PositionWatcher.__qualname__}"
        settings |= {"disable_log_stats": True, "worker_extension_cls": watcher}
        try:
            machines = _machines(self.model, self.folder, self.context)
            return [
                LLMEngine.from_engine_args(EngineArgs(**machine | settings)) for machine in machines
            ]
        except (RuntimeError, ValueError, ImportError) as error:
            raise InputError(
                f"vLLM could not open {self.model.name!r}: {sanitize(error)}"
            ) from error

    def _finished(
        self, prompts: Sequence[tuple[list[int], "SamplingParams"]]
    ) -> Iterator[tuple[int, list["CompletionOutput"]]]:
        """Run prompts, a first one on the first replica, and yield the index and choices of each as
        it is done.
        """
        from vllm.sampling_params import RequestOutputKind

        waiting = iter(enumerate(prompts))
        flying: list[dict[str, int]] = [
            {} for _ in self.engines
        ]  # samples, by the index of the prompt
        with _death_told():
            try:
                while True:
                    loads = [sum(own.values()) for own in flying]
                    while min(loads) < SAMPLES_IN_FLIGHT and (entry := next(waiting, None)):
                        (number, (prompt, parameters)) = entry
                        idlest = loads.index(min(loads))
                        parameters.output_kind = RequestOutputKind.FINAL_ONLY
                        self.engines[idlest].add_request(
                            str(number), {"prompt_token_ids": prompt}, parameters
                        )
                        flying[idlest][str(number)] = parameters.n
                        loads[idlest] += parameters.n
                    if not any(flying):
                        return
                    time.sleep(POLL_SECONDS)
                    for engine, own in zip(self.engines, flying, strict=True):
                        # of one that was killed, nothing would ever come
                        engine.engine_core.ensure_alive()
                        for output in (
                            () if engine.engine_core.outputs_queue.empty() else engine.step()
                        ):
                            if output.finished:
                                del own[output.request_id]
                                yield int(output.request_id), output.outputs
            finally:
                for engine, own in zip(self.engines, flying, strict=True):
                    if own:
                        engine.abort_request(list(own))

    def _sample(
        self, request: Request, index: int, prompt: list[int], choice: "CompletionOutput"
    ) -> Sample:
        finish: FinishReason = "stop" if choice.finish_reason == "stop" else "length"
        said = list(choice.token_ids)
        reasoning, response = decode(
            self.tokenizer, self.model, prompt, said[:-1] if finish == "stop" else said
        )
        return Sample(
            question_id=request.question.id,
            sample_index=index,
            response=response,
            reasoning=reasoning,
            finish_reason=finish,
            prompt_tokens=len(prompt),
            completion_tokens=len(said),
        )


class PositionWatcher:
    """Keep the hidden states of one position, in float32; vLLM mixes this into its workers, which
    hold the network.

    It looks at what enters each layer and at what the final norm puts out, so the network has to
    run as it is written, not compiled, with one prompt at a time."""

    get_model: Any  # the worker's, and so is
    model_config: Any

    def watch_position(self, position: int) -> None:
        """Keep the states at this position from now on."""
        network = self.get_model()
        decoder = getattr(network, "model", None)
        layers = getattr(decoder, "layers", ())
        norm = getattr(decoder, "norm", None)
        self.watched_states: list[Tensor] = []
        here: Tensor

        def begin(_: Any, __: Any, named: dict[str, Any]) -> None:
            nonlocal here
            here = (named["positions"] == position).nonzero()[
                :1, 0
            ]  # empty while an earlier part is read

        def enter(layer: Any, given: tuple[Any, ...], named: dict[str, Any]) -> None:
            inputs = signature(layer.forward).bind(*given, **named).arguments
            if "hidden_states" in inputs:
                # The stream of states comes whole, or in two parts whose sum the layer takes when
                # it begins.
                parts = [inputs["hidden_states"], inputs.get("residual")]
                self.watched_states.append(
                    sum(part.flatten(0, -2)[here] for part in parts if part is not None).float()
                )

        def leave(_: Any, __: Any, normed: Any) -> None:
            normed = normed[0] if isinstance(normed, tuple) else normed
            self.watched_states.append(normed.flatten(0, -2)[here].float())

        self.watching = [network.register_forward_pre_hook(begin, with_kwargs=True)]
        self.watching += [
            layer.register_forward_pre_hook(enter, with_kwargs=True) for layer in layers
        ]
        if norm is not None:
            self.watching.append(norm.register_forward_hook(leave))

    def end_watch(self, layers: Layers) -> bytes:
        """Return the states, pooled as asked, as bytes: none where they are not one a layer and one
        more.
        """
        import torch

        for hook in self.watching:
            hook.remove()
        states = torch.cat(self.watched_states) if self.watched_states else torch.empty(0)
        if len(states) != self.model_config.get_total_num_hidden_layers() + 1:
            return b""
        return bytes(pooled(states, layers).cpu().numpy().tobytes())


@contextmanager
def _death_told() -> Iterator[None]:
    """Say in a line that vLLM's own process has ended."""
    from vllm.v1.engine.exceptions import EngineDeadError

    try:
        yield
    except EngineDeadError as error:
        raise InputError(
            "vLLM stopped, for the reason that it has printed above; what was drawn is kept, and "
            "the same command "
            "goes on from there"
        ) from error


def _machines(model: Model, folder: Path, context: int) -> list[dict[str, Any]]:
    """Return the settings of each replica on the machine that this is."""
    from vllm.platforms import current_platform

    if current_platform.is_cpu():
        cpu = {
            "dtype": model.dtype or "float32",  # bfloat16 is mostly slower there
            "enforce_eager": True,
            "max_num_seqs": CPU_SAMPLES_AT_ONCE,
            "kv_cache_memory_bytes": CPU_CACHE_BYTES,
            # of the prefix cache; what is left over of a prompt is read again for every sample
            "block_size": 32,
            # a seeded prompt that is read in pieces stops the CPU build
            "enable_chunked_prefill": False,
            "max_num_batched_tokens": max(context, CPU_TOKENS_AT_ONCE),
        }
        return [cpu] * CPU_REPLICAS
    weights = sum(path.stat().st_size for path in folder.glob("*.safetensors"))
    gpus = current_platform.device_count()
    ranks = gpus_for(weights, gpus, current_platform.get_device_total_memory())
    one = {"dtype": model.dtype or "auto", "tensor_parallel_size": ranks}
    if gpus < 2 * ranks:
        return [one]
    return [
        one | {"device_ids": [*range(first, first + ranks)]}
        for first in range(0, gpus - ranks + 1, ranks)
    ]


def gpus_for(weights: int, gpus: int, memory: int) -> int:
    """Return how many GPUs of so many bytes hold a model, as few as leave room for keys and values.

    A power of two, as the heads of attention; at most the largest among ``gpus``.

    >>> [gpus_for(weights << 30, 6, 80 << 30) for weights in (16, 40, 60, 600)]
    [1, 1, 2, 4]
    """
    ranks = 1
    while 2 * ranks <= gpus and weights > SHARE_OF_WEIGHTS * memory * ranks:
        ranks *= 2
    return ranks
