"""What a confidence is good for: pass@k and the allocation of a budget (section 5 of the paper)."""

from capcal_lib.applications.budget import allocate, success_rate
from capcal_lib.applications.passk import pass_at_k, simulate_pass_at_k

__all__ = ["allocate", "pass_at_k", "simulate_pass_at_k", "success_rate"]
