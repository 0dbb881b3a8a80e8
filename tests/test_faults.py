"""The short form of the fault bench: a few faults of each class, all to be noticed."""

import pytest

from benchmarks.faults import CLASSES, Bench

pytestmark = pytest.mark.slow

TRIES = {"flips": 20, "server modes": 4, "hostile files": 40}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("faults"), seed=1)


@pytest.mark.parametrize("name", CLASSES)
def test_a_fault_is_survived(name: str, bench: Bench) -> None:
    for _ in range(TRIES.get(name, 2)):
        how, wrong = CLASSES[name](bench)
        assert not wrong, how
