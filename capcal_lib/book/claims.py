"""What the paper's text says of its results, as comparisons of two printed numbers: all of
``data_manifests/claims.yaml``."""

import pandas as pd

from capcal_lib.manifests import MANIFESTS, read_yaml
from capcal_lib.plots import shift
from capcal_lib.reported import load_reported

KEYS = ["model", "dataset"]
ROUNDING = 0.00005  # of a number that is printed with four digits


def load_claims() -> pd.DataFrame:
    """Return a row a claim, indexed by what it ``says``: its ``place`` in the paper, its
    ``wording``, the comparisons it is ``measured`` by, and the pairs of printed numbers.

    >>> load_claims().loc["More votes score better in general", "wording"]
    'most'
    """
    return pd.DataFrame(read_yaml(MANIFESTS / "claims.yaml")["claims"]).set_index("says")


def compare_printed(claims: pd.DataFrame) -> pd.DataFrame:
    """Say of each comparison of two printed numbers whether it bears a claim out.

    Returns the columns ``says`` and ``result``: ``holds`` or ``fails`` where rounding cannot change
    it, else ``hidden by rounding``.
    """
    budget = load_reported("budget", source="reference code")
    printed = pd.concat([load_reported(), budget], ignore_index=True)
    printed["precision"] = printed["precision"].fillna(ROUNDING)
    printed["shift"] = list(map(shift, printed["method"], printed["dataset"]))
    brier = load_reported("main").rename(columns={"value": "brier"})[[*KEYS, "method", "brier"]]
    printed = printed.merge(brier, how="left", on=[*KEYS, "method"])
    tables = printed.groupby(["table", *KEYS, "k"], dropna=False)
    printed["place"] = tables["brier"].rank()
    compared = claims.dropna(subset="pairs")
    results = {says: _results(claim.dropna(), printed) for says, claim in compared.iterrows()}
    return pd.concat(results, names=["says", None]).rename("result").reset_index("says")


def _results(claim: pd.Series, printed: pd.DataFrame) -> "pd.Series[str]":
    by, pairs = claim.get("by", KEYS), []
    numbers = printed[printed["table"].isin(claim["tables"])]
    for lower, higher in claim["pairs"]:
        low = _reduced(numbers.query(lower), by, claim.get("lower"))
        high = _reduced(numbers.query(higher), by, claim.get("higher"))
        pairs.append(low.merge(high, on=by, suffixes=("", " high")))
    both = pd.concat(pairs, ignore_index=True)
    gap = (both["value high"] - both["value"]).round(9)
    rounding = (both["precision high"] + both["precision"]).round(9)
    result = pd.Series("hidden by rounding", both.index)
    result[(gap >= rounding) | ((gap == 0) & ("tie" in claim))] = "holds"
    result[-gap >= rounding] = "fails"
    if "opposite" in claim:
        return opposite(result, both["dataset"] + both["method"]).reset_index(drop=True)
    return result


def _reduced(numbers: pd.DataFrame, by: list[str], reduce: str | None) -> pd.DataFrame:
    """Reduce the numbers of one side of a claim to one a group, if it says how."""
    if reduce is None:
        return numbers
    return numbers.groupby(by, as_index=False)[["value", "precision"]].agg(reduce)


def opposite(results: "pd.Series[str]", group: "pd.Series[str]") -> "pd.Series[str]":
    """Say of each group of comparisons, one of a model each, whether it holds both signs.

    >>> signs = pd.Series(["holds", "fails", "holds"])
    >>> opposite(signs, pd.Series(["mmlu", "mmlu", "gsm8k"])).tolist()
    ['fails', 'holds']
    """
    signs = results.groupby(group).agg(set)
    return signs.map({"holds", "fails"}.issubset).map({True: "holds", False: "fails"})


def verdict_of(results: "pd.Series[str]", wording: str) -> str:
    """Judge a claim by its own wording, from comparisons that hold, fail, or say neither.

    ``supported``, where as many hold as the wording asks for: ``every``, ``most`` (more than half)
    or ``some``. Else ``reversed``, where more than half fail; ``in part``, where more hold than
    fail; and ``inconclusive``.

    >>> verdict_of(pd.Series(["holds", "holds", "fails"]), "every")
    'in part'
    """
    right, wrong = (results == "holds").sum(), (results == "fails").sum()
    enough = {"every": len(results), "most": len(results) // 2 + 1, "some": 1}[wording]
    if len(results) and right >= enough:
        return "supported"
    if wrong > len(results) / 2:
        return "reversed"
    return "in part" if right > wrong else "inconclusive"
