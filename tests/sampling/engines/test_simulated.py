"""The simulated engine: answers are right as often as mu says, and confidence tells of mu."""

import numpy as np

from capcal_lib.manifests import load_model
from capcal_lib.questions import Answer, Question
from capcal_lib.sampling.engines import Request, open_engine
from capcal_lib.sampling.engines.simulated import true_mu

MODEL = load_model("simulated")
ANSWERS = (
    Answer("short", "Oslo"),
    Answer("number", "1,200"),
    Answer("choice", "C"),
    Answer("math", "\\frac{1}{2}"),
)


def requests(n: int, samples: int = 0, purpose: str = "answer") -> list[Request]:
    return [
        Request(
            Question(f"q{i}", f"Question {i}?", ANSWERS[i % len(ANSWERS)]),
            ({"role": "user", "content": f"Question {i}?"},),
            tuple(range(samples)),
            purpose,  # type: ignore[arg-type]
        )
        for i in range(n)
    ]


def share_right(asked: list[Request], seed: int = 0) -> np.ndarray:
    groups = open_engine(MODEL).sample(asked, MODEL.sampling, seed)
    golds = {request.question.id: request.question.answer.gold for request in asked}
    return np.array(
        [np.mean([f"{{{golds[s.question_id]}}}" in s.response for s in group]) for group in groups]
    )


def test_answers_are_right_as_often_as_mu_says() -> None:
    mu = np.array([true_mu(f"q{i}") for i in range(40)])
    error = (share_right(requests(40, 200), seed=1) - mu) / np.sqrt(mu * (1 - mu) / 200 + 1e-6)
    assert np.abs(error).max() < 4
    assert 0.5 < np.mean(error**2) < 1.6


def test_some_samples_hold_no_answer_and_wrong_answers_repeat() -> None:
    samples = [
        s
        for group in open_engine(MODEL).sample(requests(200, 50), MODEL.sampling, 0)
        for s in group
    ]
    assert 0.005 < np.mean(["\\boxed" not in s.response for s in samples]) < 0.025
    for row in range(4):
        answers = {
            s.response.partition("\\boxed")[2].rstrip(".")
            for s in samples
            if s.question_id == f"q{row}"
        } - {""}
        assert len(answers) <= 4


def test_a_sample_hangs_on_seed_question_and_index_only() -> None:
    engine = open_engine(MODEL)
    everything = [s for group in engine.sample(requests(5, 20), MODEL.sampling, 3) for s in group]
    one = Request(requests(5)[2].question, requests(5)[2].messages, (17,))
    assert next(engine.sample([one], MODEL.sampling, 3)) == [everything[2 * 20 + 17]]
    assert [
        s for group in engine.sample(requests(5, 20), MODEL.sampling, 4) for s in group
    ] != everything


def test_confidence_and_features_tell_of_mu() -> None:
    engine, asked = open_engine(MODEL), requests(400)
    mu = np.array([true_mu(request.question.id) for request in asked])
    logit = np.log(mu / (1 - mu)).clip(-6.9, 6.9)

    logprobs = engine.next_token_logprobs(asked, ["Yes", "No", " yes"], MODEL.sampling, 0)[0]
    assert np.allclose(np.exp(logprobs).sum(axis=1), 0.95)
    assert np.isneginf(logprobs[:, 2]).all()
    p_true = np.exp(logprobs[:, 0]) / 0.95
    assert np.corrcoef(p_true, mu)[0, 1] > 0.6
    assert p_true.mean() > mu.mean() + 0.03

    features = engine.hidden_states(asked)
    assert features.shape == (400, 64)
    assert features.dtype == np.float32
    weights = np.linalg.lstsq(features[:300], logit[:300], rcond=None)[0]
    assert np.corrcoef(features[300:] @ weights, logit[300:])[0, 1] > 0.7

    stated = [
        group[0].response
        for group in engine.sample(requests(400, 1, "verbalized"), MODEL.sampling, 0)
    ]
    rows = [row for row, text in enumerate(stated) if "\\boxed" in text]
    assert 360 < len(rows) < 400
    values = np.array([float(stated[row][len("\\boxed{") : -1]) for row in rows])
    assert ((values >= 0) & (values <= 1)).all()
    assert np.corrcoef(values, mu[rows])[0, 1] > 0.6


def test_nothing_asked_gives_empty_arrays() -> None:
    engine = open_engine(MODEL)
    assert engine.hidden_states([]).shape == (0, 64)
    assert engine.next_token_logprobs([], ["Yes"], MODEL.sampling, 0)[0].shape == (0, 1)
    assert list(engine.sample([], MODEL.sampling, 0)) == []
