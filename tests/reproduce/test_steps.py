"""Reproduce the simulated model: steps that fail, a stop on the way, and a second call."""

import resource
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from capcal_lib.errors import DiskError, InputError
from capcal_lib.reproduce import LEAN, Order, make_plan, reproduce
from capcal_lib.reproduce import steps as executed
from tests.reproduce.orders import small


def test_a_step_that_fails_leaves_the_others_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise InputError("the server is gone")

    from capcal_lib.sampling.engines.simulated import SimulatedEngine

    with monkeypatch.context() as patch:
        patch.setattr(SimulatedEngine, "hidden_states", fail)
        done = reproduce(small(tmp_path))
    assert set(done.left["step"]) == {"hidden states"}
    assert (done.left["reason"] == "the server is gone").all()
    assert ("mini-exam", "Verbalized confidence") in done.scores.index
    assert set(make_plan(small(tmp_path)).query("requests > 0")["step"]) == {"hidden states"}
    assert reproduce(small(tmp_path)).left.empty


def test_a_model_that_cannot_be_loaded_is_tried_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from capcal_lib.sampling import engines

    tried = []

    def load(model: object, **_: object) -> None:
        tried.append(model)
        raise InputError("not enough memory")

    monkeypatch.setitem(engines.ENGINES, "openai", engines.Source(f"{__name__}:loader"))
    monkeypatch.setattr(sys.modules[__name__], "loader", load, raising=False)
    recipe = replace(LEAN, judge="simulated")
    order = small(tmp_path, datasets=["mini-capitals"], recipe=recipe, judge_url="http://none")
    done = reproduce(order)
    assert len(tried) == 1
    assert done.left["step"].tolist() == ["judge"] * 2
    assert (done.left["reason"] == "not enough memory").all()
    plan = make_plan(order)
    assert set(plan.loc[plan["requests"] > 0, "step"]) == {"judge"}, "the others are done"


def test_questions_that_cannot_be_had_are_told_before_anything_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(InputError, match="accept the terms of Idavidrein/gpqa"):
        reproduce(small(tmp_path, datasets=["mini-exam", "gpqa"]))
    assert list(tmp_path.iterdir()) == []


def test_a_second_call_finds_nothing_to_do_and_the_same_numbers(
    whole: tuple[Order, pd.DataFrame],
) -> None:
    order, first = whole
    assert (make_plan(order)["requests"] == 0).all()
    pd.testing.assert_frame_equal(reproduce(order).scores, first)
    methods = first.loc["mini-exam"].index
    assert {"Uniform random", "P(True)", "Verbalized confidence", "Response consistency"} <= set(
        methods
    )
    assert any(name.startswith("Probe") for name in methods)
    assert first["printed"].isna().all()  # the paper has no such model


def test_it_goes_on_where_it_was_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: tuple[Order, pd.DataFrame]
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(executed, "extract", stop)
        with pytest.raises(KeyboardInterrupt):
            reproduce(small(tmp_path / "stopped"))
    plan = make_plan(small(tmp_path / "stopped"))
    left = plan.groupby(["split", "step"])["requests"].sum()
    assert left["test", "samples"] == left["test", "p-true"] == 0
    assert left["test", "hidden states"] == 6
    stopped = reproduce(small(tmp_path / "stopped")).scores
    pd.testing.assert_frame_equal(stopped, whole[1])


def test_a_judge_who_says_no_verdict_leaves_the_other_sets_scored(tmp_path: Path) -> None:
    """The simulated model answers what it is asked, and has no words for a judge."""
    order = small(
        tmp_path,
        datasets=["mini-capitals", "mini-exam"],
        recipe=replace(LEAN, judge="simulated"),
    )
    done = reproduce(order)
    assert set(done.left["step"]) == {"judge"}
    assert set(done.left["dataset"]) == {"mini-capitals"}
    assert done.left["reason"].str.contains("replied none of its three words, but").all()
    assert list(done.scores.index.unique("dataset")) == ["mini-exam"]
    assert "Probe (Mini exam)" in done.scores.loc["mini-exam"].index
    kept = {path.name for path in tmp_path.rglob("predictions-*")}
    assert kept == {"predictions-tuned-judge-simulated.parquet"}, "no colon, for Windows"
    wider = make_plan(replace(order, limit=8)).query("step == 'judge' and split == 'test'")
    assert wider["requests"].tolist() == [2 * 20], "of the two questions that are new"
    again = reproduce(order)
    assert again.left["reason"].tolist() == done.left["reason"].tolist()


def test_a_full_disk_ends_it_and_the_next_call_goes_on(tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    steps: list[tuple[int, int]] = []
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, limits[1]))  # of a file
        with pytest.raises(DiskError, match="the disk is full; what was written is kept"):
            reproduce(small(tmp_path), lambda *numbers: steps.append(numbers))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert len(steps) < len(make_plan(small(tmp_path))), "no step after it is tried"
    assert reproduce(small(tmp_path)).left.empty
