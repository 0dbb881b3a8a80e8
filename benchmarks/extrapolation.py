"""Measure how well pass@k is extrapolated beyond the samples, in worlds of which mu is known.

Run as ``python benchmarks/extrapolation.py [STUDIES] [FIRST_SEED]``. Each study draws questions of
a world and their counts, and extrapolates from 20 samples of 300 questions to every k of a row, and
from 100 samples of 128 questions to 2,000. The truth is pass@k of the questions drawn. The tables
show how often the limits hold it, how wide they are, and the mean error of the estimate."""

import sys
from collections.abc import Callable

import numpy as np
import pandas as pd
from scipy.special import expit

from capcal_lib.applications import extrapolate_pass_at_k

Floats = np.ndarray
World = Callable[[np.random.Generator, int], Floats]


def some_hopeless(rng: np.random.Generator, n: int) -> Floats:
    """Three questions in ten are never solved."""
    return np.where(rng.random(n) < 0.3, 0.0, rng.beta(0.5, 0.7, n))


def two_kinds(rng: np.random.Generator, n: int) -> Floats:
    """Half of the questions are hard, the others are not."""
    return np.where(rng.random(n) < 0.5, rng.beta(2, 60, n), rng.beta(5, 2, n))


WORLDS: dict[str, World] = {
    "Beta": lambda rng, n: rng.beta(0.3, 1.0, n),
    "some hopeless": some_hopeless,
    "logit-normal": lambda rng, n: expit(-1 + 3 * rng.standard_normal(n)),
    "two kinds": two_kinds,
    "three kinds": lambda rng, n: rng.choice([0.001, 0.05, 0.6], n),
    "hard": lambda rng, n: expit(-5 + 3 * rng.standard_normal(n)),
    "heavy near 0": lambda rng, n: np.where(
        rng.random(n) < 0.25, 10 ** rng.uniform(-4.5, -2, n), rng.beta(2, 2, n)
    ),
    "two points": lambda rng, n: np.where(rng.random(n) < 0.6, 0.98, 0.003),
    "heavy tails": lambda rng, n: expit(-2 + 2 * rng.standard_t(3, n)),
}
SIZES = [(300, 20, [40, 100, 400, 2_000, 10_000]), (128, 100, [2_000])]  # questions, samples, ks


def study(name: str, questions: int, samples: int, ks: list[int], seed: int) -> pd.DataFrame:
    """Extrapolate one draw of a world: a row a k."""
    rng = np.random.default_rng([seed, questions, samples])
    mu = WORLDS[name](rng, questions)
    correct = rng.binomial(samples, mu)
    table = extrapolate_pass_at_k(correct, np.full(questions, samples), ks)
    truth = (1 - (1 - mu[:, None]) ** np.array(ks)).mean(axis=0)
    return pd.DataFrame(
        {
            "world": name,
            "k": ks,
            "held": (table["low"] <= truth) & (truth <= table["high"]),
            "width": table["high"] - table["low"],
            "error": (table["estimate"] - truth).abs(),
        }
    )


def main(studies: int, first: int) -> None:
    for questions, samples, ks in SIZES:
        seeds = range(first, first + studies)
        found = [study(name, questions, samples, ks, seed) for name in WORLDS for seed in seeds]
        found = pd.concat(found)
        print(f"{questions} questions with {samples} samples, {studies} studies a world")
        print(found.groupby(["world", "k"], sort=False).mean().round(3).to_string())
        print(found.drop(columns="world").groupby("k").mean().round(3).to_string(), flush=True)


if __name__ == "__main__":
    given = [int(each) for each in sys.argv[1:]]
    main(*(given + [10, 0][len(given) :]))
