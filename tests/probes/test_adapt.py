"""Adapting confidences by a few labelled questions: against a search, and at its limits."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, logit

from capcal_lib.errors import InputError
from capcal_lib.probes import adapt, score_few_labels


def test_it_is_the_mean_of_draws_from_the_prior_weighed_by_their_likelihood() -> None:
    s, correct, total = np.array([0.2, 0.6, 0.9]), np.array([0, 4, 5]), np.array([10, 10, 5])
    rng = np.random.default_rng(0)
    level, slope = 3 * rng.normal(size=200_000), rng.random(200_000)
    likelihood = np.ones(200_000)
    for confidence, hits, samples in zip(s, correct, total, strict=True):
        mu = expit(level + slope * logit(confidence))
        weight = 3 / (samples + 2)
        likelihood *= mu ** (weight * hits) * (1 - mu) ** (weight * (samples - hits))
    expected = np.average(expit(level + slope * logit(0.4)), weights=likelihood)
    assert adapt([0.4], s, correct, total)[0] == pytest.approx(expected, abs=0.005)


def test_what_does_not_order_the_labelled_is_given_up_and_what_does_is_kept() -> None:
    s = np.tile([0.1, 0.9], 25)
    correct = np.tile([1, 9], 25)
    low, high = adapt([0.1, 0.9], s, correct, [10] * 50)
    assert high - low > 0.6
    low, high = adapt([0.1, 0.9], s, 10 - correct, [10] * 50)
    assert high - low < 0.15


def test_many_labels_that_agree_move_nothing() -> None:
    s = np.tile(np.linspace(0.1, 0.9, 9), 300)
    np.testing.assert_allclose(adapt(s, s, np.rint(s * 10), [10] * len(s)), s, atol=0.02)


def test_a_shifted_set_is_learnt_from_a_few_questions_and_level_from_five() -> None:
    rng = np.random.default_rng(0)
    s = rng.beta(2, 2, 400)
    mu = expit(0.4 * logit(s) - 1.5)
    correct = rng.binomial(10, mu)
    before = np.mean((s - mu) ** 2)
    for labels, share in ((5, 0.4), (50, 0.1)):
        known = slice(0, labels)
        after = adapt(s[labels:], s[known], correct[known], [10] * labels)
        assert np.mean((after - mu[labels:]) ** 2) < share * before


@given(
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 5)), min_size=1, max_size=30),
    st.lists(st.floats(0, 1), min_size=1, max_size=5),
)
def test_what_is_adapted_stays_a_confidence(rows: list[tuple[float, int]], s: list[float]) -> None:
    labelled, correct = zip(*rows, strict=True)
    adapted = adapt(s, labelled, correct, [5] * len(rows))
    assert ((adapted >= 0) & (adapted <= 1)).all()


def test_series_join_by_question_and_keep_their_index() -> None:
    s = pd.Series([0.2, 0.9], ["x", "y"])
    labelled = pd.Series([0.1, 0.5, 0.8], ["a", "b", "c"])
    correct, total = pd.Series({"c": 5, "a": 1, "b": 2}), pd.Series({"b": 5, "c": 5, "a": 5})
    adapted = adapt(s, labelled, correct, total)
    np.testing.assert_array_equal(adapted, adapt([0.2, 0.9], [0.1, 0.5, 0.8], [1, 2, 5], [5] * 3))
    assert adapted.index.tolist() == ["x", "y"]


def test_bad_input_is_one_clear_line() -> None:
    with pytest.raises(InputError, match="total is 0"):
        adapt([0.5], [0.5], [0], [0])
    with pytest.raises(InputError, match=r"confidence is 1\.5"):
        adapt([1.5], [0.5], [1], [2])


def test_each_way_to_use_labels_is_scored_on_the_questions_without_them() -> None:
    rng = np.random.default_rng(0)
    said = rng.beta(1, 1, 120)
    counts = pd.DataFrame({"correct": rng.binomial(20, said), "total": 20}, index=range(7, 127))
    states = rng.normal(size=(120, 4))
    scores = score_few_labels(counts, states, said, labels=118, samples=20, draws=30)
    assert list(scores)[:3] == ["as it is", "recalibrated", "constant"]
    rows = np.arange(120)
    terms = (said - counts["correct"] / 20) ** 2
    terms -= counts["correct"] / 20 * (1 - counts["correct"] / 20) / 19
    pairs = [(terms.iloc[one] + terms.iloc[other]) / 2 for one in rows for other in rows[:one]]
    assert all(np.isclose(score, pairs, atol=1e-12).any() for score in scores["as it is"])
    again = score_few_labels(counts, states, said, labels=118, samples=20, draws=30)
    pd.testing.assert_frame_equal(again, scores)


def test_states_that_tell_mu_teach_a_new_probe_what_the_other_does_not_know() -> None:
    rng = np.random.default_rng(0)
    states = rng.normal(size=(300, 3))
    mu = expit(3 * states[:, 0])
    counts = pd.DataFrame({"correct": rng.binomial(20, mu), "total": 20})
    scores = score_few_labels(counts, states, rng.random(300), labels=50, draws=10).mean()
    assert scores["trained on the labels"] < scores["constant"] / 2
    assert scores["recalibrated"] > scores["constant"] * 0.9
    known = score_few_labels(counts, np.ones((300, 1)), mu, labels=50, draws=10).mean()
    assert known["started from the probe"] < known["constant"] / 2


def test_more_labels_than_questions_are_refused() -> None:
    counts = pd.DataFrame({"correct": [1] * 5, "total": [2] * 5})
    with pytest.raises(InputError, match="asked for 9"):
        score_few_labels(counts, np.ones((5, 1)), [0.5] * 5, labels=9, samples=2)
