"""Hidden states from several replicas of vLLM at once, with doubles of vLLM's processes."""

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from capcal_lib.manifests import load_model
from capcal_lib.questions import load_questions
from capcal_lib.sampling.draw import answer_requests
from capcal_lib.sampling.engines import vllm

MODEL = load_model("smollm2-135m")
QUESTIONS = load_questions("mini-exam", limit=7)
WIDTH = 4


class Tokenizer:
    """One token a character of the last message."""

    chat_template = ""

    def apply_chat_template(self, messages: list[dict[str, str]], **_: Any) -> dict[str, list[int]]:
        return {"input_ids": [ord(letter) for letter in messages[-1]["content"]]}


def states(prompt: list[int]) -> np.ndarray:
    return np.array([sum(prompt), len(prompt), prompt[0], prompt[-1]], dtype=np.float32)


class Replica:
    """A process of vLLM's: it reads one prompt at a time, and watches the position it is told."""

    def __init__(self, at_once: list[int]) -> None:
        self.at_once = at_once
        self.reading: list[tuple[str, list[int]]] = []
        self.read = 0
        self.position = -1
        self.kept = b""
        self.model_config = SimpleNamespace(
            enforce_eager=True,
            get_hidden_size=lambda: WIDTH,
            get_total_num_hidden_layers=lambda: 1,
        )
        queue = SimpleNamespace(empty=lambda: not self.reading)
        self.engine_core = SimpleNamespace(ensure_alive=lambda: None, outputs_queue=queue)

    def collective_rpc(self, name: str, args: tuple[Any, ...]) -> list[Any]:
        if name == "watch_position":
            [self.position] = args
            return [None]
        assert (name, args) == ("end_watch", ("mean",))
        return [self.kept]

    def add_request(self, name: str, prompt: dict[str, list[int]], _: Any) -> None:
        assert not self.reading, "one prompt at a time"
        self.reading.append((name, prompt["prompt_token_ids"]))
        self.at_once[0] += 1
        self.at_once[1] = max(self.at_once)

    def step(self) -> list[Any]:
        name, prompt = self.reading.pop()
        self.at_once[0] -= 1
        assert self.position == len(prompt) - 1, "it watches the last token of its own prompt"
        self.kept = states(prompt).tobytes()
        self.read += 1
        return [SimpleNamespace(finished=True, request_id=name, outputs=[])]


@pytest.mark.parametrize("replicas", [1, 3, 8])
def test_every_replica_reads_prompts_and_each_row_is_its_questions(
    monkeypatch: pytest.MonkeyPatch, replicas: int
) -> None:
    names = {
        "vllm": {"SamplingParams": lambda **_: SimpleNamespace(n=1)},
        "vllm.sampling_params": {"RequestOutputKind": SimpleNamespace(FINAL_ONLY=1)},
        "vllm.v1.engine.exceptions": {"EngineDeadError": type("EngineDeadError", (Exception,), {})},
    }
    for name in ("vllm", "vllm.sampling_params", "vllm.v1", "vllm.v1.engine", *names):
        double = ModuleType(name)
        vars(double).update(names.get(name, {}))
        monkeypatch.setitem(sys.modules, name, double)
    at_once = [0, 0]
    engine = object.__new__(vllm.VllmEngine)
    engine.model, engine.tokenizer = MODEL, Tokenizer()
    engine.engines = [Replica(at_once) for _ in range(replicas)]  # type: ignore[misc]
    requests = answer_requests(MODEL, QUESTIONS)
    found = engine.hidden_states(requests)
    texts = [request.messages[-1]["content"] for request in requests]
    expected = [states([ord(letter) for letter in text]) for text in texts]
    np.testing.assert_array_equal(found, np.stack(expected))
    assert at_once[1] == min(replicas, len(QUESTIONS)), "side by side"
    read = [replica.read for replica in engine.engines]  # type: ignore[attr-defined]
    assert max(read) - min(read) <= 1
