"""Logs of inspect_ai, ``.eval`` and ``.json``: a sample an epoch of a question."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from capcal_lib.errors import InputError
from capcal_lib.io.chat import part_text, read_choices
from capcal_lib.rows import Row, check_unpacked, parse_json
from capcal_lib.text import sanitize

MEMBER_BYTES = 1 << 26  # of one sample of a log
STEP = 1 << 12  # bytes of one that are unpacked at a time
OF_PROMPT = ("system_message", "top_k", "reasoning_effort", "reasoning_tokens", "stop_seqs")
HEADERS = ("_journal/start.json", "header.json")  # the latter once the log has ended
MEMBERS = re.compile(r"samples/.*\.json")  # beside them


def is_inspect(row: Row) -> bool:
    """Say whether a JSON text is a log: it has the header of one."""
    return isinstance(row.get("eval"), dict) and "task" in row["eval"]


def log_rows(path: Path, log: Row) -> list[Row]:
    """Return the samples of a whole log, each with the ``log`` that it is of. `InputError` if it
    has none.
    """
    if not log.get("samples"):
        raise InputError(
            f"{path}: a log of inspect_ai, status {log.get('status')}, with no samples in it; "
            "give the log that has them"
        )
    header = _header(log)
    return [row | {"log": header} for row in log["samples"]]


def archive_rows(path: Path) -> Iterator[Row]:
    """Yield the samples of a log in a zip file. `InputError` for what is none."""
    if sys.version_info >= (3, 14):
        import zipfile
    else:
        from backports.zstd import zipfile  # with the compression of later logs
    try:
        with zipfile.ZipFile(path) as archive:
            sizes = {one.filename: one.file_size for one in archive.infolist()}
            members = [name for name in sizes if MEMBERS.fullmatch(name)]
            check_unpacked(path, sum(map(sizes.__getitem__, members)))
            first, last = HEADERS
            header = _header(parse_json(_unpack(archive, last if last in sizes else first)))
            for name in members:
                yield parse_json(_unpack(archive, name)) | {"log": header}
    except Exception as error:  # zip files and their compressions have a dozen kinds
        raise InputError(f"{path}: not a log of inspect_ai: {sanitize(error)}") from None


def _unpack(archive: Any, name: str) -> bytes:
    """Unpack a member of an archive in small steps, as it ends where the archive says: more in it
    than that, of which a step unpacks a little, is an error of its checksum.
    """
    if archive.getinfo(name).file_size > MEMBER_BYTES:
        raise ValueError(f"{name} is larger than {MEMBER_BYTES >> 20} MiB")
    blocks = []
    member: IO[bytes]
    with archive.open(name) as member:
        while block := member.read(STEP):
            blocks.append(block)
    return b"".join(blocks)


def _header(log: Row) -> Row:
    """Return what is true of all samples of a log: its task, its model, its settings."""
    spec, plan = log["eval"], log.get("plan") or {}
    settings = (spec.get("model_generate_config") or {}) | (plan.get("config") or {})
    return {
        "task": spec["task"],
        "model": spec.get("model"),
        "prompt": hash(str([plan.get("steps"), *map(settings.get, OF_PROMPT)])),
        "place": spec.get("task_id"),  # which a retry keeps
        "temperature": settings.get("temperature"),
        "max_tokens": settings.get("max_tokens"),
        "top_p": settings.get("top_p"),
    }


def read_sample(row: Row) -> list[Row]:
    """Return the samples of one epoch of a question, mostly one.

    Without a choice its response is missing, and empty if the sample was scored."""
    asked = row["input"]
    if isinstance(asked, list):  # messages, of which the last one asks
        asked = part_text(asked[-1]["content"]) if asked else ""
    output = row.get("output") or {}
    usage = output.get("usage") or {}
    scores = row.get("scores") or {}
    place = f"{row['log']['place']} {row['id']} {row['epoch']}"
    sample = row["log"] | {
        "place": place,
        "question_id": row["id"],
        "question": asked,
        "gold": row.get("target"),
        "choices": row.get("choices"),
        "prompt_tokens": usage.get("input_tokens"),
        "completion_tokens": usage.get("output_tokens"),
        "scores": scores,
    }
    samples = [sample | choice for choice in read_choices(output.get("choices"))]
    for number, one in enumerate(samples):
        one["key"] = f"{row.get('uuid') or place} {number}"
        if len(samples) > 1:  # what is known of several is not known of any of them
            one["completion_tokens"] = None
            one["scores"] = dict.fromkeys(scores)
        if one["response"] is None and scores:
            one["response"] = ""
        if row.get("error") and not scores:
            one["response"] = None
    return samples
