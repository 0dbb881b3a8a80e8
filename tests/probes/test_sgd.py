"""The paper's recipe, against the same recipe in torch."""

import numpy as np
import pytest

from capcal_lib.errors import InputError
from capcal_lib.probes import LinearProbe
from capcal_lib.probes.sgd import Recipe, fit_paper_recipe, fit_paper_recipes, paper_recipe

RNG = np.random.default_rng(0)
FEATURES = RNG.standard_normal((90, 6)).astype(np.float32) * [1, 2, 0.5, 1, 1, 3] + 1
TOTAL = np.full(90, 10)
CORRECT = RNG.binomial(TOTAL, 1 / (1 + np.exp(-FEATURES @ [1, -0.5, 0, 0.3, 0, 0.2])))
TRAIN = (FEATURES[:60], CORRECT[:60], TOTAL[:60])
VALIDATION = (FEATURES[60:], CORRECT[60:], TOTAL[60:])


def in_torch(recipe: Recipe, seed: int) -> tuple[np.ndarray, float]:
    """The recipe in torch's own words, with our draws."""
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    rng = np.random.default_rng(seed)
    centre, scale = (TRAIN[0].mean(axis=0), TRAIN[0].std(axis=0)) if recipe.standardize else (0, 1)
    inputs, held_out = (torch.tensor((part[0] - centre) / scale).float() for part in (TRAIN, VALIDATION))
    target, held_target = (torch.tensor(part[1] / part[2]).float() for part in (TRAIN, VALIDATION))
    layer = torch.nn.Linear(6, 1)
    limit = np.sqrt(6 / 7)
    with torch.no_grad():
        layer.weight[:] = torch.tensor(rng.uniform(-limit, limit, 6)).float()
        layer.bias.zero_()
    options = {"lr": recipe.learning_rate, "momentum": 0.9, "weight_decay": recipe.weight_decay}
    optimizer = torch.optim.SGD(layer.parameters(), **options)
    bce, mse = torch.nn.functional.binary_cross_entropy_with_logits, torch.nn.functional.mse_loss

    def loss(x, y):  # type: ignore[no-untyped-def]
        logits = layer(x)[:, 0]
        return bce(logits, y) if recipe.loss == "bce" else mse(logits.sigmoid(), y)

    best, kept = np.inf, (np.zeros(0), 0.0)
    for _ in range(recipe.epochs):
        for batch in torch.tensor(rng.permutation(60)).split(recipe.batch_size):
            optimizer.zero_grad()
            loss(inputs[batch], target[batch]).backward()
            optimizer.step()
        with torch.no_grad():
            if (score := loss(held_out, held_target).item()) < best:
                best, kept = score, (layer.weight[0].double().numpy().copy(), layer.bias.item())
    weights = kept[0] / scale
    return weights, float(kept[1] - np.sum(centre * weights))


@pytest.mark.parametrize("loss", ["bce", "mse"])
@pytest.mark.parametrize("standardize", [False, True])
def test_it_is_torch_sgd_step_by_step(loss: str, standardize: bool) -> None:
    recipe = Recipe(0.02, loss=loss, epochs=7, batch_size=16, weight_decay=0.05, standardize=standardize)  # type: ignore[arg-type]
    probe = fit_paper_recipe(recipe, TRAIN, VALIDATION, seed=3)
    weights, bias = in_torch(recipe, 3)
    np.testing.assert_allclose(probe.weights, weights, atol=1e-5)
    assert probe.bias == pytest.approx(bias, abs=1e-5)


def test_many_recipes_in_one_pass_are_the_same_as_one_by_one() -> None:
    recipes = [Recipe(0.01), Recipe(1e-3, loss="mse"), Recipe(0.1, weight_decay=0.1)]
    together = fit_paper_recipes(recipes, TRAIN, VALIDATION, seed=1)
    for recipe, probe in zip(recipes, together, strict=True):
        assert probe is not None
        alone = fit_paper_recipe(recipe, TRAIN, VALIDATION, seed=1)
        np.testing.assert_allclose(probe.predict(FEATURES), alone.predict(FEATURES), atol=1e-5)


def test_given_time_it_comes_near_the_optimum() -> None:
    recipe = Recipe(0.05, epochs=1000, weight_decay=0.01)
    trained = fit_paper_recipe(recipe, TRAIN, TRAIN).predict(FEATURES)
    np.testing.assert_allclose(trained, LinearProbe(weight_decay=0.01).fit(*TRAIN).predict(FEATURES), atol=0.03)


def test_the_epoch_that_validates_best_is_kept() -> None:
    """With more epochs the score falls, or the probe stays: against labels turned round, more is mostly worse."""
    features, target = VALIDATION[0], 1 - CORRECT[60:] / TOTAL[60:]
    turned = (features, TOTAL[60:] - CORRECT[60:], TOTAL[60:])
    probes = [fit_paper_recipe(Recipe(0.02, epochs=epochs), TRAIN, turned) for epochs in range(1, 16)]
    predictions = [probe.predict(features) for probe in probes]
    scores = [-np.mean(target * np.log(s) + (1 - target) * np.log(1 - s)) for s in predictions]
    assert scores == sorted(scores, reverse=True)
    assert scores[-1] == scores[-2]
    assert (
        np.abs(fit_paper_recipe(Recipe(0.02, epochs=15), TRAIN, VALIDATION).weights - probes[-1].weights).max() > 0.01
    )


def test_the_seed_decides() -> None:
    one, same, other = (fit_paper_recipe(Recipe(1e-3), TRAIN, VALIDATION, seed=seed).weights for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert np.abs(one - other).max() > 1e-3


def test_what_diverges_says_so() -> None:
    data = (FEATURES * 1e18, *TRAIN[1:])[0][:60], CORRECT[:60], TOTAL[:60]
    huge = Recipe(1e10)
    with pytest.raises(InputError, match=r"training diverges at learning rate 1e\+10; lower it"):
        fit_paper_recipe(huge, data, data)
    assert fit_paper_recipes([huge], data, data) == [None]


def test_bad_recipes_are_refused() -> None:
    for bad in ({"learning_rate": 0}, {"learning_rate": 0.1, "epochs": 0}, {"learning_rate": 0.1, "batch_size": 0}):
        with pytest.raises(InputError, match="a recipe needs a learning rate above 0"):
            Recipe(**bad)
    with pytest.raises(InputError, match="unknown loss 'hinge'"):
        Recipe(0.1, loss="hinge")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="recipes of one pass need the same epochs"):
        fit_paper_recipes([Recipe(0.1), Recipe(0.1, epochs=3)], TRAIN, VALIDATION)
    with pytest.raises(InputError, match="training has 6 features, but validation has 5"):
        fit_paper_recipe(Recipe(0.1), TRAIN, (FEATURES[:, :5], CORRECT, TOTAL))
    with pytest.raises(InputError, match="features has 60, correct has 90"):
        fit_paper_recipe(Recipe(0.1), (FEATURES[:60], CORRECT, TOTAL), VALIDATION)


def test_the_printed_hyperparameters() -> None:
    assert paper_recipe("olmo-3-7b-instruct", "math500") == Recipe(5e-3)
    assert paper_recipe("qwen3-8b", "triviaqa") == Recipe(2e-4)
    for model, dataset in (("smollm2-135m", "gsm8k"), ("qwen3-8b", "mmlu")):
        with pytest.raises(InputError, match=r"unknown (model|data set) with a probe in the paper"):
            paper_recipe(model, dataset)
