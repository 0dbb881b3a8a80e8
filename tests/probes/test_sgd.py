"""The paper's recipe, against the same recipe in torch."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.model_selection import KFold

from capcal_lib.errors import InputError
from capcal_lib.probes import PaperProbe, sgd

RNG = np.random.default_rng(0)
FEATURES = (RNG.standard_normal((90, 6)) * [1, 2, 0.5, 1, 1, 3] + 1).astype(np.float32)
TOTAL = np.full(90, 10)
CORRECT = RNG.binomial(TOTAL, 1 / (1 + np.exp(-FEATURES @ [1, -0.5, 0, 0.3, 0, 0.2])))
MU = CORRECT / TOTAL


def in_torch(
    train: np.ndarray,
    held_out: np.ndarray,
    *,
    rate: float,
    standardize: bool,
    rng: np.random.Generator,
):  # type: ignore[no-untyped-def]
    """The recipe in torch's own words, with our draws: weights and bias for features as they are
    given.
    """
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    centre, scale = (
        (FEATURES[train].mean(axis=0), FEATURES[train].std(axis=0)) if standardize else (0, 1)
    )
    inputs, held_inputs = (
        torch.tensor((FEATURES[rows] - centre) / scale).float() for rows in (train, held_out)
    )
    target, held_target = (torch.tensor(MU[rows]).float() for rows in (train, held_out))
    layer = torch.nn.Linear(6, 1)
    limit = np.sqrt(6 / 7)
    with torch.no_grad():
        layer.weight[:] = torch.tensor(rng.uniform(-limit, limit, 6)).float()
        layer.bias.zero_()
    optimizer = torch.optim.SGD(layer.parameters(), lr=rate, momentum=0.9, weight_decay=0.01)
    loss = torch.nn.functional.binary_cross_entropy_with_logits
    best, kept = np.inf, (np.zeros(0), 0.0)
    for _ in range(100):
        for batch in torch.tensor(rng.permutation(len(train))).split(32):
            optimizer.zero_grad()
            loss(layer(inputs[batch])[:, 0], target[batch]).backward()
            optimizer.step()
        with torch.no_grad():
            if (score := loss(layer(held_inputs)[:, 0], held_target).item()) < best:
                best, kept = score, (layer.weight[0].double().numpy().copy(), layer.bias.item())
    weights = kept[0] / scale
    return weights, float(kept[1] - np.sum(centre * weights))


def sigmoid(logits: np.ndarray) -> np.ndarray:
    return np.asarray(1 / (1 + np.exp(-logits)))


def test_it_is_torch_sgd_step_by_step() -> None:
    """Two runs of the first splits, raw and standardised; the one with the smaller squared error on
    its fifth is taken.
    """
    probe = PaperProbe(rates=[5e-3], seed=3).fit(FEATURES, CORRECT, TOTAL)
    splits = [*KFold(5, shuffle=True, random_state=3).split(MU)]
    for split, (train, held_out) in enumerate(splits[:2]):
        rng = np.random.default_rng([3, split])
        found = [
            in_torch(train, held_out, rate=5e-3, standardize=flag, rng=rng)
            for flag in (False, True)
        ]
        predicted = [sigmoid(FEATURES[held_out] @ weights + bias) for weights, bias in found]
        best = int(np.argmin([np.mean((each - MU[held_out]) ** 2) for each in predicted]))
        np.testing.assert_allclose(probe.probes_[split].coef_, found[best][0], atol=1e-4)
        assert probe.probes_[split].intercept_ == pytest.approx(found[best][1], abs=1e-4)
        np.testing.assert_allclose(probe.out_of_fold_[held_out], predicted[best], atol=1e-4)
        np.testing.assert_allclose(
            probe.predict_splits(FEATURES)[split][held_out], probe.out_of_fold_[held_out]
        )
    mean = sum(probe.predict_splits(FEATURES)) / 5
    np.testing.assert_allclose(probe.predict(FEATURES), mean)


def test_the_epoch_that_validates_best_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """With more epochs the score falls, or the probe stays: against labels turned round, more is
    mostly worse.
    """
    others = FEATURES[60:], 1 - MU[60:]
    scores = []
    for epochs in (1, 3, 6, 10, 14, 15):
        monkeypatch.setattr(sgd, "EPOCHS", epochs)
        rng = np.random.default_rng(0)
        [found] = sgd._train(FEATURES[:60], MU[:60], *others, [0.02], False, rng)
        s = expit(FEATURES[60:] @ found["coef"] + found["intercept"])
        scores.append(-np.mean((1 - MU[60:]) * np.log(s) + MU[60:] * np.log(1 - s)))
    assert scores == sorted(scores, reverse=True)
    assert scores[-1] == scores[-2]


def test_the_seed_decides() -> None:
    one, same, other = (
        PaperProbe(seed=seed, rates=[5e-3]).fit(FEATURES, CORRECT, TOTAL).out_of_fold_
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, same)
    assert np.abs(one - other).max() > 1e-3


def test_rates_that_diverge_are_left_out() -> None:
    huge = FEATURES * 1e9  # raw, every rate of the grid diverges
    probe = PaperProbe().fit(huge, CORRECT, TOTAL)
    assert all(each.standardize for each in probe.probes_)
    assert np.mean((probe.out_of_fold_ - MU) ** 2) < np.var(MU)


def test_bad_input_is_one_clear_line() -> None:
    with pytest.raises(InputError, match="minimum of 5 is required"):
        PaperProbe().fit(FEATURES[:4], CORRECT[:4], TOTAL[:4])
    with pytest.raises(InputError, match="features has 60, correct has 90"):
        PaperProbe().fit(FEATURES[:60], CORRECT, TOTAL)


def test_validation_questions_of_their_own_choose_in_place_of_the_fifth_left_out() -> None:
    rng = np.random.default_rng(5)
    features, total = rng.normal(size=(60, 6)), np.full(60, 10)
    correct = rng.binomial(total, 1 / (1 + np.exp(-2 * features[:, 0])))
    own = rng.normal(size=(40, 6))
    # Where the validation questions say the contrary, hardly any learning is best.
    contrary = rng.binomial(10, 1 / (1 + np.exp(2 * own[:, 0])))
    alike = rng.binomial(10, 1 / (1 + np.exp(-2 * own[:, 0])))
    counts = np.full(40, 10)
    rates = sgd.LEARNING_RATES[::4]
    probe, other = (
        PaperProbe(rates=rates).fit(features, correct, total, validation=(own, right, counts))
        for right in (alike, contrary)
    )
    both = probe, other
    for split in range(5):
        errors = [np.mean((each.predict_splits(own)[split] - contrary / 10) ** 2) for each in both]
        assert errors[1] < errors[0], "each is the best by its own"
    folds = KFold(5, shuffle=True, random_state=0).split(features)
    for split, (_, held_out) in enumerate(folds):
        np.testing.assert_array_equal(
            probe.out_of_fold_[held_out], probe.predict_splits(features[held_out])[split]
        )


def test_rates_at_which_every_number_diverges_are_refused() -> None:
    with pytest.raises(InputError, match="at these learning rates; lower them"):
        PaperProbe(rates=[1e30], standardize=[False]).fit(FEATURES, CORRECT, TOTAL)
