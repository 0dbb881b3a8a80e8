"""Put tables aside on the disk, and take them back a part at a time.

All rows of a question are in one part, in the order in which they came. What is held in memory is a
part, and not the file that the rows are of."""

import pickle
from collections.abc import Iterable, Iterator
from itertools import chain
from tempfile import gettempdir
from typing import IO, Any
from zlib import crc32

import pandas as pd

from capcal_lib.errors import DiskError

ROWS = 1 << 16  # that are put aside together
PARTS = 64  # of more rows than that


def gather_rows(tables: Iterable[pd.DataFrame], rows: int) -> Iterator[pd.DataFrame]:
    """Join tables until they have so many rows or more."""
    some: list[pd.DataFrame] = []
    for table in tables:
        some.append(table)
        if sum(map(len, some)) >= rows:
            yield pd.concat(some, ignore_index=True)
            some = []
    if some:
        yield pd.concat(some, ignore_index=True)


def split(file: IO[bytes], tables: Iterable[pd.DataFrame]) -> list[list[int]]:
    """Put tables aside in parts by their ``question_id``, a single table as one part; return the
    places of each part.

    The index of a row counts all that came before it."""
    tables = _number(tables)
    first, second = next(tables, None), next(tables, None)
    if first is None or second is None:
        return [] if first is None else [[put(file, first)]]
    parts: list[list[int]] = [[] for _ in range(PARTS)]
    for table in chain([first, second], tables):
        numbers = table["question_id"].map(lambda name: crc32(name.encode()) % PARTS)
        for number, rows in table.groupby(numbers):
            parts[int(number)].append(put(file, rows))
    return [places for places in parts if places]


def _number(tables: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """Number the rows of tables through."""
    start = 0
    for table in tables:
        table.index = pd.RangeIndex(start, start + len(table))
        start += len(table)
        yield table


def put(file: IO[bytes], table: pd.DataFrame) -> int:
    """Put a table aside, without the columns that are empty; return its place."""
    try:
        place = file.seek(0, 2)
        pickle.dump(table.dropna(axis="columns", how="all"), file, pickle.HIGHEST_PROTOCOL)
        file.flush()
    except OSError as error:
        raise DiskError(
            f"{gettempdir()}: cannot be written ({error.strerror}); name another folder in TMPDIR"
        ) from None
    return place


def take(file: IO[bytes], places: Iterable[int]) -> pd.DataFrame:
    """Take back the tables of a part as one."""

    def tables() -> Iterator[Any]:
        for place in places:
            file.seek(place)
            yield pickle.load(file)

    return pd.concat(tables())
