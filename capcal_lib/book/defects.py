"""What known defects of the reference implementation do to a number, each derived again and set beside the right way.

The authors' code (commit 9088a5a of its main branch) was read, not copied. Every table has one row a data set:
``old way`` is the number with the defect, ``right way`` without it, ``effect`` the first less the second.
"""

import random
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from capcal_lib.applications.budget import success_rate
from capcal_lib.confidence.consistency import run_consistency
from capcal_lib.grading import grade, normalize
from capcal_lib.grading.counts import count_verdicts
from capcal_lib.grading.verdicts import FILE, read_verdicts, run_questions
from capcal_lib.manifests import Kind
from capcal_lib.metrics import capability_brier, capability_brier_terms
from capcal_lib.metrics.validation import Floats, as_confidence, as_counts, as_whole, same_length
from capcal_lib.probes import LinearProbe
from capcal_lib.probes.features import FEATURES, read_features
from capcal_lib.questions import Answer, at_hand
from capcal_lib.results.evaluation import CONSISTENCY, Evaluation, run_of
from capcal_lib.sampling.store import find_run, read_samples

RESPONSES: list[tuple[Kind, str, str]] = [  # what a model might write, and the right answer
    ("number", r"That makes \boxed{\$18}.", "18"),
    ("number", r"That makes \boxed{3/4}.", "3"),
    ("math", r"So the answer is \boxed{\frac12}.", r"\frac{1}{2}"),
    ("math", r"So the answer is \boxed{x=5}.", "5"),
    ("choice", r"My choice depends on the year: \boxed{(A)}.", "D"),
    ("choice", "The answer is certainly B.", "C"),
    ("choice", "A better question would name the year.", "A"),
    ("short", r"\boxed{Bergen, Oslo or Trondheim}", "Oslo"),
    ("short", r"\boxed{Os}", "Oslo"),
]
SEEDS = range(42, 52)  # those of the reference implementation
COLUMNS = ["data set", "old way", "right way", "effect", "evidence"]
CANDIDATES = [(decay, scaled) for decay in (1e-4, 1e-3, 1e-2, 1e-1, 1.0) for scaled in (False, True)]


def _table(rows: list[tuple[Evaluation, float, float]]) -> pd.DataFrame:
    facts = [(one.dataset.title, old, right, old - right, one.evidence) for one, old, right in rows]
    return pd.DataFrame(facts, columns=COLUMNS)


# Budget


def shared_draw_success(
    allocation: npt.ArrayLike, correct: npt.ArrayLike, total: npt.ArrayLike, *, seeds: Sequence[int] = SEEDS
) -> float:
    """Simulate the success of an allocation as the reference does: with the same draw for every question.

    The generator starts afresh for each question, and the outcomes are listed with the correct ones first. So all
    questions with as many samples draw the same positions, and one is solved if the smallest position is below its
    number of correct samples. ``budget.success_rate`` is the exact expectation that this means to estimate.

    Parameters
    ----------
    allocation, correct, total : array-like of shape (n_questions,)
        Samples to draw, correct and scored samples of each question.
    seeds
        One shared draw each; the mean over them is returned.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    InputError
        For malformed counts or lengths that differ.

    Examples
    --------
    >>> shared_draw_success([1, 1], [40, 40], [100, 100]) == shared_draw_success([1], [40], [100])
    True
    """
    spent = as_whole("allocation", allocation, least=0)
    hits, samples = as_counts(correct, total)
    same_length(allocation=spent, correct=hits)
    drawn = {
        (int(n), int(k)): [min(random.Random(seed).sample(range(n), k)) for seed in seeds]
        for n, k in set(zip(samples.tolist(), spent.tolist(), strict=True))
        if k
    }
    rows = zip(spent.tolist(), hits.tolist(), samples.tolist(), strict=True)
    return float(np.mean([np.mean(np.array(drawn[n, k]) < c) if k else 0.0 for k, c, n in rows]))


def shared_draws(evaluations: Sequence[Evaluation], budget: int) -> pd.DataFrame:
    """Compare the success rate of ``budget`` samples a question: ten shared draws, and the exact expectation."""
    rows = []
    for one in evaluations:
        scored = one.counts.total >= budget
        c, n = one.counts.correct[scored], one.counts.total[scored]
        if len(n):
            even = np.full(len(n), budget)
            rows.append((one, shared_draw_success(even, c, n), success_rate(even, c, n)))
    return _table(rows)


# Calibration error


def calibration_error(confidence: npt.ArrayLike, target: npt.ArrayLike, *, closed: bool, bins: int = 10) -> float:
    """Return the expected calibration error over equal bins; unless ``closed``, a confidence of 1 is in none of them.

    Parameters
    ----------
    confidence, target : array-like of shape (n_questions,)
        In [0, 1]; the target is mu_hat.
    closed
        Whether the last bin holds 1. The reference has both versions; in the open one such a question still counts
        in the denominator.
    bins
        Number of bins.

    Returns
    -------
    float
        In [0, 1], lower is better.

    Raises
    ------
    InputError
        For values outside [0, 1] or lengths that differ.

    Examples
    --------
    >>> calibration_error([1.0, 1.0], [0.5, 0.5], closed=True), calibration_error([1.0, 1.0], [0.5, 0.5], closed=False)
    (0.5, 0.0)
    """
    s, mu = as_confidence(confidence), as_confidence(target)
    same_length(confidence=s, target=mu)
    places = np.floor(s * bins).astype(np.int64)
    if closed:
        places = np.minimum(places, bins - 1)
    gaps = np.bincount(places, weights=s - mu, minlength=bins)[:bins]
    return float(np.abs(gaps).sum() / len(s))


def open_last_bin(evaluations: Sequence[Evaluation], method: str = "Verbalized confidence") -> pd.DataFrame:
    """Compare the calibration error of a method with the last bin open, and closed."""
    rows = []
    for one in evaluations:
        if method in one.confidences:
            s, mu = one.confidences[method].values, one.counts.expected_accuracy
            there = ~np.isnan(s) & ~np.isnan(mu)
            if there.any():
                old, right = (calibration_error(s[there], mu[there], closed=closed) for closed in (False, True))
                rows.append((one, old, right))
    return _table(rows)


# Response consistency


def votes_in_the_target(
    evaluations: Sequence[Evaluation], store: Path, *, k_eval: int = 100, k_c: int = 10
) -> pd.DataFrame:
    """Compare the corrected Brier score of votes on a mu_hat that holds them, and on the other samples' mu_hat.

    The votes are the same on both sides: every other run of k_c among the first k_eval samples, averaged.
    """
    rows = []
    for one in evaluations:
        if not one.sampled:
            continue
        folder = run_of(store, one)
        verdicts = read_verdicts(folder)
        verdicts = verdicts[(verdicts["sample_index"] < k_eval) & (verdicts["verdict"] != "not_scored")]
        scores = []
        for start in range(0, k_eval - k_c + 1, 2 * k_c):
            votes = run_consistency(folder, k_eval=start, k_c=k_c)
            s = pd.Series(votes.values, votes.question_ids).dropna()
            others = verdicts[~verdicts["sample_index"].between(start, start + k_c - 1)]
            s = s[others["question_id"].value_counts().reindex(s.index, fill_value=0) > 1]
            if s.empty:  # no question has this many samples
                continue
            scores.append([_corrected(s, rows_) for rows_ in (verdicts, others)])
        if scores:
            old, right = np.mean(scores, axis=0)
            rows.append((one, float(old), float(right)))
    return _table(rows)


def _corrected(confidence: "pd.Series[float]", verdicts: pd.DataFrame) -> float:
    """Score a confidence on the counts of some verdicts."""
    counts = (verdicts["verdict"] == "correct").groupby(verdicts["question_id"]).agg(["sum", "count"])
    counts = counts.reindex(confidence.index)
    return capability_brier(confidence, counts["sum"], counts["count"], corrected=True)


def answers_as_texts(
    evaluations: Sequence[Evaluation], store: Path, *, k_eval: int = 100, k_c: int = 10
) -> pd.DataFrame:
    """Compare the corrected Brier score of votes grouped by their texts, no answer being a group, and by their values.

    Both ways vote with the k_c samples after the first k_eval; a question without any answer takes no part.
    """
    rows = []
    for one in evaluations:
        if CONSISTENCY not in one.confidences:
            continue
        verdicts = read_verdicts(run_of(store, one))
        votes = verdicts[verdicts["sample_index"].between(k_eval, k_eval + k_c - 1)]
        texts = votes["extracted"].fillna("no answer").groupby(votes["question_id"])
        largest = texts.agg(lambda group: group.value_counts().iloc[0] / len(group))
        old = largest.reindex(one.counts.question_ids).to_numpy(np.float64)
        right = one.confidences[CONSISTENCY].values
        there = ~np.isnan(right) & (one.counts.total > 1)
        if there.any():
            c, n = one.counts.correct[there], one.counts.total[there]
            by_text, by_value = (capability_brier(s[there], c, n, corrected=True) for s in (old, right))
            rows.append((one, by_text, by_value))
    return _table(rows)


# Missing confidences, and labels of another run


def filled_gaps(evaluations: Sequence[Evaluation], rng: np.random.Generator, *, share: float = 0.2) -> pd.DataFrame:
    """Hide a share of a probe's confidences; compare the score with 0.5 filled in, and without the questions.

    Simulated: the gaps are made, evenly at random, so that leaving them out is right on average.
    """
    rows = []
    for one in evaluations:
        if one.dataset.probe in one.confidences:
            s = one.confidences[one.dataset.probe].values
            there = ~np.isnan(s) & (one.counts.total > 1)
            c, n = one.counts.correct[there], one.counts.total[there]
            hidden = rng.random(len(n)) < share
            if not hidden.all():
                old = capability_brier(np.where(hidden, 0.5, s[there]), c, n, corrected=True)
                right = capability_brier(s[there][~hidden], c[~hidden], n[~hidden], corrected=True)
                rows.append((one, old, right))
    return _table(rows).assign(evidence="simulated")


def labels_of_another(
    evaluations: Sequence[Evaluation], others: Sequence[Evaluation], method: str = "Verbalized confidence"
) -> pd.DataFrame:
    """Score a method's confidences on another model's counts of the same questions, and on its own model's."""
    by_name = {other.dataset.name: other for other in others}
    rows = []
    for one in evaluations:
        other = by_name.get(one.dataset.name)
        if other is None or method not in one.confidences:
            continue
        counts = pd.DataFrame({"correct": other.counts.correct, "total": other.counts.total}, other.counts.question_ids)
        wrong = counts.reindex(one.counts.question_ids)
        s = one.confidences[method].values
        there = ~np.isnan(s) & (one.counts.total > 1) & (wrong["total"] > 1).to_numpy()
        if there.any():
            old = capability_brier(s[there], wrong["correct"][there], wrong["total"][there], corrected=True)
            right = capability_brier(s[there], one.counts.correct[there], one.counts.total[there], corrected=True)
            rows.append((one, old, right))
    return _table(rows)


# Grading


def loose_letter(response: str) -> str | None:
    """Read a letter as the reference does: boxed; else after "answer", be it the start of a word; else the last one.

    Its patterns in short: what they do with brackets and with the ends of a response is left out.

    Examples
    --------
    >>> loose_letter("the answer depends on it"), loose_letter("A dog."), loose_letter("none")
    ('D', 'A', None)
    """
    named = r"(?i:answer|choice)(?i: is)?[:\s]*\(?([A-Da-d])"
    for pattern in (r"\\boxed\{([A-D])\}", named, r"\b([A-D])\b"):
        if found := re.findall(pattern, response):
            return str(found[-1]).upper()
    return None


def contained(answer: str, gold: str) -> bool:
    """Compare as the reference's first pass does: equal, or one inside the other.

    Examples
    --------
    >>> contained("Oslo, or Bergen", "Oslo"), contained("", "Oslo"), contained("Bergen", "Oslo")
    (True, True, False)
    """
    return answer in gold or gold in answer


def loose_number(response: str) -> float | None:
    """Read a boxed number as the reference does: only right after the brace, and whatever follows it is ignored.

    Examples
    --------
    >>> loose_number(r"\\boxed{3/4}"), loose_number(r"\\boxed{ 18 }"), loose_number(r"\\boxed{1,200 km}")
    (3.0, None, 1200.0)
    """
    found = re.findall(r"\\boxed\{(-?[\d.,]*\d)", response)
    return float(found[-1].replace(",", "")) if found else None


def readings() -> pd.DataFrame:
    """Grade made-up responses as the reference's first pass would, and by this library: one row a response.

    For mathematics the first pass compares texts, since its parser does not run in the thread that calls it. Later
    a language model judged mathematics and short answers again, so this is not how the published labels came about.
    """
    rows = []
    for kind, response, gold in RESPONSES:
        boxed = re.findall(r"\\boxed\{(.*)\}", response)
        match kind:
            case "number":
                old = loose_number(response) == float(gold)
            case "choice":
                old = loose_letter(response) == gold
            case "math":
                old = boxed[-1:] == [gold]
            case _:
                old = contained(normalize(boxed[-1], kind), normalize(gold, kind))
        right = grade(response, Answer(kind=kind, gold=gold)).verdict
        rows.append((kind, response, gold, "correct" if old else "incorrect", right))
    return pd.DataFrame(rows, columns=["kind", "response", "right answer", "old way", "right way"]).assign(
        evidence="simulated"
    )


def loose_grading(evaluations: Sequence[Evaluation], store: Path, *, k_eval: int = 100) -> pd.DataFrame:
    """Compare the mean expected accuracy by loose reading and by this library's grading, on the same responses.

    Options are read by ``loose_letter``; short answers are compared by ``contained``. Others are left out: the
    difference there is in what may stand in the box, which small models seldom use. So are data sets whose right
    answers are not on this machine.
    """
    rows = []
    for one in evaluations:
        at_home = at_hand(one.dataset.name, one.dataset.evaluation_split)
        if not one.sampled or not at_home or one.dataset.kind not in ("choice", "short"):
            continue
        folder = run_of(store, one)
        rows.append((one, _loosely_graded(folder, one.dataset.kind, k_eval), _mean_accuracy(one)))
    return _table(rows)


def _loosely_graded(folder: Path, kind: Kind, k_eval: int) -> float:
    verdicts = read_verdicts(folder).merge(read_samples(folder), on=["question_id", "sample_index"])
    verdicts = verdicts[(verdicts["sample_index"] < k_eval) & (verdicts["verdict"] != "not_scored")]
    golds = {name: question.answer.gold for name, question in run_questions(folder).items()}
    if kind == "choice":
        hits = [
            loose_letter(text) == golds[name]
            for name, text in zip(verdicts["question_id"], verdicts["response"], strict=True)
        ]
    else:
        pairs = zip(verdicts["question_id"], verdicts["extracted"], strict=True)
        hits = [
            isinstance(text, str) and contained(normalize(text, kind), normalize(golds[name], kind))
            for name, text in pairs
        ]
    return float(pd.Series(hits, dtype=float).groupby(verdicts["question_id"].to_numpy()).mean().mean())


def _mean_accuracy(one: Evaluation) -> float:
    return float(np.nanmean(one.counts.expected_accuracy))


# Probes


def chosen_on_the_test(evaluations: Sequence[Evaluation], store: Path, rng: np.random.Generator) -> pd.DataFrame:
    """Choose among ten probe settings by the score on test questions; compare with its score on others.

    The test questions are halved at random, 200 times: the best setting on one half is scored on that half (the old
    way) and on the other (the right way).
    """
    rows = []
    for one in evaluations:
        terms = _candidate_terms(one, store) if one.sampled else None
        if terms is None:
            continue
        chosen = []
        for _ in range(200):
            half = rng.permutation(terms.shape[1]) < terms.shape[1] // 2
            best = terms[:, half].mean(axis=1).argmin()
            chosen.append((terms[best, half].mean(), terms[best, ~half].mean()))
        old, right = np.mean(chosen, axis=0)
        rows.append((one, float(old), float(right)))
    return _table(rows)


def _candidate_terms(one: Evaluation, store: Path) -> Floats | None:
    """Return the corrected Brier terms of each candidate, (n_candidates, n_questions); None without hidden states."""
    split = one.dataset.training_split
    if split is None or not any(store.joinpath(one.model.name, f"{one.dataset.name}-{split}").glob(f"*/{FEATURES}")):
        return None
    train, test = find_run(store, one.model.name, one.dataset.name, split), run_of(store, one)
    if not (train / FILE).exists() or not (test / FEATURES).exists():
        return None
    verdicts = read_verdicts(train)
    counts = count_verdicts(verdicts, k=int(verdicts["sample_index"].max()) + 1)
    labels = pd.DataFrame({"sum": counts.correct, "count": counts.total}, counts.question_ids)
    ids, features = read_features(train)
    labels = labels.reindex(ids)
    test_ids, test_features = read_features(test)
    rows = pd.Series(range(len(test_ids)), test_ids).reindex(one.counts.question_ids).to_numpy(np.int64)
    found = []
    for decay, scaled in CANDIDATES:
        probe = LinearProbe(weight_decay=decay, standardize=scaled).fit(features, labels["sum"], labels["count"])
        s = probe.predict(test_features[rows])
        found.append(capability_brier_terms(s, one.counts.correct, one.counts.total, corrected=True))
    return np.array(found)
