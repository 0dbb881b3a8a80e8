"""Reproduce the simulated model: the plan, a stop on the way, and what stands beside the printed
numbers.
"""

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from capcal_lib import reproduce as module
from capcal_lib.errors import InputError
from capcal_lib.manifests import load_model
from capcal_lib.reproduce import beside_printed, make_plan, reproduce, time_requests
from capcal_lib.results import load_results
from capcal_lib.sampling.engines import engines_stay_open, open_engine

SMALL = {"datasets": ["mini-exam"], "limit": 6}


def test_tokens_are_read_off_the_papers_figures_where_there_are_no_samples(tmp_path: Path) -> None:
    read = {
        "samples": 430,
        "verbalized": 310,
        "p-true": 195,
        "hidden states": 0,
    }  # of gpt-oss-20b on GSM8K
    plan = make_plan(
        "gpt-oss-20b", store=tmp_path, datasets=["gsm8k"], recipe="paper", engine="simulated"
    )
    for row in plan.query("split == 'test'").to_dict("records"):
        assert row["tokens"] == row["requests"] * read[row["step"]]
        assert row["basis"] == ("" if row["step"] == "hidden states" else "read off")


@pytest.mark.parametrize("engine", [None, "openai", "transformers"])
def test_a_plan_with_a_rate_needs_no_engine_no_address_and_no_weights(
    tmp_path: Path, engine: str | None
) -> None:
    lacking = "import sys; sys.modules['torch'] = sys.modules['vllm'] = None; "
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
    assert not list(tmp_path.iterdir())


def test_a_plan_counts_what_the_recipe_asks_for(tmp_path: Path) -> None:
    plan = make_plan("simulated", store=tmp_path, **SMALL).set_index(["split", "step"])
    assert plan.loc[("test", "samples"), "requests"] == 6 * 20
    assert plan.loc[("train", "samples"), "requests"] == 6 * 4
    assert plan.loc[("test", "p-true"), ["requests", "tokens"]].tolist() == [6, 6]
    assert plan.index.get_level_values("step").tolist() == [
        *module.STEPS[:3],
        "samples",
        *["hidden states"] * 2,
    ]
    paper = make_plan("simulated", store=tmp_path, recipe="paper", **SMALL).set_index(
        ["split", "step"]
    )
    assert paper.loc[("test", "samples"), "requests"] == 6 * 110
    assert paper.loc[("train", "samples"), "requests"] == 6 * 10


def test_a_second_call_finds_nothing_to_do_and_the_same_numbers(tmp_path: Path) -> None:
    first = reproduce("simulated", store=tmp_path, **SMALL)
    assert (make_plan("simulated", store=tmp_path, **SMALL)["requests"] == 0).all()
    pd.testing.assert_frame_equal(reproduce("simulated", store=tmp_path, **SMALL), first)
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
            reproduce("simulated", store=tmp_path / "stopped", **SMALL)
    left = make_plan("simulated", store=tmp_path / "stopped", **SMALL).set_index(["split", "step"])[
        "requests"
    ]
    assert left["test", "samples"] == left["test", "p-true"] == 0
    assert left["test", "hidden states"] == 6
    stopped = reproduce("simulated", store=tmp_path / "stopped", **SMALL)
    pd.testing.assert_frame_equal(
        stopped, reproduce("simulated", store=tmp_path / "whole", **SMALL)
    )


def test_a_calibration_draws_nothing_into_the_store(tmp_path: Path) -> None:
    plan = make_plan("simulated", store=tmp_path, **SMALL)
    timed = time_requests("simulated", plan)
    assert list(tmp_path.iterdir()) == []
    assert (timed["seconds"] >= 0).all()
    assert (timed["bytes"] > 0).all()
    assert set(timed.loc[timed["step"] == "samples", "basis"]) == {"measured"}


def test_the_model_is_opened_once() -> None:
    model = load_model("simulated")
    assert open_engine(model) is not open_engine(model)
    with engines_stay_open():
        engine = open_engine(model)
        assert open_engine(model) is engine
        assert open_engine(model.with_settings(prompt_style="steps")) is engine, (
            "a chat in other words"
        )
        assert open_engine(model.with_settings(prompt_style="completion")) is not engine
    assert open_engine(model) is not open_engine(model)


def test_printed_scores_stand_beside_measured_ones_without_their_noise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reproduce("simulated", store=tmp_path, **SMALL)
    rows = [
        ("simulated", "P(True)", "gsm8k", 0.25),
        ("simulated", "Uniform random", "gsm8k", 1 / 3 - 0.099),
    ]
    fake = pd.DataFrame(rows, columns=["model", "method", "dataset", "value"])
    real = module.load_dataset("mini-exam").model_copy(update={"reported_as": "gsm8k"})
    monkeypatch.setattr(module, "load_reported", lambda *_, **__: fake)
    monkeypatch.setattr(module, "load_dataset", lambda _: real)
    table = beside_printed(tmp_path, "simulated", k_eval=10).loc["mini-exam"]
    assert table.loc["P(True)", "printed"] == pytest.approx(0.25 - 0.001)
    assert table.loc["Uniform random", "printed"] == pytest.approx(1 / 3 - 0.099 + 0.001)
    assert table["within"].notna().sum() == 2
    assert load_results(tmp_path, "simulated").shape[0] == 6


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"recipe": "rich"}, "unknown recipe 'rich'; known: lean, paper"),
        ({"limit": 0}, "limit must be a whole number"),
        ({"datasets": ["gsm9k"]}, "unknown data set 'gsm9k'"),
        ({"engine": "cloud"}, "unknown engine 'cloud'"),
    ],
)
def test_what_cannot_run_says_so_before_any_work(
    tmp_path: Path, settings: dict[str, object], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        reproduce("simulated", store=tmp_path, **{**SMALL, **settings})  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []
