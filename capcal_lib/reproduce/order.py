"""What to reproduce, on which questions, and with which recipe."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from capcal_lib.errors import InputError
from capcal_lib.manifests import dataset_names, load_dataset
from capcal_lib.probes import ProbeRecipe
from capcal_lib.probes.training import is_scored
from capcal_lib.results.counting import Counting
from capcal_lib.results.scores import Protocol
from capcal_lib.runs.run import Run, find_run_if_any


class Draw(NamedTuple):
    """Which samples are drawn of a split."""

    questions: int | None  # at most, the first by rank
    first: int  # index of the first sample of each
    samples: int  # of each


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
        """Return the grader whose verdicts are scored, as in ``load_results``."""
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


class Part(NamedTuple):
    """A part of the questions of every split: the ``number``-th of so many."""

    number: int  # from 1
    parts: int

    def of(self, ranked: Sequence[Any]) -> Sequence[Any]:
        """Return those of the questions of a split, sorted by rank, that are in the part."""
        return ranked[self.number - 1 :: self.parts]


WHOLE = Part(1, 1)


@dataclass(frozen=True, kw_only=True)
class Order:
    """What to reproduce, and how; unknown names raise `InputError`."""

    model: str
    store: Path
    datasets: Sequence[str] | None = None  # None: the seven of the paper
    recipe: Recipe = LEAN
    limit: int | None = None  # at most so many questions of each split
    engine: str | None = None  # another than the one in the model's manifest
    judge_url: str | None = (
        None  # of the judge's server; None: the engine's own, or OPENAI_BASE_URL
    )
    in_flight: int | None = None  # samples that a server is asked for at a time; None: as usual
    part: Part = WHOLE  # of the questions of every split, in a store of its own
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.part.number <= self.part.parts:
            raise InputError(
                f"a part is NUMBER/PARTS, such as 3/8; got {self.part.number}/{self.part.parts}"
            )

    @property
    def names(self) -> list[str]:
        """List the data sets: by default those of the paper's tables."""
        if self.datasets is not None:
            return list(self.datasets)
        return [name for name in dataset_names() if load_dataset(name).reported_as]

    @property
    def choice(self) -> dict[str, int]:
        """Return which of several runs on a split is meant, as ``find_run`` takes it."""
        return {"seed": self.seed}

    def run(self, dataset: str, split: str) -> Run | None:
        """Return the run on a split; None where none has been begun."""
        return find_run_if_any(self.store, self.model, dataset, split, self.choice)

    @property
    def counting(self) -> Counting:
        """Return which samples count in the table, and by whose verdicts."""
        return Counting(
            self.store,
            self.model,
            verdicts=self.recipe.verdicts,
            recipe=self.recipe.probe,
            held_out=self.recipe.protocol == "corrected",
            choice=self.choice,
        )

    def scored(self) -> list[str]:
        """List the data sets whose evaluation split has the verdicts."""
        names = []
        for name in self.names:
            run = self.run(name, load_dataset(name).evaluation_split)
            if run and is_scored(run, self.recipe.verdicts):
                names.append(name)
        return names
