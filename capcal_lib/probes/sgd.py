"""The paper's recipe for a linear probe: stochastic gradient descent with early stopping."""

from __future__ import annotations  # keeps ArrayLike short in help()

import json
import time
from collections.abc import Callable, Iterator, Sequence
from io import BytesIO
from operator import itemgetter
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.special import expit
from sklearn.model_selection import KFold

from capcal_lib.errors import InputError
from capcal_lib.metrics.validation import Floats
from capcal_lib.probes.estimator import Probe
from capcal_lib.probes.linear import LinearProbe, training_rows
from capcal_lib.runs.files import write_file

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


class PaperProbe(Probe):
    """Linear probes trained as in the paper (appendix on linear probes), on five splits of the
    questions.

    Training uses shuffled batches, momentum, a constant learning rate, decay of the bias as well,
    Xavier-uniform first weights and a bias of zero. Each run has 100 epochs, and the epoch with the
    smallest validation loss is kept. There is one run for each learning rate, with features raw and
    standardised. The run with the smallest capability Brier score on the validation questions is
    kept. Momentum, decay of the bias, first weights and the choice of the epoch follow the authors'
    code.

    ``seed`` decides the splits, the first weights and the order of the questions. ``rates`` are the
    learning rates to try. ``standardize`` says whether features are taken raw, standardised or
    both; a single value of each gives the settings that the paper settled on.

    Each of the five ``probes_`` has another fifth of the questions for validation. If there are
    separate validation questions, as the paper has for MATH, they choose instead, and the fifth is
    left out all the same. The result depends on the split, so no single split represents the
    recipe. A table of scores has the mean and the spread of the five scores. If one confidence is
    needed, it is the mean prediction of the five probes, which scores no worse than they do on
    average.

    ``out_of_fold_``, (n_questions,), has the prediction for each training question from the probe
    whose weights were not fitted to it. Its learning rate and its epoch were chosen with it.

    >>> features = np.linspace(-2, 2, 40)[:, None]
    >>> counts = np.where(features[:, 0] > 0, 8, 2), np.full(40, 10)
    >>> PaperProbe().fit(features, *counts).predict([[-2.0], [2.0]]).round(1).tolist()
    [0.1, 0.9]
    """

    probes_: tuple[LinearProbe, ...] = ()

    def __init__(
        self,
        *,
        rates: Sequence[float] = LEARNING_RATES,
        standardize: Sequence[bool] = (False, True),
        seed: int = 0,
    ) -> None:
        self.rates = rates
        self.standardize = standardize
        self.seed = seed

    def fit(
        self,
        features: npt.ArrayLike,
        correct: npt.ArrayLike,
        total: npt.ArrayLike,
        *,
        validation: tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike] | None = None,
        checkpoint: Path | None = None,
        say: Callable[[str], object] | None = None,
    ) -> Self:
        """Fit to features (n_questions, n_features) and counts (n_questions,), at least five rows.

        ``validation`` has features and counts of separate validation questions, if there are any.
        ``checkpoint`` is a file for these very questions: it stores each split as it ends, and the
        splits in it are not trained again. ``say`` is called with one line per split that was
        trained.
        """
        matrix, hits, samples = training_rows(features, correct, total, least=SPLITS)
        mu = hits / samples
        if validation:
            rows, right, drawn = training_rows(*validation)
        searched = (
            json.loads(checkpoint.read_bytes()) if checkpoint and checkpoint.is_file() else []
        )
        self.counts_ = hits, samples
        self.out_of_fold_ = np.empty(len(matrix))
        self.probes_ = ()
        folds = KFold(SPLITS, shuffle=True, random_state=self.seed).split(matrix)
        for split, (train, held_out) in enumerate(folds):
            ways = [way for way in searched if way["split"] == split]
            if not ways:
                start = time.monotonic()
                rng = np.random.default_rng([self.seed, split])
                chosen_by, observed = (
                    (rows, right / drawn) if validation else (matrix[held_out], mu[held_out])
                )
                taught = matrix[train], mu[train]
                for standardize in self.standardize:
                    trained = _train(*taught, chosen_by, observed, self.rates, standardize, rng)
                    for way in trained:
                        ways.append({"split": split, "standardize": standardize} | way)
                searched += ways
                if checkpoint:
                    write_file(checkpoint, BytesIO(json.dumps(searched).encode()))
                if not ways:
                    raise InputError("no probe converges at these learning rates; lower them")
                if say:
                    say(f"split {split + 1} of {SPLITS} in {time.monotonic() - start:.0f} s")
            best = min(ways, key=itemgetter("brier"))
            probe = LinearProbe(weight_decay=WEIGHT_DECAY, standardize=best["standardize"])
            probe.coef_, probe.intercept_ = np.array(best["coef"]), best["intercept"]
            self.probes_ += (probe,)
            self.out_of_fold_[held_out] = probe.predict(matrix[held_out])
        return self

    def predict(self, features: npt.ArrayLike) -> Floats:
        """Predict mu, (n_questions,), as the mean of the five probes."""
        return np.asarray(np.mean(self.predict_splits(features), axis=0))

    def predict_splits(self, features: npt.ArrayLike) -> tuple[Floats, ...]:
        """Predict mu with the probe of each split."""
        return tuple(probe.predict(features) for probe in self.probes_ or [LinearProbe()])


def _train(
    matrix: Floats,
    target: Floats,
    held_out: Floats,
    held_target: Floats,
    learning_rates: Sequence[float],
    standardize: bool,
    rng: np.random.Generator,
) -> Iterator[dict[str, Any]]:
    """Train one probe per learning rate on the same batches, and yield those that do not diverge at
    once, with their scores.
    """
    centre, scale = np.zeros(1), np.ones(1)
    if standardize:
        centre = matrix.mean(axis=0, dtype=np.float64)
        scale = matrix.std(axis=0, dtype=np.float64) + 1e-8
    # A column of ones carries the bias.
    inputs, held_inputs = (
        np.column_stack([(part - centre) / scale, np.ones(len(part))]).astype(np.float32)
        for part in (matrix, held_out)
    )
    rates = np.array(learning_rates, np.float32)
    limit = np.sqrt(6 / inputs.shape[1])  # n_features + 1: the sum of what goes in and out
    start = np.append(rng.uniform(-limit, limit, matrix.shape[1]), 0).astype(np.float32)
    weights = best = np.tile(start[:, None], len(rates))
    velocity = np.zeros_like(weights)
    lowest = np.full(len(rates), np.inf)
    for _ in range(EPOCHS):
        order = rng.permutation(len(inputs))
        # A rate that is too large ends in numbers that are none.
        with np.errstate(over="ignore", invalid="ignore"):
            for rows in np.split(order, range(BATCH_SIZE, len(order), BATCH_SIZE)):
                batch = inputs[rows]
                error = expit((batch @ weights).astype(np.float64)) - target[rows, None]
                gradient = batch.T @ (error / len(rows)).astype(np.float32)
                velocity *= MOMENTUM
                velocity += gradient + WEIGHT_DECAY * weights
                weights = weights - rates * velocity
            logits = (held_inputs @ weights).astype(np.float64)
            score = np.mean(np.logaddexp(0, logits) - held_target[:, None] * logits, axis=0)
        best = np.where(score < lowest, weights, best)
        lowest = np.fmin(score, lowest)
    for score, column in zip(lowest, best.T.astype(np.float64), strict=True):
        if np.isfinite(score):
            coef = column[:-1] / scale
            intercept = float(column[-1] - np.sum(centre * coef))
            brier = float(np.mean((expit(held_out @ coef + intercept) - held_target) ** 2))
            yield {"brier": brier, "coef": coef.tolist(), "intercept": intercept}
