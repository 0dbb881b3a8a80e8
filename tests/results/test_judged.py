import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

from capcal_lib.metrics import COMPARISON_VERDICTS, adjusted, gains, judge_gain
from capcal_lib.metrics.comparisons import APART
from capcal_lib.places import ROOT
from capcal_lib.results import subjects
from capcal_lib.results.judged import JUDGED, WINNABLE, judge, mean_over_members, tally

CASE = ["dataset", "method"]


def judge_cases(
    gains: dict[Any, "pd.Series[float]"],
    names: list[str],
    *,
    bounds: Any = APART,
    perfect: Any = None,
    family: Any = (),
) -> pd.DataFrame:
    """Judge cases that are given one Series each."""
    parts = []
    for case, gain in gains.items():
        rows = gain.rename("gain").to_frame()
        columns = dict(zip(names, case, strict=True))
        dataset = columns.pop("dataset")
        rows["least"], rows["most"] = bounds[case] if isinstance(bounds, dict) else bounds
        if perfect is not None:
            rows["perfect"] = perfect[case].reindex(rows.index)
        rows = rows.assign(**columns).droplevel("dataset")
        parts.append(pd.concat({dataset: rows}, names=["dataset"]))
    columns = ["gain", *names, *(["perfect"] if perfect is not None else [])]
    empty = pd.DataFrame(columns=columns).set_index("dataset")
    return judge(pd.concat(parts) if parts else empty, names, family=family)


def gain(mean: float, dataset: str = "gsm8k", questions: int = 100) -> "pd.Series[float]":
    """Gains that are .1 apart from their mean."""
    index = pd.MultiIndex.from_product([[dataset], map(str, range(questions))])
    index.names = ["dataset", "question_id"]
    return pd.Series([mean - 0.1, mean + 0.1] * (questions // 2), index)


def test_each_case_is_tested_by_itself_and_all_are_judged_by_holm() -> None:
    cases = {("gsm8k", "a"): gain(0.022), ("gsm8k", "b"): gain(-0.2), ("math500", "a"): gain(0.0)}
    judged = judge_cases(cases, CASE, bounds=(-0.4, 0.4))
    alone = [judge_gain(one, bounds=(-0.4, 0.4)) for one in cases.values()]
    for name in ("estimate", "low", "high", "p"):
        assert judged[name].tolist() == pytest.approx([row[name] for row in alone])
    together = adjusted(np.array([row["p"] for row in alone]), "holm")
    assert judged["p (Holm)"].tolist() == pytest.approx(together.tolist())
    assert judged["verdict"].tolist() == ["inconclusive", "worse", "inconclusive"]
    assert alone[0]["verdict"] == "better", "by itself"
    assert tuple(judged["verdict"].cat.categories) == COMPARISON_VERDICTS


def test_a_family_is_judged_apart_from_others() -> None:
    """Alone in its family, a case has the verdict that it has by itself."""
    cases = {("gsm8k", "a", True): gain(0.022), ("gsm8k", "b", False): gain(0.0)}
    judged = judge_cases(cases, [*CASE, "own"], bounds=(-0.4, 0.4), family=["own"])
    assert judged["p (Holm)"].tolist() == judged["p"].tolist()
    assert judged["verdict"].tolist() == ["better", "inconclusive"]
    together = judge_cases(cases, [*CASE, "own"], bounds=(-0.4, 0.4))
    assert together["verdict"].tolist() == ["inconclusive", "inconclusive"]


def test_what_could_be_won_depends_on_the_questions_and_not_on_the_method() -> None:
    """A method may be worse where nobody could win, and the others of its family change nothing."""
    best = {("gsm8k", "a"): gain(0.3), ("gsm8k", "b"): gain(0.01), ("gsm8k", "c"): gain(-0.3)}
    for mean in (-0.3, 0.0, 0.3):
        own = {case: gain(mean) for case in best}
        judged = judge_cases(own, CASE, perfect=best)
        assert judged[WINNABLE].tolist() == [True, False, False]
        assert judged[WINNABLE].dtype == bool
        alone = {("gsm8k", "b"): own["gsm8k", "b"]}
        assert not judge_cases(alone, CASE, perfect=best)[WINNABLE].any()


def test_a_perfect_confidence_is_judged_on_the_questions_of_the_method() -> None:
    """On the ten that the method has, the perfect one gains nothing."""
    perfect = gain(0.3)
    perfect.iloc[:10] = 0.0
    own = gain(0.3)
    own.iloc[10:] = np.nan
    case = "gsm8k", "mine"
    assert not judge_cases({case: own}, CASE, perfect={case: perfect})[WINNABLE].any()


def test_fewer_than_two_questions_are_no_case_and_no_cases_are_a_table() -> None:
    lone = gain(0.3)
    lone.iloc[1:] = np.nan
    empty = judge_cases({("gsm8k", "a"): lone}, CASE, perfect={("gsm8k", "a"): lone})
    assert list(empty) == [*CASE, *JUDGED, WINNABLE]
    assert empty.empty
    assert empty["estimate"].dtype == float, "beside other cases too"
    assert list(judge_cases({}, CASE, family=["dataset"])) == [*CASE, *JUDGED]


def test_gains_are_those_of_each_data_set_with_its_subjects() -> None:
    rng = np.random.default_rng(0)
    names = [f"mmlu/val/{subject}/{place}" for subject in ("law", "logic") for place in range(20)]
    index = pd.MultiIndex.from_product([["mmlu"], names], names=["dataset", "question_id"])
    terms = pd.DataFrame(rng.random((len(names), 3)), index, ["rival", "a", "b"])
    judged = judge_cases(
        {("mmlu", name): terms["rival"] - terms[name] for name in ("a", "b")}, CASE
    ).set_index("method")
    alone = gains(terms, "rival", clusters=subjects(terms))
    names = ["estimate", "low", "high", "p"]
    assert judged[names].to_numpy() == pytest.approx(alone[names].to_numpy(float))
    other = terms.sample(frac=1, random_state=0)
    shuffled = {("mmlu", name): other["rival"] - other[name] for name in ("a", "b")}
    shuffled = judge_cases(shuffled, CASE)
    assert shuffled["p"].tolist() == pytest.approx(judged["p"].tolist())


def test_the_gain_of_a_question_is_the_mean_over_members() -> None:
    index = pd.MultiIndex.from_tuples([("gsm8k", "a")] * 3, names=["dataset", "question_id"])
    members = pd.DataFrame({"method": "Probe", "gain": [0.0, 0.0, 0.3]}, index)
    assert mean_over_members(members, ["method"], ["gain"])["gain"].tolist() == [pytest.approx(0.1)]


def test_verdicts_are_counted_of_those_that_could_be_won_and_of_all() -> None:
    kinds = pd.Series(["a", "a", "a", "b"], name="kind")
    judged = pd.DataFrame({"verdict": ["better", "worse", "inconclusive", "worse"]})
    judged[WINNABLE] = [True, False, True, False]
    counts = tally(judged.assign(kind=kinds), "kind")
    assert list(counts) == ["better", WINNABLE, "worse", "cases"]
    assert counts.to_numpy().tolist() == [[1, 2, 1, 3], [0, 0, 1, 1]]


def test_nothing_else_corrects_for_how_many_are_judged() -> None:
    """Verdicts of pages have one owner; `metrics` alone offers the arithmetic."""
    files = [*(ROOT / "capcal_lib").rglob("*.py"), *(ROOT / "notebooks").glob("*.py")]
    calling = re.compile(r"\badjusted\(")
    callers = {file.name for file in files if calling.search(file.read_text(encoding="utf-8"))}
    assert callers == {"comparisons.py", "judged.py"}
