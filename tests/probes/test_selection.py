"""Choosing a probe: what is compared, and that nobody judges on what decided."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from capcal_lib.book import figures
from capcal_lib.errors import InputError
from capcal_lib.metrics import capability_brier
from capcal_lib.probes import LinearProbe, selection
from capcal_lib.probes.selection import Setting, fit_setting, paper_grid, pool, select_probe
from capcal_lib.probes.sgd import LEARNING_RATES

N = 60
RNG = np.random.default_rng(0)
STATES = RNG.normal(size=(N, 4, 9)).astype(np.float32) * RNG.uniform(0.3, 3, 9).astype(np.float32)
TOTAL = RNG.integers(2, 30, N)
MU = 1 / (1 + np.exp(-2 * STATES[:, 2, 0] - STATES[:, 2, 1] + 0.5))
CORRECT = RNG.binomial(TOTAL, MU)
FEW = [Setting(states=name) for name in ("0", "2", "mean")]


def test_the_grid_of_the_paper() -> None:
    grid = paper_grid(31)
    assert len(set(grid)) == len(grid) == (31 + 3) * 2 * 3 * 2 + 13 * 2 + 3
    assert {one.learning_rate for one in grid if one.kind == "sgd"} == set(LEARNING_RATES)
    assert {one.states for one in paper_grid(1)} == {"mean"}


def test_states_become_features() -> None:
    np.testing.assert_allclose(pool(STATES, "mean"), STATES.sum(axis=1) / 4, rtol=1e-5)
    assert pool(STATES, "max")[3, 5] == max(STATES[3, layer, 5] for layer in range(4))
    assert pool(STATES, "all").shape == (N, 36)
    np.testing.assert_array_equal(pool(STATES, "3"), STATES[:, 3])
    for name in ("4", "-1", "last", ""):
        with pytest.raises(InputError, match="known: mean, max, all, or a number from 0 to 3"):
            pool(STATES, name)


@pytest.mark.parametrize("loss", ["bce", "binomial", "mse"])
@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("states", ["2", "all"])  # fewer features than questions, and more
def test_shared_work_gives_the_probes_one_by_one(loss, standardize, states) -> None:  # type: ignore[no-untyped-def]
    settings = [Setting("linear", states, loss, decay, standardize) for decay in (1e-3, 1e-1, 1e-2)]
    train, test = np.arange(25), np.arange(25, N)
    ours = selection._predictions(settings, STATES, CORRECT, TOTAL, train, test, 0)
    for setting, predicted in zip(settings, ours, strict=True):
        probe = LinearProbe(loss=loss, weight_decay=setting.weight_decay, standardize=standardize)
        probe.fit(pool(STATES[train], states), CORRECT[train], TOTAL[train])
        np.testing.assert_allclose(predicted, probe.predict(pool(STATES[test], states)), atol=1e-2)


def test_large_problems_are_handed_to_the_linear_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.arange(N)
    small = selection._predictions(FEW, STATES, CORRECT, TOTAL, rows[:40], rows[40:], 0)
    monkeypatch.setattr(selection, "REDUCED", 3)
    large = selection._predictions(FEW, STATES, CORRECT, TOTAL, rows[:40], rows[40:], 0)
    np.testing.assert_allclose(small, large, atol=2e-3)


def test_nested_cross_validation_equals_a_naive_one() -> None:
    """Written down anew with scikit-learn; a row's prediction comes from models that never saw the row."""

    def brier(s, rows):  # type: ignore[no-untyped-def]
        return capability_brier(s, CORRECT[rows], TOTAL[rows], corrected=True)

    def fit(setting, train, test):  # type: ignore[no-untyped-def]
        x, mu = pool(STATES, setting.states), CORRECT[train] / TOTAL[train]
        model = LogisticRegression(C=1 / (len(train) * setting.weight_decay), tol=1e-9, max_iter=10_000)
        labels = np.repeat([1, 0], len(train))
        model.fit(np.vstack([x[train]] * 2), labels, np.concatenate([mu, 1 - mu]))
        return model.predict_proba(x[test])[:, 1]

    found = select_probe(STATES, CORRECT, TOTAL, settings=FEW, folds=3, seed=5)
    rng = np.random.default_rng(5)
    nested, outer = np.full(N, np.nan), np.full((3, N), np.nan)
    for test in map(np.sort, np.array_split(rng.permutation(np.arange(N)), 3)):
        train = np.setdiff1d(np.arange(N), test)
        inner = np.full((3, N), np.nan)
        for part in map(np.sort, np.array_split(rng.permutation(train), 2)):
            for row, setting in enumerate(FEW):
                inner[row, part] = fit(setting, np.setdiff1d(train, part), part)
        for row, setting in enumerate(FEW):
            outer[row, test] = fit(setting, train, test)
        nested[test] = outer[np.argmin([brier(inner[row, train], train) for row in range(3)]), test]
    np.testing.assert_allclose(found.confidence, nested, atol=2e-3)
    assert found.score is not None
    assert found.score.estimate == pytest.approx(brier(nested, np.arange(N)), abs=1e-3)
    assert found.score.low < found.score.estimate < found.score.high
    everything = np.arange(N)
    np.testing.assert_allclose(found.table["brier"], [brier(row, everything) for row in outer], atol=1e-3)
    assert found.corrected
    assert found.chosen == FEW[1]
    assert found.table["chosen"].tolist() == [False, True, False]
    assert ((found.table["low"] < found.table["brier"]) & (found.table["brier"] < found.table["high"])).all()
    # With one setting for each kind of states, there is nothing to choose within them.
    assert found.states["states"].tolist() == ["0", "2", "mean"]
    np.testing.assert_allclose(found.states["brier"], found.table["brier"], rtol=1e-9)


def test_noise_is_not_worth_more_than_it_is() -> None:
    """Among many settings the best looks better than it is; the nested score does not."""
    rng = np.random.default_rng(3)
    noise = rng.normal(size=(80, 12, 5))
    total = np.full(80, 20)
    correct = rng.binomial(total, rng.beta(2, 2, 80))
    found = select_probe(noise, correct, total, settings=[Setting(states=str(layer)) for layer in range(12)])
    constant = capability_brier(np.full(80, (correct / total).mean()), correct, total, corrected=True)
    assert found.table["brier"].min() < found.score.estimate  # type: ignore[union-attr]
    assert found.score.estimate > constant  # type: ignore[union-attr]


def test_a_validation_split_decides_alone() -> None:
    validation = np.arange(N) >= 40
    found = select_probe(STATES, CORRECT, TOTAL, settings=FEW, validation=validation)
    for setting, brier in zip(FEW, found.table["brier"], strict=True):
        probe = LinearProbe().fit(pool(STATES[:40], setting.states), CORRECT[:40], TOTAL[:40])
        predicted = probe.predict(pool(STATES[40:], setting.states))
        assert brier == pytest.approx(capability_brier(predicted, CORRECT[40:], TOTAL[40:], corrected=True), abs=1e-3)
    assert found.score is None
    assert found.states.empty
    assert np.isnan(found.confidence).all()


def test_every_kind_of_probe_is_compared_in_one_call() -> None:
    settings = [*FEW, *(one for one in paper_grid(4) if one.kind != "linear")]
    found = select_probe(STATES, CORRECT, TOTAL, settings=settings, folds=3)
    assert set(found.table["kind"]) == {"linear", "sgd", "mlp"}
    assert found.table["brier"].notna().all()
    assert found.table["brier"].between(-0.1, 0.4).all()
    for setting in (settings[1], settings[3], settings[-1]):
        predicted = fit_setting(setting, STATES[:40], CORRECT[:40], TOTAL[:40])(STATES[40:])
        assert predicted.shape == (20,)
        assert ((predicted >= 0) & (predicted <= 1)).all()


def test_a_rate_that_diverges_is_never_chosen() -> None:
    settings = [Setting("sgd", learning_rate=1e12), Setting("sgd", learning_rate=1e-2)]
    found = select_probe(STATES * 1e16, CORRECT, TOTAL, settings=[*settings, Setting(standardize=True)], folds=3)
    assert found.table["brier"].isna()[0]
    assert found.chosen == Setting(standardize=True)


def test_a_fitted_setting_is_the_linear_probe() -> None:
    predict = fit_setting(Setting(states="2"), STATES, CORRECT, TOTAL)
    probe = LinearProbe().fit(STATES[:, 2], CORRECT, TOTAL)
    np.testing.assert_allclose(predict(STATES), probe.predict(STATES[:, 2]), atol=1e-3)


def test_the_seed_decides_the_folds() -> None:
    one, same, other = (select_probe(STATES, CORRECT, TOTAL, settings=FEW, seed=seed) for seed in (0, 0, 1))
    assert one.table.equals(same.table)
    assert not one.table.equals(other.table)


def test_single_samples_are_scored_without_correction() -> None:
    found = select_probe(STATES, CORRECT > 3, np.ones(N, int), settings=FEW)
    assert not found.corrected
    assert (found.table["brier"] > 0).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"settings": [Setting(states="9")]}, "unknown states '9'"),
        ({"settings": []}, "settings are empty"),
        ({"settings": [Setting("sgd")]}, "learning rate above 0"),
        ({"folds": 2}, "folds must be a whole number from 3"),
        ({"folds": 40}, "40 folds need 80 questions; got 60"),
        ({"correct": CORRECT[:5], "total": TOTAL[:5]}, "features have 60 rows, but there are counts of 5 questions"),
        ({"features": STATES[0, 0]}, r"features are of shape .* got \(9,\)"),
        ({"validation": np.zeros(N, bool)}, "validation is one bool a question, some of them True"),
        ({"validation": np.arange(N)}, "validation is one bool a question"),
    ],
)
def test_bad_input_is_refused(changes, message) -> None:  # type: ignore[no-untyped-def]
    good = {"features": STATES, "correct": CORRECT, "total": TOTAL, "settings": FEW}
    with pytest.raises(InputError, match=message):
        select_probe(**(good | changes))


def test_the_figure_shows_every_layer_and_pooling() -> None:
    settings = [Setting(states=name) for name in ("mean", "all", *"0123")]
    table = select_probe(STATES, CORRECT, TOTAL, settings=settings, folds=3).states.assign(evidence="simulated")
    (axes,) = figures.layers(table).axes
    np.testing.assert_array_equal(axes.lines[0].get_xdata(), range(4))
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), table["brier"][2:])
    assert [line.get_label() for line in axes.lines] == ["one layer", "mean of the layers", "all side by side"]
    assert figures.layers(table).get_suptitle() == "simulated"
    assert figures.layers(table[:0]).axes[0].texts
