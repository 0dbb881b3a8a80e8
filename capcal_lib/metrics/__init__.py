"""Metrics on counts, and their intervals."""

from capcal_lib.metrics.brier import (
    capability_brier,
    capability_brier_terms,
    correctness_variance,
    correctness_variance_terms,
    expected_response_brier,
    expected_response_brier_terms,
    noise_floor,
    null_std,
    soft_auroc,
    spearman,
    uniform_baseline_brier,
    uniform_baseline_brier_terms,
)

__all__ = [
    "capability_brier",
    "capability_brier_terms",
    "correctness_variance",
    "correctness_variance_terms",
    "expected_response_brier",
    "expected_response_brier_terms",
    "noise_floor",
    "null_std",
    "soft_auroc",
    "spearman",
    "uniform_baseline_brier",
    "uniform_baseline_brier_terms",
]
