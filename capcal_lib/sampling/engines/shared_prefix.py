"""Read prompts and continue them, computing once what they have in common.

A prompt is read from where it parts from the one before. The keys and values of a prompt are shared
by all samples of its question, and samples that have said the same so far are one row of the batch.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, groupby, pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from capcal_lib.errors import InputError

KeysValues = tuple[Tensor, Tensor]  # of one layer, each (kv_heads, tokens, head_dim)
Stream = tuple[int, np.random.Generator]  # a sample's index, and its own uniform numbers


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """How one layer attends."""

    module: Any
    scaling: float | None
    window: int | None  # tokens that are seen, the own one included; None: all
    sinks: Tensor | None  # (heads,), what the softmax counts beside the scores; None: nothing


@dataclass(slots=True, eq=False)
class Group:
    """Samples of one question that share the keys and values of its prompt."""

    question_id: str
    prompt: list[int]
    limit: int  # new tokens of a sample
    streams: list[Stream]
    prefix: list[KeysValues] = field(default_factory=list)  # of the prompt, a pair a layer
    # tokens, and whose they are
    done: list[tuple[tuple[int, ...], list[Stream]]] = field(default_factory=list)


@dataclass(slots=True)
class Branch:
    """Samples of one question that have said the same so far: one row of the batch."""

    group: Group
    tokens: tuple[int, ...]
    streams: list[Stream]
    row: int | None = None  # where its keys and values are; None before the first token


def common_length(prompt: list[int], other: list[int]) -> int:
    """Count the tokens at the beginning that two prompts share."""
    length = 0
    for token, its in zip(prompt, other, strict=False):
        if token != its:
            break
        length += 1
    return length


class Reader:
    """Reads packs of prompts, one behind the other in one row: nothing is padded."""

    def __init__(self, device: Any) -> None:
        self.device = device
        self.prompt: list[int] = []  # the last that was read
        self.prefix: list[KeysValues] = []

    def known(self, prompt: list[int]) -> int:
        """Count the first tokens of a prompt that need not be read; its last one always is."""
        return min(len(prompt) - 1, common_length(prompt, self.prompt))

    def read(
        self,
        prompts: list[list[int]],
        known: int,
        network: Any,
        prefixes: Sequence[list[KeysValues]] = (),
        **options: Any,
    ) -> Any:
        """Return what the network puts out for all but the first ``known`` tokens of each prompt.

        Each attends to itself and to what is known. ``prefixes``, an empty list for each prompt,
        take their keys and values; without them those of the last prompt alone are kept.
        """
        stops = list(accumulate((len(prompt) - known for prompt in prompts), initial=0))
        before = self.prefix
        prefixes = prefixes or ([],)

        def attend(layer: Layer, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
            results = []
            read: list[KeysValues] = []
            for start, stop in pairwise(stops):
                own_key = key[:, :, start:stop]
                own_value = value[:, :, start:stop]
                if known:
                    keys, values = before[layer.module.layer_idx]
                    own_key = torch.cat([keys[None, :, :known], own_key], dim=2)
                    own_value = torch.cat([values[None, :, :known], own_value], dim=2)
                results.append(_causal(layer, query[:, :, start:stop], own_key, own_value))
                read.append((own_key[0], own_value[0]))
            for prefix, (keys, values) in zip(prefixes, read[-len(prefixes) :], strict=True):
                prefix.append((keys.clone(), values.clone()))
            return torch.cat(results, dim=1)

        tokens = [token for prompt in prompts for token in prompt[known:]]
        places = [place for prompt in prompts for place in range(known, len(prompt))]
        ids = torch.tensor([tokens], device=self.device)
        positions = torch.tensor([places], device=self.device)
        result = network(ids, position_ids=positions, use_cache=False, attend=attend, **options)
        self.prompt = prompts[-1]
        self.prefix = prefixes[-1]
        return result


class Tails:
    """Keys and values of what the branches have said: a row a branch, rows 0 to n_branches - 1 in
    use.
    """

    def __init__(self, rows: int, length: int) -> None:
        self.shape = (rows, length)
        self.layers: dict[int, KeysValues] = {}  # each (rows, kv_heads, length, head_dim)

    def layer(self, index: int, key: Tensor, value: Tensor) -> KeysValues:
        """Return the keys and values of a layer, zeros at first: what lies behind a branch's end
        must not be NaN.
        """
        if index not in self.layers:
            self.layers[index] = (self._empty(key), self._empty(value))
        return self.layers[index]

    def _empty(self, like: Tensor) -> Tensor:
        rows, length = self.shape
        _, heads, _, width = like.shape
        return like.new_zeros(rows, heads, length, width)

    def place(self, branches: list[Branch]) -> None:
        """Give every branch a row of its own, copying what it has from its parent's row.

        The first child of a parent keeps its row; the others, and those that lie behind the end of
        a batch that has become smaller, go where a row is free. So no row that is read here is
        written."""
        kept: set[int] = set()
        movers = []
        for branch in branches:
            if branch.row is not None and branch.row < len(branches) and branch.row not in kept:
                kept.add(branch.row)
            else:
                movers.append(branch)
        free = (row for row in range(len(branches)) if row not in kept)
        sources = []
        targets = []
        length = 0
        for branch, target in zip(movers, free, strict=True):
            if branch.row is not None:
                sources.append(branch.row)
                targets.append(target)
                length = max(length, len(branch.tokens) - 1)
            branch.row = target
        if sources:
            for keys, values in self.layers.values():
                keys[targets, :, :length] = keys[sources, :, :length]
                values[targets, :, :length] = values[sources, :, :length]


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """The branches of one group, which lie side by side."""

    group: Group
    branches: slice

    def of_rows(self, each: int) -> slice:
        """Return the rows of these branches where each of them has so many."""
        return slice(self.branches.start * each, self.branches.stop * each)


def _segments(branches: list[Branch]) -> list[Segment]:
    segments = []
    start = 0
    for group, run in groupby(branches, key=lambda branch: branch.group):
        stop = start + len(list(run))
        segments.append(Segment(group, slice(start, stop)))
        start = stop
    return segments


class SharedPrefixAttention:
    """Attention of one new token a branch to its prompt, shared with its neighbours, and to its own
    tail.

    The branches of a group lie side by side, so their queries meet the prompt's keys in one matrix
    product. One softmax then covers prompt and tail."""

    def __init__(self, branches: list[Branch], tails: Tails, device: Any) -> None:
        self.tails = tails
        rows = [branch.row for branch in branches]
        self.rows = torch.tensor(rows, device=device)  # of branch i in the tails
        self.branches = self.rows.argsort()  # branch in row i of the tails
        self.ends = torch.tensor([len(branch.tokens) - 1 for branch in branches], device=device)
        self.tail = max(len(branch.tokens) for branch in branches)
        self.masks: dict[int | None, Tensor] = {}  # by the window
        self.segments = _segments(branches)
        self.prompt = max(len(segment.group.prompt) for segment in self.segments)
        self.scores: Tensor | None = None

    def __call__(self, how: Layer, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        layer = how.module.layer_idx
        n, heads, _, width = query.shape
        kv_heads = key.shape[1]
        tail = self.tail
        share = heads // kv_heads  # query heads that share a key head
        keys, values = self.tails.layer(layer, key, value)
        keys[self.rows, :, self.ends] = key[:, :, 0]
        values[self.rows, :, self.ends] = value[:, :, 0]
        keys = keys[:n, :, :tail].flatten(0, 1)
        values = values[:n, :, :tail].flatten(0, 1)

        scaling = width**-0.5 if how.scaling is None else how.scaling
        query = query[:, :, 0].mul(scaling).view(n, kv_heads, share, width)
        by_head = query.transpose(0, 1).reshape(kv_heads, n * share, width)
        if self.scores is None:
            # Prompt, tail and sink. Columns behind a short prompt's end keep their -inf.
            shape = kv_heads, n * share, self.prompt + tail + 1
            self.scores = query.new_full(shape, float("-inf"))
        for segment in self.segments:
            here = segment.of_rows(share)
            of_prompt = self.scores[:, here, : len(segment.group.prompt)]
            prompt_keys, _ = segment.group.prefix[layer]
            of_prompt[:] = by_head[:, here] @ prompt_keys.mT
            if how.window is not None:  # the branches of a group are equally long
                own_end = int(self.ends[segment.branches.start]) + 1
                passed = len(segment.group.prompt) + own_end - how.window
                of_prompt[:, :, : max(passed, 0)] = float("-inf")
        own = torch.bmm(query[self.branches].flatten(0, 1), keys.mT).view(n, kv_heads, share, tail)
        own = own[self.rows] + self._mask(how.window)
        own = own.transpose(0, 1).reshape(kv_heads, n * share, tail)
        self.scores[:, :, self.prompt : -1] = own
        if how.sinks is not None:
            self.scores[:, :, -1] = how.sinks.view(kv_heads, share).repeat(1, n)

        weights = self.scores.softmax(-1, dtype=torch.float32).to(query.dtype)
        result = value.new_empty(kv_heads, n * share, value.shape[-1])
        for segment in self.segments:
            here = segment.of_rows(share)
            _, prompt_values = segment.group.prefix[layer]
            result[:, here] = weights[:, here, : len(segment.group.prompt)] @ prompt_values
        result = result.view(kv_heads, n, share, -1).transpose(0, 1)
        own = weights[:, :, self.prompt : -1].view(kv_heads, n, share, tail)
        own = own.transpose(0, 1)[self.branches]
        own = torch.bmm(own.flatten(0, 1), values).view(n, kv_heads, share, -1)[self.rows]
        return (result + own).reshape(n, 1, heads, -1)

    def _mask(self, window: int | None) -> Tensor:
        """Return -inf for what lies behind a branch's end in its tail or before the window."""
        if window not in self.masks:
            places = torch.arange(self.tail, device=self.ends.device)
            hidden = places > self.ends[:, None]
            if window is not None:
                hidden |= places <= self.ends[:, None] - window
            zeros = torch.zeros(hidden.shape, device=hidden.device)
            self.masks[window] = zeros.masked_fill_(hidden, float("-inf"))[:, None, None]
        return self.masks[window]


def attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,  # noqa: ARG001 -- always None, since nothing is padded
    scaling: float | None = None,
    sliding_window: int | None = None,
    s_aux: Tensor | None = None,
    *,
    attend: Callable[[Layer, Tensor, Tensor, Tensor], Tensor],
    **others: Any,
) -> tuple[Tensor, None]:
    """Attend as the caller of the network asks with ``attend``; transformers calls this in every
    layer.
    """
    extras = [name for name in ("softcap", "position_bias") if others.get(name) is not None]
    if extras:
        raise InputError(
            f"the transformers engine cannot do this model's attention ({', '.join(extras)}); use "
            "vllm"
        )
    layer = Layer(
        module=module,
        scaling=scaling,
        window=sliding_window,
        sinks=s_aux,
    )
    return attend(layer, query, key, value), None


def _causal(layer: Layer, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Attend causally; the queries are the last of the keys' positions."""
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    new = query.shape[2]
    total = key.shape[2]
    places = torch.arange(total, device=query.device)
    hidden = places > places[-new:, None]
    if layer.window is not None:
        hidden |= places <= places[-new:, None] - layer.window
    mask = None
    if layer.sinks is not None:
        # A sink is the score of one more key, which has no value.
        seen = query.new_zeros(new, total).masked_fill_(hidden, float("-inf"))
        sinks = layer.sinks[:, None, None].expand(-1, new, 1)
        mask = torch.cat([seen.expand(len(sinks), -1, -1), sinks], dim=-1)[None]
        key, value = (pad(each, (0, 0, 0, 1)) for each in (key, value))
    elif total > min(new, layer.window or total):
        mask = ~hidden[None, None]
    return sdpa_attention_forward(
        layer.module, query, key, value, mask, scaling=layer.scaling, is_causal=mask is None
    )[0]
