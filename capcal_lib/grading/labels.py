"""How often the rules are wrong, by data set, from labelled answers:
``data_manifests/grading_labels.jsonl``.

A row is a distinct answer to a question in a run of a small model: what was ``extracted``; the
verdicts of the rules (``first``) and of an independent grader (``second``); whether it is
``correct`` according to a language model that read it beside the accepted answers (null: cannot
tell); and how many samples the label stands for (``weight``). The labels cover answers that the two
graders dispute (all, or a sample) and a sample of those on which they agree. Questions are given by
id only."""

import pandas as pd

from capcal_lib.metrics.grader import GraderError, grader_error
from capcal_lib.places import MANIFESTS


def load_labels() -> pd.DataFrame:
    """Return one row per labelled answer, with its ``dataset``; ``correct`` is NaN if undecided.

    >>> sorted(load_labels()["dataset"].unique())[:2]
    ['gsm8k', 'math500']
    """
    labels = pd.read_json(
        MANIFESTS / "grading_labels.jsonl", lines=True, dtype={"extracted": str, "correct": float}
    )
    folder = labels["run"].str.split("/").str[1]
    return labels.assign(dataset=folder.str.rsplit("-", n=1).str[0])


def measured_error(labels: pd.DataFrame) -> GraderError:
    """Estimate the error of the rules from labels; undecided labels are left out.

    `InputError` if there is no right, or no wrong, answer among them.

    >>> round(measured_error(load_labels()).sensitivity, 3)
    0.974
    """
    labels = labels.dropna(subset="correct")
    says = labels["first"] == "correct"
    return grader_error(says, labels["correct"], labels["weight"], clusters=labels["question_id"])


def error_rates(labels: pd.DataFrame) -> pd.DataFrame:
    """Return how often the rules are right about right answers, and about wrong ones, on each data
    set with labels of both.

    One row per ``dataset`` and ``answers`` (``right ones called correct`` or ``wrong ones called
    not correct``): the ``estimate``, higher being better, with Jeffreys' interval ``low`` to
    ``high`` for the effective number of labels.

    >>> error_rates(load_labels())["estimate"].round(3).loc["gsm8k"].tolist()
    [0.951, 1.0]
    """
    from scipy.stats import beta  # slow to import

    rows = {}
    for dataset, subset in labels.groupby("dataset"):
        if subset["correct"].nunique() < 2:
            continue
        error = measured_error(subset)
        rates = {
            "right ones called correct": (error.sensitivity, error.right),
            "wrong ones called not correct": (error.specificity, error.wrong),
        }
        for answers, (rate, number) in rates.items():
            low, high = beta.ppf([0.025, 0.975], number * rate + 0.5, number * (1 - rate) + 0.5)
            rows[dataset, answers] = [rate, low, 1.0 if rate == 1 else high]
    table = pd.DataFrame(rows, ["estimate", "low", "high"]).T
    return table.rename_axis(["dataset", "answers"])
