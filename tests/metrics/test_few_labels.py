import numpy as np
import pytest
from scipy.stats import binomtest
from scipy.stats import t as student

from capcal_lib.errors import InputError
from capcal_lib.metrics import accuracy_from_labels


def rng(seed=0):
    return np.random.default_rng(seed)


def study(generator, accuracy, noise, concentration=1.0, labelled=50, questions=1000):
    """One answer each to some questions, and confidences of all."""
    a, b = concentration * accuracy, concentration * (1 - accuracy)
    mu = generator.beta(a, b, questions)
    s = np.clip(mu + generator.normal(0, noise, questions), 0, 1)
    return generator.binomial(1, mu[:labelled]), s[:labelled], s[labelled:]


@pytest.mark.parametrize("noise", [0, 0.1, 0.5, 50])
@pytest.mark.parametrize("accuracy", [0.006, 0.03, 0.08, 0.15, 0.3, 0.5, 0.85, 0.95])
def test_fifty_labels_hold_the_accuracy_as_often_as_promised(accuracy, noise):
    generator = rng(int(1000 * accuracy))
    held = []
    for _ in range(400):
        found = accuracy_from_labels(*study(generator, accuracy, noise))
        held.append(found.low <= accuracy <= found.high)
    assert np.mean(held) > 0.95 - 0.025  # with the error of 400 studies


def test_a_good_confidence_narrows_it_and_a_useless_one_hardly_widens_it():
    generator = rng(1)
    widths = {}
    for noise in (0.1, 50):
        found = [accuracy_from_labels(*study(generator, 0.5, noise)) for _ in range(50)]
        widths[noise] = np.mean([each.high - each.low for each in found])
    alone = np.diff(binomtest(25, 50).proportion_ci(0.95, method="exact"))[0]
    assert widths[0.1] < 0.8 * alone
    assert widths[50] < 1.03 * alone


@pytest.mark.parametrize("right", [0, 1, 4, 46, 50])
def test_few_of_one_kind_are_counted(right):
    labels = np.arange(50) < right
    found = accuracy_from_labels(labels, rng(1).random(50), rng(2).random(90))
    exact = binomtest(right, 50).proportion_ci(0.95, method="exact")
    assert found == pytest.approx((right / 50, *exact, True))


def test_it_is_the_formula_of_the_papers_with_residuals_left_out_one_by_one():
    labels, s, rest = study(rng(3), 0.5, 0.2, labelled=40)
    n, others = len(s), len(rest)
    slope = np.cov(labels, s)[0, 1] / np.var([*s, *rest], ddof=1) / (1 + n / others)
    left = labels - slope * s
    residuals = []
    for at in range(n):
        # Of the label's own line, at the weight that was chosen, less its pull there.
        line = np.polyfit(s, np.eye(n)[at], 1)
        residuals.append((left[at] - left.mean()) / (1 - np.polyval(line, s[at])))
    squares = np.square(residuals)
    error = np.sqrt(squares.sum() / n**2 + slope**2 * np.var([*s, *rest], ddof=1) / others)
    reach = error * student.ppf(0.975, min(n - 2, squares.sum() ** 2 / (squares**2).sum()))
    estimate = left.mean() + slope * rest.mean()
    found = accuracy_from_labels(labels, s, rest)
    assert found == pytest.approx((estimate, estimate - reach, estimate + reach, False))


def test_right_and_wrong_are_alike_and_a_constant_is_left_out():
    labels, s, rest = study(rng(4), 0.4, 0.2)
    found = accuracy_from_labels(labels, s, rest)
    mirrored = accuracy_from_labels(1 - labels, 1 - s, 1 - rest)
    assert mirrored == pytest.approx((1 - found.estimate, 1 - found.high, 1 - found.low, False))
    assert accuracy_from_labels(labels, [0.3] * 50, [0.3]).estimate == labels.mean()
    wider = accuracy_from_labels(labels, s, rest, level=0.99)
    assert wider.low < found.low < found.high < wider.high


def test_a_confidence_that_only_one_question_has_is_bounded():
    found = accuracy_from_labels([1] * 5 + [0] * 5, [1] + [0] * 9, [0.2, 0.9])
    assert 0 <= found.low <= found.estimate <= found.high <= 1
    exact = accuracy_from_labels([1] * 5 + [0] * 5, [1] * 5 + [0] * 5, [0.2, 0.9])
    assert 0 <= exact.low <= exact.estimate <= exact.high <= 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (([0, 2], [0.1, 0.2], [0.3]), "row 1: correct is 2, more than its total"),
        (([0, 0.5], [0.1, 0.2], [0.3]), "row 1: correct is 0.5, but must be a whole number"),
        (([0, 1], [0.1, 1.2], [0.3]), "row 1: confidence is 1.2, but must lie in"),
        (([0, 1], [0.1], [0.3]), "equally many rows are needed"),
        (([0, 1], [0.1, 0.2], []), "confidence is empty"),
    ],
)
def test_bad_labels_are_refused(given, message):
    with pytest.raises(InputError) as error:
        accuracy_from_labels(*given)
    assert str(error.value).startswith(message)
