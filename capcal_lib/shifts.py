"""What the name of a probe says: its training sets, and how far they are from a data set."""

import re

from capcal_lib.manifests import dataset_names, load_dataset

IN_DISTRIBUTION, OUT_OF_DISTRIBUTION, OUT_OF_DOMAIN = SHIFTS = (
    "in-domain in-distribution",
    "in-domain out-of-distribution",
    "out-of-domain",
)


_PROBE = re.compile(r"Probe \((.+)\)( \[\d\])?")  # the number of one of the paper's five


def training_sets(method: str) -> list[str]:
    """List the titles of the sets that a probe was trained on; empty for another method.

    >>> training_sets("Probe (TriviaQA + GSM8K)"), training_sets("Probe (MATH) [3]")
    (['TriviaQA', 'GSM8K'], ['MATH'])
    >>> training_sets("P(True)"), training_sets("Probe")
    ([], [])
    """
    named = _PROBE.fullmatch(method)
    return named[1].split(" + ") if named else []


def shift(method: str, dataset: str | None) -> str | None:
    """Say how far the nearest training questions of a probe are from a data set; None for another
    method, and for a data set that is not known.

    >>> shift("Probe (GSM8K)", "math500")
    'in-domain out-of-distribution'
    >>> shift("Probe (TriviaQA + GSM8K)", "mmlu")
    'out-of-domain'
    >>> shift("P(True)", "math500")
    """
    titles = training_sets(method)
    if not titles or dataset not in dataset_names():
        return None
    shown_on = load_dataset(dataset)
    probes = [f"Probe ({title})" for title in titles]
    manifests = [load_dataset(name) for name in dataset_names()]
    trained_on = [manifest for manifest in manifests if manifest.probe in probes]
    if shown_on in trained_on:
        return IN_DISTRIBUTION
    if shown_on.domain in {manifest.domain for manifest in trained_on}:
        return OUT_OF_DISTRIBUTION
    return OUT_OF_DOMAIN
