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

STATES = "hidden states"
TOP_UP = "top up"
MOST = 100  # samples of a question that is topped up
PROMPT = 200  # tokens of a prompt, where no sample says
READ = 1e14  # operations a second of a GPU that reads prompts; two a parameter and token
TRAINING = 4.7e-9  # seconds of a core, measured at 7,473 questions and 2,880 features
MIX = ("triviaqa-1000", "gsm8k")  # that one more probe of the paper learns from (appendix C.4)
VOTES = (5, 10, 20)  # of table 6
LEFT = ["dataset", "split", "step", "reason"]
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
    """What is to be reproduced, and how; unknown names are refused."""

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
        if self.recipe not in RECIPES:
            raise unknown("recipe", self.recipe, RECIPES)
        if self.judge is None and self.whose != "rules":
            raise InputError(
                "verdicts are by 'rules' or by 'judge:MODEL', such as judge:gpt-oss-20b; got "
                f"{self.whose!r}"
            )
        whole = self.recipe == "lean" and self.judge is None and parts == "1"
        if self.precision and not whole:
            raise InputError(
                "precision is reached by the lean recipe, with the verdicts of the rules, and by "
                "all questions: after a merge"
            )
        for engine in (self.engine, self.features_engine):
            engine_name(load_model(self.model), engine)
        load_model(self.judge or self.model)

    @property
    def whose(self) -> str:
        """Return whose verdicts are scored."""
        return self.verdicts or RECIPES[self.recipe].verdicts

    @property
    def judge(self) -> str | None:
        """Return the model that judges, if one does."""
        _, judges, model = self.whose.partition("judge:")
        return model if judges else None

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

    def run(self, dataset: str, split: str) -> Run | None:
        """Return the run on a split, if it has been begun."""
        place = self.store, self.model, dataset, split, self.choice
        return find_run(*place) if list_fitting(*place) else None


@dataclass(frozen=True)
class Reproduced:
    """What a call to ``reproduce`` has come to."""

    scores: pd.DataFrame  # as ``beside_printed`` returns them; empty of a part
    left: pd.DataFrame  # a row a step that is not done: dataset, split, step, reason


def make_plan(order: Order, *, fetch: bool = True) -> pd.DataFrame:
    """Plan what reproducing a model takes that the store does not have yet; nothing is drawn.

    No engine is opened, and none has to be here; without ``fetch`` no question is loaded from a
    hub either, and what only it knows is NaN. Returns one row a step that needs a model, in the
    order in which they are done: ``dataset``, ``split``, ``step``, ``questions``; requests for
    ``each``, from the ``first`` sample on; the ``model`` and the ``engine``, empty where the one
    that is named cannot do it; ``requests`` that are lacking, ``tokens`` that they write, the
    ``basis`` of that number (measured in this store, read off the paper's figures, or at most); and
    the tokens of the prompts that hidden states are read of, ``reads``."""
    engine = engine_name(load_model(order.model), order.engine)
    engines = {STATES: order.features_engine or ("" if engine == "openai" else engine)}
    if order.judge:
        asked = "openai" if order.judge_url else order.engine
        engines["judge"] = engine_name(load_model(order.judge), asked)
    rows: list[dict[str, Any]] = []
    for dataset in map(load_dataset, order.names):
        for split, steps, most, first, each in _parts(order, dataset):
            counts = (planned_rows(dataset.name, split, fetch=fetch), order.limit, most)
            number = min(filter(None, counts), default=None)
            questions = np.nan if number is None else len(order.part_of(range(number)))
            run = order.run(dataset.name, split)
            samples = pd.DataFrame()
            if run is not None:
                samples = read_samples(run, [*KEY, "prompt_tokens"])
            for step in steps if questions else ():
                drawn = step in ("samples", "judge")
                row: dict[str, Any] = {"dataset": dataset.name, "split": split, "step": step}
                row |= {"questions": questions, "first": drawn * first}
                row |= {"each": each if drawn else 1}
                row |= {"model": order.judge if step == "judge" else order.model}
                row |= {"engine": engines.get(step, engine)}
                rows.append(row | _cost(order, run, samples, row))
    # Hidden states last, for vLLM is opened anew for them and slower then, or a server gives none;
    # but another model judges after them, because one model is in memory at a time.
    apart = order.judge != order.model and engines.get("judge") != "openai"
    late = {STATES: 2, "judge": 3 if apart else 1, TOP_UP: 4}  # the last by all scores there are
    rows.sort(key=lambda row: late.get(row["step"], 0))
    return pd.DataFrame(rows)


def _parts(order: Order, dataset: Dataset) -> Iterator[tuple[str, list[str], int | None, int, int]]:
    """Yield the parts of a data set: a split, its steps, how many questions at most, the first
    sample, and how many of them.
    """
    recipe = RECIPES[order.recipe]
    judged = ["judge"] if order.judge and dataset.kind in JUDGED else []
    top_up = [TOP_UP] if order.precision else []
    evaluation, training = dataset.evaluation_split, dataset.training_split
    steps = ["samples", "verbalized", "p-true", *judged, STATES, *top_up]
    yield evaluation, steps, None, 0, recipe.samples
    paper = dataset.paper_training if order.recipe == "paper" else None
    trains = paper or order.recipe != "paper" or not dataset.reported_as
    if not trains or training in (None, evaluation):
        return
    steps = ["samples", *judged, STATES]
    (most, once), *more = recipe.training
    yield str(training), steps, order.training_questions or paper or most, 0, once
    for most, each in more:
        yield str(training), ["samples"], most, once, each - once
    if recipe.validation and dataset.validation_split:
        yield dataset.validation_split, steps, None, 0, recipe.validation


def _cost(
    order: Order, run: Run | None, samples: pd.DataFrame, step: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the requests that a step lacks, as far as files tell, and the tokens of them."""
    name = step["step"]
    wanted = step["questions"] * step["each"]
    done = 0
    if name == TOP_UP:
        wanted *= MOST - RECIPES[order.recipe].samples
        needed = _needed(order, step)
        if needed is not None:
            there = samples.groupby("question_id").size().reindex(needed.index, fill_value=0)
            wanted, done = needed.sum(), there.clip(upper=needed).sum()
    elif name == "samples" and len(samples):
        done = (samples["sample_index"] - step["first"]).between(0, step["each"] - 1).sum()
    elif run and name == "judge":
        judged, answers = judge_progress(run).get(str(order.judge), (0, wanted))
        done = min(wanted, run.count(VERDICTS)) - answers + judged
    elif run and name != "samples":
        done = run.count(FEATURES) if name == STATES else run.count(CONFIDENCES, name)
    requests = wanted - np.clip(done, 0, wanted)
    length, basis = _tokens(step, run if len(samples) else None)
    prompt = samples["prompt_tokens"].mean() if len(samples) else PROMPT
    return {
        "requests": requests,
        "tokens": np.round(requests * length),
        "basis": basis,
        "reads": np.round(requests * prompt) if name == STATES else 0,
    }


def _tokens(step: Mapping[str, Any], run: Run | None) -> tuple[float, str]:
    """Return the mean tokens of a reply as far as they are known, and how."""
    name = step["step"]
    if name in ("samples", TOP_UP) and run:
        return mean_tokens(run), "measured"
    read = load_reported("tokens", source="reference code")
    known = read.set_index(["model", "dataset", "method"])["value"].to_dict()
    dataset = load_dataset(step["dataset"])
    titles = {"samples": "Response", TOP_UP: "Response", "judge": TITLES["p-true"], **TITLES}
    place = step["model"], dataset.reported_as or dataset.name, titles.get(name)
    if place in known:  # a judge says a word, too, after as long a reasoning
        return known[place], "at most, as P(True)" if name == "judge" else "read off"
    if name in ("p-true", STATES):
        return float(name == "p-true"), ""
    return load_model(step["model"]).for_dataset(dataset.name).sampling.max_tokens, "at most"


def time_plan(
    order: Order, plan: pd.DataFrame, *, rate: float | None = None, gpus: int = 1
) -> pd.DataFrame:
    """Estimate the ``seconds`` of a plan, and add the training of the paper's probes to it.

    ``rate`` is the tokens a second that all GPUs write. Reading prompts takes two operations a
    token and active parameter, of which a GPU is taken to do ``READ`` a second; training a probe
    ``TRAINING`` seconds a question, feature, learning rate and epoch. NaN is not known."""
    model = load_model(order.model)
    active = model.active_parameters or model.parameters or np.nan
    reading = (2 * active * plan["reads"] / READ / gpus).where(plan["reads"] != 0, 0)
    writing = (plan["tokens"] / (rate or np.nan)).where(plan["tokens"] != 0, 0)
    timed = plan.assign(seconds=reading + writing)
    if order.recipe != "paper" or order.part != "1/1":
        return timed
    training = {name: load_dataset(name).training_split for name in order.names}
    learnt = timed[(timed["step"] == STATES) & (timed["split"] == timed["dataset"].map(training))]
    questions = learnt.set_index("dataset")["questions"]
    if {*MIX} <= {*questions.index}:
        questions["+".join(MIX)] = questions[[*MIX]].sum()
    work = TRAINING * SPLITS * 2 * len(LEARNING_RATES) * EPOCHS * (1 - 1 / SPLITS)
    probes = questions.reset_index().assign(split="train", step="probe", model=model.name)
    probes["engine"] = "CPU"
    probes["seconds"] = work * (model.hidden_size or np.nan) * probes["questions"]
    return pd.concat([timed, probes], ignore_index=True)


def reproduce(
    order: Order, progress: Progress | None = None, say: Callable[[str], object] = len
) -> Reproduced:
    """Carry out what :func:`make_plan` plans, as far as it goes, and score what there is.

    Refused before anything is drawn: an engine that cannot be opened here, and questions that
    cannot be had, such as those of a gated set. A step that fails is left for the next call, and so
    are those whose engine could not be opened or has answered nothing; the others are done. A data
    set that the judge has not judged is not scored. ``progress`` is called with the requests
    done and to do, and ``say`` with a line a probe that is trained, see ``keep_predictions``."""
    plan = make_plan(order)
    for row in plan.query("requests > 0 and engine != ''").to_dict("records"):
        url = order.judge_url if row["step"] == "judge" else None
        check_engine(load_model(row["model"]), row["engine"], url=url)
        load_questions(row["dataset"], row["split"])
    done = 0
    left = []
    silent = {("", order.model): NO_STATES}  # engines of models that answer nothing, and why
    for row in plan.to_dict("records"):
        engine = row["engine"], row["model"]
        reason = silent.get(engine, "") if row["requests"] else ""
        if not reason:
            try:
                new, failed = _do(order, row)
            except NotOpened as error:
                silent[engine] = reason = str(error)
            except InputError as error:
                reason = str(error)
            else:
                if number := sum(failed.values()):
                    most = max(failed, key=failed.__getitem__)
                    reason = f"{number} requests got no answer{most and f': {most}'}"
                    silent |= {} if new else {engine: reason}
        if reason:
            left.append([*map(row.get, LEFT[:3]), reason])
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
    probes = keep_predictions(order.store, order.model, **how).index.unique("probe")
    if order.recipe == "paper" and {*map(probe_title, MIX)} <= {*probes}:
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
    deviation; ``printed``; and whether that lies ``within`` the interval. Like is set beside like:
    from what is printed, a plug-in score of 100 samples, a ``corrected`` score is compared with
    what is left without the noise of these. NaN and missing where the paper prints nothing.
    ``evidence`` is that of the samples, measured or simulated."""
    how = RECIPES[recipe]
    asked: dict[str, Any] = {"datasets": datasets, "verdicts": verdicts, "choice": choice}
    own: dict[str, Any] = asked | {"held_out": how.protocol == "corrected"}
    splits = range(SPLITS if how.probe == "paper" else 1)
    parts = [load_results(store, model, recipe=how.probe, split=split, **own) for split in splits]
    for votes in VOTES if how.protocol == "paper" else ():  # table 6
        few = load_results(store, model, recipe=None, k_c=votes, **own)
        if CONSISTENCY in few:
            column = {f"{CONSISTENCY}, {votes} votes": few[CONSISTENCY]}
            parts = [part.assign(**column) for part in parts]
    table = score(parts, protocol=how.protocol)
    table = table[[name for name in ("brier", "low", "high", "spread") if name in table]]
    main = pd.concat(map(load_reported, ("mixing", "consistency", "main")))
    main = main.query("model == @model")
    title = CONSISTENCY + ", " + main["k"].astype("Int64").astype(str) + " votes"
    main["method"] = main["method"].mask(main["k"].notna(), title)
    known = main.set_index(["dataset", "method"])["value"].to_dict()
    printed = []
    for name, method in table.index.to_list():
        paper = load_dataset(name).reported_as
        printed.append(known.get((paper, method), np.nan))
        if how.protocol == "corrected":  # without the mean of mu_hat (1 - mu_hat), over 100 - 1
            noise = (1 / 3 - known.get((paper, UNIFORM), np.nan)) / 99
            printed[-1] += noise * {UNIFORM: 1, ORACLE_RC: 1, ORACLE_CC: 0}.get(method, -1)
    table["printed"] = printed
    within = table["printed"].between(table["low"], table["high"])
    table["within"] = within.astype("boolean").mask(table["printed"].isna())
    runs = describe_runs(store, model, **asked)
    table["evidence"] = table.index.get_level_values("dataset").map(runs["evidence"].to_dict())
    return table


def _do(order: Order, row: Mapping[Any, Any]) -> tuple[int, dict[str, int]]:
    """Carry out a step of a plan, as far as it is not done; return how many requests were answered,
    and by reason how many were not.
    """
    step = row["step"]
    how: dict[str, Any] = {"engine": row["engine"], "in_flight": order.in_flight}
    if step in ("samples", TOP_UP):
        return _draw(order, row)
    run = find_run(order.store, order.model, row["dataset"], row["split"], order.choice)
    if step == STATES:
        extract(run, engine=row["engine"])
        return 0, {}
    if step != "judge":
        tokens = estimate(run, step, **how).tokens
        return int((tokens > 0).sum()), {"": int((tokens == 0).sum())}
    judged = judge_run(run, row["model"], url=order.judge_url, **how)
    words = read_judgements(run, row["model"]) if not judged.failed else pd.DataFrame()
    if len(words) and (words["verdict"] == "not_scored").all():
        raise InputError(
            f"{row['model']} judged {len(words)} answers and said none of its three words, but "
            f"such as {sanitize(words['words'].iloc[0], 80)!r}"
        )
    return judged.new, {judged.reason: judged.failed}


def _draw(order: Order, row: Mapping[Any, Any]) -> tuple[int, dict[str, int]]:
    """Draw what a split lacks of the samples that each question needs, and grade it."""
    ranked = rank_questions(load_questions(row["dataset"], row["split"]))
    ids = [question.id for question in order.part_of(ranked)[: row["questions"]]]
    needed: dict[Any, int] = dict.fromkeys(ids, row["first"] + row["each"])
    if row["step"] == TOP_UP:
        asked: dict[str, Any] = {"datasets": [row["dataset"]], "choice": order.choice}
        keep_predictions(order.store, order.model, **asked)
        enough = _needed(order, row)
        if enough is None:
            raise InputError("not all of the first samples are there")
        needed = enough.to_dict()
    drawn = sample(
        order.model,
        row["dataset"],
        k=needed,
        split=row["split"],
        store=order.store,
        engine=row["engine"],
        seed=order.seed,
        in_flight=order.in_flight,
    )
    grade_run(drawn.run)
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
