"""Ranges by hand, and what the audit of the paper's tables finds."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capcal_lib.book import audit
from capcal_lib.book.audit import Range, cells
from capcal_lib.reported import load_reported
from tests.results.test_tables import evaluation, rng

PRINTED = st.integers(0, 10_000).map(lambda n: n / 10_000)


@given(true=st.fractions(0, 1))
@settings(deadline=None, max_examples=100)
def test_a_number_lies_in_the_range_of_what_is_printed_for_it(true):
    one = Range.printed(float(f"{float(true):.4f}"))
    assert one.low - Fraction(1, 10**9) <= true <= one.high + Fraction(1, 10**9)


@given(a=PRINTED, b=PRINTED)
@settings(deadline=None, max_examples=100)
def test_arithmetic_holds_every_value(a, b):
    one, other = Range.printed(a), Range.printed(b)
    for x in (one.low, one.high):
        for y in (other.low, other.high):
            assert (one + other).low <= x + y <= (one + other).high
            assert (one - other).low <= x - y <= (one - other).high
        assert one.times(-3).low <= -3 * x <= one.times(-3).high
        assert one.subtracted_from(Fraction(1, 3)).low <= Fraction(1, 3) - x <= one.subtracted_from(Fraction(1, 3)).high


def test_neighbours_share_one_point_and_others_none():
    assert Range.printed(0.0831).high == Range.printed(0.0832).low == Fraction(8315, 100_000)
    assert Range.printed(0.0831).meets(Range.printed(0.0832))
    assert not Range.printed(0.1644).meets(Range.printed(0.1661))
    assert Range.printed(0.1644).meets(Range.printed(0.1644))


def test_the_range_of_a_share_times_its_rest_holds_its_top():
    assert audit._one_minus(Range.printed(0.5)).high == Fraction(1, 4)
    assert audit._one_minus(Range.printed(0.9)) == Range(
        Fraction(90005, 10**5) * Fraction(9995, 10**5), Fraction(89995, 10**5) * Fraction(10005, 10**5)
    )


def test_cells_are_those_of_the_table_with_its_precision():
    assert cells("passk_math500")["qwen3-8b", "Oracle RC", "math500", 16, ""] == Range.printed(0.1225)
    tokens = cells("tokens", source="reference code")["gpt-oss-20b", "P(True)", "gsm8k", None, ""]
    assert tokens == Range.around(195, Fraction(117, 10))
    assert len(cells("main")) == len(load_reported("main"))


def test_theorem_2_is_complete_for_the_21_cells():
    table = audit.theorem_2_reported()
    assert len(table) == 21
    assert table["variance"].between(0, 0.25).all()
    row = table.set_index(["model", "data set"]).loc[("gpt-oss-20b", "AIME25")]
    assert row["variance"] == pytest.approx(1 / 3 - 0.2369, abs=1e-12)
    assert (row["method"], row["best"]) == ("Verbalized confidence", pytest.approx(0.0460))
    assert row["response"] == pytest.approx(0.0460 + 1 / 3 - 0.2369)
    assert row["floor"] == pytest.approx((1 / 3 - 0.2369) / 99)
    assert row["below variance"] == 1
    tie = table[table["data set"] == "GPQA"].set_index("model").filter(like="Qwen", axis=0)
    assert tie["method"].tolist() == ["Probe (TriviaQA), Probe (GSM8K)"]


def test_every_mean_accuracy_is_possible_for_its_baseline():
    table = audit.mean_accuracies()
    assert table["possible"].eq("yes").all()
    assert table["undecided"].between(0, 1).all()
    assert audit.countable_means()["correct of 3,000"].tolist() == ["1270", "626", "2207"]


def test_a_mean_that_no_count_gives_is_found(monkeypatch):
    def moved(table, **_):
        found = cells(table)
        return {key: Range.printed(0.4235) if key[2] == "aime25" else value for key, value in found.items()}

    monkeypatch.setattr(audit, "cells", moved)
    assert audit.countable_means()["possible"].eq("no").all()


def test_oracle_rc_and_the_baseline_agree_within_one_draw_and_seldom_by_rounding():
    table = audit.shared_variance()
    assert table["rounding explains"].tolist() == ["no", "no", "no", "no", "yes", "no"]
    assert table["sds"].abs().max() < 1


def test_the_same_mean_is_printed_twice_and_differs_twice():
    says = audit.same_quantity().set_index(["data set", "model"])["the two are"]
    assert says.loc["MATH-500"].eq("equal").all()
    qwen, oss = (name for name in says.loc["AIME25"].index if name != "Olmo-3-7B-Instruct")
    assert says["AIME25", "Olmo-3-7B-Instruct"] == "equal"
    assert says["AIME25", qwen].startswith("equal only if")
    assert says["AIME25", oss] == "different"
    excess = audit.same_quantity().set_index(["data set", "model"])["excess"]
    assert excess["AIME25", oss] == pytest.approx(0.0016)


def test_oracle_cc_would_not_be_perfect_on_other_samples():
    table = audit.oracle_in_sample()
    assert table["as printed"].eq(0).all()
    assert (table["against other samples"] == 2 * table["against mu"]).all()
    assert table["against mu"].max() == pytest.approx((1 / 3 - 0.2369) / 99)


def test_the_slope_over_k_gives_the_variance_again():
    table = audit.k_eval_slope()
    assert len(table) == 21
    assert (table["difference"].abs() < 0.004).sum() == 18
    far = table[table["difference"].abs() > 0.004]
    assert far["data set"].tolist() == ["GPQA", "TriviaQA", "GPQA"]


def test_one_sample_a_question_is_not_the_mean_accuracy():
    points = audit.one_sample_each()["points"]
    assert len(points) == 6
    assert (points > 1.5).all()


def test_the_oracle_on_unseen_samples_is_worse_than_in_sample():
    one = evaluation([50] * 60, [100] * 60)
    table = audit.oracle_halves([one], rng())
    assert table["k"].tolist() == [1, 4, 16]
    assert table["data set"].tolist() == ["Mini exam"] * 3
    assert table["in sample"][0] == 0
    assert table["error"][0] == pytest.approx(0.25 / 25, rel=0.5)  # the halves of a fair coin: 2 x 0.25/50
    assert audit.oracle_halves([], rng()).empty
