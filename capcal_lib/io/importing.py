"""Samples that exist already become a run."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from tempfile import TemporaryFile
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import yaml

from capcal_lib import manifests
from capcal_lib.disk import file_digest
from capcal_lib.errors import InputError
from capcal_lib.grading import grade
from capcal_lib.grading.unread import Unread, is_unread
from capcal_lib.grading.verdicts import write_verdicts
from capcal_lib.io import shelf
from capcal_lib.io.answers import kind_of
from capcal_lib.io.chat import LENGTH
from capcal_lib.io.samples import list_files, open_log, states_temperature
from capcal_lib.io.shelf import gather_rows
from capcal_lib.questions import (
    NOT_STATED,
    Answer,
    Question,
    check_questions,
    load_questions,
    questions_digest,
)
from capcal_lib.questions.question import LETTERS
from capcal_lib.runs.artifacts import GIVEN, VERDICTS
from capcal_lib.runs.run import IMPORTED, Identity, Record, Run
from capcal_lib.runs.store import (
    KEY,
    ROWS,
    SCHEMA,
    Present,
    Writer,
    add_keys,
    find_keys,
    hash_rows,
    open_writer,
    present_of,
    stream_samples,
)
from capcal_lib.text import sanitize

NO_LIMIT = 1 << 20  # of tokens, where a log has none
LAID = [*SCHEMA.names, "verdict", "extracted"]  # columns of a sample as a run has it


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

    Give all files of a run at once: samples without a number are numbered as they come, and tasks
    that share ids are told apart. A ``model`` or ``dataset`` without a manifest gets one in the
    user's folder, with the log's settings and questions; in a data set that is known each question
    is looked up by its id, or else by its text, and must have the same answer. ``kind`` is that of
    the answers of a new data set; None: see :func:`~capcal_lib.io.answers.kind_of`. The log's
    verdicts are taken, which nothing grades again, unless with ``regrade``; ``of_log`` are this and
    the other options of :func:`~capcal_lib.io.samples.open_log`. ``settings`` are of the
    sampling, such as ``temperature``, where the file does not say them or says them wrong.

    `InputError` for a file that cannot be read or has no samples, a question that the data set does
    not have or answers otherwise, an unknown temperature, and a sample that is there with other
    content. Nothing is written then."""
    is_known = model in manifests.model_names()
    needs_temperature = not is_known and "temperature" not in settings
    if needs_temperature and not states_temperature(files, of_log.get("columns", {})):
        raise InputError(
            f"the files do not say at which temperature {model!r} was sampled; say it: "
            "--temperature 0.7"
        )
    with open_log(files, **of_log) as log, TemporaryFile() as file:
        sampling: dict[str, Any] = log.settings | dict(settings)
        notes = log.notes
        facts: dict[str, Iterable[str]] = {}
        if dataset not in manifests.dataset_names():
            kind = kind or kind_of(log.items)
            notes.append(f"answers of {dataset}: {kind} (--kind names another)")
            facts |= _new_dataset(dataset, log.items, kind)
        if not is_known:
            facts |= _new_model(model, sampling)
        with manifests.new_manifests(facts) as made:
            split = split or manifests.load_dataset(dataset).evaluation_split
            sampled = manifests.load_model(model).for_dataset(dataset).with_settings(**sampling)
            questions = load_questions(dataset, split)
            record = _describe(sampled, dataset, split, questions, files)
            if not log.judged and any(one.answer.gold == NOT_STATED for one in questions):
                raise InputError(
                    "the files have neither answers nor verdicts; map a column: --column gold=NAME "
                    "or verdict=NAME, or name a --dataset that has the answers"
                )
            by_name = _find_questions(log.items, questions, dataset)
            del questions
            unread = Unread()
            places = []
            for samples in log.tables():
                table = _lay_out(samples, by_name, log.left_out)
                if log.judged:
                    silent = table["verdict"] == "no_answer"
                else:
                    answers = samples["question_id"].map(by_name).map(lambda one: one.answer)
                    pairs = zip(samples["response"], answers, strict=True)
                    silent = pd.Series([is_unread(*pair) for pair in pairs], samples.index)
                unread.add(table["response"], silent)
                places.append(shelf.put(file, table))
            del by_name

            def tables() -> Iterator[pd.DataFrame]:
                for place in places:
                    yield shelf.take(file, [place]).reindex(columns=LAID)

            with open_writer(store, record) as writer:
                run = writer.run
                _refuse_others(writer, tables())
                rows = new = 0
                for table in gather_rows(tables(), ROWS):
                    rows += len(table)
                    new += writer.adopt(table)
            if log.judged:
                notes += _keep_verdicts(run, tables)
            notes += unread.describe()
            notes = [f"wrote {path}" for path in made] + notes
    return Imported(run, new, rows - new, log.judged, notes)


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
            f"{sanitize(file.name)} (sha256 {file_digest(file)[:16]})" for file in list_files(files)
        ),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "capcal": version("capcal"),
        "questions": check_questions(dataset, split, questions),
    }
    return Record(identity=identity, made_with=made_with)


def _refuse_others(writer: Writer, tables: Iterable[pd.DataFrame]) -> None:
    """Refuse samples that a run has with other content; 64 bits of each row are compared."""
    if not writer.present:
        return
    known = np.concatenate([hash_rows(rows) for rows in stream_samples(writer.run)])
    for table in tables:
        rows = pa.Table.from_pandas(table, SCHEMA, preserve_index=False).to_pandas()
        present = np.array(find_keys(writer.present, rows))
        _refuse(
            rows[present & ~hash_rows(rows).isin(known)],
            f"is another in {writer.run}; nothing was written: import into another --store, or as "
            "another --model",
        )


def _refuse(rows: pd.DataFrame, what: str) -> None:
    """Refuse samples, naming the first."""
    if len(rows):
        question, index = rows[KEY].iloc[0]
        raise InputError(f"sample {index} of question {sanitize(question, 80)!r} {what}")


def _keep_verdicts(run: Run, tables: Callable[[], Iterator[pd.DataFrame]]) -> list[str]:
    """Keep the verdicts of a log, but where the run has some by the rules; say so then."""
    names: list[str] = []  # of the columns of those that it has
    if run.has(VERDICTS):
        with VERDICTS.open(run.path(VERDICTS)) as opened:
            names = opened.schema.names
            made = opened.schema.metadata
        if made[b"grader"] != GIVEN.encode():
            return [f"left out: the log's verdicts, since {run} was graded by the rules"]

    def verdicts() -> Iterator[pd.DataFrame]:
        written = Present()
        given = (
            table[[*KEY, "verdict", "extracted"]].assign(reason="given with the samples")
            for table in tables()
        )
        for rows in chain(run.batches(VERDICTS, names) if names else (), given):
            yield rows[add_keys(written, rows)]

    write_verdicts(run, verdicts(), present_of(verdicts()), GIVEN)
    return []


def _new_dataset(name: str, items: pd.DataFrame, kind: manifests.Kind) -> dict[str, Iterable[str]]:
    """Return the files that make the questions of a log a data set of its own, in subjects where
    each question has one.
    """
    items = items.copy()
    clustered = bool(items["subject"].ne("").all())
    if not clustered:
        items = items.drop(columns="subject")
    if kind == "choice":  # an option by its number, which no text of another one is
        named = zip(items["gold"], items["choices"], strict=True)
        items["gold"] = [LETTERS.index(gold) if options else gold for gold, options in named]
    else:
        items = items.drop(columns="choices")
    rows = items.rename(columns={"gold": "answer"}).rename_axis("id").reset_index()
    lines = (
        json.dumps(dict(zip(rows, row, strict=True))) + "\n"
        for row in rows.itertuples(index=False, name=None)
    )
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
) -> dict[str, Question]:
    """Find each question of a file by its id or else by its text, and compare their answers;
    return the questions by these names, and by their ids.
    """
    by_name = {one.id: one for one in questions}
    by_text: dict[str, Question] = {}
    for name, stated_text, gold, *_ in items.itertuples():
        question = by_name.get(name)
        if question is None:
            by_text = by_text or {one.text: one for one in questions}
            question = by_text.get(name) or by_text.get(stated_text.strip())
        if question is None:
            raise _no_such_question(
                name, f"is not in {dataset}, whose ids look like {questions[0].id!r}"
            )
        text = " ".join(stated_text.split())
        right_text = " ".join(question.text.split())
        same_text = stated_text == name or text in right_text or right_text in text
        if not (same_text and _is_right(gold, question.answer)):
            raise _no_such_question(
                name,
                f"is {text!r} with the answer {gold!r}, in {dataset} {right_text!r} with the "
                f"answer {question.answer.gold!r}",
            )
        by_name.setdefault(name, question)
    return by_name


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


def _lay_out(samples: pd.DataFrame, by_name: Mapping[str, Question], left_out: int) -> pd.DataFrame:
    """Lay samples out as a run has them, with their verdicts beside them.

    A sample keeps its number where others were ``left_out``, so that a file which has their
    responses adds them. `InputError` for samples that are there twice, or not numbered from 0 on,
    with more gaps than were left out."""
    ids = samples["question_id"].map(lambda name: by_name[name].id)
    cut = samples["finish_reason"].isin(LENGTH)
    table = samples.assign(
        question_id=ids,
        sample_index=samples["sample"].fillna(ids.groupby(ids).cumcount()).astype(int),
        reasoning=samples["reasoning"].replace("", None),
        finish_reason=cut.map({True: "length", False: "stop"}),
        prompt_tokens=samples["prompt_tokens"].fillna(0).astype(int),
        completion_tokens=samples["completion_tokens"].fillna(0).astype(int),
        extracted=samples["extracted"].map(str, na_action="ignore"),
    ).sort_values(KEY)
    sizes = table.groupby("question_id")["sample_index"].transform("size")
    _refuse(table[table.duplicated(KEY)], "is there twice; number them apart")
    _refuse(
        table[table["sample_index"] >= sizes + left_out],
        "is not numbered from 0 without gaps; leave out the column sample, and samples get numbers "
        "as they come",
    )
    return table
