"""What all probes of a training set share: one face, and a concentration."""

from __future__ import annotations  # keeps ArrayLike short in help()

from abc import ABC, abstractmethod
from typing import Any

from sklearn.base import BaseEstimator

from capcal_lib.applications import fit_concentration
from capcal_lib.metrics.validation import Floats, Ints


class Probe(BaseEstimator, ABC):  # type: ignore[misc]
    """An estimator of mu from what a model shows of a question before it answers.

    ``fit(features, correct, total)`` learns from questions and returns the probe;
    ``predict(features)`` gives (n_questions,) in [0, 1]. What is learnt ends in an underscore:
    ``out_of_fold_``, (n_questions,), is what is predicted of each training question without its
    help. One sample a question is enough to learn mu from.
    """

    out_of_fold_: Floats
    counts_: tuple[Ints, Ints]  # correct and total of the training questions

    @abstractmethod
    def predict(self, features: Any) -> Floats:
        """Predict mu, (n_questions,) in [0, 1]."""

    def predict_splits(self, features: Any) -> tuple[Floats, ...]:
        """Predict mu by each of the probes that the recipe trains: one, but for the paper's."""
        return (self.predict(features),)

    @property
    def concentration_(self) -> float:
        """Say how close the probe's confidences are to mu: nu of Beta(s nu, (1 - s) nu).

        Fitted to the counts of the training questions around ``out_of_fold_``. One sample of a
        question is correct with probability s whatever nu is, so that nu is learnt from questions
        with two samples or more. Where there is none it is NaN, which posterior predictions
        refuse: take the confidences at their word, by ``concentration=None``.
        """
        if self.counts_[1].max() < 2:
            return float("nan")
        return fit_concentration(self.out_of_fold_, *self.counts_)
