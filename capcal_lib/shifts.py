"""How far the training sets of a probe are from a data set."""

from capcal_lib.manifests import load_datasets
from capcal_lib.probe_names import probe_name, training_sets

AT_HOME, IN_DOMAIN, OUTSIDE = SHIFTS = (
    "probe of the data set",
    "probe of the domain",
    "probe of another domain",
)


def shift(method: str, dataset: str | None) -> str | None:
    """Return how far a probe's nearest training questions are from a data set; None for another
    method or an unknown data set.

    >>> shift("Probe (GSM8K)", "math500")
    'probe of the domain'
    >>> shift("Probe (TriviaQA + GSM8K)", "mmlu")
    'probe of another domain'
    >>> shift("P(True)", "math500")
    """
    titles = training_sets(method)
    datasets = load_datasets() if titles else {}
    if dataset not in datasets:
        return None
    shown_on = datasets[dataset]
    probes = [*map(probe_name, titles)]
    trained_on = [manifest for manifest in datasets.values() if manifest.probe in probes]
    if shown_on in trained_on:
        return AT_HOME
    if shown_on.domain in {manifest.domain for manifest in trained_on}:
        return IN_DOMAIN
    return OUTSIDE
