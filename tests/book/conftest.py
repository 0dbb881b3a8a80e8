"""What a page sets for its kernel stays in the test that ran it."""

from collections.abc import Iterator

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest


@pytest.fixture(autouse=True)
def kernel() -> Iterator[None]:
    """Figures, arrays and tables look after the test as they did before it."""
    with mpl.rc_context(), np.printoptions(), pd.option_context("display.precision", 6):
        yield
