"""Carry out the steps of a plan, and score the results."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd

from capcal_lib.confidence.of_run import estimate
from capcal_lib.errors import DiskError, InputError
from capcal_lib.grading.judgements import judge_run, read_judgements
from capcal_lib.grading.verdicts import grade_run
from capcal_lib.manifests import load_model
from capcal_lib.probes import keep_predictions
from capcal_lib.probes.features import extract
from capcal_lib.probes.predictions import probe_title
from capcal_lib.questions import load_questions, rank_questions
from capcal_lib.reproduce.order import WHOLE, Order
from capcal_lib.reproduce.plan import DRAWN, STATES, Step, make_plan
from capcal_lib.reproduce.table import beside_printed
from capcal_lib.results.results import PAPER_VOTES, results_of
from capcal_lib.runs.run import Run, find_run
from capcal_lib.sampling.draw import Progress, sample
from capcal_lib.sampling.engines import NotOpened, check_engine, close_engine
from capcal_lib.text import sanitize

MIX = ("triviaqa-1000", "gsm8k")  # that one more probe of the paper learns from (appendix C.4)
NO_STATES = "a server gives no hidden states; capcal features --engine transformers does"


@dataclass(frozen=True)
class Reproduced:
    """The result of a call to ``reproduce``."""

    scores: pd.DataFrame  # as ``beside_printed`` returns them; empty of a part
    left: pd.DataFrame  # a row a step that is not done: dataset, split, step, reason


def reproduce(
    order: Order,
    progress: Progress | None = None,
    say: Callable[[str], object] | None = None,
) -> Reproduced:
    """Carry out the plan of :func:`make_plan` as far as possible, and score the results.

    Before anything is drawn, an engine that cannot be opened here is refused, and so are questions
    that cannot be had, such as those of a gated set. A step that fails is left for the next call,
    and so are steps whose engine could not be opened; the others are done. A disk that cannot be
    read or written ends the call with a `DiskError`. A data set that the judge has not judged is
    not scored. ``progress`` is called with the requests done and to do, and ``say`` with one line
    per probe that is trained, see ``keep_predictions``."""
    plan = make_plan(order)
    steps: list[Any] = [*plan.itertuples()]  # each a Step, with the requests that it lacks
    _refuse_what_cannot_be_done(order, steps)
    try:
        reasons = _carry_out(order, steps, progress)
    finally:
        close_engine()
    left = plan[["dataset", "split", "step"]].assign(reason=reasons).query("reason != ''")
    if order.part != WHOLE:
        return Reproduced(pd.DataFrame(), left)
    names = order.scored()
    _train_probes(order, names, say)
    protocol = order.recipe.protocol
    votes = PAPER_VOTES if protocol == "paper" else ()
    results = results_of(order.counting, names, votes=votes)
    return Reproduced(beside_printed(results, order.model, protocol=protocol), left)


def _refuse_what_cannot_be_done(order: Order, steps: list[Any]) -> None:
    """Refuse steps whose engine cannot be opened here, or whose questions cannot be had."""
    for step in steps:
        if step.requests and step.engine:
            url = order.judge_url if step.step == "judge" else None
            check_engine(load_model(step.model), step.engine, url=url)
            load_questions(step.dataset, step.split)


def _carry_out(order: Order, steps: list[Any], progress: Progress | None) -> list[str]:
    """Carry out steps. Return for each step why it is not done, or nothing."""
    requests = int(sum(step.requests for step in steps))
    done = 0
    reasons = []
    closed = {("", order.model): NO_STATES}  # engines of models that cannot be opened, and why
    for step in steps:
        engine = step.engine, step.model
        reason = ""
        if step.requests and engine in closed:
            reason = closed[engine]
        else:
            try:
                reason = _do(order, step)
            except DiskError:  # every other step needs the disk too
                raise
            except InputError as error:
                reason = str(error)
                if isinstance(error, NotOpened):
                    closed[engine] = reason
        reasons.append(reason)
        done += step.requests
        if progress:
            progress(done, requests)
    return reasons


def _train_probes(order: Order, names: Sequence[str], say: Callable[[str], object] | None) -> None:
    """Store the predictions of the probes and, for the paper's recipe, of the mixture if all its
    sets are there.
    """
    keep = partial(
        keep_predictions,
        order.store,
        order.model,
        datasets=names,
        recipe=order.recipe.probe,
        verdicts=order.recipe.verdicts,
        choice=order.choice,
        say=say,
    )
    probes = keep().index.unique("probe")
    if order.recipe.probe == "paper" and {*map(probe_title, MIX)} <= {*probes}:
        keep(mix=MIX)


def _do(order: Order, step: Step) -> str:
    """Carry out a step of a plan, as far as it is not done. Return how many requests got no answer,
    and why.
    """
    if step.step == DRAWN:
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
    """Say how many requests got no answer, with the most frequent reason; empty if all got one."""
    if not number:
        return ""
    line = f"{number} requests got no answer"
    if reasons:
        line += f": {max(reasons, key=lambda reason: reasons[reason])}"
    return line


def _draw(order: Order, step: Step) -> Mapping[str, int]:
    """Draw and grade the samples of a step. Return how many failed, by reason."""
    questions = order.part.of(rank_questions(load_questions(step.dataset, step.split)))
    least = step.first + step.per_question
    wanted = {question.id: least for question in questions[: step.questions]}
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
    """Let the judge judge a run. Return how many answers got no reply, by reason.

    `InputError` if none of its replies is a verdict."""
    judged = judge_run(
        run, step.model, engine=step.engine, url=order.judge_url, in_flight=order.in_flight
    )
    if judged.new + judged.present and not judged.failed:
        words = read_judgements(run, step.model)
        if (words["verdict"] == "not_scored").all():
            such = sanitize(words["words"].iloc[0], 80)
            raise InputError(f"{step.model} replied none of its three words, but {such!r}")
    return judged.failed
