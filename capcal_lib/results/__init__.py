"""Results: one tidy table of runs, its scores with intervals, and the state of a store."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from capcal_lib.results.attempts import (
        check_bands,
        compare_pass_at_k,
        half_band,
        most_varied,
        oracle_errors,
        pass_at_k_curves,
        pass_at_k_errors,
        plug_in_errors,
        predict_pass_at_k,
        score_pass_at_k,
    )
    from capcal_lib.results.budgets import (
        allocate_by_rules,
        compare_spending,
        solved_by_oracles,
        solved_by_rules,
        spending_rules,
    )
    from capcal_lib.results.constant import compare_with_constant, count_by_kind
    from capcal_lib.results.precision import deep_questions, interval_growth, score_parts
    from capcal_lib.results.prices import (
        compare_with_nearest_probe,
        keep_asked_and_nearest_probe,
        printed_by_price,
        score_by_price,
    )
    from capcal_lib.results.ranks import compare_ranks, points_of, rank_correlations
    from capcal_lib.results.results import costs, describe_runs, judged_by, load_results, subjects
    from capcal_lib.results.scores import (
        BEST_CONSTANT,
        MISSING_AS,
        best_constant,
        brier_terms,
        columns_of,
        confidence_columns,
        gains_by_dataset,
        keep_nearest_probe,
        mean_over_probes,
        methods,
        score,
    )
    from capcal_lib.results.targets import losses_by_target, response_distances
    from capcal_lib.results.votes import (
        find_majorities,
        judge_optimism,
        score_blocks,
        score_first_votes,
    )

__all__ = [
    "BEST_CONSTANT",
    "MISSING_AS",
    "allocate_by_rules",
    "best_constant",
    "brier_terms",
    "check_bands",
    "columns_of",
    "compare_pass_at_k",
    "compare_ranks",
    "compare_spending",
    "compare_with_constant",
    "compare_with_nearest_probe",
    "confidence_columns",
    "costs",
    "count_by_kind",
    "deep_questions",
    "describe_runs",
    "find_majorities",
    "gains_by_dataset",
    "half_band",
    "interval_growth",
    "judge_optimism",
    "judged_by",
    "keep_asked_and_nearest_probe",
    "keep_nearest_probe",
    "load_results",
    "losses_by_target",
    "mean_over_probes",
    "methods",
    "most_varied",
    "oracle_errors",
    "pass_at_k_curves",
    "pass_at_k_errors",
    "plug_in_errors",
    "points_of",
    "predict_pass_at_k",
    "printed_by_price",
    "rank_correlations",
    "response_distances",
    "score",
    "score_blocks",
    "score_by_price",
    "score_first_votes",
    "score_parts",
    "score_pass_at_k",
    "solved_by_oracles",
    "solved_by_rules",
    "spending_rules",
    "subjects",
]

MODULES = (
    "results",
    "scores",
    "constant",
    "attempts",
    "budgets",
    "precision",
    "prices",
    "ranks",
    "targets",
    "votes",
)


def __getattr__(name: str) -> Any:
    """Import a name when it is first asked for: to score a file takes no run store."""
    if name in __all__:
        for module in MODULES:
            if hasattr(room := import_module(f"{__name__}.{module}"), name):
                return getattr(room, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
