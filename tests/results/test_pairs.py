"""Two models on the same questions."""

import pandas as pd
import pytest

from capcal_lib.applications import frontier, frontier_gains
from capcal_lib.manifests import RECORDED_RUNS
from capcal_lib.results import cascade, load_pair, load_results, routers

SMALL, LARGE = "smollm2-135m", "qwen2.5-coder-0.5b"


@pytest.fixture(scope="module")
def pair():
    return load_pair(RECORDED_RUNS, SMALL, LARGE, "gsm8k")


def test_all_tables_have_the_questions_of_both_and_the_smaller_model_first(pair):
    own = load_results(RECORDED_RUNS, LARGE, datasets=["gsm8k"]).droplevel("dataset")
    for table in (pair.correct, pair.total, pair.reading, pair.writing):
        assert list(table) == [SMALL, LARGE]
        assert table.index.equals(pair.rates.index)
    assert pair.correct[LARGE].equals(own["correct"].reindex(pair.rates.index).rename(LARGE))


def test_what_is_asked_is_paid_for(pair):
    paid = {name: asking for name, _, asking in routers(pair)}
    assert (paid["Prompt length"] == 0).all(axis=None)
    assert (paid["Probe"][SMALL] == 0).all()
    assert paid["Probe"][LARGE].equals(pair.reading[SMALL].rename(LARGE))
    both = paid["Both probes"] + pair.reading
    pd.testing.assert_series_equal(both[SMALL], both[LARGE], check_names=False)
    assert (paid["Verbalized confidence"][SMALL] > pair.reading[SMALL]).all()


def test_a_cascade_asks_the_large_model_more_often_the_more_votes_must_agree(pair):
    solved, spent = cascade(pair, [0.0, 0.5, 1.01])
    assert spent.mean().is_monotonic_increasing
    never, always = spent[0.0], spent[1.01]
    assert (always - never).to_numpy() == pytest.approx(pair.cost[LARGE].to_numpy())
    assert solved[1.01].to_numpy() == pytest.approx(pair.rates[LARGE].to_numpy())


def test_routers_have_a_frontier(pair):
    for _, predicted, asking in routers(pair):
        own = frontier(predicted, pair.cost + asking, pair.rates, pair.cost + asking)
        gain = frontier_gains(*own, pair.rates, pair.cost)
        assert gain.notna().all()
        assert gain.index.equals(pair.rates.index)
