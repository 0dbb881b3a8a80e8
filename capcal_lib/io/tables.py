"""Read and check what people score: tables of question_id, confidence, correct, total, and counts
of logs.
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pandas as pd

from capcal_lib.errors import InputError
from capcal_lib.grading.core import grade_many
from capcal_lib.grading.unread import describe_unread
from capcal_lib.io.samples import RUN, check_one_run, is_log, kind_of, read_samples
from capcal_lib.io.verdicts import SCALE, spell_value
from capcal_lib.questions import NOT_STATED, Answer
from capcal_lib.results.terms import COUNTS, NUMBERS, accuracy_bounds
from capcal_lib.rows import JSON_LINES, is_missing, read_table, refuse, take_columns
from capcal_lib.text import counted, printable, sanitize

OTHERS = ["total", "subject", "sample", *RUN]  # that a table may have
NO_TOTAL = "; without a column total each row is one sample"
SHARES = {  # how pandas reads a confidence that is spelled otherwise
    ",": 'pd.read_csv(FILE, sep=";", decimal=",")',
    "%": 'table["confidence"].str.rstrip(" %").astype(float) / 100',
}


class Counted(NamedTuple):
    """What a file holds: a row a question, indexed by question_id, and how it was read.

    The table has ``correct``, ``total`` and ``confidence``, and ``cluster`` where the file says
    which questions belong together; that of a log has the ``question`` and its right answer,
    ``gold``, in place of a confidence."""

    table: pd.DataFrame
    notes: list[str]


def read_file(
    path: Path,
    *,
    key: Path | None = None,
    drop_missing: bool = False,
    columns: Mapping[str, str] = MappingProxyType({}),
    **of_log: Any,
) -> Counted:
    """Read what is to be scored: a table of confidences, with its own counts or those of a ``key``,
    or a log.

    `InputError` for a file that cannot be read, whatever checking refuses, and an option that has
    nothing to do: of logs for a table, or of tables for a log."""
    if key is None and is_log(path, columns):
        if drop_missing:
            raise InputError(f"{path} is a log, which has no confidences to miss")
        return read_counts(path, columns=columns, **of_log)
    counts = None
    if key is not None and is_log(key):
        counts = read_counts(key, **of_log)
    elif any(of_log.values()):
        raise InputError(
            f"{key or path} is a table of counts, no log: --scorer and --regrade are for logs"
        )
    elif key is not None:
        counts = check_counts(key, read_table(key))
    return check_table(path, read_table(path), counts, drop_missing, columns)


def read_counts(path: Path, **of_log: Any) -> Counted:
    """Count the verdicts of a log, see :func:`~capcal_lib.io.samples.read_samples`, or those of the
    rules where it has none.

    `InputError` where no sample of it has a verdict."""
    log = read_samples([path], **of_log)
    samples, notes = log.samples, log.notes
    if not log.judged:
        if NOT_STATED in {*log.items["gold"]}:
            raise InputError(f"{path}: the samples have neither answers nor a verdict each")
        kind = kind_of(log.items)
        items: Any = log.items.itertuples()
        answers = {item.Index: Answer(kind, item.gold, item.aliases) for item in items}
        cases = zip(samples["response"], samples["question_id"].map(answers), strict=True)
        samples = samples.assign(verdict=[one.verdict for one in grade_many([*cases])])
        notes.append(f"graded by the rules, as answers of the kind {kind}")
        notes += describe_unread(samples["response"], samples["verdict"] == "no_answer")
    lost = samples["verdict"] == "not_scored"
    outcomes = {"correct": samples["verdict"] == "correct", "total": ~lost, "not_scored": lost}
    counts = pd.DataFrame(outcomes).groupby(samples["question_id"]).sum()
    if lost.any():
        low, high = accuracy_bounds(counts)
        notes.append(f"accuracy {low:.3f} with the unscored wrong, {high:.3f} right")
    table = counts.loc[counts["total"] > 0, COUNTS].join(log.items[["gold", "question"]])
    if table.empty:
        raise InputError(f"{path}: no sample has a verdict")
    return Counted(table, notes)


def check_table(
    where: object,
    table: pd.DataFrame,
    counts: Counted | None = None,
    drop_missing: bool = False,
    columns: Mapping[str, str] | None = None,
) -> Counted:
    """Check confidences and counts: a row a question, or without a ``total`` a row a sample.

    The counts are those of a key if some are given. Rows without a confidence are left out with
    ``drop_missing``, and said. `InputError` for a column that lacks, a question with two
    confidences, or a value that is not allowed; the row is named by its place and id."""
    needed = ["question_id", "confidence", "correct"]
    table = _take_rows(where, table, needed if counts is None else needed[:2], columns)
    missing = is_missing(table["confidence"])
    few = f"{missing.sum()} of {counted(len(table), 'row')}"
    notes = []
    if drop_missing:
        table = table[~missing]
        notes.append(f"{few} without a confidence left out")
        if table.empty:
            raise InputError(f"{where}: no question has a confidence")
    elif missing.any():
        rule = f"has no confidence, as {few}; --drop-missing leaves them out"
        refuse(table, missing, rule, *NUMBERS)
    numbers = pd.to_numeric(table["confidence"], errors="coerce")
    outside = ~numbers.between(0, 1)
    rule = "has a confidence that is no number from 0 to 1"
    spelled = " ".join(map(str, table.loc[outside, "confidence"]))
    for sign, line in SHARES.items():
        if sign in spelled:
            rule += f"; read it by {line}"
    refuse(table, outside, rule, *NUMBERS)
    table = table.assign(confidence=numbers)
    stated = table[["question_id", "confidence"]].drop_duplicates()
    twice = table["question_id"].isin(stated.loc[stated["question_id"].duplicated(), "question_id"])
    refuse(table, twice, "has two confidences; use one file per model or method", *NUMBERS)
    if counts is None:
        counts = _count(table)
    else:
        known = table["question_id"].isin(counts.table.index)
        example = sanitize(counts.table.index[0], 80)
        refuse(table, ~known, f"is not in the key, whose ids look like {example!r}", *NUMBERS)
        refuse(table, table["question_id"].duplicated(), "stands in two rows", *NUMBERS)
        notes.append(
            f"the key counts {counted(len(counts.table), 'question')}, {len(stated)} of "
            "them with a confidence"
        )
    joined = stated.set_index("question_id").join(
        counts.table.drop(columns=["gold", "question"], errors="ignore")
    )
    labels = _read_subjects(table)
    if labels is not None:
        joined["cluster"] = labels
    if "cluster" in joined:
        notes.append(f"whole subjects vary: {joined['cluster'].nunique()} of them")
    if single := int((joined["total"] == 1).sum()):
        notes.append(f"no corrected score of {counted(single, 'question')}: one scored sample")
    return Counted(joined, counts.notes + notes)


def check_counts(where: object, table: pd.DataFrame) -> Counted:
    """Check counts alone: ``correct`` and, if the rows are no single samples, ``total``."""
    table = _take_rows(where, table, ["question_id", "correct"])
    counts = _count(table)
    labels = _read_subjects(table)
    if labels is not None:
        counts.table["cluster"] = labels
    return counts


def _take_rows(
    where: object,
    table: pd.DataFrame,
    needed: list[str],
    columns: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """Take the rows of one run, each sample once, with their places."""
    table = take_columns(where, table, needed, OTHERS, columns)
    table = table.assign(path=printable(where), row=range(len(table)))
    missing = table["question_id"].isna() | table["question_id"].eq("")
    refuse(table, missing, "has no question_id", *NUMBERS)
    lists = table["question_id"].map(lambda name: isinstance(name, list | dict))
    refuse(table, lists, f"is a column and no row; write {JSON_LINES}")
    table["question_id"] = table["question_id"].map(str).str.strip()
    for name in table.columns.intersection(["sample", "subject"]):
        table[name] = table[name].map(str, na_action="ignore")
    check_one_run(table)
    if "sample" in table:
        again = table.duplicated(["question_id", "sample"])
        rule = 'has a sample twice; write table.drop_duplicates(["question_id", "sample"])'
        refuse(table, again, rule, "sample", *NUMBERS)
    return table


def _count(table: pd.DataFrame) -> Counted:
    """Return ``correct`` and ``total`` of each question; without a total the rows are samples."""
    if "total" not in table:
        spelled = table["correct"].map(spell_value).map(SCALE)
        right = spelled.isin(["correct", "incorrect"])
        refuse(table, ~right, f"has a correct that is not 0 or 1{NO_TOTAL}", *NUMBERS)
        samples = (spelled == "correct").groupby(table["question_id"], sort=False)
        counts = samples.agg(["sum", "size"]).set_axis(COUNTS, axis="columns")
        questions = counted(len(counts), "question")
        note = f"no total: {counted(len(table), 'row')} counted as samples of {questions}"
        return Counted(counts, [note])
    numbers = table[COUNTS].apply(pd.to_numeric, errors="coerce")
    whole = ((numbers % 1 == 0) & (numbers >= 0)).all(axis="columns")
    more = numbers["correct"] > numbers["total"]
    refuse(table, ~whole, "has counts that are no whole numbers from 0 on", *NUMBERS)
    refuse(table, numbers["total"] == 0, "has no scored sample; leave it out", *NUMBERS)
    refuse(table, more, "has more correct samples than its total", *NUMBERS)
    refuse(table, table["question_id"].duplicated(), "stands in two rows; give one", *NUMBERS)
    return Counted(numbers.astype(int).set_index(table["question_id"]), [])


def _read_subjects(table: pd.DataFrame) -> "pd.Series[str] | None":
    """Read which questions belong together, a label a question; None where no column says it."""
    if "subject" not in table:
        return None
    refuse(table, is_missing(table["subject"]), "has no subject", *NUMBERS)
    labels = table[["question_id", "subject"]].drop_duplicates()
    again = labels.loc[labels["question_id"].duplicated(), "question_id"]
    refuse(table, table["question_id"].isin(again), "has more than one subject", "subject")
    return labels.set_index("question_id")["subject"].map(str)
