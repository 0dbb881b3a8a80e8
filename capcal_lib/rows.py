"""Read the rows of people's files: JSONL, JSON, CSV and parquet, by the name of the file."""

import csv
import gzip
import io
import json
import math
import re
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from capcal_lib.errors import InputError
from capcal_lib.text import sanitize

if TYPE_CHECKING:
    from pandas import DataFrame

TEXTS = (".csv", ".csv.gz", ".tsv", ".txt")
MOST_LINE_BYTES = 1 << 26  # of a file of rows
MOST_FILE_BYTES = 1 << 32
UNPACKED_RATIO = 200  # bytes that one byte of an archive may become, above UNPACKED_BYTES in all
UNPACKED_BYTES = 1 << 28
FORMATS = (".jsonl", ".jsonl.gz", ".json", *TEXTS, ".parquet")
QUESTION_ID = ("question_id", "id", "doc_id", "custom_id")  # what it is called, in order
MISSING = {"", "nan", "none", "null", "na", "n/a"}  # how tables say that there is nothing

Row = dict[str, Any]


def stream_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of a file by its name: JSONL, JSON (an array, or as pandas writes a table),
    parquet, else CSV, separated by commas, semicolons or tabs; ``-`` is CSV on standard input.

    `InputError` for a file that is not there or no such file, and for a row that cannot be read,
    which is named by its place. Two columns of one name are refused."""
    number = 0
    try:
        rows = _parquet(path) if path.suffix == ".parquet" else _texts(path)
        for row in rows:
            if not isinstance(row, dict):
                raise ValueError("not a JSON object")
            yield row
            number += 1
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise InputError(f"{path} is a folder; name the files in it") from None
    except InputError:
        raise
    except UnicodeDecodeError:
        raise InputError(
            f"{path}, row {number}: cannot be read: it is no text in UTF-8; save it as CSV UTF-8"
        ) from None
    except (OSError, EOFError, zlib.error, csv.Error, ValueError, RecursionError) as error:
        # pyarrow's errors are ValueErrors too.
        raise InputError(f"{path}, row {number}: cannot be read: {sanitize(error)}") from None


def read_columns(
    path: Path, needed: Sequence[str], others: Sequence[str] = (), remedy: str = ""
) -> "DataFrame":
    """Read columns of a table as they are written, every cell a text; the index is the row.

    Heads may be in capitals and with spaces; a ``question_id`` may also be called ``id``,
    ``doc_id`` or ``custom_id``. Of the ``others`` those are read that are there.

    `InputError` for a table without rows, without a column that is ``needed``, which is named with
    the ``remedy``, or with two that are called alike."""
    import pandas as pd  # slow to import

    rows = list(stream_rows(path))
    if not rows:
        raise InputError(f"{path}: there are no rows")
    heads = [str(head) for head in dict.fromkeys(chain.from_iterable(rows))]
    columns = {}
    for name in (*needed, *others):
        head = _find_head(path, heads, name)
        if head is not None:
            cells = (row.get(head) for row in rows)
            # Most cells are texts, of which a table may have millions.
            columns[name] = [c.strip() if type(c) is str else _spell(c) for c in cells]
        elif name in needed:
            raise InputError(
                f"{path}: no column {name}; needed: {', '.join(needed)}; found: "
                f"{sanitize(', '.join(heads))}{remedy}"
            )
    return pd.DataFrame(columns, dtype=object)


def _find_head(path: Path, heads: list[str], name: str) -> str | None:
    """Find how a table spells the name of a column, if it has it."""
    spellings = QUESTION_ID if name == "question_id" else (name,)
    for spelling in spellings:
        alike = [head for head in heads if plain_head(head) == plain_head(spelling)]
        if len(alike) > 1:
            raise InputError(
                f"{path}: several columns are called {name}: {sanitize(', '.join(alike))}; name "
                "them apart"
            )
        if alike:
            return alike[0]
    return None


def _spell(cell: Any) -> str:
    """Spell a cell as a text; what is not there, or NaN, is an empty one."""
    if cell is None or cell != cell:
        return ""
    return str(cell).strip()


def read_share(cell: object) -> float:
    """Read a number in [0, 1] as people write it, such as 0.6, 0,6 or 60 %; NaN where there is
    none.

    ``ValueError`` for what is no number.

    >>> [read_share(cell) for cell in ("0.6", "0,6", "60 %", 0.6, None)]
    [0.6, 0.6, 0.6, 0.6, nan]
    """
    text = _spell(cell)
    if text.lower() in MISSING:
        return math.nan
    number = float(text.rstrip("% ").replace(",", "."))
    return number / 100 if text.endswith("%") else number


@lru_cache(1 << 12)
def plain_head(head: str) -> str:
    """Return the letters and digits of a head, by which ``Question ID`` is ``question_id``."""
    return re.sub(r"[\W_]", "", head).lower()


def field_of(row: Row, name: str) -> Any:
    """Take a column, or where there is none of that name a field inside one: ``answer.value``, or
    ``answers.0`` of a list.
    """
    if name in row:
        return row[name]
    value: Any = row
    for part in name.split("."):
        value = value[int(part) if isinstance(value, list) else part]
    return value


def most_unpacked(path: Path) -> int:
    """Return how many bytes a compressed file may hold: 200 times its own, or 256 MiB if that is
    more.
    """
    return min(MOST_FILE_BYTES, max(UNPACKED_BYTES, UNPACKED_RATIO * path.stat().st_size))


def _parquet(path: Path) -> Iterator[Row]:
    import pyarrow.parquet as pq

    with path.open("rb") as file:  # pyarrow takes no path that is not UTF-8
        table = pq.ParquetFile(file)
        _check_heads(table.schema_arrow.names)
        for batch in table.iter_batches():
            yield from batch.to_pylist()


def _texts(path: Path) -> Iterator[Any]:
    name = path.name.lower().removesuffix(".gz")
    with _open(path) as file:
        if not name.endswith(FORMATS) and name != "-":
            raise InputError(f"{path}: not a file of rows; the formats are {', '.join(FORMATS)}")
        head = next(filter(str.strip, file), "")
        lines = chain([head], file)
        parse = json.JSONDecoder(object_pairs_hook=_object).decode
        if name.endswith(".json") or head.startswith("["):  # or as the harness once wrote its logs
            yield from _records(parse("".join(lines)))
        elif name.endswith(".jsonl"):
            yield from map(parse, filter(str.strip, lines))
        else:
            yield from _table(head, file)


@contextmanager
def _open(path: Path) -> Iterator[IO[str]]:
    """Open a file as text, unpacked and bounded."""
    if str(path) == "-":
        yield sys.stdin
        return
    packed = path.suffix == ".gz"
    with gzip.open(path) if packed else path.open("rb") as source:
        bounded = _Bounded(source, most_unpacked(path) if packed else MOST_FILE_BYTES)
        buffered = io.BufferedReader(bounded, 1 << 20)
        yield io.TextIOWrapper(buffered, "utf-8-sig", newline="")


class _Bounded(io.RawIOBase):
    """Hand on the bytes of a file as long as neither a line nor all together are too many: a small
    file may hold much when it is unpacked.
    """

    def __init__(self, source: Any, most: int) -> None:
        self.source = source
        self.most = most
        self.total = self.line = 0  # bytes so far, in all and since the last end of a line

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        block = self.source.read(len(buffer))
        buffer[: len(block)] = block
        end = max(block.rfind(b"\n"), block.rfind(b"\r"))
        self.line = len(block) - end - 1 if end >= 0 else self.line + len(block)
        self.total += len(block)
        if self.line > MOST_LINE_BYTES or self.total > self.most:
            raise ValueError(
                f"more than {MOST_LINE_BYTES >> 20} MiB in a line, or {self.most >> 20} MiB in all"
            )
        return len(block)


def _table(head: str, lines: Iterator[str]) -> Iterator[Row]:
    """Yield the rows of a text table, whose first line names the columns."""
    delimiter = max(",;\t", key=head.count)
    if named := re.fullmatch(r"sep=(.)\s*", head):  # as Excel says it
        delimiter, head = named[1], next(lines, "")
    if head.startswith("#"):
        raise ValueError(
            f"the first line is a comment, {head.strip()[:40]!r}; delete what stands above the "
            "names of the columns"
        )
    csv.field_size_limit(MOST_LINE_BYTES)
    how: Any = {"delimiter": delimiter, "skipinitialspace": True}
    cells = csv.reader(chain([head], lines), strict=True, **how)
    heads = next(cells, [])
    _check_heads(heads)
    for row in cells:
        if row and len(row) != len(heads):
            raise ValueError(
                f"it has {len(row)} fields, and the header {len(heads)} "
                f"({sanitize(', '.join(heads), 60)}); quote those that hold a comma, and let the "
                "first line name the columns"
            )
        if row:
            yield dict(zip(heads, row, strict=True))


def _object(pairs: list[tuple[str, Any]]) -> Row:
    """Make a JSON object of its members."""
    made = dict(pairs)
    if len(made) < len(pairs):
        _check_heads([name for name, _ in pairs])
    return made


def _check_heads(heads: Sequence[str]) -> None:
    """Refuse two columns of one name; a table may have several without one."""
    known = set()
    for head in filter(None, heads):
        if head in known:
            raise ValueError(f"two columns are called {sanitize(head, 80)!r}; name them apart")
        known.add(head)


def _records(whole: Any) -> list[Any]:
    """Return the rows of a JSON text: those of an array, or of a table that pandas wrote, or the
    text as one row.
    """
    if isinstance(whole, list):
        return whole
    if not isinstance(whole, dict) or {*map(type, whole.values())} not in ({dict}, {list}):
        return [whole]
    import pandas as pd  # slow to import

    return pd.DataFrame(whole, dtype=object).to_dict("records") or [whole]
