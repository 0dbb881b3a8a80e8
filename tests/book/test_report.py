"""The report as a browser gets it: everything inside, nothing that runs."""

import base64
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from bs4 import BeautifulSoup

from capcal_lib.book.report import write_report
from capcal_lib.errors import InputError
from capcal_lib.io.score_file import Scored

HOSTILE = "<script>alert(1)</script>$\\frac{"


def report(path: Path, **parts: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    write_report(path, Scored([], pd.DataFrame(), [], [], parts))


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
    report(path, **{f"<i>{HOSTILE}</i>": (scores, questions)})
    page = BeautifulSoup(path.read_text(), "html.parser")
    assert not page.find_all(["script", "b", "i", "link", "iframe"])
    images = page.find_all("img")
    assert len(images) == 3
    for image in images:
        assert image["alt"]
        drawn = base64.b64decode(image["src"].removeprefix("data:image/svg+xml;base64,")).decode()
        assert "<script" not in drawn
        assert not re.findall(r'href="(?!#)', drawn)
        assert "<!-- flat -->" in drawn or image is images[0], "in the legend"
    [row] = page("tr")[1:]
    assert [cell.text for cell in row(["th", "td"])] == ["<b>mine</b>", "0.1000"]


def test_nothing_to_show_is_said_and_only_regular_files_are_written(
    tmp_path: Path, questions: pd.DataFrame
) -> None:
    path = tmp_path / "report.html"
    report(path, log=(pd.DataFrame(), questions[["correct", "total"]]))
    assert path.read_text().count("<img") == 1
    report(path, two=(pd.DataFrame(), questions.assign(total=2, correct=1)))
    assert path.read_text().count("<img") == 3
    report(path, none=(pd.DataFrame(), questions.assign(total=1, correct=1)))
    assert "No question has two scored samples" in path.read_text()
    for other in (Path("/dev/null"), tmp_path, tmp_path / "no-folder" / "report.html"):
        with pytest.raises(InputError, match="cannot write"):
            report(other)
    assert list(tmp_path.iterdir()) == [path]
