import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capcal_lib.errors import InputError
from capcal_lib.metrics.grader import GraderError, corrected_mean, corrected_mu, grader_error
from capcal_lib.metrics.intervals import binomial_interval

Z = 1.959963984540054


def labels(hits: int, right: int, passes: int, wrong: int) -> GraderError:
    """The error of a grader that finds ``hits`` of ``right`` right answers and ``passes`` of
    ``wrong`` wrong ones.
    """
    says = [1] * hits + [0] * (right - hits) + [0] * passes + [1] * (wrong - passes)
    return grader_error(says, [1] * right + [0] * wrong)


def test_independent_labels_are_counted() -> None:
    assert labels(45, 50, 79, 80) == pytest.approx((0.9, 79 / 80, 50, 80))


def naive(mean: float, n: float, error: GraderError) -> tuple[float, float, float]:
    """Rogan and Gladen's estimate with Lang and Reiczigel's limits, as in their paper."""
    se, sp = error.sensitivity, error.specificity
    estimate = (mean + sp - 1) / (se + sp - 1)
    n1, r1, w1 = n + Z**2, error.right + 2, error.wrong + 2
    p1, se1, sp1 = (
        (n * mean + Z**2 / 2) / n1,
        (error.right * se + 1) / r1,
        (error.wrong * sp + 1) / w1,
    )
    pi1 = (p1 + sp1 - 1) / (se1 + sp1 - 1)
    shift = 2 * Z**2 * (pi1 * se1 * (1 - se1) / r1 - (1 - pi1) * sp1 * (1 - sp1) / w1)
    squares = (
        p1 * (1 - p1) / n1 + pi1**2 * se1 * (1 - se1) / r1 + (1 - pi1) ** 2 * sp1 * (1 - sp1) / w1
    )
    half = Z * math.sqrt(squares) / (se1 + sp1 - 1)
    low, high = pi1 + shift - half, pi1 + shift + half
    return tuple(min(1.0, max(0.0, value)) for value in (estimate, low, high))  # type: ignore[return-value]


def test_corrected_mu_is_the_published_formula() -> None:
    error = labels(57, 60, 85, 90)
    correct, total = [0, 3, 19, 50, 97, 100], [100, 20, 100, 100, 100, 100]
    found = corrected_mu(correct, total, error)
    for row, c, n in zip(found, correct, total, strict=True):
        np.testing.assert_allclose(row, naive(c / n, n, error))


def test_a_hand_computed_correction() -> None:
    error = labels(90, 100, 80, 100)  # m = 0.9 mu + 0.2 (1 - mu): 0.48 is mu = 0.4
    assert corrected_mu([48], [100], error)[0, 0] == pytest.approx(0.4)
    assert corrected_mean([48, 48], [100, 100], error).estimate == pytest.approx(0.4)


def test_weights_by_hand() -> None:
    # right answers: weights 30 (found), 10 (missed) -> 0.75 from 1600 / 1000 = 1.6 labels; wrong:
    # 5 and 5 -> 1 from 2
    error = grader_error([1, 0, 0, 0], [1, 1, 0, 0], [30, 10, 5, 5])
    assert error == pytest.approx((0.75, 1, 1.6, 2))
    scaled = grader_error([1, 0, 0, 0], [1, 1, 0, 0], [3, 1, 0.5, 0.5])
    assert error == pytest.approx(scaled)


@settings(max_examples=80, deadline=None)
@given(
    st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))),
    st.integers(10, 300).flatmap(lambda n: st.tuples(st.integers(-(-7 * n // 10), n), st.just(n))),
    st.integers(10, 300).flatmap(lambda n: st.tuples(st.integers(-(-7 * n // 10), n), st.just(n))),
)
def test_limits_hold_the_estimate_and_lie_in_the_unit_interval(
    counts: tuple[int, int], right: tuple[int, int], wrong: tuple[int, int]
) -> None:
    [[estimate, low, high]] = corrected_mu([counts[0]], [counts[1]], labels(*right, *wrong))
    assert 0 <= low <= estimate <= high <= 1


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 99), st.integers(12, 40), st.integers(12, 40))
def test_more_correct_is_more_and_swapping_right_and_wrong_mirrors(
    correct: int, hits: int, passes: int
) -> None:
    error, mirrored = labels(hits, 40, passes, 40), labels(passes, 40, hits, 40)
    if hits + passes <= 42:
        return
    [[low, *_], [high, *_]] = corrected_mu([correct, correct + 1], [100, 100], error)
    assert low <= high
    [[estimate, *limits]] = corrected_mu([correct], [100], error)
    [[other, *swapped]] = corrected_mu([100 - correct], [100], mirrored)
    np.testing.assert_allclose(
        [estimate, *limits], [1 - other, *(1 - value for value in reversed(swapped))], atol=1e-9
    )


def test_many_labels_of_a_perfect_grader_leave_the_agresti_coull_interval() -> None:
    error = labels(10**6, 10**6, 10**6, 10**6)
    [[estimate, low, high]] = corrected_mu([30], [100], error)
    middle, n = (30 + Z**2 / 2) / (100 + Z**2), 100 + Z**2
    half = Z * math.sqrt(middle * (1 - middle) / n)
    np.testing.assert_allclose(
        [estimate, low, high], [0.3, middle - half, middle + half], atol=1e-5
    )


def test_fewer_labels_and_a_worse_grader_widen_the_interval() -> None:
    def width(error: GraderError) -> float:
        return float(np.ptp(corrected_mu([50], [100], error)[0, 1:]))

    assert width(labels(95, 100, 95, 100)) < width(labels(19, 20, 19, 20))
    assert width(labels(95, 100, 95, 100)) < width(labels(80, 100, 80, 100))


def test_a_question_without_a_scored_sample_has_no_estimate() -> None:
    error = labels(45, 50, 45, 50)
    found = corrected_mu([0, 5], [0, 10], error)
    assert np.isnan(found[0]).all()
    assert not np.isnan(found[1]).any()
    both, alone = (
        corrected_mean([0, 5, 6], [0, 10, 10], error),
        corrected_mean([5, 6], [10, 10], error),
    )
    assert both == alone


def test_an_estimate_outside_is_put_at_its_end() -> None:
    error = labels(80, 100, 95, 100)
    below, above = (corrected_mean([c, c], [100, 100], error) for c in (2, 97))
    assert (below.estimate, above.estimate) == (0, 1)


def test_the_mean_is_as_uncertain_as_its_questions() -> None:
    error = labels(10**6, 10**6, 10**6, 10**6)
    alike = corrected_mean([50] * 40, [100] * 40, error)
    apart = corrected_mean([0, 100] * 20, [100] * 40, error)
    assert alike.high - alike.low == pytest.approx(2 * Z * math.sqrt(0.25 / 4000), rel=0.01)
    assert apart.high - apart.low == pytest.approx(2 * Z * math.sqrt(0.25 / 39), rel=0.06)
    pairs = np.repeat(np.arange(20), 2)
    as_alone = corrected_mean([0, 100] * 20, [100] * 40, error, clusters=range(40))
    assert as_alone == pytest.approx(apart)
    together = corrected_mean([0] * 20 + [100] * 20, [100] * 40, error, clusters=pairs)
    as_twenty = corrected_mean([0, 100] * 10, [100] * 20, error)
    assert together == pytest.approx(as_twenty)  # forty questions of twenty subjects, each alike
    one_subject = corrected_mean([0, 100], [100, 100], error, clusters=["s", "s"])
    assert np.isnan([one_subject.low, one_subject.high]).all()
    with pytest.raises(InputError, match="clusters"):
        corrected_mean([0, 100], [100, 100], error, clusters=["s"])
    one = corrected_mean([50], [100], error)
    assert (one.estimate, math.isnan(one.low), math.isnan(one.high)) == (0.5, True, True)
    none = corrected_mean([0] * 40, [100] * 40, error)
    assert (none.estimate, none.low) == (0, 0)
    assert 0.02 < none.high < 0.15


@pytest.mark.parametrize(
    ("mu_shapes", "sensitivity", "specificity", "right", "wrong"),
    [
        ((0.5, 0.5), 0.95, 0.97, 60, 60),
        ((2, 8), 0.9, 0.9, 30, 60),
        ((0.3, 0.7), 0.99, 0.99, 40, 160),
    ],
)
def test_the_interval_of_the_mean_covers(
    mu_shapes: tuple[float, float], sensitivity: float, specificity: float, right: int, wrong: int
) -> None:
    """Over questions, samples, verdicts and labels drawn anew, against the mean of the distribution
    of mu.
    """
    rng, runs, covered = np.random.default_rng(7), 300, 0
    truth = mu_shapes[0] / sum(mu_shapes)
    for _ in range(runs):
        right_samples = rng.binomial(50, rng.beta(*mu_shapes, 150))
        counted = rng.binomial(right_samples, sensitivity) + rng.binomial(
            50 - right_samples, 1 - specificity
        )
        error = labels(
            rng.binomial(right, sensitivity), right, rng.binomial(wrong, specificity), wrong
        )
        found = corrected_mean(counted, [50] * 150, error)
        covered += found.low <= truth <= found.high
    assert 0.92 <= covered / runs <= 0.995


@pytest.mark.parametrize(("mu", "samples"), [(0.02, 100), (0.2, 100), (0.9, 20)])
def test_the_interval_of_one_question_covers_where_one_without_labels_does_not(
    mu: float, samples: int
) -> None:
    rng, runs, covered, ignored = np.random.default_rng(8), 300, 0, 0
    for _ in range(runs):
        counted = rng.binomial(samples, mu * 0.9 + (1 - mu) * 0.08)
        error = labels(rng.binomial(50, 0.9), 50, rng.binomial(50, 0.92), 50)
        [[_, low, high]] = corrected_mu([counted], [samples], error)
        covered += low <= mu <= high
        [[low, high]] = binomial_interval([counted], [samples])
        ignored += low <= mu <= high
    assert covered / runs >= 0.93
    assert ignored < covered


def draw_run(rng: np.random.Generator, questions: int) -> tuple[np.ndarray, np.ndarray]:
    """What is right of 50 samples a question, half of all, and what a grader says that errs by
    question.

    On 6 % of the questions it misses 9 in 10 right answers, on 3 % it calls half the wrong ones
    right."""
    right = rng.random((questions, 50)) < rng.beta(0.6, 0.6, questions)[:, None]
    finds = np.where(rng.random(questions) < 0.06, 0.1, 0.99)[:, None]
    errs = np.where(rng.random(questions) < 0.03, 0.5, 0.005)[:, None]
    return right, rng.random(right.shape) < np.where(right, finds, errs)


def test_labels_of_few_questions_cover_when_clustered_and_not_when_taken_as_independent() -> None:
    rng, runs, covered, ignored = np.random.default_rng(9), 120, 0, 0
    for _ in range(runs):
        right, said = draw_run(rng, 200)
        asked = np.repeat(rng.choice(200, 20, replace=False), 10)  # 200 labels of 20 questions
        sample = np.tile(np.arange(10), 20)
        told = said[asked, sample], right[asked, sample]
        for clusters in (asked, None):
            found = corrected_mean(
                said.sum(axis=1), [50] * 200, grader_error(*told, clusters=clusters)
            )
            inside = found.low <= 0.5 <= found.high
            covered, ignored = (
                (covered + inside, ignored) if clusters is asked else (covered, ignored + inside)
            )
    assert 0.93 <= covered / runs <= 0.98
    assert ignored / runs <= 0.9


def test_the_variance_by_questions_by_hand() -> None:
    # Two questions of five labels, all of one missed: totals of 2.5, against ten labels of 0.5.
    clusters = [0] * 5 + [1] * 5 + [2]
    alike = grader_error([1] * 5 + [0] * 6, [1] * 10 + [0], clusters=clusters)
    assert alike.right == pytest.approx(10 / (2 * 2.5**2 / (10 * 0.5**2)))
    whole = grader_error([1] * 10 + [0], [1] * 10 + [0], clusters=clusters)
    assert whole.right == pytest.approx(2)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3)), min_size=2, max_size=20))
def test_the_order_and_names_of_questions_do_not_matter(labels: list[tuple[bool, int]]) -> None:
    def rate(rows: list[tuple[bool, int]], name: str) -> float:
        clusters = [f"{name}{question}" for _, question in rows]
        return grader_error(
            [hit for hit, _ in rows] + [0], [1] * len(rows) + [0], clusters=[*clusters, "-"]
        ).right

    assert rate(labels, "q") == pytest.approx(rate(labels[::-1], "r"))
    assert rate(labels, "q") <= len(labels) + 1e-9


@pytest.mark.parametrize("said", [[1, 0, 1, 0], [0, 0, 0, 0]])
def test_a_grader_no_better_than_a_coin_is_refused(said: list[int]) -> None:
    error = grader_error(said, [1, 1, 0, 0])
    for call in (corrected_mu, corrected_mean):
        with pytest.raises(
            InputError, match="do not sum to more than 1, so far as the labels tell"
        ):
            call([5, 6], [10, 10], error)


def test_few_labels_may_leave_it_open_whether_a_grader_is_better_than_a_coin() -> None:
    error = labels(
        200, 1000, 1, 1
    )  # 0.2 + 1 > 1, but one label is not evidence for a specificity of 1
    with pytest.raises(InputError, match="do not sum to more than 1"):
        corrected_mu([5], [10], error)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: grader_error([1, 1], [1, 1]), "no wrong answer is labelled"),
        (lambda: grader_error([1, 0], [0, 0]), "no right answer is labelled"),
        (lambda: grader_error([1, 0.5], [1, 0]), "row 1: says_correct is 0.5, but must be 0 or 1"),
        (lambda: grader_error([1, 0, 0], [1, 2, 0]), "row 1: is_correct is 2, but must be 0 or 1"),
        (lambda: grader_error([1, 0], [1, 0, 1]), "equally many rows are needed"),
        (lambda: corrected_mu([3], [2], labels(9, 10, 9, 10)), "row 0: correct is 3"),
        (lambda: corrected_mean([0], [0], labels(9, 10, 9, 10)), "no question has a scored sample"),
    ],
)
def test_faults(call, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=message):
        call()
