"""Score one's own confidences: a table of question_id, confidence, correct, total, or two of them
for a comparison.
"""

import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from capcal_lib import metrics
from capcal_lib.errors import InputError, sanitize
from capcal_lib.metrics.intervals import MANY
from capcal_lib.metrics.validation import Floats
from capcal_lib.questions import stream_rows

NUMBERS = ["confidence", "correct", "total"]


def read_confidences(path: Path) -> pd.DataFrame:
    """Read and check confidences and counts: a row a question, indexed by question_id as it is
    written.

    The file is JSONL or parquet by its name, else CSV; ``-`` is CSV from standard input.

    `InputError` for a file that cannot be read, columns that are missing (those found are listed),
    rows with too many fields, or a value that is not allowed; the row is named by its place and id.
    """
    is_csv = not path.name.endswith((".jsonl", ".jsonl.gz", ".parquet"))
    try:
        if is_csv:
            with warnings.catch_warnings():
                warnings.simplefilter("error", pd.errors.ParserWarning)
                source = sys.stdin if str(path) == "-" else path
                table = pd.read_csv(source, dtype=str, keep_default_na=False, index_col=False)
        else:
            table = pd.DataFrame(stream_rows(path), dtype=object).fillna("").astype(str)
    except pd.errors.ParserWarning:
        raise InputError(
            f"{path}: rows have more fields than the header; quote fields that hold a comma"
        ) from None
    except InputError:
        raise
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path}: cannot be read as CSV: {sanitize(str(error).splitlines()[0])}"
        ) from None
    missing = [name for name in ("question_id", *NUMBERS) if name not in table]
    if missing:
        found = sanitize(", ".join(map(str, table)))
        raise InputError(
            f"{path}: no column {', '.join(missing)}; needed: question_id, {', '.join(NUMBERS)}; "
            f"found: {found}"
        )
    if table.empty:
        raise InputError(f"{path}: there are no rows")
    numbers = table[NUMBERS].apply(pd.to_numeric, errors="coerce")
    whole = (numbers[["correct", "total"]] % 1 == 0).all(axis="columns")
    rules = {
        "has no question_id": table["question_id"] == "",
        "stands in two rows; keep one": table["question_id"].duplicated(),
        "has something else than numbers": numbers.isna().any(axis="columns"),
        "has a confidence outside [0, 1]": ~numbers["confidence"].between(0, 1),
        "has counts that are not whole numbers": ~whole | ~np.isfinite(numbers["total"]),
        "needs a scored sample (total of 1 or more)": numbers["total"] < 1,
        "has more correct samples than scored ones, or fewer than 0": ~numbers["correct"].between(
            0, numbers["total"]
        ),
    }
    for rule, wrong in rules.items():
        if wrong.any():
            row = int(wrong.to_numpy().argmax())
            values = ", ".join(
                f"{name} {sanitize(table[name].iloc[row], 40)!r}" for name in NUMBERS
            )
            name = sanitize(table["question_id"].iloc[row], 80)
            place = f"line {row + 2}" if is_csv else f"row {row}"
            raise InputError(f"{path}, {place}: question {name!r} {rule}: {values}")
    return numbers.astype({"correct": np.int64, "total": np.int64}).set_index(table["question_id"])


def score_confidences(table: pd.DataFrame, other: pd.DataFrame | None = None) -> pd.DataFrame:
    """Score a table as :func:`read_confidences` gives it; with another one, also their difference
    where both have rows.

    `InputError` where the two have no question in common, or count one differently.

    Returns a table indexed by ``metric``: its ``value`` and, where there is one, the 95 % interval
    ``low`` to ``high`` for questions like these, and how it was found: by ``bootstrap``, or from
    1,000 questions on in ``closed form``. The corrected scores need two scored samples of every
    question. A negative difference says that the first is better."""
    triple = [table[name].to_numpy() for name in NUMBERS]
    rows: dict[str, tuple[object, ...]] = {
        "questions": (float(len(table)),),
        "capability Brier, plug-in": (metrics.capability_brier(*triple),),
    }
    corrected = bool((table["total"] > 1).all())
    if corrected:
        rows |= {
            "capability Brier, corrected": _mean(
                metrics.capability_brier_terms(*triple, corrected=True)
            ),
            "uniform random, corrected": _mean(
                metrics.uniform_baseline_brier_terms(*triple[1:], corrected=True), (1 / 12, 1 / 3)
            ),
            "noise floor of the plug-in": (metrics.noise_floor(*triple[1:]),),
        }
    split = metrics.isotonic_split(*triple, corrected=corrected)
    rows |= {
        "miscalibration": (split.miscalibration,),
        "discrimination": (split.discrimination,),
        "expected response Brier": (metrics.expected_response_brier(*triple),),
        "correctness variance": (metrics.correctness_variance(*triple[1:]),),
        "AUROC": (metrics.soft_auroc(*triple),),
        "Spearman with mu_hat": (metrics.spearman(*triple),),
    }
    if other is not None:
        rows |= _difference(table, other)
    columns = ["value", "low", "high", "interval"]
    full = {
        name: (*row, np.nan, np.nan, "")[:4] if len(row) == 1 else row for name, row in rows.items()
    }
    return pd.DataFrame.from_dict(full, orient="index", columns=columns).rename_axis("metric")


def _difference(table: pd.DataFrame, other: pd.DataFrame) -> dict[str, tuple[object, ...]]:
    common = table.index.intersection(other.index)
    if common.empty:
        raise InputError("the two files have no question_id in common")
    first, second = table.loc[common], other.loc[common]
    unlike = (first[["correct", "total"]] != second[["correct", "total"]]).any(axis="columns")
    if unlike.any():
        raise InputError(
            f"question {sanitize(common[unlike][0], 80)!r} has other counts in the second file"
        )
    counts = first["correct"].to_numpy(), first["total"].to_numpy()
    terms = [
        metrics.capability_brier_terms(each["confidence"].to_numpy(), *counts)
        for each in (first, second)
    ]
    return {
        "questions in common": (float(len(common)),),
        "difference in capability Brier": _mean(terms[0] - terms[1], (-1, 1)),
    }


def _mean(terms: Floats, bounds: tuple[float, float] = (0, 1)) -> tuple[object, ...]:
    interval = metrics.mean_interval(terms, bounds=bounds)
    return *interval[:3], "closed form" if len(terms) >= MANY else "bootstrap"
