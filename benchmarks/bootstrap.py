"""Measure intervals and comparisons of nine methods against a plain loop over resamples.

Run as ``python benchmarks/bootstrap.py``. Both ways run in the same process on the same terms. The
loop makes a part of the percentile resamples, method by method, and its time is scaled up."""

import timeit
from collections.abc import Callable

import numpy as np
import pandas as pd

from capcal_lib.metrics import compare, mean_interval

RESAMPLES, LOOPED, METHODS = 10_000, 200, 9


def loop(terms: np.ndarray, resamples: int, seed: int) -> tuple[float, float]:
    """Resample one column at a time, one resample at a time."""
    rng = np.random.default_rng(seed)
    means = [terms[rng.integers(len(terms), size=len(terms))].mean() for _ in range(resamples)]
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def seconds(call: Callable[[], object], repeats: int = 3) -> float:
    """Return the fastest of a few runs."""
    return min(timeit.repeat(call, number=1, repeat=repeats))


def main() -> None:
    rng = np.random.default_rng(0)
    for n_questions in (500, 11_313, 1_000_000):  # MATH-500, TriviaQA
        terms = pd.DataFrame(rng.random((n_questions, METHODS)))
        one = seconds(lambda terms=terms: mean_interval(terms[0], rng=np.random.default_rng(1)))  # type: ignore[misc]
        all_ = seconds(lambda terms=terms: compare(terms, rng=np.random.default_rng(1)))  # type: ignore[misc]
        text = (
            f"{n_questions:>9,} questions: an interval {one:.3f} s, {METHODS} methods "
            f"compared {all_:.2f} s"
        )
        if n_questions < 100_000:
            column = terms[0].to_numpy()
            slow = seconds(lambda column=column: loop(column, LOOPED, 1), 1) * RESAMPLES / LOOPED  # type: ignore[misc]
            text += f"; loop {slow:.2f} s and {METHODS * slow:.1f} s, ratios {slow / one:.0f} and"
            text += f" {METHODS * slow / all_:.0f}"
        print(text)


if __name__ == "__main__":
    main()
