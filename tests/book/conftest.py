"""What a page sets for its kernel stays in the test that ran it; the book is executed once."""

from collections.abc import Iterator
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from filelock import FileLock

from capcal_lib.book.pipeline import book_pages, execute
from capcal_lib.places import BUILD


@pytest.fixture(autouse=True)
def kernel() -> Iterator[None]:
    """Figures, arrays and tables look after the test as they did before it."""
    with mpl.rc_context(), np.printoptions(), pd.option_context("display.precision", 6):
        yield


@pytest.fixture(scope="session")
def of_the_book() -> Path:
    """The folder in which the book's pages are executed; only those whose inputs have changed since
    it was built are executed here.
    """
    BUILD.mkdir(exist_ok=True)
    with FileLock(BUILD / "notebooks.lock"):
        assert not execute(book_pages(), BUILD / "notebooks", say=print)
    return BUILD / "notebooks"
