"""The linear probe: its optimum, its invariances and its faults."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capcal_lib.errors import InputError
from capcal_lib.manifests import load_model
from capcal_lib.probes import LinearProbe, linear
from capcal_lib.probes.features import extract_features
from capcal_lib.questions import Answer, Question
from capcal_lib.questions.prompts import ask_for_answer, load_prompts
from capcal_lib.sampling.engines import Engine, Request


def sigmoid(logits):
    return 1 / (1 + np.exp(-logits))


def draw(n, d, *, k=20, seed=0, offset=0.0):
    """Features of unequal size and their counts, from a known linear model."""
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((n, d)) * rng.uniform(0.2, 5, d) + offset
    weights = rng.standard_normal(d) / features.std(axis=0) / np.sqrt(d)
    total = rng.integers(1, k + 1, n)
    return features, rng.binomial(total, sigmoid((features - offset) @ weights + 0.3)), total


def objective(probe, features, correct, total, weights, bias):
    """The paper's objective, written down anew."""
    mu, predicted = correct / total, sigmoid(features @ weights + bias)
    if probe.loss == "bce":
        loss = np.mean(-mu * np.log(predicted) - (1 - mu) * np.log(1 - predicted))
    else:
        loss = np.mean((predicted - mu) ** 2)
    penalised = weights * features.std(axis=0) if probe.standardize else weights
    return loss + probe.weight_decay / 2 * np.sum(penalised**2)


@pytest.mark.parametrize("loss", ["bce", "mse"])
@pytest.mark.parametrize(("shape", "standardize"), [((15, 40), False), ((100, 10), True)])
def test_the_gradient_vanishes_at_the_optimum(loss, standardize, shape):
    data = draw(*shape)
    probe = LinearProbe(loss=loss, standardize=standardize).fit(*data)
    point = np.append(probe.coef_, probe.intercept_)
    for axis in np.eye(len(point)) * 1e-4:
        above, below = (
            objective(probe, *data, p[:-1], p[-1]) for p in (point + axis, point - axis)
        )
        assert abs(above - below) / 2e-4 < 2e-5


def test_it_equals_logistic_regression_on_single_samples():
    from sklearn.linear_model import LogisticRegression

    features, correct, total = draw(80, 4)
    decay = 0.03
    probe = LinearProbe(weight_decay=decay).fit(features, correct, total)
    # Each question once as right and once as wrong, weighted by their shares: every question weighs
    # 1.
    both, labels = np.vstack([features, features]), np.repeat([1, 0], len(total))
    weights = np.concatenate([correct / total, 1 - correct / total])
    theirs = LogisticRegression(C=1 / (len(total) * decay), tol=1e-10, max_iter=10_000)
    theirs.fit(both, labels, sample_weight=weights)
    np.testing.assert_allclose(probe.coef_, theirs.coef_[0], atol=2e-5)
    np.testing.assert_allclose(
        probe.predict(features), theirs.predict_proba(features)[:, 1], atol=1e-5
    )


def test_every_question_weighs_the_same_whatever_its_total():
    features = [[0.0], [0.0], [1.0], [1.0]]
    few = LinearProbe().fit(features, [0, 1, 1, 2], [2, 2, 2, 2])
    many = LinearProbe().fit(features, [0, 500, 1, 2], [2, 1000, 2, 2])
    assert few.predict(features).tolist() == many.predict(features).tolist()


def test_without_features_that_tell_anything_it_predicts_the_mean():
    probe = LinearProbe().fit(np.ones((4, 3)), [1, 2, 3, 4], [4, 4, 4, 4])
    assert probe.coef_.tolist() == [0, 0, 0]
    np.testing.assert_allclose(probe.predict([[1.0, 5.0, -3.0]]), 0.625, atol=1e-6)


@pytest.mark.parametrize(("questions", "precision"), [(3, np.float64), (129, np.float32)])
def test_a_constant_feature_has_no_weight_however_its_mean_is_rounded(questions, precision):
    rng = np.random.default_rng(0)
    values = rng.standard_normal(300) * 10.0 ** rng.uniform(-8, 8, 300)
    features = np.tile(values, (questions, 1)).astype(precision)
    features[:, 0] = rng.standard_normal(questions)
    probe = LinearProbe(weight_decay=0.1).fit(
        features, rng.integers(0, 10, questions), np.full(questions, 9)
    )
    assert probe.coef_[0] != 0
    assert not probe.coef_[1:].any()


def test_the_bias_is_not_penalised():
    probe = LinearProbe(weight_decay=1e6).fit(*draw(50, 3)[:1], np.full(50, 9), np.full(50, 10))
    np.testing.assert_allclose(probe.predict(np.zeros((1, 3))), 0.9, atol=1e-5)


def test_the_order_of_the_questions_does_not_matter():
    features, correct, total = draw(60, 8)
    order = np.random.default_rng(1).permutation(60)
    ours = LinearProbe().fit(features, correct, total).predict(features)
    permuted = LinearProbe().fit(features[order], correct[order], total[order]).predict(features)
    np.testing.assert_allclose(ours, permuted, atol=1e-5)


def test_shifting_the_features_changes_only_the_bias():
    features, correct, total = draw(60, 4)
    probe, shifted = (
        LinearProbe().fit(features, correct, total),
        LinearProbe().fit(features + 100, correct, total),
    )
    np.testing.assert_allclose(probe.coef_, shifted.coef_, atol=1e-6)
    assert shifted.intercept_ == pytest.approx(probe.intercept_ - 100 * probe.coef_.sum(), abs=1e-4)


def test_standardising_is_fitting_to_standardised_features_of_the_training_set():
    features, correct, total = draw(60, 4, offset=3.0)
    new = draw(20, 4, seed=1)[0]
    mean, deviation = features.mean(axis=0), features.std(axis=0)
    by_hand = (
        LinearProbe()
        .fit((features - mean) / deviation, correct, total)
        .predict((new - mean) / deviation)
    )
    ours = LinearProbe(standardize=True).fit(features, correct, total)
    np.testing.assert_allclose(ours.predict(new), by_hand, atol=1e-5)
    assert np.abs(LinearProbe().fit(features, correct, total).predict(new) - by_hand).max() > 1e-3


@settings(max_examples=25)
@given(st.data())
def test_any_shape_gives_finite_predictions(data):
    n, d = data.draw(st.integers(1, 12)), data.draw(st.integers(1, 12))
    finite = st.floats(-1e6, 1e6, width=32)
    features = np.array(
        data.draw(st.lists(st.lists(finite, min_size=d, max_size=d), min_size=n, max_size=n))
    )
    total = np.array(data.draw(st.lists(st.integers(1, 9), min_size=n, max_size=n)))
    correct = np.array([data.draw(st.integers(0, int(k))) for k in total])
    probe = LinearProbe(
        loss=data.draw(st.sampled_from(["bce", "mse"])),
        weight_decay=data.draw(st.sampled_from([1e-3, 1e-2, 1.0])),
        standardize=data.draw(st.booleans()),
    )
    dtype = data.draw(st.sampled_from([np.float32, np.float64]))
    predicted = probe.fit(features.astype(dtype), correct, total).predict(features)
    assert predicted.shape == (n,)
    assert np.all((predicted >= 0) & (predicted <= 1))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"features": np.zeros(3)}, r"shape \(n_questions, n_features\): Expected 2D array"),
        ({"features": [["a"], ["b"], ["c"]]}, "could not convert string to float"),
        ({"features": [[1.0, 2], [1, np.nan], [1, 2]]}, "contains NaN"),
        ({"features": np.zeros((4, 2))}, "features has 4, correct has 3"),
        ({"correct": [1, 3, 1]}, "row 1: correct is 3, more than its total"),
        ({"total": [2, 2, 0], "correct": [1, 1, 0]}, "row 2: total is 0"),
    ],
)
def test_bad_input_is_refused(changes, message):
    good = {"features": [[1.0, 2], [2, 1], [0, 0]], "correct": [0, 1, 2], "total": [2, 2, 2]}
    with pytest.raises(InputError, match=message):
        LinearProbe().fit(**(good | changes))


def test_bad_settings_are_refused():
    with pytest.raises(InputError, match="unknown loss 'hinge'; known: bce, mse"):
        LinearProbe(loss="hinge")
    for decay in (-1, np.nan, np.inf, "0.1"):
        with pytest.raises(InputError, match="weight_decay must be a number of at least 0"):
            LinearProbe(weight_decay=decay)


def test_prediction_needs_a_fit_and_the_same_features():
    with pytest.raises(InputError, match="not fitted"):
        LinearProbe().predict([[1.0]])
    probe = LinearProbe().fit([[1.0, 2], [2, 1]], [0, 1], [2, 2])
    with pytest.raises(InputError, match="fitted to 2 features; got 3"):
        probe.predict([[1.0, 2, 3]])
    with pytest.raises(InputError, match="contains NaN"):
        probe.predict([[1.0, np.nan]])


def test_stopping_short_of_the_optimum_is_not_silent(monkeypatch):
    monkeypatch.setitem(linear.OPTIONS, "maxiter", 1)
    with pytest.raises(InputError, match="did not converge"):
        LinearProbe(weight_decay=0).fit(*draw(200, 10))


class LengthEngine:
    """An engine whose hidden state is made of the lengths of what it is asked."""

    family = "length"

    def hidden_states(self, requests: list[Request]) -> np.ndarray:
        self.requests = requests
        return np.array([[len(r.question.text), len(r.messages)] for r in requests])


QUESTIONS = [Question(str(i), "?" * i, Answer("short", "yes")) for i in range(1, 4)]


def test_features_are_read_at_the_answer_prompt_in_the_order_of_the_questions():
    engine: Engine = LengthEngine()
    model = load_model("simulated")
    features = extract_features(engine, model, QUESTIONS[::-1])
    assert features.dtype == np.float32
    assert features[:, 0].tolist() == [3, 2, 1]
    assert [r.messages for r in engine.requests] == [
        ask_for_answer(q, load_prompts(model.prompt_style)) for q in QUESTIONS[::-1]
    ]
