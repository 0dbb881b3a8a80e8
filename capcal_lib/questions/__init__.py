"""Questions and their answers; load a data set."""

import csv
import gzip
import hashlib
import json
import logging
import random
import re
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain, takewhile
from pathlib import Path
from string import ascii_uppercase
from typing import IO, Any, Final, get_args

from capcal_lib.errors import InputError, not_installed, unknown
from capcal_lib.manifests import (
    Columns,
    Dataset,
    Kind,
    Selection,
    Split,
    data_dir,
    load_dataset,
    use_cache_without_hub,
)

__all__ = [
    "FORMATS",
    "LETTERS",
    "NOT_STATED",
    "Answer",
    "Question",
    "at_hand",
    "check_questions",
    "field_of",
    "load_questions",
    "load_split",
    "planned_rows",
    "questions_digest",
    "rank_questions",
    "stream_rows",
    "subjects_of",
    "subset",
    "with_options",
]

LETTERS: Final = ascii_uppercase  # of options
NOT_STATED = "(not stated)"  # the answer to an imported question, where verdicts came instead
GPQA_SEED = 42
SUBSET_SEED = 42
LINE = 1 << 26
FILE = 1 << 32  # characters of a file of rows
TEXTS = (".csv", ".csv.gz", ".tsv", ".txt")
FORMATS = (".jsonl", ".jsonl.gz", ".json", *TEXTS, ".parquet")


@dataclass(frozen=True, slots=True)
class Answer:
    """The right answer to a question and how answers to it are compared.

    ``math`` is a LaTeX expression, ``number`` a number, ``choice`` the letter of an option, with
    its full text as an alias, ``short`` a name or phrase. An unknown kind and an empty gold answer
    are refused.

    >>> Answer(kind="short", gold="Paris", aliases=("City of Light",)).gold
    'Paris'
    """

    kind: Kind
    gold: str
    aliases: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise unknown("answer kind", self.kind, get_args(Kind))
        if not isinstance(self.gold, str) or not self.gold.strip():
            raise InputError(f"the gold answer must be a text that is not empty; got {self.gold!r}")


@dataclass(frozen=True, slots=True)
class Question:
    """One question, under an id that it keeps from sampling to the last figure."""

    id: str
    text: str  # as it is asked, options included
    answer: Answer
    subject: str = ""
    options: int = 0  # how many lettered options the text has


def with_options(text: str, options: Sequence[str]) -> str:
    r"""Put lettered options under a question, one a line, 26 at most.

    >>> with_options("Which is even?", ["1", "2"])
    'Which is even?\nA. 1\nB. 2'
    """
    if not 2 <= len(options) <= len(LETTERS):
        raise InputError(f"{len(options)} options; a question has 2 to {len(LETTERS)}")
    lines = [
        f"{letter}. {option.strip()}" for letter, option in zip(LETTERS, options, strict=False)
    ]
    return "\n".join([text.strip(), *lines])


def _choice(
    question_id: str, text: str, options: Sequence[str], letter: str, subject: str
) -> Question:
    right = options[LETTERS[: len(options)].index(letter)]
    return Question(
        id=question_id,
        text=with_options(text, options),
        answer=Answer("choice", letter, (right,)),
        subject=subject,
        options=len(options),
    )


# A row, local or from the hub, its split and its position there give a question (None: left out).
# One function each for the sets whose rows need more than naming their columns.
Row = dict[str, Any]
Reader = Callable[[Row, str, int], Question | None]


def _unwrapped(text: str) -> str:
    """Undo the CSV quoting that some TriviaQA questions carry: quotes around, quotes inside
    doubled.
    """
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] == '"' and '"' not in text[1:-1].replace('""', ""):
        text = text[1:-1].replace('""', '"').strip()
    return text


def _triviaqa(row: Row, split: str, position: int) -> Question:
    # The local copies have no canonical value: their first alias stands for it.
    accepted = (
        row["aliases"] if "aliases" in row else [row["answer"]["value"], *row["answer"]["aliases"]]
    )
    gold, *aliases = dict.fromkeys(alias.strip() for alias in accepted if alias.strip())
    # The local training questions are a part of the hub's, so a row's position would not identify
    # one.
    question_id = (
        row.get("id") or f"triviaqa/{split}/{row['question_id'] if split == 'train' else position}"
    )
    return Question(question_id, _unwrapped(row["question"]), Answer("short", gold, tuple(aliases)))


def _simpleqa(row: Row, split: str, position: int) -> Question:  # noqa: ARG001
    answer = Answer("short", row["answer"].strip())
    if "problem" not in row:
        return Question(
            id=row["id"],
            text=row["question"].strip(),
            answer=answer,
            subject=row["topic"],
        )
    # On the hub the topic stands in a text that looks like a Python dictionary.
    topic = re.search(r"'topic': '([^']*)'", str(row["metadata"]))
    return Question(
        id=f"simpleqa/{position}",
        text=row["problem"].strip(),
        answer=answer,
        subject=topic[1] if topic else "",
    )


def _gsm8k(row: Row, split: str, position: int) -> Question:
    _, found, gold = row["answer"].rpartition("####")
    if not found:
        raise ValueError("no #### before the final answer")
    question_id = row.get("id") or f"gsm8k/{split}/{position}"
    return Question(question_id, row["question"].strip(), Answer("number", gold.strip()))


def _math(row: Row, split: str, position: int) -> Question | None:
    if not row[
        "answer"
    ].strip():  # two of the training problems; the paper's sets have 11,998 of 12,000 as well
        return None
    # The hub's training questions carry no id.
    question_id = f"math/{row.get('unique_id') or f'{split}/row-{position}'}"
    return Question(
        id=question_id,
        text=row["problem"].strip(),
        answer=Answer("math", row["answer"].strip()),
        subject=row["subject"],
    )


def _aime25(row: Row, split: str, position: int) -> Question:  # noqa: ARG001
    if "url" in row:
        return Question(row["id"], row["question"].strip(), Answer("number", row["answer"].strip()))
    paper, number = divmod(
        position, 15
    )  # on the hub all of the first paper, then all of the second
    # One answer carries a degree sign there; the exam asks for the integer.
    gold = re.sub(r"[^0-9]", "", str(row["answer"]))
    return Question(
        f"aime2025/{'I' * (paper + 1)}-{number + 1}", row["problem"].strip(), Answer("number", gold)
    )


def _mmlu(row: Row, split: str, position: int) -> Question:
    letter = row["answer"] if isinstance(row["answer"], str) else LETTERS[row["answer"]]
    options = [str(option).strip() for option in row["choices"]]
    question_id = row.get("id") or f"mmlu/{split}/{row['subject']}/{position}"
    return _choice(question_id, row["question"], options, letter, row["subject"])


def _gpqa(row: Row, split: str, position: int) -> Question:  # noqa: ARG001
    # The options have no fixed order. This one is that of the authors' code, by the row's number.
    options = [
        row[name].strip()
        for name in ("Correct Answer", *(f"Incorrect Answer {i}" for i in (1, 2, 3)))
    ]
    order = list(range(4))
    random.Random(GPQA_SEED + position).shuffle(order)
    shuffled = [options[index] for index in order]
    letter = LETTERS[order.index(0)]
    return _choice(f"gpqa/{row['Record ID']}", row["Question"], shuffled, letter, row["Subdomain"])


_READERS: dict[str, Reader] = {
    "aime25": _aime25,
    "gpqa": _gpqa,
    "later-gpqa": _gpqa,
    "gsm8k": _gsm8k,
    "math500": _math,
    "mmlu": _mmlu,
    "simpleqa": _simpleqa,
    "triviaqa": _triviaqa,
}


# Any other set: its manifest maps the columns.


def _by_columns(manifest: Dataset, row: Row, split: str, position: int) -> Question:
    columns = manifest.columns or Columns()
    kind = row["kind"] if manifest.builtin else manifest.kind
    question_id = _optional(row, columns.id, "id")
    question_id = (
        f"{manifest.name}/{split}/{position}" if question_id is None else _text(question_id)
    )
    text = _text(field_of(row, columns.question))
    subject = _text(_optional(row, columns.subject, "subject") or "")
    answer = field_of(row, columns.answer)
    options, labels = _options(row, columns)
    if kind == "choice" and options:
        letter = _letter(answer, options, labels)
        return _choice(question_id, text, options, letter, subject)
    if options:
        raise ValueError(f"it has choices, but the manifest says kind: {kind}")
    also = _listed(_optional(row, columns.aliases, "aliases"))
    gold, *aliases = dict.fromkeys(filter(None, map(_text, [*_listed(answer), *also]))) or [""]
    return Question(
        id=question_id,
        text=text,
        answer=Answer(kind, gold, tuple(aliases)),
        subject=subject,
    )


def field_of(row: Row, name: str) -> Any:
    """Take a column, or where there is none of that name a field inside one: ``answer.value``."""
    value: Any = row
    for part in [name] if name in row else name.split("."):
        value = value[part]
    return value


def _optional(row: Row, named: str | None, usual: str) -> Any:
    if named is None:
        return row.get(usual)
    return field_of(row, named)


def _text(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"{value!r} is neither a text nor a number")
    return str(value).strip()


def _listed(value: Any) -> list[Any]:
    """Take a list as it is, or a list of texts as JSON in a text (``[-2, 7]`` is an interval), or a
    single value; nothing where there is none.
    """
    if isinstance(value, str) and re.match(r'\s*\[\s*["\]]', value):
        with suppress(ValueError):
            value = json.loads(value)
    if value in (None, ""):
        return []
    return value if isinstance(value, list) else [value]


def _options(row: Row, columns: Columns) -> tuple[list[str], list[str]]:
    """Return the options of a row, and the labels that it gives them, such as 1 to 4 in ARC."""
    if isinstance(columns.choices, tuple):  # a column each; the last ones may be empty
        cells = [field_of(row, name) for name in columns.choices]
        options = [_text(cell) for cell in takewhile(lambda cell: cell not in (None, ""), cells)]
        if any(cell not in (None, "") for cell in cells[len(options) :]):
            raise ValueError("an option is empty")
        return options, []
    named = columns.choices.removesuffix(".text") if columns.choices else None
    choices = _optional(row, named, "choices")
    if isinstance(choices, str) and choices.lstrip().startswith("["):
        choices = json.loads(choices)
    if isinstance(choices, list) and all(isinstance(choice, dict) for choice in choices):
        choices = {key: [choice[key] for choice in choices] for key in ("text", "label")}
    labels = choices.get("label", []) if isinstance(choices, dict) else []
    options = choices["text"] if isinstance(choices, dict) else choices
    return [_text(option) for option in _listed(options)], [str(label).strip() for label in labels]


def _letter(answer: Any, options: Sequence[str], labels: Sequence[str]) -> str:
    """Read the right option: its label, its text, its letter, or its number from 0."""
    name = _text(answer)
    if labels:
        return LETTERS[labels.index(name)]
    letter = name.upper() if len(name) == 1 and name.upper() in LETTERS[: len(options)] else None
    if isinstance(answer, str) and options.count(name) == 1:
        if letter not in (None, LETTERS[options.index(name)]):
            raise ValueError(
                f"the answer {name!r} is the letter of one option and the text of another"
            )
        return LETTERS[options.index(name)]
    if letter:
        return letter
    if name.isdecimal() and int(name) < len(options):
        return LETTERS[int(name)]
    raise ValueError(
        f"the answer {name!r} is neither an option's text nor its letter nor its number from 0"
    )


def load_questions(
    dataset: str, split: str | None = None, *, limit: int | None = None
) -> tuple[Question, ...]:
    """Load the questions of a data set, in its own order; a random ``subset`` of the size
    ``limit``, if one is given.

    Files that a manifest names are read where they lie. Others are read from the folder
    ``CAPCAL_DATA_DIR`` where that is set, and otherwise through the ``datasets`` library from the
    hub. Without a split the evaluated one is taken. An InputError says what is wrong: an unknown
    name, a limit below 1, a missing or corrupt file, a hub out of reach, a malformed row, an empty
    split, an id that appears twice, or other questions than the manifest pins.

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
    split = manifest.evaluation_split if split is None else split
    entry = _entry(manifest, split)
    source, provenance, rows = _rows(manifest, split)
    questions: dict[str, Question] = {}
    subjects: Counter[str] = Counter()
    by_columns = manifest.model_copy(update={"columns": entry.columns or manifest.columns})
    read: Reader = _READERS.get(dataset, partial(_by_columns, by_columns))
    if entry.number:
        rows = ({entry.number: number} | row for number, row in enumerate(rows))
    others = entry.select.without if entry.select else ()
    left_out = {one.id for other in others for one in load_questions(dataset, other)}
    for number, row in enumerate(rows if entry.select is None else _selected(rows, entry.select)):
        where = f"{source}, row {number}"
        subject = row.get("subject", "") if dataset == "mmlu" else ""
        try:
            question = read(
                row, split, subjects[subject]
            )  # rows of MMLU are numbered within their subject
            subjects[subject] += 1
        except KeyError as error:
            there = ", ".join(map(str, row))[:200]
            raise InputError(
                f"{where}: no column {error}; this is not {manifest.title} as expected, it has "
                f"{there}"
            ) from None
        except (AttributeError, IndexError, TypeError, ValueError) as error:
            raise InputError(f"{where}: malformed ({error})") from None
        if question is None or question.id in left_out:
            continue
        if question.id in questions:
            raise InputError(
                f"{where}: the id {question.id!r} appears twice; every question needs its own"
            )
        if not question.text:
            raise InputError(f"{where}: the question is empty")
        questions[question.id] = question
    if not questions:
        raise InputError(f"{source}: no questions; expected {entry.rows or 'some'}")
    found = tuple(questions.values())
    if difference := _difference(entry, found):
        raise InputError(
            f"{source}: not the questions of {manifest.title} ({split}) that its manifest pins: "
            f"{difference}; "
            "take the pinned copy, or give yours a manifest of its own"
        )
    return found, provenance


def subset(questions: Sequence[Question], limit: int) -> tuple[Question, ...]:
    """Take a random subset of questions, in their own order: the same one whoever asks, and a part
    of every larger one.

    Each question's rank is the SHA-256 of ``SUBSET_SEED`` and its id, and the lowest ranks are
    taken. The choice thus depends neither on the order of the rows, nor on the model, k or seed of
    a run.

    >>> questions = load_questions("mini-capitals")
    >>> few, more = subset(questions, 2), subset(questions, 3)
    >>> [question.id for question in few], set(few) < set(more)
    (['mini-capitals/test/capital-of-belize', 'mini-capitals/test/continent-of-jamaica'], True)
    """
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise InputError(
            f"limit must be a whole number of at least 1, or None for all questions; got {limit!r}"
        )
    taken = {question.id for question in rank_questions(questions)[:limit]}
    return tuple(question for question in questions if question.id in taken)


def rank_questions(questions: Iterable[Question]) -> list[Question]:
    """Sort questions in the order in which ``subset`` takes them."""
    return sorted(
        questions,
        key=lambda question: hashlib.sha256(f"{SUBSET_SEED} {question.id}".encode()).digest(),
    )


def at_hand(dataset: str, split: str) -> bool:
    """Say whether a split can be read with no download, from a file on this machine."""
    path = _path(_entry(load_dataset(dataset), split))
    return path is not None and path.is_file()


def planned_rows(dataset: str, split: str) -> int:
    """Return how many questions a split has, by its manifest: as on the hub, unless a copy is used.

    Where the manifest leaves it open, the questions are loaded and counted.

    >>> planned_rows("triviaqa-1000", "train"), planned_rows("mini-exam", "test")
    (76523, 102)
    """
    entry = _entry(load_dataset(dataset), split)
    rows = entry.rows if _path(entry) else entry.hub_rows or entry.rows
    return rows or len(load_questions(dataset, split))


def subjects_of(dataset: str, split: str, question_ids: Iterable[str]) -> list[str] | None:
    """Return the subject of each question of a clustered data set, which intervals draw whole; else
    None.

    The sets of the paper carry it in their ids; of a user's own the questions are loaded.

    >>> subjects_of("mmlu", "validation", ["mmlu/validation/anatomy/0"])
    ['anatomy']
    """
    if not load_dataset(dataset).clustered:
        return None
    if dataset in _READERS:
        return [name.split("/")[-2] for name in question_ids]
    subjects = {question.id: question.subject for question in load_questions(dataset, split)}
    return [subjects[name] for name in question_ids]


def questions_digest(questions: Iterable[Question]) -> str:
    """Return the SHA-256 of texts, kinds and right answers, in order; aliases in any order.

    >>> question = Question("q", "What is 6 × 7?", Answer("number", "42"))
    >>> questions_digest([question])[:8], questions_digest([question, question])[:8]
    ('646cc86b', '06799dcb')
    """
    pairs = ((question.text, question.answer) for question in questions)
    content = [[text, answer.kind, answer.gold, sorted(answer.aliases)] for text, answer in pairs]
    canonical = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()


def check_questions(dataset: str, split: str, questions: Sequence[Question]) -> str:
    """Compare all questions of a split with its manifest: ``"matches"``, what differs, or that
    nothing is pinned.

    >>> check_questions("mini-capitals", "test", load_questions("mini-capitals", "test"))
    'matches'
    """
    entry = _entry(load_dataset(dataset), split)
    number = len(questions)
    if difference := _difference(entry, questions):
        return difference
    if number == entry.hub_rows != entry.rows:
        return f"{number} rows as on the hub, where no digest pins them"
    if entry.digest is None:
        pinned = " as in the manifest, which has no digest" if entry.rows else ", pinned by nothing"
        return f"{number} rows{pinned}"
    return "matches"


def _difference(entry: Split, questions: Sequence[Question]) -> str | None:
    """Say how questions differ from what a manifest pins; None where they do not."""
    number = len(questions)
    if entry.hub_rows is not None and number == entry.hub_rows:
        return None
    if entry.rows not in (None, number):
        return f"{number} rows, the manifest has {entry.rows}"
    if entry.digest is None or (digest := questions_digest(questions)) == entry.digest:
        return None
    return f"digest {digest[:16]}, the manifest has {entry.digest[:16]}"


def _entry(manifest: Dataset, split: str) -> Split:
    if split not in manifest.splits:
        raise unknown(f"split of {manifest.name}", split, manifest.splits)
    return manifest.splits[split]


def _selected(rows: Iterable[Row], select: Selection) -> list[Row]:
    """Take the rows that a manifest selects, in their order."""
    dropped = select.drop.items()
    rows = [row for row in rows if not any(row[name] == value for name, value in dropped)]
    rows = list(rows)
    if select.unique is not None:
        first: dict[Any, Row] = {}
        for row in rows:
            first.setdefault(row[select.unique], row)
        rows = list(first.values())
    if select.sample is None:
        return rows
    if select.sample > len(rows):
        raise InputError(f"{len(rows)} rows are too few to select {select.sample} of them")
    return [
        rows[index]
        for index in sorted(random.Random(select.seed).sample(range(len(rows)), select.sample))
    ]


def _path(entry: Split) -> Path | None:
    """Return the file of a split: the user's own, or the copy that belongs into
    ``CAPCAL_DATA_DIR``.
    """
    if entry.file:
        return Path(entry.file)
    folder = data_dir()
    if folder and entry.local:
        return folder / entry.local
    return None


def _rows(manifest: Dataset, split: str) -> tuple[str, str, Iterable[Row]]:
    """Return where the rows come from, for messages and in words that hold on any machine, and the
    rows.
    """
    entry = manifest.splits[split]
    path = _path(manifest.splits[split])
    if path is None:
        if entry.hub is None:
            raise InputError(f"{manifest.name} {split}: {_ways(manifest, entry)}")
        rows = _hub_rows(manifest, entry)
        # The library names the folder of its cache after the commit that was loaded, or by a hash
        # for a local folder.
        files = getattr(rows, "cache_files", [])
        found = Path(files[0]["filename"]).parent.name if files else "unknown"
        return (
            f"{entry.hub}, {entry.hub_split}",
            f"{entry.hub}, revision {entry.revision or found}",
            rows,
        )
    if not path.is_file():
        raise InputError(
            f"{manifest.name} {split}: {path} does not exist; {_ways(manifest, entry)}"
        )
    place = (
        "built in"
        if manifest.builtin
        else path.name
        if entry.file
        else f"CAPCAL_DATA_DIR/{entry.local}"
    )
    return str(path), place, list(stream_rows(path))  # a corrupt file is told before a bad row


def _ways(manifest: Dataset, entry: Split) -> str:
    if entry.file:
        return "put it there, or name another in the manifest"
    online = "be online with the `datasets` library"
    if manifest.gated:
        return f"the set is gated: {online}, accept its terms at {entry.hub} on the hub and log in"
    folder = f"set CAPCAL_DATA_DIR to a folder with {entry.local}" if entry.local else ""
    if entry.hub is None:
        return folder
    return f"either {folder}, or leave it unset and {online}" if folder else online


def stream_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of a file by its name: JSONL, JSON (an array, or as pandas writes a table),
    parquet, else CSV, separated by commas, semicolons or tabs; ``-`` is CSV on standard input. An
    error names the row.
    """
    name = path.name.lower()
    number = 0
    if not name.endswith(FORMATS) and name != "-":
        raise InputError(f"{path}: not a file of rows; the formats are {', '.join(FORMATS)}")
    try:
        for row in _parquet(path) if name.endswith(".parquet") else _texts(path, name):
            if not isinstance(row, dict):
                raise ValueError("not a JSON object")
            yield row
            number += 1
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file") from None
    except (json.JSONDecodeError, RecursionError) as error:
        raise InputError(f"{path}, row {number}: not JSON: {error}") from None
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise InputError(
            f"{path}: corrupt after row {number}: {error}; copy the file again"
        ) from None
    except InputError:
        raise
    except (ValueError, csv.Error) as error:  # pyarrow's errors are ValueErrors too
        raise InputError(f"{path}, row {number}: {error}") from None


def _parquet(path: Path) -> Iterator[Row]:
    import pyarrow.parquet as pq

    with path.open("rb") as file:  # pyarrow takes no path that is not UTF-8
        for batch in pq.ParquetFile(file).iter_batches():
            yield from batch.to_pylist()


def _texts(path: Path, name: str) -> Iterator[Any]:
    opened = gzip.open if name.endswith(".gz") else open
    given: Any = nullcontext(sys.stdin)
    if name != "-":
        given = opened(path, "rt", encoding="utf-8-sig", newline="")
    with given as file:
        lines = _bounded(file)
        first = next(filter(str.strip, lines), "")
        rows = chain([first], lines)
        if name.endswith((*TEXTS, "-")):
            separator = max(",;\t", key=first.count)
            for row in csv.DictReader(
                rows, delimiter=separator, skipinitialspace=True, strict=True
            ):
                if None in row or None in row.values():
                    raise ValueError(
                        "it has more or fewer fields than the header; quote those that hold a comma"
                    )
                yield row
        elif name.endswith(".json") or first.lstrip().startswith("["):
            yield from _records(json.loads("".join(rows)))
        else:
            yield from map(json.loads, filter(str.strip, rows))


def _records(whole: Any) -> list[Any]:
    """Return the rows of a JSON text: those of an array, of a table in any of pandas' orientations,
    or the text as one row.
    """
    if not isinstance(whole, dict):
        return whole if isinstance(whole, list) else [whole]
    if {"columns", "data"} <= whole.keys():
        return [dict(zip(whole["columns"], row, strict=True)) for row in whole["data"]]
    if {"schema", "data"} <= whole.keys():
        return list(whole["data"])
    columns = list(whole.values())
    lists = [list(column) for column in columns if isinstance(column, dict | list)]
    if len(lists) < max(2, len(columns)) or {*map(len, lists)} != {len(lists[0]) or 1}:
        return [whole]
    if "question_id" in lists[0]:  # a row under each number
        return columns
    import pandas as pd  # slow to import

    return pd.DataFrame(whole, dtype=object).to_dict("records")


def _bounded(lines: IO[str]) -> Iterator[str]:
    """Yield lines as long as neither one of them nor all together are larger than a file of rows
    may be.
    """
    total = 0
    while line := lines.readline(LINE + 1):
        total += len(line)
        if len(line) > LINE or total > FILE:
            raise ValueError(f"more than {LINE >> 20} MiB in a line, or {FILE >> 30} GiB in all")
        yield line


def _hub_rows(manifest: Dataset, entry: Split) -> Iterable[Row]:
    use_cache_without_hub()
    try:
        from datasets import load_dataset as load_from_hub
    except ModuleNotFoundError as error:
        raise not_installed(error) from None
    try:
        logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # no line for every retry
        return load_from_hub(
            entry.hub, entry.config, split=entry.hub_split, revision=entry.revision
        )
    except (
        Exception
    ) as error:  # the library raises dozens of kinds of its own and of its HTTP client's
        reason = " ".join(str(error).split())[:200]
        said = f"{entry.hub} could not be loaded ({reason})"
        raise InputError(f"{manifest.name}: {said}; {_ways(manifest, entry)}") from None
