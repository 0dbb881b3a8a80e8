"""Questions and their answers; load a data set."""

import hashlib
import json
import logging
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from string import ascii_uppercase
from typing import Any, Final, get_args

from capcal_lib.errors import InputError, check_known, not_installed
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
from capcal_lib.metrics.validation import check_int
from capcal_lib.rows import Row, field_of, stream_rows
from capcal_lib.text import sanitize

__all__ = [
    "LETTERS",
    "NOT_STATED",
    "Answer",
    "Question",
    "at_hand",
    "check_questions",
    "digest_of",
    "load_questions",
    "load_split",
    "planned_rows",
    "questions_digest",
    "rank_questions",
    "subjects_of",
    "subset",
    "with_options",
]

LETTERS: Final = ascii_uppercase  # of options
NOT_STATED = "(not stated)"  # the answer to an imported question, where verdicts came instead
GPQA_SEED = 42
SUBSET_SEED = 42


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
        check_known("answer kind", self.kind, get_args(Kind))
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


# What a row, local or from the hub, is in the usual columns, by its split and its position there.
# One function each for the sets whose rows need more than naming their columns.
Reader = Callable[[Row, str, int], Row]


def _triviaqa(row: Row, split: str, position: int) -> Row:  # noqa: ARG001
    text = row["question"].strip()
    # Some carry the quoting of CSV: quotes around, quotes inside doubled.
    if quoted := re.fullmatch(r'"((?:[^"]|"")+)"', text):
        text = quoted[1].replace('""', '"')
    # The local copies have no canonical value: their first alias stands for it. Their training
    # questions are a part of the hub's, so a row's position would not identify one.
    accepted = row.get("aliases") or [row["answer"]["value"], *row["answer"]["aliases"]]
    name = row.get("id")
    if name is None and split == "train":
        name = f"triviaqa/train/{row['question_id']}"
    return {"id": name, "question": text, "answer": accepted}


def _simpleqa(row: Row, split: str, position: int) -> Row:  # noqa: ARG001
    if "problem" not in row:
        return row | {"subject": row["topic"]}
    # On the hub the topic stands in a text that looks like a Python dictionary.
    topic = re.search(r"'topic': '([^']*)'", str(row["metadata"]))
    subject = topic[1] if topic else ""
    return row | {"id": f"simpleqa/{position}", "question": row["problem"], "subject": subject}


def _gsm8k(row: Row, split: str, position: int) -> Row:  # noqa: ARG001
    _, mark, gold = row["answer"].rpartition("####")
    if not mark:
        raise ValueError("no #### before the final answer")
    return row | {"answer": gold}


def _math(row: Row, split: str, position: int) -> Row:
    name = row.get("unique_id") or f"{split}/row-{position}"  # of training questions on the hub
    return row | {"id": f"math/{name}", "question": row["problem"]}


def _aime25(row: Row, split: str, position: int) -> Row:  # noqa: ARG001
    if "url" in row:
        return row
    paper, number = divmod(
        position, 15
    )  # on the hub all of the first paper, then all of the second
    # One answer carries a degree sign there; the exam asks for the integer.
    gold = re.sub(r"[^0-9]", "", str(row["answer"]))
    name = f"aime2025/{'I' * (paper + 1)}-{number + 1}"
    return {"id": name, "question": row["problem"], "answer": gold}


def _mmlu(row: Row, split: str, position: int) -> Row:
    place = LETTERS.index(row["answer"]) if isinstance(row["answer"], str) else row["answer"]
    name = row.get("id") or f"mmlu/{split}/{row['subject']}/{position}"
    return row | {"id": name, "answer": place}


def _gpqa(row: Row, split: str, position: int) -> Row:  # noqa: ARG001
    # The options have no fixed order. This one is that of the authors' code, by the row's number.
    names = ["Correct Answer", *(f"Incorrect Answer {i}" for i in (1, 2, 3))]
    random.Random(GPQA_SEED + position).shuffle(names)
    return {
        "id": f"gpqa/{row['Record ID']}",
        "question": row["Question"],
        "answer": names.index("Correct Answer"),
        "choices": [row[name] for name in names],
        "subject": row["Subdomain"],
    }


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


def _question(manifest: Dataset, columns: Columns, row: Row, usual_id: str) -> Question:
    """Make a question of a row, from the columns that a manifest names, or else the usual ones."""
    kind = row["kind"] if manifest.builtin else manifest.kind
    name, subject, also = (
        row.get(usual) if (named := getattr(columns, usual)) is None else field_of(row, named)
        for usual in ("id", "subject", "aliases")
    )
    text = _text(field_of(row, columns.question))
    answer = field_of(row, columns.answer)
    options, labels = _options(row, columns.choices)
    if not all([text, *options]):
        raise ValueError("the question or an option is empty")
    if options and kind != "choice":
        raise ValueError(f"it has choices, but the manifest says kind: {kind}")
    if options:
        place = _place(answer, options, labels)
        text = with_options(text, options)
        golds = [LETTERS[place], options[place]]
    else:
        golds = [_text(one) for one in [*_listed(answer), *_listed(also)]]
    gold, *aliases = dict.fromkeys(filter(None, golds)) or [""]
    return Question(
        id=usual_id if name is None else _text(name),
        text=text,
        answer=Answer(kind, gold, tuple(aliases)),
        subject=_text(subject or ""),
        options=len(options),
    )


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


def _options(row: Row, named: str | tuple[str, ...] | None) -> tuple[list[str], list[str]]:
    """Return the texts of a row's options, and what they are called there, such as 1 to 4 in
    ARC.
    """
    if isinstance(named, tuple):  # a column each; the last ones may be empty
        choices: Any = [field_of(row, name) for name in named]
        while choices and choices[-1] in (None, ""):
            choices.pop()
    else:
        choices = field_of(row, named.removesuffix(".text")) if named else row.get("choices")
    if isinstance(choices, dict):
        return [*map(_text, choices["text"])], [*map(_text, choices["label"])]
    return [*map(_text, _listed(choices))], []


def _place(answer: Any, options: list[str], labels: list[str]) -> int:
    """Return the place of the right option: by its label, its text, its letter, or its number."""
    name = _text(answer)
    if labels:
        return labels.index(name)
    places = []
    if isinstance(answer, str):
        named = enumerate(zip(LETTERS, options, strict=False))
        places = [place for place, names in named if name in names or name.upper() == names[0]]
    if not places and name.isdecimal():
        places = [int(name)]
    if len(places) != 1 or places[0] >= len(options):
        raise ValueError(f"the answer {name!r} is not the text, letter or number of one option")
    return places[0]


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
    split = split or manifest.evaluation_split
    entry = _entry(manifest, split)
    columns = entry.columns or manifest.columns or Columns()
    select = entry.select or Selection()
    left_out = {one.id for other in select.without for one in load_questions(dataset, other)}
    source, rows = _rows(manifest, entry)
    if entry.number:
        rows = ({entry.number: number} | row for number, row in enumerate(rows))
    questions: dict[str, Question] = {}
    positions = Counter[str]()
    for number, row in enumerate(_selected(rows, select)):
        try:
            # Rows of MMLU are numbered within their subject.
            subject = row.get("subject", "") if dataset == "mmlu" else ""
            position = positions[subject]
            positions[subject] += 1
            usual = _READERS[dataset](row, split, position) if dataset in _READERS else row
            question = _question(manifest, columns, usual, f"{dataset}/{split}/{position}")
            if question.id in questions:
                raise ValueError(f"the id {question.id!r} appears twice")
        except KeyError as error:
            raise InputError(
                f"{source}, row {number}: no column {error}; this is not {manifest.title} as "
                f"expected, it has {', '.join(map(str, row))[:200]}"
            ) from None
        except (AttributeError, IndexError, TypeError, ValueError) as error:
            raise InputError(f"{source}, row {number}: malformed ({error})") from None
        if question.id not in left_out:
            questions[question.id] = question
    found = tuple(questions.values())
    fits, known = _compare(entry, found)
    if not fits:
        raise InputError(
            f"{source}: not the questions of {manifest.title} ({split}) that its manifest pins: "
            f"{known}; take the pinned copy, or give yours a manifest of its own"
        )
    return found, source


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
    few = {*rank_questions(questions)[: check_int("limit", limit, least=1)]}
    return tuple(question for question in questions if question in few)


def rank_questions(questions: Iterable[Question]) -> list[Question]:
    """Sort questions in the order in which ``subset`` takes them."""
    return sorted(
        questions,
        key=lambda question: hashlib.sha256(f"{SUBSET_SEED} {question.id}".encode()).digest(),
    )


def at_hand(dataset: str, split: str) -> bool:
    """Say whether a split can be read with no download, from a file on this machine."""
    path = _path(_entry(load_dataset(dataset), split))
    return bool(path and path.is_file())


def planned_rows(dataset: str, split: str, *, fetch: bool = True) -> int | None:
    """Return how many questions a split has, by its manifest: as on the hub, unless a copy is used.

    Where the manifest leaves it open, the questions are loaded and counted; without ``fetch`` only
    those that are on this machine, and None says that it is not known.

    >>> planned_rows("triviaqa-1000", "train"), planned_rows("mini-exam", "test")
    (76523, 102)
    """
    entry = _entry(load_dataset(dataset), split)
    rows = entry.rows if _path(entry) else entry.hub_rows or entry.rows
    if rows is None and (fetch or at_hand(dataset, split)):
        return len(load_questions(dataset, split))
    return rows


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
    return digest_of(content)


def digest_of(content: object) -> str:
    """Return the SHA-256 of what JSON can hold, whatever the order of its keys."""
    canonical = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()


def check_questions(dataset: str, split: str, questions: Sequence[Question]) -> str:
    """Compare all questions of a split with its manifest: ``"matches"``, what differs, or that
    nothing is pinned.

    >>> check_questions("mini-capitals", "test", load_questions("mini-capitals", "test"))
    'matches'
    """
    return _compare(_entry(load_dataset(dataset), split), questions)[1]


def _compare(entry: Split, questions: Sequence[Question]) -> tuple[bool, str]:
    """Tell whether questions may be those that a manifest pins, and in words."""
    number = len(questions)
    if not number:
        return False, "there are no questions"
    if number not in (entry.rows or number, entry.hub_rows):
        return False, f"{number} rows, the manifest has {entry.rows}"
    if entry.digest is None or number == entry.hub_rows:
        return True, f"{number} rows, pinned by no digest"
    digest = questions_digest(questions)
    if digest == entry.digest:
        return True, "matches"
    return False, f"digest {digest[:16]}, the manifest has {entry.digest[:16]}"


def _entry(manifest: Dataset, split: str) -> Split:
    check_known(f"split of {manifest.name}", split, manifest.splits)
    return manifest.splits[split]


def _selected(rows: Iterable[Row], select: Selection) -> Iterable[Row]:
    """Take the rows that a manifest selects, in their order."""
    rows = (row for row in rows if select.drop.items().isdisjoint(row.items()))
    if select.unique:
        first: dict[Any, Row] = {}
        for row in rows:
            first.setdefault(row[select.unique], row)
        rows = first.values()
    if select.sample is None:
        return rows
    rows = list(rows)
    if select.sample > len(rows):
        raise InputError(f"{len(rows)} rows are too few to select {select.sample} of them")
    places = random.Random(select.seed).sample(range(len(rows)), select.sample)
    return [rows[place] for place in sorted(places)]


def _path(entry: Split) -> Path | None:
    """Return the file of a split: the user's own, or the copy that belongs into
    ``CAPCAL_DATA_DIR``.
    """
    if entry.file:
        return Path(entry.file)
    folder = data_dir()
    return folder / entry.local if folder and entry.local else None


def _rows(manifest: Dataset, entry: Split) -> tuple[str, Iterable[Row]]:
    """Return where the rows of a split come from, in words that hold on any machine, and the
    rows.
    """
    path = _path(entry)
    if path and path.is_file():
        place = path.name if entry.file else f"CAPCAL_DATA_DIR/{entry.local}"
        rows = list(stream_rows(path))  # a corrupt file is told before a bad row
        return "built in" if manifest.builtin else place, rows
    if entry.file:
        raise InputError(f"{path} does not exist; put it there, or name another in the manifest")
    online = "be online with the `datasets` library"
    if manifest.gated:
        online += f", accept the terms of {entry.hub} on the hub and log in"
    if entry.local:
        copy = f"set CAPCAL_DATA_DIR to a folder with {entry.local}"
        online = f"{copy}, or leave it unset and {online}"
    if path:
        raise InputError(f"{path} does not exist; {online}")
    use_cache_without_hub()
    try:
        from datasets import load_dataset as load_from_hub

        logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # no line for every retry
        how = {"split": entry.hub_split, "revision": entry.revision}
        loaded = load_from_hub(entry.hub, entry.config, **how)
    except ModuleNotFoundError as error:
        raise not_installed(error) from None
    except Exception as error:  # of the library and of its HTTP client there are dozens of kinds
        why = sanitize(error, 200)
        raise InputError(f"{entry.hub} could not be loaded ({why}); {online}") from None
    # The library names the folder of its cache after the commit that was loaded, or by a hash
    # for a local folder.
    files = [Path(one["filename"]).parent.name for one in loaded.cache_files] or ["unknown"]
    return f"{entry.hub}, revision {entry.revision or files[0]}", loaded
