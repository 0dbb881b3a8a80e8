"""The plan: the requests that the store still lacks, and their cost."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from capcal_lib.confidence.consistency import mean_tokens
from capcal_lib.confidence.of_run import TITLES
from capcal_lib.grading.judge import JUDGED_KINDS
from capcal_lib.grading.judgements import judge_progress
from capcal_lib.manifests import Dataset, load_dataset, load_model
from capcal_lib.questions import planned_rows
from capcal_lib.reported import load_reported
from capcal_lib.reproduce.order import Draw, Order
from capcal_lib.runs.artifacts import CONFIDENCES, FEATURES, VERDICTS
from capcal_lib.runs.run import Run
from capcal_lib.runs.store import KEY, read_samples
from capcal_lib.sampling.engines import engine_name
from capcal_lib.text import spell_time

STATES = "hidden states"
DRAWN = "samples"
PROMPT = 200  # tokens of a prompt, where no sample says
# What the paper's figure of tokens calls a reply; a judge says a word after as long a reasoning.
REPLIES = TITLES | {DRAWN: "Response", "judge": TITLES["p-true"]}


class Step(NamedTuple):
    """One kind of request to a model, for so many questions of a split."""

    dataset: str
    split: str
    step: str
    questions: Any  # how many; NaN: not known
    first: int  # index of the first sample of each, where samples are asked for
    per_question: int  # requests
    model: str
    engine: str  # empty where the one that is named cannot do it


def make_plan(order: Order, *, fetch: bool = True) -> pd.DataFrame:
    """Plan the steps that reproducing a model still needs; nothing is drawn.

    No engine is opened or needed. Without ``fetch`` no question is loaded from a hub either, and
    what only the hub knows is NaN. Returns one row per ``Step``, in the order of execution, with
    its fields and: the missing ``requests``; the ``tokens`` that they will write; the ``basis`` of
    that number (measured in this store, read off the paper's figures, or at most); and ``reads``,
    the prompt tokens that are read for hidden states."""
    model = load_model(order.model)
    engine = engine_name(model, order.engine)
    engines = {STATES: {"openai": "", "vllm": "transformers"}.get(engine, engine)}
    judge = order.recipe.judge
    if judge:
        judged_with = "openai" if order.judge_url else order.engine
        engines["judge"] = engine_name(load_model(judge), judged_with)
    rows = []
    for dataset in map(load_dataset, order.names):
        for split, names, draw in _draws(order, dataset):
            sizes = [planned_rows(dataset.name, split, fetch=fetch), order.limit, draw.questions]
            known = [size for size in sizes if size is not None]
            questions = len(order.part.of(range(min(known)))) if known else np.nan
            if not questions:
                continue
            run = order.run(dataset.name, split)
            samples = read_samples(run, [*KEY, "prompt_tokens"]) if run else None
            sampled = 0 if samples is None else samples["question_id"].nunique()
            for name in names:
                of_samples = name in (DRAWN, "judge")
                step = Step(
                    dataset.name,
                    split,
                    name,
                    questions if name == DRAWN else max(questions, sampled),
                    first=draw.first if of_samples else 0,
                    per_question=draw.samples if of_samples else 1,
                    model=str(judge) if name == "judge" else order.model,
                    engine=engines.get(name, engine),
                )
                rows.append(step._asdict() | _cost(step, run, samples))
    # Hidden states last, for transformers is opened for them, or a server gives none; but another
    # model judges after them, because one model is in memory at a time.
    late = {STATES: 2, "judge": 1 if judge == order.model else 3}
    rows.sort(key=lambda row: late.get(row["step"], 0))
    return pd.DataFrame(rows)


def _draws(order: Order, dataset: Dataset) -> Iterator[tuple[str, list[str], Draw]]:
    """Yield the splits of a data set, with what is done of those samples that are drawn of them."""
    recipe = order.recipe
    states = [STATES]
    if recipe.judge and dataset.kind in JUDGED_KINDS:
        states = ["judge", STATES]
    evaluation, training = dataset.evaluation_split, dataset.training_split
    every = Draw(None, 0, recipe.samples)
    yield evaluation, [DRAWN, *TITLES, *states], every
    if training in (None, evaluation):
        return
    as_paper = recipe.protocol == "paper"
    paper = dataset.paper_training if as_paper else None
    if as_paper and dataset.reported_as and not paper:
        return
    for draw in recipe.training:
        steps = [DRAWN] if draw.first else [DRAWN, *states]
        yield str(training), steps, draw._replace(questions=paper or draw.questions)
    if as_paper and dataset.validation_split:
        yield dataset.validation_split, [DRAWN, *states], every


def _cost(step: Step, run: Run | None, samples: pd.DataFrame | None) -> dict[str, float | str]:
    """Return the requests that a step lacks, as far as files tell, and the tokens of them."""
    wanted = step.questions * step.per_question
    done = 0
    prompt: float = PROMPT
    length, basis = _tokens(step)
    if run and samples is not None:
        done = _done(step, run, samples)
        if len(samples):
            prompt = samples["prompt_tokens"].mean()
            if step.step == DRAWN:
                length, basis = mean_tokens(run), "measured"
    requests = wanted - np.clip(done, 0, wanted)
    return {
        "requests": requests,
        "tokens": np.round(requests * length),
        "basis": basis,
        "reads": np.round(requests * prompt) if step.step == STATES else 0,
    }


def _done(step: Step, run: Run, samples: pd.DataFrame) -> int:
    """Count the requests of a step that are done."""
    if step.step == DRAWN:
        asked = samples["sample_index"].sub(step.first).between(0, step.per_question - 1)
        drawn = samples.loc[asked, "question_id"].value_counts()
        return int(drawn.head(min(len(drawn), step.questions)).sum())
    if step.step == "judge":
        wanted = step.questions * step.per_question
        judged, answers = judge_progress(run).get(step.model, (0, wanted))
        return int(min(wanted, run.count(VERDICTS)) - answers + judged)
    if step.step == STATES:
        return run.count(FEATURES)
    return run.count(CONFIDENCES, step.step)


def _tokens(step: Step) -> tuple[float, str]:
    """Return the mean tokens of a reply as far as they are known without samples, and how."""
    dataset = load_dataset(step.dataset)
    printed = load_reported("tokens", source="reference code")
    lengths = printed.set_index(["model", "dataset", "method"])["value"].to_dict()
    reply = step.model, dataset.reported_as or dataset.name, REPLIES.get(step.step)
    if reply in lengths:
        return lengths[reply], "at most, as P(True)" if step.step == "judge" else "read off"
    if step.step == STATES:
        return 0.0, ""
    if step.step == "p-true":
        return 1.0, ""
    return load_model(step.model).for_dataset(dataset.name).sampling.max_tokens, "at most"


def time_plan(plan: pd.DataFrame, rate: float | None = None) -> pd.DataFrame:
    """Add to a plan the ``seconds`` that its steps take, at a ``rate`` of tokens per second over
    all GPUs.

    NaN means unknown: without a rate, and for the time to read prompts for hidden states."""
    seconds = plan["tokens"] / (rate or np.nan)
    nothing_to_do = plan["requests"] == 0
    return plan.assign(seconds=seconds.mask(plan["reads"] > 0).mask(nothing_to_do, 0))


def show_plan(timed: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Return a plan with its times as a table of words, and its sums in one line."""
    requests, tokens, seconds = timed[["requests", "tokens", "seconds"]].sum()
    line = f"{requests:,.0f} requests, {tokens:,.0f} tokens"
    if timed["seconds"].isna().all():
        line += ", duration unknown"
    elif timed["seconds"].isna().any():
        line += f", {spell_time(seconds)} and an unknown rest"
    else:
        line += f", {spell_time(seconds)}"
    table = timed.drop(columns=["first", "seconds"])
    table["time"] = timed["seconds"].map(spell_time, na_action="ignore")
    return table.convert_dtypes().astype(object).fillna("unknown"), line
