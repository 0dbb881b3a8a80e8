"""Features: the hidden states that a probe reads (paper, appendix on linear probes)."""

from collections.abc import Sequence
from typing import get_args

import numpy as np
import numpy.typing as npt

from capcal_lib.errors import InputError, unknown
from capcal_lib.manifests import Model
from capcal_lib.questions import Question
from capcal_lib.sampling.draw import answer_requests
from capcal_lib.sampling.engines import Engine, Layers


def extract_features(
    engine: Engine, model: Model, questions: Sequence[Question], *, layers: Layers = "mean"
) -> npt.NDArray[np.float32]:
    """Read the hidden states of the last prompt token: after the embedding, and after every layer.

    The prompt is the one that answers are sampled from, so the features stand where the answer begins.
    It costs one pass over the prompt and no token.

    Parameters
    ----------
    engine, model
        The opened engine and the manifest of its model.
    questions
        (n_questions,)
    layers
        ``mean``, the paper's, or ``max`` pools the layers + 1 states, number by number; ``all`` keeps each.

    Returns
    -------
    ndarray
        (n_questions, hidden_size), or (n_questions, layers + 1, hidden_size) for ``all``; float32, in the
        order of the questions.

    Raises
    ------
    InputError
        For unknown ``layers``; where the engine returns another shape or a number that is not finite.

    Examples
    --------
    >>> from capcal_lib.sampling.engines import open_engine
    >>> from capcal_lib.manifests import load_model
    >>> from capcal_lib.questions import load_questions
    >>> model = load_model("simulated")
    >>> questions = load_questions("mini-capitals", "test", limit=5)
    >>> extract_features(open_engine(model), model, questions, layers="all").shape
    (5, 7, 64)
    """
    if layers not in get_args(Layers):
        raise unknown("layers", layers, get_args(Layers))
    requests = answer_requests(model, questions, {})
    features = np.asarray(engine.hidden_states(requests, layers), dtype=np.float32)
    if features.ndim != (3 if layers == "all" else 2) or len(features) != len(questions):
        raise InputError(
            f"engine {engine.family} returned features of shape {features.shape} for {len(questions)} questions"
        )
    bad = np.flatnonzero(~np.isfinite(features).reshape(len(features), -1).all(axis=1))
    if len(bad):
        raise InputError(f"engine {engine.family} returned features that are not finite for {questions[bad[0]].id!r}")
    return features
