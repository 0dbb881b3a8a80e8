"""What the front page and the guide say of the pages' tables, in words: one place for all of it."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from capcal_lib.confidence.of_run import TITLES
from capcal_lib.manifests import load_model
from capcal_lib.probe_names import NEAREST_PROBE
from capcal_lib.results.judged import WINNABLE

ADVICE = {  # keys of what is kept, by method of the table of advice
    "own": "probe of the data set",
    "votes": "votes, recalibrated",
    "yes_alone": "P(True), as it is",
}


def spell_counts(counts: "Mapping[Any, Any] | pd.Series[Any]", *, worse: str = "farther") -> str:
    """Say how many cases are better and how many ``worse``, which is called so, by the columns of
    ``results.judged.tally``.

    >>> spell_counts({"better": 7, "could be won": 10, "worse": 0, "cases": 13})
    '7 of the 10 cases that could be won (and farther in 0 of 13)'
    """
    return (
        f"{counts['better']} of the {counts[WINNABLE]} cases that could be won (and {worse} in "
        f"{counts['worse']} of {counts['cases']})"
    )


def spell_advice(advice: pd.DataFrame) -> dict[str, str]:
    """Say how often each method was closer than its rival, by the keys of ``ADVICE``.

    ``advice`` is the table of ``studies.small_models.advise``; "no case" where it has no row.
    """
    by_method = advice.set_index("method").to_dict("index")
    return {
        key: spell_counts(by_method[method]) if method in by_method else "no case"
        for key, method in ADVICE.items()
    }


def count_statements(tally: "pd.Series[int]") -> dict[str, int]:
    """Say how many of the paper's statements were ``tested``, and came to what, by the words of
    ``claims.judge_claims``.
    """
    return {
        "tested": int(tally.sum()),
        "supported": int(tally["supported"]),
        "partly": int(tally["holds in part"]),
        "against": int(tally["contradicted in part"]),
    }


def describe_models(runs: Mapping[str, pd.DataFrame]) -> dict[str, float | str]:
    """Say on what was measured: how many ``models``, what they are ``named``, the ``smallest`` and
    the ``largest`` in billions of parameters, how many data ``sets`` and ``questions``.

    ``runs`` are those of ``describe_runs``, by the names of models.
    """
    sizes = [(load_model(name).parameters or 0) / 1e9 for name in runs]
    questions = pd.concat(described["questions"] for described in runs.values())
    by_dataset = questions.groupby(level="dataset").max()
    return {
        "models": len(runs),
        "named": ", ".join(load_model(name).title for name in runs),
        "smallest": min(sizes),
        "largest": max(sizes),
        "sets": len(by_dataset),
        "questions": int(by_dataset.sum()),
    }


def spell_uses(counts: pd.DataFrame, routed: "pd.Series[Any]") -> dict[str, str]:
    """Say how often a confidence helped: the nearest ``probe`` and what the model is ``asked`` in
    all uses, the ``uses`` in which the probe wins, most first, and how often routing was better.

    ``counts`` are those of ``studies.applications.count_uses``, and ``routed`` the verdicts of
    ``compare_routers``.
    """
    by_method = counts.groupby(level="method").sum()
    of_probe: Any = counts.xs(NEAREST_PROBE, level="method")
    of_probe = of_probe.sort_values("better", ascending=False, kind="stable")
    won = [
        f"{str(use).lower()} ({row['better']} of {row[WINNABLE]})"
        for use, row in of_probe.iterrows()
    ]
    asked = by_method.loc[[*TITLES.values()]].sum()
    sent = routed.value_counts()
    return {
        "probe": spell_counts(by_method.T[NEAREST_PROBE], worse="worse"),
        "asked": spell_counts(asked, worse="worse"),
        "uses": ", ".join(won),
        "routed": f"{sent['better']} of {len(routed)} tests, and worse in {sent['worse']}",
    }
