"""What the paper's text says about its results, and whether the printed numbers bear it out.

A claim is taken apart into comparisons of two printed numbers, the first of which it says is the lower. Each holds,
fails, or is open where rounding hides which is lower. The claim's own wording decides how many have to hold: *every*
one, *most* (it says "generally", "often", "typically") or *some* (it denies that something is always so).
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Literal

import pandas as pd

from capcal_lib.book.audit import AIME_QUESTIONS, PAPER_K, PROBE_MATH, Range, cells, variances
from capcal_lib.manifests import load_dataset, load_model
from capcal_lib.results.tables import ORACLE_CC, ORACLE_RC, UNIFORM, shift

Wording = Literal["every", "most", "some"]
Verdict = Literal["supported", "not supported", "cannot be told"]

MODELS = ("olmo-3-7b-instruct", "qwen3-8b", "gpt-oss-20b")
DATASETS = ("triviaqa", "simpleqa", "gsm8k", "math500", "aime25", "mmlu", "gpqa")
PROBES = ("Probe (TriviaQA)", "Probe (GSM8K)", PROBE_MATH)
VERBALIZED, P_TRUE, MIXED, EVEN = "Verbalized confidence", "P(True)", "Probe (TriviaQA + GSM8K)", "Uniform allocation"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two numbers, of which a claim says that the first is lower; ``equal_holds`` where a tie is as good."""

    where: str
    lower: Range
    higher: Range
    equal_holds: bool = False

    @property
    def holds(self) -> bool | None:
        """Say whether the claim is right here; None where rounding hides it."""
        if self.lower == self.higher:
            return True if self.equal_holds else None
        if self.lower.high <= self.higher.low:
            return True
        return False if self.higher.high <= self.lower.low else None


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement of the paper, in our words, and the comparisons that it makes; none where no number bears on it."""

    key: str
    place: str
    says: str
    wording: Wording = "every"
    comparisons: tuple[Comparison, ...] = ()
    source: str = "paper"

    @property
    def verdict(self) -> Verdict:
        """Judge the claim by its own wording.

        Examples
        --------
        >>> one, two = Range.printed(0.1), Range.printed(0.2)
        >>> right, wrong = Comparison("a", one, two), Comparison("b", two, one)
        >>> [Claim("", "", "", wording, (right, right, wrong)).verdict for wording in ("every", "most", "some")]
        ['not supported', 'supported', 'supported']
        """
        found = [comparison.holds for comparison in self.comparisons]
        right, wrong, n = found.count(True), found.count(False), len(found)
        if not n:
            return "cannot be told"
        supported = {"every": right == n, "most": 2 * right > n, "some": right > 0}[self.wording]
        refuted = {"every": wrong > 0, "most": 2 * wrong >= n, "some": wrong == n}[self.wording]
        return "supported" if supported else "not supported" if refuted else "cannot be told"


def judged(claims: Iterable[Claim]) -> pd.DataFrame:
    """Judge claims: one row each, with how many comparisons hold and the first three that do not.

    A claim that denies something (wording *some*) has no exceptions to list. ``numbers`` says where they come from,
    where that is not the paper for all.
    """
    rows = []
    for claim in claims:
        against = [one.where for one in claim.comparisons if not one.holds] if claim.wording != "some" else []
        more = f"; {len(against) - 3} more" if len(against) > 3 else ""
        right = sum(one.holds is True for one in claim.comparisons)
        count = f"{right} of {len(claim.comparisons)}" if claim.comparisons else "no numbers"
        shown = "; ".join(against[:3]) + more
        rows.append((claim.place, claim.says, claim.wording, count, claim.verdict, shown, claim.source))
    columns = ["place", "the paper says", "of the cells", "hold", "verdict", "exceptions", "numbers"]
    table = pd.DataFrame(rows, columns=columns).assign(evidence="reported")
    return table if (table["numbers"] != "paper").any() else table.drop(columns="numbers")


def main_table_claims() -> list[Claim]:
    """List what sections 4.3 and its table 2 say of the methods (lower is better)."""
    main = {key[:3]: value for key, value in cells("main").items()}

    def score(model: str, method: str, dataset: str) -> Range:
        return main[model, method, dataset]

    def against(lower: str, higher: str, models: Iterable[str] = MODELS) -> tuple[Comparison, ...]:
        return tuple(Comparison(_at(m, d), score(m, lower, d), score(m, higher, d)) for m in models for d in DATASETS)

    def probes(kind: str) -> list[tuple[str, str, str]]:
        return [(m, p, d) for m in MODELS for p in PROBES for d in DATASETS if shift(p, load_dataset(d)) == kind]

    def below_uniform(triples: Iterable[tuple[str, str, str]]) -> tuple[Comparison, ...]:
        return tuple(Comparison(_at(m, d, p), score(m, p, d), score(m, UNIFORM, d)) for m, p, d in triples)

    def others(model: str, method: str, dataset: str) -> list[Range]:
        return sorted((v for (m, o, d), v in main.items() if (m, d) == (model, dataset) and o != method), key=_low)

    best = tuple(
        Comparison(_at(m, d), min((score(m, p, d) for p in PROBES), key=_low), score(m, UNIFORM, d))
        for m in MODELS
        for d in DATASETS
    )
    in_distribution = tuple(Comparison(_at(m, d, p), score(m, p, d), others(m, p, d)[0]) for m, p, d in probes("id"))
    oss, place = "gpt-oss-20b", "section 4.3.2"
    second = tuple(Comparison(_at(oss, d), score(oss, VERBALIZED, d), others(oss, VERBALIZED, d)[1]) for d in DATASETS)
    every_probe = [triple for kind in ("id", "ood", "out") for triple in probes(kind)]
    lost = tuple(
        Comparison(one.where, one.higher, one.lower) for one in below_uniform(probes("out"))
    )  # the uniform baseline is lower
    return [
        Claim(
            "in-distribution", "table 2", "The probe of a column's own training set is best", "every", in_distribution
        ),
        Claim("best-probe", place, "Probing outperforms the uniform baseline: the best probe", "every", best),
        Claim("each-probe", place, "The same, of each probe", "every", below_uniform(every_probe)),
        Claim(
            "in-domain", place, "Probes transfer within a domain: below uniform", "most", below_uniform(probes("ood"))
        ),
        Claim("out-of-domain", place, "Probes do not always transfer out of domain", "some", lost),
        Claim("verbalized-oss", place, "gpt-oss-20b: verbalized is best or second", "every", second),
        Claim(
            "verbalized-olmo",
            place,
            "Olmo: verbalized not always below uniform",
            "some",
            against(UNIFORM, VERBALIZED, MODELS[:1]),
        ),
        Claim(
            "verbalized-qwen",
            place,
            "Qwen3: verbalized not always below uniform",
            "some",
            against(UNIFORM, VERBALIZED, MODELS[1:2]),
        ),
        Claim(
            "p-true",
            place,
            "Qwen3, gpt-oss: verbalized beats P(True)",
            "every",
            against(VERBALIZED, P_TRUE, MODELS[1:]),
        ),
        Claim("p-true-olmo", place, "Olmo: it does not", "some", against(P_TRUE, VERBALIZED, MODELS[:1])),
    ]


def appendix_claims() -> list[Claim]:
    """List what appendices B and C say of k_eval, response consistency and mixed training sets."""
    votes = {key[:4]: value for key, value in cells("consistency").items()}
    more = tuple(
        Comparison(_at(m, d, f"k_c {few} to {many}"), votes[m, name, d, many], votes[m, name, d, few])
        for m in MODELS
        for d in DATASETS
        for name in ("Response consistency",)
        for few, many in pairwise((5, 10, 20))
    )
    mixing = {key[:3]: value for key, value in cells("mixing").items()}
    singles, seen = PROBES[:2], DATASETS[:5]

    def mixed(datasets: Iterable[str], of: Callable[[list[Range]], Range]) -> tuple[Comparison, ...]:
        return tuple(
            Comparison(_at(m, d), mixing[m, MIXED, d], of([mixing[m, one, d] for one in singles]))
            for m in MODELS
            for d in datasets
        )

    own = tuple(
        Comparison(_at(m, d), mixing[m, single, d], mixing[m, MIXED, d])
        for m in MODELS
        for single, d in zip(singles, ("triviaqa", "gsm8k"), strict=True)
    )
    means = tuple(
        Comparison(
            f"{load_model(m).paper_name}, {single}", _mean(mixing, m, MIXED, seen), _mean(mixing, m, single, seen)
        )
        for m in MODELS
        for single in singles
    )
    error = math.sqrt(variances()["gpt-oss-20b", "aime25"].middle / (AIME_QUESTIONS * PAPER_K))
    near = Range.around(0.0056, 0.0001)
    exact = Range(Fraction(error), Fraction(error))
    about = (
        Comparison("above 0.0055", Range(near.low, near.low), exact),
        Comparison("below 0.0057", exact, Range(near.high, near.high)),
    )
    return [
        Claim(
            "standard-error",
            "appendix B.1",
            "gpt-oss, AIME25: the standard error at k_eval = 100 is about 0.0056",
            "every",
            about,
        ),
        Claim("pooling", "appendix C.2", "Mean pooling is best on validation data; an MLP is no better"),
        Claim("more-votes", "appendix C.3", "A larger k_c scores better, in general", "most", more),
        Claim("own-set", "appendix C.4", "A single training set is best on its own test set, typically", "most", own),
        Claim(
            "mixed-second",
            "appendix C.4",
            "The mixed probe is often first or second of three, in domain",
            "most",
            mixed(("simpleqa", "math500", "aime25"), _highest),
        ),
        Claim(
            "mixed-first",
            "table 7",
            "The mixed probe is the most robust: lowest on the in-domain sets",
            "most",
            mixed(seen, _lowest),
        ),
        Claim("mixed-mean", "table 7", "The same, read as: lowest mean over the in-domain sets", "every", means),
    ]


def application_claims() -> list[Claim]:
    """List what section 5 and appendix D say of pass@k and of budgets; budgets by numbers published later."""
    passk = {key[:4]: value for name in ("math500", "aime25") for key, value in cells(f"passk_{name}").items()}
    spent = {key[:4]: value for key, value in cells("budget", source="reference code").items()}
    ks, budgets, sets = (1, 4, 16, 64), (1, 2, 4, 8, 16, 32, 64), ("math500", "aime25")

    def errors(lower: str, higher: str, datasets: Iterable[str]) -> tuple[Comparison, ...]:
        return tuple(
            Comparison(_at(m, d, f"k = {k}"), passk[m, lower, d, k], passk[m, higher, d, k])
            for d in datasets
            for m in MODELS
            for k in ks
        )

    def solved(fewer: str, more: str, pairs: Iterable[tuple[str, str]], *, tie: bool = False) -> tuple[Comparison, ...]:
        method = more if fewer == EVEN else fewer
        return tuple(
            Comparison(_at(m, d, f"{method}, B = {b}"), spent[m, fewer, d, b], spent[m, more, d, b], equal_holds=tie)
            for m, d in pairs
            for b in budgets
        )

    every = [(m, d) for d in sets for m in MODELS]
    rising = tuple(
        Comparison(_at(m, d, f"k {few} to {many}"), passk[m, ORACLE_RC, d, few], passk[m, ORACLE_RC, d, many])
        for m, d in every
        for few, many in pairwise(ks)
    )
    oracle = tuple(one for other in (PROBE_MATH, VERBALIZED, EVEN) for one in solved(other, ORACLE_CC, every, tie=True))
    often = tuple(one for other in (PROBE_MATH, VERBALIZED) for one in solved(EVEN, other, every))
    figure, later = "figures 5 and 10", "later, off a figure"
    main_example = [("gpt-oss-20b", "math500")]
    return [
        Claim("rc-rises", "table 3", "The error of Oracle RC rises with k (both data sets)", "every", rising),
        Claim(
            "cc-perfect",
            "tables 3 and 8",
            "Oracle CC is nearly perfect: below the probe and Oracle RC",
            "every",
            errors(ORACLE_CC, PROBE_MATH, sets) + errors(ORACLE_CC, ORACLE_RC, sets),
        ),
        Claim(
            "probe-math",
            "table 3",
            "Probe (MATH) beats Oracle RC for all models on MATH-500",
            "every",
            errors(PROBE_MATH, ORACLE_RC, sets[:1]),
        ),
        Claim(
            "probe-aime",
            "table 8",
            "AIME25 agrees with MATH-500: the probe beats Oracle RC",
            "every",
            errors(PROBE_MATH, ORACLE_RC, sets[1:]),
        ),
        Claim("oracle-budget", figure, "Oracle CC solves most at every budget", "every", oracle, later),
        Claim(
            "probe-budget",
            "section 5.2",
            "Probe (MATH) always beats even spending: gpt-oss, MATH-500",
            "every",
            solved(EVEN, PROBE_MATH, main_example),
            later,
        ),
        Claim(
            "probe-budget-all",
            "section 5.2",
            "The same, over all of figure 10",
            "every",
            solved(EVEN, PROBE_MATH, every),
            later,
        ),
        Claim("often-budget", figure, "Verbalized and Probe (MATH) often beat even spending", "most", often, later),
        Claim(
            "brier-budget",
            "appendix D.2",
            "The lower Brier score of the two, the more is solved",
            "every",
            _brier_and_budget(spent, every, budgets),
            later,
        ),
        Claim("comparable", "section 5.2", "Verbalized does comparably to Probe (MATH); no yardstick is given"),
        Claim("full-range", "figure 2", "Among incorrect samples, mu spans the whole of [0, 1]"),
    ]


def _brier_and_budget(
    spent: dict[tuple[str, str, str, int | None], Range], pairs: Iterable[tuple[str, str]], budgets: tuple[int, ...]
) -> tuple[Comparison, ...]:
    """Compare mean success over the budgets of the estimator with the higher Brier score and of that with the lower."""
    main = {key[:3]: value for key, value in cells("main").items()}
    found = []
    for m, d in pairs:
        better, worse = sorted((PROBE_MATH, VERBALIZED), key=lambda name: main[m, name, d].low)
        means = []
        for name in (worse, better):
            parts = [spent[m, name, d, b] for b in budgets]
            means.append(_sum(parts).times(Fraction(1, len(parts))))
        found.append(Comparison(_at(m, d), means[0], means[1]))
    return tuple(found)


def _mean(scores: dict[tuple[str, str, str], Range], model: str, method: str, datasets: Iterable[str]) -> Range:
    parts = [scores[model, method, dataset] for dataset in datasets]
    return _sum(parts).times(Fraction(1, len(parts)))


def _sum(parts: list[Range]) -> Range:
    return Range(sum((part.low for part in parts), Fraction(0)), sum((part.high for part in parts), Fraction(0)))


def _low(one: Range) -> Fraction:
    return one.low


def _lowest(ranges: list[Range]) -> Range:
    return min(ranges, key=_low)


def _highest(ranges: list[Range]) -> Range:
    return max(ranges, key=_low)


def _at(model: str, dataset: str, what: str = "") -> str:
    """Name a cell."""
    return ", ".join(filter(None, (load_model(model).paper_name, load_dataset(dataset).title, what)))
