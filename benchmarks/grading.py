"""Time grading 50,000 responses of the shape of MATH-500: 500 questions, 100 samples each.

The samples of a question repeat some ten distinct answers, half of them right. The gold answers are
those of MATH-500 where CAPCAL_DATA_DIR (or shared/data beside the repository) has them, and a made
list otherwise. Wrong answers are other questions' gold answers, right ones are respelt, and every
response has working before its box.

    python benchmarks/grading.py [--questions 500] [--samples 100] [--one-by-one 300]
"""

import argparse
import gzip
import json
import os
import random
import resource
import time
from pathlib import Path

from capcal_lib.grading import grade, grade_many, pool
from capcal_lib.places import ROOT
from capcal_lib.questions import Answer

WORKING = (
    "First we rearrange the terms, and then we substitute $x = 3$ into the equation to find the "
    "value. " * 10
)


def gold_answers(count: int) -> list[str]:
    """Return gold answers of MATH-500, or made ones: six in ten numbers, the rest expressions."""
    path = (
        Path(os.environ.get("CAPCAL_DATA_DIR") or ROOT.parent / "shared" / "data")
        / "math"
        / "math500_test.jsonl.gz"
    )
    if path.exists():
        with gzip.open(path, "rt", encoding="utf-8") as rows:
            return [json.loads(row)["answer"] for row in rows][:count]
    forms = [
        "{0}",
        "{0}",
        r"\frac{{{0}}}{{7}}",
        "{0}",
        "{0}{1}",
        r"{0}\sqrt{{{1}}}",
        "({0},{1})",
        "{0}x+{1}",
        "{0},{1}",
        r"{0}\pi",
    ]
    return [forms[index % 10].format(index + 2, index % 89 + 3) for index in range(count)]


def respelt(gold: str, draw: random.Random) -> str:
    """Write a right answer as models variously do."""
    return draw.choice(
        [
            gold,
            gold.replace(r"\frac", r"\dfrac"),
            gold.replace("(", r"\left(").replace(")", r"\right)"),
            gold.replace(" ", ""),
            rf"\left({gold}\right) \cdot 1" if gold.isalnum() and not gold.isdigit() else gold,
        ]
    )


def responses(questions: int, samples: int, seed: int = 0) -> list[tuple[str, Answer]]:
    """Draw the samples: the chance of a right one differs by question, wrong ones prefer the first
    few.
    """
    draw = random.Random(seed)
    golds = gold_answers(questions)
    pairs = []
    for gold in golds:
        wrong = [draw.choice(golds) for _ in range(12)]
        chance = draw.betavariate(0.8, 0.8)
        for _ in range(samples):
            final = (
                respelt(gold, draw)
                if draw.random() < chance
                else wrong[min(int(draw.expovariate(0.3)), 11)]
            )
            pairs.append((f"{WORKING}So the answer is $\\boxed{{{final}}}$.", Answer("math", gold)))
    return pairs


def processor() -> float:
    """Return the seconds of processor time that this process and its ended children have used."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(use.ru_utime + use.ru_stime for use in used)


def main() -> None:
    """Print the time of grade_many, and its ratio to grading one by one."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--questions", type=int, default=500)
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument(
        "--one-by-one",
        type=int,
        default=300,
        help="responses of the subset that is graded one by one",
    )
    options = parser.parse_args()
    pairs = responses(options.questions, options.samples)
    distinct = len({(response, answer.gold) for response, answer in pairs})
    print(f"{len(pairs):,} responses, {distinct:,} distinct, {pool.cores()} cores")

    start, used = time.perf_counter(), processor()
    verdicts = grade_many(pairs)
    together = time.perf_counter() - start
    pool.close()  # so that its workers' time counts
    spent = processor() - used
    counts = {
        name: sum(verdict.verdict == name for verdict in verdicts)
        for name in ("correct", "incorrect", "not_scored")
    }
    print(
        f"grade_many: {together:.1f} s, {spent:.1f} s of processor time, worker start included; "
        f"{counts}"
    )

    subset = random.Random(1).sample(pairs, min(options.one_by_one, len(pairs)))
    start, used, share = time.perf_counter(), processor(), len(pairs) / len(subset)
    for response, answer in subset:
        grade(response, answer)
    alone = (time.perf_counter() - start) * share
    pool.close()
    cost = (processor() - used) * share
    print(
        f"one by one: {alone:.1f} s, {cost:.1f} s of processor time, extrapolated from "
        f"{len(subset)}"
    )
    print(f"ratio: {alone / together:.1f} by the clock, {cost / spent:.1f} in processor time")


if __name__ == "__main__":
    main()
