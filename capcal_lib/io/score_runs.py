"""Score the graded runs of models, side by side."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from capcal_lib.errors import InputError
from capcal_lib.io.score_file import (
    CAPABILITY_PLUG_IN,
    CORRECTED,
    GAIN,
    Scored,
    score_counts,
    spell_score,
)
from capcal_lib.results.counting import Counting
from capcal_lib.results.judged import compare_recalibrated, compare_with_constant
from capcal_lib.results.results import VOTES, describe_runs, results_of, subjects
from capcal_lib.results.scores import score
from capcal_lib.results.terms import COUNTS, FEWEST
from capcal_lib.runs.run import more_samples, store_option
from capcal_lib.runs.status import survey
from capcal_lib.runs.store import present_keys
from capcal_lib.text import counted, spell

SIGNS = {"better": "+", "worse": "-"}
RECALIBRATED = {"better": "(+)", "worse": "(-)"}
LEGEND = [
    CORRECTED,
    "+ closer than the best constant, - farther, after Holm over all data sets",
    "(+) closer, (-) farther once it is recalibrated on labels of other questions",
    "* may be best: no other is significantly better on questions that both have",
]
GAINS = {  # columns of compare_with_constant, as the rows for programs name them
    "estimate": "gain",
    "low": "gain_low",
    "high": "gain_high",
    "p (Holm)": "p_after_holm",
    "verdict": "verdict_after_holm",
    "could be won": "could_be_won",
}
HEADS = {"brier": CORRECTED, "plug_in": CAPABILITY_PLUG_IN, "gain": GAIN}  # of a report


def score_models(
    store: Path, models: Sequence[str], *, datasets: Sequence[str] | None = None, **asked: Any
) -> Scored:
    """Score the runs of models in a store, and say what the scores do not show.

    ``asked`` are the other fields of a ``results.Counting``; None takes all ``datasets``. Whether a
    method is closer than the best constant is judged with all data sets of its model, also where
    fewer are shown. `InputError` for a model without a graded run."""
    above, problems, rows = [], [], []
    parts, columns = {}, {}
    for model in models:
        counting = Counting(store, model, **asked)
        results = results_of(counting, datasets)
        if results.empty:
            step = f"capcal status --model {model}{store_option(store)}"
            for command in survey(store, model).query("verdicts == 'no'")["command"][:1]:
                step = command
            raise InputError(f"{store} has no graded run of {model}; go on with: {step}")
        runs = describe_runs(counting, datasets)
        problems += runs.attrs["problems"] + results.attrs["stale"]
        judged = results
        if datasets is not None:
            try:
                judged = results_of(counting)
            except InputError as error:
                problems.append(f"{model}: only the data sets shown are judged together: {error}")
        scores = score(results).join(_judge(judged))
        rows.append(scores.reset_index().assign(model=model))
        columns[model] = _spell(scores)
        for run in runs.reset_index().to_dict("records"):
            questions = results.loc[run["dataset"]]
            counts = questions[COUNTS].assign(
                cluster=subjects(results.loc[[run["dataset"]]]).to_numpy()
            )
            of_run = scores[scores.index.isin([run["dataset"]], 0)].droplevel(0)
            title = f"{model} on {run['dataset']}, {run['evidence']}"
            parts[title] = (
                of_run.rename(columns=HEADS),
                questions.drop(columns=VOTES, errors="ignore"),
            )
            above += [title, *(f"  {line}" for line in _describe(run, of_run, counts))]
    table = pd.concat(columns, axis="columns").fillna("")
    return Scored(above, table, LEGEND if len(table) else [], rows, parts, problems)


def _judge(results: pd.DataFrame) -> pd.DataFrame:
    """Judge the methods of a model against the best constant, as they are and recalibrated."""
    tables = []
    for compare in (compare_with_constant, compare_recalibrated):
        judged = compare(results).set_index(["dataset", "method"])[[*GAINS]].rename(columns=GAINS)
        tables.append(judged.astype({"verdict_after_holm": object}))
    as_it_is, recalibrated = tables
    recalibrated = recalibrated.drop(columns="could_be_won").add_prefix("recalibrated_")
    return as_it_is.join(recalibrated)


def _spell(scores: pd.DataFrame) -> "pd.Series[str]":
    """Spell each score with its interval, and what was judged of it."""
    few = scores["questions"] < FEWEST
    limits = scores[["brier"]].join(scores[["low", "high"]].mask(few))
    texts = pd.Series([spell(*row) for row in limits.to_numpy()], scores.index)
    signs = scores["verdict_after_holm"].map(SIGNS).fillna("")
    signs += scores["recalibrated_verdict_after_holm"].map(RECALIBRATED).fillna("")
    return texts + signs + scores["may_be_best"].map({True: "*"}).fillna("")


def _describe(run: Any, scores: pd.DataFrame, counts: pd.DataFrame) -> list[str]:
    """Say what the scores of a run do not show; ``counts`` are those of its questions, and the
    ``cluster`` of each.
    """
    scored = counts[counts["total"] > 0]
    accuracy = spell_score(score_counts(scored), "accuracy")
    few = ", too few for intervals" if len(scored) < FEWEST else ""
    lines = [
        f"accuracy {accuracy}",
        f"{counted(len(counts), 'question')}{few}; scored samples of each: {run['fewest']} to "
        f"{run['most']}",
    ]
    drawn = len(present_keys(run["run"]))
    if drawn > run["samples"]:
        lines.append(f"{run['samples']:,} of {drawn:,} samples count; --k-eval counts more")
    if single := int((counts["total"] < 2).sum()):
        lines.append(
            f"{counted(single, 'question')} with fewer than two scored samples, which have no "
            f"score; add some with: {more_samples(run['run'], 2)}"
        )
    most = scores["questions"].max()
    for method, number in scores["questions"].items():
        if number < most:
            lines.append(f"{method}: scored on {number:,} of {counted(most, 'question')}")
    if run["not scored"]:
        lines.append(
            f"{run['not scored']:.1%} of the samples are not scored: accuracy "
            f"{run['all wrong']:.3f} with them wrong, {run['all right']:.3f} right"
        )
    return lines
