"""Train probes on a model's runs.

**Training questions** of a run are those with hidden states and a scored sample; one sample of many
questions teaches a probe more than ten of a tenth of them. A probe of one style of prompt says
nothing of another, so that training and evaluation runs go together by their style."""

from __future__ import annotations  # keeps signatures short in help()

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from capcal_lib.errors import InputError, unknown
from capcal_lib.grading.counts import count_run
from capcal_lib.manifests import Dataset, dataset_names, load_dataset
from capcal_lib.metrics.validation import check_int
from capcal_lib.probes.estimator import Probe
from capcal_lib.probes.features import read_features
from capcal_lib.probes.sgd import PaperProbe
from capcal_lib.probes.tuned import TunedProbe
from capcal_lib.runs.artifacts import FEATURES, VERDICTS
from capcal_lib.runs.run import Run, differences, find_run, list_fitting

Recipe = Literal["tuned", "paper"]
Role = Literal["training", "evaluation"]
SEED = 0  # of every probe that is kept
_SAME = (
    "weights",
    "dtype",
    "prompt_template",
    "chat_template",
)  # in runs whose hidden states are of one kind


@dataclass(frozen=True, eq=False, repr=False)
class TrainedProbe:
    """A probe, and the questions of the run that it is trained on."""

    run: Run
    recipe: Recipe
    probe: Probe
    # by question_id: what is predicted for a training question without its help
    out_of_fold: pd.Series[float]

    def __repr__(self) -> str:
        where = f"{len(self.out_of_fold)} questions of {self.run.folder.parent.name}"
        return f"<TrainedProbe, recipe {self.recipe}, {where}, {self.probe!r}>"

    @property
    def question_ids(self) -> list[str]:
        """List the training questions."""
        return [str(name) for name in self.out_of_fold.index]


def training_data(
    run: Run, verdicts: str = "rules"
) -> tuple[pd.DataFrame, npt.NDArray[np.float32]]:
    """Return what a probe learns from a run: its training questions and, in their order, their
    features.

    Questions are indexed by question_id, with ``correct`` and ``total``, all scored samples
    counted; features are the hidden states' mean over layers, (n_questions, hidden_size).
    ``verdicts`` are those of ``load_results``. Where the run lacks verdicts or hidden states, or a
    question with both, the error names the commands that make them.

    >>> from capcal_lib.manifests import RECORDED_RUNS
    >>> from capcal_lib.runs import find_run
    >>> run = find_run(RECORDED_RUNS, "smollm2-135m", "gsm8k", "train")
    >>> questions, features = training_data(run)
    >>> questions.shape, features.shape
    ((300, 2), (300, 576))
    """
    questions, features = run.cached(_training_data, verdicts)
    return questions.copy(), features.copy()


def _training_data(run: Run, verdicts: str) -> tuple[pd.DataFrame, npt.NDArray[np.float32]]:
    names, features = read_features(run)
    questions = count_run(run, verdicts=verdicts)[["correct", "total"]].reindex(names)
    kept = (questions["total"] > 0).to_numpy()
    if not kept.any():
        raise InputError(
            f"{run}: no question has hidden states and a scored sample; draw more with: capcal "
            "sample, then run: capcal grade and capcal features"
        )
    return questions[kept].astype(np.int64).rename_axis("question_id"), features[kept]


def draw_training(
    questions: pd.DataFrame, n: int, samples: int, *, rng: np.random.Generator
) -> pd.DataFrame:
    """Draw ``n`` training questions, and ``samples`` of the scored samples of each: a cheaper
    training set, as if no more had been drawn.

    Takes questions as ``training_data`` gives them, and gives them in the order of drawing, with
    ``correct`` and ``total`` of what was drawn, without replacement. `InputError` where fewer than
    ``n`` questions have that many samples.

    >>> questions = pd.DataFrame({"correct": [3, 0, 2], "total": [4, 4, 2]}, index=["a", "b", "c"])
    >>> draw_training(questions, 2, 3, rng=np.random.default_rng(0))["total"].to_dict()
    {'a': 3, 'b': 3}
    """
    check_int("n", n, least=1)
    check_int("samples", samples, least=1)
    enough = questions[questions["total"] >= samples]
    if len(enough) < n:
        raise InputError(f"{len(enough)} questions have {samples} scored samples; asked for {n}")
    drawn = enough.iloc[rng.permutation(len(enough))[:n]]
    wrong = drawn["total"] - drawn["correct"]
    correct = rng.hypergeometric(drawn["correct"], wrong, samples)
    return drawn.assign(correct=correct, total=samples)


def train(run: Run, *, recipe: Recipe = "tuned", verdicts: str = "rules") -> TrainedProbe:
    """Train a probe on the training questions of a run; once, while its files stay as they are.

    ``tuned``: linear, its decay chosen by cross-validation; ``paper``: linear, as the paper trains
    it, on five splits.

    >>> from capcal_lib.manifests import RECORDED_RUNS
    >>> from capcal_lib.runs import find_run
    >>> trained = train(find_run(RECORDED_RUNS, "smollm2-135m", "mini-capitals", "train"))
    >>> len(trained.question_ids), trained.probe
    (283, TunedProbe())
    """
    if recipe not in RECIPES:
        raise unknown("recipe", recipe, RECIPES)
    return run.cached(_train, recipe, verdicts, validation_run(run) if recipe == "paper" else None)


def validation_run(run: Run) -> Run | None:
    """Return the run beside a training run by which the paper's recipe chooses its probe, if there
    is one: on the validation split, graded, and with hidden states."""
    identity = run.identity
    split = load_dataset(identity.dataset).validation_split
    place = run.folder.parents[2], identity.model, identity.dataset, f"{split}"
    choice = f"seed={identity.seed}"
    if split is None or not list_fitting(*place, choice):
        return None
    found = find_run(*place, choice)
    whole = all(map(found.has, (VERDICTS, FEATURES)))
    return found if whole and goes_with(run, found) else None


def _train(run: Run, recipe: Recipe, verdicts: str, validation: Run | None) -> TrainedProbe:
    def rows(of: Run) -> tuple[Any, Any, Any]:
        questions, features = training_data(of, verdicts)
        return features, questions["correct"], questions["total"]

    questions, _ = training_data(run, verdicts)
    probe: Probe
    if validation is None:
        probe = RECIPES[recipe]().fit(*rows(run))
    else:
        probe = PaperProbe().fit(*rows(run), validation=rows(validation))
    return TrainedProbe(
        run=run,
        recipe=recipe,
        probe=probe,
        out_of_fold=pd.Series(probe.out_of_fold_, questions.index),
    )


RECIPES: dict[Recipe, Callable[[], Probe]] = {"tuned": TunedProbe, "paper": PaperProbe}


def runs_for_probes(
    store: Path | str, model: str, role: Role, *, choice: str | None = None
) -> list[tuple[Dataset, Run]]:
    """List the graded runs of a model with hidden states on the training, or the evaluation, split
    of every data set.

    ``choice`` among several runs on a split is that of ``find_run``.

    >>> from capcal_lib.manifests import RECORDED_RUNS
    >>> [each.name for each, _ in runs_for_probes(RECORDED_RUNS, "qwen2.5-coder-0.5b", "training")]
    ['gsm8k', 'mmlu', 'triviaqa']
    """
    found = []
    for dataset in map(load_dataset, dataset_names()):
        split = dataset.training_split if role == "training" else dataset.evaluation_split
        if split is None or not list_fitting(store, model, dataset.name, split, choice):
            continue
        run = find_run(store, model, dataset.name, split, choice)
        if run.has(FEATURES) and run.has(VERDICTS):
            found.append((dataset, run))
    return found


def nearest_probes(methods: Iterable[str], dataset: str) -> list[str]:
    """List the probes whose training sets are nearest to a data set, without a look at any score.

    Those of the data set itself; else all of its domain; else all others. Of equally near ones a
    real training set comes before a built-in one, then the one that the data set's manifest names
    as ``nearest`` (MATH for AIME25, as in the paper), then the one with more questions.

    >>> probes = ["Probe (GSM8K)", "Probe (MATH)", "Probe (Mini capitals)", "Probe (TriviaQA)"]
    >>> nearest_probes(probes, "simpleqa"), nearest_probes(probes, "aime25")
    (['Probe (TriviaQA)', 'Probe (Mini capitals)'], ['Probe (MATH)', 'Probe (GSM8K)'])
    """
    asked = load_dataset(dataset)
    known = [each for each in map(load_dataset, dataset_names()) if each.training_split]

    def place(method: str) -> tuple[int, bool, bool, int]:
        sources = [each for each in known if method.startswith(each.probe)]
        domains = {each.domain for each in sources}
        return (
            0 if asked in sources else 1 if asked.domain in domains else 2,
            all(each.builtin for each in sources),
            asked.nearest not in {each.name for each in sources},
            -max(each.splits[f"{each.training_split}"].rows or 0 for each in sources),
        )

    titles = tuple(each.probe for each in known)
    places = {method: place(method) for method in methods if method.startswith(titles)}
    least = min((distance for distance, *_ in places.values()), default=0)
    return sorted((one for one in places if places[one][0] == least), key=lambda one: places[one])


def nearest_probe(methods: Iterable[str], dataset: str) -> str | None:
    """Return the first of ``nearest_probes``; None without a probe."""
    return next(iter(nearest_probes(methods, dataset)), None)


def goes_with(training: Run, run: Run) -> bool:
    """Tell whether a probe that is trained on one run has something to say of another: whether they
    share a style of prompt.

    Refused are runs of the same style, but with other weights or another prompt.
    """
    one = training.identity
    other = run.identity
    if one.prompt_style != other.prompt_style:
        return False
    differing = [line for line in differences(one, other) if line.split(":")[0] in _SAME]
    if differing:
        raise InputError(
            f"a probe trained on {training} cannot predict {run}: they differ in "
            f"{'; '.join(differing)}; "
            "sample one of them again, or move it to another --store"
        )
    return True
