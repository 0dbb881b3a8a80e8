"""The recipes: ways from samples to the table."""

from dataclasses import dataclass
from typing import NamedTuple

from capcal_lib.probes import ProbeRecipe
from capcal_lib.results.scores import Protocol


class Draw(NamedTuple):
    """Which samples are drawn of a split."""

    questions: int | None  # at most, the first by rank
    first: int  # index of the first sample of each
    each: int  # samples of each


@dataclass(frozen=True)
class Recipe:
    """A way from samples to the table."""

    protocol: Protocol
    probe: ProbeRecipe
    judge: str | None  # the model whose verdicts count; None: those of the rules
    samples: int  # of an evaluation question, which define mu_hat and vote
    training: tuple[Draw, ...]

    @property
    def verdicts(self) -> str:
        """Return whose verdicts are scored, as ``load_results`` takes it."""
        return f"judge:{self.judge}" if self.judge else "rules"


LEAN = Recipe(
    protocol="corrected",
    probe="tuned",
    judge=None,
    samples=20,
    training=(Draw(20_000, 0, 1), Draw(500, 1, 3)),
)
PAPER = Recipe(
    protocol="paper",
    probe="paper",
    judge="gpt-oss-20b",
    samples=100,
    training=(Draw(None, 0, 10),),
)
RECIPES = {"lean": LEAN, "paper": PAPER}
