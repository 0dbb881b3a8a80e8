"""Grade generated responses, hostile and ordinary, of every kind, and count that nothing is lost.

Every response must get exactly one verdict, in order, with an answer of bounded length wherever it
is one of ``correct`` and ``incorrect``; a text that is graded twice must get the same verdict; and
nothing may crash.

    python -m benchmarks.fuzz_grading [--responses 100000] [--seed 0] [--batch 5000]

With ``--cases N`` it prints another thing: of so many made answers of each class (right ones in
other forms, wrong ones that look right), how many the grader judges wrong, and how many the second
one does, which is Math-Verify for mathematics.
"""

import argparse
import random
import re
import resource
import time
from collections import Counter

from capcal_lib.grading import Verdict, grade_many, pool
from capcal_lib.grading.latex import LONGEST
from capcal_lib.grading.second_opinion import second_opinion
from capcal_lib.manifests import KINDS, Kind
from capcal_lib.questions import Answer
from tests.grading.classes import CLASSES, cases

GOLDS: dict[Kind, list[Answer]] = {
    "math": [
        Answer("math", gold)
        for gold in (r"\frac{x+1}{2}", "(1,2)", r"3 \pm \sqrt{2}", "52_8", "y=2x+1", "7")
    ],
    "number": [Answer("number", gold) for gold in ("7", "1/2", "1,234.5", "50%", "-3")],
    "choice": [Answer("choice", "C", ("water",)), Answer("choice", "A", ("an apple",))],
    "short": [
        Answer("short", "Marie Curie", ("Maria Salomea Sklodowska",)),
        Answer("short", "1969"),
        Answer("short", "A"),
    ],
}
ORDINARY = [
    *re.findall(
        r"\S+",
        r"""\frac{1}{2} x+1 (1,2) 2x+1 3+\sqrt2 52_8 7 0.5 1,234.5 50% -3 C (A) B. water apple Curie
        Marie 1969 because so the answer is not and or = : . , ** $ 12 x y z Paris 10^6 \pi 5 cm
        \text{ km } Therefore, Option correct""",
    ),
    *("\n", "\n\n", "The answer is ", "Marie Curie", "an apple", "C. water", r"\frac{x+1}{2}"),
]
HOSTILE = [
    *re.findall(
        r"\S+",
        r"""\boxed{ \fbox{ { } \ $ $$ ^ _ ( ) [ ] | ! & \\ % # ~ \frac \sqrt \left \right \text{
        \over \choose \log_ \sin \binom \pm \cup \begin{pmatrix} \end{pmatrix} \infty \int
        \sum_{n=1}^{9999} \mathbb{R} \{ \} \mid
        9^{9^{9^9}} 10000000! \setminus \lfloor \rfloor
        ** 2**10 (9!)! 1e999999999 2^{9999} __import__('os').system('true')
        ().__class__.__bases__[0] eval(input()) exec('1') {}.format %s%n ;DROP ${7*7} <think>
        </think> <|channel|>final<|message|>
        <|channel|>analysis<|message|> <|end|> analysis
        assistantfinal [THINK] [/THINK] #### <script>alert(1)</script> ① ½ ٣ 𝟕 ∞ − 🙂 東京""",
    ),
    *(
        "\x00",
        "\ud800",
        "\u202e",
        "\u200b",
        "\ufeff",
        "\U000e0041",
        "e\u0301" * 20,
        "\r",
        "\t",
        "lambda x: x",
        "1" * 120,
    ),
    *(
        "a" * 200,
        "a " * 100,
        "(" * 12,
        "{" * 60,
        "'" * 30,
        "-" * 50,
        "0." + "3" * 90,
        "A. B. C. D.",
        "A\nB\nC\n",
    ),
    *("answer is answer is answer is", r"\log_{x}" * 5),
]


def response(draw: random.Random) -> str:
    """Draw one response: pieces in any order, sometimes in a box or after a phrase, sometimes very
    long.
    """
    hostile = max(0.0, draw.uniform(-0.4, 1))
    pieces = [
        draw.choice(HOSTILE if draw.random() < hostile else ORDINARY)
        for _ in range(min(int(draw.expovariate(0.2)), 60))
    ]
    text = draw.choice(("", " ")).join(pieces)
    shape = draw.random()
    if shape < 0.4:
        text = f"\\boxed{{{text}}}"
    elif shape < 0.55:
        text = f"The answer is {text}"
    elif shape < 0.6:
        text = (
            "".join(
                chr(draw.choice((draw.randrange(128), draw.randrange(0x110000)))) for _ in range(40)
            )
            + text
        )
    elif shape < 0.61:
        text = text * draw.randrange(1, 2_000)
    return text


def faults(pairs: list[tuple[str, Answer]], verdicts: list[Verdict]) -> list[str]:
    """Say what is wrong with the verdicts, if anything."""
    found = (
        [] if len(pairs) == len(verdicts) else [f"{len(pairs)} responses, {len(verdicts)} verdicts"]
    )
    for (text, answer), verdict in zip(pairs, verdicts, strict=False):
        known = verdict.verdict in ("correct", "incorrect", "no_answer", "not_scored")
        bounded = verdict.extracted is None or 0 < len(verdict.extracted) <= LONGEST
        consistent = (verdict.extracted is None) == (verdict.verdict == "no_answer")
        if not (known and bounded and consistent and verdict.reason):
            found.append(f"{answer}, {text[:200]!r}: {verdict}")
    return found


def fuzz(
    responses: int, *, seed: int = 0, batch: int = 5_000
) -> tuple[Counter[tuple[str, str]], list[str]]:
    """Grade generated responses; return (kind, verdict) counts, and what went wrong."""
    draw = random.Random(seed)
    counts: Counter[tuple[str, str]] = Counter()
    wrong: list[str] = []
    for start in range(0, responses, batch):
        kinds = [draw.choice(KINDS) for _ in range(min(batch, responses - start))]
        pairs = [(response(draw), draw.choice(GOLDS[kind])) for kind in kinds]
        first = grade_many(pairs)
        wrong += faults(pairs, first)
        sampled = draw.sample(range(len(pairs)), min(50, len(pairs)))
        again = grade_many([pairs[index] for index in sampled])
        wrong += [
            f"twice, otherwise: {pairs[index]!r:.200}: {first[index]}, {verdict}"
            for index, verdict in zip(sampled, again, strict=True)
            if verdict != first[index]
            and "not_scored" not in (verdict.verdict, first[index].verdict)
        ]
        counts.update((kind, verdict.verdict) for kind, verdict in zip(kinds, first, strict=False))
    return counts, wrong


def print_classes(number: int, seed: int) -> None:
    """Print how many answers of each class were tried, and judged wrong by each grader."""
    print("| class | right answers | missed | second grader | wrong answers | accepted | second |")
    print("|---|---|---|---|---|---|---|")
    for name in CLASSES:
        drawn = list(dict.fromkeys(cases(name, number, seed)))
        verdicts = grade_many([(each.response, Answer(each.kind, each.gold)) for each in drawn])
        ours = [verdict.verdict == "correct" for verdict in verdicts]
        given = [(each.response, each.kind, (each.gold,)) for each in drawn]
        theirs = [told is True for told in pool.settle(second_opinion, given)]
        cells = []
        for right in (True, False):
            chosen = [place for place, each in enumerate(drawn) if each.right == right]
            wrong = [sum(said[place] != right for place in chosen) for said in (ours, theirs)]
            cells += [len(chosen), *wrong]
        print(f"| {name} | {' | '.join(map(str, cells))} |", flush=True)


def main() -> None:
    """Print the counts and faults."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--responses", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--batch", type=int, default=5_000)
    parser.add_argument("--cases", type=int, default=0)
    options = parser.parse_args()
    if options.cases:
        print_classes(options.cases, options.seed)
        return
    start = time.perf_counter()
    counts, wrong = fuzz(options.responses, seed=options.seed, batch=options.batch)
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    for key, number in sorted(counts.items()):
        print(f"{number:>8,}  {' '.join(key)}")
    lost = options.responses - sum(counts.values())
    print(f"{options.responses:,} responses, {lost} lost, {len(wrong)} faults")
    processor = sum(use.ru_utime + use.ru_stime for use in used)
    print(
        f"{time.perf_counter() - start:.0f} s; {processor:.0f} s of processor time, workers that "
        "are done included"
    )
    for fault in wrong[:20]:
        print(fault.encode("unicode_escape").decode())


if __name__ == "__main__":
    main()
