"""The short form of the fault bench: a few faults of each class, all to be noticed."""

import pytest

from benchmarks.faults import CLASSES, Bench, child

pytestmark = pytest.mark.slow

TRIES = {"flips": 10, "server modes": 4, "hostile files": 20}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("faults"), seed=1)


@pytest.mark.parametrize("name", CLASSES)
def test_a_fault_is_survived(name: str, bench: Bench) -> None:
    for _ in range(TRIES.get(name, 2)):
        how, wrong = CLASSES[name](bench)
        assert not wrong, how


@pytest.mark.parametrize("step", ["sample", "merge", "reproduce"])
def test_a_store_under_a_name_that_is_too_long_is_refused(step: str, bench: Bench) -> None:
    how, words = child(step, bench.folder / ("a" * 256))
    assert (how, "\n" in words) == ("refused", False), words
