"""Draw from a model on this machine with transformers: many samples of a question at once.

Four things make it fast: the three of ``shared_prefix``, and that finished samples leave the batch
at once and the next question's samples join."""

import hashlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate
from pathlib import Path
from timeit import repeat
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import linear

import capcal_lib.sampling.engines.shared_prefix as shared_prefix
from capcal_lib.errors import InputError
from capcal_lib.manifests import Model, Sampling
from capcal_lib.runs.samples import FinishReason, Sample
from capcal_lib.sampling.engines import Layers, LikelyAnswers, Request, check_shape, pooled
from capcal_lib.sampling.engines.chat import (
    answer_limit,
    begin_answers,
    decode,
    encode,
    single_tokens,
)
from capcal_lib.sampling.engines.shared_prefix import Branch, Group, Reader, Stream, Tails
from capcal_lib.sampling.engines.token_sampling import draw_tokens, token_probabilities
from capcal_lib.sampling.weights import ensure_weights

ATTENTION = "capcal_shared_prefix"  # our name among the attention functions of transformers
SAMPLES_IN_FLIGHT = 256
BEGINNINGS = 1024  # of an answer, followed at a time where all likely ones are wanted
PACK_TOKENS = 1024  # that are read in one pass for hidden states or log-probabilities
SHARED_TOKENS = 32  # a beginning that is worth reading before those that share it
CACHE_BYTES = (
    2 << 30
)  # for the keys and values of the prompts in flight, and as much for those of the answers


class TransformersEngine:
    """Sample with transformers: float32 on the CPU, the checkpoint's type on a GPU, or the
    manifest's ``dtype``.

    For decoder-only models whose attention goes through transformers' attention interface, as most
    do, sliding windows and attention sinks among them. Soft caps and linear attention are refused.

    Rounding: sums of another batch size differ by about 1e-6, in bfloat16 by 1e-2, and a draw
    inside it changes.

    ``folder`` holds the weights; None gets them through `ensure_weights`.
    """

    family = "transformers"

    def __init__(self, model: Model, folder: Path | None = None) -> None:
        with warnings.catch_warnings():
            warnings.filterwarnings(
                "ignore", message="IProgress not found"
            )  # tqdm wants widgets in a notebook
            from transformers import AutoModelForCausalLM, AutoTokenizer
            from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
            from transformers.utils import logging

        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        folder = folder or ensure_weights(model)
        self.model = model
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.tokenizer: Any = AutoTokenizer.from_pretrained(folder)
        ALL_ATTENTION_FUNCTIONS.register(ATTENTION, shared_prefix.attention)
        network: Any = AutoModelForCausalLM.from_pretrained(
            folder,
            dtype=(model.dtype or "auto") if self.device.type == "cuda" else torch.float32,
            attn_implementation=ATTENTION,
        )
        self.network = network.to(self.device).eval()
        if self.device.type == "cpu" and model.dtype == "bfloat16":
            _round_products(self.network)
        config = self.network.config
        check_shape(model, config.num_hidden_layers, config.hidden_size)
        layer_types = set(getattr(config, "layer_types", None) or ["full_attention"])
        if (
            layer_types - {"full_attention", "sliding_attention"}
            or not self.network._supports_attention_backend
        ):
            kind = config.model_type
            raise InputError(
                f"the transformers engine cannot do the attention of a {kind!r} model; use vllm"
            )
        ends = self.network.generation_config.eos_token_id
        self.ends = {*(ends if isinstance(ends, list) else [ends]), self.tokenizer.eos_token_id} - {
            None
        }

    def sample(
        self, requests: Sequence[Request], sampling: Sampling, seed: int
    ) -> Iterator[list[Sample]]:
        """Draw every wanted sample, yielding those of a question together."""
        for group in self._draw(requests, sampling, seed):
            samples = []
            for tokens, streams in group.done:
                said = *self._said(group, tokens), len(group.prompt), len(tokens)
                samples += [Sample(group.question_id, index, *said) for index, _ in streams]
            yield samples

    def _draw(self, requests: Sequence[Request], sampling: Sampling, seed: int) -> Iterator[Group]:
        """Yield each question, or part of its samples, when all of them have ended."""
        groups = [
            self._group(request, sampling, seed) for request in requests if request.sample_indices
        ]
        if not groups:
            return
        longest = max(group.limit for group in groups)
        budget = CACHE_BYTES // self._token_bytes()
        cap = max(1, min(SAMPLES_IN_FLIGHT, budget // longest))
        waiting = [
            Group(
                question_id=group.question_id,
                prompt=group.prompt,
                limit=group.limit,
                streams=group.streams[start : start + cap],
            )
            for group in sorted(groups, key=lambda group: group.prompt)
            for start in range(0, len(group.streams), cap)
        ]
        reader = Reader(self.device)
        tails = Tails(min(cap, sum(len(group.streams) for group in waiting)), longest)
        active: list[Group] = []
        branches: list[Branch] = []
        while waiting or active:
            roots = []
            in_flight = sum(len(branch.streams) for branch in branches)
            while waiting and (
                not active
                or (
                    in_flight + len(waiting[-1].streams) <= cap
                    and sum(len(g.prompt) for g in active) < budget
                )
            ):
                group = waiting.pop()
                in_flight += len(group.streams)
                active.append(group)
                roots.append(Branch(group, (), group.streams))
            branches = self._advance(branches, roots, sampling, reader, tails)
            ended = [
                group
                for group in active
                if sum(len(ended) for _, ended in group.done) == len(group.streams)
            ]
            for group in ended:
                active.remove(group)
                yield group

    def likely_answers(
        self, requests: Sequence[Request], sampling: Sampling, epsilon: float
    ) -> Iterator[LikelyAnswers]:
        """Yield the answers to each request, walking the tree of next tokens from its prompt.

        A beginning is followed while its probability is at least ``epsilon``, at most 1,024 of them
        at a time, until it ends or is as long as answers may become."""
        groups = [
            self._group(replace(request, sample_indices=()), sampling, 0) for request in requests
        ]
        reader = Reader(self.device)
        for group in sorted(groups, key=lambda group: group.prompt):
            yield self._walk(group, sampling, epsilon, reader)

    def next_token_logprobs(
        self, requests: Sequence[Request], words: Sequence[str], sampling: Sampling, seed: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return log-probabilities and tokens as `Engine` says."""

        def draw(asked: list[Request]) -> Iterator[tuple[str, tuple[int, ...]]]:
            return (
                (group.question_id, group.done[0][0]) for group in self._draw(asked, sampling, seed)
            )

        begun, tokens = begin_answers(self.tokenizer, self.model, requests, draw)
        single = single_tokens(self.tokenizer, words)
        places = list(begun)
        result = np.full((len(requests), len(words)), np.nan)
        with torch.inference_mode():
            prompts = [self._encoded(request) for request in begun.values()]
            for rows, ends, read in self._packs(prompts, Reader(self.device)):
                logits = read(self.network, logits_to_keep=ends).logits[0]
                logprobs = logits.double().log_softmax(-1)[:, list(single.values())]
                result[np.ix_([places[row] for row in rows], list(single))] = logprobs.cpu().numpy()
        return result, tokens

    def hidden_states(self, requests: Sequence[Request], layers: Layers = "mean") -> np.ndarray:
        """Return hidden states as `Engine` says.

        Only the last position of each prompt is ever kept, and the head over the vocabulary is left
        out."""
        decoder = self.network.get_decoder()
        config = self.network.config
        shape = (
            (config.num_hidden_layers + 1, config.hidden_size)
            if layers == "all"
            else (config.hidden_size,)
        )
        result = np.empty((len(requests), *shape), dtype=np.float32)
        states: list[Tensor] = []
        ends: Tensor

        def keep(_: Any, inputs: tuple[Tensor, ...]) -> None:
            states.append(inputs[0][0, ends].float())

        # What enters layer i is the embedding (i = 0) or what layer i - 1 put out.
        hooks = [layer.register_forward_pre_hook(keep) for layer in decoder.layers]
        try:
            with torch.inference_mode():
                prompts = [self._encoded(request) for request in requests]
                for rows, ends, read in self._packs(prompts, Reader(self.device)):
                    last = read(decoder).last_hidden_state[0, ends].float()
                    stack = torch.stack([*states, last], dim=1)
                    result[rows] = pooled(stack, layers).cpu().numpy()
                    states.clear()
        finally:
            for hook in hooks:
                hook.remove()
        return result

    def _packs(
        self, prompts: Sequence[list[int]], reader: Reader
    ) -> Iterator[tuple[list[int], Tensor, Callable[..., Any]]]:
        """Yield (indices of the prompts, places of their last tokens, what reads them) in packs
        that begin alike.
        """
        waiting = sorted(range(len(prompts)), key=lambda index: prompts[index], reverse=True)
        while waiting:
            rows = [waiting.pop()]
            known = reader.known(prompts[rows[0]])
            tokens = len(prompts[rows[0]])
            # The first of those that begin alike goes alone, so that the others need not read the
            # beginning.
            alone = (
                waiting
                and shared_prefix.common_length(prompts[rows[0]], prompts[waiting[-1]])
                >= known + SHARED_TOKENS
            )
            while waiting and not alone:
                shared = min(known, reader.known(prompts[waiting[-1]]))
                tokens += len(prompts[waiting[-1]])
                if tokens - shared * (len(rows) + 1) > PACK_TOKENS:
                    break
                known = shared
                rows.append(waiting.pop())
            pack = [prompts[row] for row in rows]
            ends = (
                torch.tensor(
                    list(accumulate(len(prompt) - known for prompt in pack)), device=self.device
                )
                - 1
            )
            yield rows, ends, partial(reader.read, pack, known)

    def _group(self, request: Request, sampling: Sampling, seed: int) -> Group:
        prompt = self._encoded(request)
        limit = answer_limit(prompt, request, sampling)
        name = request.question.id
        return Group(
            question_id=name,
            prompt=prompt,
            limit=limit,
            streams=[_stream(seed, name, index) for index in request.sample_indices],
        )

    def _token_bytes(self) -> int:
        """Size of the keys and values of one token in all layers."""
        config = self.network.config
        heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        head_dim = (
            getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        )
        return int(2 * config.num_hidden_layers * heads * head_dim * self.network.dtype.itemsize)

    @torch.inference_mode()
    def _advance(
        self,
        branches: list[Branch],
        roots: list[Branch],
        sampling: Sampling,
        reader: Reader,
        tails: Tails,
    ) -> list[Branch]:
        """Draw the next token of every sample in flight and return the branches that go on."""
        parents = [*branches, *roots]
        logits = [self._step(branches, tails)] if branches else []
        logits += [self._read([root.group for root in roots], reader)] if roots else []
        counts = torch.tensor([len(parent.streams) for parent in parents])
        rows = torch.arange(len(parents)).repeat_interleave(counts)
        uniforms = [numbers.random() for parent in parents for _, numbers in parent.streams]
        drawn = draw_tokens(
            torch.cat(logits) if len(logits) > 1 else logits[0],
            rows.to(self.device),
            torch.tensor(uniforms, dtype=torch.float64, device=self.device),
            sampling,
        )
        tokens = iter(drawn.tolist())
        children = []
        for parent in parents:
            by_token: dict[int, list[Stream]] = {}
            for stream in parent.streams:
                by_token.setdefault(next(tokens), []).append(stream)
            for token, streams in by_token.items():
                child = Branch(
                    group=parent.group,
                    tokens=(*parent.tokens, token),
                    streams=streams,
                    row=parent.row,
                )
                if token in self.ends or len(child.tokens) == child.group.limit:
                    child.group.done.append((child.tokens, child.streams))
                else:
                    children.append(child)
        tails.place(children)
        return children

    @torch.inference_mode()
    def _walk(
        self, group: Group, sampling: Sampling, epsilon: float, reader: Reader
    ) -> LikelyAnswers:
        """Follow the likely beginnings of an answer, all that are equally long at once."""
        tails = Tails(BEGINNINGS, group.limit)
        ended: list[tuple[str, float]] = []
        passes = 1
        parents = [Branch(group, (), [])]
        masses = torch.ones(1, dtype=torch.float64, device=self.device)
        logits = self._read([group], reader)
        while True:
            joint = masses[:, None] * token_probabilities(logits, sampling)
            likely = torch.nonzero(joint >= epsilon)
            likely = likely[joint[tuple(likely.T)].argsort(descending=True, stable=True)]
            branches: list[Branch] = []
            kept: list[float] = []
            for (row, token), mass in zip(
                likely.tolist(), joint[tuple(likely.T)].tolist(), strict=True
            ):
                child = Branch(
                    group=group,
                    tokens=(*parents[row].tokens, token),
                    streams=[],
                    row=parents[row].row,
                )
                if token in self.ends or len(child.tokens) == group.limit:
                    ended.append((self._said(group, child.tokens)[0], mass))
                elif len(kept) < BEGINNINGS:
                    branches.append(child)
                    kept.append(mass)
            if not branches:
                break
            tails.place(branches)
            masses = torch.tensor(kept, dtype=torch.float64, device=self.device)
            logits = self._step(branches, tails)
            passes = passes + len(branches)
            parents = branches
        responses, probabilities = zip(*ended, strict=True) if ended else ((), ())
        return LikelyAnswers(
            question_id=group.question_id,
            responses=responses,
            probabilities=probabilities,
            passes=passes,
        )

    def _encoded(self, request: Request) -> list[int]:
        return encode(self.tokenizer, self.model, request)

    def _read(self, groups: list[Group], reader: Reader) -> Tensor:
        """Read prompts, keep their keys and values, and return the logits of their first tokens,
        (n_groups, vocabulary).
        """
        logits: dict[int, Tensor] = {}
        for rows, ends, read in self._packs([group.prompt for group in groups], reader):
            prefixes = [groups[row].prefix for row in rows]
            result = read(self.network, prefixes, logits_to_keep=ends)
            logits.update(zip(rows, result.logits[0], strict=True))
        return torch.stack([logits[row] for row in range(len(groups))])

    def _step(self, branches: list[Branch], tails: Tails) -> Tensor:
        """Return the next-token logits of every branch, (n_branches, vocabulary)."""
        ids = torch.tensor([[branch.tokens[-1]] for branch in branches], device=self.device)
        positions = [[len(branch.group.prompt) + len(branch.tokens) - 1] for branch in branches]
        logits: Tensor = self.network(
            ids,
            position_ids=torch.tensor(positions, device=self.device),
            use_cache=False,
            attend=shared_prefix.SharedPrefixAttention(branches, tails, self.device),
        ).logits
        return logits[:, 0]

    def _said(self, group: Group, tokens: tuple[int, ...]) -> tuple[str, str | None, FinishReason]:
        """Return an answer's response, its reasoning, and how it finished."""
        ended = tokens[-1] in self.ends
        reasoning, response = decode(
            self.tokenizer, self.model, group.prompt, tokens[:-1] if ended else tokens
        )
        return response, reasoning, "stop" if ended else "length"


def _stream(seed: int, question_id: str, sample_index: int) -> Stream:
    """Return a sample's index with its own random numbers, the same whatever else is drawn."""
    name = hashlib.sha256(repr((seed, question_id, sample_index)).encode()).digest()
    return sample_index, np.random.Generator(
        np.random.Philox(key=int.from_bytes(name[:16], "little"))
    )


def _round_products(network: Any) -> None:
    """Round to bfloat16 what linear layers multiply, and the products, but nothing else.

    In float32 rounded numbers have the same products, sooner where the processor knows no
    bfloat16: the first layer is timed.
    """
    layers: list[Any] = [layer for layer in network.modules() if type(layer) is torch.nn.Linear]
    states = torch.ones(64, layers[0].in_features)

    def seconds(dtype: Any) -> float:
        product = partial(linear, states.to(dtype), layers[0].weight.to(dtype))
        return min(repeat(product, number=1, repeat=3))

    by = min((torch.bfloat16, torch.float32), key=seconds)
    for layer in layers:
        _round_layer(layer, by)


def _round_layer(layer: Any, by: Any) -> None:
    """Let a layer multiply rounded numbers in the type ``by``."""
    for name, values in list(layer.named_parameters()):  # a tied embedding keeps its own
        rounded = torch.nn.Parameter(values.bfloat16().to(by), requires_grad=False)
        layer.register_parameter(name, rounded)
    layer.register_forward_pre_hook(lambda _, inputs: (inputs[0].bfloat16().to(by),))
    layer.register_forward_hook(lambda _, __, product: product.bfloat16().float())
