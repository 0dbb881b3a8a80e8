"""Transfer, mixtures and learning curves of probes; the kernel probe; bands and warnings."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capcal_lib.book import figures
from capcal_lib.errors import InputError
from capcal_lib.manifests import RECORDED_RUNS, dataset_names, load_dataset
from capcal_lib.metrics import capability_brier, null_std, uniform_baseline_brier
from capcal_lib.probes.conformal import Familiarity, conformal_half_width
from capcal_lib.probes.coordinates import FILE, keep_coordinates, layer_thirds, read_coordinates, text_statistics
from capcal_lib.probes.features import extract
from capcal_lib.probes.kernel import KernelProbe, principal_coordinates
from capcal_lib.questions import load_questions
from capcal_lib.results import generalisation as lab
from capcal_lib.results import tables
from capcal_lib.sampling.draw import sample
from capcal_lib.sampling.engines.simulated import true_mu
from capcal_lib.sampling.store import list_runs
from tests.probes.probe_sets import CAPITALS, MODEL, TESTS, TRAINING, UNSEEN, rng


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


def test_text_statistics_count_what_is_seen() -> None:
    texts = ["What is 6 × 7?", "A. Paris\nB. Rome"]
    assert text_statistics(texts).tolist() == [[14, 5, 2, 1, 2], [16, 4, 0, 4, 2]]


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


@settings(max_examples=25, deadline=None)
@given(st.integers(10, 200), st.floats(0.5, 0.95), st.integers(0, 2**31))
def test_a_conformal_band_covers_a_new_question_as_promised(n: int, level: float, seed: int) -> None:
    draws = rng(seed)
    s, mu = draws.random((2, n + 1))
    inside = 0
    for left_out in range(n + 1):  # exchangeable: each question in turn is the new one, so the count is exact
        others = np.arange(n + 1) != left_out
        inside += abs(s[left_out] - mu[left_out]) <= conformal_half_width(s[others], mu[others], level=level) + 1e-9
    assert inside >= level * (n + 1) - 1e-9


def test_a_band_from_too_few_questions_is_everything() -> None:
    assert conformal_half_width([0.5] * 5, [0.5] * 5, level=0.9) == 1
    with pytest.raises(InputError, match="level must lie between 0 and 1"):
        conformal_half_width([0.5], [0.5], level=1.0)


def test_familiarity_passes_the_level_of_its_own_kind() -> None:
    known = Familiarity(level=0.9).fit(rng().normal(size=(2000, 5)), rng=rng())
    assert 0.07 < known.far(rng(1).normal(size=(2000, 5))).mean() < 0.13
    assert known.far(rng(1).normal(size=(50, 5)) + 6).all()
    with pytest.raises(InputError, match="four questions or more"):
        Familiarity().fit([[1.0], [2.0]], rng=rng())
    with pytest.raises(InputError, match="level must lie"):
        Familiarity(level=0)


def data(seed: int = 0, n: int = 30) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    draws = rng(seed)
    features, total = draws.normal(size=(n, 3)), draws.integers(2, 12, n)
    return features, draws.binomial(total, 1 / (1 + np.exp(-2 * features[:, 0]))), total


@pytest.mark.parametrize("seed", range(4))
def test_what_is_left_out_is_what_a_fit_without_it_predicts(seed: int) -> None:
    features, correct, total = data(seed)
    probe = KernelProbe().fit(features, correct, total)
    assert probe.bandwidth is not None
    assert probe.left_out is not None
    distances = ((features[:, None] - features[None]) ** 2).sum(-1)
    kernel = 1 + np.exp(-probe.bandwidth * distances / np.median(distances))
    mu, mean = correct / total, correct.sum() / total.sum()
    ridge = kernel + probe.penalty * len(total) * np.diag(total.mean() / total)
    for row in range(len(total)):
        others = np.arange(len(total)) != row
        dual = np.linalg.solve(ridge[np.ix_(others, others)], mu[others] - mean)
        assert probe.left_out[row] == pytest.approx(np.clip(mean + kernel[row, others] @ dual, 0, 1), abs=1e-6)


def test_the_kernel_probe_learns_what_a_line_cannot() -> None:
    features = rng().uniform(-2, 2, size=(200, 1))
    mu = np.exp(-(features[:, 0] ** 2))
    correct = rng(1).binomial(20, mu)
    predicted = KernelProbe().fit(features, correct, np.full(200, 20)).predict(features)
    assert np.mean((predicted - mu) ** 2) < 0.003
    line = lab.paper_probe().fit(features, correct, np.full(200, 20)).predict(features)
    assert np.mean((line - mu) ** 2) > 0.05


def test_where_there_is_nothing_to_learn_it_predicts_the_mean() -> None:
    features, total = rng().normal(size=(100, 20)), np.full(100, 10)
    correct = rng(1).binomial(10, 0.3, 100)
    probe = KernelProbe().fit(features, correct, total)
    assert np.ptp(probe.predict(rng(2).normal(size=(50, 20)))) < 0.1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: KernelProbe().predict([[1.0]]), "not fitted"),
        (lambda: KernelProbe().fit([[1.0], [2.0]], [1, 1], [2, 2]), "three questions or more"),
        (lambda: KernelProbe().fit([[1.0]] * 4, [1] * 3, [2] * 3), "4 rows of features and 3 counts"),
        (lambda: KernelProbe().fit([[np.nan]] * 4, [1] * 4, [2] * 4), "finite numbers"),
        (lambda: KernelProbe().fit([[1.0]] * 4, [1] * 4, [2] * 4).predict([[1.0, 2.0]]), "fitted to 1 features; got 2"),
    ],
)
def test_bad_input_is_one_clear_line(call, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=message):
        call()


def test_coordinates_are_principal_and_blind_to_scale() -> None:
    states = rng().normal(size=(30, 4, 5)).astype(np.float32)
    training, others = principal_coordinates(states, states[:7], components=6)
    np.testing.assert_allclose(others, training[:7], atol=1e-4)
    covariance = training.T @ training
    np.testing.assert_allclose(covariance - np.diag(np.diag(covariance)), 0, atol=1e-2)
    scale = np.array([1, 10, 100, 1000], np.float32)[None, :, None]
    scaled = principal_coordinates(states * scale, components=6)[0]
    np.testing.assert_allclose(np.abs(scaled), np.abs(training), rtol=0.01, atol=0.02)
    constant = np.ones((10, 3), np.float32)
    assert np.isfinite(principal_coordinates(constant)[0]).all()


def test_coordinates_are_kept_beside_the_samples(tmp_path: Path) -> None:
    one, other = (
        sample(MODEL, "mini-capitals", k=1, limit=12, store=tmp_path, split=split).folder for split in ("train", "test")
    )
    with pytest.raises(
        InputError, match="make them with: capcal coordinates --model simulated --dataset mini-capitals"
    ):
        read_coordinates(one)
    keep_coordinates(one, other)
    states = [extract(folder, layers="all") for folder in (one, other)]
    asked = {
        question.id: question.text for split in ("train", "test") for question in load_questions("mini-capitals", split)
    }
    for folder, points in zip((one, other), layer_thirds(*states), strict=True):
        kept = read_coordinates(folder)
        assert kept.question_ids == sorted(kept.question_ids)
        assert kept.directions == one.name
        np.testing.assert_allclose(kept.points, points, rtol=2e-3, atol=0.05)
        expected = text_statistics([asked[name] for name in kept.question_ids])
        np.testing.assert_array_equal(kept.statistics, expected)
    pq.write_table(pq.read_table(one / FILE).drop_columns("coordinates"), one / FILE)
    with pytest.raises(InputError, match="not a file of coordinates"):
        read_coordinates(one)


def test_each_third_of_the_layers_has_its_own_coordinates() -> None:
    states = rng().normal(size=(30, 7, 5)).astype(np.float32)
    thirds = layer_thirds(states, states[:4])[1]
    for place, part in enumerate((states[:, :3], states[:, 3:5], states[:, 5:])):
        np.testing.assert_allclose(thirds[:, place], principal_coordinates(part, part[:4])[1], atol=1e-4)


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
