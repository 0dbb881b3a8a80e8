"""The predictions of probes for the questions of a run, kept beside its samples.

``capcal probe`` trains probes; results only read their predictions. Each file of predictions
records what it was made from: the training run, the version of the recipe, the concentration, and
the digests of the hidden states and verdicts. If the version or a digest has changed since, the
predictions are stale: no reader uses them, and ``capcal probe`` makes them again."""

from __future__ import annotations  # keeps signatures short in help()

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, get_args

import pandas as pd
import pyarrow as pa
from pydantic import BaseModel, Field, TypeAdapter

from capcal_lib.errors import InputError, check_known
from capcal_lib.manifests import dataset_names, load_dataset
from capcal_lib.probe_names import member_name, probe_name, read_column, training_sets
from capcal_lib.probes.features import read_features
from capcal_lib.probes.training import (
    ProbeRecipe,
    goes_with,
    is_scored,
    runs_for_probes,
    train,
    validation_runs,
)
from capcal_lib.runs import Run
from capcal_lib.runs.artifacts import (
    FEATURES,
    JUDGEMENTS,
    PREDICTIONS,
    VERDICTS,
    Artifact,
    content_digest,
)
from capcal_lib.runs.run import Choice, store_option
from capcal_lib.text import sanitize

# of a file of a run in the model's folder; nobody's record leads elsewhere
Place = Annotated[str, Field(pattern=r"^[\w-][\w.-]*(/[\w-][\w.-]*){2}$")]
VERSION = 1  # of the recipes: another where they predict other numbers


class Source(BaseModel, ser_json_inf_nan="strings"):
    """What the predictions of one probe were made from."""

    training: str  # the data set, or several, joined by +
    version: int
    questions: int  # that taught it
    concentration: float  # NaN where no question has two samples
    digests: dict[Place, str]  # of the files that were read


Predicted = dict[str, tuple[Source, pd.DataFrame]]  # by probe: (n_questions, n_splits)
_SOURCES = TypeAdapter(list[Source])


def keep_predictions(
    store: Path | str,
    model: str,
    *,
    datasets: Iterable[str] | None = None,
    mix: Sequence[str] = (),
    recipe: ProbeRecipe = "tuned",
    verdicts: str = "rules",
    choice: Choice | None = None,
    say: Callable[[str], object] | None = None,
) -> pd.DataFrame:
    """Train a probe on each of a model's training runs, and keep its predictions for the evaluation
    splits.

    Predictions that exist and are not stale stay, and nothing is trained for them. Returns one row
    per (dataset, probe), such as ``("gsm8k", "Probe (TriviaQA)")``: the number of training
    ``questions``, the ``concentration``, and whether it was ``made`` now. A probe does not predict
    another prompt style than it was trained on: such pairs have no row.

    Without ``datasets``, all data sets whose evaluation split has hidden states are predicted. With
    ``mix``, names of data sets, one probe is trained on the training runs of all of them together
    (paper, appendix C.4), such as ``Probe (TriviaQA + GSM8K)``. ``say`` is called with one line per
    probe and per split of the paper's recipe; after an interruption, training goes on after the
    last split. ``recipe`` is as in ``train``, ``verdicts`` as in ``load_results`` (a probe whose
    training run the judge has not judged is left out), and ``choice`` as in ``find_run``.
    `InputError` for hidden states of the same prompt style from other weights or another prompt.
    """
    graded = runs_for_probes(store, model, "training", choice=choice)
    training = {dataset.name: run for dataset, run in graded if is_scored(run, verdicts)}
    if mix and (len({*mix}) < 2 or not {*mix} <= training.keys()):
        raise InputError(
            "a mixture needs two or more training sets with verdicts and hidden states; known: "
            f"{', '.join(training) or 'none'}; got {', '.join(mix)}"
        )
    predicted_sets = [*map(load_dataset, dataset_names() if datasets is None else datasets)]
    evaluation = [
        run
        for dataset, run in runs_for_probes(store, model, "evaluation", choice=choice)
        if dataset in predicted_sets
    ]
    name = _name(recipe, verdicts)
    kinds = [FEATURES, VERDICTS] if verdicts == "rules" else [FEATURES, VERDICTS, JUDGEMENTS]
    training_sets: list[Sequence[str]] = [[training_set] for training_set in training]
    if mix:
        training_sets = [mix]
    rows = []
    for names in training_sets:
        taught_by = "+".join(names)
        sources = [training[training_set] for training_set in names]
        read = sources + (validation_runs(sources) if recipe == "paper" else [])
        read_files = digests_of(read, *kinds)
        state = hashlib.sha256(repr((VERSION, name, read_files)).encode()).hexdigest()[:16]
        checkpoint = sources[0].folder / f".part-probe-{state}.json"
        title = probe_title(taught_by)
        probe = None
        for run in evaluation:
            if not goes_with(sources, run):
                continue
            predicted = read_predictions(run, name)
            digests = read_files | digests_of([run], FEATURES)
            about, _ = predicted.get(title, (None, None))
            if made := about is None or (about.version, about.digests) != (VERSION, digests):
                if probe is None:
                    if say:
                        say(f"training {title}")
                    probe = train(
                        *sources, recipe=recipe, verdicts=verdicts, checkpoint=checkpoint, say=say
                    )
                ids, features = read_features(run)
                splits = dict(enumerate(probe.predict_splits(features)))
                about = Source(
                    training=taught_by,
                    version=VERSION,
                    questions=len(probe.out_of_fold_),
                    concentration=probe.concentration_,
                    digests=digests,
                )
                predicted[title] = about, pd.DataFrame(splits, index=ids)
                write_predictions(run, name, predicted)
            rows.append([run.identity.dataset, title, about.questions, about.concentration, made])
        checkpoint.unlink(missing_ok=True)
    columns = ["dataset", "probe", "questions", "concentration", "made"]
    table = pd.DataFrame(rows, columns=columns).sort_values("dataset", kind="stable")
    return table.set_index(["dataset", "probe"])


def predictions_of(
    run: Run, *, recipe: ProbeRecipe = "tuned", verdicts: str = "rules"
) -> tuple[pd.DataFrame, list[str]]:
    """Read the predictions of probes for the questions of a run.

    Returns predictions in [0, 1], indexed by question_id, one column per probe, such as ``Probe
    (TriviaQA)``, or under the paper's recipe five, ``Probe (TriviaQA) [0]`` to ``[4]``; and one
    line per stale probe, which has no column. No columns if none are kept.

    >>> from capcal_lib.places import RECORDED_RUNS
    >>> from capcal_lib.runs import find_run
    >>> run = find_run(RECORDED_RUNS, "qwen2.5-coder-0.5b", "gsm8k", "test")
    >>> predicted, stale = predictions_of(run)
    >>> predicted.shape, list(predicted), stale
    ((300, 2), ['Probe (GSM8K)', 'Probe (TriviaQA + GSM8K)'], [])
    """
    columns = {}
    stale = []
    for title, (about, predicted) in read_predictions(run, _name(recipe, verdicts)).items():
        if changed := _what_changed(about, run):
            mix = f" --mix {about.training.replace('+', ',')}" if "+" in about.training else ""
            stale.append(
                f"{title} on {run.identity.dataset}, {recipe}: stale, since {changed}; make it "
                f"again with: capcal probe --model {run.identity.model} --recipe {recipe}{mix}"
                f"{store_option(run.folder.parents[2])}"
            )
        elif recipe == "paper":
            for fold, values in predicted.items():
                columns[member_name(title, fold)] = values
        else:
            columns[title] = predicted[0]
    return pd.DataFrame(columns).rename_axis("question_id"), stale


def describe_probes(
    store: Path | str, model: str, *, recipe: ProbeRecipe = "tuned", verdicts: str = "rules"
) -> pd.DataFrame:
    """Describe a model's probes whose predictions are kept and not stale.

    Returns a table indexed by probe, such as ``Probe (TriviaQA)``: the number of ``questions`` that
    it was trained on, and its ``concentration``, NaN if no question has two samples.

    >>> from capcal_lib.places import RECORDED_RUNS
    >>> describe_probes(RECORDED_RUNS, "smollm2-135m").loc["Probe (GSM8K)", "questions"]
    np.int64(300)
    """
    rows = {
        title: [about.questions, about.concentration]
        for _, run in runs_for_probes(store, model, "evaluation")
        for title, (about, _) in fresh_predictions(run, _name(recipe, verdicts)).items()
    }
    table = pd.DataFrame.from_dict(rows, "index", columns=["questions", "concentration"])
    return table.rename_axis("probe")


def fresh_predictions(run: Run, name: str) -> Predicted:
    """Read the predictions of each probe that are not stale, by the probe's name."""
    return {
        title: (about, table)
        for title, (about, table) in read_predictions(run, name).items()
        if not _what_changed(about, run)
    }


def check_predictions(run: Run) -> Iterator[str]:
    """Yield a line for each file of predictions that is stale or damaged."""
    for name in run.names(PREDICTIONS):
        for title, (about, _) in read_predictions(run, name).items():
            if changed := _what_changed(about, run):
                yield f"{title} ({name}) is stale, since {changed}: give `capcal probe` again"


def probe_title(training: str) -> str:
    """Return the title of the probe of a training set, or of several joined by ``+``.

    >>> probe_title("triviaqa-1000+gsm8k")
    'Probe (TriviaQA + GSM8K)'
    """
    titles = []
    for name in training.split("+"):
        titles += training_sets(load_dataset(name).probe)
    return probe_name(*titles)


def order_probes(columns: Iterable[str]) -> list[str]:
    """List columns of predictions in the order of the data sets, then those of several."""
    by_name = sorted(columns)
    known = [load_dataset(name).probe for name in dataset_names()]
    order = [*known, *(read_column(column)[0] for column in by_name)]
    return sorted(by_name, key=lambda column: order.index(read_column(column)[0]))


def _what_changed(about: Source, run: Run) -> str:
    """Describe what has changed since the predictions of a probe were made; empty if nothing has,
    as far as this store can tell.
    """
    if about.version != VERSION:
        return "the recipe is another"
    home = run.folder.parents[1]
    changed = [
        place
        for place, digest in about.digests.items()
        if (home / place).parent.is_dir() and content_digest(home / place) != digest
    ]
    return f"{' and '.join(changed)} changed" if changed else ""


def digests_of(runs: Iterable[Run], *kinds: Artifact) -> dict[str, str]:
    """Return the digests of what probes are made from, by its place in the model's folder."""
    paths = [run.path(kind) for run in runs for kind in kinds]
    return {path.relative_to(path.parents[2]).as_posix(): content_digest(path) for path in paths}


def _name(recipe: ProbeRecipe, verdicts: str) -> str:
    """Return what tells files of predictions apart."""
    check_known("recipe", recipe, get_args(ProbeRecipe))
    return recipe if verdicts == "rules" else recipe + re.sub(r"[^\w.-]", "-", f"-{verdicts}")


def write_predictions(run: Run, name: str, predicted: Predicted) -> None:
    """Write the predictions of each probe, by the probe's name."""
    tables = [
        table.melt(ignore_index=False, var_name="split", value_name="confidence")
        .reset_index(names="question_id")
        .assign(training=about.training)
        for about, table in predicted.values()
    ]
    rows = pa.Table.from_pandas(pd.concat(tables), schema=PREDICTIONS.schema, preserve_index=False)
    sources = _SOURCES.dump_json([about for about, _ in predicted.values()])
    run.write(PREDICTIONS, rows.replace_schema_metadata({b"sources": sources}), name)


def read_predictions(run: Run, name: str) -> Predicted:
    """Read the predictions of each probe, (n_questions, n_splits), by the probe's name."""
    if not run.has(PREDICTIONS, name):
        return {}
    table = run.read(PREDICTIONS, name)
    try:
        rows = table.to_pandas().astype({"confidence": float})
        wide = rows.pivot(index=["training", "question_id"], columns="split", values="confidence")
        return {
            probe_title(about.training): (about, wide.loc[about.training])
            for about in _SOURCES.validate_json(table.schema.metadata[b"sources"])
        }
    except (KeyError, ValueError) as error:
        raise InputError(
            f"{run.path(PREDICTIONS, name)}: not a record of probes ({sanitize(error)}); delete it "
            f"and make it again with: capcal probe --model {run.place['model']}"
            f"{store_option(run.folder.parents[2])}"
        ) from None
