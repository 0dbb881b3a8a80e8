import numpy as np
import pandas as pd
import pytest
from scipy.special import betaln

from benchmarks.extrapolation import WORLDS
from capcal_lib.applications import extrapolate_pass_at_k, fit_concentration, pass_at_k
from capcal_lib.errors import InputError


def rng(seed=0):
    return np.random.default_rng(seed)


@pytest.mark.parametrize("name", ["Beta", "some hopeless", "logit-normal"])
def test_twenty_samples_tell_of_many_more(name):
    ks, held, misses, plug_in = [40, 110, 400, 2_000, 10_000], [], [], []
    for seed in range(8):
        r = rng(seed)
        mu = WORLDS[name](r, 400)
        correct = r.binomial(20, mu)
        table = extrapolate_pass_at_k(correct, np.full(400, 20), ks)
        truth = (1 - (1 - mu[:, None]) ** ks).mean(axis=0)
        held.append(((table["low"] <= truth) & (truth <= table["high"])).to_numpy())
        misses.append(table["estimate"] - truth)
        plug_in.append((1 - (1 - correct[:, None] / 20) ** ks).mean(axis=0) - truth)
    assert np.mean(held) >= 0.95
    if name in ("Beta", "logit-normal"):  # elsewhere the estimate has the wrong shape
        assert (np.abs(np.mean(misses, axis=0)) < np.abs(np.mean(plug_in, axis=0))).all()


def test_up_to_n_it_is_the_unbiased_estimate():
    r = rng()
    total = np.repeat([20, 30], 100)
    correct = r.binomial(total, r.beta(0.4, 0.6, 200))
    table = extrapolate_pass_at_k(correct, total, [1, 5, 20])
    np.testing.assert_allclose(
        table["estimate"], pass_at_k(correct, total, [1, 5, 20]).mean(axis=0)
    )
    half = 1.96 * pass_at_k(correct, total, [1, 5, 20]).std(axis=0, ddof=1) / np.sqrt(200)
    np.testing.assert_allclose(table["high"] - table["low"], 2 * half, rtol=0.15)


def test_columns_are_in_order_and_curves_rise():
    r = rng()
    correct = r.binomial(20, r.beta(0.3, 1.0, 300))
    ks = [500, 1, 20, 21, 100, 40]
    table = extrapolate_pass_at_k(pd.Series(correct), np.full(300, 20), ks)
    assert list(table.columns) == ["k", "estimate", "low", "high", "questions"]
    assert table["k"].tolist() == ks
    limits = table[["low", "estimate", "high"]].to_numpy()
    assert (np.diff(limits, axis=1) >= 0).all()
    assert ((limits >= 0) & (limits <= 1)).all()
    rise = np.diff(limits[np.argsort(ks)], axis=0)
    assert (rise[:, 1:] >= 0).all()


def test_questions_of_fewer_samples_leave_the_others_theirs():
    r = rng()
    total = np.repeat([100, 12], [40, 80])
    correct = r.binomial(total, r.beta(0.4, 0.6, 120))
    table = extrapolate_pass_at_k(correct, total, [4, 12, 13, 100, 500]).set_index("k")
    assert table["questions"].tolist() == [120, 120, 40, 40, 40]
    exact = pass_at_k(correct, total, [4, 12, 100])
    assert table["estimate"].loc[[4, 12, 100]].tolist() == pytest.approx(np.nanmean(exact, axis=0))
    alone = extrapolate_pass_at_k(correct[:40], total[:40], [100, 500]).set_index("k")
    pd.testing.assert_frame_equal(table.loc[[100, 500]], alone)


def test_the_bounds_hold_whatever_the_unseen_questions_are():
    # Half of the questions never solved: they may be hopeless, or solved once in a few hundred
    # samples.
    correct = rng().binomial(20, np.repeat([0.0, 0.5], 200))
    table = extrapolate_pass_at_k(correct, [20] * 400, [10_000])
    assert table["low"][0] <= 0.5
    assert table["high"][0] > 0.999


def test_counts_that_no_independent_samples_give_have_no_limits():
    table = extrapolate_pass_at_k([0] * 200 + [10] * 200, [20] * 400, [100])
    assert table[["low", "high"]].to_numpy().tolist() == [[0, 1]]
    assert table["estimate"].between(0.5, 1).all()


def test_a_heavy_tail_near_zero_is_held():
    """A quarter of the questions is solved once in a hundred to thirty thousand samples."""
    r = rng(3)
    held = []
    for _ in range(20):
        mu = np.where(r.random(200) < 0.25, 10 ** r.uniform(-4.5, -2, 200), r.beta(2, 2, 200))
        row = extrapolate_pass_at_k(r.binomial(20, mu), [20] * 200, [2_000]).iloc[0]
        held.append(row["low"] <= np.mean(1 - (1 - mu) ** 2_000) <= row["high"])
    assert np.mean(held) >= 0.95


def test_nothing_to_go_on_is_refused():
    for correct in ([0, 0, 20], [0, 0, 0]):
        with pytest.raises(InputError, match="no question has both correct and incorrect samples"):
            extrapolate_pass_at_k(correct, [20, 20, 20], [5, 21])
    table = extrapolate_pass_at_k([0, 0, 20], [20, 20, 20], [5, 20])
    assert table["estimate"].tolist() == pytest.approx([1 / 3, 1 / 3])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1], [0], [5]), "row 0: correct is 1, more than its total"),
        (([0], [0], [5]), "row 0: total is 0, but 1 or more scored samples are needed"),
        (([1], [2], [0]), "row 0: k is 0"),
    ],
)
def test_bad_rows_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        extrapolate_pass_at_k(*arguments)


def test_clusters_of_questions_that_are_alike_count_as_one_draw_each():
    """Forty subjects of ten questions that share one mu: the limits are about all subjects."""
    r = rng(4)
    labels = np.repeat(np.arange(40), 10)
    ks = np.array([10, 200])
    mu = r.beta(0.4, 0.8, 200_000)
    truth = (1 - (1 - mu[:, None]) ** ks).mean(axis=0)
    held = {"plain": [], "whole": []}
    for _ in range(30):
        correct = r.binomial(20, r.beta(0.4, 0.8, 40)[labels])
        for how, clusters in (("plain", None), ("whole", labels)):
            table = extrapolate_pass_at_k(correct, np.full(400, 20), ks, clusters=clusters)
            held[how].append(table["low"].le(truth) & table["high"].ge(truth))
    plain, whole = (np.mean(each, axis=0) for each in held.values())
    assert plain[0] < 0.6
    assert whole.min() > 0.9


def test_clusters_of_one_question_each_change_nothing_and_the_band_is_that_of_their_number():
    correct, total = rng().binomial(20, rng().beta(0.3, 1.0, 60)), np.full(60, 20)
    plain = extrapolate_pass_at_k(correct, total, [5, 100])
    alone = extrapolate_pass_at_k(correct, total, [5, 100], clusters=range(60))
    pd.testing.assert_frame_equal(plain, alone)
    # Each question three times, as one cluster, tells as much as once.
    thrice = np.repeat(correct, 3), np.repeat(total, 3)
    repeated = extrapolate_pass_at_k(*thrice, [100], clusters=np.repeat(range(60), 3))
    expected = plain[plain["k"] == 100][["low", "estimate", "high"]].to_numpy()
    found = repeated[["low", "estimate", "high"]].to_numpy()
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_the_prior_has_the_mean_of_questions_however_many_samples_each_has():
    """One question in ten has three times the samples, and is hard."""
    r = rng(2)
    total = np.repeat([60, 20], [30, 270])
    correct = r.binomial(total, np.repeat(r.beta([0.2, 2], [2, 1]), [30, 270]))
    row = extrapolate_pass_at_k(correct, total, [100]).iloc[0]
    prior = np.mean([c / n for c, n in zip(correct, total, strict=True)])
    nu = fit_concentration(prior, correct, total)
    a, b = prior * nu + correct, (1 - prior) * nu + total - correct
    expected = 1 - np.mean(np.exp(betaln(a, b + 100) - betaln(a, b)))
    assert row["low"] < expected < row["high"]
    assert row["estimate"] == pytest.approx(expected, abs=1e-9)


def test_few_questions_never_have_a_narrow_interval():
    one = extrapolate_pass_at_k([1], [2], [1, 10])
    assert one["low"].tolist() == [0, 0]
    assert one["high"].tolist() == [1, 1]
    some = extrapolate_pass_at_k([1, 0, 3, 20, 7], [20] * 5, [200]).iloc[0]
    assert some["high"] - some["low"] > 0.5
