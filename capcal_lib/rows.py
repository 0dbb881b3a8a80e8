"""Read users' tables: CSV, JSONL, JSON and parquet, chosen by the name of the file."""

import csv
import gzip
import io
import json
import re
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO, cast

from capcal_lib.errors import InputError, check_known, naming_extra
from capcal_lib.text import sanitize

if TYPE_CHECKING:
    from pandas import DataFrame, Series

FORMATS = (".csv", ".tsv", ".jsonl", ".json", ".parquet")  # any of them but parquet with .gz
UNPACKED_RATIO = 200  # bytes that one byte of an archive may become, above UNPACKED_BYTES in all
UNPACKED_BYTES = 1 << 28
MOST_FIELD = 1 << 30  # characters of a cell
STEP = 1 << 16  # rows that are read at a time
QUESTION_IDS = ("question_id", "id", "doc_id")
SPELLINGS = {  # what else a column may be called
    "question_id": QUESTION_IDS,
    "sample": ("sample_index",),
    "gold": ("answer", "target"),
    "question": ("problem", "prompt", "input"),
    "choices": ("options",),
    "subject": ("cluster",),
    "model": ("model_name",),
    "task": ("dataset",),
}
MISSING = ("", "nan", "none", "null", "na", "n/a")  # how tables say that there is nothing
LIST_OF_ANY = r"(array\()?\["  # how one begins
LIST_OF_TEXTS = LIST_OF_ANY + r"\s*[\"'\]]"
JSON_LINES = 'table.to_json("rows.jsonl", orient="records", lines=True)'

Row = dict[str, Any]


def stream_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of a file; its name decides the format. JSON is an array of rows, or one row;
    CSV has commas, semicolons or tabs; ``-`` is CSV on standard input.

    `InputError` for a file that is missing or cannot be read."""
    suffix = Path(path.name.removesuffix(".gz")).suffix.lower()
    with _plain_errors(path):
        if str(path) == "-":
            yield from _csv_rows(sys.stdin.buffer)
            return
        with _open(path) as file:
            if suffix == ".parquet":
                yield from _parquet_rows(path, file)
            elif suffix == ".jsonl":
                yield from _json_rows(file)
            elif suffix == ".json":
                yield from _objects(parse_json(file.read()))
            elif suffix in FORMATS:
                yield from _csv_rows(file)
            else:
                raise InputError(f"{path}: unknown format; the formats are {', '.join(FORMATS)}")


def read_table(path: Path) -> "DataFrame":
    """Read a file into one table, its cells as they are written."""
    import pandas as pd  # slow to import

    rows = stream_rows(path)
    tables = [pd.DataFrame()]
    while some := list(islice(rows, STEP)):
        tables.append(pd.DataFrame(some, dtype=object))
    return pd.concat(tables, ignore_index=True)


def take_columns(
    where: object,
    table: "DataFrame",
    needed: Sequence[str],
    others: Sequence[str] = (),
    columns: Mapping[str, str] | None = None,
    instead: str = "",
) -> "DataFrame":
    """Take columns of a table under their usual names; ``others`` are optional.

    Headings may have capitals and spaces, or one of the ``SPELLINGS``. ``columns`` maps names to
    other columns, or to fields inside one; None if no ``--column`` can. ``instead`` names what
    another kind of table needs. `InputError` for a table without rows, a column that lacks, and
    two columns that could be one."""
    remedy = "rename one" if columns is None else "name one with --column {}={}"
    columns = columns or {}
    for name in columns:
        check_known("column", name, [*needed, *others])
    if table.empty:
        raise InputError(f"{where}: the table has no rows; give at least one")
    listed = sanitize(", ".join(map(str, table)))
    taken = table[[]].copy()
    for name in (*needed, *others):
        if name in columns:
            try:
                rows: Any = table.to_dict("records")
                taken[name] = [field_of(row, columns[name]) for row in rows]
            except (KeyError, TypeError, ValueError, IndexError):
                raise InputError(f"{where}: no column {columns[name]}; found: {listed}") from None
            continue
        heads = _heads_of(table, name)
        if len(heads) > 1:
            raise InputError(
                f"{where}: the {name} may be column {sanitize(' or '.join(heads))}; "
                + remedy.format(name, sanitize(heads[0]))
            )
        if heads:
            taken[name] = table[heads[0]]
        elif name in needed:
            raise InputError(
                f"{where}: no column {name}; needed: {', '.join(needed)}{instead}; found: "
                f"{listed}; {remedy.format(name, 'COLUMN')}"
            )
    return taken


def refuse(rows: "DataFrame", wrong: "Series[bool]", rule: str, *names: str) -> None:
    """Refuse rows for the first one that breaks a rule, if there is one.

    Each row has its ``path``, its ``row`` in that file, and a ``question_id``; the values of the
    columns ``names`` are shown."""
    if not wrong.any():
        return
    row = rows[wrong].iloc[0]
    values = {name: str(row[name]) for name in names if name in row}
    raise InputError(
        f"{row['path']}, row {row['row']}: question {sanitize(row['question_id'], 80)!r} {rule}"
        + (f": {sanitize(values)}" if values else "")
    )


def _heads_of(table: "DataFrame", name: str) -> list[str]:
    """List the columns that may be meant by a name: the one that is spelled so, or else others."""
    if name in table:
        return [name]
    spellings = (name, *SPELLINGS.get(name, ()))
    return [head for head in map(str, table) if plain_head(head) in spellings]


def plain_head(head: str) -> str:
    """Spell a heading as a name: ``Question ID`` is ``question_id``."""
    return head.strip().lower().replace(" ", "_")


def is_missing(cells: "Series[Any]") -> "Series[bool]":
    """Tell which cells say that there is nothing."""
    return cells.isna() | cells.map(str).str.strip().str.lower().isin(MISSING)


def listed(value: Any, *, numbers: bool = False) -> list[Any]:
    """Return a list: as it is, read from a text as JSON writes one, or made of a single value;
    empty if the value is missing.

    A text is read if its first item is a text, or with ``numbers`` whatever it is: otherwise
    [-2, 7] is taken for an interval. ``ValueError`` for a list that is spelled as Python or numpy
    spells it, which may mean something else.

    >>> listed('["a", "b"]'), listed(["a"]), listed("a"), listed(""), listed("[-2, 7]")
    (['a', 'b'], ['a'], ['a'], [], ['[-2, 7]'])
    """
    if value is None or value == "" or value != value:
        return []
    if isinstance(value, str) and re.match(LIST_OF_ANY if numbers else LIST_OF_TEXTS, value):
        try:
            return list(json.loads(value))
        except ValueError:
            raise ValueError(
                f"{value!r} is no list as JSON writes one; write {JSON_LINES}"
            ) from None
    return value if isinstance(value, list) else [value]


def field_of(row: Row, name: str) -> Any:
    """Return a column, or if there is no column of that name, a field inside one:
    ``answer.value``, or ``answers.0`` of a list.
    """
    if name in row:
        return row[name]
    value: Any = row
    for part in name.split("."):
        value = value[int(part) if isinstance(value, list) else part]
    return value


def parse_json(text: bytes) -> Any:
    """Parse a JSON text; half a surrogate pair in it, which no other file can hold, is left out.

    >>> parse_json(rb'["\\ud83d\\ude00", "\\ud83d"]')
    ['😀', '']
    """
    value = json.loads(text)
    if b"\\ud" in text.lower():
        value = json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "ignore"))
    return value


def check_unpacked(path: Path, size: int) -> None:
    """Refuse a file that unpacks to too much: 200 times its own size, or 256 MiB if that is
    more.
    """
    most = max(UNPACKED_BYTES, UNPACKED_RATIO * path.stat().st_size)
    if size > most:
        raise ValueError(f"it unpacks to more than {most >> 20} MiB")


@contextmanager
def _plain_errors(path: Path) -> Iterator[None]:
    """Turn what reading a file raises into one line."""
    try:
        yield
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise InputError(
            f"{path} is a folder; name the files in it, as in {path}/*.jsonl"
        ) from None
    except (OSError, EOFError, zlib.error, csv.Error, ValueError, RecursionError) as error:
        # Errors of pyarrow are ValueErrors too.
        remedy = "; save it as UTF-8" if "'utf-8' codec" in str(error) else ""
        raise InputError(f"{path}: cannot be read: {sanitize(error)}{remedy}") from None


def _open(path: Path) -> BinaryIO:
    """Open a file, unpacked if its name ends with ``.gz`` and it does not hold too much."""
    if path.suffix != ".gz":
        return path.open("rb")
    size = 0
    with gzip.open(path) as file:
        while block := file.read(1 << 20):
            size += len(block)
            check_unpacked(path, size)
    return cast(BinaryIO, gzip.open(path))


def _json_rows(lines: IO[bytes]) -> Iterator[Row]:
    """Yield the object of each line."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield from _objects(parse_json(line))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"line {number}: {error}") from None


def _objects(value: Any) -> list[Row]:
    """Return the rows of a JSON text: those of an array, or the text as one row."""
    rows = value if isinstance(value, list) else [value]
    if not all(isinstance(row, dict) for row in rows):
        raise ValueError("not a JSON object")
    return rows


def _csv_rows(file: IO[bytes]) -> Iterator[Row]:
    """Yield the rows of a text table, whose first line names the columns."""
    with io.TextIOWrapper(file, "utf-8-sig", newline="") as text:
        first = text.readline()
        delimiter = max(",;\t", key=first.count)
        spelled: Any = {"delimiter": delimiter, "skipinitialspace": True, "strict": True}
        heads = next(csv.reader([first], **spelled), [])
        _check_heads(heads)
        csv.field_size_limit(MOST_FIELD)
        reader = csv.DictReader(text, heads, **spelled)
        for row in reader:
            if None in row or None in row.values():
                raise ValueError(
                    f"line {reader.line_num + 1} has not as many fields as the header; quote those "
                    "that hold a comma"
                )
            yield row


def _parquet_rows(path: Path, file: IO[bytes]) -> Iterator[Row]:
    with naming_extra():
        import pyarrow.parquet as pq

    parquet = pq.ParquetFile(file)
    _check_heads(parquet.schema_arrow.names)
    facts = parquet.metadata
    groups = map(facts.row_group, range(facts.num_row_groups))
    cells = facts.num_rows * facts.num_columns
    check_unpacked(path, 8 * cells + sum(group.total_byte_size for group in groups))
    for batch in parquet.iter_batches(STEP):
        yield from batch.to_pylist()


def _check_heads(heads: Sequence[str]) -> None:
    """Refuse two columns of one name; a table may have several without one."""
    for head in filter(None, heads):
        if heads.count(head) > 1:
            raise ValueError(f"two columns are called {head!r}; name them apart")
