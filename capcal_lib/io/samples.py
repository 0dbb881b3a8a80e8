"""Read samples that others drew, from logs or any table of rows, into one table."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pandas as pd

from capcal_lib import manifests
from capcal_lib.errors import InputError, check_known
from capcal_lib.io.logs import read_batch, read_harness, read_inspect
from capcal_lib.io.verdicts import read_verdicts
from capcal_lib.questions import NOT_STATED
from capcal_lib.questions.columns import read_options, right_option
from capcal_lib.questions.question import LETTERS
from capcal_lib.rows import is_missing, listed, read_table, stream_rows, take_columns
from capcal_lib.text import counted, printable, sanitize

NEEDED = ["question_id", "response"]
SETTINGS = {"temperature": float, "max_tokens": int, "top_p": float}
RUN = ["model", *SETTINGS, "top_k", "reasoning_effort"]  # what makes two runs two
OTHERS = ["gold", "verdict", "sample", "question", "aliases", "choices", "subject", "extracted"]
OTHERS += ["uuid", "task", *RUN]  # that a table may have
OF_LOGS = ["reasoning", "finish_reason", "prompt_tokens", "completion_tokens", "prompt"]
ITEM = ["question", "gold", "aliases", "choices", "subject"]
KEPT = [*NEEDED, "sample", "verdict", "extracted", *OF_LOGS]


class Log(NamedTuple):
    """The samples of files, and their questions."""

    samples: pd.DataFrame  # a row each, in order; verdict where the log's are taken
    items: pd.DataFrame  # by question_id: question, gold, tuples of aliases and choices, subject
    judged: bool
    notes: list[str]  # what was left out
    settings: dict[str, float]  # of the sampling, as far as the files say them


def read_samples(
    files: Sequence[Path],
    columns: Mapping[str, str] = MappingProxyType({}),
    *,
    scorer: str | None = None,
    regrade: bool = False,
) -> Log:
    """Read the samples of files. ``columns`` say which column of a table holds what.

    The verdicts are those of the log's ``scorer``, see
    :func:`~capcal_lib.io.verdicts.choose_scorer`; with ``regrade`` none is taken. A request without
    a response has no row; a later one of its question keeps its number.

    `InputError` for a file that cannot be read, or has no samples; samples of two models, settings
    or prompts; a sample that stands there twice; a question with two answers or texts."""
    for name in columns:
        check_known("column", name, [*NEEDED, *OTHERS])
    tables = (_read_file(path, columns, scorer, regrade) for path in files)
    samples = pd.concat(tables, ignore_index=True)
    _check_samples(samples)
    if "task" in samples and samples["task"].nunique() > 1:  # which number their questions alike
        samples["question_id"] = samples["task"].map(str) + "/" + samples["question_id"]
    _refuse_again(samples)
    if "sample" in samples:
        samples = samples.sort_values("sample", kind="stable", ignore_index=True)
    samples["sample"] = samples.groupby("question_id").cumcount()
    failed = samples["response"].isna()
    samples = samples[~failed]
    if samples.empty:
        raise InputError(f"{', '.join(map(str, files))}: no samples with a response in it")
    notes = [f"{counted(int(failed.sum()), 'request')} without a response left out"]
    notes = notes if failed.any() else []
    first = samples.iloc[0]
    settings: dict[str, float] = {
        name: as_number(first[name])
        for name, as_number in SETTINGS.items()
        if pd.notna(first.get(name))
    }
    judged = not regrade and "verdict" in samples and bool(samples["verdict"].notna().any())
    if judged:
        samples["verdict"] = read_verdicts(samples["verdict"])
        if pd.notna(first.get("judge")):
            notes.append(f"verdicts by {first['judge']}")
        if lost := int((samples["verdict"] == "not_scored").sum()):
            notes.append(f"{counted(lost, 'sample')} without a verdict left out")
    return Log(samples.reindex(columns=KEPT), _items_of(samples), judged, notes, settings)


def is_log(path: Path, columns: Mapping[str, str] = MappingProxyType({})) -> bool:
    """Tell samples from a table of confidences or counts."""
    if str(path) == "-" or path.suffix == ".eval":
        return path.suffix == ".eval"
    if not columns.keys().isdisjoint(["response", "gold", "verdict"]):
        return True
    table = pd.DataFrame([next(stream_rows(path), {})])
    numbers = take_columns(path, table, [], ["confidence", "correct"]) if len(table) else table
    return numbers.empty and columns.keys().isdisjoint(["confidence", "correct"])


def _read_file(
    path: Path, columns: Mapping[str, str], scorer: str | None, regrade: bool
) -> pd.DataFrame:
    """Read the samples of a file, with the place of each."""
    first = {} if path.suffix == ".eval" else next(stream_rows(path), {})
    try:
        if path.suffix == ".eval" or "task" in (first.get("eval") or ()):
            table = read_inspect(path, scorer, regrade)
        elif "resps" in first:
            table = read_harness(path, scorer, regrade)
        elif "custom_id" in first and not isinstance(first.get("response"), str):
            table = read_batch(path)
        else:
            table = take_columns(path, read_table(path), NEEDED, OTHERS, columns)
    except InputError as error:
        raise InputError(str(error) if str(path) in str(error) else f"{path}: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        what = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise InputError(f"{path}: {sanitize(what)}") from None
    return table.assign(path=printable(path), row=range(len(table)))


def _check_samples(samples: pd.DataFrame) -> None:
    """Give samples their types, and refuse those that are none, or are of several runs."""
    missing = samples["question_id"].isna() | samples["question_id"].eq("")
    _refuse(samples, missing, "question_id", "is missing")
    lists = samples["response"].map(lambda value: isinstance(value, list | dict))
    _refuse(samples, lists, "response", "is a list; write a row a sample (table.explode)")
    for name in samples.columns.intersection(["sample", *SETTINGS]):
        numbers = pd.to_numeric(samples[name], errors="coerce")
        wrong = numbers.isna() & ~is_missing(samples[name])
        _refuse(samples, wrong, name, "is no number")
        samples[name] = numbers
    samples["question_id"] = samples["question_id"].map(str)
    samples["response"] = samples["response"].map(str, na_action="ignore")
    answered = samples[samples["response"].notna()]
    for name in samples.columns.intersection(RUN):
        values = answered[name].map(str).unique()
        if len(values) > 1:
            raise InputError(
                f"samples of several runs, with {name} {sanitize(', '.join(values), 120)}; give "
                "each run a file of its own"
            )


def _refuse_again(samples: pd.DataFrame) -> None:
    """Refuse a sample that stands there twice, and a file that has those of another again."""
    for name in samples.columns.intersection(["uuid", "sample"]):
        known = samples[samples[name].notna()]
        again = known.duplicated(["question_id", name])
        _refuse(known, again, name, "is that of an earlier sample of its question; give it once")
    paths = samples["path"].unique()
    if len(paths) == 1:
        return
    texts = samples.groupby(["question_id", "path"])["response"].agg(lambda some: str([*some]))
    by_path = texts.unstack()
    for one, other in combinations(paths, 2):
        both = by_path[[one, other]].dropna()
        if len(both) and (both[one] == both[other]).all():
            raise InputError(f"{other} has the samples of {one} again; give them once")


def check_one_prompt(samples: pd.DataFrame) -> None:
    """Refuse a question that was asked by two prompts."""
    prompts = samples[["question_id", "prompt"]].dropna().drop_duplicates()
    again = prompts["question_id"].duplicated()
    if again.any():
        name = sanitize(prompts.loc[again, "question_id"].iloc[0], 80)
        raise InputError(
            f"question {name!r} was asked in two ways, with another prompt, solver or setting; "
            "give each run a file of its own"
        )


def _items_of(samples: pd.DataFrame) -> pd.DataFrame:
    """Return the questions of samples, with their right answers.

    `InputError` for a question with two answers or texts, and an answer that is no option."""
    stated = samples[["question_id", *samples.columns.intersection(ITEM)]].map(str)
    stated = stated.drop_duplicates()
    again = stated["question_id"].duplicated()
    if again.any():
        name = sanitize(stated.loc[again, "question_id"].iloc[0], 80)
        raise InputError(
            f"question {name!r} has two answers, texts or subjects; import the files apart"
        )
    first = samples.drop_duplicates("question_id").reindex(
        columns=["question_id", *ITEM, "path", "row"]
    )
    first = first.astype(object)
    answers = []
    for row in first[["gold", "aliases", "choices", "path", "row"]].itertuples(index=False):
        try:
            answers.append(_answer(row.gold, row.aliases, row.choices))
        except ValueError as error:
            raise InputError(f"{row.path}, row {row.row}: {sanitize(error)}") from None
    items = pd.DataFrame(answers, first.index, ["gold", "aliases", "choices"], dtype=object)
    items["question"] = first["question"].fillna(first["question_id"]).map(str)
    items["subject"] = first["subject"].fillna("").map(str)
    return items.set_index(first["question_id"])


def _answer(gold: Any, aliases: Any, choices: Any) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Return the right answer, others that are right, and the choices where an answer is stated.

    The right one of several options is named by its letter, its text, or an integer from 0 on."""
    golds, others = listed(gold), listed(aliases)
    if not golds:
        return NOT_STATED, tuple(map(str, others)), ()
    options, labels = read_options(choices if listed(choices) else [])
    if options:
        [name] = golds
        if isinstance(name, float) and name.is_integer():  # as tables make one of an integer
            name = int(name)
        place = right_option(name, options, labels)
        digits = isinstance(name, str) and name.isdecimal() and not labels
        if digits and int(name) < len(options) and int(name) != place:
            raise ValueError(
                f"{name!r} is the text of one option and the number of another; write its letter"
            )
        return LETTERS[place], (options[place],), tuple(options)
    if isinstance(golds[0], dict):
        raise ValueError(
            f"the right answer is an object of {', '.join(golds[0])}; name the text in it, as in "
            f"--column gold=answer.{next(iter(golds[0]))}"
        )
    # GSM8K writes its solution, then #### and the answer.
    texts = [str(one).rpartition("####")[2].strip() for one in golds]
    return texts[0], (*texts[1:], *map(str, others)), ()


def kind_of(items: pd.DataFrame) -> manifests.Kind:
    """Tell of which kind the answers of a log are: choices where all have options or are letters of
    some, numbers, formulas where one is written in LaTeX, else short answers.
    """
    if items["choices"].map(len).all() or items["gold"].str.fullmatch(r"[A-J]|\([A-J]\)").all():
        return "choice"
    if items["gold"].str.fullmatch(r"[-+]?[\d,]*\.?\d+").all():
        return "number"
    return "math" if items["gold"].str.contains(r"\\[a-zA-Z]|\^").any() else "short"


def _refuse(samples: pd.DataFrame, wrong: "pd.Series[bool]", name: str, rule: str) -> None:
    """Refuse samples for the first one that breaks a rule, if there is one."""
    if wrong.any():
        row = samples[wrong].iloc[0]
        value = sanitize(row[name], 80)
        raise InputError(f"{row['path']}, row {row['row']}: {name} {value!r} {rule}")
