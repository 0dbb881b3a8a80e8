import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capcal_lib.errors import InputError
from capcal_lib.metrics import Calibrator, binned_ece, capability_brier
from capcal_lib.metrics.reliability import isotonic_split

EXAMPLE = ([0.1, 0.4, 0.4, 0.8, 1.0], [1, 0, 3, 2, 7], [4, 5, 4, 3, 7])


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def world(
    n: int, k: int, seed: int = 0, *, power: float = 1.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Questions whose confidence is mu to some power: perfect for 1."""
    mu = rng(seed).random(n)
    return mu**power, rng(seed + 1).binomial(k, mu), np.full(n, k)


@st.composite
def scored(draw: st.DrawFn, least: int = 1) -> tuple[list[float], list[int], list[int]]:
    n = draw(st.integers(1, 9))
    total = draw(st.lists(st.integers(least, 9), min_size=n, max_size=n))
    correct = [draw(st.integers(0, samples)) for samples in total]
    confidence = draw(
        st.lists(
            st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.5, 1.0])), min_size=n, max_size=n
        )
    )
    return confidence, correct, total


# The isotonic split


@settings(max_examples=25, deadline=None)
@given(scored(2), st.booleans())
def test_isotonic_parts_add_up_and_have_their_signs(rows, corrected):
    split = isotonic_split(*rows, corrected=corrected)
    assert split.score == pytest.approx(
        split.miscalibration - split.discrimination + split.uncertainty, abs=1e-12
    )
    assert split.miscalibration >= -1e-12
    assert split.discrimination >= -1e-12


@settings(max_examples=25, deadline=None)
@given(scored())
def test_miscalibration_is_what_the_best_increasing_function_takes_off(rows):
    """The fit at s is the largest, over starts at or below s, of the least mean up to an end at or
    above s.
    """
    s, correct, total = map(np.array, rows)
    s = s.round(3)  # confidences that are equal up to rounding are one

    def mean(start, end):
        inside = (s >= start) & (s <= end)
        return correct[inside].sum() / total[inside].sum()

    fitted = [max(min(mean(a, b) for b in s[s >= each]) for a in s[s <= each]) for each in s]
    weights, mu = total / total.sum(), correct / total
    taken_off = weights @ ((s - mu) ** 2 - (np.array(fitted) - mu) ** 2)
    assert isotonic_split(s, correct, total).miscalibration == pytest.approx(taken_off, abs=1e-12)


def test_isotonic_score_is_the_brier_score_where_totals_are_equal():
    s, correct, total = world(50, 8, power=2)
    for corrected in (False, True):
        expected = capability_brier(s, correct, total, corrected=corrected)
        assert isotonic_split(s, correct, total, corrected=corrected).score == pytest.approx(
            expected
        )


def test_miscalibration_and_discrimination_are_those_of_the_response_target():
    """With the samples written out, each a row of its own: only the uncertainty differs."""
    s, correct, total = EXAMPLE
    samples = [
        (p, z) for p, c, n in zip(s, correct, total, strict=True) for z in [1] * c + [0] * (n - c)
    ]
    response = isotonic_split(*zip(*((p, z, 1) for p, z in samples), strict=True))
    capability = isotonic_split(s, correct, total)
    assert response[1:3] == pytest.approx(capability[1:3])
    rate = sum(correct) / sum(total)
    assert response.uncertainty == pytest.approx(rate * (1 - rate))
    within = sum(c * (n - c) / n for c, n in zip(correct, total, strict=True)) / sum(total)
    assert response.uncertainty - capability.uncertainty == pytest.approx(within)


def test_confidences_that_differ_in_their_last_bit_are_one():
    nearly = np.nextafter(1.0, 0.0)
    expected = isotonic_split([0.0, 1.0, 1.0], [0, 0, 2], 2)
    assert isotonic_split([0.0, 1.0, nearly], [0, 0, 2], 2) == pytest.approx(expected)
    assert Calibrator("isotonic").fit([0.0, 1.0, nearly], [0, 0, 2], 2).predict(
        [1.0, nearly]
    ) == pytest.approx([0.5, 0.5])


def test_isotonic_hand_case():
    # mu_hat 1/2, 0, 1 at rising confidence: the first two pool at 1/4
    split = isotonic_split([0.0, 0.5, 1.0], [1, 0, 2], [2, 2, 2])
    best, flat = (2 / 16 + 0) / 3, (0 + 1 / 4 + 1 / 4) / 3
    assert split == pytest.approx((0.5 / 3, 0.5 / 3 - best, flat - best, flat))


def test_a_constant_has_no_discrimination():
    split = isotonic_split([0.3] * 5, EXAMPLE[1], EXAMPLE[2])
    assert split.discrimination == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize("function", [isotonic_split, binned_ece])
@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (([0.5, 1.5], [1, 1], [2, 2]), "row 1: confidence is 1.5"),
        (([0.5], [0], [0]), "row 0: total is 0, but 1 or more scored samples are needed"),
    ],
)
def test_bad_rows_are_refused(function, rows, message):
    with pytest.raises(InputError, match=message):
        function(*rows)


def test_the_corrected_split_needs_two_samples():
    with pytest.raises(InputError, match="row 0: total is 1, but 2 or more scored"):
        isotonic_split([0.5], [1], [1], corrected=True)


def naive_ece(s, mu, bins):
    found = 0.0
    for low in np.arange(bins) / bins:
        inside = (s >= low) & (s < low + 1 / bins)
        if low + 1 / bins > 1 - 1e-9:
            inside |= s == 1
        found += inside.mean() * abs((mu[inside] - s[inside]).mean() if inside.any() else 0.0)
    return found


def test_binned_error_is_that_of_a_naive_loop():
    rng = np.random.default_rng(0)
    s, correct = rng.random(200), rng.binomial(10, rng.random(200))
    found = binned_ece(s, correct, 10, bins=8, corrected=False)
    assert found == pytest.approx(naive_ece(s, correct / 10, 8))


def test_the_correction_takes_away_what_few_questions_add():
    rng = np.random.default_rng(1)
    plain, corrected, shifted = [], [], []
    for _ in range(100):
        mu = rng.random(100)
        correct = rng.binomial(5, mu)
        plain.append(binned_ece(mu, correct, 5, corrected=False))
        corrected.append(binned_ece(mu, correct, 5))
        shifted.append(binned_ece(mu * 0.7, correct, 5))
    assert np.mean(plain) > 0.04
    assert np.mean(corrected) < 0.65 * np.mean(plain)
    assert np.mean(shifted) == pytest.approx(0.15, abs=0.02)
    assert binned_ece([0.3], [1], 1) == pytest.approx(0.7)
