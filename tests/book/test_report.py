"""The report as a browser gets it: everything inside, nothing that runs, and numbers that are those
of the metrics.
"""

import base64
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from bs4 import BeautifulSoup

from capcal_lib.applications import pass_at_k
from capcal_lib.book.report import write_report
from capcal_lib.errors import InputError
from capcal_lib.metrics import isotonic_split

HOSTILE = "<script>alert(1)</script>$\\frac{"


@pytest.fixture(scope="module")
def questions() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    mu = rng.beta(1, 1, 120)
    table = pd.DataFrame({"correct": rng.binomial(20, mu), "total": 20, HOSTILE: mu, "flat": 0.5})
    table.loc[:9, "flat"] = np.nan
    return table


def test_a_report_holds_everything_and_runs_nothing(
    tmp_path: Path, questions: pd.DataFrame
) -> None:
    path = tmp_path / "report.html"
    scores = pd.DataFrame({"brier": [0.1]}, index=["<b>mine</b>"])
    write_report(path, {f"<i>{HOSTILE}</i>": (scores, questions)})
    page = BeautifulSoup(path.read_text(), "html.parser")
    assert not page.find_all(["script", "b", "i", "link", "iframe"])
    images = page.find_all("img")
    assert len(images) == 2
    for image in images:
        assert image["alt"]
        drawn = base64.b64decode(image["src"].removeprefix("data:image/svg+xml;base64,")).decode()
        assert "<script" not in drawn
        assert not re.findall(r'href="(?!#)', drawn)
    rows = [
        [[cell.text for cell in row(["th", "td"])] for row in table("tr")]
        for table in page("table")
    ]
    tables = [pd.DataFrame(body, columns=head).set_index("") for head, *body in rows]
    split = isotonic_split(
        questions[HOSTILE], questions["correct"], questions["total"], corrected=True
    )
    assert float(tables[1].loc[HOSTILE, "miscalibration"]) == pytest.approx(
        split.miscalibration, abs=1e-4
    )
    measured = pass_at_k(questions["correct"], questions["total"], 4).mean()
    assert float(tables[2].loc["k = 4", "measured"].split()[0]) == pytest.approx(measured, abs=1e-3)
    gains = tables[3].loc["4 a question"]
    assert float(gains[HOSTILE].split()[0]) > 1  # the true mu helps
    assert gains["flat"].startswith("0.0 [0.0, ")  # a constant divides evenly


def test_shares_of_few_questions_stay_within_their_range(tmp_path: Path) -> None:
    few = pd.DataFrame({"correct": [0, 4, 5], "total": 5, "mine": [0.1, 0.8, 0.9]})
    write_report(tmp_path / "report.html", {"few": (pd.DataFrame(), few)})
    shown = re.search(r"<td>(\.?\d\S*) \[(\S+), (\S+)\]", (tmp_path / "report.html").read_text())
    assert shown
    estimate, low, high = map(float, shown.groups())
    assert 0 <= low < estimate < high <= 1


def test_nothing_to_show_is_said_and_only_regular_files_are_written(
    tmp_path: Path, questions: pd.DataFrame
) -> None:
    path = tmp_path / "report.html"
    write_report(path, {"none": (pd.DataFrame(), questions.assign(total=1, correct=1))})
    assert "No question has two scored samples" in path.read_text()
    for other in (Path("/dev/null"), tmp_path, tmp_path / "no-folder" / "report.html"):
        with pytest.raises(InputError, match="cannot write"):
            write_report(other, {})
    assert list(tmp_path.iterdir()) == [path]
