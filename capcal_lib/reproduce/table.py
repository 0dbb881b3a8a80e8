"""The table that a reproduction ends in: scores beside the printed ones."""

import numpy as np
import pandas as pd

from capcal_lib.manifests import load_dataset
from capcal_lib.reported import load_reported
from capcal_lib.results import score
from capcal_lib.results.results import votes_title
from capcal_lib.results.scores import Protocol
from capcal_lib.results.terms import ORACLE_CC, ORACLE_RC, UNIFORM


def beside_printed(results: pd.DataFrame, model: str, *, protocol: Protocol) -> pd.DataFrame:
    """Compare a model's scores with the paper's printed ones, under a protocol.

    ``results`` come from ``load_results``; under the ``paper``'s protocol with votes as in table 6
    (``results_of``). Returns a table indexed by (dataset, method): the score ``brier`` with its
    interval ``low`` to ``high``; under the paper's recipe the ``spread`` of a probe, its standard
    deviation over five splits; ``printed``; and whether ``printed`` lies ``within`` the interval.
    The paper prints plug-in scores of 100 samples; for a ``corrected`` score, the noise of these is
    subtracted from the printed one. NaN and missing if the paper prints nothing. ``evidence`` is
    measured or simulated, as for the samples."""
    corrected = protocol == "corrected"
    table = score(results, protocol=protocol).filter(["brier", "low", "high", "spread"])
    main = pd.concat(map(load_reported, ("mixing", "consistency", "main")))
    main = main[main["model"] == model]
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
    evidence = pd.DataFrame({"evidence": results.attrs["evidence"]})
    return table.join(evidence.rename_axis("dataset"))
