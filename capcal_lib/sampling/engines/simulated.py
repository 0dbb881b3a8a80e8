"""A stand-in for a model: answers with a known probability mu of being right, for tests and
teaching.

mu is drawn for each question id from a mixture that is U-shaped, as those of real models on most
data sets: two fifths hard, Beta(1, 8); two fifths easy, Beta(8, 1); one fifth spread evenly over
[0, 1]."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from capcal_lib.manifests import Model, Sampling
from capcal_lib.questions import Question
from capcal_lib.runs.samples import Sample
from capcal_lib.sampling.engines import Request, hashed

SHAPES = ((1.0, 8.0), (8.0, 1.0), (1.0, 1.0))
SHARES = (0.4, 0.4, 0.2)
NO_ANSWER = 0.03  # of the samples that are not right; about 1.5 % of all
NO_PROBABILITY = 0.02  # of the answers to a question for a probability
OTHER_WORDS = 0.05  # first-token probability of anything but Yes and No
FEATURES = 64
WRONG_SHARES = (
    0.6,
    0.25,
    0.15,
)  # how often each of three wrong answers is given: one misconception dominates
NAMES = (
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


def true_mu(question_id: str, seed: int = 0) -> float:
    """Return the probability that the model's answer to a question is right; the engine is the
    model of seed 0.

    >>> round(true_mu("mini-capitals/test/0"), 3)
    0.035
    """
    rng = _rng("mu", seed, question_id)
    return float(rng.beta(*SHAPES[rng.choice(len(SHAPES), p=SHARES)]))


class SimulatedEngine:
    """Answer with probability `true_mu` right, and be informative but miscalibrated about it.

    Verbalized confidence is compressed and too high, P(True) noisy and too high; the hidden states
    hold the logit of mu along one direction, in noise."""

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
        yes = np.array(
            [_sigmoid(0.7 * _logit(name) + 0.5 + _rng("p_true", name).normal()) for name in names]
        )
        said = {"Yes": yes, "No": 1 - yes}
        with np.errstate(divide="ignore"):
            columns = [np.log((1 - OTHER_WORDS) * said.get(word, 0 * yes)) for word in words]
        return np.stack(columns, axis=1), np.ones(len(requests), dtype=np.int64)

    def hidden_states(self, requests: Sequence[Request]) -> np.ndarray:
        """Return features, (n_requests, 64), float32."""
        direction = _rng("direction").normal(size=FEATURES)
        direction /= np.linalg.norm(direction)
        names = [request.question.id for request in requests]
        states = [
            _logit(name) * direction + _rng("features", name).normal(size=FEATURES)
            for name in names
        ]
        return np.array(states, dtype=np.float32).reshape(-1, FEATURES)


def _rng(*key: object) -> np.random.Generator:
    """Return the stream of random numbers that belongs to a key."""
    return np.random.default_rng(hashed(*key))


def _logit(question_id: str) -> float:
    mu = np.clip(true_mu(question_id), 1e-3, 1 - 1e-3)
    return float(np.log(mu / (1 - mu)))


def _sigmoid(x: float) -> float:
    return float(1 / (1 + np.exp(-x)))


def _draw(request: Request, index: int, sampling: Sampling, seed: int) -> Sample:
    question = request.question
    rng = _rng(request.purpose, seed, question.id, index)
    said = _stated(question, rng) if request.purpose == "verbalized" else _answered(question, rng)
    words = sum(len(message["content"].split()) for message in request.messages)
    tokens = min(sampling.max_tokens, 4 + 4 * len(said.split()) // 3 + int(rng.poisson(6)))
    return Sample(question.id, index, said, None, "stop", 8 + 4 * words // 3, tokens)


def _answered(question: Question, rng: np.random.Generator) -> str:
    if rng.random() < true_mu(question.id):
        given = question.answer.gold
    elif rng.random() < NO_ANSWER:
        return UNSURE
    else:
        given = str(rng.choice(_wrong_answers(question), p=WRONG_SHARES))
    return PHRASES[rng.integers(len(PHRASES))].format(given)


def _stated(question: Question, rng: np.random.Generator) -> str:
    if rng.random() < NO_PROBABILITY:
        return "It is hard to say."
    stated = _sigmoid(0.5 * _logit(question.id) + 0.8 + rng.normal(scale=0.5))
    return f"\\boxed{{{round(20 * stated) / 20:.2f}}}"


def _wrong_answers(question: Question) -> Any:
    """Return three wrong answers, the same for all samples of a question."""
    answer = question.answer
    rng = _rng("wrong", question.id)
    if answer.kind == "choice":
        return rng.permutation([letter for letter in "ABCDE" if letter != answer.gold][:3])
    if answer.kind == "short":
        right = {text.casefold() for text in (answer.gold, *answer.aliases)}
        others = [name for name in NAMES if name.casefold() not in right]
        return rng.choice(others, size=3, replace=False)
    try:
        gold = int(answer.gold.replace(",", ""))
    except (
        ValueError
    ):  # an expression or a decimal: large whole numbers that hardly any answer equals
        return 10_007 + 1_000 * rng.permutation(9)[:3]
    return [str(gold + offset) for offset in rng.permutation([-10, -2, -1, 1, 2, 10])[:3]]
