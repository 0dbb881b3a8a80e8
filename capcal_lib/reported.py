"""The paper's published numbers, as data; what follows from them; and, separately, what its authors
published later.
"""

from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Literal

import pandas as pd

from capcal_lib.applications import simulate_pass_at_k
from capcal_lib.errors import InputError, check_known
from capcal_lib.places import MANIFESTS

FOLDER = MANIFESTS / "reported"
Source = Literal["paper", "reference code"]
FOLDERS = {"paper": FOLDER, "reference code": FOLDER / "reference_code"}
K_EVAL = 100
APPLIED = ("math500", "aime25")  # the data sets on which the paper tries its applications


def load_reported(table: str | None = None, *, source: Source = "paper") -> pd.DataFrame:
    """Load the numbers that the paper prints, or those that the authors' code repository adds, one
    number per row.

    Tables of the paper: ``main`` (capability Brier score, table 2), ``mean_accuracy`` (mean
    expected accuracy, appendix B.3), ``consistency`` (the score of a vote over k = k_c samples,
    C.3), ``mixing`` (of probes trained on one set and on two, C.4), ``passk_math500`` and
    ``passk_aime25`` (mean squared error of a simulated pass@k, section 5.1 and D.1),
    ``hyperparameters`` (of the probes, and sizes of the models, C.2) and ``sampling`` (temperature
    and top_p, B.2), in both of which method is the setting. A learning rate names the data set
    whose training split the probe saw (``math500`` for MATH); feature standardization is 0 or 1;
    settings that are words, the same for every model, are left out. The paper's column "Qwen-3B" is
    filed under ``qwen3-8b``, whose layers and hidden size it shows.

    The repository is that of the authors' code (commit 9088a5a and its public branches). Numbers of
    one generation of samples do not belong beside those of another: ``G1`` is the paper's; ``G2``
    was collected again with the released scripts; ``G3`` has other AIME and MMLU questions, under
    names of their own, and one in-domain probe a data set. Its tables: ``later_mean_accuracy`` (G2,
    G3), ``later_brier`` (some after isotonic recalibration) and ``later_ece`` (ten bins; G3),
    ``k_eval_curve`` (the score by k = k_eval, median of subsamples; G1), ``oracle_rc`` (by the
    metric in setting; G2), ``passk_actual`` (pass@k of the data set; G1), ``budget`` (success rate
    at k = B samples a question; G1), ``tokens`` (mean completion tokens of a response, or of a
    confidence; G1), ``spearman`` (of confidence and expected accuracy; G1), ``recalibrated`` (the
    score after isotonic regression on a training set; G1), ``few_shot`` (of verbalized confidence
    with examples; G1, G2), ``temperature`` (at a lower one) and ``temperature_accuracy`` (G3).

    One call never returns numbers of both. Returns columns ``table``, ``model``, ``method``,
    ``dataset`` (texts, empty where they do not apply), ``k`` (nullable Int64) and ``value``
    (float64). The later numbers have also ``setting``, ``generation``, ``source`` (where in the
    repository, and whether read off a figure) and ``precision``: the value is known to plus or
    minus this. Unknown names are refused, and files that are missing or not in this form.

    >>> main = load_reported("main").set_index(["model", "method", "dataset"])["value"]
    >>> float(main["gpt-oss-20b", "Probe (MATH)", "math500"])
    0.0267
    """
    check_known("source of reported numbers", source, FOLDERS)
    known = sorted(path.stem for path in FOLDERS[source].glob("*.csv"))
    names = known if table is None else [table]
    for name in names:
        check_known(f"table of the {source}", name, known)
    return pd.concat([_read(FOLDERS[source] / f"{name}.csv") for name in names], ignore_index=True)


def printed_distances(*, corrected: bool = True) -> pd.DataFrame:
    """Compute the mean distance of one response from the expected accuracy, from the printed scores
    of *Uniform random*, which are 1/3 minus the mean of mu_hat(1 - mu_hat).

    Returns columns ``model``, ``dataset`` and ``distance``, in [0, 1/2]: the mean of 2 mu (1 - mu),
    unbiased for the paper's hundred samples if ``corrected``, else computed from mu_hat.

    >>> table = printed_distances().set_index(["model", "dataset"])["distance"]
    >>> round(float(table["gpt-oss-20b", "gsm8k"]), 3)
    0.028
    """
    table = load_reported("main").query("method == 'Uniform random'")
    variance = (1 / 3 - table["value"]) * 100 / (100 - int(corrected))
    return table[["model", "dataset"]].assign(distance=2 * variance)


def beta_from_moments(mean: float, mean_mu_one_minus_mu: float) -> tuple[float, float]:
    """Return the shapes a and b of the Beta distribution with the given E[mu] in (0, 1) and E[mu(1
    - mu)].

    Both are close to 0 if questions are answered either always or never correctly. `InputError` if
    no Beta has these moments.

    >>> beta_from_moments(0.5, 0.125)
    (0.5, 0.5)
    """
    most = mean * (1 - mean)
    if not 0 < mean_mu_one_minus_mu < most:
        raise InputError(
            f"no Beta has mean {mean!r} and E[mu(1-mu)] = {mean_mu_one_minus_mu!r}; the mean must "
            f"lie between 0 and 1, and E[mu(1-mu)] between 0 and mean(1-mean) = {most:.6g}"
        )
    weight = mean_mu_one_minus_mu / (most - mean_mu_one_minus_mu)  # a + b
    return mean * weight, (1 - mean) * weight


def beta_moments(model: str, dataset: str) -> tuple[float, float]:
    """Return E[mu] and E[mu(1 - mu)] over questions, which follow from two printed numbers.

    Uniform random scores the mean of 1/3 - mu_hat(1 - mu_hat), and mu_hat(1 - mu_hat) over k_eval =
    100 samples is on average 1 - 1/100 of mu(1 - mu). The printed four digits round by up to
    0.00005. `InputError`, with the known names, if the paper lacks the model or the data set.

    >>> mean, spread = beta_moments("gpt-oss-20b", "math500")
    >>> print(f"{mean:.4f} {spread:.4f}")
    0.9338 0.0273
    """
    accuracy = load_reported("mean_accuracy").set_index(["model", "dataset"])["value"]
    check_known("model of the paper", model, accuracy.index.unique("model"))
    check_known("data set of the paper", dataset, accuracy.index.unique("dataset"))
    scores = load_reported("main").set_index(["method", "model", "dataset"])["value"]
    uniform = float(scores["Uniform random", model, dataset])
    of_samples = 1 / 3 - uniform  # the mean of mu_hat (1 - mu_hat)
    return float(accuracy[model, dataset]), of_samples / (1 - 1 / K_EVAL)


def constant_score(model: str, dataset: str) -> float:
    """Return the score of the best constant that follows from the printed numbers, in [0, 1/4];
    lower is better.

    It is plug-in, like the printed scores: the variance of mu_hat over the questions of a data set.

    >>> round(constant_score("gpt-oss-20b", "gsm8k"), 4)
    0.0273
    """
    mean, within = beta_moments(model, dataset)
    return mean * (1 - mean) - within * (1 - 1 / K_EVAL)


def printed_curves(ks: Sequence[int]) -> pd.DataFrame:
    """Compute the expected mean pass@k under a Beta with the two printed moments, for each model
    and data set with printed errors of pass@k. The evidence is ``simulated``.

    Returns one row per ``model``, ``dataset`` and ``k``, with its ``estimate``.

    >>> table = printed_curves([1, 64]).query("model == 'gpt-oss-20b' and dataset == 'math500'")
    >>> table["estimate"].round(3).tolist()
    [0.934, 0.997]
    """
    printed = pd.concat(map(load_reported, ("passk_math500", "passk_aime25")))
    curves = []
    for model, dataset in printed[["model", "dataset"]].drop_duplicates().to_numpy():
        a, b = beta_from_moments(*beta_moments(model, dataset))
        solved = simulate_pass_at_k([a / (a + b)], ks, concentration=a + b)[0]
        curve = pd.DataFrame({"k": ks, "estimate": solved})
        curves.append(curve.assign(model=model, dataset=dataset))
    return pd.concat(curves, ignore_index=True)


@cache
def _read(path: Path) -> pd.DataFrame:
    types = defaultdict(lambda: "str", k="Int64", value="float64", precision="float64")
    return pd.read_csv(path, dtype=types, keep_default_na=False, na_values={"k": [""]})
