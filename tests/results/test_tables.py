"""Each table against its naive definition, on evaluations of two to four questions."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from capcal_lib.confidence import estimated
from capcal_lib.grading.counts import Counts
from capcal_lib.manifests import load_dataset, load_model
from capcal_lib.results import tables
from capcal_lib.results.evaluation import Evaluation, Evidence

NAN = float("nan")


def evaluation(
    correct: list[int],
    total: list[int],
    confidences: Mapping[str, list[float]] | None = None,
    *,
    dataset: str = "mini-exam",
    evidence: Evidence = "measured",
    no_answer: list[int] | None = None,
    not_scored: list[int] | None = None,
) -> Evaluation:
    """Put together an evaluation by hand."""
    ids, zeros = [f"q{row}" for row in range(len(correct))], [0] * len(correct)
    counts = Counts(np.array(ids), *(np.array(given or zeros) for given in (correct, total, no_answer, not_scored)))
    return Evaluation(
        model=load_model("simulated"),
        dataset=load_dataset(dataset),
        evidence=evidence,
        sampled=True,
        source="by hand",
        counts=counts,
        answer_tokens=20.0,
        confidences={name: estimated(ids, values, tokens=3) for name, values in (confidences or {}).items()},
    )


FOUR = evaluation(
    [2, 4, 0, 3],
    [4, 4, 4, 6],
    {"P(True)": [0.5, 0.9, 0.2, NAN], "Verbalized confidence": [0.9, 0.9, 0.9, 0.6], "Probe (Mini exam)": [NAN] * 4},
)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_an_empty_table_says_so() -> None:
    for table in (pd.DataFrame(), tables.stack([]), pd.DataFrame(columns=["gap"])):
        html = tables.show(table, "Nothing.", gap="{:.1e}").to_html()
        assert "no samples of this model yet" in html


def test_interval_text() -> None:
    interval = tables.Interval(0.5, 0.12346, 0.9)
    assert tables.interval_text(interval) == "[0.123,\u00a00.900]"
    assert tables.interval_text(interval, 4) == "[0.1235,\u00a00.9000]"
    assert tables.interval_text(tables.Interval(0.5, NAN, NAN)) == ""
    assert tables.interval_text(tables.Interval(0, -1e-9, 0.1)) == "[0.000,\u00a00.100]"
