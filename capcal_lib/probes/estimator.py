"""The interface that all probes share, with their concentration."""

from __future__ import annotations  # keeps ArrayLike short in help()

from abc import ABC, abstractmethod
from typing import Any

from sklearn.base import BaseEstimator

from capcal_lib.applications import fit_concentration
from capcal_lib.metrics.validation import Floats, Ints


class Probe(BaseEstimator, ABC):  # type: ignore[misc]
    """An estimator of mu from a model's hidden states before it answers.

    ``fit(features, correct, total)`` learns from questions and returns the probe;
    ``predict(features)`` returns shape (n_questions,) in [0, 1]. Learnt attributes end in an
    underscore: ``out_of_fold_``, shape (n_questions,), is the prediction for each training question
    by a probe that did not see it. One sample per question is enough to learn mu.
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
        """Return how close the probe's confidences are to mu: nu of Beta(s nu, (1 - s) nu).

        It is fitted to the counts of the training questions around ``out_of_fold_``. A single
        sample is correct with probability s whatever nu is, so nu is learnt from questions with two
        or more samples. NaN if there are none; posterior predictions refuse NaN, so use plug-in
        predictions then (``concentration=None``).
        """
        if self.counts_[1].max() < 2:
            return float("nan")
        return fit_concentration(self.out_of_fold_, *self.counts_)
