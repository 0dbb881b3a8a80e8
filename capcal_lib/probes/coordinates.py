"""What the stacked probe reads of a question, small enough to be kept beside the samples.

The hidden states of all layers take 36 kB a question for a model of 135 million parameters. Their
coordinates along the 64 strongest directions of each third of the layers, over the training
questions, take 384 bytes. The test split of a data set is described along the directions of its
training split; labels play no part."""

from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from capcal_lib.errors import InputError
from capcal_lib.probes.features import extract, read_states
from capcal_lib.runs.artifacts import COORDINATES, matrix, vectors
from capcal_lib.runs.run import Run
from capcal_lib.sampling.engines import engines_stay_open

FILE = COORDINATES.name
PARTS = 3  # of the layers: lower, middle, upper
COMPONENTS = 64


class Coordinates(NamedTuple):
    """What is kept of the questions of a run."""

    question_ids: list[str]
    points: npt.NDArray[np.float32]  # (n_questions, 3, 64): lower, middle and upper layers
    directions: str  # the run along whose directions the points are


def keep_coordinates(training: Run, evaluation: Run, *, engine: str | None = None) -> None:
    """Read the hidden states of two runs of a model, and keep their coordinates in the first one's
    directions, and their features.

    The states of all layers are kept batch by batch until the coordinates are, so a stop loses at
    most one batch; a file of them that is there stays. The features that other probes read are
    pooled from the same reading. Runs of different models or prompts, corrupt ones, and questions
    that have changed are refused.
    """
    one, other = (run.identity for run in (training, evaluation))
    if (one.model, one.prompt_style) != (other.model, other.prompt_style):
        raise InputError(
            f"{training} and {evaluation} are runs of different models or prompts; name two of one"
        )
    with engines_stay_open():
        read = [read_states(run, "all", engine) for run in (training, evaluation)]
    for run in (training, evaluation):
        extract(run, engine=engine)
    tables, parts = zip(*read, strict=True)
    states = [matrix(table, "features").astype(np.float32) for table in tables]
    for run, table, points in zip(
        (training, evaluation), tables, layer_thirds(*states), strict=True
    ):
        rows = vectors(points.reshape(len(points), -1))
        kept = pa.table({"question_id": table["question_id"], "coordinates": rows})
        run.write(COORDINATES, kept.replace_schema_metadata({"directions": training.folder.name}))
    for file in chain(*parts):
        file.unlink(missing_ok=True)


def layer_thirds(
    training: npt.NDArray[np.float32], *others: npt.NDArray[np.float32]
) -> list[npt.NDArray[np.float32]]:
    """Describe the hidden states of all layers by the principal directions of their lower, middle
    and upper third.

    Takes the training questions' states, (n_questions, layers + 1, hidden_size), and any others.
    Returns of each (n_questions, 3, 64), or fewer where there are not so many directions. Every
    number of every layer is standardised by the training questions, so that none counts for more
    because it is large.

    >>> states = np.random.default_rng(0).normal(size=(20, 7, 8)).astype(np.float32)
    >>> [points.shape for points in layer_thirds(states, states[:5])]
    [(20, 3, 16), (5, 3, 16)]
    """
    from sklearn.decomposition import PCA
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    thirds = [np.array_split(states, PARTS, axis=1) for states in (training, *others)]
    flat = [[part.reshape(len(part), -1) for part in parts] for parts in thirds]
    kept = min(COMPONENTS, max(1, len(training) - 1), *(part.shape[1] for part in flat[0]))
    fitted = [
        make_pipeline(StandardScaler(), PCA(kept, random_state=0)).fit(part) for part in flat[0]
    ]
    return [
        np.stack(
            [each.transform(part) for each, part in zip(fitted, parts, strict=True)], axis=1
        ).astype(np.float32)
        for parts in flat
    ]


def read_coordinates(run: Run) -> Coordinates:
    """Read what ``keep_coordinates`` kept; where there is nothing, the error names the command that
    makes it.
    """
    table = run.read(COORDINATES)
    return Coordinates(
        table["question_id"].to_pylist(),
        matrix(table, "coordinates").reshape(len(table), PARTS, -1).astype(np.float32),
        table.schema.metadata[b"directions"].decode(),
    )
