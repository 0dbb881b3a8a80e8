"""What every probe shares: its face, a concentration, and learning from one sample a question."""

import numpy as np
import pytest
from sklearn.base import clone

from capcal_lib.applications import fit_concentration, simulate_pass_at_k
from capcal_lib.errors import InputError
from capcal_lib.probes import PaperProbe, Probe, TunedProbe

PROBES = (TunedProbe(), PaperProbe())


def data(samples: int, questions: int = 60) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(questions, 3))
    mu = 1 / (1 + np.exp(-2 * features[:, 0]))
    return features, rng.binomial(samples, mu), np.full(questions, samples)


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: type(probe).__name__)
def test_every_probe_learns_from_one_sample_a_question_but_not_its_concentration(
    probe: Probe,
) -> None:
    features, correct, total = data(1, questions=200)
    assert probe.fit(features, correct, total) is probe
    predicted = probe.predict(features)
    assert np.corrcoef(predicted, features[:, 0])[0, 1] > 0.7
    assert probe.out_of_fold_ is not None
    assert probe.out_of_fold_.shape == (200,)
    assert np.isnan(probe.concentration_)
    with pytest.raises(InputError, match="None takes confidences at their word"):
        simulate_pass_at_k(predicted, [2], concentration=probe.concentration_)


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: type(probe).__name__)
def test_the_concentration_is_that_of_the_counts_around_what_was_left_out(probe: Probe) -> None:
    features, correct, total = data(2)
    probe.fit(features, correct, total)
    assert probe.out_of_fold_ is not None
    expected = fit_concentration(probe.out_of_fold_, correct, total)
    assert probe.concentration_ == expected


def test_single_samples_beside_others_do_not_move_the_concentration() -> None:
    features, correct, total = data(8)
    single = total.copy()
    single[::2] = 1
    probe = TunedProbe().fit(features, np.minimum(correct, single), single)
    assert probe.out_of_fold_ is not None
    some = single > 1
    alone = fit_concentration(probe.out_of_fold_[some], correct[some], single[some])
    assert probe.concentration_ == pytest.approx(alone, rel=1e-3)


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: type(probe).__name__)
def test_a_probe_is_an_estimator_of_scikit_learn(probe: Probe) -> None:
    fresh = type(probe)()
    assert clone(probe).get_params() == probe.get_params() == fresh.get_params()
    assert repr(type(probe)(seed=3)) == f"{type(probe).__name__}(seed=3)"
    with pytest.raises(InputError, match="not fitted; call fit"):
        fresh.predict([[1.0]])
