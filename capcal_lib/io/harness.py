"""Logs of lm-evaluation-harness, ``samples_TASK_TIME.jsonl``: a row a question and filter, with all
responses to the question.
"""

import re
from pathlib import Path

from capcal_lib.rows import Row, stream_rows

# Of a row; what is beside them are metrics, where a version names none.
NAMES = {"doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter"}
NAMES |= {"doc_hash", "prompt_hash", "target_hash"}


def task_of(path: Path) -> str:
    """Return the task in the name of a log.

    >>> task_of(Path("samples_gsm8k_2025-01-01T10-00-00.123456.jsonl"))
    'gsm8k'
    """
    return re.sub(r"^samples_|_\d{4}-\d\d-\d\dT.*$", "", path.name.split(".")[0])


def model_of(path: Path) -> str:
    """Return the model of a log: as its results say, ``*_TIME.json`` beside it, or the folder that
    is called after it.
    """
    time = path.stem.partition("_20")[2]
    beside = path.parent.glob(f"*_20{time}.json") if time else ()
    for results in beside:
        for row in stream_rows(results):
            if isinstance(row.get("model_name"), str):
                return re.sub(r'[<>:/|\\?*\[\]"]+', "__", row["model_name"])
    return path.absolute().parent.name


def read_harness(row: Row) -> list[Row]:
    """Return the samples of a row with its scores, which are None for each of several samples.

    ``ValueError`` for log-likelihoods of given answers."""
    if not isinstance(row["arguments"], dict):
        raise ValueError(
            "arguments that are a list, as earlier versions wrote them; map the columns of a table "
            "with --column, or give the log of a later version"
        )
    request = row["arguments"]["gen_args_0"]
    settings = request.get("arg_1")
    if not isinstance(settings, dict):
        raise ValueError(
            "log-likelihoods of given answers, of which nothing was sampled; take a task that "
            "generates its answers"
        )
    [responses] = row["resps"]
    metrics = row.get("metrics") or [name for name in row if name not in NAMES]
    suffix = "" if row.get("filter") in (None, "none") else f",{row['filter']}"
    single = len(responses) == 1
    sample = {
        "question_id": row["doc_id"],
        "question": row["doc"].get("question") or row["doc"].get("problem") or request["arg_0"],
        "gold": row["target"],
        "temperature": settings.get("temperature"),
        "max_tokens": settings.get("max_gen_toks"),
        "top_p": settings.get("top_p"),
        "prompt": hash(f"{request['arg_0']} {settings | {'seed': None}}"),
        "scores": {f"{name}{suffix}": row[name] if single else None for name in metrics},
    }
    return [
        sample | {"response": response, "key": f"{row['doc_id']} {number}"}
        for number, response in enumerate(responses or [None])
    ]
