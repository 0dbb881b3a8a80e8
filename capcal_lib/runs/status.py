"""The state of a store: what each run has, and what it lacks."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from capcal_lib.errors import InputError
from capcal_lib.runs import store
from capcal_lib.runs.artifacts import ARTIFACTS, GIVEN, JUDGEMENTS, VERDICTS
from capcal_lib.runs.run import Run, open_runs
from capcal_lib.runs.samples import IMPORTED
from capcal_lib.runs.sessions import Ask, lacking, open_ask

Judged = dict[str, tuple[int, int]]  # of each judge: distinct answers judged, and to judge
# what fits a line; the other columns are for who reads all of them
SHOWN = ["model", "dataset", "split", "run", "questions", "samples", "lacking", "verdicts", "next"]
COLUMNS = [*SHOWN[:-1], "beside", "judged", "problems", "next", "command"]


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
    command is next, which ``command`` writes out, ``beside`` how many rows each other file has.
    Verdicts by another version of the grader are called stale. Of a damaged run there are
    ``problems``, and of what cannot be read no numbers."""
    row = dict.fromkeys(COLUMNS) | run.place | {"run": run.folder.name, "beside": {}, "judged": {}}
    row |= {"problems": [], "next": "verify", "command": "capcal verify"}
    try:
        present = store.present_of(store.stream_samples(run, store.KEY))
        ask = open_ask(run, present)
        samples = store.count_present(present)
        row |= {
            "questions": len(present),
            "samples": samples,
            "lacking": 0 if run.identity.engine == IMPORTED else lacking(present, ask),
            "verdicts": _graded(run, samples, grader),
            "beside": {
                run.path(artifact, name).stem: run.count(artifact, name)
                for artifact in ARTIFACTS
                if artifact not in (VERDICTS, JUDGEMENTS)
                for name in run.names(artifact)
            },
            "judged": judged(run),
        }
        command = _next_step(run, row, ask)
        row |= {"command": command, "next": "".join(command.split()[1:2])}
    except InputError as error:
        row["problems"] = [str(error)]
    return row


def _graded(run: Run, samples: int, grader: str | None) -> str:
    if not run.has(VERDICTS):
        return "no"
    with VERDICTS.open(run.path(VERDICTS)) as file:
        version = file.schema_arrow.metadata[b"grader"].decode()
        rows = file.metadata.num_rows
    if grader and version not in (grader, GIVEN):
        return f"stale: grader {version}, now {grader}"
    return "yes" if rows == samples else f"stale: {rows:,} of {samples:,}"


def _next_step(run: Run, row: dict[str, Any], ask: Ask) -> str:
    """Return the command that makes what a run lacks; nothing where it has all that a score
    needs.
    """
    judges = [judge for judge, (done, most) in row["judged"].items() if done < most]
    if row["lacking"] or not row["samples"]:
        asked = f"--limit {ask.questions} --k {ask.k}" if ask.questions else "--k 100"
        step = f"sample {run.options} {asked}"
    elif row["verdicts"] != "yes":
        step = f"grade {run.options}"
    elif judges:
        step = f"judge {run.options} --judge {judges[0]}"
    elif not row["beside"] and run.identity.engine != IMPORTED:
        step = f"confidence {run.options} --method p-true"
    else:
        return ""
    return f"capcal {step}"
