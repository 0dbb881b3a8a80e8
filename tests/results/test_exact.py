"""Exact expected accuracy: against sums over all answers, against samples, and where it must
refuse.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from capcal_lib.errors import InputError
from capcal_lib.manifests import RECORDED_RUNS, load_model
from capcal_lib.questions import Answer, Question, load_questions
from capcal_lib.results import load_results
from capcal_lib.results.exact import FILE, enumerate_answers, exact_accuracy, read_exact
from capcal_lib.runs import Run, find_run
from capcal_lib.runs.files import write_table
from capcal_lib.sampling.draw import sample
from capcal_lib.sampling.engines import LikelyAnswers, open_engine
from capcal_lib.sampling.engines.simulated import SimulatedEngine, true_mu

MODEL = load_model("simulated")
ASKED = Question("q", "Which letter?", Answer("choice", "B", ("Paris",)))


class Saying(SimulatedEngine):
    """An engine with a given list of answers and their probabilities."""

    said: tuple[tuple[str, float], ...] = ()

    def likely_answers(self, requests, sampling, epsilon):  # type: ignore[no-untyped-def]
        for request in requests:
            responses, probabilities = zip(*self.said, strict=True) if self.said else ((), ())
            yield LikelyAnswers(request.question.id, responses, probabilities, passes=3)


def saying(*said: tuple[str, float]) -> Saying:
    engine = Saying(MODEL)
    engine.said = said
    return engine


def test_right_answers_bound_from_below_and_wrong_ones_from_above() -> None:
    engine = saying(("B", 0.5), ("B. Paris", 0.125), ("C", 0.25), ("I cannot say which", 0.0625))
    exact = exact_accuracy(engine, MODEL, [ASKED])
    assert exact.to_dict("index") == {"q": {"lower": 0.625, "upper": 1 - 0.3125, "passes": 3}}


def test_nothing_likely_means_nothing_known() -> None:
    exact = exact_accuracy(saying(), MODEL, [ASKED])
    assert exact.loc["q", ["lower", "upper"]].tolist() == [0, 1]


def test_the_simulated_model_is_enumerated_to_its_true_mu() -> None:
    questions = [
        question for name in ("mini-capitals", "mini-exam") for question in load_questions(name)
    ]
    exact = exact_accuracy(open_engine(MODEL), MODEL, questions, epsilon=1e-9)
    np.testing.assert_allclose(
        exact.lower, np.array([true_mu(question.id) for question in questions]), atol=1e-6
    )
    np.testing.assert_allclose(exact.upper, exact.lower, atol=1e-6)


def test_a_smaller_epsilon_gives_bounds_inside_the_others() -> None:
    questions = load_questions("mini-elements", limit=30)
    fine, coarse = (
        exact_accuracy(open_engine(MODEL), MODEL, questions, epsilon=epsilon)
        for epsilon in (1e-6, 0.05)
    )
    assert (fine.lower >= coarse.lower).all()
    assert (fine.upper <= coarse.upper).all()
    assert (coarse.upper - coarse.lower).max() > 0.05


@pytest.mark.parametrize("epsilon", [0.0, -1.0, 1.5, float("nan")])
def test_an_epsilon_out_of_range_is_refused(epsilon: float) -> None:
    with pytest.raises(InputError, match="epsilon is a probability above 0"):
        exact_accuracy(open_engine(MODEL), MODEL, [ASKED], epsilon=epsilon)


def test_an_engine_that_cannot_is_refused() -> None:
    class Sampling:
        family = "samples-only"

    with pytest.raises(
        InputError, match="engine samples-only does not tell the probability of whole answers"
    ):
        exact_accuracy(Sampling(), MODEL, [ASKED])  # type: ignore[arg-type]


@pytest.mark.parametrize("style", ["steps", "paper"])
def test_prompts_that_ask_for_reasoning_are_refused(style: str) -> None:
    reasoning = MODEL.model_copy(update={"prompt_style": style})
    with pytest.raises(
        InputError, match=f"reason before it answers .prompt style {style}.* too many to enumerate"
    ):
        exact_accuracy(open_engine(reasoning), reasoning, [ASKED])


def test_bounds_are_kept_and_only_new_questions_are_asked(tmp_path: Path) -> None:
    folder = sample("simulated", "mini-capitals", k=1, limit=5, store=tmp_path).run.folder
    with pytest.raises(
        InputError, match="make them with: capcal exact --model simulated --dataset mini-capitals"
    ):
        read_exact(Run(folder))
    first = enumerate_answers(Run(folder), epsilon=0.2)
    sample("simulated", "mini-capitals", k=1, limit=8, store=tmp_path)
    both = enumerate_answers(Run(folder), epsilon=1e-6)
    assert len(first) == 5
    assert len(both) == 8
    assert both.index.is_monotonic_increasing
    pd.testing.assert_frame_equal(both.loc[first.index], first)
    assert (both.upper - both.lower).drop(first.index).max() < 1e-5


def test_another_file_is_refused(tmp_path: Path) -> None:
    folder = sample("simulated", "mini-capitals", k=1, limit=2, store=tmp_path).run.folder
    write_table(folder / FILE, pa.table({"question_id": ["q"]}))
    with pytest.raises(InputError, match="not a file of `capcal exact`"):
        enumerate_answers(Run(folder))


@pytest.mark.parametrize("model", ["smollm2-135m", "simulated"])
def test_recorded_samples_agree_with_their_bounds(model: str) -> None:
    """On questions whose answers were nearly all found, standardised differences are those of a
    normal variable.
    """
    exact = read_exact(find_run(RECORDED_RUNS, model, "mini-exam", "test"))
    counts = (
        load_results(RECORDED_RUNS, model, datasets=["mini-exam"])
        .loc["mini-exam"]
        .reindex(exact.index)
    )
    assert (exact.upper - exact.lower).max() < 0.05
    mu, mu_hat = (exact.lower + exact.upper) / 2, counts["correct"] / counts["total"]

    def z(shift: int) -> np.ndarray:
        shifted = np.roll(mu, shift)
        variance = shifted * (1 - shifted)
        return ((mu_hat - shifted) / np.sqrt(variance / counts["total"]))[
            variance * counts["total"] > 1
        ].to_numpy()

    assert len(z(0)) > 50
    assert 0.8 < z(0).std() < 1.25
    assert abs(z(0).mean()) * np.sqrt(len(z(0))) < 3.5
    assert z(1).std() > 2, "another question's mu would be found out"
