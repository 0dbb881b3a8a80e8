"""The paper's recipe for a linear probe, for comparison: stochastic gradient descent, stopped by validation data."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from capcal_lib.errors import InputError, unknown
from capcal_lib.metrics.validation import Floats, as_counts, same_length
from capcal_lib.probes.linear import LOSSES, LinearProbe, Loss, as_features
from capcal_lib.reported import load_reported

LEARNING_RATES = (1e-2, 5e-3, 2e-3, 1e-3, 5e-4, 2e-4, 1e-4, 5e-5, 2e-5, 1e-5, 5e-6, 2e-6, 1e-6)  # the paper's grid
EPOCHS = (100, 200, 500, 1000)
BATCH_SIZES = (32, 64, 128, 256)
MOMENTUM = 0.9  # in the authors' code; the paper does not name it


@dataclass(frozen=True, slots=True)
class Recipe:
    """Hyperparameters of the paper's training; the defaults are its final choices but for the learning rate.

    The rate depends on the model and the data set: `paper_recipe` has the printed ones.
    """

    learning_rate: float
    loss: Loss = "bce"
    epochs: int = 100
    batch_size: int = 32
    weight_decay: float = 1e-2  # on the bias as well, as in the authors' code
    standardize: bool = False

    def __post_init__(self) -> None:
        if not (0 < self.learning_rate < np.inf and self.epochs >= 1 and self.batch_size >= 1):
            raise InputError(f"a recipe needs a learning rate above 0, an epoch and a batch of one or more; got {self}")
        LinearProbe(loss=self.loss, weight_decay=self.weight_decay)  # which refuses what is unknown


Data = tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike]  # features, correct, total


def fit_paper_recipe(recipe: Recipe, data: Data, validation: Data, *, seed: int = 42) -> LinearProbe:
    """Train a probe as the paper's authors do, and keep the epoch that does best on the validation data.

    Shuffled batches, momentum 0.9, a constant learning rate, weights from a Xavier-uniform draw and a bias of zero.
    It stops where the epochs end, not at the optimum: `LinearProbe` solves the same problem to its end, faster.

    Parameters
    ----------
    recipe
        The hyperparameters.
    data, validation
        Features (n_questions, n_features), correct and total (n_questions,), of the training and of other questions.
        Validation questions decide which epoch is kept, so they are no test questions.
    seed
        Decides the first weights and the order of the questions.

    Returns
    -------
    LinearProbe
        Its weights are for features as they are given, standardised or not.

    Raises
    ------
    InputError
        For data that `LinearProbe` would refuse, or a learning rate with which training diverges at once.

    References
    ----------
    The paper, appendix on linear probes. SGD, momentum, decay of the bias, first weights and the choice of the
    epoch: the authors' code.

    Examples
    --------
    >>> data = [[-2.0], [-1.0], [1.0], [2.0]], [1, 3, 7, 9], [10, 10, 10, 10]
    >>> fit_paper_recipe(Recipe(learning_rate=1e-2), data, data).predict([[0.0]]).round(1).tolist()
    [0.5]
    """
    (probe,) = fit_paper_recipes([recipe], data, validation, seed=seed)
    if probe is None:
        rate = recipe.learning_rate
        raise InputError(f"training diverges at learning rate {rate:g}; lower it, or standardize the features")
    return probe


def fit_paper_recipes(
    recipes: Sequence[Recipe], data: Data, validation: Data, *, seed: int = 42
) -> list[LinearProbe | None]:
    """Train one probe a recipe, all in one pass over the data; they may differ in rate, loss and decay only.

    The same probes as one by one: they see the same batches and start from the same weights.

    Returns
    -------
    list of LinearProbe or None
        (n_recipes,); None where training diverges at once.

    Raises
    ------
    InputError
        As `fit_paper_recipe`; for recipes that differ in anything else.
    """
    if len({(one.epochs, one.batch_size, one.standardize) for one in recipes}) != 1:
        raise InputError("recipes of one pass need the same epochs, batch size and standardisation, and one at least")
    first = recipes[0]
    matrix, target = _checked(data)
    held_out, held_target = _checked(validation)
    if matrix.shape[1] != held_out.shape[1]:
        raise InputError(f"training has {matrix.shape[1]} features, but validation has {held_out.shape[1]}")
    centre, scale = np.zeros(matrix.shape[1]), np.ones(matrix.shape[1])
    if first.standardize:
        centre, scale = matrix.mean(axis=0, dtype=np.float64), matrix.std(axis=0, dtype=np.float64) + 1e-8
        matrix, held_out = ((part - centre) / scale for part in (matrix, held_out))
    # A column of ones carries the bias.
    matrix, held_out = (np.column_stack([part, np.ones(len(part))]).astype(np.float32) for part in (matrix, held_out))

    rng = np.random.default_rng(seed)
    rates, decays = (
        np.array([getattr(one, name) for one in recipes], np.float32) for name in ("learning_rate", "weight_decay")
    )
    limit = np.sqrt(6 / matrix.shape[1])  # n_features + 1: the sum of what goes in and out
    start = np.append(rng.uniform(-limit, limit, matrix.shape[1] - 1), 0).astype(np.float32)
    weights = np.repeat(start[:, None], len(recipes), axis=1)
    velocity = np.zeros_like(weights)
    best, lowest = weights.copy(), np.full(len(recipes), np.inf)
    for _ in range(first.epochs):
        order = rng.permutation(len(matrix))
        with np.errstate(over="ignore", invalid="ignore"):  # a rate that is too large ends in numbers that are none
            for begin in range(0, len(order), first.batch_size):
                batch = order[begin : begin + first.batch_size]
                slope = _losses(recipes, matrix[batch] @ weights, target[batch])[1]
                velocity = MOMENTUM * velocity + matrix[batch].T @ slope.astype(np.float32) + decays * weights
                weights = weights - rates * velocity
            score = _losses(recipes, held_out @ weights, held_target)[0]
        better = score < lowest
        best[:, better], lowest[better] = weights[:, better], score[better]
    probes: list[LinearProbe | None] = []
    for one, column, score in zip(recipes, best.T.astype(np.float64), lowest, strict=True):
        if not np.isfinite(score):
            probes.append(None)
            continue
        probe = LinearProbe(loss=one.loss, weight_decay=one.weight_decay, standardize=one.standardize)
        probe.weights = column[:-1] / scale
        probe.bias = float(column[-1] - centre @ probe.weights)
        probes.append(probe)
    return probes


def _checked(data: Data) -> tuple[npt.NDArray[np.floating], Floats]:
    matrix = as_features(data[0])
    hits, samples = as_counts(data[1], data[2], scored=1)
    same_length(features=matrix, correct=hits)
    return matrix, hits / samples


def _losses(recipes: Sequence[Recipe], logits: npt.NDArray[np.float32], target: Floats) -> tuple[Floats, Floats]:
    """Return each recipe's mean loss (n_recipes,) and its gradient in the logits (n_questions, n_recipes)."""
    shares = np.full(len(target), 1 / len(target))
    value, slope = np.empty(len(recipes)), np.empty(logits.shape)
    for loss in {one.loss for one in recipes}:
        of = [place for place, one in enumerate(recipes) if one.loss == loss]
        value[of], slope[:, of] = LOSSES[loss](logits[:, of].astype(np.float64), target[:, None], shares)
    return value, slope


def paper_recipe(model: str, dataset: str) -> Recipe:
    """Return the hyperparameters with which the paper trains its probe of a model on a data set's training split.

    Raises
    ------
    InputError
        For a model, or a data set, without a probe in the paper.

    Examples
    --------
    >>> paper_recipe("gpt-oss-20b", "gsm8k")
    Recipe(learning_rate=0.0005, loss='bce', epochs=100, batch_size=32, weight_decay=0.01, standardize=True)
    """
    table = load_reported("hyperparameters")
    rates = table[table["method"] == "learning rate"]
    for what, name, column in (("model", model, "model"), ("data set", dataset, "dataset")):
        if name not in set(rates[column]):
            raise unknown(f"{what} with a probe in the paper", name, set(rates[column]))
    value = table[table["model"] == model].set_index(["method", "dataset"])["value"]
    return Recipe(
        learning_rate=float(value["learning rate", dataset]),
        epochs=int(value["epochs", ""]),
        batch_size=int(value["batch size", ""]),
        weight_decay=float(value["weight decay", ""]),
        standardize=bool(value["feature standardization", ""]),
    )
