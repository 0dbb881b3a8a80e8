"""Two graders on one run: where they disagree, how often, and what a person who looked says."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from capcal_lib.errors import InputError
from capcal_lib.grading import GRADER_VERSION, Verdict
from capcal_lib.grading.error import CorrectedMean, corrected_mean, error_from_labels
from capcal_lib.grading.second import second_opinion
from capcal_lib.grading.verdicts import read_verdicts, run_questions
from capcal_lib.metrics.intervals import Interval, binomial_interval, bootstrap_mean
from capcal_lib.questions import Question
from capcal_lib.sampling.store import KEY, Identity, read_record, read_samples

LABEL_COLUMNS = ("question_id", "extracted", "first", "second", "samples", "weight", "correct")


@dataclass(frozen=True, slots=True)
class Pair:
    """An answer to a question as both graders see it, with one response that gave it.

    ``samples`` is how many samples of the run gave it; ``weight`` how many it stands for on the page: the same for a
    disagreement, and for an agreement, of which only some are drawn, its share of all samples agreed on.
    """

    question: Question
    response: str
    first: Verdict
    second: Verdict
    samples: int
    weight: float

    @property
    def disagreement(self) -> bool:
        """Whether it matters who is right: one grader alone calls it correct, or the first could not settle it."""
        return self.first.verdict == "not_scored" or (self.first.verdict == "correct") != (
            self.second.verdict == "correct"
        )


@dataclass(frozen=True, slots=True)
class SecondLook:
    """What a second grader says of a run.

    ``by_pair`` and ``by_sample`` are the shares on which the two disagree, with 95 % intervals: Jeffreys over the
    distinct pairs, and a bootstrap over questions for the samples.
    """

    identity: Identity
    grader_version: str
    samples: int
    pairs: int
    disagreements: tuple[Pair, ...]
    agreements: tuple[Pair, ...]
    by_pair: Interval
    by_sample: Interval


def second_look(folder: Path, *, agreements: int = 50, seed: int = 0) -> SecondLook:
    """Grade a graded run a second time, and set the two verdicts side by side.

    Parameters
    ----------
    folder : Path
        A run whose samples are graded.
    agreements : int, default=50
        How many pairs to draw where both agree, with chances by their samples, so that a person can find the errors
        that both make: without them nothing is known of either grader.
    seed : int, default=0
        Decides which.

    Raises
    ------
    InputError
        Where the run is not graded or has no samples, or its questions cannot be loaded or have changed.
    """
    if agreements < 0:
        raise InputError(f"agreements must be 0 or more; got {agreements}")
    questions, samples = run_questions(folder), read_samples(folder)
    rows = samples[[*KEY, "response"]].merge(read_verdicts(folder), on=KEY)
    if not len(rows):
        raise InputError(f"{folder} has no graded samples; draw some with: capcal sample")
    rows = rows.astype({"extracted": object}).where(rows.notna(), None)
    counted: dict[tuple[str, Verdict, Verdict], list[Any]] = {}
    opinions: dict[tuple[str, str], Verdict] = {}
    for row in rows.itertuples(index=False):
        question, response = str(row.question_id), str(row.response)
        if (question, response) not in opinions:
            opinions[question, response] = second_opinion(response, questions[question].answer)
        first = Verdict(row.verdict, row.extracted, str(row.reason))  # type: ignore[arg-type]
        counted.setdefault((question, first, opinions[question, response]), [response, 0])[1] += 1
    pairs = [
        Pair(questions[question], response, first, second, number, float(number))
        for (question, first, second), (response, number) in counted.items()
    ]
    differ = [pair for pair in pairs if pair.disagreement]
    share = pd.Series(dict.fromkeys(rows["question_id"], 0.0))
    for pair in differ:
        share[pair.question.id] += pair.samples
    share /= rows.groupby("question_id").size()
    low, high = binomial_interval([len(differ)], [len(pairs)])[0]
    rng = np.random.default_rng(seed)
    return SecondLook(
        read_record(folder).identity,
        GRADER_VERSION,
        len(rows),
        len(pairs),
        tuple(sorted(differ, key=lambda pair: (-pair.samples, pair.question.id))),
        tuple(_drawn([pair for pair in pairs if not pair.disagreement], agreements, rng)),
        Interval(len(differ) / len(pairs), float(low), float(high)),
        bootstrap_mean(share.to_numpy(), rng=rng, resamples=2_000),
    )


def _drawn(pairs: Sequence[Pair], number: int, rng: np.random.Generator) -> list[Pair]:
    """Draw pairs systematically in a random order, with chances by their samples; the weights sum to all samples."""
    if not pairs or not number:
        return []
    order = rng.permutation(len(pairs))
    ends = np.cumsum([pairs[index].samples for index in order])
    step = ends[-1] / number
    hits = np.bincount(np.searchsorted(ends, (rng.random() + np.arange(number)) * step, side="right"))
    return [
        Pair(pair.question, pair.response, pair.first, pair.second, pair.samples, float(times * step))
        for index, times in zip(order, hits, strict=False)
        if times and (pair := pairs[index])
    ]


def label_row(pair: Pair, correct: bool | None = None) -> dict[str, Any]:
    """Return a pair's row of a labels file, without the question's text."""
    return {
        "question_id": pair.question.id,
        "extracted": pair.first.extracted,
        "first": pair.first.verdict,
        "second": pair.second.verdict,
        "samples": pair.samples,
        "weight": round(pair.weight, 6),
        "correct": correct,
    }


def read_labels(path: str | Path) -> pd.DataFrame:
    """Read what a person said of answers: JSONL rows with the keys of ``LABEL_COLUMNS``.

    Returns
    -------
    DataFrame
        With the columns of ``LABEL_COLUMNS``: the first grader's and the second's verdict, how many samples the
        row stands for (``weight``), and ``correct``: 1.0, 0.0, or NaN where the person could not tell.

    Raises
    ------
    InputError
        For a file that cannot be read, and a row that is not as it must be, with its line.

    Examples
    --------
    >>> file = Path(getfixture("tmp_path")) / "labels.jsonl"
    >>> row = {"question_id": "q1", "extracted": "4", "first": "correct", "second": "incorrect", "correct": True}
    >>> _ = file.write_text(json.dumps(row | {"samples": 3, "weight": 3.0}))
    >>> read_labels(file)[["question_id", "first", "correct", "weight"]].values.tolist()
    [['q1', 'correct', 1.0, 3.0]]
    """
    source = Path(path)
    try:
        lines = source.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {source}: {getattr(error, 'strerror', None) or 'not UTF-8'}") from None
    rows = [_label(line, f"{source}, line {number}") for number, line in enumerate(lines, 1) if line.strip()]
    if not rows:
        raise InputError(f"{source} has no labels; make some with: capcal grade --audit OUT.html")
    table = pd.DataFrame(rows, columns=list(LABEL_COLUMNS))
    return table.astype({"correct": float, "weight": float})


def agreement(labels: pd.DataFrame, grader: Literal["first", "second"] = "first", *, level: float = 0.95) -> Interval:
    """Return the share of samples on which a grader and the person agree, with a Jeffreys interval.

    Parameters
    ----------
    labels : DataFrame
        As returned by :func:`read_labels`. Left out is what the person could not tell and the grader did not score.
        The right answers alone give the grader's sensitivity, the wrong ones its specificity.
    grader : {"first", "second"}
        Whose verdicts.
    level : float, default=0.95
        Nominal coverage of the interval, between 0 and 1. Labels of unequal weights count as the number of labels of
        one weight that would tell as much.

    Raises
    ------
    InputError
        Where no label is left.

    Examples
    --------
    >>> labels = pd.DataFrame({"first": ["correct", "incorrect"], "correct": [1.0, 1.0], "weight": [9.0, 1.0]})
    >>> agreement(labels).estimate
    0.9
    """
    from scipy.stats import beta

    told = labels[labels["correct"].notna() & (labels[grader] != "not_scored") & (labels["weight"] > 0)]
    if not len(told):
        raise InputError(
            "no answer is labelled right or wrong; settle some on the page of: capcal grade --audit OUT.html"
        )
    weights, agrees = told["weight"], (told[grader] == "correct") == (told["correct"] == 1)
    share = float(weights[agrees].sum() / weights.sum())
    number = float(weights.sum() ** 2 / (weights**2).sum())
    low, high = beta.ppf([(1 - level) / 2, (1 + level) / 2], share * number + 0.5, (1 - share) * number + 0.5)
    return Interval(share, 0.0 if share == 0 else float(low), 1.0 if share == 1 else float(high))


def corrected_accuracy(folder: Path, labels: pd.DataFrame) -> CorrectedMean:
    """Correct a run's mean expected accuracy for the error that labels tell of the first grader.

    Raises
    ------
    InputError
        Where the run is not graded, or no right answer or no wrong one is labelled.
    """
    verdicts = read_verdicts(folder)
    scored = verdicts[verdicts["verdict"] != "not_scored"]
    correct = (scored["verdict"] == "correct").groupby(scored["question_id"])
    return corrected_mean(correct.sum(), correct.size(), error_from_labels(labels))


def _label(line: str, where: str) -> dict[str, Any]:
    try:
        row: Any = json.loads(line)
    except (ValueError, RecursionError):
        raise InputError(f"{where}: not valid JSON") from None
    missing = [name for name in LABEL_COLUMNS if not isinstance(row, dict) or name not in row]
    if missing:
        raise InputError(f"{where}: {missing[0]!r} is missing; a row has {', '.join(LABEL_COLUMNS)}")
    if row["correct"] not in (True, False, None):
        raise InputError(f"{where}: 'correct' must be true, false or null; got {row['correct']!r:.40}")
    weight = row["weight"]
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight < float("inf"):
        raise InputError(f"{where}: 'weight' must be a number from 0; got {weight!r:.40}")
    return {name: row[name] for name in LABEL_COLUMNS}
