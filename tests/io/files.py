"""Files and tables of a few questions, for tests of what people bring; logs in the form that
lm-evaluation-harness, inspect_ai and OpenAI's batches write."""

import hashlib
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from capcal_lib.io.samples import Log, read_samples
from capcal_lib.io.tables import read_file

LOG = Path(__file__).parent / "logs" / "samples_counts.jsonl"
BY_RULES = "graded by the rules, as answers of the kind number"
CSV = "question_id,confidence,correct,total\na,0.5,1,2\nb,1.0,2,2\n"
GROUPED = "question_id,confidence,correct,total,{}\n" + "".join(
    f"q{n},0.{n % 10},{n // 6},10,s{n // 10}\n" for n in range(60)
)


def table_of(mu: np.ndarray, noise: float, rng: np.random.Generator) -> pd.DataFrame:
    said = np.clip(mu + rng.normal(0, noise, len(mu)), 0.01, 0.99)
    names = [f"q{place}" for place in range(len(mu))]
    return pd.DataFrame({"confidence": said, "correct": (20 * mu).round(), "total": 20}, names)


def write(path: Path, *rows: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def accuracy(path: Path, **options: Any) -> tuple[int, int]:
    """How many samples of a log are correct, of how many."""
    table = read_file(path, **options).table
    return int(table["correct"].sum()), int(table["total"].sum())


def read_log(files: Any, *options: Any, **more: Any) -> Log:
    return read_samples(files, *options, **more)


def digest(value: object) -> str:
    return hashlib.sha256(str(value).encode()).hexdigest()


def harness(number: int, *texts: str, **change: Any) -> dict[str, Any]:
    """A row of lm-evaluation-harness with the score 1, of a task that generates."""
    settings = {"until": ["\n"], "do_sample": True, "temperature": 0.5}
    row = {
        "doc_id": number,
        "doc": {"question": f"What is {number}?"},
        "target": "4",
        "arguments": {"gen_args_0": {"arg_0": f"What is {number}?\nAnswer:", "arg_1": settings}},
        "resps": [list(texts)],
        "filtered_resps": list(texts[:1]),
        "filter": "none",
        "metrics": ["exact_match"],
        "exact_match": 1.0,
    } | change
    hashes = {
        "doc_hash": digest(row["doc"]),
        "prompt_hash": digest(row["arguments"]),
        "target_hash": digest(row["target"]),
    }
    return hashes | row


def epoch(number: int, score: Any, response: str = "It is so.", **change: Any) -> dict[str, Any]:
    """A sample of inspect_ai: a free answer that no rule could grade."""
    message = {"role": "assistant", "content": response, "source": "generate"}
    choices = [{"message": message, "stop_reason": "stop"}]
    sample = {
        "id": number,
        "epoch": 1,
        "input": f"Explain {number}.",
        "target": "A good explanation.",
        "messages": [{"role": "user", "content": f"Explain {number}.", "source": "input"}, message],
        "output": {"model": "lab/m", "choices": choices, "completion": response},
        "scores": score if isinstance(score, dict) else {"judge": {"value": score}},
        "uuid": digest((number, score, response, change))[:22],
    }
    return sample | change


def inspect(path: Path, *samples: dict[str, Any], **change: Any) -> Path:
    """A log of inspect_ai, as JSON or in an archive."""
    spec = {"eval_id": digest(path), "run_id": "r", "task": "t", "task_id": digest(path)[:22]}
    log = {
        "version": 2,
        "status": "success",
        "eval": spec | {"model": "lab/m", "created": "2026-11-22T04:19:26+00:00"},
        "plan": {"name": "plan", "steps": [{"solver": "generate"}], "config": {}},
    } | change
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".json":
        path.write_text(json.dumps(log | {"samples": samples}))
        return path
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for sample in samples:
            name = f"samples/{sample['id']}_epoch_{sample['epoch']}.json"
            archive.writestr(name, json.dumps(sample))
        archive.writestr("header.json", json.dumps(log))
    return path


def reply(text: str | None, **change: Any) -> dict[str, Any]:
    """A choice of a chat, as OpenAI and vLLM return one."""
    message = {"role": "assistant", "content": text, "refusal": None}
    return {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"} | change


def batch(name: str, *choices: Any, status: int = 200, request: str = "") -> dict[str, Any]:
    """A line of the output of an OpenAI batch, whose ``id`` is that of the request."""
    request = request or digest((name, choices))[:12]
    body = {
        "id": f"chatcmpl-{request}",
        "object": "chat.completion",
        "created": 1711652795,
        "model": "gpt-4o-mini-2024-07-18",
        "choices": list(choices),
        "usage": {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13},
    }
    response = {"status_code": status, "request_id": f"req_{request}", "body": body}
    return {
        "id": f"batch_req_{request}",
        "custom_id": name,
        "response": response,
        "error": None,
    }
