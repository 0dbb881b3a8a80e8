"""Take back what this book does differently from the paper, one correction at a time, on the same
recorded samples; and score by the sizes of the lean recipe and of the paper's.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from capcal_lib.applications import deep_samples
from capcal_lib.confidence import mean_tokens
from capcal_lib.confidence.consistency import consistency, read_answers, split_votes
from capcal_lib.errors import InputError
from capcal_lib.grading.counts import count_run
from capcal_lib.grading.judgements import judges
from capcal_lib.probes import TunedProbe, draw_training, runs_for_probes, training_data
from capcal_lib.results.constant import kind_of_method
from capcal_lib.results.results import describe_runs, load_results
from capcal_lib.results.scores import (
    BEST_CONSTANT,
    MISSING_AS,
    brier_terms,
    confidence_columns,
    fill_missing,
    score,
)
from capcal_lib.runs.run import Run

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

JUDGED, TOGETHER = "a judge's verdicts", "all together"
OWN_PROBE, OTHER_PROBE, OTHER = GROUPS = (
    "a probe on its own data set",
    "any other probe",
    "any other confidence",
)
LEAN, PAPER = SIZES = "lean", "the paper's"
PROBE = "Probe of the data set"
LEAST_TRAINING = 100  # questions: fewer teach a probe nothing
DRAWS = 3  # of training samples, which are chance too
EQUAL = 1e-12  # shifts up to this are rounding


def shifts_by_correction(
    store: Path | str, model: str, *, k_eval: int = 100, k_c: int = 10
) -> pd.DataFrame:
    """Return how far each score of a model shifts when a correction is taken back alone, and when
    all are but for the judge's verdicts; above zero it becomes worse.

    ``plug-in scores`` leave the noise of mu_hat in; ``missing as 0.5`` gives a question without a
    confidence one half, where the method was asked at all, but for votes, of which
    :func:`votes_without_answer` tells; ``votes in the pool`` judges the votes
    of the same splits by all samples; ``paper's probes`` are trained by its recipe; ``a judge's
    verdicts`` are the mean over the judges that have judged every answer to a data set.

    A row a ``switch``, ``dataset`` and ``method`` that shifts at all, with ``confidence``, which is
    one of ``GROUPS``, and ``shift``.
    """
    sizes: dict[str, Any] = {"k_eval": k_eval, "k_c": k_c}
    ours = load_results(store, model, **sizes)
    terms = brier_terms(ours)
    runs: Any = describe_runs(store, model, k_eval=k_eval)["run"]
    columns = confidence_columns(ours)
    filled = ours.copy()
    filled[columns] = fill_missing(ours[columns])
    pool = {
        name: split_votes(read_answers(run, k=k_eval), k_c, held_out=False)["term"]
        for name, run in runs.items()
    }
    pooled = ours.assign(**{"votes term": pd.concat(pool, names=["dataset"])})
    probes = load_results(store, model, **sizes, recipe="paper").filter(regex="correct|total|Probe")
    paper = load_results(store, model, **sizes, recipe="paper", held_out=False)
    switched = {
        "plug-in scores": _means(brier_terms(ours, protocol="paper").where(terms.notna())),
        "missing as 0.5": _means(brier_terms(filled)),
        "votes in the pool": _means(brier_terms(pooled)),
        "paper's probes": _means(brier_terms(probes)),
    }
    judged = _judged(store, model, runs, sizes)
    if len(judged):
        switched[JUDGED] = judged
    switched[TOGETHER] = _means(brier_terms(paper, protocol="paper"))
    shifts = pd.DataFrame(switched).sub(_means(terms), axis="index")
    stacked: Any = shifts.rename_axis(columns="switch").stack()
    table = stacked.rename("shift").dropna().reset_index()
    table = table[table["shift"].abs() > EQUAL].reset_index(drop=True)
    groups = [_group(*pair) for pair in table[["method", "dataset"]].to_numpy()]
    table["switch"] = pd.Categorical(table["switch"], [*switched]).remove_unused_categories()
    table["confidence"] = pd.Categorical(groups, GROUPS).remove_unused_categories()
    return table


def _means(terms: pd.DataFrame) -> "pd.Series[float]":
    """Return the mean term of each data set and method; the best constant is none."""
    by_set = terms.drop(columns=BEST_CONSTANT).groupby(level="dataset", sort=False).mean()
    means: Any = by_set.rename_axis(columns="method").stack()
    return means.dropna()


def _judged(
    store: Path | str, model: str, runs: Mapping[str, Run], sizes: Mapping[str, Any]
) -> "pd.Series[float]":
    """Return the mean terms by judges, of those that have judged every answer to a data set."""
    found = []
    for name, run in runs.items():
        for judge in judges(run):
            verdicts = f"judge:{judge}"
            try:
                results = load_results(store, model, datasets=[name], verdicts=verdicts, **sizes)
            except InputError:  # it has not judged them all
                continue
            found.append(_means(brier_terms(results)))
    if not found:
        return pd.Series(dtype=float)
    return pd.concat(found).groupby(level=[0, 1]).mean()


def _group(method: str, dataset: str) -> str:
    """Say whether a confidence is a probe, and of its own data set."""
    kind = kind_of_method(method, dataset)
    if kind == "probe of the data set":
        return OWN_PROBE
    return OTHER_PROBE if kind.startswith("probe") else OTHER


def votes_without_answer(
    runs: Mapping[str, Run], *, k_eval: int = 100, k_c: int = 10
) -> pd.DataFrame:
    """Return what samples without an answer do to the plug-in score of ``k_c`` votes, which share
    their samples with mu_hat.

    A row a data set of ``runs`` of which any question has so many samples; only these questions
    count: the share of their samples ``without an answer``; the score where those ``agree with
    nobody``, and where they vote together ``as a group``; and the ``shift`` from the first to the
    second, above zero where the group is worse.
    """
    rows = {}
    for name, run in runs.items():
        answers = read_answers(run, k=k_eval)
        wide: Any = answers.pivot(index="question_id", columns="sample_index")
        drawn = wide["verdict"].notna()
        wide = wide[drawn.iloc[:, :k_c].sum(axis="columns") == k_c]
        if wide.empty:
            continue
        mu = wide["correct"].mean(axis="columns").to_numpy()
        votes = wide["canonical"].iloc[:, :k_c]
        without = (wide["canonical"].isna() & wide["verdict"].notna()).to_numpy().sum()
        alone = pd.Series(consistency(votes.to_numpy())).fillna(MISSING_AS)
        group = consistency(votes.fillna("no answer").to_numpy())
        scores = [_squared(alone, mu), _squared(group, mu)]
        share = without / wide["verdict"].notna().to_numpy().sum()
        rows[name] = [share, *scores, scores[1] - scores[0]]
    columns = ["without an answer", "agree with nobody", "as a group", "shift"]
    return pd.DataFrame(rows, columns).T.rename_axis("dataset")


def _squared(confidence: "ArrayLike", mu: "ArrayLike") -> float:
    """Return the mean squared distance."""
    return float(np.mean((np.asarray(confidence) - np.asarray(mu)) ** 2))


def compare_sizes(
    store: Path | str, model: str, *, k_c: int = 10, seed: int = 0, sets: int = 4
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Score the confidences of a model by the sizes of the lean recipe and of the paper's, both cut
    from the same recorded samples, on the data sets where questions differ most.

    Lean are 20 samples of each evaluation question and one of each training question, and three
    more of at most 500; the paper's are 100 and ten, or as many as there are. Evaluation questions
    are those that have as many samples as ``applications.deep_samples`` says. The probe of the data
    set is tuned on three draws of training samples from ``seed``.

    Returns the table of ``score`` indexed by (dataset, sizes, method), without what needs no
    samples; and ``tokens`` that the samples take, a row a data set and a column a size. Both are
    empty where no training run has 100 questions.
    """
    runs = {dataset.name: run for dataset, run in runs_for_probes(store, model, "evaluation")}
    training = {
        dataset.name: run
        for dataset, run in runs_for_probes(store, model, "training")
        if dataset.name in runs and len(training_data(run)[0]) >= LEAST_TRAINING
    }
    counts = load_results(store, model, k_c=k_c, recipe=None)
    spread = (counts["correct"] / counts["total"]).groupby(level="dataset").var()
    scores, tokens = {}, {}
    for name in spread.reindex([*training]).nlargest(sets).index:
        total = training_data(training[name])[0]["total"]
        most = min(10, total.max())
        whole = int((total >= most).sum())
        drawn = {LEAN: len(total) + 3 * min(500, whole), PAPER: whole * most}
        taught = {LEAN: (len(total), 1), PAPER: (whole, most)}
        recorded = count_run(runs[name], 100)
        samples = recorded["total"] + recorded["not_scored"]
        depth = deep_samples(samples)
        deep = samples.index[samples >= depth]
        for sizes, k_eval in ((LEAN, min(20, depth)), (PAPER, depth)):
            scored = load_results(
                store, model, datasets=[name], k_eval=k_eval, k_c=k_c, recipe=None
            )
            scored = scored[scored.index.get_level_values("question_id").isin(deep)]
            for draw in range(DRAWS):
                rng = np.random.default_rng([seed, draw])
                predicted = predict_from(training[name], runs[name], *taught[sizes], rng=rng)
                ids = scored.index.get_level_values("question_id")
                scored[f"{PROBE} [{draw}]"] = predicted.reindex(ids).array
            table = score(scored).loc[name]
            left_out = table.index.str.startswith(("Uniform", "Best", "Oracle"))
            scores[name, sizes] = table[~left_out]
            answers = len(scored) * k_eval * mean_tokens(runs[name])
            tokens[name, sizes] = drawn[sizes] * mean_tokens(training[name]) + answers
    if not scores:
        return pd.DataFrame(), pd.DataFrame()
    wide = pd.Series(tokens).rename_axis(["dataset", "sizes"]).unstack("sizes")
    return pd.concat(scores, names=["dataset", "sizes", "method"]), wide[[*SIZES]]


def predict_from(
    training: Run, evaluation: Run, n: int, k: int, *, rng: np.random.Generator
) -> "pd.Series[float]":
    """Train a tuned probe on ``k`` samples of each of ``n`` questions, drawn from a training run,
    and return its confidence in each question of another run, by question id.
    """
    questions, features = training_data(training)
    drawn = draw_training(questions, n, k, rng=rng)
    rows = questions.index.get_indexer(drawn.index)
    probe = TunedProbe().fit(features[rows], drawn["correct"], drawn["total"])
    shown, states = training_data(evaluation)
    return pd.Series(probe.predict(states), shown.index)
