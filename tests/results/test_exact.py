"""Exact expected accuracy: against sums over all answers, against samples, and where it must refuse."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from capcal_lib.errors import InputError
from capcal_lib.manifests import RECORDED_RUNS, load_model
from capcal_lib.questions import Answer, Question, load_questions
from capcal_lib.results.convergence import agreement, best_known, bounds_table, convergence, exact_pairs, z_scores
from capcal_lib.results.evaluation import load_evaluation
from capcal_lib.results.exact import FILE, ExactAccuracy, enumerate_answers, exact_accuracy, read_exact
from capcal_lib.sampling.draw import sample
from capcal_lib.sampling.engines import LikelyAnswers, open_engine
from capcal_lib.sampling.engines.simulated import SimulatedEngine, true_mu
from capcal_lib.sampling.files import write_table

MODEL = load_model("simulated")
ASKED = Question("q", "Which letter?", Answer("choice", "B", ("Paris",)))


class Saying(SimulatedEngine):
    """An engine with a given list of answers and their probabilities."""

    said: tuple[tuple[str, float], ...] = ()

    def likely_answers(self, requests, sampling, epsilon):  # type: ignore[no-untyped-def]  # noqa: ARG002
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
    assert (exact.lower[0], exact.upper[0], exact.passes[0]) == (0.625, 1 - 0.3125, 3)
    assert np.isnan(exact.mu[0])  # 0.0625 apart
    assert exact_accuracy(saying(("B", 0.5), ("C", 0.47)), MODEL, [ASKED]).mu[0] == pytest.approx(0.5 / 0.97)


def test_nothing_likely_means_nothing_known() -> None:
    exact = exact_accuracy(saying(), MODEL, [ASKED])
    assert (exact.lower[0], exact.upper[0]) == (0, 1)
    assert np.isnan(exact.mu[0])


def test_the_simulated_model_is_enumerated_to_its_true_mu() -> None:
    questions = [question for name in ("mini-capitals", "mini-exam") for question in load_questions(name)]
    exact = exact_accuracy(open_engine(MODEL), MODEL, questions, epsilon=1e-9)
    np.testing.assert_allclose(exact.lower, true_mu([question.id for question in questions]), atol=1e-6)
    np.testing.assert_allclose(exact.upper, exact.lower, atol=1e-6)


def test_a_smaller_epsilon_gives_bounds_inside_the_others() -> None:
    questions = load_questions("mini-elements", limit=30)
    fine, coarse = (exact_accuracy(open_engine(MODEL), MODEL, questions, epsilon=epsilon) for epsilon in (1e-6, 0.05))
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

    with pytest.raises(InputError, match="engine samples-only does not tell the probability of whole answers"):
        exact_accuracy(Sampling(), MODEL, [ASKED])  # type: ignore[arg-type]


@pytest.mark.parametrize("style", ["steps", "paper"])
def test_prompts_that_ask_for_reasoning_are_refused(style: str) -> None:
    reasoning = MODEL.model_copy(update={"prompt_style": style})
    with pytest.raises(InputError, match=f"reason before it answers .prompt style {style}.* too many to enumerate"):
        exact_accuracy(open_engine(reasoning), reasoning, [ASKED])


def test_bounds_are_kept_and_only_new_questions_are_asked(tmp_path: Path) -> None:
    folder = sample("simulated", "mini-capitals", k=1, limit=5, store=tmp_path).folder
    with pytest.raises(InputError, match="make them with: capcal exact --model simulated --dataset mini-capitals"):
        read_exact(folder)
    first = enumerate_answers(folder, epsilon=0.2)
    sample("simulated", "mini-capitals", k=1, limit=8, store=tmp_path)
    both = enumerate_answers(folder, epsilon=1e-6)
    assert len(first) == 5
    assert len(both) == 8
    assert list(both.question_ids) == sorted(both.question_ids)
    old = np.isin(both.question_ids, first.question_ids)
    np.testing.assert_array_equal(both.lower[old], first.lower)
    assert (both.upper - both.lower)[~old].max() < 1e-5


def test_another_file_is_refused(tmp_path: Path) -> None:
    folder = sample("simulated", "mini-capitals", k=1, limit=2, store=tmp_path).folder
    write_table(folder / FILE, pa.table({"question_id": ["q"]}))
    with pytest.raises(InputError, match="not a file of exact accuracies"):
        enumerate_answers(folder)


def pair(model: str, dataset: str = "mini-exam") -> Any:
    return exact_pairs(RECORDED_RUNS, [load_evaluation(RECORDED_RUNS, model, dataset, k_eval=120)])[0]


@pytest.mark.parametrize("model", ["smollm2-135m", "simulated"])
def test_recorded_samples_converge_to_exact_mu(model: str) -> None:
    one, exact = pair(model)
    assert not np.isnan(exact.mu).any()
    z = z_scores(one, exact)
    assert len(z) > 50
    assert 0.8 < z.std() < 1.25
    assert abs(z.mean()) * np.sqrt(len(z)) < 3.5
    assert np.mean(np.abs(z) > 3) < 0.03
    table = convergence(one, exact, [1, 10, 100], np.random.default_rng(0))
    np.testing.assert_allclose(table["error"], table["theory"], rtol=0.15)


def test_another_mu_would_be_found_out() -> None:
    one, exact = pair("smollm2-135m")
    mixed = np.roll(exact.lower, 1)
    shuffled = ExactAccuracy(exact.question_ids, mixed, mixed, exact.passes)
    assert z_scores(one, shuffled).std() > 2
    again = convergence(one, exact, [5], np.random.default_rng(1))["error"][0]
    assert again != convergence(one, exact, [5], np.random.default_rng(2))["error"][0]


def test_agreement_is_summarised_and_the_best_pair_found() -> None:
    summary = agreement([-3.0, 0.0, 0.0, 1.0])
    assert summary == pytest.approx({"spread": 1.5, "outside": 0.25, "middle": -1.0})
    assert all(map(np.isnan, agreement([]).values()))
    pairs = [pair("smollm2-135m", "mini-capitals"), pair("smollm2-135m")]
    assert best_known(pairs)[0][0].dataset.name == "mini-exam"
    assert best_known([]) == []


def test_the_table_of_bounds_counts_what_is_known() -> None:
    one, exact = pair("smollm2-135m")
    [row] = bounds_table([(one, exact)]).to_dict("records")
    assert row["questions"] == row["known"] == len(exact)
    assert row["passes"] < row["tokens"] / 5
    unknown = ExactAccuracy(exact.question_ids, np.zeros(len(exact)), np.ones(len(exact)), exact.passes)
    [row] = bounds_table([(one, unknown)]).to_dict("records")
    assert row["known"] == 0
    assert np.isnan(row["mu"])
    assert convergence(one, unknown, [5], np.random.default_rng(0)).empty
    assert not len(z_scores(one, unknown))
