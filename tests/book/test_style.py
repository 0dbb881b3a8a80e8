"""Figures can be read: by contrast, by people who see colours differently, in both themes, at the
page's width.
"""

import io
import re
from itertools import combinations

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
import seaborn as sns

from capcal_lib.book import style
from capcal_lib.manifests import dataset_names
from capcal_lib.places import BOOK
from capcal_lib.plots import (
    COLORS,
    INK,
    MUTED,
    OTHER_COLOR,
    RULE_COLORS,
    SHIFT_COLORS,
    method_color,
    palette,
)

WHITE, DARK = (
    (1.0, 1.0, 1.0),
    tuple(int(part, 16) / 255 for part in ("12", "12", "12")),
)  # the theme's two grounds
CHOSEN = {**COLORS, **SHIFT_COLORS}
# Machado, Oliveira and Fernandes 2009, at full severity, on linear light.
BLINDNESS = {
    "none": np.eye(3),
    "protan": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deutan": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritan": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
# `hue-rotate(180deg)`, by the matrix of the CSS filter specification.
TURNED = np.array([[-0.574, 1.430, 0.144], [0.426, 0.430, 0.144], [0.426, 1.430, -0.856]])
OKLAB = (
    [[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566],
     [0.0883024619, 0.2817188376, 0.6299787005]],
    [[0.2104542553, 0.7936177850, -0.0040720468], [1.9779984951, -2.4285922050, 0.4505937099],
     [0.0259040371, 0.7827717662, -0.8086757660]],
)  # fmt: skip


def test_a_broken_formula_in_a_name_is_drawn_as_it_is() -> None:
    with plt.rc_context():
        style.set_style()
        figure, axes = plt.subplots()
        axes.set_title("$\\frac{$")
        figure.savefig(io.BytesIO(), format="svg")
        plt.close(figure)


def linear(color):
    return np.where(
        np.asarray(color) <= 0.04045,
        np.asarray(color) / 12.92,
        ((np.asarray(color) + 0.055) / 1.055) ** 2.4,
    )


def contrast(one, other):
    low, high = sorted(float(linear(color) @ [0.2126, 0.7152, 0.0722]) for color in (one, other))
    return (high + 0.05) / (low + 0.05)


def dark(color):
    inverted = 0.92 - 0.84 * np.asarray(color)
    return np.clip(1.15 * np.clip(TURNED @ inverted, 0, 1), 0, 1)


def lab(color, seen):
    return OKLAB[1] @ np.cbrt(
        np.asarray(OKLAB[0]) @ np.clip(np.asarray(seen) @ linear(color), 0, 1)
    )


@pytest.mark.parametrize("color", [*CHOSEN.values(), OTHER_COLOR, INK, MUTED])
def test_every_colour_stands_out_from_both_grounds(color):
    rgb = mpl.colors.to_rgb(color)
    assert contrast(rgb, WHITE) >= 3
    assert contrast(dark(rgb), DARK) >= 5  # more, because some marks are half transparent


@pytest.mark.parametrize("seen", BLINDNESS.values(), ids=BLINDNESS)
@pytest.mark.parametrize("theme", [np.asarray, dark], ids=["light", "dark"])
def test_no_two_methods_look_alike(theme, seen):
    colors = {name: lab(theme(mpl.colors.to_rgb(color)), seen) for name, color in CHOSEN.items()}
    distances = {
        pair: np.linalg.norm(colors[pair[0]] - colors[pair[1]]) for pair in combinations(colors, 2)
    }
    closest = min(distances, key=distances.__getitem__)
    assert distances[closest] >= 0.07, closest  # about three times what is just noticeable


def test_the_dark_theme_turns_figures_as_these_tests_do():
    css = (BOOK / "static" / "capcal.css").read_text(encoding="utf-8")
    assert "--capcal-dark: invert(0.92) hue-rotate(180deg) brightness(1.15);" in css
    assert css.count("filter: var(--capcal-dark)") == 2


def test_a_probe_has_the_colour_of_its_shift_and_others_their_own():
    assert [method_color("Probe (GSM8K)", name) for name in ("gsm8k", "math500", "mmlu")] == [
        *SHIFT_COLORS.values()
    ]
    assert {method_color("P(True)", name) for name in dataset_names()} == {COLORS["P(True)"]}


def test_several_methods_of_one_colour_get_shades_that_differ():
    assert method_color("Probe-x") == method_color("mine")
    assert method_color("Probe of the data set") == method_color("Probe (GSM8K)", "gsm8k")
    methods = ["Probe (GSM8K)", "Probe (MATH)", "mine", "other", "P(True)"]
    found = palette(methods, "triviaqa")
    assert list(found) == methods
    assert len(set(found.values())) == len(methods)
    assert found["Probe (GSM8K)"] == SHIFT_COLORS["probe of another domain"]


def test_a_rule_has_its_own_colour_among_methods():
    found = palette(["mine", "Even spending", "Probe, posterior", "other"])
    assert list(found) == ["mine", "Even spending", "Probe, posterior", "other"]
    assert found["Even spending"] == RULE_COLORS["Even spending"]
    assert found["Probe, posterior"] == RULE_COLORS["Probe, posterior"]
    assert found["mine"] == OTHER_COLOR  # and a rule does not darken what comes after it
    assert found["other"] == palette(["mine", "other"])["other"]


def test_a_figure_fills_the_column_with_text_that_can_be_read():
    style.set_style()
    assert [mpl.rcParams[key] for key in ("text.color", "axes.edgecolor")] == [
        INK,
        MUTED,
    ]
    assert mpl.rcParams["figure.figsize"][0] == style.WIDTH
    figure, axes = plt.subplots()
    sns.scatterplot(x=[0, 1], y=[0, 1], ax=axes)
    axes.set(title="title", xlabel="x")
    texts = [*axes.get_xticklabels(), *axes.get_yticklabels(), axes.title, axes.xaxis.label]
    assert min(text.get_fontsize() for text in texts) * 96 / 72 >= 11
    file = io.StringIO()
    figure.savefig(file, format="svg")
    plt.close(figure)
    svg = file.getvalue()
    width = float(re.search(r'<svg[^>]* width="([\d.]+)pt"', svg)[1]) * 96 / 72
    assert width >= 640
