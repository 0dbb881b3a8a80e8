"""Read users' tables: JSONL, JSON, CSV and parquet, chosen by the name of the file."""

import ast
import csv
import gzip
import io
import json
import math
import re
import sys
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Any

from capcal_lib.errors import InputError, naming_extra
from capcal_lib.text import sanitize

if TYPE_CHECKING:
    from pandas import DataFrame, Series

JSON = (".jsonl", ".json")
TEXTS = (".csv", ".tsv", ".txt", "-")
FORMATS = (".jsonl", ".jsonl.gz", ".json", ".csv", ".csv.gz", ".tsv", ".txt", ".parquet")
MOST_UNPACKED = 1 << 32  # bytes
UNPACKED_RATIO = 200  # bytes that one byte of an archive may become, above UNPACKED_BYTES in all
UNPACKED_BYTES = 1 << 28
CELL_BYTES = 8  # of memory that a cell of a table takes at least
MOST_FIELD = 1 << 30  # characters of a cell
LONGEST_LIST = 1 << 16  # characters of a list in a text
STEP = 1 << 16  # rows that are read at a time
QUESTION_ID = ("question_id", "doc_id", "custom_id", "id")
SPELLINGS = {  # what else a column may be called, in order
    "question_id": QUESTION_ID,
    "sample": ("sample", "sample_index"),
    "gold": ("gold", "answer", "target"),
    "question": ("question", "problem", "prompt", "input"),
    "model": ("model", "model_name"),
    "task": ("task", "dataset"),
    "choices": ("choices", "options"),
}
NAMED = {"question_id": "questions", "gold": "answers"}  # columns that must not disagree
MISSING = {"", "nan", "none", "null", "na", "n/a"}  # how tables say that there is nothing
_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_PART = rf"(?:{_QUOTED}|[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)"
# As Python, JSON and numpy write one: numpy without commas. What is taken is not given back, so
# that the time is linear.
_LIST = re.compile(
    rf"(?s)(?:array\()?[\[(]\s*+({_PART}?(?:[\s,]++{_PART})*+)[\s,]*+[\])](?:,\s*+dtype=\w+\))?"
)

Row = dict[str, Any]
# The distinct pairs in two columns that mean the same: what they mean, the one that is read, and
# the other.
Pairs = dict[tuple[str, str, str], list["DataFrame"]]


def stream_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of a file; its name decides the format: JSONL, JSON (an array, a table written
    by pandas, or one object), parquet, else CSV with commas, semicolons or tabs; ``-`` is CSV on
    standard input.

    `InputError` for a file that is missing or cannot be read, and for two columns of one name."""
    if _suffix(path) in JSON:
        with _opened(path) as (file, place), io.TextIOWrapper(file, "utf-8-sig") as text:
            yield from _json_rows(path, text, place)
    else:
        for table in _tables(path):
            yield from table.to_dict("records")  # type: ignore[misc]


def read_table(path: Path) -> "DataFrame":
    """Read a file as :func:`stream_rows` does into one table, its cells as they are written."""
    import pandas as pd  # slow to import

    tables = _json_tables(path) if _suffix(path) in JSON else _tables(path)
    return pd.concat([pd.DataFrame(), *tables], ignore_index=True)


def _json_tables(path: Path) -> Iterator["DataFrame"]:
    """Yield the rows of JSON as tables of some rows, which take less memory than dictionaries."""
    import pandas as pd

    rows = stream_rows(path)
    while some := list(islice(rows, STEP)):
        yield pd.DataFrame(some, dtype=object)


def _tables(path: Path) -> Iterator["DataFrame"]:
    """Yield the rows of a parquet file or of a text table, some at a time."""
    with _opened(path) as (file, place):
        if _suffix(path) == ".parquet":
            yield from _parquet(path, file)
        elif _suffix(path) in TEXTS:
            for table in _csv(file, place):
                if path.suffix == ".gz":
                    check_unpacked(path, place.row * table.shape[1] * CELL_BYTES)
                yield table
        else:
            raise InputError(f"{path}: unknown format; the formats are {', '.join(FORMATS)}")


def read_columns(
    path: Path,
    needed: Sequence[str],
    others: Sequence[str] = (),
    remedy: str = "",
    columns: Mapping[str, str] = MappingProxyType({}),
) -> "DataFrame":
    """Read columns of a table as they are written, every cell a text; the index is the row.

    Headings may have capitals and spaces; ``question_id`` may also be called ``id``, ``doc_id`` or
    ``custom_id``. ``columns`` maps names to other columns, or to fields inside one. ``others`` are
    optional columns.

    `InputError`, with the ``remedy``, if a ``needed`` column is missing; also for a table without
    rows, and for two columns with the same name or that name different questions."""
    return take_texts(path, read_table(path), needed, others, remedy, columns)


def take_texts(
    where: object,
    table: "DataFrame",
    needed: Sequence[str],
    others: Sequence[str],
    remedy: str,
    columns: Mapping[str, str],
) -> "DataFrame":
    """Take columns of a table as :func:`read_columns` does those of a file."""
    if table.empty:
        raise InputError(f"{where}: the table has no rows; give at least one")
    values = take_columns(where, table, needed, others, remedy, columns).astype(object)
    values = values.where(values.notna(), None)
    # Most cells are texts, of which a table may have millions.
    return values.map(lambda cell: cell.strip() if type(cell) is str else _spell(cell))


def take_columns(
    where: object,
    table: "DataFrame",
    needed: Sequence[str],
    others: Sequence[str],
    remedy: str,
    columns: Mapping[str, str],
    pairs: Pairs | None = None,
) -> "DataFrame":
    """Take columns of a table, their cells as they are, under their usual names.

    Where it is a piece of one, ``pairs`` keep what :func:`check_pairs` compares at its end."""
    of_piece: Pairs = {} if pairs is None else pairs
    values = table[[]].copy()
    listed = sanitize(", ".join(map(str, table)))
    for name in (*needed, *others):
        if name in columns:
            try:
                rows: Any = table.to_dict("records")
                values[name] = [field_of(row, columns[name]) for row in rows]
            except (KeyError, TypeError, ValueError, IndexError):
                raise InputError(f"{where}: no column {columns[name]}; found: {listed}") from None
            continue
        head = _find_head(where, table, name, of_piece)
        if head is not None:
            values[name] = table[head]
        elif name in needed:
            raise InputError(
                f"{where}: no column {name}; needed: {', '.join(needed)}; found: {listed}{remedy}"
            )
    if pairs is None:
        check_pairs(where, of_piece)
    return values


def check_pairs(where: object, pairs: Pairs) -> None:
    """Refuse two columns of one meaning that do not say the same in each row."""
    import pandas as pd

    for (name, first, other), pieces in pairs.items():
        distinct = pd.concat(pieces).drop_duplicates()
        if distinct[0].duplicated().any() or distinct[1].duplicated().any():
            raise InputError(
                f"{where}: columns {other} and {first} name different {NAMED[name]}; keep one "
                f"of them, or choose: --column {name}={first}"
            )


def hash_pairs(left: "Series[Any]", right: "Series[Any]") -> "DataFrame":
    """Return the distinct pairs of cells in two columns, 64 bits of each."""
    import pandas as pd

    hashes = [column.map(lambda cell: hash(str(cell))) for column in (left, right)]
    return pd.DataFrame(dict(enumerate(hashes))).drop_duplicates()


def _find_head(where: object, table: "DataFrame", name: str, pairs: Pairs) -> str | None:
    """Find how a table spells the name of a column, if it has it; of others that mean the same keep
    the pairs.
    """
    heads = []
    for spelling in SPELLINGS.get(name, (name,)):
        alike = [head for head in map(str, table) if plain_head(head) == plain_head(spelling)]
        if len(alike) > 1:
            raise InputError(
                f"{where}: several columns are called {spelling}: {sanitize(', '.join(alike))}; "
                "rename all but one"
            )
        if alike and spelling == name:
            return alike[0]
        heads += alike
    if name in NAMED:
        for other in heads[1:]:
            pieces = pairs.setdefault((name, heads[0], other), [])
            pieces.append(hash_pairs(table[heads[0]], table[other]))
    return heads[0] if heads else None


def _spell(cell: Any) -> str:
    """Spell a cell as a text; what is not there, or NaN, is an empty one."""
    if cell is None or cell != cell:
        return ""
    return str(cell).strip()


def read_share(cell: object) -> float:
    """Read a number in [0, 1] as people write it, such as 0.6, 0,6 or 60 %; NaN if it is missing.

    ``ValueError`` if it is not a number.

    >>> [read_share(cell) for cell in ("0.6", "0,6", "60 %", 0.6, None)]
    [0.6, 0.6, 0.6, 0.6, nan]
    """
    text = _spell(cell)
    if text.lower() in MISSING:
        return math.nan
    number = float(text.rstrip("% ").replace(",", "."))
    return number / 100 if text.endswith("%") else number


def listed(value: Any, *, numbers: bool = False) -> list[Any]:
    """Return a list: as it is, read from a text with :func:`read_list`, or made of a single value;
    empty if the value is missing.

    >>> listed("['a', 'b']"), listed(["a"]), listed("a"), listed("")
    (['a', 'b'], ['a'], ['a'], [])
    """
    texts = read_list(value, numbers=numbers)
    return as_list(value) if texts is None else texts


def as_list(value: Any) -> list[Any]:
    """Return a list: as it is, or made of a single value; empty if the value is missing.

    >>> as_list(["a"]), as_list("['a']"), as_list(None)
    (['a'], ["['a']"], [])
    """
    if value is None or value == "" or value != value:
        return []
    return value if isinstance(value, list) else [value]


def read_list(text: Any, *, numbers: bool = False) -> list[str] | None:
    r"""Read a list from a text, as JSON, Python or numpy write one; None for any other text. The
    text is never evaluated.

    The first item must be a quoted text, or with ``numbers`` a number: otherwise [-2, 7] is taken
    for an interval.

    >>> read_list("['a', \"it's\"]"), read_list("['a' 'b']"), read_list("[1, 2]")
    (['a', "it's"], ['a', 'b'], None)
    >>> read_list("[1, 2]", numbers=True), read_list("[]")
    (['1', '2'], [])
    """
    if not isinstance(text, str) or len(text) > LONGEST_LIST:
        return None
    listed = _LIST.fullmatch(text.strip())
    if not listed or not (numbers or listed[1][:1] in ("", "'", '"')):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of \s and the like in a text that nobody quoted
        try:
            return [_unquote(one) for one in re.findall(_PART, listed[1], re.DOTALL)]
        except (ValueError, SyntaxError):
            return None


def _unquote(text: str) -> str:
    """Return what a quoted text says, in the words of JSON or of Python; a number as it is."""
    if text[0] not in "'\"":
        return text
    with suppress(ValueError):
        return str(json.loads(text))
    return str(ast.literal_eval(text))


@lru_cache(1 << 12)
def plain_head(head: str) -> str:
    """Return the letters and digits of a head, by which ``Question ID`` is ``question_id``."""
    return re.sub(r"[\W_]", "", head).lower()


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


def parse_json(text: str | bytes) -> Any:
    """Parse a JSON text; half a surrogate pair in it, which no other file can hold, is left out.

    >>> parse_json(r'["\\ud83d\\ude00", "\\ud83d"]')
    ['😀', '']
    """
    value = json.loads(text)
    mark = b"\\ud" if isinstance(text, bytes) else "\\ud"
    if mark in text.lower():  # type: ignore[operator]
        value = json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "ignore"))
    return value


def most_unpacked(path: Path) -> int:
    """Return how many bytes a compressed file may hold: 200 times its own, or 256 MiB if that is
    more.
    """
    return min(MOST_UNPACKED, max(UNPACKED_BYTES, UNPACKED_RATIO * path.stat().st_size))


def check_unpacked(path: Path, size: int) -> None:
    """Refuse a file that unpacks to more bytes than it may hold."""
    most = most_unpacked(path)
    if size > most:
        raise ValueError(f"it unpacks to more than {most >> 20} MiB")


def _suffix(path: Path) -> str:
    return Path(path.name.lower().removesuffix(".gz")).suffix or str(path)


class _Place:
    """The place that reading a file has reached."""

    row = 0


@contextmanager
def _opened(path: Path) -> Iterator[tuple[io.BufferedReader, _Place]]:
    """Open a file, unpacked and bounded; turn what reading it raises into one line."""
    place = _Place()
    try:
        if str(path) == "-":
            yield io.BufferedReader(sys.stdin.buffer), place  # type: ignore[arg-type]
        elif path.suffix == ".gz":
            _check_packed(path)
            with gzip.open(path) as source:
                yield io.BufferedReader(source, 1 << 20), place
        else:
            with path.open("rb") as file:
                yield file, place
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise InputError(f"{path} is a folder; name the files in it") from None
    except UnicodeDecodeError:
        raise InputError(
            f"{path}, row {place.row}: cannot be read: it is not UTF-8; save it as CSV UTF-8"
        ) from None
    except (OSError, EOFError, zlib.error, csv.Error, ValueError, RecursionError) as error:
        # Errors of pyarrow are ValueErrors too.
        raise InputError(f"{path}, row {place.row}: cannot be read: {sanitize(error)}") from None


def _check_packed(path: Path) -> None:
    """Refuse a packed file that holds too much, before anything is made of it."""
    total = 0
    with gzip.open(path) as source:
        while block := source.read(1 << 20):
            total += len(block)
            check_unpacked(path, total)


def _json_rows(path: Path, text: IO[str], place: _Place) -> Iterator[Row]:
    """Yield the objects of a JSON text, or of each line of JSONL."""
    if _suffix(path) == ".jsonl":
        rows: Any = map(parse_json, filter(str.strip, text))
    else:
        rows = _records(parse_json(text.read()))
    for place.row, row in enumerate(rows):
        if not isinstance(row, dict):
            raise ValueError("not a JSON object")
        yield row
        place.row += 1


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


def _csv(file: io.BufferedReader, place: _Place) -> Iterator["DataFrame"]:
    """Yield the rows of a text table, whose first line names the columns; those without a name are
    left out.
    """
    import pandas as pd

    first = file.peek().lstrip().partition(b"\n")[0]
    delimiter = max(",;\t", key=lambda sign: first.count(sign.encode()))
    csv.field_size_limit(MOST_FIELD)
    with io.TextIOWrapper(file, "utf-8-sig", newline="") as text:
        rows = csv.reader(text, delimiter=delimiter, skipinitialspace=True, strict=True)
        heads = next(rows, [])
        _check_heads(heads)
        named = [bool(head) for head in heads]
        fields = _fields(rows, heads, place)
        while some := list(islice(fields, STEP)):
            yield pd.DataFrame(some, columns=heads, dtype=object).loc[:, named]


def _fields(rows: Any, heads: Sequence[str], place: _Place) -> Iterator[list[str]]:
    """Yield the fields of each row that has any; pandas would fill those that a row lacks."""
    for row in filter(any, rows):
        if len(row) != len(heads):
            raise ValueError(
                f"it has {len(row)} fields, and the header {len(heads)} "
                f"({sanitize(', '.join(heads), 60)}); quote those that hold a comma, and let the "
                "first line name the columns"
            )
        yield row
        place.row += 1


def _parquet(path: Path, file: io.BufferedReader) -> Iterator["DataFrame"]:
    """Yield the rows of a parquet file if it is neither too long nor unpacks to too much."""
    import pandas as pd

    with naming_extra():
        import pyarrow.parquet as pq

    parquet = pq.ParquetFile(file)  # of a file, as pyarrow takes no path that is not UTF-8
    facts = parquet.metadata
    _check_heads(parquet.schema_arrow.names)
    groups = map(facts.row_group, range(facts.num_row_groups))
    check_unpacked(path, sum(group.total_byte_size for group in groups))
    check_unpacked(path, facts.num_rows * facts.num_columns * CELL_BYTES)
    for batch in parquet.iter_batches(STEP):
        yield pd.DataFrame(batch.to_pydict(), dtype=object)


def _check_heads(heads: Sequence[str]) -> None:
    """Refuse two columns of one name; a table may have several without one."""
    for head in filter(None, heads):
        if heads.count(head) > 1:
            raise ValueError(f"two columns are called {sanitize(head, 80)!r}; name them apart")
