"""How a claim is judged, and what is found."""

import pytest

from capcal_lib.book.audit import Range
from capcal_lib.book.claims import Claim, Comparison, appendix_claims, application_claims, judged, main_table_claims

LOW, HIGH = Range.printed(0.1), Range.printed(0.2)
RIGHT, WRONG, OPEN = Comparison("r", LOW, HIGH), Comparison("w", HIGH, LOW), Comparison("o", LOW, LOW)
ALL = [*main_table_claims(), *appendix_claims(), *application_claims()]
VERDICTS = {claim.key: claim.verdict for claim in ALL}


def test_what_holds_fails_or_is_open():
    assert [one.holds for one in (RIGHT, WRONG, OPEN)] == [True, False, None]
    assert Comparison("", LOW, LOW, equal_holds=True).holds is True
    overlapping = Comparison("", Range.around(0.1, 0.01), Range.around(0.105, 0.01))
    assert overlapping.holds is None
    neighbours = Comparison("", Range.printed(0.1), Range.printed(0.1001))
    assert neighbours.holds is True


@pytest.mark.parametrize(
    ("wording", "comparisons", "verdict"),
    [
        ("every", [RIGHT, RIGHT], "supported"),
        ("every", [RIGHT, OPEN], "cannot be told"),
        ("every", [RIGHT, OPEN, WRONG], "not supported"),
        ("most", [RIGHT, RIGHT, WRONG], "supported"),
        ("most", [RIGHT, WRONG], "not supported"),
        ("most", [RIGHT, OPEN], "cannot be told"),
        ("some", [WRONG, RIGHT], "supported"),
        ("some", [WRONG, OPEN], "cannot be told"),
        ("some", [WRONG, WRONG], "not supported"),
        ("every", [], "cannot be told"),
    ],
)
def test_a_claim_is_judged_by_its_own_wording(wording, comparisons, verdict):
    assert Claim("k", "p", "s", wording, tuple(comparisons)).verdict == verdict


def test_the_table_names_the_exceptions_but_not_of_a_denial():
    table = judged([Claim("a", "p", "s", "every", (RIGHT, *[WRONG] * 5)), Claim("b", "p", "s", "some", (WRONG, RIGHT))])
    assert table["exceptions"].tolist() == ["w; w; w; 2 more", ""]
    assert table["hold"].tolist() == ["1 of 6", "1 of 2"]
    assert judged([Claim("c", "p", "s")])["hold"].tolist() == ["no numbers"]


def test_keys_are_unique_and_every_comparison_is_of_another_cell():
    assert len(VERDICTS) == len(ALL)
    for claim in ALL:
        cells = [(one.where, one.lower, one.higher) for one in claim.comparisons]
        assert len(set(cells)) == len(cells), claim.key


def test_how_many_comparisons_each_claim_makes():
    counts = {claim.key: len(claim.comparisons) for claim in ALL}
    assert counts["in-distribution"] == 9
    assert counts["best-probe"] == 21
    assert counts["each-probe"] == 63 == 9 + counts["in-domain"] + counts["out-of-domain"]
    assert counts["p-true"] == 14
    assert counts["more-votes"] == 42
    assert counts["probe-math"] == counts["probe-aime"] == 12
    assert counts["probe-budget-all"] == 42
    assert counts["oracle-budget"] == 126


# Each of these was read off the printed tables by eye.
@pytest.mark.parametrize(
    ("key", "verdict"),
    [
        ("in-distribution", "not supported"),  # gpt-oss GSM8K: verbalized 0.0268, probe 0.0289
        ("best-probe", "supported"),
        ("each-probe", "not supported"),  # Olmo SimpleQA: probe of GSM8K 0.5465, uniform 0.3133
        ("in-domain", "supported"),
        ("out-of-domain", "supported"),
        ("verbalized-oss", "supported"),
        ("verbalized-olmo", "supported"),  # GPQA 0.2742, uniform 0.2125
        ("verbalized-qwen", "supported"),  # SimpleQA 0.4736, uniform 0.3109
        ("p-true", "supported"),
        ("p-true-olmo", "supported"),
        ("standard-error", "supported"),
        ("pooling", "cannot be told"),
        ("more-votes", "supported"),
        ("own-set", "supported"),
        ("mixed-second", "supported"),
        ("mixed-first", "not supported"),
        ("mixed-mean", "supported"),
        ("rc-rises", "supported"),
        ("cc-perfect", "supported"),
        ("probe-math", "not supported"),  # Olmo pass@1: probe 0.0394, Oracle RC 0.0370
        ("probe-aime", "not supported"),  # Qwen3 pass@64: probe 0.4711, Oracle RC 0.2960
        ("oracle-budget", "supported"),
        ("probe-budget", "not supported"),  # B = 1: 0.9522, even 0.9524
        ("probe-budget-all", "not supported"),
        ("often-budget", "supported"),
        ("brier-budget", "not supported"),
        ("comparable", "cannot be told"),
        ("full-range", "cannot be told"),
    ],
)
def test_what_is_found(key, verdict):
    assert VERDICTS.pop(key) == verdict


def test_nothing_is_judged_that_is_not_tested_above():
    assert VERDICTS == {}
