"""The state of a store: what each run has, what it lacks, and what it took."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from capcal_lib.errors import InputError
from capcal_lib.runs import files, store
from capcal_lib.runs.artifacts import ARTIFACTS, CONFIDENCES, GIVEN, JUDGEMENTS, VERDICTS
from capcal_lib.runs.run import Run, open_runs
from capcal_lib.runs.samples import IMPORTED
from capcal_lib.runs.sessions import Ask, asks_of, lacking, read_sessions

Judged = dict[str, tuple[int, int]]  # of each judge: distinct answers judged, and to judge
# what fits a line; the other columns are for who reads all of them
SHOWN = ["model", "dataset", "split", "run", "questions", "samples", "lacking", "verdicts", "next"]
COLUMNS = [*SHOWN[:-1], "fewest", "most", "tokens", "seconds", "beside", "judged", "problems"]
COLUMNS += ["next", "command"]


def survey(
    folder: Path,
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
    runs = open_runs(folder, model=model, dataset=dataset)
    return pd.DataFrame([run_status(run, grader, judged) for run in runs], columns=COLUMNS)


def run_status(
    run: Run, grader: str | None = None, judged: Callable[[Run], Judged] = lambda _: {}
) -> dict[str, Any]:
    """Return the state of one run: a value for each of ``COLUMNS``.

    ``lacking`` counts the samples that were asked for and are not there, ``next`` says which
    command is next, which ``command`` writes out, ``beside`` how much of the questions each other
    file covers. Verdicts by another version of the grader are called stale. Of a damaged run there
    are ``problems``, and of what cannot be read no numbers."""
    row = dict.fromkeys(COLUMNS) | run.place | {"run": run.folder.name, "beside": {}, "judged": {}}
    problems = [f"{path.name} was set aside" for path in run.folder.glob("*.damaged")]
    row |= {"problems": problems, "next": "verify", "command": "capcal verify"}
    try:
        present = store.Present()
        tokens = 0
        for rows in store.stream_samples(run, ["completion_tokens"]):
            store.add_keys(present, rows)
            tokens += int(rows["completion_tokens"].sum())
        numbers = [bits.bit_count() for bits in present.values()]
        asks = asks_of(run, present)
        row |= {
            "questions": len(numbers),
            "samples": sum(numbers),
            "fewest": min(numbers, default=0),
            "most": max(numbers, default=0),
            "lacking": 0 if run.identity.engine == IMPORTED else lacking(present, asks),
            "tokens": tokens,
            "seconds": sum(session.seconds for session in read_sessions(run)),
            "verdicts": _graded(run, sum(numbers), grader),
            "beside": dict(_beside(run, len(numbers))),
            "judged": judged(run),
        }
        ask = max(asks, key=lambda ask: (lacking(present, [ask]), ask.k * ask.questions))
        command = _next_step(run, row, ask)
        word = command.split()[1] if command else ""
        drawn = {"command": "", "next": "(drawing)"} if store.is_being_written(run) else {}
        row |= {"command": command, "next": word} | drawn
    except InputError as error:
        problems.append(str(error))
    return row


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
            path = run.path(artifact, name)
            with files.open_parquet(path) as file:
                rows = file.metadata.num_rows
                if artifact is CONFIDENCES:
                    rows -= file.read([artifact.value])[0].null_count
            covered = f"{rows:,} of {questions:,}" if artifact.whole else f"{rows:,} rows"
            yield path.stem, "yes" if rows == questions else covered


def _next_step(run: Run, row: dict[str, Any], ask: Ask) -> str:
    """Return the command that makes what a run lacks; nothing where it has all that a score
    needs.
    """
    judges = (judge for judge, (done, most) in row["judged"].items() if done < most)
    if row["lacking"] or not row["samples"]:
        asked = f"--limit {ask.questions} --k {ask.k}" if ask.questions else "--k 100"
        return f"capcal sample {run.options} {asked}"
    if row["verdicts"] != "yes":
        return f"capcal grade {run.options}"
    if judge := next(judges, None):
        return f"capcal judge {run.options} --judge {judge}"
    if not row["beside"] and run.identity.engine != IMPORTED:
        return f"capcal confidence {run.options} --method p-true"
    return ""
