"""Tell whose sample it is: two runs are refused by name, and a sample counts once however often it
comes.
"""

from typing import Any

import pandas as pd

from capcal_lib.errors import InputError
from capcal_lib.io.verdicts import spell_value
from capcal_lib.text import counted, sanitize

# What makes two runs two, beside the prompt.
RUN = ("model", "temperature", "max_tokens", "top_p", "top_k", "reasoning_effort")
AGAIN = "the same sample again"


def check_one_run(where: object, samples: pd.DataFrame) -> None:
    """Refuse samples of several models or settings."""
    for name in RUN:
        if name not in samples:
            continue
        values = samples[name].map(str if name == "model" else spell_value).unique()
        if len(values) > 1:
            several = sanitize(", ".join(values), 120)
            raise InputError(
                f"{where}: samples of several runs, with {name} {several}; give each run a file or "
                "a folder of its own"
            )


def check_one_task(where: object, samples: pd.DataFrame, same: list[str]) -> None:
    """Refuse a question, told by the columns that are the ``same``, that is of several tasks."""
    known = samples.drop_duplicates([*same, "task"])
    again = known.duplicated(same, keep=False)
    if again.any():
        name = known.loc[again, "question_id"].iloc[0]
        tasks = sorted(known.loc[again & (known["question_id"] == name), "task"])
        raise InputError(
            f"{where}: question {sanitize(name, 80)!r} is of several tasks, "
            f"{sanitize(', '.join(tasks), 120)}; give each task apart"
        )


def check_one_prompt(where: object, samples: pd.DataFrame) -> None:
    """Refuse a question that was asked by two prompts."""
    prompts = samples.dropna(subset="prompt").drop_duplicates(["question_id", "prompt"])
    again = prompts["question_id"].duplicated()
    if again.any():
        name = sanitize(prompts.loc[again, "question_id"].iloc[0], 80)
        raise InputError(
            f"{where}: question {name!r} was asked in two ways, with another prompt, solver or "
            "setting; give each run a file or a folder of its own"
        )


def join_repeated(samples: pd.DataFrame, notes: list[str], *, scored: bool) -> pd.DataFrame:
    """Keep each sample once, with the scores of all rows that are of it, such as a row a filter or
    a copy of its log.

    `InputError` for one that has two responses or, if they count, two scores of one name."""
    again = samples["key"].notna() & samples["key"].duplicated()
    first = samples[~again].set_index("key")
    responses, scores = first["response"].to_dict(), first["scores"].to_dict()
    repeated = 0
    for row in samples[again].to_dict("records"):
        known, more = scores[row["key"]], row["scores"]
        if row["response"] != responses[row["key"]]:
            raise _told_twice(row, "responses")
        if scored and any(str(known[name]) != str(more[name]) for name in known.keys() & more):
            raise _told_twice(row, "verdicts")
        repeated += more.keys() <= known.keys()
        known.update(more | known)
    if repeated:
        notes.append(f"{counted(repeated, 'repeated row')} left out: {AGAIN}")
    return samples[~again].reset_index(drop=True)


def _told_twice(row: Any, what: str) -> InputError:
    sample = "a sample" if pd.isna(row["sample"]) else f"sample {row['sample']:.0f}"
    name = sanitize(row["question_id"], 80)
    return InputError(f"{sample} of question {name!r} is there twice, with two {what}; keep one")


def drop_copies(samples: pd.DataFrame, notes: list[str]) -> pd.DataFrame:
    """Leave out the samples of a file that an earlier one has: if all that both have are equal, it
    is a copy, and no second draw.
    """
    if samples["path"].nunique() == 1:
        return samples
    numbers = samples.groupby(["path", "question_id"]).cumcount().rename("number")
    rows = samples.assign(number=numbers).set_index(["question_id", "number"])
    distinct: dict[str, pd.DataFrame] = {}
    for path, of_path in rows.groupby("path", sort=False):
        for earlier, known in distinct.items():
            both = of_path.index.isin(known.index)
            responses = known["response"].reindex(of_path.index[both])
            if both.any() and (of_path["response"][both] == responses).all():
                notes.append(
                    f"{path}: {counted(both.sum(), 'sample')} left out: they are those of "
                    f"{earlier} again"
                )
                of_path = of_path[~both]
        distinct[str(path)] = of_path
    return pd.concat(distinct.values()).reset_index("question_id").reset_index(drop=True)
