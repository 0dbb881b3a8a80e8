"""What stands beside the printed numbers."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from capcal_lib.metrics import correctness_variance, uniform_baseline_brier
from capcal_lib.reproduce import Order, beside_printed, reproduce, steps
from capcal_lib.reproduce import table as tables
from capcal_lib.results import load_results
from tests.reproduce.orders import BY_RULES, small


def test_printed_scores_stand_beside_measured_ones_without_their_noise(
    whole: tuple[Order, pd.DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    solved = [11, 40, 97]  # of 100 samples; what follows is what the paper would print
    uniform = uniform_baseline_brier(solved, 100)
    rows = [
        ("simulated", "P(True)", "gsm8k", 0.25),
        ("simulated", "Uniform random", "gsm8k", uniform),
        ("simulated", "Oracle RC", "gsm8k", correctness_variance(solved, 100)),
        ("simulated", "Oracle CC", "gsm8k", 0.0),
    ]
    fake = pd.DataFrame(rows, columns=["model", "method", "dataset", "value"]).assign(k=np.nan)
    real = tables.load_dataset("mini-exam").model_copy(update={"reported_as": "gsm8k"})
    monkeypatch.setattr(tables, "load_reported", lambda *_, **__: fake)
    monkeypatch.setattr(tables, "load_dataset", lambda _: real)
    results = load_results(whole[0].store, "simulated")
    table = beside_printed(results, "simulated", protocol="corrected").loc["mini-exam"]
    noise = np.mean([c * (100 - c) / 100**2 / 99 for c in solved])
    expected = {
        "P(True)": 0.25 - noise,
        "Uniform random": uniform_baseline_brier(solved, 100, corrected=True),
        "Oracle RC": correctness_variance(solved, 100, corrected=True),
        "Oracle CC": 0.0,
    }
    assert table["printed"].dropna().to_dict() == pytest.approx(expected)
    assert table["within"].notna().sum() == 4
    # Under the paper's protocol scores are plug-in scores, as the printed ones are.
    table = beside_printed(results, "simulated", protocol="paper").loc["mini-exam"]
    assert table.loc["P(True)", "printed"] == 0.25
    mu = results["correct"] / results["total"]
    plug_in = ((results["P(True)"] - mu) ** 2).mean()
    assert table.loc["P(True)", "brier"] == pytest.approx(plug_in)


def test_the_papers_probe_is_the_mean_over_its_splits_with_their_spread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    datasets = ("mini-exam", "mini-elements")
    monkeypatch.setattr(steps, "MIX", datasets)
    both = reproduce(small(tmp_path, recipe=BY_RULES, datasets=datasets)).scores
    for name in datasets:
        assert "Probe (Mini exam + Mini elements)" in both.loc[name].index
    table = both.loc["mini-exam"]
    of_exam: dict[str, Any] = {"datasets": ["mini-exam"], "held_out": False}
    results = load_results(tmp_path, "simulated", recipe="paper", **of_exam)
    mu = results["correct"] / results["total"]
    name = "Probe (Mini exam)"
    scores = [((results[f"{name} [{fold}]"] - mu) ** 2).mean() for fold in range(5)]
    assert table.loc[name, "brier"] == pytest.approx(np.mean(scores))
    assert table.loc[name, "spread"] == pytest.approx(np.std(scores, ddof=1))
    assert table.loc["P(True)":"P(True)", "spread"].isna().all()
    by_votes = [name for name in table.index if name.startswith("Response consistency")]
    assert by_votes == [f"Response consistency, {votes} votes" for votes in (5, 10, 20)]
    for votes in (5, 10, 20):
        few = load_results(tmp_path, "simulated", k_c=votes, **of_exam)
        said = few["Response consistency"].fillna(0.5)
        score = ((said - mu) ** 2).mean()
        assert table.loc[f"Response consistency, {votes} votes", "brier"] == pytest.approx(score)
