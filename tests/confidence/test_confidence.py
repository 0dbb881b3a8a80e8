"""Confidence estimators: values, costs, and what happens where there is no estimate."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capcal_lib.confidence.consistency import consistency
from capcal_lib.confidence.p_true import NO, YES, p_true, yes_share
from capcal_lib.confidence.verbalized import KEPT_CHARACTERS, parse_probability, verbalized
from capcal_lib.manifests import load_model
from capcal_lib.questions import Answer, Question
from capcal_lib.questions.prompts import p_true_messages, verbalized_messages
from capcal_lib.runs.store import Sample
from capcal_lib.sampling.engines import Failure, Request
from capcal_lib.sampling.engines.simulated import SimulatedEngine, true_mu
from tests.confidence.tables import tabulate

MODEL = load_model("simulated")
QUESTIONS = [
    Question(name, f"Question {name}?", Answer("short", "yes")) for name in ("b", "a", "c")
]


class ScriptedEngine:
    """An engine that says what its script says: question id, then attempt; None: it fails."""

    family = "scripted"

    def __init__(self, script: dict[str, list[str | None]]) -> None:
        self.script = script
        self.asked: dict[str, list[int]] = defaultdict(list)
        self.requests: list[Request] = []
        self.settings: set[tuple[object, int]] = set()

    def sample(self, requests, sampling, seed):
        self.requests += requests
        self.settings.add((sampling, seed))
        for request in reversed(requests):
            for index in request.sample_indices:
                self.asked[request.question.id].append(index)
                said = self.script[request.question.id][index]
                if said is None:
                    yield Failure(request.question.id, (index,), "no route")
                    continue
                yield [
                    Sample(request.question.id, index, said, "sure: 0.99", "stop", 10, 100 + index)
                ]

    def next_token_logprobs(self, requests, words, sampling, seed):
        self.requests += requests
        known = {"Yes": 0.3, "yes": 0.3, "No": 0.1, " No": 0.1}
        row = [np.log(known[word]) if word in known else np.nan for word in words]
        silent = [np.nan] * len(words)
        told = np.array([request.question.id != "a" for request in requests])
        self.settings.add((sampling, seed))
        return np.where(told[:, None], row, silent), told.astype(int)


# --- Verbalized confidence ---


READ = {
    0.85: [r"\boxed{0.85}", r"\boxed{.85}", r"\boxed{ 85 \% }", "0.85", "85%", "I would say 0.85."],
    0.8: [r"\boxed{P=0.8}", r"\boxed{P = 0.8}.", "P(correct) = 0.8", '{"probability_right": 0.8}'],
    0.7: [
        *(
            r"\boxed{7/10}",
            r"$$\boxed{$0.7$}$$",
            r"\boxed{0.2}, no, \boxed{0.7}",
            "7/10",
            "**0.7**",
        ),
        r"It is 0.3 or so: \boxed{0.7}. I gave 0.9 before.",  # a box goes before running text
        *("Probability: 7/10", "70%, plus or minus 10 percent", "My best guess is 70%."),
    ],
    1.0: [r"\boxed{1}", r"\boxed{1.}", r"\boxed{100\%}", " 1 ", "P = 1", "10/10"],
    0.0: [r"\boxed{0}", "0", "Probability: 0"],
    0.4: ["confidence≈0.4", "(0.4)"],
    0.2: ["no more than 20%", r"<think>\boxed{0.9}</think>\boxed{0.2}"],
    0.9: ["90% of the time, I'm right.", "I am about 90% sure of all 3 points."],
    None: [
        # boxes that hold none
        *(
            r"\boxed{1.5}",
            r"\boxed{-0.5}",
            r"\boxed{85}",
            r"\boxed{1e-1}",
            r"\boxed{nan}",
            r"\boxed{}",
        ),
        *(r"0.9 \boxed{P}", r"\boxed{0-1}", r"\boxed{1,000}", r"\boxed{1/0}", r"\boxed{3/2}"),
        *(r"\boxed{0.8.5}", r"\boxed{٠.٥}", r"0.9, but \boxed{?}"),
        # texts that hold none
        *("85", "-0.5", "", "I cannot say", "nan", "1e9", "version 0.8.1", "0.8e9", "x0.8"),
        "It happened in 1998, with 1 person.",
        # texts with two numbers, or with one that may be read in two ways
        *("A probability P between 0.0 and 1.0", "90% sure, or 150%", "0.8-0.9", "50/50", "30/70"),
        *(
            "I am 0.9 sure. Probability: 3/2",
            "90 percent",
            r"\boxed{0.7}, the answer is \boxed{42}",
        ),
        # reasoning is never read
        *(r"thoughts: \boxed{0.9}</think>", r"<think>\boxed{0.9}", r"a</think>b<think>\boxed{0.9}"),
    ],
}


@pytest.mark.parametrize("probability", READ)
def test_probability_in_words(probability):
    assert {text: parse_probability(text) for text in READ[probability]} == dict.fromkeys(
        READ[probability], probability
    )


def test_a_number_beside_a_word_that_may_turn_it_round_is_missing():
    for word in (
        *("wrong", "incorrect", "inaccurate", "false", "error", "mistaken", "failing", "doubtful"),
        *(
            "uncertainty",
            "unsure",
            "not right",
            "isn't right",
            "isn’t right",
            "never",
            "cannot",
            "±",
        ),
    ):
        assert parse_probability(f"{word}: 0.1") is None, word
        assert parse_probability(f"It is 10% {word}.") is None, word
        assert parse_probability(rf"It is Rome. With {word}: \boxed{{0.1}}") is None, word
        assert parse_probability(rf"The {word} is past. I say \boxed{{0.1}}") == 0.1, word


@settings(max_examples=25)
@given(st.integers(0, 1000))
def test_every_way_to_write_a_probability_reads_the_same(thousandths):
    p = thousandths / 1000
    for text in (
        f"{p:.3f}",
        rf"\boxed{{{p:.3f}}}",
        f"{100 * p:.1f}%",
        rf"so \boxed{{{100 * p:.1f}\%}}",
        f"I say {p:.3f}.",
    ):
        assert parse_probability(text) == pytest.approx(p)


@settings(max_examples=50)
@given(
    st.text(
        alphabet=st.sampled_from(list("\\boxed{}0123456789.,%/-–<think> toandPf=e~$"))
        | st.characters()
    )
)
def test_any_text_gives_a_probability_or_none(text):
    probability = parse_probability(text)
    assert probability is None or 0 <= probability <= 1


@pytest.mark.parametrize(
    "piece", ["\\boxed{", "\\boxed{0.", "0", "0.", "0,", "1/", "0.1-", "0.1 not wrong ", " ", "\n"]
)
def test_hostile_text_is_bounded(piece):
    assert parse_probability(piece * 100_000) in (None, 0.1)  # and it ends


def test_unparsed_questions_are_asked_again_and_every_attempt_is_paid():
    engine = ScriptedEngine(
        {"a": ["?", "hm", r"\boxed{0.25}"], "b": ["0.5"], "c": ["?", "!", "x" * 9_999]}
    )
    confidence = tabulate(verbalized(engine, MODEL, QUESTIONS, seed=7)).loc[list("bac")]
    np.testing.assert_array_equal(confidence["confidence"], [0.5, 0.25, np.nan])
    assert confidence.tokens.tolist() == [100, 303, 303]
    assert confidence["text"].tolist() == ["0.5", r"\boxed{0.25}", "x" * KEPT_CHARACTERS]
    assert engine.asked == {"b": [0], "a": [0, 1, 2], "c": [0, 1, 2]}
    engine = ScriptedEngine({name: [None] * 3 for name in "abc"})
    assert tabulate(verbalized(engine, MODEL, QUESTIONS, seed=7))["confidence"].isna().all()
    assert engine.asked == {"b": [0], "a": [0], "c": [0]}, "where none answers, none would"


def test_the_model_is_asked_for_words_with_its_own_settings():
    engine = ScriptedEngine({name: ["0.5"] for name in "abc"})
    assert len(list(verbalized(engine, MODEL, QUESTIONS, seed=7))) == 3
    assert engine.settings == {(MODEL.sampling, 7)}
    assert {request.purpose for request in engine.requests} == {"verbalized"}
    assert engine.requests[0].messages == verbalized_messages(QUESTIONS[0], MODEL.prompt_style)


# --- P(True) ---


def test_p_true_weighs_all_spellings():
    engine = ScriptedEngine({})
    confidence = tabulate(p_true(engine, MODEL, QUESTIONS, seed=3))
    assert confidence.index.tolist() == ["b", "a", "c"]
    np.testing.assert_allclose(confidence["confidence"], [0.75, np.nan, 0.75])
    assert confidence.tokens.tolist() == [1, 0, 1]  # the engine was told nothing about a
    assert engine.requests[0].messages == p_true_messages(QUESTIONS[0], MODEL.prompt_style)
    assert engine.settings == {(MODEL.sampling, 3)}


@pytest.mark.parametrize(
    ("yes", "no", "share"),
    [
        ([0.2, 0.1], [0.1, 0.2], 0.5),
        ([0.3, 0.0], [0.0, 0.1], 0.75),
        ([0.3, 0.0], [0.0, 0.0], 1),
        ([0.0, 0.0], [0.5, 0.0], 0),
        ([0.0, 0.0], [0.0, 0.0], np.nan),  # no probability on either word
        ([np.nan, np.nan], [0.5, 0.1], np.nan),  # an unreported word is not an impossible one
        ([0.5, 0.1], [np.nan, np.nan], np.nan),
        ([np.nan, 0.1], [0.3, np.nan], 0.25),
    ],
)
def test_yes_share(yes, no, share):
    with np.errstate(divide="ignore"):
        logs = np.log([yes]), np.log([no])
    np.testing.assert_allclose(yes_share(*logs), [share])


def test_yes_and_no_are_treated_alike_and_tiny_probabilities_keep_their_ratio():
    assert [word.lower().strip() for word in YES] == ["yes"] * len(YES)
    assert [word.lower().strip() for word in NO] == ["no"] * len(NO)
    logs = np.log(np.random.default_rng(0).uniform(0, 0.1, (2, 5, 6)))
    np.testing.assert_allclose(yes_share(*logs) + yes_share(*logs[::-1]), 1)
    np.testing.assert_allclose(yes_share(*logs - 2_000), yes_share(*logs))


# --- Response consistency ---


@settings(max_examples=25)
@given(
    st.lists(st.lists(st.sampled_from(["1", "2", "3", None]), min_size=1, max_size=8), max_size=5),
    st.randoms(),
)
def test_consistency_equals_its_naive_definition_in_any_order(votes, random):
    naive = [
        max((row.count(vote) for vote in row if vote is not None), default=np.nan) / len(row)
        for row in votes
    ]
    np.testing.assert_allclose(consistency(votes), naive)
    for row in votes:
        random.shuffle(row)
    np.testing.assert_allclose(consistency(votes), naive)


# --- On a model whose mu is known ---


def test_the_simulated_model_is_informative_in_words_and_logits():
    questions = [Question(f"q{i}", "?", Answer("number", "7")) for i in range(300)]
    engine = SimulatedEngine(MODEL)
    for method in (verbalized, p_true):
        confidence = tabulate(method(engine, MODEL, questions, seed=0))["confidence"].dropna()
        assert len(confidence) >= 295
        assert np.corrcoef(confidence, [true_mu(name) for name in confidence.index])[0, 1] > 0.6
    said, otherwise = (list(verbalized(engine, MODEL, questions, seed=seed)) for seed in (0, 1))
    assert said != otherwise
