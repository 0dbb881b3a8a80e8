"""The state of a store: what each run has and lacks."""

from pathlib import Path
from typing import Any

import pandas as pd

from capcal_lib.errors import InputError
from capcal_lib.runs import store
from capcal_lib.runs.artifacts import ARTIFACTS, GIVEN, JUDGEMENTS, VERDICTS
from capcal_lib.runs.run import IMPORTED, Run, open_runs, store_option
from capcal_lib.runs.sessions import open_ask

# what fits a line; the other columns are for who reads all of them
SHOWN = ["model", "dataset", "split", "run", "questions", "samples", "lacking", "verdicts", "next"]
DESCRIBED = [*SHOWN[:-1], "beside", "problems", "cut", "next", "command"]


def survey(
    folder: Path,
    model: str | None = None,
    dataset: str | None = None,
    *,
    grader: str | None = None,
) -> pd.DataFrame:
    """Return one row per run of a store, or of a model or data set in it, from ``run_status``.

    `InputError` if the store is not a folder.

    >>> from capcal_lib.places import RECORDED_RUNS
    >>> survey(RECORDED_RUNS, "simulated", "mini-exam")[["split", "lacking"]].to_dict("records")
    [{'split': 'test', 'lacking': 0}, {'split': 'train', 'lacking': 0}]
    """
    runs = open_runs(folder, model=model, dataset=dataset)
    return pd.DataFrame([run_status(run, grader) for run in runs], columns=DESCRIBED)


def run_status(run: Run, grader: str | None = None) -> dict[str, Any]:
    """Return the state of one run: a value for each of ``DESCRIBED``.

    ``lacking`` counts the samples that were asked for and are missing; ``next`` names the next
    command, and ``command`` spells it out; ``beside`` is the number of rows of each other file.
    Verdicts from another version of the grader are called stale. A damaged run has ``problems``,
    and no numbers for what cannot be read."""
    row = dict.fromkeys(DESCRIBED) | run.place | {"run": run.folder.name}
    row |= {"beside": {}, "problems": []}
    try:
        present = store.present_keys(run)
        ask, lacking = open_ask(run, present)
        verdicts = _graded(run, len(present), grader)
        beside = {
            artifact.name.replace("*", name).removesuffix(".parquet"): run.count(artifact, name)
            for artifact in ARTIFACTS
            if artifact not in (VERDICTS, JUDGEMENTS)
            for name in run.names(artifact)
        }
        row |= {
            "questions": len({name for name, _ in present}),
            "samples": len(present),
            "lacking": lacking,
            "verdicts": verdicts,
            "beside": beside,
            "cut": cut_answers(run),
        }
        imported = run.identity.engine == IMPORTED
        command = ""
        if (lacking or not present) and imported:
            command = f"capcal import FILE {run.options}"
        elif lacking or not present:
            size = f"--limit {ask.questions} --k {ask.k}" if ask.questions else "--k 100"
            command = f"capcal sample {run.draw_options} {size}"
        elif verdicts != "yes":
            command = f"capcal grade {run.options}"
        elif not beside and not imported:
            # not every server tells the probabilities that p-true needs
            served = run.identity.engine == "openai"
            method = "verbalized --engine openai" if served else "p-true"
            command = f"capcal confidence {run.options} --method {method}"
    except InputError as error:
        command = f"capcal verify{store_option(run.store)}"
        row["problems"] = [str(error)]
    return row | {"command": command, "next": "".join(command.split()[1:2])}


def cut_answers(run: Run) -> str:
    """Say how many answers reached the limit without an end, if more than a tenth of them did."""
    rows = pd.concat(store.stream_samples(run, ["finish_reason"]))
    cut = (rows["finish_reason"] == "length").sum()
    if cut * 10 <= len(rows):
        return ""
    return f"{cut:,} of {len(rows):,} answers reached max_tokens without an end"


def _graded(run: Run, samples: int, grader: str | None) -> str:
    made = run.made(VERDICTS)
    if not made:
        return "no"
    version = made[b"grader"].decode()
    rows = run.count(VERDICTS)
    if grader and version not in (grader, GIVEN):
        return f"stale: grader {version}, now {grader}"
    return "yes" if rows == samples else f"stale: {rows:,} of {samples:,}"
