"""Where things are."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = ROOT / "notebooks"
BOOK = ROOT / "book"
MANIFESTS = ROOT / "data_manifests"
RECORDED_RUNS = ROOT / "runs" / "recorded"
LOCAL_RUNS = ROOT / "runs" / "local"
BUILD = ROOT / "build"


def cache_dir() -> Path:
    """Return the folder for downloaded weights: ``CAPCAL_CACHE_DIR`` or ``.cache`` at the root."""
    return Path(os.environ.get("CAPCAL_CACHE_DIR") or ROOT / ".cache")


def data_dir() -> Path | None:
    """Return the folder of local data set copies, ``CAPCAL_DATA_DIR``, or None where it is not set."""
    folder = os.environ.get("CAPCAL_DATA_DIR")
    return Path(folder) if folder else None
