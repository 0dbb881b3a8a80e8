"""The simulated model's recorded sets, on which probes and contests of probes are tested."""

import numpy as np

from capcal_lib.manifests import RECORDED_RUNS
from capcal_lib.results import generalisation as lab

MODEL = "simulated"
TRAINING = lab.training_sets(RECORDED_RUNS, MODEL)
TESTS = lab.evaluation_sets(RECORDED_RUNS, MODEL)
CAPITALS, UNSEEN = lab.pick(TRAINING, "mini-capitals")[0], lab.pick(TESTS, "mini-capitals")[0]


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)
