"""Samples that exist already become a run: logs of lm-evaluation-harness and inspect_ai, batch
output, any table.

Nothing in a file is evaluated, and what is read of it is bounded. What a log does not say is not
made up: token counts that are not there are 0, which stands for not known."""

import io
import json
import re
import zipfile
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa
import yaml

from capcal_lib import manifests
from capcal_lib.errors import InputError, sanitize
from capcal_lib.grading import grade, grade_many
from capcal_lib.grading.verdicts import NOT_STATED, write_verdicts
from capcal_lib.questions import (
    Answer,
    Question,
    check_questions,
    field_of,
    load_questions,
    questions_digest,
    stream_rows,
)
from capcal_lib.runs.artifacts import GIVEN, OUTCOMES
from capcal_lib.runs.files import file_digest
from capcal_lib.runs.merge import merge
from capcal_lib.runs.run import Identity, Record, Run
from capcal_lib.runs.samples import IMPORTED
from capcal_lib.runs.store import KEY, open_writer, row_digests

Row = dict[str, Any]
MEMBER_BYTES, LOG_BYTES = 1 << 26, 1 << 30  # of one sample of a log, of a log
BATCH_ROWS, BATCH_SIZE = 10_000, 1 << 26  # samples, or characters of them, that are held at once
CHANGED = "the files changed while they were read; give them again when they are whole"
NO_LIMIT = 1 << 20  # of tokens, where a log has none
NUMBERS = ("sample", "prompt_tokens", "completion_tokens")
LENGTH = ("length", "max_tokens", "model_length")  # what reaching the limit is called
COLUMNS = {  # what may be mapped, and the names that are found without
    "question_id": ("question_id", "id"),
    "sample": ("sample", "sample_index"),
    "response": ("response",),
    "gold": ("gold", "answer", "target"),
    "aliases": ("aliases",),
    "choices": ("choices",),
    "question": ("question", "problem", "prompt"),
    "verdict": ("verdict",),
    "extracted": ("extracted",),
    "reasoning": ("reasoning", "reasoning_content"),
    "finish_reason": ("finish_reason",),
    "prompt_tokens": ("prompt_tokens",),
    "completion_tokens": ("completion_tokens",),
}
UNEXPECTED = (
    KeyError,
    TypeError,
    ValueError,
    AttributeError,
    IndexError,
    RecursionError,
    OSError,
)
SAID = {
    "c": "correct",
    "i": "incorrect",
    "n": "no_answer",
    "1": "correct",
    "1.0": "correct",
    "true": "correct",
}
SAID |= {"0": "incorrect", "0.0": "incorrect", "false": "incorrect"} | {
    name: name for name in OUTCOMES
}


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did."""

    run: Run
    new: int  # samples
    present: int  # samples that were there before
    left_out: int  # rows without a response: requests that failed
    made: tuple[Path, ...]  # manifests and questions that were written


def import_samples(
    files: Sequence[Path],
    *,
    model: str,
    dataset: str,
    store: Path,
    split: str | None = None,
    kind: manifests.Kind | None = None,
    columns: Mapping[str, str] | None = None,
    verdicts: bool = False,
    settings: Mapping[str, Any] = MappingProxyType({}),
) -> Imported:
    """Make a run of the samples in files, or add to it; the same files again change nothing.

    Give all files of a run at once: samples without a number are numbered as they come. A ``model``
    or ``dataset`` without a manifest gets one in the user's folder, with the log's settings and
    questions; in a data set that is known each question is looked up by its id, or else by its
    text, and must have the same answer. ``kind`` is that of the answers of a new data set; None:
    choice where there are choices, number where all are, otherwise short. ``columns`` say which
    column (``a.b`` for a field inside) holds what: ``question_id``, ``response``, ``gold``,
    ``verdict`` ... With ``verdicts`` those of the file are taken, which nothing grades again; so it
    is anyway where it has no answers. ``settings`` are of the sampling, such as ``temperature``,
    where the file does not say them or says them wrong.

    `InputError` for a file that cannot be read or has no samples, a question that the data set does
    not have or answers otherwise, an unknown temperature, and a sample that is there with other
    content. Nothing is written then."""
    log = Log(files, columns or {})
    asked = list(dict.fromkeys(map(_asked, log)))
    told = log.settings | dict(settings)
    with manifests.new_manifests() as made, TemporaryDirectory() as scratch:
        if dataset not in manifests.dataset_names():
            _new_dataset(dataset, _by_id(asked).values(), kind, made)
        if model not in manifests.model_names():
            _new_model(model, told, made)
        split = split or manifests.load_dataset(dataset).evaluation_split
        questions = load_questions(dataset, split)
        names = _places(asked, questions, dataset)
        sampled = manifests.load_model(model).for_dataset(dataset).with_settings(**told)
        identity = Identity(
            model=sampled.name,
            weights=IMPORTED,
            dataset=dataset,
            split=split,
            questions=questions_digest(questions),
            prompt_style=IMPORTED,
            prompt_template=IMPORTED,
            chat_template={},
            sampling=sampled.sampling,
            engine=IMPORTED,
            seed=0,
        )
        sources = (f"{sanitize(file.name)} (sha256 {file_digest(file)[:16]})" for file in files)
        made_with = {
            "imported_from": ", ".join(sources),
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
            "capcal": version("capcal"),
            "questions": check_questions(dataset, split, questions),
        }
        given = verdicts or any(one.answer.gold == NOT_STATED for one in questions)
        record = Record(identity=identity, made_with=made_with)
        _write_run(Path(scratch), record, _tables(log, names), with_verdicts=given)
        [merged] = merge(store, [Path(scratch)])
        written = tuple(path for path in made if path.is_file())
    return Imported(
        run=merged.target,
        new=merged.rows,
        present=merged.present,
        left_out=log.left_out,
        made=written,
    )


def _write_run(
    store: Path, record: Record, tables: Iterable[pd.DataFrame], *, with_verdicts: bool
) -> None:
    """Write samples, and the verdicts beside them where they are wanted."""
    keys = []
    verdicts = []
    digests = []
    with open_writer(store, record) as writer:
        for table in tables:
            writer.adopt(table)
            keys.append(table[KEY])
            if with_verdicts:
                verdicts.append(table[[*KEY, "verdict", "extracted"]])
                digests.append(row_digests(table))
    _check_numbers(pd.concat(keys, ignore_index=True))
    if with_verdicts:
        said = pd.concat(verdicts, ignore_index=True).assign(reason="given with the samples")
        if (said["verdict"] == "not_scored").all():
            raise InputError(
                "the files have neither answers nor verdicts; map a column: --column "
                "gold=NAME or verdict=NAME"
            )
        write_verdicts(writer.run, said, GIVEN, pd.concat(digests))


class Log:
    """The samples of files, a row each under the names of `COLUMNS`; read anew each time.

    What the files say beside them is known when they have been read: the ``settings`` of the
    sampling, and how many rows were ``left_out``, being without a response, of requests that
    failed. `InputError` for a file that cannot be read, or is no longer as it was when it was read
    before, and where there are no samples."""

    def __init__(
        self, files: Sequence[Path], columns: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        if wrong := columns.keys() - COLUMNS.keys():
            raise InputError(f"{min(wrong)!r} is no column; known: {', '.join(COLUMNS)}")
        self.files = files
        self.columns = columns
        self.settings: dict[str, Any] = {}
        self.left_out = 0
        self._as_read: dict[Path, tuple[int, int]] = {}

    def __iter__(self) -> Iterator[Row]:
        samples = self.left_out = 0
        for file in self.files:
            try:
                for row in _rows(file, self.columns, self.settings):
                    if isinstance(row.get("response"), str):
                        samples += 1
                        yield row
                    else:
                        self.left_out += 1
            except InputError:
                raise
            except UNEXPECTED as error:
                what = f"no {error}" if isinstance(error, KeyError) else str(error)
                place = f"sample {samples + self.left_out}"
                raise InputError(f"{file}: {place}: not as expected: {sanitize(what)}") from None
            state = file.stat()
            as_now = (state.st_size, state.st_mtime_ns)
            if self._as_read.setdefault(file, as_now) != as_now:
                raise InputError(CHANGED)
        if not samples:
            raise InputError(f"{', '.join(map(str, self.files))}: no samples with a response in it")


def judged_samples(rows: Sequence[Row]) -> pd.DataFrame:
    """Return a row a sample: its ``question_id``, the right answer ``gold`` and the ``verdict``.

    Verdicts are those of the log where it has one for every sample; else all samples are graded
    by the rules, and ``attrs["verdicts"]`` is ``"rules"`` in place of ``"log"``. `InputError` where
    the log has neither verdicts nor answers."""
    questions = _by_id(map(_asked, rows))
    said = [SAID.get(str(row.get("verdict")).lower()) for row in rows]
    source = "rules" if None in said else "log"
    if source == "rules":
        if any(one.answer == NOT_STATED for one in questions.values()):
            raise InputError("the samples have neither answers nor a verdict each")
        kind = _kind(questions.values())
        answers = {
            name: Answer(kind=kind, gold=one.answer, aliases=one.aliases)
            for name, one in questions.items()
        }
        cases = [(row["response"], answers[str(row["question_id"])]) for row in rows]
        said = [verdict.verdict for verdict in grade_many(cases)]
    names = [str(row["question_id"]) for row in rows]
    gold = [questions[name].answer for name in names]
    samples = pd.DataFrame({"question_id": names, "gold": gold, "verdict": said})
    samples.attrs["verdicts"] = source
    return samples


def _rows(path: Path, columns: Mapping[str, str], found: dict[str, Any]) -> Iterator[Row]:
    """Yield a row a sample, under the names of ``COLUMNS``; put settings that a log names into
    ``found``.
    """
    readers = {".eval": _eval, ".json": _log}
    read = readers.get(path.suffix.lower(), stream_rows)
    first_filter = None
    for row in read(path):
        if "plan" in row and "eval" in row:
            config = row["plan"].get("config") or {}
            _note(found, config.get("temperature"), config.get("max_tokens"), config.get("top_p"))
            continue
        if "resps" in row and "doc_id" in row:
            first_filter = first_filter or row.get("filter")
            if row.get("filter") == first_filter:  # of several filters of one answer
                yield from _mapped(row, _of_lm_eval(row, found), columns)
        elif "custom_id" in row and "response" in row and not isinstance(row["response"], str):
            yield from _mapped(row, _of_batch(row), columns)
        elif "epoch" in row and "output" in row:
            yield from _mapped(row, _of_inspect(row), columns)
        else:
            yield from _mapped(row, [{}], columns)


def _mapped(row: Row, samples: Iterable[Row], columns: Mapping[str, str]) -> Iterator[Row]:
    """Give each sample of a row what is mapped, and what is found under the usual names and not
    said otherwise.
    """
    usual = {
        name: row[key] for name, keys in COLUMNS.items() for key in reversed(keys) if key in row
    }
    named = {name: field_of(row, column) for name, column in columns.items()}
    for sample in samples:
        full = (sample or usual) | named
        if full.get("question_id") is None:
            raise KeyError("question_id")
        if not sample and "response" not in full:
            raise KeyError("response")
        for name in NUMBERS:
            if full.get(name) not in (None, ""):
                full[name] = int(full[name])
                if not 0 <= full[name] < 1 << 31:
                    raise ValueError(f"{name} {full[name]}")
        yield full


def _note(found: dict[str, Any], temperature: Any, max_tokens: Any, top_p: Any) -> None:
    for name, value in (("temperature", temperature), ("max_tokens", max_tokens), ("top_p", top_p)):
        if value is not None and found.setdefault(name, value) != value:
            raise InputError(
                f"the samples have more than one {name}, {found[name]} and {value}; import them "
                "apart"
            )


def _of_lm_eval(row: Row, found: dict[str, Any]) -> Iterator[Row]:
    doc = row["doc"]
    requests = row["arguments"]
    first = next(iter(requests.values())) if isinstance(requests, dict) else requests[0]
    prompt, how = _of_request(first)
    greedy = how.get("do_sample") is False
    _note(
        found, 0.0 if greedy else how.get("temperature"), how.get("max_gen_toks"), how.get("top_p")
    )
    texts = row["resps"][0] if isinstance(row["resps"][0], list) else row["resps"]
    if not all(isinstance(text, str) for text in texts):
        raise InputError(
            "the log has log-likelihoods of given answers, not sampled ones; take a task that "
            "generates"
        )
    words = doc if isinstance(doc, dict) else {}
    names = ("question", "problem", "query", "input")
    question = next((words[name] for name in names if name in words), prompt)
    score = row.get(next(iter(row.get("metrics") or ()), ""))
    for text in texts:
        yield {
            "question_id": row["doc_id"],
            "question": question,
            "gold": row["target"],
            "response": text,
            "verdict": score if len(texts) == 1 else None,
        }


def _of_request(request: Any) -> tuple[Any, Row]:
    """Return the prompt and the settings of a request; before 0.4.4 the log has them in a list."""
    parts = list(request.values()) if isinstance(request, dict) else request
    settings = parts[1] if len(parts) > 1 else None
    return parts[0], settings if isinstance(settings, dict) else {}


def _of_inspect(row: Row) -> Iterator[Row]:
    usage = row["output"].get("usage") or {}
    output = row["output"]["choices"]
    asked = row["input"]
    if not isinstance(asked, str):
        asked = _said([turn for turn in asked if turn["role"] == "user"][-1]["content"])[0]
    score: Row = next(iter((row.get("scores") or {}).values()), {})
    for choice in output if not row.get("error") else [{}]:
        text, reasoning = _said(choice["message"]["content"]) if choice else (None, None)
        yield {
            "question_id": row["id"],
            "question": asked,
            "gold": row["target"],
            "choices": row.get("choices"),
            "response": text,
            "reasoning": reasoning,
            "finish_reason": choice.get("stop_reason"),
            "prompt_tokens": usage.get("input_tokens"),
            "completion_tokens": usage.get("output_tokens") if len(output) == 1 else None,
            "verdict": score.get("value"),
            "extracted": score.get("answer"),
        }


def _of_batch(row: Row) -> Iterator[Row]:
    body = (row["response"] or {}).get("body") or {}
    usage = body.get("usage") or {}
    choices = body.get("choices") or [{}]
    for choice in choices:
        message = choice.get("message") or {"content": choice.get("text")}
        yield {
            "question_id": row["custom_id"],
            "response": message.get("content"),
            "reasoning": message.get("reasoning") or message.get("reasoning_content"),
            "finish_reason": choice.get("finish_reason"),
            "prompt_tokens": usage.get("prompt_tokens"),
            "completion_tokens": usage.get("completion_tokens") if len(choices) == 1 else None,
        }


def _said(content: str | list[Row]) -> tuple[str, str | None]:
    """Return the text of a message, and its reasoning apart."""
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    texts = {
        kind: "".join(str(part[kind]) for part in parts if part["type"] == kind)
        for kind in ("text", "reasoning")
    }
    return texts["text"], texts["reasoning"] or None


def _log(path: Path) -> Iterator[Row]:
    """Read a log of inspect_ai in one JSON object: its header, then its samples."""
    if path.stat().st_size > LOG_BYTES:
        raise InputError(
            f"{path}: larger than {LOG_BYTES >> 30} GiB; write logs of the format eval"
        )
    log = json.loads(path.read_bytes())
    if not isinstance(log, dict) or not isinstance(log.get("samples"), list):
        raise InputError(f"{path}: neither a log of inspect_ai nor a file of rows")
    return chain([log], log["samples"])


def _eval(path: Path) -> Iterator[Row]:
    """Read a log of inspect_ai in a zip file: its header, then its samples. Its members may be
    packed by zstd.
    """
    try:
        with zipfile.ZipFile(path) as archive, path.open("rb") as file:
            members = archive.infolist()
            for member in sorted(
                members, key=lambda each: (each.filename != "header.json", members.index(each))
            ):
                if member.filename == "header.json" or re.fullmatch(
                    r"samples/.*\.json", member.filename
                ):
                    yield json.loads(_member(archive, file, member))
    except (zipfile.BadZipFile, NotImplementedError, EOFError) as error:
        raise InputError(f"{path}: not a log of inspect_ai: {sanitize(error)}") from None


def _member(archive: zipfile.ZipFile, file: io.BufferedReader, member: zipfile.ZipInfo) -> bytes:
    if member.compress_type == 93:  # zstd, which zipfile knows from Python 3.14 on
        file.seek(member.header_offset + 26)
        name, extra = (int.from_bytes(file.read(2), "little") for _ in range(2))
        file.seek(name + extra, io.SEEK_CUR)
        packed = file.read(min(member.compress_size, MEMBER_BYTES))
        with pa.CompressedInputStream(pa.BufferReader(packed), "zstd") as stream:
            text = stream.read(MEMBER_BYTES + 1)
    else:
        with archive.open(member) as stream:
            text = stream.read(MEMBER_BYTES + 1)
    if len(text) > MEMBER_BYTES:
        raise InputError(f"{member.filename} is larger than {MEMBER_BYTES >> 20} MiB")
    return bytes(text)


class Asked(NamedTuple):
    """A question as a file has it, with its right answer."""

    id: str
    text: str
    answer: str
    aliases: tuple[str, ...]
    choices: tuple[str, ...]


def _asked(row: Row) -> Asked:
    gold = [str(each).rpartition("####")[2].strip() for each in _list(row.get("gold"))]
    name = str(row["question_id"])
    return Asked(
        id=name,
        text=str(row.get("question") or name),
        answer=gold[0] if gold else NOT_STATED,
        aliases=(*gold[1:], *map(str, _list(row.get("aliases")))),
        choices=tuple(map(str, _list(row.get("choices")))) if gold else (),
    )


def _by_id(asked: Iterable[Asked]) -> dict[str, Asked]:
    """Return questions by their id; `InputError` where one is not the same everywhere."""
    questions: dict[str, Asked] = {}
    for one in asked:
        if questions.setdefault(one.id, one) != one:
            raise InputError(
                f"question {sanitize(one.id, 80)!r} has two answers or texts; import the "
                "files apart"
            )
    return questions


def _new_dataset(
    name: str, asked: Collection[Asked], kind: manifests.Kind | None, made: list[Path]
) -> None:
    """Write down the questions of a log as a data set of its own."""
    rows = (
        {
            "id": one.id,
            "question": one.text,
            "answer": one.answer,
            "aliases": one.aliases,
            "choices": one.choices,
        }
        for one in asked
    )
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    manifests.write_manifest("datasets", f"{name}.jsonl", lines, made)
    facts = {
        "name": name,
        "domain": "imported",
        "kind": kind or _kind(asked),
        "source": "Questions of an imported log.",
        "splits": {"test": {"file": f"{name}.jsonl", "rows": len(asked)}},
    }
    text = yaml.safe_dump(facts, sort_keys=False)
    manifests.write_manifest("datasets", f"{name}.yaml", text, made)


def _kind(questions: Iterable[Asked]) -> manifests.Kind:
    """Tell of which kind the answers of a log are: choices where all have them, numbers, or short
    answers.
    """
    if all(one.choices for one in questions):
        return "choice"
    numbers = all(re.fullmatch(r"[-+]?[\d,]*\.?\d+", one.answer) for one in questions)
    return "number" if numbers else "short"


def _new_model(name: str, settings: Mapping[str, Any], made: list[Path]) -> None:
    if "temperature" not in settings:
        raise InputError(
            f"the files do not say at which temperature {name!r} was sampled; say it: "
            "--temperature 0.7"
        )
    limits = {"max_tokens": NO_LIMIT, "context_tokens": NO_LIMIT}  # where the log states none
    facts = {
        "name": name,
        "engine": "openai",
        "prompt_style": "paper",
        "sampling": limits | dict(settings),
        "notes": "Known from an imported log. A limit of 1048576 tokens stands for one that is "
        "not stated.",
    }
    text = yaml.safe_dump(facts, sort_keys=False)
    manifests.write_manifest("models", f"{name}.yaml", text, made)


def _list(value: Any) -> list[Any]:
    if value in (None, ""):
        return []
    if isinstance(value, list | tuple):
        return list(value)
    return [value]


def _places(
    asked: Iterable[Asked], questions: Sequence[Question], dataset: str
) -> dict[Asked, str]:
    """Find each question of a file by its id or else by its text, and compare their answers."""
    known = {one.id: one for one in questions}
    by_text = {one.text: one for one in questions}
    places = {}
    for one in asked:
        found = known.get(one.id) or by_text.get(one.text.strip())
        if found is None:
            raise InputError(
                f"{dataset} has no question {sanitize(one.id, 80)!r}, by its id or its text; "
                f"its ids look like {questions[0].id!r}; give the log's own questions another "
                "--dataset"
            )
        if one.answer != NOT_STATED and not _is_answer(one.answer, found.answer):
            raise InputError(
                f"question {sanitize(found.id, 80)!r} of {dataset} has the answer "
                f"{found.answer.gold!r}, in the file {sanitize(one.answer, 80)!r}; give the log's "
                "own questions another --dataset"
            )
        places[one] = found.id
    return places


def _is_answer(text: str, answer: Answer) -> bool:
    return text in answer.aliases or grade(text, answer).verdict != "incorrect"


def _tables(log: Log, names: Mapping[Asked, str]) -> Iterator[pd.DataFrame]:
    """Lay samples out as a run has them, with their verdicts beside them, some at a time."""
    counts = Counter[str]()
    batch = []
    size = 0
    for row in log:
        asked = _asked(row)
        if asked not in names:
            raise InputError(CHANGED)
        name = names[asked]
        batch.append(_sample(row, name, counts[name]))
        counts[name] += 1
        size += len(row["response"])
        if len(batch) == BATCH_ROWS or size > BATCH_SIZE:
            yield pd.DataFrame(batch)
            batch = []
            size = 0
    if batch:
        yield pd.DataFrame(batch)


def _sample(row: Row, name: str, number: int) -> Row:
    """Return a sample as a run has it; ``number`` is its own where the file gives none."""
    given = row.get("sample")
    extracted = row.get("extracted")
    return {
        "question_id": name,
        "sample_index": number if given in (None, "") else given,
        "response": row["response"].encode("utf-8", "replace").decode(),
        "reasoning": row.get("reasoning") or None,
        "finish_reason": "length" if row.get("finish_reason") in LENGTH else "stop",
        "prompt_tokens": row.get("prompt_tokens") or 0,
        "completion_tokens": row.get("completion_tokens") or 0,
        "verdict": SAID.get(str(row.get("verdict")).lower(), "not_scored"),
        "extracted": None if extracted is None else str(extracted),
    }


def _check_numbers(keys: pd.DataFrame) -> None:
    """Refuse samples that are there twice, or not numbered from 0 on."""
    twice = keys[keys.duplicated()]
    if len(twice):
        question, index = twice.iloc[0]
        raise InputError(
            f"sample {index} of question {sanitize(question, 80)!r} is there twice; number them "
            "apart"
        )
    indices = keys.groupby("question_id")["sample_index"]
    gaps = indices.max() + 1 > indices.size()
    if gaps.any():
        raise InputError(
            f"the samples of question {sanitize(gaps.idxmax(), 80)!r} are not numbered from 0, "
            "without gaps"
        )
