"""Contests of probes and baselines: all predict the same unseen questions, from one pass over the prompt or none.

Every score is the corrected capability Brier score on the evaluation split, lower is better, with a bootstrap
interval over questions; every comparison is paired on the same questions.
"""

from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from capcal_lib.errors import InputError
from capcal_lib.grading.verdicts import run_questions
from capcal_lib.manifests import load_model, prompt_styles
from capcal_lib.metrics.intervals import Interval, bootstrap_mean, paired_difference
from capcal_lib.metrics.validation import Floats
from capcal_lib.probes import LinearProbe, paper_recipe_probe, tuned_probe
from capcal_lib.probes.coordinates import Coordinates, coordinates_command, text_statistics
from capcal_lib.probes.kernel import KernelProbe
from capcal_lib.probes.stacked import BLOCKS, StackedProbe
from capcal_lib.questions import Question, at_hand
from capcal_lib.results.generalisation import ProbeSet, evaluation_sets, training_sets
from capcal_lib.results.tables import interval_text, stack
from capcal_lib.sampling.store import read_record

LINEAR, TUNED = "Linear probe (paper)", "Linear probe (tuned)"
KERNEL = "Kernel probe, all layers"
STACKED = "Stacked probe"
PROBES = (LINEAR, TUNED, KERNEL, STACKED)  # all others in a contest read no hidden state
AGAINST = ("minus the paper's", "minus tuned", "minus best baseline")  # the stacked probe's score
AIM = 0.1  # share of the paper's score by which the stacked probe is to score lower


def hold_all(
    store: Path, models: Sequence[str], *, k_eval: int = 100, seed: int = 0
) -> list[tuple[ProbeSet, pd.DataFrame]]:
    """Hold a contest for each model on each data set with recorded runs of both splits, asked in one style.

    Each has its own generator of this seed, so its outcome does not depend on the others.

    Returns
    -------
    list of (ProbeSet, DataFrame)
        The evaluation split, and what ``hold`` returns.
    """
    found = []
    for model, style in product(models, prompt_styles()):
        training = training_sets(store, model, style=style)
        for test in evaluation_sets(store, model, k_eval=k_eval, style=style) if training else ():
            found.append((test, hold(training, test, np.random.default_rng(seed))))
    return [(test, terms) for test, terms in found if len(terms)]


def hold(training: Sequence[ProbeSet], test: ProbeSet, rng: np.random.Generator) -> pd.DataFrame:
    """Predict one data set by the paper's probe, simple baselines and other probes: one row a question.

    All are trained on the data set's own training split, but for the overall mean. ``Linear probe (paper)`` is trained
    by the paper's recipe, on one split; ``tuned`` minimises the same objective fully, with the weight decay that
    cross-validation on the training questions chooses. Bag of words, and length and punctuation, read the question's
    text alone. The kernel probe reads all layers; the stacked probe is `StackedProbe`.

    Returns
    -------
    DataFrame
        The corrected capability Brier terms of each question, a column a predictor. A predictor whose input is not
        at hand (texts of another machine's data set, coordinates not kept) has no column; without a training split of
        its own there is none at all.

    Raises
    ------
    InputError
        Where the two splits' coordinates lie along different directions.
    """
    own = next((one for one in training if one.dataset == test.dataset), None)
    if own is None:
        return pd.DataFrame()
    overall = np.concatenate([one.correct / one.total for one in training]).mean()
    predicted = {
        LINEAR: paper_recipe_probe(*own.everything, seed=int(rng.integers(2**31))).predict(test.features),
        "Overall mean of all training sets": np.full(len(test), overall),
        "Mean of the training set": np.full(len(test), (own.correct / own.total).mean()),
        **_text_baselines(own, test),
        TUNED: tuned_probe(*own.everything, seed=int(rng.integers(2**31))).predict(test.features),
    }
    here, there = own.coordinates(), test.coordinates()
    if here is not None and there is not None:
        counts = own.correct, own.total
        points = [kept.points.reshape(len(kept.points), -1) for kept in (here, there)]
        predicted[KERNEL] = KernelProbe().fit(points[0], *counts).predict(points[1])
        known, unseen = _blocks(own, here, test, there)
        predicted[STACKED] = StackedProbe(seed=int(rng.integers(2**31))).fit(known, *counts).predict(unseen)
    return pd.DataFrame({name: test.brier_terms(values) for name, values in predicted.items()})


def _text_baselines(train: ProbeSet, test: ProbeSet) -> dict[str, Floats]:
    """Predict from the questions' texts; nothing where they are not on this machine."""
    from sklearn.feature_extraction.text import CountVectorizer

    if not all(at_hand(one.dataset.name, read_record(one.folder).identity.split) for one in (train, test)):
        return {}
    asked, unseen = (_texts(one) for one in (train, test))
    words = CountVectorizer(binary=True, token_pattern=r"\w+|[^\w\s]")
    bags = words.fit_transform(asked).toarray(), words.transform(unseen).toarray()
    shapes = text_statistics(asked), text_statistics(unseen)
    return {
        "Bag of words": LinearProbe(weight_decay=1e-2).fit(bags[0], train.correct, train.total).predict(bags[1]),
        "Length and punctuation": LinearProbe(standardize=True)
        .fit(shapes[0], train.correct, train.total)
        .predict(shapes[1]),
    }


def _texts(one: ProbeSet) -> list[str]:
    questions: dict[str, Question] = run_questions(one.folder)
    return [questions[name].text for name in one.question_ids]


def _blocks(
    train: ProbeSet, here: Coordinates, test: ProbeSet, there: Coordinates
) -> list[dict[str, npt.NDArray[np.floating]]]:
    """Return what the stacked probe reads of the training and of the test questions."""
    if here.directions != there.directions:
        how = coordinates_command(test.folder)
        raise InputError(f"{test.folder}: its coordinates are not along the training run's directions; run: {how}")
    blocks = []
    for one, kept in zip((train, test), (here, there), strict=True):
        parts: list[npt.NDArray[np.floating]] = [one.features, *np.moveaxis(kept.points, 1, 0)]
        blocks.append(dict(zip(BLOCKS, parts, strict=True)))
    return blocks


def score_table(
    test: ProbeSet, terms: pd.DataFrame, rng: np.random.Generator, *, reference: str = LINEAR
) -> pd.DataFrame:
    """Score what ``hold`` returned: one row a predictor.

    ``brier`` with ``low`` and ``high``; ``difference``, its score less that of the reference, with ``difference low``
    and ``difference high``, paired: below 0, it is better.
    """
    rows = []
    for name in map(str, terms):
        score = bootstrap_mean(terms[name], rng=rng)
        difference = paired_difference(terms[name], terms[reference], rng=rng)
        rows.append((name, test.dataset.title, *score, *difference, test.evidence))
    columns = ["predictor", "data set", "brier", "low", "high", "difference", "difference low", "difference high"]
    return pd.DataFrame(rows, columns=[*columns, "evidence"])


def score_tables(
    held: Sequence[tuple[ProbeSet, pd.DataFrame]], rng: np.random.Generator, *references: str
) -> list[pd.DataFrame]:
    """Return the stacked ``score_table`` of ``hold_all`` against each reference."""
    return [stack([score_table(*one, rng, reference=name) for one in held]) for name in references]


def wide_table(table: pd.DataFrame) -> pd.DataFrame:
    """Put stacked contest tables in one: a row a predictor, a column a data set.

    Each cell is the score, and in brackets the interval of its difference from the reference's.
    """
    if table.empty:
        return table
    limits = zip(table["brier"], table["difference low"], table["difference high"], strict=True)
    cells = table.assign(cell=[f"{score:z.4f} [{low:+z.4f}, {high:+z.4f}]" for score, low, high in limits])
    wide = cells.pivot(index="predictor", columns="data set", values="cell")
    return (
        wide.reindex(pd.unique(table["predictor"]), columns=pd.unique(table["data set"]))
        .rename_axis(None, axis="columns")
        .reset_index()
    )


def baselines_beaten(table: pd.DataFrame) -> dict[str, int]:
    """Count, over stacked contest tables, the data sets on which the paper's probe is told from the best baseline.

    Returns
    -------
    dict
        ``sets``; ``below`` and ``above``: on how many the paper's probe scores lower, or higher, than the best of the
        baselines that read no hidden state, with a paired interval that excludes zero.
    """
    counted = {"sets": 0, "below": 0, "above": 0}
    for _, rows in table.groupby("data set") if len(table) else ():
        simple = rows[~rows["predictor"].isin(PROBES)]
        best = simple.iloc[int(simple["brier"].to_numpy().argmin())]
        counted["sets"] += 1
        counted["below"] += int(best["difference low"] > 0)
        counted["above"] += int(best["difference high"] < 0)
    return counted


def tenths_won(table: pd.DataFrame, *, reference: str = LINEAR) -> int:
    """Count the data sets on which the kernel probe scores a tenth lower than the reference, beyond doubt.

    ``table`` holds stacked contest tables with that reference: the score is at most 0.9 of the reference's, and the
    paired interval of the difference lies below zero.
    """
    if table.empty:
        return 0
    against = table[table["predictor"] == reference].set_index("data set")["brier"]
    ours = table[table["predictor"] == KERNEL].set_index("data set")
    return int(((ours["difference"] <= -AIM * against[ours.index]) & (ours["difference high"] < 0)).sum())


def stacked_table(held: Sequence[tuple[ProbeSet, pd.DataFrame]], *, seed: int = 0) -> pd.DataFrame:
    """Hold the stacked probe against the paper's, the tuned and the best baseline, over measured ``hold_all``.

    Returns
    -------
    DataFrame
        One row a pair of model and data set on which the stacked probe could be made: ``part``, whether the pair was
        seen while the probe was designed (the built-in mini sets) or is a clean test; the scores of the paper's probe
        and of the stacked one; ``lower``, by what share of the paper's score the stacked one is lower; the paired
        difference from the paper's, the tuned and the best baseline's score, each with its interval, below 0 is
        better; and whether the aim is ``met``: a tenth lower, with an interval that lies below zero. The best
        baseline is the one that scores lowest on the very questions.
    """
    rows = []
    for test, terms in held:
        if STACKED not in terms or test.evidence != "measured":
            continue
        baseline = str(terms.drop(columns=list(PROBES)).mean().idxmin())
        differences = [
            paired_difference(terms[STACKED], terms[name], rng=np.random.default_rng(seed))
            for name in (LINEAR, TUNED, baseline)
        ]
        paper, ours = terms[LINEAR].mean(), terms[STACKED].mean()
        title = load_model(read_record(test.folder).identity.model).title
        part = "development" if test.dataset.builtin else "clean test"
        lower = (paper - ours) / paper
        met = lower >= AIM and differences[0].high < 0
        scores = title, test.dataset.title, part, len(test), paper, ours, lower
        rows.append((*scores, *(limit for one in differences for limit in one), met, test.evidence))
    against = [f"{name}{end}" for name in AGAINST for end in ("", " low", " high")]
    columns = ["model", "data set", "part", "questions", "paper's", "stacked", "lower", *against, "met", "evidence"]
    return pd.DataFrame(rows, columns=columns)


def stacked_shown(table: pd.DataFrame) -> pd.DataFrame:
    """Write each interval of a ``stacked_table`` behind its difference, and say what is met."""
    shown = table.assign(met=table["met"].map({True: "yes", False: "no"}))
    for name in AGAINST:
        shown[name] = _spelt(table[name], table[f"{name} low"], table[f"{name} high"])
    return shown.drop(columns=[f"{name}{end}" for name in AGAINST for end in (" low", " high")])


def _spelt(*columns: Iterable[float]) -> list[str]:
    """Write numbers, the lower and the upper ends of their intervals as one text each."""
    return [
        f"{middle:+z.4f} {interval_text(Interval(middle, low, high), 4)}"
        for middle, low, high in zip(*columns, strict=True)
    ]


def aim_counts(table: pd.DataFrame) -> dict[str, int]:
    """Count the pairs of a ``stacked_table``, and those on which the aim is met: all, of the clean test, and before.

    Returns
    -------
    dict
        ``pairs``, ``met``; ``clean``, ``clean_met``; ``development``, ``development_met``; and the pairs on which the
        interval of a difference lies on one side of zero: ``worse`` than the paper's probe; ``below_tuned`` and
        ``above_tuned``; ``below_baseline`` and ``above_baseline``.
    """
    counts = {"pairs": len(table), "met": int(table["met"].sum()), "worse": int((table[f"{AGAINST[0]} low"] > 0).sum())}
    for key, name in {"tuned": AGAINST[1], "baseline": AGAINST[2]}.items():
        counts[f"below_{key}"] = int((table[f"{name} high"] < 0).sum())
        counts[f"above_{key}"] = int((table[f"{name} low"] > 0).sum())
    for key, part in {"clean": "clean test", "development": "development"}.items():
        rows = table[table["part"] == part]
        counts |= {key: len(rows), f"{key}_met": int(rows["met"].sum())}
    return counts


def failures(table: pd.DataFrame) -> str:
    """Name the pairs of a ``stacked_table`` on which the aim is not met; ``none``, if there are none."""
    left = table[table["met"] == 0]
    return (
        "; ".join(f"{model} on {name}" for model, name in zip(left["model"], left["data set"], strict=True)) or "none"
    )
