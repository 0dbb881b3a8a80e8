"""Questions and their answers; load a data set."""

import gzip
import hashlib
import json
import logging
import random
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from capcal_lib.errors import InputError, unknown
from capcal_lib.manifests import Dataset, Kind, Split, data_dir, load_dataset
from capcal_lib.questions import builtin as mini

GPQA_SEED = 42  # the options of GPQA have no fixed order
SUBSET_SEED = 42
_LETTERS = "ABCD"


@dataclass(frozen=True, slots=True)
class Answer:
    """The right answer to a question and how answers to it are compared.

    Parameters
    ----------
    kind
        ``math`` (a LaTeX expression), ``number``, ``choice`` (a letter) or ``short`` (a name or phrase).
    gold
        The right answer; for ``choice`` the letter.
    aliases
        Further right answers; for ``choice`` the full text of the right option.

    Raises
    ------
    InputError
        For an unknown kind or an empty gold answer.

    Examples
    --------
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


def with_options(text: str, options: Sequence[str]) -> str:
    r"""Put lettered options under a question, one a line.

    >>> with_options("Which is even?", ["1", "2"])
    'Which is even?\nA. 1\nB. 2'
    """
    lines = [f"{letter}. {option.strip()}" for letter, option in zip(_LETTERS, options, strict=False)]
    return "\n".join([text.strip(), *lines])


# One reader a data set: a row, local or from the hub, and its position in the split, give a question (None: left out).
Row = dict[str, Any]


def _unwrapped(text: str) -> str:
    """Undo the CSV quoting that some TriviaQA questions carry: quotes around, quotes inside doubled."""
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] == '"' and '"' not in text[1:-1].replace('""', ""):
        text = text[1:-1].replace('""', '"').strip()
    return text


def _triviaqa(row: Row, split: str, position: int) -> Question:
    # The local copies have no canonical value: their first alias stands for it.
    accepted = row["aliases"] if "aliases" in row else [row["answer"]["value"], *row["answer"]["aliases"]]
    gold, *aliases = dict.fromkeys(alias.strip() for alias in accepted if alias.strip())
    # The local training questions are a part of the hub's, so a row's position would not identify one.
    question_id = row.get("id") or f"triviaqa/{split}/{row['question_id'] if split == 'train' else position}"
    return Question(question_id, _unwrapped(row["question"]), Answer("short", gold, tuple(aliases)))


def _simpleqa(row: Row, split: str, position: int) -> Question:  # noqa: ARG001
    if "problem" not in row:
        return Question(row["id"], row["question"].strip(), Answer("short", row["answer"].strip()), row["topic"])
    # On the hub the topic stands in a text that looks like a Python dictionary.
    topic = re.search(r"'topic': '([^']*)'", str(row["metadata"]))
    answer = Answer("short", row["answer"].strip())
    return Question(f"simpleqa/{position}", row["problem"].strip(), answer, topic[1] if topic else "")


def _gsm8k(row: Row, split: str, position: int) -> Question:
    _, found, gold = row["answer"].rpartition("####")
    if not found:
        raise ValueError("no #### before the final answer")
    return Question(
        row.get("id") or f"gsm8k/{split}/{position}", row["question"].strip(), Answer("number", gold.strip())
    )


def _math(row: Row, split: str, position: int) -> Question | None:
    if not row["answer"].strip():  # two of the training problems; the paper's sets have 11,998 of 12,000 as well
        return None
    # The hub's training questions carry no id.
    question_id = f"math/{row.get('unique_id') or f'{split}/row-{position}'}"
    return Question(question_id, row["problem"].strip(), Answer("math", row["answer"].strip()), row["subject"])


def _aime25(row: Row, split: str, position: int) -> Question:  # noqa: ARG001
    if "url" in row:
        return Question(row["id"], row["question"].strip(), Answer("number", row["answer"].strip()))
    paper, number = divmod(position, 15)  # on the hub all of the first paper, then all of the second
    # One answer carries a degree sign there; the exam asks for the integer.
    gold = re.sub(r"[^0-9]", "", str(row["answer"]))
    return Question(f"aime2025/{'I' * (paper + 1)}-{number + 1}", row["problem"].strip(), Answer("number", gold))


def _mmlu(row: Row, split: str, position: int) -> Question:
    letter = row["answer"] if isinstance(row["answer"], str) else _LETTERS[row["answer"]]
    options = [str(option).strip() for option in row["choices"]]
    answer = Answer("choice", letter, (options[_LETTERS.index(letter)],))
    question_id = f"mmlu/{split}/{row['subject']}/{position}"
    return Question(row.get("id") or question_id, with_options(row["question"], options), answer, row["subject"])


def _gpqa(row: Row, split: str, position: int) -> Question:  # noqa: ARG001
    right = row["Correct Answer"].strip()
    options = [right, *(row[f"Incorrect Answer {number}"].strip() for number in (1, 2, 3))]
    order = list(range(4))
    random.Random(f"{GPQA_SEED} {row['Record ID']}").shuffle(order)
    answer = Answer("choice", _LETTERS[order.index(0)], (right,))
    text = with_options(row["Question"], [options[index] for index in order])
    return Question(f"gpqa/{row['Record ID']}", text, answer, row["Subdomain"])


def _mini(row: Row, split: str, position: int) -> Question:  # noqa: ARG001
    options = row.get("choices")
    text = with_options(row["question"], options) if options else row["question"]
    aliases = (options[_LETTERS.index(row["answer"])],) if options else tuple(row["aliases"])
    return Question(row["id"], text, Answer(row["kind"], row["answer"], aliases), row["subject"])


_READERS: dict[str, Callable[[Row, str, int], Question | None]] = {
    "aime25": _aime25,
    "gpqa": _gpqa,
    "gsm8k": _gsm8k,
    "math500": _math,
    "mmlu": _mmlu,
    "simpleqa": _simpleqa,
    "triviaqa": _triviaqa,
}


def load_questions(dataset: str, split: str | None = None, *, limit: int | None = None) -> tuple[Question, ...]:
    """Load the questions of a data set, in its own order.

    The built-in sets are made on the spot. Others are read from the folder ``CAPCAL_DATA_DIR`` where that is set, and
    otherwise through the ``datasets`` library from the hub.

    Parameters
    ----------
    dataset
        One of ``capcal datasets``.
    split
        One of the manifest's splits; None takes the one that is evaluated.
    limit
        Take only a random subset of this size (see ``subset``), at least 1; None takes all.

    Raises
    ------
    InputError
        For an unknown data set or split, a limit below 1, a missing or corrupt file, a hub out of reach, a
        malformed row, an empty split or an id that appears twice.

    Examples
    --------
    >>> load_questions("mini-capitals")[0].text
    'What is the capital of Afghanistan?'
    >>> len(load_questions("mini-capitals", limit=5))
    5
    """
    questions, _ = load_split(dataset, split)
    return questions if limit is None else subset(questions, limit)


def load_split(dataset: str, split: str | None = None) -> tuple[tuple[Question, ...], str]:
    """Load all questions of a split, and say where they came from: the file, or the repository and its revision.

    The parameters and errors are those of ``load_questions``.

    >>> load_split("mini-capitals")[1]
    'built in'
    """
    manifest = load_dataset(dataset)
    split = manifest.evaluation_split if split is None else split
    if split not in manifest.splits:
        raise unknown(f"split of {dataset}", split, manifest.splits)
    source, rows = _rows(manifest, split)
    read = _mini if manifest.builtin else _READERS[dataset]
    questions: dict[str, Question] = {}
    subjects: Counter[str] = Counter()
    for number, row in enumerate(rows):
        where = f"{source}, row {number}"
        position = number
        if dataset == "mmlu":  # whose rows are numbered within their subject
            position = subjects[row.get("subject", "")]
            subjects[row.get("subject", "")] += 1
        try:
            question = read(row, split, position)
        except KeyError as error:
            raise InputError(f"{where}: no column {error}; this is not {manifest.title} as expected") from None
        except (AttributeError, IndexError, TypeError, ValueError) as error:
            raise InputError(f"{where}: malformed ({error})") from None
        if question is None:
            continue
        if question.id in questions:
            raise InputError(f"{where}: the id {question.id!r} appears twice; every question needs its own")
        if not question.text:
            raise InputError(f"{where}: the question is empty")
        questions[question.id] = question
    if not questions:
        raise InputError(f"{source}: no questions; expected {manifest.splits[split].rows}")
    return tuple(questions.values()), _provenance(manifest, split, rows)


def subset(questions: Sequence[Question], limit: int) -> tuple[Question, ...]:
    """Take a random subset of questions, in their own order: the same one whoever asks, and a part of every larger one.

    Each question's rank is the SHA-256 of ``SUBSET_SEED`` and its id, and the lowest ranks are taken. The choice thus
    depends neither on the order of the rows, nor on the model, k or seed of a run.

    >>> questions = load_questions("mini-capitals")
    >>> few, more = subset(questions, 2), subset(questions, 3)
    >>> [question.id for question in few], set(few) < set(more)
    (['mini-capitals/test/capital-of-belize', 'mini-capitals/test/continent-of-jamaica'], True)
    """
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise InputError(f"limit must be a whole number of at least 1, or None for all questions; got {limit!r}")
    ranked = sorted(questions, key=lambda question: hashlib.sha256(f"{SUBSET_SEED} {question.id}".encode()).digest())
    taken = {question.id for question in ranked[:limit]}
    return tuple(question for question in questions if question.id in taken)


def at_hand(dataset: str, split: str) -> bool:
    """Say whether a split can be read on this machine with no download: built in, or in ``CAPCAL_DATA_DIR``.

    >>> at_hand("mini-capitals", "test")
    True
    """
    manifest, folder = load_dataset(dataset), data_dir()
    local = manifest.splits[split].local
    return manifest.builtin or (folder is not None and local is not None and (folder / local).is_file())


def _rows(manifest: Dataset, split: str) -> tuple[str, Iterable[Row]]:
    """Return where the rows come from, for messages, and the rows."""
    entry = manifest.splits[split]
    if manifest.builtin:
        return manifest.name, mini.rows(manifest.name, split)
    folder = data_dir()
    if folder is None or entry.local is None:
        return f"{entry.hub}, {entry.hub_split}", _hub_rows(manifest, entry)
    path = folder / entry.local
    if not path.is_file():
        raise InputError(f"{manifest.name} {split}: {path} does not exist; {_ways(manifest, entry)}")
    return str(path), _local_rows(path)


def _ways(manifest: Dataset, entry: Split) -> str:
    online = "be online with the `datasets` library"
    if manifest.gated:
        return f"the set is gated: {online}, accept its terms at {entry.hub} on the hub and log in"
    return f"either set CAPCAL_DATA_DIR to a folder with {entry.local}, or leave it unset and {online}"


def _provenance(manifest: Dataset, split: str, rows: Iterable[Row]) -> str:
    """Name what the rows came from, in words that hold on any machine."""
    entry = manifest.splits[split]
    if manifest.builtin:
        return "built in"
    if isinstance(rows, list):
        return f"CAPCAL_DATA_DIR/{entry.local}"
    # The library names the folder of its cache after the commit that was loaded, or by a hash for a local folder.
    files = getattr(rows, "cache_files", [])
    found = Path(files[0]["filename"]).parent.name if files else "unknown"
    return f"{entry.hub}, revision {entry.revision or found}"


def _local_rows(path: Path) -> list[Row]:
    rows = []
    try:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines):
                row = json.loads(line)
                if not isinstance(row, dict):
                    raise InputError(f"{path}, row {number}: not a JSON object")
                rows.append(row)
    except json.JSONDecodeError as error:
        raise InputError(f"{path}, row {len(rows)}: not JSON: {error}") from None
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise InputError(f"{path}: corrupt after row {len(rows)}: {error}; copy the file again") from None
    return rows


def _hub_rows(manifest: Dataset, entry: Split) -> Iterable[Row]:
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # no line for every retry
    try:
        from datasets import load_dataset as load_from_hub

        return load_from_hub(entry.hub, entry.config, split=entry.hub_split, revision=entry.revision)
    except Exception as error:  # the library raises dozens of kinds of its own and of its HTTP client's
        reason = " ".join(str(error).split())[:200]
        raise InputError(
            f"{manifest.name}: {entry.hub} could not be loaded ({reason}); {_ways(manifest, entry)}"
        ) from None


def questions_digest(questions: Iterable[Question]) -> str:
    """Return the SHA-256 of texts, kinds and right answers, in order; aliases in any order.

    >>> question = Question("q", "What is 6 × 7?", Answer("number", "42"))
    >>> questions_digest([question])[:8], questions_digest([question, question])[:8]
    ('646cc86b', '06799dcb')
    """
    content = [
        [question.text, question.answer.kind, question.answer.gold, sorted(question.answer.aliases)]
        for question in questions
    ]
    canonical = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()


def check_questions(dataset: str, split: str, questions: Sequence[Question]) -> str:
    """Compare all questions of a split with its manifest: ``"matches"``, or what differs.

    >>> check_questions("mini-capitals", "test", load_questions("mini-capitals", "test"))
    'matches'
    >>> check_questions("mini-capitals", "test", load_questions("mini-capitals", "test", limit=5))[:6]
    '5 rows'
    """
    manifest = load_dataset(dataset)
    if split not in manifest.splits:
        raise unknown(f"split of {dataset}", split, manifest.splits)
    entry = manifest.splits[split]
    if len(questions) != entry.rows:
        return f"{len(questions)} rows, the manifest has {entry.rows}"
    if entry.digest is None:
        return f"{entry.rows} rows as in the manifest, which has no digest"
    digest = questions_digest(questions)
    return "matches" if digest == entry.digest else f"digest {digest[:16]}, the manifest has {entry.digest[:16]}"
