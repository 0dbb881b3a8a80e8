"""How far two graders of the same answers agree."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from capcal_lib.errors import InputError, naming_extra
from capcal_lib.grading.judgements import PAIR, judges, read_judgements
from capcal_lib.grading.verdicts import read_verdicts
from capcal_lib.metrics.intervals import Interval, mean_interval
from capcal_lib.runs.run import Run


class Agreement(NamedTuple):
    """What two graders said of the same answers."""

    table: pd.DataFrame  # (verdict of the first, verdict of the second): how many answers
    rate: Interval  # share of the compared answers that both or neither count as right
    kappa: float  # Cohen's: 1 is perfect, 0 is chance; NaN where chance alone agrees always


def agreement(
    first: "pd.Series[str]", second: "pd.Series[str]", clusters: "pd.Series[str]"
) -> Agreement:
    """Compare the verdicts of two graders on the same answers, shape (n_answers,).

    Rate and kappa compare what counts for mu: correct or not, so ``incorrect`` and ``no_answer``
    are the same. An answer that one grader did not score is in the table only. The rate's interval
    treats ``clusters``, the question of each answer, as a whole, since a grader that errs on one
    answer to a question tends to err on the next. `InputError` if both scored no answer in common.

    References: Cohen, "A coefficient of agreement for nominal scales", Educational and
    Psychological Measurement, 1960.

    >>> rules = pd.Series(["correct", "correct", "incorrect", "incorrect"])
    >>> judge = pd.Series(["correct", "incorrect", "incorrect", "no_answer"])
    >>> result = agreement(rules, judge, pd.Series(["a", "a", "b", "c"]))
    >>> result.rate.estimate, result.kappa
    (0.75, 0.5)
    """
    with naming_extra():
        from sklearn.metrics import cohen_kappa_score  # slow to import

    scored = (first != "not_scored") & (second != "not_scored")
    if not scored.any():
        raise InputError("no answer was scored by both graders, so there is nothing to compare")
    right, also = (verdicts[scored] == "correct" for verdicts in (first, second))
    alike = (right == also).to_numpy()
    rate = mean_interval(alike, clusters=clusters[scored].to_numpy(), bounds=(0, 1))
    kappa = float(cohen_kappa_score(right, also)) if len({*right, *also}) > 1 else np.nan
    return Agreement(pd.crosstab(first, second), rate, kappa)


def judge_agreement(run: Run, judge: str) -> Agreement:
    """Compare a judge with the rules on all samples of a graded run whose answers it has judged.

    `InputError` if the judge has judged nothing, or the run is not graded."""
    both = read_verdicts(run).merge(read_judgements(run, judge), on=PAIR, suffixes=("", "_judge"))
    return agreement(both["verdict"], both["verdict_judge"], both["question_id"])


def agreements(runs: Mapping[str, Run]) -> pd.DataFrame:
    """Compare every judge of each data set's run with the rules, as :func:`judge_agreement` does.

    ``runs`` maps data sets to runs. Returns one row per ``dataset`` and ``judge``, the highest
    ``κ`` first: the share of samples on which the two ``agree``, in [0, 1], and Cohen's ``κ``. No
    rows if no model has judged.

    >>> agreements({}).columns.tolist()
    ['dataset', 'judge', 'agree', 'κ']
    """
    rows = []
    for dataset, run in runs.items():
        for judge in judges(run):
            both = judge_agreement(run, judge)
            rows.append([dataset, judge, both.rate.estimate, both.kappa])
    table = pd.DataFrame(rows, columns=["dataset", "judge", "agree", "κ"])
    return table.sort_values("κ", ascending=False, ignore_index=True)
