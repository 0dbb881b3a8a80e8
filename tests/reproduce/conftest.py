import pandas as pd
import pytest

from capcal_lib.reproduce import Order, reproduce
from tests.reproduce.orders import small


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Order, pd.DataFrame]:
    """An order that was carried out at once, and its table; nobody adds to its store."""
    order = small(tmp_path_factory.mktemp("whole"))
    return order, reproduce(order).scores
