from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from capcal_lib.book import figures
from capcal_lib.grading.counts import count_verdicts
from capcal_lib.grading.verdicts import grade_run, read_verdicts
from capcal_lib.manifests import RECORDED_RUNS, load_model
from capcal_lib.questions import load_questions
from capcal_lib.results.evaluation import Evaluation, beta_evaluation, load_evaluation
from capcal_lib.results.strictness import (
    OURS,
    RULES,
    accuracy_by_rule,
    judge_table,
    labels_table,
    regrade,
    verdict_shares,
)
from capcal_lib.sampling.draw import describe
from capcal_lib.sampling.engines import Sample
from capcal_lib.sampling.store import KEY, find_run, open_writer

SET = "mini-arithmetic"
RNG = np.random.default_rng


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Four responses to one question, each of which a different set of rules takes for right."""
    questions = load_questions(SET, "test")
    record = describe(load_model("simulated"), SET, "test", questions, engine=None, seed=0)
    gold = questions[0].answer.gold
    said = [
        f"\\boxed{{{gold}}}",
        f"\\boxed{{{gold}.0}}",
        f"\\boxed{{1{gold}}}",
        f"Is it {gold}? Who knows what it may be.",
    ]
    with open_writer(tmp_path, record) as writer:
        writer.append([Sample(questions[0].id, index, text, None, "stop", 1, 1) for index, text in enumerate(said)])
    grade_run(writer.folder)
    return writer.folder


def recorded(model: str = "simulated", dataset: str = "mini-exam") -> Evaluation:
    return load_evaluation(RECORDED_RUNS, model, dataset)


def test_each_rule_takes_its_own_answers(run: Path) -> None:
    right = {rule: (regrade(run, rule)["verdict"] == "correct").tolist() for rule in RULES}
    assert (read_verdicts(run)["verdict"] == "correct").tolist() == [True, True, False, False]
    assert right == {
        "identical text": [True, False, False, False],
        "one contains the other": [True, True, True, False],
        "mentioned anywhere": [True, True, True, True],
    }


def test_other_rules_keep_the_form_and_the_four_verdicts(run: Path) -> None:
    ours = read_verdicts(run)
    other = regrade(run, "identical text")
    assert list(other) == list(ours)
    assert other[KEY].equals(ours[KEY])
    assert other["verdict"].tolist() == ["correct", "incorrect", "incorrect", "no_answer"]


def test_what_was_not_scored_stays_so(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = read_verdicts(run)
    ours.loc[0, "verdict"] = "not_scored"
    monkeypatch.setattr("capcal_lib.results.strictness.read_verdicts", lambda folder: ours)  # noqa: ARG005
    assert regrade(run, "mentioned anywhere")["verdict"].tolist() == ["not_scored", *["correct"] * 3]


def test_the_table_holds_the_difference_from_the_books_rules() -> None:
    one = recorded()
    table = accuracy_by_rule(RECORDED_RUNS, [one], RNG(0), k_eval=100).set_index("rule")
    assert list(table.index) == [OURS, *RULES]
    assert (table.loc[OURS, ["difference", "low", "high"]] == 0).all()
    folder = find_run(RECORDED_RUNS, "simulated", "mini-exam", "test")
    for rule in RULES:
        mu = count_verdicts(regrade(folder, rule), k=100).expected_accuracy
        assert table.loc[rule, "mean mu_hat"] == pytest.approx(mu.mean())
        assert table.loc[rule, "difference"] == pytest.approx(mu.mean() - one.counts.expected_accuracy.mean())
        assert table.loc[rule, "low"] <= table.loc[rule, "difference"] <= table.loc[rule, "high"]
    assert set(table["evidence"]) == {"simulated"}


def test_shares_sum_to_one() -> None:
    shares = verdict_shares([recorded(), recorded(dataset="mini-elements")])
    np.testing.assert_allclose(shares[["correct", "incorrect", "no answer", "not scored"]].sum(axis=1), 1)
    assert shares["samples"].tolist() == [10_200, 9100]


def test_labels_widen_the_interval_less_and_less() -> None:
    table = labels_table(recorded(), [50, 500], RNG(0), sensitivity=0.98, specificity=0.98)
    assert table["labels"].tolist() == ["none", "50 + 50", "500 + 500"]
    none, few, many = (table["high"] - table["low"]).tolist()
    assert few > many > 0.9 * none
    assert table.loc[1, "one question"] > table.loc[2, "one question"] > table.loc[0, "one question"]


def test_judges_are_listed_where_there_are_some(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = recorded(dataset="mini-capitals")
    assert judge_table(tmp_path, [], RNG(0)).empty
    folder = find_run(RECORDED_RUNS, "simulated", "mini-capitals", "test")
    told = read_verdicts(folder)[["question_id", "extracted", "verdict"]].drop_duplicates().assign(words="")
    monkeypatch.setattr("capcal_lib.results.strictness.judges", lambda folder: ["echo"])  # noqa: ARG005
    monkeypatch.setattr("capcal_lib.grading.agreement.read_judgements", lambda folder, judge: told)  # noqa: ARG005
    table = judge_table(RECORDED_RUNS, [one], RNG(0))
    assert table["of"].tolist() == ["distinct answers", "samples"]
    assert table["compared"].tolist() == [len(told), 16_800]
    assert (table["kappa"] == 1).all()


def test_a_model_without_samples_has_empty_tables_and_figures_that_say_so() -> None:
    one = beta_evaluation("gpt-oss-20b", "gsm8k", rng=RNG(0))
    shares, rules = verdict_shares([one]), accuracy_by_rule(RECORDED_RUNS, [one], RNG(0), k_eval=100)
    for table in (shares, rules, judge_table(RECORDED_RUNS, [one], RNG(0))):
        assert isinstance(table, pd.DataFrame)
        assert table.empty
    for figure in (figures.verdict_shares(shares), figures.strictness(rules)):
        assert "no samples of this model yet" in [text.get_text() for text in figure.axes[0].texts]
