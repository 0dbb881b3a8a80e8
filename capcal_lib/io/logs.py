"""Read samples that others drew: logs of lm-evaluation-harness and inspect_ai, batch output, any
table of rows.

Nothing in a file is evaluated, and the members of an archive are bounded. What a log does not say
is not made up: token counts that are not there are 0, which stands for not known."""

import ast
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, NamedTuple

import pandas as pd

from capcal_lib import manifests
from capcal_lib.disk import is_folder
from capcal_lib.errors import InputError, check_known
from capcal_lib.questions import NOT_STATED
from capcal_lib.rows import Row, field_of, most_unpacked, stream_rows
from capcal_lib.text import counted, sanitize

MEMBER_BYTES = 1 << 26  # of one sample of a log
STEP = 1 << 12  # bytes of one that are unpacked at a time
LIST = 1 << 16  # characters of a list of texts that Python wrote
LENGTH = ("length", "max_tokens", "model_length")  # what reaching the limit is called
MEMBERS = re.compile(r"samples/.*\.json")  # of a log of inspect_ai, beside its header
COLUMNS = {  # what may be mapped, and the names by which a row usually has it, in order
    "question_id": ("question_id", "id", "doc_id", "custom_id"),
    "sample": ("sample", "sample_index"),
    "response": ("response",),
    "gold": ("gold", "answer", "target"),
    "aliases": ("aliases",),
    "choices": ("choices",),
    "question": ("question", "problem", "prompt", "input"),
    "subject": ("subject", "cluster"),
    "verdict": ("verdict",),
    "extracted": ("extracted",),
    "reasoning": ("reasoning", "reasoning_content"),
    "finish_reason": ("finish_reason",),
    "prompt_tokens": ("prompt_tokens",),
    "completion_tokens": ("completion_tokens",),
}
SETTINGS = ("temperature", "max_tokens", "top_p")
ITEM = ["question_id", "question", "gold", "aliases", "choices", "subject"]
NUMBERS = ("sample", "prompt_tokens", "completion_tokens")
# Of a row of lm-evaluation-harness; what is beside them are metrics, where a version names none.
HARNESS = {"doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter"}
HARNESS |= {"doc_hash", "prompt_hash", "target_hash", "task"}
RULE = (
    "read as yes or no: correct/incorrect (not_attempted is incorrect), right/wrong, pass/fail, "
    "yes/no, true/false, C/I, Y/N, T/F, 1/0, 1/-1, 100/0 percent"
)
WORDS = {name: name for name in ("correct", "incorrect", "no_answer")}
WORDS |= dict.fromkeys(("right", "pass", "passed", "yes", "true"), "correct")
WORDS |= dict.fromkeys(("wrong", "fail", "failed", "no", "false", "not_attempted"), "incorrect")
NEITHER: dict[str, str | None] = dict.fromkeys(("", "none", "nan", "null", "n/a", "partial"))
NEITHER |= {"not_scored": None}
# The values of a scale are of one of these, beside words: of A, B and C the C is no "correct".
SCALES: list[dict[str, str | None]] = [
    {"c": "correct", "i": "incorrect", "n": "no_answer", "p": None},
    {"y": "correct", "n": "incorrect"},
    {"t": "correct", "f": "incorrect"},
    {"p": "correct", "f": "incorrect"},
    {"1": "correct", "0": "incorrect", "p": None},
    {"1": "correct", "-1": "incorrect"},
    {"100": "correct", "0": "incorrect"},
    {"100%": "correct", "0%": "incorrect"},
]
# Scorers that compare an answer with a gold one, as the rules do; others measure something else.
COMPARING = {"exact_match", "acc", "em", "f1", "math_verify", "bypass", "quasi_exact_match"}
COMPARING |= {"match", "includes", "exact", "answer", "pattern", "choice"}
TABLE = "write a row a sample as JSONL or CSV, with question_id, response and gold or verdict"
LIKELIHOODS = (
    "the responses are no texts, but perhaps log-likelihoods of given answers; take a task that "
    "generates"
)
OTHERS = {  # files that hold no samples as they are read here: a key of theirs, and what to do
    "configs": "the scores of lm-evaluation-harness, no samples; give samples_*.jsonl, which "
    "--log_samples writes",
    "config_general": f"the scores of lighteval, no samples; {TABLE}",
    "model_response": f"details of lighteval, which are not read; {TABLE}",
    "request_states": f"a scenario state of HELM, which is not read; {TABLE}",
    "convos": f"results of simple-evals, which are not read; {TABLE}",
}


class Log(NamedTuple):
    """The samples of files, a row each under the names of ``COLUMNS`` and ``SETTINGS``, and their
    questions.

    Where the log's verdicts were taken (``judged``) each sample has a ``verdict``."""

    samples: pd.DataFrame
    items: pd.DataFrame  # by question_id: question, gold, tuples of aliases and choices, subject
    judged: bool
    notes: list[str]  # what was taken, and what was left out
    left_out: int  # requests without a response


def list_files(files: Iterable[Path]) -> list[Path]:
    """Return files, and in place of a folder the logs in it."""
    listed = []
    for file in files:
        if not is_folder(file):
            listed.append(file)
            continue
        logs = sorted([*file.rglob("samples_*.jsonl"), *file.rglob("*.eval")])
        if not logs:
            raise InputError(
                f"{file}: a folder without logs, samples_*.jsonl or *.eval; name the files in it"
            )
        listed += logs
    return listed


def read_log(
    files: Sequence[Path],
    columns: Mapping[str, str] = MappingProxyType({}),
    *,
    scorer: str | None = None,
    regrade: bool = False,
) -> Log:
    """Read the samples of files, or of the logs in folders.

    ``columns`` say which column (``a.b`` for a field inside) holds what. The verdicts are those of
    the log's ``scorer``; without a name, of the one that says yes or no of most samples, words
    before numbers. Other values concern their own samples, which are not scored. A log without
    verdicts, or with ``regrade``, is left to the rules.

    `InputError` for a file that cannot be read, or has no samples; a question with two answers or
    texts; a scorer that the log does not have; and scores that are no verdicts, of a task that the
    rules cannot grade."""
    for name in columns:
        check_known("column", name, COLUMNS)
    notes: list[str] = []
    samples, left_out = _read_samples(files, columns, notes)
    scores: Any = pd.DataFrame([*samples.pop("scores")], dtype=object)
    ids = samples.drop_duplicates(ITEM)["question_id"]
    if ids.duplicated().any() and samples["task"].nunique() > 1:
        samples["question_id"] = samples["task"] + "/" + samples["question_id"]
    items = samples[ITEM].drop_duplicates().set_index("question_id")
    twice = items.index[items.index.duplicated()]
    if len(twice):
        raise InputError(
            f"question {sanitize(twice[0], 80)!r} has two answers, texts or subjects; import the "
            "files apart"
        )
    judged = not regrade and _take_verdicts(samples, scores, scorer, notes)
    return Log(samples, items, judged, notes, left_out)


def kind_of(items: pd.DataFrame) -> manifests.Kind:
    """Tell of which kind the answers of a log are: choices where all have them, numbers, formulas
    where one is written in LaTeX, else short answers.
    """
    if items["choices"].map(len).all():
        return "choice"
    if items["gold"].str.fullmatch(r"[-+]?[\d,]*\.?\d+").all():
        return "number"
    return "math" if items["gold"].str.contains(r"\\[a-zA-Z]|\^").any() else "short"


def _read_samples(
    files: Sequence[Path], columns: Mapping[str, str], notes: list[str]
) -> tuple[pd.DataFrame, int]:
    """Read each sample once, with its ``scores``: those of all rows that are of it, such as a row a
    filter; and count the requests without a response. Targets that Python wrote as lists of texts
    are lists where all are."""
    found: list[Row] = []
    first_rows: dict[Any, Row] = {}  # of what may be the same sample again
    failed = repeated = 0
    for path in list_files(files):
        number = 0
        try:
            for row in _rows(path):
                for sample in _read_row(row, columns):
                    if sample is None:
                        failed += 1
                        continue
                    key = sample.pop("repeated_as", None)
                    if key is None:
                        found.append(sample)
                        continue
                    first = first_rows.setdefault((path, key), sample)
                    if first is sample:
                        found.append(sample)
                    elif sample["scores"].keys() <= first["scores"].keys():
                        repeated += 1
                    else:
                        first["scores"] = first["scores"] | sample["scores"]
                number += 1
        except InputError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError) as bad:
            what = f"no {bad}; {TABLE}" if isinstance(bad, KeyError) else str(bad)
            raise InputError(f"{path}, row {number}: {sanitize(what)}") from None
    if not found:
        raise InputError(f"{', '.join(map(str, files))}: no samples with a response in it")
    if failed:
        notes.append(f"{counted(failed, 'request')} without a response left out")
    if repeated:
        notes.append(f"{counted(repeated, 'repeated row')} left out: the same sample again")
    table = pd.DataFrame(found, dtype=object)
    lists = [_texts(gold) for gold in table["gold"]]
    golds = lists if all(lists) else map(_list, table["gold"])
    answers = map(_answer, golds, table["aliases"], table["choices"])
    table[["gold", "aliases", "choices"]] = pd.DataFrame(answers, dtype=object)
    return table, failed


def _rows(path: Path) -> Iterator[Row]:
    """Yield the rows of a file, each with its task, and with the settings of a log's header."""
    known: Row = {"task": re.sub(r"^samples_|_\d{4}-\d\d-\d\dT.*$", "", path.name.split(".")[0])}
    archive = path.suffix == ".eval"
    rows = _archive(path) if archive else stream_rows(path)
    for row in rows:
        for key, hint in OTHERS.items():
            if key in row:
                raise InputError(f"{path}: {hint}")
        header = row.get("eval")
        if not isinstance(header, dict):
            yield known | row
            continue
        plan = row.get("plan") or {}
        known |= (header.get("model_generate_config") or {}) | (plan.get("config") or {})
        known["task"] = header.get("task")
        samples = row.get("samples") or []
        if not samples and not archive:
            raise InputError(
                f"{path}: a log of inspect_ai, status {row.get('status')}, with no samples in "
                "it; give the log that has them"
            )
        yield from (known | sample for sample in samples)


def _archive(path: Path) -> Iterator[Row]:
    """Read a log of inspect_ai in a zip file: its header, then its samples."""
    if sys.version_info >= (3, 14):
        import zipfile
    else:
        from backports.zstd import zipfile  # with the compression of later logs
    try:
        with zipfile.ZipFile(path) as archive:
            members: list[Any] = []
            for member in archive.infolist():
                if member.filename == "header.json":  # it says of what the samples are
                    members.insert(0, member)
                elif MEMBERS.fullmatch(member.filename):
                    members.append(member)
            most = most_unpacked(path)
            if sum(one.file_size for one in members) > most:
                raise ValueError(f"it unpacks to more than {most >> 20} MiB")
            for one in members:
                if one.file_size > MEMBER_BYTES:
                    raise ValueError(f"{one.filename} is larger than {MEMBER_BYTES >> 20} MiB")
                yield json.loads(_unpack(archive.open(one)))
    except Exception as error:  # zip files and their compressions have a dozen kinds
        raise InputError(f"{path}: not a log of inspect_ai: {sanitize(error)}") from None


def _unpack(member: IO[bytes]) -> bytes:
    """Unpack a member of an archive in small steps, as it ends where the archive says: more in it
    than that, of which a step unpacks a little, is an error of its checksum.
    """
    blocks = []
    with member:
        while block := member.read(STEP):
            blocks.append(block)
    return b"".join(blocks)


def _read_row(row: Row, columns: Mapping[str, str]) -> list[Row | None]:
    """Return the samples of a row, whichever form it has; None for a request without a response,
    which is no answer of the model.
    """
    scores = _scores(row)
    status = _inside(row, "response", "status_code")
    if (row.get("error") and not scores) or status not in (None, 200):
        return [None]
    if _inside(row, "resps", 0) is not None:
        samples = _read_harness(row)
    elif _inside(row, "output", "choices") is not None:
        samples = _read_inspect(row)
    elif _inside(row, "response", "body", "choices") is not None:
        samples = _read_batch(row)
    else:
        samples = [_read_table(row)]
    if len(samples) > 1:  # what is known of several is not known of any of them
        scores = dict.fromkeys(scores, None)
        for sample in samples:
            sample["completion_tokens"] = None
    checked: list[Row | None] = []
    for sample in samples:
        for name, column in columns.items():
            sample[name] = field_of(row, column)
        checked.append(_check_sample(sample, scores, str(row["task"])))
    return checked


def _read_harness(row: Row) -> list[Row]:
    """Read a row of lm-evaluation-harness: the responses to one request, by one filter."""
    usual = _usual(row)
    for name in ("question", "problem", "query", "input"):
        text = _inside(row, "doc", name)
        if text is not None:
            usual["question"] = text
            break
    arguments = _inside(row, "arguments", "gen_args_0")
    if arguments is not None:
        prompt, settings = _inside(arguments, "arg_0"), _inside(arguments, "arg_1")
    else:  # of earlier versions
        prompt = _inside(row, "arguments", 0, 0)
        settings = _inside(row, "arguments", 0, 1)
    stated = {
        "question": prompt,
        "temperature": _inside(settings, "temperature"),
        "max_tokens": _inside(settings, "max_gen_toks"),
        "top_p": _inside(settings, "top_p"),
    }
    _fill(usual, stated)
    responses = _list(row["resps"][0]) or [None]
    samples = []
    for number, response in enumerate(responses):
        if isinstance(response, int | float):
            raise ValueError(LIKELIHOODS)
        sample = usual | {"response": response}
        if "doc_id" in row:  # which a row of another filter has as well
            sample["repeated_as"] = number, str(row["doc_id"]), str(responses)
        samples.append(sample)
    return samples


def _read_inspect(row: Row) -> list[Row]:
    """Read a sample of inspect_ai, of one epoch."""
    usual = _usual(row)
    usage = _inside(row, "output", "usage")
    stated = {
        "prompt_tokens": _inside(usage, "input_tokens"),
        "completion_tokens": _inside(usage, "output_tokens"),
    }
    _fill(usual, stated)
    samples = _read_choices(usual, row["output"]["choices"])
    responses = str([sample["response"] for sample in samples])
    for number, sample in enumerate(samples):
        if "epoch" in row:
            sample["repeated_as"] = number, str(usual["question_id"]), row["epoch"], responses
    return samples


def _read_batch(row: Row) -> list[Row]:
    """Read a line of batch output: the choices of one request to a server."""
    usual = _usual(row)
    body = row["response"]["body"]
    stated = {
        "prompt_tokens": _inside(body, "usage", "prompt_tokens"),
        "completion_tokens": _inside(body, "usage", "completion_tokens"),
    }
    _fill(usual, stated)
    return _read_choices(usual, body["choices"])


def _read_table(row: Row) -> Row:
    """Read a row of a table: one sample, under the usual names."""
    sample = _usual(row)
    if "response" in row:
        sample["response"] = row["response"]
    return sample


def _read_choices(usual: Row, choices: Any) -> list[Row]:
    """Read the choices of a chat or a completion; one without a response where there is none."""
    samples = []
    for choice in _list(choices) or [None]:
        message = _inside(choice, "message")
        sample = {
            "response": _inside(message, "content"),
            "reasoning": _inside(message, "reasoning"),
            "finish_reason": _inside(choice, "finish_reason"),
            "refusal": _inside(message, "refusal"),
        }
        stated = {
            "response": choice if isinstance(choice, str) else _inside(choice, "text"),
            "reasoning": _inside(message, "reasoning_content"),
            "finish_reason": _inside(choice, "stop_reason"),
        }
        _fill(sample, stated)
        _fill(sample, usual)
        samples.append(sample)
    return samples


def _usual(row: Row) -> Row:
    """Return what a row has under the usual names, None where it has none; but the response, which
    each format has elsewhere.
    """
    sample: Row = {}
    for column, names in COLUMNS.items():
        if column == "response":
            continue
        sample[column] = None
        for name in names:
            if row.get(name) is not None:
                sample[column] = row[name]
                break
    for name in SETTINGS:
        sample[name] = row.get(name)
    return sample


def _fill(sample: Row, stated: Row) -> None:
    """Put into a sample what it lacks."""
    for name, value in stated.items():
        if sample.get(name) is None:
            sample[name] = value


def _inside(value: Any, *path: Any) -> Any:
    """Return what stands at a path inside dicts and lists, None where nothing does."""
    for step in path:
        if not isinstance(value, dict | list):
            return None
        try:
            value = value[step]
        except (LookupError, TypeError):  # the number of a place in a dict, or a name in a list
            return None
    return value


def _check_sample(sample: Row, scores: Row, task: str) -> Row | None:
    """Read the values of a sample, and put its scores beside it; None without a response."""
    if sample["question_id"] is None:
        raise KeyError("question_id")
    if "response" not in sample:
        raise KeyError("response")
    reasoning = _text(sample["reasoning"], "text") or _text(sample["response"], "reasoning")
    refusal = sample.pop("refusal", None)
    stopped = refusal or sample["finish_reason"] in LENGTH
    if _is_missing(sample["response"]) and not (scores or reasoning or stopped):
        return None
    for name in NUMBERS:
        number = sample[name]
        sample[name] = None if _is_missing(number) or number == "" else int(number)
        if not 0 <= (sample[name] or 0) < 1 << 31:
            raise ValueError(f"{name} {sample[name]}")
    if not _is_missing(sample["verdict"]) and sample["verdict"] != "":
        scores = {"verdict": sample["verdict"]}
    sample["scores"] = {}
    for name, score in scores.items():
        sample["scores"][name] = score if isinstance(score, dict) else {"value": score}
    question = str(sample["question_id"])
    sample["question_id"] = question
    sample["question"] = sys.intern(_text(sample["question"], "text") or question)
    sample["subject"] = _text(sample["subject"], "text")
    sample["reasoning"] = reasoning
    sample["response"] = _text(sample["response"], "text")
    sample["task"] = task
    return sample


def _is_missing(value: Any) -> bool:
    """Say whether nothing is there: null, NaN, or a choice without a text in it."""
    return value is None or isinstance(value, dict) or value != value


def _scores(row: Row) -> Row:
    """Return the scores of a row by scorer, or by metric and filter."""
    if isinstance(row.get("scores"), dict):
        return row["scores"]
    if isinstance(row.get("score"), dict):  # of inspect_ai, before its format 2
        return {"score": row["score"]}
    if "resps" not in row:
        return {}
    suffix = "" if row.get("filter") in (None, "none") else f",{row['filter']}"
    metrics = row.get("metrics") or [name for name in row if name not in HARNESS]
    return {f"{metric}{suffix}": row.get(metric) for metric in metrics}


def _text(value: Any, kind: str) -> str:
    """Return the text of a message, or of the last turn of a talk; or the reasoning in it."""
    if _is_missing(value):
        return ""
    if isinstance(value, str | int | float):  # tables make numbers and truths of texts
        return str(value) if kind == "text" else ""
    parts = _list(value)
    if parts and all(isinstance(part, str) for part in parts):
        raise ValueError("a list of texts stands for one; write a row a sample")
    if not all(isinstance(part, dict) for part in parts):
        raise ValueError(LIKELIHOODS)
    if parts and "role" in parts[-1]:
        return _text(parts[-1]["content"], kind)
    return "".join(str(part[kind]) for part in parts if part["type"] == kind)


def _list(value: Any) -> list[Any]:
    if value is None or value == "" or value != value:
        return []
    return value if isinstance(value, list) else [value]


def _answer(golds: Any, aliases: Any, choices: Any) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Return the right answer, others that are right, and the choices where an answer is stated."""
    others = tuple(str(alias) for alias in _list(aliases))
    # GSM8K writes its solution, then #### and the answer.
    texts = [str(gold).rpartition("####")[2].strip() for gold in golds]
    if not texts:
        return NOT_STATED, others, ()
    options = tuple(str(choice) for choice in _list(choices))
    return texts[0], (*texts[1:], *others), options


def _texts(text: Any) -> list[str] | None:
    """Read a list of texts as Python writes it."""
    if not isinstance(text, str) or not text.startswith("[") or len(text) > LIST:
        return None
    try:
        value = ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None
    return value if isinstance(value, list) and {*map(type, value)} == {str} else None


def _take_verdicts(
    samples: pd.DataFrame, scores: Any, scorer: str | None, notes: list[str]
) -> bool:
    """Give samples the verdicts of a scorer of the log; say whether it has them."""
    names = [name for name in scores if scorer in (None, name, *name.split(","))]
    if scorer and not names:
        check_known("scorer", scorer, [*scores])
    verdicts, unread = {}, {}
    ranks = {}
    for name in names:
        values = scores[name].str.get("value").map(_spell_value)
        verdicts[name], unknown = _read_scale(values)
        ranks[name] = verdicts[name].count(), not values.str.contains(r"\d").any()
        if unknown:
            unread[name] = f"{name} has {sanitize(', '.join(unknown), 80)}"
    taken = max(names, key=lambda name: ranks[name], default="")
    if not names or not verdicts[taken].count():
        has = f" ({'; '.join(unread.values())})" if unread else ""
        if list(unread) == ["verdict"]:
            raise InputError(
                f"not every verdict is {RULE}{has}; write correct or incorrect, and nothing where "
                "it is neither, or say --regrade to compare with the right answers by the rules"
            )
        comparing = not COMPARING.isdisjoint(re.split(r"[, ]", ",".join(names)))
        if names and (not comparing or (scorer and unread)):
            raise InputError(
                f"the log's scores ({', '.join(names)}) are no yes or no on each sample{has}, and "
                "the rules cannot tell whether they measure the same; name another --scorer, or "
                "say --regrade to compare with the log's answers by the rules"
            )
        notes.append(f"the log has no verdict on each sample{has}: the rules grade it")
        return False
    silent = (samples["response"].str.strip() == "") & (verdicts[taken] != "correct")
    samples["verdict"] = verdicts[taken].mask(silent, "no_answer").fillna("not_scored")
    samples["extracted"] = samples["extracted"].fillna(scores[taken].str.get("answer"))
    notes.append(f"verdicts of the log: {taken}; its scorers: {', '.join(scores)}")
    if odd := (samples["verdict"] == "not_scored").sum():
        notes.append(f"{counted(odd, 'sample')} without yes or no left out; {RULE}")
    return True


def _spell_value(value: Any) -> str:
    """Spell the value of a score in one way: ``Correct.`` as correct, 1.0 as 1, ``100.0 %`` as
    100%.
    """
    text = str(value).strip().rstrip(".!").lower()
    number, percent = text.rstrip("% "), "%" if text.endswith("%") else ""
    try:
        return f"{float(number) + 0:g}{percent}"  # of -0.0, 0
    except ValueError:
        return text


def _read_scale(values: "pd.Series[str]") -> tuple["pd.Series[str]", list[str]]:
    """Return the verdict of each value, None where it is neither yes nor no, and the values that
    no scale has beside the others: if there are any, nothing is a verdict.
    """
    unknown = {*values} - WORDS.keys() - NEITHER.keys()
    for scale in SCALES:
        if unknown <= scale.keys():
            return values.map(WORDS | NEITHER | scale), []
    return values.map({}), sorted(unknown)
