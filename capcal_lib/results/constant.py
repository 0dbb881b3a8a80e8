"""Is a confidence closer to the expected accuracy than the best constant?

This module answers the question for each method on each data set of a model; the pages, the front
page and ``capcal score --model`` take the answer from here. Two families are judged
(:mod:`capcal_lib.results.judged`), each over all data sets of a model: the methods that one can
choose for a data set (its own probe, votes, what the model is asked for, and your own methods), and
the probes that were trained on other data sets."""

import pandas as pd

from capcal_lib import metrics
from capcal_lib.confidence.of_run import TITLES
from capcal_lib.probe_names import training_sets
from capcal_lib.results.estimated import confidence_columns, estimates, methods
from capcal_lib.results.judged import gains_over, judge_cases, tally
from capcal_lib.results.recalibrated import recalibrate
from capcal_lib.results.results import CONSISTENCY, SPLIT_TERMS
from capcal_lib.results.scores import Protocol, best_constant, brier_terms, questions_differ
from capcal_lib.results.terms import BEST_CONSTANT, ORACLE_CC, question_terms
from capcal_lib.shifts import IN_DISTRIBUTION, OUT_OF_DISTRIBUTION, OUT_OF_DOMAIN, shift

KIND_BY_SHIFT = {
    IN_DISTRIBUTION: "probe of the data set",
    OUT_OF_DISTRIBUTION: "probe of the domain",
    OUT_OF_DOMAIN: "probe of another domain",
}
SEVERAL = "probe of several data sets"
ASKED_KINDS = "response consistency", "verbalized confidence", "P(True)"
KINDS = (*KIND_BY_SHIFT.values(), SEVERAL, *ASKED_KINDS, "other")
ELSEWHERE = (KIND_BY_SHIFT[OUT_OF_DISTRIBUTION], KIND_BY_SHIFT[OUT_OF_DOMAIN], SEVERAL)


def compare_with_constant(
    results: pd.DataFrame, *, protocol: Protocol = "corrected"
) -> pd.DataFrame:
    """Judge every method on every data set of one model against the best constant.

    ``results`` come from ``load_results``, for all data sets of a model, or from ``recalibrate``;
    all that is passed here is judged together. A gain is the best constant's mean Brier term minus
    the method's (``brier_terms``, under ``protocol``): above zero the method is closer to the
    expected accuracy. Data sets whose questions all have the same accuracy are left out.

    Returns one row per case: ``dataset``, ``method``, its ``kind``, and the columns of
    :func:`~capcal_lib.results.judged.judge_cases`, with ``could be won``. ``kind`` and ``verdict``
    are categories, so that counts include those that do not occur.

    >>> from capcal_lib.places import RECORDED_RUNS
    >>> from capcal_lib.results import load_results
    >>> judged = compare_with_constant(load_results(RECORDED_RUNS, "simulated"))
    >>> list(judged)[:4], judged["kind"].cat.categories[0]
    (['dataset', 'method', 'kind', 'estimate'], 'probe of the data set')
    """
    terms = brier_terms(results, protocol=protocol)
    constant = best_constant(results[results["total"] > 1])
    gains, perfect, bounds = {}, {}, {}
    for name in terms.index.unique("dataset"):
        dataset = str(name)
        known = constant[constant.index.isin([dataset], 0)].dropna()
        if known.empty or not questions_differ(results.loc[[dataset]]):
            continue  # or no question has two samples, which a score takes
        compared = terms.loc[[dataset], [BEST_CONSTANT, *methods(results), ORACLE_CC]]
        choosable = gains_over(compared, BEST_CONSTANT)
        best = choosable.pop((dataset, ORACLE_CC))
        if CONSISTENCY in results and SPLIT_TERMS[0] not in results:
            # one vote a question, and the constant is judged by the same samples
            judges = estimates(results.loc[[dataset]], CONSISTENCY)
            rival = question_terms(constant, judges, corrected=protocol == "corrected")
            choosable[dataset, CONSISTENCY] = rival - terms.loc[rival.index, CONSISTENCY]
        limits = metrics.bounds_over_constant(known)
        for (_, method), gain in choosable.items():
            kind = kind_of_method(method, dataset)
            case = dataset, method, kind, kind in ELSEWHERE
            gains[case], perfect[case], bounds[case] = gain, best, limits
    names = ["dataset", "method", "kind", "elsewhere"]
    judged = judge_cases(gains, names, bounds=bounds, perfect=perfect, family=["elsewhere"])
    judged["kind"] = pd.Categorical(judged["kind"], KINDS)
    return judged.drop(columns="elsewhere")


def compare_recalibrated(
    results: pd.DataFrame, *, protocol: Protocol = "corrected"
) -> pd.DataFrame:
    """Judge every method except probes against the best constant, after recalibrating it on the
    same labels (``recalibrate``). These cases are a family of their own.

    Returns rows as :func:`compare_with_constant` does. Probes have already learned from labels.
    """
    probes = [name for name in confidence_columns(results) if training_sets(name)]
    return compare_with_constant(recalibrate(results.drop(columns=probes)), protocol=protocol)


def count_by_kind(judged: pd.DataFrame) -> pd.DataFrame:
    """Count the verdicts on each kind of method: how many cases are ``better``, among those that
    ``could be won``, and how many are ``worse``, among all ``cases``.

    ``judged`` is what :func:`compare_with_constant` returns, for one model or for several models
    concatenated. Each of ``KINDS`` has a row; ``other`` only if a method is of no other kind.

    >>> kinds = pd.Categorical(["P(True)", "P(True)", "other"], KINDS)
    >>> judged = pd.DataFrame({"kind": kinds, "verdict": ["worse", "better", "worse"]})
    >>> judged["could be won"] = [False, True, True]
    >>> count_by_kind(judged).loc["P(True)"].to_dict()
    {'better': 1, 'could be won': 1, 'worse': 1, 'cases': 2}
    """
    counts = tally(judged, [judged["kind"]])
    return counts if counts.loc["other", "cases"] else counts.drop(index="other")


def kind_of_method(method: str, dataset: str) -> str:
    """Return the kind of a method on a data set, one of ``KINDS``.

    >>> kind_of_method("Probe (GSM8K)", "gsm8k"), kind_of_method("Probe (GSM8K)", "math500")
    ('probe of the data set', 'probe of the domain')
    >>> kind_of_method("P(True)", "gsm8k"), kind_of_method("My own", "gsm8k")
    ('P(True)', 'other')
    """
    if method == CONSISTENCY:
        return "response consistency"
    if method in TITLES.values():
        return method if method in KINDS else method.lower()
    distance = shift(method, dataset)
    if distance is None:
        return "other"
    if len(training_sets(method)) > 1:
        return SEVERAL
    return KIND_BY_SHIFT[distance]
