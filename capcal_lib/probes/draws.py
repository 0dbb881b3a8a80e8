"""Train tuned probes on few labels: on random draws of a run's training questions.

A *label* is one graded answer to one question. Nearly all the time of training goes into the choice
of the weight decay: half a minute of a processor for all draws of a run. So ``capcal probe
--draws`` makes the choice once and keeps it with the training run, in ``draws.json``. With a known
decay, a probe is trained again in some hundredths of a second.

The file also has Platt's method as fitted to the out-of-fold predictions of the probe of all
questions, and a digest of the hidden states and verdicts that both were made from. If these have
changed, nothing is read."""

from __future__ import annotations  # keeps signatures short in help()

import hashlib
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Annotated

import numpy as np
import numpy.typing as npt
import pandas as pd
from pydantic import BaseModel, Field, FiniteFloat, ValidationError
from threadpoolctl import threadpool_limits

from capcal_lib.errors import InputError
from capcal_lib.metrics.validation import Ints
from capcal_lib.probes.features import read_features
from capcal_lib.probes.predictions import digests_of
from capcal_lib.probes.training import goes_with, runs_for_probes, train, training_data
from capcal_lib.runs.artifacts import DRAWS as DRAWS_FILE
from capcal_lib.runs.artifacts import FEATURES, VERDICTS
from capcal_lib.runs.files import plain_errors, write_file
from capcal_lib.runs.run import Choice, Run, store_option

DRAWS = {20: 10, 50: 10, 100: 10, 250: 5, 1000: 3}  # how many of so many labels
Decay = Annotated[float, Field(gt=0, lt=1e6)]


class Record(BaseModel):
    """The results for the probes of a training run."""

    made_from: str  # the digest of its hidden states and verdicts
    decays: dict[int, list[Decay]]  # by number of labels, of one draw after the other
    platt: tuple[FiniteFloat, FiniteFloat]  # slope and level, of the probe of all questions
    questions: int  # all of them


def keep_draws(
    store: Path | str,
    model: str,
    *,
    choice: Choice | None = None,
    say: Callable[[str], object] | None = None,
) -> pd.DataFrame:
    """Choose the weight decays of probes of few labels on each training run of a model, recalibrate
    the probe of all questions, and keep both with the run.

    ``DRAWS`` gives the number of draws for each number of labels that a run has training questions
    for. ``TunedProbe`` chooses a decay for each draw by cross-validation. Records that are not
    stale stay. Returns a table indexed by (dataset, labels): the number of ``draws``, and whether
    they were ``made`` now. ``choice`` is as in ``find_run``; ``say`` is called with one line per
    run.
    """
    rows = []
    for dataset, run in runs_for_probes(store, model, "training", choice=choice):
        record = read_draws(run)
        if made := record is None:
            if say:
                say(f"training probes of few labels of {dataset.title}")
            with threadpool_limits(1):  # products are so small that threads wait for each other
                record = _make(run)
            write_file(run.folder / DRAWS_FILE, BytesIO(record.model_dump_json().encode()))
        for labels, decays in record.decays.items():
            rows.append([dataset.name, labels, len(decays), made])
    table = pd.DataFrame(rows, columns=["dataset", "labels", "draws", "made"])
    return table.set_index(["dataset", "labels"])


def _make(run: Run) -> Record:
    """Train the probes of a training run, and record the results that take time."""
    from capcal_lib.metrics import Calibrator  # slow to import
    from capcal_lib.probes.tuned import TunedProbe

    questions, features = training_data(run)
    decays: dict[int, list[Decay]] = {}
    for labels, draws in DRAWS.items():
        if labels <= len(questions):
            decays[labels] = []
            for number in range(draws):
                places, graded = draw_labels(questions, labels, number)
                probe = TunedProbe().fit(features[places], graded, np.ones_like(graded))
                decays[labels].append(probe.weight_decay_)
    out_of_fold = train(run).out_of_fold_
    platt = Calibrator("platt").fit(out_of_fold, questions["correct"], questions["total"]).fitted_
    return Record(
        made_from=_digest(run), decays=decays, platt=tuple(platt), questions=len(questions)
    )


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


def read_draws(run: Run) -> Record | None:
    """Read the record of a training run; None if there is none, or if it was made from other hidden
    states or verdicts.

    `InputError` for a file that is no such record.
    """
    record = _read(run)
    return record if record and record.made_from == _digest(run) else None


def check_draws(run: Run) -> Iterator[str]:
    """Yield a message if the record of probes of few labels is stale; `InputError` if the file is
    no such record.
    """
    record = _read(run)
    if record and record.made_from != _digest(run):
        yield (
            f"{DRAWS_FILE} is stale, since the hidden states or the verdicts changed: give "
            "`capcal probe --draws` again"
        )


def _read(run: Run) -> Record | None:
    """Read the record of a training run, stale or not; None if there is none."""
    path = run.folder / DRAWS_FILE
    if not path.exists():
        return None
    with plain_errors(path):
        text = path.read_bytes()
    try:
        return Record.model_validate_json(text)
    except ValidationError:
        command = f"capcal probe --draws --model {run.place['model']}"
        raise InputError(
            f"{path}: not a record of probes of few labels; delete it and make it again with: "
            f"{command}{store_option(run.folder.parents[2])}"
        ) from None


def predict_by_labels(store: Path | str, model: str) -> dict[tuple[str, int], pd.DataFrame]:
    """Train the probe of each data set on draws of few labels, with the decays on record, and
    predict its evaluation questions.

    Returns the predictions in [0, 1] of each draw, (n_questions, n_draws), indexed by question_id,
    by data set and number of labels. A data set whose training run has no record is left out.

    >>> from capcal_lib.places import RECORDED_RUNS
    >>> predicted = predict_by_labels(RECORDED_RUNS, "simulated")
    >>> predicted["mini-exam", 20].shape
    (102, 10)
    """
    from capcal_lib.probes.linear import LinearProbe  # slow to import

    training = {dataset.name: run for dataset, run in runs_for_probes(store, model, "training")}
    predicted = {}
    for dataset, run in runs_for_probes(store, model, "evaluation"):
        source = training.get(dataset.name)
        record = read_draws(source) if source else None
        if source is None or record is None or not goes_with([source], run):
            continue
        questions, features = training_data(source)
        names, states = read_features(run)
        with threadpool_limits(1):
            for labels, decays in record.decays.items():
                columns = {}
                for number, decay in enumerate(decays):
                    places, graded = draw_labels(questions, labels, number)
                    probe = LinearProbe(weight_decay=decay, standardize=True)
                    probe.fit(features[places], graded, np.ones_like(graded))
                    columns[number] = probe.predict(states)
                predicted[dataset.name, labels] = pd.DataFrame(columns, names)
    return predicted


def _digest(run: Run) -> str:
    """Return the digest of what probes learn from: the hidden states and verdicts of a run."""
    parts = digests_of([run], FEATURES, VERDICTS).values()
    return hashlib.sha256("".join(parts).encode()).hexdigest()
