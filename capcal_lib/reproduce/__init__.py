"""Plan, cost and run everything that one model needs for its row of the main table.

A **recipe** is a protocol, from samples to the table. ``paper`` is the paper's, as far as it is
known: 100 samples per question, ten of which vote; ten samples of each training question; a judge's
verdicts on short and mathematical answers; probes trained by stochastic gradient descent, averaged
over five splits; 0.5 for a missing confidence; and plug-in scores. ``lean`` is ours and costs about
a sixth of the tokens: 20 samples per question, which define mu_hat and vote, each judged by the
others; one sample of each of at most 20,000 training questions, and three more of 500; the rules'
verdicts, tuned probes and corrected scores.

Every step continues from what is there, so after a stop a second call goes on. The engine is opened
once for all steps. If a step fails, the others are still done."""

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
