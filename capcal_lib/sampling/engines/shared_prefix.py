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

KeysValues = tuple[Tensor, ...]  # of one layer, two, each (kv_heads, tokens, head_dim)
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
            self.layers[index] = tuple(
                one.new_zeros(rows, one.shape[1], length, one.shape[-1]) for one in new
            )
        return self.layers[index]

    @torch.inference_mode()
    def place(self, branches: list[Branch]) -> None:
        """Give every branch the row of its place, copying what it has from its parent's row."""
        parents = [branch.row for branch in branches]
        for place, branch in enumerate(branches):
            branch.row = place
        if parents != list(range(len(parents))):
            length = max(len(branch.tokens) for branch in branches) - 1
            for rows in (rows for pair in self.layers.values() for rows in pair):
                rows[: len(parents), :, :length] = rows[parents, :, :length]


class SharedPrefixAttention:
    """Attention of one new token a branch to its prompt, shared with its neighbours, and to its own
    tail.

    The branches of a group lie side by side, so their queries meet the prompt's keys in one matrix
    product. One softmax then covers prompt and tail. In the names of dimensions, h is a head of
    keys, b a branch, q one of the queries that share its head, t a token, w the width of a head."""

    def __init__(self, branches: list[Branch], tails: Tails, device: Any) -> None:
        self.tails = tails
        self.rows = torch.arange(len(branches), device=device)
        self.ends = torch.tensor([len(branch.tokens) - 1 for branch in branches], device=device)
        self.tail = max(len(branch.tokens) for branch in branches)
        behind = torch.arange(self.tail, device=device) > self.ends[:, None]
        self.mask = torch.zeros(behind.shape, device=device).masked_fill_(behind, -torch.inf)
        self.segments: list[tuple[Group, slice]] = []  # of the branches
        stop = 0
        for group, run in groupby(branches, key=lambda branch: branch.group):
            start, stop = stop, stop + len(list(run))
            self.segments.append((group, slice(start, stop)))
        self.prompt = max(len(group.prompt) for group, _ in self.segments)
        self.scores: Tensor | None = None

    def __call__(
        self, layer: int, scaling: float | None, query: Tensor, key: Tensor, value: Tensor
    ) -> Tensor:
        tails = self.tails.layer(layer, key, value)
        for rows, new in zip(tails, (key, value), strict=True):
            rows[self.rows, :, self.ends] = new[:, :, 0]
        count, width = len(query), query.shape[-1]
        keys, values = (rows[:count, :, : self.tail] for rows in tails)
        scaling = width**-0.5 if scaling is None else scaling
        queries = query[:, :, 0].mul(scaling).view(count, key.shape[1], -1, width)  # b h q w

        own = torch.einsum("bhqw,bhtw->hbqt", queries, keys)
        if self.scores is None:
            # Prompt and tail. Columns behind a short prompt's end keep their -inf.
            shape = *own.shape[:-1], self.prompt + self.tail
            self.scores = own.new_full(shape, -torch.inf)
        self.scores[..., self.prompt :] = own + self.mask[:, None]
        for group, branches in self.segments:
            prefix = group.prefix[layer][0]
            self.scores[:, branches, :, : len(group.prompt)] = torch.einsum(
                "bhqw,htw->hbqt", queries[branches], prefix
            )
        weights = self.scores.softmax(-1, dtype=torch.float32).to(query.dtype)
        result = torch.einsum("hbqt,bhtw->bhqw", weights[..., self.prompt :], values)
        for group, branches in self.segments:
            prefix = group.prefix[layer][1]
            seen = weights[:, branches, :, : len(group.prompt)]
            result[branches] += torch.einsum("hbqt,htw->bhqw", seen, prefix)
        return result.flatten(1, 2)[:, None]


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
