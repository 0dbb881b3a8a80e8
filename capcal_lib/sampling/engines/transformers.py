"""Draw from a model on this machine with transformers: many samples of a question at once.

Four things make it fast. A prompt is read from where it parts from the one before, so what all questions begin with
is read once. The keys and values of a prompt are shared by all samples of its question. Samples that have said the
same so far are one row of the batch, so each distinct beginning is computed once. Finished samples leave the batch at
once and the next question's samples join.
"""

import hashlib
import itertools
import platform
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from capcal_lib.errors import InputError
from capcal_lib.manifests import Model, Sampling
from capcal_lib.sampling.engines import FinishReason, Layers, LikelyAnswers, Request, Sample
from capcal_lib.sampling.engines.chat import answer_limit, decode, encode
from capcal_lib.sampling.engines.token_sampling import draw_tokens, token_probabilities
from capcal_lib.sampling.weights import ensure_weights

if TYPE_CHECKING:
    from torch import Tensor

ATTENTION = "capcal_shared_prefix"  # our name among the attention functions of transformers
SAMPLES_IN_FLIGHT = 256
BEGINNINGS = 1024  # of an answer, followed at a time where all likely ones are wanted
PACKED_ROWS = 64  # the batch that packed weights are laid out for
PACK_TOKENS = 1024  # that are read in one pass for hidden states or log-probabilities
SHARED_TOKENS = 32  # a beginning that is worth reading before those that share it
CACHE_BYTES = 2 << 30  # for the keys and values of the prompts in flight, and as much for those of the answers


class TransformersEngine:
    """Sample with transformers: float32 on the CPU, the checkpoint's type on a GPU, or the manifest's ``dtype``.

    For decoder-only models whose attention goes through transformers' attention interface (Llama, Qwen2, Qwen3,
    OLMo 2 and many more). Attention sinks and soft caps, linear attention, and a sliding window shorter than prompt
    and answer are refused with an `InputError`.

    A sample depends on the model, the messages, the settings and (seed, question id, sample index) only, never on
    what else is in the batch, up to rounding: sums of another batch size differ by about 1e-6, and a draw that falls
    inside such a difference changes. In bfloat16 the difference is about 1e-2, and long answers part ways.

    Parameters
    ----------
    model
        The manifest of the model.
    folder
        Its weights; None gets them through `ensure_weights`.
    """

    family = "transformers"

    def __init__(self, model: Model, folder: Path | None = None) -> None:
        import torch

        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="IProgress not found")  # tqdm wants widgets in a notebook
            from transformers import AutoModelForCausalLM, AutoTokenizer
            from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
            from transformers.utils import logging

        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        folder = folder or ensure_weights(model)
        self.model = model
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.tokenizer: Any = AutoTokenizer.from_pretrained(folder)
        ALL_ATTENTION_FUNCTIONS.register(ATTENTION, _attention)
        network: Any = AutoModelForCausalLM.from_pretrained(
            folder,
            dtype=(model.dtype or "auto") if self.device.type == "cuda" else torch.float32,
            attn_implementation=ATTENTION,
        )
        self.network = network.to(self.device).eval()
        if self.device.type == "cpu":
            _pack(self.network, torch.bfloat16 if model.dtype == "bfloat16" else torch.float32)
        config = self.network.config
        layer_types = set(getattr(config, "layer_types", None) or ["full_attention"])
        if layer_types - {"full_attention", "sliding_attention"} or not self.network._supports_attention_backend:
            raise InputError(
                f"the transformers engine cannot do the attention of a {config.model_type!r} model; use vllm"
            )
        self.window = config.sliding_window if "sliding_attention" in layer_types else None
        ends = self.network.generation_config.eos_token_id
        self.ends = {*(ends if isinstance(ends, list) else [ends]), self.tokenizer.eos_token_id} - {None}

    def sample(self, requests: Sequence[Request], sampling: Sampling, seed: int) -> Iterator[list[Sample]]:
        """Draw every wanted sample, yielding those of a question together.

        ``completion_tokens`` counts every generated token, the end-of-turn token included.

        Raises
        ------
        InputError
            For a prompt that leaves no room in ``context_tokens``.
        """
        groups = [self._group(request, sampling, seed) for request in requests if request.sample_indices]
        if not groups:
            return
        longest = max(group.limit for group in groups)
        budget = CACHE_BYTES // self._token_bytes()
        cap = max(1, min(SAMPLES_IN_FLIGHT, budget // longest))
        waiting = sorted((part for group in groups for part in group.split(cap)), key=lambda group: group.prompt)
        reader = _Reader(self.device)
        tails = _Tails(min(cap, sum(len(group.streams) for group in waiting)), longest)
        active: list[_Group] = []
        branches: list[_Branch] = []
        while waiting or active:
            roots = []
            in_flight = sum(len(branch.streams) for branch in branches)
            while waiting and (
                not active
                or (in_flight + len(waiting[-1].streams) <= cap and sum(len(g.prompt) for g in active) < budget)
            ):
                group = waiting.pop()
                in_flight += len(group.streams)
                active.append(group)
                roots.append(_Branch(group, (), group.streams))
            branches = self._advance(branches, roots, sampling, reader, tails)
            for group in [group for group in active if len(group.done) == len(group.streams)]:
                active.remove(group)
                yield group.done

    def likely_answers(
        self, requests: Sequence[Request], sampling: Sampling, epsilon: float
    ) -> Iterator[LikelyAnswers]:
        """Yield the answers to each request, walking the tree of next tokens from its prompt.

        A beginning is followed while its probability is at least ``epsilon``, at most 1,024 of them at a time, until
        it ends or is as long as answers may become.
        """
        requests = [replace(request, sample_indices=()) for request in requests]
        groups = sorted((self._group(request, sampling, 0) for request in requests), key=lambda group: group.prompt)
        reader = _Reader(self.device)
        for group in groups:
            yield self._walk(group, sampling, epsilon, reader)

    def next_token_logprobs(self, requests: Sequence[Request], words: Sequence[str]) -> np.ndarray:
        """Return the log-probability, at temperature 1, that the first answer token is exactly each word.

        Shape (n_requests, n_words), in [-inf, 0]; NaN where a word is not a single token.
        """
        import torch

        tokens = [self.tokenizer.encode(word, add_special_tokens=False) for word in words]
        single = [token[0] if len(token) == 1 else 0 for token in tokens]
        result = np.full((len(requests), len(words)), np.nan)
        with torch.inference_mode():
            for rows, pack in self._packs(requests):
                logits = pack.read(self.network, logits_to_keep=pack.ends).logits[0]
                result[rows] = logits.double().log_softmax(-1)[:, single].cpu().numpy()
        result[:, [len(token) != 1 for token in tokens]] = np.nan
        return result

    def hidden_states(self, requests: Sequence[Request], layers: Layers = "mean") -> np.ndarray:
        """Return the last prompt token's hidden states, as `Engine` says.

        The last layer's state is taken after the final norm, as in transformers' ``output_hidden_states``. Only the
        last position of each prompt is ever kept, and the head over the vocabulary is left out.
        """
        import torch

        decoder, config = self.network.get_decoder(), self.network.config
        shape = (config.num_hidden_layers + 1, config.hidden_size) if layers == "all" else (config.hidden_size,)
        result = np.empty((len(requests), *shape), dtype=np.float32)
        states: list[Tensor] = []
        ends: Tensor

        def keep(_: Any, inputs: tuple["Tensor", ...]) -> None:
            states.append(inputs[0][0, ends].float())

        # What enters layer i is the embedding (i = 0) or what layer i - 1 put out.
        hooks = [layer.register_forward_pre_hook(keep) for layer in decoder.layers]
        try:
            with torch.inference_mode():
                for rows, pack in self._packs(requests):
                    ends = pack.ends
                    last = pack.read(decoder).last_hidden_state[0, ends].float()
                    stack = torch.stack([*states, last], dim=1)
                    pooled = stack if layers == "all" else stack.mean(1) if layers == "mean" else stack.amax(1)
                    result[rows] = pooled.cpu().numpy()
                    states.clear()
        finally:
            for hook in hooks:
                hook.remove()
        return result

    def _prompt(self, request: Request) -> list[int]:
        """Return the token ids of the messages as the model reads them, ready for its answer."""
        return encode(self.tokenizer, self.model, request)

    def _packs(self, requests: Sequence[Request]) -> Iterator[tuple[list[int], "_Pack"]]:
        """Yield (indices of the requests, their prompts as one pack), prompts that begin alike close together."""
        prompts = [self._prompt(request) for request in requests]
        for request, prompt in zip(requests, prompts, strict=True):
            self._check_window(len(prompt), request)
        reader = _Reader(self.device)
        waiting = sorted(range(len(prompts)), key=lambda index: prompts[index], reverse=True)
        while waiting:
            rows = [waiting.pop()]
            known = reader.known(prompts[rows[0]])
            tokens = len(prompts[rows[0]])
            # The first of those that begin alike goes alone, so that the others need not read the beginning.
            alone = waiting and _common(prompts[rows[0]], prompts[waiting[-1]]) >= known + SHARED_TOKENS
            while waiting and not alone:
                shared = min(known, reader.known(prompts[waiting[-1]]))
                tokens += len(prompts[waiting[-1]])
                if tokens - shared * (len(rows) + 1) > PACK_TOKENS:
                    break
                known = shared
                rows.append(waiting.pop())
            yield rows, _Pack(reader, [prompts[row] for row in rows], known)

    def _group(self, request: Request, sampling: Sampling, seed: int) -> "_Group":
        prompt = self._prompt(request)
        limit = answer_limit(prompt, request, sampling)
        self._check_window(len(prompt) + limit, request)
        streams = [_Stream(index, _uniforms(seed, request.question.id, index)) for index in request.sample_indices]
        return _Group(request.question.id, prompt, limit, streams)

    def _check_window(self, tokens: int, request: Request) -> None:
        if self.window is not None and tokens > self.window:
            raise InputError(
                f"question {request.question.id!r}: {tokens} tokens are more than the sliding window of {self.window} "
                f"of {self.model.name!r}, which the transformers engine cannot do; use vllm or lower max_tokens"
            )

    def _token_bytes(self) -> int:
        """Size of the keys and values of one token in all layers."""
        config = self.network.config
        heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        return int(2 * config.num_hidden_layers * heads * head_dim * self.network.dtype.itemsize)

    def _advance(
        self,
        branches: list["_Branch"],
        roots: list["_Branch"],
        sampling: Sampling,
        reader: "_Reader",
        tails: "_Tails",
    ) -> list["_Branch"]:
        """Draw the next token of every sample in flight and return the branches that go on."""
        import torch

        parents = [*branches, *roots]
        with torch.inference_mode():
            logits = [self._step(branches, tails)] if branches else []
            logits += [self._read(root.group, reader) for root in roots]
            counts = torch.tensor([len(parent.streams) for parent in parents])
            rows = torch.arange(len(parents)).repeat_interleave(counts)
            uniforms = [stream.uniforms.random() for parent in parents for stream in parent.streams]
            tokens = draw_tokens(
                torch.cat(logits) if len(logits) > 1 else logits[0],
                rows.to(self.device),
                torch.tensor(uniforms, dtype=torch.float64, device=self.device),
                sampling,
            )
            drawn = iter(tokens.tolist())
            children = []
            for parent in parents:
                for child in parent.children([next(drawn) for _ in parent.streams]):
                    if child.tokens[-1] in self.ends or len(child.tokens) == child.group.limit:
                        child.group.done += self._finish(child)
                    else:
                        children.append(child)
            tails.place(children)
        return children

    def _walk(self, group: "_Group", sampling: Sampling, epsilon: float, reader: "_Reader") -> LikelyAnswers:
        """Follow the likely beginnings of an answer, all that are equally long at once."""
        import torch

        tails = _Tails(BEGINNINGS, group.limit)
        ended: list[tuple[str, float]] = []
        passes = 1
        with torch.inference_mode():
            branches = [_Branch(group, (), [])]
            masses, logits = torch.ones(1, dtype=torch.float64, device=self.device), self._read(group, reader)
            while True:
                joint = masses[:, None] * token_probabilities(logits, sampling)
                likely = torch.nonzero(joint >= epsilon)
                likely = likely[joint[tuple(likely.T)].argsort(descending=True, stable=True)]
                parents, branches = branches, []
                kept: list[float] = []
                for (row, token), mass in zip(likely.tolist(), joint[tuple(likely.T)].tolist(), strict=True):
                    child = _Branch(group, (*parents[row].tokens, token), [], parents[row].row)
                    if token in self.ends or len(child.tokens) == group.limit:
                        ended.append((self._said(child)[2], mass))
                    elif len(kept) < BEGINNINGS:
                        branches.append(child)
                        kept.append(mass)
                if not branches:
                    break
                tails.place(branches)
                masses, logits = (
                    torch.tensor(kept, dtype=torch.float64, device=self.device),
                    self._step(branches, tails),
                )
                passes += len(branches)
        responses, probabilities = zip(*ended, strict=True) if ended else ((), ())
        return LikelyAnswers(group.question_id, responses, probabilities, passes)

    def _read(self, group: "_Group", reader: "_Reader") -> "Tensor":
        """Read a prompt, keep its keys and values, and return the logits of the first token, (1, vocabulary)."""
        logits: Tensor = reader.read(self.network, group.prompt, logits_to_keep=1).logits
        group.prefix = reader.prefix
        return logits[0]

    def _step(self, branches: list["_Branch"], tails: "_Tails") -> "Tensor":
        """Return the next-token logits of every branch, (n_branches, vocabulary)."""
        import torch

        ids = torch.tensor([[branch.tokens[-1]] for branch in branches], device=self.device)
        positions = [[len(branch.group.prompt) + len(branch.tokens) - 1] for branch in branches]
        logits: Tensor = self.network(
            ids,
            position_ids=torch.tensor(positions, device=self.device),
            use_cache=False,
            attend=_SharedPrefixAttention(branches, tails, self.device),
        ).logits
        return logits[:, 0]

    def _said(self, branch: "_Branch") -> tuple[FinishReason, str | None, str]:
        """Return how an answer finished, its reasoning and its response."""
        finish: FinishReason = "stop" if branch.tokens[-1] in self.ends else "length"
        said = branch.tokens[:-1] if finish == "stop" else branch.tokens
        return finish, *decode(self.tokenizer, branch.group.prompt, said)

    def _finish(self, branch: "_Branch") -> list[Sample]:
        finish, reasoning, response = self._said(branch)
        group = branch.group
        return [
            Sample(
                question_id=group.question_id,
                sample_index=stream.index,
                response=response,
                reasoning=reasoning,
                finish_reason=finish,
                prompt_tokens=len(group.prompt),
                completion_tokens=len(branch.tokens),
            )
            for stream in branch.streams
        ]


@dataclass(slots=True)
class _Stream:
    """One sample in flight, with its own uniform numbers."""

    index: int
    uniforms: np.random.Generator


@dataclass(slots=True, eq=False)
class _Group:
    """Samples of one question that share the keys and values of its prompt."""

    question_id: str
    prompt: list[int]
    limit: int  # new tokens of a sample
    streams: list[_Stream]
    prefix: list[tuple["Tensor", "Tensor"]] = field(default_factory=list)  # keys and values of the prompt, as read
    done: list[Sample] = field(default_factory=list)

    def split(self, size: int) -> list["_Group"]:
        starts = range(0, len(self.streams), size)
        return [_Group(self.question_id, self.prompt, self.limit, self.streams[i : i + size]) for i in starts]


@dataclass(slots=True)
class _Branch:
    """Samples of one question that have said the same so far: one row of the batch."""

    group: _Group
    tokens: tuple[int, ...]
    streams: list[_Stream]
    row: int | None = None  # where its keys and values are; None before the first token

    def children(self, drawn: list[int]) -> list["_Branch"]:
        """Part the samples by the token each has drawn. Every child starts with the parent's row."""
        by_token: dict[int, list[_Stream]] = {}
        for token, stream in zip(drawn, self.streams, strict=True):
            by_token.setdefault(token, []).append(stream)
        return [_Branch(self.group, (*self.tokens, token), streams, self.row) for token, streams in by_token.items()]


class _Reader:
    """Reads prompts one after the other, each from where it parts from the one before."""

    def __init__(self, device: Any) -> None:
        self.device = device
        self.prompt: list[int] = []
        self.prefix: list[tuple[Tensor, Tensor]] = []  # keys and values (kv_heads, prompt, head_dim), a pair a layer

    def known(self, prompt: list[int]) -> int:
        """Count the tokens at a prompt's beginning that need not be read; its last one always is."""
        return min(len(prompt) - 1, _common(prompt, self.prompt))

    def read(self, network: Any, prompt: list[int], **options: Any) -> Any:
        """Return what the network puts out for the part that is new, at least the last token."""
        import torch

        known = self.known(prompt)
        before, prefix = self.prefix, []

        def attend(module: Any, query: "Tensor", key: "Tensor", value: "Tensor", scaling: float | None) -> "Tensor":
            if known:
                keys, values = before[module.layer_idx]
                key = torch.cat([keys[None, :, :known], key], dim=2)
                value = torch.cat([values[None, :, :known], value], dim=2)
            prefix.append((key[0], value[0]))
            return _causal(module, query, key, value, scaling)

        ids = torch.tensor([prompt[known:]], device=self.device)
        positions = torch.arange(known, len(prompt), device=self.device)[None]
        result = network(ids, position_ids=positions, use_cache=False, attend=attend, **options)
        self.prompt, self.prefix = prompt, prefix
        return result


class _Pack:
    """Prompts that are read in one pass, one behind the other in one row: nothing is padded.

    ``known`` tokens of each are what their reader has read before; ``ends`` are the places of their last tokens.
    """

    def __init__(self, reader: _Reader, prompts: list[list[int]], known: int) -> None:
        import torch

        self.reader, self.prompts, self.known = reader, prompts, known
        self.stops = list(itertools.accumulate(len(prompt) - known for prompt in prompts))
        self.ends = torch.tensor(self.stops, device=reader.device) - 1

    def read(self, network: Any, **options: Any) -> Any:
        """Return what the network puts out for the new parts, each attending to itself and to what is known."""
        import torch

        known, before, prefix = self.known, self.reader.prefix, []

        def attend(module: Any, query: "Tensor", key: "Tensor", value: "Tensor", scaling: float | None) -> "Tensor":
            results = []
            for start, stop in zip([0, *self.stops], self.stops, strict=False):
                own_key, own_value = key[:, :, start:stop], value[:, :, start:stop]
                if known:
                    keys, values = before[module.layer_idx]
                    own_key = torch.cat([keys[None, :, :known], own_key], dim=2)
                    own_value = torch.cat([values[None, :, :known], own_value], dim=2)
                results.append(_causal(module, query[:, :, start:stop], own_key, own_value, scaling))
            prefix.append((own_key[0].clone(), own_value[0].clone()))  # of the last prompt alone
            return torch.cat(results, dim=1)

        ids = [token for prompt in self.prompts for token in prompt[known:]]
        places = [place for prompt in self.prompts for place in range(known, len(prompt))]
        device = self.reader.device
        inputs = torch.tensor([ids], device=device)
        positions = torch.tensor([places], device=device)
        result = network(inputs, position_ids=positions, use_cache=False, attend=attend, **options)
        self.reader.prompt, self.reader.prefix = self.prompts[-1], prefix
        return result


def _common(one: list[int], other: list[int]) -> int:
    """Count the tokens at the beginning that two prompts share."""
    return next(
        (place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )


class _Tails:
    """Keys and values of what the branches have said: a row a branch, rows 0 to n_branches - 1 in use."""

    def __init__(self, rows: int, length: int) -> None:
        self.shape = (rows, length)
        self.layers: dict[int, tuple[Tensor, Tensor]] = {}

    def layer(self, index: int, key: "Tensor", value: "Tensor") -> tuple["Tensor", "Tensor"]:
        """Return the keys and values of a layer, each (rows, kv_heads, length, head_dim)."""
        if index not in self.layers:
            rows, length = self.shape
            # Zeros, because what lies behind a branch's end meets a weight of zero and must not be NaN.
            self.layers[index] = (
                key.new_zeros(rows, key.shape[1], length, key.shape[3]),
                value.new_zeros(rows, value.shape[1], length, value.shape[3]),
            )
        return self.layers[index]

    def place(self, branches: list[_Branch]) -> None:
        """Give every branch a row of its own, copying what it has from its parent's row.

        The first child of a parent keeps its row; the others, and those that lie behind the end of a batch that
        has become smaller, go where a row is free. So no row that is read here is written.
        """
        kept: set[int] = set()
        movers = []
        for branch in branches:
            if branch.row is not None and branch.row < len(branches) and branch.row not in kept:
                kept.add(branch.row)
            else:
                movers.append(branch)
        free = (row for row in range(len(branches)) if row not in kept)
        sources, targets, length = [], [], 0
        for branch in movers:
            target = next(free)
            if branch.row is not None:
                sources.append(branch.row)
                targets.append(target)
                length = max(length, len(branch.tokens) - 1)
            branch.row = target
        if sources:
            for keys, values in self.layers.values():
                keys[targets, :, :length] = keys[sources, :, :length]
                values[targets, :, :length] = values[sources, :, :length]


class _SharedPrefixAttention:
    """Attention of one new token a branch to its prompt, shared with its neighbours, and to its own tail.

    The branches of a group lie side by side, so their queries meet the prompt's keys in one matrix product.
    One softmax then covers prompt and tail.
    """

    def __init__(self, branches: list[_Branch], tails: _Tails, device: Any) -> None:
        import torch

        self.tails = tails
        self.rows = torch.tensor([branch.row for branch in branches], device=device)  # of branch i in the tails
        self.branches = self.rows.argsort()  # branch in row i of the tails
        self.ends = torch.tensor([len(branch.tokens) - 1 for branch in branches], device=device)
        self.tail = max(len(branch.tokens) for branch in branches)
        behind = torch.arange(self.tail, device=device) > self.ends[:, None]
        self.mask = torch.zeros(behind.shape, device=device).masked_fill_(behind, float("-inf"))[:, None, None]
        self.segments: list[tuple[_Group, int, int]] = []
        for index, branch in enumerate(branches):
            if self.segments and self.segments[-1][0] is branch.group:
                self.segments[-1] = (branch.group, self.segments[-1][1], index + 1)
            else:
                self.segments.append((branch.group, index, index + 1))
        self.prompt = max(len(group.prompt) for group, _, _ in self.segments)
        self.scores: Tensor | None = None

    def __call__(self, module: Any, query: "Tensor", key: "Tensor", value: "Tensor", scaling: float | None) -> "Tensor":
        import torch

        layer = module.layer_idx
        n, heads, _, width = query.shape
        kv_heads, tail = key.shape[1], self.tail
        share = heads // kv_heads  # query heads that share a key head
        keys, values = self.tails.layer(layer, key, value)
        keys[self.rows, :, self.ends] = key[:, :, 0]
        values[self.rows, :, self.ends] = value[:, :, 0]
        keys, values = keys[:n, :, :tail].flatten(0, 1), values[:n, :, :tail].flatten(0, 1)

        query = query[:, :, 0].mul(width**-0.5 if scaling is None else scaling).view(n, kv_heads, share, width)
        by_head = query.transpose(0, 1).reshape(kv_heads, n * share, width)
        if self.scores is None:  # columns behind a short prompt's end keep their -inf through all layers
            self.scores = query.new_full((kv_heads, n * share, self.prompt + tail), float("-inf"))
        for group, start, stop in self.segments:
            here = slice(start * share, stop * share)
            self.scores[:, here, : len(group.prompt)] = by_head[:, here] @ group.prefix[layer][0].mT
        own = torch.bmm(query[self.branches].flatten(0, 1), keys.mT).view(n, kv_heads, share, tail)
        own = own[self.rows] + self.mask
        self.scores[:, :, self.prompt :] = own.transpose(0, 1).reshape(kv_heads, n * share, tail)

        weights = self.scores.softmax(-1, dtype=torch.float32).to(query.dtype)
        result = value.new_empty(kv_heads, n * share, value.shape[-1])
        for group, start, stop in self.segments:
            here = slice(start * share, stop * share)
            result[:, here] = weights[:, here, : len(group.prompt)] @ group.prefix[layer][1]
        own = weights[:, :, self.prompt :].view(kv_heads, n, share, tail).transpose(0, 1)[self.branches]
        own = torch.bmm(own.flatten(0, 1), values).view(n, kv_heads, share, -1)[self.rows]
        return (result.view(kv_heads, n, share, -1).transpose(0, 1) + own).reshape(n, 1, heads, -1)


def _attention(
    module: Any,
    query: "Tensor",
    key: "Tensor",
    value: "Tensor",
    attention_mask: "Tensor | None",  # noqa: ARG001 -- always None, since nothing is padded
    scaling: float | None = None,
    *,
    attend: Callable[..., "Tensor"],
    **others: Any,
) -> tuple["Tensor", None]:
    """Attend as the caller of the network asks with ``attend``."""
    extras = [name for name in ("s_aux", "softcap", "position_bias") if others.get(name) is not None]
    if extras:
        raise InputError(f"the transformers engine cannot do this model's attention ({', '.join(extras)}); use vllm")
    return attend(module, query, key, value, scaling), None


def _pack(network: Any, dtype: Any) -> None:
    """Lay the weights of linear layers out as oneDNN multiplies by them.

    In float32 the same sums, 1.1 to 2.5 times as fast (most with few rows, and over the vocabulary); other processors
    than x86 keep what they have. In bfloat16 weights, what they multiply and the products are rounded, and all else
    stays float32; twice as fast again where the processor multiplies bfloat16 itself, slower where it does not.
    """
    import torch

    can_pack = platform.machine() in ("x86_64", "AMD64") and torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    if not can_pack and dtype == torch.float32:
        return
    for layer in network.modules():
        if type(layer) is torch.nn.Linear:
            weight, bias = layer.weight.detach().to(dtype), None if layer.bias is None else layer.bias.to(dtype)
            if can_pack:
                weight = torch.ops.mkldnn._reorder_linear_weight(weight, PACKED_ROWS)
            layer.forward = partial(_packed_linear if can_pack else _rounded_linear, weight, bias)  # type: ignore[method-assign]
            layer.register_parameter("weight", None)  # once is enough; a tied embedding keeps its own


def _packed_linear(weight: "Tensor", bias: "Tensor | None", states: "Tensor") -> "Tensor":
    import torch

    result: Tensor = torch.ops.mkldnn._linear_pointwise(states.to(weight.dtype), weight, bias, "none", [], "")
    return result.float()


def _rounded_linear(weight: "Tensor", bias: "Tensor | None", states: "Tensor") -> "Tensor":
    import torch

    return torch.nn.functional.linear(states.to(weight.dtype), weight, bias).float()


def _causal(module: Any, query: "Tensor", key: "Tensor", value: "Tensor", scaling: float | None) -> "Tensor":
    """Attend causally; the queries are the last of the keys' positions."""
    import torch
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    new, total = query.shape[2], key.shape[2]
    mask = None
    if total > new:
        mask = torch.ones(new, total, dtype=torch.bool, device=query.device).tril(total - new)[None, None]
    return sdpa_attention_forward(module, query, key, value, mask, scaling=scaling, is_causal=mask is None)[0]


def _uniforms(seed: int, question_id: str, sample_index: int) -> np.random.Generator:
    """Return a sample's own stream of random numbers, the same whatever else is drawn."""
    name = hashlib.sha256(repr((seed, question_id, sample_index)).encode()).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(name[:16], "little")))
