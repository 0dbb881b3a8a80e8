"""Tokens are drawn with their probabilities."""

import numpy as np
import pytest

from capcal_lib.manifests import Sampling
from capcal_lib.sampling.engines.token_sampling import draw_tokens

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tests.sampling.engines.tiny_models import chi_square_p, naive_probabilities, settings  # noqa: E402

SETTINGS = [
    settings(),
    settings(temperature=0.4),
    settings(top_k=5),
    settings(top_p=0.6),
    settings(temperature=2.0, top_p=0.9, top_k=1500),
]


@pytest.mark.parametrize("sampling", SETTINGS, ids=str)
@pytest.mark.parametrize(("vocabulary", "draws"), [(8, 3_000), (3000, 8_000)], ids=["8", "3000"])
def test_tokens_are_drawn_with_their_probabilities(
    vocabulary: int, draws: int, sampling: Sampling
) -> None:
    rng = np.random.default_rng(0)
    logits = torch.tensor(rng.normal(scale=2, size=(3, vocabulary)), dtype=torch.float32)
    rows = torch.arange(3).repeat(draws)
    tokens = draw_tokens(logits.clone(), rows, torch.tensor(rng.random(len(rows))), sampling)
    for row in range(3):
        counts = np.bincount(tokens[rows == row].numpy(), minlength=vocabulary)
        assert chi_square_p(counts, naive_probabilities(logits[row].numpy(), sampling)) > 1e-4


@pytest.mark.parametrize("sampling", SETTINGS, ids=str)
def test_the_boundaries_between_tokens_are_exact(sampling: Sampling) -> None:
    logits = torch.tensor(
        np.random.default_rng(1).normal(scale=2, size=(1, 700)), dtype=torch.float32
    )
    edges = np.cumsum(naive_probabilities(logits[0].numpy(), sampling))
    for nudge, side in ((-3e-7, "left"), (3e-7, "right")):
        uniforms = np.clip(edges + nudge, 0, 1 - 1e-9)
        drawn = draw_tokens(
            logits.clone(), torch.zeros(700, dtype=torch.long), torch.tensor(uniforms), sampling
        )
        inside = np.diff(edges, prepend=0) > 1e-6
        clear = inside & np.roll(inside, -1) if side == "right" else inside
        clear[-1] = False
        expected = np.searchsorted(edges, uniforms, side="right")
        assert np.array_equal(drawn.numpy()[clear], expected[clear])


def test_the_ends_of_the_unit_interval_draw_tokens_that_have_probability() -> None:
    logits = torch.full((1, 2000), -torch.inf)
    logits[0, 700], logits[0, 1201] = 0.0, 1.0
    uniforms = torch.tensor([0.0, np.nextafter(1, 0)], dtype=torch.float64)
    assert draw_tokens(logits, torch.zeros(2, dtype=torch.long), uniforms, settings()).tolist() == [
        700,
        1201,
    ]


def test_tokens_that_tie_at_a_limit_stay_together() -> None:
    logits = torch.tensor([[2.0, 1.0, 1.0, 0.0]])
    uniforms = torch.linspace(0, 0.999, 200, dtype=torch.float64)
    for sampling in (settings(top_k=2), settings(top_p=0.7)):
        assert set(
            draw_tokens(
                logits.clone(), torch.zeros(200, dtype=torch.long), uniforms, sampling
            ).tolist()
        ) == {
            0,
            1,
            2,
        }
