import json
import re
from pathlib import Path

import pandas as pd
import pytest

from capcal_lib.errors import InputError
from capcal_lib.grading.verdicts import grade_run
from capcal_lib.io.importing import import_samples
from capcal_lib.io.score_runs import score_models
from capcal_lib.metrics import mean_interval
from capcal_lib.places import OWN_MANIFESTS, RECORDED_RUNS
from capcal_lib.results import (
    compare_recalibrated,
    compare_with_constant,
    load_results,
    score,
    subjects,
)
from capcal_lib.results.results import CONSISTENCY
from capcal_lib.results.terms import decimals_of
from capcal_lib.sampling.draw import sample
from capcal_lib.text import spell
from tests.folders import sample_unlike_totals

SET = "mini-elements"


@pytest.fixture(scope="module")
def unlike(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = tmp_path_factory.mktemp("store")
    sample_unlike_totals(store, SET)
    return store


def test_it_is_said_how_many_samples_questions_have(unlike: Path) -> None:
    scored = score_models(unlike, ["simulated"])
    assert any("60 questions; scored samples of each: 12 to 100" in line for line in scored.above)


def test_samples_beyond_k_eval_are_named_and_an_option_counts_them(unlike: Path) -> None:
    scored = score_models(unlike, ["simulated"], k_eval=50)
    assert "  1,480 of 2,480 samples count; --k-eval counts more" in scored.above
    whole = score_models(unlike, ["simulated"], k_eval=100)
    assert not any("samples count" in line for line in whole.above)
    [line] = [line for line in whole.above if "accuracy" in line]
    counts = load_results(unlike, "simulated", k_eval=100)
    mu = (counts["correct"] / counts["total"]).mean()
    assert f"accuracy {mu:.3f}" in line


def test_accuracy_draws_whole_subjects() -> None:
    scored = score_models(RECORDED_RUNS, ["smollm2-135m"], datasets=["mmlu"])
    [line] = [line for line in scored.above if "accuracy" in line]
    results = load_results(RECORDED_RUNS, "smollm2-135m", datasets=["mmlu"])
    mu = results["correct"] / results["total"]
    interval = mean_interval(mu, clusters=subjects(results), bounds=(0, 1))
    shown = spell(*interval, decimals_of(len(mu)))
    assert line == f"  accuracy {shown}"
    assert shown != spell(*mean_interval(mu, bounds=(0, 1)), decimals_of(len(mu)))


def test_it_is_said_how_many_questions_have_no_scored_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(OWN_MANIFESTS, str(tmp_path))
    samples = []
    for number in range(12):
        row = {"question_id": f"q{number}", "question": f"{number}?", "response": "r"}
        first, second = ("not_scored",) * 2 if number < 3 else ("correct", "incorrect")
        samples += [row | {"verdict": first}, row | {"verdict": second}]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in samples))
    own = {"model": "mine", "dataset": "own", "settings": {"temperature": 1.0}}
    grade_run(import_samples([path], store=tmp_path / "store", **own).run)
    above = score_models(tmp_path / "store", ["mine"]).above
    assert "  12 questions, too few for intervals; scored samples of each: 0 to 2" in above
    assert "3 questions with fewer than two scored samples, which have no score" in above[3]


def test_a_score_on_fewer_questions_than_others_says_on_how_many() -> None:
    asked = {"datasets": ["math500"]}
    scored = score_models(RECORDED_RUNS, ["qwen2.5-coder-1.5b"], **asked)
    questions = score(load_results(RECORDED_RUNS, "qwen2.5-coder-1.5b", **asked))["questions"]
    assert questions["math500", "Best constant"] == 300
    fewer = questions["math500"][questions["math500"] < 300]
    assert CONSISTENCY in fewer
    said = [f"  {method}: scored on {number} of 300 questions" for method, number in fewer.items()]
    assert [line for line in scored.above if "scored on" in line] == said


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


def test_a_verdict_is_that_of_all_data_sets_whichever_are_shown() -> None:
    probe, name = "Probe (Mini capitals)", "mini-capitals"
    alone = load_results(RECORDED_RUNS, "smollm2-135m", datasets=[name])
    judged = compare_with_constant(alone).set_index(["dataset", "method"])
    scored = score_models(RECORDED_RUNS, ["smollm2-135m"], datasets=[name])
    [rows] = scored.rows
    rows = rows.set_index(["dataset", "method"])
    assert set(rows.index.get_level_values("dataset")) == {name}
    every = compare_with_constant(load_results(RECORDED_RUNS, "smollm2-135m"))
    every = every.set_index(["dataset", "method"]).loc[[name]]
    both = rows.loc[every.index]
    for column, key in {"estimate": "gain", "low": "gain_low", "high": "gain_high"}.items():
        assert both[key].tolist() == every[column].tolist()
    assert both["p_after_holm"].tolist() == every["p (Holm)"].tolist()
    assert both["verdict_after_holm"].tolist() == every["verdict"].tolist()
    of_one_set = judged.loc[(name, probe), "p (Holm)"]
    assert both.loc[(name, probe), "p_after_holm"] > of_one_set
    assert rows.loc[(name, "Oracle CC"), ["gain", "verdict_after_holm"]].isna().all()
    texts = scored.table["smollm2-135m"]
    assert "-" in texts[(name, "Verbalized confidence")].partition("]")[2]
    assert texts[(name, probe)].endswith("]+*")
    assert any("after Holm" in line for line in scored.below)


def test_a_method_is_judged_as_it_is_and_after_recalibration() -> None:
    model = "qwen2.5-coder-1.5b"
    scored = score_models(RECORDED_RUNS, [model], datasets=["gsm8k"])
    [rows] = scored.rows
    rows = rows.set_index("method")
    judged = compare_recalibrated(load_results(RECORDED_RUNS, model))
    judged = judged[judged["dataset"] == "gsm8k"].set_index("method")
    gains = rows.loc[judged.index, "recalibrated_gain"]
    assert gains.tolist() == judged["estimate"].tolist()
    said = rows.loc["P(True)"]
    assert said["verdict_after_holm"] == "worse"
    assert said["recalibrated_verdict_after_holm"] == "better"
    assert bool(said["could_be_won"]) is True
    assert scored.table[model]["gsm8k", "P(True)"].endswith("-(+)")
    assert rows.loc["Probe (GSM8K)", ["recalibrated_gain"]].isna().all(), "it has learned before"


def test_what_cannot_be_read_beside_what_is_shown_is_no_part_of_the_verdicts(
    tmp_path: Path,
) -> None:
    sample_unlike_totals(tmp_path, SET)
    for seed in (1, 2):  # which of the two counts, nobody has said
        drawn = sample("simulated", "mini-exam", k=2, limit=12, seed=seed, store=tmp_path)
        grade_run(drawn.run)
    scored = score_models(tmp_path, ["simulated"], datasets=[SET])
    [problem] = scored.problems
    assert "only the data sets shown are judged together: " in problem
    [rows] = scored.rows
    alone = compare_with_constant(load_results(tmp_path, "simulated", datasets=[SET]))
    p = rows.set_index("method")["p_after_holm"].dropna()
    pd.testing.assert_series_equal(
        p, alone.set_index("method")["p (Holm)"].loc[p.index], check_names=False
    )


def test_a_run_without_verdicts_names_the_command_that_makes_them(tmp_path: Path) -> None:
    drawn = sample("simulated", "mini-exam", k=2, limit=3, store=tmp_path)
    step = f"go on with: capcal grade {drawn.run.options}"
    with pytest.raises(InputError, match=re.escape(step)):
        score_models(tmp_path, ["simulated"])
    with pytest.raises(InputError, match="go on with: capcal status --model smollm2-135m"):
        score_models(tmp_path, ["smollm2-135m"])
