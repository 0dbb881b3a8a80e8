"""A stand-in for vLLM that answers without a network, as far as the engine asks it.

What it does with a request for several samples is what vLLM does: sample i is drawn with the seed
plus i, and all come back together, in order. `test_vllm.py` holds the same against vLLM itself."""

import random
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

END = 0  # the token that ends an answer


class EngineDeadError(Exception):
    """As vLLM's: its process has ended."""


class LLM:
    """vLLM's own class as far as it is asked. What a sample says follows from its seed alone."""

    def __init__(self, model: str, **settings: Any) -> None:
        self.settings = settings
        self.llm_engine = self
        self.engine_core = SimpleNamespace(shutdown=lambda: None)
        self.asked: list[tuple[Any, Any]] = []
        self.under_way: dict[str, Any] = {}
        self.most_under_way = 0
        self.steps = 0
        self.dies_at: int | None = None  # a step

    def add_request(self, name: str, prompt: Any, parameters: Any) -> None:
        self.asked.append((prompt, parameters))
        self.under_way[name] = parameters
        self.most_under_way = max(self.most_under_way, len(self.under_way))

    def abort_request(self, names: list[str]) -> None:
        for name in names:
            del self.under_way[name]

    def step(self) -> list[Any]:
        """Finish the oldest request, and give a piece of the next."""
        if self.steps == self.dies_at:
            raise EngineDeadError
        self.steps += 1
        name = next(iter(self.under_way))
        parameters = self.under_way.pop(name)
        choices = []
        for index in range(parameters.n):
            rng = random.Random(parameters.seed + index)
            said = rng.choices(range(1, 8), k=rng.randint(1, 5))
            ended = rng.random() < 0.5
            choices.append(
                SimpleNamespace(
                    token_ids=[*said, END] if ended else said,
                    finish_reason="stop" if ended else "length",
                )
            )
        outputs = [SimpleNamespace(request_id=name, outputs=choices, finished=True)]
        for other in [*self.under_way][:1]:
            outputs.append(SimpleNamespace(request_id=other, outputs=[], finished=False))
        return outputs


def put_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the engine import the stand-in."""
    contents: dict[str, dict[str, Any]] = {
        "vllm": {"LLM": LLM, "SamplingParams": SimpleNamespace},
        "vllm.sampling_params": {"RequestOutputKind": SimpleNamespace(FINAL_ONLY="FINAL_ONLY")},
        "vllm.v1.engine.exceptions": {"EngineDeadError": EngineDeadError},
        "vllm.v1": {},
        "vllm.v1.engine": {},
    }
    for name, names in contents.items():
        module = ModuleType(name)
        module.__dict__.update(names)
        monkeypatch.setitem(sys.modules, name, module)
