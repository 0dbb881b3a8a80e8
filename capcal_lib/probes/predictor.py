"""Predict the expected accuracy of a question while it waits: from one pass over its prompt, before
any token.
"""

from __future__ import annotations  # keeps ArrayLike short in help()

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from capcal_lib.errors import InputError
from capcal_lib.manifests import load_dataset
from capcal_lib.metrics import Interval
from capcal_lib.metrics.validation import check_share
from capcal_lib.probes.features import extract_features, same_model
from capcal_lib.probes.training import train
from capcal_lib.questions import Answer, Question
from capcal_lib.runs import find_run
from capcal_lib.sampling.engines import open_engine


def load_predictor(
    store: Path | str, model: str, dataset: str, *, engine: str | None = None, level: float = 0.9
) -> Callable[[Question | str], Interval]:
    """Train the tuned probe on a model's training run, and return what predicts any question by it:
    mu, in [0, 1], and the interval that holds mu_hat with a chance of about ``level``.

    The engine reads the prompt once and decodes nothing. A text is asked as a question of the
    training data's kind; lettered options belong into it, as
    :func:`~capcal_lib.questions.with_options` writes them.

    The interval is split-conformal, from what cross-validation predicts of the training questions:
    for questions of their kind it holds mu_hat, of as many samples as they have, with a chance of
    about ``level``, whatever the probe gets wrong. For another kind of question it promises
    nothing. ``engine`` is by default the manifest's.

    Refused are a data set without a training split or run, a run without verdicts or hidden states,
    and a model that has other weights or is asked in another way since.

    >>> from capcal_lib.manifests import RECORDED_RUNS
    >>> predict = load_predictor(RECORDED_RUNS, "simulated", "mini-capitals")
    >>> [round(end, 2) for end in predict("What is the capital of Norway?")[:3]]
    [0.08, 0.0, 0.39]
    """
    data = load_dataset(dataset)
    if data.training_split is None:
        raise InputError(f"{dataset} has no training split, so there is nothing to learn from")
    run = find_run(store, model, dataset, data.training_split)
    asked = same_model(run)
    probe = train(run)
    correct, total = probe.counts_
    width = conformal_half_width(probe.out_of_fold_, correct / total, level=level)
    opened = open_engine(asked, engine)

    def predict(question: Question | str) -> Interval:
        if isinstance(question, str):
            question = Question("asked", question, Answer(data.kind, "unknown"))
        mu = float(probe.predict(extract_features(opened, asked, [question]))[0])
        return Interval(mu, max(0.0, mu - width), min(1.0, mu + width))

    return predict


def conformal_half_width(
    predicted: npt.ArrayLike, observed: npt.ArrayLike, *, level: float = 0.9
) -> float:
    """Return the half-width of a split-conformal band from questions that the probe has not seen.

    If a new question comes from the same distribution as these, its mu_hat lies within the band
    with a probability of at least ``level``, whatever the probe and the distribution are, on
    average over questions. The promise is on mu_hat of as many samples as ``observed`` has, whose
    binomial noise is in the width.

    ``predicted`` and ``observed``, (n_questions,) in [0, 1], are what the probe says of the
    calibration questions, and their mu_hat. The result is 1, all of the unit interval, where these
    are too few for the level.

    >>> conformal_half_width([0.5] * 9, [0.5, 0.6, 0.75, 1, 1, 0.4, 0.25, 0, 0], level=0.5)
    0.25
    """
    distances = np.sort(np.abs(np.subtract(predicted, observed)))
    rank = int(np.ceil((len(distances) + 1) * check_share("level", level)))
    return float(distances[rank - 1]) if rank <= len(distances) else 1.0
