"""The paper's published numbers, as data; and, apart from them, what its authors published later."""

from functools import cache
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import pandas as pd

from capcal_lib.errors import InputError, unknown
from capcal_lib.manifests import MANIFESTS

FOLDER = MANIFESTS / "reported"
TABLES = (
    "main",
    "mean_accuracy",
    "consistency",
    "mixing",
    "passk_math500",
    "passk_aime25",
    "hyperparameters",
    "sampling",
)
Source = Literal["paper", "reference code"]
LATER_TABLES = (
    "later_mean_accuracy",
    "later_brier",
    "later_ece",
    "k_eval_curve",
    "oracle_rc",
    "passk_actual",
    "budget",
    "tokens",
    "spearman",
    "recalibrated",
    "few_shot",
    "temperature",
    "temperature_accuracy",
)
COLUMNS = ("table", "model", "method", "dataset", "k", "value")
LATER_COLUMNS = ("table", "model", "method", "dataset", "k", "setting", "value", "generation", "source", "precision")
KEY = ("table", "model", "method", "dataset", "k", "setting", "generation")


def load_reported(table: str | None = None, *, source: Source = "paper") -> pd.DataFrame:
    """Load what the paper prints, or what the authors' code repository adds to it, one number a row.

    ===================  ================================================================  ==========================
    table                value                                                             paper
    ===================  ================================================================  ==========================
    ``main``             capability Brier score in [0, 1], lower is better                 table 2
    ``mean_accuracy``    mean expected accuracy in [0, 1], higher is better                appendix B.3
    ``consistency``      capability Brier score of a vote over ``k`` = k_c samples         appendix C.3
    ``mixing``           capability Brier score of probes trained on one set and on two    appendix C.4
    ``passk_math500``    mean squared error of a simulated pass@``k``, lower is better     section 5.1
    ``passk_aime25``     the same on AIME25                                                appendix D.1
    ``hyperparameters``  settings of the probes and sizes of the models                    appendix C.2
    ``sampling``         ``temperature`` and ``top_p``                                     appendix B.2
    ===================  ================================================================  ==========================

    In the last two tables ``method`` holds the name of the setting. A learning rate names the data set whose
    training split the probe saw (``math500`` for MATH); feature standardization is 0 or 1. The two settings that
    are words there, mean pooling and the BCE loss, are the same for every model and are not in the table.
    The paper's column "Qwen-3B" is filed under ``qwen3-8b``, whose layers and hidden size it shows.

    The other source is the repository of the authors' code (commit 9088a5a and its public branches). The authors
    collected samples more than once, and the numbers of one generation do not belong beside those of another:
    ``G1`` is the paper's; ``G2`` was collected again with the released scripts; ``G3`` has other AIME and MMLU
    questions, under names of their own (``aime24-26``, ``mmlu-test-1000``), and one in-domain probe a data set.

    ========================  ====================================================================  ==========
    table                     value                                                                 generation
    ========================  ====================================================================  ==========
    ``later_mean_accuracy``   mean expected accuracy                                                G2, G3
    ``later_brier``           capability Brier score, some after isotonic recalibration             G3
    ``later_ece``             expected calibration error, ten bins                                  G3
    ``k_eval_curve``          capability Brier score by ``k`` = k_eval, median of subsamples        G1
    ``oracle_rc``             Oracle RC by the metric in ``setting``                                G2
    ``passk_actual``          pass@``k`` of the data set                                            G1
    ``budget``                success rate at ``k`` = B samples a question                          G1
    ``tokens``                mean completion tokens of a response, or of a confidence              G1
    ``spearman``              rank correlation of confidence and expected accuracy                  G1
    ``recalibrated``          capability Brier score after isotonic regression on a training set    G1
    ``few_shot``              capability Brier score of verbalized confidence with examples         G1, G2
    ``temperature``           capability Brier score at a lower sampling temperature                G3
    ``temperature_accuracy``  mean expected accuracy by sampling temperature                        G3
    ========================  ====================================================================  ==========

    Parameters
    ----------
    table
        One of the source's names above; None loads all of them.
    source
        ``paper``, or ``reference code`` for the later numbers. One call never returns both.

    Returns
    -------
    DataFrame
        Columns ``table``, ``model``, ``method``, ``dataset`` (texts, empty where they do not apply), ``k``
        (nullable Int64) and ``value`` (float64). The later numbers have also ``setting``, ``generation``,
        ``source`` (where in the repository, and whether read off a figure) and ``precision``: the value is known
        to plus or minus this. No two rows share everything but the value and what is said of it.

    Raises
    ------
    InputError
        For an unknown table or source, or a file that is missing or not in this form.

    Examples
    --------
    >>> main = load_reported("main").set_index(["model", "method", "dataset"])["value"]
    >>> float(main["gpt-oss-20b", "Probe (MATH)", "math500"])
    0.0267
    >>> actual = load_reported("passk_actual", source="reference code").set_index("k")
    >>> float(actual["value"][1]), actual["generation"][1]
    (0.9319, 'G1')
    """
    if source not in get_args(Source):
        raise unknown("source of reported numbers", source, get_args(Source))
    folder, known = (FOLDER, TABLES) if source == "paper" else (FOLDER / "reference_code", LATER_TABLES)
    if table is None:
        return pd.concat([_read(folder / f"{name}.csv") for name in known], ignore_index=True)
    if table not in known:
        raise unknown(f"table of the {source}", table, known)
    return _read(folder / f"{table}.csv").copy()


def beta_moments(model: str, dataset: str) -> tuple[float, float]:
    """Derive two moments of the distribution of mu over questions from what the paper prints.

    The uniform random baseline scores the mean of 1/3 - mu_hat (1 - mu_hat) (section 4.2). So the printed baseline
    gives away the mean of mu_hat (1 - mu_hat), and with it the one Beta distribution that agrees with both numbers.

    Both are moments of mu_hat over k_eval = 100 samples. The second is on average (k_eval - 1) / k_eval of its
    value for mu; the printed four digits round by up to 0.00005.

    Parameters
    ----------
    model, dataset
        Names as in the manifests; the paper's three models and seven data sets.

    Returns
    -------
    mean, mean_mu_one_minus_mu : float
        Mean of mu_hat in [0, 1], and mean of mu_hat (1 - mu_hat) in [0, 1/4].

    Raises
    ------
    InputError
        For a model or data set that is not in the paper.

    Examples
    --------
    >>> mean, spread = beta_moments("gpt-oss-20b", "math500")
    >>> print(f"{mean:.4f} {spread:.4f}")
    0.9338 0.0270
    """
    accuracy = load_reported("mean_accuracy").set_index(["model", "dataset"])["value"]
    models, datasets = (list(accuracy.index.unique(level)) for level in ("model", "dataset"))
    if model not in models:
        raise unknown("model of the paper", model, models)
    if dataset not in datasets:
        raise unknown("data set of the paper", dataset, datasets)
    baseline = load_reported("main").set_index(["method", "model", "dataset"])["value"]
    return float(accuracy[model, dataset]), 1 / 3 - float(baseline["Uniform random", model, dataset])


@cache
def _read(path: Path) -> pd.DataFrame:
    try:
        texts = pd.read_csv(path, dtype=str, keep_default_na=False)
    except FileNotFoundError:
        raise InputError(
            f"{path}: the file of the paper's numbers is missing; restore it from the repository"
        ) from None
    except (ValueError, UnicodeDecodeError) as error:  # pandas' parser errors are ValueErrors
        raise InputError(f"{path}: not a readable CSV: {' '.join(str(error).split())}") from None
    expected = LATER_COLUMNS if path.stem in LATER_TABLES else COLUMNS
    if tuple(texts.columns) != expected:
        raise InputError(f"{path}: the columns must be {', '.join(expected)}; got {', '.join(texts.columns)}")
    numbers = {name: pd.to_numeric(texts[name], errors="coerce") for name in expected if name in ("value", "precision")}
    ks = pd.to_numeric(texts["k"], errors="coerce")
    not_whole = ~texts["k"].str.fullmatch(r"[0-9]*")
    _refuse(path, texts["table"] != path.stem, texts["table"], f"the table must be {path.stem!r}")
    _refuse(path, not_whole, texts["k"], "k must be a whole number or empty")
    for name, found in numbers.items():
        _refuse(path, ~np.isfinite(found), texts[name], f"{name} must be a number")
    for name in set(expected) & {"generation", "source"}:
        _refuse(path, texts[name] == "", texts[name], f"the {name} must be given")
    key = [name for name in KEY if name in expected]
    _refuse(
        path, texts.duplicated(key), texts["method"], f"another line has the same {', '.join(key[:-1])} and {key[-1]}"
    )
    return texts.assign(k=ks.astype("Int64"), **{name: found.astype("float64") for name, found in numbers.items()})


def _refuse(path: Path, wrong: "pd.Series[bool]", texts: "pd.Series[str]", what: str) -> None:
    """Name the first wrong line of a file, if there is one."""
    if wrong.any():
        row = int(wrong.to_numpy().argmax())
        raise InputError(f"{path}, line {row + 2}: {what}; got {texts.iloc[row]!r}")
