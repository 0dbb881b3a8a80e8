"""Load the questions of a data set, from its file or from the hub, or the same random subset of
them for everybody.
"""

import hashlib
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from capcal_lib.disk import is_file
from capcal_lib.errors import InputError, check_known, naming_extra
from capcal_lib.manifests import (
    Columns,
    Dataset,
    Selection,
    Split,
    load_dataset,
    use_cache_without_hub,
)
from capcal_lib.metrics.validation import check_int
from capcal_lib.places import data_dir
from capcal_lib.questions.columns import make_question
from capcal_lib.questions.question import Question, questions_digest
from capcal_lib.questions.readers import READERS
from capcal_lib.rows import Row, stream_rows
from capcal_lib.text import sanitize

SUBSET_SEED = 42


def load_questions(
    dataset: str, split: str | None = None, *, limit: int | None = None
) -> tuple[Question, ...]:
    """Load the questions of a data set, in its own order; with ``limit``, a random ``subset`` of
    that size.

    If the manifest names a file, it is read. Other data sets are read from the folder
    ``CAPCAL_DATA_DIR`` if that is set, else from the hub through the ``datasets`` library. The
    default split is the evaluation split. `InputError` for an unknown name, a limit below 1, a
    missing or corrupt file, a hub out of reach, a malformed row, an empty split, an id that appears
    twice, or other questions than the manifest pins.

    >>> load_questions("mini-capitals", limit=140)[0].text
    'What is the capital of Afghanistan?'
    """
    questions, _ = load_split(dataset, split)
    return questions if limit is None else subset(questions, limit)


def load_split(dataset: str, split: str | None = None) -> tuple[tuple[Question, ...], str]:
    """Load all questions of a split, and say where they came from: the file, or the repository and
    its revision.
    """
    manifest = load_dataset(dataset)
    split = split or manifest.evaluation_split
    entry = _split_of(manifest, split)
    columns = entry.columns or manifest.columns or Columns()
    select = entry.select or Selection()
    left_out = {one.id for other in select.without for one in load_questions(dataset, other)}
    source, rows = _read_rows(manifest, entry)
    if entry.number:
        rows = ({entry.number: number} | row for number, row in enumerate(rows))
    rows = _selected(rows, select)
    questions: dict[str, Question] = {}
    positions = Counter[str]()
    for number, row in enumerate(rows):
        try:
            # Rows of MMLU are numbered within their subject.
            subject = row.get("subject", "") if dataset == "mmlu" else ""
            position = positions[subject]
            positions[subject] += 1
            usual = READERS[dataset](row, split, position) if dataset in READERS else row
            question = make_question(manifest, columns, usual, f"{dataset}/{split}/{position}")
            if question.id in questions:
                raise ValueError(f"the id {question.id!r} appears twice")
        except (KeyError, AttributeError, IndexError, TypeError, ValueError) as error:
            what = f"malformed ({error})"
            if isinstance(error, KeyError):
                what = (
                    f"no column {error}, which {manifest.title} should have; found: "
                    f"{', '.join(map(str, row))[:200]}"
                )
            raise InputError(f"{source}, row {number}: {what}") from None
        if question.id not in left_out:
            questions[question.id] = question
    loaded = tuple(questions.values())
    if not loaded:
        raise InputError(f"{source}: no questions of {manifest.title} ({split}) in it; add some")
    fits, known = _compare(entry, loaded)
    if not fits:
        raise InputError(
            f"{source}: not the questions of {manifest.title} ({split}) that its manifest pins: "
            f"{known}; use the pinned copy, or write a manifest for yours"
        )
    return loaded, source


def subset(questions: Sequence[Question], limit: int) -> tuple[Question, ...]:
    """Take a random subset of questions, in their own order. It is always the same, and part of
    every larger subset.

    Each question's rank is the SHA-256 of ``SUBSET_SEED`` and its id, and the lowest ranks are
    taken. So the choice depends neither on the order of the rows, nor on the model, k or seed of a
    run.

    >>> from capcal_lib.questions import load_questions
    >>> questions = load_questions("mini-capitals")
    >>> few, more = subset(questions, 2), subset(questions, 3)
    >>> [question.id for question in few], set(few) < set(more)
    (['mini-capitals/test/capital-of-belize', 'mini-capitals/test/continent-of-jamaica'], True)
    """
    few = {*rank_questions(questions)[: check_int("limit", limit, least=1)]}
    return tuple(question for question in questions if question in few)


def rank_questions(questions: Iterable[Question]) -> list[Question]:
    """Sort questions in the order in which ``subset`` takes them."""
    return sorted(
        questions,
        key=lambda question: hashlib.sha256(f"{SUBSET_SEED} {question.id}".encode()).digest(),
    )


def at_hand(dataset: str, split: str) -> bool:
    """Return whether a split can be read from a file on this machine, without a download."""
    path = _path(_split_of(load_dataset(dataset), split))
    return bool(path and is_file(path))


def planned_rows(dataset: str, split: str, *, fetch: bool = True) -> int | None:
    """Return the number of questions of a split, according to its manifest: as on the hub, unless a
    copy is used.

    If the manifest does not say, the questions are loaded and counted; without ``fetch`` only if
    they are on this machine, else None.

    >>> planned_rows("triviaqa-1000", "train"), planned_rows("mini-exam", "test")
    (76523, 102)
    """
    entry = _split_of(load_dataset(dataset), split)
    rows = entry.rows if _path(entry) else entry.hub_rows or entry.rows
    if rows is None and (fetch or at_hand(dataset, split)):
        return len(load_questions(dataset, split))
    return rows


def subjects_of(dataset: str, split: str, question_ids: Iterable[str]) -> list[str] | None:
    """Return the subject of each question of a clustered data set, which intervals treat as a
    whole; None for other data sets.

    Data sets of the paper have the subject in their ids; for your own, the questions are loaded.

    >>> subjects_of("mmlu", "validation", ["mmlu/validation/anatomy/0"])
    ['anatomy']
    """
    if not load_dataset(dataset).clustered:
        return None
    if dataset in READERS:
        return [name.split("/")[-2] for name in question_ids]
    subjects = {question.id: question.subject for question in load_questions(dataset, split)}
    return [subjects[name] for name in question_ids]


def check_questions(dataset: str, split: str, questions: Sequence[Question]) -> str:
    """Compare all questions of a split with its manifest: ``"matches"``, what differs, or that
    nothing is pinned.

    >>> check_questions("mini-capitals", "test", load_questions("mini-capitals", "test"))
    'matches'
    """
    return _compare(_split_of(load_dataset(dataset), split), questions)[1]


def _compare(entry: Split, questions: Sequence[Question]) -> tuple[bool, str]:
    """Tell whether questions may be those that a manifest pins, and in words."""
    number = len(questions)
    if number not in (entry.rows or number, entry.hub_rows):
        return False, f"{number} rows, the manifest has {entry.rows}"
    if entry.digest is None or number == entry.hub_rows:
        return True, f"{number} rows, pinned by no digest"
    digest = questions_digest(questions)
    if digest == entry.digest:
        return True, "matches"
    return False, f"digest {digest[:16]}, the manifest has {entry.digest[:16]}"


def _split_of(manifest: Dataset, split: str) -> Split:
    check_known(f"split of {manifest.name}", split, manifest.splits)
    return manifest.splits[split]


def _selected(rows: Iterable[Row], select: Selection) -> Iterator[Row]:
    """Take the rows that a manifest selects, in their order."""
    rows = (row for row in rows if select.drop.items().isdisjoint(row.items()))
    if select.unique:
        first: dict[Any, Row] = {}
        for row in rows:
            first.setdefault(row[select.unique], row)
        rows = first.values()
    if select.sample is None:
        return iter(rows)
    rows = list(rows)
    if select.sample > len(rows):
        raise InputError(
            f"the manifest selects {select.sample} rows, but only {len(rows)} are there; take fewer"
        )
    places = random.Random(select.seed).sample(range(len(rows)), select.sample)
    return iter([rows[place] for place in sorted(places)])


def _path(entry: Split) -> Path | None:
    """Return the file of a split: the user's own, or the copy that belongs into
    ``CAPCAL_DATA_DIR``.
    """
    if entry.file:
        return Path(entry.file)
    folder = data_dir()
    return folder / entry.local if folder and entry.local else None


def _read_rows(manifest: Dataset, entry: Split) -> tuple[str, Iterable[Row]]:
    """Return where the rows of a split come from, in words that hold on any machine, and the
    rows.
    """
    path = _path(entry)
    if path and is_file(path):
        rows = stream_rows(path)
        if manifest.builtin:
            return "built in", rows
        return path.name if entry.file else f"CAPCAL_DATA_DIR/{entry.local}", rows
    if entry.file:
        raise InputError(f"{path} does not exist; put it there, or change the manifest")
    if path:
        raise InputError(f"{path} does not exist; {_ways_to_get(manifest, entry)}")
    return _load_from_hub(manifest, entry)


def _ways_to_get(manifest: Dataset, entry: Split) -> str:
    """Say how to get a split that is not on this machine."""
    way = "be online with the `datasets` library"
    if manifest.gated:
        way += f", accept the terms of {entry.hub} on the hub and log in"
    if not entry.local:
        return way
    return f"set CAPCAL_DATA_DIR to a folder with {entry.local}, or leave it unset and {way}"


def _load_from_hub(manifest: Dataset, entry: Split) -> tuple[str, Iterable[Row]]:
    """Load the rows of a split through the ``datasets`` library, and say of which revision."""
    use_cache_without_hub()
    with naming_extra():
        from datasets import load_dataset as load_rows
    try:
        loaded = load_rows(entry.hub, entry.config, split=entry.hub_split, revision=entry.revision)
    except Exception as error:  # of the library and of its HTTP client there are dozens of kinds
        why = sanitize(error, 200)
        remedy = _ways_to_get(manifest, entry)
        raise InputError(f"{entry.hub} could not be loaded ({why}); {remedy}") from None
    # The library names the folder of its cache after the commit that was loaded, or by a hash
    # for a local folder.
    files = [Path(one["filename"]).parent.name for one in loaded.cache_files] or ["unknown"]
    return f"{entry.hub}, revision {entry.revision or files[0]}", loaded
