import re
from pathlib import Path

import pytest

from capcal_lib.applications import pass_at_k
from capcal_lib.results import load_results, score
from capcal_lib.results.results import CONSISTENCY
from capcal_lib.results.score_runs import score_models
from tests.folders import sample_unlike_totals

SET = "mini-elements"


@pytest.fixture(scope="module")
def unlike(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = tmp_path_factory.mktemp("store")
    sample_unlike_totals(store, SET)
    return store


def test_what_takes_many_samples_is_of_the_questions_that_have_them(unlike: Path) -> None:
    scored = score_models(unlike, ["simulated"])
    [line] = [line for line in scored.above if "accuracy" in line]
    [shown] = re.findall(r"pass@64 (0\.\d+) \[.*\] of the 20 with so many samples", line)
    counts = load_results(unlike, "simulated").query("total >= 64")
    exact = pass_at_k(counts["correct"], counts["total"], [64])
    assert exact.shape == (20, 1)
    assert float(shown) == pytest.approx(exact.mean(), abs=5e-4)
    assert any("60 questions; scored samples of each: 12 to 100" in line for line in scored.above)


def test_scores_take_all_questions_as_they_are(unlike: Path) -> None:
    results = load_results(unlike, "simulated")
    scores = score(results).loc[SET]
    assert len(results) == 60
    assert (scores["questions"] == 60).all()
    assert (scores["missing"] == 0).all()


def test_too_few_samples_to_vote_are_no_missing_votes(unlike: Path) -> None:
    for k_c, questions in ((10, 60), (11, 20), (98, 20), (99, 0)):
        scores = score(load_results(unlike, "simulated", k_c=k_c)).loc[SET]
        if questions:
            row = scores.loc[CONSISTENCY]
            assert (row["questions"], row["missing"]) == (questions, 0)
        else:
            assert CONSISTENCY not in scores.index
        assert scores.loc["P(True)", "questions"] == 60
