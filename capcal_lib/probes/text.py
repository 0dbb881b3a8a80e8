"""What the text of a question alone tells of mu: the rival of a probe that reads the model."""

from __future__ import annotations  # keeps ArrayLike short in help()

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from capcal_lib.metrics.validation import Floats
from capcal_lib.probes.estimator import Probe

FOLDS = 5
DECAYS = np.logspace(-2, 4, 13)


class TextProbe(Probe):
    """Ridge regression of mu_hat on what a question's text shows; no model is asked.

    ``reads`` makes the features of texts, such as :func:`length` or :func:`words`. The penalty is
    the one that predicts left-out questions best. Features here are texts, (n_questions,).

    >>> texts = ["2 + 2", "3 + 1", "prove a theorem", "prove a lemma"] * 5
    >>> probe = TextProbe(words).fit(texts, [4, 4, 0, 0] * 5, [4] * 20)
    >>> probe.predict(["1 + 1", "prove it"]).round()
    array([1., 0.])
    """

    def __init__(self, reads: Callable[[], Any]) -> None:
        self.reads = reads

    def fit(
        self, features: Sequence[str], correct: npt.ArrayLike, total: npt.ArrayLike
    ) -> TextProbe:
        """Fit to texts and counts (n_questions,), five questions or more."""
        from sklearn.linear_model import RidgeCV
        from sklearn.model_selection import KFold, cross_val_predict
        from sklearn.pipeline import make_pipeline

        texts = list(features)
        hits = np.asarray(correct, dtype=np.int64)
        samples = np.asarray(total, dtype=np.int64)
        mu = hits / samples
        self._chosen = make_pipeline(self.reads(), RidgeCV(DECAYS)).fit(texts, mu)
        folds = KFold(FOLDS, shuffle=True, random_state=0)
        left_out = cross_val_predict(self._chosen, texts, mu, cv=folds)
        self._keep(np.clip(left_out, 0, 1), hits, samples)
        return self

    def predict(self, features: Sequence[str]) -> Floats:
        """Predict mu, (n_questions,) in [0, 1], from texts."""
        return np.clip(self._chosen.predict(list(features)), 0, 1)


def length() -> Any:
    """Return what makes one feature of a text: the logarithm of its number of characters."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, StandardScaler

    return make_pipeline(FunctionTransformer(_log_length), StandardScaler())


def words() -> Any:
    """Return what makes TF-IDF features of a text: its words and pairs of words."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"\w+|[^\w\s]")


def _log_length(texts: Sequence[str]) -> Floats:
    return np.log1p([[len(text)] for text in texts])
