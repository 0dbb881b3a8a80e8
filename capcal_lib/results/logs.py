"""Read samples that others drew: logs of lm-evaluation-harness, inspect_ai and lighteval, batch
output, any table of rows.

Nothing in a file is evaluated, and what is read of it is bounded. What a log does not say is not
made up: token counts that are not there are 0, which stands for not known."""

import ast
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from os.path import isdir
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pandas as pd

from capcal_lib import manifests
from capcal_lib.errors import InputError, counted, sanitize, unknown
from capcal_lib.questions import NOT_STATED, field_of, plain_head, stream_rows

Row = dict[str, Any]
MEMBER_BYTES = 1 << 26  # of one sample of a log
MEMBERS = re.compile(r"header\.json|samples/.*\.json")  # of a log of inspect_ai
COLUMNS = {  # what may be mapped, and the places where it is looked for, in order
    "question_id": "question_id id doc_id custom_id doc.id",
    "sample": "sample sample_index",
    "response": "choice.message.content choice.text choice response",
    "gold": "gold answer target",
    "aliases": "aliases",
    "choices": "choices",
    "question": "doc.question doc.problem doc.query doc.input question problem prompt input "
    "arguments.gen_args_0.arg_0 arguments.0.0",
    "verdict": "verdict",
    "extracted": "extracted",
    "reasoning": "choice.message.reasoning choice.message.reasoning_content "
    "choice.message.content reasoning reasoning_content",
    "finish_reason": "choice.finish_reason choice.stop_reason finish_reason",
    "prompt_tokens": "prompt_tokens response.body.usage.prompt_tokens output.usage.input_tokens",
    "completion_tokens": "completion_tokens response.body.usage.completion_tokens "
    "output.usage.output_tokens",
}
SEVERAL = "resps.0 output.choices response.body.choices model_response.text"
REQUEST = "arguments.gen_args_0.arg_1.{0} arguments.0.1.{0}"  # of lm-evaluation-harness
SETTINGS = {"temperature": "temperature", "max_tokens": "max_gen_toks", "top_p": "top_p"}
PLACES = {name: REQUEST.format(key) for name, key in SETTINGS.items()}
PLACES |= COLUMNS | {"greedy": REQUEST.format("do_sample"), "several": SEVERAL}
NUMBERS = ("sample", "prompt_tokens", "completion_tokens")
# Of a row of lm-evaluation-harness; what is beside them are metrics, where a version names none.
HARNESS = {"doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter"}
HARNESS |= {"doc_hash", "prompt_hash", "target_hash"}
RULE = (
    "read as yes or no: C/I, CORRECT/INCORRECT (NOT_ATTEMPTED is incorrect), yes/no, true/false, "
    "1/0, 100/0 percent"
)
WORDS = {name: name for name in ("correct", "incorrect", "no_answer")} | {"n": "no_answer"}
WORDS |= dict.fromkeys(("c", "yes", "true"), "correct")
WORDS |= dict.fromkeys(("i", "no", "false", "not_attempted"), "incorrect")
# Scorers that compare an answer with a gold one, as the rules do; others measure something else.
COMPARING = {"exact_match", "acc", "em", "f1", "math_verify", "bypass", "quasi_exact_match"}
COMPARING |= {"match", "includes", "exact", "answer", "pattern", "choice", "verdict"}
TABLE = "write a row a sample as JSONL or CSV, with question_id, response and gold or verdict"
OTHERS = {  # files that hold no samples as they are read here: a key of theirs, and what to do
    "configs": "the scores of lm-evaluation-harness, no samples; give samples_*.jsonl, which "
    "--log_samples writes",
    "config_general": "the scores of lighteval, no samples; give details/**/*.parquet",
    "request_states": f"a scenario state of HELM, which is not read; {TABLE}",
    "convos": f"results of simple-evals, which are not read; {TABLE}",
}


class Item(NamedTuple):
    """A question as a log has it, with its right answer."""

    id: str
    question: str
    answer: str
    aliases: tuple[str, ...]
    choices: tuple[str, ...]


class Log(NamedTuple):
    """The samples of files, a row each under the names of ``COLUMNS``, and their questions by id.

    Where the log's verdicts were taken (``judged``) each sample has a ``verdict``."""

    samples: pd.DataFrame
    items: dict[str, Item]
    settings: Row  # of the sampling, as far as the files say them
    judged: bool
    notes: list[str]  # what was taken, and what was left out


def list_files(files: Iterable[Path]) -> list[Path]:
    """Return files, and in place of a folder the logs in it."""
    listed = []
    for file in files:
        logs = [file]
        if isdir(file):
            patterns = ("samples_*.jsonl", "*.eval", "details_*.parquet")
            logs = sorted(path for pattern in patterns for path in file.rglob(pattern))
        if not logs:
            raise InputError(
                f"{file}: a folder without samples_*.jsonl, .eval or details_*.parquet"
            )
        listed += logs
    return listed


def read_log(
    files: Sequence[Path],
    columns: Mapping[str, str] = MappingProxyType({}),
    *,
    scorer: str | None = None,
    regrade: bool = False,
) -> Log:
    """Read the samples of files, or of the logs in folders.

    ``columns`` say which column (``a.b`` for a field inside) holds what. The verdicts are those of
    the log's ``scorer``; without a name, of the one that says yes or no of most samples, words
    before numbers. Other values concern their own samples, which are not scored. A log without
    verdicts, or with ``regrade``, is left to the rules.

    `InputError` for a file that cannot be read, or has no samples; a question with two answers or
    texts; a scorer that the log does not have; and scores that are no verdicts, of a task that the
    rules cannot grade."""
    if wrong := columns.keys() - COLUMNS.keys():
        raise InputError(f"{min(wrong)!r} is no column; known: {', '.join(COLUMNS)}")
    notes: list[str] = []
    rows = [row for file in list_files(files) for row in _read_file(file, columns, notes)]
    answered = [row for row in rows if row["response"] is not None]
    if not answered:
        raise InputError(f"{', '.join(map(str, files))}: no samples with a response in it")
    if failed := len(rows) - len(answered):
        notes.append(f"{counted(failed, 'request')} without a response left out")
    settings: Row = {}
    for name in SETTINGS:
        values = {row[name] for row in answered} - {None}
        if len(values) > 1:
            several = " and ".join(map(str, sorted(values)[:2]))
            raise InputError(f"the samples have more than one {name}, {several}; import them apart")
        settings |= dict.fromkeys([name] * len(values), *values)
    items = _name_questions(answered)
    samples = pd.DataFrame(answered, columns=list(COLUMNS), dtype=object)
    samples["question_id"] = [row["item"].id for row in answered]
    if regrade:
        notes.append("the log's verdicts are left out, as asked: the rules grade it")
    scores = pd.DataFrame([row["scores"] for row in answered], dtype=object)
    judged = not regrade and _take_verdicts(samples, scores, scorer, notes)
    return Log(samples, items, settings, judged, notes)


def kind_of(items: Iterable[Item]) -> manifests.Kind:
    """Tell of which kind the answers of a log are: choices where all have them, numbers, formulas
    where one is written in LaTeX, else short answers.
    """
    items = list(items)
    if all(item.choices for item in items):
        return "choice"
    if all(re.fullmatch(r"[-+]?[\d,]*\.?\d+", item.answer) for item in items):
        return "number"
    return "math" if any(re.search(r"\\[a-zA-Z]|\^", item.answer) for item in items) else "short"


def _read_file(path: Path, columns: Mapping[str, str], notes: list[str]) -> list[Row]:
    """Read the samples of a file; a response of None is that of a request that failed."""
    drawn: list[Row] = []
    try:
        for row, known in _rows(path):
            drawn += _read_row(row, known, columns)
        samples, repeated = _merge(drawn)
        texts = [row["harness"] and _texts(row["gold"]) for row in samples]
        for row, listed in zip(samples, texts, strict=True):
            row["item"] = _item(row, listed if all(texts) else row["gold"])
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError) as error:
        what = f"no {error}; {TABLE}" if isinstance(error, KeyError) else str(error)
        raise InputError(f"{path}, sample {len(drawn)}: {sanitize(what)}") from None
    if repeated:
        notes.append(f"{counted(repeated, 'repeated row')} left out: the same sample again")
    return samples


def _rows(path: Path) -> Iterator[tuple[Row, Row]]:
    """Yield the rows of a file, each with its task and settings."""
    known: Row = {"task": re.sub(r"^samples_|_\d{4}-\d\d-\d\dT.*$", "", path.name.split(".")[0])}
    for row in _archive(path) if path.suffix == ".eval" else stream_rows(path):
        if other := OTHERS.keys() & row.keys():
            raise InputError(f"{path}: {OTHERS[min(other)]}")
        if "eval" not in row or not {"plan", "status"} & row.keys():
            yield row, known
            continue
        config = row["eval"].get("model_generate_config") or {}
        known |= {"task": row["eval"].get("task")} | config
        known |= (row.get("plan") or {}).get("config") or {}
        if path.suffix != ".eval" and not row.get("samples"):
            raise InputError(
                f"{path}: a log of inspect_ai, status {row.get('status')}, with no samples in "
                "it; give the log that has them"
            )
        yield from ((sample, known) for sample in row.get("samples") or ())


def _archive(path: Path) -> Iterator[Row]:
    """Read a log of inspect_ai in a zip file: its header, then its samples."""
    if sys.version_info >= (3, 14):
        import zipfile
    else:
        from backports.zstd import zipfile  # with the compression of later logs
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if MEMBERS.fullmatch(name)]
            for name in sorted(names, key="header.json".__ne__):
                with archive.open(name) as member:
                    text = member.read(MEMBER_BYTES + 1)
                if len(text) > MEMBER_BYTES:
                    raise InputError(f"{path}: {name} is larger than {MEMBER_BYTES >> 20} MiB")
                yield json.loads(text)
    except (InputError, RecursionError):
        raise
    except Exception as error:  # zip files and their compressions have a dozen kinds
        raise InputError(f"{path}: not a log of inspect_ai: {sanitize(error)}") from None


@lru_cache(1 << 10)
def _places(heads: tuple[str, ...]) -> dict[str, list[list[str]]]:
    """Return the places where each column may stand in a row with these heads."""
    usual = {plain_head(head): head for head in reversed(heads)}
    parted = {name: [place.split(".") for place in text.split()] for name, text in PLACES.items()}
    return {
        name: [
            [usual[plain_head(first)], *rest]
            for first, *rest in places
            if plain_head(first) in usual
        ]
        for name, places in parted.items()
    }


def _first(row: Row, places: Iterable[Sequence[str]]) -> Any:
    """Return the first value that is there, at places inside a row."""
    for place in places:
        value: Any = row
        for part in place:
            if isinstance(value, list):
                value = {str(number): one for number, one in enumerate(value)}
            value = value.get(part) if isinstance(value, dict) else None
        if value is not None:
            return value
    return None


def _read_row(row: Row, known: Row, columns: Mapping[str, str]) -> Iterator[Row]:
    """Yield the samples of a row, whichever form it has."""
    several = _first(row, _places(tuple(row))["several"])
    texts = [several] if isinstance(several, str) else several or [None]
    scores = row.get("scores") or row.get("metric")
    if not isinstance(scores, dict):
        suffix = "" if row.get("filter", "none") in (None, "none") else f",{row['filter']}"
        beside = [name for name in row if name not in HARNESS] if "resps" in row else []
        scores = {f"{metric}{suffix}": row.get(metric) for metric in row.get("metrics") or beside}
        scores |= {"score": row["score"]} if isinstance(row.get("score"), dict) else {}
    status = _first(row, [["response", "status_code"]])
    failed = (row.get("error") and not scores) or status not in (None, 200)
    if len(texts) > 1:  # what is known of several is not known of any of them
        scores = dict.fromkeys(scores)
    for place, text in enumerate(texts):
        view = row if several is None else row | {"choice": text}
        places = _places(tuple(view))
        full = {name: _first(view, places[name]) for name in (*COLUMNS, *SETTINGS)}
        full |= {name: known[name] for name in SETTINGS if known.get(name) is not None}
        full |= {name: field_of(row, column) for name, column in columns.items()}
        if full["question_id"] is None or not (places["response"] or "response" in columns):
            raise KeyError("question_id" if full["question_id"] is None else "response")
        for name in NUMBERS:
            full[name] = int(full[name]) if full[name] not in (None, "") else None
            if not 0 <= (full[name] or 0) < 1 << 31:
                raise ValueError(f"{name} {full[name]}")
        if _first(row, places["greedy"]) is False:
            full["temperature"] = 0.0
        if len(texts) > 1:
            full["completion_tokens"] = None
        right = _first(row, [["doc", "gold_index"]])  # of lighteval
        if right is not None:
            full["gold"] = [row["doc"]["choices"][index] for index in _list(right)]
        full["reasoning"] = _text(full["reasoning"], "reasoning")
        full["response"] = None if failed else _text(full["response"], "text")
        asked = full["question"]
        asked = _text(asked, "text") if isinstance(asked, list | dict) else asked
        full["question"] = str(asked or full["question_id"])
        full["scores"] = scores if full["verdict"] is None else {"verdict": full["verdict"]}
        full["task"] = known["task"]
        full["harness"] = "doc_id" in row and ("named" if "filter" in row else "nameless")
        full["twin"] = None
        if {"doc_id", "epoch"} & row.keys():
            full["twin"] = place, str(full["question_id"]), row.get("epoch"), hash(str(texts))
        yield full


def _text(value: Any, kind: str) -> str:
    """Return the text of a message or of the last turn of a user; or the reasoning in it."""
    if isinstance(value, str):
        return value if kind == "text" else ""
    if isinstance(value, dict | None):
        return ""
    if not isinstance(value, list) or not all(isinstance(part, dict) for part in value):
        raise InputError(
            "the responses are no texts, but perhaps log-likelihoods of given answers; take a task "
            "that generates"
        )
    turns = [part["content"] for part in value if part.get("role") == "user"]
    turns = turns or [part["content"] for part in value if "role" in part]
    if turns:
        return _text(turns[-1], kind)
    return "".join(str(part[kind]) for part in value if part["type"] == kind)


def _merge(drawn: list[Row]) -> tuple[list[Row], int]:
    """Take each sample once, with the scores of all filters; count rows that are there again.

    Filters without a name have a row each for every sample, other rows are those of a padded
    run."""
    nameless = Counter(row["twin"] for row in drawn if row["harness"] == "nameless")
    numbered = len({*nameless.values()}) == 1
    rows = Counter[Any]()
    merged: dict[Any, Row] = {}
    repeated = 0
    for place, row in enumerate(drawn):
        sample = merged.setdefault(row["twin"] or place, row)
        rows[row["twin"]] += 1
        if sample is row:
            continue
        scores = row["scores"]
        if numbered and row["harness"] == "nameless":
            scores = {f"{name} ({rows[row['twin']]})": scores[name] for name in scores}
        if scores.keys() <= sample["scores"].keys():
            repeated += 1
        else:
            sample["scores"] = sample["scores"] | scores
    return list(merged.values()), repeated


def _item(row: Row, gold: Any) -> Item:
    texts = [str(text).rpartition("####")[2].strip() for text in _list(gold)]
    return Item(
        id=str(row["question_id"]),
        question=row["question"],
        answer=texts[0] if texts else NOT_STATED,
        aliases=(*texts[1:], *map(str, _list(row["aliases"]))),
        choices=tuple(map(str, _list(row["choices"]))) if texts else (),
    )


def _list(value: Any) -> list[Any]:
    if value in (None, ""):
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def _texts(value: Any) -> list[str] | None:
    """Read a list of texts as Python writes it."""
    try:
        value = ast.literal_eval(value) if isinstance(value, str) else value
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    return value if isinstance(value, list) and {*map(type, value)} == {str} else None


def _name_questions(samples: list[Row]) -> dict[str, Item]:
    """Return the questions of samples, with the task before the id where tasks share ids."""
    distinct = dict.fromkeys(row["item"] for row in samples)
    items = {item.id: item for item in distinct}
    if len(items) == len(distinct):
        return items
    if len({row["task"] for row in samples}) == 1:
        name = next(item.id for item in distinct if item != items[item.id])
        raise InputError(
            f"question {sanitize(name, 80)!r} has two answers or texts; import the files apart"
        )
    for row in samples:
        row["item"] = row["item"]._replace(id=f"{row['task']}/{row['item'].id}")
        row["task"] = ""
    return _name_questions(samples)


def _take_verdicts(
    samples: pd.DataFrame, scores: pd.DataFrame, scorer: str | None, notes: list[str]
) -> bool:
    """Give samples the verdicts of a scorer of the log; say whether it has them."""
    known = list(map(str, scores))
    names = [name for name in known if scorer in (None, name, *name.split(","))]
    if scorer and not names:
        raise unknown("scorer", scorer, known)
    values = scores.map(lambda one: one.get("value") if isinstance(one, dict) else one)
    read = {name: _read_verdicts(values[name]) for name in names}
    worded = values.astype(str).apply(lambda one: one.str.lower().isin(WORDS)).any()
    taken = max(names, key=lambda name: (read[name].count(), worded[name]), default="")
    # Where most values are between yes and no, those that are not are no fair sample.
    if not taken or 2 * read[taken].count() < max(values[taken].count(), 1):
        if names and not any(COMPARING.intersection(re.split(r"[, ]", name)) for name in names):
            raise InputError(
                f"the log's scores ({', '.join(names)}) are no yes or no on each sample, and the "
                "rules cannot tell whether they measure the same; name another --scorer, or say "
                "--regrade to compare with the log's answers by the rules"
            )
        notes.append("the log has no verdict on each sample: the rules grade it")
        return False
    silent = (samples["response"].str.strip() == "") & (read[taken] != "correct")
    verdicts = read[taken].mask(silent, "no_answer")
    samples["verdict"] = verdicts.fillna("not_scored")
    answers = scores[taken].map(lambda one: one.get("answer") if isinstance(one, dict) else None)
    samples["extracted"] = samples["extracted"].fillna(answers)
    others = ", ".join(name for name in known if name != taken)
    choice = f" (--scorer takes: {others})" if others else ""
    notes.append(f"verdicts of the log: {taken}{choice}")
    odd = values[taken][verdicts.isna()].map(lambda one: sanitize(one, 20)).value_counts()
    if len(odd):
        left_out = counted(odd.sum(), "sample")
        notes.append(f"{left_out} without yes or no left out ({', '.join(odd.index[:3])}); {RULE}")
    return True


def _read_verdicts(values: "pd.Series[Any]") -> "pd.Series[str]":
    """Return the verdict of each value that says yes or no, else NaN."""
    texts = values.astype(str).str.strip().str.lower()
    numbers = pd.to_numeric(texts.str.rstrip("%"), errors="coerce")
    most = 100 if numbers.max() > 1 else 1  # percentages, or shares
    return texts.map(WORDS).fillna(numbers.map({most: "correct", 0: "incorrect"}))
