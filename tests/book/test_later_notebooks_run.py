"""The later half of the notebooks, as ``test_notebooks_run`` runs the first."""

import pytest

from tests.book.test_notebooks_run import FIRST, PAIRS, run_cells

LATER = [pair for pair in PAIRS if pair not in FIRST]


@pytest.mark.parametrize(("name", "model"), LATER, ids=["-".join(pair) for pair in LATER])
def test_it_runs(name: str, model: str) -> None:
    assert run_cells(name, model=model)["model"] == model
