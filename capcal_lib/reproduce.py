"""All that one model needs for its row of the main table: as a plan with its cost, and done.

A **recipe** is a protocol, from samples to the table. ``paper`` is the paper's way, as far as it is
known: 100 samples a question, ten votes among them, ten samples of each training question, a
judge's verdicts of short and mathematical answers, probes by stochastic gradient descent, the
mean over their five splits, 0.5 for a missing confidence, and plug-in scores. ``lean`` is ours, for
about a sixth of the tokens: 20 samples a question that define mu_hat and vote, each on the others;
one sample each of at most 20,000 training questions, and three more of 500; verdicts by the rules,
tuned probes and corrected scores.

With a ``precision`` W the lean recipe goes on: each data set is topped up, from its 20 samples a
question to 100 at most, until the interval of every score has a half-width of about W; see
:mod:`capcal_lib.applications.topping_up` for what is bought, and why that does not bias a score.

Every step takes up what is there, so a second call after a stop goes on. The engine is opened once
for all of them. A step that fails leaves the others done."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from capcal_lib.applications.topping_up import samples_needed
from capcal_lib.confidence.consistency import mean_tokens
from capcal_lib.confidence.of_run import TITLES, estimate
from capcal_lib.errors import DiskError, InputError
from capcal_lib.grading.judge import JUDGED
from capcal_lib.grading.judgements import judge_progress, judge_run, read_judgements
from capcal_lib.grading.verdicts import grade_run, read_verdicts
from capcal_lib.manifests import Dataset, dataset_names, load_dataset, load_model
from capcal_lib.probes import ProbeRecipe, keep_predictions
from capcal_lib.probes.features import extract
from capcal_lib.probes.predictions import probe_title
from capcal_lib.probes.training import is_scored
from capcal_lib.questions import load_questions, planned_rows, rank_questions
from capcal_lib.reported import load_reported
from capcal_lib.results import describe_runs, load_results, methods, score, subjects
from capcal_lib.results.results import CONSISTENCY, ORACLE_CC, ORACLE_RC, UNIFORM
from capcal_lib.results.scores import Protocol
from capcal_lib.results.terms import COUNTS
from capcal_lib.runs.artifacts import CONFIDENCES, FEATURES, VERDICTS
from capcal_lib.runs.run import Run, find_run, list_fitting
from capcal_lib.runs.store import KEY, read_samples
from capcal_lib.sampling.draw import Progress, sample
from capcal_lib.sampling.engines import NotOpened, check_engine, close_engine, engine_name
from capcal_lib.text import sanitize, spell_time

STATES = "hidden states"
TOP_UP = "top up"
MOST = 100  # samples of a question that is topped up
PROMPT = 200  # tokens of a prompt, where no sample says
MIX = ("triviaqa-1000", "gsm8k")  # that one more probe of the paper learns from (appendix C.4)
VOTES = (5, 10, 20)  # of table 6
# What the paper's figure of tokens calls a reply; a judge says a word after as long a reasoning.
REPLIES = TITLES | {"samples": "Response", TOP_UP: "Response", "judge": TITLES["p-true"]}
DRAWN = ("samples", TOP_UP)  # steps that draw samples
NO_STATES = "a server gives no hidden states"


class Draw(NamedTuple):
    """Which samples are drawn of a split."""

    questions: int | None  # at most, the first by rank
    first: int  # index of the first sample of each
    each: int  # samples of each


@dataclass(frozen=True)
class Recipe:
    """A way from samples to the table."""

    protocol: Protocol
    probe: ProbeRecipe
    judge: str | None  # the model whose verdicts count; None: those of the rules
    samples: int  # of an evaluation question, which define mu_hat and vote
    training: tuple[Draw, ...]

    @property
    def verdicts(self) -> str:
        """Return whose verdicts are scored, as ``load_results`` takes it."""
        return f"judge:{self.judge}" if self.judge else "rules"


LEAN = Recipe(
    protocol="corrected",
    probe="tuned",
    judge=None,
    samples=20,
    training=(Draw(20_000, 0, 1), Draw(500, 1, 3)),
)
PAPER = Recipe(
    protocol="paper",
    probe="paper",
    judge="gpt-oss-20b",
    samples=100,
    training=(Draw(None, 0, 10),),
)
RECIPES = {"lean": LEAN, "paper": PAPER}


class Part(NamedTuple):
    """A part of the questions of every split: the ``number``-th of so many."""

    number: int  # from 1
    parts: int

    def of(self, ranked: Sequence[Any]) -> Sequence[Any]:
        """Return those of the questions of a split, sorted by rank, that are in the part."""
        return ranked[self.number - 1 :: self.parts]


WHOLE = Part(1, 1)


@dataclass(frozen=True, kw_only=True)
class Order:
    """What is to be reproduced, and how; unknown names are refused."""

    model: str
    store: Path
    datasets: Sequence[str] | None = None  # None: the seven of the paper
    recipe: Recipe = LEAN
    limit: int | None = None  # at most so many questions of each split
    engine: str | None = None  # another than the one in the model's manifest
    features_engine: str | None = None  # for hidden states, where the engine gives none
    judge_url: str | None = (
        None  # of the judge's server; None: the engine's own, or OPENAI_BASE_URL
    )
    in_flight: int | None = None  # samples that a server is asked for at a time; None: as usual
    precision: float | None = None  # half-width up to which data sets are topped up
    part: Part = WHOLE  # of the questions of every split, in a store of its own
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.part.number <= self.part.parts:
            raise InputError(
                "a part is its number of how many, such as 3/8; got "
                f"{self.part.number}/{self.part.parts}"
            )
        if self.precision and (self.recipe != LEAN or self.part != WHOLE):
            raise InputError(
                "precision is reached by the lean recipe, with the verdicts of the rules, and by "
                "all questions: after a merge"
            )

    @property
    def names(self) -> list[str]:
        """List the data sets: those of the paper's tables, where none is named."""
        if self.datasets is not None:
            return list(self.datasets)
        return [name for name in dataset_names() if load_dataset(name).reported_as]

    @property
    def choice(self) -> dict[str, int]:
        """Return which of several runs on a split is meant, as ``find_run`` takes it."""
        return {"seed": self.seed}

    def run(self, dataset: str, split: str) -> Run | None:
        """Return the run on a split; None where none has been begun."""
        if not list_fitting(self.store, self.model, dataset, split, self.choice):
            return None
        return find_run(self.store, self.model, dataset, split, self.choice)

    def scored(self, *datasets: str) -> dict[str, Any]:
        """Return what is scored, as ``load_results`` takes it: of these data sets, or else of all,
        those that have the verdicts.
        """
        verdicts = self.recipe.verdicts
        names = []
        for name in datasets or self.names:
            run = self.run(name, load_dataset(name).evaluation_split)
            if run and is_scored(run, verdicts):
                names.append(name)
        return {
            "store": self.store,
            "model": self.model,
            "choice": self.choice,
            "datasets": names,
            "verdicts": verdicts,
        }


class Step(NamedTuple):
    """Something that a model is asked for, of each of so many questions of a split."""

    dataset: str
    split: str
    step: str
    questions: Any  # how many; NaN: not known
    first: int  # index of the first sample of each, where samples are asked for
    each: int  # requests
    model: str
    engine: str  # empty where the one that is named cannot do it


@dataclass(frozen=True)
class Reproduced:
    """What a call to ``reproduce`` has come to."""

    scores: pd.DataFrame  # as ``beside_printed`` returns them; empty of a part
    left: pd.DataFrame  # a row a step that is not done: dataset, split, step, reason


def make_plan(order: Order, *, fetch: bool = True) -> pd.DataFrame:
    """Plan what reproducing a model takes that the store does not have yet; nothing is drawn.

    No engine is opened, and none has to be here; without ``fetch`` no question is loaded from a
    hub either, and what only it knows is NaN. Returns one row a ``Step``, in the order in which
    they are done, with its fields and: the ``requests`` that are lacking; the ``tokens`` that they
    write, and the ``basis`` of that number (measured in this store, read off the paper's figures,
    or at most); and the tokens of the prompts that hidden states are read of, ``reads``."""
    model = load_model(order.model)
    engine = engine_name(model, order.engine)
    states = engine_name(model, order.features_engine or engine)
    engines = {STATES: "" if states == "openai" else states}
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
            for name in names:
                of_samples = name in DRAWN or name == "judge"
                step = Step(
                    dataset.name,
                    split,
                    name,
                    questions,
                    first=draw.first if of_samples else 0,
                    each=draw.each if of_samples else 1,
                    model=str(judge) if name == "judge" else order.model,
                    engine=engines.get(name, engine),
                )
                rows.append(step._asdict() | _cost(order, step, run, samples))
    # Hidden states last, for vLLM is opened anew for them and slower then, or a server gives none;
    # but another model judges after them, because one model is in memory at a time.
    # Last comes what is topped up, by all scores there are.
    late = {STATES: 2, "judge": 1 if judge == order.model else 3, TOP_UP: 4}
    rows.sort(key=lambda row: late.get(row["step"], 0))
    return pd.DataFrame(rows)


def _draws(order: Order, dataset: Dataset) -> Iterator[tuple[str, list[str], Draw]]:
    """Yield the splits of a data set, with what is done of those samples that are drawn of them."""
    recipe = order.recipe
    states = [STATES]
    if recipe.judge and dataset.kind in JUDGED:
        states = ["judge", STATES]
    evaluation, training = dataset.evaluation_split, dataset.training_split
    every = Draw(None, 0, recipe.samples)
    yield evaluation, ["samples", *TITLES, *states], every
    if order.precision:
        yield evaluation, [TOP_UP], Draw(None, recipe.samples, MOST - recipe.samples)
    if training in (None, evaluation):
        return
    as_paper = recipe.protocol == "paper"
    paper = dataset.paper_training if as_paper else None
    if as_paper and dataset.reported_as and not paper:
        return
    for draw in recipe.training:
        steps = ["samples"] if draw.first else ["samples", *states]
        yield str(training), steps, draw._replace(questions=paper or draw.questions)
    if as_paper and dataset.validation_split:
        yield dataset.validation_split, ["samples", *states], every


def _cost(
    order: Order, step: Step, run: Run | None, samples: pd.DataFrame | None
) -> dict[str, float | str]:
    """Return the requests that a step lacks, as far as files tell, and the tokens of them."""
    wanted = step.questions * step.each
    done = 0
    prompt: float = PROMPT
    length, basis = _tokens(step)
    if run and samples is not None:
        done = _done(order, step, run, samples)
        if len(samples):
            prompt = samples["prompt_tokens"].mean()
            if step.step in DRAWN:
                length, basis = mean_tokens(run), "measured"
    requests = wanted - np.clip(done, 0, wanted)
    return {
        "requests": requests,
        "tokens": np.round(requests * length),
        "basis": basis,
        "reads": np.round(requests * prompt) if step.step == STATES else 0,
    }


def _done(order: Order, step: Step, run: Run, samples: pd.DataFrame) -> int:
    """Count the requests of a step that are done, or not needed."""
    if step.step in DRAWN:
        done = (samples["sample_index"] - step.first).between(0, step.each - 1).sum()
        if step.step == TOP_UP:
            needed = _needed(order, step, run)
            if needed is not None:
                done += (MOST - needed).sum()
        return int(done)
    if step.step == "judge":
        wanted = step.questions * step.each
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
    """Add to a plan the ``seconds`` that its steps take, where ``rate`` is the tokens a second that
    all GPUs write.

    NaN is not known: tokens without a rate, and how long prompts are read for hidden states."""
    seconds = plan["tokens"] / (rate or np.nan)
    nothing_to_do = plan["requests"] == 0
    return plan.assign(seconds=seconds.mask(plan["reads"] > 0).mask(nothing_to_do, 0))


def show_plan(timed: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Return a plan with its times as a table of words, and its sums in one line."""
    requests, tokens, seconds = timed[["requests", "tokens", "seconds"]].sum()
    line = f"{requests:,.0f} requests, {tokens:,.0f} tokens"
    if timed["seconds"].isna().all():
        line += ", in a time that is not known"
    elif timed["seconds"].isna().any():
        line += f", {spell_time(seconds)} and what is not known"
    else:
        line += f", {spell_time(seconds)}"
    table = timed.drop(columns=["first", "seconds"])
    table["time"] = timed["seconds"].map(spell_time, na_action="ignore")
    return table.convert_dtypes().astype(object).fillna("not known"), line


def reproduce(
    order: Order,
    progress: Progress | None = None,
    say: Callable[[str], object] | None = None,
) -> Reproduced:
    """Carry out what :func:`make_plan` plans, as far as it goes, and score what there is.

    Refused before anything is drawn: an engine that cannot be opened here, and questions that
    cannot be had, such as those of a gated set. A step that fails is left for the next call, and so
    are those whose engine could not be opened; the others are done. A disk that cannot be read or
    written ends it with a `DiskError`. A data set that the judge has
    not judged is not scored. ``progress`` is called with the requests done and to do, and ``say``
    with a line a probe that is trained, see ``keep_predictions``."""
    plan = make_plan(order)
    steps: list[Any] = [*plan.itertuples()]
    for step in steps:
        if step.requests and step.engine:
            url = order.judge_url if step.step == "judge" else None
            check_engine(load_model(step.model), step.engine, url=url)
            load_questions(step.dataset, step.split)
    done = 0
    reasons = []
    closed = {("", order.model): NO_STATES}  # engines of models that cannot be opened, and why
    for step in steps:
        engine = step.engine, step.model
        reason = closed.get(engine, "") if step.requests else ""
        try:
            reason = reason or _do(order, step)
        except DiskError:  # every other step needs the disk too
            close_engine()
            raise
        except InputError as error:
            reason = str(error)
            if isinstance(error, NotOpened):
                closed[engine] = reason
        reasons.append(reason)
        done += step.requests
        if progress:
            progress(done, int(plan["requests"].sum()))
    close_engine()
    left = plan[["dataset", "split", "step"]].assign(reason=reasons).query("reason != ''")
    if order.part != WHOLE:
        return Reproduced(pd.DataFrame(), left)
    training = order.scored() | {"recipe": order.recipe.probe, "say": say}
    probes = keep_predictions(**training).index.unique("probe")
    if order.recipe.probe == "paper" and {*map(probe_title, MIX)} <= {*probes}:
        keep_predictions(mix=MIX, **training)
    return Reproduced(beside_printed(order), left)


def beside_printed(order: Order) -> pd.DataFrame:
    """Set scores beside the paper's printed ones, by the protocol of a recipe.

    Returns a table indexed by (dataset, method): the score ``brier`` with its interval ``low`` to
    ``high``; by the paper's recipe the ``spread`` of a probe over its five splits, a standard
    deviation; ``printed``; and whether that lies ``within`` the interval. Like is set beside like:
    from what is printed, a plug-in score of 100 samples, a ``corrected`` score is compared with
    what is left without the noise of these. NaN and missing where the paper prints nothing.
    ``evidence`` is that of the samples, measured or simulated."""
    corrected = order.recipe.protocol == "corrected"
    scored = order.scored()
    load = partial(load_results, held_out=corrected, **scored)
    results = load(recipe=order.recipe.probe)
    if not corrected:  # votes as in table 6, which has several numbers of them
        results = results.drop(columns=CONSISTENCY, errors="ignore")
        for number in VOTES:
            few = load(recipe=None, k_c=number).filter([CONSISTENCY])
            results = results.join(few.add_suffix(f", {number} votes"))
    protocol = order.recipe.protocol
    table = score(results, protocol=protocol).filter(["brier", "low", "high", "spread"])
    main = pd.concat(map(load_reported, ("mixing", "consistency", "main")))
    main = main[main["model"] == order.model]
    votes = CONSISTENCY + ", " + main["k"].astype("Int64").astype("string") + " votes"
    main["method"] = votes.fillna(main["method"])
    values = main.set_index(["dataset", "method"])["value"].to_dict()
    printed = []
    for name, method in table.index:
        paper = load_dataset(name).reported_as
        value = values.get((paper, method), np.nan)
        if corrected:
            # the mean of mu_hat (1 - mu_hat), over 100 - 1
            noise = (1 / 3 - values.get((paper, UNIFORM), np.nan)) / 99
            if method == ORACLE_RC:  # a mean of mu_hat (1 - mu_hat), which is too small by it
                value += noise
            elif method != ORACLE_CC:  # which is 0
                value -= noise
        printed.append(value)
    table["printed"] = printed
    within = table["printed"].between(table["low"], table["high"])
    table["within"] = within.astype("boolean").mask(table["printed"].isna())
    return table.join(describe_runs(**scored)["evidence"])


def _do(order: Order, step: Step) -> str:
    """Carry out a step of a plan, as far as it is not done; say how many requests got no answer,
    and why.
    """
    if step.step in DRAWN:
        failed = _draw(order, step)
        return _describe_failed(sum(failed.values()), failed)
    run = find_run(order.store, order.model, step.dataset, step.split, order.choice)
    if step.step == STATES:
        extract(run, engine=step.engine)
        return ""
    if step.step == "judge":
        failed = _judge(order, step, run)
        return _describe_failed(sum(failed.values()), failed)
    replies = estimate(run, step.step, engine=step.engine, in_flight=order.in_flight)
    return _describe_failed(int((replies["tokens"] == 0).sum()), {})


def _describe_failed(number: int, reasons: Mapping[str, int]) -> str:
    """Say how many requests got no answer, with the commonest reason; nothing where all got one."""
    if not number:
        return ""
    line = f"{number} requests got no answer"
    if reasons:
        line += f": {max(reasons, key=lambda reason: reasons[reason])}"
    return line


def _draw(order: Order, step: Step) -> Mapping[str, int]:
    """Draw and grade the samples of a step; return how many failed, by reason."""
    if step.step == TOP_UP:
        keep_predictions(**order.scored(step.dataset))
        run = order.run(step.dataset, step.split)
        needed = _needed(order, step, run) if run else None
        if needed is None:
            raise InputError("not all of the first samples are there")
        wanted: dict[Any, int] = needed.to_dict()
    else:
        ranked = rank_questions(load_questions(step.dataset, step.split))
        questions = order.part.of(ranked)[: step.questions]
        wanted = {question.id: step.first + step.each for question in questions}
    drawn = sample(
        order.model,
        step.dataset,
        k=wanted,
        split=step.split,
        store=order.store,
        seed=order.seed,
        engine=step.engine,
        in_flight=order.in_flight,
    )
    grade_run(drawn.run)
    return drawn.failed


def _judge(order: Order, step: Step, run: Run) -> Mapping[str, int]:
    """Let the judge judge a run; return how many answers got no reply, by reason.

    `InputError` where none of its replies is a verdict."""
    judged = judge_run(
        run, step.model, engine=step.engine, url=order.judge_url, in_flight=order.in_flight
    )
    if judged.new + judged.present and not judged.failed:
        words = read_judgements(run, step.model)
        if (words["verdict"] == "not_scored").all():
            such = sanitize(words["words"].iloc[0], 80)
            raise InputError(f"{step.model} said none of its three words, but such as {such!r}")
    return judged.failed


def _needed(order: Order, step: Step, run: Run) -> "pd.Series[int] | None":
    """Return how many samples each question needs, by the first of all of them; None before these
    are there."""
    if not run.has(VERDICTS) or order.precision is None:
        return None
    first = order.recipe.samples
    graded = read_verdicts(run).query("sample_index < @first").groupby("question_id").size()
    if len(graded) < step.questions or graded.min() < first:
        return None
    results = load_results(k_eval=first, **order.scored(step.dataset))
    results = results[[*COUNTS, *methods(results)]]
    return samples_needed(
        results.droplevel("dataset"),
        clusters=subjects(results).droplevel("dataset"),
        half_width=order.precision,
        most=MOST,
    )
