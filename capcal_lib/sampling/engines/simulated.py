"""A stand-in for a model: answers with a known probability mu of being right, for tests and
teaching.

mu is drawn for each question id from a U-shaped mixture, as for real models on most data sets: two
fifths hard, Beta(1, 8); two fifths easy, Beta(8, 1); one fifth spread evenly over [0, 1]."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from capcal_lib.manifests import Model, Sampling
from capcal_lib.questions import Question
from capcal_lib.runs.store import Sample
from capcal_lib.sampling.engines import Request, hashed

SHAPES = ((1.0, 8.0), (8.0, 1.0), (1.0, 1.0))
SHARES = (0.4, 0.4, 0.2)
NO_ANSWER = 0.03  # of the samples that are not right; about 1.5 % of all
NO_PROBABILITY = 0.02  # of the answers to a question for a probability
# What the model says of itself: sigmoid(slope logit(mu) + shift + noise). A slope below 1 pulls it
# towards one half, a shift above 0 makes it too high.
VERBALIZED_SLOPE, VERBALIZED_SHIFT, VERBALIZED_NOISE = 0.5, 0.8, 0.5
P_TRUE_SLOPE, P_TRUE_SHIFT, P_TRUE_NOISE = 0.7, 0.5, 1.0
STEPS = 20  # a verbalized probability is a multiple of 1/20, as people's are
OTHER_WORDS = 0.05  # first-token probability of anything but Yes and No
HIDDEN_SIZE = 64
WRONG_SHARES = (0.6, 0.25, 0.15)  # of each of three wrong answers: one misconception dominates
WRONG_ANSWERS = (
    "Lisbon",
    "Helium",
    "Mercury",
    "Nairobi",
    "Quito",
    "Cobalt",
    "Peru",
    "Ottawa",
    "Marie Curie",
    "1848",
)
UNSURE = "I am not sure about this one."
PHRASES = (
    "The answer is \\boxed{{{}}}.",
    "\\boxed{{{}}}",
    "I think it is \\boxed{{{}}}.",
    "Let me think step by step. So the final answer is \\boxed{{{}}}.",
)


def true_mu(question_id: str) -> float:
    """Return the probability that the model's answer to a question is right.

    >>> round(true_mu("mini-capitals/test/0"), 3)
    0.035
    """
    rng = _rng("mu", 0, question_id)
    return float(rng.beta(*SHAPES[rng.choice(len(SHAPES), p=SHARES)]))


class SimulatedEngine:
    """Answer correctly with probability `true_mu`, with informative but miscalibrated confidences.

    Verbalized confidence is compressed and too high; P(True) is noisy and too high; the hidden
    states hold the logit of mu along one direction, with noise."""

    family = "simulated"

    def __init__(self, model: Model) -> None:
        self.model = model

    def sample(
        self, requests: Sequence[Request], sampling: Sampling, seed: int
    ) -> Iterator[list[Sample]]:
        """Draw every wanted sample, yielding those of a question together."""
        for request in requests:
            yield [_draw(request, index, sampling, seed) for index in request.sample_indices]

    def next_token_logprobs(
        self,
        requests: Sequence[Request],
        words: Sequence[str],
        sampling: Sampling,  # noqa: ARG002 -- it does not reason
        seed: int,  # noqa: ARG002
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return log-probabilities (n_requests, n_words) of the words Yes and No, -inf for all
        others; 1 token each.
        """
        names = [request.question.id for request in requests]
        yes = np.array([_p_true(name) for name in names])
        shares = {"Yes": yes, "No": 1 - yes}
        never = np.zeros(len(names))
        with np.errstate(divide="ignore"):
            columns = [np.log((1 - OTHER_WORDS) * shares.get(word, never)) for word in words]
        return np.stack(columns, axis=1), np.ones(len(requests), dtype=np.int64)

    def hidden_states(self, requests: Sequence[Request], layers: str = "mean") -> np.ndarray:
        """Return features, (n_requests, 64), float32; other layers have another noise."""
        which = () if layers == "mean" else (layers,)
        direction = _rng("direction").normal(size=HIDDEN_SIZE)
        direction /= np.linalg.norm(direction)
        names = [request.question.id for request in requests]
        states = [
            _logit(name) * direction + _rng("features", name, *which).normal(size=HIDDEN_SIZE)
            for name in names
        ]
        return np.array(states, dtype=np.float32).reshape(-1, HIDDEN_SIZE)


def _rng(*key: object) -> np.random.Generator:
    """Return the stream of random numbers that belongs to a key."""
    return np.random.default_rng(hashed(*key))


def _logit(question_id: str) -> float:
    mu = np.clip(true_mu(question_id), 1e-3, 1 - 1e-3)
    return float(np.log(mu / (1 - mu)))


def _sigmoid(x: float) -> float:
    # SciPy's differs in the last bit from what recorded runs hold.
    return float(1 / (1 + np.exp(-x)))


def _p_true(question_id: str) -> float:
    """Return the probability of Yes among Yes and No."""
    noise = _rng("p_true", question_id).normal(scale=P_TRUE_NOISE)
    return _sigmoid(P_TRUE_SLOPE * _logit(question_id) + P_TRUE_SHIFT + noise)


def _draw(request: Request, index: int, sampling: Sampling, seed: int) -> Sample:
    question = request.question
    rng = _rng(request.purpose, seed, question.id, index)
    if request.purpose == "verbalized":
        response = _verbalized(question, rng)
    else:
        response = _answer(question, rng)
    prompt_words = sum(len(message["content"].split()) for message in request.messages)
    prompt_tokens = 8 + 4 * prompt_words // 3
    tokens = 4 + 4 * len(response.split()) // 3 + int(rng.poisson(6))
    tokens = min(sampling.max_tokens, tokens)
    return Sample(question.id, index, response, None, "stop", prompt_tokens, tokens)


def _answer(question: Question, rng: np.random.Generator) -> str:
    if rng.random() < true_mu(question.id):
        given = question.answer.gold
    elif rng.random() < NO_ANSWER:
        return UNSURE
    else:
        given = str(rng.choice(_wrong_answers(question), p=WRONG_SHARES))
    return PHRASES[rng.integers(len(PHRASES))].format(given)


def _verbalized(question: Question, rng: np.random.Generator) -> str:
    """Return a reply to a question for a probability."""
    if rng.random() < NO_PROBABILITY:
        return "It is hard to say."
    noise = rng.normal(scale=VERBALIZED_NOISE)
    probability = _sigmoid(VERBALIZED_SLOPE * _logit(question.id) + VERBALIZED_SHIFT + noise)
    return f"\\boxed{{{round(STEPS * probability) / STEPS:.2f}}}"


def _wrong_answers(question: Question) -> Any:
    """Return three wrong answers, the same for all samples of a question."""
    answer = question.answer
    rng = _rng("wrong", question.id)
    if answer.kind == "choice":
        return rng.permutation([letter for letter in "ABCDE" if letter != answer.gold][:3])
    if answer.kind == "short":
        right = {text.casefold() for text in (answer.gold, *answer.aliases)}
        others = [name for name in WRONG_ANSWERS if name.casefold() not in right]
        return rng.choice(others, size=3, replace=False)
    try:
        gold = int(answer.gold.replace(",", ""))
    except ValueError:
        # An expression or a decimal: large whole numbers that hardly any answer equals.
        return 10_007 + 1_000 * rng.permutation(9)[:3]
    return [str(gold + offset) for offset in rng.permutation([-10, -2, -1, 1, 2, 10])[:3]]
