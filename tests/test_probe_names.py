"""What the names of probes say, and that nothing else reads them."""

import re

import pytest

from capcal_lib.places import NOTEBOOKS, ROOT
from capcal_lib.probe_names import is_probe, member_name, probe_name, read_column, training_sets


@pytest.mark.parametrize("titles", [("MATH",), ("TriviaQA", "GSM8K"), ("My set (2025)",)])
def test_a_name_says_the_training_sets_that_it_was_made_of(titles: tuple[str, ...]) -> None:
    name = probe_name(*titles)
    for column in (name, member_name(name, 0), member_name(name, 4)):
        assert is_probe(column)
        assert training_sets(column) == [*titles]
        assert read_column(column)[0] == name
    assert read_column(member_name(name, 4)) == (name, 4)


@pytest.mark.parametrize("name", ["Probe-x", "Probe x [3]", "A Probe (MATH)"])
def test_a_method_that_is_called_almost_so_is_no_probe(name: str) -> None:
    assert not is_probe(name)
    assert training_sets(name) == []
    assert read_column(name) == (name, 0)


def test_names_of_probes_are_read_in_one_place() -> None:
    reading = re.compile(r'(startswith|removeprefix|like=|regex=)\W*"[^"]*Probe|"Probe \(["{]')
    files = [*(ROOT / "capcal_lib").rglob("*.py"), *NOTEBOOKS.glob("*.py")]
    assert [file.name for file in files if reading.search(file.read_text("utf-8"))] == []
