from pathlib import Path

from capcal_lib.runs import open_runs
from capcal_lib.runs.run import Identity, run_of


def list_runs(store: Path) -> list[Path]:
    """List the folders of the runs in a store."""
    return [run.folder for run in open_runs(store)] if store.exists() else []


def run_folder(store: Path, identity: Identity) -> Path:
    """Return the folder of the run with this identity."""
    return run_of(store, identity).folder
