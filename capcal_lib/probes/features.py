"""Features: the hidden states that a probe reads (paper, appendix on linear probes)."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from capcal_lib.engines import Engine
from capcal_lib.errors import InputError
from capcal_lib.manifests import Model
from capcal_lib.questions import Question
from capcal_lib.sampling import answer_requests


def extract_features(engine: Engine, model: Model, questions: Sequence[Question]) -> npt.NDArray[np.float32]:
    """Read the hidden state of the last prompt token, averaged over all layers + 1.

    The prompt is the one that answers are sampled from, so the features stand where the answer begins.
    It costs one pass over the prompt and no token.

    Parameters
    ----------
    engine, model
        The opened engine and the manifest of its model.
    questions
        (n_questions,)

    Returns
    -------
    ndarray
        (n_questions, hidden_size) float32, in the order of the questions.

    Raises
    ------
    InputError
        Where the engine returns another shape or a number that is not finite.
    """
    requests = answer_requests(model, questions, {})
    features = np.asarray(engine.hidden_states(requests), dtype=np.float32)
    if features.ndim != 2 or len(features) != len(questions):
        raise InputError(
            f"engine {engine.family} returned features of shape {features.shape} for {len(questions)} questions"
        )
    bad = np.flatnonzero(~np.isfinite(features).all(axis=1))
    if len(bad):
        raise InputError(f"engine {engine.family} returned features that are not finite for {questions[bad[0]].id!r}")
    return features
