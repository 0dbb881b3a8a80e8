"""Score a confidence beside its price: the completion tokens a question that it takes.

Three confidences are asked of the model and have a price; a probe has none, and neither has the
best constant. Of the probes that which was trained nearest to a data set stands for all, under the
name ``Probe``."""

import pandas as pd

from capcal_lib import metrics
from capcal_lib.probes import nearest_probe
from capcal_lib.reported import constant_score, load_reported
from capcal_lib.results.constant import compare_with_constant
from capcal_lib.results.results import CONSISTENCY, UNIFORM
from capcal_lib.results.scores import (
    NEAREST_PROBE,
    ORACLES,
    Protocol,
    brier_terms,
    gains_by_dataset,
    keep_nearest_probe,
    methods,
    nearest_probe_of,
    score,
)

ASKED = ("Verbalized confidence", "P(True)", CONSISTENCY)
COLUMNS = ["dataset", "method", "brier", "low", "high", "tokens", "verdict"]
GAINS = ["dataset", "method", "estimate", "low", "high", "p", "p (Holm)", "verdict"]


def keep_asked_and_nearest_probe(results: pd.DataFrame) -> pd.DataFrame:
    """Keep of results the confidences that are asked of the model, and on each data set the nearest
    probe; without data sets on which nothing is solved or no confidence is known.
    """
    kept = []
    for name, own in results[results["total"] > 1].groupby(level="dataset", sort=False):
        own = keep_nearest_probe(own, str(name))
        others = {*methods(own)} - {*ASKED, NEAREST_PROBE}
        own = own.drop(columns=[*others])
        if own["correct"].any() and methods(own):
            kept.append(own)
    return pd.concat(kept) if kept else results.iloc[:0]


def score_by_price(
    results: pd.DataFrame, tokens: pd.DataFrame, *, protocol: Protocol = "corrected"
) -> pd.DataFrame:
    """Score the confidences that are asked of the model, the nearest probe and the best constant,
    beside the tokens that each takes.

    ``results`` are those of all data sets of a model, and ``tokens`` what ``results.costs`` says of
    it. Returns a row a ``dataset`` and ``method``, as columns: ``brier`` (lower is better) with its
    interval ``low`` to ``high``, ``tokens``, and the ``verdict`` of
    :func:`~capcal_lib.results.compare_with_constant` on it, empty for the constant itself and where
    no questions differ. No rows where :func:`keep_asked_and_nearest_probe` keeps none.
    """
    kept = keep_asked_and_nearest_probe(results)
    if kept.empty:
        return pd.DataFrame(columns=COLUMNS)
    scores = score(kept, protocol=protocol)[["brier", "low", "high"]]
    scores = scores.drop([UNIFORM, *ORACLES], level="method")
    prices = tokens.rename_axis(columns="method").stack()
    scores["tokens"] = prices.reindex(scores.index).fillna(0.0)  # a probe, and the constant
    judged = compare_with_constant(results, protocol=protocol)
    verdicts = judged.set_index(["dataset", "method"])["verdict"].astype(str)
    probes = {}
    for name, own in results.groupby(level="dataset", sort=False):
        probes[name] = nearest_probe_of(own, str(name))
    scores["verdict"] = [
        verdicts.get((name, probes[name] if method == NEAREST_PROBE else method), "")
        for name, method in scores.index
    ]
    return scores.reset_index()[COLUMNS]


def compare_with_nearest_probe(
    results: pd.DataFrame, *, protocol: Protocol = "corrected"
) -> pd.DataFrame:
    """Judge each confidence that takes tokens against the nearest probe, which takes none, on each
    data set; all of them together, by Holm's method.

    Returns a row a ``dataset`` and ``method``: ``estimate``, how much lower the score of the method
    is than that of the probe, with the interval ``low`` to ``high`` of the case alone, ``p``, ``p
    (Holm)`` and a ``verdict``. ``method`` and ``verdict`` are categories, so that counts of them
    are whole. No rows where no probe or nothing else is known.
    """
    terms = brier_terms(keep_asked_and_nearest_probe(results), protocol=protocol)
    asked = [name for name in ASKED if name in terms]
    if NEAREST_PROBE in terms and asked:
        gains = gains_by_dataset(terms[[NEAREST_PROBE, *asked]], NEAREST_PROBE)
        judged = metrics.holm(gains).reset_index()
    else:
        judged = pd.DataFrame(columns=GAINS)
    judged["method"] = pd.Categorical(judged["method"], ASKED)
    judged["verdict"] = pd.Categorical(judged["verdict"], metrics.VERDICTS)
    return judged[GAINS]


def printed_by_price() -> pd.DataFrame:
    """Put the paper's printed scores beside the tokens that are read off its figures.

    Returns a row a ``model``, ``dataset`` and ``method``: ``brier`` as printed, plug-in, lower is
    better; ``tokens``, to about 6 %, those of ten answers for Response consistency, none for the
    nearest probe, and one for P(True) unless the model reasons first; and ``constant``, the score
    of the best constant, which follows from two printed numbers.

    >>> printed = printed_by_price().set_index(["model", "dataset", "method"])
    >>> printed.loc[("qwen3-8b", "gsm8k", "Probe"), ["brier", "tokens"]].tolist()
    [0.0368, 0.0]
    """
    keys = ["model", "dataset", "method"]
    votes = load_reported("consistency").query("k == 10").assign(method=CONSISTENCY)
    printed = pd.concat([load_reported("main"), votes], ignore_index=True)
    printed = printed[[*keys, "value"]].rename(columns={"value": "brier"})
    names = printed["method"].unique()
    near = printed["method"] == [nearest_probe(names, name) for name in printed["dataset"]]
    printed = printed[near | printed["method"].isin(ASKED)].copy()
    printed["method"] = printed["method"].mask(near, NEAREST_PROBE)

    read_off = load_reported("tokens", source="reference code").set_index(keys)["value"]
    ten_answers = 10 * read_off.xs("Response", level="method", drop_level=False)
    tokens = pd.concat([read_off, ten_answers.rename({"Response": CONSISTENCY})])
    printed = printed.join(tokens.rename("tokens"), on=keys)
    one_token = (printed["method"] == "P(True)").astype(float)
    printed["tokens"] = printed["tokens"].fillna(one_token)
    pairs = printed[["model", "dataset"]].to_numpy()
    return printed.assign(constant=[constant_score(*pair) for pair in pairs])
