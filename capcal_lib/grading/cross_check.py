"""Two graders on one run: what only one of them calls correct, for a person to look at."""

import json
from pathlib import Path

import numpy as np
import pandas as pd

from capcal_lib.errors import InputError
from capcal_lib.grading import pool
from capcal_lib.grading.second_opinion import second_opinion
from capcal_lib.grading.verdicts import read_verdicts, run_questions
from capcal_lib.metrics.intervals import Interval, bootstrap_mean
from capcal_lib.sampling.store import KEY, read_samples

SHOWN = 300  # characters at the end of a response


def cross_check(folder: Path) -> tuple[pd.DataFrame, Interval]:
    """Grade a graded run a second time, and list the answers that only one of the two graders calls correct.

    Returns
    -------
    tuple of DataFrame and Interval
        One row a disputed answer, with the end of one response that gave it, and how many ``samples`` did, most
        frequent first; and the share of samples disputed, with a 95 % interval over questions.

    Raises
    ------
    InputError
        Where the run is not graded or has no samples, or its questions cannot be loaded or have changed.
    """
    answers = {name: question.answer for name, question in run_questions(folder).items()}
    rows = read_samples(folder)[[*KEY, "response"]].merge(read_verdicts(folder), on=KEY)
    rows = rows[rows["verdict"] != "not_scored"]
    if rows.empty:
        raise InputError(f"{folder} has no graded samples; draw some with: capcal sample")
    distinct = list(dict.fromkeys(zip(rows["question_id"], rows["response"], strict=True)))
    cases = [
        (response, answers[name].kind, (answers[name].gold, *answers[name].aliases)) for name, response in distinct
    ]
    opinions = pool.settle(second_opinion, cases, workers=pool.cores(), time_limit=pool.TIME_LIMIT)
    second = dict(zip(distinct, opinions, strict=True))
    rows["second"] = [second[pair] for pair in zip(rows["question_id"], rows["response"], strict=True)]
    rows["disputed"] = [
        opinion != (verdict == "correct") for opinion, verdict in zip(rows["second"], rows["verdict"], strict=True)
    ]
    share = bootstrap_mean(
        rows["disputed"].astype(float), rng=np.random.default_rng(0), clusters=rows["question_id"], resamples=2_000
    )
    rows["gold"] = [answers[name].gold for name in rows["question_id"]]
    rows["response"] = rows["response"].str[-SHOWN:]
    table = rows[rows["disputed"]]
    groups = table.groupby(
        ["question_id", "gold", "extracted", "verdict", "reason", "second"], dropna=False, observed=True
    )
    found = groups.agg(samples=("response", "size"), response=("response", "first")).reset_index()
    return found.sort_values(["samples", "question_id"], ascending=[False, True], ignore_index=True), share


def write_disputed(table: pd.DataFrame, path: Path) -> None:
    """Write a table of :func:`cross_check` as CSV, or as JSON lines where the name ends in ``.jsonl``.

    Raises
    ------
    InputError
        For a file that cannot be written.
    """
    lines = "".join(
        json.dumps(row) + "\n" for row in table.astype(object).where(table.notna(), None).to_dict("records")
    )
    text = lines if path.suffix == ".jsonl" else table.to_csv(index=False)
    try:
        path.write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None
