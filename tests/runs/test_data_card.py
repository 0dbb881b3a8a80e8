"""The card of the recorded runs says what is there."""

import json
import re
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import yaml

from capcal_lib.results.targets import shares_between
from capcal_lib.runs import KEY, Run, open_runs, read_samples
from capcal_lib.runs.sessions import read_lines

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "runs" / "recorded"
CARD = RECORDED / "README.md"


def card() -> tuple[dict, str]:
    _, header, text = CARD.read_text().split("---\n", 2)
    return yaml.safe_load(header), text


@cache
def samples_of(run: Run) -> pd.DataFrame:
    return read_samples(run, [*KEY, "completion_tokens"])


def table() -> str:
    """Return the table of runs in Markdown, from the runs themselves."""
    rows = []
    for run in open_runs(RECORDED):
        identity = run.identity
        verdicts = pd.read_parquet(run.folder / "verdicts.parquet")
        scored = verdicts[verdicts["verdict"] != "not_scored"]
        of_question = (scored["verdict"] == "correct").groupby(scored["question_id"])
        counts = of_question.agg(correct="sum", total="size")
        between = shares_between(counts).mean()
        samples = samples_of(run)
        sizes = samples.groupby("question_id").size()
        least, most = sizes.min(), sizes.max()
        rows.append(
            {
                "model": identity.model,
                "data set": f"{identity.dataset} ({identity.split})",
                "questions": f"{len(sizes):,}",
                "samples each": f"{least}" if least == most else f"{least} to {most}",
                "mean share correct": f"{(counts['correct'] / counts['total']).mean():.3f}",
                "between": "–" if np.isnan(between) else f"{between:.0%}",
                "tokens": f"{samples['completion_tokens'].sum():,}",
                "hours": hours(run, len(samples)),
            }
        )
    lines = [list(rows[0]), ["---"] * len(rows[0]), *[list(row.values()) for row in rows]]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def hours(run: Run, samples: int) -> str:
    """Return the wall time on record, with > where that of some samples is not."""
    sessions = {line["started"]: line for line in map(json.loads, read_lines(run))}
    if not sessions:
        return "–"
    timed = sum(session["rows"] for session in sessions.values())
    seconds = sum(session["seconds"] for session in sessions.values())
    return f"{'> ' if timed < samples else ''}{seconds / 3600:.2f}"


def test_the_table_of_the_card_is_that_of_the_runs():
    _, text = card()
    written = re.search(r"^\| model .*?(?=\n\n)", text, re.MULTILINE | re.DOTALL)
    assert written is not None
    assert written[0] == table()


def test_each_configuration_has_files_of_the_columns_that_the_card_lists():
    header, text = card()
    for configuration in header["configs"]:
        pattern = configuration["data_files"]
        row = rf"^\| `{re.escape(pattern.split('/')[-1])}` .*$"
        (line,) = re.findall(row, text, re.MULTILINE)
        listed = set(re.findall(r"`(\w+)`", line.split("|")[3]))
        names = [set(pq.read_schema(path).names) for path in RECORDED.glob(pattern)]
        assert names, pattern
        assert set.union(*names) <= listed, pattern


@pytest.mark.parametrize("library", ["pandas", "datasets"])
def test_the_lines_that_load_the_runs_load_them(library, monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path))
    _, text = card()
    written = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (lines,) = [lines for lines in written if library in lines]
    names: dict = {}
    exec(lines, names)
    if library == "pandas":
        assert set(names["verdicts"].index.unique("model")) == {
            path.name for path in RECORDED.iterdir() if path.is_dir()
        }
    else:
        assert {"question_id", "response"} <= set(names["samples"].column_names)


def test_the_manifest_of_recorded_runs_names_every_run_and_no_more_than_it_may_hold():
    manifest = yaml.safe_load((ROOT / "data_manifests" / "recorded_runs.yaml").read_text())
    listed = {
        (run["model"], run["dataset"], run["split"]): run["sizes"]
        for run in [*manifest["built-in"], *manifest["real"]]
    }
    recorded = {
        (run.identity.model, run.identity.dataset, run.identity.split): run
        for run in open_runs(RECORDED)
    }
    assert set(recorded) == set(listed)
    for name, run in recorded.items():
        drawn = samples_of(run).groupby("question_id").size()
        questions = [size.get("questions", len(drawn)) for size in listed[name]]
        samples = [size["samples"] for size in listed[name]]
        assert len(drawn) <= max(questions), name
        assert drawn.max() <= max(samples), name
        assert (drawn >= samples[0]).sum() >= questions[0], name  # later sizes may be under way
