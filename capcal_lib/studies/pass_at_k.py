"""Test whether a confidence predicts pass@k, the chance that one of k attempts is correct (section
5.1 and appendix D.1 of the paper).

A probe predicts it in two ways. *Plug-in* assumes that each attempt succeeds with the probability
that the probe predicts. *Posterior* takes this probability as the mean of a distribution, whose
concentration is known from the training questions. Confidences that ask the model are plug-in, and
one half if they are missing. The *best constant* is a posterior too. Its concentration is fitted to
the very questions shown, which favours it.

``results`` is a table from ``load_results`` with a column ``Best constant``, and ``concentration``
is a column of ``probes.describe_probes``. A probe from the paper's recipe is five probes, whose
errors are averaged."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from capcal_lib import metrics
from capcal_lib.applications import (
    deep_samples,
    fit_concentration,
    pass_at_k,
    pass_at_k_error_terms,
    simulate_pass_at_k,
    split_counts,
)
from capcal_lib.manifests import load_dataset
from capcal_lib.metrics.validation import Floats
from capcal_lib.probe_names import PLUG_IN, POSTERIOR
from capcal_lib.results.estimated import columns_of
from capcal_lib.results.judged import gains_over, judge_cases
from capcal_lib.results.results import subjects
from capcal_lib.results.scores import (
    MISSING_AS,
    deepest_questions,
    nearest_probe_of,
    own_columns,
    questions_predicted,
    stated_methods,
    well_sampled,
)
from capcal_lib.results.targets import accuracy_variance
from capcal_lib.results.terms import BEST_CONSTANT, mark_best

ACTUAL = "Actual"
POWERS = tuple(2**n for n in range(7))  # the k of a curve
Predicted = dict[str, list[Floats]]  # by method, a member each


def most_varied(results: pd.DataFrame) -> str:
    """Choose the data set whose questions differ most, by ``accuracy_variance``, among the data
    sets that are ``well_sampled``. The variance of a data set with a single question is 0.
    """
    spread = accuracy_variance(results).fillna(0)
    return str(spread[spread.index.isin(well_sampled(results))].idxmax())


def predict_pass_at_k(
    subset: pd.DataFrame,
    ks: Sequence[int],
    *,
    probe: str | None = None,
    concentration: "pd.Series[float] | None" = None,
) -> Predicted:
    """Predict pass@k for the questions of one data set with each method: the best constant, a probe
    in its two ways, and the confidences that ask the model.

    A method has a list of members, each of shape (n_questions, n_ks): five for the paper's recipe,
    else one.
    """
    constant = subset[BEST_CONSTANT]
    nu = fit_concentration(constant, subset["correct"], subset["total"])
    predicted = {BEST_CONSTANT: [simulate_pass_at_k(constant, ks, concentration=nu)]}
    if probe is not None and concentration is not None:
        members = [subset[column] for column in columns_of(subset, probe)]
        nu = concentration[probe]
        predicted[PLUG_IN] = [simulate_pass_at_k(s, ks) for s in members]
        predicted[POSTERIOR] = [simulate_pass_at_k(s, ks, concentration=nu) for s in members]
    for name in stated_methods(subset):
        predicted[name] = [simulate_pass_at_k(subset[name].fillna(MISSING_AS), ks)]
    return predicted


def pass_at_k_curves(subset: pd.DataFrame, predicted: Predicted, ks: Sequence[int]) -> pd.DataFrame:
    """Return the mean pass@k over questions, measured and predicted, with one row per ``method``
    and ``k``.

    ``estimate`` is the mean. The paper's band around the plug-in is ``low`` to ``high``, which are
    NaN for other methods.
    """
    actual = pass_at_k(subset["correct"], subset["total"], ks)
    columns = {name: np.mean(members, axis=0).mean(axis=0) for name, members in predicted.items()}
    means = pd.DataFrame(columns | {ACTUAL: actual.mean(axis=0)})
    curves = means.set_axis(pd.Index(ks, name="k")).melt(
        ignore_index=False, var_name="method", value_name="estimate"
    )
    plug_in = curves["method"] == PLUG_IN
    half = np.full(len(curves), np.nan)
    if PLUG_IN in predicted:
        half[plug_in] = np.mean([half_band(member) for member in predicted[PLUG_IN]], axis=0)
    return curves.assign(
        low=curves["estimate"] - half, high=curves["estimate"] + half
    ).reset_index()


def curves_by_set(
    results: pd.DataFrame, names: Sequence[str], concentration: "pd.Series[float]"
) -> pd.DataFrame:
    """Return the curves of :func:`pass_at_k_curves` on each data set, named in a column
    ``dataset``.

    The curves are for the questions with most samples, predicted with the nearest probe.
    """
    tables = []
    for name in names:
        whole = deepest_questions(questions_predicted(results.loc[[name]], name))
        ks = [k for k in POWERS if k <= whole["total"].min()]
        probe = nearest_probe_of(whole, name)
        predicted = predict_pass_at_k(whole, ks, probe=probe, concentration=concentration)
        tables.append(pass_at_k_curves(whole, predicted, ks).assign(dataset=name))
    return pd.concat(tables, ignore_index=True)


def half_band(predicted: Floats) -> Floats:
    """Return half the width of the paper's 95 % band around the mean of predicted pass@k, (n_ks,).

    It says how far one draw of k attempts per question falls from its expectation if every
    confidence is exactly right (appendix D.1.1).

    >>> half_band(np.array([[0.5], [1.0]])).round(2)
    array([0.49])
    """
    deviation = np.sqrt((predicted * (1 - predicted)).sum(axis=0))
    return np.asarray(1.96 * deviation / len(predicted))


def pass_at_k_errors(
    subset: pd.DataFrame, predicted: Predicted, ks: Sequence[int]
) -> dict[int, pd.DataFrame]:
    """Return the unbiased squared error of each method on each question, for each k.

    A table has one row per question, which is NaN if the question has fewer than 2k samples.
    """
    counts = subset["correct"], subset["total"]
    terms = {
        name: np.mean([pass_at_k_error_terms(member, *counts, ks) for member in members], axis=0)
        for name, members in predicted.items()
    }
    return {
        k: pd.DataFrame({name: values[:, place] for name, values in terms.items()}, subset.index)
        for place, k in enumerate(ks)
    }


def oracle_errors(
    subset: pd.DataFrame, ks: Sequence[int], *, seed: int = 0
) -> dict[int, pd.DataFrame]:
    """Return the errors of two oracles, as in :func:`pass_at_k_errors`.

    Each oracle knows a random half of each question's samples and is scored on the other half.
    Errors are means over ten halves. *Oracle CC* knows the share of its half that is correct.
    *Oracle RC* knows the verdict of one sample of its half, in expectation.
    """
    counts = subset["correct"], subset["total"]
    rng = np.random.default_rng(seed)
    halves = []
    for _ in range(10):
        known, rest = split_counts(*counts, rng=rng)
        share = (known[0] / known[1])[:, None]
        promised = simulate_pass_at_k(share[:, 0], ks)
        right = pass_at_k_error_terms(np.ones_like(promised), *rest, ks)
        wrong = pass_at_k_error_terms(np.zeros_like(promised), *rest, ks)
        of_mean = pass_at_k_error_terms(promised, *rest, ks)
        halves.append([of_mean, share * right + (1 - share) * wrong])
    of_mean, of_one = np.mean(halves, axis=0)
    return {
        k: pd.DataFrame(
            {"Oracle CC": of_mean[:, place], "Oracle RC": of_one[:, place]}, subset.index
        )
        for place, k in enumerate(ks)
    }


def score_pass_at_k(
    errors: dict[int, pd.DataFrame], oracles: dict[int, pd.DataFrame]
) -> pd.DataFrame:
    """Score predictions of pass@k by the mean error of each method, with its interval.

    Returns a table indexed by (dataset, method) for ``book.tables.show_scores``. Its ``dataset``
    names k and the number of questions. The columns are ``brier``, ``low``, ``high``,
    ``may_be_best``, for which neither the constant nor the oracles compete, and the number of
    ``questions`` of a row: an oracle may have fewer, because it needs twice the samples.
    """
    tables = {}
    for k, terms in errors.items():
        groups = subjects(terms).to_numpy()
        compared = metrics.compare(terms, clusters=groups, bounds=(0, 1))
        of_oracles = metrics.compare(oracles[k], clusters=groups, bounds=(0, 1))
        questions = terms.join(oracles[k]).count()
        scored = pd.concat([compared, of_oracles]).assign(questions=questions)
        scored["may_be_best"] = mark_best(terms, groups)
        tables[f"pass@{k}, {questions.max()} questions"] = scored
    table = pd.concat(tables, names=["dataset", "method"])
    return table.rename(columns={"estimate": "brier"})


def plug_in_errors(subset: pd.DataFrame, predicted: Predicted, ks: Sequence[int]) -> pd.DataFrame:
    """Score predictions under the paper's protocol: the mean squared distance of plug-in
    predictions from the measured pass@k, with one row per method and one column ``pass@k`` per k.

    Both oracles are made from the very samples that score them (*in sample*), so Oracle CC can
    hardly fail. A value is NaN if no question has k samples.
    """
    counts = subset["correct"], subset["total"]
    measured = pass_at_k(*counts, ks)
    mu = (counts[0] / counts[1]).to_numpy()[:, None]
    plug_in = {"Oracle CC (in sample)": [simulate_pass_at_k(mu[:, 0], ks)]}
    for name, members in predicted.items():
        if name not in (POSTERIOR, BEST_CONSTANT):
            plug_in[name] = members
    squared = {
        name: np.mean([(member - measured) ** 2 for member in members], axis=0)
        for name, members in plug_in.items()
    }
    squared["Oracle RC (in sample)"] = mu * (1 - measured) ** 2 + (1 - mu) * measured**2
    means = pd.DataFrame({name: pd.DataFrame(squares).mean() for name, squares in squared.items()})
    means.index = pd.Index([f"pass@{k}" for k in ks])
    return means.T.rename_axis("method")


def plug_in_errors_by_set(
    results: pd.DataFrame,
    names: Sequence[str],
    ks: Sequence[int],
    concentration: "pd.Series[float]",
) -> pd.DataFrame:
    """Score predictions under the paper's protocol on each data set, as :func:`plug_in_errors`
    does.

    Returns one row per ``dataset``, its number of ``questions``, and ``method``, in which the
    nearest probe has its own name. All ``ks`` are scored on the same questions, those with most
    samples, and a k above their number of samples is left out.
    """
    tables = {}
    for name in names:
        whole = deepest_questions(questions_predicted(results.loc[[name]], name))
        within = [k for k in ks if k <= whole["total"].min()]
        probe = nearest_probe_of(whole, name)
        predicted = predict_pass_at_k(whole, within, probe=probe, concentration=concentration)
        errors = plug_in_errors(whole, predicted, within).rename(index={PLUG_IN: probe})
        tables[name, len(whole)] = errors
    return pd.concat(tables, names=["dataset", "questions", "method"])


def compare_pass_at_k(
    results: pd.DataFrame, concentration: "pd.Series[float]", *, k: int = 4
) -> pd.DataFrame:
    """Compare predictions of pass@k on each data set that has a probe of its own, all together by
    Holm's method.

    Both ways of the probe are compared with the best constant, and the posterior is compared with
    the plug-in. Questions need 2k samples. Returns one row per case: ``dataset``, ``method``,
    ``rival`` and the columns of :func:`~capcal_lib.results.judged.judge_cases`, with ``could be
    won``. There are no rows without a probe or without enough samples.
    """
    terms = []
    for name, subset in results.groupby(level="dataset", sort=False):
        columns = own_columns(subset, str(name))
        if columns:
            known = subset.dropna(subset=columns)
            probe = load_dataset(str(name)).probe
            predicted = predict_pass_at_k(known, [k], probe=probe, concentration=concentration)
            errors = pass_at_k_errors(known, predicted, [k])[k].dropna()
            if len(errors):
                terms.append(errors)
    gains: dict[Any, Any] = {}
    perfect: dict[Any, Any] = {}
    for errors in terms:
        for rival in (BEST_CONSTANT, PLUG_IN):
            ways = [way for way in (PLUG_IN, POSTERIOR) if way != rival]
            of_rival = gains_over(errors[[rival, *ways]], rival, rival)
            gains |= of_rival
            perfect |= dict.fromkeys(of_rival, errors[rival])  # without error, all of it is gained
    return judge_cases(gains, ["dataset", "method", "rival"], perfect=perfect)


def check_bands(results: pd.DataFrame, ks: Sequence[int]) -> pd.DataFrame:
    """Check whether the paper's band around the plug-in of a data set's own probe contains the
    measured pass@k.

    Returns one row per data set, probe and k, up to the number of samples that most questions have:
    ``dataset``, ``k``, the means ``predicted`` and ``measured``, ``half the band``, and whether the
    band ``held``. Each of the five probes from the paper's recipe has rows of its own.
    """
    rows = []
    for name, subset in results.groupby(level="dataset", sort=False):
        for column in own_columns(subset, str(name)):
            known = subset.dropna(subset=column)
            deepest = deep_samples(known["total"])
            for k in [k for k in ks if k <= deepest]:
                having = known[known["total"] >= k]
                predicted = simulate_pass_at_k(having[column], [k])
                measured = pass_at_k(having["correct"], having["total"], [k]).mean()
                rows.append([name, k, predicted.mean(), measured, half_band(predicted)[0]])
    columns = ["dataset", "k", "predicted", "measured", "half the band"]
    table = pd.DataFrame(rows, columns=columns)
    gap = (table["predicted"] - table["measured"]).abs()
    return table.assign(held=gap <= table["half the band"])
