"""How the names of probes are spelled: all that a name or a column of a probe says is made and read
here, and nowhere else.

A probe is called by its training sets, ``Probe (TriviaQA + GSM8K)``; the five probes of the paper's
recipe have a column each, ``Probe (MATH) [0]`` to ``Probe (MATH) [4]``. Only the wide table that
``load_results`` returns has such columns; ``results.estimates`` reads their names once.
"""

import re
from collections.abc import Hashable

NEAREST_PROBE = "Probe"  # of a data set, whatever it was trained on
PROBE_OF_SET = "Probe of the data set"
PLUG_IN, POSTERIOR = "Probe, plug-in", "Probe, posterior"  # how a probe is used
_NAME = re.compile(r"(?P<probe>Probe(?: \((?P<titles>.+)\))?)(?: \[(?P<member>\d+)\])?")


def probe_name(*titles: str) -> str:
    """Name the probe of a training set, or of several.

    >>> probe_name("MATH"), probe_name("TriviaQA", "GSM8K")
    ('Probe (MATH)', 'Probe (TriviaQA + GSM8K)')
    """
    return f"{NEAREST_PROBE} ({' + '.join(titles)})"


def member_name(probe: str, member: Hashable) -> str:
    """Name the column of one of the five probes of the paper's recipe.

    >>> member_name("Probe (MATH)", 3)
    'Probe (MATH) [3]'
    """
    return f"{probe} [{member}]"


def is_probe(method: str) -> bool:
    """Say whether a method, or a column of results, is a probe, whatever it was trained on.

    >>> [is_probe(name) for name in ("Probe (MATH)", "Probe [3]", "Probe", "Probe-x", "P(True)")]
    [True, True, True, False, False]
    """
    return _NAME.fullmatch(method) is not None


def training_sets(method: str) -> list[str]:
    """List the titles of the sets that a probe was trained on; empty for another method.

    >>> training_sets("Probe (TriviaQA + GSM8K)"), training_sets("Probe (MATH) [3]")
    (['TriviaQA', 'GSM8K'], ['MATH'])
    """
    named = _NAME.fullmatch(method)
    return named["titles"].split(" + ") if named and named["titles"] else []


def read_column(column: str) -> tuple[str, int]:
    """Return the method that a column of results belongs to, and its member: 0, or 0 to 4 for the
    five probes of the paper's recipe.

    >>> read_column("Probe (MATH) [3]"), read_column("Notes [3]")
    (('Probe (MATH)', 3), ('Notes [3]', 0))
    """
    named = _NAME.fullmatch(column)
    return (named["probe"], int(named["member"] or 0)) if named else (column, 0)
