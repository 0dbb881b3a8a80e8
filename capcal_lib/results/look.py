"""Look at a run: its questions with their counts, or one question with its samples and verdicts."""

from pathlib import Path

import pandas as pd

from capcal_lib.errors import InputError
from capcal_lib.grading.counts import count_run
from capcal_lib.grading.unread import describe_unread
from capcal_lib.grading.verdicts import VERDICTS, read_verdicts
from capcal_lib.runs import Run, open_runs
from capcal_lib.runs.run import store_option
from capcal_lib.runs.store import KEY, read_samples
from capcal_lib.text import sanitize


def named_run(
    store: Path,
    key: str,
    *,
    model: str | None = None,
    dataset: str | None = None,
    split: str | None = None,
) -> Run:
    """Find the run whose key begins with ``key``, among a store's runs or those of a model, data
    set or split. `InputError` if none or several match."""
    runs = open_runs(store, model=model, dataset=dataset, split=split)
    fitting = [run for run in runs if run.folder.name.startswith(key)]
    if not fitting:
        asked = ", ".join(filter(None, (model, dataset, split, sanitize(key))))
        fits = f" that fits {asked}" if asked else ""
        raise InputError(f"{store} has no run{fits}; see: capcal status{store_option(store)}")
    if len(fitting) > 1:
        keys = ", ".join(run.folder.name for run in fitting)
        raise InputError(
            f"{len(fitting)} runs match, {keys}; choose one with --model and --dataset, or by the "
            "beginning of its key"
        )
    return fitting[0]


def questions_of(run: Run) -> pd.DataFrame:
    """Count the samples of each question: ``question_id`` and ``samples``, and in a graded run
    ``correct`` and ``not_scored``.
    """
    table = read_samples(run, KEY).groupby("question_id").size().to_frame("samples")
    if run.has(VERDICTS):
        table = table.join(count_run(run)[["correct", "not_scored"]])
    return table.reset_index()


def describe_unread_samples(run: Run) -> list[str]:
    """Report if the rules find no answer in more than a third of a graded run's samples, see
    :func:`~capcal_lib.grading.unread.describe_unread`.
    """
    counts = count_run(run)
    if 3 * counts["no_answer"].sum() <= counts["total"].sum():
        return []
    verdicts = read_verdicts(run)
    scored = verdicts[verdicts["verdict"] != "not_scored"]
    table = scored.merge(read_samples(run, [*KEY, "response"]), on=KEY)
    return describe_unread(table["response"], table["verdict"] == "no_answer")


def samples_of(run: Run, question_id: str) -> pd.DataFrame:
    """Return one row per sample of a question: sample_index, response, verdict (``not graded`` if
    it has none), extracted and reason (empty if there is none).

    `InputError` if the question was not sampled."""
    samples = read_samples(run, [*KEY, "response"])
    rows = samples[samples["question_id"] == question_id]
    if rows.empty:
        known = sanitize(samples["question_id"].min(), 80)
        raise InputError(
            f"{run} has no samples of {sanitize(question_id, 80)!r}; give an id such as {known!r}"
        )
    graded = read_verdicts(run) if run.has(VERDICTS) else rows[KEY]
    absent = {"verdict": "not graded", "extracted": "", "reason": ""}
    rows = rows.merge(graded, on=KEY, how="left").reindex(columns=[*rows, *absent])
    return rows.astype(dict.fromkeys(absent, object)).fillna(absent)
