"""A run: a folder of samples and what was made from them; and how to find one in a store."""

import hashlib
import json
import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from glob import glob  # of a name that is too long, nothing: where that of a path raises
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from capcal_lib.errors import InputError, check_known
from capcal_lib.manifests import (
    DType,
    Manifest,
    Name,
    PromptStyle,
    Sampling,
    load_model,
    model_names,
)
from capcal_lib.places import LOCAL_RUNS
from capcal_lib.runs import files
from capcal_lib.runs.artifacts import Artifact

RECORD = "run.json"
PARTS = "samples-*.parquet"
IMPORTED = "imported"  # the engine of a run whose samples no engine of ours has drawn
# Which of several runs on a split is meant: the beginning of its key, or settings by name.
Choice = str | Mapping[str, Any]


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
    dtype: DType | None = None  # runs older than this setting keep their names

    @property
    def key(self) -> str:
        """Return the digest that names the run's folder."""
        values = self.model_dump(mode="json")
        if self.dtype is None:
            del values["dtype"]
        canonical = json.dumps(values, sort_keys=True, separators=(",", ":"))
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

    It holds only the folder's name; everything else is read when it is needed."""

    folder: Path

    def __str__(self) -> str:
        return str(self.folder)

    @property
    def record(self) -> Record:
        """Return the content of ``run.json``; `InputError` if it does not fit the folder."""
        path = self.folder / RECORD
        with files.plain_errors(path):
            record = Record.model_validate_json(files.inside(self.folder, RECORD).read_bytes())
        if record.identity.key != self.folder.resolve().name:
            raise InputError(
                f"{path}: edited or moved, since its settings belong to run "
                f"{record.identity.key}; restore it, or delete it and give the `capcal sample` "
                "command of this run again"
            )
        return record

    @property
    def identity(self) -> Identity:
        """Return the settings that decide the rows."""
        return self.record.identity

    @property
    def store(self) -> Path:
        """Return the store that the run is in."""
        return self.folder.parents[2]

    @property
    def place(self) -> dict[str, Any]:
        """Return the model, the data set and the split, as the names of the folders tell."""
        dataset, _, split = self.folder.parent.name.rpartition("-")
        return {"model": self.folder.parents[1].name, "dataset": dataset, "split": split}

    @property
    def options(self) -> str:
        """Return the options that name the run to a command, as a shell takes them."""
        several = len([*self.folder.parent.glob(f"[!.]*/{RECORD}")]) > 1
        return self._spell_options({"run": self.folder.name} if several else {})

    @property
    def draw_options(self) -> str:
        """Return the options by which ``capcal sample`` goes on with the run: also the seed, and
        settings that differ from the model's manifest.
        """
        settings = self.identity.settings
        usual: dict[str, Any] = {"seed": 0}
        if self.place["model"] in model_names():
            model = load_model(self.place["model"]).for_dataset(self.place["dataset"])
            usual["engine"] = model.engine
            usual |= model.sampling.model_dump(include={"temperature", "top_p", "max_tokens"})
            usual["prompt_style"] = model.prompt_style
        return self._spell_options(
            {name: settings[name] for name in usual if settings[name] != usual[name]}
        )

    def _spell_options(self, more: dict[str, Any]) -> str:
        words = []
        for name, value in (self.place | more).items():
            words += [f"--{name.replace('_', '-')}", str(value)]
        return shlex.join(words) + store_option(self.store)

    def path(self, artifact: Artifact, name: str = "") -> Path:
        """Return where a kind of file is kept; ``name`` tells several of a kind apart."""
        return self.folder / artifact.name.replace("*", name)

    def has(self, artifact: Artifact, name: str = "") -> bool:
        """Tell whether a file is there."""
        return os.path.exists(self.path(artifact, name))

    def names(self, artifact: Artifact) -> list[str]:
        """List the names of the files of a kind, sorted."""
        return sorted(path.stem.partition("-")[2] for path in self.folder.glob(artifact.name))

    def read(self, artifact: Artifact, name: str = "", *, option: str = "") -> pa.Table:
        """Read a file that is kept beside the samples.

        `InputError` if it is damaged or has other columns; or if it is missing, with the command
        that makes it, which may need an ``option``."""
        path = self.path(artifact, name)
        if not self.has(artifact, name):
            raise InputError(
                f"no {path.stem} in {self}; make them with: capcal {artifact.command} "
                f"{self.options}{option}"
            )
        return artifact.read(path)

    def made(self, artifact: Artifact, name: str = "") -> dict[bytes, bytes]:
        """Return what a file says of how it was made; nothing if there is none."""
        if not self.has(artifact, name):
            return {}
        return files.read_metadata(self.path(artifact, name))

    def count(self, artifact: Artifact, name: str = "") -> int:
        """Count the rows of a file that may be there."""
        return files.count_rows(self.path(artifact, name)) if self.has(artifact, name) else 0

    def add(self, artifact: Artifact, rows: pd.DataFrame, name: str = "") -> None:
        """Add rows to a file that is kept beside the samples; they replace rows with the same
        keys. `InputError` if another process draws samples or adds rows for long.
        """
        key = [*artifact.key]
        tables = [rows]
        with files.hold(self.folder, self.path(artifact, name).name):
            if self.has(artifact, name):
                tables.insert(0, self.read(artifact, name).to_pandas())
            both = pd.concat(tables).drop_duplicates(key, keep="last").sort_values(key)
            table = pa.Table.from_pandas(both, artifact.schema, preserve_index=False)
            self.write(artifact, table.replace_schema_metadata(), name)

    def write(self, artifact: Artifact, table: pa.Table, name: str = "") -> None:
        """Write a file that is kept beside the samples."""
        files.write_table(self.path(artifact, name), table)


def store_option(store: Path | str) -> str:
    """Return the option that names a store to a command, with a blank before it; empty for the
    usual one.
    """
    return "" if Path(store) == LOCAL_RUNS else f" --store {shlex.quote(str(store))}"


def more_samples(run: Run, k: int) -> str:
    """Return the command that gives a run more samples."""
    if run.identity.engine == IMPORTED:
        return f"capcal import FILE... {run.options}"
    return f"capcal sample {run.draw_options} --k {k}"


def run_of(store: Path, identity: Identity) -> Run:
    """Return the run with this identity, existing or not."""
    place = identity.model, f"{identity.dataset}-{identity.split}", identity.key
    return Run(files.inside(store, *place))


def open_runs(
    store: Path | str,
    *,
    model: str | None = None,
    dataset: str | None = None,
    split: str | None = None,
    seed: int | None = None,
) -> list[Run]:
    """List the runs of a store, sorted by folder; only those with the given model, data set, split
    and seed.

    Model, data set and split are compared with the folders' names, so a run with a damaged record
    is listed, unless a seed is given. A folder without a record is not a run. `InputError` if the
    store is not a folder.

    >>> from capcal_lib.places import RECORDED_RUNS
    >>> runs = open_runs(RECORDED_RUNS, model="smollm2-135m", dataset="gsm8k")
    >>> [run.identity.split for run in runs]
    ['test', 'train']
    """
    check_store(store)
    choice = None if seed is None else {"seed": seed}
    return list_fitting(store, model, dataset, split, choice)


def check_store(store: Path | str) -> None:
    """Refuse a store that is no folder."""
    if not os.path.isdir(store):
        raise InputError(f"{store} is not a folder; name a folder with runs in it")


def find_run(
    store: Path | str, model: str, dataset: str, split: str, choice: Choice | None = None
) -> Run:
    """Return a model's run on a split, chosen by ``choice`` if there are several.

    ``choice`` is the run's key or the beginning of it, or settings such as ``{"seed": 1}`` or
    ``{"temperature": 0.2, "top_p": 0.9}``. Among the runs that match, or without a choice among
    all, runs with samples come first, then the sampling settings of the model's manifest, then
    seed 0.

    `InputError` if there is none, with the command that makes one; for an unknown setting; and if
    several are left, as in ``find_run_if_any``."""
    run = find_run_if_any(store, model, dataset, split, choice)
    if run is None:
        chosen = f" with {spell_choice(choice)}" if choice else ""
        raise InputError(
            f"no samples of {model} on {dataset} ({split}){chosen} in {store}; "
            f"make them with: capcal sample --model {model} --dataset {dataset} --split {split} "
            f"--k 100{store_option(store)}"
        )
    return run


def spell_choice(choice: Choice) -> str:
    """Spell a choice of run as the command takes it."""
    if isinstance(choice, str):
        return choice
    return ",".join(f"{name}={value}" for name, value in choice.items())


def find_run_if_any(
    store: Path | str, model: str, dataset: str, split: str, choice: Choice | None = None
) -> Run | None:
    """Return the run that ``find_run`` returns, or None if there is none.

    `InputError` if several are left, with the settings in which they differ."""
    runs = list_fitting(store, model, dataset, split, choice)
    if not runs:
        return None
    if len(runs) == 1:
        return runs[0]
    usual = load_model(model).for_dataset(dataset).sampling
    runs = [run for run in runs if any(run.folder.glob(PARTS))] or runs
    runs = [run for run in runs if run.identity.sampling == usual] or runs
    runs = [run for run in runs if run.identity.seed == 0] or runs
    if len(runs) == 1:
        return runs[0]
    first, *others = (run.identity for run in runs)
    settings = sorted({line for other in others for line in differences(first, other)})
    raise InputError(
        f"{len(runs)} runs of {model} on {dataset} ({first.split}) in {store}, "
        f"{', '.join(run.folder.name for run in runs)}, "
        f"differ in {'; '.join(settings)}; choose one with --run, by its key or by a setting"
    )


def list_fitting(
    store: Path | str,
    model: str | None,
    dataset: str | None,
    split: str | None,
    choice: Choice | None = None,
) -> list[Run]:
    """List the runs of a model on a split that match a choice of ``find_run``, sorted; None matches
    all, and a store that does not exist has none.
    """
    if isinstance(choice, Mapping):
        known = {*Identity.model_fields, *Sampling.model_fields} - {"sampling"}
        for name in choice:
            check_known("setting", name, known)
    wanted = {"model": model, "dataset": dataset, "split": split}
    paths = glob(f"*/*-*/*/{RECORD}", root_dir=store)
    runs = []
    for path in sorted(Path(path).parent for path in paths):
        place = Run(path).place
        if all(wanted[name] in (None, part) for name, part in place.items()):
            run = Run(files.inside(Path(store), *path.parts))
            if choice is None or _fits(run, choice):
                runs.append(run)
    return runs


def _fits(run: Run, choice: Choice) -> bool:
    """Return whether a run matches a choice of ``find_run``; a run with a damaged record matches no
    settings.
    """
    if isinstance(choice, str):
        return run.folder.name.startswith(choice)
    try:
        settings = run.identity.settings
    except InputError:
        return False
    return all(
        value == settings[name] or str(value) == str(settings[name])
        for name, value in choice.items()
    )


def differences(one: Identity, other: Identity) -> list[str]:
    """Name the settings in which two runs differ, ``setting: one / other``."""
    left = one.settings
    right = other.settings
    return [f"{name}: {left[name]} / {right[name]}" for name in left if left[name] != right[name]]
