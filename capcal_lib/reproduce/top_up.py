"""How many samples each question of a data set that is topped up needs."""

import pandas as pd

from capcal_lib.applications.topping_up import samples_needed
from capcal_lib.grading.verdicts import read_verdicts
from capcal_lib.reproduce.order import Order
from capcal_lib.results import load_results, methods, subjects
from capcal_lib.results.terms import COUNTS
from capcal_lib.runs.artifacts import VERDICTS
from capcal_lib.runs.run import Run

MOST = 100  # samples of a question


def needed_samples(order: Order, run: Run, questions: int) -> "pd.Series[int] | None":
    """Return how many samples each of so many questions of a run needs, by the first ones of all of
    them; None before these are there.
    """
    if not run.has(VERDICTS) or order.precision is None:
        return None
    first = order.recipe.samples
    graded = read_verdicts(run).query("sample_index < @first").groupby("question_id").size()
    if len(graded) < questions or graded.min() < first:
        return None
    results = load_results(k_eval=first, **order.scored(run.place["dataset"]))
    results = results[[*COUNTS, *methods(results)]]
    return samples_needed(
        results.droplevel("dataset"),
        clusters=subjects(results).droplevel("dataset"),
        half_width=order.precision,
        most=MOST,
    )
