"""Runs: the samples of a model on a split of a data set, and what was made from them."""
