"""Adapt a probe's confidences to questions of another kind, of which a few are labelled."""

from __future__ import annotations  # keeps ArrayLike short in help()

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from capcal_lib.metrics import capability_brier
from capcal_lib.metrics.validation import Floats, align, as_confidence, as_each, as_scored, like
from capcal_lib.probes.linear import LinearProbe
from capcal_lib.probes.training import draw_training

EDGE = 1e-3  # confidences of 0 and 1 have no logit
DEVIATION = 3.0  # of the level that is expected
LEVELS = np.linspace(-10, 10, 81)
SLOPES = np.linspace(0, 1, 11)  # from a constant to all of the confidence, all as likely
# Of Beta(s nu, (1 - s) nu): however many samples a question has, it counts as at most nu + 1
CONCENTRATION = 2.0
DECAY = 0.4  # of all labelled questions together, where a probe is trained on them


def adapt(confidence: ArrayLike, labelled: ArrayLike, correct: ArrayLike, total: ArrayLike) -> Any:
    """Adapt confidences to a set of questions by the level and slope of a few labelled ones.

    ``labelled``, (n_labelled,), are the confidences of 5 to 50 questions of the set whose samples
    were drawn and scored, ``correct`` and ``total`` their counts; ``confidence``, (n_questions,),
    those of the others, or of all. Returns the mean of sigmoid(level + slope logit(s)) over the
    posterior of level and slope, (n_questions,) in [0, 1]; a Series with its index where
    ``confidence`` is one. Score only questions that are not among the labelled.

    Before the labels, the slope is anything from 0, a constant, to 1, the confidence as it is, and
    the level near 0 with a deviation of 3. A question counts as total (nu + 1) / (total + nu)
    samples, with nu = 2, since another sample of a question says less than one of another
    question. So the few labels decide whether the confidence orders these questions, or whether
    only their mean is to be trusted. The priors were chosen on training splits of the recorded
    runs, among about 15.

    >>> adapt([0.2, 0.8], labelled=[0.5] * 9, correct=[1] * 9, total=[10] * 9).round(2)
    array([0.06, 0.2 ])
    """
    from scipy.special import expit

    rows = _logit(as_confidence(confidence))
    s, mu, samples = as_scored(*align(labelled=labelled, correct=correct, total=total))
    counts = samples * (CONCENTRATION + 1) / (samples + CONCENTRATION)
    level, slope = (each.reshape(-1, 1) for each in np.meshgrid(LEVELS, SLOPES))
    moved = level + slope * _logit(s)
    likelihood = (mu * moved - np.logaddexp(0, moved)) @ counts
    posterior = likelihood - (level[:, 0] / DEVIATION) ** 2 / 2
    weights = np.exp(posterior - posterior.max())
    return like(confidence, weights @ expit(level + slope * rows) / weights.sum())


def score_few_labels(
    questions: pd.DataFrame,
    features: Floats,
    confidence: ArrayLike,
    *,
    labels: int = 20,
    samples: int = 10,
    draws: int = 50,
    seed: int = 0,
) -> pd.DataFrame:
    """Score what a few labelled questions of a set can make of a probe that is trained elsewhere.

    Takes the ``correct`` and ``total`` of questions, their hidden states (n_questions, n_features)
    and what the probe says of each, (n_questions,). Each draw labels some questions by some of
    their samples, and scores the others. Returns a row a draw with the corrected capability Brier
    score, lower is better, of five ways: the probe ``as it is``; ``recalibrated`` by `adapt`; the
    ``constant``, the mean of the labelled; a linear probe ``trained on the labels``; and a linear
    probe ``started from the probe``: trained on them with the recalibrated confidence's logit
    as one more feature, so that little is left to learn where that says all.

    >>> rng = np.random.default_rng(0)
    >>> mu = rng.random(200)
    >>> questions = pd.DataFrame({"correct": rng.binomial(20, mu), "total": 20})
    >>> scores = score_few_labels(questions, rng.normal(size=(200, 3)), mu**4, draws=10)
    >>> scores.mean().idxmin()
    'recalibrated'
    """
    from sklearn.preprocessing import StandardScaler

    said = as_each("confidence", confidence, len(questions))
    states = StandardScaler().fit_transform(np.asarray(features, np.float64))
    states /= np.sqrt(states.shape[1])  # so that a question's states have a length of about 1
    rng = np.random.default_rng(seed)
    numbered = questions[["correct", "total"]].reset_index(drop=True)
    rows = []
    for _ in range(draws):
        known = draw_training(numbered, labels, samples, rng=rng)
        counts = known["correct"].to_numpy(), known["total"].to_numpy()
        asked = numbered.drop(known.index)
        adapted = adapt(said, said[known.index], *counts)
        together = np.column_stack([_logit(adapted), states])
        ways = {
            "as it is": said,
            "recalibrated": adapted,
            "constant": np.full(len(said), counts[0].sum() / counts[1].sum()),
        }
        for way, rows_of in (
            ("trained on the labels", states),
            ("started from the probe", together),
        ):
            probe = LinearProbe(weight_decay=DECAY / labels).fit(rows_of[known.index], *counts)
            ways[way] = probe.predict(rows_of)
        rows.append(
            {
                way: capability_brier(predicted[asked.index], *asked.to_numpy().T, corrected=True)
                for way, predicted in ways.items()
            }
        )
    return pd.DataFrame(rows)


def _logit(confidence: Floats) -> Floats:
    from scipy.special import logit

    return np.asarray(logit(np.clip(confidence, EDGE, 1 - EDGE)))
