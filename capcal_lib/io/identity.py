"""Tell whose sample it is: two runs are refused by name, and a sample counts once however often it
comes.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from capcal_lib.errors import InputError
from capcal_lib.io.verdicts import spell_value
from capcal_lib.text import counted, sanitize

# What makes two runs two, beside the prompt.
RUN = ("model", "temperature", "max_tokens", "top_p", "top_k", "reasoning_effort")
AGAIN = "the same sample again"
Copies = dict[str, list[str]]  # of each file the earlier ones whose samples it has again


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


def join_repeated(samples: pd.DataFrame, *, scored: bool) -> tuple[pd.DataFrame, int]:
    """Keep each sample of a question once, with the scores of all rows that are of it, such as a
    row a filter or a copy of its log; return how many rows said nothing new.

    `InputError` for one that has two responses or, if they count, two scores of one name."""
    again = samples["key"].notna() & samples.duplicated(["question_id", "key"])
    if not again.any():
        return samples, 0
    samples = samples.assign(scores=samples["scores"].map(dict))  # rows of one log share theirs
    first = samples[~again].set_index(["question_id", "key"])
    responses, scores = first["response"].to_dict(), first["scores"].to_dict()
    repeated = 0
    for row in samples[again].to_dict("records"):
        name = row["question_id"], row["key"]
        known, more = scores[name], row["scores"]
        if row["response"] != responses[name]:
            raise _told_twice(row, "responses")
        if scored and any(str(known[name]) != str(more[name]) for name in known.keys() & more):
            raise _told_twice(row, "verdicts")
        repeated += more.keys() <= known.keys()
        known.update(more | known)
    return samples[~again], repeated


def _told_twice(row: Any, what: str) -> InputError:
    sample = "a sample" if pd.isna(row["sample"]) else f"sample {row['sample']:.0f}"
    name = sanitize(row["question_id"], 80)
    return InputError(f"{sample} of question {name!r} is there twice, with two {what}; keep one")


def check_keys(where: object, keys: Sequence[npt.NDArray[np.int64]]) -> None:
    """Refuse two questions that have one sample, told by the hashes of keys."""
    whole = np.sort(np.concatenate([*keys, np.array([], dtype=np.int64)]))
    if (whole[1:] == whole[:-1]).any():
        raise InputError(
            f"{where}: two questions have a sample of one uuid or id; give each sample its own"
        )


def number_draws(samples: pd.DataFrame) -> pd.DataFrame:
    """Number the samples of each question in each file, as they come: what copies are told by."""
    return samples.assign(draw=samples.groupby(["path", "question_id"]).cumcount())


def hash_draws(samples: pd.DataFrame) -> pd.DataFrame:
    """Return 64 bits each for the draw of a question and for its response, with its file."""
    draws = zip(samples["question_id"], samples["draw"], strict=True)
    return pd.DataFrame(
        {
            "path": samples["path"].astype("category"),
            "draw": [*map(hash, draws)],
            "response": [*map(hash, samples["response"])],
        }
    )


def find_copies(draws: pd.DataFrame, paths: Iterable[str], notes: list[str]) -> Copies:
    """Tell of each file which earlier ones it copies: if all that both have are equal, it is a copy
    of these, and no second draw.
    """
    distinct: dict[str, pd.Series[int]] = {}
    copies: Copies = {}
    for path in paths:
        of_path = draws[draws["path"] == path].set_index("draw")["response"]
        copies[path] = []
        for earlier, known in distinct.items():
            both = of_path.index.isin(known.index)
            if both.any() and (of_path[both] == known.reindex(of_path.index[both])).all():
                notes.append(
                    f"{path}: {counted(both.sum(), 'sample')} left out: they are those of "
                    f"{earlier} again"
                )
                copies[path].append(earlier)
                of_path = of_path[~both]
        distinct[path] = of_path
    return copies


def drop_copies(samples: pd.DataFrame, copies: Copies) -> pd.DataFrame:
    """Leave out the samples of each file that it has copied of an earlier one."""
    distinct: dict[str, pd.DataFrame] = {}
    for path, earlier in copies.items():
        of_path = samples[samples["path"] == path].set_index(["question_id", "draw"])
        for other in earlier:
            of_path = of_path[~of_path.index.isin(distinct[other].index)]
        distinct[path] = of_path
    return pd.concat(distinct.values()).reset_index("question_id").reset_index(drop=True)
