"""Runs are scored side by side, and what their scores do not show is said."""

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from capcal_lib.confidence.of_run import place_confidence, sampled_questions
from capcal_lib.errors import InputError
from capcal_lib.grading.verdicts import grade_run
from capcal_lib.io.importing import import_samples
from capcal_lib.io.score_runs import score_models
from capcal_lib.metrics import mean_interval
from capcal_lib.places import OWN_MANIFESTS
from capcal_lib.results import compare_recalibrated, compare_with_constant, load_results, score
from capcal_lib.results.terms import decimals_of
from capcal_lib.runs import open_runs
from capcal_lib.sampling.draw import sample
from capcal_lib.text import spell
from tests.folders import sample_unlike_totals

SET = "mini-elements"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Questions with 12 samples and others with 100, half of them with a confidence of one's own;
    and a second data set."""
    folder = tmp_path_factory.mktemp("store")
    sample_unlike_totals(folder, SET)
    for run in open_runs(folder, split="test"):
        half = [{"question_id": name, "confidence": 0.5} for name in [*sampled_questions(run)][::2]]
        place_confidence(run, "mine", half)
    grade_run(sample("simulated", "mini-exam", k=12, limit=40, store=folder).run)
    return folder


def test_what_the_scores_of_a_run_do_not_show_is_said(store: Path) -> None:
    scored = score_models(store, ["simulated"], datasets=[SET], k_eval=50)
    counts = load_results(store, "simulated", datasets=[SET], k_eval=50)
    limits = mean_interval(counts["correct"] / counts["total"], bounds=(0, 1))
    assert scored.above == [
        f"simulated on {SET}, simulated",
        f"  accuracy {spell(*limits, decimals_of(60))}",
        "  60 questions; scored samples of each: 12 to 50",
        "  1,480 of 2,480 samples count; --k-eval counts more",
        "  mine: scored on 30 of 60 questions",
    ]
    whole = score_models(store, ["simulated"], datasets=[SET])
    assert "  60 questions; scored samples of each: 12 to 100" in whole.above
    assert not any("samples count" in line for line in whole.above)


def test_a_verdict_is_that_of_all_data_sets_whichever_are_shown(store: Path) -> None:
    scored = score_models(store, ["simulated"], datasets=[SET])
    [rows] = scored.rows
    assert {*rows["dataset"]} == {SET}
    rows = rows.set_index("method")
    results = load_results(store, "simulated")
    assert rows["brier"].tolist() == score(results).loc[SET, "brier"].tolist()
    texts = scored.table["simulated"].loc[SET]
    for compare, prefix, signs in (
        (compare_with_constant, "", {"better": "+", "worse": "-"}),
        (compare_recalibrated, "recalibrated_", {"better": "(+)", "worse": "(-)"}),
    ):
        every = compare(results).set_index(["dataset", "method"]).loc[SET]
        both = rows.loc[every.index]
        for column, key in (
            ("estimate", "gain"),
            ("low", "gain_low"),
            ("high", "gain_high"),
            ("p (Holm)", "p_after_holm"),
            ("verdict", "verdict_after_holm"),
        ):
            assert both[prefix + key].tolist() == every[column].tolist()
        assert "better" in {*every["verdict"]}
        for method, verdict in every["verdict"].items():
            assert signs.get(verdict, "") in texts[method].partition("]")[2]
    assert rows.loc["Oracle CC", ["gain", "verdict_after_holm"]].isna().all()
    alone = compare_with_constant(load_results(store, "simulated", datasets=[SET]))
    alone = alone.set_index("method")["p (Holm)"]
    assert (rows.loc[alone.index, "p_after_holm"] > alone).any()
    assert any("after Holm" in line for line in scored.below)


def test_what_cannot_be_read_beside_what_is_shown_is_no_part_of_the_verdicts(
    tmp_path: Path,
) -> None:
    grade_run(sample("simulated", SET, k=12, limit=30, store=tmp_path).run)
    for seed in (1, 2):  # which of the two counts, nobody has said
        grade_run(sample("simulated", "mini-exam", k=2, limit=12, seed=seed, store=tmp_path).run)
    scored = score_models(tmp_path, ["simulated"], datasets=[SET])
    [problem] = scored.problems
    assert "only the data sets shown are judged together: " in problem
    [rows] = scored.rows
    alone = compare_with_constant(load_results(tmp_path, "simulated", datasets=[SET]))
    p = alone.set_index("method")["p (Holm)"]
    assert rows.set_index("method").loc[p.index, "p_after_holm"].tolist() == p.tolist()


def test_a_run_without_verdicts_names_the_command_that_makes_them(tmp_path: Path) -> None:
    drawn = sample("simulated", "mini-exam", k=2, limit=3, store=tmp_path)
    step = f"go on with: capcal grade {drawn.run.options}"
    with pytest.raises(InputError, match=re.escape(step)):
        score_models(tmp_path, ["simulated"])
    with pytest.raises(InputError, match="go on with: capcal status --model smollm2-135m"):
        score_models(tmp_path, ["smollm2-135m"])


def test_imported_runs_stand_beside_others_as_far_as_they_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Questions without a verdict, with one sample, and in subjects, which vary as a whole."""
    monkeypatch.setenv(OWN_MANIFESTS, str(tmp_path))
    store = tmp_path / "store"

    def take(model: str, dataset: str, rows: list[dict[str, Any]]) -> None:
        path = tmp_path / "rows.jsonl"
        path.write_text("".join(json.dumps(row | {"response": "r"}) + "\n" for row in rows))
        settings = {"temperature": 1.0}
        import_samples([path], store=store, model=model, dataset=dataset, settings=settings)

    said = [["not_scored", "not_scored"], ["incorrect", "correct"], ["correct", "correct"]]
    take(
        "mine",
        "own",
        [
            {"question_id": f"q{n}", "subject": f"s{n // 4}", "verdict": verdict}
            for n in range(15)
            for verdict in said[(n >= 3) + (n >= 8)]
        ],
    )
    take("single", "own", [{"question_id": "q3", "subject": "s0", "verdict": "correct"}])
    scored = score_models(store, ["mine", "single"])
    results = load_results(store, "mine")
    mu = (results["correct"] / results["total"]).droplevel(0).dropna()
    subjects = [f"s{int(name[1:]) // 4}" for name in mu.index]
    limits = mean_interval(mu, clusters=subjects, bounds=(0, 1))
    more = "capcal import FILE... --model {} --dataset own --split test"
    title, accuracy, sizes, few, not_scored, *single = scored.above
    assert title == "mine on own, measured"
    assert accuracy == f"  accuracy {spell(*limits, decimals_of(12))}"
    assert sizes == "  15 questions; scored samples of each: 0 to 2"
    assert few.startswith("  3 questions with fewer than two scored samples, which have no score;")
    assert more.format("mine") in few
    assert not_scored.startswith("  20.0% of the samples are not scored: accuracy ")
    assert single[1:3] == [
        "  accuracy 1.00",
        "  1 question, too few for intervals; scored samples of each: 1 to 1",
    ]
    assert {*scored.table["single"]} == {""}, "no corrected score"


@pytest.mark.parametrize("questions", [9, 10])
def test_one_sample_a_question_takes_no_score_from_another_run(
    tmp_path: Path, questions: int
) -> None:
    for dataset, k in (("mini-capitals", 1), ("mini-exam", 4)):
        grade_run(sample("simulated", dataset, k=k, limit=questions, store=tmp_path).run)
    scored = score_models(tmp_path, ["simulated"])
    assert sum("accuracy" in line for line in scored.above) == 2
    assert {*pd.concat(scored.rows)["dataset"]} == {"mini-exam"}
    intervals = scored.table["simulated"].str.contains("[", regex=False)
    assert intervals.any() == (questions == 10), "nine are too few"
