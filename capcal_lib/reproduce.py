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

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np
import pandas as pd

from capcal_lib.applications.topping_up import samples_needed
from capcal_lib.confidence.consistency import mean_tokens
from capcal_lib.confidence.of_run import TITLES, estimate
from capcal_lib.errors import InputError, unknown
from capcal_lib.grading.judge import JUDGED
from capcal_lib.grading.judgements import PAIR, judge_run, judges, read_judgements
from capcal_lib.grading.verdicts import grade_run, read_verdicts
from capcal_lib.manifests import Dataset, dataset_names, load_dataset, load_model
from capcal_lib.metrics.validation import check_int
from capcal_lib.probes import keep_predictions
from capcal_lib.probes.features import extract
from capcal_lib.probes.sgd import SPLITS
from capcal_lib.questions import load_questions, planned_rows, rank_questions
from capcal_lib.reported import load_reported
from capcal_lib.results import describe_runs, load_results, methods, score, subjects
from capcal_lib.results.results import COUNTS, ORACLE_CC, ORACLE_RC, UNIFORM
from capcal_lib.results.scores import Protocol
from capcal_lib.runs.artifacts import CONFIDENCES, FEATURES, VERDICTS
from capcal_lib.runs.run import Run, find_run, list_fitting
from capcal_lib.runs.store import KEY, read_samples
from capcal_lib.sampling.draw import Progress, sample
from capcal_lib.sampling.engines import check_engine, engine_name, engines_stay_open, open_engine
from capcal_lib.sampling.engines.simulated import true_mu

STATES = "hidden states"
TOP_UP = "top up"
STEPS = ("samples", "verbalized", "p-true", "judge", STATES, TOP_UP)  # that need a model
MOST = 100  # samples of a question that is topped up
CALIBRATION = 16, 24  # questions, and at most so many samples of each
PROMPT = 200  # tokens of a prompt, where no sample says
TOKENS = {"verbalized": 10.0, "p-true": 1.0, "judge": 5.0, STATES: 0.0}  # where nothing is known
READ = 1e14  # operations a second of a GPU that reads prompts; two a parameter and token
NO_STATES = "a server gives no hidden states"


@dataclass(frozen=True)
class Recipe:
    """A way from samples to the table."""

    protocol: Protocol
    probe: Literal["tuned", "paper"]  # the recipe of its probes
    verdicts: str  # whose, where nobody asks for others
    samples: int  # of an evaluation question, which define mu_hat and vote
    training: tuple[tuple[int | None, int], ...]  # questions at most, and samples of each
    validation: int  # samples of a validation question; 0 where there is no need of them


RECIPES = {
    "lean": Recipe(
        protocol="corrected",
        probe="tuned",
        verdicts="rules",
        samples=20,
        training=((20_000, 1), (500, 4)),
        validation=0,
    ),
    "paper": Recipe(
        protocol="paper",
        probe="paper",
        verdicts="judge:gpt-oss-20b",
        samples=100,
        training=((None, 10),),
        validation=100,
    ),
}


@dataclass(frozen=True, kw_only=True)
class Order:
    """What is to be reproduced, and how; unknown names and numbers out of range are refused."""

    model: str
    store: Path
    datasets: Sequence[str] | None = None  # None: the seven of the paper
    recipe: str = "lean"  # one of ``RECIPES``
    limit: int | None = None  # at most so many questions of each split
    training_questions: int | None = None  # so many training questions, where the recipe has others
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
        number, _, parts = self.part.partition("/")
        if not (number.isdecimal() and parts.isdecimal() and 0 < int(number) <= int(parts)):
            raise InputError(f"a part is its number of how many, such as 3/8; got {self.part}")
        if self.precision and int(parts) > 1:
            raise InputError("precision is reached by all questions: give it after the merge")
        if self.precision is not None and not 0 < self.precision < 0.5:
            raise InputError(
                "precision is the half-width of a score's interval, in (0, 0.5), such as 0.02; got "
                f"{self.precision}"
            )
        if self.precision and self.recipe == "paper":
            raise InputError("the paper's recipe fixes the number of samples; leave precision out")
        for name in ("limit", "training_questions"):
            if getattr(self, name) is not None:
                check_int(name, getattr(self, name), least=1)
        if self.recipe not in RECIPES:
            raise unknown("recipe", self.recipe, RECIPES)
        for model, engine in {(self.judge or self.model, self.engine), (self.model, self.engine)}:
            engine_name(load_model(model), engine)
        engine_name(load_model(self.model), self.features_engine)
        if self.judge is None and self.whose != "rules":
            raise InputError(
                "verdicts are by 'rules' or by 'judge:MODEL', such as judge:gpt-oss-20b; got "
                f"{self.whose!r}"
            )

    @property
    def share(self) -> slice:
        """Return which questions of a split are asked, by their rank."""
        number, parts = map(int, self.part.split("/"))
        return slice(number - 1, None, parts)

    @property
    def whose(self) -> str:
        """Return whose verdicts are scored."""
        return self.verdicts or RECIPES[self.recipe].verdicts

    @property
    def judge(self) -> str | None:
        """Return the model that judges, if one does."""
        _, found, judge = self.whose.partition("judge:")
        return judge if found else None

    @property
    def names(self) -> list[str]:
        """List the data sets."""
        if self.datasets is None:
            return paper_datasets()
        return list(self.datasets)

    def engine_of(self, step: str) -> str:
        """Return the engine that does a step; an empty name where the one that is named cannot."""
        if step == "judge":
            known = "openai" if self.judge_url else self.engine
            return engine_name(load_model(str(self.judge)), known)
        engine = engine_name(load_model(self.model), self.engine)
        if step != STATES:
            return engine
        return self.features_engine or ("" if engine == "openai" else engine)

    def server(self, step: str) -> dict[str, Any]:
        """Return how the server of a step is asked."""
        asked = {"url": self.judge_url if step == "judge" else None, "in_flight": self.in_flight}
        return {name: value for name, value in asked.items() if value is not None}

    def ids(self, dataset: str, split: str) -> list[str]:
        """List the questions of a split that are asked, those of every smaller number first."""
        return [each.id for each in rank_questions(load_questions(dataset, split))[self.share]]

    def run(self, dataset: str, split: str) -> Run | None:
        """Return the run on a split, if it has been begun."""
        place = self.store, self.model, dataset, split, f"seed={self.seed}"
        return find_run(*place) if list_fitting(*place) else None


@dataclass(frozen=True)
class Reproduced:
    """What a call to ``reproduce`` has come to."""

    scores: pd.DataFrame  # as ``beside_printed`` returns them; empty of a part
    left: pd.DataFrame  # a row a step that is not done: dataset, split, step, reason, failed
    verdicts: str  # whose were scored


def paper_datasets() -> list[str]:
    """List the data sets that are those of the paper's tables."""
    return [name for name in dataset_names() if load_dataset(name).reported_as]


def make_plan(order: Order) -> pd.DataFrame:
    """Plan what reproducing a model takes that the store does not have yet; nothing is drawn.

    No engine is opened, and none has to be here. Returns one row a step that needs a model, in the
    order in which they are done: ``dataset``, ``split``, ``step``, ``questions``; requests for
    ``each``, from the ``first`` sample on; the ``engine``, empty where the one that is named cannot
    do it; ``requests`` that are lacking, ``tokens`` that they write, the ``basis`` of that number
    (measured in this store, read off the paper's figures, or at most); and the tokens of the
    prompts that hidden states are read of, ``reads``."""
    rows = []
    for dataset in map(load_dataset, order.names):
        for step in _steps(order, dataset):
            run = order.run(dataset.name, step["split"])
            step["engine"] = order.engine_of(step["step"])
            step["requests"] = _lacking(order, run, step)
            length, basis = _tokens(order, dataset.name, run, step["step"])
            if step["step"] == TOP_UP and _needed(order, step) is None:
                basis = "expected"
            step["tokens"] = round(step["requests"] * length)
            step["basis"] = basis
            step["reads"] = round(step["requests"] * _prompt(run)) if step["step"] == STATES else 0
            rows.append(step)
    # Hidden states last, for vLLM is opened anew for them and slower then, or a server gives none;
    # but another model judges after them, because one model is in memory at a time.
    own = order.judge not in (None, order.model) and order.engine_of("judge") != "openai"
    late = {STATES: 2, "judge": 3 if own else 1}
    late[TOP_UP] = 4  # by all scores that there are
    rows.sort(key=lambda step: late.get(step["step"], 0))
    return pd.DataFrame(rows)


def _steps(order: Order, dataset: Dataset) -> Iterator[dict[str, Any]]:
    """Yield the steps on a data set, each with its split, questions, first sample, and how many."""
    recipe = RECIPES[order.recipe]
    judged = ["judge"] if order.judge and dataset.kind in JUDGED else []
    evaluation = dataset.evaluation_split
    training = dataset.training_split

    def on(split: str, steps: Iterable[str], most: int | None, first: int, each: int) -> Any:
        there = planned_rows(dataset.name, split)
        ranks = range(min(filter(None, (there, order.limit, most))))
        questions = len(ranks[order.share])
        for step in steps if questions else ():
            row = {"dataset": dataset.name, "split": split, "step": step, "questions": questions}
            asked = {"first": first, "each": each} if step in ("samples", "judge") else {}
            yield row | {"first": 0, "each": 1} | asked

    asked = ["samples", "verbalized", "p-true", *judged, STATES]
    yield from on(
        evaluation, [*asked, TOP_UP] if order.precision else asked, None, 0, recipe.samples
    )
    own = dataset.paper_training if order.recipe == "paper" and dataset.reported_as else None
    has_probe = own or order.recipe != "paper" or not dataset.reported_as
    if training in (None, evaluation) or not has_probe:
        return
    drawn = 0
    for most, samples in recipe.training:
        steps = ["samples"] if drawn else ["samples", *judged, STATES]
        most = most if drawn else order.training_questions or own or most
        yield from on(str(training), steps, most, drawn, samples - drawn)
        drawn = samples
    if recipe.validation and dataset.validation_split:
        steps = ["samples", *judged, STATES]
        yield from on(dataset.validation_split, steps, None, 0, recipe.validation)


def time_by_rate(order: Order, plan: pd.DataFrame, rate: float) -> pd.DataFrame:
    """Estimate the ``seconds`` of a plan from the tokens a second that are written.

    Reading prompts takes two operations a parameter and token, of which one GPU is taken to do
    ``READ`` a second; several share them."""
    parameters = load_model(order.model).parameters or 0
    seconds = plan["tokens"] / rate + 2 * parameters * plan["reads"] / READ
    return plan.assign(seconds=seconds)


def time_requests(order: Order, plan: pd.DataFrame) -> pd.DataFrame:
    """Estimate what a plan takes, by carrying out a small part of it in a store that is thrown
    away.

    Returns the plan with ``tokens`` as measured, ``bytes`` of disk, and ``seconds``, the first
    step's with those that loading the model takes."""
    _check_engines(order, plan)
    timed = plan.assign(bytes=0.0, seconds=0.0)
    questions, most = CALIBRATION
    kept = 0
    with TemporaryDirectory() as folder, engines_stay_open():
        trial = Order(**vars(order) | {"store": Path(folder)})
        started = time.monotonic()
        open_engine(load_model(order.model), order.engine)
        loading = time.monotonic() - started
        for place, row in plan.to_dict("index").items():
            if not row["engine"]:
                continue
            small = {"questions": min(questions, row["questions"]), "each": min(most, row["each"])}
            started = time.monotonic()
            done = _do(trial, row | small)
            share = row["requests"] / max(1, done)
            seconds = loading + (time.monotonic() - started) * share
            loading = 0.0
            size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
            timed.loc[place, ["bytes", "seconds"]] = [round((size - kept) * share), seconds]
            kept = size
            run = trial.run(row["dataset"], row["split"])
            if row["step"] == "samples" and run:
                tokens = round(mean_tokens(run) * row["requests"])
                timed.loc[place, ["tokens", "basis"]] = [tokens, "measured"]
    return timed


def reproduce(
    order: Order, progress: Progress | None = None, say: Callable[[str], object] = len
) -> Reproduced:
    """Carry out what :func:`make_plan` plans, as far as it goes, and score what there is.

    Refused before anything is drawn: an engine that cannot be opened here, and questions that
    cannot be had, such as those of a gated set. A step that fails is left for the next call, and so
    are those whose engine has answered nothing; the others are done. ``progress`` is called with
    the requests done and to do, and ``say`` with a line a probe that is trained, see
    ``keep_predictions``."""
    plan = make_plan(order)
    _check_engines(order, plan)
    for dataset, split in dict.fromkeys(zip(plan["dataset"], plan["split"], strict=True)):
        questions = {*order.ids(dataset, split)}
        run = order.run(dataset, split) if order.part != "1/1" else None
        if run and not questions.issuperset(read_samples(run, ["question_id"])["question_id"]):
            raise InputError(f"{run} has samples of another part; give each part its own --store")
    total = int(plan["requests"].sum())
    done = 0
    left = []
    gone: dict[tuple[str, bool], str] = {}  # engines, the model's or the judge's, and why
    with engines_stay_open():
        for row in plan.to_dict("records"):
            who = row["engine"], row["step"] == "judge"
            reason = gone.get(who) or ("" if row["engine"] else NO_STATES)
            if reason and not row["requests"]:
                continue
            if not reason:
                reason = _attempt(order, row, gone, who)
            if reason:
                place = {name: row[name] for name in ("dataset", "split", "step")}
                left.append(place | {"reason": reason, "failed": reason != NO_STATES})
            done += row["requests"]
            if progress:
                progress(done, total)
    rest = pd.DataFrame(left, columns=["dataset", "split", "step", "reason", "failed"])
    verdicts = "rules" if "judge" in set(rest["step"]) else order.whose
    if order.part != "1/1":
        return Reproduced(pd.DataFrame(), rest, verdicts)
    graded = [name for name in order.names if _is_graded(order, name)]
    asked: dict[str, Any] = {"recipe": order.recipe, "choice": f"seed={order.seed}"}
    keep_predictions(
        order.store,
        order.model,
        datasets=graded,
        recipe=RECIPES[order.recipe].probe,
        verdicts=verdicts,
        choice=asked["choice"],
        say=say,
    )
    table = beside_printed(order.store, order.model, datasets=graded, verdicts=verdicts, **asked)
    return Reproduced(table, rest, verdicts)


def _attempt(
    order: Order, row: Mapping[Any, Any], gone: dict[tuple[str, bool], str], who: tuple[str, bool]
) -> str:
    """Carry out a step; return why it failed, if it did, and note an engine that is gone."""
    try:
        if row["requests"]:
            model = load_model(str(order.judge) if who[1] else order.model)
            open_engine(model, row["engine"], **order.server(row["step"]))
    except InputError as error:
        gone[who] = str(error)
        return str(error)
    try:
        _do(order, row)
    except Unanswered as error:
        gone[who] = str(error)
        return str(error)
    except InputError as error:
        return str(error)
    return ""


def _check_engines(order: Order, plan: pd.DataFrame) -> None:
    """Refuse an engine that is needed and cannot be opened here."""
    needed = plan[(plan["requests"] > 0) & (plan["engine"] != "")]
    for step, engine in dict.fromkeys(zip(needed["step"], needed["engine"], strict=True)):
        try:
            model = load_model(str(order.judge) if step == "judge" else order.model)
            check_engine(model, engine, url=order.server(step).get("url"))
        except InputError as error:
            if step != "judge":
                raise
            raise InputError(
                f"{error}; or take the verdicts of the rules: --verdicts rules"
            ) from None


def _is_graded(order: Order, dataset: str) -> bool:
    run = order.run(dataset, load_dataset(dataset).evaluation_split)
    return run is not None and run.has(VERDICTS)


def beside_printed(
    store: Path,
    model: str,
    *,
    datasets: Iterable[str] | None = None,
    recipe: str = "lean",
    verdicts: str = "rules",
    choice: str | None = None,
) -> pd.DataFrame:
    """Set scores beside the paper's printed ones, by the protocol of a recipe.

    Returns a table indexed by (dataset, method): the score ``brier`` with its interval ``low`` to
    ``high``; by the paper's recipe the ``spread`` of a probe over its five splits, a standard
    deviation; ``printed``; their ``difference``; and whether the printed one lies ``within`` the
    interval. Like is set beside like: from what is printed, a plug-in score of 100 samples, a
    ``corrected`` score is compared with what is left without the noise of these. NaN and missing
    where the paper prints nothing. ``evidence`` is that of the samples, measured or simulated."""
    how = RECIPES[recipe]
    parts = [
        load_results(
            store,
            model,
            datasets=datasets,
            verdicts=verdicts,
            choice=choice,
            held_out=how.protocol == "corrected",
            recipe=how.probe,
            split=split,
        )
        for split in range(SPLITS if how.probe == "paper" else 1)
    ]
    table = score(parts, protocol=how.protocol)
    table = table[["brier", "low", "high", *(["spread"] if len(parts) > 1 else [])]]
    main = load_reported("main").query("model == @model")
    known = main.set_index(["dataset", "method"])["value"].to_dict()
    printed = []
    for dataset, method in table.index.tolist():
        name = load_dataset(dataset).reported_as
        value = known.get((name, method), np.nan)
        if how.protocol == "corrected" and method != ORACLE_CC:
            # The mean of mu_hat (1 - mu_hat), over 100 - 1 samples.
            noise = (1 / 3 - known.get((name, UNIFORM), np.nan)) / 99
            value += noise if method in (UNIFORM, ORACLE_RC) else -noise
        printed.append(value)
    table["printed"] = printed
    table["difference"] = table["brier"] - table["printed"]
    within = (table["low"] <= table["printed"]) & (table["printed"] <= table["high"])
    table["within"] = within.astype("boolean").mask(table["printed"].isna())
    runs = describe_runs(store, model, datasets=datasets, verdicts=verdicts, choice=choice)
    table["evidence"] = table.index.get_level_values("dataset").map(runs["evidence"].to_dict())
    return table


class Unanswered(InputError):
    """Not one request of a step was answered."""


def _do(order: Order, row: Mapping[Any, Any]) -> int:
    """Carry out a step of a plan, as far as it is not done; return how many requests were answered.

    `Unanswered` where none was, `InputError` where some were not."""
    dataset = row["dataset"]
    split = row["split"]
    step = row["step"]
    if step == "samples":
        return _draw(order, row)
    run = find_run(order.store, order.model, dataset, split, f"seed={order.seed}")
    if step == TOP_UP:
        return _top_up(order, row)
    if step == STATES:
        return len(extract(run, engine=row["engine"]))
    if step == "judge":
        server = order.server(step)
        judged = judge_run(run, str(order.judge), engine=row["engine"], **server)
        new = judged.new
        failed = judged.failed
        why = f": {judged.reason}" if failed else ""
    else:
        tokens = estimate(run, step, engine=row["engine"], **order.server(step)).tokens
        new = int((tokens > 0).sum())
        failed = int((tokens == 0).sum())
        why = ""
    if failed:
        raise (InputError if new else Unanswered)(f"{failed} requests got no answer{why}")
    return new


def _draw(order: Order, row: Mapping[Any, Any]) -> int:
    dataset = row["dataset"]
    split = row["split"]
    ids = order.ids(dataset, split)[: row["questions"]]
    drawn = sample(
        order.model,
        dataset,
        split=split,
        k=dict.fromkeys(ids, row["first"] + row["each"]),
        store=order.store,
        engine=order.engine,
        seed=order.seed,
        in_flight=order.in_flight,
    )
    if drawn.new + drawn.present:
        grade_run(drawn.run)
    if drawn.failed:
        reason, number = max(drawn.failed.items(), key=lambda item: item[1])
        said = f"{sum(drawn.failed.values())} samples failed, {number} of them for: {reason}"
        raise (InputError if drawn.new else Unanswered)(said)
    return drawn.new


def _top_up(order: Order, row: Mapping[Any, Any]) -> int:
    """Draw what each question of a data set lacks of the samples that it needs, and grade it."""
    needed = _needed(order, row)
    if needed is None:
        raise InputError("not all of the first samples are there")
    asked: dict[str, Any] = {"split": row["split"], "store": order.store, "seed": order.seed}
    asked |= {
        "engine": order.engine,
        "in_flight": order.in_flight,
        "k": needed.astype(int).to_dict(),
    }
    drawn = sample(order.model, row["dataset"], **asked)
    if drawn.new:
        grade_run(drawn.run)
        if order.judge and load_dataset(row["dataset"]).kind in JUDGED:
            judge = order.engine_of("judge")
            judge_run(drawn.run, order.judge, engine=judge, **order.server("judge"))
    if drawn.failed:
        failed = sum(drawn.failed.values())
        raise (InputError if drawn.new else Unanswered)(f"{failed} samples failed")
    return drawn.new


def _needed(order: Order, step: Mapping[str, Any]) -> "pd.Series[int] | None":
    """Return how many samples each question needs, by the first of all of them; None before these
    are there."""
    run = order.run(step["dataset"], step["split"])
    first = RECIPES[order.recipe].samples
    if run is None or not run.has(VERDICTS) or order.precision is None:
        return None
    there = read_verdicts(run).groupby("question_id")["sample_index"].agg(_first_of)
    if len(there) < step["questions"] or there.min() < first:
        return None
    asked: dict[str, Any] = {"datasets": [step["dataset"]], "choice": f"seed={order.seed}"}
    keep_predictions(order.store, order.model, **asked)
    results = load_results(order.store, order.model, k_eval=first, **asked)
    results = results[[*COUNTS, *methods(results)]]
    groups = subjects(results).droplevel("dataset")
    asked = {"half_width": order.precision, "most": MOST, "clusters": groups}
    return samples_needed(results.droplevel("dataset"), **asked)


def _first_of(indices: "pd.Series[int]") -> int:
    """Return how many of the first samples are there without a gap."""
    return int((np.sort(indices) == np.arange(len(indices))).sum())


def _expected(order: Order, questions: int) -> float:
    """Return the samples that a question is expected to need in all, if answers were like those of
    the simulated model."""
    mu = np.array([true_mu(str(number)) for number in range(questions)])
    first = RECIPES[order.recipe].samples
    counts = {"correct": np.random.default_rng(0).binomial(first, mu), "total": first}
    pilot = pd.DataFrame(counts | {"confidence": 0.2 + 0.6 * mu})
    return float(samples_needed(pilot, half_width=float(order.precision or 1), most=MOST).mean())


def _lacking(order: Order, run: Run | None, step: Mapping[str, Any]) -> int:
    """Return how many requests of a step are not done, as far as files tell."""
    wanted = step["questions"] * step["each"]
    if step["step"] == TOP_UP:
        return _to_buy(order, run, step)
    if run is None:
        return wanted
    if step["step"] == "samples":
        there = read_samples(run, KEY)["sample_index"]
        last = step["first"] + step["each"] - 1
        return wanted - min(wanted, int(there.between(step["first"], last).sum()))
    if step["step"] == "judge":
        return _unjudged(run, str(order.judge), wanted)
    made = (FEATURES, "") if step["step"] == STATES else (CONFIDENCES, step["step"])
    return wanted - min(wanted, run.count(*made))


def _to_buy(order: Order, run: Run | None, step: Mapping[str, Any]) -> int:
    """Return how many samples a data set still has to be topped up by, or is expected to."""
    needed = _needed(order, step)
    if run is None or needed is None:
        lacking = _expected(order, step["questions"]) - RECIPES[order.recipe].samples
        return round(step["questions"] * lacking)
    there = read_samples(run, KEY).groupby("question_id").size()
    return int((needed - there.reindex(needed.index, fill_value=0)).clip(lower=0).sum())


def _unjudged(run: Run, judge: str, most: int) -> int:
    """Return how many distinct answers of a run a judge has not judged, at most."""
    if not run.has(VERDICTS):
        return most
    verdicts = read_verdicts(run)
    answers = verdicts[PAIR].dropna().drop_duplicates()
    if judge in judges(run):
        known = pd.MultiIndex.from_frame(read_judgements(run, judge)[PAIR])
        answers = answers[~pd.MultiIndex.from_frame(answers).isin(known)]
    return len(answers) + max(0, most - len(verdicts))


def _tokens(order: Order, dataset: str, run: Run | None, step: str) -> tuple[float, str]:
    """Return the mean tokens of a reply as far as they are known, and how."""
    step = "samples" if step == TOP_UP else step
    if step == "samples" and run is not None and len(read_samples(run, KEY)):
        return mean_tokens(run), "measured"
    read = load_reported("tokens", source="reference code")
    known = read.set_index(["model", "dataset", "method"])["value"].to_dict()
    title = {"samples": "Response", "judge": TITLES["p-true"], **TITLES}.get(step)
    who = order.judge if step == "judge" else order.model
    length = known.get((who, load_dataset(dataset).reported_as or dataset, title))
    if length is not None:  # a judge says a word, too, after as long a reasoning
        return float(length), "at most, as P(True)" if step == "judge" else "read off"
    if step == "samples":
        return float(load_model(order.model).for_dataset(dataset).sampling.max_tokens), "at most"
    return TOKENS[step], "at most" if step == "judge" else ""


def _prompt(run: Run | None) -> float:
    """Return the mean tokens of a run's prompts, or what is usual."""
    if run is None or not len(prompts := read_samples(run, ["prompt_tokens"])):
        return PROMPT
    return float(prompts["prompt_tokens"].mean())
