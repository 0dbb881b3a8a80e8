import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from capcal_lib.errors import InputError
from capcal_lib.metrics import Calibrator, capability_brier

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
    calibrator = Calibrator(method).fit(s[::2], correct[::2], total[::2])
    s, correct, total = s[1::2], correct[1::2], total[1::2]
    before = capability_brier(s, correct, total, corrected=True)
    after = calibrator.predict(s)
    assert capability_brier(after, correct, total, corrected=True) < 0.1 * before


@pytest.mark.parametrize("method", METHODS)
def test_extremes_are_survived(method):
    s, correct = [0.0, 1.0, 0.0, 1.0, 1.0, 0.0], [0, 5, 0, 5, 5, 0]
    found = Calibrator(method).fit(s, correct, 5).predict(s)
    assert found[[0, 2, 5]].max() < 0.1
    assert found[[1, 3, 4]].min() > 0.9
    constant = Calibrator(method).fit([0.5] * 6, correct, 5)
    assert np.isfinite(constant.predict([0.0, 0.5, 1.0])).all()


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
    low, high = Calibrator("platt").fit(1 - s, correct, 50).predict([0.9, 0.1])
    assert high - low > 0.5  # turned round


def test_a_series_gives_a_series_and_what_is_not_fitted_says_so():
    s, correct, total = world(40, 5)
    given = pd.Series(s, [f"q{at}" for at in range(40)])
    found = Calibrator("platt").fit(given, correct, total).predict(given[::-1])
    assert found.index.tolist() == given.index[::-1].tolist()
    assert Calibrator().method == "isotonic"
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
    with pytest.raises(InputError, match="unknown recalibration 'logistic'"):
        copy.set_params(method="logistic").fit([0.1, 0.9], [1, 3], 4)
