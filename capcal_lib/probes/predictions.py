"""What probes predict of the questions of a run, kept beside its samples.

A probe is trained by ``capcal probe``, which asks for it by name; whoever reads results reads what
it predicted. With the predictions stands what they were made from: the training run, the recipe and
its version, the seed, the concentration, and the digests of the hidden states and verdicts. Where
one of these is another since, the predictions are stale: no reader takes them, ``capcal probe``
makes them again."""

from __future__ import annotations  # keeps signatures short in help()

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from capcal_lib.errors import InputError, sanitize, unknown
from capcal_lib.grading.judge import JUDGED
from capcal_lib.grading.judgements import judges
from capcal_lib.manifests import Dataset, dataset_names, load_dataset, load_model
from capcal_lib.probes.features import read_features
from capcal_lib.probes.training import (
    RECIPES,
    SEED,
    Recipe,
    goes_with,
    runs_for_probes,
    train,
    validation_run,
)
from capcal_lib.runs import Run
from capcal_lib.runs.artifacts import (
    FEATURES,
    JUDGEMENTS,
    PREDICTIONS,
    VERDICTS,
    Sampled,
    changed_files,
    content_digest,
)

VERSION = 1  # of the recipes: another where they predict other numbers
_AGAIN = "delete it and make it again with: capcal probe"


class Source(BaseModel):
    """What the predictions of one probe were made from."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")

    training: str  # the data set
    run: str  # the key of the training run
    recipe: str
    version: int
    seed: int
    verdicts: str
    questions: int  # that taught it
    concentration: float  # NaN where no question has two samples
    digests: dict[str, str]  # of the files that were read, by their place in the model's folder


Predicted = dict[str, tuple[Source, pd.DataFrame]]  # by probe: (n_questions, n_splits)
_SOURCES = TypeAdapter(list[Source])


def keep_predictions(
    store: Path | str,
    model: str,
    *,
    datasets: Iterable[str] | None = None,
    recipe: Recipe = "tuned",
    verdicts: str = "rules",
    choice: str | None = None,
) -> pd.DataFrame:
    """Train a probe on each of a model's training runs, and keep what it predicts of the evaluation
    splits.

    What is there and not stale stays, and nothing is trained for it. Returns a row a (dataset,
    probe), such as ``("gsm8k", "Probe (TriviaQA)")``: ``questions`` that taught the probe, its
    ``concentration``, and whether it was ``made`` now. A probe says nothing of another style of
    prompt: such pairs have no row.

    Without ``datasets``, all whose evaluation split has hidden states are predicted. ``recipe`` is
    that of ``train``, ``verdicts`` whose the probes learn (a judge's where it has judged the
    training run; else that probe is left out), and ``choice`` that of ``find_run``. Hidden states
    of the same style of prompt, but from other weights or another prompt, are refused.
    """
    name = load_model(model).name
    wanted = None if datasets is None else {load_dataset(each).name for each in datasets}
    training = [
        (dataset, run)
        for dataset, run in runs_for_probes(store, name, "training", choice=choice)
        if verdicts == "rules"
        or dataset.kind not in JUDGED
        or verdicts.removeprefix("judge:") in judges(run)
    ]
    rows = []
    for dataset, run in runs_for_probes(store, name, "evaluation", choice=choice):
        if wanted is not None and dataset.name not in wanted:
            continue
        kept = _kept(run, recipe, verdicts)
        now: Predicted = {}
        made = set()
        for taught_by, source in training:
            if not goes_with(source, run):
                continue
            title = taught_by.probe
            if title in kept and _is_of(kept[title][0], source, run):
                now[title] = kept[title]
            else:
                now[title] = _predict(taught_by, source, run, recipe, verdicts)
                made.add(title)
        if now and (made or list(kept) != list(now)):
            _write(run, _name(recipe, verdicts), now)
        for title, (about, _) in now.items():
            row = {
                "dataset": dataset.name,
                "probe": title,
                "questions": about.questions,
                "concentration": about.concentration,
                "made": title in made,
            }
            rows.append(row)
    columns = ["dataset", "probe", "questions", "concentration", "made"]
    return pd.DataFrame(rows, columns=columns).set_index(["dataset", "probe"])


def read_predictions(
    store: Path | str,
    model: str,
    *,
    datasets: Iterable[str] | None = None,
    recipe: Recipe = "tuned",
    split: int | None = None,
    verdicts: str = "rules",
    choice: str | None = None,
) -> pd.DataFrame:
    """Read what is kept of what a model's probes predict of its evaluation splits.

    Returns predictions in [0, 1], indexed by (dataset, question_id), a column a training set, such
    as ``Probe (TriviaQA)``; NaN where a probe says nothing of a data set. ``attrs["stale"]`` has a
    line for each that is stale, which is left out. Of the five probes of the paper's recipe it is
    the mean, or by ``split``, 0 to 4, one of them; the other arguments are those of
    ``keep_predictions``.

    >>> from capcal_lib.manifests import RECORDED_RUNS
    >>> asked = ["gsm8k", "triviaqa"]
    >>> predicted = read_predictions(RECORDED_RUNS, "qwen2.5-coder-0.5b", datasets=asked)
    >>> list(predicted), list(predicted.groupby("dataset").size())
    (['Probe (GSM8K)', 'Probe (MMLU)', 'Probe (TriviaQA)'], [100, 200])
    """
    name = load_model(model).name
    wanted = None if datasets is None else {load_dataset(each).name for each in datasets}
    tables = {}
    stale = []
    for dataset, run in runs_for_probes(store, name, "evaluation", choice=choice):
        if wanted is None or dataset.name in wanted:
            said, old = predictions_of(run, recipe=recipe, split=split, verdicts=verdicts)
            stale += old
            if not said.empty:
                tables[dataset.name] = said
    if tables:
        found = pd.concat(tables, names=["dataset", "question_id"])
    else:
        found = pd.DataFrame(index=pd.MultiIndex.from_tuples([], names=["dataset", "question_id"]))
    found = found[[title for title in probe_titles() if title in found]]
    found.attrs["stale"] = stale
    return found


def predictions_of(
    run: Run, *, recipe: Recipe = "tuned", split: int | None = None, verdicts: str = "rules"
) -> tuple[pd.DataFrame, list[str]]:
    """Read what probes predict of the questions of a run.

    Returns predictions in [0, 1], indexed by question_id, a column a probe, such as ``Probe
    (TriviaQA)``, and a line for each that is stale, which has no column. No columns where none are
    kept. Of the five probes of the paper's recipe it is the mean, or by ``split``, 0 to 4, one of
    them.

    >>> from capcal_lib.manifests import RECORDED_RUNS
    >>> from capcal_lib.runs import find_run
    >>> run = find_run(RECORDED_RUNS, "qwen2.5-coder-0.5b", "gsm8k", "test")
    >>> predicted, stale = predictions_of(run)
    >>> predicted.shape, list(predicted), stale
    ((100, 1), ['Probe (GSM8K)'], [])
    """
    columns = {}
    stale = []
    for title, (about, predicted) in _kept(run, recipe, verdicts).items():
        if changed := _what_changed(about, run):
            stale.append(
                f"{title} on {run.identity.dataset}, {recipe}: stale, since {changed}; make it "
                f"again with: capcal probe --model {run.identity.model} --recipe {recipe}"
            )
        elif split is None:
            columns[title] = predicted.mean(axis="columns")
        elif split not in predicted:
            raise InputError(
                f"split is a number from 0 to {len(predicted.columns) - 1}; got {split}"
            )
        else:
            columns[title] = predicted[split]
    return pd.DataFrame(columns).rename_axis("question_id"), stale


def describe_probes(
    store: Path | str,
    model: str,
    *,
    recipe: Recipe = "tuned",
    verdicts: str = "rules",
    choice: str | None = None,
) -> pd.DataFrame:
    """Say what is behind a model's probes, as far as predictions of theirs are kept and not stale.

    Returns a table indexed by probe, such as ``Probe (TriviaQA)``: the ``dataset`` and the key of
    the ``run`` that taught it, its ``questions``, ``seed``, and ``concentration``: NaN where no
    question has two samples, so that confidences can only be taken at their word.

    >>> from capcal_lib.manifests import RECORDED_RUNS
    >>> describe_probes(RECORDED_RUNS, "qwen2.5-coder-0.5b")["questions"].to_dict()
    {'Probe (GSM8K)': 1200, 'Probe (MMLU)': 3000, 'Probe (TriviaQA)': 3000}
    """
    rows = {}
    for _, run in runs_for_probes(store, load_model(model).name, "evaluation", choice=choice):
        for title, (about, _) in _kept(run, recipe, verdicts).items():
            if not _what_changed(about, run):
                rows[title] = about.model_dump(exclude={"digests"})
    columns = ["training", "run", "questions", "seed", "concentration"]
    table = pd.DataFrame(list(rows.values()), index=pd.Index(list(rows), name="probe"))
    return table.reindex(columns=columns).rename(columns={"training": "dataset"})


def check_predictions(sampled: Sampled) -> Iterator[str]:
    """Yield which predictions that are kept with a run are stale or no record of probes."""
    run = sampled.run
    for name in run.names(PREDICTIONS):
        for title, (about, _) in _read(run, name).items():
            if changed := _what_changed(about, run):
                yield (
                    f"predictions of {title} ({name}) are stale, since {changed}: capcal probe "
                    "makes them again"
                )


def probe_titles() -> list[str]:
    """List what the probes of all data sets are called, in the order of the data sets."""
    return list(dict.fromkeys(load_dataset(name).probe for name in dataset_names()))


def _predict(
    dataset: Dataset, source: Run, run: Run, recipe: Recipe, verdicts: str
) -> tuple[Source, pd.DataFrame]:
    """Train a probe, and predict the questions of a run by each of its splits."""
    trained = train(source, recipe=recipe, verdicts=verdicts)
    ids, features = read_features(run)
    said = trained.probe.predict_splits(features)
    about = Source(
        training=dataset.name,
        run=source.identity.key,
        recipe=recipe,
        version=VERSION,
        seed=SEED,
        verdicts=verdicts,
        questions=len(trained.question_ids),
        concentration=trained.probe.concentration_,
        digests=_digests(recipe, verdicts, source, run),
    )
    return about, pd.DataFrame(dict(enumerate(said)), index=ids).astype(np.float32)


def _is_of(about: Source, source: Run, run: Run) -> bool:
    """Tell whether predictions are those that a training run would give now."""
    return about.run == source.identity.key and not _what_changed(about, run)


def _what_changed(about: Source, run: Run) -> str:
    """Say what the predictions of a probe were made from and is another now; nothing where all is
    as it was, as far as the runs are in this store.
    """
    if about.version != VERSION:
        return "the recipe is another"
    changed = changed_files(run.folder.parents[1], about.digests)
    return f"{' and '.join(changed)} changed" if changed else ""


def _digests(recipe: Recipe, verdicts: str, source: Run, run: Run) -> dict[str, str]:
    """Return the digests of all that a probe reads, of its training run and of the predicted."""
    labels = [VERDICTS] if verdicts == "rules" else [VERDICTS, JUDGEMENTS]
    paths = [run.path(FEATURES)]
    taught_by = [source, validation_run(source) if recipe == "paper" else None]
    paths += [one.path(kind) for one in taught_by if one for kind in (FEATURES, *labels)]
    home = run.folder.parents[1]
    return {path.relative_to(home).as_posix(): content_digest(path) for path in paths}


def _name(recipe: Recipe, verdicts: str) -> str:
    """Return what tells files of predictions apart."""
    if recipe not in RECIPES:
        raise unknown("recipe", recipe, RECIPES)
    judged = "" if verdicts == "rules" else "-" + re.sub(r"[^\w.-]", "-", verdicts)
    return recipe + judged


def _kept(run: Run, recipe: Recipe, verdicts: str) -> Predicted:
    name = _name(recipe, verdicts)
    if run.has(PREDICTIONS, name):
        return run.cached(_read, name)
    return {}


def _write(run: Run, name: str, predicted: Predicted) -> None:
    tables = []
    for about, table in predicted.values():
        long = (
            table.rename_axis("question_id")
            .reset_index()
            .melt("question_id", var_name="split", value_name="confidence")
        )
        tables.append(long.assign(training=about.training))
    rows = pa.Table.from_pandas(pd.concat(tables), schema=PREDICTIONS.schema, preserve_index=False)
    sources = _SOURCES.dump_json([about for about, _ in predicted.values()])
    run.write(PREDICTIONS, rows.replace_schema_metadata({b"sources": sources}), name)


def _read(run: Run, name: str) -> Predicted:
    """Read the predictions of each probe, (n_questions, n_splits), by the probe's name."""
    table = run.read(PREDICTIONS, name)
    path = run.path(PREDICTIONS, name)
    rows = table.to_pandas()
    try:
        sources = _SOURCES.validate_json(table.schema.metadata[b"sources"])
    except ValidationError as error:
        raise InputError(f"{path}: not a record of probes ({sanitize(error)}); {_AGAIN}") from None
    predicted: Predicted = {}
    for about in sources:
        own = rows[rows["training"] == about.training]
        if (
            own.duplicated(["question_id", "split"]).any()
            or not own["confidence"].between(0, 1).all()
        ):
            raise InputError(f"{path}: a question twice, or no confidence in [0, 1]; {_AGAIN}")
        wide = own.pivot(index="question_id", columns="split", values="confidence")
        predicted[load_dataset(about.training).probe] = about, wide.astype(np.float64)
    return predicted
