"""Two graders on one run: what only one of them calls correct, for a person to look at."""

import re
from pathlib import Path

import pandas as pd

from capcal_lib.errors import InputError
from capcal_lib.grading import pool
from capcal_lib.grading.second_opinion import second_opinion
from capcal_lib.grading.verdicts import answered_questions, read_verdicts
from capcal_lib.manifests import write_text
from capcal_lib.metrics.intervals import Interval, mean_interval
from capcal_lib.runs.run import Run
from capcal_lib.runs.store import KEY, read_samples

SHOWN = 300  # characters at the end of a response


def cross_check(run: Run) -> tuple[pd.DataFrame, Interval]:
    """Grade a graded run a second time, and list the answers that only one of the two graders calls
    correct.

    The table has one row a disputed answer, with the end of one response that gave it, and how many
    ``samples`` did, most frequent first. With it comes the share of samples disputed, with a 95 %
    interval over questions."""
    answers = {name: question.answer for name, question in answered_questions(run).items()}
    rows = read_samples(run)[[*KEY, "response"]].merge(read_verdicts(run), on=KEY)
    rows = rows[rows["verdict"] != "not_scored"]
    if rows.empty:
        raise InputError(f"{run} has no graded samples; draw some with: capcal sample")
    distinct = list(dict.fromkeys(zip(rows["question_id"], rows["response"], strict=True)))
    cases = [
        (text, answers[name].kind, (answers[name].gold, *answers[name].aliases))
        for name, text in distinct
    ]
    second = dict(zip(distinct, pool.settle(second_opinion, cases), strict=True))
    rows["second"] = [
        second[pair] for pair in zip(rows["question_id"], rows["response"], strict=True)
    ]
    disputed = rows["second"] != (rows["verdict"] == "correct")
    share = mean_interval(disputed.astype(float), clusters=rows["question_id"])
    rows["gold"] = [answers[name].gold for name in rows["question_id"]]
    rows["response"] = rows["response"].str[-SHOWN:]
    alike = ["question_id", "gold", "extracted", "verdict", "reason", "second"]
    groups = rows[disputed].groupby(alike, dropna=False, observed=True)
    found = groups.agg(samples=("response", "size"), response=("response", "first")).reset_index()
    return found.sort_values(
        ["samples", "question_id"], ascending=[False, True], ignore_index=True
    ), share


_FORMULA = re.compile(r"[=+@\t\r]|-(?!\d+(?:\.\d+)?$)")  # what a spreadsheet would compute


def write_disputed(table: pd.DataFrame, path: Path) -> None:
    """Write a table of :func:`cross_check` as CSV, or as JSON lines where the name ends in
    ``.jsonl``.

    In CSV an apostrophe stands before text of a model that a spreadsheet would run as a formula.
    """
    if path.suffix == ".jsonl":
        write_text(path, table.to_json(orient="records", lines=True))
    else:
        write_text(path, table.map(_as_text).to_csv(index=False))


def _as_text(cell: object) -> object:
    if isinstance(cell, str) and _FORMULA.match(cell):
        return f"'{cell}"
    return cell
