"""Draw samples, and keep them."""

from capcal_lib.errors import naming_extra

with naming_extra():
    from capcal_lib.sampling.draw import Drawn, can_sample_here, sample
    from capcal_lib.sampling.engines import (
        Engine,
        Failure,
        Request,
        answer_requests,
        engine_sources,
        open_engine,
    )
    from capcal_lib.sampling.weights import ensure_weights, weights_folder

__all__ = [
    "Drawn",
    "Engine",
    "Failure",
    "Request",
    "answer_requests",
    "can_sample_here",
    "engine_sources",
    "ensure_weights",
    "open_engine",
    "sample",
    "weights_folder",
]
