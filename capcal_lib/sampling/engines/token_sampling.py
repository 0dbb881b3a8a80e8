"""Draw tokens from next-token logits by inverse CDF, one uniform number a token."""

import torch
from torch import Tensor

from capcal_lib.manifests import Sampling


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
    upto = _masses(logits, sampling).double().cumsum(-1)
    total = upto[rows, -1]
    targets = torch.minimum(uniforms * total, torch.nextafter(total, torch.zeros_like(total)))
    drawn = [
        torch.searchsorted(upto[row], target, right=True)
        for row, target in zip(rows.tolist(), targets, strict=True)
    ]
    return torch.stack(drawn)


def _masses(logits: Tensor, sampling: Sampling) -> Tensor:
    """Return what each token's probability is proportional to, (n_rows, vocabulary): 0 outside of
    top-k and top-p.

    Tokens that tie with the last one inside are kept with it.
    """
    scores = logits.float()
    mass = (scores - scores.amax(-1, keepdim=True)).div_(sampling.temperature).exp_()
    vocabulary = mass.shape[-1]
    most = min(sampling.top_k or vocabulary, vocabulary)
    if most == vocabulary and sampling.top_p == 1:
        return mass
    largest = mass.topk(most).values  # in falling order
    smallest_of_top_k = largest[:, -1:]
    mass.masked_fill_(mass < smallest_of_top_k, 0)
    # top-p is a share of what top-k left, so it comes second.
    top_p_mass = sampling.top_p * mass.sum(-1, keepdim=True, dtype=torch.float64)
    tokens_below = (largest.double().cumsum(-1) < top_p_mass).sum(-1, keepdim=True)
    smallest_of_top_p = largest.gather(-1, tokens_below.clamp(max=most - 1))
    return mass.masked_fill_(mass < smallest_of_top_p, 0)
