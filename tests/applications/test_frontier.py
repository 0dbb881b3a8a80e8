"""Routing within budgets, and its gain over random mixing."""

import numpy as np
import pandas as pd
import pytest

from capcal_lib.applications import frontier, frontier_gains, mixing_gain_terms

INDEX = pd.Index([f"q{at}" for at in range(40)], name="question_id")
COST = pd.DataFrame({"small": 1.0, "large": 3.0}, INDEX)


def rates(seed=0):
    rng = np.random.default_rng(seed)
    small = rng.random(40)
    return pd.DataFrame({"small": small, "large": np.maximum(small, rng.random(40))}, INDEX)


def test_a_router_that_knows_all_solves_what_a_search_over_choices_solves():
    own = rates()
    solved, spent = frontier(own, COST, own, COST, budgets=3)
    for budget in solved:
        calls = round((budget - 1) / 2 * 40)  # of the large model
        best = own["small"].sum() + (own["large"] - own["small"]).nlargest(calls).sum()
        assert spent[budget].mean() <= budget + 1e-9
        assert solved[budget].sum() == pytest.approx(best)


def test_columns_are_joined_by_the_name_of_the_model():
    own = rates()
    turned = own[["large", "small"]]
    expected = frontier(own, COST, own, COST)[0].mean()
    assert frontier(own, COST, turned, COST)[0].mean().tolist() == expected.tolist()


def test_knowing_gains_over_mixing_and_knowing_nothing_does_not():
    own = rates()
    knowing = frontier_gains(*frontier(own, COST, own, COST), own, COST)
    assert knowing.mean() > 0.05
    shuffled = own.sample(frac=1, random_state=1).set_axis(INDEX)
    blind = frontier_gains(*frontier(shuffled, COST, own, COST), own, COST)
    assert abs(blind.mean()) < 0.05


def test_the_gain_is_the_mean_over_budgets():
    own = rates()
    solved, spent = frontier(own, COST, own, COST, budgets=4)
    each = [mixing_gain_terms(solved[at], spent[at], own, COST) for at in solved]
    assert frontier_gains(solved, spent, own, COST).tolist() == pytest.approx(np.mean(each, axis=0))
