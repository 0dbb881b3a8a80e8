"""What the two recipes ask for, of the paper's models."""

from dataclasses import replace
from pathlib import Path

import pytest

from capcal_lib.reproduce import PAPER, Order, make_plan


def test_the_papers_recipe_has_its_training_and_validation_sets_and_its_judge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CAPCAL_DATA_DIR", raising=False)
    order = Order(model="qwen3-8b", store=tmp_path, recipe=PAPER)
    plan = make_plan(order)
    drawn = plan.query("step == 'samples'").set_index(["dataset", "split"])
    assert len(drawn) == 7 + 3 + 1
    assert (drawn.xs("train", level="split")["each"] == 10).all()
    questions = drawn["questions"].to_dict()
    assert questions["triviaqa-1000", "train"] == 7_473
    assert questions["math500", "train"] == 11_498
    assert drawn.loc[("math500", "valid"), ["questions", "each"]].tolist() == [500, 100]
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
