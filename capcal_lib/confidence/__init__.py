"""Confidences: one estimate of mu per question. Each method has its own module."""

from capcal_lib.errors import naming_extra

with naming_extra():
    from capcal_lib.confidence.consistency import majority, mean_tokens, read_answers
    from capcal_lib.confidence.of_run import (
        METHODS,
        TITLES,
        estimate,
        methods_of,
        place_confidence,
        read_confidence,
    )
    from capcal_lib.confidence.verbalized import parse_probability

__all__ = [
    "METHODS",
    "TITLES",
    "estimate",
    "majority",
    "mean_tokens",
    "methods_of",
    "parse_probability",
    "place_confidence",
    "read_answers",
    "read_confidence",
]
