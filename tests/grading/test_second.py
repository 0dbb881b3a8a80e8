"""The second grader: independent of the first, lenient, bounded, and of some worth."""

import ast
import importlib.util
import json
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capcal_lib.grading import Verdict, grade_many, second
from capcal_lib.grading.second import second_opinion
from capcal_lib.manifests import KINDS, ROOT, Kind
from capcal_lib.questions import Answer

CASES = json.loads((ROOT / "tests" / "grading" / "grading_cases.json").read_text(encoding="utf-8"))


def test_it_shares_no_code_with_the_first() -> None:
    tree = ast.parse((ROOT / "capcal_lib" / "grading" / "second.py").read_text(encoding="utf-8"))
    imported = {
        f"{node.module}.{name.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
    assert {name for name in imported if name.startswith("capcal_lib.")} == {
        "capcal_lib.grading.grader.Verdict",  # what a verdict is, not how it is found
        "capcal_lib.questions.Answer",
    }


@pytest.mark.parametrize(
    ("kind", "gold", "response", "verdict"),
    [
        ("math", r"\frac{x+1}{2}", r"\boxed{0.5x+0.5}", "correct"),
        ("math", r"\frac{x+1}{2}", r"\boxed{x+1/2}", "incorrect"),
        ("math", r"\sqrt{8}", r"\boxed{2\sqrt{2}}", "correct"),
        ("math", "(1,2)", r"\boxed{(2,1)}", "incorrect"),
        ("math", "1,2", r"\boxed{2,1}", "correct"),
        ("math", r"3 \pm \sqrt{2}", r"\boxed{3-\sqrt2, 3+\sqrt2}", "correct"),
        ("math", "y=2x+1", r"\boxed{2x-y=-1}", "correct"),
        ("math", r"\log_2 3", r"\boxed{\frac{\ln 3}{\ln 2}}", "correct"),
        ("math", r"\text{east}", r"\boxed{East}", "correct"),
        ("number", "1234.5", "Some work.\nSo it costs $1,234.50.", "correct"),
        ("number", "7", "7 or 8", "incorrect"),
        ("number", "0.5", r"\boxed{\frac{1}{2}}", "correct"),
        ("choice", "C", "C. water, since it is wet", "correct"),
        ("choice", "C", "The answer is B", "incorrect"),
        ("choice", "C", "I do not know.", "no_answer"),
        ("short", "Marie Curie", "The answer is Marie Currie.", "correct"),
        ("short", "1969", "1970", "incorrect"),
        ("short", "Paris", "<think>Paris", "no_answer"),
        ("short", "Paris", "<think>London</think>Paris", "correct"),
        ("number", "7", "", "no_answer"),
    ],
)
def test_it_reads_and_compares_on_its_own(kind: Kind, gold: str, response: str, verdict: str) -> None:
    assert second_opinion(response, Answer(kind, gold)).verdict == verdict


def test_it_mostly_agrees_with_the_first_on_cases_made_to_be_hard_and_is_the_more_lenient() -> None:
    pairs = [(case["response"], Answer(case["kind"], case["gold"], tuple(case.get("aliases", ())))) for case in CASES]
    first = [verdict.verdict == "correct" for verdict in grade_many(pairs)]
    other = [second_opinion(response, answer).verdict == "correct" for response, answer in pairs]
    assert sum(one == two for one, two in zip(first, other, strict=True)) > 0.8 * len(pairs)
    assert any(two and not one for one, two in zip(first, other, strict=True))


@given(st.text(max_size=400), st.sampled_from(KINDS))
@settings(max_examples=300, deadline=None)
def test_any_text_has_an_opinion(text: str, kind: Kind) -> None:
    answer = Answer(kind, {"math": "x+1", "number": "7", "choice": "C", "short": "Paris"}[kind])
    for response in (text, f"\\boxed{{{text}}}"):
        verdict = second_opinion(response, answer)
        assert verdict.verdict in ("correct", "incorrect", "no_answer")
        assert (verdict.extracted is None) == (verdict.verdict == "no_answer")
        assert verdict.extracted is None or len(verdict.extracted) <= second.LONGEST


@pytest.mark.parametrize(
    "text", ["9^{9^{9^9}}", "10000000!", "(" * 300, "{" * 300, r"\sqrt" * 80, "x^" * 100 + "x", "|" * 99]
)
def test_towers_and_nests_are_no_trouble(text: str) -> None:
    assert second_opinion(rf"\boxed{{{text}}}", Answer("math", "x+1")).verdict != "correct"


# --- the fuzz run, in short


def fuzz_module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("fuzz_grading", ROOT / "benchmarks" / "fuzz_grading.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_nothing_is_lost_in_a_short_fuzz_run() -> None:
    counts, wrong = fuzz_module().fuzz(1_500, seed=7, batch=500)
    assert wrong == []
    assert sum(counts.values()) == 3_000
    assert len({key[2] for key in counts}) >= 3
    assert fuzz_module().fuzz(200, seed=8, batch=200)[0] != fuzz_module().fuzz(200, seed=9, batch=200)[0]


def test_the_fuzz_run_notices_what_is_lost_or_wrong() -> None:
    faults, pairs = fuzz_module().faults, [("7", Answer("number", "7"))]
    assert faults(pairs, grade_many(pairs)) == []
    assert faults(pairs, []) == ["1 responses, 0 verdicts"]
    assert len(faults(pairs, [Verdict("no_answer", "7", "phrase")])) == 1
