"""Read samples that others drew, from logs or any table of rows, into one table."""

import json
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pandas as pd

from capcal_lib import manifests
from capcal_lib.errors import InputError, check_known
from capcal_lib.io.logs import naming_place, read_batch, read_harness, read_inspect
from capcal_lib.io.verdicts import RULE, SCALE, spell_value
from capcal_lib.questions import NOT_STATED
from capcal_lib.questions.columns import read_options, right_option
from capcal_lib.questions.question import LETTERS
from capcal_lib.rows import (
    is_missing,
    listed,
    plain_head,
    read_table,
    refuse,
    stream_rows,
    take_columns,
)
from capcal_lib.text import counted, printable, sanitize

NEEDED = ["question_id", "response"]
SCORED = ", or for `capcal score` question_id, confidence, correct"
SETTINGS = {"temperature": float, "max_tokens": int, "top_p": float}
RUN = ["task", "model", *SETTINGS, "top_k", "reasoning_effort"]  # what makes two runs two
OTHERS = ["gold", "verdict", "sample", "question", "aliases", "choices", "subject", "extracted"]
OTHERS += ["uuid", *RUN]  # that a table may have
OF_LOGS = ["reasoning", "finish_reason", "prompt_tokens", "completion_tokens"]
KEYS = {"uuid": ["uuid"], "sample": ["question_id", "sample"]}  # which no two samples share
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

    `InputError` for a file that cannot be read, or has no samples; samples of two models, tasks,
    settings or prompts; a sample that stands there twice; a question with two answers or texts."""
    tables = (_read_file(path, columns, scorer, regrade) for path in files)
    samples = pd.concat(tables, ignore_index=True)
    _check_samples(samples)
    check_one_run(samples[samples["response"].notna()])
    _refuse_again(samples)
    if "sample" in samples:
        samples = samples.sort_values("sample", kind="stable", ignore_index=True)
    samples["sample"] = samples.groupby("question_id").cumcount()
    failed = samples["response"].isna()
    samples = samples[~failed]
    if samples.empty:
        raise InputError(f"{', '.join(map(str, files))}: no samples with a response in it")
    notes = []
    if failed.any():
        notes.append(f"{counted(int(failed.sum()), 'request')} without a response left out")
    first = samples.iloc[0]
    settings: dict[str, float] = {
        name: as_number(first[name])
        for name, as_number in SETTINGS.items()
        if pd.notna(first.get(name))
    }
    judged = not regrade and "verdict" in samples and bool(samples["verdict"].notna().any())
    if judged:
        spelled = samples["verdict"].map(spell_value)
        rule = f'has no such verdict; {RULE}: table["verdict"] = table["verdict"] == "pass"'
        refuse(samples, ~spelled.isin([*SCALE]), rule, "verdict")
        samples["verdict"] = spelled.map(SCALE)
        if pd.notna(first.get("judge")):
            notes.append(f"verdicts by {first['judge']}")
        if lost := int((samples["verdict"] == "not_scored").sum()):
            notes.append(f"{counted(lost, 'sample')} without a verdict, not scored")
    return Log(samples.reindex(columns=KEPT), _items_of(samples), judged, notes, settings)


def is_log(path: Path, columns: Mapping[str, str] = MappingProxyType({})) -> bool:
    """Tell samples from a table of confidences or counts, which ``columns`` may name."""
    if str(path) == "-" or path.suffix == ".eval":
        return path.suffix == ".eval"
    if not columns.keys().isdisjoint(["response", "gold", "verdict"]):
        return True
    heads = {*columns, *map(plain_head, next(stream_rows(path), {}))}
    return heads.isdisjoint(["confidence", "correct"])


def _read_file(
    path: Path, columns: Mapping[str, str], scorer: str | None, regrade: bool
) -> pd.DataFrame:
    """Read the samples of a file, each with its place."""
    for name in columns:
        check_known("column", name, [*NEEDED, *OTHERS])
    first = {} if path.suffix == ".eval" else next(stream_rows(path), {})
    regrade = regrade or "verdict" in columns  # which go before the log's
    with naming_place(path):
        if path.suffix == ".eval" or "task" in (first.get("eval") or ()):
            return read_inspect(path, columns, scorer, regrade)
        if "resps" in first:
            return read_harness(path, columns, scorer, regrade)
        if scorer:
            raise ValueError("--scorer is for logs of lm-evaluation-harness and inspect_ai")
        if "custom_id" in first and not isinstance(first.get("response"), str):
            return read_batch(path, columns)
    table = take_columns(path, read_table(path), NEEDED, OTHERS, columns, SCORED)
    return table.assign(path=printable(path), row=range(len(table)))


def _check_samples(samples: pd.DataFrame) -> None:
    """Give samples their types, and refuse those that are none."""
    missing = samples["question_id"].isna() | samples["question_id"].eq("")
    refuse(samples, missing, "has no question_id")
    lists = samples["response"].map(lambda value: isinstance(value, list | dict))
    rule = 'has a list of responses; write a row a sample by table.explode("response")'
    refuse(samples, lists, rule, "response")
    for name in samples.columns.intersection(["sample", *SETTINGS]):
        numbers = pd.to_numeric(samples[name], errors="coerce")
        wrong = numbers.isna() & ~is_missing(samples[name])
        refuse(samples, wrong, f"has a {name} that is no number", name)
        samples[name] = numbers
    for name in samples.columns.intersection(["question_id", "response", "uuid"]):
        samples[name] = samples[name].map(str, na_action="ignore")


def check_one_run(rows: pd.DataFrame) -> None:
    """Refuse rows of two models, tasks or settings, and a question asked by two prompts."""
    for name in rows.columns.intersection(RUN):
        values = rows[name].map(str).unique()
        if len(values) > 1:
            raise InputError(
                f"samples of several runs, with {name} {sanitize(', '.join(values), 120)}; give "
                "each run a file of its own"
            )
    if "prompt" in rows:
        prompts = rows[["path", "row", "question_id", "prompt"]]
        prompts = prompts.drop_duplicates(["question_id", "prompt"])
        rule = "was asked in two ways, with another prompt, solver or setting; give each run apart"
        refuse(prompts, prompts["question_id"].duplicated(), rule)


def _refuse_again(samples: pd.DataFrame) -> None:
    """Refuse a sample that stands there twice, and a file that has those of another again."""
    for name, key in KEYS.items():
        if name in samples:
            known = samples[samples[name].notna()]
            line = f"table.drop_duplicates({json.dumps(key)})"
            rule = f"has the {name} of an earlier one; give one of the logs, or {line}"
            refuse(known, known.duplicated(key), rule, name)
    paths = samples["path"].unique()
    if len(paths) == 1:
        return
    texts = samples["response"].map(str).map(hash)
    by_path = texts.groupby([samples["question_id"], samples["path"]]).sum().unstack()
    for one, other in combinations(paths, 2):
        both = by_path[[one, other]].dropna()
        if len(both) and (both[one] == both[other]).all():
            raise InputError(f"{other} has the samples of {one} again; give one of them")


def _items_of(samples: pd.DataFrame) -> pd.DataFrame:
    """Return the questions of samples, with their right answers.

    `InputError` for a question with two answers or texts, and an answer that is no option."""
    stated = samples[["question_id", *samples.columns.intersection(ITEM)]].map(str)
    again = stated.drop_duplicates()["question_id"].duplicated()
    rule = "has another answer, text or subject in an earlier row; mend it, or import files apart"
    refuse(samples.loc[again.index], again, rule, *ITEM)
    first = samples.drop_duplicates("question_id").set_index("question_id")
    first = first.reindex(columns=[*ITEM, "path", "row"]).astype(object)
    answers = []
    for row in first.itertuples():
        with naming_place(f"{row.path}, row {row.row}"):
            answers.append(_answer(row.gold, row.aliases, row.choices))
    items = pd.DataFrame(answers, first.index, ["gold", "aliases", "choices"], dtype=object)
    items["question"] = first["question"].fillna(first.index.to_series()).map(str)
    items["subject"] = first["subject"].fillna("").map(str)
    return items


def _answer(gold: Any, aliases: Any, choices: Any) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Return the right answer, others that are right, and the choices where an answer is stated."""
    golds, others = listed(gold), listed(aliases)
    if not golds:
        return NOT_STATED, tuple(map(str, others)), ()
    options, labels = read_options(choices if listed(choices) else [])
    if options:
        [name] = golds
        place = right_option(name, options, labels)
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
