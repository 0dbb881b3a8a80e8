"""Capability calibration of language models.

Does a model's confidence match mu, the probability that a freshly sampled answer
to this question is right?
"""

__version__ = "0.1.0"
