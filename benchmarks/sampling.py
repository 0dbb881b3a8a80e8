"""Tokens per second of `generate` and of the transformers engine, on the same prompts, interleaved in one run.

Prints, for three prompts, both rates and their ratio: two that the model answers at length, each sample differently,
and one of the project's own, with examples, whose answers are short and often the same.

Usage: python benchmarks/sampling.py [samples [threads]]
Rates are per second of processor time of this process over its threads, so that other work on the machine counts less.
"""

import sys
import time
import warnings
from typing import Any

import torch
from transformers import AutoModelForCausalLM

from capcal_lib.engines import Request
from capcal_lib.engines.transformers import TransformersEngine
from capcal_lib.manifests import Sampling, load_model
from capcal_lib.prompts import answer_messages
from capcal_lib.questions import Answer, Question, load_questions

SHORT = "What is the capital of Kazakhstan? Answer with the name of the city."
LONG = " ".join(
    [
        "Read the rules before you answer. Answer in one short sentence. Do not explain how you found the answer.",
        "Do not repeat the question. If you are not sure, give your best guess all the same, since a guess is worth",
        "more than nothing. Names of persons are given in full, names of countries in English, and numbers in digits.",
        "Here is the question, from a quiz for the upper classes of secondary schools.",
        "Who wrote the novel Middlemarch, and in which century did the writer live?",
    ]
)
SAMPLING = Sampling(temperature=1.0, max_tokens=24, context_tokens=2048)


def main(samples: int) -> None:
    """Measure both on all prompts, after a warm-up."""
    engine = TransformersEngine(load_model("smollm2-135m"))
    plain = AutoModelForCausalLM.from_pretrained(engine.network.name_or_path, dtype=engine.network.dtype)
    plain.to(engine.device)
    asked = [one_message(SHORT), one_message(LONG), load_questions("mini-capitals")[0]]
    own(engine, ask(engine, asked[0], 16), 0)
    for question in asked:
        request = ask(engine, question, samples)
        rates: dict[str, list[float]] = {"generate": [], "engine": []}
        for repeat in range(2):
            rates["generate"].append(generate(plain, engine, request))
            rates["engine"].append(own(engine, request, repeat))
        best = {name: max(values) for name, values in rates.items()}
        print(
            f"prompt of {len(engine._prompt(request))} tokens, {samples} samples: generate {best['generate']:.0f}, "
            f"engine {best['engine']:.0f} tokens/s, ratio {best['engine'] / best['generate']:.1f}",
            flush=True,
        )


def one_message(text: str) -> Question:
    """Make a question that is asked without examples."""
    return Question("benchmark", text, Answer("short", "none"))


def ask(engine: TransformersEngine, question: Question, samples: int) -> Request:
    """Ask a question of the benchmark plainly, another in the project's way."""
    plain = ({"role": "user", "content": question.text},)
    messages = plain if question.id == "benchmark" else answer_messages(question, engine.model.prompt_style)
    return Request(question, messages, tuple(range(samples)))


def own(engine: TransformersEngine, request: Request, seed: int) -> float:
    """Return the engine's tokens per second."""
    start = time.process_time()
    groups = list(engine.sample([request], SAMPLING, seed))
    seconds = (time.process_time() - start) / torch.get_num_threads()
    return sum(sample.completion_tokens for group in groups for sample in group) / seconds


def generate(network: Any, engine: TransformersEngine, request: Request) -> float:
    """Return the tokens per second of transformers' own batched sampling; padding does not count."""
    ids = torch.tensor([engine._prompt(request)], device=engine.device)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.process_time()
        rows = network.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            do_sample=True,
            temperature=SAMPLING.temperature,
            top_k=0,
            top_p=1.0,
            num_return_sequences=len(request.sample_indices),
            max_new_tokens=SAMPLING.max_tokens,
        )
        seconds = (time.process_time() - start) / torch.get_num_threads()
    ended = torch.isin(rows[:, ids.shape[1] :], torch.tensor(sorted(engine.ends), device=engine.device)).int()
    return float((ended.cumsum(1) - ended == 0).sum()) / seconds


if __name__ == "__main__":
    if len(sys.argv) > 2:
        torch.set_num_threads(int(sys.argv[2]))
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 256)
