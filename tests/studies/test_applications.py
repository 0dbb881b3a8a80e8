import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from capcal_lib.applications import abstaining_gains, budget_gains, pass_at_k_gains
from capcal_lib.metrics import COMPARISON_VERDICTS, adjusted, judge_gain
from capcal_lib.places import RECORDED_RUNS
from capcal_lib.probes import describe_probes
from capcal_lib.results import Counting, describe_runs, load_results
from capcal_lib.results.uses import (
    bounds_in_use,
    compare_use,
    gain_in_use,
    gains_of_method,
    questions_to_use,
)
from capcal_lib.runs import read_samples
from capcal_lib.studies.applications import (
    COMPARED,
    USES,
    billions,
    compare_routers,
    compare_uses,
    costs_of,
    count_uses,
    draw_uses,
    questions_of_pair,
)

MODEL = "smollm2-135m"
DATASETS = ["mini-exam", "mini-arithmetic"]


@pytest.fixture(scope="module")
def results():
    return load_results(RECORDED_RUNS, MODEL, datasets=DATASETS)


@pytest.fixture(scope="module")
def runs():
    return describe_runs(Counting(RECORDED_RUNS, MODEL), datasets=DATASETS)


@pytest.fixture(scope="module")
def compared(results, runs):
    probes = describe_probes(RECORDED_RUNS, MODEL)["concentration"]
    return compare_uses({MODEL: results}, {MODEL: runs}, {MODEL: probes})


def test_a_comparison_is_that_of_its_own_questions(compared, results):
    rows = compared.set_index(["use", "method", "dataset"])
    own = results.loc["mini-exam"]
    given = own["P(True)"].fillna(0.5), own["correct"], own["total"]
    low, high = bounds_in_use("Abstaining", own["correct"], own["total"])
    gain = abstaining_gains(*given)
    expected = judge_gain(gain, bounds=(low, high))
    row = rows.loc[("Abstaining", "P(True)", "mini-exam")]
    assert row["estimate"] == pytest.approx(gain.mean())
    assert row[["low", "high"]].tolist() == pytest.approx(expected[["low", "high"]].tolist())
    spent = budget_gains(*given, 2).mean()
    assert rows.loc[("Budget", "P(True)", "mini-exam"), "estimate"] == pytest.approx(spent)


def test_a_probe_is_the_nearest_and_is_taken_as_a_posterior(compared, results):
    row = compared.set_index(["use", "method", "dataset"]).loc[("pass@k", "Probe", "mini-exam")]
    own = results.loc["mini-exam"]
    assert row["confidence"] == "Probe (Mini exam)"
    nu = describe_probes(RECORDED_RUNS, MODEL).loc["Probe (Mini exam)", "concentration"]
    given = own["Probe (Mini exam)"], own["correct"], own["total"]
    assert row["estimate"] == pytest.approx(pass_at_k_gains(*given, 16, concentration=nu).mean())


def test_votes_do_not_spend_more_than_a_budget(compared):
    of_votes = compared[compared["method"] == "Response consistency"]
    assert {*of_votes["use"]} == {*USES} - {"Budget", "Evaluation"}


def test_what_is_never_solved_is_not_compared(results, runs):
    unsolved = results.copy()
    unsolved.loc["mini-exam", "correct"] = 0
    judged = compare_uses({MODEL: unsolved}, {MODEL: runs}, {MODEL: pd.Series(dtype=float)})
    assert set(judged["dataset"]) == {"mini-arithmetic"}


def test_the_methods_of_a_model_are_a_family_in_each_use(compared, results):
    concentrations = describe_probes(RECORDED_RUNS, MODEL)["concentration"]
    for use in ("Budget", "Abstaining"):  # which pages of their own show
        alone = compare_use(results, use, concentrations)
        own = compared[compared["use"] == use].reset_index(drop=True)
        pd.testing.assert_frame_equal(own[[*alone]], alone, check_categorical=False)
        together = adjusted(alone["p"].to_numpy(), "holm")
        assert alone["p (Holm)"].tolist() == pytest.approx(together.tolist())


def test_no_model_is_no_comparison():
    judged = compare_uses({}, {}, {})
    assert judged.empty
    assert count_uses(judged).to_numpy().sum() == 0


def test_the_five_probes_of_the_papers_recipe_have_their_mean(results, runs):
    questions = questions_to_use(results, "mini-exam", runs["run"]["mini-exam"])
    five = questions.rename(columns={"Probe (Mini exam)": "Probe (Mini exam) [0]"})
    five["Probe (Mini exam) [1]"] = 0.5
    counts = five["correct"], five["total"]
    for use in USES:
        gains = gains_of_method(five, "Probe (Mini exam)", use, None)
        first, second = (
            gain_in_use(use, five[f"Probe (Mini exam) [{n}]"], *counts, tokens=five["tokens"])
            for n in (0, 1)
        )
        assert gains.tolist() == pytest.approx(((first + second) / 2).tolist(), nan_ok=True)


def test_no_gain_is_beyond_its_bounds(results):
    rng = np.random.default_rng(0)
    own = results.loc["mini-exam"]
    counts = own["correct"], own["total"]
    tokens = pd.Series(rng.integers(1, 50, len(own)), own.index)
    for confidence in (rng.random(len(own)), 1 - own["correct"] / own["total"]):
        for use in set(USES) - {"Budget", "Evaluation"}:  # those count at an estimated price
            gains = gain_in_use(use, pd.Series(confidence, own.index), *counts, tokens=tokens)
            low, high = bounds_in_use(use, *counts)
            assert low <= gains.min(), use
            assert gains.max() <= high, use


def test_every_use_and_method_is_counted(compared):
    counts = count_uses(compared)
    assert counts.index.tolist() == [(use, method) for use in USES for method in COMPARED]
    assert counts["could be won"].sum() == compared["could be won"].sum()
    assert counts["cases"].sum() == len(compared)
    assert counts["worse"].sum() == (compared["verdict"] == "worse").sum()


def test_a_confidence_that_was_brought_along_is_compared_as_what_the_model_says(results, runs):
    mine = results["P(True)"].rename("mine")
    with_mine = results.assign(mine=mine)
    probes = describe_probes(RECORDED_RUNS, MODEL)["concentration"]
    compared = compare_uses({MODEL: with_mine}, {MODEL: runs}, {MODEL: probes})
    by_method = compared.set_index(["use", "dataset", "method"])
    names = ["estimate", "low", "high"]
    own = by_method.xs("mine", level="method")[names]
    pd.testing.assert_frame_equal(own, by_method.xs("P(True)", level="method")[names])
    assert len(own) == len(USES) * len(DATASETS)
    counts = count_uses(compared)
    assert counts.index.unique("method").tolist() == [*COMPARED, "mine"]
    assert counts.loc[("Abstaining", "mine")].equals(counts.loc[("Abstaining", "P(True)")])


def test_uses_have_what_is_worse_and_what_is_better_on_either_side_of_zero():
    """In the order of the counts; a dash where nothing could be won."""
    index = pd.MultiIndex.from_product([["Labels saved", "Budget"], ["Probe", "P(True)"]])
    counts = pd.DataFrame(
        {
            "better": [3, 0, 0, 1],
            "could be won": [6, 0, 7, 4],
            "worse": [1, 0, 2, 4],
            "cases": [8, 0, 10, 8],
        }
    )
    figure = draw_uses(counts.set_index(index.set_names(["use", "method"])))
    drawn = {}
    for ax in figure.axes:
        worse, better = ([bar.get_width() for bar in bars] for bars in ax.containers)
        drawn[ax.get_title()] = worse, better, [text.get_text() for text in ax.texts]
    assert drawn == {
        "Probe": ([-1 / 8, -2 / 10], [3 / 6, 0], []),
        "P(True)": ([0, -4 / 8], [0, 1 / 4], ["–"]),
    }
    rows = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert rows == ["Labels saved", "Budget"]
    low, high = figure.axes[0].get_ylim()
    assert low > high, "the first use is above"
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == ["worse, of all cases", "better, of the cases that could be won"]
    assert [tick.get_text() for tick in figure.axes[0].get_xticklabels()] == ["0.5", "0", "0.5"]
    plt.close(figure)


PAIR = ["smollm2-135m", "qwen2.5-coder-0.5b"]


@pytest.fixture(scope="module")
def all_results() -> dict[str, pd.DataFrame]:
    return {name: load_results(RECORDED_RUNS, name) for name in PAIR}


@pytest.fixture(scope="module")
def all_runs() -> dict[str, pd.DataFrame]:
    return {name: describe_runs(Counting(RECORDED_RUNS, name)) for name in PAIR}


def test_a_question_costs_parameters_times_tokens(all_runs: dict[str, pd.DataFrame]) -> None:
    name, dataset = PAIR[0], all_runs[PAIR[0]].index[0]
    samples = read_samples(all_runs[name].loc[dataset, "run"])
    question = samples["question_id"].iloc[0]
    own = samples[samples["question_id"] == question]
    costs = costs_of(all_runs[name], name, dataset).loc[question]
    assert costs["prompt_tokens"] == pytest.approx(billions(name) * own["prompt_tokens"].mean())
    written = billions(name) * own["completion_tokens"].mean()
    assert costs["completion_tokens"] == pytest.approx(written)


def test_questions_of_a_pair_are_put_together_by_their_ids(
    all_results: dict[str, pd.DataFrame], all_runs: dict[str, pd.DataFrame]
) -> None:
    small, large = PAIR
    dataset = all_runs[small].index.intersection(all_runs[large].index)[0]
    mixed = {name: table.sample(frac=1, random_state=0) for name, table in all_results.items()}
    questions = questions_of_pair(mixed, all_runs, small, large, dataset)
    for name, column in (("small", small), ("large", large)):
        counts = all_results[column].loc[dataset].loc[questions.index]
        assert questions[name].tolist() == pytest.approx(
            (counts["correct"] / counts["total"]).tolist()
        )
    assert (questions["reading"] < questions["small cost"]).all()


def test_all_cases_are_judged_together(
    all_results: dict[str, pd.DataFrame], all_runs: dict[str, pd.DataFrame]
) -> None:
    judged = compare_routers(all_results, all_runs)
    assert len(judged) > 1
    assert judged["p (Holm)"].tolist() == adjusted(judged["p"].to_numpy(), "holm").tolist()
    clear = judged["p (Holm)"] < 0.05
    assert (judged["verdict"] != "inconclusive").tolist() == clear.tolist()
    assert tuple(judged["verdict"].cat.categories) == COMPARISON_VERDICTS
    assert (judged["small"] == PAIR[0]).all()
    assert judged["pair"].unique().tolist() == ["0.13B to 0.49B"]


def test_one_model_is_no_pair(
    all_results: dict[str, pd.DataFrame], all_runs: dict[str, pd.DataFrame]
) -> None:
    judged = compare_routers({PAIR[0]: all_results[PAIR[0]]}, all_runs)
    assert judged.empty
    assert judged["verdict"].value_counts().tolist() == [0, 0, 0]


def test_a_question_without_a_prediction_is_left_out_of_its_case_alone(
    all_results: dict[str, pd.DataFrame], all_runs: dict[str, pd.DataFrame]
) -> None:
    before = compare_routers(all_results, all_runs).set_index("dataset")
    without = all_results[PAIR[0]].copy()
    probes = [name for name in without if str(name).startswith("Probe")]
    first = without.groupby(level="dataset").head(1).index
    without.loc[first, probes] = np.nan
    judged = compare_routers(all_results | {PAIR[0]: without}, all_runs).set_index("dataset")
    assert judged.index.equals(before.index)
    for dataset in judged.index:
        questions = questions_of_pair(
            all_results | {PAIR[0]: without}, all_runs, *PAIR, str(dataset)
        )
        assert len(questions.dropna()) == len(questions) - 1
