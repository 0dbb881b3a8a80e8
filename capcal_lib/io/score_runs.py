"""Score the graded runs of models, side by side."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from capcal_lib.errors import InputError
from capcal_lib.grading.core import UNSCORED
from capcal_lib.io.comparing import BEST
from capcal_lib.io.score_file import (
    CAPABILITY_PLUG_IN,
    CORRECTED,
    GAIN,
    Scored,
    intervals_of,
    score_counts,
    spell_score,
)
from capcal_lib.results.constant import compare_recalibrated, compare_with_constant
from capcal_lib.results.counting import Counting
from capcal_lib.results.results import VOTES, describe_runs, results_of, subjects
from capcal_lib.results.scores import score
from capcal_lib.results.terms import COUNTS, FEWEST
from capcal_lib.runs.run import more_samples, store_option
from capcal_lib.runs.status import survey
from capcal_lib.runs.store import count_samples
from capcal_lib.text import counted, spell

SIGNS = {"better": "+", "worse": "-"}
RECALIBRATED = {"better": "(+)", "worse": "(-)"}
AGAINST = "+ closer than the best constant, - farther, after Holm over all data sets"
ON_LABELS = "(+) closer, (-) farther once it is recalibrated on labels of other questions"
ASIDE = "no star for baselines, oracles, a method alone, or fewer than ten questions"
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
    fewer are shown. `InputError` for a model without a graded run, with what is next for it."""
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
        judged, problem = _compare_all(counting, results, every=datasets is None)
        problems += problem
        scores = score(results).join(judged)
        rows.append(scores.reset_index().assign(model=model))
        few = scores["questions"] < FEWEST
        limits = scores[["brier"]].join(scores[["low", "high"]].mask(few))
        texts = [spell(*row) for row in limits.to_numpy()]
        signs = scores["verdict_after_holm"].map(SIGNS).fillna("")
        signs += scores["recalibrated_verdict_after_holm"].map(RECALIBRATED).fillna("")
        marks = scores["may_be_best"].map({True: "*"}).fillna("")
        columns[model] = pd.Series(texts, scores.index) + signs + marks
        for run in runs.reset_index().to_dict("records"):
            name = run["dataset"]
            title = f"{model} on {name}, {run['evidence']}"
            subset = scores[scores.index.isin([name], 0)].droplevel(0)
            questions = results.loc[name]
            parts[title] = (
                subset.rename(columns=HEADS),
                questions.drop(columns=VOTES, errors="ignore"),
            )
            above.append(f"{title}: {intervals_of(int((questions['total'] > 0).sum()))}")
            counts = questions[COUNTS].assign(cluster=subjects(results.loc[[name]]).to_numpy())
            above += [f"  {line}" for line in _describe(run, subset, counts)]
    table = pd.concat(columns, axis="columns").fillna("")
    below = [CORRECTED, AGAINST, ON_LABELS, f"* {BEST}", ASIDE] if len(table) else []
    return Scored(above, table, below, rows, parts, problems)


def _compare_all(
    counting: Counting, shown: pd.DataFrame, *, every: bool
) -> tuple[pd.DataFrame, list[str]]:
    """Judge the methods of a model, as they are and recalibrated, on all of its data sets, or on
    those shown where the others cannot be read in the same way, and say so.
    """
    results, problems = shown, []
    if not every:
        try:
            results = results_of(counting)
        except InputError as error:
            model = counting.model
            problems = [f"{model}: only the data sets shown are judged together: {error}"]
    tables = []
    for compare in (compare_with_constant, compare_recalibrated):
        judged = compare(results).set_index(["dataset", "method"])[[*GAINS]].rename(columns=GAINS)
        tables.append(judged.astype({"verdict_after_holm": object}))
    as_it_is, recalibrated = tables
    recalibrated = recalibrated.drop(columns="could_be_won").add_prefix("recalibrated_")
    return as_it_is.join(recalibrated), problems


def _describe(run: Mapping[Any, Any], scores: pd.DataFrame, counts: pd.DataFrame) -> list[str]:
    """Say what the scores of a run do not show; ``counts`` are those of its questions, and the
    ``cluster`` of each.
    """
    scored = counts[counts["total"] > 0]
    known = score_counts(scored)
    facts = [f"accuracy {spell_score(known, 'accuracy')}"]
    attempts = [name for name in map(str, known.index) if name.startswith("pass@")]
    if attempts:
        most = attempts[-1]
        fact = f"{most} {spell_score(known, most)}"
        having = int((scored["total"] >= int(most.removeprefix("pass@"))).sum())
        if having < len(scored):
            fact += f" of the {having} with so many samples"
        facts.append(fact)
    samples = str(run["fewest"])
    if run["most"] != run["fewest"]:
        samples += f" to {run['most']}"
    lines = [
        ", ".join(facts),
        f"{counted(len(counts), 'question')}; scored samples of each: {samples}",
    ]
    drawn = count_samples(run["run"])
    if drawn > run["samples"]:
        lines.append(f"{run['samples']:,} of {drawn:,} samples count; --k-eval counts more")
    if unscored := len(counts) - len(scored):
        lines.append(f"{unscored} of them without a scored sample, which count nowhere")
    if single := int((scored["total"] == 1).sum()):
        lines.append(
            f"{single} of them with one scored sample, and a score takes two samples of a "
            f"question; add them with: {more_samples(run['run'], 2)}"
        )
    most = scores["questions"].max()
    for method, number in scores["questions"].items():
        if number < most:
            lines.append(f"{method}: scored on {number:,} of {counted(most, 'question')}")
    if run["not scored"] > UNSCORED:
        bounds = "accuracy {0[all wrong]:.3f} with them wrong, {0[all right]:.3f} right"
        lines.append(f"{run['not scored']:.1%} are not scored: {bounds.format(run)}")
    return lines
