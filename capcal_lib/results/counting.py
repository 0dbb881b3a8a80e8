"""Which samples of a model count, and by whose verdicts: one value for pages, reproduction, and
scores."""

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from pathlib import Path

from capcal_lib.manifests import load_dataset, load_model
from capcal_lib.metrics.validation import check_int
from capcal_lib.probes import ProbeRecipe
from capcal_lib.runs import find_run
from capcal_lib.runs.artifacts import VERDICTS
from capcal_lib.runs.run import Choice, Run, check_store, list_fitting


@dataclass(frozen=True)
class Counting:
    """What counts of a model's samples in a store.

    The first ``k_eval`` samples of a question define mu_hat, and the first ``k_c`` of them vote;
    without ``held_out`` they judge themselves, as in the paper's code. ``verdicts`` names the
    grader: ``rules``, or ``judge:MODEL`` for short and mathematical answers. ``recipe`` is the
    probes' recipe, or None for no probes. ``choice`` picks one of several runs on a split, such as
    ``{"seed": 1}``: see ``runs.find_run``.
    """

    store: Path | str
    model: str
    _: KW_ONLY
    k_eval: int = 100
    k_c: int = 10
    verdicts: str = "rules"
    recipe: ProbeRecipe | None = "tuned"
    held_out: bool = True
    choice: Choice | None = None

    def __post_init__(self) -> None:
        check_int("k_eval", self.k_eval, least=1)
        check_int("k_c", self.k_c, least=1)

    def runs(self, datasets: Iterable[str] | None = None) -> dict[str, Run]:
        """Find the graded runs on evaluation splits, one per data set.

        `InputError` if the store does not exist, the model is unknown, or a named data set has no
        graded run."""
        model = load_model(self.model).name
        check_store(self.store)
        if datasets is None:
            datasets = self._graded_datasets(model)
        runs = {}
        for name in datasets:
            split = load_dataset(name).evaluation_split
            runs[name] = find_run(self.store, model, name, split, self.choice)
        return runs

    def _graded_datasets(self, model: str) -> list[str]:
        """List the data sets on whose evaluation split a run that fits the choice is graded."""
        names = {}  # in their order
        for run in list_fitting(self.store, model, None, None, self.choice):
            if run.has(VERDICTS):
                dataset = load_dataset(run.place["dataset"])
                if run.place["split"] == dataset.evaluation_split:
                    names[dataset.name] = True
        return list(names)
