"""Continue prompts, and compute only once what their samples have in common.

All samples of a question share the keys and values of its prompt. Samples with the same text so far
are one row of the batch."""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np
import torch
from torch import Tensor

from capcal_lib.sampling.engines.chat import Prompt

KeysValues = tuple[Tensor, ...]  # of one layer, two, each (kv_heads, tokens, head_dim)
Stream = tuple[int, np.random.Generator]  # a sample's index, and its own uniform numbers


@dataclass(slots=True, eq=False)
class Group:
    """Samples of one question that share the keys and values of its prompt."""

    prompt: Prompt
    prefix: list[KeysValues] = field(default_factory=list)  # of the prompt, a pair a layer


@dataclass(slots=True)
class Branch:
    """Samples of one question with the same text so far: one row of the batch."""

    group: Group
    tokens: tuple[int, ...]
    streams: list[Stream]
    row: int  # of the batch before, where the keys and values of its tokens are, if it has some


class SharedPrefixAttention:
    """Attend from one new token per branch to the branch's prompt, which its neighbours share, and
    to its own tail.

    The branches of a group lie side by side, so their queries meet the prompt's keys in one matrix
    product. One softmax then covers prompt and tail. ``tails`` has the keys and values of the text
    so far, by layer, each (n_branches, kv_heads, tokens, head_dim), with its end on the right. In
    the names of dimensions, h is a head of keys, b a branch, q one of the queries that share its
    head, t a token, w the width of a head."""

    def __init__(
        self, branches: list[Branch], tails: dict[int, tuple[Tensor, Tensor]], device: Any
    ) -> None:
        self.tails = tails
        self.rows = torch.tensor([branch.row for branch in branches], device=device)
        lengths = torch.tensor([len(branch.tokens) for branch in branches], device=device)
        self.tail = int(lengths.max())
        before = torch.arange(self.tail, 0, -1, device=device) > lengths[:, None]
        self.mask = torch.where(before, -torch.inf, 0.0)
        self.segments: list[tuple[Group, slice]] = []  # of the branches
        stop = 0
        for group, run in groupby(branches, key=lambda branch: branch.group):
            start, stop = stop, stop + len(list(run))
            self.segments.append((group, slice(start, stop)))
        self.prompt = max(len(group.prompt.tokens) for group, _ in self.segments)
        self.scores: Tensor | None = None

    def __call__(
        self, layer: int, scaling: float | None, query: Tensor, key: Tensor, value: Tensor
    ) -> Tensor:
        if layer in self.tails:
            old_keys, old_values = self.tails[layer]
            first = old_keys.shape[2] + 1 - self.tail  # what is longer than any tail is left out
            key = torch.cat([old_keys[self.rows, :, first:], key], 2)
            value = torch.cat([old_values[self.rows, :, first:], value], 2)
        self.tails[layer] = key, value
        count, _, _, width = query.shape
        scaling = width**-0.5 if scaling is None else scaling
        queries = query[:, :, 0].mul(scaling).view(count, key.shape[1], -1, width)  # b h q w

        inner = (queries @ key.mT).transpose(0, 1)  # h b q t
        if self.scores is None:
            # Prompt and tail. Columns behind a short prompt's end keep their -inf.
            shape = *inner.shape[:-1], self.prompt + self.tail
            self.scores = inner.new_full(shape, -torch.inf)
        self.scores[..., self.prompt :] = inner + self.mask[:, None]
        for group, branches in self.segments:
            prefix = group.prefix[layer][0]
            self.scores[:, branches, :, : len(group.prompt.tokens)] = torch.einsum(
                "bhqw,htw->hbqt", queries[branches], prefix
            )
        weights = self.scores.softmax(-1, dtype=torch.float32).to(query.dtype)
        result = torch.einsum("hbqt,bhtw->bhqw", weights[..., self.prompt :], value)
        for group, branches in self.segments:
            prefix = group.prefix[layer][1]
            shares = weights[:, branches, :, : len(group.prompt.tokens)]
            result[branches] += torch.einsum("hbqt,htw->bhqw", shares, prefix)
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
    """Attend with ``attend`` if the caller of the network gives it, else as PyTorch does.
    Transformers calls this in every layer.
    """
    if attend is not None:
        return attend(module.layer_idx, options.get("scaling"), query, key, value), None
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    return sdpa_attention_forward(module, query, key, value, attention_mask, **options)[0], None
