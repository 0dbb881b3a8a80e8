"""Samples that exist already become a run."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pandas as pd
import yaml

from capcal_lib import manifests
from capcal_lib.disk import file_digest
from capcal_lib.errors import InputError
from capcal_lib.grading import grade
from capcal_lib.grading.verdicts import write_verdicts
from capcal_lib.io.samples import kind_of, read_samples
from capcal_lib.questions import (
    NOT_STATED,
    Answer,
    Question,
    check_questions,
    load_questions,
    questions_digest,
)
from capcal_lib.questions.question import LETTERS
from capcal_lib.runs import store as runs
from capcal_lib.runs.artifacts import GIVEN, VERDICTS
from capcal_lib.runs.run import IMPORTED, Identity, Record, Run
from capcal_lib.runs.store import KEY, SCHEMA, open_writer
from capcal_lib.text import sanitize

NO_LIMIT = 1 << 20  # of tokens, where a log has none


class Imported(NamedTuple):
    """What an import did."""

    run: Run
    new: int  # samples
    present: int  # samples that were there before
    judged: bool  # the verdicts are the log's
    notes: list[str]  # what was written, taken and left out


def import_samples(
    files: Sequence[Path],
    *,
    model: str,
    dataset: str,
    store: Path,
    split: str | None = None,
    kind: manifests.Kind | None = None,
    settings: Mapping[str, Any] = MappingProxyType({}),
    **of_log: Any,
) -> Imported:
    """Make a run of the samples in files, or add to it; the same files again change nothing.

    Give all files of a run at once: samples are numbered as they come. A ``model`` or ``dataset``
    without a manifest gets one in the user's folder, with the log's settings and questions; in a
    data set that is known each question is looked up by its id, or else by its text, and must have
    the same answer. ``kind`` is that of the answers of a new data set; None: see
    :func:`~capcal_lib.io.samples.kind_of`. The log's verdicts are taken, which nothing grades
    again, unless with ``regrade``; ``of_log`` are this and the other options of
    :func:`~capcal_lib.io.samples.read_samples`. ``settings`` are of the sampling, such as
    ``temperature``, where the file does not say them or says them wrong.

    `InputError` for a file that cannot be read or has no samples, a question that the data set does
    not have or answers otherwise, an unknown temperature, and a sample that is there with other
    content. Nothing is written then."""
    log = read_samples(files, **of_log)
    notes = log.notes
    sampling: dict[str, Any] = log.settings | dict(settings)
    facts: dict[str, Iterable[str]] = {}
    if dataset not in manifests.dataset_names():
        kind = kind or kind_of(log.items)
        notes.append(f"answers of {dataset}: {kind} (--kind names another)")
        facts |= _new_dataset(dataset, log.items, kind)
    if model not in manifests.model_names():
        if "temperature" not in sampling:
            raise InputError(
                f"the files do not say at which temperature {model!r} was sampled; say it: "
                "--temperature 0.7"
            )
        facts |= _new_model(model, sampling)
    with manifests.new_manifests(facts) as made:
        split = split or manifests.load_dataset(dataset).evaluation_split
        sampled = manifests.load_model(model).for_dataset(dataset).with_settings(**sampling)
        questions = load_questions(dataset, split)
        if not log.judged and any(one.answer.gold == NOT_STATED for one in questions):
            raise InputError(
                "the files have neither answers nor verdicts; map a column: --column gold=NAME "
                "or verdict=NAME, or name a --dataset that has the answers"
            )
        samples = _lay_out(log.samples, _find_questions(log.items, questions, dataset))
        record = _describe(sampled, dataset, split, questions, files)
        with open_writer(store, record) as writer:
            run = writer.run
            _refuse_others(run, samples)
            new = writer.adopt(samples[SCHEMA.names])
        if log.judged:
            notes += _keep_verdicts(run, samples)
    return Imported(
        run, new, len(samples) - new, log.judged, [f"wrote {path}" for path in made] + notes
    )


def _describe(
    sampled: manifests.Model,
    dataset: str,
    split: str,
    questions: Sequence[Question],
    files: Sequence[Path],
) -> Record:
    """Describe the run of imported samples."""
    identity = Identity(
        model=sampled.name,
        weights=IMPORTED,
        dataset=dataset,
        split=split,
        questions=questions_digest(questions),
        prompt_style=IMPORTED,
        prompt_template=IMPORTED,
        chat_template={},
        sampling=sampled.sampling,
        engine=IMPORTED,
        seed=0,
    )
    made_with = {
        "imported_from": ", ".join(
            f"{sanitize(file.name)} (sha256 {file_digest(file)[:16]})" for file in files
        ),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "capcal": version("capcal"),
        "questions": check_questions(dataset, split, questions),
    }
    return Record(identity=identity, made_with=made_with)


def _lay_out(samples: pd.DataFrame, ids: Mapping[str, str]) -> pd.DataFrame:
    """Lay samples out as a run has them, with their verdicts beside them."""
    samples = samples.assign(question_id=samples["question_id"].map(ids))
    tokens = samples[["prompt_tokens", "completion_tokens"]].astype(float).fillna(0)
    table = samples.assign(
        sample_index=samples["sample"],
        reasoning=samples["reasoning"].astype(object).replace("", None),
        finish_reason=samples["finish_reason"].astype(object).fillna("stop"),
        extracted=samples["extracted"].map(str, na_action="ignore"),
        **tokens.astype(int),
    )
    again = table.duplicated(KEY)
    if again.any():
        name = sanitize(table.loc[again, "question_id"].iloc[0], 80)
        raise InputError(f"two questions of the files are {name!r}; import the files apart")
    return table


def _refuse_others(run: Run, samples: pd.DataFrame) -> None:
    """Refuse samples that a run has with another response."""
    known = runs.read_samples(run, ["response"])
    both = samples.merge(known, on=KEY, suffixes=("", " known"))
    others = both[both["response"] != both["response known"]]
    if len(others):
        question, index = others[KEY].iloc[0]
        raise InputError(
            f"sample {index} of question {sanitize(question, 80)!r} is another in {run}; nothing "
            "was written: import all files at once, or into another --store, or as another --model"
        )


def _keep_verdicts(run: Run, samples: pd.DataFrame) -> list[str]:
    """Keep the verdicts of a log, but where the run has some by the rules; say so then."""
    given = samples[[*KEY, "verdict", "extracted"]].assign(reason="given with the samples")
    if run.has(VERDICTS):
        if run.made(VERDICTS)[b"grader"] != GIVEN.encode():
            return [f"left out: the log's verdicts, since {run} was graded by the rules"]
        given = pd.concat([run.read(VERDICTS).to_pandas(), given]).drop_duplicates(KEY)
    write_verdicts(run, given, GIVEN)
    return []


def _new_dataset(name: str, items: pd.DataFrame, kind: manifests.Kind) -> dict[str, Iterable[str]]:
    """Return the files that make the questions of a log a data set of its own, in subjects where
    each question has one.
    """
    rows = items.rename(columns={"gold": "answer"}).rename_axis("id").reset_index()
    clustered = bool(items["subject"].ne("").all())
    if not clustered:
        rows = rows.drop(columns="subject")
    if kind == "choice":  # an option by its number, which no text of another one is
        named = zip(rows["answer"], rows["choices"], strict=True)
        rows["answer"] = [LETTERS.index(gold) if options else gold for gold, options in named]
    else:
        rows = rows.drop(columns="choices")
    lines = [json.dumps(row) + "\n" for row in rows.to_dict("records")]
    facts = {
        "name": name,
        "domain": "imported",
        "kind": kind,
        "clustered": clustered,
        "source": "Questions of an imported log.",
        "splits": {"test": {"file": f"{name}.jsonl", "rows": len(rows)}},
    }
    return {f"datasets/{name}.jsonl": lines, f"datasets/{name}.yaml": [yaml.safe_dump(facts)]}


def _new_model(name: str, settings: Mapping[str, Any]) -> dict[str, Iterable[str]]:
    limits = {"max_tokens": NO_LIMIT, "context_tokens": NO_LIMIT}  # where the log states none
    facts = {
        "name": name,
        "engine": "openai",
        "prompt_style": "paper",
        "sampling": limits | dict(settings),
        "notes": "Known from an imported log. A limit of 1048576 tokens stands for one that is "
        "not stated.",
    }
    return {f"models/{name}.yaml": [yaml.safe_dump(facts)]}


def _find_questions(
    items: pd.DataFrame, questions: Sequence[Question], dataset: str
) -> dict[str, str]:
    """Find each question of a file by its id or else by its text, and compare their answers;
    return the ids of the data set by those of the file.
    """
    by_id = {one.id: one for one in questions}
    by_text = {one.text: one for one in questions}
    ids = {}
    rows: Any = items.itertuples()
    for item in rows:
        name = item.Index
        question = by_id.get(name) or by_text.get(item.question.strip())
        if question is None:
            raise _no_such_question(
                name, f"is not in {dataset}, whose ids look like {questions[0].id!r}"
            )
        text, right = " ".join(item.question.split()), " ".join(question.text.split())
        same_text = item.question == name or text in right or right in text
        if not (same_text and _is_right(item.gold, question.answer)):
            raise _no_such_question(
                name,
                f"is {text!r} with the answer {item.gold!r}, in {dataset} {right!r} with the "
                f"answer {question.answer.gold!r}",
            )
        ids[name] = question.id
    return ids


def _is_right(gold: str, answer: Answer) -> bool:
    """Say whether the answer that a file states is one of a question's, or none is stated."""
    if gold in (NOT_STATED, answer.gold, *answer.aliases):
        return True
    return grade(gold, answer).verdict != "incorrect"


def _no_such_question(name: str, problem: str) -> InputError:
    return InputError(
        f"question {sanitize(name, 80)!r} of the file {sanitize(problem)}; is this the right "
        "--dataset? To import new questions give them another name"
    )
