"""How the stores of the tests of probes are made."""

from pathlib import Path

from capcal_lib.grading.verdicts import grade_run
from capcal_lib.manifests import load_dataset
from capcal_lib.probes.features import extract
from capcal_lib.runs import Run
from capcal_lib.sampling.draw import sample

MODEL, SET, OTHER = "simulated", "mini-exam", "mini-capitals"
PROBE = load_dataset(SET).probe


def make(
    store: Path, *, dataset: str = SET, split: str | None = None, k: int = 3, limit: int = 20
) -> Run:
    run = sample(MODEL, dataset, split=split, k=k, limit=limit, store=store).run
    grade_run(run)
    return run


def with_states(
    store: Path, *, dataset: str = SET, split: str | None = None, k: int = 3, limit: int = 20
) -> Run:
    run = make(store, dataset=dataset, split=split, k=k, limit=limit)
    extract(run)
    return run


def change(run: Run, **identity: str) -> None:
    """Make a run one of another identity."""
    other = run.record.model_copy(update={"identity": run.identity.model_copy(update=identity)})
    (run.folder / "run.json").write_text(other.model_dump_json())
    run.folder.rename(run.folder.with_name(other.identity.key))
