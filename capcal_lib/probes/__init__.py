"""Probes: read the confidence from the model's hidden states."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from capcal_lib.errors import naming_extra

with naming_extra():
    from capcal_lib.probes.draws import keep_draws, predict_by_labels
    from capcal_lib.probes.features import extract_features, read_features
    from capcal_lib.probes.predictions import (
        describe_probes,
        keep_predictions,
        order_probes,
        predictions_of,
    )
    from capcal_lib.probes.training import (
        ProbeRecipe,
        nearest_probe,
        nearest_probes,
        runs_for_probes,
        train,
        training_data,
    )

if TYPE_CHECKING:
    from capcal_lib.probes.estimator import Probe
    from capcal_lib.probes.linear import LinearProbe
    from capcal_lib.probes.sgd import PaperProbe
    from capcal_lib.probes.tuned import TunedProbe

__all__ = [
    "LinearProbe",
    "PaperProbe",
    "Probe",
    "ProbeRecipe",
    "TunedProbe",
    "describe_probes",
    "extract_features",
    "keep_draws",
    "keep_predictions",
    "nearest_probe",
    "nearest_probes",
    "order_probes",
    "predict_by_labels",
    "predictions_of",
    "read_features",
    "runs_for_probes",
    "train",
    "training_data",
]

_ESTIMATORS = {
    "LinearProbe": "linear",
    "PaperProbe": "sgd",
    "Probe": "estimator",
    "TunedProbe": "tuned",
}


def __getattr__(name: str) -> Any:
    """Import an estimator when it is first used: scikit-learn is slow to import, and reading
    predictions does not need it.
    """
    if name in _ESTIMATORS:
        with naming_extra():
            return getattr(import_module(f"{__name__}.{_ESTIMATORS[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
