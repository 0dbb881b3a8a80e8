"""Measure budget allocation: the price found by bisection against a heap and against plain greedy.

Run as ``python benchmarks/allocation.py``. All ways run in the same process on the same confidences and are
checked to be worth the same; the ratio is what carries over to other machines.
"""

import heapq
import timeit
from collections.abc import Callable

import numpy as np

from capcal_lib.applications.budget import allocate


def heap(p: np.ndarray, budget: int) -> np.ndarray:
    """Give one sample at a time to the largest gain, kept in a heap."""
    chances = p.tolist()
    counts = [0] * len(chances)
    gains = [(-chance, row) for row, chance in enumerate(chances)]
    heapq.heapify(gains)
    for _ in range(budget):
        gain, row = gains[0]
        counts[row] += 1
        heapq.heapreplace(gains, (gain * (1 - chances[row]), row))
    return np.array(counts)


def greedy(p: np.ndarray, budget: int) -> np.ndarray:
    """Give one sample at a time to the largest gain, all gains worked out anew each time."""
    counts = np.zeros(p.size, dtype=np.int64)
    for _ in range(budget):
        counts[np.argmax(p * (1 - p) ** counts)] += 1
    return counts


def value(p: np.ndarray, counts: np.ndarray) -> float:
    return float((1 - (1 - p) ** counts).sum())


def seconds(call: Callable[[], object], repeats: int) -> float:
    """Return the fastest of a few runs."""
    return min(timeit.repeat(call, number=1, repeat=repeats))


def main() -> None:
    rng = np.random.default_rng(0)
    confidences = {
        "any": lambda n: rng.beta(0.4, 0.4, n),
        "tied": lambda n: rng.binomial(100, rng.beta(0.4, 0.4, n)) / 100,  # as Oracle CC, with 100 samples
    }
    for n, rivals in [(500, {"heap": heap, "greedy": greedy}), (11_313, {"heap": heap})]:
        for kind, draw in confidences.items():
            p, budget = draw(n), 16 * n
            price = seconds(lambda p=p, budget=budget: allocate(p, budget), 20)
            line = f"{n:>6,} questions, B = 16, {kind:>4} confidences: price {price * 1e3:.2f} ms"
            for name, rival in rivals.items():
                np.testing.assert_allclose(value(p, allocate(p, budget)), value(p, rival(p, budget)), rtol=1e-12)
                slow = seconds(lambda rival=rival, p=p, budget=budget: rival(p, budget), 1)
                line += f"; {name} {slow * 1e3:.0f} ms, ratio {slow / price:,.0f}"
            print(line)


if __name__ == "__main__":
    main()
