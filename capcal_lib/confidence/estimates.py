"""A confidence of one question, and what it cost: what all methods make."""

from typing import NamedTuple


class Estimate(NamedTuple):
    """An estimate of mu for one question, and what it cost."""

    question_id: str
    confidence: float  # in [0, 1]; NaN where missing
    tokens: int  # completion tokens spent, failed attempts included; 0 where the engine failed
    text: str | None = None  # the model's last words, cut to a bounded length
