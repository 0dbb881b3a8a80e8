"""Measure the bootstrap over questions: shared, vectorised draws against a plain loop.

Run as ``python benchmarks/bootstrap.py``. Both ways run in the same process on the same terms. The loop runs for a
part of the resamples and its time is scaled up; the resamples that both made are checked to agree.
"""

import timeit
from collections.abc import Callable

import numpy as np

from capcal_lib.metrics.intervals import bootstrap_mean, bootstrap_means

RESAMPLES, LOOPED = 10_000, 200


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
    for n_questions, clusters in ((11_313, None), (500, None), (14_042, 57)):  # TriviaQA, MATH-500, MMLU by subject
        terms = rng.random((n_questions, 20))
        labels = None if clusters is None else rng.integers(clusters, size=n_questions)
        one, all_ = (
            seconds(
                lambda columns=columns, labels=labels: bootstrap_means(  # type: ignore[misc]
                    columns, rng=np.random.default_rng(1), resamples=RESAMPLES, clusters=labels
                )
            )
            for columns in (terms[:, :1], terms)
        )
        text = f"{n_questions:>6,} questions, {RESAMPLES:,} resamples: one method {one:.2f} s, 20 methods {all_:.2f} s"
        if clusters is None:
            found = bootstrap_mean(terms[:, 0], rng=np.random.default_rng(1), resamples=LOOPED)
            np.testing.assert_allclose(found[1:], loop(terms[:, 0], LOOPED, 1), rtol=1e-12)
            slow = seconds(lambda column=terms[:, 0]: loop(column, LOOPED, 1), 1) * RESAMPLES / LOOPED  # type: ignore[misc]
            text += f"; loop {slow:.2f} s and {20 * slow:.1f} s, ratios {slow / one:.1f} and {20 * slow / all_:.0f}"
        else:
            text += f", drawing {clusters} subjects"
        print(text)


if __name__ == "__main__":
    main()
