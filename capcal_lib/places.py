"""Paths: in a checkout, in an installed package, and in the user's folders."""

import os
from pathlib import Path

from capcal_lib.disk import is_folder
from capcal_lib.errors import InputError

ROOT = Path(__file__).resolve().parents[1]
IN_CHECKOUT = (
    ROOT / "data_manifests"
).is_dir()  # otherwise installed from a wheel, which holds the manifests
HELD = ROOT if IN_CHECKOUT else ROOT / "capcal_lib"
MANIFESTS = HELD / "data_manifests"
NOTEBOOKS = HELD / "notebooks"
BOOK = ROOT / "book" if IN_CHECKOUT else HELD / "book_source"
RECORDED_RUNS = ROOT / "runs" / "recorded"
MADE = ROOT if IN_CHECKOUT else Path()  # where what is made goes
LOCAL_RUNS = MADE / "runs" / "local"
BUILD = MADE / "build"

OWN_MANIFESTS = "CAPCAL_MANIFESTS"  # the environment variable that names the user's folder


def cache_dir() -> Path:
    """Return the folder for downloaded weights: ``CAPCAL_CACHE_DIR``, or ``.cache`` at the root or
    in one's home.
    """
    usual = ROOT / ".cache" if IN_CHECKOUT else Path.home() / ".cache" / "capcal"
    return Path(os.environ.get("CAPCAL_CACHE_DIR") or usual)


def data_dir() -> Path | None:
    """Return ``CAPCAL_DATA_DIR``, the folder of local data sets, or None if it is not set."""
    folder = os.environ.get("CAPCAL_DATA_DIR")
    return Path(folder) if folder else None


def own_manifests() -> Path | None:
    """Return the user's folder of manifests: ``CAPCAL_MANIFESTS``, else ``capcal.d`` if it exists,
    else None.
    """
    named = os.environ.get(OWN_MANIFESTS)
    folder = Path(named or "capcal.d").absolute()
    if is_folder(folder):
        return folder
    if named:
        raise InputError(
            f"{OWN_MANIFESTS} names no folder: {named!r}; make it, with models/ and datasets/ in it"
        )
    return None
