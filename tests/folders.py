from pathlib import Path

from capcal_lib.confidence.of_run import estimate
from capcal_lib.grading import GRADER_VERSION
from capcal_lib.grading.verdicts import grade_run, run_questions
from capcal_lib.manifests import load_dataset
from capcal_lib.probes.features import extract
from capcal_lib.probes.predictions import check_predictions, keep_predictions
from capcal_lib.questions import Question, subset
from capcal_lib.runs import Run, open_runs
from capcal_lib.runs import verify as verify_module
from capcal_lib.runs.run import Identity, run_of
from capcal_lib.runs.verify import Checked
from capcal_lib.sampling.draw import sample
from capcal_lib.sampling.weights import check_weights


def list_runs(store: Path) -> list[Path]:
    """List the folders of the runs in a store."""
    return [run.folder for run in open_runs(store)] if store.exists() else []


def run_folder(store: Path, identity: Identity) -> Path:
    """Return the folder of the run with this identity."""
    return run_of(store, identity).folder


def verify_run(run: Run) -> Checked:
    """Check a run as ``capcal verify`` does."""
    checks = [check_weights, check_predictions]
    return verify_module.verify_run(run, grader=GRADER_VERSION, checks=checks)


def sample_unlike_totals(store: Path, dataset: str) -> None:
    """Sample twenty questions of a data set a hundred times each, and forty more of them twelve
    times; with a probe, and what the model says."""
    sample("simulated", dataset, split="train", k=12, limit=80, store=store)
    sample("simulated", dataset, k=100, limit=20, store=store)
    sample("simulated", dataset, k=12, limit=60, store=store)
    for run in open_runs(store):
        grade_run(run)
        extract(run)
        if run.place["split"] == load_dataset(dataset).evaluation_split:
            estimate(run, "p-true")
            estimate(run, "verbalized")
    keep_predictions(store, "simulated", datasets=[dataset])


def sampled(folder: Path, number: int = 8) -> list[Question]:
    """Return the questions that a run with this limit has, sorted by id."""
    questions = tuple(run_questions(Run(folder)).values())
    return sorted(subset(questions, number), key=lambda question: question.id)
