"""Measure how often intervals over questions hold the score of all questions like theirs.

Run as ``python benchmarks/coverage.py [REPEATS]``. Each world draws questions, confidences and
counts, of which the corrected capability Brier score is taken. The table shows the coverage of the
95 % interval and its median width, then how often any of 100 comparisons of methods that are equal
in truth has a verdict, Holm-adjusted."""

import sys
from collections.abc import Callable

import numpy as np
import pandas as pd

from capcal_lib.metrics import capability_brier_terms, gains, mean_interval

Floats = np.ndarray
World = Callable[[np.random.Generator, int], tuple[Floats, Floats]]


def aime(rng: np.random.Generator, n: int) -> tuple[Floats, Floats]:
    """Next to nothing is solved, and a sharp probe says so."""
    mu = np.where(rng.random(n) < 0.03, rng.beta(1, 1, n), 0.0)
    return rng.beta(1, 300, n), mu


def simpleqa(rng: np.random.Generator, n: int) -> tuple[Floats, Floats]:
    """One question in a hundred is known, at a fair chance."""
    mu = np.where(rng.random(n) < 0.01, rng.beta(2, 2, n), 0.0)
    return rng.beta(1, 300, n), mu


def u_shaped(rng: np.random.Generator, n: int) -> tuple[Floats, Floats]:
    """Most questions are nearly always or nearly never solved; the confidence is rough."""
    mu = rng.beta(0.3, 0.3, n)
    return np.clip(mu + rng.normal(0, 0.25, n), 0, 1), mu


def sparse(rng: np.random.Generator, n: int) -> tuple[Floats, Floats]:
    """One question in seven is solved at times, and the confidence is 0."""
    return np.zeros(n), np.where(rng.random(n) < 0.85, 0, rng.beta(0.5, 1, n))


def gross(rng: np.random.Generator, n: int, share: float = 0.1) -> tuple[Floats, Floats]:
    """The confidence is good, but grossly wrong on one question in ten."""
    mu = rng.beta(0.3, 0.3, n)
    miss = rng.random(n) < share
    return np.where(miss, mu < 0.5, np.clip(mu + rng.normal(0, 0.05, n), 0, 1)), mu


def rare_gross(rng: np.random.Generator, n: int) -> tuple[Floats, Floats]:
    """The confidence is good, but grossly wrong on one question in a hundred."""
    return gross(rng, n, 0.01)


WORLDS: dict[str, tuple[World, int]] = {  # with the samples a question
    "AIME-like": (aime, 4),
    "SimpleQA-like": (simpleqa, 10),
    "U-shaped": (u_shaped, 100),
    "sparse": (sparse, 100),
    "gross misses": (gross, 100),
    "rare gross misses": (rare_gross, 100),
}


def truth(name: str) -> float:
    """Return the score of a million questions of a world, with mu known."""
    s, mu = WORLDS[name][0](np.random.default_rng(0), 1_000_000)
    return float(np.mean((s - mu) ** 2))


def terms(name: str, rng: np.random.Generator, n: int) -> Floats:
    """Return the corrected terms of a draw of n questions of a world."""
    world, samples = WORLDS[name]
    s, mu = world(rng, n)
    return capability_brier_terms(s, rng.binomial(samples, mu), samples, corrected=True)


def coverage(name: str, n: int, repeats: int, seed: int = 0) -> tuple[float, float]:
    """Return how often the interval holds the truth, and its median width."""
    rng, score = np.random.default_rng([n, seed]), truth(name)
    found = [mean_interval(terms(name, rng, n), rng=rng) for _ in range(repeats)]
    held = [each.low <= score <= each.high for each in found]
    return float(np.mean(held)), float(np.median([each.high - each.low for each in found]))


def null_terms(rng: np.random.Generator, n: int, solvable: float, rivals: int) -> pd.DataFrame:
    """Return terms of a rival and of methods that are as good as it on average."""
    mu = np.where(rng.random(n) < solvable, rng.beta(1, 1, n), 0.0)
    counts = rng.binomial(10, mu)
    # Two constants a and b have equal scores where a + b = 2 mean mu.
    mean = solvable / 2
    shift = np.r_[0.0, rng.uniform(-1, 1, rivals) * mean]
    columns = {
        at: capability_brier_terms(mean + each, counts, 10, corrected=True) - each**2
        for at, each in enumerate(shift)
    }
    return pd.DataFrame(columns).rename(columns={0: "rival"})


def verdicts(n: int, solvable: float, repeats: int, rivals: int = 100, seed: int = 0) -> float:
    """Return how often any of many comparisons of equal methods has a verdict."""
    rng = np.random.default_rng([n, seed])
    any_ = []
    for _ in range(repeats):
        table = gains(null_terms(rng, n, solvable, rivals), "rival", adjust="holm")
        any_.append((table["verdict"] != "inconclusive").any())
    return float(np.mean(any_))


def main(repeats: int) -> None:
    for name in WORLDS:
        for n in (30, 60, 100, 200):
            held, width = coverage(name, n, repeats)
            print(f"{name:18} N={n:<4} coverage {held:.3f}  median width {width:.4f}", flush=True)
    for n, solvable in ((30, 0.03), (100, 0.01), (200, 0.01)):
        share = verdicts(n, solvable, max(20, repeats // 10))
        print(f"equal methods, N={n}, {solvable:.0%} solvable: any verdict in {share:.3f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
