"""How far the grader can be trusted: other judges, second looks, and what its errors do to the estimates."""
