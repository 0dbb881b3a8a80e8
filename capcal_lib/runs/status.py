"""The state of a store: what each run has, what it lacks, and what it took."""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from capcal_lib.runs import store as runs
from capcal_lib.runs.artifacts import ARTIFACTS, GIVEN, JUDGEMENTS, VERDICTS
from capcal_lib.runs.run import Identity, Run, open_runs
from capcal_lib.runs.samples import IMPORTED
from capcal_lib.runs.sessions import Ask, Session, rates, read_sessions, wanted

Judged = dict[str, tuple[int, int]]  # of each judge: distinct answers judged, and to judge


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """One run. Numbers that nothing is known of are NaN."""

    identity: Identity
    samples: int
    each: tuple[int, int]  # least and most samples a question
    asked: str  # what most is lacking of, or the largest that was asked for: questions x k
    options: str  # of `capcal sample`, that ask for it again
    questions: int  # sampled
    lacking: int  # samples that were asked for and are not there
    tokens: int  # completion tokens
    seconds: float  # wall time of the recorded sessions
    samples_per_second: float
    tokens_per_second: float
    writer: str | None  # who is drawing now
    seconds_left: float  # for what is lacking, at the pace of the writer at work
    graded: str
    problems: tuple[str, ...]  # what is missing or damaged
    beside: dict[str, str]  # whether a file beside the samples covers them, by its name
    judged: Judged


def survey(
    store: Path,
    model: str | None = None,
    dataset: str | None = None,
    *,
    grader: str | None = None,
    judged: Callable[[Run], Judged] = lambda _: {},
) -> Iterator[Status]:
    """Yield the state of each run of a store, or of those of a model or data set, as
    ``run_status``.

    ``judged`` counts how far the judges of a run are.

    `InputError` for a store that is no folder, or a corrupt run.
    """
    for run in open_runs(store, model=model, dataset=dataset):
        yield run_status(run, grader, judged(run))


def run_status(run: Run, grader: str | None = None, judged: Judged | None = None) -> Status:
    """Return the state of one run; verdicts by another version of the grader are called stale."""
    identity = run.identity
    sessions = read_sessions(run)
    each: Counter[str] = Counter()
    tokens = 0
    for rows in runs.stream_samples(run, ["completion_tokens"]):
        each.update(rows["question_id"].tolist())
        tokens += int(rows["completion_tokens"].sum())
    lacking, ask = (0, None) if identity.engine == IMPORTED else _lacking(each, sessions)
    seconds, samples_per_second, tokens_per_second = rates(sessions)
    writer = runs.writer_at_work(run)
    now = sessions[-1] if sessions else None
    at_work = writer and now and now.state == "drawing" and now.rows
    return Status(
        identity=identity,
        samples=each.total(),
        each=(min(each.values(), default=0), max(each.values(), default=0)),
        asked=_asked(ask) if ask else "those imported",
        options=_options(ask) if ask else "",
        questions=len(each),
        lacking=lacking,
        tokens=tokens,
        seconds=seconds,
        samples_per_second=samples_per_second,
        tokens_per_second=tokens_per_second,
        writer=writer,
        seconds_left=lacking * now.seconds / now.rows if now and at_work else math.nan,
        graded=_graded(run, each.total(), grader),
        problems=runs.problems_of(run),
        beside=dict(_beside(run, len(each))),
        judged=judged or {},
    )


def _lacking(each: dict[str, int], sessions: list[Session]) -> tuple[int, Ask]:
    """Count the samples that were asked for and are not there, and return what most is lacking of,
    or the largest that was asked for; without recorded sessions, up to the largest k there.
    """
    there = sorted(each.values(), reverse=True)
    if not sessions:
        ask = Ask(questions=len(there), k=max(there, default=1))
        return _short(there, [ask]), ask
    asks = [session.ask for session in sessions]
    lacking = _short(there, asks)
    short = [(_short(there, [ask]), ask) for ask in asks]
    return lacking, max(short, key=lambda one: (one[0], one[1].k * one[1].questions))[1]


def _asked(ask: Ask) -> str:
    return f"{ask.questions:,} x {ask.k}"


def _options(ask: Ask) -> str:
    return f"--limit {ask.questions} --k {ask.k}"


def _short(there: list[int], asks: list[Ask]) -> int:
    """Count what lacks of what was asked for; ``there``: samples of each question, most first."""
    every = wanted(asks)
    padded = there + [0] * len(every)
    return sum(max(0, k - number) for k, number in zip(every, padded, strict=False))


def _graded(run: Run, samples: int, grader: str | None) -> str:
    if not run.has(VERDICTS):
        return "no"
    table = run.read(VERDICTS)
    version = table.schema.metadata[b"grader"].decode()
    if grader and version not in (grader, GIVEN):
        return f"stale: grader {version}, now {grader}"
    if len(table) == samples:
        return "yes"
    return f"stale: {len(table):,} of {samples:,}"


def _beside(run: Run, questions: int) -> Iterator[tuple[str, str]]:
    """Yield the name of each other file beside the samples, and how much of them it covers."""
    for artifact in ARTIFACTS:
        for name in run.names(artifact) if artifact not in (VERDICTS, JUDGEMENTS) else ():
            table = run.read(artifact, name)
            rows = table.num_rows
            if "confidence" in table.column_names:
                rows -= table["confidence"].null_count
            covered = f"{rows:,} of {questions:,}" if artifact.whole else f"{rows:,} rows"
            yield run.path(artifact, name).stem, "yes" if rows == questions else covered


def as_row(status: Status) -> str:
    """Return the state as a JSON object in one line; what is not known is null."""
    row = asdict(status) | {
        "identity": status.identity.model_dump(mode="json"),
        "key": status.identity.key,
    }
    known = {
        name: None if isinstance(value, float) and math.isnan(value) else value
        for name, value in row.items()
    }
    return json.dumps(known)


def line(status: Status) -> str:
    """Say all of it in one line, for a log.

    >>> from capcal_lib.manifests import RECORDED_RUNS
    >>> print(line(next(survey(RECORDED_RUNS, "simulated", "mini-exam"))))  # doctest: +ELLIPSIS
    simulated on mini-exam (test), run ...: ... samples of ... questions, none lacking ...
    """
    run = status.identity
    lacking = f"{status.lacking:,} lacking" if status.lacking else "none lacking"
    if status.lacking and status.writer:
        left = "" if math.isnan(status.seconds_left) else f", {duration(status.seconds_left)} to go"
        lacking += f" ({status.writer} is at work{left})"
    pace = f"{status.samples_per_second:,.1f} samples/s, {status.tokens_per_second:,.0f} tokens/s"
    parts = [
        f"{status.samples:,} samples of {status.questions:,} questions, {lacking} of "
        f"{status.asked}",
        f"{' to '.join(map(str, dict.fromkeys(status.each)))} each",
        f"{status.tokens:,} tokens",
        f"{duration(status.seconds)}, {pace}" if status.seconds else "",
        *status.problems,
        f"verdicts: {status.graded}",
        *(f"{name}: {covered}" for name, covered in status.beside.items()),
        *(
            f"judge {name}: {done:,} of {all_of_them:,} answers"
            for name, (done, all_of_them) in status.judged.items()
        ),
    ]
    return (
        f"{run.model} on {run.dataset} ({run.split}), run {run.key}: "
        f"{'; '.join(filter(None, parts))}"
    )


def next_step(status: Status) -> str:
    """Say what would be next for a run: the command that makes what it lacks; nothing where it has
    all that a score needs.
    """
    run = status.identity
    graded = status.graded
    named = f"--model {run.model} --dataset {run.dataset} --split {run.split}"
    if status.writer:
        return ""
    if status.lacking or not status.samples:
        return f"capcal sample {named} {status.options}"
    if graded != "yes":
        return f"capcal grade {named}"
    for judge, (done, all_of_them) in status.judged.items():
        if done < all_of_them:
            return f"capcal judge {named} --judge {judge}"
    if not status.beside and run.engine != IMPORTED:
        return f"capcal confidence {named} --method p-true"
    return ""


def duration(seconds: float) -> str:
    """Write a duration in its two largest units.

    >>> duration(0.4), duration(75), duration(7_500), duration(200_000)
    ('0 s', '1 min 15 s', '2 h 5 min', '2 d 7 h')
    """
    whole = round(seconds)
    for unit, name, smaller, smaller_name in (
        (86_400, "d", 3_600, "h"),
        (3_600, "h", 60, "min"),
        (60, "min", 1, "s"),
    ):
        if whole >= unit:
            return f"{whole // unit} {name} {whole % unit // smaller} {smaller_name}"
    return f"{whole} s"
