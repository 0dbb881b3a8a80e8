from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from capcal_lib.cli import app
from capcal_lib.confidence.of_run import estimate, read_confidence
from capcal_lib.errors import InputError
from capcal_lib.grading import GRADER_VERSION
from capcal_lib.grading.verdicts import grade_run, read_verdicts, write_verdicts
from capcal_lib.manifests import load_dataset
from capcal_lib.places import RECORDED_RUNS
from capcal_lib.questions import load_questions
from capcal_lib.results import (
    Counting,
    brier_terms,
    costs,
    describe_runs,
    estimates,
    load_results,
    subjects,
)
from capcal_lib.results.results import CONSISTENCY, VOTES
from capcal_lib.results.terms import NUMBERS
from capcal_lib.runs import Run
from capcal_lib.runs.artifacts import CONFIDENCES
from capcal_lib.runs.files import write_table
from capcal_lib.runs.store import KEY, read_samples
from capcal_lib.sampling.draw import sample

SET = "mini-exam"
Vote = tuple[str | None, str]  # extracted, verdict


def make(store: Path, *, k: int = 6, limit: int = 8, split: str | None = None) -> Path:
    folder = sample("simulated", SET, split=split, k=k, limit=limit, store=store).run.folder
    grade_run(Run(folder))
    return folder


def by_hand(folder: Path, votes: dict[str, list[Vote]]) -> None:
    """Replace the verdicts of a run."""
    rows = [
        (name, index, verdict, extracted, "by hand")
        for name, said in sorted(votes.items())
        for index, (extracted, verdict) in enumerate(said)
    ]
    verdicts = pd.DataFrame(rows, columns=[*KEY, "verdict", "extracted", "reason"])
    write_verdicts(Run(folder), verdicts, GRADER_VERSION)


def test_counts_are_those_of_the_first_k_eval_samples(tmp_path: Path) -> None:
    verdicts = read_verdicts(Run(make(tmp_path, k=6)))
    results = load_results(tmp_path, "simulated", k_eval=4, k_c=2)
    assert results.index.names == ["dataset", "question_id"]
    assert list(results) == ["correct", "total", CONSISTENCY, *VOTES]
    for (dataset, question), row in results.iterrows():
        mine = verdicts[(verdicts["question_id"] == question) & (verdicts["sample_index"] < 4)][
            "verdict"
        ].tolist()
        assert dataset == SET
        assert (row["correct"], row["total"]) == (
            mine.count("correct"),
            4 - mine.count("not_scored"),
        )


def test_votes_are_scored_against_the_other_samples(tmp_path: Path) -> None:
    folder = make(tmp_path, k=4, limit=2)
    a, b = sorted(question.id for question in load_questions(SET, limit=2))
    right, wrong, none = ("A", "correct"), ("B", "incorrect"), (None, "no_answer")
    by_hand(folder, {a: [right, right, right, wrong], b: [none, none, none, none]})
    results = load_results(tmp_path, "simulated", k_eval=4, k_c=1).loc[SET]
    assert results.loc[[a, b], "correct"].tolist() == [3, 0]
    np.testing.assert_allclose(results.loc[[a, b], CONSISTENCY], [1, np.nan])
    results = load_results(tmp_path, "simulated", k_eval=4, k_c=1)
    terms = brier_terms(results)[CONSISTENCY].droplevel("dataset")
    # One of four votes with confidence 1: against three right ones once, else two of three.
    wrong_out, right_out = 0.0, (1 - 2 / 3) ** 2 - 2 / 9 / 2
    assert min(wrong_out, right_out) <= terms[a] <= max(wrong_out, right_out)
    assert np.isnan(terms[b])
    kept = brier_terms(results.assign(other=0.5))[CONSISTENCY].droplevel("dataset")
    assert kept[a] == terms[a]
    assert estimates(results, CONSISTENCY)[NUMBERS].to_numpy().tolist() == [[1, 2, 3]], (
        "not by the voter"
    )
    others = results.assign(other=0.5)
    assert estimates(others, "other")[NUMBERS].to_numpy().tolist() == [[0.5, 3, 4], [0.5, 0, 4]]
    paper = load_results(tmp_path, "simulated", k_eval=1, k_c=2, held_out=False).loc[SET]
    assert paper["total"].tolist() == [1, 1], "of more votes than samples that count"
    np.testing.assert_allclose(paper.loc[[a, b], CONSISTENCY], [1, 0.5])


def test_votes_of_the_papers_protocol_equal_a_naive_count_of_recorded_samples() -> None:
    results = load_results(RECORDED_RUNS, "simulated", datasets=[SET], held_out=False).loc[SET]
    verdicts = read_verdicts(Run(next((RECORDED_RUNS / "simulated" / f"{SET}-test").iterdir())))
    for question in results.index[[0, 17, 63]]:
        mine = verdicts[(verdicts["question_id"] == question) & (verdicts["sample_index"] < 10)]
        letters = Counter(letter for letter in mine["extracted"] if isinstance(letter, str))
        assert results.loc[question, CONSISTENCY] == pytest.approx(max(letters.values()) / 10)


def test_a_question_with_too_few_samples_beside_the_votes_has_none(tmp_path: Path) -> None:
    make(tmp_path, k=4, limit=3)
    make(tmp_path, k=3, limit=5)  # the same run
    results = load_results(tmp_path, "simulated", k_eval=4, k_c=2).loc[SET]
    first = {question.id for question in load_questions(SET, limit=3)}
    assert {str(name) for name in results.index[results[CONSISTENCY].notna()]} == first
    assert len(results) == 5
    assert list(load_results(tmp_path, "simulated", k_eval=3, k_c=2)) == ["correct", "total"]


def test_confidences_join_by_question_and_not_by_position(tmp_path: Path) -> None:
    folder = make(tmp_path, k=12, limit=6)
    for method in ("p-true", "verbalized"):
        estimate(Run(folder), method)
        path = Run(folder).path(CONFIDENCES, method)
        write_table(
            path, pq.read_table(path).take([4, 2, 0, 5])
        )  # another order, and two questions without
    results = load_results(tmp_path, "simulated", k_eval=3).loc[SET]
    kept = read_confidence(Run(folder), "p-true")
    for question, value in kept["confidence"].items():
        assert results.loc[question, "P(True)"] == value
    assert results["P(True)"].isna().sum() == 2
    table = costs(Counting(tmp_path, "simulated"))
    assert table.loc[SET, "P(True)"] == kept.tokens.mean()
    mean = read_samples(Run(folder), ["completion_tokens"])["completion_tokens"].mean()
    assert table.loc[SET, CONSISTENCY] == round(10 * mean)


def test_what_is_behind_results(tmp_path: Path) -> None:
    folder = make(tmp_path, k=4, limit=2)
    a, b = sorted(question.id for question in load_questions(SET, limit=2))
    by_hand(
        folder,
        {
            a: [("A", "correct"), (None, "no_answer"), (None, "not_scored"), ("B", "incorrect")],
            b: [("A", "correct"), ("A", "correct"), ("A", "correct"), ("A", "correct")],
        },
    )
    row = describe_runs(Counting(tmp_path, "simulated", k_eval=4)).loc[SET]
    assert (row["questions"], row["fewest"], row["most"], row["samples"]) == (2, 3, 4, 8)
    assert row["not scored"] == 1 / 8
    assert (row["evidence"], row["run"]) == ("simulated", Run(folder))
    assert load_results(tmp_path, "simulated", k_eval=4).loc[(SET, a)].tolist()[:2] == [1, 3]


def test_a_model_without_samples_has_empty_results(tmp_path: Path) -> None:
    results = load_results(tmp_path, "gpt-oss-20b")
    assert results.empty
    assert list(results) == ["correct", "total"]
    assert results.index.names == ["dataset", "question_id"]
    assert describe_runs(Counting(tmp_path, "gpt-oss-20b")).empty
    make(tmp_path, split="train")  # training questions are no results
    assert load_results(tmp_path, "simulated").empty


def test_what_is_graded_is_read_or_refused_and_never_left_out(tmp_path: Path) -> None:
    make(tmp_path)
    other = "mini-capitals"
    for temperature in (0.3, 0.4):  # two runs of which neither is graded, nor the usual one
        settings = {"temperature": temperature}
        warm = sample("simulated", other, k=2, limit=2, store=tmp_path, settings=settings).run
    assert [*load_results(tmp_path, "simulated").index.unique("dataset")] == [SET]
    grade_run(warm)
    with pytest.raises(InputError, match=f"2 runs of simulated on {other}"):
        load_results(tmp_path, "simulated")
    chosen = load_results(tmp_path, "simulated", choice={"temperature": 0.4})
    assert [*chosen.index.unique("dataset")] == [other]
    sample("simulated", other, k=2, limit=2, store=tmp_path)  # the usual one, not graded
    with pytest.raises(InputError, match=r"no verdicts in .* make them with: capcal grade"):
        load_results(tmp_path, "simulated")
    make(tmp_path / "mine")
    (tmp_path / "mine/simulated" / f"{SET}-test").rename(tmp_path / "mine/simulated/unheard-test")
    with pytest.raises(InputError, match="unknown data set 'unheard'"):
        load_results(tmp_path / "mine", "simulated")


def test_bad_requests_are_refused(tmp_path: Path) -> None:
    make(tmp_path, k=2, limit=2)
    with pytest.raises(InputError, match="unknown model 'gpt-9'; known: "):
        load_results(tmp_path, "gpt-9")
    with pytest.raises(InputError, match="capcal sample --model simulated --dataset mini-capitals"):
        load_results(tmp_path, "simulated", datasets=["mini-capitals"])
    with pytest.raises(InputError, match="k_eval must be a whole number"):
        load_results(tmp_path, "simulated", k_eval=0)
    with pytest.raises(InputError, match="none is not a folder"):
        load_results(tmp_path / "none", "simulated")


def test_subjects_group_the_questions_of_clustered_sets_alone(recorded: pd.DataFrame) -> None:
    groups = subjects(recorded)
    assert load_dataset("mmlu").clustered
    assert 1 < groups["mmlu"].nunique() < len(groups["mmlu"])
    assert groups[SET].is_unique


def test_what_is_not_scored_bounds_the_accuracy(tmp_path: Path) -> None:
    folder = make(tmp_path, k=4, limit=2)
    one, two = sorted(set(read_verdicts(Run(folder))["question_id"]))
    right, lost = ("A", "correct"), (None, "not_scored")
    by_hand(folder, {one: [right, right, lost, lost], two: [right, ("B", "incorrect")] * 2})
    [run] = describe_runs(Counting(tmp_path, "simulated")).to_dict("records")
    assert (run["not scored"], run["all wrong"], run["all right"]) == (0.25, 0.5, 0.75)
    command = ["score", "--model", "simulated", "--store", str(tmp_path)]
    shown = " ".join(CliRunner().invoke(app, command).stdout.split())
    assert "25.0% of the samples are not scored: accuracy 0.500 with them wrong" in shown


def test_samples_without_verdicts_are_said(tmp_path: Path) -> None:
    run = sample("simulated", SET, k=4, limit=5, store=tmp_path).run
    grade_run(run)
    assert describe_runs(Counting(tmp_path, "simulated")).attrs["problems"] == []
    sample("simulated", SET, k=8, limit=5, store=tmp_path)
    [problem] = describe_runs(Counting(tmp_path, "simulated")).attrs["problems"]
    assert (
        "20 of 40 samples have no verdict, and do not count; go on with: capcal grade " in problem
    )
    grade_run(run)
    assert describe_runs(Counting(tmp_path, "simulated")).attrs["problems"] == []
