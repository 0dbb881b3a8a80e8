"""One tidy table of a model's runs: one row per question, with the counts of its verdicts and one
column per method.

Every table here is indexed by data set, or by (dataset, question_id), and joins by that index.
Loading reads what the store keeps and computes nothing else: a probe has a column if ``capcal
probe`` has trained it and kept its predictions.

**Which samples count.** The samples 0 to k_eval - 1 of a question define its expected accuracy.
The first k_c of them are the vote of *Response consistency*. Only the others may judge the vote;
their counts are the columns ``votes correct`` and ``votes total``, which ``estimates`` puts
beside it. For the Brier score, k_c samples vote and are scored against the rest, over many splits,
so that no sample judges itself and none is set aside. A question's means over the splits are the
columns ``votes term`` and ``votes plug-in``."""

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from capcal_lib.confidence.consistency import (
    answers_of,
    mean_tokens,
    paper_consistency,
    split_votes,
)
from capcal_lib.confidence.of_run import TITLES, confidences_of
from capcal_lib.errors import InputError
from capcal_lib.grading.counts import count_run, count_verdicts
from capcal_lib.grading.judgements import verdicts_by
from capcal_lib.manifests import load_dataset
from capcal_lib.probes import ProbeRecipe, order_probes, predictions_of
from capcal_lib.questions import subjects_of
from capcal_lib.results.counting import Counting
from capcal_lib.results.terms import COUNTS, accuracy_bounds
from capcal_lib.runs.artifacts import VERDICTS
from capcal_lib.runs.run import Choice, Run
from capcal_lib.runs.store import present_keys

INDEX = ["dataset", "question_id"]
DESCRIBED = [
    "title",
    "prompts",
    "questions",
    "fewest",
    "most",
    "samples",
    "not scored",
    "all wrong",
    "all right",
    "tokens",
    "evidence",
    "run",
]
CONSISTENCY = "Response consistency"
K_C = 10  # samples whose votes are counted as a cost
PAPER_VOTES = 5, 10, 20  # of table 6
SPLIT_TERMS = ["votes term", "votes plug-in"]  # means over the splits
VOTES = ["votes correct", "votes total", *SPLIT_TERMS]


def load_results(
    store: Path | str,
    model: str,
    *,
    datasets: Iterable[str] | None = None,
    k_eval: int = 100,
    k_c: int = 10,
    verdicts: str = "rules",
    choice: Choice | None = None,
    held_out: bool = True,
    recipe: ProbeRecipe | None = "tuned",
) -> pd.DataFrame:
    """Load the counts and confidences of a model's graded runs on evaluation splits.

    Returns a table indexed by (dataset, question_id): ``correct`` and ``total`` (scored samples, at
    most k_eval), then one column per method with its confidences in [0, 1], probes last; NaN if a
    question has none. The counts that may judge votes follow (see the head of this module). Empty
    if nothing is graded.

    ``datasets`` are names; None takes all that have a graded run, largest first. The first
    ``k_eval`` samples define mu_hat, and the first ``k_c`` of them vote; without ``held_out`` they
    judge themselves, as in the paper's code, and there are no columns for the other samples.
    ``verdicts`` names the grader: ``rules``, or ``judge:MODEL`` for short and mathematical answers.
    ``choice`` picks one of several runs on a split, such as ``{"seed": 1}``: see ``runs.find_run``.

    ``recipe`` is the probes' recipe, see ``probes.keep_predictions``; None leaves them out. Under
    the paper's recipe a probe has five columns, such as ``Probe (MATH) [0]`` to ``[4]``; every
    number is computed for each and then averaged (``results.estimates``). Predictions whose
    files have changed are left out and named in ``results.attrs["stale"]``.

    `InputError`, with what to do, if the store does not exist, the model is unknown, a named data
    set has no graded run, the judge has not judged all answers, or a file is corrupt.

    >>> from capcal_lib.places import RECORDED_RUNS
    >>> results = load_results(RECORDED_RUNS, "smollm2-135m", datasets=["mini-exam"])
    >>> list(results)[:5]
    ['correct', 'total', 'Verbalized confidence', 'P(True)', 'Response consistency']
    >>> list(results)[-6:-2]
    ['Probe (Mini exam)', 'Probe (TriviaQA)', 'votes correct', 'votes total']
    """
    counting = Counting(
        store,
        model,
        k_eval=k_eval,
        k_c=k_c,
        verdicts=verdicts,
        choice=choice,
        held_out=held_out,
        recipe=recipe,
    )
    return results_of(counting, datasets)


def results_of(
    counting: Counting, datasets: Iterable[str] | None = None, *, votes: Collection[int] = ()
) -> pd.DataFrame:
    """Load the results that a counting asks for, as :func:`load_results` does.

    With several numbers of ``votes``, such as 5, 10 and 20, the votes of each question's first
    samples judge themselves, as in the paper's code. They take the place of *Response consistency*
    in one column per number, named by :func:`votes_title`. ``attrs["evidence"]`` says for each data
    set whether its samples are measured or simulated."""
    most = max(counting.k_eval, counting.k_c, *votes)
    tables = {}
    evidence = {}
    stale: list[str] = []
    probes: list[str] = []
    for name, run in counting.runs(datasets).items():
        rows = verdicts_by(run, counting.verdicts)
        rows = rows[rows["sample_index"] < most]
        table = count_verdicts(rows, k=counting.k_eval)[COUNTS]
        voted = _votes_of(answers_of(rows), counting, votes)
        for method, confidences in confidences_of(run).items():
            table[method] = confidences["confidence"]
        if len(voted) or votes:
            table = table.join(voted)
        if counting.recipe is not None:
            predicted, stale_here = predictions_of(
                run, recipe=counting.recipe, verdicts=counting.verdicts
            )
            probes += map(str, predicted)
            stale += stale_here
            table = table.join(predicted)
        tables[name] = table
        evidence[name] = evidence_of_run(run)
    if datasets is None:
        names = sorted(tables, key=lambda name: len(tables[name]), reverse=True)  # and stable
        tables = {name: tables[name] for name in names}
    results = _below_one_another(tables)
    first = [*COUNTS, *TITLES.values(), CONSISTENCY, *map(votes_title, votes)]
    last = [*order_probes({*probes}), *VOTES]
    others = sorted({*map(str, results)} - {*first, *last})  # methods of one's own
    results = results.filter([*first, *others, *last])
    results.attrs["stale"] = stale
    results.attrs["evidence"] = evidence
    return results


def _below_one_another(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Join tables of data sets; of none, return one without rows that has the counts."""
    nothing = pd.DataFrame(columns=COUNTS, index=pd.Index([]), dtype=np.int64)
    return pd.concat(tables or {"": nothing}, names=INDEX)


def _votes_of(answers: pd.DataFrame, counting: Counting, numbers: Collection[int]) -> pd.DataFrame:
    """Return the votes on each question of a run, and by what they may be judged."""
    if numbers:
        titles = {votes_title(number): number for number in numbers}
        return pd.DataFrame({t: paper_consistency(answers, n) for t, n in titles.items()})
    if not counting.held_out:
        return paper_consistency(answers, counting.k_c).to_frame(CONSISTENCY)
    pool = answers[answers["sample_index"] < counting.k_eval]
    return split_votes(pool, counting.k_c).set_axis([CONSISTENCY, *VOTES], axis="columns")


def votes_title(number: int) -> str:
    """Return the title of a vote of so many samples.

    >>> votes_title(5)
    'Response consistency, 5 votes'
    """
    return f"{CONSISTENCY}, {number} votes"


def describe_runs(counting: Counting, datasets: Iterable[str] | None = None) -> pd.DataFrame:
    """Describe the runs behind a model's results: one row per data set, in the order of
    ``load_results``.

    Returns a table indexed by dataset: its ``title``; the ``prompts`` style; ``questions``; scored
    samples per question, ``fewest`` to ``most``; all ``samples`` counted, and the share that is
    ``not scored``; the mean expected accuracy if unscored samples were ``all wrong`` or ``all
    right``; mean completion ``tokens`` of a sample; ``evidence``, measured or simulated; and the
    ``run``. ``attrs["problems"]`` names damaged files, and runs with samples that have no
    verdict."""
    rows = {}
    runs = counting.runs(datasets)
    for name, run in runs.items():
        counts = count_run(run, counting.k_eval, counting.verdicts)
        total, lost = counts["total"], counts["not_scored"].sum()
        samples = total.sum() + lost
        rows[name] = [
            load_dataset(name).title,
            run.identity.prompt_style,
            len(counts),
            total.min(),
            total.max(),
            samples,
            lost / samples,
            *accuracy_bounds(counts),
            mean_tokens(run),
            evidence_of_run(run),
            run,
        ]
    table = pd.DataFrame.from_dict(rows, orient="index", columns=DESCRIBED).rename_axis("dataset")
    if datasets is None:
        table = table.sort_values("questions", ascending=False, kind="stable")
    table.attrs["problems"] = [problem for run in runs.values() for problem in _problems(run)]
    return table


def evidence_of_run(run: Run) -> str:
    """Say whether the samples of a run are measured or simulated."""
    return "simulated" if run.identity.engine == "simulated" else "measured"


def _problems(run: Run) -> list[str]:
    """Describe a run's damage, or else the samples that have no verdict."""
    try:
        samples = len(present_keys(run))
    except InputError as error:
        return [str(error)]
    verdicts = run.count(VERDICTS)
    if samples > verdicts:
        lacking = f"{samples - verdicts:,} of {samples:,} samples have no verdict"
        return [f"{run}: {lacking}, and do not count; go on with: capcal grade {run.options}"]
    return []


def costs(counting: Counting) -> pd.DataFrame:
    """Return the cost of each method: mean completion tokens per question, indexed by dataset, one
    column per method. Ten votes cost ten answers.

    A probe costs none, since it reads the hidden states of a prompt that is read anyway.
    """
    tables = {}
    for name, run in counting.runs().items():
        tokens = {}
        for method, confidences in confidences_of(run).items():
            tokens[method] = confidences["tokens"].mean()
        counts = count_run(run, counting.k_eval)
        if (counts["total"] + counts["not_scored"]).max() > K_C + 1:
            tokens[CONSISTENCY] = np.round(K_C * mean_tokens(run))  # NaN where none is known
        tables[name] = tokens
    return pd.DataFrame(tables, dtype=np.float64).T.rename_axis("dataset")


def subjects(results: pd.DataFrame) -> "pd.Series[str]":
    """Return the group of each question, which intervals treat as a whole, with the index of
    ``results``.

    The group is the subject if the data set has subjects; else each question is its own group.
    """
    groups = results.index.to_frame()["question_id"]
    datasets = results.index.get_level_values("dataset")
    for dataset in datasets.unique():
        questions = groups[datasets == dataset]
        split = load_dataset(dataset).evaluation_split
        known = subjects_of(dataset, split, questions.tolist())
        if known is not None:
            groups[datasets == dataset] = known
    return groups
