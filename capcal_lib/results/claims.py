"""The four claims of the paper (sections 4.3.2, 5.1 and 5.2) as comparisons of a method and a rival
on the same questions: on measured results, and on the numbers that the paper prints.

A comparison is *supported* where the method is significantly better, *reversed* where it is
significantly worse, and else *inconclusive*; printed numbers have no intervals, so that any
difference counts there. Each is made once on a data set: with the first of the probes whose
training questions are nearest, never chosen by a score, and at one k and one budget. Asked and
voted confidences are taken at their word, probes as the mean of a posterior. What of them the paper
states is in ``data_manifests/claims.yaml``; the others are questions of this book."""

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd
import yaml

from capcal_lib.applications import (
    budget_gains,
    budget_gains_over_answer,
    pass_at_k_gains,
    pass_at_k_gains_over_answer,
)
from capcal_lib.manifests import MANIFESTS, dataset_names, load_dataset
from capcal_lib.metrics import gains
from capcal_lib.probes import nearest_probe
from capcal_lib.reported import load_reported
from capcal_lib.results.results import subjects
from capcal_lib.results.scores import UNIFORM, brier_terms

OWN_PROBE = "In-distribution probe > Uniform random"
HOME_PROBE = "Probe of the same domain > Uniform random"
FAR_PROBE = "Probe of another domain > Uniform random"
ASKING = "Probe > asking"
VOTES = "Probe > response consistency"
ASKED = {
    "Verbalized confidence": "Verbalized > Uniform random",
    "P(True)": "P(True) > Uniform random",
}
PASS_PROBE = "pass@k: probe > constant"
PASS_ANSWER = "pass@k: probe > Oracle RC"
PASS_ASKED = "pass@k: asked > constant"
BUDGET_PROBE = "Budget: probe > even"
BUDGET_ANSWER = "Budget: probe > Oracle RC"
BUDGET_VERBALIZED = "Budget: verbalized > even"
VERDICTS = {"better": "supported", "inconclusive": "inconclusive", "worse": "reversed"}
CONSISTENCY = "Response consistency"
K = 16  # of pass@k: the middle one that the paper prints above 1
EACH = 2  # samples a question in the mean, of a budget

Gain = tuple[dict[str, object], "pd.Series[float]"]  # what is compared, and a gain a question


def measured_claims(
    results: pd.DataFrame, concentrations: Mapping[str, float], *, seed: int = 0
) -> pd.DataFrame:
    """Judge the claims on the results of one model, as ``load_results`` returns them.

    ``concentrations`` are those of the probes, by method (``describe_probes``). A row a comparison:
    ``comparison``; ``method`` and ``rival``; ``at``, such as ``k = 4``;
    ``dataset``; ``estimate``, ``low``, ``high`` and ``p`` of the mean gain; ``verdict``.

    >>> from capcal_lib.manifests import RECORDED_RUNS
    >>> from capcal_lib.results import load_results
    >>> results = load_results(RECORDED_RUNS, "smollm2-135m", datasets=["simpleqa"])
    >>> found = measured_claims(results, {})
    >>> found.loc[found["method"] == "P(True)", ["comparison", "verdict"]].to_numpy()[0].tolist()
    ['P(True) > Uniform random', 'inconclusive']
    """
    rows = []
    for dataset, own in results[results["total"] > 1].groupby(level="dataset", sort=False):
        rng = np.random.default_rng(seed)
        groups = subjects(own)
        for what, gain in _gains(str(dataset), own, concentrations, rng):
            terms = pd.DataFrame({"rival": gain, "method": 0.0}).dropna()
            if len(terms) > 1:
                judged = gains(terms, "rival", clusters=groups[terms.index])
                rows.append(what | {"dataset": dataset} | judged.loc["method"].to_dict())
    found = pd.DataFrame(rows)
    return found.assign(verdict=found["verdict"].map(VERDICTS))


def _gains(
    dataset: str,
    own: pd.DataFrame,
    concentrations: Mapping[str, float],
    rng: np.random.Generator,
) -> Iterator[Gain]:
    terms = brier_terms(own).dropna(axis="columns", how="all")
    for comparison, method, rival in compared(list(map(str, terms)), dataset):
        about: dict[str, object] = {"comparison": comparison, "method": method, "rival": rival}
        yield about | {"at": ""}, terms[rival] - terms[method]
    if probe := nearest_probe(list(map(str, terms)), dataset):
        own_nu = concentrations.get(probe)
        yield from _probe_gains(own.dropna(subset=[probe]), probe, own_nu, rng)
    for method in ASKED:
        if method in terms:
            yield from _asked_gains(own.dropna(subset=[method]), method)


def compared(methods: list[str], dataset: str) -> Iterator[tuple[str, str, str]]:
    """Yield what claims 1 to 3 compare on a data set: comparison, method and rival.

    >>> list(compared(["Uniform random", "P(True)", "Probe (GSM8K)"], "gsm8k"))[-1]
    ('In-distribution probe > Uniform random', 'Probe (GSM8K)', 'Uniform random')
    """
    near = nearest_probe(methods, dataset)
    made = set()
    for method in methods:
        if method.startswith("Probe"):
            comparison = _probe_comparison(method, dataset)
            if comparison not in made:
                made.add(comparison)
                yield comparison, method, UNIFORM
        elif method in ASKED:
            yield ASKED[method], method, UNIFORM
            if near:
                yield f"{ASKING} ({method})", near, method
        elif method == CONSISTENCY and near:
            yield VOTES, near, method


def _probe_comparison(method: str, dataset: str) -> str:
    """Name the comparison of a probe with a random number, by where it was trained."""
    asked = load_dataset(dataset)
    if method == asked.probe:
        return OWN_PROBE
    trained = [each for each in map(load_dataset, dataset_names()) if each.probe in method]
    is_home = asked.domain in {each.domain for each in trained if each.training_split}
    return HOME_PROBE if is_home else FAR_PROBE


def _probe_gains(
    own: pd.DataFrame, probe: str, nu: float | None, rng: np.random.Generator
) -> Iterator[Gain]:
    given = own[probe], own["correct"], own["total"]
    if own["total"].max() > K:
        about: dict[str, object] = {"method": probe, "at": f"k = {K}"}
        gain = pass_at_k_gains(*given, K, concentration=nu)
        yield {"comparison": PASS_PROBE, **about, "rival": "constant"}, gain
        gain = pass_at_k_gains_over_answer(*given, K, concentration=nu)
        yield {"comparison": PASS_ANSWER, **about, "rival": "Oracle RC"}, gain
    left = own["total"] - 1  # beside the one that Oracle RC knows
    if left.min() > EACH:
        about = {"method": probe, "at": f"B = {EACH}"}
        gain = budget_gains(*given, EACH, concentration=nu, most=left)
        yield {"comparison": BUDGET_PROBE, **about, "rival": "even"}, gain
        gain = budget_gains_over_answer(*given, EACH, concentration=nu, rng=rng)
        yield {"comparison": BUDGET_ANSWER, **about, "rival": "Oracle RC"}, gain


def _asked_gains(own: pd.DataFrame, method: str) -> Iterator[Gain]:
    given = own[method], own["correct"], own["total"]
    if own["total"].max() > K:
        about: dict[str, object] = {
            "comparison": PASS_ASKED,
            "method": method,
            "rival": "constant",
            "at": f"k = {K}",
        }
        yield about, pass_at_k_gains(*given, K)
    left = own["total"] - 1
    if method == "Verbalized confidence" and left.min() > EACH:
        about = {"comparison": BUDGET_VERBALIZED, "method": method, "rival": "even"}
        yield about | {"at": f"B = {EACH}"}, budget_gains(*given, EACH, most=left)


def printed_claims() -> pd.DataFrame:
    """Judge the claims on the numbers that the paper prints, or that can be read off its figures.

    The columns of `measured_claims` and ``model``, without intervals.

    >>> printed = printed_claims()
    >>> printed.loc[printed["comparison"] == VOTES, "verdict"].value_counts().to_dict()
    {'reversed': 21, 'supported': 15}
    """
    rows = [*_printed_scores(), *_printed_uses()]
    found = pd.DataFrame(rows).round({"estimate": 4})
    signs = np.sign(found["estimate"]).map({1.0: "better", 0.0: "inconclusive", -1.0: "worse"})
    return found.assign(verdict=signs.map(VERDICTS))


def _printed_scores() -> Iterator[dict[str, object]]:
    scores = pd.concat([load_reported("main"), load_reported("consistency").query("k == 10")])
    for (model, dataset), own in scores.groupby(["model", "dataset"]):
        score = own.set_index("method")["value"]
        for comparison, method, rival in compared(list(score.index), str(dataset)):
            yield {
                "comparison": comparison,
                "method": method,
                "rival": rival,
                "at": "",
                "model": model,
                "dataset": dataset,
                "estimate": score[rival] - score[method],
            }


def _printed_uses() -> Iterator[dict[str, object]]:
    probe = "Probe (MATH)"
    even = "Uniform allocation"
    asked = "Verbalized confidence"
    tables = [load_reported(f"passk_{name}") for name in ("math500", "aime25")]
    errors = pd.concat(tables).query("k == @K")
    pass_at_k = errors.assign(value=-errors["value"])  # higher is better, as in budgets
    budgets = load_reported("budget", source="reference code").query("k == @EACH")
    yield from _printed_use(pass_at_k, "k", PASS_ANSWER, probe, "Oracle RC")
    yield from _printed_use(budgets, "B", BUDGET_PROBE, probe, even)
    yield from _printed_use(budgets, "B", BUDGET_VERBALIZED, asked, even)
    yield from _printed_use(budgets, "B", BUDGET_ANSWER, probe, "Oracle RC")


def _printed_use(
    table: pd.DataFrame, letter: str, comparison: str, method: str, rival: str
) -> Iterator[dict[str, object]]:
    wide = table.pivot(index=["k", "model", "dataset"], columns="method", values="value")
    for value in wide.reset_index().to_dict("records"):
        yield {
            "comparison": comparison,
            "method": method,
            "rival": rival,
            "at": f"{letter} = {value['k']}",
            "model": value["model"],
            "dataset": value["dataset"],
            "estimate": value[method] - value[rival],
        }


def read_claims() -> pd.DataFrame:
    """Return what the paper states of any model: a row a statement of ``claims.yaml``.

    Columns are ``place``, ``says``, the ``comparisons`` that bear on it, and the ``rule`` of
    :func:`judge_claim`."""
    text = (MANIFESTS / "claims.yaml").read_text(encoding="utf-8")
    return pd.DataFrame(yaml.safe_load(text)["on any model"])


def judge_claim(verdicts: pd.DataFrame, rule: str) -> str:
    """Say in words what comparisons make of a statement: holds, does not hold, or undecided.

    ``verdicts`` has a row a comparison: ``comparison``, ``model``, ``dataset``, and its
    ``verdict``. By the rule ``most`` a statement holds where more than half of the comparisons are
    supported, and does not where more than half are reversed; ``some`` holds where one is reversed;
    ``differs`` where one comparison on one data set is supported on a model and reversed on
    another.

    >>> rows = {"comparison": "a", "model": ["m", "n"], "dataset": ["d", "d"]}
    >>> judge_claim(pd.DataFrame(rows | {"verdict": ["supported", "reversed"]}), "differs")
    'holds'
    """
    is_better, is_worse = verdicts["verdict"] == "supported", verdicts["verdict"] == "reversed"
    if rule == "differs":
        both = verdicts.assign(better=is_better, worse=is_worse)
        cells = both.groupby(["comparison", "dataset"])[["better", "worse"]].any()
        return "holds" if cells.all(axis="columns").any() else "undecided"
    if rule == "some":
        return "holds" if is_worse.any() else "undecided"
    if is_better.mean() > 0.5:
        return "holds"
    return "does not hold" if is_worse.mean() > 0.5 else "undecided"
