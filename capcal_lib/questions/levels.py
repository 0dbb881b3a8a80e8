"""How difficult people find a question, where a data set says so."""

import re
from collections.abc import Iterable
from functools import cache
from math import nan

from capcal_lib.manifests import MANIFESTS, load_dataset

# MMLU has no level of a question; the names of half of its subjects say for whom they are.
SCHOOLS = {"elementary": 1, "high_school": 2, "college": 3, "professional": 4}


def human_levels(dataset: str, question_ids: Iterable[str]) -> list[float]:
    """Return the level of each question, higher where it is more difficult; NaN where nobody says.

    MATH-500: the level of the competition, 1 to 5, as Hendrycks et al. (2021) have it. MMLU: of
    subjects whose name says for whom they are, 1 elementary school, 2 high school, 3 college, 4
    professional. Other data sets have none.

    >>> human_levels("math500", ["math/test/precalculus/807.json"])
    [2.0]
    >>> human_levels("mmlu", ["mmlu/test/college_physics/3", "mmlu/test/virology/0"])
    [3.0, nan]
    """
    name = load_dataset(dataset).name
    if name == "mmlu":
        return [_school(question_id) for question_id in question_ids]
    known = _listed(name)
    return [known.get(question_id, nan) for question_id in question_ids]


def _school(question_id: str) -> float:
    found = re.match(rf"mmlu/\w+/({'|'.join(SCHOOLS)})_", question_id)
    if found:
        return float(SCHOOLS[found[1]])
    return nan


@cache
def _listed(dataset: str) -> dict[str, float]:
    path = MANIFESTS / "levels" / f"{dataset}.csv"
    if not path.is_file():
        return {}
    _, *lines = path.read_text(encoding="utf-8").splitlines()
    rows = (line.rsplit(",", 1) for line in lines)
    return {question_id: float(level) for question_id, level in rows}
