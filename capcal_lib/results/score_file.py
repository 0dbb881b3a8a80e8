"""Score one's own confidences: a CSV of question_id, confidence, correct, total, or two of them for a comparison."""

import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from capcal_lib.errors import InputError, sanitize
from capcal_lib.metrics import (
    FewQuestionsWarning,
    Interval,
    capability_brier,
    capability_brier_terms,
    correctness_variance,
    expected_response_brier,
    mean_interval,
    noise_floor,
    spearman,
    uniform_baseline_brier_terms,
)

NUMBERS = ["confidence", "correct", "total"]


def read_confidences(path: Path) -> pd.DataFrame:
    """Read and check a file of confidences and counts: a row a question, indexed by question_id as it is written.

    Raises
    ------
    InputError
        For a file that cannot be read, columns that are missing (those found are listed), rows with too many fields,
        or a value that is not allowed; the row is named by its line and id.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            table = pd.read_csv(path, dtype=str, keep_default_na=False, index_col=False)
    except pd.errors.ParserWarning:
        raise InputError(f"{path}: rows have more fields than the header; quote fields that hold a comma") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as CSV: {sanitize(str(error).splitlines()[0])}") from None
    missing = [name for name in ("question_id", *NUMBERS) if name not in table]
    if missing:
        found = sanitize(", ".join(map(str, table)))
        raise InputError(
            f"{path}: no column {', '.join(missing)}; needed: question_id, {', '.join(NUMBERS)}; found: {found}"
        )
    if table.empty:
        raise InputError(f"{path}: there are no rows")
    numbers = table[NUMBERS].apply(pd.to_numeric, errors="coerce")
    whole = (numbers[["correct", "total"]] % 1 == 0).all(axis="columns")
    rules = {
        "stands in two rows; keep one": table["question_id"].duplicated(),
        "has something else than numbers": numbers.isna().any(axis="columns"),
        "has a confidence outside [0, 1]": ~numbers["confidence"].between(0, 1),
        "has counts that are not whole numbers": ~whole | ~np.isfinite(numbers["total"]),
        "needs a scored sample (total of 1 or more)": numbers["total"] < 1,
        "has more correct samples than scored ones, or fewer than 0": ~numbers["correct"].between(0, numbers["total"]),
    }
    for rule, wrong in rules.items():
        if wrong.any():
            row = int(wrong.to_numpy().argmax())
            values = ", ".join(f"{name} {sanitize(table[name].iloc[row], 40)!r}" for name in NUMBERS)
            name = sanitize(table["question_id"].iloc[row], 80)
            raise InputError(f"{path}, line {row + 2}: question {name!r} {rule}: {values}")
    return numbers.astype({"correct": np.int64, "total": np.int64}).set_index(table["question_id"])


def score_file(path: Path, other: Path | None = None) -> pd.DataFrame:
    """Score a file of confidences; with another one, also the difference of the two on the questions of both.

    Returns
    -------
    DataFrame
        Indexed by ``metric``: its ``value`` and, where there is one, the 95 % interval ``low`` to ``high`` for
        questions like these. The corrected scores need two scored samples of every question. A negative difference
        says that the first file is better.

    Raises
    ------
    InputError
        As :func:`read_confidences` does, and where two files have no question in common or count it differently.
    """
    table = read_confidences(path)
    triple = [table[name].to_numpy() for name in NUMBERS]
    rows: dict[str, Interval] = {
        "questions": _value(len(table)),
        "capability Brier, plug-in": _value(capability_brier(*triple)),
    }
    if (table["total"] > 1).all():
        rows |= {
            "capability Brier, corrected": _mean(capability_brier_terms(*triple, corrected=True)),
            "uniform random, corrected": _mean(uniform_baseline_brier_terms(*triple[1:], corrected=True)),
            "noise floor of the plug-in": _value(noise_floor(*triple[1:])),
        }
    rows |= {
        "expected response Brier": _value(expected_response_brier(*triple)),
        "correctness variance": _value(correctness_variance(*triple[1:])),
        "Spearman with mu_hat": _value(spearman(*triple)),
    }
    if other is not None:
        rows |= _difference(table, read_confidences(other), other)
    return pd.DataFrame.from_dict(rows, orient="index", columns=["value", "low", "high"]).rename_axis("metric")


def _difference(table: pd.DataFrame, other: pd.DataFrame, path: Path) -> dict[str, Interval]:
    common = table.index.intersection(other.index)
    if common.empty:
        raise InputError(f"{path}: no question_id in common with the first file")
    first, second = table.loc[common], other.loc[common]
    unlike = (first[["correct", "total"]] != second[["correct", "total"]]).any(axis="columns")
    if unlike.any():
        raise InputError(
            f"{path}: question {sanitize(common[unlike][0], 80)!r} has other counts than in the first file"
        )
    counts = first["correct"].to_numpy(), first["total"].to_numpy()
    terms = [capability_brier_terms(each["confidence"].to_numpy(), *counts) for each in (first, second)]
    return {"questions in common": _value(len(common)), "difference in capability Brier": _mean(terms[0] - terms[1])}


def _value(number: float) -> Interval:
    return Interval(float(number), np.nan, np.nan)


def _mean(terms: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> Interval:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FewQuestionsWarning)
        return mean_interval(terms, rng=np.random.default_rng(0))
