"""The tuned linear probe, against a search that is spelt out."""

import numpy as np
import pytest
from sklearn.model_selection import KFold

from capcal_lib.errors import InputError
from capcal_lib.probes import LinearProbe, TunedProbe
from capcal_lib.probes.tuned import DECAYS


def draw(questions: int, features: int, *, signal: float = 2.0, seed: int = 0):  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(seed)
    matrix = (
        rng.normal(size=(questions, features)) * rng.uniform(0.1, 20, features)
        + rng.normal(size=features) * 9
    )
    mu = 1 / (1 + np.exp(-signal * (matrix[:, 0] - matrix[:, 0].mean()) / matrix[:, 0].std()))
    return matrix, rng.binomial(10, mu), np.full(questions, 10)


@pytest.mark.parametrize("shape", [(60, 5), (40, 130)])
def test_it_is_a_grid_search_with_linear_probes(shape: tuple[int, int]) -> None:
    features, correct, total = draw(*shape)
    features[:, 1] = 7.5  # a feature that is constant
    left_out = np.empty((len(DECAYS), len(total)))
    for others, fold in KFold(5, shuffle=True, random_state=4).split(features):
        for row, decay in enumerate(DECAYS):
            probe = LinearProbe(weight_decay=decay, standardize=True).fit(
                features[others], correct[others], total[others]
            )
            left_out[row, fold] = probe.predict(features[fold])
    errors = np.mean((left_out - correct / total) ** 2, axis=1)
    found = TunedProbe(seed=4).fit(features, correct, total)
    assert found.weight_decay_ == DECAYS[int(errors.argmin())]
    np.testing.assert_allclose(found.out_of_fold_, left_out[int(errors.argmin())], atol=2e-3)
    same = LinearProbe(weight_decay=found.weight_decay_, standardize=True).fit(
        features, correct, total
    )
    np.testing.assert_array_equal(found.predict(features), same.predict(features))


def test_noise_is_shrunk_to_the_mean_and_a_signal_is_not() -> None:
    features, _, total = draw(100, 60)
    noise = TunedProbe().fit(features, np.random.default_rng(1).binomial(10, 0.3, 100), total)
    assert noise.predict(features).std() < 0.03
    told = draw(1_000, 3)
    assert TunedProbe().fit(*told).weight_decay_ <= 0.03


def test_the_scale_of_a_feature_says_nothing() -> None:
    features, correct, total = draw(50, 80)
    scaled = features * np.geomspace(1e-3, 1e3, 80) - 5
    one, other = (
        TunedProbe().fit(features, correct, total),
        TunedProbe().fit(scaled, correct, total),
    )
    assert one.weight_decay_ == other.weight_decay_
    np.testing.assert_allclose(one.out_of_fold_, other.out_of_fold_, atol=1e-3)


def test_a_left_out_question_has_no_say_in_its_prediction() -> None:
    features, correct, total = draw(40, 60)
    probe = TunedProbe().fit(features, correct, total)
    turned = correct.copy()
    turned[3] = 10 - turned[3]
    again = TunedProbe().fit(features, turned, total)
    assert probe.weight_decay_ == again.weight_decay_
    assert again.out_of_fold_[3] == pytest.approx(probe.out_of_fold_[3], abs=1e-9)
    assert np.abs(again.out_of_fold_ - probe.out_of_fold_).max() > 1e-3


def test_few_and_constant_questions_are_no_fault() -> None:
    probe = TunedProbe().fit([[1.0], [1.0], [1.0]], [1, 2, 3], [4, 4, 4])
    np.testing.assert_allclose(probe.predict([[1.0]]), 0.5, atol=1e-6)
    assert np.isfinite(TunedProbe().fit([[0.0], [1.0]], [0, 4], [4, 4]).out_of_fold_).all()


def test_bad_input_is_one_clear_line() -> None:
    with pytest.raises(InputError, match="minimum of 2 is required"):
        TunedProbe().fit([[1.0]], [1], [2])
    with pytest.raises(InputError, match="features has 2, correct has 3"):
        TunedProbe().fit([[1.0], [2.0]], [1, 1, 1], [2, 2, 2])
    with pytest.raises(InputError, match="contains NaN"):
        TunedProbe().fit([[np.nan], [2.0]], [1, 1], [2, 2])
