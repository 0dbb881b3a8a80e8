"""The four claims as comparisons."""

import numpy as np
import pandas as pd
import pytest

from capcal_lib.metrics import gains
from capcal_lib.results import (
    brier_terms,
    judge_claim,
    measured_claims,
    printed_claims,
    read_claims,
)

PROBE = "Probe (GSM8K)"


def results(n_questions=120, samples=20, dataset="gsm8k"):
    rng = np.random.default_rng(3)
    mu = rng.beta(0.6, 0.6, n_questions)
    names = [f"{dataset}/test/{at:05d}" for at in range(n_questions)]
    index = pd.MultiIndex.from_product([[dataset], names], names=["dataset", "question_id"])
    correct = rng.binomial(samples, mu)
    columns = {
        "correct": correct,
        "total": samples,
        PROBE: np.clip(mu + rng.normal(0, 0.1, n_questions), 0, 1),
        "Verbalized confidence": 0.95,
    }
    return pd.DataFrame(columns, index)


@pytest.fixture(scope="module")
def found():
    return measured_claims(results(), {PROBE: 5.0})


def row(found, comparison, at=""):
    chosen = found[(found["comparison"] == comparison) & (found["at"] == at)]
    assert len(chosen) == 1
    return chosen.iloc[0]


def test_every_statement_of_the_paper_names_comparisons_that_are_made(found):
    made = {*found["comparison"], *printed_claims()["comparison"]}
    for claim in read_claims().itertuples():
        assert set(claim.comparisons) <= made, claim.says


def test_no_cell_is_counted_twice(found):
    assert not found.duplicated(["comparison", "dataset", "method"]).any()
    assert (found["comparison"].value_counts() <= 2).all()  # two are asked


def test_a_statement_on_models_needs_opposite_signs_on_one_data_set():
    rows = [("a", "m", "d", "supported"), ("a", "m", "e", "reversed")]
    columns = ["comparison", "model", "dataset", "verdict"]
    assert judge_claim(pd.DataFrame(rows, columns=columns), "differs") == "undecided"
    rows.append(("a", "n", "d", "reversed"))
    assert judge_claim(pd.DataFrame(rows, columns=columns), "differs") == "holds"
    assert judge_claim(pd.DataFrame(rows, columns=columns), "most") == "does not hold"


def test_a_comparison_is_the_gain_of_the_metrics(found):
    terms = brier_terms(results())[["Uniform random", PROBE]]
    expected = gains(terms, "Uniform random").loc[PROBE]
    own = row(found, "In-distribution probe > Uniform random")
    assert own["estimate"] == pytest.approx(expected["estimate"])
    assert (own["low"], own["high"]) == pytest.approx((expected["low"], expected["high"]))


def test_a_knowing_probe_supports_what_an_overconfident_voice_reverses(found):
    assert row(found, "Probe > asking (Verbalized confidence)")["verdict"] == "supported"
    assert row(found, "pass@k: probe > constant", "k = 16")["verdict"] == "supported"
    assert row(found, "Verbalized > Uniform random")["verdict"] == "reversed"


def test_a_k_without_a_sample_left_is_not_compared(found):
    assert set(found["at"]) == {"", "k = 16", "B = 2"}
    few = measured_claims(results(samples=3), {})
    assert set(few["at"]) == {""}


def test_the_same_seed_gives_the_same_verdicts(found):
    pd.testing.assert_frame_equal(found, measured_claims(results(), {PROBE: 5.0}))


def test_printed_numbers_have_a_verdict_by_their_sign():
    printed = printed_claims()
    signs = printed.groupby("verdict")["estimate"].agg(["min", "max"])
    assert signs.loc["supported", "min"] > 0
    assert signs.loc["reversed", "max"] < 0
