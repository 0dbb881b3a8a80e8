"""Predict the expected accuracy of a question while it waits: from one pass over its prompt, before
any token.
"""

from __future__ import annotations  # keeps ArrayLike short in help()

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from capcal_lib.confidence.of_run import asked_model, refuse_other
from capcal_lib.errors import InputError
from capcal_lib.manifests import Model, load_dataset
from capcal_lib.metrics import Interval
from capcal_lib.metrics.validation import align, as_numbers, check_share
from capcal_lib.probes.estimator import Probe
from capcal_lib.probes.features import extract_features
from capcal_lib.probes.training import train, training_data
from capcal_lib.questions import Answer, Question
from capcal_lib.runs import Run, find_run
from capcal_lib.sampling.engines import Engine, open_engine
from capcal_lib.sampling.weights import weights_digest


@dataclass(frozen=True, eq=False, repr=False)
class Predictor:
    """Give mu of a question with its interval; made by :func:`load_predictor`."""

    engine: Engine
    model: Model
    run: Run  # whose training questions taught the probe
    probe: Probe
    half_width: float
    level: float

    def __call__(self, question: Question | str) -> Interval:
        """Predict mu, in [0, 1], and the interval that holds mu_hat with a chance of about
        ``level``.

        The engine reads the prompt once and decodes nothing. A text is asked as a question of the
        training data's kind; lettered options belong into it, as
        :func:`~capcal_lib.questions.with_options` writes them."""
        if isinstance(question, str):
            kind = load_dataset(self.run.identity.dataset).kind
            question = Question("asked", question, Answer(kind, "unknown"))
        features = extract_features(self.engine, self.model, [question])
        mu = float(self.probe.predict(features)[0])
        return Interval(mu, max(0.0, mu - self.half_width), min(1.0, mu + self.half_width))

    def __repr__(self) -> str:
        trained = f"trained on {len(self.probe.out_of_fold_)} questions of "
        trained += self.run.folder.parent.name
        return (
            f"<Predictor, {self.model.name}, {trained}, within {self.half_width:.2f} at "
            f"{self.level:.0%}>"
        )


def load_predictor(
    store: Path | str, model: str, dataset: str, *, engine: str | None = None, level: float = 0.9
) -> Predictor:
    """Train the tuned probe on a model's training run, and return what predicts any question by it.

    The interval is split-conformal, from what cross-validation predicts of the training questions:
    for questions of their kind it holds mu_hat, of as many samples as they have, with a chance of
    about ``level``, whatever the probe gets wrong. For another kind of question it promises
    nothing. ``engine`` is by default the manifest's.

    Refused are a data set without a training split or run, a run without verdicts or hidden states,
    and a model that has other weights or is asked in another way since.

    >>> from capcal_lib.manifests import RECORDED_RUNS
    >>> predictor = load_predictor(RECORDED_RUNS, "simulated", "mini-capitals")
    >>> predictor
    <Predictor, simulated, trained on 283 questions of mini-capitals-train, within 0.31 at 90%>
    >>> [round(end, 2) for end in predictor("What is the capital of Norway?")[:3]]
    [0.08, 0.0, 0.39]
    """
    split = load_dataset(dataset).training_split
    if split is None:
        raise InputError(f"{dataset} has no training split, so there is nothing to learn from")
    run = find_run(store, model, dataset, split)
    asked = asked_model(run)
    weights = weights_digest(asked, run.identity.engine)
    refuse_other(run, "weights", run.identity.weights, weights)
    probe = train(run)
    questions, _ = training_data(run)
    width = conformal_half_width(
        probe.out_of_fold_, questions["correct"] / questions["total"], level=level
    )
    return Predictor(
        engine=open_engine(asked, engine),
        model=asked,
        run=run,
        probe=probe,
        half_width=width,
        level=level,
    )


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

    >>> conformal_half_width([0.5] * 9, [0.5, 0.6, 0.7, 0.8, 0.9, 0.4, 0.3, 0.2, 0.1], level=0.5)
    0.2
    """
    predicted, observed = align(predicted=predicted, observed=observed)
    s, mu = as_numbers("predicted", predicted), as_numbers("observed", observed)
    rank = int(np.ceil((len(s) + 1) * check_share("level", level)))
    if rank > len(s):
        return 1.0
    return round(float(np.sort(np.abs(s - mu))[rank - 1]), 12)
