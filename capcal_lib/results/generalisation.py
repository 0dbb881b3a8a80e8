"""What a probe is worth beyond its training questions: other data sets, fewer questions, fewer samples.

Every score is the corrected capability Brier score on the evaluation split, lower is better, with a bootstrap
interval over questions; every comparison is paired on the same questions.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd

from capcal_lib.errors import InputError
from capcal_lib.grading.counts import count_verdicts
from capcal_lib.grading.verdicts import read_verdicts
from capcal_lib.manifests import Dataset, PromptStyle, load_dataset, load_model
from capcal_lib.metrics import capability_brier_terms, null_std, uniform_baseline_brier_terms
from capcal_lib.metrics.intervals import bootstrap_mean, paired_difference
from capcal_lib.metrics.validation import Floats, Ints
from capcal_lib.probes import LinearProbe
from capcal_lib.probes.conformal import Familiarity, conformal_half_width
from capcal_lib.probes.coordinates import FILE as COORDINATES
from capcal_lib.probes.coordinates import Coordinates, coordinates_command, read_coordinates
from capcal_lib.probes.features import read_features
from capcal_lib.probes.training import runs_for_probes
from capcal_lib.reported import load_reported
from capcal_lib.results.evaluation import Evidence, evidence_of
from capcal_lib.results.tables import shift
from capcal_lib.sampling.store import read_record

MIXTURE = "Equal shares of all sets"
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

    def brier_terms(self, predicted: Floats) -> Floats:
        """Return the corrected capability Brier terms of predictions of mu, both (n_questions,)."""
        return capability_brier_terms(predicted, self.correct, self.total, corrected=True)

    def coordinates(self) -> Coordinates | None:
        """Return the questions' coordinates in all layers, in this order of questions; None where they are not kept."""
        if not (self.folder / COORDINATES).exists():
            return None
        kept = read_coordinates(self.folder)
        how = f"coordinates; make them with: {coordinates_command(self.folder)}"
        places = _places(kept.question_ids, self.question_ids, self.folder, lacking=how)
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
    manifest = load_model(model)
    runs = runs_for_probes(store, manifest.name, split, style or manifest.prompt_style)
    return [_load(folder, dataset, k) for dataset, folder in runs]


def _load(folder: Path, dataset: Dataset, k: int | None) -> ProbeSet:
    verdicts = read_verdicts(folder)
    counts = count_verdicts(verdicts, k=k or int(verdicts["sample_index"].max()) + 1)
    scored = counts.total > 1
    names, features = read_features(folder)
    evidence = evidence_of(read_record(folder).identity)
    ids = counts.question_ids[scored]
    matrix = features[_places(names, ids, folder, lacking="hidden states; extract them with: capcal features")]
    return ProbeSet(dataset, evidence, folder, ids, matrix, counts.correct[scored], counts.total[scored])


def _places(names: Sequence[str], wanted: npt.NDArray[np.str_], folder: Path, *, lacking: str) -> npt.NDArray[np.int64]:
    places = pd.Index(list(names)).get_indexer(pd.Index(wanted))
    if (places < 0).any():
        raise InputError(f"{folder}: some sampled questions have no {lacking}")
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
            terms = test.brier_terms(probe.predict(test.features))
            uniform = uniform_baseline_brier_terms(test.correct, test.total, corrected=True)
            score, gain = bootstrap_mean(terms, rng=rng), paired_difference(uniform, terms, rng=rng)
            kind = SHIFTS.get("" if name == MIXTURE else shift(name, test.dataset), "mixture")
            about = test.dataset.name, test.dataset.title, test.dataset.domain
            spread = null_std(test.correct, test.total)
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


def size_curve(
    train: ProbeSet, test: ProbeSet, sizes: Sequence[int], rng: np.random.Generator, *, draws: int = 20
) -> pd.DataFrame:
    """Train the paper's probe on fewer questions: one row a size, with the mean and the spread over draws of them."""
    rows = []
    for size in [size for size in sizes if size <= len(train)]:
        scores = []
        for _ in range(draws):
            probe = paper_probe().fit(*train.rows(rng.permutation(len(train))[:size]))
            scores.append(test.brier_terms(probe.predict(test.features)).mean())
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
            scores.append(test.brier_terms(probe.predict(test.features)).mean())
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


def pick(sets: Sequence[ProbeSet], dataset: str) -> list[ProbeSet]:
    """Return the set of a data set: at most one.

    Raises
    ------
    InputError
        For an unknown data set.
    """
    name = load_dataset(dataset).name
    return [one for one in sets if one.dataset.name == name]


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
