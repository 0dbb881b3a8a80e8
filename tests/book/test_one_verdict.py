"""A comparison that several tables of the built book show has the same verdict in each."""

import base64
import io
import re
from collections import defaultdict

import pandas as pd
import pytest

from capcal_lib.places import BUILD

PAGES = BUILD / "book" / "_build" / "html" / "notebooks"
WORDS = {"better": 1, "holds": 1, "worse": -1, "fails": -1}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PAGES.exists(), reason="the book is not built: make book"),
]


def tables() -> dict[tuple[str, int], pd.DataFrame]:
    """Read the tables that can be downloaded, by their page and place."""
    found = {}
    for path in sorted(PAGES.glob("*.html")):
        data = re.findall(r"data:text/csv;base64,([^\"']*)", path.read_text(encoding="utf-8"))
        for place, text in enumerate(data):
            found[path.stem, place] = pd.read_csv(io.BytesIO(base64.b64decode(text)))
    return found


def comparisons(table: pd.DataFrame) -> dict[tuple[str, float, float], int]:
    """Return the direction of each verdict by what is compared: the data set and the interval, in
    units of the estimate, so that hundredths and gains of the other side are the same comparison.
    """
    names = [name for name in ("estimate", "gain") if name in table]
    words = [name for name in ("verdict", "result") if name in table]
    if not names or not words or "dataset" not in table or "low" not in table:
        return {}
    found = {}
    for row in table.dropna(subset=[names[0], words[0]]).to_dict("records"):
        estimate = row[names[0]]
        if estimate:
            ends = sorted([row["low"] / estimate, row["high"] / estimate])
            sign = WORDS.get(row[words[0]], 0) * (1 if estimate > 0 else -1)
            found[row["dataset"], round(ends[0], 5), round(ends[1], 5)] = sign
    return found


def test_one_comparison_has_one_verdict_on_all_pages() -> None:
    verdicts = defaultdict(dict)
    for place, table in tables().items():
        for case, sign in comparisons(table).items():
            verdicts[case][place] = sign
    shared = {case: signs for case, signs in verdicts.items() if len(signs) > 1}
    pages = {frozenset(page for page, _ in signs) for signs in shared.values()}
    assert len(shared) > 30, "the tables of several pages are read"
    assert any(len(of_case) > 1 for of_case in pages), "and two pages show one comparison"
    unlike = {case: signs for case, signs in shared.items() if len({*signs.values()}) > 1}
    assert unlike == {}
