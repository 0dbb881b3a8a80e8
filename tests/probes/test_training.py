"""Probes of runs: trained on one stated set of questions, joined by question."""

from pathlib import Path

import numpy as np
import pytest

from capcal_lib.errors import InputError
from capcal_lib.grading.verdicts import grade_run, read_verdicts
from capcal_lib.manifests import load_dataset
from capcal_lib.places import RECORDED_RUNS
from capcal_lib.probe_names import read_column
from capcal_lib.probes import (
    PaperProbe,
    TunedProbe,
    keep_predictions,
    nearest_probe,
    nearest_probes,
    predictions_of,
    train,
    training_data,
)
from capcal_lib.probes.features import extract, read_features
from capcal_lib.results import load_results
from capcal_lib.runs import Run, find_run
from capcal_lib.sampling.draw import sample

MODEL, SET = "simulated", "mini-exam"
PROBE = load_dataset(SET).probe


def make(
    store: Path, *, dataset: str = SET, split: str | None = None, k: int = 3, limit: int = 20
) -> Path:
    folder = sample(MODEL, dataset, split=split, k=k, limit=limit, store=store).run.folder
    grade_run(Run(folder))
    return folder


def with_states(store: Path, **options: object) -> Path:
    folder = make(store, **options)  # type: ignore[arg-type]
    extract(Run(folder))
    return folder


def change(run: Path, **identity: str) -> None:
    """Make a run one of another identity."""
    record = Run(run).record
    other = record.model_copy(update={"identity": record.identity.model_copy(update=identity)})
    (run / "run.json").write_text(other.model_dump_json())
    run.rename(run.with_name(other.identity.key))


def test_training_questions_have_hidden_states_and_a_scored_sample(tmp_path: Path) -> None:
    run = with_states(tmp_path, split="train", k=1, limit=10)
    assert (training_data(Run(run))[0]["total"] == 1).all()
    make(tmp_path, split="train", k=3, limit=12)  # two questions more, without hidden states
    questions, features = training_data(Run(run))
    names, matrix = read_features(Run(run))
    assert questions.index.tolist() == names
    assert (questions["total"] == 3).all()
    np.testing.assert_array_equal(features, matrix)
    verdicts = read_verdicts(Run(run))
    right = (verdicts["verdict"] == "correct").groupby(verdicts["question_id"]).sum()
    assert questions["correct"].tolist() == right[names].tolist()


@pytest.mark.parametrize("recipe", ["tuned", "paper"])
def test_predictions_are_those_of_probes_trained_on_training_splits(
    tmp_path: Path, recipe: str
) -> None:
    runs = {
        name: with_states(tmp_path, dataset=name, split="train", limit=40)
        for name in (SET, "mini-arithmetic")
    }
    ids, features = read_features(Run(with_states(tmp_path)))
    keep_predictions(tmp_path, MODEL, recipe=recipe)  # type: ignore[arg-type]
    tested = find_run(tmp_path, MODEL, SET, "test")
    predicted, stale = predictions_of(tested, recipe=recipe)  # type: ignore[arg-type]
    assert predicted.index.tolist() == [*ids]
    assert stale == []
    assert {read_column(name)[0] for name in predicted} == {
        load_dataset(name).probe for name in runs
    }
    assert predicted.shape[1] == len(runs) * (5 if recipe == "paper" else 1)
    estimator = TunedProbe if recipe == "tuned" else PaperProbe
    for dataset, run in runs.items():
        questions, matrix = training_data(Run(run))
        probe = estimator().fit(matrix, questions["correct"], questions["total"])
        columns = [
            name for name in predicted if read_column(name)[0] == load_dataset(dataset).probe
        ]
        np.testing.assert_allclose(
            predicted[columns].to_numpy().T, probe.predict_splits(features), atol=1e-7
        )
        trained = train(Run(run), recipe=recipe)  # type: ignore[arg-type]
        np.testing.assert_allclose(trained.out_of_fold_, probe.out_of_fold_)
    if recipe == "paper":
        first, second, *_ = predicted.to_numpy().T
        assert not np.allclose(first, second)


def test_a_question_without_hidden_states_has_no_prediction(tmp_path: Path) -> None:
    with_states(tmp_path, split="train")
    run = with_states(tmp_path, limit=5)
    make(tmp_path, limit=8)
    keep_predictions(tmp_path, MODEL)
    predicted, _ = predictions_of(Run(run))
    assert predicted.index.tolist() == read_features(Run(run))[0]
    assert load_results(tmp_path, MODEL)[PROBE].isna().sum() == 3


def test_an_unknown_recipe_is_refused() -> None:
    known = "known: paper, tuned"
    with pytest.raises(InputError, match=f"unknown recipe 'best'; {known}"):
        train(find_run(RECORDED_RUNS, MODEL, SET, "train"), recipe="best")  # type: ignore[arg-type]


def test_a_probe_of_no_run_is_refused() -> None:
    for recipe in ("tuned", "paper"):
        with pytest.raises(
            InputError, match="a probe needs at least one run to train on; got none"
        ):
            train(recipe=recipe)  # type: ignore[arg-type]


@pytest.mark.parametrize("setting", ["weights", "prompt_template"])
def test_a_probe_of_other_weights_or_prompts_is_refused(tmp_path: Path, setting: str) -> None:
    with_states(tmp_path)
    run = with_states(tmp_path, split="train")
    keep_predictions(tmp_path, MODEL)
    change(run, **{setting: "another"})
    differ = f"a probe trained on .* cannot predict .*: they differ in {setting}: another / "
    with pytest.raises(InputError, match=differ):
        keep_predictions(tmp_path, MODEL)


def test_the_nearest_probe_is_real_and_chosen_by_its_training_set() -> None:
    given = [
        "P(True)",
        "Probe (Mini capitals)",
        "Probe (Mini exam)",
        "Probe (GSM8K) [2]",
        "Probe (TriviaQA)",
    ]
    assert nearest_probes(given, SET) == [PROBE]
    assert nearest_probes(given, "simpleqa") == ["Probe (TriviaQA)", "Probe (Mini capitals)"]
    assert nearest_probe(given, "aime25") == "Probe (GSM8K) [2]"
    assert nearest_probes(["Probe (Mini capitals)", "Probe (TriviaQA)"], "gsm8k") == [
        "Probe (TriviaQA)",
        "Probe (Mini capitals)",
    ]
    assert nearest_probe(["P(True)"], SET) is None


def test_among_probes_of_a_domain_the_papers_is_nearest_and_not_the_first_by_name() -> None:
    given = ["Probe (AIME)", "Probe (GSM8K)", "Probe (MATH)", "Probe (TriviaQA + GSM8K)"]
    for probes in (given, given[::-1]):
        assert nearest_probe(probes, "aime25") == "Probe (MATH)"
        assert nearest_probe(probes, "math500") == "Probe (MATH)"
        assert nearest_probe(probes, "gsm8k") == "Probe (GSM8K)"
        in_size = ["Probe (MATH)", "Probe (GSM8K)", "Probe (AIME)"]  # of 11,998, 7,473 and 919
        assert nearest_probes(probes, "mmlu") == in_size
