"""A stacked probe: probes of several kinds, weighed by how well they predict training questions
left out of them.
"""

from __future__ import annotations  # keeps ArrayLike short in help()

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import numpy.typing as npt

from capcal_lib.errors import InputError, unknown
from capcal_lib.metrics.validation import Floats, as_counts
from capcal_lib.probes.estimator import Probe
from capcal_lib.probes.kernel import KernelProbe
from capcal_lib.probes.linear import LinearProbe, not_fitted

FOLDS = 5
_EDGE = 1e-3  # how near to 0 and 1 a probe is believed while the weights are fitted
_TOLERANCE = 1e-3  # nats a sample by which the likelihood may miss its maximum

# What each member reads, and how it is made. Kinds and decays were settled on the training
# questions of the four mini sets of smollm2-135m, by cross-validation within them, before any score
# on another data set was seen.
MEMBERS: tuple[tuple[str, Callable[[], LinearProbe | KernelProbe]], ...] = (
    *(
        (
            "mean of the layers",
            partial(LinearProbe, loss="binomial", weight_decay=decay, standardize=True),
        )
        for decay in (0.01, 0.1, 1.0, 10.0)
    ),
    *(
        (name, partial(KernelProbe, components=32))
        for name in ("lower layers", "middle layers", "upper layers")
    ),
)
BLOCKS = tuple(dict.fromkeys(name for name, _ in MEMBERS))
MEAN = "training mean"


class StackedProbe(Probe):
    """Predict mu by a weighted mean of linear probes, kernel probes and the mean of the training
    set.

    Each member is fitted without a fold of the training questions and predicts that fold; the
    weights are those under which the samples of all folds are most likely. So all but the settings
    of a kernel probe, which it chooses within the folds that it is fitted to, is chosen on
    questions that the members have not seen. ``seed`` decides the folds.

    Features are blocks by name, each (n_questions, n_features), with names of ``BLOCKS``.
    ``weights_`` says what share of the prediction reads which block, and ``training mean``; at
    least 0, they sum to 1. ``out_of_fold_``, (n_questions,), is what members fitted to the other
    folds predict for each training question.

    References: Wolpert, "Stacked generalization", Neural Networks 1992; Breiman, "Stacked
    regressions", Machine Learning 1996, for weights that are not negative.

    >>> rng = np.random.default_rng(0)
    >>> blocks = {"upper layers": rng.normal(size=(200, 2)),
    ...     "lower layers": rng.normal(size=(200, 2))}
    >>> mu = np.exp(-(blocks["upper layers"][:, 0] ** 2))
    >>> probe = StackedProbe().fit(blocks, rng.binomial(20, mu), [20] * 200)
    >>> max(probe.weights_, key=probe.weights_.get)
    'upper layers'
    """

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = seed
        self.weights_: dict[str, float] = {}

    def __repr__(self) -> str:
        weights = [f"{name} {weight:.2f}" for name, weight in self.weights_.items()]
        return f"<StackedProbe(seed={self.seed}), {', '.join(weights) or 'not fitted'}>"

    def fit(
        self,
        features: Mapping[str, npt.ArrayLike],
        correct: npt.ArrayLike,
        total: npt.ArrayLike,
    ) -> StackedProbe:
        """Fit to blocks of features, each (n_questions, n_features), and counts (n_questions,).

        It takes ten questions. Members whose block is not given are left out; an unknown block is
        refused, and none.
        """
        from sklearn.model_selection import KFold

        hits, samples = as_counts(correct, total, scored=1)
        blocks = _checked(features, len(samples))
        if len(samples) < 2 * FOLDS:
            raise InputError(
                f"a stacked probe needs {2 * FOLDS} questions or more; got {len(samples)}"
            )
        made = [(name, make) for name, make in MEMBERS if name in blocks]
        left_out = np.empty((len(made) + 1, len(samples)))
        for others, here in KFold(FOLDS, shuffle=True, random_state=self.seed).split(hits):
            left_out[0, here] = hits[others].sum() / samples[others].sum()
            for row, (name, make) in enumerate(made, start=1):
                member = make().fit(blocks[name][others], hits[others], samples[others])
                left_out[row, here] = member.predict(blocks[name][here])
        self._shares = mixture_weights(left_out, hits, samples)
        self._mean = hits.sum() / samples.sum()
        self._members = [(name, make().fit(blocks[name], hits, samples)) for name, make in made]
        self.weights_ = dict.fromkeys((MEAN, *blocks), 0.0)
        for name, share in zip((MEAN, *(name for name, _ in made)), self._shares, strict=True):
            self.weights_[name] += float(share)
        self._keep(np.clip(self._shares @ left_out, 0, 1), hits, samples)
        return self

    def predict(self, features: Mapping[str, npt.ArrayLike]) -> Floats:
        """Predict mu, (n_questions,) in [0, 1], from the same blocks as in training."""
        if not self.weights_:
            raise not_fitted()
        blocks = _checked(features)
        if lacking := self.weights_.keys() - blocks.keys() - {MEAN}:
            raise InputError(
                f"the probe was fitted with {', '.join(sorted(lacking))} as well; give it too"
            )
        mixed = self._shares[0] * self._mean
        for share, (name, member) in zip(self._shares[1:], self._members, strict=True):
            mixed = mixed + share * member.predict(blocks[name])
        return np.clip(mixed, 0, 1)


def mixture_weights(predicted: Floats, correct: npt.ArrayLike, total: npt.ArrayLike) -> Floats:
    """Weigh predictions (n_probes, n_questions) so that the counts are as likely as can be under
    the weighted mean.

    The binomial likelihood is concave in the weights, and each step of expectation and maximisation
    raises it (Dempster, Laird and Rubin 1977). No other weights, at least 0 with sum 1, are more
    likely by more than a thousandth of a nat a sample: the excess of the largest slope over 1
    bounds it.

    >>> predicted = np.array([[0.9, 0.1, 0.8], [0.5, 0.5, 0.5]])
    >>> mixture_weights(predicted, [9, 1, 8], [10, 10, 10]).round(1).tolist()
    [1.0, 0.0]
    """
    hits, samples = as_counts(correct, total, scored=1)
    inside = np.clip(predicted, _EDGE, 1 - _EDGE)
    weights = np.full(len(inside), 1 / len(inside))
    while True:
        mixed = weights @ inside
        slope = (
            (inside / mixed) @ hits + ((1 - inside) / (1 - mixed)) @ (samples - hits)
        ) / samples.sum()
        if slope.max() <= 1 + _TOLERANCE:
            return weights
        weights *= slope
        weights /= (
            weights.sum()
        )  # which is 1 but for rounding, and rounding grows from step to step


def _checked(
    blocks: Mapping[str, npt.ArrayLike], questions: int | None = None
) -> dict[str, npt.NDArray[np.floating]]:
    """Return the blocks as arrays of equally many rows, or refuse them."""
    for name in blocks:
        if name not in BLOCKS:
            raise unknown("block", name, BLOCKS)
    features = {name: np.asarray(block) for name, block in blocks.items()}
    if not features:
        raise InputError(f"blocks are empty; give one or more of {', '.join(BLOCKS)}")
    lengths = {len(block) for block in features.values()} | (
        {questions} if questions is not None else set()
    )
    if len(lengths) != 1:
        raise InputError(f"blocks and counts need equally many questions; got {sorted(lengths)}")
    return features
