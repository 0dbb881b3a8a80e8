"""Judgements of a run: each distinct answer once, kept, taken up again, and never among the rules'
verdicts.
"""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from capcal_lib.errors import InputError
from capcal_lib.grading import GRADER_VERSION, judgements
from capcal_lib.grading.counts import count_verdicts
from capcal_lib.grading.judge import read_grade
from capcal_lib.grading.judgements import (
    JUDGEMENTS,
    PAIR,
    judge_progress,
    judge_run,
    judges,
    read_judgements,
    verdicts_by,
)
from capcal_lib.grading.verdicts import grade_run, read_verdicts, run_questions, write_verdicts
from capcal_lib.manifests import Sampling
from capcal_lib.places import RECORDED_RUNS
from capcal_lib.probes import training_data
from capcal_lib.probes.features import extract
from capcal_lib.probes.training import is_scored
from capcal_lib.results import Counting, describe_runs, load_results
from capcal_lib.runs import Run
from capcal_lib.runs.store import Sample
from capcal_lib.sampling.draw import sample
from capcal_lib.sampling.engines import Failure, Request
from capcal_lib.sampling.engines.simulated import SimulatedEngine

SET, JUDGE = "mini-capitals", "simulated"
BY = f"judge:{JUDGE}"


class Stern(SimulatedEngine):
    """A judge to whom only the gold answer is correct, and the letter L no answer; it counts what
    it is asked.
    """

    asked = 0
    fails_after = 10**9

    def sample(
        self, requests: Sequence[Request], sampling: Sampling, seed: int
    ) -> Iterator[list[Sample]]:
        for request in requests:
            if type(self).asked >= type(self).fails_after:
                raise RuntimeError("the server is gone")
            type(self).asked += 1
            proposed = (
                request.messages[-1]["content"].splitlines()[2].removeprefix("Proposed answer: ")
            )
            gold = f'"{request.question.answer.gold}"'
            words = "CORRECT" if proposed == gold else "INCORRECT."
            words = {"L": "NOT ATTEMPTED", "M": "Hm."}.get(proposed[1], words)
            (index,) = request.sample_indices
            yield [Sample(request.question.id, index, words, None, "stop", 1, 1)]


@pytest.fixture(autouse=True)
def stern(monkeypatch: pytest.MonkeyPatch) -> type[Stern]:
    class Fresh(Stern):
        pass

    monkeypatch.setattr(judgements, "open_engine", lambda model, name=None: Fresh(model))
    return Fresh


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = sample("simulated", SET, k=12, limit=9, store=tmp_path_factory.mktemp("store")).run
    grade_run(run)
    return run.folder


@pytest.fixture
def run(graded: Path, tmp_path: Path) -> Run:
    return Run(shutil.copytree(graded, tmp_path / Path(*graded.parts[-3:])))


def distinct(run: Run) -> pd.DataFrame:
    return read_verdicts(run)[PAIR].dropna().drop_duplicates()


def test_each_distinct_answer_is_judged_once(run: Run, stern: type[Stern]) -> None:
    number = len(distinct(run))
    before = read_verdicts(run)
    told: list[tuple[int, int]] = []
    judged = judge_run(run, JUDGE, progress=lambda *counts: told.append(counts))
    assert judged == (number, 0, {})
    assert told[-1] == (number, number)
    assert stern.asked == number < len(before)
    pd.testing.assert_frame_equal(read_verdicts(run), before)  # the rules' verdicts stay
    assert judge_run(run, JUDGE) == (0, number, {})
    assert stern.asked == number
    kept = read_judgements(run, JUDGE)
    assert sorted(map(tuple, kept[PAIR].to_numpy())) == sorted(map(tuple, distinct(run).to_numpy()))
    questions = run_questions(run)
    for name, extracted, verdict, words in kept.itertuples(index=False):
        gold = questions[name].answer.gold
        expected = "correct" if extracted == gold else "incorrect"
        assert verdict == {"L": "no_answer", "M": "not_scored"}.get(extracted[0], expected)
        assert read_grade(words) == verdict


def test_new_samples_bring_only_new_answers(run: Run, tmp_path: Path, stern: type[Stern]) -> None:
    judge_run(run, JUDGE)
    before, asked = read_judgements(run, JUDGE), stern.asked
    sample("simulated", SET, k=30, limit=12, store=tmp_path)
    grade_run(run)
    with pytest.raises(
        InputError, match=r"has not judged \d+ answers; judge with: capcal judge --model simulated"
    ):
        verdicts_by(run, BY)
    new, present, *_ = judge_run(run, JUDGE)
    assert present == len(before) == asked
    assert stern.asked == asked + new == len(distinct(run))


def test_the_most_frequent_answers_come_first_and_a_stop_loses_none(
    run: Run, stern: type[Stern]
) -> None:
    stern.fails_after = 10
    with pytest.raises(RuntimeError, match="the server is gone"):
        judge_run(run, JUDGE)
    kept = read_judgements(run, JUDGE)
    assert len(kept) == 10
    assert judge_progress(run) == {"simulated": (10, len(distinct(run)))}
    times = read_verdicts(run).groupby(PAIR).size()
    judged = times[pd.MultiIndex.from_frame(kept[PAIR])]
    assert judged.min() >= times.drop(judged.index).max()
    stern.fails_after = 10**9
    new, present, *_ = judge_run(run, JUDGE)
    assert (new, present) == (len(distinct(run)) - 10, 10)
    assert judge_progress(run) == {JUDGE: (new + 10, new + 10)}


def test_what_got_no_reply_is_asked_again(
    run: Run, stern: type[Stern], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Moody(stern):  # type: ignore[misc, valid-type]
        def sample(self, requests, sampling, seed):  # type: ignore[no-untyped-def]
            yield Failure(requests[0].question.id, requests[0].sample_indices, "no route")
            yield from super().sample(requests[1:], sampling, seed)

    number = len(distinct(run))
    with monkeypatch.context() as patch:
        patch.setattr(judgements, "open_engine", lambda model, name=None: Moody(model))
        assert judge_run(run, JUDGE) == (number - 1, 0, {"no route": 1})
    assert judge_run(run, JUDGE) == (1, number - 1, {})


def test_another_prompt_replaces_and_another_judge_stands_beside(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge_run(run, JUDGE)
    number = len(distinct(run))
    assert judge_run(run, "smollm2-135m") == (number, 0, {})
    assert judges(run) == ["simulated", "smollm2-135m"]
    monkeypatch.setattr(judgements, "judge_prompt_digest", lambda kind: "another")
    assert judge_run(run, JUDGE) == (number, 0, {})
    rows = pq.read_table(run.path(JUDGEMENTS)).to_pandas()
    assert rows.groupby(["judge", "prompt"]).size().to_dict() == {
        ("simulated", "another"): number,
        ("smollm2-135m", rows.loc[rows["judge"] == "smollm2-135m", "prompt"].iloc[0]): number,
    }


def test_judged_verdicts_have_the_form_of_the_rules_verdicts(run: Run) -> None:
    judge_run(run, JUDGE)
    rules, judged = read_verdicts(run), verdicts_by(run, BY)
    assert list(judged) == list(rules)
    assert judged[["question_id", "sample_index"]].equals(rules[["question_id", "sample_index"]])
    missing = rules["extracted"].isna()
    assert (judged.loc[missing, "verdict"] == "no_answer").all()
    by_hand = rules[~missing].merge(read_judgements(run, JUDGE), on=PAIR, suffixes=("_rules", ""))
    counts = count_verdicts(judged, k=12)
    expected = by_hand[by_hand["verdict"] == "correct"].groupby("question_id").size()
    assert counts.correct.tolist() == expected.reindex(counts.index, fill_value=0).tolist()
    assert counts.not_scored.sum() == (by_hand["verdict"] == "not_scored").sum()


def test_answers_of_other_kinds_keep_the_verdicts_of_the_rules(tmp_path: Path) -> None:
    exam = sample("simulated", "mini-exam", k=2, limit=3, store=tmp_path).run
    grade_run(exam)
    with pytest.raises(InputError, match="mathematical answers only, and mini-exam has none"):
        judge_run(exam, JUDGE)
    pd.testing.assert_frame_equal(verdicts_by(exam, BY), read_verdicts(exam))
    mixed = sample("simulated", "mini-elements", k=2, store=tmp_path).run
    grade_run(mixed)
    judge_run(mixed, JUDGE)
    kinds = {question.id: question.answer.kind for question in run_questions(mixed).values()}
    assert set(kinds.values()) == {"short", "number"}
    assert {kinds[name] for name in read_judgements(mixed, JUDGE)["question_id"]} == {"short"}
    rows = verdicts_by(mixed, BY)
    short = rows["question_id"].map(kinds) == "short"
    by_rules = read_verdicts(mixed)[~short]
    pd.testing.assert_frame_equal(rows.loc[~short, list(by_rules)], by_rules)
    assert rows.loc[short & rows["extracted"].notna(), "reason"].str.startswith("judge: ").all()


def test_a_run_without_an_answer_needs_no_judge(run: Run, stern: type[Stern]) -> None:
    rows = read_verdicts(run).assign(verdict="no_answer", extracted=None)
    write_verdicts(run, rows, GRADER_VERSION)
    assert judge_run(run, JUDGE) == (0, 0, {})
    assert stern.asked == 0
    pd.testing.assert_frame_equal(verdicts_by(run, BY), read_verdicts(run))


def test_results_and_probes_take_the_verdicts_that_are_asked_for(run: Run) -> None:
    rows = read_verdicts(run)
    rows.loc[rows["question_id"] == rows["question_id"].iloc[0], "extracted"] = "M"
    write_verdicts(run, rows, GRADER_VERSION)
    judge_run(run, JUDGE)
    assert is_scored(run, BY), "though a question has no verdict"
    store = run.folder.parents[2]
    results = load_results(store, "simulated", verdicts=BY).loc[SET]
    counts = count_verdicts(verdicts_by(run, BY), k=12)
    assert results["correct"].tolist() == counts.correct.tolist()
    assert results["total"].tolist() == counts.total.tolist()
    assert results["total"].sum() < load_results(store, "simulated").loc[SET, "total"].sum()
    extract(run)
    questions, _ = training_data(run, BY)
    assert questions["correct"].equals(counts.loc[questions.index, "correct"])
    assert describe_runs(Counting(store, "simulated", verdicts=BY))["not scored"].item() > 0


def test_an_unjudged_run_names_the_command(run: Run) -> None:
    with pytest.raises(
        InputError,
        match=r"unknown judge 'simulated'; known: none; judge with: capcal judge --model",
    ):
        read_judgements(run, JUDGE)
    with pytest.raises(InputError, match="unknown model 'gpt-9'"):
        judge_run(run, "gpt-9")
    for by in ("judge", "judge:", "simulated"):
        with pytest.raises(InputError, match="verdicts must be 'rules' or 'judge:MODEL'"):
            verdicts_by(run, by)


def test_the_recorded_judgements_are_those_of_this_prompt_and_this_reader() -> None:
    files = sorted(RECORDED_RUNS.glob(f"*/*/*/{JUDGEMENTS.name}"))
    assert files
    for file in files:
        rows = pq.read_table(file).to_pandas()
        assert set(rows["prompt"]) == {judgements.judge_prompt_digest()}
        assert rows["verdict"].tolist() == [read_grade(words) for words in rows["words"]]
        assert not rows.duplicated(["judge", *PAIR]).any()
        assert judges(Run(file.parent)) == sorted(set(rows["judge"]))


def test_two_judges_at_once_write_nothing_twice(run: Run, stern: type[Stern]) -> None:
    class Late(stern):  # type: ignore[misc, valid-type]
        def sample(self, requests, sampling, seed):  # type: ignore[no-untyped-def]
            if not read:
                read.append(1)
                judge_run(run, JUDGE)  # another process, while this one asks
            yield from super().sample(requests, sampling, seed)

    read: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judgements, "open_engine", lambda model, name=None: Late(model))
        judge_run(run, JUDGE)
    assert len(read_judgements(run, JUDGE)) == len(distinct(run))
    assert not read_judgements(run, JUDGE).duplicated(PAIR).any()
