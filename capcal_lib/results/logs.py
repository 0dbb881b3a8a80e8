"""Read samples that others drew: logs of lm-evaluation-harness, inspect_ai and lighteval, batch
output, any table of rows.

Nothing in a file is evaluated, and the members of an archive are bounded. What a log does not say
is not made up: token counts that are not there are 0, which stands for not known."""

import ast
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from os.path import isdir
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pandas as pd

from capcal_lib import manifests
from capcal_lib.errors import InputError, counted, sanitize, unknown
from capcal_lib.questions import NOT_STATED, field_of, plain_head, stream_rows

Row = dict[str, Any]
MEMBER_BYTES = 1 << 26  # of one sample of a log
MEMBERS = re.compile(r"header\.json|samples/.*\.json")  # of a log of inspect_ai
COLUMNS = {  # what may be mapped, and the places where it is looked for, in order
    "question_id": "question_id id doc_id custom_id doc.id",
    "sample": "sample sample_index",
    "response": "choice.message.content choice.text choice response",
    "gold": "gold answer target",
    "aliases": "aliases",
    "choices": "choices",
    "question": "doc.question doc.problem doc.query doc.input question problem prompt input "
    "arguments.gen_args_0.arg_0 arguments.0.0",
    "verdict": "verdict",
    "extracted": "extracted",
    "reasoning": "choice.message.reasoning choice.message.reasoning_content "
    "choice.message.content reasoning reasoning_content",
    "finish_reason": "choice.finish_reason choice.stop_reason finish_reason",
    "prompt_tokens": "prompt_tokens response.body.usage.prompt_tokens output.usage.input_tokens",
    "completion_tokens": "completion_tokens response.body.usage.completion_tokens "
    "output.usage.output_tokens",
}
SETTINGS = {"temperature": "temperature", "max_tokens": "max_gen_toks", "top_p": "top_p"}
OPTIONS = SETTINGS | {"sampled": "do_sample"}  # of a request of lm-evaluation-harness
PLACES = {
    name: f"{name} arguments.gen_args_0.arg_1.{option} arguments.0.1.{option}"
    for name, option in OPTIONS.items()
}
PLACES |= COLUMNS | {
    "several": "resps.0 output.choices response.body.choices model_response.text",
    "status": "response.status_code",
    "right": "doc.gold_index",  # of lighteval
}
PATHS = {name: [place.split(".") for place in places.split()] for name, places in PLACES.items()}
HEADS = {plain_head(path[0]): path[0] for paths in PATHS.values() for path in paths}
ITEM = ["question_id", "question", "gold", "aliases", "choices"]
FIELDS = [*COLUMNS, *SETTINGS, "task", "filter", "twin", "scores"]
NUMBERS = ("sample", "prompt_tokens", "completion_tokens")
# Of a row of lm-evaluation-harness; what is beside them are metrics, where a version names none.
HARNESS = {"doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter"}
HARNESS |= {"doc_hash", "prompt_hash", "target_hash", "task"}
RULE = (
    "read as yes or no: C/I, CORRECT/INCORRECT (NOT_ATTEMPTED is incorrect), yes/no, true/false, "
    "1/0, 100/0 percent"
)
WORDS = {name: name for name in ("correct", "incorrect", "no_answer")} | {"n": "no_answer"}
WORDS |= dict.fromkeys(("c", "yes", "true"), "correct")
WORDS |= dict.fromkeys(("i", "no", "false", "not_attempted"), "incorrect")
# Scorers that compare an answer with a gold one, as the rules do; others measure something else.
COMPARING = {"exact_match", "acc", "em", "f1", "math_verify", "bypass", "quasi_exact_match"}
COMPARING |= {"match", "includes", "exact", "answer", "pattern", "choice", "verdict"}
TABLE = "write a row a sample as JSONL or CSV, with question_id, response and gold or verdict"
OTHERS = {  # files that hold no samples as they are read here: a key of theirs, and what to do
    "configs": "the scores of lm-evaluation-harness, no samples; give samples_*.jsonl, which "
    "--log_samples writes",
    "config_general": "the scores of lighteval, no samples; give details/**/*.parquet",
    "request_states": f"a scenario state of HELM, which is not read; {TABLE}",
    "convos": f"results of simple-evals, which are not read; {TABLE}",
}


class Log(NamedTuple):
    """The samples of files, a row each under the names of ``COLUMNS`` and ``SETTINGS``, and their
    questions.

    Where the log's verdicts were taken (``judged``) each sample has a ``verdict``."""

    samples: pd.DataFrame
    items: pd.DataFrame  # by question_id: question, gold, and tuples of aliases and choices
    judged: bool
    notes: list[str]  # what was taken, and what was left out


def list_files(files: Iterable[Path]) -> list[Path]:
    """Return files, and in place of a folder the logs in it."""
    listed = []
    for file in files:
        logs = [file]
        if isdir(file):
            patterns = ("samples_*.jsonl", "*.eval", "details_*.parquet")
            logs = sorted(path for pattern in patterns for path in file.rglob(pattern))
        if not logs:
            raise InputError(
                f"{file}: a folder without samples_*.jsonl, .eval or details_*.parquet"
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
    if wrong := columns.keys() - COLUMNS.keys():
        raise InputError(f"{min(wrong)!r} is no column; known: {', '.join(COLUMNS)}")
    notes: list[str] = []
    parts = [_read_file(file, columns, notes) for file in list_files(files)]
    samples, scores = (pd.concat(tables, ignore_index=True) for tables in zip(*parts, strict=True))
    failed = samples["response"].isna()
    if failed.all():
        raise InputError(f"{', '.join(map(str, files))}: no samples with a response in it")
    if failed.any():
        notes.append(f"{counted(failed.sum(), 'request')} without a response left out")
        samples, scores = samples[~failed].copy(), scores[~failed]
    items = samples[ITEM].drop_duplicates()
    if items["question_id"].duplicated().any() and samples["task"].nunique() > 1:
        samples["question_id"] = samples["task"] + "/" + samples["question_id"]
        items = samples[ITEM].drop_duplicates()
    items = items.set_index("question_id")
    if (twins := items.index[items.index.duplicated()]).size:
        raise InputError(
            f"question {sanitize(twins[0], 80)!r} has two answers or texts; import the files apart"
        )
    if regrade:
        notes.append("the log's verdicts are left out, as asked: the rules grade it")
    judged = not regrade and _take_verdicts(samples, scores, scorer, notes)
    return Log(samples, items, judged, notes)


def kind_of(items: pd.DataFrame) -> manifests.Kind:
    """Tell of which kind the answers of a log are: choices where all have them, numbers, formulas
    where one is written in LaTeX, else short answers.
    """
    if items["choices"].map(len).all():
        return "choice"
    if items["gold"].str.fullmatch(r"[-+]?[\d,]*\.?\d+").all():
        return "number"
    return "math" if items["gold"].str.contains(r"\\[a-zA-Z]|\^").any() else "short"


def _read_file(
    path: Path, columns: Mapping[str, str], notes: list[str]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Read the samples of a file, each once, and their scores, a column a scorer.

    A response of None is that of a request that failed. A sample that several rows are of has the
    scores of all: those of filters, which are numbered where the rows do not name them and every
    sample has equally many. Other rows that come again are those of a padded run."""
    drawn: dict[str, list[Any]] = {name: [] for name in FIELDS}
    try:
        for row in _rows(path):
            for sample in _read_row(row, columns):
                for name, values in drawn.items():
                    values.append(sample[name])
        golds = [
            None if name is None else _texts(gold)
            for name, gold in zip(drawn["filter"], drawn["gold"], strict=True)
        ]
        if not all(golds):
            golds = drawn["gold"]
        given = zip(golds, drawn["aliases"], drawn["choices"], strict=True)
        answers = pd.DataFrame((_answer(*one) for one in given), columns=ITEM[2:], dtype=object)
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError) as error:
        what = f"no {error}; {TABLE}" if isinstance(error, KeyError) else str(error)
        raise InputError(f"{path}, sample {len(drawn['scores'])}: {sanitize(what)}") from None
    scores: Any = pd.DataFrame(drawn.pop("scores"), dtype=object)
    twins = pd.Series(pd.factorize(pd.Series(drawn.pop("twin"), dtype=object))[0])
    filters = pd.Series(drawn.pop("filter"), dtype=object)
    table = pd.DataFrame(drawn, dtype=object, copy=False).assign(**answers)
    turns = twins.groupby(twins).cumcount()
    if not turns.any():
        return table, scores
    if {*filters} == {""} and twins.value_counts().nunique() == 1:
        scores = scores.set_index([twins, turns]).unstack()
        scores.columns = [f"{name} ({turn + 1})" if turn else name for name, turn in scores]
    else:
        scores = scores.groupby(twins).first()
        if repeated := pd.DataFrame({"twin": twins, "filter": filters}).duplicated().sum():
            notes.append(
                f"{counted(int(repeated), 'repeated row')} left out: the same sample again"
            )
    return table[turns == 0], scores


def _rows(path: Path) -> Iterator[Row]:
    """Yield the rows of a file, each with its task, and with the settings of a log's header."""
    known: Row = {"task": re.sub(r"^samples_|_\d{4}-\d\d-\d\dT.*$", "", path.name.split(".")[0])}
    for row in _archive(path) if path.suffix == ".eval" else stream_rows(path):
        if other := OTHERS.keys() & row.keys():
            raise InputError(f"{path}: {OTHERS[min(other)]}")
        if "eval" not in row or not {"plan", "status"} & row.keys():
            yield known | row
            continue
        known |= row["eval"].get("model_generate_config") or {}
        known |= (row.get("plan") or {}).get("config") or {}
        known["task"] = row["eval"].get("task")
        if path.suffix != ".eval" and not row.get("samples"):
            raise InputError(
                f"{path}: a log of inspect_ai, status {row.get('status')}, with no samples in "
                "it; give the log that has them"
            )
        yield from (known | sample for sample in row.get("samples") or ())


def _archive(path: Path) -> Iterator[Row]:
    """Read a log of inspect_ai in a zip file: its header, then its samples."""
    if sys.version_info >= (3, 14):
        import zipfile
    else:
        from backports.zstd import zipfile  # with the compression of later logs
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if MEMBERS.fullmatch(name)]
            for name in sorted(names, key="header.json".__ne__):
                with archive.open(name) as member:
                    text = member.read(MEMBER_BYTES + 1)
                if len(text) > MEMBER_BYTES:
                    raise InputError(f"{path}: {name} is larger than {MEMBER_BYTES >> 20} MiB")
                yield json.loads(text)
    except (InputError, RecursionError):
        raise
    except Exception as error:  # zip files and their compressions have a dozen kinds
        raise InputError(f"{path}: not a log of inspect_ai: {sanitize(error)}") from None


def _first(row: Row, name: str) -> Any:
    """Return the first value that is there, at the places of a column inside a row."""
    for path in PATHS[name]:
        value: Any = row
        with suppress(LookupError, TypeError, ValueError):
            for part in path:
                value = value[int(part) if isinstance(value, list) else part]
            if value is not None:
                return value
    return None


def _read_row(row: Row, columns: Mapping[str, str]) -> Iterator[Row]:
    """Yield the samples of a row, whichever form it has."""
    view = {HEADS.get(plain_head(head), head): row[head] for head in reversed(row)} | row
    several = _first(view, "several")
    texts = [several] if isinstance(several, str) else several or [None]
    scores = row.get("scores") or row.get("metric")
    if not isinstance(scores, dict):
        suffix = "" if row.get("filter") in (None, "none") else f",{row['filter']}"
        beside = [name for name in row if name not in HARNESS] if "resps" in row else []
        scores = {f"{metric}{suffix}": row.get(metric) for metric in row.get("metrics") or beside}
        scores |= {"score": row["score"]} if isinstance(row.get("score"), dict) else {}
    failed = (row.get("error") and not scores) or _first(row, "status") not in (None, 200)
    if len(texts) > 1:  # what is known of several is not known of any of them
        scores = dict.fromkeys(scores)
    right = _first(row, "right")
    for place, text in enumerate(texts):
        view |= {} if several is None else {"choice": text}
        full = {name: _first(view, name) for name in (*COLUMNS, *SETTINGS)}
        full |= {name: field_of(row, column) for name, column in columns.items()}
        if full["question_id"] is None:
            raise KeyError("question_id")
        if "response" not in columns and {"choice", "response"}.isdisjoint(view):
            raise KeyError("response")
        for name in NUMBERS:
            full[name] = int(full[name]) if full[name] not in (None, "") else None
            if not 0 <= (full[name] or 0) < 1 << 31:
                raise ValueError(f"{name} {full[name]}")
        if _first(row, "sampled") is False:
            full["temperature"] = 0.0
        if len(texts) > 1:
            full["completion_tokens"] = None
        if right is not None:
            full["gold"] = [row["doc"]["choices"][index] for index in _list(right)]
        name = sys.intern(str(full["question_id"]))
        asked = full["question"]
        asked = _text(asked, "text") if isinstance(asked, list | dict) else asked
        again = {"doc_id", "epoch"} & row.keys()  # what a row may share with another
        yield full | {
            "question_id": name,
            "question": sys.intern(str(asked or name)),
            "reasoning": _text(full["reasoning"], "reasoning"),
            "response": None if failed else _text(full["response"], "text"),
            "scores": scores if full["verdict"] is None else {"verdict": full["verdict"]},
            "task": str(row["task"]),
            "filter": row.get("filter", "") if "doc_id" in row else None,
            "twin": hash((place, name, row.get("epoch"), str(texts))) if again else object(),
        }


def _text(value: Any, kind: str) -> str:
    """Return the text of a message or of the last turn of a user; or the reasoning in it."""
    if isinstance(value, str):
        return value if kind == "text" else ""
    if isinstance(value, dict | None):
        return ""
    if not isinstance(value, list) or not all(isinstance(part, dict) for part in value):
        raise InputError(
            "the responses are no texts, but perhaps log-likelihoods of given answers; take a task "
            "that generates"
        )
    turns = [part["content"] for part in value if part.get("role") == "user"]
    turns = turns or [part["content"] for part in value if "role" in part]
    if turns:
        return _text(turns[-1], kind)
    return "".join(str(part[kind]) for part in value if part["type"] == kind)


def _answer(gold: Any, aliases: Any, choices: Any) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Return the right answer, others that are right, and the choices where an answer is stated."""
    texts = [str(text).rpartition("####")[2].strip() for text in _list(gold)]
    if not texts:
        return NOT_STATED, tuple(map(str, _list(aliases))), ()
    return texts[0], (*texts[1:], *map(str, _list(aliases))), tuple(map(str, _list(choices)))


def _list(value: Any) -> list[Any]:
    if value in (None, ""):
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def _texts(value: Any) -> list[str] | None:
    """Read a list of texts as Python writes it."""
    try:
        value = ast.literal_eval(value) if isinstance(value, str) else value
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    return value if isinstance(value, list) and {*map(type, value)} == {str} else None


def _take_verdicts(
    samples: pd.DataFrame, scores: Any, scorer: str | None, notes: list[str]
) -> bool:
    """Give samples the verdicts of a scorer of the log; say whether it has them."""
    names = [name for name in scores if scorer in (None, name, *name.split(","))]
    if scorer and not names:
        raise unknown("scorer", scorer, scores)
    values = scores[names].map(lambda one: one.get("value") if isinstance(one, dict) else one)
    texts = values.map(lambda one: str(one).strip().lower())
    read = {name: _read_verdicts(texts[name]) for name in names}
    taken = max(
        names,
        key=lambda name: (read[name].count(), texts[name].isin(WORDS).any()),
        default="",
    )
    # Where most values are between yes and no, those that are not are no fair sample.
    if not taken or 2 * read[taken].count() < max(values[taken].count(), 1):
        if names and COMPARING.isdisjoint(re.split(r"[, ]", ",".join(names))):
            raise InputError(
                f"the log's scores ({', '.join(names)}) are no yes or no on each sample, and the "
                "rules cannot tell whether they measure the same; name another --scorer, or say "
                "--regrade to compare with the log's answers by the rules"
            )
        notes.append("the log has no verdict on each sample: the rules grade it")
        return False
    silent = (samples["response"].str.strip() == "") & (read[taken] != "correct")
    verdicts = read[taken].mask(silent, "no_answer")
    samples["verdict"] = verdicts.fillna("not_scored")
    answers = scores[taken].map(lambda one: one.get("answer") if isinstance(one, dict) else None)
    samples["extracted"] = samples["extracted"].fillna(answers)
    others = ", ".join(name for name in scores if name != taken)
    notes.append(f"verdicts of the log: {taken}{f' (--scorer takes: {others})' if others else ''}")
    odd = values[taken][verdicts.isna()].map(lambda one: sanitize(one, 20)).value_counts()
    if len(odd):
        left_out = counted(odd.sum(), "sample")
        notes.append(f"{left_out} without yes or no left out ({', '.join(odd.index[:3])}); {RULE}")
    return True


def _read_verdicts(texts: "pd.Series[str]") -> "pd.Series[str]":
    """Return the verdict of each value that says yes or no, else NaN."""
    numbers = pd.to_numeric(texts.str.rstrip("% "), errors="coerce")
    most = 100 if numbers.max() > 1 else 1  # percentages, or shares
    return texts.map(WORDS).fillna(numbers.map({most: "correct", 0: "incorrect"}))
