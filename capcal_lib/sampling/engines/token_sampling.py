"""Draw tokens from next-token logits by inverse CDF, one uniform number a token."""

import math

import torch
from torch import Tensor

from capcal_lib.manifests import Sampling

# the vocabulary is searched block first, then inside the block: no cumulative sum over all of it
BLOCK = 256
NUCLEUS = 1024  # a top-p set rarely holds more tokens; where it does, the row is sorted in full


def draw_tokens(logits: Tensor, rows: Tensor, uniforms: Tensor, sampling: Sampling) -> Tensor:
    """Draw a token id for each uniform number, float64 in [0, 1), from its row of the logits,
    (n_rows, vocabulary).

    The same number always draws the same token from the same logits, whatever else is in the batch.
    Temperature first (0 takes the most likely token), then top-k, then top-p of what top-k left;
    tokens that tie at a limit stay together.

    >>> half = torch.tensor([[0.5, 0.25, 0.25]]).log()
    >>> uniforms = torch.tensor([0.4, 0.6, 0.9], dtype=torch.float64)
    >>> settings = Sampling(temperature=1.0, max_tokens=1, context_tokens=8)
    >>> draw_tokens(half, torch.zeros(3, dtype=torch.long), uniforms, settings).tolist()
    [0, 1, 2]
    """
    if sampling.temperature == 0:
        return logits.argmax(-1)[rows]
    blocks = _masses(logits, sampling).view(len(logits), -1, BLOCK)
    upto = blocks.sum(-1, dtype=torch.float64).cumsum(-1)[rows]
    target = uniforms * upto[:, -1]
    block = (upto <= target[:, None]).sum(-1)
    before = torch.nn.functional.pad(upto, (1, 0)).gather(1, block[:, None])[:, 0]
    inside = blocks[rows, block].double().cumsum(-1)
    # The block's sum is rounded in another order here, so a target near its end could come to lie
    # behind it.
    largest = torch.nextafter(inside[:, -1], torch.zeros_like(before))
    rest = torch.minimum(target - before, largest)
    place = (inside <= rest[:, None]).sum(-1)
    return block * BLOCK + place


def token_probabilities(logits: Tensor, sampling: Sampling) -> Tensor:
    """Return the probability with which `draw_tokens` draws each token: (n_rows, vocabulary),
    float64, rows sum to 1.

    >>> settings = Sampling(temperature=1.0, top_k=2, max_tokens=1, context_tokens=8)
    >>> token_probabilities(torch.tensor([[0.6, 0.2, 0.1]]).log(),
    ...     settings).round(decimals=3).tolist()
    [[0.75, 0.25, 0.0]]
    """
    if sampling.temperature == 0:
        return torch.nn.functional.one_hot(logits.argmax(-1), logits.shape[-1]).double()
    mass = _masses(logits, sampling)[:, : logits.shape[-1]].double()
    return mass / mass.sum(-1, keepdim=True)


def _masses(logits: Tensor, sampling: Sampling) -> Tensor:
    """Return what each token's probability is proportional to, and zeros up to whole blocks of
    tokens.
    """
    n_rows, vocabulary = logits.shape
    width = math.ceil(vocabulary / BLOCK) * BLOCK
    mass = logits.new_zeros(n_rows, width, dtype=torch.float32)
    scaled = mass[:, :vocabulary]
    highest = logits.amax(-1, keepdim=True)
    torch.sub(logits.float(), highest.float(), out=scaled)
    scaled.div_(sampling.temperature).exp_()
    if sampling.top_k is not None and sampling.top_k < vocabulary:
        limit = scaled.topk(sampling.top_k).values[:, -1:]
        mass.masked_fill_(mass < limit, 0)
    if sampling.top_p < 1:
        limit = _nucleus_limit(scaled, sampling.top_p)[:, None]
        mass.masked_fill_(mass < limit, 0)
    return mass


def _nucleus_limit(mass: Tensor, top_p: float) -> Tensor:
    """Return the smallest mass in each row's top-p set: the fewest tokens that together hold at
    least ``top_p``.
    """
    wanted = top_p * mass.sum(-1, dtype=torch.float64)
    limit = torch.empty_like(mass[:, 0])
    todo = torch.arange(len(mass), device=mass.device)
    vocabulary = mass.shape[1]
    for size in (min(NUCLEUS, vocabulary), vocabulary):
        largest = mass[todo].topk(size).values
        upto = largest.double().cumsum(-1)
        last = (upto < wanted[todo, None]).sum(-1)
        found = last < size
        if size == vocabulary:
            found[:] = True
        place = last[found].clamp(max=size - 1)
        limit[todo[found]] = largest[found, place]
        todo = todo[~found]
        if not len(todo):
            break
    return limit
