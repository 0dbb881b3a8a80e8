"""Confidences: one estimate of mu for each question. One file a method."""

from capcal_lib.confidence.consistency import (
    Answers,
    majority,
    mean_tokens,
    paper_consistency,
    read_answers,
    run_consistency,
    vote_terms,
)
from capcal_lib.confidence.estimates import Confidence, estimated
from capcal_lib.confidence.of_run import (
    METHODS,
    TITLES,
    estimate,
    method_title,
    methods_of,
    place_confidence,
    read_confidence,
)
from capcal_lib.confidence.verbalized import parse_probability

__all__ = [
    "METHODS",
    "TITLES",
    "Answers",
    "Confidence",
    "estimate",
    "estimated",
    "majority",
    "mean_tokens",
    "method_title",
    "methods_of",
    "paper_consistency",
    "parse_probability",
    "place_confidence",
    "read_answers",
    "read_confidence",
    "run_consistency",
    "vote_terms",
]
