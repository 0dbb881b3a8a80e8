"""Continue prompts, computing once what their samples have in common.

The keys and values of a prompt are shared by all samples of its question, and samples that have
said the same so far are one row of the batch.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np
import torch
from torch import Tensor

KeysValues = tuple[Tensor, Tensor]  # of one layer, each (kv_heads, tokens, head_dim)
Stream = tuple[int, np.random.Generator]  # a sample's index, and its own uniform numbers


@dataclass(slots=True, eq=False)
class Group:
    """Samples of one question that share the keys and values of its prompt."""

    question_id: str
    prompt: list[int]
    limit: int  # new tokens of a sample
    prefix: list[KeysValues] = field(default_factory=list)  # of the prompt, a pair a layer


@dataclass(slots=True)
class Branch:
    """Samples of one question that have said the same so far: one row of the batch."""

    group: Group
    tokens: tuple[int, ...]
    streams: list[Stream]
    row: int = 0  # of the batch before, where the keys and values of its tokens are


class Tails:
    """Keys and values of what the branches have said: a row a branch, in their order."""

    def __init__(self, rows: int, length: int) -> None:
        self.shape = (rows, length)
        self.layers: dict[int, KeysValues] = {}  # each (rows, kv_heads, length, head_dim)

    def layer(self, index: int, *new: Tensor) -> KeysValues:
        """Return the keys and values of a layer, zeros at first: what lies behind a branch's end
        must not be NaN.
        """
        if index not in self.layers:
            rows, length = self.shape
            keys, values = (one.new_zeros(rows, one.shape[1], length, one.shape[-1]) for one in new)
            self.layers[index] = keys, values
        return self.layers[index]

    @torch.inference_mode()
    def place(self, branches: list[Branch]) -> None:
        """Give every branch the row of its place, copying what it has from its parent's row."""
        parents = [branch.row for branch in branches]
        for place, branch in enumerate(branches):
            branch.row = place
        if parents != list(range(len(parents))):
            length = max(len(branch.tokens) for branch in branches) - 1
            for each in (each for pair in self.layers.values() for each in pair):
                each[: len(parents), :, :length] = each[parents, :, :length]


class SharedPrefixAttention:
    """Attention of one new token a branch to its prompt, shared with its neighbours, and to its own
    tail.

    The branches of a group lie side by side, so their queries meet the prompt's keys in one matrix
    product. One softmax then covers prompt and tail."""

    def __init__(self, branches: list[Branch], tails: Tails, device: Any) -> None:
        self.tails = tails
        self.rows = torch.arange(len(branches), device=device)
        self.ends = torch.tensor([len(branch.tokens) - 1 for branch in branches], device=device)
        self.tail = max(len(branch.tokens) for branch in branches)
        behind = torch.arange(self.tail, device=device) > self.ends[:, None]
        self.mask = torch.zeros(behind.shape, device=device).masked_fill_(behind, -torch.inf)
        self.segments: list[tuple[Group, int, int]] = []  # whose branches begin and end where
        stop = 0
        for group, run in groupby(branches, key=lambda branch: branch.group):
            start, stop = stop, stop + len(list(run))
            self.segments.append((group, start, stop))
        self.prompt = max(len(group.prompt) for group, _, _ in self.segments)
        self.scores: Tensor | None = None

    def __call__(
        self, layer: int, scaling: float | None, query: Tensor, key: Tensor, value: Tensor
    ) -> Tensor:
        n, heads, _, width = query.shape
        kv_heads = key.shape[1]
        tail = self.tail
        share = heads // kv_heads  # query heads that share a key head
        keys, values = self.tails.layer(layer, key, value)
        keys[self.rows, :, self.ends] = key[:, :, 0]
        values[self.rows, :, self.ends] = value[:, :, 0]
        keys = keys[:n, :, :tail].flatten(0, 1)
        values = values[:n, :, :tail].flatten(0, 1)

        scaling = width**-0.5 if scaling is None else scaling
        query = query[:, :, 0].mul(scaling).view(n, kv_heads, share, width)
        by_head = query.transpose(0, 1).reshape(kv_heads, n * share, width)
        if self.scores is None:
            # Prompt and tail. Columns behind a short prompt's end keep their -inf.
            shape = kv_heads, n * share, self.prompt + tail
            self.scores = query.new_full(shape, -torch.inf)
        for group, start, stop in self.segments:
            mine = slice(start * share, stop * share)
            self.scores[:, mine, : len(group.prompt)] = by_head[:, mine] @ group.prefix[layer][0].mT
        own = torch.bmm(query.flatten(0, 1), keys.mT).view(n, kv_heads, share, tail)
        own = (own + self.mask[:, None, None]).transpose(0, 1)
        self.scores[:, :, self.prompt :] = own.reshape(kv_heads, n * share, tail)

        weights = self.scores.softmax(-1, dtype=torch.float32).to(query.dtype)
        result = value.new_empty(kv_heads, n * share, value.shape[-1])
        for group, start, stop in self.segments:
            mine = slice(start * share, stop * share)
            result[:, mine] = weights[:, mine, : len(group.prompt)] @ group.prefix[layer][1]
        result = result.view(kv_heads, n, share, -1).transpose(0, 1)
        own = weights[:, :, self.prompt :].view(kv_heads, n, share, tail).transpose(0, 1)
        own = torch.bmm(own.flatten(0, 1), values).view(n, kv_heads, share, -1)
        return (result + own).reshape(n, 1, heads, -1)


def attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    attend: Callable[..., Tensor] | None = None,
    **options: Any,
) -> tuple[Tensor, None]:
    """Attend as the caller of the network asks with ``attend``, else as PyTorch does; transformers
    calls this in every layer.
    """
    if attend is not None:
        return attend(module.layer_idx, options.get("scaling"), query, key, value), None
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    return sdpa_attention_forward(module, query, key, value, attention_mask, **options)[0], None
