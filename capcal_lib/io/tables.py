"""Read and check what people score: tables of question_id, confidence, correct, total, and counts
of logs.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from capcal_lib.disk import is_folder
from capcal_lib.errors import InputError, check_known
from capcal_lib.grading.core import grade_many
from capcal_lib.grading.unread import Unread
from capcal_lib.io.answers import kind_of
from capcal_lib.io.identity import AGAIN, RUN, check_one_run, check_one_task
from capcal_lib.io.samples import open_log
from capcal_lib.io.verdicts import read_verdicts, spell_value
from capcal_lib.questions import NOT_STATED, Answer
from capcal_lib.results.terms import COUNTS, NUMBERS, accuracy_bounds
from capcal_lib.rows import MISSING, plain_head, read_share, read_table, stream_rows, take_texts
from capcal_lib.text import counted, sanitize

CLUSTERS = ["cluster", "subject"]  # columns of which questions belong together
WEIGHT = "weight"  # a column that is refused
OTHERS = ["total", *CLUSTERS, WEIGHT, "sample", "task", *RUN]  # columns that a file may have
OTHER_COLUMN = (
    "; name another with --column NAME=COLUMN, or take correct and total from another file, or a "
    "log, with --key FILE; samples without confidences are scored with --column verdict=COLUMN"
)
OTHER_HEAD = "; name another, as in columns={'correct': 'right'}"  # of a table that is no file
TWO_CONFIDENCES = (
    "has two confidences; use one file per model or method, and average repeated confidences first"
)
NO_TOTAL = "; without a column total each row is one sample"


class Counted(NamedTuple):
    """What a file holds: a row a question, indexed by question_id, and how it was read.

    The table has ``correct``, ``total`` and ``confidence``, and ``cluster`` where the file says
    which questions belong together; that of a log has the right answer, ``gold``, in place of a
    confidence, and its questions are those of one id and ``question``."""

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
    """Read what is to be scored: :func:`read_confidences`, or :func:`read_counts` of a log.

    `InputError` also for an option that has nothing to do: of logs for a table, or of tables for a
    log."""
    if key is None and is_log(path, columns):
        if drop_missing:
            raise InputError(f"{path} is a log, which has no confidences to miss")
        return read_counts(path, columns=columns, **of_log)
    if any(of_log.values()) and (key is None or not is_log(key)):
        raise InputError(
            f"{key or path} is a table of counts, no log: --scorer, --correct and --regrade are "
            "for logs"
        )
    return read_confidences(path, key=key, drop_missing=drop_missing, columns=columns, **of_log)


def is_log(path: Path, columns: Mapping[str, str] = MappingProxyType({})) -> bool:
    """Tell a log of samples from a table of confidences or counts, which ``columns`` may name."""
    if str(path) == "-":
        return False
    if path.suffix == ".eval" or is_folder(path):
        return True
    heads = {plain_head(str(head)) for head in next(stream_rows(path), NUMBERS)}
    if "verdict" in columns or "gold" in columns:  # which only logs have
        return True
    return heads.isdisjoint(NUMBERS) and columns.keys().isdisjoint(NUMBERS)


def read_counts(path: Path, **of_log: Any) -> Counted:
    """Count the verdicts of a log, see :func:`~capcal_lib.io.samples.open_log`, or those of the
    rules where it has none.

    `InputError` where no sample of it has a verdict."""
    with open_log([path], **of_log) as log:
        items, notes = log.items, log.notes
        answers: dict[str, Answer] = {}
        if not log.judged:
            if NOT_STATED in {*items["gold"]}:
                raise InputError(f"{path}: the samples have neither answers nor a verdict each")
            kind = kind_of(items)
            answers = {
                name: Answer(kind, gold, aliases)
                for name, _, gold, aliases, *_ in items.itertuples()
            }
        unread = Unread()
        parts = [_count_verdicts(samples, answers, unread) for samples in log.tables()]
    counts = pd.concat(parts).sort_index()
    notes += unread.describe()
    table = counts.loc[counts["total"] > 0, COUNTS].join(items[["gold", "question"]])
    if table.empty:
        raise InputError(f"{path}: no sample has a verdict, nor an answer that could be graded")
    if lost := int(counts["not_scored"].sum()):
        low, high = accuracy_bounds(counts)
        notes.append(
            f"{counted(lost, 'sample')} not scored: accuracy {low:.3f} with them wrong, "
            f"{high:.3f} right"
        )
    return Counted(table.set_index("question", append=True), notes)


def _count_verdicts(
    samples: pd.DataFrame, answers: Mapping[str, Answer], unread: Unread
) -> pd.DataFrame:
    """Count the verdicts of samples, or those of the rules where there are ``answers``."""
    if answers:
        cases = zip(samples["response"], samples["question_id"].map(answers), strict=True)
        samples = samples.assign(verdict=[one.verdict for one in grade_many(list(cases))])
    lost = samples["verdict"] == "not_scored"
    unread.add(samples.loc[~lost, "response"], samples.loc[~lost, "verdict"] == "no_answer")
    outcomes = {"correct": samples["verdict"] == "correct", "total": ~lost, "not_scored": lost}
    return pd.DataFrame(outcomes).groupby(samples["question_id"]).sum()


def read_confidences(
    path: Path,
    *,
    key: Path | None = None,
    drop_missing: bool = False,
    columns: Mapping[str, str] = MappingProxyType({}),
    **of_log: Any,
) -> Counted:
    """Read and check confidences and counts: a row a question, indexed by question_id as it is
    written.

    The file and ``columns`` are those of :func:`~capcal_lib.rows.take_texts`; confidences are
    read by :func:`~capcal_lib.rows.read_share`. Without a ``total`` each row is one sample, and the
    rows of a question are counted. The counts are those of a ``key`` if one is given, see
    :func:`read_key`. Rows without a confidence are left out with ``drop_missing``. Notes say so.

    `InputError` for a file that cannot be read, a column that lacks, a question with two
    confidences, or a value that is not allowed; the row is named by its place and id, and the rule
    that it breaks."""
    if key is None:
        return check_table(path, read_table(path), drop_missing=drop_missing, columns=columns)
    counts, notes = read_key(key, **of_log)
    table, _ = _take_rows(path, read_table(path), ["question_id", "confidence"], columns)
    inside = table["question_id"].isin(counts.index)
    example = sanitize(counts.index[0], 80)
    _refuse(path, table, ~inside, f"is not in the key {key}, whose ids look like {example!r}")
    notes.append(f"counts of {key}: {len(table)} of its {counted(len(counts), 'question')}")
    table = _drop_missing(path, table, drop_missing, notes)
    return _join(path, table, counts, notes)


def check_table(
    where: object,
    table: pd.DataFrame,
    *,
    drop_missing: bool = False,
    columns: Mapping[str, str] = MappingProxyType({}),
) -> Counted:
    """Check a table of confidences and counts as :func:`read_confidences` does a file."""
    needed = ["question_id", "confidence", "correct"]
    table, notes = _take_rows(where, table, needed, columns)
    table = _drop_missing(where, table, drop_missing, notes)
    return _join(where, table, _count(where, table), notes)


def check_counts(
    where: object, table: pd.DataFrame, columns: Mapping[str, str] = MappingProxyType({})
) -> Counted:
    """Check a table of counts alone; a question may come again with equal ones."""
    table, notes = _take_rows(where, table, ["question_id", "correct"], columns)
    counts = _count(where, table)
    clusters = _read_clusters(where, table)
    if clusters is not None:
        counts["cluster"] = clusters
    return Counted(counts, notes)


def _drop_missing(
    where: object, table: pd.DataFrame, allowed: bool, notes: list[str]
) -> pd.DataFrame:
    """Leave out rows without a confidence, or refuse them."""
    missing = table["confidence"].str.lower().isin(MISSING)
    few = f"{missing.sum()} of {counted(len(table), 'row')}"
    if not allowed:
        rule = f"has no confidence, as {few}; --drop-missing leaves them out"
        _refuse(where, table, missing, rule)
        return table
    if missing.all():
        raise InputError(f"{where}: no question has a confidence")
    notes.append(f"{few} without a confidence left out")
    return table[~missing]


def _join(where: object, table: pd.DataFrame, counts: pd.DataFrame, notes: list[str]) -> Counted:
    """Join the confidence of each question with its counts."""
    stated = table[["question_id"]].assign(confidence=_check_shares(where, table))
    again = stated["question_id"].duplicated()
    if "total" in table:
        _refuse(where, table, again, "stands in two rows; use one file per model or method")
    _refuse(where, table, again & ~stated.duplicated(), TWO_CONFIDENCES)
    joined = stated[~again].set_index("question_id").join(counts)
    clusters = _read_clusters(where, table)
    if clusters is None:
        clusters = joined.get("cluster")  # of the key
    if clusters is not None:
        joined["cluster"] = clusters
        notes.append(f"whole {clusters.name}s vary: {joined['cluster'].nunique()} of them")
    if single := (joined["total"] == 1).sum():
        notes.append(f"no corrected score of {counted(single, 'question')}: one scored sample")
    return Counted(joined, notes)


def read_key(path: Path, **of_log: Any) -> Counted:
    """Read counts alone, indexed by question_id: of a log, or of a table with ``correct`` and, if
    its rows are no single samples, ``total``.

    A question may come again with equal counts, as in a table of several methods. `InputError` for
    two unlike rows of a question, one text of a log under two ids, and whatever reading refuses."""
    if is_log(path):
        counts, notes = read_counts(path, **of_log)
        counts = counts[COUNTS].droplevel("question")
        if counts.index.has_duplicates:
            name = sanitize(counts.index[counts.index.duplicated()][0], 80)
            raise InputError(f"{path}: question {name!r} has two texts; give a log of one task")
        return Counted(counts, notes)
    return check_counts(path, read_table(path))


def _take_rows(
    where: object,
    table: pd.DataFrame,
    needed: Sequence[str],
    columns: Mapping[str, str],
) -> tuple[pd.DataFrame, list[str]]:
    """Take the rows of one run, a sample that is numbered once, and say what was left out.

    Without a total the rows are samples."""
    for name in columns:
        check_known("column", name, [*needed, *OTHERS])
    notes = []
    remedy = OTHER_COLUMN if isinstance(where, Path) else OTHER_HEAD
    table = take_texts(where, table, needed, OTHERS, remedy, columns)
    check_one_run(where, table)
    if "task" in table:
        check_one_task(where, table, ["question_id"])
    if "sample" in table and "total" not in table:
        again = (table["sample"] != "") & table.duplicated(["question_id", "sample"])
        _refuse(where, table, again & ~table.duplicated(), "has a sample twice, with other values")
        if again.any():
            notes.append(f"{counted(int(again.sum()), 'repeated row')} left out: {AGAIN}")
            table = table[~again]
    if "correct" in table and "total" not in table:
        questions = counted(table["question_id"].nunique(), "question")
        notes.append(f"no total: {counted(len(table), 'row')} counted as samples of {questions}")
    return table, notes


def _count(where: object, table: pd.DataFrame) -> pd.DataFrame:
    """Return ``correct`` and ``total`` of each question, which may come again with equal counts."""
    numbers = _check_counts(where, table).assign(question_id=table["question_id"])
    if "total" in table:
        # Equal rows of one sample each may be two samples as well as one that is said twice.
        same = numbers.duplicated() & (numbers["total"] > 1)
        unlike = numbers["question_id"].duplicated() & ~same
        _refuse(where, table, unlike, "stands in two rows; give its counts in one")
        numbers = numbers.drop_duplicates()
    return numbers.groupby("question_id", sort=False).sum()


def _read_clusters(where: object, table: pd.DataFrame) -> "pd.Series[str] | None":
    """Read which questions belong together, a label a question; None where no column says it.

    `InputError` for a column of weights, for two columns of labels, and for a question without a
    label or with two."""
    if WEIGHT in table:
        raise InputError(
            f"{where}: a column {WEIGHT} is not used, as every question counts alike; leave it out"
        )
    names = [name for name in CLUSTERS if name in table]
    if not names:
        return None
    if len(names) > 1:
        raise InputError(f"{where}: columns {' and '.join(names)} mean the same; keep one")
    name = names[0]
    _refuse(where, table, table[name] == "", f"has no {name}")
    labels = table[["question_id", name]].drop_duplicates()
    again = table["question_id"].isin(labels["question_id"][labels["question_id"].duplicated()])
    _refuse(where, table, again, f"has more than one {name}")
    return labels.set_index("question_id")[name]


def _check_counts(where: object, table: pd.DataFrame) -> pd.DataFrame:
    """Return ``correct`` and ``total`` of texts as whole numbers; without a total each row is one
    sample, whose ``correct`` may be a word of a verdict.
    """
    _refuse(where, table, table["question_id"] == "", "has no question_id")
    correct = _read_numbers(table["correct"])
    words, _ = read_verdicts(table["correct"][correct.isna()].map(spell_value))
    correct = correct.fillna(words.map({"correct": 1.0, "incorrect": 0.0}))
    whole = (correct % 1 == 0) & (correct >= 0)
    _refuse(where, table, ~whole, "has a number of correct samples that is not whole, or below 0")
    if "total" not in table:
        _refuse(where, table, correct > 1, f"has more than one correct in a row{NO_TOTAL}")
        return pd.DataFrame({"correct": correct, "total": 1}, dtype=np.int64)
    total = _read_numbers(table["total"])
    whole = (total % 1 == 0) & (total >= 0)
    _refuse(where, table, ~whole, "has a total that is no whole number, or below 0")
    _refuse(where, table, total == 0, "has no scored sample; leave it out")
    _refuse(where, table, correct > total, "has more correct samples than its total")
    return pd.DataFrame({"correct": correct, "total": total}, dtype=np.int64)


def _read_numbers(texts: "pd.Series[str]") -> "pd.Series[float]":
    """Return the numbers of texts, of which some write 4 as 4,0; NaN for any other text."""
    plain = texts.str.replace(r",0$", "", regex=True)
    return pd.to_numeric(plain, errors="coerce").astype(float)


def _check_shares(where: object, table: pd.DataFrame) -> "pd.Series[float]":
    """Return the confidences of texts, each in [0, 1]."""
    texts = table["confidence"]
    shares = pd.to_numeric(texts, errors="coerce").astype(float)
    others = []  # than plain numbers: decimal commas, percentages
    for text in texts[shares.isna()]:
        try:
            others.append(read_share(text))
        except ValueError:
            others.append(np.nan)
    shares = shares.mask(shares.isna(), pd.Series(others, texts.index[shares.isna()]))
    _refuse(where, table, shares.isna(), "has a confidence that is no number")
    _refuse(where, table, shares < 0, "has a confidence below 0")
    percent = "; divide percentages by 100, or write them with %" if shares.max() > 2 else ""
    _refuse(where, table, shares > 1, f"has a confidence above 1{percent}")
    return shares


def _refuse(where: object, table: pd.DataFrame, wrong: "pd.Series[bool]", rule: str) -> None:
    """Refuse a table for the first row that breaks a rule, if there is one."""
    if wrong.any():
        place = int(wrong.to_numpy().argmax())
        row = table.iloc[place]
        name = sanitize(row["question_id"], 80)
        values = sanitize(row[row.index.intersection(NUMBERS)].to_dict())
        raise InputError(f"{where}, row {table.index[place]}: question {name!r} {rule}: {values}")
