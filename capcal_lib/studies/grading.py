"""Grade the samples of a run with other rules than ours."""

from collections.abc import Callable, Mapping

import pandas as pd

from capcal_lib.grading.verdicts import read_verdicts, run_questions
from capcal_lib.questions import Answer
from capcal_lib.runs import KEY, read_samples
from capcal_lib.runs.run import Run

OURS = "this book's rules"
Rule = Callable[[Answer, str, str], bool]  # the right answer, what was extracted, the response


def regrade(run: Run, rules: Mapping[str, Rule], *, k: int) -> pd.DataFrame:
    """Return the share of each question's first ``k`` samples that each rule calls correct, in
    [0, 1]: one row per question and one column per rule, our own verdicts first.

    A rule gets the right answer, the answer that our rules extracted ("" if they found none), and
    the whole response. Samples that our rules did not score are left out. `InputError` if the run
    is not graded, or its questions are not on this machine.

    >>> from capcal_lib.places import RECORDED_RUNS
    >>> from capcal_lib.runs import find_run
    >>> run = find_run(RECORDED_RUNS, "simulated", "mini-elements", "test")
    >>> regrade(run, {"never": lambda answer, extracted, response: False}, k=10).max().round(1)
    this book's rules    1.0
    never                0.0
    dtype: float64
    """
    rows = read_verdicts(run)
    rows = rows[(rows["sample_index"] < k) & (rows["verdict"] != "not_scored")]
    rows = rows.merge(read_samples(run)[[*KEY, "response"]], on=KEY)
    questions = run_questions(run)
    texts = ["question_id", "extracted", "response"]
    cases = list(rows[texts].fillna("").itertuples(index=False, name=None))
    right = {OURS: rows["verdict"] == "correct"}
    for name, rule in rules.items():
        verdicts = {}
        for case in set(cases):  # many samples are the same
            question_id, extracted, response = case
            verdicts[case] = rule(questions[question_id].answer, extracted, response)
        right[name] = pd.Series(cases, rows.index).map(verdicts)
    return pd.DataFrame(right).groupby(rows["question_id"]).mean()
