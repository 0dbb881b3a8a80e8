"""Compare ways to train a probe, and to move one to other questions, on the recorded runs.

Run: OMP_NUM_THREADS=1 python benchmarks/probe_choices.py [--store DIR] [--draws 20]

The score is the corrected capability Brier score, lower is better, of the questions of an
evaluation split. Compared are pairs of a model and a data set whose mu varies by more than .01:
where it varies less, all that can be learnt is a constant. Everything that a way chooses, it
chooses on training questions, by cross-validation. Hidden states are those that are kept with the
runs, so nothing is asked of a model. Intervals are 95 %, of the difference to the tuned probe, or
to the probe as it is, over the questions of all pairs together; a pair weighs as its questions do.

The ways that are listed are all that were tried on these evaluation splits."""

import argparse
import time
from pathlib import Path

import numpy as np
import pandas as pd

from capcal_lib.manifests import RECORDED_RUNS, load_dataset, model_names
from capcal_lib.metrics import mean_interval
from capcal_lib.metrics.validation import Floats
from capcal_lib.probes import (
    LinearProbe,
    TunedProbe,
    adapt,
    read_features,
    read_predictions,
    runs_for_probes,
    training_data,
)
from capcal_lib.probes.training import RECIPES
from capcal_lib.results import load_results
from capcal_lib.runs import Run

VARIES = 0.01  # the least variance of mu
LABELS = (5, 10, 20, 50)


def squared_errors(confidence: Floats, questions: pd.DataFrame) -> Floats:
    """Return each question's term of the corrected capability Brier score."""
    total = questions["total"]
    mu = questions["correct"] / total
    return np.asarray((confidence - mu) ** 2 - mu * (1 - mu) / (total - 1))


def variance(questions: pd.DataFrame) -> float:
    """Return the variance of mu over questions."""
    mean = (questions["correct"] / questions["total"]).mean()
    return float(squared_errors(mean, questions).mean())


def others_together(
    runs: dict[str, Run], questions: dict[str, pd.DataFrame], home: str
) -> TunedProbe:
    """Train on all training sets at once that were asked in the style of one."""
    style = runs[home].identity.prompt_style
    names = [name for name in runs if runs[name].identity.prompt_style == style]
    features = np.concatenate([training_data(runs[name])[1] for name in names])
    counts = pd.concat([questions[name] for name in names])
    return TunedProbe().fit(features, counts["correct"], counts["total"])


def own_probes(store: Path, model: str) -> dict[str, pd.DataFrame]:
    """Score probes on the data sets whose training split they learnt from, a term a question."""
    runs = {one.name: run for one, run in runs_for_probes(store, model, "training")}
    learnt = {name: training_data(run)[0] for name, run in runs.items()}
    said = {recipe: read_predictions(store, model, recipe=recipe) for recipe in RECIPES}
    splits = [read_predictions(store, model, recipe="paper", split=split) for split in range(5)]
    results = load_results(store, model, recipe=None)[["correct", "total"]].query("total > 1")
    tables = {}
    for one, run in runs_for_probes(store, model, "evaluation"):
        name = one.name
        if name not in runs or name not in results.index:
            continue
        own = results.loc[name]
        if variance(own) <= VARIES:
            continue
        probe = load_dataset(name).probe
        counts = learnt[name]
        table = pd.DataFrame(index=own.index)
        for recipe in ("tuned", "kernel", "stacked"):
            table[recipe] = squared_errors(said[recipe].loc[name, probe], own)
        each = [squared_errors(split.loc[name, probe], own) for split in splits]
        table["paper"] = np.mean(each, axis=0)
        halves = (said["tuned"] + said["stacked"]).loc[name, probe] / 2
        table["tuned and stacked, mean"] = squared_errors(halves, own)
        ids, features = read_features(run)
        together = others_together(runs, learnt, name).predict(features)
        table["tuned, all training sets"] = squared_errors(pd.Series(together, ids), own)
        fixed = LinearProbe(standardize=True)
        fixed.fit(training_data(runs[name])[1], counts["correct"], counts["total"])
        decayed = pd.Series(fixed.predict(features), ids)
        table["linear, decay .01"] = squared_errors(decayed, own)
        constant = counts["correct"].sum() / counts["total"].sum()
        table["constant"] = squared_errors(constant, own)
        tables[f"{model} {name}"] = table
    return tables


def moved_probes(store: Path, model: str, draws: int) -> dict[str, pd.DataFrame]:
    """Score probes of other data sets, as they are and adapted by labelled questions, a term a
    question: the mean over draws of the labelled that do not hold it.
    """
    said = read_predictions(store, model)
    results = load_results(store, model, recipe=None)[["correct", "total"]].query("total > 1")
    rng = np.random.default_rng(0)
    tables = {}
    for name in said.index.unique("dataset"):
        own = results.loc[name]
        if variance(own) <= VARIES or len(own) < 2 * max(LABELS):
            continue
        foreign = (
            said.loc[name]
            .reindex(own.index)
            .drop(columns=load_dataset(name).probe, errors="ignore")
        )
        for probe, s in foreign.dropna(axis=1).items():
            table = pd.DataFrame({"as it is": squared_errors(s, own)}, index=own.index)
            for labels in LABELS:
                adapted = np.full((draws, len(own)), np.nan)
                level = np.full((draws, len(own)), np.nan)
                for draw in range(draws):
                    order = rng.permutation(len(own))
                    known = own.iloc[order[:labels]]
                    rest = order[labels:]
                    asked = own.iloc[rest]
                    moved = adapt(
                        s.iloc[rest], s.loc[known.index], known["correct"], known["total"]
                    )
                    adapted[draw, rest] = squared_errors(moved, asked)
                    mean = (known["correct"].sum() + 0.5) / (known["total"].sum() + 1)
                    level[draw, rest] = squared_errors(mean, asked)
                table[f"adapted by {labels}"] = pd.DataFrame(adapted).mean().to_numpy()
                table[f"mean of {labels}"] = pd.DataFrame(level).mean().to_numpy()
            tables[f"{model} {probe} on {name}"] = table
    return tables


def show(tables: dict[str, pd.DataFrame], rival: str) -> None:
    """Print the score of each way on each pair, and its difference to the rival over all."""
    scores = pd.DataFrame({pair: table.mean() for pair, table in tables.items()}).T
    print(scores.round(4).to_string())
    terms = pd.concat(tables)
    # A question of a model that several probes predict is one question.
    labels = [f"{pair.split()[0]} {pair.split()[-1]} {name}" for pair, name in terms.index]
    for way in terms.columns.drop(rival):
        there = terms[way].notna().to_numpy()
        gain = (terms[way] - terms[rival])[there]
        clusters = np.array(labels)[there]
        found = mean_interval(gain.to_numpy(), rng=np.random.default_rng(0), clusters=clusters)
        better = (scores[way] < scores[rival]).sum()
        print(
            f"{way:26} {found.estimate:+.4f} [{found.low:+.4f}, {found.high:+.4f}]  "
            f"better on {better} of {scores[way].notna().sum()}"
        )


def main() -> None:
    """Print both comparisons."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--store", type=Path, default=RECORDED_RUNS)
    parser.add_argument("--draws", type=int, default=20)
    asked = parser.parse_args()
    models = [name for name in model_names() if name != "simulated"]
    start = time.perf_counter()
    own: dict[str, pd.DataFrame] = {}
    moved: dict[str, pd.DataFrame] = {}
    for model in models:
        own |= own_probes(asked.store, model)
        moved |= moved_probes(asked.store, model, asked.draws)
    ways = len(next(iter(own.values())).columns)
    print(f"Trained on the training split of the same data set: {ways} ways, {len(own)} pairs")
    show(own, "tuned")
    print(f"\nTrained on another data set, adapted: {len(LABELS)} sizes, {len(moved)} pairs")
    show(moved, "as it is")
    print(f"\n{(time.perf_counter() - start) / 60:.1f} minutes")


if __name__ == "__main__":
    main()
