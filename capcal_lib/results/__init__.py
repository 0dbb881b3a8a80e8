"""Results: everything that is known of a run."""
