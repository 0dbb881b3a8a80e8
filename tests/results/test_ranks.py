import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from capcal_lib.errors import InputError
from capcal_lib.places import RECORDED_RUNS
from capcal_lib.results import judged_by, load_results
from capcal_lib.results.ranks import compare_ranks, points_of, rank_correlations, rank_interval


def made(seed: int = 0, questions: int = 80) -> pd.DataFrame:
    """Results of one data set: confidences that know the order, half of it, and nothing of it."""
    rng = np.random.default_rng(seed)
    mu = rng.random(questions)
    index = pd.MultiIndex.from_product(
        [["gsm8k"], [f"q{place}" for place in range(questions)]], names=["dataset", "question_id"]
    )
    columns = {
        "correct": rng.binomial(50, mu),
        "total": 50,
        "knows": mu**3,
        "knows half": (mu + rng.random(questions)) / 2,
        "noise": rng.random(questions),
        "constant": 0.7,
    }
    return pd.DataFrame(columns, index)


def test_a_naive_definition_gives_the_same_correlations() -> None:
    results = load_results(RECORDED_RUNS, "smollm2-135m", datasets=["mini-exam", "gsm8k"])
    found = rank_correlations(results)
    for dataset, method in found.index:
        own = judged_by(results.loc[[dataset]], method)
        expected = spearmanr(own["confidence"], own["correct"] / own["total"]).statistic
        assert found.loc[(dataset, method), "rank correlation"] == pytest.approx(expected)
        assert found.loc[(dataset, method), "questions"] == len(own)
    assert ("mini-exam", "P(True)") in found.index


def test_who_says_the_same_of_all_has_no_rank() -> None:
    found = rank_correlations(made())
    assert found.index.get_level_values("method").tolist() == ["knows", "knows half", "noise"]
    alike = made().assign(correct=25)
    assert rank_correlations(alike).empty
    assert rank_correlations(made()[["correct", "total"]]).empty


def test_an_interval_by_hand() -> None:
    low, high = rank_interval(0.0, 103)
    assert (low, high) == pytest.approx((-np.tanh(0.196), np.tanh(0.196)))
    assert rank_interval(1.0, 50) == (1.0, 1.0)
    low, high = rank_interval(0.3, 2)  # too few to tell
    assert low < -0.9
    assert high > 0.9


def test_a_probe_by_the_papers_recipe_is_the_mean_of_its_five() -> None:
    results = made()
    of_one = rank_correlations(results)["rank correlation"]
    five = results.rename(columns={"knows": "Probe (MATH) [0]", "noise": "Probe (MATH) [1]"})
    found = rank_correlations(five)["rank correlation"]
    expected = (of_one["gsm8k", "knows"] + of_one["gsm8k", "noise"]) / 2
    assert found["gsm8k", "Probe (MATH)"] == pytest.approx(expected)
    compared = compare_ranks(five, draws=20)
    assert compared.loc["Probe (MATH)", "rank correlation"] == pytest.approx(expected)


def test_points_stand_beside_the_accuracy_that_judges_them() -> None:
    results = load_results(RECORDED_RUNS, "smollm2-135m", datasets=["gsm8k"])
    points = points_of(results)
    votes = judged_by(results, "Response consistency")
    own = points.loc["Response consistency"]
    assert (own["mu"] == votes["correct"] / votes["total"]).all()
    assert own.index.equals(votes.index)
    with pytest.raises(InputError, match="there are no confidences"):
        points_of(results[["correct", "total"]])


def test_who_knows_nothing_is_behind_and_who_knows_the_same_is_not() -> None:
    results = made()
    results["knows too"] = results["knows"] ** 0.5
    verdicts = compare_ranks(results, draws=200)["verdict"]
    assert verdicts.to_dict() == {
        "knows": "highest",
        "knows half": "behind",
        "noise": "behind",
        "knows too": "inconclusive",
    }


def subjects_of_copies(copies: int, subjects: int = 40) -> pd.DataFrame:
    """Results of MMLU, of which each subject is one question, so many times over."""
    of_one = made(questions=subjects).droplevel("dataset")
    repeated = of_one.loc[of_one.index.repeat(copies)]
    names = [f"mmlu/validation/{name}/{place}" for place, name in enumerate(repeated.index)]
    index = pd.MultiIndex.from_product([["mmlu"], names], names=["dataset", "question_id"])
    return repeated.set_index(index)


def test_copies_of_a_subject_tell_nothing_more() -> None:
    twice, often = subjects_of_copies(2), subjects_of_copies(9)
    limits = ["rank correlation", "low", "high"]
    found = rank_correlations(often)[limits]
    pd.testing.assert_frame_equal(found, rank_correlations(twice)[limits])
    independent = rank_correlations(made(questions=40)).droplevel("dataset")
    width = found["high"] - found["low"]
    expected = (independent["high"] - independent["low"]).to_numpy()
    assert width.to_numpy()[1:] == pytest.approx(expected[1:], rel=0.2)
    pd.testing.assert_frame_equal(
        compare_ranks(often, draws=40)[limits], compare_ranks(twice, draws=40)[limits]
    )


def test_the_interval_over_subjects_is_that_of_a_bootstrap_of_them() -> None:
    results = load_results(RECORDED_RUNS, "smollm2-135m", datasets=["mmlu"])
    results = results[["correct", "total", "P(True)"]]
    low, high = rank_correlations(results).iloc[0][["low", "high"]]
    drawn = compare_ranks(results, draws=400).iloc[0]
    assert (low, high) == pytest.approx((drawn["low"], drawn["high"]), abs=0.03)


def test_a_single_subject_has_no_interval() -> None:
    row = rank_correlations(subjects_of_copies(2).iloc[:0:-1].iloc[:2].assign(knows=[0.1, 0.2]))
    assert row.empty, "a question twice has no order"
    names = [f"mmlu/validation/anatomy/{place}" for place in range(80)]
    index = pd.MultiIndex.from_product([["mmlu"], names], names=["dataset", "question_id"])
    found = rank_correlations(made().set_index(index))
    assert found["rank correlation"].notna().all()
    assert found[["low", "high"]].isna().all(axis=None)


def test_a_perfect_order_of_subjects_has_an_interval_without_width() -> None:
    results = subjects_of_copies(2)
    results["knows"] = results["correct"] / 50
    found = rank_correlations(results).loc[("mmlu", "knows")]
    assert found.tolist() == pytest.approx([1, 1, 1, 80])


def test_ranks_alone_decide() -> None:
    results = made()
    squared = results.assign(noise=results["noise"] ** 2, knows=results["knows"] / 2)
    pd.testing.assert_frame_equal(
        compare_ranks(results, draws=30), compare_ranks(squared, draws=30)
    )


def test_chance_is_called_a_lead_no_more_often_than_promised() -> None:
    """Of two methods that know equally much, the higher is rarely called ahead."""
    leads = 0
    for seed in range(60):
        results = made(seed, questions=60)
        rng = np.random.default_rng(seed + 1000)
        share = results["knows"] ** (1 / 3)
        results["other half"] = (share + rng.random(len(share))) / 2
        kept = results[["correct", "total", "knows half", "other half"]]
        leads += (compare_ranks(kept, draws=100)["verdict"] == "behind").any()
    assert leads <= 60 * 0.05 + 3 * np.sqrt(60 * 0.05 * 0.95)


def test_who_is_missing_on_some_questions_is_compared_on_what_it_has() -> None:
    results = made()
    results.loc[results.index[:5], "noise"] = np.nan
    found = compare_ranks(results, draws=20)
    rest = results.iloc[5:]
    expected = spearmanr(rest["noise"], rest["correct"]).statistic
    assert found.loc["noise", "rank correlation"] == pytest.approx(expected)


def test_nothing_to_compare_is_said() -> None:
    with pytest.raises(InputError, match="no method tells one question from another"):
        compare_ranks(made()[["correct", "total", "constant"]], draws=2)
    with pytest.raises(InputError, match="draws"):
        compare_ranks(made(), draws=1)
