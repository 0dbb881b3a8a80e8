"""A small and a large model on the same questions: what routing between the two needs."""

from __future__ import annotations  # keeps the type aliases short in help()

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from capcal_lib.confidence import TITLES, read_answers, read_confidence, vote_terms
from capcal_lib.manifests import load_model
from capcal_lib.probes import nearest_probe
from capcal_lib.results.results import describe_runs, load_results
from capcal_lib.runs import Run, read_samples

PROBE = "Probe"
BOTH_PROBES = "Both probes"
PROMPT_LENGTH = "Prompt length"


@dataclass(frozen=True, eq=False)
class Pair:
    """Two models on the questions that both were asked, by their question_id.

    Tables have a column a model, the smaller one first. Costs are in billions of parameters times
    tokens, read or written, the mean over a question's samples.
    """

    small: str
    large: str
    correct: pd.DataFrame
    total: pd.DataFrame
    reading: pd.DataFrame
    writing: pd.DataFrame
    confidences: dict[str, pd.DataFrame]  # of each model: a column a method, `Probe` the nearest
    asking: pd.DataFrame  # what it costs to ask the small model, a column a method
    answers: Run  # of the small model

    @property
    def rates(self) -> pd.DataFrame:
        """Return the share of correct samples."""
        return self.correct / self.total

    @property
    def cost(self) -> pd.DataFrame:
        """Return what an answer costs."""
        return self.reading + self.writing


def load_pair(runs: str | Path, small: str, large: str, dataset: str, *, k_eval: int = 100) -> Pair:
    """Load two models' counts, confidences and costs on the questions that both were asked.

    >>> from capcal_lib.manifests import RECORDED_RUNS
    >>> models = "smollm2-135m", "qwen2.5-coder-0.5b"
    >>> pair = load_pair(RECORDED_RUNS, *models, "simpleqa")
    >>> pair.cost.mean().round(1).to_dict()
    {'smollm2-135m': 37.9, 'qwen2.5-coder-0.5b': 136.2}
    """
    both = {}
    billions = {}
    answers = {}
    for name in (small, large):
        run = describe_runs(runs, name, k_eval=k_eval)["run"][dataset]
        answers[name] = run
        both[name] = run.cached(_load_one, runs, k_eval)
        billions[name] = (load_model(name).parameters or 0) / 1e9
    questions = both[small].index.intersection(both[large].index)

    def side_by_side(column: str) -> pd.DataFrame:
        return pd.DataFrame({name: own[column].reindex(questions) for name, own in both.items()})

    reading = side_by_side("prompt_tokens") * pd.Series(billions)
    known = {method: title for method, title in TITLES.items() if title in both[small]}
    tokens = {title: _tokens(answers[small], method) for method, title in known.items()}
    asking = pd.DataFrame(tokens, questions) * billions[small]
    methods = [*TITLES.values(), PROBE]
    return Pair(
        small=small,
        large=large,
        correct=side_by_side("correct"),
        total=side_by_side("total"),
        reading=reading,
        writing=side_by_side("completion_tokens") * pd.Series(billions),
        confidences={name: own.reindex(questions, columns=methods) for name, own in both.items()},
        asking=asking.add(reading[small], axis="index"),
        answers=answers[small],
    )


def _load_one(run: Run, runs: str | Path, k_eval: int) -> pd.DataFrame:
    name = run.identity.model
    dataset = run.identity.dataset
    own = load_results(runs, name, datasets=[dataset], k_eval=k_eval)
    own = own[own["total"] > 1].droplevel("dataset")
    own = own.dropna(axis="columns", how="all")
    if probe := nearest_probe(map(str, own), dataset):
        own = own.rename(columns={probe: PROBE})
    counted = ["prompt_tokens", "completion_tokens"]
    samples = read_samples(run, ["question_id", *counted])
    tokens = samples.groupby("question_id")[counted].mean()
    return own.join(tokens)


def _tokens(run: Run, method: str) -> pd.Series[float]:
    asked = read_confidence(run, method)
    return pd.Series(asked.tokens, asked.question_ids)


def routers(pair: Pair) -> Iterator[tuple[str, pd.DataFrame, pd.DataFrame]]:
    """Yield routers: a name, the accuracy predicted of each model, and what asking for it costs
    beside the answer of either.

    Without a confidence, the shortest prompts go to the large model. A probe of the small model
    costs its reading of the prompt where the large one answers; both probes cost both readings; a
    model that is asked reads the prompt once more, and writes. A missing confidence is one half.
    """
    small = pair.small
    large = pair.large
    own = pair.confidences[small]
    other = pair.confidences[large]
    even = pd.DataFrame({small: 0.0, large: 1.0}, own.index)
    yield PROMPT_LENGTH, even, 0 * pair.reading
    if own[PROBE].notna().all():
        predicted = even.assign(**{small: own[PROBE]})
        asking = pd.DataFrame({small: 0.0, large: pair.reading[small]})
        yield PROBE, predicted, asking
        if other[PROBE].notna().all():
            predicted = pd.DataFrame({small: own[PROBE], large: other[PROBE]})
            asking = pd.DataFrame({small: pair.reading[large], large: pair.reading[small]})
            yield BOTH_PROBES, predicted, asking
    for method in pair.asking:
        predicted = even.assign(**{small: own[method].fillna(0.5)})
        asking = pd.DataFrame({small: pair.asking[method], large: pair.asking[method]})
        yield str(method), predicted, asking


def cascade(
    pair: Pair, shares: Sequence[float], *, k_c: int = 10, k_eval: int = 100
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Take the small model's answer where at least a share of ``k_c`` votes agree, and else ask the
    large one; return what is solved, and what it costs: a row a question, a column a share. NaN
    where samples are too few.
    """
    answers = read_answers(pair.answers, k=k_eval)
    votes = vote_terms(answers, k_c).set_index("row").fillna(0)
    votes.index = answers.question_ids[votes.index]
    votes = votes[votes.index.isin(pair.rates.index)]
    voting = pair.reading[pair.small] + k_c * pair.writing[pair.small]
    rate = pair.rates[pair.large].reindex(votes.index)
    cost = pair.cost[pair.large].reindex(votes.index)
    solved = {}
    spent = {}
    for share in shares:
        sure = votes["confidence"] >= share
        right = votes["right"].where(sure, rate)
        beside = cost.where(~sure, 0)
        solved[share] = right.groupby(level=0).mean()
        spent[share] = voting + beside.groupby(level=0).mean()
    index = pair.rates.index
    return pd.DataFrame(solved).reindex(index), pd.DataFrame(spent).reindex(index)
