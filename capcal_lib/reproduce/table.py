"""The table that a reproduction ends in: scores beside the printed ones."""

import numpy as np
import pandas as pd

from capcal_lib.manifests import load_dataset
from capcal_lib.reported import load_reported
from capcal_lib.reproduce.order import Order
from capcal_lib.results import score
from capcal_lib.results.results import (
    CONSISTENCY,
    PAPER_VOTES,
    evidence_of_run,
    first_votes,
    results_of,
    votes_title,
)
from capcal_lib.results.terms import COUNTS, ORACLE_CC, ORACLE_RC, UNIFORM


def beside_printed(order: Order) -> pd.DataFrame:
    """Compare scores with the paper's printed ones, under the protocol of a recipe.

    Returns a table indexed by (dataset, method): the score ``brier`` with its interval ``low`` to
    ``high``; under the paper's recipe the ``spread`` of a probe, its standard deviation over five
    splits; ``printed``; and whether ``printed`` lies ``within`` the interval. The paper prints
    plug-in scores of 100 samples; for a ``corrected`` score, the noise of these is subtracted from
    the printed one. NaN and missing if the paper prints nothing. ``evidence`` is measured or
    simulated, as for the samples."""
    corrected = order.recipe.protocol == "corrected"
    names = order.scored()
    results = results_of(order.counting, names)
    if not corrected:  # votes as in table 6, which has several numbers of them
        first = first_votes(order.counting, PAPER_VOTES, names).drop(columns=COUNTS)
        results = results.drop(columns=CONSISTENCY, errors="ignore").join(first)
    protocol = order.recipe.protocol
    table = score(results, protocol=protocol).filter(["brier", "low", "high", "spread"])
    main = pd.concat(map(load_reported, ("mixing", "consistency", "main")))
    main = main[main["model"] == order.model]
    votes = main["k"].astype("Int64").map(votes_title, na_action="ignore").astype("string")
    main["method"] = votes.fillna(main["method"])
    values = main.set_index(["dataset", "method"])["value"].to_dict()
    printed = []
    for name, method in table.index:
        paper = load_dataset(name).reported_as
        value = values.get((paper, method), np.nan)
        if corrected:
            # the mean of mu_hat (1 - mu_hat), over 100 - 1
            noise = (1 / 3 - values.get((paper, UNIFORM), np.nan)) / 99
            if method == ORACLE_RC:  # a mean of mu_hat (1 - mu_hat), which is too small by it
                value += noise
            elif method != ORACLE_CC:  # which is 0
                value -= noise
        printed.append(value)
    table["printed"] = printed
    within = table["printed"].between(table["low"], table["high"])
    table["within"] = within.astype("boolean").mask(table["printed"].isna())
    runs = order.counting.runs(names)
    evidence = {name: evidence_of_run(run) for name, run in runs.items()}
    return table.join(pd.DataFrame({"evidence": evidence}).rename_axis("dataset"))
