"""Measure how often intervals over questions hold the score of all questions like theirs.

Run as ``python benchmarks/coverage.py [STUDIES]``. A world draws the terms of n questions, or of
the questions of n clusters. The table shows how often 95 % intervals hold the truth: Student's t,
the percentiles of a plain bootstrap over questions or clusters, `mean_interval`, and 1.96 times the
true standard error to either side, which nobody knows; and the median width of `mean_interval`, in
multiples of theirs. Then how often any of many comparisons of equal methods has a verdict, after
Holm."""

import sys
from collections.abc import Callable

import numpy as np
import pandas as pd
from scipy.stats import t as student

from capcal_lib.metrics import capability_brier_terms, gains, mean_interval

Floats = np.ndarray
Rng = np.random.Generator
Bounds = tuple[float, float]
SCORE: Bounds = (0.0, 1.0)
APART: Bounds = (-1.0, 1.0)
RESAMPLES = 1_000
# Questions of each subject in the validation split of MMLU.
MMLU_SIZES = [8, 9, 10, *[11] * 11, 12, 12, 12, 13, 14, 14, 16, 16, 16, 17, 18, 18, 18, 19, 21]
MMLU_SIZES += [22, 22, 22, 22, 22, 23, 23, 25, 26, 26, 26, 27, 29, 29, 31, 31, 32, 33, 34, 35, 38]
MMLU_SIZES += [41, 43, 60, 69, 86, 100, 170]
MANY = 1_000_000  # questions or clusters whose mean is taken for the truth


def aime(rng: Rng, n: int) -> tuple[Floats, Floats]:
    """Next to nothing is solved, and a sharp probe says so."""
    mu = np.where(rng.random(n) < 0.03, rng.beta(1, 1, n), 0.0)
    return rng.beta(1, 300, n), mu


def simpleqa(rng: Rng, n: int) -> tuple[Floats, Floats]:
    """One question in a hundred is known, at a fair chance."""
    mu = np.where(rng.random(n) < 0.01, rng.beta(2, 2, n), 0.0)
    return rng.beta(1, 300, n), mu


def u_shaped(rng: Rng, n: int) -> tuple[Floats, Floats]:
    """Most questions are nearly always or nearly never solved; the confidence is rough."""
    mu = rng.beta(0.3, 0.3, n)
    return np.clip(mu + rng.normal(0, 0.25, n), 0, 1), mu


def sparse(rng: Rng, n: int) -> tuple[Floats, Floats]:
    """One question in seven is solved at times, and the confidence is 0."""
    return np.zeros(n), np.where(rng.random(n) < 0.85, 0, rng.beta(0.5, 1, n))


def gross(rng: Rng, n: int, share: float = 0.1) -> tuple[Floats, Floats]:
    """The confidence is good, but grossly wrong on one question in ten."""
    mu = rng.beta(0.3, 0.3, n)
    miss = rng.random(n) < share
    return np.where(miss, mu < 0.5, np.clip(mu + rng.normal(0, 0.05, n), 0, 1)), mu


def rare_gross(rng: Rng, n: int) -> tuple[Floats, Floats]:
    """The confidence is good, but grossly wrong on one question in a hundred."""
    return gross(rng, n, 0.01)


def noisy_gross(rng: Rng, n: int, noise: float = 0.1) -> tuple[Floats, Floats]:
    """The confidence is noisy, and grossly wrong on one question in a hundred."""
    mu = rng.beta(0.5, 0.5, n)
    miss = rng.random(n) < 0.01
    return np.where(miss, mu < 0.5, np.clip(mu + rng.normal(0, noise, n), 0, 1)), mu


def two_sets(rng: Rng, n: int) -> tuple[Floats, Floats]:
    """Half of the questions are foretold exactly, the others get one half."""
    mu = rng.beta(0.5, 2, n)
    return np.where(rng.random(n) < 0.5, mu, 0.5), mu


def lumpy(rng: Rng, n: int) -> tuple[Floats, Floats]:
    """Confidences are rounded to 0, one half and 1."""
    mu = rng.beta(0.2, 0.6, n)
    return np.round(2 * mu) / 2, mu


def overconfident(rng: Rng, n: int) -> tuple[Floats, Floats]:
    """Nearly every question is solved, and said to be; one in fifty is hopeless."""
    return np.full(n, 0.98), np.where(rng.random(n) < 0.02, 0.0, rng.beta(30, 1, n))


def scored(world: Callable[[Rng, int], tuple[Floats, Floats]], samples: int) -> "World":
    """Return the corrected terms of a world's confidences."""

    def draw(rng: Rng, n: int) -> tuple[Floats, None]:
        s, mu = world(rng, n)
        terms = capability_brier_terms(s, rng.binomial(samples, mu), samples, corrected=True)
        return terms, None

    return draw


def alike(sd: float) -> "World":
    """Differences of two strongly correlated methods, one grossly wrong on one question in 100."""

    def draw(rng: Rng, n: int) -> tuple[Floats, None]:
        mu = rng.beta(0.5, 0.5, n)
        a = np.clip(mu + rng.normal(0, 0.1, n), 0, 1)
        b = np.where(rng.random(n) < 0.01, mu < 0.5, np.clip(a + rng.normal(0, sd, n), 0, 1))
        counts = rng.binomial(100, mu) / 100
        return (b - counts) ** 2 - (a - counts) ** 2, None

    return draw


def clustered(kind: str) -> "World":
    """Questions in n clusters whose sizes are those of a Pareto distribution of index 1.2."""

    def draw(rng: Rng, n: int) -> tuple[Floats, Floats]:
        labels = np.repeat(np.arange(n), np.minimum(3 * (1 + rng.pareto(1.2, n)), 2000).astype(int))
        if kind == "accuracy":
            level = rng.beta(2, 3, n)[labels]
            return rng.binomial(10, level) / 10, labels
        shift = rng.normal(0, 0.05, n)[labels]
        terms = (rng.normal(0, 0.1, len(labels)) + shift) ** 2
        miss = rng.random(n)[labels] < 0.03 if kind == "missed" else rng.random(len(labels)) < 0.01
        return np.where(miss, 0.6, terms), labels

    return draw


def subjects(kind: str) -> "World":
    """Questions in n clusters of about five each, as MMLU's subjects in 300 questions, or as in all
    of them.
    """

    def draw(rng: Rng, n: int) -> tuple[Floats, Floats]:
        sizes = rng.geometric(0.2, n) if kind == "unequal accuracy" else np.full(n, 5)
        if kind == "missed whole, MMLU":
            sizes = np.resize(MMLU_SIZES, n)
        labels = np.repeat(np.arange(n), sizes)
        if kind in ("accuracy", "unequal accuracy"):
            level = rng.beta(2, 3, n)[labels]
            return rng.binomial(10, level) / 10, labels
        if kind == "gain":
            shift = rng.normal(0.02, 0.03, n)[labels]
            return shift + rng.normal(0, 0.06, len(labels)), labels
        shift = rng.normal(0, 0.05, n)[labels]
        terms = (rng.normal(0, 0.1, len(labels)) + shift) ** 2
        if kind == "misses":
            terms[rng.random(len(labels)) < 0.01] = 0.6
        if kind in ("missed whole", "missed whole, MMLU"):
            terms[(rng.random(n) < 0.03)[labels]] = 0.6
        return terms, labels

    return draw


World = Callable[[Rng, int], tuple[Floats, Floats | None]]
WORLDS: dict[str, tuple[World, Bounds]] = {
    "AIME-like": (scored(aime, 4), SCORE),
    "SimpleQA-like": (scored(simpleqa, 10), SCORE),
    "U-shaped": (scored(u_shaped, 100), SCORE),
    "sparse": (scored(sparse, 100), SCORE),
    "gross misses": (scored(gross, 100), SCORE),
    "rare gross misses": (scored(rare_gross, 100), SCORE),
    "noisy, rare misses": (scored(noisy_gross, 100), SCORE),
    "noisier, rare misses": (scored(lambda rng, n: noisy_gross(rng, n, 0.2), 100), SCORE),
    "two sets": (scored(two_sets, 2), SCORE),
    "lumpy": (scored(lumpy, 20), SCORE),
    "overconfident": (scored(overconfident, 10), SCORE),
    "alike, apart by .05": (alike(0.05), APART),
    "alike, apart by .1": (alike(0.1), APART),
    "clusters, accuracy": (clustered("accuracy"), SCORE),
    "clusters, misses": (clustered("misses"), SCORE),
    "clusters missed whole": (clustered("missed"), SCORE),
    "subjects, accuracy": (subjects("accuracy"), SCORE),
    "subjects, unequal": (subjects("unequal accuracy"), SCORE),
    "subjects, Brier": (subjects("Brier"), SCORE),
    "subjects, gain": (subjects("gain"), APART),
    "subjects, misses": (subjects("misses"), SCORE),
    "subjects missed whole": (subjects("missed whole"), SCORE),
    "subjects of MMLU, missed": (subjects("missed whole, MMLU"), SCORE),
}


def sums_of(terms: Floats, labels: Floats | None) -> tuple[Floats, Floats]:
    if labels is None:
        return terms, np.ones(len(terms))
    return np.bincount(labels, terms), np.bincount(labels).astype(float)


def plain_t(terms: Floats, labels: Floats | None) -> tuple[float, float]:
    sums, sizes = sums_of(terms, labels)
    mean = sums.sum() / sizes.sum()
    units = len(sizes)
    squares = ((sums - sizes * mean) ** 2).sum() * units / (units - 1)
    width = student.ppf(0.975, units - 1) * np.sqrt(squares) / sizes.sum()
    return mean - width, mean + width


def bootstrap(terms: Floats, labels: Floats | None, rng: Rng) -> tuple[float, float]:
    sums, sizes = sums_of(terms, labels)
    rows = rng.integers(len(sizes), size=(RESAMPLES, len(sizes)))
    low, high = np.quantile(sums[rows].sum(axis=1) / sizes[rows].sum(axis=1), [0.025, 0.975])
    return float(low), float(high)


def coverage(name: str, n: int, studies: int, seed: int = 0) -> dict[str, tuple[float, float]]:
    """Return how often each interval holds the truth, and its median width; the last is that of
    who knows the standard error.
    """
    draw, bounds = WORLDS[name]
    rng = np.random.default_rng([n, seed])
    truth = float(np.mean(draw(np.random.default_rng(0), MANY)[0]))
    limits: dict[str, list[tuple[float, float]]] = {"t": [], "bootstrap": [], "this": []}
    means = []
    for _ in range(studies):
        terms, labels = draw(rng, n)
        means.append(terms.mean())
        limits["t"].append(plain_t(terms, labels))
        limits["bootstrap"].append(bootstrap(terms, labels, rng))
        limits["this"].append(mean_interval(terms, clusters=labels, bounds=bounds)[1:])
    reach = 1.96 * np.std(means)
    limits["true error"] = [(mean - reach, mean + reach) for mean in means]
    return {
        name: (float(np.mean((low <= truth) & (truth <= high))), float(np.median(high - low)))
        for name, (low, high) in ((name, np.array(each).T) for name, each in limits.items())
    }


def null_terms(rng: Rng, n: int, solvable: float, rivals: int) -> pd.DataFrame:
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


def tailed_terms(rng: Rng, n: int, sd: float, share: float, rivals: int) -> pd.DataFrame:
    """Return terms of methods that are slightly better than a rival on most questions, worse by
    half on a few, and equal to it on average.
    """
    rival = rng.uniform(0.3, 0.5, n)
    better = 0.5 * share / (1 - share)
    columns = {"rival": rival}
    for at in range(rivals):
        apart = np.where(rng.random(n) < share, 0.5, -better) + rng.normal(0, sd, n)
        columns[str(at)] = rival + apart
    return pd.DataFrame(columns)


def verdicts(draw: Callable[[Rng], pd.DataFrame], studies: int, seed: int = 0) -> float:
    """Return how often any of many comparisons of equal methods has a verdict."""
    rng = np.random.default_rng(seed)
    tables = (gains(draw(rng), "rival", adjust="holm") for _ in range(studies))
    return float(np.mean([(table["verdict"] != "inconclusive").any() for table in tables]))


FAMILIES: dict[str, Callable[[Rng], pd.DataFrame]] = {
    "100 constants, N=30, 3% solvable": lambda rng: null_terms(rng, 30, 0.03, 100),
    "100 constants, N=100, 1% solvable": lambda rng: null_terms(rng, 100, 0.01, 100),
    "100 constants, N=200, 1% solvable": lambda rng: null_terms(rng, 200, 0.01, 100),
    "20 tails of 2%, N=100, sd .03": lambda rng: tailed_terms(rng, 100, 0.03, 0.02, 20),
    "20 tails of 2%, N=100, sd .05": lambda rng: tailed_terms(rng, 100, 0.05, 0.02, 20),
    "20 tails of 1%, N=200, sd .03": lambda rng: tailed_terms(rng, 200, 0.03, 0.01, 20),
    "100 tails of 2%, N=100, sd .03": lambda rng: tailed_terms(rng, 100, 0.03, 0.02, 100),
}


def main(studies: int) -> None:
    for name in WORLDS:
        for n in (15, 30, 57) if name.startswith(("clusters", "subjects")) else (30, 100, 200):
            found = coverage(name, n, studies)
            cells = "  ".join(f"{how} {held:.3f}" for how, (held, _) in found.items())
            width = found["this"][1]
            others = [width / found[how][1] for how in ("t", "bootstrap", "true error")]
            ratios = ", ".join(f"{ratio:.2f}" for ratio in others)
            print(f"{name:22} N={n:<4} {cells}  width {width:.4f}, {ratios} times", flush=True)
    for name, family in FAMILIES.items():
        print(f"{name}: any verdict in {verdicts(family, studies // 4):.3f}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
