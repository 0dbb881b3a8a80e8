"""All that one model needs for its row of the main table: as a plan with its cost, and done.

A **recipe** is a protocol, from samples to the table. ``paper`` is the paper's way, as far as it is
known: 100 samples a question, ten votes among them, ten samples of each training question, a
judge's verdicts of short and mathematical answers, probes by stochastic gradient descent, the
mean over their five splits, 0.5 for a missing confidence, and plug-in scores. ``lean`` is ours, for
about a sixth of the tokens: 20 samples a question that define mu_hat and vote, each on the others;
one sample each of at most 20,000 training questions, and three more of 500; verdicts by the rules,
tuned probes and corrected scores.

With a ``precision`` W the lean recipe goes on: each data set is topped up, from its 20 samples a
question to 100 at most, until the interval of every score has a half-width of about W; see
:mod:`capcal_lib.applications.topping_up` for what is bought, and why that does not bias a score.

Every step takes up what is there, so a second call after a stop goes on. The engine is opened once
for all of them. A step that fails leaves the others done."""

from capcal_lib.errors import naming_extra

with naming_extra():
    from capcal_lib.reproduce.order import LEAN, PAPER, RECIPES, WHOLE, Draw, Order, Part, Recipe
    from capcal_lib.reproduce.plan import Step, make_plan, show_plan, time_plan
    from capcal_lib.reproduce.steps import NO_STATES, Reproduced, reproduce
    from capcal_lib.reproduce.table import beside_printed

__all__ = [
    "LEAN",
    "NO_STATES",
    "PAPER",
    "RECIPES",
    "WHOLE",
    "Draw",
    "Order",
    "Part",
    "Recipe",
    "Reproduced",
    "Step",
    "beside_printed",
    "make_plan",
    "reproduce",
    "show_plan",
    "time_plan",
]
