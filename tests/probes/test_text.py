"""Probes that read the text of questions alone."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from capcal_lib.manifests import RECORDED_RUNS
from capcal_lib.probes import TextProbe, keep_predictions, read_predictions
from capcal_lib.probes.text import length, words


def test_length_learns_from_length_and_nothing_else() -> None:
    rng = np.random.default_rng(0)
    sizes = rng.integers(3, 400, 300)
    mu = np.clip(np.log(sizes) / 6, 0, 1)
    correct = rng.binomial(20, mu)
    probe = TextProbe(length).fit(["x" * size for size in sizes], correct, np.full(300, 20))
    found = probe.predict(["a" * size for size in sizes])
    assert np.abs(found - mu).mean() < 0.03
    assert probe.predict(["ab" * 20]) == probe.predict(["xy" * 20])


def test_words_tell_kinds_of_questions_apart_and_length_does_not() -> None:
    texts = [f"capital of {name}" for name in "abcdefghij"] + [f"integral of {n}" for n in range(9)]
    correct = [9] * 10 + [1] * 9
    by_words = TextProbe(words).fit(texts, correct, [10] * 19)
    easy, hard = by_words.predict(["capital of z", "integral of 99"])
    assert easy > 0.75
    assert hard < 0.25
    assert by_words.out_of_fold_ is not None
    assert np.abs(by_words.out_of_fold_ - np.array(correct) / 10).max() < 0.25


@pytest.mark.parametrize("reads", [length, words])
def test_predictions_are_shares_whatever_is_asked(reads: object) -> None:
    probe = TextProbe(reads).fit(["a", "bb", "ccc", "dddd", "e e e"], [0, 1, 2, 3, 3], [3] * 5)
    assert ((found := probe.predict(["", "q" * 10_000, "\n\x00🙂"])) >= 0).all()
    assert (found <= 1).all()


def test_they_are_kept_as_predictions_of_other_probes_are(tmp_path: Path) -> None:
    for split in ("test", "train"):
        place = f"smollm2-135m/mini-capitals-{split}"
        shutil.copytree(RECORDED_RUNS / place, tmp_path / place)
    for recipe in ("length", "words"):
        for old in tmp_path.rglob(f"predictions-{recipe}.parquet"):
            old.unlink()
        made = keep_predictions(tmp_path, "smollm2-135m", recipe=recipe)
        assert made["made"].all()
        said = read_predictions(tmp_path, "smollm2-135m", recipe=recipe)
        kept = read_predictions(RECORDED_RUNS, "smollm2-135m", recipe=recipe).loc[["mini-capitals"]]
        probe = "Probe (Mini capitals)"
        np.testing.assert_allclose(said[probe], kept.loc[said.index, probe], atol=1e-6)
