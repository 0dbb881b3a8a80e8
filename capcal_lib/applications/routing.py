"""Choose for each question the model that answers it, by predicted accuracies and costs; compare at
equal cost.

Tables have a row a question and a column a model, shape (n_questions, n_models): ``rates`` are
accuracies in [0, 1], predicted or measured, ``cost`` what an answer costs, above 0, in any unit.
DataFrames are put side by side by their index and columns. Other input raises an
:class:`~capcal_lib.errors.InputError`."""

from __future__ import annotations  # keeps ArrayLike short in help()

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from capcal_lib.errors import InputError
from capcal_lib.metrics.validation import Floats, Ints, align, same_length


def route(rates: ArrayLike, cost: ArrayLike, budget: float) -> Ints:
    """Choose the model of each question within a mean cost: the models' columns, shape
    (n_questions,).

    Each question goes to the model with the highest predicted accuracy less price times cost, at
    the lowest price that keeps to the budget. So no choice that costs as much has a higher mean
    prediction. Where the budget is less than what the cheapest models cost, they are chosen.

    >>> route([[0.9, 0.9], [0.1, 0.8], [0.2, 0.3]], [[1, 3]] * 3, budget=1.7)
    array([0, 1, 0])
    """
    s, c = _tables(rates, cost)
    questions = np.arange(len(c))
    least = c.min(axis=1).mean()
    most = max(budget, least) * (1 + 1e-12)

    def chosen(price: float) -> Ints:
        return np.argmax(s - price * c, axis=1)

    def affordable(price: float) -> bool:
        return bool(c[questions, chosen(price)].mean() <= most)

    if affordable(0.0):
        return chosen(0.0)
    low = 0.0
    high = 1 / least
    while not affordable(high) and high < 1e300:
        low = high
        high = 2 * high
    while low < (middle := (low + high) / 2) < high:
        if affordable(middle):
            high = middle
        else:
            low = middle
    return chosen(high)


def mixing_gain_terms(
    solved: ArrayLike, spent: ArrayLike, rates: ArrayLike, cost: ArrayLike
) -> Floats:
    """Return the gain of a router over the best random mixing of two models at equal mean cost, a
    term a question.

    ``solved``, in [0, 1], and ``spent`` are the router's accuracy and cost on each question, all
    that it asked for included; ``rates`` and ``cost`` those of always asking one model. The mean of
    the terms, higher being better, is the mean of ``solved`` less the accuracy of the best mixture
    whose mean cost is that of the router (or a single model that costs no more). How far the
    router's cost on a question is from the mixture's counts at the exchange rate between the two
    models, which adds nothing to the mean but to its interval.

    >>> rates, cost = [[0.8, 0.9], [0.2, 0.9]], [[1, 3], [1, 3]]
    >>> mixing_gain_terms([0.8, 0.9], [1, 3], rates, cost).round(2)
    array([0.15, 0.15])
    """
    mu, c = _tables(rates, cost)
    right, paid = align(solved=solved, spent=spent)
    same_length(solved=right, rates=mu)
    accuracy = mu.mean(axis=0)
    price = c.mean(axis=0)
    mean = max(float(paid.mean()), float(price.min()))
    is_cheaper = price <= mean
    cheaper = np.flatnonzero(is_cheaper)
    best = int(cheaper[np.argmax(accuracy[cheaper])])
    found = accuracy[best]
    terms = right - mu[:, best]
    for a in cheaper:
        for b in np.flatnonzero(~is_cheaper):
            apart = price[b] - price[a]
            rate = (accuracy[b] - accuracy[a]) / apart
            share = (mean - price[a]) / apart
            mixed = (1 - share) * accuracy[a] + share * accuracy[b]
            if mixed > found:
                found = mixed
                rest = paid - (1 - share) * c[:, a] - share * c[:, b]
                beyond = right - (1 - share) * mu[:, a] - share * mu[:, b]
                terms = beyond - rate * rest
    return terms


def frontier(
    predicted: pd.DataFrame,
    expected: pd.DataFrame,
    rates: pd.DataFrame,
    paid: pd.DataFrame,
    *,
    budgets: int = 9,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Route within budgets spaced evenly between the cheapest and the dearest way to ask; return
    what is solved and what it costs: a row a question, a column a budget.

    All tables have a row a question and a column a model: ``predicted`` accuracies and ``expected``
    costs, by which a router chooses (`route`), and the ``rates`` and ``paid`` costs that it then
    meets.

    >>> predicted = pd.DataFrame({"small": [0.9, 0.1], "large": [0.9, 0.8]})
    >>> cost = pd.DataFrame({"small": [1.0, 1.0], "large": [3.0, 3.0]})
    >>> solved, spent = frontier(predicted, cost, predicted, cost, budgets=1)
    >>> float(solved.mean().iloc[0].round(2)), spent.mean().tolist()
    (0.85, [2.0])
    """
    cheapest = expected.min(axis=1).mean()
    dearest = expected.max(axis=1).mean()
    rows = np.arange(len(predicted))
    right = rates[predicted.columns].to_numpy()
    cost = paid[predicted.columns].to_numpy()
    solved = {}
    spent = {}
    for budget in np.linspace(cheapest, dearest, budgets + 2)[1:-1]:
        chosen = route(predicted, expected, budget)
        solved[budget] = right[rows, chosen]
        spent[budget] = cost[rows, chosen]
    return pd.DataFrame(solved, predicted.index), pd.DataFrame(spent, predicted.index)


def frontier_gains(
    solved: pd.DataFrame, spent: pd.DataFrame, rates: pd.DataFrame, cost: pd.DataFrame
) -> pd.Series[float]:
    """Return the gain of a frontier over random mixing at equal cost, the mean over its budgets, a
    question (:func:`mixing_gain_terms`).
    """
    each = {at: mixing_gain_terms(solved[at], spent[at], rates, cost) for at in solved}
    return pd.DataFrame(each, rates.index).mean(axis="columns")


def _tables(rates: ArrayLike, cost: ArrayLike) -> tuple[Floats, Floats]:
    if isinstance(rates, pd.DataFrame) and isinstance(cost, pd.DataFrame):
        cost = cost.reindex(index=rates.index, columns=rates.columns)
    mu = np.asarray(rates, np.float64)
    c = np.asarray(cost, np.float64)
    for name, table in {"rates": mu, "cost": c}.items():
        if table.ndim != 2 or not table.size:
            raise InputError(
                f"{name} must have a row a question and a column a model; got shape {table.shape}"
            )
    if mu.shape != c.shape:
        raise InputError(
            f"rates and cost must have the same rows and columns; got {mu.shape} and {c.shape}"
        )
    is_rate = (mu >= 0) & (mu <= 1)
    is_cost = (c > 0) & (c < np.inf)
    if not (is_rate.all() and is_cost.all()):
        raise InputError(
            "rates must lie in [0, 1] and cost be above 0 and finite; leave out questions without "
            "them"
        )
    return mu, c
