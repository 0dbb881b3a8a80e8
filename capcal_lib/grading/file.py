"""Grade a file of rows, for people who bring their own samples."""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from capcal_lib.errors import InputError, unknown
from capcal_lib.grading.grader import check, grade_many
from capcal_lib.manifests import KINDS
from capcal_lib.questions import Answer

IDS = ("question_id", "sample_index", "sample")  # of a row, kept as they are


def grade_file(in_path: str | Path, out_path: str | Path) -> int:
    """Grade a JSONL file of ``{kind, gold, aliases?, response}`` into one of ``{verdict, extracted, reason}``.

    A row's ``question_id``, ``sample_index`` and ``sample`` go along where it has them.

    Parameters
    ----------
    in_path
        Rows to grade, one JSON object a line; further keys are ignored, and so are empty lines.
    out_path
        Where the verdicts go, one a row in the same order; replaced only when all of them are there. A regular file
        other than ``in_path``, or none yet.

    Returns
    -------
    int
        The number of rows graded.

    Raises
    ------
    InputError
        For a row that is not as it must be (with its line number), and for files that cannot be read or written;
        nothing is written then.

    Examples
    --------
    >>> folder = Path(getfixture("tmp_path"))
    >>> rows = folder / "rows.jsonl"
    >>> _ = rows.write_text('{"kind": "number", "gold": "4", "response": "The answer is 4."}')
    >>> grade_file(rows, folder / "verdicts.jsonl")
    1
    >>> print((folder / "verdicts.jsonl").read_text(), end="")
    {"verdict": "correct", "extracted": "4", "reason": "phrase"}
    """
    source, target = Path(in_path), Path(out_path)
    if target.exists() and (not target.is_file() or target.resolve() == source.resolve()):
        raise InputError(f"cannot write {target}: it is the input or no regular file; give another name after --out")
    try:
        lines = source.read_bytes().split(b"\n")
    except OSError as error:
        raise InputError(f"cannot read {source}: {error.strerror}") from None
    rows = [_row(line, f"{source}, line {index}") for index, line in enumerate(lines, 1) if line.strip()]
    verdicts = grade_many([(response, answer) for _, response, answer in rows])
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        try:
            with partial.open("w", encoding="utf-8", newline="\n") as out:
                for (ids, _, _), verdict in zip(rows, verdicts, strict=True):
                    out.write(json.dumps(ids | asdict(verdict), ensure_ascii=False) + "\n")
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {target}: {error.strerror}") from None
    return len(verdicts)


def _row(line: bytes, where: str) -> tuple[dict[str, Any], str, Answer]:
    """Return the names that go along, the response and the right answer."""
    try:
        row: Any = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: not valid JSON: {' '.join(str(error).split())}") from None
    if not isinstance(row, dict):
        raise InputError(f"{where}: must be an object with kind, gold and response; got {type(row).__name__}")
    for key in ("kind", "gold", "response"):
        if key not in row:
            raise InputError(f"{where}: {key!r} is missing; a row has kind, gold, response and perhaps aliases")
        if not isinstance(row[key], str):
            raise InputError(f"{where}: {key!r} must be a text; got {row[key]!r:.60}")
    aliases = row.get("aliases") or []
    if not isinstance(aliases, list) or not all(isinstance(alias, str) for alias in aliases):
        raise InputError(f"{where}: 'aliases' must be a list of texts; got {aliases!r:.60}")
    try:
        if row["kind"] not in KINDS:
            raise unknown("answer kind", row["kind"], KINDS)
        answer = Answer(kind=row["kind"], gold=row["gold"], aliases=tuple(aliases))
        check(answer)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    return {name: row[name] for name in IDS if name in row}, row["response"], answer
