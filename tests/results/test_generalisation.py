"""Transfer, mixtures and learning curves of probes; the kernel probe; bands and warnings."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from capcal_lib.book import figures
from capcal_lib.errors import InputError
from capcal_lib.manifests import RECORDED_RUNS, dataset_names, load_dataset
from capcal_lib.metrics import capability_brier, null_std, uniform_baseline_brier
from capcal_lib.questions import load_questions
from capcal_lib.results import generalisation as lab
from capcal_lib.results import tables
from capcal_lib.sampling.engines.simulated import true_mu
from capcal_lib.sampling.store import list_runs
from tests.probes.probe_sets import CAPITALS, TESTS, TRAINING, UNSEEN, rng


def test_the_recorded_sets_are_found_with_their_counts() -> None:
    names = [one.dataset.name for one in TRAINING]
    assert names == ["mini-arithmetic", "mini-capitals", "mini-elements", "mini-exam"]
    assert {one.evidence for one in (*TRAINING, *TESTS)} == {"simulated"}
    assert CAPITALS.total.max() == 10
    assert UNSEEN.total.max() == 100
    assert len(CAPITALS) == len(CAPITALS.features) == len(CAPITALS.question_ids)
    assert lab.training_sets(RECORDED_RUNS, "gpt-oss-20b") == []
    with pytest.raises(InputError, match="unknown data set"):
        lab.pick(TESTS, "nothing")


def test_each_cell_of_the_matrix_is_a_probe_trained_here_and_scored_there() -> None:
    matrix = lab.transfer_matrix(TRAINING[:2], TESTS[:3], rng())
    assert len(matrix) == 3 * 3  # two sets and their mixture
    row = matrix[(matrix["method"] == TRAINING[0].dataset.probe) & (matrix["dataset"] == TESTS[1].dataset.name)].iloc[0]
    probe = lab.paper_probe().fit(*TRAINING[0].everything)
    s, c, n = probe.predict(TESTS[1].features), TESTS[1].correct, TESTS[1].total
    assert row["brier"] == pytest.approx(capability_brier(s, c, n, corrected=True))
    assert row["gain"] == pytest.approx(uniform_baseline_brier(c, n, corrected=True) - row["brier"])
    assert row["spread"] == pytest.approx(null_std(c, n))
    figures.scores(matrix)  # which marks where a perfect estimator would lie
    assert row["low"] < row["brier"] < row["high"]
    assert (matrix["best"] == (matrix["gain low"] > 0)).all()


def test_the_matrix_is_shown_and_drawn_as_a_main_table() -> None:
    matrix = lab.transfer_matrix(TRAINING[:2], TESTS[:2], rng())
    assert "Probe (Mini capitals)" in tables.show_main(matrix, "Scores.").to_html()
    assert len(figures.scores(matrix).axes) == 2
    tables.show_main(lab.transfer_matrix([], [], rng()), "Scores.").to_html()


def test_the_shift_is_by_data_set_and_domain() -> None:
    matrix = lab.transfer_matrix(TRAINING, TESTS, rng()).set_index(["method", "dataset"])["shift"]
    assert matrix["Probe (Mini capitals)", "mini-capitals"] == "in-domain in-distribution"
    assert matrix["Probe (Mini capitals)", "mini-elements"] == "in-domain out-of-distribution"
    assert matrix["Probe (Mini capitals)", "mini-exam"] == "out-of-domain"
    assert matrix[lab.MIXTURE, "mini-exam"] == "mixture"
    table = lab.shift_table(lab.transfer_matrix(TRAINING, TESTS, rng()))
    assert lab.shift_counts(table) == {
        "own": int(table["beat"][0]), "own_cells": 4, "away": int(table["beat"][1:3].sum()), "away_cells": 12,
        "mixture": int(table["beat"][3]), "mixture_cells": 4,
    }  # fmt: skip


def test_without_samples_every_table_is_empty() -> None:
    empty = lab.transfer_matrix([], [], rng())
    assert empty.empty
    assert lab.shift_counts(lab.shift_table(empty)) == dict.fromkeys(
        ["own", "own_cells", "away", "away_cells", "mixture", "mixture_cells"], 0
    )


def test_a_mixture_takes_equal_shares_without_repetition() -> None:
    features, correct, total = lab.mixed(TRAINING[:3], 60, rng())
    assert len(features) == len(correct) == len(total) == 60
    origin = [{row.tobytes() for row in one.features} for one in TRAINING[:3]]
    assert [sum(row.tobytes() in rows for row in features) for rows in origin] == [20, 20, 20]
    assert len({row.tobytes() for row in features}) == 60
    assert not np.array_equal(features, lab.mixed(TRAINING[:3], 60, rng(1))[0])


def test_more_questions_and_more_samples_help() -> None:
    sizes = lab.size_curve(CAPITALS, UNSEEN, [40, len(CAPITALS), 10_000], rng())
    assert sizes["questions"].tolist() == [40, len(CAPITALS)]
    assert sizes["brier"][0] > sizes["brier"][1]
    labels = lab.label_curve(CAPITALS, UNSEEN, [1, 10, 20], rng())
    assert labels["k_train"].tolist() == [1, 10]
    assert labels["brier"][0] > labels["brier"][1]
    assert labels["lowest"][1] == pytest.approx(labels["highest"][1])  # all ten samples: nothing is drawn
    assert lab.label_curve(CAPITALS, UNSEEN, [1], rng(1))["brier"][0] != labels["brier"][0]


def test_the_last_step_and_the_shares_at_home() -> None:
    assert lab.last_step(pd.DataFrame({"brier": [0.3, 0.2, 0.15]})) == pytest.approx(0.05)
    assert np.isnan(lab.last_step(pd.DataFrame()))
    kinds = [lab.SHIFTS["id"], lab.SHIFTS["ood"], lab.SHIFTS["out"]]
    table = pd.DataFrame({"shift": kinds, "covered": [0.9, 0.5, 0.1], "flagged": [0.1, 0.5, 0.7]})
    assert lab.home_and_away(table) == pytest.approx({"covered": 0.9, "home": 0.1, "away": 0.6})
    assert all(map(np.isnan, lab.home_and_away(pd.DataFrame()).values()))


def test_reported_mixing_is_the_papers() -> None:
    table = lab.reported_mixing("gpt-oss-20b").set_index("method")
    assert table.loc["Probe (TriviaQA + GSM8K)", "GSM8K"] == 0.0277
    assert set(table["evidence"]) == {"reported"}
    assert "no numbers" in lab.reported_mixing("simulated").iloc[0, 0]


def test_the_band_holds_at_home_and_far_questions_are_flagged() -> None:
    table = lab.reliance(CAPITALS, TESTS, rng(), level=0.9).set_index("data set")
    assert table.loc["Mini capitals", "covered"] > 0.8
    assert table.loc["Mini capitals", "flagged"] < 0.2
    moved = replace(UNSEEN, features=UNSEEN.features + 5)
    assert lab.reliance(CAPITALS, [moved], rng())["flagged"][0] > 0.95


def test_what_the_lab_keeps_is_small_and_holds_no_question() -> None:
    asked = {
        question.text
        for name in dataset_names()
        if load_dataset(name).builtin
        for split in load_dataset(name).splits
        for question in load_questions(name, split)
    }
    assert len(asked) > 1000
    for folder in list_runs(RECORDED_RUNS):
        for path in folder.glob("*.parquet"):
            table = pq.read_table(path, partitioning=None).to_pandas()
            said = {"response", "reasoning", "extracted", "text"}  # the model's own words, which may repeat a question
            for column in table.columns.difference(said):
                assert asked.isdisjoint(value for value in table[column] if isinstance(value, str)), path
            if path.name in ("coordinates.parquet", "exact.parquet"):
                assert path.stat().st_size < 350_000


def test_the_simulated_probe_finds_the_true_mu() -> None:
    predicted = lab.paper_probe().fit(*CAPITALS.everything).predict(UNSEEN.features)
    assert np.corrcoef(predicted, true_mu([str(name) for name in UNSEEN.question_ids]))[0, 1] > 0.7
