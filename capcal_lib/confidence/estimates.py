"""A confidence of each question, and what it cost: what all methods make."""

from collections.abc import Iterable
from typing import NamedTuple

import pandas as pd


class Estimate(NamedTuple):
    """An estimate of mu for one question, and what it cost."""

    question_id: str
    confidence: float  # in [0, 1]; NaN where missing
    tokens: int  # completion tokens spent, failed attempts included; 0 where the engine failed
    text: str | None = None  # the model's last words, cut to a bounded length


def tabulate(estimates: Iterable[Estimate]) -> pd.DataFrame:
    """Put estimates into a table indexed by question_id, with confidence, tokens and text.

    >>> tabulate([Estimate("q1", 0.7, 12)]).to_dict("index")
    {'q1': {'confidence': 0.7, 'tokens': 12, 'text': None}}
    """
    return pd.DataFrame(estimates, columns=Estimate._fields).set_index("question_id")
