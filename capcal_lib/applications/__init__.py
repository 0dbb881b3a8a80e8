"""What a confidence is good for: pass@k, budgets, abstaining
(section 5 of the paper).

Shared by all functions here:

- ``confidence``: estimates s of each question's expected accuracy mu, shape (n_questions,), in [0,
  1].
- ``concentration``: how close mu is to s. None, or infinity, means mu = s (*plug-in*). A number nu
  above 0 means that s is the mean of a *posterior* mu ~ Beta(s nu, (1 - s) nu); give one number for
  all questions, or one each.
- ``correct``, ``total``: correct and scored samples of each question, shape (n_questions,).
- ``ks``: numbers of attempts, shape (n_ks,), each a whole number of at least 1, in any order.

Arguments may be lists, arrays or pandas Series. Series are joined by their index; an array beside
them is in the order of the first Series. Bad input raises an
:class:`~capcal_lib.errors.InputError` that names the first bad row."""

from capcal_lib.applications.budget import (
    allocate,
    honest_oracle,
    spending_terms,
    split_counts,
    success_rate,
    success_terms,
)
from capcal_lib.applications.extrapolation import extrapolate_pass_at_k
from capcal_lib.applications.gains import (
    abstaining_gains,
    budget_gains,
    others_mean,
    pass_at_k_gains,
    pass_at_k_gains_over_answer,
)
from capcal_lib.applications.passk import (
    deep_samples,
    pass_at_k,
    pass_at_k_error_terms,
    simulate_pass_at_k,
)
from capcal_lib.applications.posterior import draw_accuracies, fit_concentration
from capcal_lib.applications.selective import risk_area_bounds, risk_area_terms, risk_coverage

__all__ = [
    "abstaining_gains",
    "allocate",
    "budget_gains",
    "deep_samples",
    "draw_accuracies",
    "extrapolate_pass_at_k",
    "fit_concentration",
    "honest_oracle",
    "others_mean",
    "pass_at_k",
    "pass_at_k_error_terms",
    "pass_at_k_gains",
    "pass_at_k_gains_over_answer",
    "risk_area_bounds",
    "risk_area_terms",
    "risk_coverage",
    "simulate_pass_at_k",
    "spending_terms",
    "split_counts",
    "success_rate",
    "success_terms",
]
