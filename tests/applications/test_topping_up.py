"""Topping up samples: what one half gets does not follow from its own outcomes, and known mu."""

import numpy as np
import pandas as pd
import pytest

from capcal_lib.applications.topping_up import samples_needed
from capcal_lib.metrics import capability_brier_terms, mean_interval

PILOT = 20


def world(questions: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Expected accuracies, and a confidence that knows them roughly."""
    rng = np.random.default_rng(seed)
    mu = rng.beta(0.5, 0.5, questions)
    return mu, np.clip(mu + rng.normal(0, 0.15, questions), 0, 1)


def pilot(mu: np.ndarray, s: np.ndarray, rng: np.random.Generator) -> pd.DataFrame:
    names = [f"q{number}" for number in range(len(mu))]
    counts = {"correct": rng.binomial(PILOT, mu), "total": PILOT, "mine": s}
    return pd.DataFrame(counts, index=names)


def terms(s: np.ndarray, correct: np.ndarray, total: np.ndarray) -> np.ndarray:
    return capability_brier_terms(s, correct, total, corrected=True)


def reach(found: np.ndarray) -> float:
    """Return how far the interval that is shown reaches to either side."""
    estimate, low, high = mean_interval(found, bounds=(0, 1))
    return max(estimate - low, high - estimate)


def test_what_a_question_gets_does_not_follow_from_what_its_samples_say() -> None:
    mu, s = world(120, 0)
    first = pilot(mu, s, np.random.default_rng(1))
    aim = 1.01 * reach(terms(s, first["correct"].to_numpy(), np.full(120, PILOT)))
    needed = samples_needed(first, half_width=aim, most=100)
    assert needed.nunique() > 2
    changed = 0
    for name in first.index[:20]:
        other = first.copy()
        other.loc[name, "correct"] = PILOT - other.loc[name, "correct"]
        again = samples_needed(other, half_width=aim, most=100)
        assert again[name] == needed[name]
        changed += (again != needed).any()
    assert changed, "those of the other tenths follow from it"


def test_the_score_is_unbiased_for_known_mu_and_as_precise_as_asked() -> None:
    mu, s = world(150, 2)
    truth = float(((s - mu) ** 2).mean())
    aim = 1.03 * reach((s - mu) ** 2)  # of the best that can be reached
    scores, widths, fixed = [], [], []
    for seed in range(25):
        rng = np.random.default_rng([3, seed])
        first = pilot(mu, s, rng)
        total = samples_needed(first, half_width=aim, most=100).to_numpy()
        correct = first["correct"].to_numpy() + rng.binomial(total - PILOT, mu)
        found = terms(s, correct, total)
        scores.append(found.mean())
        widths.append(reach(found))
        fixed.append(reach(terms(s, first["correct"], np.full(len(mu), PILOT))))
    error = np.std(scores, ddof=1) / np.sqrt(len(scores))
    assert abs(np.mean(scores) - truth) < 3 * error
    assert np.mean(np.array(widths) <= aim) >= 0.9
    assert np.mean(np.array(fixed) <= aim) < 0.5, "the pilot alone was not enough"


@pytest.mark.parametrize("half_width", [1e-6, 1.0])
def test_what_no_samples_can_do_or_none_need_is_left(half_width: float) -> None:
    mu, _ = world(60, 5)
    first = pilot(mu, 1 - mu, np.random.default_rng(6))  # scores far apart, were mu known
    needed = samples_needed(first, half_width=half_width, most=100)
    assert (needed == PILOT).all()


def test_the_most_is_kept() -> None:
    mu, _ = world(400, 7)
    first = pilot(mu, mu, np.random.default_rng(8))  # no spread between questions, were mu known
    first["votes"] = first["correct"] / first["total"]
    needed = samples_needed(first, half_width=0.0049, most=30)
    assert needed.max() == 30
