"""What the grader does to the numbers: the same answers under stricter and more lenient rules, judges and labels."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from capcal_lib.grading import normalize
from capcal_lib.grading.agreement import judge_agreement
from capcal_lib.grading.counts import count_verdicts
from capcal_lib.grading.error import corrected_mean, corrected_mu, grader_error
from capcal_lib.grading.judgements import judges
from capcal_lib.grading.verdicts import read_verdicts, run_questions
from capcal_lib.metrics.intervals import binomial_interval, bootstrap_mean
from capcal_lib.questions import Answer, at_hand
from capcal_lib.results.evaluation import Evaluation, run_of
from capcal_lib.results.tables import interval_text
from capcal_lib.sampling.store import KEY, read_samples

OURS = "this book's rules"


def _identical(answer: Answer, extracted: str | None, response: str) -> bool:  # noqa: ARG001
    return extracted in (answer.gold, *answer.aliases)


def _contained(answer: Answer, extracted: str | None, response: str) -> bool:  # noqa: ARG001
    given = normalize(extracted, answer.kind) if extracted else ""
    golds = [normalize(gold, answer.kind) for gold in (answer.gold, *answer.aliases)]
    return any(gold and given and (gold in given or given in gold) for gold in golds)


def _mentioned(answer: Answer, extracted: str | None, response: str) -> bool:  # noqa: ARG001
    return any(gold in response for gold in (answer.gold, *answer.aliases))


# Each takes the right answer, the extracted one and the whole response.
RULES: dict[str, Callable[[Answer, str | None, str], bool]] = {
    "identical text": _identical,
    "one contains the other": _contained,
    "mentioned anywhere": _mentioned,
}


def verdict_shares(evaluations: Sequence[Evaluation]) -> pd.DataFrame:
    """Share out the samples behind mu_hat over the four verdicts: one row a data set."""
    rows = []
    for one in evaluations:
        if one.sampled:
            correct, no_answer = one.counts.correct.sum(), one.counts.no_answer.sum()
            wrong, not_scored = one.counts.total.sum() - correct - no_answer, one.counts.not_scored.sum()
            samples = int(one.counts.total.sum() + not_scored)
            shares = [number / max(1, samples) for number in (correct, wrong, no_answer, not_scored)]
            rows.append((one.dataset.title, samples, *shares, one.evidence))
    columns = ["data set", "samples", "correct", "incorrect", "no answer", "not scored", "evidence"]
    return pd.DataFrame(rows, columns=columns)


def regrade(folder: Path, rule: str) -> pd.DataFrame:
    """Return the verdicts of a graded run by another rule of ``RULES``, in the form of ``read_verdicts``.

    What the rules of the book did not score stays so. A sample without an extracted answer is correct where the rule,
    which may look at all of the response, says so, and ``no_answer`` otherwise.
    """
    rows = read_verdicts(folder).merge(read_samples(folder)[[*KEY, "response"]], on=KEY)
    answers = {name: question.answer for name, question in run_questions(folder).items()}
    extracted = rows["extracted"].astype(object).where(rows["extracted"].notna(), None)
    cases = list(zip(rows["question_id"], extracted, rows["response"], strict=True))
    settled = {case: RULES[rule](answers[case[0]], case[1], case[2]) for case in set(cases)}
    right = np.array([settled[case] for case in cases], dtype=bool)
    otherwise = np.where(extracted.isna(), "no_answer", "incorrect")
    verdict = np.where(rows["verdict"] == "not_scored", "not_scored", np.where(right, "correct", otherwise))
    return rows.assign(verdict=verdict, reason=rule).drop(columns="response")


def accuracy_by_rule(
    store: Path, evaluations: Sequence[Evaluation], rng: np.random.Generator, *, k_eval: int
) -> pd.DataFrame:
    """Compare the mean expected accuracy of the same samples under several rules: one row a (data set, rule).

    ``difference`` is from this book's rules, on the same questions, with its interval from ``low`` to ``high``. Data
    sets whose right answers are not on this machine have no row.
    """
    rows = []
    for one in evaluations:
        if not one.sampled or not at_hand(one.dataset.name, one.dataset.evaluation_split):
            continue
        folder = run_of(store, one)
        ours = one.counts.expected_accuracy
        known = ~np.isnan(ours)
        for rule in (OURS, *RULES):
            mu = ours if rule == OURS else count_verdicts(regrade(folder, rule), k=k_eval).expected_accuracy
            mean, gap = bootstrap_mean(mu[known], rng=rng), bootstrap_mean((mu - ours)[known], rng=rng)
            facts = one.dataset.title, rule, mean.estimate, interval_text(mean), gap.estimate, gap.low, gap.high
            rows.append((*facts, one.evidence))
    columns = ["data set", "rule", "mean mu_hat", "95 % interval", "difference", "low", "high", "evidence"]
    return pd.DataFrame(rows, columns=columns)


def judge_table(store: Path, evaluations: Sequence[Evaluation], rng: np.random.Generator) -> pd.DataFrame:
    """Compare every judge of a run with the rules: one row a (data set, judge, what is counted)."""
    rows = []
    for one in evaluations:
        for judge in judges(run_of(store, one)) if one.sampled else ():
            for what, found in judge_agreement(run_of(store, one), judge, rng=rng).items():
                compared = int(found.table.to_numpy().sum()) - found.left_out
                numbers = compared, found.left_out, found.rate.estimate, interval_text(found.rate), found.kappa
                rows.append((one.dataset.title, judge, what, *numbers, one.evidence))
    columns = ["data set", "judge", "of", "compared", "not scored", "agreement", "95 % interval", "kappa", "evidence"]
    return pd.DataFrame(rows, columns=columns)


def labels_table(
    one: Evaluation, labels: Sequence[int], rng: np.random.Generator, *, sensitivity: float, specificity: float
) -> pd.DataFrame:
    """Show what hand labels would do to the error bars of an evaluation: one row a number of labels.

    The labels are supposed, the same number of right and of wrong answers, with the given shares judged rightly, so
    the rows are ``simulated``; the first row, without labels, takes the grader's word for everything.
    ``mean mu_hat`` has its interval from ``low`` to ``high``; ``one question`` is the median width of the interval
    for a single question's mu.
    """
    c, n = one.counts.correct, one.counts.total
    scored = n > 0
    plain, limits = bootstrap_mean(c[scored] / n[scored], rng=rng), binomial_interval(c[scored], n[scored])
    rows = [("none", *plain, float(np.median(np.ptp(limits, axis=1))), one.evidence)]
    for number in labels:
        hits, passes = round(number * sensitivity), round(number * specificity)
        says = [1] * hits + [0] * (number - hits) + [0] * passes + [1] * (number - passes)
        error = grader_error(says, [1] * number + [0] * number)
        mean, each = corrected_mean(c, n, error), corrected_mu(c[scored], n[scored], error)
        rows.append((f"{number} + {number}", *mean[:3], float(np.median(each[:, 2] - each[:, 1])), "simulated"))
    return pd.DataFrame(rows, columns=["labels", "mean mu_hat", "low", "high", "one question", "evidence"])
