"""What the notebooks show in tables. Computing a table and drawing it are separate functions."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from pandas.io.formats.style import Styler

from capcal_lib.errors import InputError
from capcal_lib.metrics import (
    capability_brier,
    capability_brier_terms,
    correctness_variance,
    expected_response_brier,
    noise_floor,
    spearman,
    uniform_baseline_brier,
)
from capcal_lib.metrics.intervals import Interval, bootstrap_mean

NO_SAMPLES = "no samples of this model yet"


def badge(evidence: object) -> str:
    """Mark where a number comes from, as HTML."""
    return f'<span class="evidence {evidence}">{evidence}</span>'


def show(table: pd.DataFrame, caption: str, *, digits: int = 4, empty: str = NO_SAMPLES, **formats: str) -> Styler:
    """Draw a table: escaped, so many digits unless a column's format says otherwise, badges for evidence."""
    if table.empty:
        table, formats = pd.DataFrame({"": [empty]}), {}
    numbers = (table.dtypes == np.float64) & ~table.columns.isin(list(formats))
    table = table.copy()
    table.loc[:, numbers] = table.loc[:, numbers].round(digits) + 0.0  # no negative zeros
    styler = Styler(table, precision=digits, na_rep="–", thousands=",", escape="html", uuid="table", cell_ids=False)
    styler = styler.format_index(escape="html", axis="columns").hide(axis="index")
    styler = styler.set_caption(caption).set_table_attributes('class="capcal"')
    for column, form in formats.items():
        styler = styler.format(form, subset=[column], na_rep="–", escape="html")
    if "evidence" in table:
        styler = styler.format(badge, subset=["evidence"])
    return styler


def interval_text(interval: Interval, digits: int = 3) -> str:
    """Write an interval's limits, ``[low, high]``; nothing where they are not known."""
    if np.isnan(interval.low):
        return ""
    return f"[{interval.low:z.{digits}f},\u00a0{interval.high:z.{digits}f}]"


def score_file(path: Path) -> list[tuple[str, str, str]]:
    """Score a CSV of question_id, confidence, correct, total; one row of texts a metric.

    Raises
    ------
    InputError
        For a file that cannot be read, missing columns, or values that are not allowed (the row is named).
    """
    try:
        table = pd.read_csv(path)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as CSV: {str(error).splitlines()[0]}") from None
    missing = [name for name in ("question_id", "confidence", "correct", "total") if name not in table]
    if missing:
        raise InputError(f"{path}: no column {', '.join(missing)}; needed: question_id, confidence, correct, total")
    twice = table["question_id"].duplicated()
    if twice.any():
        raise InputError(f"{path}: question_id {table['question_id'][twice].iloc[0]!r} stands in two rows; keep one")
    triple = table["confidence"], table["correct"], table["total"]
    counted = triple[1:]
    rng = np.random.default_rng(0)
    rows = [("questions", f"{len(table)}", ""), ("capability Brier, plug-in", f"{capability_brier(*triple):.4f}", "")]
    if (table["total"] > 1).all():
        corrected = bootstrap_mean(capability_brier_terms(*triple, corrected=True), rng=rng)
        rows += [
            ("capability Brier, corrected", f"{corrected.estimate:z.4f}", interval_text(corrected, 4)),
            ("uniform random, corrected", f"{uniform_baseline_brier(*counted, corrected=True):z.4f}", ""),
            ("noise floor of the plug-in", f"{noise_floor(*counted):.4f}", ""),
        ]
    rows += [
        ("expected response Brier", f"{expected_response_brier(*triple):.4f}", ""),
        ("correctness variance", f"{correctness_variance(*counted):.4f}", ""),
        ("Spearman with mu_hat", f"{spearman(*triple):z.4f}", ""),
    ]
    return rows


def stack(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Put tables of one form under each other; no tables make an empty one."""
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()
