"""Reproduce the simulated model: the plan, a stop on the way, and what stands beside the printed
numbers.
"""

import os
import re
import resource
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from capcal_lib import reproduce as module
from capcal_lib.errors import DiskError, InputError
from capcal_lib.metrics import correctness_variance, uniform_baseline_brier
from capcal_lib.probes import read_predictions
from capcal_lib.questions import sets
from capcal_lib.reproduce import (
    LEAN,
    PAPER,
    Order,
    Part,
    Recipe,
    beside_printed,
    make_plan,
    reproduce,
    show_plan,
    time_plan,
)
from capcal_lib.results import load_results
from capcal_lib.runs.merge import merge
from capcal_lib.runs.run import find_run, open_runs
from capcal_lib.runs.store import read_samples
from capcal_lib.runs.verify import verify_run


def small(store: Path, **others: Any) -> Order:
    """Six questions of a built-in set, answered by the simulated model."""
    asked = {"model": "simulated", "datasets": ["mini-exam"], "limit": 6, "store": store}
    return Order(**asked | others)


BY_RULES = replace(PAPER, judge=None)  # the paper's recipe, with the verdicts of the rules
JUDGED = replace(LEAN, judge="simulated")


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


@pytest.mark.parametrize("engine", [None, "openai", "transformers"])
def test_a_plan_with_a_rate_needs_no_engine_no_address_and_no_weights(
    tmp_path: Path, engine: str | None
) -> None:
    lacking = f"import sys; sys.path.insert(0, {str(tmp_path / 'lacking')!r}); "
    for name in ("torch", "vllm"):
        (tmp_path / "lacking" / name).mkdir(parents=True)
        (tmp_path / "lacking" / name / "__init__.py").write_text("raise ImportError")
    command = "from capcal_lib.cli import main; main()"
    options = ["reproduce", "--model", "gpt-oss-20b", "--plan", "--rate", "20000"]
    options += ["--dataset", "gsm8k", "--store", str(tmp_path / "store")]
    options += ["--engine", engine] if engine else []
    clean = {name: value for name, value in os.environ.items() if name != "OPENAI_BASE_URL"}
    done = subprocess.run(
        [sys.executable, "-c", lacking + command, *options],
        env=clean | {"CAPCAL_CACHE_DIR": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "gsm8k" in done.stdout
    assert not re.search(r"\.\d{4}", done.stdout)  # counts are whole
    assert [path.name for path in tmp_path.iterdir()] == ["lacking"]


def test_a_plan_counts_what_the_recipe_asks_for(tmp_path: Path) -> None:
    plan = make_plan(small(tmp_path))
    rows = plan.query("step == 'samples'")[["split", "questions", "first", "each", "requests"]]
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
    paper = make_plan(small(tmp_path, recipe=BY_RULES))
    drawn = paper.query("step == 'samples'").set_index("split")["requests"]
    assert drawn.to_dict() == {"test": 6 * 100, "train": 6 * 10}


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


def test_a_plan_tells_the_night(tmp_path: Path) -> None:
    order = Order(model="gpt-oss-20b", store=tmp_path, datasets=["gsm8k"], recipe=PAPER)
    plan = make_plan(order, fetch=False)
    timed = time_plan(plan, 1000.0)
    steps = timed.set_index(["split", "step"])
    reading = steps.loc[("test", "hidden states")]
    assert reading["reads"] == 1_319 * module.PROMPT
    assert np.isnan(reading["seconds"]), "no rate says how long reading takes"
    drawing = steps.loc[("test", "verbalized")]
    assert drawing["seconds"] == drawing["tokens"] / 1000
    table, sums = show_plan(timed)
    assert table.loc[timed["step"] == "hidden states", "time"].eq("not known").all()
    # read off: 430 tokens of a sample, 310 and 195 of the confidences
    tokens = (131_900 + 74_730) * 430 + 1_319 * (310 + 195)
    requests = 131_900 + 74_730 + 3 * 1_319 + 7_473
    night = "1 day, 0:51:57"  # a thousandth of the tokens, in seconds
    assert sums == f"{requests:,} requests, {tokens:,} tokens, {night} and what is not known"


def test_what_a_plan_does_not_know_is_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = small(tmp_path)
    steps = make_plan(order).set_index(["split", "step"])
    timed = time_plan(steps.reset_index()).set_index(["split", "step"])["seconds"]
    assert timed.isna().all()
    sums = show_plan(time_plan(steps.reset_index()))[1]
    assert sums.endswith(" tokens, in a time that is not known")
    nothing_left = time_plan(steps.reset_index().assign(requests=0, tokens=0, reads=0))
    assert show_plan(nothing_left)[1] == "0 requests, 0 tokens, 0:00:00"
    open_rows = module.load_dataset("gpqa").model_copy()
    split = open_rows.splits["test"].model_copy(update={"rows": None, "hub_rows": None})
    object.__setattr__(open_rows, "splits", {"test": split})
    for room in (module, sets):
        monkeypatch.setattr(room, "load_dataset", lambda _: open_rows)
    plan = make_plan(replace(order, datasets=["gpqa"], limit=None), fetch=False)
    assert plan[["questions", "requests", "tokens"]].isna().all(axis=None)


def test_what_a_server_cannot_give_is_in_the_plan_last(tmp_path: Path) -> None:
    plan = make_plan(small(tmp_path, engine="openai"))
    assert (plan["step"].tail(2) == "hidden states").all()
    assert plan["engine"].tolist() == ["openai"] * 5 + [""] * 2
    by_hand = make_plan(small(tmp_path, engine="openai", features_engine="simulated"))
    assert by_hand["engine"].tolist() == ["openai"] * 5 + ["simulated"] * 2


@pytest.mark.parametrize("step", ["p-true", "hidden states"])
def test_a_step_that_fails_leaves_the_others_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise InputError("the server is gone")

    from capcal_lib.sampling.engines.simulated import SimulatedEngine

    named = {"p-true": "next_token_logprobs", "hidden states": "hidden_states"}
    with monkeypatch.context() as patch:
        patch.setattr(SimulatedEngine, named[step], fail)
        done = reproduce(small(tmp_path))
    assert set(done.left["step"]) == {step}
    assert (done.left["reason"] == "the server is gone").all()
    assert ("mini-exam", "Verbalized confidence") in done.scores.index
    assert set(make_plan(small(tmp_path)).query("requests > 0")["step"]) == {step}
    assert reproduce(small(tmp_path)).left.empty


def test_a_model_that_cannot_be_loaded_is_tried_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from capcal_lib.sampling import engines

    tried = []

    def load(model: object) -> None:
        tried.append(model)
        raise InputError("not enough memory")

    monkeypatch.setitem(engines.ENGINES, "large", engines.Source(f"{__name__}:loader"))
    monkeypatch.setattr(sys.modules[__name__], "loader", load, raising=False)
    done = reproduce(small(tmp_path, features_engine="large"))
    assert len(tried) == 1
    assert done.left["step"].tolist() == ["hidden states"] * 2
    assert (done.left["reason"] == "not enough memory").all()
    assert ("mini-exam", "P(True)") in done.scores.index


def test_a_precision_tops_up_once_and_a_second_call_finds_nothing_to_do(tmp_path: Path) -> None:
    order = small(tmp_path, limit=100, precision=0.04)
    expected = make_plan(order).query("step == 'top up'")
    assert expected[["basis", "engine"]].to_numpy().tolist() == [["at most", "simulated"]]
    assert expected["requests"].tolist() == [100 * (module.MOST - 20)]
    first = reproduce(order).scores.loc["mini-exam"]
    run = find_run(tmp_path, "simulated", "mini-exam", "test")
    each = read_samples(run, ["question_id"]).groupby("question_id").size()
    assert each.min() == 20 < each.max() <= module.MOST
    assert make_plan(order)["requests"].sum() == 0
    pd.testing.assert_frame_equal(reproduce(order).scores.loc["mini-exam"], first)
    assert load_results(tmp_path, "simulated")["total"].max() == each.max(), "all of them count"


def test_questions_that_cannot_be_had_are_told_before_anything_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(InputError, match="accept the terms of Idavidrein/gpqa"):
        reproduce(small(tmp_path, datasets=["mini-exam", "gpqa"]))
    assert list(tmp_path.iterdir()) == []


def test_a_second_call_finds_nothing_to_do_and_the_same_numbers(tmp_path: Path) -> None:
    first = reproduce(small(tmp_path)).scores
    assert (make_plan(small(tmp_path))["requests"] == 0).all()
    pd.testing.assert_frame_equal(reproduce(small(tmp_path)).scores, first)
    methods = first.loc["mini-exam"].index
    assert {"Uniform random", "P(True)", "Verbalized confidence", "Response consistency"} <= set(
        methods
    )
    assert any(name.startswith("Probe") for name in methods)
    assert first["printed"].isna().all()  # the paper has no such model


def test_it_goes_on_where_it_was_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, "extract", stop)
        with pytest.raises(KeyboardInterrupt):
            reproduce(small(tmp_path / "stopped"))
    plan = make_plan(small(tmp_path / "stopped"))
    left = plan.groupby(["split", "step"])["requests"].sum()
    assert left["test", "samples"] == left["test", "p-true"] == 0
    assert left["test", "hidden states"] == 6
    stopped = reproduce(small(tmp_path / "stopped")).scores
    pd.testing.assert_frame_equal(stopped, reproduce(small(tmp_path / "whole")).scores)


def test_printed_scores_stand_beside_measured_ones_without_their_noise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reproduce(small(tmp_path))
    solved = [11, 40, 97]  # of 100 samples; what follows is what the paper would print
    uniform = uniform_baseline_brier(solved, 100)
    rows = [
        ("simulated", "P(True)", "gsm8k", 0.25),
        ("simulated", "Uniform random", "gsm8k", uniform),
        ("simulated", "Oracle RC", "gsm8k", correctness_variance(solved, 100)),
        ("simulated", "Oracle CC", "gsm8k", 0.0),
    ]
    fake = pd.DataFrame(rows, columns=["model", "method", "dataset", "value"]).assign(k=np.nan)
    real = module.load_dataset("mini-exam").model_copy(update={"reported_as": "gsm8k"})
    monkeypatch.setattr(module, "load_reported", lambda *_, **__: fake)
    monkeypatch.setattr(module, "load_dataset", lambda _: real)
    table = beside_printed(small(tmp_path)).loc["mini-exam"]
    noise = np.mean([c * (100 - c) / 100**2 / 99 for c in solved])
    expected = {
        "P(True)": 0.25 - noise,
        "Uniform random": uniform_baseline_brier(solved, 100, corrected=True),
        "Oracle RC": correctness_variance(solved, 100, corrected=True),
        "Oracle CC": 0.0,
    }
    assert table["printed"].dropna().to_dict() == pytest.approx(expected)
    assert table["within"].notna().sum() == 4
    # By the paper's protocol scores are plug-in scores, as those that are printed.
    order = small(tmp_path, recipe=BY_RULES)
    table = beside_printed(order).loc["mini-exam"]
    assert table.loc["P(True)", "printed"] == 0.25
    results = load_results(tmp_path, "simulated")
    mu = results["correct"] / results["total"]
    plug_in = ((results["P(True)"] - mu) ** 2).mean()
    assert table.loc["P(True)", "brier"] == pytest.approx(plug_in)


def test_the_papers_probe_is_the_mean_over_its_splits_with_their_spread(tmp_path: Path) -> None:
    order = small(tmp_path, recipe=BY_RULES, limit=12)
    table = reproduce(order).scores.loc["mini-exam"]
    results = load_results(tmp_path, "simulated", held_out=False)
    mu = results["correct"] / results["total"]
    name = "Probe (Mini exam)"
    predicted = read_predictions(tmp_path, "simulated", recipe="paper")
    scores = [((predicted[f"{name} [{fold}]"] - mu) ** 2).mean() for fold in range(5)]
    assert table.loc[name, "brier"] == pytest.approx(np.mean(scores))
    assert table.loc[name, "spread"] == pytest.approx(np.std(scores, ddof=1))
    assert table.loc["P(True)":"P(True)", "spread"].isna().all()
    by_votes = [name for name in table.index if name.startswith("Response consistency")]
    assert by_votes == [f"Response consistency, {votes} votes" for votes in (5, 10, 20)]
    for votes in (5, 10, 20):
        few = load_results(tmp_path, "simulated", held_out=False, k_c=votes)
        said = few["Response consistency"].fillna(0.5)
        score = ((said - mu) ** 2).mean()
        assert table.loc[f"Response consistency, {votes} votes", "brier"] == pytest.approx(score)


def test_a_judge_who_says_no_verdict_leaves_the_other_sets_scored(tmp_path: Path) -> None:
    """The simulated model answers what it is asked, and has no words for a judge."""
    order = small(
        tmp_path,
        datasets=["mini-capitals", "mini-exam"],
        recipe=replace(PAPER, judge="simulated"),
    )
    done = reproduce(order)
    assert set(done.left["step"]) == {"judge"}
    assert set(done.left["dataset"]) == {"mini-capitals"}
    assert done.left["reason"].str.contains("said none of its three words, but such as").all()
    assert list(done.scores.index.unique("dataset")) == ["mini-exam"]
    assert "Probe (Mini exam)" in done.scores.loc["mini-exam"].index
    kept = {path.name for path in tmp_path.rglob("predictions-*")}
    assert kept == {"predictions-paper-judge-simulated.parquet"}, "no colon, for Windows"
    again = reproduce(order)
    assert again.left["reason"].tolist() == done.left["reason"].tolist()


def test_the_papers_recipe_trains_the_mixture_where_its_sets_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MIX", ("mini-exam", "mini-elements"))
    asked: dict[str, Any] = {"recipe": BY_RULES, "limit": 10}
    alone = reproduce(small(tmp_path, **asked)).scores
    assert "Probe (Mini exam + Mini elements)" not in alone.index.unique("method")
    both = reproduce(small(tmp_path, datasets=["mini-exam", "mini-elements"], **asked)).scores
    for name in ("mini-exam", "mini-elements"):
        assert "Probe (Mini exam + Mini elements)" in both.loc[name].index


def test_a_full_disk_ends_it_and_the_next_call_goes_on(tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    steps: list[tuple[int, int]] = []
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (3_000, limits[1]))  # of a file
        with pytest.raises(DiskError, match="the disk is full; what was written is kept"):
            reproduce(small(tmp_path), lambda *numbers: steps.append(numbers))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert len(steps) < len(make_plan(small(tmp_path))), "no step after it is tried"
    assert reproduce(small(tmp_path)).left.empty


@pytest.mark.parametrize("recipe", [LEAN, BY_RULES], ids=["lean", "paper"])
def test_eight_parts_merged_give_the_table_of_the_whole(tmp_path: Path, recipe: Recipe) -> None:
    sets = {"limit": 17, "recipe": recipe}
    whole = reproduce(small(tmp_path / "whole", **sets)).scores
    parts = [tmp_path / f"part-{number}" for number in range(1, 9)]
    for number, store in enumerate(parts, 1):
        done = reproduce(small(store, part=Part(number, 8), **sets))
        assert (len(done.scores), len(done.left)) == (0, 0)
        assert make_plan(small(store, part=Part(number, 8), **sets))["requests"].sum() == 0
        for run in open_runs(store):
            assert len(read_samples(run, ["question_id"])["question_id"].unique()) in (2, 3)
            assert not verify_run(run).problems
    merge(tmp_path / "merged", parts)
    order = small(tmp_path / "merged", **sets)
    assert make_plan(order)["requests"].sum() == 0
    merged = reproduce(order).scores
    assert {name for name in merged.index.unique("method") if name.startswith("Probe")}
    assert ("spread" in merged) == (recipe == BY_RULES)
    pd.testing.assert_frame_equal(merged, whole, check_exact=True)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"recipe": replace(LEAN, judge="nobody")}, "unknown model 'nobody'"),
        ({"part": Part(9, 8)}, "a part is its number of how many, such as 3/8; got 9/8"),
        ({"part": Part(1, 2), "precision": 0.02}, "by all questions: after a merge"),
        ({"precision": 0.02, "recipe": PAPER}, "precision is reached by the lean recipe"),
        ({"precision": 0.02, "recipe": JUDGED}, "with the verdicts of the rules"),
        ({"features_engine": "cloud"}, "unknown engine 'cloud'"),
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
