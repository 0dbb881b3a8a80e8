"""The state of a store: what each run has, what it lacks, and what it took."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from capcal_lib.errors import InputError
from capcal_lib.runs import files
from capcal_lib.runs import store as runs
from capcal_lib.runs.artifacts import ARTIFACTS, GIVEN, JUDGEMENTS, VERDICTS
from capcal_lib.runs.run import Run, open_runs
from capcal_lib.runs.samples import IMPORTED
from capcal_lib.runs.sessions import Ask, Session, rates, read_sessions, wanted

Judged = dict[str, tuple[int, int]]  # of each judge: distinct answers judged, and to judge
# what fits a line; the other columns are for who reads all of them
SHOWN = ["model", "dataset", "split", "run", "questions", "samples", "lacking", "verdicts", "next"]


def survey(
    store: Path,
    model: str | None = None,
    dataset: str | None = None,
    *,
    grader: str | None = None,
    judged: Callable[[Run], Judged] = lambda _: {},
) -> pd.DataFrame:
    """Return a row of each run of a store, or of those of a model or data set, as ``run_status``.

    ``judged`` counts how far the judges of a run are. `InputError` for a store that is no folder.

    >>> from capcal_lib.manifests import RECORDED_RUNS
    >>> survey(RECORDED_RUNS, "simulated", "mini-exam")[["split", "lacking"]].to_dict("records")
    [{'split': 'test', 'lacking': 0}, {'split': 'train', 'lacking': 0}]
    """
    found = open_runs(store, model=model, dataset=dataset)
    return pd.DataFrame([run_status(run, grader, judged) for run in found], columns=COLUMNS)


def run_status(
    run: Run, grader: str | None = None, judged: Callable[[Run], Judged] = lambda _: {}
) -> dict[str, Any]:
    """Return the state of one run: a value for each of ``COLUMNS``.

    ``lacking`` counts the samples that were asked for and are not there, ``next`` says which
    command is next, which ``command`` writes out, ``beside`` how much of the questions each other
    file covers. Verdicts by another version of the grader are called stale. Of a damaged run there
    are ``problems``, and of what cannot be read no numbers."""
    dataset, _, split = run.folder.parent.name.rpartition("-")
    row = dict.fromkeys(COLUMNS) | {
        "model": run.folder.parents[1].name,
        "dataset": dataset,
        "split": split,
        "run": run.folder.name,
        "beside": {},
        "judged": {},
        "next": "verify",
        "command": "capcal verify",
    }
    try:
        row["problems"] = runs.problems_of(run)
        row |= _read(run, grader, judged)
    except InputError as error:
        row["problems"] = (*(row["problems"] or ()), str(error))
    return row


def _read(run: Run, grader: str | None, judged: Callable[[Run], Judged]) -> dict[str, Any]:
    identity = run.identity
    sessions = read_sessions(run)
    each: Counter[str] = Counter()
    tokens = 0
    for rows in runs.stream_samples(run, ["completion_tokens"]):
        each.update(rows["question_id"].tolist())
        tokens += int(rows["completion_tokens"].sum())
    lacking, ask = (0, None) if identity.engine == IMPORTED else _lacking(each, sessions)
    seconds, samples_per_second, tokens_per_second = rates(sessions)
    row = {
        "dataset": identity.dataset,
        "split": identity.split,
        "questions": len(each),
        "samples": each.total(),
        "fewest": min(each.values(), default=0),
        "most": max(each.values(), default=0),
        "lacking": lacking,
        "tokens": tokens,
        "seconds": seconds,
        "samples_per_second": samples_per_second,
        "tokens_per_second": tokens_per_second,
        "verdicts": _graded(run, each.total(), grader),
        "beside": dict(_beside(run, len(each))),
        "judged": judged(run),
    }
    step = _next_step(run, row, ask)
    writing = runs.is_being_written(run)
    word = "(drawing)" if writing else step.split()[1] if step else ""
    return row | {"next": word, "command": "" if writing else step}


COLUMNS = [*SHOWN[:-1], "fewest", "most", "tokens", "seconds", "samples_per_second"]
COLUMNS += ["tokens_per_second", "beside", "judged", "problems", "next", "command"]


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


def _short(there: list[int], asks: list[Ask]) -> int:
    """Count what lacks of what was asked for; ``there``: samples of each question, most first."""
    every = wanted(asks)
    padded = there + [0] * len(every)
    return sum(max(0, k - number) for k, number in zip(every, padded, strict=False))


def _graded(run: Run, samples: int, grader: str | None) -> str:
    if not run.has(VERDICTS):
        return "no"
    with files.open_parquet(run.path(VERDICTS)) as file:
        version = (file.schema_arrow.metadata or {}).get(b"grader", b"unknown").decode()
        rows = file.metadata.num_rows
    if grader and version not in (grader, GIVEN):
        return f"stale: grader {version}, now {grader}"
    return "yes" if rows == samples else f"stale: {rows:,} of {samples:,}"


def _beside(run: Run, questions: int) -> Iterator[tuple[str, str]]:
    """Yield the name of each other file beside the samples, and how much of them it covers."""
    for artifact in ARTIFACTS:
        for name in run.names(artifact) if artifact not in (VERDICTS, JUDGEMENTS) else ():
            with files.open_parquet(run.path(artifact, name)) as file:
                rows = file.metadata.num_rows
                place = file.schema_arrow.get_field_index("confidence")
                for group in range(file.num_row_groups if place >= 0 else 0):
                    counted = file.metadata.row_group(group).column(place).statistics
                    rows -= counted.null_count if counted and counted.null_count else 0
            covered = f"{rows:,} of {questions:,}" if artifact.whole else f"{rows:,} rows"
            yield run.path(artifact, name).stem, "yes" if rows == questions else covered


def _next_step(run: Run, row: dict[str, Any], ask: Ask | None) -> str:
    """Return the command that makes what a run lacks; nothing where it has all that a score
    needs.
    """
    if row["lacking"] or not row["samples"]:
        return f"capcal sample {run.options}" + (
            f" --limit {ask.questions} --k {ask.k}" if ask and ask.questions else " --k 100"
        )
    if row["verdicts"] != "yes":
        return f"capcal grade {run.options}"
    for judge, (done, all_of_them) in row["judged"].items():
        if done < all_of_them:
            return f"capcal judge {run.options} --judge {judge}"
    if not row["beside"] and run.identity.engine != IMPORTED:
        return f"capcal confidence {run.options} --method p-true"
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
