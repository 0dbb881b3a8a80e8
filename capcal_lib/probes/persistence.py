"""Keep arrays and settings as two files, NAME.safetensors and NAME.json, which no reader has to trust."""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from capcal_lib.errors import InputError

VERSION = 1  # of the two files together


def write_arrays(path: Path, kind: str, settings: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write NAME.safetensors and NAME.json, each whole or not at all; a suffix of ``path`` is one of the two."""
    from safetensors.numpy import save

    content = save({name: np.ascontiguousarray(array) for name, array in arrays.items()})
    about = {"kind": kind, "version": VERSION, "sha256": hashlib.sha256(content).hexdigest(), "settings": settings}
    data, description = _files(path)
    _write(data, content)
    _write(description, (json.dumps(about, indent=2) + "\n").encode())


def read_arrays(path: Path, kind: str) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Read the settings and the arrays that ``write_arrays`` wrote.

    Raises
    ------
    InputError
        For a missing or malformed file, another kind or version, or arrays that are not those of the description.
    """
    from safetensors.numpy import load

    data, description = _files(path)
    try:
        about = json.loads(description.read_bytes())
        content = data.read_bytes()
    except OSError as error:
        raise InputError(f"{error.filename}: cannot be read ({error.strerror}); a {kind} is two files") from None
    except ValueError:
        raise InputError(f"{description}: not JSON; save the {kind} again") from None
    if not isinstance(about, dict) or set(about) != {"kind", "version", "sha256", "settings"} or about["kind"] != kind:
        raise InputError(f"{description}: does not describe a {kind}; save the {kind} again")
    if about["version"] != VERSION:
        raise InputError(f"{description}: version {about['version']!r}, but this capcal reads version {VERSION}")
    if hashlib.sha256(content).hexdigest() != about["sha256"]:
        raise InputError(f"{data}: corrupt, or of another save than {description.name}; save the {kind} again")
    if not isinstance(about["settings"], dict):
        raise InputError(f"{description}: does not describe a {kind}; save the {kind} again")
    try:
        return about["settings"], load(content)
    except Exception as error:  # SafetensorError derives from nothing narrower
        raise InputError(f"{data}: not a safetensors file ({error}); save the {kind} again") from None


def _files(path: Path) -> tuple[Path, Path]:
    stem = path.with_suffix("") if path.suffix in (".safetensors", ".json") else path
    return stem.with_name(f"{stem.name}.safetensors"), stem.with_name(f"{stem.name}.json")


def _write(path: Path, content: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from None
    finally:
        temporary.unlink(missing_ok=True)
