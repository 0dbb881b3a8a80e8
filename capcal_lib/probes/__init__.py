"""Probes: read the confidence from the model's hidden states."""

from capcal_lib.probes.estimator import Probe
from capcal_lib.probes.features import extract_features, read_features
from capcal_lib.probes.kernel import KernelProbe
from capcal_lib.probes.linear import LinearProbe
from capcal_lib.probes.predictor import Predictor, conformal_half_width, load_predictor
from capcal_lib.probes.sgd import PaperProbe
from capcal_lib.probes.stacked import BLOCKS, StackedProbe
from capcal_lib.probes.training import (
    TrainedProbe,
    draw_training,
    nearest_probe,
    nearest_probes,
    predict,
    runs_for_probes,
    stacked_blocks,
    train,
    training_data,
)
from capcal_lib.probes.tuned import TunedProbe

__all__ = [
    "BLOCKS",
    "KernelProbe",
    "LinearProbe",
    "PaperProbe",
    "Predictor",
    "Probe",
    "StackedProbe",
    "TrainedProbe",
    "TunedProbe",
    "conformal_half_width",
    "draw_training",
    "extract_features",
    "load_predictor",
    "nearest_probe",
    "nearest_probes",
    "predict",
    "read_features",
    "runs_for_probes",
    "stacked_blocks",
    "train",
    "training_data",
]
