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
from capcal_lib.sampling.engines import Request
from capcal_lib.sampling.engines.simulated import SimulatedEngine, true_mu
from tests.confidence.tables import tabulate

MODEL = load_model("simulated")
QUESTIONS = [
    Question(name, f"Question {name}?", Answer("short", "yes")) for name in ("b", "a", "c")
]


class ScriptedEngine:
    """An engine that says what its script says: question id, then attempt."""

    family = "scripted"

    def __init__(self, script: dict[str, list[str]]) -> None:
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


@pytest.mark.parametrize(
    ("text", "probability"),
    [
        # boxes
        (r"\boxed{0.85}", 0.85),
        (r"\boxed{.85}", 0.85),
        (r"\boxed{85%}", 0.85),
        (r"\boxed{85\%}", 0.85),
        (r"\boxed{ 85 \% }", 0.85),
        (r"\boxed{P=0.8}", 0.8),
        (r"\boxed{P = 0.8}.", 0.8),
        (r"\boxed{0,8}", 0.8),
        (r"\boxed{0{,}8}", 0.8),
        (r"\boxed{1}", 1),
        (r"\boxed{0}", 0),
        (r"\boxed{1.}", 1),
        (r"\boxed{1.0}", 1),
        (r"\boxed{100\%}", 1),
        (r"\boxed{0.8-0.9}", 0.85),
        (r"\boxed{0.8–0.9}", 0.85),
        (r"\boxed{80-90\%}", 0.85),
        (r"\boxed{80\%-90\%}", 0.85),
        (r"\boxed{7/10}", 0.7),
        (r"\boxed{\frac{7}{10}}", 0.7),
        (r"\boxed{\text{0.7}}", 0.7),
        (r"\boxed{$0.7$}", 0.7),
        (r"$$\boxed{0.7}$$", 0.7),
        (r"\boxed{0.3333333333333333333333}", 1 / 3),
        (r"\boxed{0.2}, no, \boxed{0.7}", 0.7),
        (
            r"\boxed{0.7}, and the answer is \boxed{42}",
            0.7,
        ),  # the last box that holds a probability
        (r"\boxed{0.7}, and the answer is \boxed{Paris}", 0.7),
        (
            r"It is 0.3 or so: \boxed{0.7}. I gave 0.9 before.",
            0.7,
        ),  # a box goes before running text
        # boxes that hold none
        (r"\boxed{1.5}", None),
        (r"\boxed{-0.5}", None),
        (r"\boxed{85}", None),
        (r"\boxed{1e-1}", None),
        (r"\boxed{1e9}", None),
        (r"\boxed{nan}", None),
        (r"\boxed{inf}", None),
        (r"\boxed{}", None),
        (r"0.9 \boxed{P}", None),
        (r"\boxed{0-1}", None),
        (r"\boxed{1,000}", None),
        (r"\boxed{1/0}", None),
        (r"\boxed{0/0}", None),
        (r"\boxed{3/2}", None),
        (r"\boxed{0.8.5}", None),
        (r"\boxed{٠.٥}", None),
        # the text is a number
        ("0.85", 0.85),
        (" 1 ", 1),
        ("0", 0),
        ("1.", 1),
        ("85%", 0.85),
        ("85", None),
        ("-0.5", None),
        ("7/10", 0.7),
        ("7 out of 10", 0.7),
        ("**0.7**", 0.7),
        ("0.8 to 0.9", 0.85),
        # running text
        ("I would say 0.85.", 0.85),
        ("I am 90 percent sure.", 0.9),
        ("I am about 85% sure of all 3 points.", 0.85),
        ("Between 0.7 and 0.8, I think", 0.75),
        ("P = 1", 1),
        ("Probability: 0", 0),
        ("confidence≈0.4", 0.4),
        ("(0.4)", 0.4),
        ("First 0.2; then again 0.6", 0.6),
        ("0.85, on a scale from 0.0 to 1.0", 0.85),
        ("It happened in 1998, with 1 person.", None),
        ("A probability P between 0.0 and 1.0", None),
        ("90% sure, or 150%", None),  # the last one decides, and is none
        ("version 0.8.1", None),
        ("0.8e9", None),
        ("x0.8", None),
        ("", None),
        ("I cannot say", None),
        ("nan", None),
        ("1e9", None),
        # odds, counts, labels, full width
        ("It is a coin flip: 50/50.", 0.5),
        ("Chances are 30/70.", 0.3),
        ("3 in 4", 0.75),
        ("Probability: 7/10", 0.7),
        ("85 per cent", 0.85),
        ("\uff18\uff15\uff05", 0.85),
        ('{"confidence": 85}', 0.85),
        (r"\boxed{\approx 0.8}", 0.8),
        ("Confidence: 0.7 (I was at 0.9 before)", 0.7),
        ("Confidence: 0.4. On reflection I am 90% sure.", 0.4),  # only a label takes one back
        ("Confidence: 0.4. On reflection, confidence: 90%", 0.9),
        ("Probability: 0.9; 0.8", 0.9),
        ("I am 0.9 sure. Probability: 3/2", None),  # the labelled one decides, and is none
        # the probability to be wrong is turned round
        ("There is a 10% chance that I am wrong.", 0.9),
        ("Probability that the answer is wrong: 0.1", 0.9),
        ("P(error) = 0.2", 0.8),
        ("P(correct) = 0.8", 0.8),
        ("P(not correct) = 0.2", 0.8),
        ('{"probability_wrong": 0.1}', 0.9),
        ('{"p_error": 0.1}', 0.9),
        ('{"probability_right": 0.8}', 0.8),
        ("My error rate here is about 15%.", 0.85),
        ('{"error_probability": 0.1}', 0.9),
        ("Incorrect: 10%", 0.9),
        ("Right: 90%, wrong: 10%", 0.9),
        ("I'd be wrong about 10% of the time.", 0.9),
        ("There is a 1 in 10 chance of a mistake.", 0.9),
        ("There is a 30% chance that it isn't right.", 0.7),
        (r"The probability of being wrong is \boxed{0.1}.", 0.9),
        ("I am 80% sure that I'm not wrong.", 0.8),
        ("I could be wrong, but I am 80% sure.", 0.8),
        ("80% (I could be wrong)", 0.8),
        ("wrong in 10% of cases", 0.9),
        ("Answers like this are wrong in 10% of cases.", 0.9),
        ("This is incorrect about 10% of the time.", 0.9),
        ("10% of the time, I'm wrong.", 0.9),
        ("90% of the time, I'm right.", 0.9),
        ("I am 90% sure that it is wrong in 10% of the reports", 0.9),
        ("70%, given the risk of error", 0.7),
        ("I am 90% sure that the statement is false.", 0.9),
        # the width of an estimate is none
        ("0.9 ± 0.05", 0.9),
        (r"\boxed{0.9 \pm 0.05}", 0.9),
        ("90 ± 5%", 0.9),
        ("80% sure (±10%)", 0.8),
        ("0.85 +/- 0.1", 0.85),
        ("0.85 [0.80, 0.92]", 0.85),
        ("**70%** (60% to 90%)", 0.7),
        ("I am sure (0.6 to 0.8).", 0.7),
        ("doubt: 10%", None),
        ("about .8, give or take .1", 0.8),
        ("70%, plus or minus 10 percent", 0.7),
        ("0.9 with a margin of error of 0.05", 0.9),
        # nor is a number that is denied, or that of a guess
        ("I'm 60% sure, not 100%.", 0.6),
        ("It isn't 100%, more like 70%.", 0.7),
        ("60% instead of 80%", 0.6),
        ("75%; 100% would be too high", 0.75),
        ("Confidence: not 100%", None),
        ("no more than 20%", 0.2),
        ("I am not sure about this: 60%", 0.6),
        ("I am 80% sure; a random guess would be 25%.", 0.8),
        ("70%. Guessing would be right 50% of the time.", 0.7),
        ("60%, better than the 25% of a random guess", 0.6),
        ("35%. If I guessed at random, it would be 25%.", 0.35),
        ("35%. Guessing blindly, I'd be right 25% of the time.", 0.35),
        ("35%. By chance alone, it would be 25%.", 0.35),
        ("If I had to guess, I'd say 70%.", 0.7),
        ("I did not choose at random, I am 90% sure.", 0.9),
        ("My best guess is 70%.", 0.7),
        # nor a bound beside an estimate, nor a share of something else
        ("0.8, but it could be as low as 0.5", 0.8),
        ("80%, at worst 50%", 0.8),
        ("70%, at least 50%", 0.7),
        ("0.7 (at most 0.9)", 0.7),
        ("70%, certainly more than about 50%", 0.7),
        ("70%, no more than 80%", 0.7),
        ("at least 50%", 0.5),
        ("0.4, no, at least 90%", 0.9),  # a bound that the estimate breaks is another estimate
        ("0.9, no, at most 40%", 0.4),
        ("I am 80% sure that it is 42% of the total.", 0.8),
        ("The answer is 42% of the total.", None),
        ("I am 90% sure that it grew by 20%.", 0.9),
        ("I am right 80% of the time.", 0.8),
        # reasoning is never read
        (r"<think>\boxed{0.9}</think>\boxed{0.2}", 0.2),
        (r"thoughts: \boxed{0.9}</think>", None),
        (r"<think>\boxed{0.9}", None),
        (r"a</think>b<think>\boxed{0.9}", None),
    ],
)
def test_probability_in_words(text, probability):
    assert parse_probability(text) == (None if probability is None else pytest.approx(probability))


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


@settings(max_examples=200, deadline=None)
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
    "piece",
    [
        "\\boxed{",
        "\\boxed{0.",
        "{",
        "0",
        "0.",
        ".0",
        "0,",
        "1/",
        "0.1-",
        "P = ",
        "\\text{",
        "\\frac{1}{",
        "0.1 not wrong ",
        "a random guess of ",
        "if I guessed at random, ",
        "at least 0.1 ",
        "give or take ",
        " ",
        "\n",
    ],
)
def test_hostile_text_is_bounded(piece):
    assert parse_probability(piece * 1_000_000) in (None, 0.1)  # and it ends


def test_unparsed_questions_are_asked_again_and_every_attempt_is_paid():
    engine = ScriptedEngine(
        {"a": ["?", "hm", r"\boxed{0.25}"], "b": ["0.5"], "c": ["?", "!", "x" * 9_999]}
    )
    confidence = tabulate(verbalized(engine, MODEL, QUESTIONS, seed=7)).loc[list("bac")]
    np.testing.assert_array_equal(confidence["confidence"], [0.5, 0.25, np.nan])
    assert confidence.tokens.tolist() == [100, 303, 303]
    assert confidence["text"].tolist() == ["0.5", r"\boxed{0.25}", "x" * KEPT_CHARACTERS]
    assert engine.asked == {"b": [0], "a": [0, 1, 2], "c": [0, 1, 2]}


def test_the_model_is_asked_for_words_with_its_own_settings():
    engine = ScriptedEngine({name: ["0.5"] for name in "abc"})
    assert len(list(verbalized(engine, MODEL, QUESTIONS, seed=7))) == 3
    assert engine.settings == {(MODEL.sampling, 7)}
    assert {request.purpose for request in engine.requests} == {"verbalized"}
    assert engine.requests[0].messages == verbalized_messages(QUESTIONS[0], MODEL.prompt_style)


def test_no_questions_need_no_words():
    assert list(verbalized(ScriptedEngine({}), MODEL, [], seed=0)) == []


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


def test_yes_share_keeps_the_ratio_of_tiny_probabilities():
    np.testing.assert_allclose(
        yes_share(np.array([[-2000.0]]), np.array([[-2000.0 + np.log(3)]])), [0.25]
    )


def test_yes_and_no_are_treated_alike():
    assert [word.lower().strip() for word in YES] == ["yes"] * len(YES)
    assert [word.lower().strip() for word in NO] == ["no"] * len(NO)
    logs = np.log(np.random.default_rng(0).uniform(0, 0.1, (2, 5, 6)))
    np.testing.assert_allclose(yes_share(*logs) + yes_share(*logs[::-1]), 1)


# --- Response consistency ---


def test_consistency_is_the_share_of_the_largest_group():
    votes = [
        ["4"] * 7 + ["5"] * 3,
        ["1", "2", "3"],
        ["1", "2", "1", "2"],
        ["1", None],
        [None, None, "1", None],
    ]
    np.testing.assert_allclose(consistency(votes), [0.7, 1 / 3, 0.5, 0.5, 0.25])


def test_no_answer_is_no_opinion():
    assert np.isnan(consistency([[None, None], []])).all()
    assert consistency([[None] * 9 + ["4"]]).tolist() == [0.1]


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
