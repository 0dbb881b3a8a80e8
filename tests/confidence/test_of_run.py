"""The confidences of a run, each asked once."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from capcal_lib.confidence import of_run
from capcal_lib.confidence.of_run import METHODS, confidence_file, estimate, read_confidence
from capcal_lib.confidence.p_true import p_true
from capcal_lib.confidence.verbalized import verbalized
from capcal_lib.errors import InputError
from capcal_lib.grading.verdicts import run_questions
from capcal_lib.manifests import RECORDED_RUNS, load_model
from capcal_lib.questions import subset
from capcal_lib.sampling.draw import sample
from capcal_lib.sampling.engines import open_engine
from capcal_lib.sampling.engines.simulated import SimulatedEngine
from capcal_lib.sampling.store import find_run

SET = "mini-capitals"
MODEL = load_model("simulated")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return sample("simulated", SET, k=1, limit=8, store=tmp_path).folder


def sampled(run: Path, number: int = 8) -> list:  # type: ignore[type-arg]
    return sorted(subset(tuple(run_questions(run).values()), number), key=lambda question: question.id)


class Failing(SimulatedEngine):
    def next_token_logprobs(self, requests, words):  # type: ignore[no-untyped-def]  # noqa: ARG002
        raise RuntimeError("out of memory")

    def sample(self, requests, sampling, seed):  # type: ignore[no-untyped-def]
        yield next(iter(super().sample(requests, sampling, seed)))
        raise RuntimeError("out of memory")


def use(monkeypatch: pytest.MonkeyPatch, engine: type[SimulatedEngine]) -> None:
    monkeypatch.setattr(of_run, "open_engine", lambda model, name=None: engine(model))  # noqa: ARG005


@pytest.mark.parametrize("method", METHODS)
def test_what_is_kept_is_what_the_method_said(run: Path, method: str) -> None:
    kept = estimate(run, method)
    engine, questions = open_engine(MODEL), sampled(run)
    said = p_true(engine, MODEL, questions) if method == "p-true" else verbalized(engine, MODEL, questions, seed=0)
    for one in (kept, read_confidence(run, method)):
        assert one.question_ids.tolist() == [question.id for question in questions]
        np.testing.assert_array_equal(one.values, said.values)
        assert one.status.tolist() == said.status.tolist()
        assert one.tokens.tolist() == said.tokens.tolist()
        assert one.texts == said.texts


def test_missing_values_and_odd_texts_survive(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["It is hard to say.", '<script>"é"\n\0', "\\boxed{0.25}"]

    class Speaking(SimulatedEngine):
        def sample(self, requests, sampling, seed):  # type: ignore[no-untyped-def]
            from dataclasses import replace

            for group in super().sample(requests, sampling, seed):
                yield [replace(one, response=words[len(one.question_id) % 3]) for one in group]

    use(monkeypatch, Speaking)
    kept = estimate(run, "verbalized")
    again = read_confidence(run, "verbalized")
    assert {"ok", "missing"} == set(again.status)
    np.testing.assert_array_equal(kept.values, again.values)
    assert np.isnan(again.values).sum() == again.status_counts()["missing"]
    assert again.texts == tuple(words[len(name) % 3] for name in again.question_ids)
    assert (again.tokens > 0).all()


@pytest.mark.parametrize("method", METHODS)
def test_a_question_is_asked_once_whatever_the_seed(run: Path, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first = estimate(run, method)
    written = confidence_file(run, method).stat().st_mtime_ns
    use(monkeypatch, Failing)
    again = estimate(run, method, seed=5)
    np.testing.assert_array_equal(again.values, first.values)
    assert confidence_file(run, method).stat().st_mtime_ns == written


def test_another_seed_gives_other_words(run: Path, tmp_path: Path) -> None:
    first = estimate(run, "verbalized").values
    confidence_file(run, "verbalized").unlink()
    other = estimate(run, "verbalized", seed=1).values
    assert (first != other).any()
    assert tmp_path in run.parents


def test_questions_sampled_later_are_asked_alone(tmp_path: Path) -> None:
    folder = sample("simulated", SET, k=1, limit=3, store=tmp_path / "grown").folder
    few = {method: estimate(folder, method) for method in METHODS}
    sample("simulated", SET, k=1, limit=8, store=tmp_path / "grown")
    whole = sample("simulated", SET, k=1, limit=8, store=tmp_path / "whole").folder
    for method in METHODS:
        grown, at_once = estimate(folder, method), estimate(whole, method)
        assert (len(few[method]), len(grown)) == (3, 8)
        assert grown.question_ids.tolist() == at_once.question_ids.tolist()
        np.testing.assert_array_equal(grown.values, at_once.values)
        assert grown.texts == at_once.texts


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"prompt_style": "paper"}, "prompt style \\(short\\) than there are now \\(paper\\)"),
        ({"chat_template": {"thinking": False}}, "switches of the chat template"),
    ],
)
def test_a_model_that_is_asked_in_another_way_since_is_refused(
    run: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, object], what: str
) -> None:
    monkeypatch.setattr(of_run, "load_model", lambda _: MODEL.model_copy(update=change))
    with pytest.raises(InputError, match=f"sampled with other {what}"):
        estimate(run, "p-true")


@pytest.mark.parametrize("method", METHODS)
def test_a_failing_engine_leaves_nothing_half_written(run: Path, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    before = sorted(run.iterdir())
    use(monkeypatch, Failing)
    with pytest.raises(RuntimeError, match="out of memory"):
        estimate(run, method)
    assert sorted(run.iterdir()) == before


def test_an_unknown_method_is_refused(run: Path) -> None:
    for call in (estimate, read_confidence):
        with pytest.raises(InputError, match=r"unknown method 'guess'; known: p-true, verbalized"):
            call(run, "guess")


def test_a_missing_file_names_the_command(run: Path) -> None:
    where = "--model simulated --dataset mini-capitals --split test"
    with pytest.raises(InputError, match=rf"make them with: capcal confidence {where} --method p-true"):
        read_confidence(run, "p-true")


def test_a_corrupt_file_is_one_clear_line(run: Path) -> None:
    estimate(run, "p-true")
    path = confidence_file(run, "p-true")
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(InputError, match="missing or corrupt"):
        estimate(run, "p-true")
    pq.write_table(pa.table({"question_id": ["a"], "confidence": [0.5]}), path)
    with pytest.raises(InputError, match="delete it and make it again") as caught:
        estimate(run, "p-true")
    assert "\n" not in str(caught.value)


def test_the_recorded_confidences_are_made_again() -> None:
    folder = find_run(RECORDED_RUNS, "simulated", SET, "test")
    kept, questions = read_confidence(folder, "p-true"), run_questions(folder)
    assert kept.question_ids.tolist() == sorted(questions)
    fresh = p_true(open_engine(MODEL), MODEL, [questions[name] for name in kept.question_ids[::20]])
    np.testing.assert_allclose(kept.values[::20], fresh.values, rtol=1e-12)
