"""What all results use: Brier terms, and bounds of an accuracy."""

import numpy as np
import pandas as pd
import pytest

from capcal_lib.grading.counts import count_verdicts
from capcal_lib.results.terms import accuracy_bounds, constant_terms, decimals_of, question_terms


def test_a_term_is_not_known_without_a_confidence_or_with_too_few_samples() -> None:
    counts = pd.DataFrame({"correct": [1, 1, 2, 0], "total": [2, 1, 4, 0]}, [*"abcd"])
    said = pd.Series({"c": 0.75, "b": 0.25, "a": 0.5, "d": 0.5})  # joined by id, in any order
    plain = question_terms(said, counts, corrected=False)
    assert plain.drop("d").tolist() == [0, 0.5625, 0.0625]
    assert np.isnan(plain["d"]), "no scored sample"
    corrected = question_terms(said, counts)
    # (s - mu)^2 - mu (1 - mu) / (n - 1)
    assert corrected[["a", "c"]].tolist() == pytest.approx([-1 / 4, 1 / 16 - 1 / 12])
    assert corrected[["b", "d"]].isna().all(), "one sample has no variance"
    assert question_terms(said.drop(["a", "c"]), counts).isna().all()
    assert question_terms(said, counts).index.tolist() == [*"abcd"]


def test_the_best_constant_says_the_mean_of_the_other_questions() -> None:
    counts = pd.DataFrame({"correct": [0, 1, 4, 1], "total": [4, 2, 4, 1]}, [*"abcd"])
    terms = constant_terms(counts)
    # mu is 0, 1/2, 1; the others say 3/4, 1/2, 1/4
    assert terms[[*"abc"]].tolist() == pytest.approx([9 / 16, -1 / 4, 9 / 16])
    assert np.isnan(terms["d"])


def test_decimals_change_at_ten_and_at_a_thousand_questions() -> None:
    assert [decimals_of(n) for n in (1, 9, 10, 999, 1000)] == [2, 2, 3, 3, 4]


def test_bounds_hold_the_accuracy_of_any_verdicts_that_were_not_given() -> None:
    rows = [("a", 0, "correct"), ("a", 1, "not_scored"), ("b", 0, "incorrect"), ("b", 1, "correct")]
    verdicts = pd.DataFrame(rows, columns=["question_id", "sample_index", "verdict"])
    low, high = accuracy_bounds(count_verdicts(verdicts, k=2))
    means = []
    for told in ("correct", "incorrect"):
        counts = count_verdicts(verdicts.replace("not_scored", told), k=2)
        means.append((counts["correct"] / counts["total"]).mean())
    assert (low, high) == (min(means), max(means)) == (0.5, 0.75)
