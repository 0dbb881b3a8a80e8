from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from capcal_lib.confidence.of_run import confidence_file, estimate, read_confidence
from capcal_lib.errors import InputError
from capcal_lib.grading import GRADER_VERSION
from capcal_lib.grading.verdicts import FILE, SCHEMA, grade_run, read_verdicts
from capcal_lib.manifests import RECORDED_RUNS, dataset_names, load_dataset, load_model
from capcal_lib.metrics import correctness_variance
from capcal_lib.probes.features import FEATURES, extract
from capcal_lib.questions import load_questions
from capcal_lib.reported import beta_moments
from capcal_lib.results.evaluation import (
    CONSISTENCY,
    beta_evaluation,
    evaluated,
    load_answers,
    load_evaluation,
)
from capcal_lib.sampling.draw import describe, sample
from capcal_lib.sampling.engines import Sample
from capcal_lib.sampling.files import SUMS, write_table
from capcal_lib.sampling.store import open_writer

SET = "mini-exam"
Vote = tuple[str | None, str]  # extracted, verdict


def make(
    store: Path, *, dataset: str = SET, split: str | None = None, k: int = 6, limit: int = 8, seed: int = 0
) -> Path:
    folder = sample("simulated", dataset, split=split, k=k, limit=limit, store=store, seed=seed).folder
    grade_run(folder)
    return folder


def by_hand(folder: Path, votes: dict[str, list[Vote]]) -> None:
    """Replace the verdicts of a run."""
    rows = [
        (name, index, verdict, extracted, "by hand")
        for name, said in sorted(votes.items())
        for index, (extracted, verdict) in enumerate(said)
    ]
    table = pa.Table.from_pandas(pd.DataFrame(rows, columns=SCHEMA.names), schema=SCHEMA, preserve_index=False)
    write_table(folder / FILE, table.replace_schema_metadata({"grader": GRADER_VERSION}))


def rewrite(path: Path, order: list[int]) -> None:
    """Keep these rows of a file, in this order."""
    write_table(path, pq.read_table(path).take(order))


def test_counts_are_those_of_the_first_k_eval_samples(tmp_path: Path) -> None:
    folder = make(tmp_path, k=6)
    one = load_evaluation(tmp_path, "simulated", SET, k_eval=4, k_c=2)
    verdicts = read_verdicts(folder)
    for row, name in enumerate(one.counts.question_ids):
        said = verdicts[(verdicts["question_id"] == name) & (verdicts["sample_index"] < 4)]["verdict"].tolist()
        assert len(said) == 4
        assert one.counts.correct[row] == said.count("correct")
        assert one.counts.total[row] == 4 - said.count("not_scored")
    assert len(one.counts) == 8


def test_votes_are_never_the_samples_that_define_mu_hat(tmp_path: Path) -> None:
    folder = make(tmp_path, k=5, limit=3)
    a, b, c = sorted(question.id for question in load_questions(SET, limit=3))
    votes: dict[str, list[Vote]] = {
        a: [("A", "correct"), ("A", "correct"), ("B", "incorrect"), ("c", "incorrect"), ("D", "incorrect")],
        b: [("A", "correct"), ("B", "incorrect"), ("C", "incorrect"), ("C", "incorrect"), (None, "no_answer")],
        c: [("A", "correct"), ("B", "incorrect"), (None, "no_answer"), (None, "no_answer"), (None, "no_answer")],
    }
    by_hand(folder, votes)
    one = load_evaluation(tmp_path, "simulated", SET, k_eval=2, k_c=3)
    found = one.confidences[CONSISTENCY]
    assert one.counts.expected_accuracy.tolist() == [1.0, 0.5, 0.5]
    np.testing.assert_allclose(found.values, [1 / 3, 2 / 3, np.nan])
    assert found.status.tolist() == ["ok", "ok", "missing"]
    # one sample later: other votes, other targets
    later = load_evaluation(tmp_path, "simulated", SET, k_eval=3, k_c=2)
    np.testing.assert_allclose(later.confidences[CONSISTENCY].values, [1 / 2, 1 / 2, np.nan])


def test_answers_that_are_equal_in_other_words_vote_together(tmp_path: Path) -> None:
    folder = make(tmp_path, k=4, limit=1)
    (name,) = (question.id for question in load_questions(SET, limit=1))
    by_hand(folder, {name: [("A", "correct"), ("b", "incorrect"), ("B", "incorrect"), ("C", "incorrect")]})
    one = load_evaluation(tmp_path, "simulated", SET, k_eval=1, k_c=3)
    np.testing.assert_allclose(one.confidences[CONSISTENCY].values, [2 / 3])


def test_votes_equal_a_naive_count_of_the_samples_after_k_eval() -> None:
    one = load_evaluation(RECORDED_RUNS, "simulated", "mini-exam", k_eval=100, k_c=10)
    folder = next((RECORDED_RUNS / "simulated" / "mini-exam-test").iterdir())
    verdicts = read_verdicts(folder)
    for row in (0, 17, 63):
        name = one.counts.question_ids[row]
        mine = verdicts[verdicts["question_id"] == name]
        said = mine[mine["sample_index"].between(100, 109)]["extracted"]
        letters = Counter(letter for letter in said if isinstance(letter, str))
        assert one.confidences[CONSISTENCY].values[row] == pytest.approx(max(letters.values()) / 10)


def test_a_question_without_spare_samples_has_no_vote(tmp_path: Path) -> None:
    make(tmp_path, k=4, limit=3)
    make(tmp_path, k=3, limit=5)  # the same run
    found = load_evaluation(tmp_path, "simulated", SET, k_eval=2, k_c=2).confidences[CONSISTENCY]
    first = {question.id for question in load_questions(SET, limit=3)}
    assert [name in first for name in found.question_ids] == (found.status != "missing").tolist()
    assert len(found) == 5
    assert found.tokens[found.status == "missing"].tolist() == [0, 0]
    none = load_evaluation(tmp_path, "simulated", SET, k_eval=4, k_c=2)
    assert CONSISTENCY not in none.confidences


def test_a_larger_k_eval_takes_what_is_there(tmp_path: Path) -> None:
    make(tmp_path, k=3, limit=4)
    one = load_evaluation(tmp_path, "simulated", SET, k_eval=100)
    assert one.counts.total.tolist() == [3, 3, 3, 3]
    assert one.confidences == {}


def test_tokens_are_the_mean_of_a_sample_and_k_c_of_them_for_a_vote(tmp_path: Path) -> None:
    make(tmp_path, k=6, limit=4)
    one = load_evaluation(tmp_path, "simulated", SET, k_eval=3, k_c=3)
    assert 5 < one.answer_tokens < 100
    assert set(one.confidences[CONSISTENCY].tokens) == {round(3 * one.answer_tokens)}


@pytest.fixture(scope="module")
def complete(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with test runs and training runs of two data sets, hidden states and confidences."""
    store = tmp_path_factory.mktemp("complete")
    for dataset in (SET, "mini-arithmetic"):
        folder = make(store, dataset=dataset, k=6, limit=20)
        extract(folder)
        train = make(store, dataset=dataset, split="train", k=3, limit=60)
        extract(train)
    folder = make(store, k=6, limit=20)
    for method in ("p-true", "verbalized"):
        estimate(folder, method)
    return store


def test_rows_follow_the_question_and_not_the_place_in_the_file(complete: Path) -> None:
    before = load_evaluation(complete, "simulated", SET, k_eval=4, k_c=2)
    (folder,) = (complete / "simulated" / f"{SET}-test").iterdir()
    names = ("confidence-p-true.parquet", FEATURES)
    originals = {name: (folder / name).read_bytes() for name in (*names, SUMS)}
    try:
        for seed, name in enumerate(names):
            rewrite(folder / name, np.random.default_rng(seed).permutation(20).tolist())
        after = load_evaluation(complete, "simulated", SET, k_eval=4, k_c=2)
    finally:
        for name, content in originals.items():
            (folder / name).write_bytes(content)
    assert before.confidences.keys() == after.confidences.keys()
    assert {"P(True)", "Verbalized confidence", CONSISTENCY, "Probe (Mini exam)", "Probe (Mini arithmetic)"} == set(
        before.confidences
    )
    for name, confidence in before.confidences.items():
        assert confidence.question_ids.tolist() == before.counts.question_ids.tolist()
        np.testing.assert_allclose(after.confidences[name].values, confidence.values, rtol=1e-12)
        assert after.confidences[name].texts == confidence.texts


def test_each_confidence_is_the_one_in_the_file(complete: Path) -> None:
    one = load_evaluation(complete, "simulated", SET)
    (folder,) = (complete / "simulated" / f"{SET}-test").iterdir()
    kept = read_confidence(folder, "verbalized")
    by_id = dict(zip(kept.question_ids, kept.values, strict=True))
    np.testing.assert_array_equal(
        one.confidences["Verbalized confidence"].values, [by_id[name] for name in one.counts.question_ids]
    )


def test_a_question_without_a_confidence_is_missing(tmp_path: Path) -> None:
    folder = make(tmp_path, limit=5)
    estimate(folder, "p-true")
    extract(folder)
    train = make(tmp_path, split="train", k=2, limit=30)
    extract(train)
    whole = load_evaluation(tmp_path, "simulated", SET)
    rewrite(confidence_file(folder, "p-true"), [4, 0, 2])
    rewrite(folder / FEATURES, [1])
    one = load_evaluation(tmp_path, "simulated", SET)
    for name, there in (("P(True)", [0, 2, 4]), ("Probe (Mini exam)", [1])):
        found = one.confidences[name]
        gone = [row for row in range(5) if row not in there]
        np.testing.assert_allclose(found.values[there], whole.confidences[name].values[there], rtol=1e-12)
        assert np.isnan(found.values[gone]).all()
        assert found.status[gone].tolist() == ["missing"] * len(gone)
        assert found.tokens[gone].tolist() == [0] * len(gone)
        assert all(found.texts[row] is None for row in gone)


def test_two_training_runs_are_refused_and_not_mixed(tmp_path: Path) -> None:
    extract(make(tmp_path, limit=3))
    for seed in (0, 1):
        extract(make(tmp_path, split="train", k=2, limit=20, seed=seed))
    with pytest.raises(InputError, match=r"2 runs of simulated on mini-exam \(train\) .* which differ in seed: "):
        load_evaluation(tmp_path, "simulated", SET)


def test_no_graded_run_names_the_command(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="make them with: capcal sample --model simulated --dataset mini-exam"):
        load_evaluation(tmp_path, "simulated", SET)
    sample("simulated", SET, k=1, limit=1, store=tmp_path)
    with pytest.raises(InputError, match="grade it with: capcal grade"):
        load_evaluation(tmp_path, "simulated", SET)


def test_evaluated_lists_graded_evaluation_splits(tmp_path: Path) -> None:
    assert evaluated(tmp_path, "simulated") == []
    make(tmp_path, dataset="mini-elements", k=1, limit=1)
    make(tmp_path, dataset="mini-arithmetic", k=1, limit=1)
    make(tmp_path, dataset="mini-capitals", split="train", k=1, limit=1)
    sample("simulated", SET, k=1, limit=1, store=tmp_path)  # not graded
    assert evaluated(tmp_path, "simulated") == ["mini-arithmetic", "mini-elements"]
    assert evaluated(tmp_path, "smollm2-135m") == []
    with pytest.raises(InputError, match="unknown model"):
        evaluated(tmp_path, "gpt-9")


@pytest.mark.parametrize(("engine", "evidence"), [("transformers", "measured"), ("simulated", "simulated")])
def test_what_a_run_is_evidence_of_depends_on_what_drew_it(tmp_path: Path, engine: str, evidence: str) -> None:
    questions = load_questions(SET)
    record = describe(load_model("smollm2-135m"), SET, "test", questions, engine=engine, seed=0)
    with open_writer(tmp_path, record) as writer:
        writer.append([Sample(questions[0].id, index, r"\boxed{A}", None, "stop", 1, 4) for index in range(3)])
    grade_run(writer.folder)
    one = load_evaluation(tmp_path, "smollm2-135m", SET, k_eval=3)
    assert (one.evidence, one.sampled, one.source) == (evidence, True, f"run {writer.folder.name}")
    short = load_evaluation(tmp_path, "smollm2-135m", SET)
    assert short.remarks()[0] == "3 samples a question, fewer than k_eval = 100"
    assert one.answer_tokens == 4.0


def test_a_beta_evaluation_says_what_it_is() -> None:
    one = beta_evaluation("gpt-oss-20b", "aime25", k_eval=7, rng=np.random.default_rng(0))
    assert (one.evidence, one.sampled, one.confidences) == ("simulated", False, {})
    assert one.source.startswith("Beta(")
    assert np.isnan(one.answer_tokens)
    assert one.counts.total.tolist() == [7] * 30
    assert len(set(one.counts.question_ids)) == 30


def test_a_beta_evaluation_depends_on_the_generator_alone() -> None:
    def correct(seed: int) -> list[int]:
        one = beta_evaluation("qwen3-8b", "math500", rng=np.random.default_rng(seed))
        return one.counts.correct.tolist()

    assert correct(1) == correct(1)
    assert correct(1) != correct(2)


@pytest.mark.parametrize(
    ("model", "dataset"), [("gpt-oss-20b", "math500"), ("qwen3-8b", "simpleqa"), ("olmo-3-7b-instruct", "aime25")]
)
def test_the_moments_approach_the_reported_ones(model: str, dataset: str) -> None:
    rng = np.random.default_rng(2026)
    draws = [beta_evaluation(model, dataset, rng=rng).counts for _ in range(150)]
    means = np.array([counts.expected_accuracy.mean() for counts in draws])
    spreads = np.array([correctness_variance(counts.correct, counts.total, corrected=True) for counts in draws])
    for found, reported in zip((means, spreads), beta_moments(model, dataset), strict=True):
        assert abs(found.mean() - reported) < 4 * found.std(ddof=1) / np.sqrt(len(found))


def test_a_beta_evaluation_needs_reported_numbers() -> None:
    with pytest.raises(InputError, match="unknown model of the paper 'simulated'"):
        beta_evaluation("simulated", "math500", rng=np.random.default_rng(0))
    with pytest.raises(InputError, match="unknown data set of the paper 'mini-exam'"):
        beta_evaluation("qwen3-8b", "mini-exam", rng=np.random.default_rng(0))


def test_remarks_say_what_a_reader_should_know(tmp_path: Path) -> None:
    make(tmp_path, k=6, limit=4)
    assert load_evaluation(tmp_path, "simulated", SET, k_eval=4, k_c=2).remarks() == []
    short = load_evaluation(tmp_path, "simulated", SET, k_eval=9, k_c=2)
    assert short.remarks() == ["6 samples a question, fewer than k_eval = 9", "no spare samples for a vote"]
    make(tmp_path, k=3, limit=6)
    grown = load_evaluation(tmp_path, "simulated", SET, k_eval=6, k_c=2)
    assert grown.samples == "3 to 6"
    few = len(grown.counts) - 4
    assert grown.remarks()[0] == f"{few} with fewer than 6 samples (the fewest: 3)"
    other = replace(short, prompt_style="paper", groups=np.array(["a", "a", "b", "b"]))
    assert other.remarks()[2:] == ["paper prompts", "intervals over 2 subjects"]
    assert beta_evaluation("qwen3-8b", "math500", rng=np.random.default_rng(0)).remarks() == []


def test_samples_that_were_drawn_and_not_scored_are_not_too_few(tmp_path: Path) -> None:
    folder = make(tmp_path, k=3, limit=1)
    (name,) = (question.id for question in load_questions(SET, limit=1))
    by_hand(folder, {name: [("A", "correct"), (None, "not_scored"), (None, "not_scored")]})
    one = load_evaluation(tmp_path, "simulated", SET, k_eval=3)
    assert one.samples == "1"
    assert one.remarks() == ["no spare samples for a vote"]


def test_mmlu_comes_in_subjects_and_needs_no_questions_to_be_read(
    tmp_path: Path, real_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAPCAL_DATA_DIR", str(real_data))
    make(tmp_path, dataset="mmlu", k=4, limit=20)
    monkeypatch.setenv("CAPCAL_DATA_DIR", str(tmp_path / "nowhere"))
    one = load_evaluation(tmp_path, "simulated", "mmlu", k_eval=2, k_c=2)
    assert one.groups is not None
    assert one.groups.tolist() == [name.split("/")[2] for name in one.counts.question_ids]
    assert len(set(one.groups)) > 2
    assert (one.confidences[CONSISTENCY].status == "ok").any()
    assert load_answers(tmp_path, one).canonical.shape == (20, 2)


def test_other_data_sets_do_not_come_in_groups(tmp_path: Path) -> None:
    make(tmp_path, k=1, limit=2)
    assert load_evaluation(tmp_path, "simulated", SET).groups is None
    assert [name for name in dataset_names() if load_dataset(name).clustered] == ["mmlu"]


def test_answers_follow_the_counts(complete: Path) -> None:
    one = load_evaluation(complete, "simulated", SET, k_eval=4, k_c=2)
    answers = load_answers(complete, one)
    assert answers.question_ids.tolist() == one.counts.question_ids.tolist()
    np.testing.assert_array_equal((answers.correct == 1).sum(axis=1), one.counts.correct)
