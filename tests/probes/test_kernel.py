"""The kernel probe: what it leaves out, what it learns, and its faults."""

import numpy as np
import pytest

from capcal_lib.errors import InputError
from capcal_lib.probes import KernelProbe, LinearProbe, kernel
from tests.probes.probe_sets import rng


def data(seed: int = 0, n: int = 30) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    draws = rng(seed)
    features, total = draws.normal(size=(n, 3)), draws.integers(2, 12, n)
    return features, draws.binomial(total, 1 / (1 + np.exp(-2 * features[:, 0]))), total


@pytest.mark.parametrize("seed", range(4))
def test_what_is_left_out_is_what_a_fit_without_it_predicts(seed: int) -> None:
    features, correct, total = data(seed)
    probe = KernelProbe().fit(features, correct, total)
    assert probe.bandwidth_ is not None
    assert probe.out_of_fold_ is not None
    distances = ((features[:, None] - features[None]) ** 2).sum(-1)
    kernel = 1 + np.exp(-probe.bandwidth_ * distances / np.median(distances))
    mu, mean = correct / total, correct.sum() / total.sum()
    ridge = kernel + probe.penalty_ * len(total) * np.diag(total.mean() / total)
    for row in range(len(total)):
        others = np.arange(len(total)) != row
        dual = np.linalg.solve(ridge[np.ix_(others, others)], mu[others] - mean)
        assert probe.out_of_fold_[row] == pytest.approx(
            np.clip(mean + kernel[row, others] @ dual, 0, 1), abs=1e-6
        )


def test_the_kernel_probe_learns_what_a_line_cannot() -> None:
    features = rng().uniform(-2, 2, size=(200, 1))
    mu = np.exp(-(features[:, 0] ** 2))
    correct = rng(1).binomial(20, mu)
    predicted = KernelProbe().fit(features, correct, np.full(200, 20)).predict(features)
    assert np.mean((predicted - mu) ** 2) < 0.003
    line = LinearProbe(standardize=True).fit(features, correct, np.full(200, 20)).predict(features)
    assert np.mean((line - mu) ** 2) > 0.05


def test_where_there_is_nothing_to_learn_it_predicts_the_mean() -> None:
    features, total = rng().normal(size=(100, 20)), np.full(100, 10)
    correct = rng(1).binomial(10, 0.3, 100)
    probe = KernelProbe().fit(features, correct, total)
    assert np.ptp(probe.predict(rng(2).normal(size=(50, 20)))) < 0.1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: KernelProbe().predict([[1.0]]), "not fitted"),
        (
            lambda: KernelProbe().fit([[1.0], [2.0]], [1, 1], [2, 2]),
            "needs 3 training questions or more; got 2",
        ),
        (lambda: KernelProbe().fit([[1.0]] * 4, [1] * 3, [2] * 3), "features has 4, correct has 3"),
        (
            lambda: KernelProbe().fit([[np.nan]] * 4, [1] * 4, [2] * 4),
            "feature 0 is nan; features are finite",
        ),
        (
            lambda: KernelProbe().fit([[1.0]] * 4, [1] * 4, [2] * 4).predict([[1.0, 2.0]]),
            "fitted to 1 features; got 2",
        ),
    ],
)
def test_bad_input_is_one_clear_line(call, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=message):
        call()


def test_components_are_the_principal_directions_of_the_training_questions() -> None:
    from sklearn.decomposition import PCA

    features, correct, total = data(n=40)
    features = features @ rng(3).normal(size=(3, 8))
    unseen = rng(5).normal(size=(7, 8))
    directions = PCA(2).fit(features)
    by_hand = KernelProbe().fit(directions.transform(features), correct, total)
    probe = KernelProbe(components=2).fit(features, correct, total)
    np.testing.assert_allclose(
        probe.predict(unseen), by_hand.predict(directions.transform(unseen)), atol=1e-8
    )
    everything = KernelProbe().fit(features, correct, total).predict(unseen)
    np.testing.assert_allclose(
        KernelProbe(components=99).fit(features, correct, total).predict(unseen), everything
    )


@pytest.mark.parametrize("n", [29, 30, 31])
def test_of_many_questions_some_are_drawn_and_the_others_predicted(
    monkeypatch: pytest.MonkeyPatch, n: int
) -> None:
    features, correct, total = data(n=n)
    whole = KernelProbe().fit(features, correct, total)
    monkeypatch.setattr(kernel, "MOST_QUESTIONS", 30)
    probe = KernelProbe().fit(features, correct, total)
    again = KernelProbe().fit(features, correct, total)
    np.testing.assert_array_equal(probe.out_of_fold_, again.out_of_fold_)
    if n <= 30:
        np.testing.assert_array_equal(probe.out_of_fold_, whole.out_of_fold_)
        return
    drawn = np.zeros(n, bool)
    drawn[rng(0).choice(n, 30, replace=False)] = True
    small = KernelProbe().fit(features[drawn], correct[drawn], total[drawn])
    np.testing.assert_allclose(probe.predict(features), small.predict(features), atol=1e-10)
    np.testing.assert_allclose(probe.out_of_fold_[drawn], small.out_of_fold_, atol=1e-10)
    np.testing.assert_allclose(
        probe.out_of_fold_[~drawn], small.predict(features[~drawn]), atol=1e-10
    )
