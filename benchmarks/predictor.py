"""Time the prediction of one question's mu against one decoded token of its answer, on this
machine.

Run: OMP_NUM_THREADS=1 python benchmarks/predictor.py [--model smollm2-135m] [--dataset mini-exam]
[--questions 20]

For each question in turn: the prediction, one sample of a single token, and one of many, one sample
in flight. A decoded token is what the longer sample takes more, over the tokens that it has more.
Shown are medians by the clock."""

import argparse
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from capcal_lib.confidence.of_run import asked_model
from capcal_lib.manifests import RECORDED_RUNS
from capcal_lib.probes import load_predictor
from capcal_lib.questions import load_questions
from capcal_lib.runs import find_run
from capcal_lib.sampling.draw import answer_requests
from capcal_lib.sampling.engines import open_engine

TOKENS = 33


def main() -> None:
    """Print the times and their ratios."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--model", default="smollm2-135m", help="a model with recorded runs (default smollm2-135m)"
    )
    parser.add_argument(
        "--dataset", default="mini-exam", help="with a recorded training run (default mini-exam)"
    )
    parser.add_argument("--questions", type=int, default=20, help="questions (default 20)")
    given = parser.parse_args()
    predictor = load_predictor(RECORDED_RUNS, given.model, given.dataset)
    model = asked_model(find_run(RECORDED_RUNS, given.model, given.dataset, "train"))
    engine = open_engine(model)
    rows = []
    for question in load_questions(given.dataset, "test", limit=given.questions):
        (asked,) = answer_requests(model, [question])
        request = replace(asked, sample_indices=(0,))

        def draw(tokens: int, request=request) -> tuple[float, int]:  # type: ignore[no-untyped-def]
            sampling = model.sampling.model_copy(update={"max_tokens": tokens})
            seconds, ((found,),) = timed(lambda: list(engine.sample([request], sampling, 0)))
            return seconds, found.completion_tokens

        predicted, _ = timed(lambda question=question: predictor(question))
        (first, one), (all_of_it, many) = draw(1), draw(TOKENS)
        rows.append(
            (predicted, first, (all_of_it - first) / (many - one) if many > one else np.nan)
        )
    predicted, first, token = np.nanmedian(
        rows[1:], axis=0
    )  # the first pays for what is set up once
    print(f"{given.model} on {given.dataset}, {len(rows) - 1} questions; median seconds")
    print(f"prediction {predicted:.4f}; a decoded token {token:.4f}, ratio {predicted / token:.1f}")
    print(f"reading the prompt and drawing one token {first:.4f}, ratio {predicted / first:.2f}")


def timed(call: Callable[[], object]) -> tuple[float, object]:
    """Return how long a call takes, and what it returns."""
    started = time.perf_counter()
    result = call()
    return time.perf_counter() - started, result


if __name__ == "__main__":
    main()
