"""What a probe is worth beyond its training questions: other data sets, fewer questions, fewer samples, other probes.

Every score is the corrected capability Brier score on the evaluation split, lower is better, with a bootstrap
interval over questions; every comparison is paired on the same questions.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Protocol, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd

from capcal_lib.counts import count_verdicts
from capcal_lib.errors import InputError
from capcal_lib.estimates import FEATURES, read_features
from capcal_lib.evaluation import Evidence
from capcal_lib.inputs import Floats, Ints
from capcal_lib.intervals import Interval, bootstrap_mean, paired_difference
from capcal_lib.manifests import Dataset, PromptStyle, dataset_names, load_dataset, load_model
from capcal_lib.metrics import capability_brier_terms, noise_spread, uniform_baseline_brier_terms
from capcal_lib.probes import LinearProbe
from capcal_lib.probes.coordinates import FILE as COORDINATES
from capcal_lib.probes.coordinates import Coordinates, read_coordinates, text_statistics
from capcal_lib.probes.kernel import KernelProbe, principal_coordinates
from capcal_lib.probes.recipe import LEARNING_RATES, Recipe, fit_paper_recipes
from capcal_lib.probes.reliance import Familiarity, conformal_half_width
from capcal_lib.probes.stacked import BLOCKS, StackedProbe
from capcal_lib.questions import Question, at_hand
from capcal_lib.reported import load_reported
from capcal_lib.store import find_run, read_record
from capcal_lib.tables import interval_text, shift, stack
from capcal_lib.verdicts import FILE as VERDICTS
from capcal_lib.verdicts import read_verdicts, run_questions

MIXTURE = "Equal shares of all sets"
LINEAR, OPTIMUM, TUNED = "Linear probe (paper)", "Linear probe (at its optimum)", "Linear probe (tuned)"
KERNEL = "Kernel probe, all layers"
STACKED = "Stacked probe"
PROBES = (LINEAR, OPTIMUM, TUNED, KERNEL, STACKED)  # all others in a contest read no hidden state
AGAINST = ("minus the paper's", "minus tuned", "minus best baseline")  # the stacked probe's score
AIM = 0.1  # share of the paper's score by which the stacked probe is to score lower
VALIDATION = 0.2  # share of the training questions that chooses the paper's learning rate and epoch
SHIFTS = {"id": "in-domain in-distribution", "ood": "in-domain out-of-distribution", "out": "out-of-domain"}


class Probe(Protocol):
    """What can be fitted to features and counts."""

    def fit(self, features: npt.ArrayLike, correct: npt.ArrayLike, total: npt.ArrayLike) -> "Probe":
        """Fit to (n_questions, n_features) and two arrays of (n_questions,)."""
        ...

    def predict(self, features: npt.ArrayLike) -> Floats:
        """Predict mu, (n_questions,)."""
        ...


@dataclass(frozen=True, eq=False)
class ProbeSet:
    """The questions of one split with what a probe reads and learns; those with two scored samples or more."""

    dataset: Dataset
    evidence: Evidence
    folder: Path
    question_ids: npt.NDArray[np.str_]
    features: npt.NDArray[np.float32]  # (n_questions, hidden_size), the mean over layers
    correct: Ints
    total: Ints

    def __len__(self) -> int:
        return len(self.total)

    def rows(self, chosen: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.float32], Ints, Ints]:
        """Return features and counts of some of the questions."""
        return self.features[chosen], self.correct[chosen], self.total[chosen]

    @property
    def everything(self) -> tuple[npt.NDArray[np.float32], Ints, Ints]:
        """Return features and counts of all questions, as probes are fitted to them."""
        return self.features, self.correct, self.total

    def coordinates(self) -> Coordinates | None:
        """Return the questions' coordinates in all layers, in this order of questions; None where they are not kept."""
        if not (self.folder / COORDINATES).exists():
            return None
        kept = read_coordinates(self.folder)
        places = pd.Index(kept.question_ids).get_indexer(pd.Index(self.question_ids))
        if (places < 0).any():
            run = read_record(self.folder).identity
            how = f"capcal coordinates --model {run.model} --dataset {run.dataset}"
            raise InputError(f"{self.folder}: some sampled questions have no coordinates; make them with: {how}")
        names = [str(name) for name in self.question_ids]
        return Coordinates(names, kept.points[places], kept.statistics[places], kept.directions)


def training_sets(store: Path, model: str, *, style: PromptStyle | None = None) -> list[ProbeSet]:
    """Load every training split with verdicts and hidden states of a model, asked in its usual style or another."""
    return _sets(store, model, lambda dataset: dataset.training_split, k=None, style=style)


def evaluation_sets(store: Path, model: str, *, k_eval: int = 100, style: PromptStyle | None = None) -> list[ProbeSet]:
    """Load every evaluation split asked so, with verdicts and hidden states; the first k_eval samples count."""
    return _sets(store, model, lambda dataset: dataset.evaluation_split, k=k_eval, style=style)


def _sets(
    store: Path, model: str, split: Callable[[Dataset], str | None], *, k: int | None, style: PromptStyle | None
) -> list[ProbeSet]:
    found, style = [], style or load_model(model).prompt_style
    for dataset in map(load_dataset, dataset_names()):
        name = split(dataset)
        folders = list(store.glob(f"{load_model(model).name}/{dataset.name}-{name}/*/{FEATURES}"))
        if name is None or not folders or not (folders[0].parent / VERDICTS).exists():
            continue
        folder = find_run(store, model, dataset.name, name)
        if read_record(folder).identity.prompt_style == style:
            found.append(_load(folder, dataset, k))
    return found


def _load(folder: Path, dataset: Dataset, k: int | None) -> ProbeSet:
    verdicts = read_verdicts(folder)
    counts = count_verdicts(verdicts, k=k or int(verdicts["sample_index"].max()) + 1)
    scored = counts.total > 1
    names, features = read_features(folder)
    evidence: Evidence = "simulated" if read_record(folder).identity.engine == "simulated" else "measured"
    ids = counts.question_ids[scored]
    matrix = features[_places(names, ids, folder)]
    return ProbeSet(dataset, evidence, folder, ids, matrix, counts.correct[scored], counts.total[scored])


def _places(names: Sequence[str], wanted: npt.NDArray[np.str_], folder: Path) -> npt.NDArray[np.int64]:
    places = pd.Index(list(names)).get_indexer(pd.Index(wanted))
    if (places < 0).any():
        raise InputError(f"{folder}: some sampled questions have no hidden states; extract them with: capcal features")
    return places.astype(np.int64)


def paper_probe() -> LinearProbe:
    """Make the probe of the main table: linear, on the mean over layers, at the optimum of the paper's objective."""
    return LinearProbe(standardize=True)


def mixed(sets: Sequence[ProbeSet], size: int, rng: np.random.Generator) -> tuple[Floats, Ints, Ints]:
    """Draw equal shares of several training sets, ``size`` questions together, without replacement.

    Returns
    -------
    features, correct, total
        As probes are fitted to them. A set that is smaller than its share gives all that it has.
    """
    share = size // len(sets)
    parts = [one.rows(rng.permutation(len(one))[:share]) for one in sets]
    features, correct, total = (np.concatenate(column) for column in zip(*parts, strict=True))
    return features, correct, total


def transfer_matrix(
    training: Sequence[ProbeSet], evaluation: Sequence[ProbeSet], rng: np.random.Generator
) -> pd.DataFrame:
    """Train the paper's probe on each training set, and on an equal mixture of all; score it everywhere.

    The mixture is as large as the largest single set, so that it has no advantage but its variety.

    Returns
    -------
    DataFrame
        One row a (method, data set), in the form of the main table: ``brier`` with ``low`` and ``high``; ``gain``,
        how far below Uniform random it is, with ``gain low`` and ``gain high``, paired (above 0 is better);
        ``spread``, the standard deviation of a perfect estimator's score; ``best``, whether the gain's interval lies
        above 0; ``shift`` between the two sets.
    """
    sources: dict[str, Probe] = {one.dataset.probe: paper_probe().fit(*one.everything) for one in training}
    if len(training) > 1:
        sources[MIXTURE] = paper_probe().fit(*mixed(training, max(map(len, training)), rng))
    rows = []
    for name, probe in sources.items():
        for test in evaluation:
            terms = _terms(probe.predict(test.features), test)
            uniform = uniform_baseline_brier_terms(test.correct, test.total, corrected=True)
            score, gain = bootstrap_mean(terms, rng=rng), paired_difference(uniform, terms, rng=rng)
            kind = SHIFTS.get("" if name == MIXTURE else shift(name, test.dataset), "mixture")
            about = test.dataset.name, test.dataset.title, test.dataset.domain
            spread = noise_spread(test.correct, test.total)
            rows.append((name, *about, *score, *gain, spread, kind, gain.low > 0, test.evidence))
    columns = ["method", "dataset", "data set", "domain", "brier", "low", "high", "gain", "gain low", "gain high"]
    table = pd.DataFrame(rows, columns=[*columns, "spread", "shift", "best", "evidence"])
    return table.assign(tied=False, second=False)  # what the main table marks besides


def shift_table(matrix: pd.DataFrame) -> pd.DataFrame:
    """Summarise a transfer matrix by the shift: its cells, mean score and gain, and cells that beat Uniform random."""
    if matrix.empty:
        return matrix
    groups = matrix.groupby("shift", sort=False)
    table = groups.agg(cells=("brier", "size"), brier=("brier", "mean"), gain=("gain", "mean"), beat=("best", "sum"))
    return table.reset_index().assign(evidence=matrix["evidence"].iloc[0])


def shift_counts(table: pd.DataFrame) -> dict[str, int]:
    """Count the cells of a ``shift_table``, and those that beat Uniform random: at home, away, and of the mixture."""
    counts = {}
    for name, kinds in {"own": ["id"], "away": ["ood", "out"], "mixture": []}.items():
        titles = [SHIFTS[kind] for kind in kinds] or ["mixture"]
        rows = table[table["shift"].isin(titles)] if len(table) else table
        counts[name] = int(rows["beat"].sum()) if len(rows) else 0
        counts[f"{name}_cells"] = int(rows["cells"].sum()) if len(rows) else 0
    return counts


def _terms(predicted: Floats, test: ProbeSet) -> Floats:
    return capability_brier_terms(predicted, test.correct, test.total, corrected=True)


def size_curve(
    train: ProbeSet, test: ProbeSet, sizes: Sequence[int], rng: np.random.Generator, *, draws: int = 20
) -> pd.DataFrame:
    """Train the paper's probe on fewer questions: one row a size, with the mean and the spread over draws of them."""
    rows = []
    for size in [size for size in sizes if size <= len(train)]:
        scores = []
        for _ in range(draws):
            probe = paper_probe().fit(*train.rows(rng.permutation(len(train))[:size]))
            scores.append(_terms(probe.predict(test.features), test).mean())
        rows.append((size, np.mean(scores), np.min(scores), np.max(scores), test.evidence))
    return pd.DataFrame(rows, columns=["questions", "brier", "lowest", "highest", "evidence"])


def label_curve(
    train: ProbeSet, test: ProbeSet, ks: Sequence[int], rng: np.random.Generator, *, draws: int = 20
) -> pd.DataFrame:
    """Train the paper's probe with fewer samples a question: one row a k_train.

    Fewer samples are drawn from those at hand, without replacement: a hypergeometric count, as if only k had been
    sampled. The questions are those with as many scored samples as the largest k.
    """
    ks = [k for k in ks if k <= train.total.max()]
    enough = np.flatnonzero(train.total >= max(ks, default=0))
    features, correct, total = train.rows(enough)
    rows = []
    for k in ks:
        scores = []
        for _ in range(draws):
            fewer = rng.hypergeometric(correct, total - correct, k)
            probe = paper_probe().fit(features, fewer, np.full(len(fewer), k))
            scores.append(_terms(probe.predict(test.features), test).mean())
        rows.append((k, np.mean(scores), np.min(scores), np.max(scores), test.evidence))
    return pd.DataFrame(rows, columns=["k_train", "brier", "lowest", "highest", "evidence"])


def reliance(
    train: ProbeSet, evaluation: Sequence[ProbeSet], rng: np.random.Generator, *, level: float = 0.9
) -> pd.DataFrame:
    """Put a conformal band around a probe's predictions, and flag questions far from its training set.

    The probe is trained on half of the training questions, and the band calibrated on the other half.

    Returns
    -------
    DataFrame
        One row a data set: ``half-width`` of the band, the share of its questions whose mu_hat lies ``covered``, the
        share ``flagged`` as far, and the ``shift`` from the training set. The promise holds for the first kind only.
    """
    order = rng.permutation(len(train))
    fitted, calibration = order[: len(train) // 2], order[len(train) // 2 :]
    probe = paper_probe().fit(*train.rows(fitted))
    features, correct, total = train.rows(calibration)
    width = conformal_half_width(probe.predict(features), correct / total, level=level)
    known = Familiarity().fit(train.features, rng=rng)
    rows = []
    for test in evaluation:
        inside = np.abs(probe.predict(test.features) - test.correct / test.total) <= width
        kind = SHIFTS[shift(train.dataset.probe, test.dataset)]
        far = known.far(test.features)
        rows.append((test.dataset.title, kind, width, inside.mean(), far.mean(), test.evidence))
    return pd.DataFrame(rows, columns=["data set", "shift", "half-width", "covered", "flagged", "evidence"])


def contest(training: Sequence[ProbeSet], test: ProbeSet, rng: np.random.Generator) -> pd.DataFrame:
    """Predict one data set by the paper's probe, simple baselines and other probes: one row a question.

    All are trained on the data set's own training split, but for the overall mean. ``Linear probe (paper)`` is
    trained by the paper's recipe; ``at its optimum`` minimises the same objective fully, and ``tuned`` does so with the
    weight decay that cross-validation on the training questions chooses. Bag of words, and length and punctuation,
    read the question's text alone. The kernel probe reads all layers; the stacked probe is `StackedProbe`.

    Returns
    -------
    DataFrame
        The corrected capability Brier terms of each question, a column a predictor. A predictor whose input is not
        at hand (texts of another machine's data set, coordinates not kept) has no column; without a training split of
        its own there is none at all.

    Raises
    ------
    InputError
        Where the two splits' coordinates lie along different directions.
    """
    own = next((one for one in training if one.dataset == test.dataset), None)
    if own is None:
        return pd.DataFrame()
    mu = {one.dataset.name: one.correct / one.total for one in training}
    predicted = {
        LINEAR: recipe_probe(own, rng).predict(test.features),
        OPTIMUM: paper_probe().fit(*own.everything).predict(test.features),
        "Overall mean of all training sets": np.full(len(test), np.concatenate(list(mu.values())).mean()),
        "Mean of the training set": np.full(len(test), mu[own.dataset.name].mean()),
        **_text_baselines(own, test),
        TUNED: tuned_linear(own, rng).predict(test.features),
    }
    here, there = own.coordinates(), test.coordinates()
    if here is not None and there is not None:
        counts = own.correct, own.total
        points = [kept.points.reshape(len(kept.points), -1) for kept in (here, there)]
        predicted[KERNEL] = KernelProbe().fit(points[0], *counts).predict(points[1])
        known, unseen = _blocks(own, here, test, there)
        predicted[STACKED] = StackedProbe(seed=int(rng.integers(2**31))).fit(known, *counts).predict(unseen)
    return pd.DataFrame({name: _terms(values, test) for name, values in predicted.items()})


def _blocks(
    train: ProbeSet, here: Coordinates, test: ProbeSet, there: Coordinates
) -> list[dict[str, npt.NDArray[np.floating]]]:
    """Return what the stacked probe reads of the training and of the test questions."""
    if here.directions != there.directions:
        run = read_record(test.folder).identity
        how = f"capcal coordinates --model {run.model} --dataset {run.dataset}"
        raise InputError(f"{test.folder}: its coordinates are not along the training run's directions; run: {how}")
    statistics = principal_coordinates(here.statistics, there.statistics)
    blocks = []
    for one, kept, seen in zip((train, test), (here, there), statistics, strict=True):
        parts: list[npt.NDArray[np.floating]] = [one.features, *np.moveaxis(kept.points, 1, 0), seen]
        blocks.append(dict(zip(BLOCKS, parts, strict=True)))
    return blocks


def contest_table(
    test: ProbeSet, terms: pd.DataFrame, rng: np.random.Generator, *, reference: str = LINEAR
) -> pd.DataFrame:
    """Score what ``contest`` returned: one row a predictor.

    ``brier`` with ``low`` and ``high``; ``difference``, its score less that of the reference, with ``difference low``
    and ``difference high``, paired: below 0, it is better.
    """
    rows = []
    for name in map(str, terms):
        score = bootstrap_mean(terms[name], rng=rng)
        difference = paired_difference(terms[name], terms[reference], rng=rng)
        rows.append((name, test.dataset.title, *score, *difference, test.evidence))
    columns = ["predictor", "data set", "brier", "low", "high", "difference", "difference low", "difference high"]
    return pd.DataFrame(rows, columns=[*columns, "evidence"])


def last_step(curve: pd.DataFrame) -> float:
    """Return how far the score falls at the last step of a learning curve; NaN for less than two points."""
    return float(curve["brier"].iloc[-2] - curve["brier"].iloc[-1]) if len(curve) > 1 else float("nan")


def home_and_away(table: pd.DataFrame) -> dict[str, float]:
    """Average a ``reliance`` table over the training set's own questions and over others; NaN for none.

    Returns
    -------
    dict
        ``covered``: the share inside the band at home; ``home`` and ``away``: the share flagged as far.
    """
    if table.empty:
        return dict.fromkeys(("covered", "home", "away"), float("nan"))
    own = table["shift"] == SHIFTS["id"]
    shares = table["covered"][own].mean(), table["flagged"][own].mean(), table["flagged"][~own].mean()
    return dict(zip(("covered", "home", "away"), map(float, shares), strict=True))


def contest_wide(table: pd.DataFrame) -> pd.DataFrame:
    """Put stacked contest tables in one: a row a predictor, a column a data set.

    Each cell is the score, and in brackets the interval of its difference from the reference's.
    """
    if table.empty:
        return table
    limits = zip(table["brier"], table["difference low"], table["difference high"], strict=True)
    cells = table.assign(cell=[f"{score:.4f} [{low:+.4f}, {high:+.4f}]" for score, low, high in limits])
    wide = cells.pivot(index="predictor", columns="data set", values="cell")
    return (
        wide.reindex(pd.unique(table["predictor"]), columns=pd.unique(table["data set"]))
        .rename_axis(None, axis="columns")
        .reset_index()
    )


def pick(sets: Sequence[ProbeSet], dataset: str) -> list[ProbeSet]:
    """Return the set of a data set: at most one.

    Raises
    ------
    InputError
        For an unknown data set.
    """
    name = load_dataset(dataset).name
    return [one for one in sets if one.dataset.name == name]


def contests(
    store: Path, models: Sequence[str], *, k_eval: int = 100, seed: int = 0
) -> list[tuple[ProbeSet, pd.DataFrame]]:
    """Hold a contest for each model on each data set with recorded runs of both splits, asked in one style.

    Each has its own generator of this seed, so its outcome does not depend on the others.

    Returns
    -------
    list of (ProbeSet, DataFrame)
        The evaluation split, and what ``contest`` returns.
    """
    found = []
    for model, style in product(models, get_args(PromptStyle)):
        training = training_sets(store, model, style=style)
        for test in evaluation_sets(store, model, k_eval=k_eval, style=style) if training else ():
            found.append((test, contest(training, test, np.random.default_rng(seed))))
    return [(test, terms) for test, terms in found if len(terms)]


def contest_tables(
    held: Sequence[tuple[ProbeSet, pd.DataFrame]], rng: np.random.Generator, *references: str
) -> list[pd.DataFrame]:
    """Return the stacked ``contest_table`` of ``contests`` against each reference."""
    return [stack([contest_table(*one, rng, reference=name) for one in held]) for name in references]


def baselines_beaten(table: pd.DataFrame) -> dict[str, int]:
    """Count, over stacked contest tables, the data sets on which the paper's probe is told from the best baseline.

    Returns
    -------
    dict
        ``sets``; ``below`` and ``above``: on how many the paper's probe scores lower, or higher, than the best of the
        baselines that read no hidden state, with a paired interval that excludes zero.
    """
    counted = {"sets": 0, "below": 0, "above": 0}
    for _, rows in table.groupby("data set") if len(table) else ():
        simple = rows[~rows["predictor"].isin(PROBES)]
        best = simple.iloc[int(simple["brier"].to_numpy().argmin())]
        counted["sets"] += 1
        counted["below"] += int(best["difference low"] > 0)
        counted["above"] += int(best["difference high"] < 0)
    return counted


def tenths_won(table: pd.DataFrame, *, reference: str = LINEAR, probe: str = KERNEL) -> int:
    """Count the data sets on which a probe scores a tenth lower than the reference, beyond doubt.

    ``table`` holds stacked contest tables with that reference: the score is at most 0.9 of the reference's, and the
    paired interval of the difference lies below zero.
    """
    if table.empty:
        return 0
    against = table[table["predictor"] == reference].set_index("data set")["brier"]
    ours = table[table["predictor"] == probe].set_index("data set")
    return int(((ours["difference"] <= -AIM * against[ours.index]) & (ours["difference high"] < 0)).sum())


def stacked_table(held: Sequence[tuple[ProbeSet, pd.DataFrame]], *, seed: int = 0) -> pd.DataFrame:
    """Hold the stacked probe against the paper's, the tuned and the best baseline, over measured ``contests``.

    Returns
    -------
    DataFrame
        One row a pair of model and data set on which the stacked probe could be made: ``part``, whether the pair was
        seen while the probe was designed (the built-in mini sets) or is a clean test; the scores of the paper's probe
        and of the stacked one; ``lower``, by what share of the paper's score the stacked one is lower; the paired
        difference from the paper's, the tuned and the best baseline's score, each with its interval, below 0 is
        better; and whether the aim is ``met``: a tenth lower, with an interval that lies below zero. The best
        baseline is the one that scores lowest on the very questions.
    """
    rows = []
    for test, terms in held:
        if STACKED not in terms or test.evidence != "measured":
            continue
        baseline = str(terms.drop(columns=list(PROBES)).mean().idxmin())
        differences = [
            paired_difference(terms[STACKED], terms[name], rng=np.random.default_rng(seed))
            for name in (LINEAR, TUNED, baseline)
        ]
        paper, ours = terms[LINEAR].mean(), terms[STACKED].mean()
        title = load_model(read_record(test.folder).identity.model).title
        part = "development" if test.dataset.builtin else "clean test"
        lower = (paper - ours) / paper
        met = lower >= AIM and differences[0].high < 0
        scores = title, test.dataset.title, part, len(test), paper, ours, lower
        rows.append((*scores, *(limit for one in differences for limit in one), met, test.evidence))
    against = [f"{name}{end}" for name in AGAINST for end in ("", " low", " high")]
    columns = ["model", "data set", "part", "questions", "paper's", "stacked", "lower", *against, "met", "evidence"]
    return pd.DataFrame(rows, columns=columns)


def stacked_shown(table: pd.DataFrame) -> pd.DataFrame:
    """Write each interval of a ``stacked_table`` behind its difference, and say what is met."""
    shown = table.assign(met=table["met"].map({True: "yes", False: "no"}))
    for name in AGAINST:
        shown[name] = _spelt(table[name], table[f"{name} low"], table[f"{name} high"])
    return shown.drop(columns=[f"{name}{end}" for name in AGAINST for end in (" low", " high")])


def _spelt(*columns: Iterable[float]) -> list[str]:
    """Write numbers, the lower and the upper ends of their intervals as one text each."""
    return [
        f"{middle:+.4f} {interval_text(Interval(middle, low, high), 4)}"
        for middle, low, high in zip(*columns, strict=True)
    ]


def aim_counts(table: pd.DataFrame) -> dict[str, int]:
    """Count the pairs of a ``stacked_table``, and those on which the aim is met: all, of the clean test, and before.

    Returns
    -------
    dict
        ``pairs``, ``met``; ``clean``, ``clean_met``; ``development``, ``development_met``; and the pairs on which the
        interval of a difference lies on one side of zero: ``worse`` than the paper's probe; ``below_tuned`` and
        ``above_tuned``; ``below_baseline`` and ``above_baseline``.
    """
    counts = {"pairs": len(table), "met": int(table["met"].sum()), "worse": int((table[f"{AGAINST[0]} low"] > 0).sum())}
    for key, name in {"tuned": AGAINST[1], "baseline": AGAINST[2]}.items():
        counts[f"below_{key}"] = int((table[f"{name} high"] < 0).sum())
        counts[f"above_{key}"] = int((table[f"{name} low"] > 0).sum())
    for key, part in {"clean": "clean test", "development": "development"}.items():
        rows = table[table["part"] == part]
        counts |= {key: len(rows), f"{key}_met": int(rows["met"].sum())}
    return counts


def failures(table: pd.DataFrame) -> str:
    """Name the pairs of a ``stacked_table`` on which the aim is not met; ``none``, if there are none."""
    left = table[table["met"] == 0]
    return (
        "; ".join(f"{model} on {name}" for model, name in zip(left["model"], left["data set"], strict=True)) or "none"
    )


def recipe_probe(train: ProbeSet, rng: np.random.Generator) -> LinearProbe:
    """Train by the paper's recipe: its grid of learning rates, raw and standardised, chosen by a fifth held out."""
    order = rng.permutation(len(train))
    cut = max(1, round(VALIDATION * len(train)))
    data, validation = train.rows(order[cut:]), train.rows(order[:cut])
    recipes = [Recipe(rate, standardize=flag) for rate in LEARNING_RATES for flag in (False, True)]
    found = [
        fit_paper_recipes([one for one in recipes if one.standardize == flag], data, validation) for flag in (0, 1)
    ]
    probes = [probe for group in found for probe in group if probe is not None]
    features, correct, total = validation
    return min(probes, key=lambda probe: capability_brier_terms(probe.predict(features), correct, total).mean())


def tuned_linear(
    train: ProbeSet,
    rng: np.random.Generator,
    *,
    decays: Sequence[float] = (0.01, 0.1, 1.0, 10.0),
    folds: int = 5,
) -> LinearProbe:
    """Fit the paper's probe with the weight decay that predicts held-out training questions best."""
    fold = rng.permutation(len(train)) % folds
    scores = {}
    for decay in decays:
        errors = np.empty(len(train))
        for each in range(folds):
            probe = LinearProbe(standardize=True, weight_decay=decay).fit(*train.rows(np.flatnonzero(fold != each)))
            features, correct, total = train.rows(np.flatnonzero(fold == each))
            errors[fold == each] = capability_brier_terms(probe.predict(features), correct, total)
        scores[decay] = errors.mean()
    return LinearProbe(standardize=True, weight_decay=min(scores, key=scores.__getitem__)).fit(*train.everything)


def _text_baselines(train: ProbeSet, test: ProbeSet) -> dict[str, Floats]:
    """Predict from the questions' texts; nothing where they are not on this machine."""
    from sklearn.feature_extraction.text import CountVectorizer

    if not all(at_hand(one.dataset.name, read_record(one.folder).identity.split) for one in (train, test)):
        return {}
    asked, unseen = (_texts(one) for one in (train, test))
    words = CountVectorizer(binary=True, token_pattern=r"\w+|[^\w\s]")
    bags = words.fit_transform(asked).toarray(), words.transform(unseen).toarray()
    shapes = text_statistics(asked), text_statistics(unseen)
    return {
        "Bag of words": LinearProbe(weight_decay=1e-2).fit(bags[0], train.correct, train.total).predict(bags[1]),
        "Length and punctuation": LinearProbe(standardize=True)
        .fit(shapes[0], train.correct, train.total)
        .predict(shapes[1]),
    }


def _texts(one: ProbeSet) -> list[str]:
    questions: dict[str, Question] = run_questions(one.folder)
    return [questions[name].text for name in one.question_ids]


def reported_mixing(model: str) -> pd.DataFrame:
    """Return what the paper reports of training on two sets: a row a probe, a column a data set."""
    table = load_reported("mixing")
    rows = table[table["model"] == model]
    if rows.empty:
        return pd.DataFrame({"": ["the paper has no numbers of this model"]})
    rows = rows.assign(title=[load_dataset(name).title for name in rows["dataset"]])
    columns, methods = list(dict.fromkeys(rows["title"])), list(dict.fromkeys(rows["method"]))
    wide = rows.pivot(index="method", columns="title", values="value").loc[methods, columns]
    return wide.rename_axis(columns=None).reset_index().assign(evidence="reported")
