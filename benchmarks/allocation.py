"""Measure budget allocation: the price searched for against a heap and against plain greedy.

Run as ``python benchmarks/allocation.py``. All ways run in the same process on the same confidences
and are checked to be worth the same; the ratio is what carries over to other machines."""

import heapq
import time
import timeit
from collections.abc import Callable

import numpy as np

from capcal_lib.applications import allocate, simulate_pass_at_k


def heap(p: np.ndarray, budget: int, nu: float | None) -> np.ndarray:
    """Give one sample at a time to the largest gain, kept in a heap."""
    failing = [
        (1.0 - s, 0.0, 1.0) if nu is None else ((1 - s) * nu, 1.0, nu + 1) for s in p.tolist()
    ]
    counts = [0] * p.size
    gains = [(-chance, row) for row, chance in enumerate(p.tolist())]
    heapq.heapify(gains)
    for _ in range(budget):
        gain, row = gains[0]
        b, more, weight = failing[row]
        heapq.heapreplace(
            gains, (gain * (b + more * counts[row]) / (weight + more * counts[row]), row)
        )
        counts[row] += 1
    return np.array(counts)


def greedy(p: np.ndarray, budget: int, nu: float | None) -> np.ndarray:
    """Give one sample at a time to the largest gain, looked for among all."""
    counts, gains = np.zeros(p.size, dtype=np.int64), p.copy()
    for _ in range(budget):
        row = np.argmax(gains)
        k = counts[row]
        gains[row] *= 1 - p[row] if nu is None else ((1 - p[row]) * nu + k) / (nu + 1 + k)
        counts[row] += 1
    return counts


def value(p: np.ndarray, counts: np.ndarray, nu: float | None) -> float:
    """Return how many are expected to be solved."""
    ks, column = np.unique(counts, return_inverse=True)
    solved = simulate_pass_at_k(p, np.maximum(ks, 1), concentration=nu)[np.arange(p.size), column]
    return float(np.where(counts > 0, solved, 0.0).sum())


def seconds(call: Callable[[], object], repeats: int) -> float:
    """Return the processor time of the fastest of a few runs."""
    return min(timeit.repeat(call, timer=time.process_time, number=1, repeat=repeats))


def main() -> None:
    rng = np.random.default_rng(0)
    confidences = {
        "any": lambda n: rng.beta(0.4, 0.4, n),
        "tied": lambda n: (
            rng.binomial(100, rng.beta(0.4, 0.4, n)) / 100
        ),  # as Oracle CC, with 100 samples
    }
    for n, rivals in [(500, {"heap": heap, "greedy": greedy}), (11_313, {"heap": heap})]:
        for kind, draw in confidences.items():
            p, budget = draw(n), 16 * n
            for nu in (None, 0.3, 3.0, 30.0):
                price = seconds(
                    lambda p=p, budget=budget, nu=nu: allocate(p, budget, concentration=nu), 20
                )
                line = (
                    f"{n:>6,} questions, B = 16, {kind:>4} confidences, nu = {nu}: price "
                    f"{price * 1e3:.2f} ms"
                )
                for name, rival in rivals.items():
                    found = allocate(p, budget, concentration=nu)
                    np.testing.assert_allclose(
                        value(p, found, nu), value(p, rival(p, budget, nu), nu), rtol=1e-9
                    )
                    slow = seconds(
                        lambda rival=rival, p=p, budget=budget, nu=nu: rival(p, budget, nu), 1
                    )
                    line += f"; {name} {slow * 1e3:.0f} ms, ratio {slow / price:,.0f}"
                print(line)


if __name__ == "__main__":
    main()
