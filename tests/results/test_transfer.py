"""Contests of probes and baselines on the same questions, and what is counted of them."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from capcal_lib.errors import InputError
from capcal_lib.manifests import RECORDED_RUNS, load_dataset
from capcal_lib.metrics import capability_brier
from capcal_lib.probes.coordinates import FILE
from capcal_lib.results import generalisation as lab
from capcal_lib.results import transfer as contests
from capcal_lib.sampling.files import write_table
from tests.probes.probe_sets import CAPITALS, MODEL, TESTS, TRAINING, UNSEEN, rng


def test_a_contest_scores_everybody_on_the_same_questions() -> None:
    terms = contests.hold(TRAINING, UNSEEN, rng())
    assert len(terms) == len(UNSEEN)
    everybody = {*contests.PROBES, "Bag of words", "Length and punctuation"}
    assert set(terms) == everybody | {"Overall mean of all training sets", "Mean of the training set"}
    table = contests.score_table(UNSEEN, terms, rng()).set_index("predictor")
    assert table.loc[contests.LINEAR, ["difference", "difference low", "difference high"]].tolist() == [0, 0, 0]
    mean = np.full(len(UNSEEN), (CAPITALS.correct / CAPITALS.total).mean())
    constant = capability_brier(mean, UNSEEN.correct, UNSEEN.total, corrected=True)
    assert table.loc["Mean of the training set", "brier"] == pytest.approx(constant)
    # The simulated states hold mu and its texts do not.
    assert table.loc[contests.TUNED, "brier"] < table.loc["Bag of words", "brier"]
    assert contests.hold(TRAINING[:1], UNSEEN, rng()).empty  # no training set of its own


def row(predictor: str, brier: float, low: float, high: float, dataset: str = "A") -> dict[str, object]:
    middle = (low + high) / 2
    columns = {"difference": middle, "difference low": low, "difference high": high}
    return {"predictor": predictor, "data set": dataset, "brier": brier, **columns}


def test_wins_are_counted_only_where_the_interval_says_so() -> None:
    table = pd.DataFrame(
        [
            row(contests.LINEAR, 0.1, 0, 0),
            row("Bag of words", 0.12, 0.01, 0.03),  # surely worse
            row("Mean of the training set", 0.15, 0.04, 0.06),
            row(contests.KERNEL, 0.08, -0.03, -0.01),  # a fifth lower, surely
            row(contests.LINEAR, 0.1, 0, 0, "B"),
            row("Bag of words", 0.09, -0.03, 0.01, "B"),  # cannot be told
            row(contests.KERNEL, 0.095, -0.009, -0.001, "B"),  # surely, but a twentieth
            row(contests.LINEAR, 0.1, 0, 0, "C"),
            row("Bag of words", 0.05, -0.07, -0.03, "C"),  # surely better
            row(contests.KERNEL, 0.05, -0.12, 0.02, "C"),  # a half, but not surely
        ]
    )
    assert contests.baselines_beaten(table) == {"sets": 3, "below": 1, "above": 1}
    assert contests.tenths_won(table) == 1


def test_tables_against_two_references_share_their_scores() -> None:
    held = [(UNSEEN, contests.hold(TRAINING, UNSEEN, rng()))]
    one, other = contests.score_tables(held, rng(), contests.LINEAR, contests.TUNED)
    assert one["brier"].tolist() == other["brier"].tolist()
    gap = one.set_index("predictor")["difference"] - other.set_index("predictor")["difference"]
    np.testing.assert_allclose(gap, gap.iloc[0])
    assert contests.score_tables([], rng(), contests.LINEAR)[0].empty
    wide = contests.wide_table(one).set_index("predictor")
    assert list(wide) == [UNSEEN.dataset.title]
    score, limits = wide.loc[contests.LINEAR, UNSEEN.dataset.title].split(" ", 1)
    assert float(score) == pytest.approx(one.set_index("predictor")["brier"][contests.LINEAR], abs=1e-4)
    assert limits == "[+0.0000, +0.0000]"
    assert contests.wide_table(pd.DataFrame()).empty


def test_a_contest_is_held_for_each_pair_by_itself() -> None:
    held = contests.hold_all(RECORDED_RUNS, [MODEL, "gpt-oss-20b"])
    assert [test.dataset.name for test, _ in held] == [one.dataset.name for one in TESTS if one.dataset.training_split]
    alone = contests.hold(TRAINING, UNSEEN, rng())
    (same,) = [terms for test, terms in held if test.dataset == UNSEEN.dataset]
    pd.testing.assert_frame_equal(same, alone)
    assert not contests.hold(TRAINING, UNSEEN, rng(1))[contests.STACKED].equals(alone[contests.STACKED])
    assert contests.stacked_table(held).empty  # simulated pairs measure nothing


def pair(shift: float, paper: float = 0.1, stacked: float = 0.05) -> tuple[lab.ProbeSet, pd.DataFrame]:
    """A measured pair whose scores are given, with as much noise in the stacked probe's as ``shift`` says."""
    noise = shift * rng().normal(size=(len(UNSEEN), 1))[:, 0]
    columns = {
        contests.LINEAR: paper,
        contests.TUNED: 0.07,
        contests.STACKED: stacked + noise - noise.mean(),
        "Bag of words": 0.3,
    }
    terms = pd.DataFrame({name: np.full(len(UNSEEN), 1.0) * value for name, value in columns.items()})
    return replace(UNSEEN, evidence="measured"), terms.assign(**dict.fromkeys((contests.KERNEL, "Mean"), 0.2))


def test_the_aim_is_a_tenth_beyond_doubt() -> None:
    table = contests.stacked_table([pair(0.001), pair(5.0), pair(0.001, stacked=0.095), pair(0.001, stacked=0.15)])
    assert table["met"].tolist() == [True, False, False, False]
    assert table["lower"].tolist() == pytest.approx([0.5, 0.5, 0.05, -0.5])
    assert table["minus tuned"][0] == pytest.approx(-0.02)
    assert table["minus best baseline"][0] == pytest.approx(-0.15)  # the mean, whose score is lower than the words'
    assert set(table["part"]) == {"development"}
    counted = contests.aim_counts(table)
    assert counted == {
        "pairs": 4,
        "met": 1,
        "clean": 0,
        "clean_met": 0,
        "development": 4,
        "development_met": 1,
        "worse": 1,
        "below_tuned": 1,
        "above_tuned": 2,
        "below_baseline": 3,
        "above_baseline": 0,
    }
    real = replace(UNSEEN, evidence="measured", dataset=load_dataset("triviaqa"))
    mixed = contests.stacked_table([pair(0.001), (real, pair(0.001)[1]), (real, pair(5.0)[1])])
    assert mixed["part"].tolist() == ["development", "clean test", "clean test"]
    assert [contests.aim_counts(mixed)[key] for key in ("clean", "clean_met")] == [2, 1]
    assert contests.failures(mixed) == f"{mixed['model'][2]} on TriviaQA"
    assert contests.failures(mixed[:1]) == "none"
    assert contests.failures(contests.stacked_table([])) == "none"
    assert set(contests.aim_counts(contests.stacked_table([])).values()) == {0}
    shown = contests.stacked_shown(table)
    assert shown["met"].tolist() == ["yes", "no", "no", "no"]
    assert shown["minus the paper's"][0].startswith("-0.0500 [-0.0")
    assert contests.stacked_shown(contests.stacked_table([])).empty


def test_coordinates_along_other_directions_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / UNSEEN.folder.name
    shutil.copytree(UNSEEN.folder, folder)
    table = pq.read_table(folder / FILE)
    write_table(folder / FILE, table.replace_schema_metadata({"directions": "elsewhere"}))
    with pytest.raises(InputError, match="not along the training run's directions; run: capcal coordinates"):
        contests.hold(TRAINING, replace(UNSEEN, folder=folder), rng())
    write_table(folder / FILE, table.slice(1))
    with pytest.raises(InputError, match="have no coordinates; make them with: capcal coordinates"):
        contests.hold(TRAINING, replace(UNSEEN, folder=folder), rng())


def test_without_training_split_there_is_no_contest() -> None:
    assert contests.baselines_beaten(pd.DataFrame()) == {"sets": 0, "below": 0, "above": 0}
    assert contests.tenths_won(pd.DataFrame()) == 0
    assert contests.hold([], UNSEEN, rng()).empty
