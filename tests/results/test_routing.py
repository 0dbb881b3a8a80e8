import numpy as np
import pandas as pd
import pytest

from capcal_lib.metrics import VERDICTS, adjusted
from capcal_lib.places import RECORDED_RUNS
from capcal_lib.results import describe_runs, load_results
from capcal_lib.results.routing import billions, compare_routers, costs_of, questions_of_pair
from capcal_lib.runs import read_samples

NAMES = ["smollm2-135m", "qwen2.5-coder-0.5b"]


@pytest.fixture(scope="module")
def results() -> dict[str, pd.DataFrame]:
    return {name: load_results(RECORDED_RUNS, name) for name in NAMES}


@pytest.fixture(scope="module")
def runs() -> dict[str, pd.DataFrame]:
    return {name: describe_runs(RECORDED_RUNS, name) for name in NAMES}


def test_a_question_costs_parameters_times_tokens(runs: dict[str, pd.DataFrame]) -> None:
    name, dataset = NAMES[0], runs[NAMES[0]].index[0]
    samples = read_samples(runs[name].loc[dataset, "run"])
    question = samples["question_id"].iloc[0]
    own = samples[samples["question_id"] == question]
    costs = costs_of(runs[name], name, dataset).loc[question]
    assert costs["prompt_tokens"] == pytest.approx(billions(name) * own["prompt_tokens"].mean())
    written = billions(name) * own["completion_tokens"].mean()
    assert costs["completion_tokens"] == pytest.approx(written)


def test_questions_of_a_pair_are_put_together_by_their_ids(
    results: dict[str, pd.DataFrame], runs: dict[str, pd.DataFrame]
) -> None:
    small, large = NAMES
    dataset = runs[small].index.intersection(runs[large].index)[0]
    mixed = {name: table.sample(frac=1, random_state=0) for name, table in results.items()}
    questions = questions_of_pair(mixed, runs, small, large, dataset)
    for name, column in (("small", small), ("large", large)):
        counts = results[column].loc[dataset].loc[questions.index]
        assert questions[name].tolist() == pytest.approx(
            (counts["correct"] / counts["total"]).tolist()
        )
    assert (questions["reading"] < questions["small cost"]).all()


def test_all_cases_are_judged_together(
    results: dict[str, pd.DataFrame], runs: dict[str, pd.DataFrame]
) -> None:
    judged = compare_routers(results, runs)
    assert len(judged) > 1
    assert judged["p (Holm)"].tolist() == adjusted(judged["p"].to_numpy(), "holm").tolist()
    clear = judged["p (Holm)"] < 0.05
    assert (judged["verdict"] != "inconclusive").tolist() == clear.tolist()
    assert tuple(judged["verdict"].cat.categories) == VERDICTS
    assert (judged["small"] == NAMES[0]).all()
    assert judged["pair"].unique().tolist() == ["0.13B to 0.49B"]


def test_one_model_is_no_pair(
    results: dict[str, pd.DataFrame], runs: dict[str, pd.DataFrame]
) -> None:
    judged = compare_routers({NAMES[0]: results[NAMES[0]]}, runs)
    assert judged.empty
    assert judged["verdict"].value_counts().tolist() == [0, 0, 0]


def test_a_probe_that_leaves_a_question_out_is_left_out(
    results: dict[str, pd.DataFrame], runs: dict[str, pd.DataFrame]
) -> None:
    without = results[NAMES[0]].copy()
    probes = [name for name in without if str(name).startswith("Probe")]
    first = without.groupby(level="dataset").head(1).index
    without.loc[first, probes] = np.nan
    assert compare_routers(results | {NAMES[0]: without}, runs).empty
