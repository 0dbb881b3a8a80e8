"""The paper's statements as data: what each compares is there."""

import re
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
import yaml

from capcal_lib import claims as claims_module
from capcal_lib.claims import (
    CLAIM_VERDICTS,
    compare_printed,
    judge_claims,
    load_claims,
    printed_numbers,
    verdict_of,
)
from capcal_lib.places import MANIFESTS, NOTEBOOKS
from capcal_lib.reported import load_reported
from capcal_lib.studies import small_models as statements
from tests.outside import PAPER, needs_paper


@pytest.fixture(scope="module", autouse=True)
def printed() -> Iterator[pd.DataFrame]:
    """The numbers that claims are about, computed once."""
    once = printed_numbers()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(claims_module, "printed_numbers", once.copy)
        yield once


CLAIMS = yaml.safe_load((MANIFESTS / "claims.yaml").read_text(encoding="utf-8"))["claims"]


def test_every_statement_is_unique_and_complete() -> None:
    assert len({claim["says"] for claim in CLAIMS}) == len(CLAIMS)
    for claim in CLAIMS:
        assert {"place", "says", "wording", "quote", "line"} <= set(claim)
        assert claim["wording"] in ("every", "most", "some")
        assert ("pairs" in claim) == ("tables" in claim), claim["says"]


def test_statements_on_curves_are_read_off_and_those_on_a_beta_simulated() -> None:
    evidence = load_claims()["evidence"]
    known = {("shares",): "simulated"}
    known |= dict.fromkeys([("budget",), ("costs",)], "read off")
    for claim in CLAIMS:
        tables = tuple(claim.get("tables", ()))
        assert evidence[claim["says"]] == known.get(tables, "reported")
    assert {*evidence} == {"read off", "reported", "simulated"}


def test_a_statement_is_one_short_clause_of_the_paper() -> None:
    for claim in CLAIMS:
        assert 3 <= len(claim["quote"].split()) <= 20, claim["quote"]
        assert ". " not in claim["quote"], claim["quote"]


@needs_paper
def test_every_quote_stands_at_its_line_of_the_paper() -> None:
    lines = PAPER.read_text(encoding="utf-8").splitlines()
    for claim in CLAIMS:
        line = re.sub(r"\\colorbox\{[^}]*\}\{([^}]*)\}", r"\1", lines[claim["line"] - 1])
        words = " ".join(line.replace("$", "").split())
        assert " ".join(claim["quote"].split()) in words, claim


def test_every_side_of_a_comparison_finds_numbers(printed: pd.DataFrame) -> None:
    for claim in CLAIMS:
        table = printed[printed["table"].isin(claim.get("tables", []))]
        for query in (query for pair in claim.get("pairs", []) for query in pair):
            assert len(table.query(query)), (claim["says"], query)


def test_two_rows_of_one_clause_compare_other_numbers() -> None:
    """A clause that asks two questions has two rows, and no question is asked of it twice."""
    asked = [(claim["line"], claim["quote"], str(claim.get("pairs"))) for claim in CLAIMS]
    assert len({*asked}) == len(asked)


def test_what_is_read_both_ways_compares_the_same_methods() -> None:
    """On its own set a probe meets, in print, the three methods without labels in each of nine
    cells, and the two probes that were trained on other sets.
    """
    results = compare_printed(load_claims())
    counts = results.groupby("says")["result"].value_counts().unstack(fill_value=0)
    without = counts.loc["On its own set a probe beats methods without labels"]
    assert without[["holds", "fails"]].tolist() == [26, 1]  # gpt-oss: verbalized on GSM8K
    assert counts.loc["On its own set a probe beats other probes", "holds"] == 18


def test_the_best_tradeoff_is_that_of_the_lowest_printed_probe() -> None:
    main = load_reported("main").pivot(index=["model", "dataset"], columns="method", values="value")
    probe = main.filter(like="Probe").min(axis="columns")
    expected = sum((probe < main[name]).sum() for name in ("Verbalized confidence", "P(True)"))
    results = compare_printed(
        load_claims().loc[["The cheapest, a probe, beats verbalized and P(True)"]]
    )
    assert (results["result"] == "holds").sum() == expected == 37
    assert len(results) == 42


def test_shares_are_those_of_a_beta_with_the_printed_moments(printed: pd.DataFrame) -> None:
    """By drawing: gpt-oss on MATH-500 has a mean of .9338 and E[mu(1 - mu)] of .0273."""
    shares = printed.query("table == 'shares' and method == 'between .1 and .9'")
    found = shares.set_index(["model", "dataset"])[["value", "precision"]]
    weight = 0.02727 / (0.9338 * 0.0662 - 0.02727)
    mu = np.random.default_rng(0).beta(0.9338 * weight, 0.0662 * weight, 400_000)
    share = ((mu > 0.1) & (mu < 0.9)).mean()
    assert found.loc[("gpt-oss-20b", "math500"), "value"] == pytest.approx(share, abs=0.003)
    assert found["precision"].between(1e-6, 0.005).all()
    assert (found["value"] < 0.5).sum() == 19
    assert len(found) == 21


def test_distances_and_what_more_votes_gain_follow_from_print(printed: pd.DataFrame) -> None:
    numbers = printed.set_index(["table", "method", "model", "dataset"])["value"]
    # Olmo on TriviaQA: uniform random scores .2745, votes .1228, .1121 and .1046.
    olmo = "olmo-3-7b-instruct", "triviaqa"
    assert numbers["distances", "one response", *olmo] == pytest.approx(2 * (1 / 3 - 0.2745) / 0.99)
    assert numbers["costs"].index.is_unique, "P(True) has a token, read off or not"
    precisions = printed.set_index(["table", "method", "model", "dataset"])["precision"]
    assert precisions["distances", "one response", *olmo] == pytest.approx(2 * 0.00005 / 0.99)
    assert numbers["vote_gains", "from 5 to 10", *olmo] == pytest.approx(0.0107)
    assert numbers["vote_gains", "from 10 to 20", *olmo] == pytest.approx(0.0075)


def test_one_statement_by_hand() -> None:
    """Probe (MATH) on AIME25 is below Oracle RC at k = 16 and 64 for Olmo, and at 4, 16 and 64 for
    gpt-oss.
    """
    table = load_reported("passk_aime25").pivot(
        index=["model", "k"], columns="method", values="value"
    )
    lower = table["Oracle RC"] - table["Probe (MATH)"] >= 0.0001
    assert int(lower.sum()) == 5


def test_what_is_measured_is_compared() -> None:
    for claim in CLAIMS:
        for name in claim.get("measured", ()):
            assert name in statements.MEASURED, name


def test_a_claim_is_judged_by_its_own_results() -> None:
    wording = pd.Series({"A wins": "every", "B wins": "some", "C wins": "most"})
    results = pd.DataFrame(
        {
            "says": ["A wins", "B wins", "A wins", "B wins", "C wins"],
            "result": ["holds", "fails", "fails", "holds", "fails"],
        }
    )
    judged = judge_claims(wording.to_frame("wording"), results)
    assert judged["verdict"].tolist() == ["inconclusive", "supported", "reversed"]


@pytest.mark.parametrize(
    ("holds", "fails", "neither", "wording", "verdict"),
    [
        (3, 0, 0, "every", "supported"),
        (2, 0, 1, "every", "holds in part"),
        (2, 1, 0, "every", "holds in part"),
        (1, 2, 0, "every", "contradicted in part"),
        (0, 2, 1, "every", "contradicted in part"),
        (0, 3, 0, "every", "reversed"),
        (2, 8, 26, "most", "contradicted in part"),
        (8, 2, 26, "most", "holds in part"),
        (2, 0, 1, "most", "supported"),
        (1, 0, 1, "most", "holds in part"),
        (0, 2, 1, "most", "reversed"),
        (0, 1, 9, "most", "contradicted in part"),
        (1, 9, 0, "some", "supported"),
        (0, 9, 1, "some", "contradicted in part"),
        (0, 9, 0, "some", "reversed"),
        (2, 2, 5, "every", "inconclusive"),
        (0, 0, 4, "most", "inconclusive"),
        (0, 0, 0, "every", "inconclusive"),
    ],
)
def test_a_verdict_goes_by_the_wording(
    holds: int, fails: int, neither: int, wording: str, verdict: str
) -> None:
    results = ["holds"] * holds + ["fails"] * fails + ["neither"] * neither
    assert verdict_of(pd.Series(results, dtype=str), wording) == verdict
    if wording != "some":  # which asks for one, and denies only that all fail
        mirror = dict(zip(CLAIM_VERDICTS, reversed(CLAIM_VERDICTS), strict=True))
        swapped = ["fails"] * holds + ["holds"] * fails + ["neither"] * neither
        assert verdict_of(pd.Series(swapped, dtype=str), wording) == mirror[verdict]


def test_sides_are_reduced_and_equal_numbers_hold_where_a_claim_says_so() -> None:
    """The lowest of the votes is as low as itself, and lower than each of the others."""
    main = load_reported("main")
    probes = main[main["method"].str.startswith("Probe")]
    lowest = probes.groupby(["model", "dataset"])["value"].transform("min")
    equal = int((probes["value"] == lowest).sum())
    query = "method.str.startswith('Probe')"
    claim = {"tables": ["main"], "pairs": [[query, query]], "lower": "min"}
    claims = pd.DataFrame([claim, claim | {"tie": True}], index=["below", "not above"])
    results = compare_printed(claims).set_index("says")["result"]
    assert results["below"].value_counts().to_dict() == {
        "holds": len(probes) - equal,
        "hidden by rounding": equal,
    }
    assert set(results["not above"]) == {"holds"}


@pytest.mark.parametrize(
    ("low", "high", "result"),
    [(0.2, 0.22, "holds"), (0.2, 0.219, "hidden by rounding"), (0.22, 0.2, "fails")],
)
def test_numbers_differ_by_the_rounding_of_both(
    low: float, high: float, result: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = {"method": ["low", "high"], "value": [low, high], "precision": 0.01}
    table = pd.DataFrame(rows).assign(model="m", dataset="d", table="t")
    monkeypatch.setattr(claims_module, "printed_numbers", lambda: table)
    claims = pd.DataFrame([{"tables": ["t"], "pairs": [["method == 'low'", "method == 'high'"]]}])
    assert compare_printed(claims)["result"].tolist() == [result]


def test_what_verbalized_and_p_true_are_worth_depends_on_the_model_in_print() -> None:
    """Counted naively over the cells of table 2."""
    claim = load_claims().loc[["Verbalized, P(True): their worth depends on the model"]]
    results = compare_printed(claim)["result"]
    main = load_reported("main").pivot(index=["dataset", "model"], columns="method", values="value")
    expected = 0
    for method in ("Verbalized confidence", "P(True)"):
        for _, own in main.groupby(level="dataset"):
            better = own[method] < own["Uniform random"]
            expected += better.any() and not better.all()
    assert (results == "holds").sum() == expected
    assert len(results) == 14


def test_claims_are_judged_by_their_own_comparisons() -> None:
    claims = load_claims().iloc[:2]
    first, second = claims.index
    rows = pd.DataFrame({"says": first, "result": ["holds", "holds", "fails"]})
    judged = judge_claims(claims.assign(wording=["every", "most"]), rows)
    assert judged.loc[first, ["verdict", "hold"]].tolist() == ["holds in part", "2 of 3"]
    assert judged.loc[second, ["verdict", "hold"]].tolist() == ["inconclusive", "no numbers"]


@needs_paper
def test_what_page_9_quotes_stands_in_the_paper() -> None:
    paper = " ".join(PAPER.read_text(encoding="utf-8").split())
    page = (NOTEBOOKS / "09_statements.py").read_text(encoding="utf-8")
    quotes = re.findall("“([^”]+)”", page.replace("\n# ", " "))
    assert len(quotes) >= 6
    for quote in quotes:
        assert quote in paper, quote
