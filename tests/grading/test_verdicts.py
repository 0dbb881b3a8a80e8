from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from capcal_lib.errors import InputError
from capcal_lib.grading import GRADER_VERSION, grade, grade_many
from capcal_lib.grading import verdicts as verdicts_module
from capcal_lib.grading.verdicts import (
    Graded,
    grade_run,
    kinds_of,
    read_verdicts,
    run_questions,
    write_verdicts,
)
from capcal_lib.manifests import load_model
from capcal_lib.places import RECORDED_RUNS
from capcal_lib.questions import load_questions
from capcal_lib.runs import Run, find_run
from capcal_lib.runs import store as store_module
from capcal_lib.runs.artifacts import VERDICTS
from capcal_lib.runs.files import write_table
from capcal_lib.runs.run import Record
from capcal_lib.runs.store import KEY, Sample, hash_rows, open_writer, read_samples
from capcal_lib.sampling.draw import describe, sample

SET = "mini-exam"


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return sample("simulated", SET, k=4, limit=5, store=tmp_path).run


def test_every_sample_is_graded_as_alone(run: Run) -> None:
    assert grade_run(run) == Graded(new=20, again=0, flipped={})
    answers = {name: question.answer for name, question in run_questions(run).items()}
    samples, graded = read_samples(run), read_verdicts(run)
    assert graded[KEY].to_numpy().tolist() == samples[KEY].to_numpy().tolist()
    for (_, one), (_, verdict) in zip(samples.iterrows(), graded.iterrows(), strict=True):
        alone = grade(one["response"], answers[one["question_id"]])
        assert (verdict["verdict"], verdict["reason"]) == (alone.verdict, alone.reason)
        assert (verdict["extracted"] if pd.notna(verdict["extracted"]) else None) == alone.extracted


def test_a_run_of_many_shards_is_graded_as_one_of_a_single_shard(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "ROWS", 3)
    split = sample("simulated", SET, k=4, limit=5, store=tmp_path / "split").run
    assert len(list(split.folder.glob("samples-*"))) > 2
    assert grade_run(split) == grade_run(run)
    pd.testing.assert_frame_equal(read_verdicts(split), read_verdicts(run))


def test_a_run_is_graded_once_and_again_when_it_has_grown(run: Run, tmp_path: Path) -> None:
    grade_run(run)
    written = run.path(VERDICTS).stat().st_mtime_ns
    assert grade_run(run) == Graded(new=0, again=0, flipped={})
    assert run.path(VERDICTS).stat().st_mtime_ns == written
    before = read_verdicts(run)
    sample("simulated", SET, k=5, limit=6, store=tmp_path)
    write_verdicts(run, before, GRADER_VERSION)  # as if more were drawn while these were made
    assert grade_run(run) == Graded(new=10, again=20, flipped={})
    both = before.merge(read_verdicts(run), on=KEY, suffixes=("", "_now"))
    assert len(both) == 20
    assert (both["verdict"] == both["verdict_now"]).all()


def test_another_version_grades_all_again_and_reports_what_flips(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grade_run(run)
    right = read_verdicts(run)
    old = right.copy()
    places = right.index[right["verdict"] == "correct"][:3].tolist()
    old.loc[places[:2], "verdict"] = "incorrect"
    old.loc[places[2], "verdict"] = "no_answer"
    write_verdicts(run, old, "0")
    sample("simulated", SET, k=5, limit=5, store=tmp_path)
    graded = grade_run(run)
    assert graded == Graded(
        new=5,
        again=20,
        flipped={("incorrect", "correct"): 2, ("no_answer", "correct"): 1},
    )
    again = read_verdicts(run)
    pd.testing.assert_frame_equal(again[again["sample_index"] < 4].reset_index(drop=True), right)
    monkeypatch.setattr(verdicts_module, "GRADER_VERSION", "next")
    assert grade_run(run) == Graded(new=0, again=25, flipped={})
    assert run.made(VERDICTS)[b"grader"] == b"next"


def test_verdicts_of_other_samples_are_made_again(run: Run, tmp_path: Path) -> None:
    other = sample("simulated", SET, k=4, limit=5, store=tmp_path / "other", seed=1).run
    grade_run(run)
    grade_run(other)
    right = read_verdicts(run)
    write_table(run.path(VERDICTS), pq.read_table(other.path(VERDICTS)))
    assert grade_run(run).again == 20
    pd.testing.assert_frame_equal(read_verdicts(run), right)


def test_the_digest_of_rows_follows_from_key_and_response_alone() -> None:
    """It stands in files, so no version of a library may change it."""
    rows = pd.DataFrame([("a/1", 0, "Paris"), ("a/1", 1, "é\n")], columns=[*KEY, "response"])
    rows["sample_index"] = rows["sample_index"].astype("int32")
    assert [f"{digest:016x}" for digest in hash_rows(rows)] == [
        "7a32d43b0569e583",
        "13d9359a75654bcb",
    ]


@pytest.mark.parametrize("dataset", ["mini-elements", "mini-exam"])
def test_kinds_are_those_of_the_questions(dataset: str, tmp_path: Path) -> None:
    run = sample("simulated", dataset, split="train", k=1, store=tmp_path).run
    questions = run_questions(run)
    names = pd.Series([*reversed(questions), "a stranger"], index=range(5, len(questions) + 6))
    kinds = kinds_of(run, names)
    assert kinds.index.equals(names.index)
    assert kinds.tolist()[:-1] == [one.answer.kind for one in reversed(questions.values())]
    assert pd.isna(kinds.iloc[-1])


def test_an_ungraded_run_names_the_command(run: Run) -> None:
    with pytest.raises(
        InputError,
        match=r"no verdicts in .*; make them with: capcal grade --model simulated --dataset mini-",
    ):
        read_verdicts(run)


def test_equal_answers_have_one_canonical_form(tmp_path: Path) -> None:
    questions = load_questions("mini-capitals")
    record = describe(
        load_model("simulated"), "mini-capitals", "test", questions, engine="simulated", seed=0
    )
    said = ["The answer is Paris.", "paris!", "The answer is \\boxed{2^{9^{9^9}}}", ""]
    with open_writer(tmp_path, record) as writer:
        writer.append(
            [
                Sample(questions[0].id, index, text, None, "stop", 1, 1)
                for index, text in enumerate(said)
            ]
        )
    grade_run(writer.run)
    forms = read_verdicts(writer.run)["canonical"]
    assert forms[:2].tolist() == ["paris", "paris"]
    assert forms[2:].isna().tolist() == [False, True]


def test_a_changed_question_set_is_refused(run: Run) -> None:
    record = run.folder / "run.json"
    digest = run.identity.questions
    text = record.read_text().replace(digest, "0" * len(digest))
    record.write_text(text)
    other = Record.model_validate_json(text).identity.key
    run = Run(run.folder.rename(run.folder.with_name(other)))
    with pytest.raises(
        InputError,
        match=r"the questions of mini-exam \(test\) have changed since they were sampled",
    ):
        run_questions(run)
    with pytest.raises(InputError, match="have changed since they were sampled"):
        grade_run(run)
    assert not run.path(VERDICTS).exists()


@pytest.mark.parametrize("dataset", ["mini-capitals", "mini-elements", "mini-exam"])
def test_the_recorded_verdicts_are_those_of_this_grader(dataset: str) -> None:
    """Real answers, whose questions come with the package."""
    run = find_run(RECORDED_RUNS, "smollm2-135m", dataset, "test")
    assert pq.read_schema(run.path(VERDICTS)).metadata[b"grader"].decode() == GRADER_VERSION
    rows = read_samples(run).merge(read_verdicts(run), on=KEY, validate="1:1").iloc[::5]
    questions = run_questions(run)
    answers = [questions[name].answer for name in rows["question_id"]]
    verdicts = grade_many(list(zip(rows["response"], answers, strict=True)))
    again = pd.DataFrame(verdicts, rows.index)[["verdict", "extracted"]].fillna("")
    pd.testing.assert_frame_equal(rows[["verdict", "extracted"]].fillna(""), again)
