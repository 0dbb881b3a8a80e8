"""The stacked probe: weights by likelihood, members left out of their folds, nothing chosen on
other questions.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.decomposition import PCA
from sklearn.model_selection import KFold

from capcal_lib.errors import InputError
from capcal_lib.probes.kernel import KernelProbe
from capcal_lib.probes.stacked import BLOCKS, FOLDS, MEAN, MEMBERS, StackedProbe, mixture_weights

Blocks = dict[str, np.ndarray]


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def data(seed: int = 0, n: int = 120) -> tuple[Blocks, np.ndarray, np.ndarray]:
    draws = rng(seed)
    blocks = {name: draws.normal(size=(n, 3)) for name in BLOCKS}
    mu = 1 / (1 + np.exp(-2 * blocks["middle layers"][:, 0]))
    total = draws.integers(5, 12, n)
    return blocks, draws.binomial(total, mu), total


def likelihood(
    weights: np.ndarray, predicted: np.ndarray, correct: np.ndarray, total: np.ndarray
) -> float:
    mixed = weights @ np.clip(predicted, 1e-3, 1 - 1e-3)
    return float((correct @ np.log(mixed) + (total - correct) @ np.log(1 - mixed)) / total.sum())


@pytest.mark.parametrize("seed", range(5))
def test_no_other_weights_are_more_likely(seed: int) -> None:
    draws = rng(seed)
    predicted, total = draws.random((4, 50)), draws.integers(1, 12, 50)
    correct = draws.binomial(total, 0.7 * predicted[0] + 0.3 * predicted[1])
    found = mixture_weights(predicted, correct, total)
    best = minimize(
        lambda free: -likelihood(np.abs(free) / np.abs(free).sum(), predicted, correct, total),
        np.full(4, 0.25), method="Nelder-Mead",
        options={"xatol": 1e-6, "fatol": 1e-10, "maxiter": 5_000},
    )  # fmt: skip
    assert likelihood(found, predicted, correct, total) >= -best.fun - 1e-3
    assert found.sum() == pytest.approx(1)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 6), st.integers(1, 30), st.integers(0, 2**31))
def test_weights_are_shares_whatever_is_predicted(probes: int, questions: int, seed: int) -> None:
    draws = rng(seed)
    predicted = draws.choice([0.0, 1.0, 0.5, 0.999], size=(probes, questions))
    total = draws.integers(1, 5, questions)
    weights = mixture_weights(predicted, draws.binomial(total, draws.random(questions)), total)
    assert (weights >= 0).all()
    assert weights.sum() == pytest.approx(1, abs=1e-12)


def test_rounding_does_not_grow_over_many_steps() -> None:
    """Predictions nearly alike take hundreds of steps, in which a sum that is not kept at 1 runs
    away.
    """
    draws = rng(4)
    mu = draws.random(200)
    predicted = np.clip(
        mu + draws.normal(0, 0.15, (12, 200)) + 0.01 * draws.normal(size=(12, 1)), 0, 1
    )
    weights = mixture_weights(predicted, draws.binomial(10, mu), np.full(200, 10))
    assert weights.sum() == pytest.approx(1, abs=1e-12)


def test_the_better_of_two_by_hand() -> None:
    """One sample a question: the mixture w 0.9 + (1 - w) 0.1, right in 7 of 10, is most likely at w
    = 0.75.
    """
    predicted = np.array([np.full(10, 0.9), np.full(10, 0.1)])
    correct = np.array([1] * 7 + [0] * 3)
    assert mixture_weights(predicted, correct, np.ones(10, int))[0] == pytest.approx(0.75, abs=0.01)


def test_it_finds_the_block_that_tells() -> None:
    blocks, correct, total = data(n=200)
    probe = StackedProbe().fit(blocks, correct, total)
    assert max(probe.weights_, key=probe.weights_.__getitem__) == "middle layers"
    assert sum(probe.weights_.values()) == pytest.approx(1)
    unseen, right, of = data(1, n=200)
    error = np.mean((probe.predict(unseen) - right / of) ** 2)
    assert error < np.mean((correct.sum() / total.sum() - right / of) ** 2) / 2


def test_where_there_is_nothing_to_learn_it_stays_near_the_mean() -> None:
    blocks, _, total = data(n=300)
    probe = StackedProbe().fit(blocks, rng(1).binomial(total, 0.3), total)
    assert np.std(probe.predict(data(2)[0])) < 0.03


def test_it_is_the_weighted_mean_of_its_members() -> None:
    blocks, correct, total = data()
    given = {name: blocks[name] for name in ("middle layers", "upper layers")}
    probe = StackedProbe().fit(given, correct, total)
    assert set(probe.weights_) == {MEAN, *given}
    made = {name: KernelProbe(components=32) for name in given}
    parts = {
        name: made[name].fit(block, correct, total).predict(block) for name, block in given.items()
    }
    expected = probe.weights_[MEAN] * correct.sum() / total.sum()
    for name, part in parts.items():
        expected = expected + probe.weights_[name] * part
    np.testing.assert_allclose(probe.predict(given), expected)


def test_the_weights_are_of_predictions_for_questions_left_out() -> None:
    """Derived again: each fold by directions and a kernel probe that have not seen it."""
    _, correct, total = data()
    given = {"middle layers": rng(7).normal(size=(len(total), 50)) * np.geomspace(1, 0.1, 50)}
    left_out = np.empty((2, len(total)))
    for others, out in KFold(FOLDS, shuffle=True, random_state=3).split(total):
        left_out[0, out] = correct[others].sum() / total[others].sum()
        directions = PCA(32).fit(given["middle layers"][others])
        seen, unseen = (
            directions.transform(given["middle layers"][rows]) for rows in (others, out)
        )
        left_out[1, out] = KernelProbe().fit(seen, correct[others], total[others]).predict(unseen)
    probe = StackedProbe(seed=3).fit(given, correct, total)
    shares = mixture_weights(left_out, correct, total)
    assert list(probe.weights_.values()) == pytest.approx(shares.tolist())
    np.testing.assert_allclose(probe.out_of_fold_, shares @ left_out)


def test_the_seed_decides_the_folds_and_nothing_else() -> None:
    blocks, correct, total = data()
    first, again, other = (
        StackedProbe(seed=seed).fit(blocks, correct, total) for seed in (0, 0, 1)
    )
    assert first.weights_ == again.weights_
    np.testing.assert_array_equal(first.predict(blocks), again.predict(blocks))
    assert first.weights_ != other.weights_


def test_questions_to_be_predicted_have_no_say() -> None:
    blocks, correct, total = data()
    probe = StackedProbe().fit(blocks, correct, total)
    unseen = data(1)[0]
    whole = probe.predict(unseen)
    np.testing.assert_allclose(
        probe.predict({name: block[:7] for name, block in unseen.items()}), whole[:7]
    )


def test_every_member_reads_a_known_block() -> None:
    assert {name for name, _ in MEMBERS} == set(BLOCKS)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda b, *_: StackedProbe().predict(b), "not fitted"),
        (lambda _, c, n: StackedProbe().fit({}, c, n), "blocks are empty"),
        (
            lambda b, c, n: StackedProbe().fit({"layers": b["lower layers"]}, c, n),
            "unknown block 'layers'; known",
        ),
        (
            lambda b, c, n: StackedProbe().fit(b, c[:9], n[:9]),
            r"equally many questions; got \[9, 120\]",
        ),
        (
            lambda b, c, n: StackedProbe().fit(
                {name: block[:9] for name, block in b.items()}, c[:9], n[:9]
            ),
            "needs 10 questions or more; got 9",
        ),
        (
            lambda b, c, n: (
                StackedProbe().fit(b, c, n).predict({"lower layers": b["lower layers"]})
            ),
            "was fitted with mean of the layers, middle layers, upper layers as well",
        ),
    ],
)
def test_bad_input_is_one_clear_line(call, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=message):
        call(*data())
