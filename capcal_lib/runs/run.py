"""A run: a folder of samples and what was made from them, and how one is found in a store."""

import hashlib
import json
import shutil
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from glob import escape
from os.path import isdir  # of a name that is too long, no: where that of a path raises
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast

import pandas as pd
import pyarrow as pa
from pydantic import Field, ValidationError

from capcal_lib.errors import InputError, unknown
from capcal_lib.manifests import DType, Manifest, PromptStyle, Sampling, load_model
from capcal_lib.runs import files
from capcal_lib.runs.artifacts import PART, Artifact

_Value = TypeVar("_Value")

Name = Annotated[str, Field(pattern=r"^\w[\w.-]*$")]  # becomes a part of a path


class Identity(Manifest):
    """Everything that decides the rows of a run. Two runs with one identity are one run."""

    model: Name
    weights: str  # digest of the weights' bytes, or repository@commit
    dataset: Name
    split: Name
    questions: str  # digest of the split's questions and answers
    prompt_style: PromptStyle
    prompt_template: str  # digest of the words around the question
    chat_template: dict[str, Any]
    sampling: Sampling
    engine: str
    seed: int
    dtype: DType | None = None

    @property
    def key(self) -> str:
        """Return the digest that names the run's folder."""
        unset = (
            {"dtype"} if self.dtype is None else None
        )  # so that runs older than the setting keep their names
        canonical = json.dumps(
            self.model_dump(mode="json", exclude=unset), sort_keys=True, separators=(",", ":")
        )
        return hashlib.sha256(canonical.encode()).hexdigest()[:12]

    @property
    def settings(self) -> dict[str, Any]:
        """Return all settings by name, those of sampling among them."""
        settings = self.model_dump(mode="json")
        return settings | settings.pop("sampling")


class Record(Manifest):
    """What ``run.json`` holds: the identity, and facts about the making that change no row."""

    identity: Identity
    made_with: dict[str, str]  # versions, hardware, whether the data set matched its manifest


@dataclass(frozen=True, slots=True, order=True)
class Run:
    """A folder of samples and what was made from them: the one value that travels.

    It is as small as its folder's name; all else is read when it is asked for, and kept as long as
    no file of the folder changes."""

    folder: Path

    def __str__(self) -> str:
        return str(self.folder)

    @property
    def record(self) -> Record:
        """Return what ``run.json`` holds; `InputError` unless it is that of the folder."""
        return _read_record(self.folder / "run.json")

    @property
    def identity(self) -> Identity:
        """Return what decides the rows."""
        return self.record.identity

    @property
    def has_samples(self) -> bool:
        """Tell whether there may be any sample, by the names of the files."""
        return any(self.folder.glob("samples-*.parquet"))

    @property
    def options(self) -> str:
        """Return the options that name the run to a command."""
        run = self.identity
        key = f" --run {run.key}" if len(_runs_in(self.folder.parent)) > 1 else ""
        return f"--model {run.model} --dataset {run.dataset} --split {run.split}{key}"

    def path(self, artifact: Artifact, name: str = "") -> Path:
        """Return where a kind of file is kept; ``name`` tells several of a kind apart."""
        return self.folder / artifact.name.replace("*", name)

    def has(self, artifact: Artifact, name: str = "") -> bool:
        """Tell whether a file is there."""
        return files.size_of(self.path(artifact, name)) is not None

    def names(self, artifact: Artifact) -> list[str]:
        """List what tells the files of a kind apart, sorted."""
        before, _, after = artifact.name.partition("*")
        found = sorted(path.name for path in self.folder.glob(artifact.name))
        names = [name.removeprefix(before).removesuffix(after) for name in found]
        return [name for name in names if PART not in f".{name}"]

    def read(self, artifact: Artifact, name: str = "", *, option: str = "") -> pa.Table:
        """Read a file that is kept beside the samples.

        `InputError` where it is missing, with the command that makes it, which may need an
        ``option``; where it is damaged; and for one with other columns."""
        return artifact.read(self._made(artifact, name, option))

    def batches(self, artifact: Artifact, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Read columns of a file that is kept beside the samples, some 65,000 rows at a time;
        `InputError` as by ``read``.
        """
        for table in files.read_batches(self._made(artifact), columns):
            if table.column_names != [*columns]:
                artifact.read(self.path(artifact))
            yield table.to_pandas()

    def _made(self, artifact: Artifact, name: str = "", option: str = "") -> Path:
        path = self.path(artifact, name)
        if self.has(artifact, name):
            return path
        raise InputError(
            f"no {artifact.label(path.name)} in {self}; make them with: capcal {artifact.command} "
            f"{self.options}{option}"
        )

    def count(self, artifact: Artifact, name: str = "") -> int:
        """Count the rows of a file that may be there, as far as its footer tells."""
        if not self.has(artifact, name):
            return 0
        with files.open_parquet(self.path(artifact, name)) as file:
            return int(file.metadata.num_rows)

    def write(self, artifact: Artifact, table: pa.Table, name: str = "") -> None:
        """Write a file that is kept beside the samples."""
        files.write_table(self.path(artifact, name), table)

    def cached(self, make: Callable[..., _Value], *given: Hashable) -> _Value:
        """Return ``make(run, *given)``, made once while no file of the folder changes.

        Who gets it must not change it."""
        states = [(path, path.lstat()) for path in sorted(self.folder.glob("[!.]*"))]
        state = [(path.name, file.st_mtime_ns, file.st_size) for path, file in states]
        return cast("_Value", _call(make, self, given, tuple(state)))


@lru_cache(256)
def _call(make: Callable[..., object], run: Run, given: Iterable[Hashable], *_: Hashable) -> object:
    return make(run, *given)


def run_of(store: Path, identity: Identity) -> Run:
    """Return the run with this identity, existing or not."""
    return Run(store / identity.model / f"{identity.dataset}-{identity.split}" / identity.key)


def open_runs(
    store: Path | str,
    *,
    model: str | None = None,
    dataset: str | None = None,
    split: str | None = None,
    seed: int | None = None,
) -> list[Run]:
    """List the runs of a store, sorted by their folders; those with this model, data set, split and
    seed, where they are given.

    What is asked for is compared with the names of the folders first, so that a run whose record is
    damaged is listed by them, and only where a seed is asked for left out. `InputError` for a store
    that is no folder.

    >>> from capcal_lib.manifests import RECORDED_RUNS
    >>> runs = open_runs(RECORDED_RUNS, model="smollm2-135m", dataset="gsm8k")
    >>> [run.identity.split for run in runs]
    ['test', 'train']
    """
    if not isdir(Path(store)):
        raise InputError(f"{store} is not a folder; name a run store with --store")
    wanted = {"model": model, "dataset": dataset, "split": split, "seed": seed}
    asked = {name: value for name, value in wanted.items() if value is not None}
    splits = Path(store).glob(f"{escape(model) if model else '[!.]*'}/[!.]*-*")
    runs = [run for folder in sorted(splits) for run in _runs_in(folder)]
    return [run for run in runs if _is_asked(run, asked)]


def _runs_in(folder: Path) -> list[Run]:
    """List the runs of a split: a temporary or half-removed folder is none."""
    if not isdir(folder):
        return []
    return [
        Run(path)
        for path in sorted(folder.glob("[!.]*"))
        if isdir(path) and any(path.glob("run.json")) | any(path.glob("samples-*.parquet"))
    ]


def _is_asked(run: Run, asked: dict[str, Any]) -> bool:
    try:
        return all(run.identity.settings[name] == value for name, value in asked.items())
    except InputError:
        dataset, _, split = run.folder.parent.name.rpartition("-")
        named = {"model": asked.get("model"), "dataset": dataset, "split": split}
        return all(named.get(name) == value for name, value in asked.items())


def find_run(
    store: Path | str, model: str, dataset: str, split: str, choice: str | None = None
) -> Run:
    """Return a model's run on a split; of several the one that is chosen.

    `InputError` where there is none, with the command that makes one; where several are left, with
    what they differ in.

    ``choice`` is the run's key or the beginning of it, or settings such as ``"seed=1"`` or
    ``"temperature=0.2,top_p=0.9"``. Among those that fit, and where nothing is said, one with
    samples is taken, then the one with the sampling settings of the model's manifest, and then the
    one with seed 0."""
    runs = list_fitting(store, model, dataset, split, choice)
    if not runs:
        asked = f" with {choice}" if choice else ""
        raise InputError(
            f"no samples of {model} on {dataset} ({split}){asked} in {store}; "
            f"make them with: capcal sample --model {model} --dataset {dataset} --split {split} "
            "--k 100"
        )
    if len(runs) > 1:
        usual = load_model(model).for_dataset(dataset)
        runs = [one for one in runs if one.has_samples] or runs
        runs = [one for one in runs if one.identity.sampling == usual.sampling] or runs
        runs = [one for one in runs if one.identity.seed == 0] or runs
    if len(runs) > 1:
        first, *others = (one.identity for one in runs)
        settings = sorted({line for other in others for line in differences(first, other)})
        raise InputError(
            f"{len(runs)} runs of {model} on {dataset} ({split}) in {store}, "
            f"{', '.join(one.folder.name for one in runs)}, "
            f"which differ in {'; '.join(settings)}; choose one with --run, by its key or a setting"
        )
    return runs[0]


def list_fitting(
    store: Path | str, model: str, dataset: str, split: str, choice: str | None = None
) -> list[Run]:
    """List a model's runs on a split that fit a choice of ``find_run``, sorted."""
    runs = _runs_in(Path(store) / model / f"{dataset}-{split}")
    return [run for run in runs if not choice or _fits(run.identity, choice)]


def choose_runs(store: Path, choice: str, into: Path) -> Path:
    """Make a store of the runs that a choice leaves, for what reads a store and cannot choose.

    Of a split where nothing fits all runs are taken. Each is a link to that of the store."""
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    for split in sorted({run.folder.parent for run in open_runs(store)}):
        beside = _runs_in(split)
        fitting = [run for run in beside if _fits(run.identity, choice)]
        for run in fitting or beside:
            place = into / run.folder.relative_to(store)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(run.folder.resolve(), target_is_directory=True)
    return into.resolve()


def _fits(identity: Identity, said: str) -> bool:
    for part in said.split(","):
        name, equals, value = part.partition("=")
        if not equals:
            fits = identity.key.startswith(part)
        elif name in identity.settings:
            here = identity.settings[name]
            fits = value in (str(here), f"{here:g}" if isinstance(here, float) else "")
        else:
            raise unknown("setting", name, identity.settings)
        if not fits:
            return False
    return True


def differences(one: Identity, other: Identity) -> list[str]:
    """Name the settings in which two runs differ, ``setting: one / other``."""
    left = one.settings
    right = other.settings
    return [f"{name}: {left[name]} / {right[name]}" for name in left if left[name] != right[name]]


def _read_record(path: Path) -> Record:
    try:
        record = Record.model_validate_json(files.read_bytes(path))
    except ValidationError as error:
        first = error.errors()[0]
        problem = f"{first['msg']} at {'.'.join(map(str, first['loc'])) or 'the top'}"
        raise InputError(
            f"{path}: missing or corrupt run record ({problem}); restore the file"
        ) from None
    if record.identity.key != path.parent.resolve().name:
        raise InputError(
            f"{path}: its settings are those of run {record.identity.key}, not of its folder, so "
            "it was edited or "
            "moved; restore it, or delete it and give the `capcal sample` command of this run again"
        )
    return record
