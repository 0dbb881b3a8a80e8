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

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from capcal_lib.applications.topping_up import samples_needed
from capcal_lib.confidence.consistency import mean_tokens
from capcal_lib.confidence.of_run import TITLES, estimate
from capcal_lib.errors import InputError, sanitize, unknown
from capcal_lib.grading.judge import JUDGED
from capcal_lib.grading.judgements import judge_progress, judge_run, judges, read_judgements
from capcal_lib.grading.verdicts import grade_run, read_verdicts
from capcal_lib.manifests import Dataset, dataset_names, load_dataset, load_model
from capcal_lib.metrics.validation import check_int
from capcal_lib.probes import keep_predictions, runs_for_probes
from capcal_lib.probes.features import extract
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
from capcal_lib.sampling.engines import check_engine, close_engine, engine_name, open_engine

STATES = "hidden states"
TOP_UP = "top up"
STEPS = ("samples", "verbalized", "p-true", "judge", STATES, TOP_UP)  # that need a model
MOST = 100  # samples of a question that is topped up
PROMPT = 200  # tokens of a prompt, where no sample says
READ = 1e14  # operations a second of a GPU that reads prompts; two a parameter and token
TRAINING = 4.7e-9  # seconds of a core, measured at 7,473 questions and 2,880 features
MIX = ("triviaqa-1000", "gsm8k")  # that one more probe of the paper learns from (appendix C.4)
VOTES = (5, 10, 20)  # of table 6
LEFT = ["dataset", "split", "step", "reason", "failed"]
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
        """List the data sets: those of the paper's tables, where none is named."""
        paper = (name for name in dataset_names() if load_dataset(name).reported_as)
        return list(paper if self.datasets is None else self.datasets)

    @property
    def choice(self) -> str:
        """Return which of several runs on a split is meant, as ``find_run`` takes it."""
        return f"seed={self.seed}"

    def part_of(self, ranked: Sequence[Any]) -> Sequence[Any]:
        """Return which of the questions of a split are asked, sorted by rank."""
        number, parts = map(int, self.part.split("/"))
        return ranked[number - 1 :: parts]

    def ids(self, dataset: str, split: str) -> list[str]:
        """List the questions of a split that are asked, those of every smaller number first."""
        ranked = rank_questions(load_questions(dataset, split))
        return [each.id for each in self.part_of(ranked)]

    def model_of(self, step: str) -> str:
        """Return the model that does a step."""
        return str(self.judge) if step == "judge" else self.model

    def engine_of(self, step: str) -> str:
        """Return the engine that does a step; an empty name where the one that is named cannot."""
        asked = "openai" if step == "judge" and self.judge_url else self.engine
        engine = engine_name(load_model(self.model_of(step)), asked)
        if step != STATES:
            return engine
        return self.features_engine or ("" if engine == "openai" else engine)

    def server(self, step: str) -> dict[str, Any]:
        """Return how the server of a step is asked."""
        return {"url": self.judge_url if step == "judge" else None, "in_flight": self.in_flight}

    def run(self, dataset: str, split: str) -> Run | None:
        """Return the run on a split, if it has been begun."""
        place = self.store, self.model, dataset, split, self.choice
        return find_run(*place) if list_fitting(*place) else None


@dataclass(frozen=True)
class Reproduced:
    """What a call to ``reproduce`` has come to."""

    scores: pd.DataFrame  # as ``beside_printed`` returns them; empty of a part
    left: pd.DataFrame  # a row a step that is not done: dataset, split, step, reason, failed


def make_plan(order: Order, *, fetch: bool = True) -> pd.DataFrame:
    """Plan what reproducing a model takes that the store does not have yet; nothing is drawn.

    No engine is opened, and none has to be here; without ``fetch`` no question is loaded from a
    hub either, and what only it knows is NaN. Returns one row a step that needs a model, in the
    order in which they are done: ``dataset``, ``split``, ``step``, ``questions``; requests for
    ``each``, from the ``first`` sample on; the ``model`` and the ``engine``, empty where the one
    that is named cannot do it; ``requests`` that are lacking, ``tokens`` that they write, the
    ``basis`` of that number (measured in this store, read off the paper's figures, or at most); and
    the tokens of the prompts that hidden states are read of, ``reads``."""
    rows = []
    for dataset in map(load_dataset, order.names):
        for step in _steps(order, dataset, fetch):
            name = step["step"]
            run = order.run(dataset.name, step["split"])
            requests = _lacking(order, run, step)
            length, basis = _tokens(order, dataset.name, run, name)
            row: dict[str, Any] = {"model": order.model_of(name), "engine": order.engine_of(name)}
            row |= {"requests": requests, "tokens": np.round(requests * length)}
            row |= {"basis": "at most" if name == TOP_UP else basis}
            reads = np.round(requests * _prompt(run)) if name == STATES else 0
            rows.append(step | row | {"reads": reads})
    # Hidden states last, for vLLM is opened anew for them and slower then, or a server gives none;
    # but another model judges after them, because one model is in memory at a time.
    own = order.judge not in (None, order.model) and order.engine_of("judge") != "openai"
    late = {STATES: 2, "judge": 3 if own else 1, TOP_UP: 4}  # the last by all scores that there are
    rows.sort(key=lambda step: late.get(step["step"], 0))
    return pd.DataFrame(rows)


def _steps(order: Order, dataset: Dataset, fetch: bool) -> Iterator[dict[str, Any]]:
    """Yield the steps on a data set, each with its split, questions, first sample, and how many."""
    recipe = RECIPES[order.recipe]
    judged = ["judge"] if order.judge and dataset.kind in JUDGED else []
    states = ["samples", *judged, STATES]
    steps = ["samples", "verbalized", "p-true", *judged, STATES]
    steps += [TOP_UP] if order.precision else []
    evaluation = dataset.evaluation_split
    parts: list[tuple[str, list[str], int | None, int, int]]  # the last: first sample, how many
    parts = [(evaluation, steps, None, 0, recipe.samples)]
    own = dataset.paper_training if order.recipe == "paper" else None
    trains = own or order.recipe != "paper" or not dataset.reported_as
    if trains and dataset.training_split not in (None, evaluation):
        training = str(dataset.training_split)
        (many, once), *more = recipe.training
        parts.append((training, states, order.training_questions or own or many, 0, once))
        parts += [(training, ["samples"], most, once, each - once) for most, each in more]
        if recipe.validation and dataset.validation_split:
            parts.append((dataset.validation_split, states, None, 0, recipe.validation))
    for split, steps, most, first, each in parts:
        there = planned_rows(dataset.name, split, fetch=fetch)
        number = min(filter(None, (there, order.limit, most)), default=None)
        questions = np.nan if number is None else len(order.part_of(range(number)))
        for step in steps if questions else ():
            row = {"dataset": dataset.name, "split": split, "step": step, "questions": questions}
            drawn = step in ("samples", "judge")
            yield row | {"first": drawn * first, "each": each if drawn else 1}


def time_plan(
    order: Order, plan: pd.DataFrame, *, rate: float | None = None, gpus: int = 1
) -> pd.DataFrame:
    """Estimate the ``seconds`` of a plan, and add the training of the paper's probes to it.

    ``rate`` is the tokens a second that all GPUs write. Reading prompts takes two operations a
    token and active parameter, of which a GPU is taken to do ``READ`` a second; training a probe
    ``TRAINING`` seconds a question, feature, learning rate and epoch. NaN is not known."""
    models = {name: load_model(name) for name in {order.model, *plan["model"]}}
    active = {name: each.active_parameters or each.parameters for name, each in models.items()}
    reading = 2 * plan["model"].map(active).astype(float) * plan["reads"] / READ / gpus
    writing = plan["tokens"] / (rate or np.nan)
    timed = plan.assign(
        seconds=reading.where(plan["reads"] != 0, 0) + writing.where(plan["tokens"] != 0, 0)
    )
    if order.recipe != "paper" or order.part != "1/1":
        return timed
    questions = {
        row["dataset"]: row["questions"]
        for row in plan.query(f"step == {STATES!r}").to_dict("records")
        if row["split"] == load_dataset(row["dataset"]).training_split
    }
    if {*MIX} <= questions.keys():
        questions["+".join(MIX)] = sum(questions[name] for name in MIX)
    work = TRAINING * SPLITS * 2 * len(LEARNING_RATES) * EPOCHS * (1 - 1 / SPLITS)
    size = models[order.model].hidden_size or np.nan
    row = timed.iloc[-1].to_dict() | {"step": "probe", "each": 1, "requests": 0, "tokens": 0}
    row |= {"engine": "CPU", "model": order.model, "basis": "", "reads": 0, "split": "train"}
    rows = [
        row | {"dataset": name, "questions": number, "seconds": work * size * number}
        for name, number in questions.items()
    ]
    return pd.concat([timed, pd.DataFrame(rows)], ignore_index=True)


def reproduce(
    order: Order, progress: Progress | None = None, say: Callable[[str], object] = len
) -> Reproduced:
    """Carry out what :func:`make_plan` plans, as far as it goes, and score what there is.

    Refused before anything is drawn: an engine that cannot be opened here, and questions that
    cannot be had, such as those of a gated set. A step that fails is left for the next call, and so
    are those whose engine has answered nothing; the others are done. A data set that the judge has
    not judged is not scored. ``progress`` is called with the requests done and to do, and ``say``
    with a line a probe that is trained, see ``keep_predictions``."""
    plan = make_plan(order)
    needed = plan.query("requests > 0 and engine != ''").drop_duplicates(["model", "engine"])
    for row in needed.to_dict("records"):
        url = order.server(row["step"])["url"]
        try:
            check_engine(load_model(row["model"]), row["engine"], url=url)
        except InputError as error:
            rules = "; or take the verdicts of the rules: --verdicts rules"
            raise InputError(f"{error}{rules if row['step'] == 'judge' else ''}") from None
    for dataset, split in dict.fromkeys(zip(plan["dataset"], plan["split"], strict=True)):
        questions = {*order.ids(dataset, split)}
        run = order.run(dataset, split) if order.part != "1/1" else None
        if run and not questions.issuperset(read_samples(run, ["question_id"])["question_id"]):
            raise InputError(f"{run} has samples of another part; give each part its own --store")
    done = 0
    left = []
    gone: dict[tuple[str, str], str] = {}  # engines of models, and why
    for row in plan.to_dict("records"):
        who = row["engine"], row["model"]
        reason = gone.get(who, "" if row["engine"] else NO_STATES)
        try:
            if not reason:
                _do(order, row)
        except Unanswered as error:
            reason = gone[who] = str(error)
        except InputError as error:
            reason = str(error)
        else:
            reason = reason if row["requests"] else ""
        if reason:
            left.append([*map(row.get, LEFT[:3]), reason, reason != NO_STATES])
        done += row["requests"]
        if progress:
            progress(done, int(plan["requests"].sum()))
    close_engine()
    rest = pd.DataFrame(left, columns=LEFT)
    if order.part != "1/1":
        return Reproduced(pd.DataFrame(), rest)
    asked: dict[str, Any] = {"verdicts": order.whose, "choice": order.choice}
    asked["datasets"] = [
        name
        for name in order.names
        if (run := order.run(name, load_dataset(name).evaluation_split))
        and is_scored(run, order.whose)
    ]
    how: dict[str, Any] = asked | {"recipe": RECIPES[order.recipe].probe, "say": say}
    keep_predictions(order.store, order.model, **how)
    training = runs_for_probes(order.store, order.model, "training", choice=order.choice)
    taught = {dataset.name for dataset, run in training if is_scored(run, order.whose)}
    if order.recipe == "paper" and {*MIX} <= taught:
        keep_predictions(order.store, order.model, mix=MIX, **how)
    table = beside_printed(order.store, order.model, recipe=order.recipe, **asked)
    return Reproduced(table, rest)


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
    asked: dict[str, Any] = {"datasets": datasets, "verdicts": verdicts, "choice": choice}
    own: dict[str, Any] = asked | {"held_out": how.protocol == "corrected"}
    splits = range(SPLITS if how.probe == "paper" else 1)
    parts = [load_results(store, model, recipe=how.probe, split=split, **own) for split in splits]
    if how.protocol == "paper":  # table 6
        for votes in VOTES:
            few = load_results(store, model, recipe=None, k_c=votes, **own)
            if CONSISTENCY in few:
                column = {f"{CONSISTENCY}, {votes} votes": few[CONSISTENCY]}
                parts = [part.assign(**column) for part in parts]
    table = score(parts, protocol=how.protocol)
    table = table[["brier", "low", "high", *(["spread"] if len(parts) > 1 else [])]]
    main = pd.concat(map(load_reported, ("mixing", "consistency", "main")))
    main = main.query("model == @model")
    title = CONSISTENCY + ", " + main["k"].astype("Int64").astype(str) + " votes"
    main["method"] = main["method"].mask(main["k"].notna(), title)
    known = main.set_index(["dataset", "method"])["value"].to_dict()
    rows = [(load_dataset(name).reported_as, method) for name, method in table.index]
    table["printed"] = [known.get(row, np.nan) for row in rows]
    if how.protocol == "corrected":
        # The mean of mu_hat (1 - mu_hat), over 100 - 1 samples.
        noise = [(1 / 3 - known.get((name, UNIFORM), np.nan)) / 99 for name, _ in rows]
        signs = {UNIFORM: 1, ORACLE_RC: 1, ORACLE_CC: 0}
        table["printed"] += [
            signs.get(method, -1) * each for each, (_, method) in zip(noise, rows, strict=True)
        ]
    table["difference"] = table["brier"] - table["printed"]
    within = (table["low"] <= table["printed"]) & (table["printed"] <= table["high"])
    table["within"] = within.astype("boolean").mask(table["printed"].isna())
    runs = describe_runs(store, model, **asked)
    table["evidence"] = table.index.get_level_values("dataset").map(runs["evidence"].to_dict())
    return table


class Unanswered(InputError):
    """Not one request of a step was answered."""


def _do(order: Order, row: Mapping[Any, Any]) -> None:
    """Carry out a step of a plan, as far as it is not done.

    `Unanswered` where no request was answered, `InputError` where some were not."""
    step = row["step"]
    server = order.server(step)
    if row["requests"]:
        try:
            open_engine(load_model(row["model"]), row["engine"], **server)
        except InputError as error:
            raise Unanswered(str(error)) from None
    if step in ("samples", TOP_UP):
        new, failed = _draw(order, row)
    else:
        run = find_run(order.store, order.model, row["dataset"], row["split"], order.choice)
        if step == STATES:
            extract(run, engine=row["engine"])
            return
        if step == "judge":
            new, failed = _judge(order, run)
        else:
            tokens = estimate(run, step, engine=row["engine"], **server).tokens
            new, failed = int((tokens > 0).sum()), {"": int((tokens == 0).sum())}
    failed = {reason: number for reason, number in failed.items() if number}
    if failed:
        reason = max(failed, key=failed.__getitem__)
        said = f"{sum(failed.values())} requests got no answer" + f": {reason}" * bool(reason)
        raise (InputError if new else Unanswered)(said)


def _judge(order: Order, run: Run) -> tuple[int, dict[str, int]]:
    """Judge a run; refuse a judge whose words are no verdict, whatever it is asked."""
    judge = order.model_of("judge")
    judged = judge_run(run, judge, engine=order.engine_of("judge"), **order.server("judge"))
    if judge in judges(run):
        told = read_judgements(run, judge)
        if (told["verdict"] == "not_scored").all():
            raise InputError(
                f"{judge} judged {len(told)} answers and said none of its three words, but such as "
                f"{sanitize(told['words'].iloc[0], 80)!r}"
            )
    return judged.new, {judged.reason: judged.failed}


def _draw(order: Order, row: Mapping[Any, Any]) -> tuple[int, dict[str, int]]:
    """Draw what a split lacks of the samples that each question needs, and grade it."""
    needed: Mapping[str, int]
    if row["step"] == "samples":
        ids = order.ids(row["dataset"], row["split"])[: row["questions"]]
        needed = dict.fromkeys(ids, row["first"] + row["each"])
    else:
        asked: dict[str, Any] = {"datasets": [row["dataset"]], "choice": order.choice}
        keep_predictions(order.store, order.model, **asked)
        found = _needed(order, row)
        if found is None:
            raise InputError("not all of the first samples are there")
        needed = {str(name): int(k) for name, k in found.items()}
    drawn = sample(
        order.model,
        row["dataset"],
        k=needed,
        split=row["split"],
        store=order.store,
        engine=order.engine,
        seed=order.seed,
        in_flight=order.in_flight,
    )
    if drawn.new + drawn.present:
        grade_run(drawn.run)
    if row["step"] == TOP_UP and order.judge and load_dataset(row["dataset"]).kind in JUDGED:
        _judge(order, drawn.run)
    return drawn.new, drawn.failed


def _needed(order: Order, step: Mapping[str, Any]) -> "pd.Series[int] | None":
    """Return how many samples each question needs, by the first of all of them; None before these
    are there."""
    run = order.run(step["dataset"], step["split"])
    first = RECIPES[order.recipe].samples
    if run is None or not run.has(VERDICTS) or order.precision is None:
        return None
    there = read_verdicts(run).query("sample_index < @first").groupby("question_id").size()
    if len(there) < step["questions"] or there.min() < first:
        return None
    asked: dict[str, Any] = {"datasets": [step["dataset"]], "choice": order.choice}
    results = load_results(order.store, order.model, k_eval=first, **asked)
    results = results[[*COUNTS, *methods(results)]]
    return samples_needed(
        results.droplevel("dataset"),
        clusters=subjects(results).droplevel("dataset"),
        half_width=order.precision,
        most=MOST,
    )


def _lacking(order: Order, run: Run | None, step: Mapping[str, Any]) -> float:
    """Return how many requests of a step are not done, as far as files tell."""
    wanted = step["questions"] * step["each"]
    if step["step"] == TOP_UP:
        needed = _needed(order, step)
        if run is None or needed is None:
            return float(step["questions"] * (MOST - RECIPES[order.recipe].samples))
        each = read_samples(run, KEY).groupby("question_id").size()
        return int((needed - each.reindex(needed.index, fill_value=0)).clip(lower=0).sum())
    if run is None:
        return float(wanted)
    if step["step"] == "judge":
        judged, answers = judge_progress(run).get(str(order.judge), (0, wanted))
        return float(min(wanted, answers - judged + wanted - min(wanted, run.count(VERDICTS))))
    if step["step"] == "samples":
        last = step["first"] + step["each"] - 1
        there = int(read_samples(run, KEY)["sample_index"].between(step["first"], last).sum())
    else:
        made = (FEATURES, "") if step["step"] == STATES else (CONFIDENCES, step["step"])
        there = run.count(*made)
    return float(wanted - min(wanted, there))


def _tokens(order: Order, dataset: str, run: Run | None, step: str) -> tuple[float, str]:
    """Return the mean tokens of a reply as far as they are known, and how."""
    step = "samples" if step == TOP_UP else step
    if step == "samples" and run is not None and len(read_samples(run, KEY)):
        return mean_tokens(run), "measured"
    read = load_reported("tokens", source="reference code")
    known = read.set_index(["model", "dataset", "method"])["value"].to_dict()
    title = {"samples": "Response", "judge": TITLES["p-true"], **TITLES}.get(step)
    length = known.get((order.model_of(step), load_dataset(dataset).reported_as or dataset, title))
    if length is not None:  # a judge says a word, too, after as long a reasoning
        return float(length), "at most, as P(True)" if step == "judge" else "read off"
    if step in ("p-true", STATES):
        return float(step == "p-true"), ""
    model = load_model(order.model_of(step)).for_dataset(dataset)
    return float(model.sampling.max_tokens), "at most"


def _prompt(run: Run | None) -> float:
    """Return the mean tokens of a run's prompts, or what is usual."""
    if run is None or not len(prompts := read_samples(run, ["prompt_tokens"])):
        return PROMPT
    return float(prompts["prompt_tokens"].mean())
