"""The claims of the paper's text, as comparisons of two printed numbers, from
``data_manifests/claims.yaml``.
"""

import itertools

import pandas as pd

from capcal_lib.manifests import read_yaml
from capcal_lib.places import MANIFESTS
from capcal_lib.probe_names import is_probe
from capcal_lib.reported import K_EVAL, beta_from_moments, load_reported, printed_distances
from capcal_lib.shifts import shift

KEYS = ["model", "dataset"]
PRINTED_PRECISION = 0.00005  # of a number that is printed with four digits
READ_OFF = "read off"
EVIDENCE = {"budget": READ_OFF, "costs": READ_OFF, "shares": "simulated"}
CLAIM_VERDICTS = ("supported", "holds in part", "inconclusive", "contradicted in part", "reversed")


def load_claims() -> pd.DataFrame:
    """Return one row per claim, indexed by what it ``says``.

    Every claim has ``place``, ``line`` and ``quote``, the paper's words and where they stand;
    ``wording``: how many comparisons have to hold, ``every``, ``most`` or ``some``; and
    ``evidence``: ``read off`` if its numbers come from curves, ``simulated`` if they follow from
    printed numbers through a distribution, else ``reported``. Other columns are NaN if a claim
    lacks them. A claim that printed numbers can test has both of these:

    - ``tables``: the tables of :func:`printed_numbers` whose numbers are compared;
    - ``pairs``: pairs of pandas queries. The numbers of the first should be lower than the numbers
      of the second.

    And it may have any of these:

    - ``by``: columns that define groups; numbers are compared within a group, each with each
      (default: model and data set);
    - ``lower`` and ``higher``: ``min``, ``max`` or ``mean``, which reduces the first or the second
      side to one number per group before they are compared;
    - ``tie``: true if an equal number is as good as a lower one;
    - ``opposite``: true if the claim is that models differ: see :func:`opposite`;
    - ``measured``: the names of the comparisons that test it on other models.

    >>> load_claims().loc["More votes score better in general", "wording"]
    'most'
    """
    claims = pd.DataFrame(read_yaml(MANIFESTS / "claims.yaml")["claims"]).set_index("says")
    tables = claims["tables"].str[0]
    return claims.assign(evidence=tables.map(EVIDENCE).fillna("reported"))


def compare_printed(claims: pd.DataFrame) -> pd.DataFrame:
    """Return for each comparison of two printed numbers whether it supports its claim.

    Returns the columns ``says`` and ``result``: ``holds`` or ``fails`` if rounding cannot change
    it, else ``hidden by rounding``. Claims without pairs have no row.
    """
    printed = printed_numbers()
    compared = claims.dropna(subset="pairs")
    results = {says: _results(claim.dropna(), printed) for says, claim in compared.iterrows()}
    return pd.concat(results, names=["says", None]).rename("result").reset_index("says")


def printed_numbers() -> pd.DataFrame:
    """Return the numbers that claims are about: `load_reported`, the published curves of
    ``budget``, and four tables that follow from these numbers.

    - ``distances``: the mean distance of ``one response`` from the expected accuracy
      (``printed_distances``), beside ``none``, 0;
    - ``shares``: the share of questions with mu ``between .1 and .9``, under a Beta distribution
      with the two printed moments (``reported.beta_moments``), beside ``one half``;
    - ``vote_gains``: how much the score of a vote falls ``from 5 to 10`` and ``from 10 to 20``
      samples;
    - ``costs``: the tokens of a confidence, read off or, as printed, one for P(True) and less for a
      probe.

    Columns are those of `load_reported` with ``precision``, ``shift`` (of a probe) and ``rank`` (by
    the main table's score, among the methods of the number's own table).
    """
    budget = load_reported("budget", source="reference code")
    derived = [_distances(), _shares(), _vote_gains(), _costs()]
    printed = pd.concat([load_reported(), budget, *derived], ignore_index=True)
    printed["precision"] = printed["precision"].fillna(PRINTED_PRECISION)
    pairs = list(zip(printed["method"], printed["dataset"], strict=True))
    shifts = {pair: shift(*pair) for pair in {*pairs}}  # slow to find
    printed["shift"] = [shifts[pair] for pair in pairs]
    brier = load_reported("main").rename(columns={"value": "brier"})[[*KEYS, "method", "brier"]]
    printed = printed.merge(brier, how="left", on=[*KEYS, "method"])
    methods = printed.groupby(["table", *KEYS, "k"], dropna=False)
    printed["rank"] = methods["brier"].rank()
    return printed


def _distances() -> pd.DataFrame:
    one = printed_distances().rename(columns={"distance": "value"})
    precision = 2 * PRINTED_PRECISION * K_EVAL / (K_EVAL - 1)
    one = one.assign(table="distances", method="one response", precision=precision)
    return pd.concat([one, one.assign(method="none", value=0.0, precision=0.0)])


def _shares() -> pd.DataFrame:
    """Return the shares: the middle and half the range of the values that rounding allows."""
    from scipy.special import betainc  # slow to import

    rows = []
    cells = load_reported("mean_accuracy")[[*KEYS, "value"]].merge(printed_distances(), on=KEYS)
    rounding = [-PRINTED_PRECISION, PRINTED_PRECISION]
    for model, dataset, mean, distance in cells.itertuples(index=False):
        shares = []
        for up, more in itertools.product(rounding, rounding):
            shapes = beta_from_moments(mean + up, distance / 2 + more)
            below = betainc(*shapes, [0.1, 0.9])
            shares.append(below[1] - below[0])
        middle, half = (max(shares) + min(shares)) / 2, (max(shares) - min(shares)) / 2
        rows.append([model, dataset, "between .1 and .9", middle, half])
        rows.append([model, dataset, "one half", 0.5, 0.0])
    columns = [*KEYS, "method", "value", "precision"]
    return pd.DataFrame(rows, columns=columns).assign(table="shares")


def _vote_gains() -> pd.DataFrame:
    scores = load_reported("consistency").pivot(index=KEYS, columns="k", values="value")
    falls = {"from 5 to 10": scores[5] - scores[10], "from 10 to 20": scores[10] - scores[20]}
    table = pd.concat(falls, names=["method"]).rename("value").reset_index()
    return table.assign(table="vote_gains", precision=2 * PRINTED_PRECISION)


def _costs() -> pd.DataFrame:
    tokens = load_reported("tokens", source="reference code")
    main = load_reported("main")
    probes = main[main["method"].map(is_probe)].assign(value=0.5, precision=0.5)  # below 1
    one = main[main["method"] == "P(True)"].assign(value=1.0, precision=0.0)
    table = pd.concat([tokens, probes, one])[[*KEYS, "method", "value", "precision"]]
    return table.drop_duplicates([*KEYS, "method"]).assign(table="costs")


def _results(claim: pd.Series, printed: pd.DataFrame) -> "pd.Series[str]":
    """Return the result of each comparison of a claim, numbered from 0; the claim is a row of
    `load_claims` without its missing columns.
    """
    keys = claim.get("by", KEYS)
    numbers = printed[printed["table"].isin(claim["tables"])]
    pairs = []
    for lower_query, higher_query in claim["pairs"]:
        low, high = numbers.query(lower_query), numbers.query(higher_query)
        if "lower" in claim:
            low = _reduced(low, keys, claim["lower"])
        if "higher" in claim:
            high = _reduced(high, keys, claim["higher"])
        pairs.append(low.merge(high, on=keys, suffixes=("", " high")))
    both = pd.concat(pairs, ignore_index=True)
    gap = (both["value high"] - both["value"]).round(9)
    rounding = (both["precision high"] + both["precision"]).round(9)
    result = pd.Series("hidden by rounding", both.index)
    result[gap >= rounding] = "holds"
    result[-gap >= rounding] = "fails"
    if "tie" in claim:
        result[gap == 0] = "holds"
    if "opposite" in claim:
        return opposite(result, both["dataset"] + both["method"]).reset_index(drop=True)
    return result


def _reduced(numbers: pd.DataFrame, keys: list[str], statistic: str) -> pd.DataFrame:
    """Reduce numbers to their minimum, maximum or mean, one a group."""
    return numbers.groupby(keys, as_index=False)[["value", "precision"]].agg(statistic)


def judge_claims(claims: pd.DataFrame, results: pd.DataFrame) -> pd.DataFrame:
    """Return claims with a ``verdict``, judged by their own wording (:func:`verdict_of`), and how
    many comparisons ``hold``, such as ``8 of 9``, or ``no numbers``.

    ``claims`` are rows of :func:`load_claims`, and ``results`` has the columns ``says`` and
    ``result`` of :func:`compare_printed`.

    >>> claims = load_claims()
    >>> judged = judge_claims(claims, compare_printed(claims))
    >>> judged.loc["The best probe beats Uniform random", ["hold", "verdict"]].tolist()
    ['21 of 21', 'supported']
    """
    verdicts, holds = [], []
    for says, wording in claims["wording"].items():
        of_claim = results.loc[results["says"] == says, "result"]
        verdicts.append(verdict_of(of_claim, wording))
        held = f"{(of_claim == 'holds').sum()} of {len(of_claim)}"
        holds.append(held if len(of_claim) else "no numbers")
    return claims.assign(verdict=verdicts, hold=holds)


def opposite(results: "pd.Series[str]", group: "pd.Series[str]") -> "pd.Series[str]":
    """Return for each group of comparisons, one per model, whether it has both signs.

    >>> signs = pd.Series(["holds", "fails", "holds"])
    >>> opposite(signs, pd.Series(["mmlu", "mmlu", "gsm8k"])).tolist()
    ['fails', 'holds']
    """
    signs = results.groupby(group).agg(set)
    return signs.map({"holds", "fails"}.issubset).map({True: "holds", False: "fails"})


def verdict_of(results: "pd.Series[str]", wording: str) -> str:
    """Judge a claim by its own wording, from comparisons that hold, fail, or are undecided.

    ``supported`` if as many hold as the wording asks for: ``every``, ``most`` (more than half) or
    ``some``. ``reversed`` if more than half fail for ``most``, or all fail for ``every`` or
    ``some``. In between, ``holds in part`` if more hold than fail, ``contradicted in part`` if more
    fail than hold, and ``inconclusive`` if as many fail as hold.

    >>> verdict_of(pd.Series(["holds", "holds", "fails"]), "every")
    'holds in part'
    """
    right, wrong = (results == "holds").sum(), (results == "fails").sum()
    most = len(results) // 2 + 1
    enough = {"every": len(results), "most": most, "some": 1}[wording]
    if len(results) and right >= enough:
        return "supported"
    if len(results) and wrong >= (most if wording == "most" else len(results)):
        return "reversed"
    if right == wrong:
        return "inconclusive"
    return "holds in part" if right > wrong else "contradicted in part"
