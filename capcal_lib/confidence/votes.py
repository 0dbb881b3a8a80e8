"""Votes: what the samples of a run answered, and how response consistency fares with different ones."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from capcal_lib.errors import InputError
from capcal_lib.grading import normalize
from capcal_lib.grading.verdicts import read_verdicts, run_questions
from capcal_lib.manifests import Kind, load_dataset
from capcal_lib.metrics import capability_brier_terms
from capcal_lib.metrics.validation import Floats, Ints, check_int
from capcal_lib.sampling.store import read_record, read_samples


@dataclass(frozen=True, eq=False)
class Answers:
    """What the samples of a run answered; arrays are (n_questions, n_samples), questions sorted by id."""

    question_ids: npt.NDArray[np.str_]
    canonical: npt.NDArray[np.object_]  # equal answers are equal texts; None where there is no answer, or no sample
    correct: Floats  # 1 or 0; NaN where not scored, or no sample
    drawn: npt.NDArray[np.bool_]  # whether there is a sample
    tokens: float  # mean completion tokens of a sample


def read_answers(folder: Path, *, k: int) -> Answers:
    """Read what the samples 0 to k - 1 of each question of a run answered.

    Raises
    ------
    InputError
        For k < 1, a run that is not graded or corrupt, or one of which no sample lies in the range.
    """
    rows = read_verdicts(folder)
    rows = rows[rows["sample_index"] < check_int("k", k, least=1)]
    if rows.empty:
        raise InputError(f"{folder}: no samples with index 0 to {k - 1}; draw them with: capcal sample")
    names = rows["question_id"].to_numpy(str)
    ids, row = np.unique(names, return_inverse=True)
    at = row, rows["sample_index"].to_numpy()
    shape = len(ids), int(at[1].max()) + 1
    texts, correct, drawn = np.full(shape, None, object), np.full(shape, np.nan), np.zeros(shape, bool)
    texts[at] = canonical(folder, rows)
    correct[at] = np.where(rows["verdict"] == "not_scored", np.nan, rows["verdict"] == "correct")
    drawn[at] = True
    return Answers(ids, texts, correct, drawn, mean_tokens(folder))


def canonical(folder: Path, verdicts: pd.DataFrame) -> list[str | None]:
    """Return the answer of each verdict of a run, in a form that is the same for equal answers; None for no answer.

    Raises
    ------
    InputError
        Where the run's questions are of a built-in set and have changed.
    """
    dataset = load_dataset(read_record(folder).identity.dataset)
    ids, extracted = verdicts["question_id"].tolist(), verdicts["extracted"].tolist()
    if dataset.builtin:  # the only ones whose answers may be of several kinds
        questions = run_questions(folder)
        kinds: list[Kind] = [questions[name].answer.kind for name in ids]
    else:
        kinds = [dataset.kind] * len(ids)
    pairs = list(zip(extracted, kinds, strict=True))
    known = {(answer, kind): normalize(answer, kind) for answer, kind in set(pairs) if isinstance(answer, str)}
    return [known.get(pair) for pair in pairs]


def mean_tokens(folder: Path) -> float:
    """Return the mean completion tokens of a run's samples."""
    return float(read_samples(folder, ["completion_tokens"])["completion_tokens"].mean())


def vote_terms(answers: Answers, k_c: int) -> pd.DataFrame:
    """Let every block of k_c samples of a question vote in turn, and score each vote in two ways: one row a block.

    A question with n samples has n // k_c blocks. ``confidence`` is the share of a block that agrees with its most
    frequent answer, NaN where it has none; ``right`` whether that answer is correct, a share where samples that agree
    were graded differently. ``disjoint`` is the corrected capability Brier term against mu_hat of the samples outside
    the block, ``same pool`` the term against mu_hat of all samples; NaN without a confidence or with fewer than two
    scored samples outside.

    Parameters
    ----------
    answers
        Of a run.
    k_c
        Samples that vote, at least 1.

    Returns
    -------
    DataFrame
        ``row`` is the question's; a question with fewer than k_c + 2 samples has none.

    Raises
    ------
    InputError
        For k_c < 1.
    """
    check_int("k_c", k_c, least=1)
    order = np.argsort(~answers.drawn, axis=1, kind="stable")  # each question's samples first, in their order
    codes, correct = (
        np.take_along_axis(_codes(answers), order, axis=1),
        np.take_along_axis(answers.correct, order, axis=1),
    )
    drawn, n_blocks = answers.drawn.sum(axis=1), codes.shape[1] // k_c
    row, block = np.nonzero((np.arange(1, n_blocks + 1) * k_c <= drawn[:, None]) & (drawn[:, None] >= k_c + 2))
    samples = block[:, None] * k_c + np.arange(k_c)
    confidence, right = _majority(codes[row[:, None], samples], correct[row[:, None], samples])
    inside, all_ = _counted(correct[row[:, None], samples]), _counted(correct[row])
    outside = all_ - inside
    there = ~np.isnan(confidence) & (outside[1] > 1)
    table = pd.DataFrame(
        {"row": row, "confidence": confidence, "right": right, "disjoint": np.nan, "same pool": np.nan}
    )
    if there.any():
        for name, counts in (("disjoint", outside), ("same pool", all_)):
            table.loc[there, name] = capability_brier_terms(confidence[there], *counts[:, there], corrected=True)
    return table


def _codes(answers: Answers) -> Ints:
    """Number the answers; -1 is none."""
    codes, _ = pd.factorize(answers.canonical.ravel())
    return codes.astype(np.int64).reshape(answers.canonical.shape)


def _majority(codes: Ints, correct: Floats) -> tuple[Floats, Floats]:
    """Return, for each row of votes, the share of the most frequent answer, and whether it is right; NaN for none."""
    alike = (codes[:, :, None] == codes[:, None, :]) & (codes >= 0)[:, :, None]
    size = alike.sum(axis=2)
    winners = np.take_along_axis(alike, size.argmax(axis=1)[:, None, None], axis=1)[:, 0]
    voted = winners.sum(axis=1)
    graded, right = winners & ~np.isnan(correct), winners & (correct == 1)
    unknown = np.full(len(codes), np.nan)
    known = graded.sum(axis=1)
    share = np.where(voted > 0, voted / codes.shape[1], np.nan)
    return share, np.divide(right.sum(axis=1), known, out=unknown, where=known > 0)


def _counted(correct: Floats) -> Ints:
    """Return the correct and the scored samples of each row, shape (2, n_rows)."""
    return np.array([(correct == 1).sum(axis=1), (~np.isnan(correct)).sum(axis=1)])
