"""Put tables aside on the disk, and take them back a part at a time.

All rows of a question are in one part, in the order in which they came. What is held in memory is a
part, and not the file that the rows are of."""

import pickle
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from tempfile import gettempdir
from typing import IO, Any
from zlib import crc32

import pandas as pd

from capcal_lib.errors import DiskError

ROWS = 1 << 16  # that are put aside together; a part has half as many or more
PARTS = 256  # at most


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
    head = deque(islice(tables, 2))
    if len(head) < 2:
        return [[put(file, table)] for table in head]
    pieces: list[list[int]] = [[] for _ in range(PARTS)]
    sizes = [0] * PARTS
    while head:
        table = head.popleft()
        head.extend(islice(tables, not head))
        numbers = table["question_id"].map(lambda name: crc32(name.encode()) % PARTS)
        for part, rows in table.dropna(axis="columns", how="all").groupby(numbers):
            pieces[part].append(_append(file, rows))
            sizes[part] += len(rows)
    parts: list[list[int]] = [[]]
    size = 0
    for places, number in zip(pieces, sizes, strict=True):
        if size >= ROWS // 2:
            parts.append([])
            size = 0
        parts[-1] += places
        size += number
    return [sorted(places) for places in parts if places]


def _number(tables: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """Number the rows of tables through."""
    start = 0
    for table in tables:
        table.index = pd.RangeIndex(start, start + len(table))
        start += len(table)
        yield table


def put(file: IO[bytes], table: pd.DataFrame) -> int:
    """Put a table aside, without the columns that are empty; return its place."""
    return _append(file, table.dropna(axis="columns", how="all"))


def _append(file: IO[bytes], table: pd.DataFrame) -> int:
    try:
        place = file.seek(0, 2)
        pickle.dump(table, file, pickle.HIGHEST_PROTOCOL)
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
