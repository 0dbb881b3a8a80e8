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

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from capcal_lib.applications.topping_up import samples_needed
from capcal_lib.confidence.consistency import mean_tokens
from capcal_lib.confidence.of_run import TITLES, estimate
from capcal_lib.errors import DiskError, InputError, check_known
from capcal_lib.grading.judge import JUDGED
from capcal_lib.grading.judgements import judge_progress, judge_run, read_judgements
from capcal_lib.grading.verdicts import grade_run, read_verdicts
from capcal_lib.manifests import Dataset, dataset_names, load_dataset, load_model
from capcal_lib.probes import keep_predictions
from capcal_lib.probes.features import extract
from capcal_lib.probes.predictions import probe_title
from capcal_lib.probes.sgd import EPOCHS, LEARNING_RATES, SPLITS
from capcal_lib.probes.training import is_scored
from capcal_lib.questions import load_questions, planned_rows, rank_questions
from capcal_lib.reported import load_reported
from capcal_lib.results import describe_runs, load_results, methods, score, subjects
from capcal_lib.results.results import CONSISTENCY, COUNTS, ORACLE_CC, ORACLE_RC, UNIFORM
from capcal_lib.results.scores import Protocol
from capcal_lib.runs.artifacts import CONFIDENCES, FEATURES, VERDICTS
from capcal_lib.runs.run import Run, find_run, list_fitting
from capcal_lib.runs.store import KEY, read_samples
from capcal_lib.sampling.draw import Progress, sample
from capcal_lib.sampling.engines import NotOpened, check_engine, close_engine, engine_name
from capcal_lib.text import sanitize

STATES = "hidden states"
TOP_UP = "top up"
MOST = 100  # samples of a question that is topped up
PROMPT = 200  # tokens of a prompt, where no sample says
READ = 1e14  # operations a second of a GPU that reads prompts; two a parameter and token
TRAINING = 4.7e-9  # seconds of a core, measured at 7,473 questions and 2,880 features
MIX = ("triviaqa-1000", "gsm8k")  # that one more probe of the paper learns from (appendix C.4)
VOTES = (5, 10, 20)  # of table 6
# What the paper's figure of tokens calls a reply; a judge says a word after as long a reasoning.
REPLIES = TITLES | {"samples": "Response", TOP_UP: "Response", "judge": TITLES["p-true"]}
DRAWN = ("samples", TOP_UP)  # steps that draw samples
NO_STATES = "a server gives no hidden states"


class Draw(NamedTuple):
    """Which samples are drawn of a split."""

    questions: int | None  # at most, the first by rank
    first: int
    each: int


@dataclass(frozen=True)
class Recipe:
    """A way from samples to the table."""

    protocol: Protocol
    probe: Literal["tuned", "paper"]  # the recipe of its probes
    verdicts: str  # whose, where nobody asks for others
    samples: int  # of an evaluation question, which define mu_hat and vote
    training: tuple[Draw, ...]


RECIPES = {
    "lean": Recipe(
        protocol="corrected",
        probe="tuned",
        verdicts="rules",
        samples=20,
        training=(Draw(20_000, 0, 1), Draw(500, 1, 3)),
    ),
    "paper": Recipe(
        protocol="paper",
        probe="paper",
        verdicts="judge:gpt-oss-20b",
        samples=100,
        training=(Draw(None, 0, 10),),
    ),
}


@dataclass(frozen=True, kw_only=True)
class Order:
    """What is to be reproduced, and how; unknown names are refused."""

    model: str
    store: Path
    datasets: Sequence[str] | None = None  # None: the seven of the paper
    recipe: str = "lean"  # one of ``RECIPES``
    limit: int | None = None  # at most so many questions of each split
    engine: str | None = None  # another than the one in the model's manifest
    features_engine: str | None = None  # for hidden states, where the engine gives none
    verdicts: str | None = None  # rules or judge:MODEL; None: the recipe's
    judge_url: str | None = (
        None  # of the judge's server; None: the engine's own, or OPENAI_BASE_URL
    )
    in_flight: int | None = None  # samples that a server is asked for at a time; None: as usual
    precision: float | None = None  # half-width up to which data sets are topped up
    part: str = "1/1"  # of the questions of every split, in a store of its own
    seed: int = 0

    def __post_init__(self) -> None:
        check_known("recipe", self.recipe, RECIPES)
        if not self.judge:
            check_known("verdicts", self.whose, ["rules", "judge:MODEL"])
        if self.precision and (self.recipe, self.judge, self.part) != ("lean", "", "1/1"):
            raise InputError(
                "precision is reached by the lean recipe, with the verdicts of the rules, and by "
                "all questions: after a merge"
            )

    @property
    def whose(self) -> str:
        """Return whose verdicts are scored."""
        return self.verdicts or RECIPES[self.recipe].verdicts

    @property
    def judge(self) -> str:
        """Return the model that judges; empty where none does."""
        return self.whose.partition("judge:")[2]

    @property
    def names(self) -> list[str]:
        """List the data sets: those of the paper's tables, where none is named."""
        paper = [name for name in dataset_names() if load_dataset(name).reported_as]
        return paper if self.datasets is None else list(self.datasets)

    @property
    def choice(self) -> dict[str, int]:
        """Return which of several runs on a split is meant, as ``find_run`` takes it."""
        return {"seed": self.seed}

    def part_of(self, ranked: Sequence[Any]) -> Sequence[Any]:
        """Return which of the questions of a split are asked, sorted by rank."""
        number, _, parts = self.part.partition("/")
        if not (number.isdecimal() and parts.isdecimal() and 0 < int(number) <= int(parts)):
            raise InputError(f"a part is its number of how many, such as 3/8; got {self.part}")
        return ranked[int(number) - 1 :: int(parts)]

    def run(self, dataset: str, split: str) -> Run:
        """Return the run on a split; one without any files where none has been begun."""
        place = self.store, self.model, dataset, split, self.choice
        return find_run(*place) if list_fitting(*place) else Run(self.store / "none")

    def asked(self, *datasets: str) -> dict[str, Any]:
        """Return what is scored, as ``load_results`` takes it: of these data sets, or else of all,
        those that have the verdicts.
        """
        scored = [
            name
            for name in datasets or self.names
            if is_scored(self.run(name, load_dataset(name).evaluation_split), self.whose)
        ]
        which = {"store": self.store, "model": self.model, "choice": self.choice}
        return which | {"datasets": scored, "verdicts": self.whose}


class Step(NamedTuple):
    """Something that a model is asked for, of each of so many questions of a split."""

    dataset: str
    split: str
    step: str
    questions: Any  # how many; NaN: not known
    first: int  # sample of each, where samples are asked for
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
    if order.judge:
        asked = "openai" if order.judge_url else order.engine
        engines["judge"] = engine_name(load_model(order.judge), asked)
    rows = []
    for dataset in map(load_dataset, order.names):
        for split, steps, draw in _draws(order, dataset):
            rows_there = planned_rows(dataset.name, split, fetch=fetch)
            known = [*filter(None, (rows_there, order.limit, draw.questions))]
            questions = len(order.part_of(range(min(known)))) if known else np.nan
            run = order.run(dataset.name, split)
            samples = read_samples(run, [*KEY, "prompt_tokens"])
            for name in steps if questions else ():
                step = Step(
                    dataset.name,
                    split,
                    name,
                    questions,
                    *(draw[1:] if name in (*DRAWN, "judge") else (0, 1)),
                    order.judge if name == "judge" else order.model,
                    engines.get(name, engine),
                )
                rows.append(step._asdict() | _cost(order, step, run, samples))
    # Hidden states last, for vLLM is opened anew for them and slower then, or a server gives none;
    # but another model judges after them, because one model is in memory at a time.
    # Last comes what is topped up, by all scores there are.
    late = {STATES: 2, "judge": 1 if order.judge == order.model else 3, TOP_UP: 4}
    rows.sort(key=lambda row: late.get(row["step"], 0))
    return pd.DataFrame(rows)


def _draws(order: Order, dataset: Dataset) -> Iterator[tuple[str, list[str], Draw]]:
    """Yield the splits of a data set, with what is done of those samples that are drawn of them."""
    recipe = RECIPES[order.recipe]
    states = [*(["judge"] if order.judge and dataset.kind in JUDGED else []), STATES]
    evaluation, training = dataset.evaluation_split, dataset.training_split
    every = Draw(None, 0, recipe.samples)
    yield evaluation, ["samples", *TITLES, *states], every
    if order.precision:
        yield evaluation, [TOP_UP], Draw(None, recipe.samples, MOST - recipe.samples)
    as_paper = order.recipe == "paper"
    paper = dataset.paper_training if as_paper else None
    if training in (None, evaluation) or (as_paper and dataset.reported_as and not paper):
        return
    for draw in recipe.training:
        steps = ["samples"] if draw.first else ["samples", *states]
        yield str(training), steps, draw._replace(questions=paper or draw.questions)
    if as_paper and dataset.validation_split:
        yield dataset.validation_split, ["samples", *states], every


def _cost(order: Order, step: Step, run: Run, samples: pd.DataFrame) -> dict[str, float | str]:
    """Return the requests that a step lacks, as far as files tell, and the tokens of them."""
    wanted = step.questions * step.each
    if step.step in DRAWN:
        done = (samples["sample_index"] - step.first).between(0, step.each - 1).sum()
        if step.step == TOP_UP and (needed := _needed(order, step, run)) is not None:
            done += (MOST - needed).sum()
    elif step.step == "judge":
        judged, answers = judge_progress(run).get(order.judge, (0, wanted))
        done = min(wanted, run.count(VERDICTS)) - answers + judged
    elif step.step == STATES:
        done = run.count(FEATURES)
    else:
        done = run.count(CONFIDENCES, step.step)
    requests = wanted - np.clip(done, 0, wanted)
    measured = step.step in DRAWN and len(samples)
    length, basis = (mean_tokens(run), "measured") if measured else _tokens(step)
    prompt = samples["prompt_tokens"].mean() if len(samples) else PROMPT
    return {
        "requests": requests,
        "tokens": np.round(requests * length),
        "basis": basis,
        "reads": np.round(requests * prompt) if step.step == STATES else 0,
    }


def _tokens(step: Step) -> tuple[float, str]:
    """Return the mean tokens of a reply as far as they are known without samples, and how."""
    dataset = load_dataset(step.dataset)
    read = load_reported("tokens", source="reference code")
    known = read.set_index(["model", "dataset", "method"])["value"].to_dict()
    place = step.model, dataset.reported_as or dataset.name, REPLIES.get(step.step)
    if place in known:
        return known[place], "at most, as P(True)" if step.step == "judge" else "read off"
    if step.step in ("p-true", STATES):
        return float(step.step == "p-true"), ""
    return load_model(step.model).for_dataset(dataset.name).sampling.max_tokens, "at most"


def time_plan(
    order: Order, plan: pd.DataFrame, *, rate: float | None = None, gpus: int = 1
) -> pd.DataFrame:
    """Estimate the ``seconds`` of a plan, and add the training of the paper's probes to it.

    ``rate`` is the tokens a second that all GPUs write. Reading prompts takes two operations a
    token and active parameter, of which a GPU is taken to do ``READ`` a second; training a probe
    ``TRAINING`` seconds a question, feature, learning rate and epoch. NaN is not known."""
    model = load_model(order.model)
    active = model.active_parameters or model.parameters or np.nan
    tokens = plan[["reads", "tokens"]]
    times = (tokens / [READ * gpus / (2 * active), rate or np.nan]).where(tokens != 0, 0)
    timed = plan.assign(seconds=times.sum(axis="columns", skipna=False))
    if order.recipe != "paper" or order.part != "1/1":
        return timed
    training = [load_dataset(name).training_split for name in plan["dataset"]]
    learnt = plan[(plan["step"] == STATES) & (plan["split"] == training)]
    questions = learnt.set_index("dataset")["questions"]
    if {*MIX} <= {*questions.index}:
        questions["+".join(MIX)] = questions[[*MIX]].sum()
    work = TRAINING * SPLITS * 2 * len(LEARNING_RATES) * EPOCHS * (1 - 1 / SPLITS)
    probes = questions.reset_index().assign(
        split="train",
        step="probe",
        model=model.name,
        engine="CPU",
        seconds=lambda rows: rows["questions"] * work * (model.hidden_size or np.nan),
    )
    return pd.concat([timed, probes], ignore_index=True)


def reproduce(
    order: Order, progress: Progress | None = None, say: Callable[[str], object] = len
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
    silent = {("", order.model): NO_STATES}  # engines of models that cannot be opened, and why
    for step in steps:
        engine = step.engine, step.model
        reason = silent.get(engine, "") if step.requests else ""
        try:
            reason = reason or _do(order, step)
        except DiskError:  # every other step needs the disk too
            close_engine()
            raise
        except InputError as error:
            reason = str(error)
            if isinstance(error, NotOpened):
                silent[engine] = reason
        reasons.append(reason)
        done += step.requests
        if progress:
            progress(done, int(plan["requests"].sum()))
    close_engine()
    left = plan[["dataset", "split", "step"]].assign(reason=reasons).query("reason != ''")
    if order.part != "1/1":
        return Reproduced(pd.DataFrame(), left)
    asked = order.asked()
    how: dict[str, Any] = asked | {"recipe": RECIPES[order.recipe].probe, "say": say}
    probes = keep_predictions(**how).index.unique("probe")
    if order.recipe == "paper" and {*map(probe_title, MIX)} <= {*probes}:
        keep_predictions(mix=MIX, **how)
    return Reproduced(beside_printed(order), left)


def beside_printed(order: Order) -> pd.DataFrame:
    """Set scores beside the paper's printed ones, by the protocol of a recipe.

    Returns a table indexed by (dataset, method): the score ``brier`` with its interval ``low`` to
    ``high``; by the paper's recipe the ``spread`` of a probe over its five splits, a standard
    deviation; ``printed``; and whether that lies ``within`` the interval. Like is set beside like:
    from what is printed, a plug-in score of 100 samples, a ``corrected`` score is compared with
    what is left without the noise of these. NaN and missing where the paper prints nothing.
    ``evidence`` is that of the samples, measured or simulated."""
    recipe = RECIPES[order.recipe]
    corrected = recipe.protocol == "corrected"
    asked = order.asked()
    load = partial(load_results, held_out=corrected, **asked)
    results = load(recipe=recipe.probe)
    if not corrected:  # votes as in table 6, which has several numbers of them
        results = results.drop(columns=CONSISTENCY, errors="ignore")
        for number in VOTES:
            few = load(recipe=None, k_c=number).filter([CONSISTENCY])
            results = results.join(few.add_suffix(f", {number} votes"))
    table = score(results, protocol=recipe.protocol).filter(["brier", "low", "high", "spread"])
    main = pd.concat(map(load_reported, ("mixing", "consistency", "main")))
    main = main[main["model"] == order.model]
    votes = CONSISTENCY + ", " + main["k"].astype("Int64").astype("string") + " votes"
    main["method"] = votes.fillna(main["method"])
    known = main.set_index(["dataset", "method"])["value"].to_dict()
    printed = []
    for name, method in table.index:
        paper = load_dataset(name).reported_as
        value = known.get((paper, method), np.nan)
        if corrected:  # without the mean of mu_hat (1 - mu_hat), over 100 - 1
            noise = (1 / 3 - known.get((paper, UNIFORM), np.nan)) / 99
            value += noise * {UNIFORM: 1, ORACLE_RC: 1, ORACLE_CC: 0}.get(method, -1)
        printed.append(value)
    table["printed"] = printed
    within = table["printed"].between(table["low"], table["high"])
    table["within"] = within.astype("boolean").mask(table["printed"].isna())
    return table.join(describe_runs(**asked)["evidence"])


def _do(order: Order, step: Step) -> str:
    """Carry out a step of a plan, as far as it is not done; say how many requests got no answer,
    and why.
    """
    how: dict[str, Any] = {"engine": step.engine, "in_flight": order.in_flight}
    failed: dict[str, int] = {}
    if step.step in DRAWN:
        if step.step == TOP_UP:
            keep_predictions(**order.asked(step.dataset))
            needed = _needed(order, step, order.run(step.dataset, step.split))
            if needed is None:
                raise InputError("not all of the first samples are there")
            wanted: dict[Any, int] = needed.to_dict()
        else:
            ranked = rank_questions(load_questions(step.dataset, step.split))
            questions = order.part_of(ranked)[: step.questions]
            wanted = {question.id: step.first + step.each for question in questions}
        drawn = sample(
            order.model,
            step.dataset,
            k=wanted,
            split=step.split,
            store=order.store,
            seed=order.seed,
            **how,
        )
        grade_run(drawn.run)
        failed = drawn.failed
    else:
        run = find_run(order.store, order.model, step.dataset, step.split, order.choice)
        if step.step == STATES:
            extract(run, engine=step.engine)
        elif step.step == "judge":
            judged = judge_run(run, step.model, url=order.judge_url, **how)
            failed = judged.failed
            if judged.new + judged.present and not judged.failed:
                words = read_judgements(run, step.model)
                if (words["verdict"] == "not_scored").all():
                    such = sanitize(words["words"].iloc[0], 80)
                    raise InputError(
                        f"{step.model} said none of its three words, but such as {such!r}"
                    )
        else:
            failed = {"": (estimate(run, step.step, **how)["tokens"] == 0).sum()}
    if not (number := sum(failed.values())):
        return ""
    most = max(failed, key=failed.__getitem__)
    return f"{number} requests got no answer{most and f': {most}'}"


def _needed(order: Order, step: Step, run: Run) -> "pd.Series[int] | None":
    """Return how many samples each question needs, by the first of all of them; None before these
    are there."""
    if not run.has(VERDICTS) or order.precision is None:
        return None
    there = read_verdicts(run).query("sample_index < @step.first").groupby("question_id").size()
    if len(there) < step.questions or there.min() < step.first:
        return None
    results = load_results(k_eval=step.first, **order.asked(step.dataset))
    results = results[[*COUNTS, *methods(results)]]
    return samples_needed(
        results.droplevel("dataset"),
        clusters=subjects(results).droplevel("dataset"),
        half_width=order.precision,
        most=MOST,
    )
