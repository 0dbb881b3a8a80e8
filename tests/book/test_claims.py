"""The paper's statements as data: what each compares is there."""

import pandas as pd
import yaml

from capcal_lib.manifests import MANIFESTS
from capcal_lib.reported import load_reported

CLAIMS = yaml.safe_load((MANIFESTS / "claims.yaml").read_text(encoding="utf-8"))["claims"]


def test_every_statement_is_unique_and_complete() -> None:
    assert len({claim["says"] for claim in CLAIMS}) == len(CLAIMS)
    for claim in CLAIMS:
        assert {"place", "says", "wording"} <= set(claim)
        assert claim["wording"] in ("every", "most", "some")
        assert ("pairs" in claim) == ("tables" in claim), claim["says"]


def test_every_side_of_a_comparison_finds_numbers() -> None:
    printed = pd.concat([load_reported(), load_reported("budget", source="reference code")])
    printed = printed.assign(shift="", place=0)  # made on the page
    for claim in CLAIMS:
        table = printed[printed["table"].isin(claim.get("tables", []))]
        for query in (query for pair in claim.get("pairs", []) for query in pair):
            if "shift" not in query and "place" not in query:
                assert len(table.query(query)), (claim["says"], query)


def test_one_statement_by_hand() -> None:
    """Probe (MATH) on AIME25 is below Oracle RC at k = 16 and 64 for Olmo, and at 4, 16 and 64 for
    gpt-oss.
    """
    table = load_reported("passk_aime25").pivot(
        index=["model", "k"], columns="method", values="value"
    )
    lower = table["Oracle RC"] - table["Probe (MATH)"] >= 0.0001
    assert int(lower.sum()) == 5
