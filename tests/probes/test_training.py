"""Probes of runs: trained on one stated set of questions, joined by question."""

import json
from pathlib import Path

import numpy as np
import pytest

from capcal_lib.errors import InputError
from capcal_lib.grading.verdicts import read_verdicts, write_verdicts
from capcal_lib.places import OWN_MANIFESTS, RECORDED_RUNS
from capcal_lib.probes import (
    TunedProbe,
    keep_predictions,
    nearest_probe,
    nearest_probes,
    predictions_of,
    train,
    training_data,
)
from capcal_lib.probes.features import read_features
from capcal_lib.probes.training import validation_runs
from capcal_lib.results import load_results
from capcal_lib.runs import find_run
from tests.io.files import write
from tests.probes.stores import MODEL, OTHER, PROBE, SET, change, make, with_states


def test_training_questions_have_hidden_states_and_a_scored_sample(tmp_path: Path) -> None:
    run = with_states(tmp_path, split="train", k=1, limit=10)
    assert (training_data(run)[0]["total"] == 1).all()
    make(tmp_path, split="train", k=3, limit=12)  # two questions more, without hidden states
    questions, features = training_data(run)
    names, matrix = read_features(run)
    assert questions.index.tolist() == names
    assert (questions["total"] == 3).all()
    np.testing.assert_array_equal(features, matrix)
    verdicts = read_verdicts(run)
    right = (verdicts["verdict"] == "correct").groupby(verdicts["question_id"]).sum()
    assert questions["correct"].tolist() == right[names].tolist()
    verdicts.loc[verdicts["question_id"] == names[0], "verdict"] = "not_scored"
    write_verdicts(run, verdicts, "1")
    questions, features = training_data(run)
    assert questions.index.tolist() == names[1:]
    np.testing.assert_array_equal(features, matrix[1:])


def test_predictions_are_those_of_probes_trained_on_training_splits(mixed: Path) -> None:
    keep_predictions(mixed, MODEL)
    tested = find_run(mixed, MODEL, SET, "test")
    ids, features = read_features(tested)
    predicted, _ = predictions_of(tested)
    assert predicted.index.tolist() == ids
    assert sorted(predicted) == ["Probe (Mini capitals)", PROBE]
    for dataset, column in ((SET, PROBE), (OTHER, "Probe (Mini capitals)")):
        questions, matrix = training_data(find_run(mixed, MODEL, dataset, "train"))
        probe = TunedProbe().fit(matrix, questions["correct"], questions["total"])
        np.testing.assert_allclose(predicted[column], probe.predict(features), atol=1e-7)


def test_a_question_without_hidden_states_has_no_prediction(store: Path) -> None:
    make(store, limit=23)
    keep_predictions(store, MODEL)
    run = find_run(store, MODEL, SET, "test")
    assert predictions_of(run)[0].index.tolist() == read_features(run)[0]
    assert load_results(store, MODEL)[PROBE].isna().sum() == 3


def test_an_unknown_recipe_or_model_is_refused() -> None:
    with pytest.raises(InputError, match="unknown recipe 'best'; known: paper, tuned"):
        train(find_run(RECORDED_RUNS, MODEL, SET, "train"), recipe="best")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="unknown model 'gpt-9'"):
        keep_predictions(RECORDED_RUNS, "gpt-9")


def test_the_run_that_validates_is_the_one_beside_the_training_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(OWN_MANIFESTS, str(tmp_path))
    (tmp_path / "datasets").mkdir()
    splits = {}
    for split in ("train", "valid"):
        rows = [{"id": f"{split} {n}", "question": f"{split} {n}?", "answer": n} for n in range(9)]
        write(tmp_path / "datasets" / f"{split}.jsonl", *rows)
        splits[split] = {"file": f"{split}.jsonl", "rows": 9}
    facts = {"name": "own", "domain": "numbers", "kind": "number", "source": "Ours."}
    facts |= {f"{role}_split": "valid" for role in ("evaluation", "validation")}
    facts |= {"splits": splits, "training_split": "train"}
    (tmp_path / "datasets" / "own.yaml").write_text(json.dumps(facts))
    run, beside = (with_states(tmp_path / "store", dataset="own", split=one) for one in splits)
    assert validation_runs([run]) == [beside]


@pytest.mark.parametrize("setting", ["weights", "prompt_template"])
def test_a_probe_of_other_weights_or_prompts_is_refused(store: Path, setting: str) -> None:
    change(find_run(store, MODEL, SET, "train"), **{setting: "another"})
    differ = f"a probe trained on .* cannot predict .*: they differ in {setting}: another / "
    with pytest.raises(InputError, match=differ):
        keep_predictions(store, MODEL)


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
