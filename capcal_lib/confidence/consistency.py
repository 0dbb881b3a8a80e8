"""Response consistency: how many of k_c samples agree with the majority (paper, section 4.2).

Votes and mu_hat come from one pool of samples. Some samples vote and are scored against the others,
averaged over many splits, because a sample that judges itself ties the confidence to its own
target. A vote costs k_c times the tokens of a sample. A sample without an answer agrees with
nobody, but still counts as a vote. In the paper's code the samples that define mu_hat vote, and
those without an answer form a group that can win.

`InputError` if a run is not graded, with the command that grades it."""

from collections import Counter
from collections.abc import Sequence
from zlib import crc32

import numpy as np
import pandas as pd

from capcal_lib.errors import InputError
from capcal_lib.grading.judgements import verdicts_by
from capcal_lib.metrics.validation import Floats, check_int
from capcal_lib.runs.run import Run, more_samples
from capcal_lib.runs.store import read_samples

CORRECTNESS = {"correct": 1.0, "incorrect": 0.0, "no_answer": 0.0}  # NaN where not scored
VOTE_COLUMNS = ["confidence", "correct", "total", "term", "plug_in"]
VOTE_SPLITS = 100  # of a question's samples into votes and others
# Answers in canonical form, so that equal answers are equal texts; None or NaN for no answer.
Votes = Sequence[str | float | None]


def majority(votes: Votes) -> tuple[str | float | None, float]:
    """Return the most frequent answer (the first, in case of a tie) and its share of all votes;
    None and NaN without answers.

    >>> majority(["4", "5", "4", None])
    ('4', 0.5)
    """
    groups = Counter(vote for vote in votes if pd.notna(vote))
    if not groups:
        return None, np.nan
    [(winner, number)] = groups.most_common(1)
    return winner, number / len(votes)


def consistency(answers: Sequence[Votes]) -> Floats:
    """Return the share of each question's votes that agree with its most frequent answer, in [1 /
    k_c, 1].

    NaN if no vote is an answer.

    >>> consistency([["4", "4", "4", "5"], ["7", None, None, None], [None] * 4]).tolist()
    [0.75, 0.25, nan]
    """
    return np.array([majority(votes)[1] for votes in answers], dtype=np.float64)


def read_answers(run: Run, *, k: int, verdicts: str = "rules") -> pd.DataFrame:
    """Read what the samples 0 to k - 1 of each question of a run answered, by these verdicts; see
    :func:`answers_of`.
    """
    check_int("k_eval", k, least=1)
    rows = verdicts_by(run, verdicts)
    return answers_of(rows[rows["sample_index"] < k])


def answers_of(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Return what samples answered, by their verdicts as :func:`verdicts_by` reads them.

    A row a sample, in their order: ``question_id``, ``sample_index``, ``verdict``; the
    ``canonical`` answer, so that equal answers are equal texts, missing where there is none; and
    ``correct``, 1 or 0, NaN where it is not scored. No rows if samples are correct and no answer is
    known, as of a table with a verdict a sample: such samples cannot vote.

    >>> rows = [("q", 0, "moon", "correct"), ("q", 1, None, "not_scored")]
    >>> columns = ["question_id", "sample_index", "canonical", "verdict"]
    >>> answers_of(pd.DataFrame(rows, columns=columns))["correct"].tolist()
    [1.0, nan]
    """
    answers = verdicts[["question_id", "sample_index", "verdict", "canonical"]]
    if answers["canonical"].isna().all() and answers["verdict"].eq("correct").any():
        answers = answers.iloc[:0]
    return answers.assign(correct=answers["verdict"].map(CORRECTNESS))


def paper_consistency(answers: pd.DataFrame, k_c: int = 10) -> "pd.Series[float]":
    """Let the first k_c samples of each question vote, as in the paper's code; they count for
    mu_hat too. ``answers`` come from :func:`answers_of`. Returns the share of the most frequent
    answer, by question_id, for questions with k_c samples; one half if no vote is an answer.
    """
    shares = {}
    voters = answers[answers["sample_index"] < k_c]
    for name, votes in voters.groupby("question_id")["canonical"]:
        if len(votes) == k_c:
            _, share = majority(votes.tolist())
            shares[str(name)] = 0.5 if pd.isna(share) else share
    return pd.Series(shares, dtype=np.float64)


def split_votes(answers: pd.DataFrame, k_c: int, *, held_out: bool = True) -> pd.DataFrame:
    """Let k_c of a question's samples vote, and score the vote against the samples that did not
    vote; without ``held_out``, against all samples, the voters included.

    ``answers`` come from :func:`answers_of`. Returns one row per question with at least k_c + 2
    samples, indexed by ``question_id``:

    - ``confidence``: the majority's share of the first k_c samples, in [1 / k_c, 1]; NaN if none of
      them has an answer;
    - ``correct`` and ``total``: the counts of the other samples, the only ones that may judge it;
    - ``term`` and ``plug_in``: the corrected and the uncorrected Brier term of a vote, each
      averaged over a hundred random choices of the voters.

    No sample judges itself and none is set aside. Each split scores its vote without bias; so does
    the mean over splits, with less noise (a U-statistic). A question's splits do not depend on the
    other questions. Splits without an answer among the votes, or without two other scored samples,
    are left out; NaN if all are.

    References: Hoeffding, "A class of statistics with asymptotically normal distribution", Annals
    of Mathematical Statistics 19 (1948).
    """
    check_int("k_c", k_c, least=1)
    rows = {}
    for name, samples in answers.groupby("question_id"):
        if len(samples) >= k_c + 2:
            rng = np.random.default_rng([0, crc32(str(name).encode())])
            rows[name] = _split_question(samples, k_c, rng, held_out)
    table = pd.DataFrame.from_dict(rows, orient="index", columns=VOTE_COLUMNS)
    types = dict.fromkeys(VOTE_COLUMNS, float) | {"correct": int, "total": int}
    return table.rename_axis("question_id").astype(types)


def _split_question(
    samples: pd.DataFrame, k_c: int, rng: np.random.Generator, held_out: bool
) -> tuple[float, ...]:
    """Return of one question's n samples what a row of :func:`split_votes` holds."""
    # Which samples vote: an order of all n a row, of which the first k_c do. Row 0 is the order in
    # which they were drawn, the others are random.
    order = np.tile(np.arange(len(samples)), (VOTE_SPLITS + 1, 1))  # (splits + 1, n)
    order[1:] = rng.permuted(order[1:], axis=1)
    voters = order[:, :k_c]  # (splits + 1, k_c)
    judges = order[:, k_c:] if held_out else order  # (splits + 1, n - k_c or n)

    # What the voters say: the share of the most frequent answer, NaN where none of them has one.
    codes, texts = pd.factorize(samples["canonical"])  # (n,), -1 for no answer; (texts,)
    says = codes[:, None] == np.arange(len(texts))  # (n, texts)
    votes = says[voters].sum(axis=1)  # (splits + 1, texts)
    most = votes.max(axis=1, initial=0)  # (splits + 1,), and so all below
    share = np.where(most > 0, most / k_c, np.nan)

    # What the judges show: their mu_hat, NaN where fewer than two of them are scored.
    outcomes = samples["correct"].to_numpy()[judges]
    correct = np.nansum(outcomes, axis=1)
    total = np.isfinite(outcomes).sum(axis=1)
    scored = np.where(total > 1, total, np.nan)
    mu_hat = correct / scored

    plug_in = (share - mu_hat) ** 2
    term = plug_in - mu_hat * (1 - mu_hat) / (scored - 1)
    known = np.isfinite(term)
    known[0] = False
    if not known.any():
        return share[0], correct[0], total[0], np.nan, np.nan
    return share[0], correct[0], total[0], term[known].mean(), plug_in[known].mean()


def vote(run: Run, *, k_eval: int = 100, k_c: int = 10) -> pd.DataFrame:
    """Let the first k_c of each question's first k_eval samples vote, under the rules' verdicts.

    Returns what :func:`split_votes` does, with the mean ``tokens`` of a vote. `InputError` if no
    question has k_c + 2 samples, with the command that draws them, or if no sample has an answer.

    >>> from capcal_lib.places import RECORDED_RUNS
    >>> from capcal_lib.runs import find_run
    >>> vote(find_run(RECORDED_RUNS, "simulated", "mini-exam", "test"))["total"].max()
    np.int64(90)
    """
    answers = read_answers(run, k=k_eval)
    if answers["canonical"].isna().all():
        raise InputError(
            f"no sample of {run} has an extracted answer to vote with; imported samples need a "
            "column extracted, or --regrade and another --store"
        )
    table = split_votes(answers, k_c)
    if table.empty:
        raise InputError(
            f"no question has {k_c + 2} samples, {k_c} to vote and 2 to judge; draw more with: "
            f"{more_samples(run, k_c + 2)}"
        )
    return table.assign(tokens=k_c * mean_tokens(run))


def mean_tokens(run: Run) -> float:
    """Return the mean completion tokens of a run's samples; NaN where none is known."""
    tokens = read_samples(run, ["completion_tokens"])["completion_tokens"]
    return float(tokens[tokens > 0].mean())
