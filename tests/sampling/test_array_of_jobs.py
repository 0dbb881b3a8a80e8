"""The guide's array of jobs, rehearsed job by job with the simulated engine."""

import re
import shlex
from pathlib import Path

import pandas as pd
import pytest

from capcal_lib.places import ROOT
from capcal_lib.runs.run import find_run, open_runs
from capcal_lib.runs.store import read_samples
from tests.command import run

GUIDE = ROOT / "book" / "guide" / "scaling_out.md"


def lines() -> tuple[str, str, str]:
    """Return the guide's line of a job, of the merge, and of the call that ends the work."""
    section = re.search(r"### SLURM\n(.*?)\n### ", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    assert section
    assert "#SBATCH --array=1-8 " in section[1]
    [job] = re.findall(r"^capcal reproduce .*--part.*$", section[1], re.MULTILINE)
    [(merge, end)] = re.findall(r"^\$ (capcal merge .*) && (capcal .*)$", section[1], re.MULTILINE)
    return job, merge, end


@pytest.mark.slow
def test_the_jobs_of_the_array_find_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def give(line: str, *more: str) -> str:
        words = shlex.split(line.replace("qwen3-8b", "simulated"))[1:]
        status, out, err = run(monkeypatch, capsys, *words, *more)
        assert status == 0, err
        return out

    small = ("--dataset", "mini-exam", "--limit", "8")
    job, merge, end = lines()
    for number in range(1, 9):
        give(job.replace("$SLURM_ARRAY_TASK_ID", str(number)), *small)
    shards = sorted(path.name for path in tmp_path.glob("shard-*"))
    assert shards == [f"shard-{number}" for number in range(1, 9)]
    asked = [
        set(read_samples(find_run(Path(shard), "simulated", "mini-exam", "test"))["question_id"])
        for shard in shards
    ]
    assert sum(map(len, asked)) == len(set().union(*asked)) == 8

    give(merge.replace("shard-*", " ".join(shards)))
    table = give(end, *small, "--store", "runs/local")
    assert give(end, *small, "--store", "whole") == table.replace("runs/local", "whole")
    merged, whole = open_runs(Path("runs/local")), open_runs(Path("whole"))
    assert len(merged) == len(whole) == 2
    for one, other in zip(merged, whole, strict=True):
        assert one.identity == other.identity
        pd.testing.assert_frame_equal(read_samples(one), read_samples(other))
