"""The plan: what it counts, and what it does not know."""

import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from capcal_lib.questions import sets
from capcal_lib.reproduce import PAPER, Order, make_plan, show_plan, time_plan
from capcal_lib.reproduce import plan as plans
from capcal_lib.sampling.draw import sample
from tests.command import run
from tests.reproduce.orders import BY_RULES, small


def test_tokens_are_read_off_the_papers_figures_where_there_are_no_samples(tmp_path: Path) -> None:
    read = {
        "samples": 430,
        "verbalized": 310,
        "p-true": 195,
        "hidden states": 0,
    }  # of gpt-oss-20b on GSM8K
    order = small(tmp_path, model="gpt-oss-20b", datasets=["gsm8k"], recipe=PAPER)
    plan = make_plan(order)
    for row in plan.query("split == 'test'").to_dict("records"):
        assert row["tokens"] == row["requests"] * read[row["step"]]
        assert row["basis"] == ("" if row["step"] == "hidden states" else "read off")


def test_an_answer_has_at_most_the_tokens_of_its_data_set(tmp_path: Path) -> None:
    order = small(tmp_path, model="smollm2-135m", datasets=["gsm8k"])
    plan = make_plan(order, fetch=False).query("step in ('samples', 'verbalized')")
    assert (plan["tokens"] == 256 * plan["requests"]).all()
    assert {*plan["basis"]} == {"at most"}


def test_a_plan_with_a_rate_needs_no_engine_no_address_and_no_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("torch", "vllm"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setenv("CAPCAL_CACHE_DIR", str(tmp_path / "cache"))
    options = ["--model", "gpt-oss-20b", "--plan", "--rate", "20000"]
    options += ["--dataset", "gsm8k", "--store", str(tmp_path / "store")]
    status, out, err = run(monkeypatch, capsys, "reproduce", *options)
    assert (status, err) == (0, "")
    assert "gsm8k" in out
    assert not re.search(r"\.\d{4}", out)  # counts are whole
    assert not list(tmp_path.iterdir())


def test_a_plan_counts_what_the_recipe_asks_for(tmp_path: Path) -> None:
    plan = make_plan(small(tmp_path))
    rows = plan.query("step == 'samples'")[
        ["split", "questions", "first", "per_question", "requests"]
    ]
    assert rows.to_numpy().tolist() == [
        ["test", 6, 0, 20, 120],
        ["train", 6, 0, 1, 6],
        ["train", 6, 1, 3, 18],
    ]
    assert plan["step"].tolist() == [
        "samples",
        "verbalized",
        "p-true",
        *["samples"] * 2,
        *["hidden states"] * 2,
    ]
    assert plan.query("step == 'p-true'")[["requests", "tokens"]].to_numpy().tolist() == [[6, 6]]
    sample("simulated", "mini-exam", k=1, limit=9, store=tmp_path)
    plan = make_plan(small(tmp_path)).query("split == 'test'")  # what is sampled is asked
    assert plan["questions"].tolist() == [6, 9, 9, 9]
    assert plan["requests"].tolist() == [6 * 19, 9, 9, 9]
    paper = make_plan(small(tmp_path / "paper", recipe=BY_RULES))
    drawn = paper.query("step == 'samples'").set_index("split")["requests"]
    assert drawn.to_dict() == {"test": 6 * 100, "train": 6 * 10}


def test_a_plan_tells_the_night(tmp_path: Path) -> None:
    order = Order(model="gpt-oss-20b", store=tmp_path, datasets=["gsm8k"], recipe=PAPER)
    plan = make_plan(order, fetch=False)
    timed = time_plan(plan, 1000.0)
    steps = timed.set_index(["split", "step"])
    reading = steps.loc[("test", "hidden states")]
    assert reading["reads"] == 1_319 * plans.PROMPT
    assert np.isnan(reading["seconds"]), "no rate says how long reading takes"
    drawing = steps.loc[("test", "verbalized")]
    assert drawing["seconds"] == drawing["tokens"] / 1000
    table, sums = show_plan(timed)
    assert table.loc[timed["step"] == "hidden states", "time"].eq("unknown").all()
    # read off: 430 tokens of a sample, 310 and 195 of the confidences
    tokens = (131_900 + 74_730) * 430 + 1_319 * (310 + 195)
    requests = 131_900 + 74_730 + 3 * 1_319 + 7_473
    night = "1 day, 0:51:57"  # a thousandth of the tokens, in seconds
    assert sums == f"{requests:,} requests, {tokens:,} tokens, {night} and an unknown rest"


def test_what_a_plan_does_not_know_is_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = small(tmp_path)
    steps = make_plan(order).set_index(["split", "step"])
    timed = time_plan(steps.reset_index()).set_index(["split", "step"])["seconds"]
    assert timed.isna().all()
    sums = show_plan(time_plan(steps.reset_index()))[1]
    assert sums.endswith(" tokens, duration unknown")
    nothing_left = time_plan(steps.reset_index().assign(requests=0, tokens=0, reads=0))
    assert show_plan(nothing_left)[1] == "0 requests, 0 tokens, 0:00:00"
    open_rows = plans.load_dataset("gpqa").model_copy()
    split = open_rows.splits["test"].model_copy(update={"rows": None, "hub_rows": None})
    object.__setattr__(open_rows, "splits", {"test": split})
    for room in (plans, sets):
        monkeypatch.setattr(room, "load_dataset", lambda _: open_rows)
    plan = make_plan(replace(order, datasets=["gpqa"], limit=None), fetch=False)
    assert plan[["questions", "requests", "tokens"]].isna().all(axis=None)


def test_what_a_server_cannot_give_is_in_the_plan_last(tmp_path: Path) -> None:
    plan = make_plan(small(tmp_path, engine="openai"))
    assert (plan["step"].tail(2) == "hidden states").all()
    assert plan["engine"].tolist() == ["openai"] * 5 + [""] * 2
