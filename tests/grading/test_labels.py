"""What was labelled by reading, and how often the rules were found wrong."""

import pytest
from scipy.stats import beta

from capcal_lib.errors import InputError
from capcal_lib.grading.labels import error_rates, load_labels, measured_error
from capcal_lib.manifests import dataset_names, model_names

LABELS = load_labels()


def test_labels_know_questions_by_id_and_are_of_known_models_and_data_sets() -> None:
    assert {*LABELS} == {
        *("question_id", "extracted", "first", "second", "samples", "weight", "correct"),
        *("run", "kind", "response", "dataset"),
    }
    assert set(LABELS["dataset"]) <= set(dataset_names())
    assert set(LABELS["run"].str.split("/").str[0]) <= set(model_names())
    assert set(LABELS["correct"].dropna()) == {0.0, 1.0}
    assert (LABELS["weight"] > 0).all()


def test_the_error_of_a_data_set_is_a_ratio_of_weights() -> None:
    """Counted naively."""
    for dataset in ("gsm8k", "triviaqa"):
        labelled = LABELS[LABELS["dataset"] == dataset]
        found = missed = 0.0
        for row in labelled.itertuples():
            if row.correct == 1 and row.first == "correct":
                found += row.weight
            elif row.correct == 1:
                missed += row.weight
        assert measured_error(labelled).sensitivity == pytest.approx(found / (found + missed))


def test_an_open_label_counts_on_neither_side() -> None:
    labelled = LABELS[LABELS["dataset"] == "triviaqa"]
    assert labelled["correct"].isna().any()
    assert measured_error(labelled) == measured_error(labelled.dropna(subset="correct"))


def test_labels_of_one_question_say_less_than_as_many_of_several() -> None:
    apart = measured_error(LABELS.assign(question_id=range(len(LABELS))))
    assert measured_error(LABELS).right < apart.right
    assert measured_error(LABELS).wrong < apart.wrong


def test_labels_of_wrong_answers_alone_measure_nothing() -> None:
    with pytest.raises(InputError, match="none of the labelled answers is right"):
        measured_error(LABELS[LABELS["correct"] == 0])


def test_rates_have_the_interval_of_as_many_labels_as_would_tell_as_much() -> None:
    rates = error_rates(LABELS)
    error = measured_error(LABELS[LABELS["dataset"] == "triviaqa"])
    right, wrong = rates.loc["triviaqa"].to_numpy()
    assert (right[0], wrong[0]) == (error.sensitivity, error.specificity)
    assert beta.cdf(
        right[1:], error.right * right[0] + 0.5, error.right * (1 - right[0]) + 0.5
    ) == pytest.approx([0.025, 0.975])
    assert rates.loc[rates["estimate"] == 1, "high"].eq(1).all()


def test_rates_are_of_data_sets_with_labels_of_both_kinds() -> None:
    one_sided = LABELS[(LABELS["dataset"] != "gsm8k") | (LABELS["correct"] == 0)]
    assert "gsm8k" in error_rates(LABELS).index.unique("dataset")
    assert "gsm8k" not in error_rates(one_sided).index.unique("dataset")
