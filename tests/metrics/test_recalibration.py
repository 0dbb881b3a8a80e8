import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from capcal_lib.errors import InputError
from capcal_lib.metrics import Calibrator, capability_brier, cross_fitted

METHODS = ["isotonic", "platt", "beta"]
NAN = float("nan")


def rng(seed=0):
    return np.random.default_rng(seed)


def world(n, k, seed=0, *, shift=1.5, slope=0.5):
    """Questions with a confidence whose logit is shifted and squeezed."""
    mu = rng(seed).beta(0.8, 0.8, n).clip(0.01, 0.99)
    return expit(slope * logit(mu) + shift), rng(seed + 1).binomial(k, mu), np.full(n, k)


def test_isotonic_is_that_of_scikit_learn():
    s, correct, total = world(60, 5)
    s[:6] = 0.5  # ties
    ours = Calibrator("isotonic").fit(s, correct, total)
    theirs = IsotonicRegression(out_of_bounds="clip").fit(s, correct / total)
    given = np.linspace(0, 1, 301)
    np.testing.assert_allclose(ours.predict(given), theirs.predict(given), atol=1e-12)


def test_logistic_is_that_of_scikit_learn():
    s, correct, total = world(200, 5)
    m = np.sqrt(200)  # confidences are drawn to one half by the minimax estimate of a share
    x = logit((s * m + 0.5) / (m + 1))[:, None]
    theirs = LogisticRegression(C=1e8, tol=1e-10, max_iter=1000).fit(
        np.r_[x, x], [1] * 200 + [0] * 200, sample_weight=np.r_[correct, total - correct]
    )
    given = np.linspace(0.05, 0.95, 50)
    expected = theirs.predict_proba(logit((given * m + 0.5) / (m + 1))[:, None])[:, 1]
    np.testing.assert_allclose(
        Calibrator("platt").fit(s, correct, total).predict(given), expected, atol=2e-3
    )


@pytest.mark.parametrize("method", METHODS)
def test_a_map_stays_in_order_and_in_bounds(method):
    s, correct, total = world(80, 4)
    found = Calibrator(method).fit(s, correct, total).predict(np.linspace(0, 1, 101))
    assert (np.diff(found) >= -1e-12).all()
    assert found.min() >= 0
    assert found.max() <= 1


@pytest.mark.parametrize("method", METHODS)
def test_a_shift_is_mended_on_questions_that_were_not_seen(method):
    s, correct, total = world(1500, 50)
    after = cross_fitted(s, correct, total, method=method, rng=rng())
    before = capability_brier(s, correct, total, corrected=True)
    assert capability_brier(after, correct, total, corrected=True) < 0.1 * before


def test_every_question_is_recalibrated_by_the_others():
    s, correct, total = world(12, 5)
    found = cross_fitted(s, correct, total, method="isotonic", rng=rng(3), folds=12)
    for each in range(12):
        others = np.arange(12) != each
        learned = Calibrator("isotonic").fit(s[others], correct[others], total[others])
        assert found[each] == learned.predict(s[[each]])[0]


def test_a_question_does_not_teach_itself():
    """Of noise, an honest recalibration learns the mean at best; one that saw its own rows would
    score lower.
    """
    honest, seen = [], []
    for seed in range(20):
        s, correct, total = (
            rng(seed).random(60),
            rng(seed + 100).binomial(1, 0.5, 60),
            np.ones(60, int),
        )
        after = cross_fitted(s, correct, total, method="isotonic", rng=rng(seed))
        honest.append(capability_brier(after, correct, total))
        seen.append(
            capability_brier(
                Calibrator("isotonic").fit(s, correct, total).predict(s), correct, total
            )
        )
    assert np.mean(seen) < 0.24 < 0.25 < np.mean(honest)


@pytest.mark.parametrize("method", METHODS)
def test_groups_stay_together(method):
    s, correct, total = world(40, 5)
    groups = np.repeat([f"subject {number}" for number in range(8)], 5)
    found = cross_fitted(s, correct, total, method=method, rng=rng(), groups=groups)
    for subject in np.unique(
        groups
    ):  # whatever a subject's answers, its own recalibration is the same
        changed = np.where(groups == subject, total - correct, correct)
        again = cross_fitted(s, changed, total, method=method, rng=rng(), groups=groups)
        np.testing.assert_array_equal(found[groups == subject], again[groups == subject])
        assert (found != again).any()


def test_missing_stays_missing_and_what_is_not_scored_teaches_nothing():
    s, correct, total = world(40, 5)
    s[3], total[5], correct[5] = NAN, 0, 0
    found = cross_fitted(s, correct, total, method="isotonic", rng=rng())
    assert np.isnan(found).nonzero()[0].tolist() == [3]
    other = s.copy()
    other[5] = 0.0  # an unscored question's confidence moves nobody but itself
    again = cross_fitted(other, correct, total, method="isotonic", rng=rng())
    rest = ~np.isin(np.arange(40), [3, 5])
    np.testing.assert_array_equal(found[rest], again[rest])


def test_another_seed_deals_other_folds():
    rows = world(40, 5)
    one, same, other = (cross_fitted(*rows, method="isotonic", rng=rng(seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()


@pytest.mark.parametrize("method", METHODS)
def test_extremes_are_survived(method):
    s, correct = [0.0, 1.0, 0.0, 1.0, 1.0, 0.0], [0, 5, 0, 5, 5, 0]
    found = cross_fitted(s, correct, [5] * 6, method=method, rng=rng(), folds=3)
    assert found[[0, 2, 5]].max() < 0.1
    assert found[[1, 3, 4]].min() > 0.9
    constant = cross_fitted([0.5] * 6, correct, [5] * 6, method=method, rng=rng(), folds=2)
    assert np.isfinite(constant).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: Calibrator("logistic"),
            "unknown recalibration 'logistic'; known: beta, isotonic, platt",
        ),
        (lambda: Calibrator("isotonic").fit([1.5], [1], [2]), "row 0: confidence is 1.5"),
        (lambda: Calibrator("isotonic").fit([0.5], [0], [0]), "row 0: total is 0"),
        (
            lambda: Calibrator("isotonic").fit([0.5], [1], [2]).predict([2.0]),
            "row 0: confidence is 2",
        ),
        (
            lambda: cross_fitted([0.5], [1], [2], method="isotonic", rng=rng()),
            "two groups of questions at least; got 1",
        ),
        (
            lambda: cross_fitted([0.5, 0.6], [1, 0], [2, 0], method="isotonic", rng=rng()),
            "recalibration needs scored questions with a confidence in two groups",
        ),
        (
            lambda: cross_fitted([0.5, 0.6], [1, 1], [2, 2], method="isotonic", rng=rng(), folds=1),
            "folds must be",
        ),
        (
            lambda: cross_fitted(
                [0.5, 0.6], [1, 1], [2, 2], method="isotonic", rng=rng(), groups=["a"]
            ),
            "groups has 1",
        ),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_beta_bends_either_end_by_itself():
    s = rng(1).uniform(0.02, 0.98, 3000)
    mu = expit(2 * np.log(s) - 0.5 * np.log1p(-s) + 0.3)
    correct = rng(2).binomial(50, mu)
    errors = {
        method: np.mean((Calibrator(method).fit(s, correct, 50).predict(s) - mu) ** 2)
        for method in ("beta", "platt")
    }
    assert errors["beta"] < 1e-4 < errors["platt"]
    falling = Calibrator("beta").fit(1 - s, correct, 50).predict(np.linspace(0, 1, 11))
    assert np.ptp(falling) < 1e-6  # never turned round


def test_a_series_gives_a_series_and_what_is_not_fitted_says_so():
    s, correct, total = world(40, 5)
    given = pd.Series(s, [f"q{at}" for at in range(40)])
    found = Calibrator("platt").fit(given, correct, total).predict(given[::-1])
    assert found.index.tolist() == given.index[::-1].tolist()
    assert cross_fitted(given, correct, total).index.equals(given.index)
    with pytest.raises(InputError, match="call fit first"):
        Calibrator().predict([0.5])


@pytest.mark.parametrize("method", ["platt", "beta"])
def test_confidences_of_exactly_0_and_1_are_made_no_worse(method):
    """The share of ten draws, often 0 or 1, is recalibrated by ten other samples."""
    r = rng(4)
    mu = r.beta(0.5, 0.5, 4000)
    s = r.binomial(10, mu) / 10
    calibrator = Calibrator(method).fit(s[:1000], r.binomial(10, mu[:1000]), 10)
    after = calibrator.predict(s[1000:])
    assert np.mean((after - mu[1000:]) ** 2) < np.mean((s[1000:] - mu[1000:]) ** 2)


def test_a_calibrator_is_an_estimator_of_scikit_learn():
    copy = clone(Calibrator("beta").fit([0.1, 0.9], [1, 3], 4))
    assert repr(copy) == "Calibrator(method='beta')"
    assert copy.get_params() == {"method": "beta"}
    assert copy.set_params(method="platt").method == "platt"
    with pytest.raises(InputError, match="call fit first"):
        copy.predict([0.5])
