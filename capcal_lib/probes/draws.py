"""Train tuned probes on few labels: on random draws of a data set's training questions.

A *label* is one graded answer to one question. Training takes half a minute of a processor for all
draws of a run, nearly all of it for the choice of the weight decay. So ``capcal probe --draws``
trains the probes once, and keeps their predictions with the evaluation run, in
``predictions-draws.parquet``, where the splits are the draws."""

from __future__ import annotations  # keeps signatures short in help()

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
from threadpoolctl import threadpool_limits

from capcal_lib.metrics.validation import Ints
from capcal_lib.probes.features import read_features
from capcal_lib.probes.predictions import (
    VERSION,
    Source,
    digests_of,
    fresh_predictions,
    probe_title,
    write_predictions,
)
from capcal_lib.probes.training import goes_with, runs_for_probes, training_data
from capcal_lib.runs.artifacts import FEATURES, VERDICTS
from capcal_lib.runs.run import Choice, Run

DRAWS = {20: 10, 50: 10, 100: 10, 250: 5, 1000: 3}  # how many of so many labels
NAME = "draws"  # of the files of predictions


def keep_draws(
    store: Path | str,
    model: str,
    *,
    choice: Choice | None = None,
    say: Callable[[str], object] | None = None,
) -> pd.DataFrame:
    """Train probes of few labels on the training questions of each data set, and keep their
    predictions for its evaluation questions.

    ``DRAWS`` gives the number of draws for each number of labels that a data set has training
    questions for. Predictions that are not stale stay. Returns a table indexed by (dataset,
    labels): the number of ``draws``, and whether they were ``made`` now. ``choice`` is as in
    ``find_run``; ``say`` is called with one line per data set.
    """
    training = {
        dataset.name: run
        for dataset, run in runs_for_probes(store, model, "training", choice=choice)
    }
    rows = []
    for dataset, run in runs_for_probes(store, model, "evaluation", choice=choice):
        source = training.get(dataset.name)
        if source is None or not goes_with([source], run):
            continue
        title = probe_title(dataset.name)
        digests = digests_of([source], FEATURES, VERDICTS) | digests_of([run], FEATURES)
        about, _ = fresh_predictions(run, NAME).get(title, (None, None))
        if made := about is None or about.digests != digests:
            if say:
                say(f"training probes of few labels of {dataset.title}")
            about, predicted = _predict(source, run, digests)
            write_predictions(run, NAME, {title: (about, predicted)})
        for labels in _sizes(about.questions):
            rows.append([dataset.name, labels, DRAWS[labels], made])
    table = pd.DataFrame(rows, columns=["dataset", "labels", "draws", "made"])
    return table.set_index(["dataset", "labels"])


def _predict(source: Run, run: Run, digests: dict[str, str]) -> tuple[Source, pd.DataFrame]:
    """Train a probe on each draw from a training run, and predict the questions of another run."""
    from capcal_lib.probes.tuned import TunedProbe  # slow to import

    questions, features = training_data(source)
    names, states = read_features(run)
    columns = []
    with threadpool_limits(1):  # products are so small that threads wait for each other
        for labels in _sizes(len(questions)):
            for number in range(DRAWS[labels]):
                places, graded = draw_labels(questions, labels, number)
                probe = TunedProbe().fit(features[places], graded, np.ones_like(graded))
                columns.append(probe.predict(states))
    about = Source(
        training=source.identity.dataset,
        version=VERSION,
        questions=len(questions),
        concentration=np.nan,
        digests=digests,
    )
    return about, pd.DataFrame(dict(enumerate(columns)), names)


def _sizes(questions: int) -> list[int]:
    """List the numbers of labels that can be drawn from so many training questions."""
    return [labels for labels in DRAWS if labels <= questions]


def draw_labels(
    questions: pd.DataFrame, labels: int, number: int
) -> tuple[npt.NDArray[np.int64], Ints]:
    """Draw training questions, and one of the graded answers to each.

    Returns the places of the questions and how many of their one answers are correct, each
    (labels,). ``questions`` has ``correct`` and ``total``, as in ``training_data``. A draw is the
    same each time; ``number`` tells draws apart.

    >>> questions = pd.DataFrame({"correct": [0, 4, 0, 4], "total": 4})
    >>> places, graded = draw_labels(questions, 3, 0)
    >>> bool((graded == places % 2).all())
    True
    """
    rng = np.random.default_rng([labels, number])
    places = rng.choice(len(questions), labels, replace=False)
    mu_hat = (questions["correct"] / questions["total"]).to_numpy()[places]
    return places, rng.binomial(1, mu_hat)


def predict_by_labels(store: Path | str, model: str) -> dict[tuple[str, int], pd.DataFrame]:
    """Read the predictions of each data set's probes of few labels for its evaluation questions.

    Returns the predictions in [0, 1] of each draw, (n_questions, n_draws), indexed by question_id,
    by data set and number of labels. Data sets without such predictions, or with stale ones, are
    left out.

    >>> from capcal_lib.places import RECORDED_RUNS
    >>> predicted = predict_by_labels(RECORDED_RUNS, "simulated")
    >>> predicted["mini-exam", 20].shape
    (102, 10)
    """
    predicted = {}
    for dataset, run in runs_for_probes(store, model, "evaluation"):
        for about, table in fresh_predictions(run, NAME).values():
            start = 0
            for labels in _sizes(about.questions):
                end = start + DRAWS[labels]
                draws = table.iloc[:, start:end].set_axis(range(DRAWS[labels]), axis="columns")
                predicted[dataset.name, labels] = draws
                start = end
    return predicted
