"""Train probes on a model's runs.

The **training questions** of a run are those with hidden states and a scored sample. One sample of
many questions teaches a probe more than ten samples of a tenth of them. A probe trained on one
prompt style does not transfer to another, so training and evaluation runs must share the style."""

from __future__ import annotations  # keeps signatures short in help()

from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd

from capcal_lib.errors import InputError, check_known
from capcal_lib.grading.counts import count_run
from capcal_lib.manifests import Dataset, load_dataset, load_datasets, load_model
from capcal_lib.probe_names import read_column
from capcal_lib.probes.features import read_features
from capcal_lib.runs.artifacts import FEATURES, VERDICTS
from capcal_lib.runs.run import Choice, Run, differences, find_run_if_any

if TYPE_CHECKING:
    from capcal_lib.probes.estimator import Probe

ProbeRecipe = Literal["tuned", "paper"]
Role = Literal["training", "evaluation"]
_WEIGHTS = ("weights", "dtype")
_SAME = (*_WEIGHTS, "prompt_template", "chat_template")  # in runs of one style of prompt


def training_data(
    run: Run, verdicts: str = "rules"
) -> tuple[pd.DataFrame, npt.NDArray[np.float32]]:
    """Return what a probe learns from a run: its training questions and, in their order, their
    features.

    Questions are indexed by question_id, with ``correct`` and ``total``, all scored samples
    counted; features are the hidden states' mean over layers, (n_questions, hidden_size).
    ``verdicts`` is as in ``load_results``. `InputError`, with the commands that make them, if the
    run lacks verdicts or hidden states, or a question with both.

    >>> from capcal_lib.places import RECORDED_RUNS
    >>> from capcal_lib.runs import find_run
    >>> run = find_run(RECORDED_RUNS, "smollm2-135m", "gsm8k", "train")
    >>> questions, features = training_data(run)
    >>> questions.shape, features.shape
    ((300, 2), (300, 576))
    """
    names, features = read_features(run)
    questions = count_run(run, verdicts=verdicts)[["correct", "total"]].reindex(names, fill_value=0)
    scored = (questions["total"] > 0).to_numpy()
    if not scored.any():
        raise InputError(
            f"{run}: no question has hidden states and a scored sample; draw more with: capcal "
            f"sample {run.draw_options} --k 100; then run: capcal grade {run.options}; and: capcal "
            f"features {run.options}"
        )
    return questions[scored], features[scored]


def train(
    *runs: Run,
    recipe: ProbeRecipe = "tuned",
    verdicts: str = "rules",
    checkpoint: Path | None = None,
    say: Callable[[str], object] | None = None,
) -> Probe:
    """Train a probe on the training questions of a run, or of several together.

    ``tuned``: linear, with the weight decay chosen by cross-validation; ``paper``: linear, trained
    as in the paper on five splits, each kept in ``checkpoint`` and reported to ``say`` when done.

    >>> from capcal_lib.places import RECORDED_RUNS
    >>> from capcal_lib.runs import find_run
    >>> probe = train(find_run(RECORDED_RUNS, "smollm2-135m", "mini-capitals", "train"))
    >>> 0.1 < probe.weight_decay_ < 10
    True
    """
    check_known("recipe", recipe, get_args(ProbeRecipe))
    features, correct, total = _together(runs, verdicts)
    if recipe == "tuned":
        from capcal_lib.probes.tuned import TunedProbe  # slow to import

        return TunedProbe().fit(features, correct, total)
    from capcal_lib.probes.sgd import PaperProbe

    judging = validation_runs(runs)
    validation = _together(judging, verdicts) if judging else None
    return PaperProbe().fit(
        features, correct, total, validation=validation, checkpoint=checkpoint, say=say
    )


def _together(
    runs: Iterable[Run], verdicts: str
) -> tuple[npt.NDArray[np.float32], pd.Series[int], pd.Series[int]]:
    """Return the features, the correct samples and all of them of the training questions of one run
    or more, below one another.
    """
    questions, features = [], []
    for run in runs:
        of_run, states = training_data(run, verdicts)
        questions.append(of_run)
        features.append(states)
    counts = pd.concat(questions)
    return np.concatenate(features), counts["correct"], counts["total"]


def validation_runs(runs: Iterable[Run]) -> list[Run]:
    """List the runs beside training runs by which the paper's recipe chooses its probe: on the
    validation splits, graded, and with hidden states. None where one of them has none.
    """
    judging = []
    for run in runs:
        identity = run.identity
        validation = _ready(
            run.folder.parents[2],
            identity.model,
            identity.dataset,
            load_dataset(identity.dataset).validation_split,
            {"seed": identity.seed},
        )
        if validation is None or not goes_with([run], validation):
            return []
        judging.append(validation)
    return judging


def _ready(
    store: Path | str, model: str, dataset: str, split: str | None, choice: Choice | None
) -> Run | None:
    """Return the run on a split that is graded and has hidden states, if there is one."""
    if split is None:
        return None
    run = find_run_if_any(store, model, dataset, split, choice)
    if run is None or not (run.has(FEATURES) and run.has(VERDICTS)):
        return None
    return run


def runs_for_probes(
    store: Path | str, model: str, role: Role, *, choice: Choice | None = None
) -> list[tuple[Dataset, Run]]:
    """List the graded runs of a model with hidden states on the training, or the evaluation, split
    of every data set.

    ``choice`` among several runs on a split is that of ``find_run``.

    >>> from capcal_lib.places import RECORDED_RUNS
    >>> [each.name for each, _ in runs_for_probes(RECORDED_RUNS, "qwen2.5-coder-0.5b", "training")]
    ['gsm8k', 'mmlu', 'triviaqa']
    """
    load_model(model)  # refuses an unknown one
    return [
        (dataset, run)
        for dataset in load_datasets().values()
        if (run := _ready(store, model, dataset.name, getattr(dataset, f"{role}_split"), choice))
    ]


def is_scored(run: Run, verdicts: str) -> bool:
    """Return whether a run has these verdicts; a judge's count if it has judged every answer and
    replied with verdicts."""
    if verdicts == "rules":
        return run.has(VERDICTS)
    try:
        return bool(count_run(run, verdicts=verdicts)["total"].any())
    except InputError:
        return False


def nearest_probes(methods: Iterable[str], dataset: str) -> list[str]:
    """List the probes whose training sets are nearest to a data set, without looking at scores.

    These are the probes of the data set itself; else all of its domain; else all others. Among
    equally near ones, real training sets come before built-in ones, then larger ones before smaller
    ones (MATH for AIME25, as in the paper).

    >>> probes = ["Probe (GSM8K)", "Probe (MATH)", "Probe (Mini capitals)", "Probe (TriviaQA)"]
    >>> nearest_probes(probes, "simpleqa"), nearest_probes(probes, "aime25")
    (['Probe (TriviaQA)', 'Probe (Mini capitals)'], ['Probe (MATH)', 'Probe (GSM8K)'])
    """
    shown_on = load_dataset(dataset)
    sources = []
    for source in load_datasets().values():
        if source.training_split:
            rows = source.splits[source.training_split].rows or 0
            distance = _distance(source, shown_on)
            sources.append((distance, source.builtin, -rows, source.probe))
    candidates = list(methods)
    distances: dict[str, int] = {}  # of each probe, the nearest first
    for distance, *_, probe in sorted(sources):
        for method in candidates:
            if read_column(method)[0] == probe:
                distances.setdefault(method, distance)
    least = min(distances.values(), default=0)
    return [method for method, distance in distances.items() if distance == least]


def _distance(source: Dataset, shown_on: Dataset) -> int:
    """Return 0 for a probe of the data set itself, 1 for one of its domain, and 2 for another."""
    if source == shown_on:
        return 0
    if source.domain == shown_on.domain:
        return 1
    return 2


def nearest_probe(methods: Iterable[str], dataset: str) -> str | None:
    """Return the first of ``nearest_probes``; None without a probe."""
    return next(iter(nearest_probes(methods, dataset)), None)


def goes_with(training: Collection[Run], run: Run) -> bool:
    """Return whether a probe trained on these runs can predict another run: whether one of them
    shares its prompt style.

    `InputError` for training runs of the same style with other weights or another prompt, and, if
    the probe can predict the run, for training runs of any style with other weights.
    """
    style = run.identity.prompt_style
    alike = [source for source in training if source.identity.prompt_style == style]
    if not alike:
        return False
    for source in training:
        same = _SAME if source in alike else _WEIGHTS
        lines = differences(source.identity, run.identity)
        if differing := [line for line in lines if line.startswith(same)]:
            raise InputError(
                f"a probe trained on {source} cannot predict {run}: they differ in "
                f"{'; '.join(differing)}; "
                "sample one of them again, or move it to another --store"
            )
    return True
