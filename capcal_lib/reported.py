"""The paper's published numbers, as data."""

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from capcal_lib.errors import InputError, unknown
from capcal_lib.paths import MANIFESTS
from capcal_lib.probes.recipe import Recipe

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
COLUMNS = ("table", "model", "method", "dataset", "k", "value")
KEY = list(COLUMNS[:-1])


def load_reported(table: str | None = None) -> pd.DataFrame:
    """Load what the paper prints, one number a row.

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

    Parameters
    ----------
    table
        One of the names above; None loads all of them.

    Returns
    -------
    DataFrame
        Columns ``table``, ``model``, ``method``, ``dataset`` (texts, empty where they do not apply), ``k``
        (nullable Int64) and ``value`` (float64). No two rows share everything but the value.

    Raises
    ------
    InputError
        For an unknown table, or a file that is missing or not in this form.

    Examples
    --------
    >>> main = load_reported("main").set_index(["model", "method", "dataset"])["value"]
    >>> float(main["gpt-oss-20b", "Probe (MATH)", "math500"])
    0.0267
    """
    if table is None:
        return pd.concat([_read(FOLDER / f"{name}.csv") for name in TABLES], ignore_index=True)
    if table not in TABLES:
        raise unknown("table of the paper", table, TABLES)
    return _read(FOLDER / f"{table}.csv").copy()


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


def paper_recipe(model: str, dataset: str) -> Recipe:
    """Return the hyperparameters with which the paper trains its probe of a model on a data set's training split.

    Raises
    ------
    InputError
        For a model, or a data set, without a probe in the paper.

    Examples
    --------
    >>> paper_recipe("gpt-oss-20b", "gsm8k")
    Recipe(learning_rate=0.0005, loss='bce', epochs=100, batch_size=32, weight_decay=0.01, standardize=True)
    """
    table = load_reported("hyperparameters")
    rates = table[table["method"] == "learning rate"]
    for what, name, column in (("model", model, "model"), ("data set", dataset, "dataset")):
        if name not in set(rates[column]):
            raise unknown(f"{what} with a probe in the paper", name, set(rates[column]))
    value = table[table["model"] == model].set_index(["method", "dataset"])["value"]
    return Recipe(
        learning_rate=float(value["learning rate", dataset]),
        epochs=int(value["epochs", ""]),
        batch_size=int(value["batch size", ""]),
        weight_decay=float(value["weight decay", ""]),
        standardize=bool(value["feature standardization", ""]),
    )


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
    if tuple(texts.columns) != COLUMNS:
        raise InputError(f"{path}: the columns must be {', '.join(COLUMNS)}; got {', '.join(texts.columns)}")
    values, ks = (pd.to_numeric(texts[column], errors="coerce") for column in ("value", "k"))
    not_whole = ~texts["k"].str.fullmatch(r"[0-9]*")
    _refuse(path, texts["table"] != path.stem, texts["table"], f"the table must be {path.stem!r}")
    _refuse(path, not_whole, texts["k"], "k must be a whole number or empty")
    _refuse(path, ~np.isfinite(values), texts["value"], "value must be a number")
    _refuse(
        path, texts.duplicated(KEY), texts["method"], "another line has the same table, model, method, dataset and k"
    )
    return texts.assign(k=ks.astype("Int64"), value=values.astype("float64"))


def _refuse(path: Path, wrong: "pd.Series[bool]", texts: "pd.Series[str]", what: str) -> None:
    """Name the first wrong line of a file, if there is one."""
    if wrong.any():
        row = int(wrong.to_numpy().argmax())
        raise InputError(f"{path}, line {row + 2}: {what}; got {texts.iloc[row]!r}")
