from pathlib import Path

from capcal_lib.grading import GRADER_VERSION
from capcal_lib.probes.predictions import check_predictions
from capcal_lib.runs import Run, open_runs
from capcal_lib.runs import verify as verify_module
from capcal_lib.runs.run import Identity, run_of
from capcal_lib.runs.verify import Checked
from capcal_lib.sampling.weights import check_weights


def list_runs(store: Path) -> list[Path]:
    """List the folders of the runs in a store."""
    return [run.folder for run in open_runs(store)] if store.exists() else []


def run_folder(store: Path, identity: Identity) -> Path:
    """Return the folder of the run with this identity."""
    return run_of(store, identity).folder


def verify_run(run: Run) -> Checked:
    """Check a run as ``capcal verify`` does."""
    checks = [check_weights, check_predictions]
    return verify_module.verify_run(run, grader=GRADER_VERSION, checks=checks)
