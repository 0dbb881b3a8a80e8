"""Response consistency: how many of k_c samples agree with the majority (paper, section 4.2).

Votes and mu_hat come from one pool of samples: votes on some are scored against the others,
averaged over many splits, since a sample that judges itself ties the confidence to its own target.
It costs k_c times the tokens of a sample. A sample without an answer agrees with nobody,
but still counts as a vote. The paper's code votes with the samples that define mu_hat, and lets
those without an answer form a group that can win.

A run that is not graded is refused, with the command that grades it, and one whose questions have
changed since."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pandas as pd

from capcal_lib.grading import normalize
from capcal_lib.grading.judgements import verdicts_by
from capcal_lib.grading.verdicts import kinds_of
from capcal_lib.metrics.validation import Floats, check_int
from capcal_lib.runs.run import Run
from capcal_lib.runs.store import read_samples

COLUMNS = ["confidence", "correct", "total", "term", "plug_in"]
SPLITS = 100  # of a question's samples into votes and others
# Answers in canonical form, so that equal answers are equal texts; None for no answer.
Votes = Sequence[str | None]


def majority(votes: Votes) -> tuple[str | None, float]:
    """Return the most frequent answer, of several the first, and its share of all votes; None and
    NaN without answers.

    >>> majority(["4", "5", "4", None])
    ('4', 0.5)
    """
    groups = Counter(votes)
    del groups[None]
    if not groups:
        return None, np.nan
    [(winner, number)] = groups.most_common(1)
    return winner, number / len(votes)


def consistency(answers: Sequence[Votes]) -> Floats:
    """Return the share of each question's votes that agree with its most frequent answer, in [1 /
    k_c, 1].

    NaN where no vote is an answer.

    >>> consistency([["4", "4", "4", "5"], ["7", None, None, None], [None] * 4]).tolist()
    [0.75, 0.25, nan]
    """
    return np.array([majority(votes)[1] for votes in answers], dtype=np.float64)


class Answers(NamedTuple):
    """What the samples of a run answered; arrays are (n_questions, n_samples), questions sorted by
    id.
    """

    question_ids: npt.NDArray[np.str_]
    # equal answers are equal texts; None where there is no answer, or no sample
    canonical: npt.NDArray[np.object_]
    correct: Floats  # 1 or 0; NaN where not scored, or no sample
    drawn: npt.NDArray[np.bool_]  # whether there is a sample


def paper_consistency(run: Run, k_c: int = 10) -> "pd.Series[float]":
    """Let the first k_c samples of a run vote, as the paper's code does, which count for mu_hat
    too.
    """
    answers = read_answers(run, k=k_c)
    whole = answers.drawn.sum(axis=1) == k_c
    shares = consistency(answers.canonical[whole].tolist())
    return pd.Series(shares, answers.question_ids[whole])


def split_votes(answers: Answers, k_c: int, *, splits: int = SPLITS) -> pd.DataFrame:
    """Let k_c of a question's samples vote, and score votes against the samples that did not.

    Returns a row a question with k_c + 2 samples or more, indexed by ``question_id``:
    ``confidence``, the majority's share of the first k_c samples, in [1 / k_c, 1], NaN without an
    answer among them; ``correct`` and ``total``, the counts of the other samples, by which alone it
    may be judged; and what the capability Brier score is the mean of: ``term``, the corrected term
    of a vote, and ``plug_in``, the uncorrected one, each averaged over ``splits`` random choices of
    the voters. No sample judges itself and none is set aside: each split scores its vote without
    bias, and so does the mean over them, with less noise (a U-statistic; a question's are the same
    whichever others there are). Splits without an answer among the votes, or without two scored
    samples beside them, are left out; NaN where all are. References: Hoeffding, "A class of
    statistics with asymptotically normal distribution", Annals of Mathematical Statistics 19
    (1948).
    """
    check_int("k_c", k_c, least=1)
    rows = {}
    for name, canonical, outcomes, drawn in zip(*answers, strict=True):
        if drawn.sum() < k_c + 2:
            continue
        rng = np.random.default_rng([0, crc32(name.encode())])
        order = np.tile(np.arange(drawn.sum()), (splits + 1, 1))
        order[1:] = rng.permuted(order[1:], axis=1)  # the first vote is that of the first samples
        codes, texts = pd.factorize(canonical[drawn])  # -1 for no answer
        groups = codes[:, None] == np.arange(len(texts))
        most = groups[order[:, :k_c]].sum(axis=1).max(axis=1, initial=0)
        share = np.where(most, most / k_c, np.nan)
        others = outcomes[drawn][order[:, k_c:]]
        correct, total = np.nansum(others, axis=1), np.isfinite(others).sum(axis=1)
        scored = np.where(total > 1, total, np.nan)
        mu = correct / scored
        plug_in = pd.Series((share - mu) ** 2)
        term = plug_in - mu * (1 - mu) / (scored - 1)
        rows[name] = (share[0], correct[0], total[0], term[1:].mean(), plug_in[1:].mean())
    table = pd.DataFrame.from_dict(rows, orient="index", columns=COLUMNS)
    return table.rename_axis("question_id").astype({"correct": int, "total": int})


def read_answers(run: Run, *, k: int, verdicts: str = "rules") -> Answers:
    """Read what the samples 0 to k - 1 of each question answered, by these verdicts."""
    check_int("k_eval", k, least=1)
    rows = verdicts_by(run, verdicts).query("sample_index < @k")
    rows = rows.assign(
        kind=kinds_of(run, rows["question_id"]),
        correct=rows["verdict"].map({"correct": 1, "incorrect": 0, "no_answer": 0}),
    )
    texts = rows[["extracted", "kind"]].dropna().drop_duplicates()
    texts["canonical"] = [*map(normalize, texts["extracted"], texts["kind"])]
    wide = rows.merge(texts, how="left").pivot(
        index="question_id", columns="sample_index", values=["canonical", "correct", "verdict"]
    )
    return Answers(
        wide.index.to_numpy(str),
        wide["canonical"].replace({np.nan: None}).to_numpy(),
        wide["correct"].to_numpy(float),
        wide["verdict"].notna().to_numpy(),
    )


def mean_tokens(run: Run) -> float:
    """Return the mean completion tokens of a run's samples; NaN where none is known."""
    tokens = read_samples(run, ["completion_tokens"])["completion_tokens"]
    return float(tokens[tokens > 0].mean())
