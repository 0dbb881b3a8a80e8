"""The simulated model, on whose recorded sets probes are tested."""

import numpy as np

MODEL = "simulated"


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)
