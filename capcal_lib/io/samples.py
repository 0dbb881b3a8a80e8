"""Read samples that others drew: logs of lm-evaluation-harness and inspect_ai, batch output, any
table of rows.

Nothing in a file is evaluated, and what it unpacks to is bounded. What a log does not say is not
made up: token counts that are not there are 0, which stands for not known."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import pandas as pd

from capcal_lib.disk import is_folder
from capcal_lib.errors import InputError, check_known
from capcal_lib.io.answers import read_answers
from capcal_lib.io.batch import read_batch
from capcal_lib.io.harness import model_of, read_harness, task_of
from capcal_lib.io.identity import (
    RUN,
    check_one_prompt,
    check_one_run,
    check_one_task,
    drop_copies,
    join_repeated,
)
from capcal_lib.io.inspect_ai import archive_rows, is_inspect, log_rows, read_sample
from capcal_lib.io.verdicts import take_verdicts
from capcal_lib.rows import Row, field_of, stream_rows, take_columns
from capcal_lib.text import counted, printable, sanitize

NEEDED = ["question_id", "response"]
COLUMNS = ["gold", "verdict", "sample", "question", "aliases", "choices", "subject", "extracted"]
COLUMNS += [*RUN, "task", "uuid"]  # that a table may have
SETTINGS = ["temperature", "max_tokens", "top_p"]
# What logs have beside them.
OF_LOGS = ["reasoning", "finish_reason", "prompt_tokens", "completion_tokens"]
OF_LOGS += ["scores", "prompt", "key", "place", "row"]  # key: of one sample; place: of one try
ITEM = ["question_id", "question", "gold", "aliases", "choices", "subject"]
MOST_SAMPLES = 1 << 31  # of a question
REMEDY = (
    "; samples stand a row each, with gold or verdict; confidences are scored in columns "
    "question_id, confidence, correct, total; name other columns with --column NAME=COLUMN"
)


class Log(NamedTuple):
    """The samples of files, a row each under usual names, and their questions.

    Where the log's verdicts were taken (``judged``) each sample has a ``verdict``."""

    samples: pd.DataFrame
    items: pd.DataFrame  # by question_id: question, gold, tuples of aliases and choices, subject
    judged: bool
    notes: list[str]  # what was taken, and what was left out
    left_out: int  # requests without a response


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


def read_log(
    files: Sequence[Path],
    columns: Mapping[str, str] = MappingProxyType({}),
    *,
    scorer: str | None = None,
    correct: str | None = None,
    regrade: bool = False,
) -> Log:
    """Read the samples of files, or of the logs in folders.

    ``columns`` say which column (``a.b`` for a field inside) holds what. The verdicts are those of
    the log's ``scorer``, see :func:`~capcal_lib.io.verdicts.take_verdicts`; ``correct`` is the
    value that stands for a correct sample if no usual one does. A log without verdicts, or with
    ``regrade``, is left to the rules.

    `InputError` for a file that cannot be read, or has no samples; a question with two answers or
    texts; a scorer that the log does not have; and scores that are no verdicts."""
    for name in columns:
        check_known("column", name, [*NEEDED, *COLUMNS])
    notes: list[str] = []
    samples = pd.concat(
        [_check_samples(path, _read_file(path, columns)) for path in list_files(files)],
        ignore_index=True,
    )
    failed = samples["response"].isna()
    where = ", ".join(map(str, files))
    if failed.all():
        raise InputError(f"{where}: no samples with a response in it")
    lost = failed & ~samples["place"].isin(samples.loc[~failed, "place"].dropna())
    if lost.any():
        notes.append(f"{counted(lost.sum(), 'request')} without a response left out")
    samples = samples[~failed]
    check_one_run(where, samples)
    samples = join_repeated(samples, notes, scored=not regrade)
    samples[["gold", "aliases", "choices"]] = read_answers(samples)
    check_one_task(where, samples, ["question_id", "question"])
    if samples.drop_duplicates(["question_id", "task"])["question_id"].duplicated().any():
        samples["question_id"] = samples["task"] + "/" + samples["question_id"]
    items = samples[ITEM].drop_duplicates().set_index("question_id")
    twice = items.index[items.index.duplicated()]
    if len(twice):
        raise InputError(
            f"question {sanitize(twice[0], 80)!r} has two answers, texts or subjects; import the "
            "files apart"
        )
    check_one_prompt(where, samples)
    samples = drop_copies(samples, notes)
    judged = not regrade and take_verdicts(samples, scorer, correct, notes)
    return Log(samples, items, judged, notes, int(lost.sum()))


def states_temperature(
    files: Iterable[Path], columns: Mapping[str, str] = MappingProxyType({})
) -> bool:
    """Tell whether the first sample of files says at which temperature it was drawn."""
    [path, *_] = list_files(files)
    samples = _check_samples(path, _read_file(path, columns, most=1))
    return bool(samples["temperature"].notna().any())


def _read_file(path: Path, columns: Mapping[str, str], most: int | None = None) -> pd.DataFrame:
    """Read the samples of a file, those of a log or of a table, with the ``row`` of each; or those
    of its first rows.
    """
    rows = islice(_rows(path), most)
    first = next(rows, None)
    if first is None:
        return pd.DataFrame()
    reader = _reader(first)
    if reader is None:
        table = pd.DataFrame([first, *rows], dtype=object)
        table = take_columns(path, table, NEEDED, COLUMNS, REMEDY, columns)
        if "sample" in table:
            numbered = table["sample"].notna() & (table["sample"] != "")
            names = table["question_id"].map(str) + " " + table["sample"].map(str)
            table["place"] = names.where(numbered, None)
        return table.assign(row=table.index, key=table.get("uuid", table.get("place")))
    collected: list[Row] = []
    places: list[int] = []
    for place, row in enumerate(chain([first], rows)):
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
    for row in archive_rows(path) if path.suffix == ".eval" else stream_rows(path):
        yield from log_rows(path, row) if is_inspect(row) else [row]


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
    samples = samples.reindex(columns=[*NEEDED, *COLUMNS, *OF_LOGS]).astype(object)
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
