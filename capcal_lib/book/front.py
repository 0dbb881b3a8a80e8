"""Put results of the pages into words for the front page and the guides."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from capcal_lib.confidence.of_run import TITLES
from capcal_lib.manifests import load_model
from capcal_lib.probe_names import NEAREST_PROBE
from capcal_lib.results.judged import WINNABLE
from capcal_lib.text import in_words, share_in_words

ADVICE = {  # methods of the table of advice, by the keys of their sentences
    "own": "probe of the data set",
    "votes": "votes, recalibrated",
    "yes_alone": "P(True), as it is",
}


def spell_counts(counts: "Mapping[Any, Any] | pd.Series[Any]") -> str:
    """Say how many cases a method wins and loses, from the columns of ``results.judged.tally``.

    >>> counts = {"better": 7, "could be won": 11, "worse": 2, "cases": 13}
    >>> spell_counts(counts)
    'seven of the 11 cases that a perfect confidence would win, and loses two of all 13'
    >>> spell_counts(counts | {"worse": 0})
    'seven of the 11 cases that a perfect confidence would win, and loses none'
    """
    won = share_in_words(counts["better"], counts[WINNABLE], "case")
    lost = in_words(counts["worse"])
    among = f" of all {in_words(counts['cases'])}" if counts["worse"] else ""
    return f"{won} that a perfect confidence would win, and loses {lost}{among}"


def spell_share(counts: "Mapping[Any, Any] | pd.Series[Any]") -> str:
    """Say the same without the condition, after a sentence that has it.

    >>> spell_share({"better": 7, "could be won": 11, "worse": 0, "cases": 13})
    'seven of 11, and loses none'
    """
    won, winnable = in_words(counts["better"]), in_words(counts[WINNABLE])
    return f"{won} of {winnable}, and loses {in_words(counts['worse'])}"


def spell_advice(advice: pd.DataFrame) -> dict[str, str]:
    """Say how often each method of ``ADVICE`` was closer than its rival, by its key, and how often
    votes were, in short, as ``votes_share``.

    ``advice`` is the table of ``studies.small_models.advise``. A method without a row has "no
    case".
    """
    by_method = advice.set_index("method").to_dict("index")
    spelled = {
        key: spell_counts(by_method[method]) if method in by_method else "no case"
        for key, method in ADVICE.items()
    }
    votes = by_method.get(ADVICE["votes"])
    return spelled | {"votes_share": spell_share(votes) if votes else "no case"}


def count_statements(tally: "pd.Series[int]") -> dict[str, int]:
    """Count the statements of the paper that were ``tested``, and of these those ``supported``, in
    part (``partly``), and contradicted at least in part (``against``).

    ``tally`` counts the verdicts of ``claims.judge_claims``.
    """
    return {
        "tested": int(tally.sum()),
        "supported": int(tally["supported"]),
        "partly": int(tally["holds in part"]),
        "against": int(tally[["contradicted in part", "reversed"]].sum()),
    }


def describe_models(runs: Mapping[str, pd.DataFrame]) -> dict[str, float | str]:
    """Describe the measured models: how many ``models`` and how they are ``named``, the
    ``smallest`` and the ``largest`` in billions of parameters, and the number of data ``sets`` and
    ``questions``.

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
    """Say how often the nearest ``probe``, and what the model says when ``asked``, helped in all
    uses, and how often a probe ``routed`` questions better than chance.

    ``counts`` are those of ``studies.applications.count_uses``, and ``routed`` the verdicts of
    ``compare_routers``.
    """
    by_method = counts.groupby(level="method").sum()
    sent = routed.value_counts()
    tests = f"{in_words(sent['better'])} of {in_words(len(routed))} tests"
    return {
        "probe": spell_counts(by_method.T[NEAREST_PROBE]),
        "asked": spell_counts(by_method.loc[[*TITLES.values()]].sum()),
        "routed": f"{tests}, and loses {in_words(sent['worse'])}",
    }
