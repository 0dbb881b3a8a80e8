"""Capability calibration of language models.

Does a model's confidence match mu, the probability that a freshly sampled answer
to this question is right?
"""
