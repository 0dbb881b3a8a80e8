"""The paper's recipe for a linear probe: stochastic gradient descent with early stopping."""

from __future__ import annotations  # keeps ArrayLike short in help()

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pandas as pd

from capcal_lib.errors import InputError
from capcal_lib.metrics.validation import Floats, check_int
from capcal_lib.probes.linear import LOSSES, LinearProbe, Matrix, training_rows

LEARNING_RATES = (
    1e-2,
    5e-3,
    2e-3,
    1e-3,
    5e-4,
    2e-4,
    1e-4,
    5e-5,
    2e-5,
    1e-5,
    5e-6,
    2e-6,
    1e-6,
)  # the paper's grid
EPOCHS, BATCH_SIZE, WEIGHT_DECAY = 100, 32, 1e-2  # what the paper settled on
MOMENTUM = 0.9  # in the authors' code; the paper does not name it
SPLITS = 5


class PaperProbe:
    """Probes trained by the paper's recipe, each with another fifth of the questions as its
    validation data.

    What the recipe gives depends on its split, so no one split stands for it: show the mean of what
    the five ``probes`` score, with its spread. (The mean of their predictions scores better than
    they do, and is no probe of the paper.) ``out_of_fold``, (n_questions,), is what is predicted
    for each training question by the probe whose weights were not fitted to it; its learning rate
    and its epoch were chosen with it, though. ``search`` has a row a split, a way to take the
    features and a learning rate: ``split``, ``standardize``, ``rate``, and the ``brier`` score on
    the validation questions."""

    def __init__(
        self, probes: tuple[LinearProbe, ...], out_of_fold: Floats, search: pd.DataFrame
    ) -> None:
        self.probes = probes
        self.out_of_fold = out_of_fold
        self.search = search

    def __repr__(self) -> str:
        return f"<PaperProbe, {len(self.probes)} splits of {len(self.out_of_fold)} questions>"

    def predict(self, features: npt.ArrayLike, *, split: int = 0) -> Floats:
        """Predict mu, (n_questions,), by the probe of one of the splits, 0 to 4."""
        check_int("split", split, least=0)
        if split >= len(self.probes):
            raise InputError(f"split is a number from 0 to {len(self.probes) - 1}; got {split}")
        return self.probes[split].predict(features)


def paper_recipe_probe(
    features: npt.ArrayLike, correct: npt.ArrayLike, total: npt.ArrayLike, *, seed: int = 0
) -> PaperProbe:
    """Train a linear probe as the paper does (appendix on linear probes), on five splits of the
    questions.

    Shuffled batches, momentum, a constant learning rate, decay of the bias as well, weights from a
    Xavier-uniform draw and a bias of zero. Of each run of 100 epochs the one with the smallest
    validation loss is kept, and of the runs, one a learning rate with features raw and
    standardised, the one with the smallest capability Brier score on the validation questions.
    Momentum, decay of the bias, first weights and the choice of the epoch are those of the authors'
    code.

    Arguments and errors are those of ``LinearProbe.fit``; it takes five questions. ``seed`` decides
    the splits, the first weights and the order of the questions.

    >>> features = np.linspace(-2, 2, 40)[:, None]
    >>> probe = paper_recipe_probe(features, np.where(features[:, 0] > 0, 8, 2), np.full(40, 10))
    >>> probe.predict([[-2.0], [2.0]]).round(1).tolist()
    [0.1, 0.9]
    """
    from sklearn.model_selection import KFold

    matrix, hits, samples = training_rows(
        features, correct, total, least=SPLITS, needs="the paper's recipe"
    )
    mu, probes, search, out_of_fold = hits / samples, [], [], np.empty(len(matrix))
    for split, (train, held_out) in enumerate(
        KFold(SPLITS, shuffle=True, random_state=seed).split(matrix)
    ):
        rng = np.random.default_rng([seed, split])
        trained = [
            (rate, probe)
            for standardize in (False, True)
            for rate, probe in _train(
                matrix[train],
                mu[train],
                matrix[held_out],
                mu[held_out],
                standardize=standardize,
                rng=rng,
            )
        ]
        predicted = [probe.predict(matrix[held_out]) for _, probe in trained]
        scores = [float(np.mean((each - mu[held_out]) ** 2)) for each in predicted]
        search += [
            (split, probe.standardize, rate, brier)
            for (rate, probe), brier in zip(trained, scores, strict=True)
        ]
        best = int(np.argmin(scores))
        probes.append(trained[best][1])
        out_of_fold[held_out] = predicted[best]
    found = pd.DataFrame(search, columns=["split", "standardize", "rate", "brier"])
    return PaperProbe(tuple(probes), out_of_fold, found)


def _train(
    matrix: Matrix,
    target: Floats,
    held_out: Matrix,
    held_target: Floats,
    *,
    standardize: bool,
    rng: np.random.Generator,
) -> Iterator[tuple[float, LinearProbe]]:
    """Train one probe a learning rate, all on the same batches; leave out those that diverge at
    once.
    """
    centre, scale = np.zeros(matrix.shape[1]), np.ones(matrix.shape[1])
    if standardize:
        centre, scale = (
            matrix.mean(axis=0, dtype=np.float64),
            matrix.std(axis=0, dtype=np.float64) + 1e-8,
        )
    # A column of ones carries the bias.
    inputs, held_inputs = (
        np.column_stack([(part - centre) / scale, np.ones(len(part))]).astype(np.float32)
        for part in (matrix, held_out)
    )
    rates = np.array(LEARNING_RATES, np.float32)
    limit = np.sqrt(6 / inputs.shape[1])  # n_features + 1: the sum of what goes in and out
    start = np.append(rng.uniform(-limit, limit, matrix.shape[1]), 0).astype(np.float32)
    weights = np.repeat(start[:, None], len(rates), axis=1)
    velocity = np.zeros_like(weights)
    best, lowest = weights.copy(), np.full(len(rates), np.inf)
    for _ in range(EPOCHS):
        order = rng.permutation(len(inputs))
        with np.errstate(
            over="ignore", invalid="ignore"
        ):  # a rate that is too large ends in numbers that are none
            for begin in range(0, len(order), BATCH_SIZE):
                batch = inputs[order[begin : begin + BATCH_SIZE]]
                _, slope = _cross_entropy(
                    batch @ weights, target[order[begin : begin + BATCH_SIZE]]
                )
                velocity *= MOMENTUM
                velocity += batch.T @ slope.astype(np.float32) + np.float32(WEIGHT_DECAY) * weights
                weights -= rates * velocity
            score, _ = _cross_entropy(held_inputs @ weights, held_target)
        better = score < lowest
        best[:, better], lowest[better] = weights[:, better], score[better]
    for place in np.flatnonzero(np.isfinite(lowest)):
        column = best[:, place].astype(np.float64)
        probe = LinearProbe(weight_decay=WEIGHT_DECAY, standardize=standardize)
        probe.weights = column[:-1] / scale
        probe.bias = float(column[-1] - centre @ probe.weights)
        yield LEARNING_RATES[place], probe


def _cross_entropy(logits: npt.NDArray[np.float32], target: Floats) -> tuple[Floats, Floats]:
    """Return the mean cross-entropy of each learning rate, and its gradient in the logits,
    (n_questions, n_rates).
    """
    shares = np.full(len(target), 1 / len(target))
    return LOSSES["bce"](logits.astype(np.float64), target[:, None], shares)
