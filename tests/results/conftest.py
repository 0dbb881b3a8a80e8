import pandas as pd
import pytest

from capcal_lib.places import RECORDED_RUNS
from capcal_lib.results import load_results


@pytest.fixture(scope="session")
def loaded_once() -> pd.DataFrame:
    return load_results(RECORDED_RUNS, "smollm2-135m", datasets=["gsm8k", "mini-exam", "mmlu"])


@pytest.fixture
def recorded(loaded_once: pd.DataFrame) -> pd.DataFrame:
    """Results of a small model: one set in subjects, and two without."""
    return loaded_once.copy()
