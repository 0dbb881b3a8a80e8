from collections.abc import Iterable

import pandas as pd

from capcal_lib.confidence.verbalized import Estimate


def tabulate(estimates: Iterable[Estimate]) -> pd.DataFrame:
    """Put estimates into a table, indexed by question_id."""
    return pd.DataFrame(estimates, columns=Estimate._fields).set_index("question_id")
