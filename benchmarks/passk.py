"""Measure pass@k: one table over the distinct counts against a loop over questions.

Run as ``python benchmarks/passk.py``. Both ways run in the same process on the same counts and are
checked to agree; the ratio is what carries over to other machines."""

import timeit
from collections.abc import Callable

import numpy as np

from capcal_lib.applications.passk import pass_at_k


def loop(correct: np.ndarray, total: np.ndarray, ks: list[int]) -> np.ndarray:
    """Work out each question and k on its own, by the usual product."""
    rates = np.empty((correct.size, len(ks)))
    for row, (c, n) in enumerate(zip(correct, total, strict=True)):
        for column, k in enumerate(ks):
            rates[row, column] = (
                1.0 if n - c < k else 1.0 - np.prod(1.0 - k / np.arange(n - c + 1, n + 1))
            )
    return rates


def seconds(call: Callable[[], object], repeats: int) -> float:
    """Return the fastest of a few runs."""
    return min(timeit.repeat(call, number=1, repeat=repeats))


def main() -> None:
    rng = np.random.default_rng(0)
    n_questions, samples = 11_313, 100  # the TriviaQA validation questions, the paper's k_eval
    total = np.full(n_questions, samples)
    correct = rng.binomial(total, rng.beta(0.4, 0.4, n_questions))
    print(f"pass@k of {n_questions:,} questions with {samples} samples")
    for ks, repeats in [([1, 4, 16, 64], 2), (list(range(1, 101)), 1)]:
        np.testing.assert_allclose(
            pass_at_k(correct, total, ks), loop(correct, total, ks), rtol=0, atol=1e-13
        )
        table = seconds(lambda ks=ks: pass_at_k(correct, total, ks), 20)
        slow = seconds(lambda ks=ks: loop(correct, total, ks), repeats)
        print(
            f"{len(ks):>3} k: table {table * 1e3:.1f} ms, loop {slow * 1e3:.0f} ms, ratio "
            f"{slow / table:,.0f}"
        )


if __name__ == "__main__":
    main()
