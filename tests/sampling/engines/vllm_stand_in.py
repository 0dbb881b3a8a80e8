"""A stand-in for vLLM's modules, as far as the engine imports them."""

import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest


def put_vllm(monkeypatch: pytest.MonkeyPatch, gpus: int, open_llm: Callable[..., Any]) -> None:
    """Put a vLLM in place that sees so many GPUs, or a CPU for none, and is opened by a
    function of its arguments.
    """
    platform = SimpleNamespace(is_cpu=lambda: gpus == 0, device_count=lambda: gpus)
    contents: dict[str, dict[str, Any]] = {
        "vllm": {"AsyncEngineArgs": dict, "SamplingParams": SimpleNamespace},
        "vllm.platforms": {"current_platform": platform},
        "vllm.sampling_params": {"RequestOutputKind": SimpleNamespace(FINAL_ONLY="FINAL_ONLY")},
        "vllm.usage.usage_lib": {"UsageContext": SimpleNamespace(LLM_CLASS="LLM_CLASS")},
        "vllm.v1.engine.async_llm": {"AsyncLLM": SimpleNamespace(from_engine_args=open_llm)},
        "vllm.v1.engine.exceptions": {"EngineDeadError": type("EngineDeadError", (Exception,), {})},
    }
    for name, names in contents.items():
        module = ModuleType(name)
        module.__dict__.update(names)
        monkeypatch.setitem(sys.modules, name, module)
    for name in ("vllm.usage", "vllm.v1", "vllm.v1.engine"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
