"""What the paper's tables say about each other: a printed number stands for all the values that it may have been."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pandas as pd

from capcal_lib.manifests import load_dataset, load_model
from capcal_lib.reported import Source, load_reported
from capcal_lib.results.evaluation import Evaluation
from capcal_lib.results.tables import ORACLE_CC, ORACLE_RC, UNIFORM, passk_table, stack

PAPER_K = 100  # the paper's k_eval
AIME_QUESTIONS = 30
PROBE_MATH = "Probe (MATH)"
THIRD = Fraction(1, 3)


@dataclass(frozen=True, slots=True)
class Range:
    """All the values that a number may have had before it was rounded: low to high, ends included.

    The ends are fractions, so that nothing is rounded once more; a value in the middle between two printed
    ones may have been rounded either way, and lies in both ranges.

    Examples
    --------
    >>> one, other = Range.printed(0.0831), Range.printed(0.0832)
    >>> print(one, one.meets(other), (other - one).high == Fraction(2, 10**4))
    [0.08305, 0.08315] True True
    """

    low: Fraction
    high: Fraction

    @classmethod
    def printed(cls, value: float, digits: int = 4) -> "Range":
        """Return what a number printed with so many digits stands for."""
        return cls.around(Fraction(round(value * 10**digits), 10**digits), Fraction(1, 2 * 10**digits))

    @classmethod
    def around(cls, value: float | Fraction, half_width: float | Fraction) -> "Range":
        """Return value plus or minus half_width; a float counts as the decimal that it prints as."""
        centre, half = (part if isinstance(part, Fraction) else Fraction(repr(part)) for part in (value, half_width))
        return cls(centre - half, centre + half)

    def __add__(self, other: "Range") -> "Range":
        return Range(self.low + other.low, self.high + other.high)

    def __sub__(self, other: "Range") -> "Range":
        return Range(self.low - other.high, self.high - other.low)

    def times(self, factor: int | Fraction) -> "Range":
        """Return the range of the product with an exact number."""
        ends = self.low * factor, self.high * factor
        return Range(min(ends), max(ends))

    def subtracted_from(self, number: Fraction) -> "Range":
        """Return the range of an exact number less this one."""
        return Range(number - self.high, number - self.low)

    def meets(self, other: "Range") -> bool:
        """Say whether one value may be in both."""
        return self.low <= other.high and other.low <= self.high

    @property
    def middle(self) -> float:
        """Return the middle as a float."""
        return float(self.low + self.high) / 2

    def __str__(self) -> str:
        return f"[{float(self.low):.5f}, {float(self.high):.5f}]"


def cells(table: str, *, source: Source = "paper") -> dict[tuple[str, str, str, int | None, str], Range]:
    """Return a reported table as ranges, under (model, method, data set, k, setting); what is not there is empty."""
    rows = load_reported(table, source=source).astype({"k": object})
    found = {}
    for row in rows.to_dict("records"):
        k = row["k"] if isinstance(row["k"], int) else None
        known = Range.around(row["value"], row["precision"]) if "precision" in row else Range.printed(row["value"])
        found[row["model"], row["method"], row["dataset"], k, row.get("setting", "")] = known
    return found


def variances() -> dict[tuple[str, str], Range]:
    """Derive the correctness variance of theorem 2 from the uniform baseline, 1/3 - baseline, by (model, data set)."""
    return {
        (model, dataset): value.subtracted_from(THIRD)
        for (model, method, dataset, _, _), value in cells("main").items()
        if method == UNIFORM
    }


def theorem_2_reported() -> pd.DataFrame:
    """Complete theorem 2 for the paper's 21 cells: one row a (model, data set).

    ``variance`` is 1/3 less the uniform baseline, known to 0.00005: also what one graded sample (Oracle RC) scores as
    a confidence. ``floor`` is variance/(k_eval - 1), what a perfect estimator would score by
    the paper's plug-in form. ``best`` is the lowest capability Brier score printed, of ``method``; ``response`` is
    best + variance, the expected response Brier score. ``below variance`` counts the methods, of five, that score
    better than one graded sample for certain.
    """
    main, rows = cells("main"), []
    for (model, dataset), variance in variances().items():
        scores = {key[1]: value for key, value in main.items() if (key[0], key[2]) == (model, dataset)}
        del scores[UNIFORM]
        best = min(scores.values(), key=lambda score: score.low)
        method = ", ".join(name for name, score in scores.items() if score == best)
        below = sum(score.high <= variance.low for score in scores.values())
        floor = variance.middle / (PAPER_K - 1)
        facts = _titles(model, dataset)
        rows.append((*facts, variance.middle, floor, best.middle, method, (best + variance).middle, below))
    columns = ["model", "data set", "variance", "floor", "best", "method", "response", "below variance"]
    return pd.DataFrame(rows, columns=columns).assign(evidence="reported")


def mean_accuracies() -> pd.DataFrame:
    """Hold the accuracy table against the uniform baseline: one row a (model, data set).

    The mean of mu(1 - mu) lies between 0 and m(1 - m), m being the mean of mu, since the function is concave.
    ``undecided`` is the share of that bound which the ``variance`` reaches: near 0 each question is always or never
    solved. ``possible`` is whether the ranges allow all of this.
    """
    accuracies, rows = cells("mean_accuracy"), []
    for (model, dataset), variance in variances().items():
        mean = accuracies[model, "", dataset, None, ""]
        bound = _one_minus(mean)
        possible = variance.high >= 0 and variance.low <= bound.high
        share = variance.middle / bound.middle
        rows.append((*_titles(model, dataset), mean.middle, bound.middle, variance.middle, share, _yes(possible)))
    columns = ["model", "data set", "mean accuracy", "bound", "variance", "undecided", "possible"]
    return pd.DataFrame(rows, columns=columns).assign(evidence="reported")


def _one_minus(mean: Range) -> Range:
    """Return the range of m(1 - m)."""
    ends = [m * (1 - m) for m in (mean.low, mean.high)]
    return Range(min(ends), Fraction(1, 4) if mean.low <= Fraction(1, 2) <= mean.high else max(ends))


def countable_means() -> pd.DataFrame:
    """Ask whether a printed mean over 30 questions x 100 samples can come from whole counts: one row a model (AIME25).

    Only this data set is small enough for the question: its means come in steps of 1/3000, wider than the rounding.
    """
    accuracies, rows = cells("mean_accuracy"), []
    for (model, _, dataset, _, _), mean in accuracies.items():
        if dataset == "aime25":
            samples = AIME_QUESTIONS * PAPER_K
            counts = range(math.ceil(mean.low * samples), math.floor(mean.high * samples) + 1)
            found = ", ".join(map(str, counts)) or "none"
            rows.append((*_titles(model, dataset), mean.middle, found, _yes(len(counts) > 0)))
    columns = ["model", "data set", "mean accuracy", "correct of 3,000", "possible"]
    return pd.DataFrame(rows, columns=columns).assign(evidence="reported")


def shared_variance() -> pd.DataFrame:
    """Compare two ways to the correctness variance: one row for each model and pass@k table.

    The uniform baseline gives 1/3 - variance. The pass@1 error of Oracle RC estimates the variance by drawing a
    sample a question, so beyond rounding it scatters, with a variance of at most V(1 - 4V)/(n_questions draws)
    (Jensen). ``sds`` is the difference in such standard deviations for one draw, the widest case.
    """
    rows = []
    for (model, dataset), variance in variances().items():
        if dataset not in ("math500", "aime25"):
            continue
        oracle = cells(f"passk_{dataset}")[model, ORACLE_RC, dataset, 1, ""]
        v, n = variance.middle, load_dataset(dataset).splits["test"].rows or 0
        sd = math.sqrt(v * (1 - 4 * v) / n)
        difference = oracle.middle - v
        by_rounding = _yes(oracle.meets(variance))
        rows.append((*_titles(model, dataset), v, oracle.middle, difference, by_rounding, sd, difference / sd))
    columns = ["model", "data set", "from baseline", "from Oracle RC", "difference", "rounding explains", "sd", "sds"]
    return pd.DataFrame(rows, columns=columns).assign(evidence="reported")


def same_quantity() -> pd.DataFrame:
    """Compare the Brier score of the MATH probe with its pass@1 error, which are one and the same mean: six rows.

    ``excess`` is the least difference that rounding leaves.
    """
    main, rows = cells("main"), []
    for model, dataset in variances():
        if dataset not in ("math500", "aime25"):
            continue
        brier = main[model, PROBE_MATH, dataset, None, ""]
        error = cells(f"passk_{dataset}")[model, PROBE_MATH, dataset, 1, ""]
        excess = float(max(Fraction(0), error.low - brier.high, brier.low - error.high))
        if brier == error:
            says = "equal"
        else:
            says = "equal only if it lies on the edge of both" if brier.meets(error) else "different"
        rows.append((*_titles(model, dataset), brier.middle, error.middle, excess, says))
    columns = ["model", "data set", "Brier score", "pass@1 error", "excess", "the two are"]
    return pd.DataFrame(rows, columns=columns).assign(evidence="reported")


def oracle_in_sample() -> pd.DataFrame:
    """Say what Oracle CC would score at k = 1 on other samples than its own: one row for each pass@k table and model.

    On its own counts its error at k = 1 is zero by definition. Scored against 100 other samples, two independent
    estimates of mu differ, and the mean square is 2 variance/(k_eval - 1); against mu itself, half of it.
    """
    rows = []
    for (model, dataset), variance in variances().items():
        if dataset in ("math500", "aime25"):
            printed = cells(f"passk_{dataset}")[model, ORACLE_CC, dataset, 1, ""]
            once = variance.middle / (PAPER_K - 1)
            rows.append((*_titles(model, dataset), printed.middle, once, 2 * once))
    columns = ["model", "data set", "as printed", "against mu", "against other samples"]
    return pd.DataFrame(rows, columns=columns).assign(evidence="reported")


def oracle_halves(evaluations: Sequence[Evaluation], rng: np.random.Generator) -> pd.DataFrame:
    """Score Oracle CC on samples that it has not seen, and in sample: one row a (data set, k), mean squared error."""
    found = []
    for one in evaluations:
        table = passk_table(one, (1, 4, 16), rng)
        found.append(table[table["method"] == ORACLE_CC].assign(method=one.dataset.title))
    return stack(found).rename(columns={"method": "data set"})


def k_eval_slope() -> pd.DataFrame:
    """Derive the correctness variance a third way, from the curve of Brier scores over k_eval: one row a cell.

    The plug-in score at k samples is too high by mean mu(1 - mu)/k for every method alike, so its drop from 10 to
    200 samples, over 1/10 - 1/200, estimates mean mu(1 - mu). The curve was published later and read off a figure.
    ``reading explains`` allows for the precision of the reading and the rounding of the baseline.
    """
    curve, rows = cells("k_eval_curve", source="reference code"), []
    steps = Fraction(1, 10) - Fraction(1, 200)
    unbiased = Fraction(PAPER_K, PAPER_K - 1)
    for (model, dataset), variance in variances().items():
        methods = {key[1] for key in curve if (key[0], key[2]) == (model, dataset)}
        drops = [curve[model, one, dataset, 10, ""] - curve[model, one, dataset, 200, ""] for one in sorted(methods)]
        slopes = sorted((drop.times(1 / steps) for drop in drops), key=lambda slope: slope.middle)
        slope, expected = slopes[len(slopes) // 2], variance.times(unbiased)
        difference = slope.middle - expected.middle
        explains = _yes(slope.meets(expected))
        rows.append((*_titles(model, dataset), expected.middle, slope.middle, difference, explains))
    columns = ["model", "data set", "from baseline", "from the curve", "difference", "reading explains"]
    return pd.DataFrame(rows, columns=columns).assign(evidence="reported")


def one_sample_each() -> pd.DataFrame:
    """Hold the uniform allocation at one sample a question against the mean accuracy, which it must equal: six rows.

    The allocation curves were published later and read off a figure; ``points`` is the difference in percentage points.
    """
    curve, accuracies = cells("budget", source="reference code"), cells("mean_accuracy")
    rows = []
    for (model, method, dataset, budget, _), success in curve.items():
        if method == "Uniform allocation" and budget == 1:
            mean = accuracies[model, "", dataset, None, ""]
            points = 100 * (success.middle - mean.middle)
            rows.append((*_titles(model, dataset), mean.middle, success.middle, points))
    columns = ["model", "data set", "mean accuracy", "success rate at B = 1", "points"]
    return pd.DataFrame(rows, columns=columns).assign(evidence="reported")


def _titles(model: str, dataset: str) -> tuple[str, str]:
    return str(load_model(model).paper_name), load_dataset(dataset).title


def _yes(holds: bool) -> str:
    return "yes" if holds else "no"
