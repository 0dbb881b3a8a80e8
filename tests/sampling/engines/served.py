"""Requests to the openai engine, at a server of the tests, and their answers."""

import json
from collections.abc import Callable
from typing import Any

from capcal_lib.manifests import Model, Sampling, load_model
from capcal_lib.questions import load_questions
from capcal_lib.questions.prompts import ask_for_answer
from capcal_lib.runs.store import Sample
from capcal_lib.sampling.engines import Failure, Request
from capcal_lib.sampling.engines.openai import OpenAIEngine
from tests.sampling.chat_server import ChatServer, Fault

MODEL = load_model("smollm2-135m")
QUESTIONS = load_questions("mini-capitals")
CHOSEN = load_questions("mini-capitals", limit=4)  # what the command takes with --limit 4
SAMPLING = Sampling(temperature=0.8, max_tokens=24, context_tokens=20_000)


def requests(questions: int, samples: int) -> list[Request]:
    indices = tuple(range(samples))
    return [
        Request(one, ask_for_answer(one, MODEL.prompts), indices) for one in QUESTIONS[:questions]
    ]


def open_at(server: ChatServer, model: Model = MODEL, **options: Any) -> OpenAIEngine:
    patience = options.pop("patience", 5.0)
    engine = OpenAIEngine(model, base_url=server.url, **options)
    engine.client.patience = patience
    return engine


def draw(
    engine: OpenAIEngine, asked: list[Request], sampling: Sampling = SAMPLING, seed: int = 0
) -> tuple[list[Sample], list[Failure]]:
    rows: list[Sample] = []
    failures = []
    for group in engine.sample(asked, sampling, seed):
        if isinstance(group, Failure):
            failures.append(group)
        else:
            rows += group
    assert len({(row.question_id, row.sample_index) for row in rows}) == len(rows)
    return sorted(rows, key=lambda row: (row.question_id, row.sample_index)), failures


def said(code: int, message: str) -> str:
    """What is shown of an answer with a status and a message."""
    return f"status {code}: {json.dumps({'error': {'message': message}})}"


def first(times: int, fault: Fault) -> Callable[[int, dict[str, Any]], Fault | None]:
    return lambda number, body: fault if number < times else None


def always(fault: Fault) -> Callable[[int, dict[str, Any]], Fault | None]:
    return lambda number, body: fault
