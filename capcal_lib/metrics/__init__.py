"""Metrics on counts of correct samples, their intervals, and comparisons of methods."""

from typing import TYPE_CHECKING, Any

from capcal_lib.errors import naming_extra
from capcal_lib.metrics.brier import (
    capability_brier,
    capability_brier_terms,
    correctness_variance,
    correctness_variance_terms,
    expected_response_brier,
    soft_auroc,
    spearman,
    uniform_baseline_brier,
    uniform_baseline_brier_terms,
)
from capcal_lib.metrics.comparisons import (
    COMPARISON_VERDICTS,
    adjusted,
    bounds_over_constant,
    compare,
    compare_counts,
    gains,
    judge_gain,
    may_be_best,
    questions_needed,
)
from capcal_lib.metrics.intervals import (
    Interval,
    binomial_interval,
    coverage_probability,
    mean_interval,
)
from capcal_lib.metrics.reliability import IsotonicSplit, binned_ece, isotonic_split
from capcal_lib.metrics.scores import best_confidence, divergence, expected_response_loss

if TYPE_CHECKING:
    from capcal_lib.metrics.recalibration import Calibrator

__all__ = [
    "COMPARISON_VERDICTS",
    "Calibrator",
    "Interval",
    "IsotonicSplit",
    "adjusted",
    "best_confidence",
    "binned_ece",
    "binomial_interval",
    "bounds_over_constant",
    "capability_brier",
    "capability_brier_terms",
    "compare",
    "compare_counts",
    "correctness_variance",
    "correctness_variance_terms",
    "coverage_probability",
    "divergence",
    "expected_response_brier",
    "expected_response_loss",
    "gains",
    "isotonic_split",
    "judge_gain",
    "may_be_best",
    "mean_interval",
    "questions_needed",
    "soft_auroc",
    "spearman",
    "uniform_baseline_brier",
    "uniform_baseline_brier_terms",
]


def __getattr__(name: str) -> Any:
    """Import the calibrator when it is asked for: scikit-learn is slow to import, and not needed
    for the rest.
    """
    if name == "Calibrator":
        with naming_extra():
            from capcal_lib.metrics.recalibration import Calibrator

        return Calibrator
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
