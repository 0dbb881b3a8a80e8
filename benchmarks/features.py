"""Measure the memory of extracting hidden states against asking transformers for those of all
positions.

Run: OMP_NUM_THREADS=1 python benchmarks/features.py [--questions 32] [--model smollm2-135m]

Each way runs in a process of its own: the engine's hooks, which keep the last position alone, and a
padded batch with ``output_hidden_states=True``, through the whole model as the paper's authors do
and through its decoder alone. Shown is by how much each raises the peak of resident memory above
the loaded model."""

import argparse
import resource
import subprocess
import sys

from capcal_lib.manifests import load_model
from capcal_lib.questions import load_questions
from capcal_lib.sampling.engines import answer_requests
from capcal_lib.sampling.engines.transformers import TransformersEngine

DATASET = "mini-capitals"
WAYS = ("hooks", "whole model", "decoder")


def main() -> None:
    """Print the memory of each way and its ratio to that of the hooks."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--questions", type=int, default=32, help="prompts of the batch (default 32)"
    )
    parser.add_argument(
        "--model", default="smollm2-135m", help="a model of `capcal models` (default smollm2-135m)"
    )
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.way:
        print(rise(given.model, given.questions, given.way))
        return
    same = [sys.executable, __file__, "--model", given.model, "--questions", str(given.questions)]
    found = {
        way: float(
            subprocess.run(
                [*same, "--way", way], check=True, capture_output=True, text=True
            ).stdout.split()[-1]
        )
        for way in WAYS
    }
    print(f"{given.model}, {given.questions} prompts of {DATASET}")
    for way, mebibytes in found.items():
        print(
            f"{way:<12}{mebibytes:9.0f} MiB above the loaded "
            f"model{mebibytes / found['hooks']:7.1f} x"
        )


def rise(name: str, number: int, way: str) -> float:
    """Return by how many MiB the peak of resident memory rises."""
    import torch

    model = load_model(name)
    engine = TransformersEngine(model)
    requests = answer_requests(model, load_questions(DATASET, "test", limit=number))
    engine.hidden_states(
        requests[:1]
    )  # what a first pass sets up, such as libraries, belongs to the model
    before = peak()
    if way == "hooks":
        engine.hidden_states(requests)
    else:
        # Plain attention, since the engine's own knows no padding; the weights are the loaded ones.
        network = engine.network if way == "whole model" else engine.network.get_decoder()
        engine.network.set_attn_implementation("sdpa")
        batch = engine.tokenizer.pad(
            {"input_ids": [engine._prompt(one) for one in requests]}, return_tensors="pt"
        )
        with torch.inference_mode():
            states = network(**batch, use_cache=False, output_hidden_states=True).hidden_states
            last = batch["attention_mask"].sum(1) - 1
            torch.stack([layer[torch.arange(number), last] for layer in states]).mean(0)
    return peak() - before


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
