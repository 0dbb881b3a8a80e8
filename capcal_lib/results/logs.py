"""Read samples that others drew: logs of lm-evaluation-harness, inspect_ai and lighteval, batch
output, any table of rows.

Nothing in a file is evaluated, and what is read of it is bounded. What a log does not say is not
made up: token counts that are not there are 0, which stands for not known."""

import ast
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from capcal_lib import manifests
from capcal_lib.errors import InputError, sanitize, unknown
from capcal_lib.questions import NOT_STATED, field_of, stream_rows

Row = dict[str, Any]
MEMBER_BYTES = 1 << 26  # of one sample of a log
COLUMNS = {  # what may be mapped, and the names that are taken without
    "question_id": ("question_id", "id"),
    "sample": ("sample", "sample_index"),
    "response": ("response",),
    "gold": ("gold", "answer", "target"),
    "aliases": ("aliases",),
    "choices": ("choices",),
    "question": ("question", "problem", "prompt"),
    "verdict": ("verdict",),
    "extracted": ("extracted",),
    "reasoning": ("reasoning", "reasoning_content"),
    "finish_reason": ("finish_reason",),
    "prompt_tokens": ("prompt_tokens",),
    "completion_tokens": ("completion_tokens",),
}
NUMBERS = ("sample", "prompt_tokens", "completion_tokens")
SETTINGS = ("temperature", "max_tokens", "top_p")
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
UNEXPECTED = (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError)


class Item(NamedTuple):
    """A question as a log has it, with its right answer."""

    id: str
    text: str
    gold: str
    aliases: tuple[str, ...]
    choices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Log:
    """The samples of files, a row each under the names of ``COLUMNS``, with its ``item``.

    Where the log's verdicts were taken (``judged``) each has a ``verdict``, else None."""

    samples: list[Row]
    settings: Row  # of the sampling, as far as the files say them
    judged: bool
    failed: int  # rows of requests that failed
    notes: list[str]  # what was taken, and what was left out


def list_files(files: Iterable[Path]) -> list[Path]:
    """Return files, and in place of a folder the logs in it."""
    listed = []
    for file in files:
        logs = [file]
        if os.path.isdir(file):
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

    `InputError` for a file that cannot be read, or has no samples; a scorer that it does not have;
    and scores that are no verdicts, of a task that the rules cannot grade."""
    if wrong := columns.keys() - COLUMNS.keys():
        raise InputError(f"{min(wrong)!r} is no column; known: {', '.join(COLUMNS)}")
    settings: Row = {}
    samples: list[Row] = []
    notes = []
    for file in list_files(files):
        drawn: list[Row] = []
        try:
            drawn.extend(_samples(file, columns, settings))
        except InputError:
            raise
        except UNEXPECTED as error:
            what = f"no {error}" if isinstance(error, KeyError) else str(error)
            place = f"{file}: sample {len(drawn)}"
            raise InputError(f"{place}: not as expected: {sanitize(what)}") from None
        different = _without_repeats(drawn)
        if repeated := len(drawn) - len(different):
            notes.append(f"{repeated} repeated rows left out: the same sample again")
        samples += different
    answered = [row for row in samples if row["response"] is not None]
    if not answered:
        raise InputError(f"{', '.join(map(str, files))}: no samples with a response in it")
    if failed := len(samples) - len(answered):
        notes.append(f"{failed} requests without a response left out")
    _name_questions(answered)
    judged = not regrade and _take_verdicts(answered, scorer, notes)
    if regrade:
        notes.append("graded by the rules, as asked")
    return Log(answered, settings, judged, failed, notes)


def items_of(samples: Iterable[Row]) -> dict[str, Item]:
    """Return questions by their id; `InputError` where one is not the same everywhere."""
    items: dict[str, Item] = {}
    for row in samples:
        item = row["item"]
        if items.setdefault(item.id, item) != item:
            raise InputError(
                f"question {sanitize(item.id, 80)!r} has two answers or texts; import the files "
                "apart"
            )
    return items


def kind_of(items: Iterable[Item]) -> manifests.Kind:
    """Tell of which kind the answers of a log are: choices where all have them, numbers, formulas
    where one is written in LaTeX, else short answers.
    """
    items = list(items)
    if all(item.choices for item in items):
        return "choice"
    if all(re.fullmatch(r"[-+]?[\d,]*\.?\d+", item.gold) for item in items):
        return "number"
    return "math" if any(re.search(r"\\[a-zA-Z]|\^", item.gold) for item in items) else "short"


def _samples(path: Path, columns: Mapping[str, str], settings: Row) -> Iterator[Row]:
    """Yield the samples of a file; a response of None is that of a request that failed."""
    rows = _archive(path) if path.suffix == ".eval" else stream_rows(path)
    task = re.sub(r"^samples_|_\d{4}-\d\d-\d\dT.*$", "", path.name.split(".")[0])
    documents: dict[str, list[Row]] = {}  # of lm-evaluation-harness, which has a row a filter
    for row in rows:
        if known := OTHERS.keys() & row.keys():
            raise InputError(f"{path}: {OTHERS[min(known)]}")
        if "eval" in row and ("plan" in row or "status" in row):  # of inspect_ai
            task = str(row["eval"].get("task", task))
            config = row["eval"].get("model_generate_config") or {}
            config = config | ((row.get("plan") or {}).get("config") or {})
            _note(settings, *map(config.get, SETTINGS))
            if path.suffix != ".eval" and not row.get("samples"):
                raise InputError(
                    f"{path}: a log of inspect_ai, status {row.get('status')}, with no samples in "
                    "it; give the log that has them"
                )
            inner = row.get("samples") or ()
        else:
            inner = (row,)
        for each in inner:
            for sample in _read_row(each, settings, documents):
                yield _checked(each, sample, columns) | {"task": task}
    _list_targets(documents)
    for document in documents.values():
        for sample in document:
            yield _checked(sample.pop("row"), sample, columns) | {"task": task}


def _read_row(row: Row, settings: Row, documents: dict[str, list[Row]]) -> Iterable[Row]:
    if "resps" in row and "doc_id" in row:
        _read_lm_eval(row, settings, documents)
        return ()
    if "epoch" in row and "output" in row:
        return _read_inspect(row)
    if "custom_id" in row and "response" in row and not isinstance(row["response"], str):
        return _read_batch(row)
    if "model_response" in row and "doc" in row:
        return _read_lighteval(row)
    return ({},)


def _checked(row: Row, sample: Row, columns: Mapping[str, str]) -> Row:
    """Give a sample what is mapped, what a table has under the usual names, and its question."""
    usual = {
        name: row[key] for name, keys in COLUMNS.items() for key in reversed(keys) if key in row
    }
    full = (sample or usual) | {name: field_of(row, column) for name, column in columns.items()}
    if full.get("question_id") is None:
        raise KeyError("question_id")
    if not sample and not row.get("error"):
        full["response"] = full["response"] or ""
    if not isinstance(full.get("response"), str | None):
        raise TypeError(f"the response is no text: {full['response']!r}")
    for name in NUMBERS:
        if full.get(name) not in (None, ""):
            full[name] = int(full[name])
            if not 0 <= full[name] < 1 << 31:
                raise ValueError(f"{name} {full[name]}")
    if full.get("verdict") is not None:
        full["scores"] = {"verdict": full["verdict"]}
    gold = [str(text).rpartition("####")[2].strip() for text in _list(full.get("gold"))]
    name = str(full["question_id"])
    full["item"] = Item(
        id=name,
        text=str(full.get("question") or name),
        gold=gold[0] if gold else NOT_STATED,
        aliases=(*gold[1:], *map(str, _list(full.get("aliases")))),
        choices=tuple(map(str, _list(full.get("choices")))) if gold else (),
    )
    return full


def _note(settings: Row, *values: Any) -> None:
    for name, value in zip(SETTINGS, values, strict=True):
        if value is not None and settings.setdefault(name, value) != value:
            raise InputError(
                f"the samples have more than one {name}, {settings[name]} and {value}; import them "
                "apart"
            )


def _read_lm_eval(row: Row, settings: Row, documents: dict[str, list[Row]]) -> None:
    """Add the samples of a document, or the scores of another filter to them."""
    doc = row["doc"] if isinstance(row["doc"], dict) else {}
    requests = row["arguments"]
    request = next(iter(requests.values())) if isinstance(requests, dict) else requests[0]
    prompt, *more = request.values() if isinstance(request, dict) else request
    config = more[0] if more and isinstance(more[0], dict) else {}
    temperature = 0.0 if config.get("do_sample") is False else config.get("temperature")
    _note(settings, temperature, config.get("max_gen_toks"), config.get("top_p"))
    texts = row["resps"][0] if isinstance(row["resps"][0], list) else row["resps"]
    if not all(isinstance(text, str | None) for text in texts):
        raise InputError(
            "the log has log-likelihoods of given answers, not sampled ones; take a task that "
            "generates"
        )
    names = ("question", "problem", "query", "input")
    samples = documents.setdefault(
        json.dumps([row["doc_id"], texts]),
        [
            {
                "row": row,
                "question_id": row["doc_id"],
                "question": next((doc[name] for name in names if name in doc), prompt),
                "gold": row["target"],
                "response": text or "",
                "scores": {},
                "repeats": 0,
            }
            for text in texts
        ],
    )
    kept = row.get("filter")
    suffix = "" if kept in (None, "none") else f",{kept}"
    for sample in samples:
        scores = sample["scores"]
        again = f" ({sample['repeats'] + 1})" if sample["repeats"] and kept is None else ""
        for metric in row.get("metrics") or ():
            # One score of several samples is no verdict on any of them.
            value = row.get(metric) if len(texts) == 1 else None
            scores.setdefault(f"{metric}{suffix}{again}", value)
        sample["repeats"] += 1


def _list_targets(documents: Mapping[str, list[Row]]) -> None:
    """Read targets as lists of texts, which the harness writes as Python does, where all are."""
    samples = [sample for document in documents.values() for sample in document]
    lists = [_texts(sample["gold"]) for sample in samples]
    if all(lists):
        for sample, texts in zip(samples, lists, strict=True):
            sample["gold"] = texts


def _texts(value: Any) -> list[str] | None:
    try:
        value = ast.literal_eval(value) if isinstance(value, str) else value
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    is_list = isinstance(value, list) and all(isinstance(text, str) for text in value)
    return value if is_list else None


def _read_inspect(row: Row) -> Iterator[Row]:
    usage = row["output"].get("usage") or {}
    choices = row["output"]["choices"]
    asked = row["input"]
    if not isinstance(asked, str):
        turns = [turn for turn in asked if turn["role"] == "user"] or asked
        asked = _parts(turns[-1]["content"])[0]
    scores = row.get("scores") or ({"score": row["score"]} if row.get("score") else {})
    failed = bool(row.get("error")) and not scores
    for choice in choices or [{}]:
        text, reasoning = _parts((choice.get("message") or {}).get("content"))
        alone = len(choices) < 2
        yield {
            "question_id": row["id"],
            "epoch": row["epoch"],
            "question": asked,
            "gold": row["target"],
            "choices": row.get("choices"),
            "response": None if failed else text,
            "reasoning": reasoning,
            "finish_reason": choice.get("stop_reason"),
            "prompt_tokens": usage.get("input_tokens"),
            "completion_tokens": usage.get("output_tokens") if alone else None,
            "scores": {
                name: score.get("value") if alone else None for name, score in scores.items()
            },
            "answers": {name: score.get("answer") for name, score in scores.items()},
        }


def _parts(content: str | list[Row] | None) -> tuple[str, str | None]:
    """Return the text of a message, and its reasoning apart."""
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
    text, reasoning = (
        "".join(str(part[kind]) for part in parts if part["type"] == kind)
        for kind in ("text", "reasoning")
    )
    return text, reasoning or None


def _read_batch(row: Row) -> Iterator[Row]:
    reply = row["response"] or {}
    body: Row = reply.get("body") or {}
    failed = row.get("error") or not body or reply.get("status_code", 200) != 200
    choices = [] if failed else body["choices"]
    usage = body.get("usage") or {}
    for choice in choices or [{}]:
        message = choice.get("message") or {"content": choice.get("text")}
        yield {
            "question_id": row["custom_id"],
            "response": None if failed else message.get("content") or "",
            "reasoning": message.get("reasoning") or message.get("reasoning_content"),
            "finish_reason": choice.get("finish_reason"),
            "prompt_tokens": usage.get("prompt_tokens"),
            "completion_tokens": usage.get("completion_tokens") if len(choices) == 1 else None,
        }


def _read_lighteval(row: Row) -> Iterator[Row]:
    doc = row["doc"]
    texts = row["model_response"]["text"]
    if not texts:
        raise InputError("the details have log-likelihoods, not sampled answers")
    places = doc["gold_index"] if isinstance(doc["gold_index"], list) else [doc["gold_index"]]
    for text in texts:
        yield {
            "question_id": doc["id"],
            "question": doc["query"],
            "gold": [doc["choices"][place] for place in places],
            "response": text or "",
            "scores": (row.get("metric") or {})
            if len(texts) == 1
            else dict.fromkeys(row["metric"]),
        }


def _archive(path: Path) -> Iterator[Row]:
    """Read a log of inspect_ai in a zip file: its header, then its samples."""
    if sys.version_info >= (3, 14):
        import zipfile
    else:
        from backports.zstd import zipfile  # with the compression of later logs
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            samples = [name for name in names if re.match(r"samples/.*\.json$", name)]
            for name in [*({"header.json"} & {*names}), *samples]:
                with archive.open(name) as member:
                    text = member.read(MEMBER_BYTES + 1)
                if len(text) > MEMBER_BYTES:
                    raise InputError(f"{path}: {name} is larger than {MEMBER_BYTES >> 20} MiB")
                yield json.loads(text)
            if not samples:
                raise InputError(f"{path}: a log of inspect_ai with no samples in it")
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file") from None
    except (zipfile.BadZipFile, NotImplementedError, EOFError, OSError) as error:
        raise InputError(f"{path}: not a log of inspect_ai: {sanitize(error)}") from None


def _list(value: Any) -> list[Any]:
    if value in (None, ""):
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def _without_repeats(samples: list[Row]) -> list[Row]:
    """Take the rows of a log once each: documents that a padded run or a filter without a name
    repeats, and an epoch that stands twice with one answer.
    """
    different = []
    epochs = set()
    for row in samples:
        epoch = (row["question_id"], row.get("epoch"), row["response"])
        if row.get("epoch") is None or epoch not in epochs:
            different.append(row)
        epochs.add(epoch)
    return different


def _name_questions(samples: list[Row]) -> None:
    """Put its task before the id of each question, where tasks have different ones of one id."""
    first: dict[str, Item] = {}
    shared = any(first.setdefault(row["item"].id, row["item"]) != row["item"] for row in samples)
    if shared and len({row["task"] for row in samples}) > 1:
        for row in samples:
            row["item"] = row["item"]._replace(id=f"{row['task']}/{row['item'].id}")


def _take_verdicts(samples: list[Row], scorer: str | None, notes: list[str]) -> bool:
    """Give samples the verdicts of a scorer of the log; say whether it has them."""
    values: dict[str, list[Any]] = {}
    for row in samples:
        for name, value in row.get("scores", {}).items():
            known = value is not None and value == value  # no NaN
            values.setdefault(name, []).extend([value] * known)
    names = [name for name in values if scorer in (None, name, *name.split(","))]
    if scorer and not names:
        raise unknown("scorer", scorer, values)
    read = {name: _read_verdicts(values[name]) for name in names}
    counts = {
        name: (
            sum(str(one) in read[name] for one in values[name]),
            any(map(str.isalpha, read[name])),
        )
        for name in names
    }
    taken = max(names, key=lambda name: counts[name], default="")
    # Where most values are between yes and no, those that are not are no fair sample.
    if not taken or 2 * counts[taken][0] < max(len(values[taken]), 1):
        comparing = any(COMPARING.intersection(re.split(r"[, ]", name)) for name in names)
        if names and not comparing:
            raise InputError(
                f"the log's scores ({', '.join(names)}) are no yes or no on each sample, and the "
                "rules cannot tell whether they measure the same; name another --scorer, or say "
                "--regrade to compare with the log's answers by the rules"
            )
        notes.append("graded by the rules, since the log has no verdict on each sample")
        return False
    odd = Counter[str]()
    for row in samples:
        value = str(row.get("scores", {}).get(taken))
        verdict = read[taken].get(value)
        if not row["response"].strip() and verdict in (None, "incorrect"):
            verdict = "no_answer"
        if verdict is None:
            odd[sanitize(value, 20)] += 1
        row["verdict"] = verdict or "not_scored"
        row.setdefault("extracted", row.get("answers", {}).get(taken))
    others = ", ".join(name for name in values if name != taken)
    notes.append(
        f"verdicts of the log: {taken}" + (f" (--scorer takes: {others})" if others else "")
    )
    if odd:
        listed = ", ".join(name for name, _ in odd.most_common(3))
        notes.append(f"{odd.total()} samples without yes or no left out ({listed}); {RULE}")
    return True


def _read_verdicts(values: Iterable[Any]) -> dict[str, str]:
    """Return the verdict of each value, as it is spelled, that says yes or no."""
    verdicts = {}
    numbers = {}
    for value in map(str, values):
        if word := WORDS.get(value.strip().lower()):
            verdicts[value] = word
        else:
            with suppress(ValueError):
                numbers[value] = float(value.strip().rstrip("%"))
    most = 100 if max(numbers.values(), default=0) > 1 else 1  # percentages, or shares
    verdicts |= {value: "correct" for value, number in numbers.items() if number == most}
    return verdicts | {value: "incorrect" for value, number in numbers.items() if not number}
