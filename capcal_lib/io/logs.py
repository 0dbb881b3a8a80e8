"""Samples in files that other tools wrote: lm-evaluation-harness, inspect_ai, and batches of OpenAI
or vLLM. Nothing in a file is evaluated.

Each reader returns a sample a row. What a log does not say is not made up."""

import ast
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pandas as pd

from capcal_lib.errors import InputError
from capcal_lib.io.verdicts import choose_scorer
from capcal_lib.rows import Row, check_unpacked, field_of, parse_json, refuse, stream_rows
from capcal_lib.text import printable, sanitize

MEMBER_BYTES = 1 << 26  # of one sample in an archive
STEP = 1 << 12  # bytes of one that are unpacked at a time
# Of a row of the harness; what is beside them are metrics, where a version names none.
NO_METRICS = {"doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter"}
NO_METRICS |= {"doc_hash", "prompt_hash", "target_hash"}
COMPARING = {"exact_match", "acc", "em", "math_verify"}  # metrics that compare answers as rules do
LENGTH = ("length", "max_tokens", "model_length")  # what reaching the limit is called


@contextmanager
def naming_place(place: object) -> Iterator[None]:
    """Name a file, or a row of one, in whatever reading it raises."""
    try:
        yield
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        what = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise InputError(f"{place}: {sanitize(what)}") from None


def _read_rows(
    path: Path,
    rows: Iterable[Row],
    read_row: Callable[[Row], Iterable[Row]],
    columns: Mapping[str, str],
) -> pd.DataFrame:
    """Return the samples of all rows, each with its place, and with the fields that ``columns``
    name.
    """
    samples = []
    for number, row in enumerate(rows):
        with naming_place(f"{path}, row {number}"):
            facts = {name: field_of(row, column) for name, column in columns.items()}
            facts |= {"path": printable(path), "row": number}
            samples += [sample | facts for sample in read_row(row)]
    return pd.DataFrame(samples, dtype=object)


def read_harness(
    path: Path, columns: Mapping[str, str], scorer: str | None, regrade: bool
) -> pd.DataFrame:
    """Read ``samples_TASK_TIME.jsonl``: a row for each question and filter, with all responses.

    `InputError` for a question that stands there twice, and for log-likelihoods of given answers,
    of which nothing was sampled."""
    rows = _read_rows(path, stream_rows(path), _harness_samples, columns)
    again = rows.duplicated(["question_id", "number", "filter"])
    refuse(rows, again, f"stands there twice; equal lines go by: sort -u {path.name}")
    key = ["question_id", "number"]
    scores = pd.DataFrame([*rows["scores"]], rows.index, dtype=object)
    scores = scores.groupby([rows[name] for name in key], sort=False, dropna=False).first()
    table = rows.drop_duplicates(key, ignore_index=True)
    judge = None if regrade else choose_scorer(scores, scorer)
    if judge:
        table = table.assign(verdict=scores[judge].to_numpy(), judge=judge)
    metrics = [str(name).partition(",")[0] for name in scores]
    if judge is None and not regrade and metrics and COMPARING.isdisjoint(metrics):
        raise ValueError(
            f"no verdict of each sample, and the rules do not measure {', '.join(metrics)}"
        )
    task = re.sub(r"^samples_|_\d{4}-\d\d-\d\dT.*$", "", path.name.split(".")[0])
    return table.assign(task=task, model=path.absolute().parent.name)


def _harness_samples(row: Row) -> Iterator[Row]:
    """Yield a sample for each response, with its scores under the name of their filter."""
    if not isinstance(row["arguments"], dict):
        raise ValueError("arguments that are a list: a log of an earlier version, not read")
    request, document = row["arguments"]["gen_args_0"], row["doc"]
    settings = request.get("arg_1")
    if not isinstance(settings, dict):
        raise ValueError("log-likelihoods of given answers; take a task that generates them")
    [responses] = row["resps"]
    metrics = row.get("metrics") or [name for name in row if name not in NO_METRICS]
    suffix = "" if row.get("filter") in (None, "none") else f",{row['filter']}"
    # of several responses a metric says nothing of each
    scores = {f"{name}{suffix}": row[name] if len(responses) == 1 else None for name in metrics}
    for number, response in enumerate(responses or [None]):
        yield {
            "question_id": row["doc_id"],
            "number": number,
            "filter": suffix,
            "scores": scores,
            "response": response,
            "question": document.get("question") or document.get("problem") or request["arg_0"],
            "gold": _targets(row["target"]),
            "temperature": settings.get("temperature"),
            "max_tokens": settings.get("max_gen_toks"),
            "top_p": settings.get("top_p"),
            "prompt": hash(f"{request['arg_0']} {settings | {'seed': None}}"),
        }


def _targets(target: Any) -> Any:
    """Return the right answers, of which the harness writes a list as Python does."""
    if isinstance(target, str) and target.startswith(("['", '["')):
        with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            return ast.literal_eval(target)
    return target


def read_inspect(
    path: Path, columns: Mapping[str, str], scorer: str | None, regrade: bool
) -> pd.DataFrame:
    """Read a log of inspect_ai, ``.eval`` or ``.json``: a sample for each epoch of a question."""
    header, rows = _open_inspect(path)
    spec, plan = header["eval"], header.get("plan") or {}
    settings = (spec.get("model_generate_config") or {}) | (plan.get("config") or {})
    same = [plan.get("steps"), {**settings, "seed": None, "max_connections": None}]
    table = _read_rows(path, rows, _inspect_sample, columns).assign(
        task=spec["task"],
        model=spec.get("model"),
        prompt=hash(str(same)),
        temperature=settings.get("temperature"),
        max_tokens=settings.get("max_tokens"),
        top_p=settings.get("top_p"),
    )
    scores = pd.DataFrame([*table["scores"]], dtype=object)
    judge = None if regrade else choose_scorer(scores, scorer)
    if judge is None:
        return table
    extracted = [answers.get(judge) for answers in table["answers"]]
    return table.assign(verdict=scores[judge], judge=judge, extracted=extracted)


def _inspect_sample(row: Row) -> list[Row]:
    """Return the sample of an epoch; without a response if it failed before it was scored."""
    output = row.get("output") or {}
    usage = output.get("usage") or {}
    choices = _read_choices(output.get("choices"))
    if len(choices) > 1:
        raise ValueError("a sample with several choices; draw epochs instead")
    scores = row.get("scores") or {}
    sample = choices[0] | {
        "question_id": row["id"],
        "scores": {name: score.get("value") for name, score in scores.items()},
        "answers": {name: score.get("answer") for name, score in scores.items()},
        "question": _asked(row["input"]),
        "gold": row.get("target"),
        "choices": row.get("choices"),
        "uuid": row.get("uuid"),
        "prompt_tokens": usage.get("input_tokens"),
        "completion_tokens": usage.get("output_tokens"),
    }
    if not scores and row.get("error"):
        sample["response"] = None
    elif scores and sample["response"] is None:
        sample["response"] = ""
    return [sample]


def _open_inspect(path: Path) -> tuple[Row, Iterable[Row]]:
    """Return the header of a log, and its samples."""
    if path.suffix == ".eval":
        return _open_archive(path)
    [log] = stream_rows(path)
    if not log.get("samples"):
        raise ValueError(f"a log of status {log.get('status')}, with no samples in it")
    return log, log["samples"]


def _open_archive(path: Path) -> tuple[Row, list[Row]]:
    """Return the header and the samples of a log in a zip file."""
    if sys.version_info >= (3, 14):
        import zipfile
    else:
        from backports.zstd import zipfile  # with the compression of later logs
    try:
        with zipfile.ZipFile(path) as archive:
            sizes = {one.filename: one.file_size for one in archive.infolist()}
            names = [name for name in sizes if re.fullmatch(r"samples/.*\.json", name)]
            check_unpacked(path, sum(sizes[name] for name in names))
            # a log that was cut off has its header in its journal only
            header = "header.json" if "header.json" in sizes else "_journal/start.json"
            return _unpack(archive, header), [_unpack(archive, name) for name in names]
    except Exception as error:  # zip files and their compressions have a dozen kinds
        raise InputError(f"{path}: not a log of inspect_ai: {sanitize(error)}") from None


def _unpack(archive: Any, name: str) -> Row:
    """Unpack a member in small steps, so that one which lies about its size unpacks to little."""
    if archive.getinfo(name).file_size > MEMBER_BYTES:
        raise ValueError(f"{name} is larger than {MEMBER_BYTES >> 20} MiB")
    with archive.open(name) as member:
        return dict(parse_json(b"".join(iter(lambda: member.read(STEP), b""))))


def _asked(asked: Any) -> str:
    """Return the text of a question, or of the last one of messages."""
    if isinstance(asked, list):
        return _text(asked[-1]["content"]) if asked else ""
    return str(asked)


def read_batch(path: Path, columns: Mapping[str, str]) -> pd.DataFrame:
    """Read the output of an OpenAI or vLLM batch: a request a line, whose choices are samples and
    whose ``custom_id`` is the question; one without a response if it failed.
    """
    return _read_rows(path, stream_rows(path), _batch_samples, columns)


def _batch_samples(row: Row) -> Iterator[Row]:
    question = {"question_id": row["custom_id"]}
    response = row.get("response") or {}
    if row.get("error") or response.get("status_code", 200) != 200:
        yield question
        return
    usage = response["body"].get("usage") or {}
    choices = _read_choices(response["body"]["choices"])
    for number, choice in enumerate(choices):
        of_request = {
            "uuid": f"{row['id']} {number}" if "id" in row else None,
            "model": response["body"].get("model"),
            "prompt_tokens": usage.get("prompt_tokens"),
            # those of several choices are told together
            "completion_tokens": usage.get("completion_tokens") if len(choices) == 1 else None,
        }
        yield question | choice | of_request


def _read_choices(choices: Any) -> list[Row]:
    """Return a sample for each choice of a chat or a completion; its response is None if the
    request gave none.

    A model that refused, thought or reached its limit without a text has answered, with an empty
    one."""
    samples = []
    for choice in choices or [{}]:
        message = choice.get("message") or {}
        response = choice.get("text")
        if message.get("content") is not None:
            response = _text(message["content"])
        reasoning = message.get("reasoning") or message.get("reasoning_content")
        reasoning = reasoning or _text(message.get("content"), "reasoning")
        ended = choice.get("finish_reason") or choice.get("stop_reason")
        if response is None and (reasoning or message.get("refusal") or ended in LENGTH):
            response = ""
        finish = "length" if ended in LENGTH else "stop"
        samples.append({"response": response, "reasoning": reasoning, "finish_reason": finish})
    return samples


def _text(content: Any, kind: str = "text") -> str:
    """Return the text of a message, or its parts of another kind such as ``reasoning``.

    >>> _text([{"type": "reasoning", "reasoning": "Hm."}, {"type": "text", "text": "4"}])
    '4'
    """
    if isinstance(content, str):
        return content if kind == "text" else ""
    return "".join(part[kind] for part in content or [] if part["type"] == kind)
