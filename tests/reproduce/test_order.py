"""What is ordered: recipes, parts of all questions, and what is refused."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from capcal_lib.errors import InputError
from capcal_lib.grading.verdicts import grade_run
from capcal_lib.reproduce import LEAN, PAPER, Order, Part, make_plan, reproduce
from capcal_lib.results import describe_runs
from capcal_lib.runs.merge import merge
from capcal_lib.runs.run import open_runs
from capcal_lib.runs.store import read_samples
from capcal_lib.runs.verify import verify_run
from capcal_lib.sampling.draw import sample
from tests.reproduce.orders import small


def test_parts_merged_give_the_table_of_the_whole(
    tmp_path: Path, whole: tuple[Order, pd.DataFrame]
) -> None:
    parts = [tmp_path / f"part-{number}" for number in (1, 2)]
    for number, store in enumerate(parts, 1):
        done = reproduce(small(store, part=Part(number, 2)))
        assert (len(done.scores), len(done.left)) == (0, 0)
        assert make_plan(small(store, part=Part(number, 2)))["requests"].sum() == 0
        for run in open_runs(store):
            assert len(read_samples(run, ["question_id"])["question_id"].unique()) == 3
            assert not verify_run(run).problems
    merge(tmp_path / "merged", parts)
    order = small(tmp_path / "merged")
    assert make_plan(order)["requests"].sum() == 0
    merged = reproduce(order).scores
    assert {name for name in merged.index.unique("method") if name.startswith("Probe")}
    pd.testing.assert_frame_equal(merged, whole[1], check_exact=True)


def test_what_is_sampled_is_scored_once_it_has_its_verdicts(tmp_path: Path) -> None:
    order = small(tmp_path, datasets=["mini-exam", "mini-capitals"])
    runs = {
        name: sample("simulated", name, k=2, limit=6, store=tmp_path).run
        for name in ("mini-exam", "mini-capitals")
    }
    assert order.scored() == []
    grade_run(runs["mini-capitals"])
    assert order.scored() == ["mini-capitals"]
    grade_run(sample("simulated", "mini-capitals", k=3, limit=6, store=tmp_path, seed=1).run)
    drawn = [describe_runs(replace(order, seed=seed).counting)["most"] for seed in (0, 1)]
    assert [most["mini-capitals"] for most in drawn] == [2, 3], "of the order's seed"
    judged = replace(order, recipe=replace(LEAN, judge="simulated"))
    assert judged.scored() == [], "by the judge there are none"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"recipe": replace(LEAN, judge="nobody")}, "unknown model 'nobody'"),
        ({"part": Part(9, 8)}, "a part is NUMBER/PARTS, such as 3/8; got 9/8"),
        ({"datasets": ["gsm9k"]}, "unknown data set 'gsm9k'"),
        ({"engine": "cloud"}, "unknown engine 'cloud'"),
    ],
)
def test_what_cannot_run_says_so_before_any_work(
    tmp_path: Path, settings: dict[str, object], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        reproduce(small(tmp_path, **settings))
    assert list(tmp_path.iterdir()) == []


def test_the_papers_recipe_has_its_training_and_validation_sets_and_its_judge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CAPCAL_DATA_DIR", raising=False)
    order = Order(model="qwen3-8b", store=tmp_path, recipe=PAPER)
    plan = make_plan(order)
    drawn = plan.query("step == 'samples'").set_index(["dataset", "split"])
    assert len(drawn) == 7 + 3 + 1
    assert (drawn.xs("train", level="split")["per_question"] == 10).all()
    questions = drawn["questions"].to_dict()
    assert questions["triviaqa-1000", "train"] == 7_473
    assert questions["math500", "train"] == 11_498
    assert drawn.loc[("math500", "valid"), ["questions", "per_question"]].tolist() == [500, 100]
    judged = plan.query("step == 'judge'")
    assert set(judged["dataset"]) == {"triviaqa-1000", "simpleqa-verified", "math500"}
    assert judged["requests"].sum() == 250_000 + 50_000 + 10 * (7_473 + 11_498)
    assert plan["step"].iloc[-1] == "judge", "another model, so the last to be opened"
    own = make_plan(replace(order, model="gpt-oss-20b"))
    assert own["step"].iloc[-1] == "hidden states"


def test_the_lean_plan_of_the_papers_model_is_a_seventh_of_the_papers(tmp_path: Path) -> None:
    lean = make_plan(Order(model="gpt-oss-20b", store=tmp_path))
    paper = make_plan(Order(model="gpt-oss-20b", store=tmp_path, recipe=PAPER))
    assert lean["tokens"].sum() < 175e6 < paper["tokens"].sum() / 6
