"""Choose a probe's settings on held-out questions, and judge the choice on questions that had no part in it."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from capcal_lib.errors import InputError
from capcal_lib.metrics import capability_brier_terms
from capcal_lib.metrics.intervals import Interval, bootstrap_mean
from capcal_lib.metrics.validation import Floats, as_counts, check_int
from capcal_lib.probes.linear import (
    CURVATURE,
    LinearProbe,
    Loss,
    Matrix,
    as_features,
    centred,
    minimise,
    question_shares,
)
from capcal_lib.probes.sgd import LEARNING_RATES, Recipe, fit_paper_recipes

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["linear", "sgd", "mlp"]
Rows = npt.NDArray[np.intp]

LOSSES: tuple[Loss, ...] = ("bce", "mse")
WEIGHT_DECAYS = (0.1, 0.01, 0.001)
POOLED = ("mean", "max", "all")  # over the states; all of them side by side
HIDDEN_UNITS = 16  # of the MLP, as in the authors' code
MLP_ITERATIONS = 100
VALIDATION = 5  # every fifth training question decides which epoch of SGD is kept
REDUCED = 1_024  # training questions or features up to which the settings of one matrix share its decomposition
RESAMPLES = 2_000
TOLERANCE = 1e-10  # how far an objective may lie above its optimum


@dataclass(frozen=True, slots=True)
class Setting:
    """One way to make a probe.

    ``linear`` goes to the optimum; ``sgd`` is the paper's recipe, with 100 epochs in batches of 32; ``mlp`` has one
    hidden layer. ``states`` is how the hidden states become features: ``mean``, ``max``, ``all`` side by side, or
    the number of one of them, 0 being the embedding.
    """

    kind: Kind = "linear"
    states: str = "mean"
    loss: Loss = "bce"
    weight_decay: float = 1e-2
    standardize: bool = False
    learning_rate: float | None = None  # of sgd


@dataclass(frozen=True, eq=False)
class Selection:
    """What was compared, what was chosen, and what the choice is worth."""

    table: "pd.DataFrame"  # a row a setting: its fields, the held-out brier with low and high, and whether chosen
    states: (
        "pd.DataFrame"  # a row a kind of states: brier, low, high of the probes chosen within it; empty if not nested
    )
    chosen: Setting  # the setting with the lowest held-out score; that score is too good by being the lowest
    score: Interval | None  # of choosing and fitting anew on other questions, so unbiased; None if not nested
    confidence: Floats  # (n_questions,) held-out predictions behind the score; NaN if not nested
    corrected: bool  # whether the scores are corrected for the noise of mu_hat: every total is two or more


def paper_grid(n_states: int) -> list[Setting]:
    """List the settings of the paper's appendix for a model with so many hidden states (layers + 1).

    Linear probes with every loss, weight decay and standardisation on every layer and pooling; the learning rates for
    SGD and the weight decays for an MLP on the mean of the layers, which the paper settled on.

    Examples
    --------
    >>> len(paper_grid(31)), paper_grid(31)[0]
    (437, Setting(kind='linear', states='mean', loss='bce', weight_decay=0.1, standardize=False, learning_rate=None))
    """
    states = [*POOLED, *map(str, range(n_states))] if n_states > 1 else ["mean"]
    grid = product(states, LOSSES, WEIGHT_DECAYS, (False, True))
    linear = [Setting("linear", name, loss, decay, standardize) for name, loss, decay, standardize in grid]
    pairs = product(LEARNING_RATES, (False, True))
    sgd = [Setting("sgd", standardize=standardize, learning_rate=rate) for rate, standardize in pairs]
    return [*linear, *sgd, *(Setting("mlp", weight_decay=decay, standardize=True) for decay in WEIGHT_DECAYS)]


def select_probe(
    features: npt.ArrayLike,
    correct: npt.ArrayLike,
    total: npt.ArrayLike,
    *,
    settings: Sequence[Setting] | None = None,
    folds: int = 5,
    validation: npt.ArrayLike | None = None,
    seed: int = 0,
) -> Selection:
    """Choose the setting with the lowest capability Brier score on held-out questions.

    Give it the training questions only. By nested cross-validation, each fold is predicted by the setting that did
    best in a cross-validation on the other folds, so ``score`` is what choosing and fitting is worth on new
    questions. With a validation split, settings are fitted to the other questions and compared on it, once.

    Parameters
    ----------
    features
        (n_questions, layers + 1, hidden_size), as ``extract_features`` gives for ``all`` layers; or
        (n_questions, n_features), which are compared as they are.
    correct, total
        (n_questions,) counts, 0 <= correct <= total and total at least 1.
    settings
        What to compare; None takes `paper_grid`.
    folds
        Of the outer cross-validation, at least 3; the inner one has one less.
    validation
        (n_questions,) of bool: the validation split, in place of cross-validation.
    seed
        Decides the folds, and the draws of SGD and the MLP.

    Returns
    -------
    Selection
        Scores are capability Brier scores, corrected where every question has two samples; lower is better. Their
        95 % intervals are over questions.

    Raises
    ------
    InputError
        For arrays that do not match, too few questions for the folds, or unknown states.

    References
    ----------
    The paper, appendix on linear probes, searches this grid on "validation sets".

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> features = rng.normal(size=(60, 3, 8))
    >>> mu = 1 / (1 + np.exp(-3 * features[:, 2, 0]))
    >>> settings = [Setting(states=name) for name in ("0", "1", "2")]
    >>> select_probe(features, rng.binomial(10, mu), [10] * 60, settings=settings).chosen.states
    '2'
    """
    states, hits, samples = _checked(features, correct, total)
    settings = paper_grid(states.shape[1]) if settings is None else list(settings)
    for setting in settings:
        pool(states[:1], setting.states)  # which refuses unknown ones
    if not settings:
        raise InputError("settings are empty; give at least one, or None for the paper's grid")
    corrected = bool(samples.min() >= 2)
    mu = hits / samples
    offset = capability_brier_terms(mu, hits, samples, corrected=corrected)
    rng = np.random.default_rng(seed)

    def predict(train: Rows, test: Rows) -> Floats:
        return _predictions(settings, states, hits, samples, train, test, seed)

    def terms(predicted: Floats, rows: Rows) -> Floats:
        return (predicted - mu[rows]) ** 2 + offset[rows]

    everything, nested = np.arange(len(mu)), np.full(len(mu), np.nan)
    if validation is not None:
        held_out = np.asarray(validation)
        if held_out.shape != mu.shape or held_out.dtype != bool or held_out.all() or not held_out.any():
            raise InputError("validation is one bool a question, some of them True and some False")
        judged = np.flatnonzero(held_out)
        scored = terms(predict(np.flatnonzero(~held_out), judged), judged)
        return _selection(settings, scored, {}, None, nested, corrected, rng)

    check_int("folds", folds, least=3)
    if len(mu) < 2 * folds:
        raise InputError(f"{folds} folds need {2 * folds} questions; got {len(mu)}; give more, or fewer folds")
    predicted = np.empty((len(settings), len(mu)))
    names = list(dict.fromkeys(setting.states for setting in settings))
    groups = {name: [row for row, one in enumerate(settings) if one.states == name] for name in names}
    by_states = {name: np.empty(len(mu)) for name in names}
    for test in _folds(everything, folds, rng):
        train = np.setdiff1d(everything, test)
        inner = np.empty((len(settings), len(mu)))
        for part in _folds(train, folds - 1, rng):
            inner[:, part] = predict(np.setdiff1d(train, part), part)
        means = terms(inner[:, train], train).mean(axis=1)
        predicted[:, test] = predict(train, test)
        nested[test] = predicted[_lowest(means), test]
        for name, rows in groups.items():
            by_states[name][test] = predicted[rows[_lowest(means[rows])], test]
    score = bootstrap_mean(terms(nested, everything), rng=rng)
    scores = {name: terms(values, everything) for name, values in by_states.items()}
    return _selection(settings, terms(predicted, everything), scores, score, nested, corrected, rng)


def fit_setting(
    setting: Setting, features: npt.ArrayLike, correct: npt.ArrayLike, total: npt.ArrayLike, *, seed: int = 0
) -> Callable[[npt.ArrayLike], Floats]:
    """Fit one setting to all questions given, and return the function that predicts mu from features like these.

    Parameters and errors as `select_probe`.

    Examples
    --------
    >>> predict = fit_setting(Setting(weight_decay=1e-3), [[0.0], [1.0]], [1, 3], [4, 4])
    >>> predict([[0.5]]).round(6).tolist()
    [0.5]
    """
    states, hits, samples = _checked(features, correct, total)

    def predict(new: npt.ArrayLike) -> Floats:
        others = pool(_as_states(new), setting.states)
        return _FIT[setting.kind]([setting], pool(states, setting.states), hits, samples, others, seed)[0]

    return predict


def pool(features: npt.NDArray[np.floating], states: str) -> npt.NDArray[np.floating]:
    """Turn hidden states (n_questions, n_states, hidden_size) into features (n_questions, n_features).

    Raises
    ------
    InputError
        For states that are neither ``mean``, ``max``, ``all`` nor the number of one.

    Examples
    --------
    >>> pool(np.arange(6.0).reshape(1, 3, 2), "max")
    array([[4., 5.]])
    """
    if states == "mean":
        return features.mean(axis=1)
    if states == "max":
        return features.max(axis=1)
    if states == "all":
        return features.reshape(len(features), -1)
    if not (states.isdecimal() and int(states) < features.shape[1]):
        allowed = f"{', '.join(POOLED)}, or a number from 0 to {features.shape[1] - 1}"
        raise InputError(f"unknown states {states!r}; known: {allowed}")
    return features[:, int(states)]


def _as_states(features: npt.ArrayLike) -> npt.NDArray[np.floating]:
    array = np.asarray(features)
    if array.ndim not in (2, 3):
        raise InputError(
            "features are of shape (n_questions, layers + 1, hidden_size) or (n_questions, n_features); "
            f"got {array.shape}"
        )
    flat = as_features(array.reshape(len(array), -1))
    return flat.reshape(array.shape if array.ndim == 3 else (len(array), 1, -1))


def _checked(
    features: npt.ArrayLike, correct: npt.ArrayLike, total: npt.ArrayLike
) -> tuple[npt.NDArray[np.floating], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    states = _as_states(features)
    hits, samples = as_counts(correct, total, scored=1)
    if len(samples) != len(states):
        raise InputError(f"features have {len(states)} rows, but there are counts of {len(samples)} questions")
    return states, hits, samples


def _folds(rows: Rows, folds: int, rng: np.random.Generator) -> list[Rows]:
    return [np.sort(part) for part in np.array_split(rng.permutation(rows), folds)]


def _lowest(scores: Floats) -> int:
    return int(np.nanargmin(scores))


def _selection(
    settings: Sequence[Setting],
    terms: Floats,
    by_states: dict[str, Floats],
    score: Interval | None,
    confidence: Floats,
    corrected: bool,
    rng: np.random.Generator,
) -> Selection:
    import pandas as pd

    best = _lowest(terms.mean(axis=1))
    table = pd.DataFrame([asdict(setting) for setting in settings]).assign(
        **_intervals(terms, rng), chosen=np.arange(len(settings)) == best
    )
    rows = np.array(list(by_states.values())).reshape(len(by_states), -1 if by_states else 0)
    states = pd.DataFrame({"states": list(by_states)}).assign(**_intervals(rows, rng))
    return Selection(table, states, settings[best], score, confidence, corrected)


def _intervals(terms: Floats, rng: np.random.Generator) -> dict[str, Floats]:
    """Return the mean of each row with its 95 % bootstrap interval; all rows share the resampled questions."""
    questions = terms.shape[1]
    if not terms.size:
        return {name: np.empty(0) for name in ("brier", "low", "high")}
    counts = rng.multinomial(questions, np.full(questions, 1 / questions), size=RESAMPLES)
    low, high = np.quantile(terms @ counts.T / questions, [0.025, 0.975], axis=1)
    return {"brier": terms.mean(axis=1), "low": low, "high": high}


def _predictions(
    settings: Sequence[Setting],
    states: npt.NDArray[np.floating],
    hits: npt.NDArray[np.int64],
    samples: npt.NDArray[np.int64],
    train: Rows,
    test: Rows,
    seed: int,
) -> Floats:
    """Fit every setting to the training rows and predict the test rows, (n_settings, n_test); NaN if SGD diverges."""
    result = np.empty((len(settings), len(test)))
    groups: dict[tuple[Kind, str, bool], list[int]] = {}
    for row, one in enumerate(settings):
        groups.setdefault((one.kind, one.states, one.standardize), []).append(row)
    for (kind, name, _), rows in groups.items():
        matrix = pool(states[train], name)
        group = [settings[row] for row in rows]
        result[rows] = _FIT[kind](group, matrix, hits[train], samples[train], pool(states[test], name), seed)
    return result


def _linear(
    settings: Sequence[Setting],
    matrix: Matrix,
    hits: npt.NDArray[np.int64],
    samples: npt.NDArray[np.int64],
    new: Matrix,
    seed: int,  # noqa: ARG001 -- nothing is drawn
) -> Floats:
    """Predict with probes that differ in loss and decay, from one decomposition of their features."""
    if min(matrix.shape) > REDUCED:
        probes = [LinearProbe(loss=s.loss, weight_decay=s.weight_decay, standardize=s.standardize) for s in settings]
        return np.array([probe.fit(matrix, hits, samples).predict(new) for probe in probes])
    from scipy.special import expit

    inputs, others, sizes = _principal(matrix.astype(np.float64), new.astype(np.float64), settings[0].standardize)
    target, result = hits / samples, np.empty((len(settings), len(new)))
    for loss in dict.fromkeys(one.loss for one in settings):
        shares, probe = question_shares(loss, samples), None
        path = [row for row, one in enumerate(settings) if one.loss == loss]
        for row in sorted(path, key=lambda row: -settings[row].weight_decay):  # each starts where the last one ended
            decay = settings[row].weight_decay
            solve = partial(np.multiply, 1 / (CURVATURE[loss] * sizes + decay))
            probe = minimise(loss, inputs, target, shares, decay, solve, start=probe, tolerance=TOLERANCE)
            result[row] = expit(others @ probe[0] + probe[1])
    return result


def _principal(matrix: Floats, new: Floats, standardize: bool) -> tuple[Floats, Floats, Floats]:
    """Turn features to their principal axes, (n, n_axes) each, and return the mean squares along them.

    Penalised weights lie in the span of the training questions, and their norm does not change by turning. So the
    probe is the same, and needs as many weights as there are questions or features, whichever are fewer.
    """
    from scipy.linalg import eigh

    centre, deviation, columns = centred(matrix)
    new = new - centre
    if standardize:
        unit = np.divide(1, deviation, out=np.zeros_like(deviation), where=deviation > 0)
        columns, new = columns * unit, new * unit
    columns[:, deviation == 0] = 0
    wide = matrix.shape[1] > len(matrix)
    values, axes = eigh(columns @ columns.T if wide else columns.T @ columns, driver="evd", check_finite=False)
    kept = values > len(values) * np.finfo(np.float64).eps * max(values[-1], 0)
    values, axes = values[kept], axes[:, kept]
    if wide:
        turned, others = axes * np.sqrt(values), (new @ columns.T) @ (axes / np.sqrt(values))
    else:
        turned, others = columns @ axes, new @ axes
    return turned, others, values / len(matrix)


def _sgd(
    settings: Sequence[Setting],
    matrix: Matrix,
    hits: npt.NDArray[np.int64],
    samples: npt.NDArray[np.int64],
    new: Matrix,
    seed: int,
) -> Floats:
    """Predict with the paper's recipe; some of the training questions decide which epoch is kept."""
    held_out = np.arange(len(hits)) % VALIDATION == VALIDATION - 1
    recipes = [
        Recipe(
            learning_rate=one.learning_rate or 0,  # refused by the recipe
            loss=one.loss,
            weight_decay=one.weight_decay,
            standardize=one.standardize,
        )
        for one in settings
    ]
    train, validation = ((matrix[rows], hits[rows], samples[rows]) for rows in (~held_out, held_out))
    probes = fit_paper_recipes(recipes, train, validation, seed=seed)
    return np.array([np.full(len(new), np.nan) if probe is None else probe.predict(new) for probe in probes])


def _mlp(
    settings: Sequence[Setting],
    matrix: Matrix,
    hits: npt.NDArray[np.int64],
    samples: npt.NDArray[np.int64],
    new: Matrix,
    seed: int,
) -> Floats:
    """Predict with multilayer perceptrons; each question stands once as right and once as wrong, by its shares."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    # Its weights, too, only see what the training questions span.
    inputs, others, _ = _principal(matrix.astype(np.float64), new.astype(np.float64), settings[0].standardize)
    mu, labels = hits / samples, np.repeat([1, 0], len(hits))
    result = np.empty((len(settings), len(new)))
    for row, one in enumerate(settings):
        shares = question_shares(one.loss, samples) * len(hits)
        network = MLPClassifier(
            (HIDDEN_UNITS,),
            solver="lbfgs",
            alpha=one.weight_decay * len(labels),  # sklearn divides it by the number of rows
            max_iter=MLP_ITERATIONS,
            random_state=seed,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            network.fit(np.vstack([inputs, inputs]), labels, np.concatenate([shares * mu, shares * (1 - mu)]))
        result[row] = network.predict_proba(others)[:, 1]
    return result


_FIT = {"linear": _linear, "sgd": _sgd, "mlp": _mlp}
