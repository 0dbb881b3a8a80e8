"""What the notebooks show in tables. Computing a table and drawing it are separate functions."""

from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from pandas.io.formats.style import Styler

from capcal_lib.confidence import Confidence, with_fallback
from capcal_lib.errors import InputError
from capcal_lib.manifests import Dataset, dataset_names, load_dataset, load_model
from capcal_lib.metrics import (
    capability_brier,
    capability_brier_terms,
    correctness_variance,
    correctness_variance_terms,
    expected_response_brier,
    noise_floor,
    null_std,
    spearman,
    uniform_baseline_brier,
    uniform_baseline_brier_terms,
)
from capcal_lib.metrics.intervals import Interval, binomial_interval, bootstrap_mean, bootstrap_means
from capcal_lib.metrics.validation import Floats
from capcal_lib.reported import beta_moments, load_reported
from capcal_lib.results.evaluation import CONSISTENCY, Evaluation
from capcal_lib.sampling.stopping import Rule, stops

UNIFORM, ORACLE_RC, ORACLE_CC = "Uniform random", "Oracle RC", "Oracle CC"
NO_SAMPLES = "no samples of this model yet"
EVEN = "Uniform allocation"
PAPER_K_EVAL = 100
Bools = npt.NDArray[np.bool_]


def badge(evidence: object) -> str:
    """Mark where a number comes from, as HTML."""
    return f'<span class="evidence {evidence}">{evidence}</span>'


def show(table: pd.DataFrame, caption: str, *, digits: int = 4, empty: str = NO_SAMPLES, **formats: str) -> Styler:
    """Draw a table: escaped, so many digits unless a column's format says otherwise, badges for evidence."""
    if table.empty:
        table, formats = pd.DataFrame({"": [empty]}), {}
    numbers = (table.dtypes == np.float64) & ~table.columns.isin(list(formats))
    table = table.copy()
    table.loc[:, numbers] = table.loc[:, numbers].round(digits) + 0.0  # no negative zeros
    styler = Styler(table, precision=digits, na_rep="–", thousands=",", escape="html", uuid="table", cell_ids=False)
    styler = styler.format_index(escape="html", axis="columns").hide(axis="index")
    styler = styler.set_caption(caption).set_table_attributes('class="capcal"')
    for column, form in formats.items():
        styler = styler.format(form, subset=[column], na_rep="–", escape="html")
    if "evidence" in table:
        styler = styler.format(badge, subset=["evidence"])
    return styler


def overview(evaluations: Sequence[Evaluation], rng: np.random.Generator) -> pd.DataFrame:
    """Summarise what is behind a page: one row a data set.

    ``each`` is the number of scored samples a question; ``mean mu_hat`` is over the questions with a scored sample,
    with its bootstrap interval; ``no answer`` and ``not scored`` are shares of all samples.
    """
    rows = []
    for one in evaluations:
        counts = one.counts
        mean = _means(one, counts.expected_accuracy[:, None], rng)[0]
        samples = int(counts.total.sum() + counts.not_scored.sum())
        unusable = counts.no_answer.sum() / max(1, samples), counts.not_scored.sum() / max(1, samples)
        facts = (one.dataset.title, one.prompt_style, len(counts), one.samples, samples)
        rows.append((*facts, mean.estimate, interval_text(mean), *unusable, one.evidence))
    columns = ["data set", "prompts", "questions", "each", "samples", "mean mu_hat", "95 % interval"]
    return pd.DataFrame(rows, columns=[*columns, "no answer", "not scored", "evidence"])


def _means(one: Evaluation, terms: npt.NDArray[np.float64], rng: np.random.Generator) -> list[Interval]:
    """Return the mean of each column over the questions that have it, with its interval; draws whole groups."""
    return bootstrap_means(terms, rng=rng, clusters=one.groups)


def targets(evaluations: Sequence[Evaluation]) -> pd.DataFrame:
    """Compare the response target with the capability target: one row a data set.

    ``mean |C - mu|`` is the mean distance of one sample's correctness from mu_hat, exactly
    2 mu_hat (1 - mu_hat) on average over the samples; ``0.1 < mu < 0.9`` is the share of questions whose
    mu_hat lies there; the correctness variance is the corrected one of theorem 2, from the questions with two
    scored samples or more. Questions without a scored sample are left out of all three.
    """
    rows = []
    for one in evaluations:
        c, n = one.counts.correct, one.counts.total
        mu, twice = one.counts.expected_accuracy[n > 0], n > 1
        distance = float(np.mean(2 * mu * (1 - mu))) if len(mu) else np.nan
        between = float(np.mean((mu > 0.1) & (mu < 0.9))) if len(mu) else np.nan
        variance = correctness_variance(c[twice], n[twice], corrected=True) if twice.any() else np.nan
        rows.append((one.dataset.title, len(n), distance, between, variance, one.evidence))
    columns = ["data set", "questions", "mean |C − mu|", "0.1 < mu < 0.9", "correctness variance", "evidence"]
    return pd.DataFrame(rows, columns=columns)


def theorem_2(evaluation: Evaluation) -> pd.DataFrame:
    """Evaluate both sides of theorem 2 for every confidence of an evaluation: one row a method.

    A method is scored on the questions that have its confidence and a scored sample; without any it has no row.
    ``gap`` is capability Brier - (expected response Brier - correctness variance): zero up to rounding.
    """
    rows = []
    for method, confidence in evaluation.confidences.items():
        there = (evaluation.counts.total > 0) & ~np.isnan(confidence.values)
        if not there.any():
            continue
        s, c, n = confidence.values[there], evaluation.counts.correct[there], evaluation.counts.total[there]
        response, variance = expected_response_brier(s, c, n), correctness_variance(c, n)
        capability = capability_brier(s, c, n)
        rows.append((method, response, variance, capability, capability - (response - variance)))
    columns = ["method", "expected response Brier", "correctness variance", "capability Brier", "gap"]
    return pd.DataFrame(rows, columns=columns)


def interval_text(interval: Interval, digits: int = 3) -> str:
    """Write an interval's limits, ``[low, high]``; nothing where they are not known."""
    if np.isnan(interval.low):
        return ""
    return f"[{interval.low:z.{digits}f},\u00a0{interval.high:z.{digits}f}]"


def brier_terms(one: Evaluation, *, corrected: bool = True, fallback: float | None = None) -> pd.DataFrame:
    """Return the capability Brier term of each question (rows) by each method (columns); NaN is not scored.

    Uniform random and the oracles are exact expectations. ``fallback`` fills missing confidences. A question with
    fewer than two scored samples, which the corrected score needs, is not scored by either form.
    """
    counts, scored = one.counts, one.counts.total > 1

    def column(term: Callable[..., Floats], where: Bools, *confidence: Floats) -> Floats:
        values = np.full(len(counts), np.nan)
        if where.any():
            given = [array[where] for array in (*confidence, counts.correct, counts.total)]
            values[where] = term(*given, corrected=corrected)
        return values

    terms = {UNIFORM: column(uniform_baseline_brier_terms, scored)}
    for method, confidence in one.confidences.items():
        values = (confidence if fallback is None else with_fallback(confidence, fallback)).values
        terms[method] = column(capability_brier_terms, scored & ~np.isnan(values), values)
    terms[ORACLE_RC] = column(correctness_variance_terms, scored)
    terms[ORACLE_CC] = np.where(scored, 0.0, np.nan)
    return pd.DataFrame(terms, index=counts.question_ids)


def main_table(
    evaluations: Sequence[Evaluation], rng: np.random.Generator, *, fallback: float | None = None
) -> pd.DataFrame:
    """Score every method on every data set: one row a (method, data set).

    Parameters
    ----------
    evaluations
        Of one model.
    rng
        For the bootstrap over questions, or over the groups in which a data set's questions come.
    fallback
        Fill missing confidences with this value; None leaves them out of the score.

    Returns
    -------
    DataFrame
        ``brier`` is the corrected capability Brier score (lower is better; unbiased, so it may fall below
        zero) with its interval ``low`` to ``high``, and ``plug-in`` the paper's uncorrected one; ``rank`` the
        Spearman correlation with mu_hat; ``tokens`` the mean cost of an estimate; ``missing`` how many of the
        ``questions`` have no confidence, and ``filled`` how many of these were filled in. ``best`` marks the lowest
        score on a data set and those that are not worse by the interval of their paired difference, on the questions
        that both scored, oracles aside; where one alone is best, ``second`` marks the next if all others are worse
        than it in the same sense. ``floor`` is what the true mu scores by the plug-in form, and ``spread`` the
        standard deviation of its corrected score, whose mean is zero. A method without any confidence has NaN for
        all scores.
    """
    return stack([_scores(one, rng, fallback) for one in evaluations])


def _scores(one: Evaluation, rng: np.random.Generator, fallback: float | None) -> pd.DataFrame:
    terms = brier_terms(one, fallback=fallback)
    plugin = brier_terms(one, corrected=False, fallback=fallback)
    intervals, best, second = _ranked(one, terms, rng)
    twice = one.counts.total > 1
    c, n = one.counts.correct[twice], one.counts.total[twice]
    floor, spread = (noise_floor(c, n), null_std(c, n)) if twice.any() else (np.nan, np.nan)
    rows = []
    for method in map(str, terms):
        confidence = one.confidences.get(method)
        missing = confidence.status_counts()["missing"] if confidence else 0
        rows.append(
            {
                "method": method,
                "dataset": one.dataset.name,
                "data set": one.dataset.title,
                "domain": one.dataset.domain,
                **intervals[method]._asdict(),
                "plug-in": plugin[method].mean(),
                "rank": _rank(one, confidence) if confidence else np.nan,
                "tokens": confidence.tokens.mean() if confidence else np.nan,
                "missing": missing,
                "filled": 0 if fallback is None else missing,
                "questions": len(one.counts),
                "best": method in best,
                "second": method in second,
                "floor": floor,
                "spread": spread,
                "remarks": "; ".join(one.remarks()),
                "evidence": one.evidence,
            }
        )
    return pd.DataFrame(rows).rename(columns={"estimate": "brier"})


def _ranked(
    one: Evaluation, terms: pd.DataFrame, rng: np.random.Generator
) -> tuple[dict[str, Interval], list[str], list[str]]:
    """Return the interval of each method, the methods that may be the best one, and the sure second, if there is one.

    One method alone has nothing to be best of. Methods and their differences are drawn together, each difference on the
    questions that both scored.
    """
    contenders = terms.drop(columns=[ORACLE_RC, ORACLE_CC]).dropna(axis="columns", how="all")
    order = list(contenders.mean().sort_values(kind="stable").index)
    first, next_ = order[:1], order[1:2]
    against = [contenders.sub(contenders[base], axis="index") for base in (*first, *next_)]
    drawn = _means(one, pd.concat([terms, *against], axis="columns").to_numpy(np.float64), rng)
    intervals = dict(zip(map(str, terms), drawn, strict=False))
    # Not known to be worse where nothing is known, as on a single question.
    worse = [interval.low > 0 for interval in drawn[len(terms.columns) :]]
    columns = list(map(str, contenders))
    than_first, than_next = worse[: len(columns)], worse[len(columns) :]
    best = [method for method, flag in zip(columns, than_first, strict=True) if not flag] if next_ else []
    alone = len(best) == 1 and bool(next_)
    others = [flag for method, flag in zip(columns, than_next, strict=False) if method not in (*first, *next_)]
    return intervals, best, next_ if alone and all(others) else []


def _rank(one: Evaluation, confidence: Confidence) -> float:
    there = (one.counts.total > 0) & ~np.isnan(confidence.values)
    if not there.any():
        return float("nan")
    return spearman(confidence.values[there], one.counts.correct[there], one.counts.total[there])


def reported_main(model: str) -> pd.DataFrame:
    """Return the paper's rows of the main table for a model, in the form of ``main_table``."""
    reported = load_reported("main")
    rows = reported[reported["model"] == model][["method", "dataset", "value"]].rename(columns={"value": "brier"})
    titles = {name: load_dataset(name) for name in rows["dataset"].unique()}
    rows["data set"] = [titles[name].title for name in rows["dataset"]]
    rows["domain"] = [titles[name].domain for name in rows["dataset"]]
    place = rows.groupby("dataset")["brier"].rank(method="dense")
    rows["best"], rows["second"] = place == 1, place == 2
    return rows.assign(evidence="reported").reset_index(drop=True)


def k_eval_table(one: Evaluation, ks: Sequence[int], rng: np.random.Generator, *, draws: int = 200) -> pd.DataFrame:
    """Show what k samples a question give: one row for each k of at least 2 for which there are samples.

    The questions are those with as many scored samples as the largest such k.
    ``standard error`` is that of the mean expected accuracy of these questions, from the corrected correctness
    variance (appendix B.1). The rest are means over draws of k samples from those at hand, without replacement:
    ``half-width`` is the half-width of a question's Jeffreys interval, ``plug-in`` and ``corrected`` the score of
    Uniform random by either form, of which only the plug-in depends on k, and ``floor`` the plug-in score of a
    perfect estimator.
    """
    ks = [k for k in ks if 2 <= k <= one.counts.total.max()]
    enough = one.counts.total >= max(ks, default=0)
    c, n = one.counts.correct[enough], one.counts.total[enough]
    variance = correctness_variance(c, n, corrected=True) if ks else np.nan
    rows = []
    for k in ks:
        drawn, totals = rng.hypergeometric(c, n - c, k, size=(draws, len(c))).ravel(), np.full(draws * len(c), k)
        limits = binomial_interval(np.arange(k + 1), np.full(k + 1, k))[drawn]
        scores = uniform_baseline_brier(drawn, totals), uniform_baseline_brier(drawn, totals, corrected=True)
        half = float(np.mean(limits[:, 1] - limits[:, 0]) / 2)
        rows.append((k, np.sqrt(variance / (k * len(c))), half, *scores, noise_floor(drawn, totals), one.evidence))
    columns = ["k", "standard error", "half-width", "plug-in", "corrected", "floor", "evidence"]
    return pd.DataFrame(rows, columns=columns)


def coverage(
    mus: Sequence[float], k: int, rng: np.random.Generator, *, draws: int = 4000, level: float = 0.95
) -> pd.DataFrame:
    """Simulate how often each interval covers mu at k samples: one row a (method, mu)."""
    rows = []
    for mu in mus:
        correct, total = rng.binomial(k, mu, size=draws), np.full(draws, k)
        for method in ("wald", "wilson", "jeffreys", "clopper-pearson"):
            limits = binomial_interval(correct, total, method=method, level=level)
            covered = float(np.mean((limits[:, 0] <= mu) & (mu <= limits[:, 1])))
            rows.append((method, mu, k, covered, "simulated"))
    return pd.DataFrame(rows, columns=["method", "mu", "k", "coverage", "evidence"])


def divergence_table(groups: Sequence[Sequence[Evaluation]]) -> pd.DataFrame:
    """Compare the two targets for several models, a group of evaluations each: one row a (model, data set)."""
    found = [targets(group).assign(model=group[0].model.title) for group in groups if group]
    return stack([table[["model", *table.columns.drop("model")]] for table in found])


def score_file(path: Path) -> list[tuple[str, str, str]]:
    """Score a CSV of question_id, confidence, correct, total; one row of texts a metric.

    Raises
    ------
    InputError
        For a file that cannot be read, missing columns, or values that are not allowed (the row is named).
    """
    try:
        table = pd.read_csv(path)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as CSV: {str(error).splitlines()[0]}") from None
    missing = [name for name in ("question_id", "confidence", "correct", "total") if name not in table]
    if missing:
        raise InputError(f"{path}: no column {', '.join(missing)}; needed: question_id, confidence, correct, total")
    twice = table["question_id"].duplicated()
    if twice.any():
        raise InputError(f"{path}: question_id {table['question_id'][twice].iloc[0]!r} stands in two rows; keep one")
    triple = table["confidence"], table["correct"], table["total"]
    counted = triple[1:]
    rng = np.random.default_rng(0)
    rows = [("questions", f"{len(table)}", ""), ("capability Brier, plug-in", f"{capability_brier(*triple):.4f}", "")]
    if (table["total"] > 1).all():
        corrected = bootstrap_mean(capability_brier_terms(*triple, corrected=True), rng=rng)
        rows += [
            ("capability Brier, corrected", f"{corrected.estimate:z.4f}", interval_text(corrected, 4)),
            ("uniform random, corrected", f"{uniform_baseline_brier(*counted, corrected=True):z.4f}", ""),
            ("noise floor of the plug-in", f"{noise_floor(*counted):.4f}", ""),
        ]
    rows += [
        ("expected response Brier", f"{expected_response_brier(*triple):.4f}", ""),
        ("correctness variance", f"{correctness_variance(*counted):.4f}", ""),
        ("Spearman with mu_hat", f"{spearman(*triple):z.4f}", ""),
    ]
    return rows


def reported_cost_table(model: str) -> pd.DataFrame:
    """Return the paper's scores of a model beside the tokens of its cost figure.

    The scores are plug-in. The tokens were read off the figure, to about 6 %; response consistency (k_c = 10) costs
    ten times a response, P(True) one token where the model does not reason first, and a probe none. ``floor`` is the
    score of the true mu at the paper's k_eval.
    """
    main, votes = reported_main(model), load_reported("consistency")
    if main.empty:
        return main
    read = load_reported("tokens", source="reference code")
    tokens = read[read["model"] == model].set_index(["method", "dataset"])["value"]
    votes = votes[(votes["model"] == model) & (votes["k"] == 10)].rename(columns={"value": "brier"})
    sets = main.drop_duplicates("dataset").set_index("dataset")[["data set", "domain"]]
    votes = votes[["dataset", "brier"]].join(sets, on="dataset").assign(method=CONSISTENCY, evidence="reported")
    rows = pd.concat([main[~main["method"].isin([ORACLE_RC, ORACLE_CC])], votes], ignore_index=True)

    def cost(method: str, dataset: str) -> float:
        if method == CONSISTENCY:
            return 10 * float(tokens["Response", dataset])
        return float(tokens.get((method, dataset), 1.0 if method == "P(True)" else 0.0))

    rows["tokens"] = [cost(*pair) for pair in zip(rows["method"], rows["dataset"], strict=True)]
    rows["floor"] = [beta_moments(model, name)[1] / PAPER_K_EVAL for name in rows["dataset"]]
    return rows.assign(model=load_model(model).title)


def ranks(evaluations: Sequence[Evaluation]) -> pd.DataFrame:
    """Correlate each method's confidence with mu_hat (Spearman, in [-1, 1], higher is better).

    One row a method, one column a data set; NaN where there is no ranking. The evaluations are of one model.
    """
    found = {
        one.dataset.title: {method: _rank(one, confidence) for method, confidence in one.confidences.items()}
        for one in evaluations
    }
    table = pd.DataFrame(found).rename_axis("method").reset_index()
    return table.assign(evidence=evaluations[0].evidence) if len(table) else table


def stack(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Put tables of one form under each other; no tables make an empty one."""
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def plug_in(table: pd.DataFrame) -> pd.DataFrame:
    """Put the plug-in scores of a main table in the place of the corrected ones, without their intervals.

    Both forms differ by the same number for all methods on a question, so the same methods are best.
    """
    if table.empty:
        return table
    return table.drop(columns=["low", "high"]).assign(brier=table["plug-in"])


def shift(method: str, dataset: Dataset) -> str:
    """Say how far a probe's training set is from a data set: ``id``, ``ood`` (same domain) or ``out``."""
    if not method.startswith("Probe ("):
        return ""
    trained = [one for one in map(load_dataset, dataset_names()) if one.probe == method]
    if dataset in trained:
        return "id"
    return "ood" if dataset.domain in {one.domain for one in trained} else "out"


def show_main(table: pd.DataFrame, caption: str, *, empty: str = NO_SAMPLES) -> Styler:
    """Draw a main table: a row a method, a column a data set, with intervals; probes are tinted.

    Bold is the best and underlined the second; several that cannot be told from the best are marked as a tie instead.
    A dagger at a data set leads to what the caption says of it.
    """
    if table.empty:
        return show(table, caption, empty=empty)
    order = {"factual knowledge": 0, "mathematical reasoning": 1, "general exams": 2}
    rows = table.assign(order=table["domain"].map(order)).sort_values("order", kind="stable")
    rows = rows.assign(tied=rows["best"] & (rows.groupby("dataset")["best"].transform("sum") > 1))
    rows["text"] = [_cell(row) for _, row in rows.iterrows()]
    rows["css"] = [
        " ".join(filter(None, (shift(method, load_dataset(dataset)), _standing(best, tied, second))))
        for method, dataset, best, tied, second in zip(
            *(rows[name] for name in ("method", "dataset", "best", "tied", "second")), strict=True
        )
    ]
    columns, methods = list(dict.fromkeys(rows["data set"])), list(dict.fromkeys(table["method"]))
    wide = rows.pivot(index="method", columns="data set", values="text").loc[methods, columns]
    css = rows.pivot(index="method", columns="data set", values="css").loc[methods, columns]
    remarks = dict(zip(rows["data set"], rows["remarks"], strict=True)) if "remarks" in rows else {}
    remarks = {title: remark for title, remark in remarks.items() if remark}
    heads = {title: f"{title}\u00a0†" for title in remarks}
    shown = wide.rename_axis(columns=None).rename(columns=heads).reset_index()
    evidence = ", ".join(dict.fromkeys(table["evidence"]))
    notes = escape("".join(f" † {title}: {remark}." for title, remark in remarks.items()))
    styler = show(shown, f"{caption} Evidence: {evidence}.{notes}")
    css = css.rename(columns=heads).reset_index(drop=True)
    return styler.set_table_attributes('class="capcal main"').set_td_classes(css)


def _cell(row: "pd.Series[Any]") -> str | float:
    """Write a score with its interval, whether it is a tie, and the share of its confidences that are missing."""
    if np.isnan(row["brier"]):
        return np.nan
    interval = interval_text(Interval(row["brier"], row.get("low", np.nan), row.get("high", np.nan)))
    absent = row.get("missing", 0) / row.get("questions", 1)
    word = "filled" if row.get("filled", 0) else "missing"
    parts = (
        f"{row['brier']:z.4f}",
        interval,
        "tie" if row["tied"] else "",
        f"{absent:.1%}\u00a0{word}" if absent else "",
    )
    return " ".join(filter(None, parts))


def _standing(best: bool, tied: bool, second: bool) -> str:
    return "tied" if tied else "best" if best else "second" if second else ""


def reported_wide(model: str) -> pd.DataFrame:
    """Return the paper's main table for a model: a row a method, a column a data set."""
    table = reported_main(model)
    if table.empty:
        return pd.DataFrame({"": ["the paper has no numbers of this model"]})
    columns, methods = list(dict.fromkeys(table["data set"])), list(dict.fromkeys(table["method"]))
    wide = table.pivot(index="method", columns="data set", values="brier").loc[methods, columns]
    return wide.rename_axis(columns=None).reset_index().assign(evidence="reported")


def reported_settings() -> pd.DataFrame:
    """List how the paper sampled and trained its probes (appendices B.2 and C.2): a row a setting, a column a model."""
    rows = pd.concat([load_reported("sampling"), load_reported("hyperparameters")])
    rows = rows.assign(
        setting=[
            f"{setting} ({load_dataset(name).title})" if name else setting
            for setting, name in zip(rows["method"], rows["dataset"], strict=True)
        ],
        title=[str(load_model(name).paper_name) for name in rows["model"]],
    )
    return _wide(rows, "setting", "title").assign(evidence="reported")


def _wide(rows: pd.DataFrame, index: str, columns: str) -> pd.DataFrame:
    """Turn rows of values into a table, in the order in which they come."""
    order = [list(dict.fromkeys(rows[name])) for name in (index, columns)]
    return (
        rows.pivot(index=index, columns=columns, values="value")
        .loc[order[0], order[1]]
        .rename_axis(columns=None)
        .reset_index()
    )


def stopping_table(evaluations: Sequence[Evaluation], rule: Rule, rng: np.random.Generator) -> pd.DataFrame:
    """Apply a stopping rule to the samples of evaluations, each question's in random order: one row a data set.

    Questions that lack samples for the rule are left out. ``samples`` are all that the questions have up to k, and
    ``saved`` is the share of them that the rule does without. ``mu``, ``stopped`` and ``unbiased`` are the mean
    expected accuracy by all of them, by c/n at the stop, and by the unbiased estimate; ``Brier of ½`` is the corrected
    capability Brier of a constant confidence of one half, and the two after it are the same at the stop.
    """
    rows = []
    for one in evaluations:
        whole = one.counts.total >= rule.k
        # More samples than k are first drawn down to k: as if these had been the first.
        correct = rng.hypergeometric(one.counts.correct[whole], (one.counts.total - one.counts.correct)[whole], rule.k)
        if not len(correct):
            continue
        order = rng.permuted(np.arange(rule.k) < correct[:, None], axis=1).astype(np.int8)
        at, _ = stops(rule, order)
        c, half = np.where(np.arange(rule.k) < at[:, None], order, 0).sum(axis=1), np.full(len(at), 0.5)
        mu, _ = rule.unbiased(c, at)
        k = np.full_like(at, rule.k)
        briers = [capability_brier(half, *counts, corrected=True) for counts in ((correct, k), (c, at))]
        facts = (one.dataset.title, len(at), len(at) * rule.k, 1 - at.mean() / rule.k)
        means = (correct.mean() / rule.k, (c / at).mean(), mu.mean())
        rows.append((*facts, *means, *briers, rule.brier_terms(half, c, at).mean(), one.evidence))
    columns = ["data set", "questions", "samples", "saved", "mu", "stopped", "unbiased"]
    return pd.DataFrame(rows, columns=[*columns, "Brier of ½", "stopped ½", "unbiased ½", "evidence"])
