"""Where only POSIX has a module, nothing that a laptop needs asks for it."""

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import sys
for name in ("fcntl", "resource", "pwd", "grp", "termios", "readline"):
    sys.modules[name] = None
from pathlib import Path
from capcal_lib.grading import grade
from capcal_lib.results import load_results
from capcal_lib.places import RECORDED_RUNS
from capcal_lib.runs import open_runs, read_samples
import capcal_lib.cli
import capcal_lib.io.score_file
(run,) = open_runs(RECORDED_RUNS, model="simulated", dataset="mini-exam", split="test")
assert len(read_samples(run)) == 12_240
assert len(load_results(RECORDED_RUNS, "simulated", datasets=["mini-exam"])) == 102
from capcal_lib.runs.merge import merge
merge(Path(sys.argv[1]), [run.folder])
"""


def test_runs_are_read_and_scored_without_modules_that_only_posix_has(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore:only soft file lock", "-c", SCRIPT, str(tmp_path / "store")],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
