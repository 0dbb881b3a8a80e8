"""How often the rules were found wrong, by data set, from answers that were labelled by reading
them: all of ``data_manifests/grading_labels.jsonl``.

A row is a distinct answer to a question in a run of a small model: what was ``extracted``, the
verdicts of the rules (``first``) and of an independent grader (``second``), whether it is
``correct`` by a language model's reading of it beside the accepted answers (null: cannot tell), and
how many samples the label stands for (``weight``). All that the two graders dispute was read or a
sample of it, and a sample of what they agree on. Questions are known by id alone."""

import pandas as pd

from capcal_lib.metrics.grader import GraderError, grader_error
from capcal_lib.places import MANIFESTS


def load_labels() -> pd.DataFrame:
    """Return a row a labelled answer, with its ``dataset``; those that cannot be told are NaN.

    >>> sorted(load_labels()["dataset"].unique())[:2]
    ['gsm8k', 'math500']
    """
    labels = pd.read_json(
        MANIFESTS / "grading_labels.jsonl", lines=True, dtype={"extracted": str, "correct": float}
    )
    folder = labels["run"].str.split("/").str[1]
    return labels.assign(dataset=folder.str.rsplit("-", n=1).str[0])


def measured_error(labels: pd.DataFrame) -> GraderError:
    """Estimate the error of the rules from labels, without those that cannot be told.

    `InputError` where no right or no wrong answer is among them.

    >>> round(measured_error(load_labels()).sensitivity, 3)
    0.974
    """
    labels = labels.dropna(subset="correct")
    says = labels["first"] == "correct"
    return grader_error(says, labels["correct"], labels["weight"], clusters=labels["question_id"])


def error_rates(labels: pd.DataFrame) -> pd.DataFrame:
    """Return how often the rules are right about right answers, and about wrong ones, on each data
    set of which both are labelled.

    A row a (``dataset``, ``answers``), where answers are ``right ones called correct`` and ``wrong
    ones called not correct``: ``estimate``, with Jeffreys' interval ``low`` to ``high`` of as many
    independent labels as would tell as much; higher is better.

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
