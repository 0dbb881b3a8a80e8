"""Probes: read the confidence from the model's hidden states."""

from capcal_lib.probes.kernel import KernelProbe
from capcal_lib.probes.linear import LinearProbe
from capcal_lib.probes.predictor import Predictor, conformal_half_width, load_predictor
from capcal_lib.probes.sgd import paper_recipe_probe
from capcal_lib.probes.stacked import StackedProbe
from capcal_lib.probes.training import (
    TrainedProbe,
    nearest_probe,
    nearest_probes,
    predict,
    train,
    training_data,
)
from capcal_lib.probes.tuned import tuned_probe
