"""Coordinates of a question in all layers: small enough to be kept beside the samples.

The hidden states of all layers take 36 kB a question for a model of 135 million parameters. Their coordinates along the
64 strongest directions over the training questions take 128 bytes. The test split of a data set is described along
the directions of its training split; labels play no part.
"""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from capcal_lib.engines import open_engine
from capcal_lib.errors import InputError
from capcal_lib.manifests import load_model
from capcal_lib.probes.features import extract_features
from capcal_lib.probes.kernel import principal_coordinates
from capcal_lib.store import KEY, read_record, read_samples, read_table, write_table
from capcal_lib.verdicts import run_questions

FILE = "coordinates.parquet"


def keep_coordinates(training: Path, evaluation: Path, *, engine: str | None = None) -> None:
    """Read the hidden states of two runs of a model, and keep their coordinates in the first one's directions.

    Raises
    ------
    InputError
        For runs of different models, a corrupt run, or questions that have changed.
    """
    one, other = (read_record(folder).identity for folder in (training, evaluation))
    if (one.model, one.prompt_style) != (other.model, other.prompt_style):
        raise InputError(f"{training} and {evaluation} are runs of different models or prompts; name two of one")
    model = load_model(one.model).on(one.dataset)
    source = open_engine(model, engine)
    names, states = [], []
    for folder in (training, evaluation):
        questions = run_questions(folder)
        names.append([str(name) for name in read_samples(folder, KEY)["question_id"].unique()])
        states.append(extract_features(source, model, [questions[name] for name in names[-1]], layers="all"))
    for folder, rows, points in zip((training, evaluation), names, principal_coordinates(*states), strict=True):
        _write(folder, rows, points, directions=training.name)


def read_coordinates(folder: Path) -> tuple[list[str], npt.NDArray[np.float32], str]:
    """Read the question ids, the coordinates (n_questions, 64), and the run whose directions they are along.

    Raises
    ------
    InputError
        Where there are none, with the command that makes them; for a corrupt file.
    """
    path = folder / FILE
    if not path.exists():
        run = read_record(folder).identity
        raise InputError(
            f"no coordinates in {folder}; "
            f"make them with: capcal coordinates --model {run.model} --dataset {run.dataset}"
        )
    table = read_table(path)
    if table.column_names != ["question_id", "coordinates"] or not table.schema.metadata:
        raise InputError(f"{path}: not a file of coordinates; delete it and make it again with: capcal coordinates")
    values = table["coordinates"].combine_chunks()
    points = values.values.to_numpy(zero_copy_only=False).reshape(len(table), values.type.list_size)
    return table["question_id"].to_pylist(), points.astype(np.float32), table.schema.metadata[b"directions"].decode()


def _write(folder: Path, names: list[str], points: npt.NDArray[np.float32], *, directions: str) -> None:
    flat = pa.array(points.astype(np.float16).ravel())
    rows = pa.FixedSizeListArray.from_arrays(flat, points.shape[1])
    table = pa.table({"question_id": names, "coordinates": rows})
    write_table(folder / FILE, table.replace_schema_metadata({"directions": directions}))
