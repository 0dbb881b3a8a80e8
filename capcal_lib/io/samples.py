"""Read samples that others drew: logs of lm-evaluation-harness and inspect_ai, batch output, any
table of rows.

Nothing in a file is evaluated, and what it unpacks to is bounded. What a log does not say is not
made up: token counts that are not there are 0, which stands for not known."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryFile
from types import MappingProxyType
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from capcal_lib.disk import is_folder
from capcal_lib.errors import InputError, check_known
from capcal_lib.io import shelf
from capcal_lib.io.answers import are_lists, read_answers
from capcal_lib.io.batch import read_batch
from capcal_lib.io.harness import model_of, read_harness, task_of
from capcal_lib.io.identity import (
    AGAIN,
    RUN,
    Copies,
    check_keys,
    check_one_prompt,
    check_one_run,
    check_one_task,
    drop_copies,
    find_copies,
    hash_draws,
    join_repeated,
    number_draws,
)
from capcal_lib.io.inspect_ai import archive_rows, is_inspect, log_rows, read_sample
from capcal_lib.io.shelf import gather_rows
from capcal_lib.io.verdicts import Tally, choose_verdicts, give_verdicts, tally_scores
from capcal_lib.rows import Pairs, Row, check_pairs, field_of, stream_rows, take_columns
from capcal_lib.text import counted, printable, sanitize

NEEDED = ["question_id", "response"]
COLUMNS = ["gold", "verdict", "sample", "question", "aliases", "choices", "subject", "extracted"]
COLUMNS += [*RUN, "task", "uuid"]  # that a table may have
SETTINGS = ["temperature", "max_tokens", "top_p"]
# What logs have beside them.
OF_LOGS = ["reasoning", "finish_reason", "prompt_tokens", "completion_tokens"]
OF_LOGS += ["scores", "prompt", "key", "place", "row"]  # key: of one sample; place: of one try
ITEM = ["question_id", "question", "gold", "aliases", "choices", "subject"]
SAMPLE = [*NEEDED, *COLUMNS, *OF_LOGS]
MOST_SAMPLES = 1 << 31  # of a question
STEP = 1 << 14  # rows that are read at a time
REMEDY = (
    "; samples stand a row each, with gold or verdict; confidences are scored in columns "
    "question_id, confidence, correct, total; name other columns with --column NAME=COLUMN"
)


class Log(NamedTuple):
    """The samples of files, a row each under usual names, and their questions.

    Where the log's verdicts were taken (``judged``) each sample has a ``verdict``."""

    tables: Callable[[], Iterator[pd.DataFrame]]  # of samples, all those of a question in one
    items: pd.DataFrame  # by question_id: question, gold, tuples of aliases and choices, subject
    judged: bool
    notes: list[str]  # what was taken, and what was left out
    left_out: int  # requests without a response
    settings: dict[str, Any]  # of the sampling, as far as the files say them


@dataclass
class _Facts:
    """What is known of all samples of files once they have been read."""

    answered: int = 0
    first: pd.DataFrame = field(default_factory=pd.DataFrame)  # sample
    runs: pd.DataFrame = field(default_factory=pd.DataFrame)  # that the samples are of
    tasks: set[str] = field(default_factory=set)
    paths: dict[str, None] = field(default_factory=dict)
    scorers: dict[str, None] = field(default_factory=dict)
    lists: bool = True  # all golds are, which stand in texts


def list_files(files: Iterable[Path]) -> list[Path]:
    """Return files, and in place of a folder the logs in it."""
    listed = []
    for file in files:
        if not is_folder(file):
            listed.append(file)
            continue
        logs = sorted([*file.rglob("samples_*.jsonl"), *file.rglob("*.eval")])
        if not logs:
            raise InputError(
                f"{file}: a folder without logs, samples_*.jsonl or *.eval; name the files in it"
            )
        listed += logs
    return listed


@contextmanager
def open_log(
    files: Sequence[Path],
    columns: Mapping[str, str] = MappingProxyType({}),
    *,
    scorer: str | None = None,
    correct: str | None = None,
    regrade: bool = False,
) -> Iterator[Log]:
    """Read the samples of files, or of the logs in folders.

    They are read once, put aside in a temporary file, and given a part of the questions at a time.
    ``columns`` say which column (``a.b`` for a field inside) holds what. The verdicts are those of
    the log's ``scorer``, see :func:`~capcal_lib.io.verdicts.choose_verdicts`; ``correct`` is the
    value that stands for a correct sample if no usual one does. A log without verdicts, or with
    ``regrade``, is left to the rules.

    `InputError` for a file that cannot be read, or has no samples; a question with two answers or
    texts; a scorer that the log does not have; and scores that are no verdicts."""
    for name in columns:
        check_known("column", name, [*NEEDED, *COLUMNS])
    where = ", ".join(map(str, files))
    notes: list[str] = []
    facts = _Facts()
    with TemporaryFile() as file:
        tables = gather_rows(_read_files(files, columns), shelf.ROWS)
        parts = shelf.split(file, (_note_facts(table, facts) for table in tables))
        if not facts.answered:
            raise InputError(f"{where}: no samples with a response in it")
        check_one_run(where, facts.runs)
        items, left_out, copies = _settle(where, file, parts, facts, notes, scored=not regrade)

        def of_parts() -> Iterator[pd.DataFrame]:
            for places in parts:
                samples = _take(file, places)
                yield drop_copies(samples, copies) if copies else samples

        verdicts = None
        if not regrade:
            tally: Tally = {}
            unblank = 0
            if facts.scorers:
                for samples in of_parts():
                    unblank += len(samples) - tally_scores(samples, tally)
            in_order = {name: tally[name] for name in facts.scorers if name in tally}
            verdicts = choose_verdicts(in_order, unblank, scorer, correct, notes)

        def judged() -> Iterator[pd.DataFrame]:
            for samples in of_parts():
                yield samples if verdicts is None else give_verdicts(samples, *verdicts)

        settings = {name: facts.first[name].iloc[0] for name in SETTINGS}
        stated = {
            name: int(value) if name == "max_tokens" else float(value)
            for name, value in settings.items()
            if pd.notna(value)
        }
        yield Log(judged, items, verdicts is not None, notes, left_out, stated)


def _note_facts(samples: pd.DataFrame, facts: _Facts) -> pd.DataFrame:
    """Note what samples say of all, and return them."""
    answered = samples[samples["response"].notna()]
    if len(answered):
        if not facts.answered:
            facts.first = answered.head(1)
        facts.answered += len(answered)
        runs = answered[[*RUN]].map(str).drop_duplicates()
        facts.runs = pd.concat([facts.runs, runs]).drop_duplicates()
        facts.tasks.update(answered["task"].unique())
        facts.paths |= dict.fromkeys(answered["path"].unique())
        facts.scorers |= dict.fromkeys(chain.from_iterable(answered["scores"]))
        facts.lists = facts.lists and are_lists(answered["gold"])
    return samples


def _take(file: IO[bytes], places: Iterable[int]) -> pd.DataFrame:
    """Take back samples with all their columns."""
    samples = shelf.take(file, places)
    lacking = [name for name in SAMPLE if name not in samples]
    return samples.assign(**dict.fromkeys(lacking))


def _settle(
    where: str,
    file: IO[bytes],
    parts: list[list[int]],
    facts: _Facts,
    notes: list[str],
    *,
    scored: bool,
) -> tuple[pd.DataFrame, int, Copies]:
    """Put the samples of each part aside anew, each once, under the question that it is of; return
    the questions, how many requests are left out, and the copies among the files.
    """
    several_tasks = len(facts.tasks) > 1 and any(
        _has_tasks(_take(file, places)) for places in parts
    )
    several_files = len(facts.paths) > 1
    left_out = repeated = 0
    keys: list[npt.NDArray[np.int64]] = []
    items, draws = [], []
    for number, places in enumerate(parts):
        samples = _take(file, places)
        failed = samples["response"].isna()
        again = samples["place"].isin(samples.loc[~failed, "place"].dropna())
        left_out += int((failed & ~again).sum())
        samples, same = join_repeated(samples[~failed], scored=scored)
        repeated += same
        keys.append(np.array([*map(hash, samples["key"].dropna())], dtype=np.int64))
        answers = read_answers(samples, lists=facts.lists)
        samples = samples.drop(columns=answers.columns).join(answers)
        check_one_task(where, samples, ["question_id", "question"])
        if several_tasks:
            samples["question_id"] = samples["task"] + "/" + samples["question_id"]
        some = samples[ITEM].drop_duplicates()
        twice = some["question_id"][some["question_id"].duplicated()]
        if len(twice):
            raise InputError(
                f"question {sanitize(twice.iloc[0], 80)!r} has two answers, texts or subjects; "
                "import the files apart"
            )
        items.append(some)
        check_one_prompt(where, samples)
        if several_files:
            samples = number_draws(samples)
            draws.append(hash_draws(samples))
        parts[number] = [shelf.put(file, samples.drop(columns=ITEM[1:]))] if len(samples) else []
    parts[:] = [places for places in parts if places]
    check_keys(where, keys)
    if left_out:
        notes.append(f"{counted(left_out, 'request')} without a response left out")
    if repeated:
        notes.append(f"{counted(repeated, 'repeated row')} left out: {AGAIN}")
    copies = find_copies(pd.concat(draws), facts.paths, notes) if several_files else {}
    return pd.concat(items).sort_index().set_index("question_id"), left_out, copies


def _has_tasks(samples: pd.DataFrame) -> bool:
    """Tell whether a question is of several tasks."""
    known = samples[samples["response"].notna()].drop_duplicates(["question_id", "task"])
    return bool(known["question_id"].duplicated().any())


def states_temperature(
    files: Iterable[Path], columns: Mapping[str, str] = MappingProxyType({})
) -> bool:
    """Tell whether the first sample of files says at which temperature it was drawn."""
    samples = next(_read_files(files, columns, rows=1), pd.DataFrame({"temperature": []}))
    return bool(samples["temperature"].notna().any())


def _read_files(
    files: Iterable[Path], columns: Mapping[str, str], rows: int = STEP
) -> Iterator[pd.DataFrame]:
    """Read the samples of files, of so many rows at a time."""
    for path in list_files(files):
        for table in _read_file(path, columns, rows):
            yield _check_samples(path, table)


def _read_file(path: Path, columns: Mapping[str, str], step: int) -> Iterator[pd.DataFrame]:
    """Read the samples of a file, those of a log or of a table, with the ``row`` of each."""
    rows = _rows(path)
    pairs: Pairs = {}
    heads: dict[str, None] = {}  # a later row may lack some
    start = 0
    reader = None
    while some := list(islice(rows, step)):
        reader = reader if start else _reader(some[0])
        if reader is None:
            table = pd.DataFrame(some, dtype=object)
            heads |= dict.fromkeys(map(str, table))
            table = table.reindex(columns=[*heads])
            table.index = pd.RangeIndex(start, start + len(table))
            yield _of_table(path, table, columns, pairs)
        else:
            yield _of_log(path, reader, some, columns, start)
        start += len(some)
    check_pairs(path, pairs)


def _of_table(
    path: Path, table: pd.DataFrame, columns: Mapping[str, str], pairs: Pairs
) -> pd.DataFrame:
    """Take the samples of rows of a table."""
    table = take_columns(path, table, NEEDED, COLUMNS, REMEDY, columns, pairs)
    if "sample" in table:
        numbered = table["sample"].notna() & (table["sample"] != "")
        names = table["question_id"].map(str) + " " + table["sample"].map(str)
        table["place"] = names.where(numbered, None)
    return table.assign(row=table.index, key=table.get("uuid", table.get("place")))


def _of_log(
    path: Path,
    reader: Callable[[Row], list[Row]],
    rows: Iterable[Row],
    columns: Mapping[str, str],
    start: int,
) -> pd.DataFrame:
    """Take the samples of rows of a log."""
    collected: list[Row] = []
    places: list[int] = []
    for place, row in enumerate(rows, start):
        try:
            mapped = {name: field_of(row, column) for name, column in columns.items()}
            samples = [sample | mapped for sample in reader(row)]
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as bad:
            what = f"no {bad}" if isinstance(bad, KeyError) else str(bad)
            raise InputError(f"{path}, row {place}: {sanitize(what)}") from None
        collected += samples
        places += [place] * len(samples)
    table = pd.DataFrame(collected, dtype=object).assign(row=places)
    if reader is read_harness:  # whose rows say neither
        table = table.assign(task=task_of(path), model=model_of(path))
        table["key"] = f"{printable(path)} " + table["key"]
    return table


def _rows(path: Path) -> Iterator[Row]:
    """Yield the rows of a file, and in place of a whole log of inspect_ai its samples."""
    rows = archive_rows(path) if path.suffix == ".eval" else stream_rows(path)
    for row in rows:
        if is_inspect(row):
            yield from log_rows(path, row)
        else:
            yield row


def _reader(row: Row) -> Callable[[Row], list[Row]] | None:
    """Return what reads the samples of such rows; None if they are rows of a table."""
    if "log" in row:
        return read_sample
    if "resps" in row:
        return read_harness
    batch = "custom_id" in row and not isinstance(row.get("response"), str)
    return read_batch if batch else None


def _check_samples(path: Path, samples: pd.DataFrame) -> pd.DataFrame:
    """Return the samples of a file with all columns, None where it does not say a value."""
    samples = samples.reindex(columns=SAMPLE).astype(object)
    samples = samples.where(samples.notna(), None)
    missing = samples["question_id"].isin([None, ""])
    _refuse(path, samples, missing, "question_id", "is missing")
    listed = samples["response"].map(lambda value: isinstance(value, list | dict))
    _refuse(path, samples, listed, "response", "is a list; write a row a sample (table.explode)")
    for name in ("sample", *SETTINGS):
        numbers = pd.to_numeric(samples[name], errors="coerce")
        odd = numbers.isna() & ~samples[name].isin([None, ""])
        _refuse(path, samples, odd, name, "is no number")
        samples[name] = numbers
    numbers = samples["sample"].fillna(0)
    whole = numbers.between(0, MOST_SAMPLES - 1) & (numbers % 1 == 0)
    _refuse(path, samples, ~whole, "sample", "is no whole number from 0 on")
    verdict = samples["verdict"].where(samples["verdict"] != "", None)
    scores = verdict.map(lambda value: {"verdict": value}).where(verdict.notna(), samples["scores"])
    return samples.assign(
        scores=scores.map(lambda one: one or {}),
        question_id=samples["question_id"].map(str),
        response=samples["response"].map(str, na_action="ignore"),
        question=samples["question"].fillna(samples["question_id"]).map(str),
        subject=samples["subject"].fillna("").map(str),
        reasoning=samples["reasoning"].fillna(""),
        task=samples["task"].fillna("").map(str),
        path=printable(path),
    )


def _refuse(
    path: Path, samples: pd.DataFrame, wrong: "pd.Series[bool]", name: str, rule: str
) -> None:
    """Refuse a file for the first row whose value breaks a rule, if there is one."""
    if wrong.any():
        row = samples[wrong].iloc[0]
        raise InputError(f"{path}, row {row['row']}: {name} {sanitize(row[name], 80)!r} {rule}")
