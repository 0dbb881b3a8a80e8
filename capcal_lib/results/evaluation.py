"""An evaluation: the counts of one model on one data set, and every confidence there is for its questions."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from capcal_lib.confidence import Confidence, estimated
from capcal_lib.confidence.consistency import Answers, mean_tokens, read_answers, run_consistency
from capcal_lib.confidence.of_run import method_title, methods_of, read_confidence
from capcal_lib.grading.counts import Counts, count_verdicts
from capcal_lib.grading.verdicts import FILE, read_verdicts
from capcal_lib.manifests import Dataset, Model, PromptStyle, load_dataset, load_model
from capcal_lib.probes import predict
from capcal_lib.probes.features import FEATURES
from capcal_lib.questions import subjects_of
from capcal_lib.reported import beta_from_moments, beta_moments
from capcal_lib.sampling.store import Identity, find_run, read_record

Evidence = Literal["measured", "reported", "simulated"]
CONSISTENCY = "Response consistency"


@dataclass(frozen=True, eq=False)
class Evaluation:
    """One model on one data set; all arrays follow ``counts.question_ids``."""

    model: Model
    dataset: Dataset
    evidence: Evidence
    sampled: bool  # whether samples of a run are behind the counts
    source: str  # the run's key, or the distribution that was simulated
    counts: Counts  # of the first k_eval samples
    answer_tokens: float  # mean completion tokens of a sample; NaN where none was drawn
    confidences: dict[str, Confidence]  # by the method's name in the tables
    k_eval: int | None = None  # samples asked for; the counts hold fewer where the run does; None: no matter
    prompt_style: PromptStyle | None = None  # of the run; None where there is none
    groups: npt.NDArray[np.str_] | None = None  # whose questions belong together, where intervals draw whole groups

    @property
    def samples(self) -> str:
        """Say how many scored samples the questions have: ``100``, or ``20 to 32``."""
        least, most = int(self.counts.total.min()), int(self.counts.total.max())
        return f"{most}" if least == most else f"{least} to {most}"

    def remarks(self) -> list[str]:
        """Say what a reader of its numbers should know."""
        notes = []
        there = self.counts.total + self.counts.not_scored
        if self.k_eval is not None and there.max() < self.k_eval:
            notes.append(f"{self.samples} samples a question, fewer than k_eval = {self.k_eval}")
        elif self.k_eval is not None and there.min() < self.k_eval:  # as where some failed or the run was stopped
            few = int((there < self.k_eval).sum())
            notes.append(f"{few:,} with fewer than {self.k_eval} samples (the fewest: {there.min()})")
        if self.k_eval is not None and CONSISTENCY not in self.confidences:
            notes.append("no spare samples for a vote")
        if self.prompt_style not in (None, load_model(self.model.name).prompt_style):  # its usual one
            notes.append(f"{self.prompt_style} prompts")
        if self.groups is not None:
            notes.append(f"intervals over {len(np.unique(self.groups))} subjects")
        return notes


def evaluated(store: Path, model: str) -> list[str]:
    """List the data sets on which a model has graded samples of the evaluation split."""
    folders = store.joinpath(load_model(model).name).glob(f"*/*/{FILE}")
    identities = [read_record(path.parent).identity for path in folders]
    return sorted({run.dataset for run in identities if run.split == load_dataset(run.dataset).evaluation_split})


def load_evaluation(store: Path, model: str, dataset: str, *, k_eval: int = 100, k_c: int = 10) -> Evaluation:
    """Load the counts and all confidences of a model on a data set's evaluation split.

    Parameters
    ----------
    store
        Folder of the run store.
    k_eval
        The samples 0 to k_eval - 1 define mu_hat; a question that has fewer keeps the total that it has.
    k_c
        The k_c samples after those are the votes of response consistency: never the same samples.
        A question without that many spare samples has no such confidence.

    Raises
    ------
    InputError
        Where there is no graded run, with the command that makes it.
    """
    manifest = load_dataset(dataset)
    folder = find_run(store, model, dataset, manifest.evaluation_split)
    identity = read_record(folder).identity
    verdicts = read_verdicts(folder)
    counts = count_verdicts(verdicts, k=k_eval)
    tokens = mean_tokens(folder)
    votes = run_consistency(folder, k_eval=k_eval, k_c=k_c)
    stored = {method_title(method): _aligned(read_confidence(folder, method), counts) for method in methods_of(folder)}
    if len(votes):
        stored[CONSISTENCY] = _aligned(votes, counts)
    return Evaluation(
        model=load_model(model).for_dataset(dataset),
        dataset=manifest,
        evidence=evidence_of(identity),
        sampled=True,
        source=f"run {folder.name}",
        counts=counts,
        answer_tokens=tokens,
        confidences=stored | _probes(store, folder, counts),
        k_eval=k_eval,
        prompt_style=identity.prompt_style,
        groups=_groups(manifest, counts.question_ids),
    )


def run_of(store: Path, one: Evaluation) -> Path:
    """Return the folder of the run whose samples are behind an evaluation.

    Raises
    ------
    InputError
        Where there is none, with the command that makes it.
    """
    return find_run(store, one.model.name, one.dataset.name, one.dataset.evaluation_split)


def load_answers(store: Path, one: Evaluation) -> Answers:
    """Load what the samples behind the counts of an evaluation answered, in the order of its questions.

    Raises
    ------
    InputError
        Where there is no graded run, with the command that makes it.
    """
    return read_answers(run_of(store, one), k=one.k_eval or int(one.counts.total.max()))


def _groups(dataset: Dataset, question_ids: npt.NDArray[np.str_]) -> npt.NDArray[np.str_] | None:
    """Return the subject of each question, where the data set is clustered by subject."""
    subjects = subjects_of(dataset.name, dataset.evaluation_split, question_ids)
    return None if subjects is None else np.array(subjects)


def beta_evaluation(model: str, dataset: str, *, k_eval: int = 100, rng: np.random.Generator) -> Evaluation:
    """Simulate the counts of a model that was only reported on: mu from a Beta with its two reported moments.

    It has as many questions as the data set, and no confidences: the paper prints none per question.

    Raises
    ------
    InputError
        Where the paper reports nothing for the pair.
    """
    manifest = load_dataset(dataset)
    a, b = beta_from_moments(*beta_moments(model, dataset))
    mu = rng.beta(a, b, manifest.splits[manifest.evaluation_split].rows or 0)
    correct = rng.binomial(k_eval, mu)
    counts = Counts(
        question_ids=np.array([f"simulated/{row}" for row in range(len(mu))]),
        correct=correct,
        total=np.full(len(mu), k_eval),
        no_answer=np.zeros(len(mu), np.int64),
        not_scored=np.zeros(len(mu), np.int64),
    )
    return Evaluation(
        model=load_model(model).for_dataset(dataset),
        dataset=manifest,
        evidence="simulated",
        sampled=False,
        source=f"Beta({a:.3g}, {b:.3g}) with the reported moments",
        counts=counts,
        answer_tokens=float("nan"),
        confidences={},
    )


def evidence_of(identity: Identity) -> Evidence:
    """Tell the runs of the simulated model from those of real ones."""
    return "simulated" if identity.engine == "simulated" else "measured"


def _probes(store: Path, folder: Path, counts: Counts) -> dict[str, Confidence]:
    """Predict with every probe that can be trained from the store's runs on training splits, asked in the same style.

    After another style of prompt hidden states are of another kind, so that a probe of one says nothing of the other.
    """
    if not (folder / FEATURES).exists():
        return {}
    identity = read_record(folder).identity
    table = predict(store, identity.model, datasets=[identity.dataset]).dropna(axis="columns", how="all")
    ids = table.index.get_level_values("question_id").to_numpy(str)
    return {str(name): _aligned(estimated(ids, table[name]), counts) for name in table}


def _aligned(confidence: Confidence, counts: Counts) -> Confidence:
    """Put a confidence's rows in the order of the counts; a question without one is missing."""
    rows = pd.Series(range(len(confidence)), confidence.question_ids).reindex(counts.question_ids)
    there = rows.notna().to_numpy()
    take = rows.fillna(0).to_numpy(np.int64)
    return replace(
        confidence,
        question_ids=counts.question_ids,
        values=np.where(there, confidence.values[take], np.nan),
        status=np.where(there, confidence.status[take], "missing"),
        tokens=np.where(there, confidence.tokens[take], 0),
        texts=tuple(confidence.texts[row] if known else None for row, known in zip(take, there, strict=True)),
    )
