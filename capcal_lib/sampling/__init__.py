"""Draw samples, and keep them."""
