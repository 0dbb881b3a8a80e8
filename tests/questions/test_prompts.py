"""The words a model is asked in."""

import re

import pytest

from capcal_lib.confidence.verbalized import parse_probability
from capcal_lib.errors import InputError
from capcal_lib.grading import grade
from capcal_lib.manifests import KINDS, Kind, PromptStyle
from capcal_lib.questions import Answer, Question
from capcal_lib.questions import builtin as mini
from capcal_lib.questions.prompts import (
    _SHOWN,
    _SHOWN_VERBALIZED,
    STYLES,
    Messages,
    answer_messages,
    p_true_messages,
    prompt_digest,
    template_digest,
    verbalized_messages,
)

QUESTIONS = {kind: Question("q", "Is {this} 100% \\boxed{x}?", Answer(kind, "A")) for kind in KINDS}
ASKING = (answer_messages, verbalized_messages, p_true_messages)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("ask", ASKING)
def test_a_chat_that_ends_with_the_question(ask: object, style: PromptStyle, kind: Kind) -> None:
    messages: Messages = ask(QUESTIONS[kind], style)  # type: ignore[operator]
    assert [message["role"] for message in messages] == ["user", "assistant"] * (len(messages) // 2) + ["user"]
    assert QUESTIONS[kind].text in messages[-1]["content"]
    assert all(set(message) == {"role", "content"} for message in messages)


@pytest.mark.parametrize("kind", KINDS)
def test_the_papers_answer_prompt(kind: Kind) -> None:
    (message,) = answer_messages(QUESTIONS[kind], "paper")
    question, instruction = message["content"].split("\n\n")
    assert question == QUESTIONS[kind].text
    assert "step by step" in instruction
    assert "\\boxed{}" in instruction


def test_the_papers_verbalized_prompt_word_for_word() -> None:
    (message,) = verbalized_messages(Question("q", "Why?", Answer("short", "so")), "paper")
    assert message["content"].startswith(
        "Question: Why?\n\nHow likely are you to answer the question correctly? "
        'You may refer to the following probabilities P:\n- 0.0-0.1: "Almost no chance"\n'
    )
    assert message["content"].count("\n- ") == 10
    assert message["content"].endswith(
        '- 0.9-1.0: "Almost certain"\nReason about your uncertainty and confidence, and then provide a '
        "probability P between 0.0 and 1.0 in the format of \\boxed{P}."
    )


def test_p_true_is_the_papers_in_every_style() -> None:
    question = Question("q", "Why?", Answer("short", "so"))
    expected = (
        "Question: Why?\n\nAre you able to answer the question correctly?\nAnswer with only a single word: Yes or No."
    )
    assert [p_true_messages(question, style)[0]["content"] for style in STYLES] == [expected] * len(STYLES)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("style", ["short", "steps"])
def test_shown_answers_are_right_and_the_grader_reads_them(style: PromptStyle, kind: Kind) -> None:
    bare = {"short": r"is (.*)\.$", "number": r"(\d+)\.?$", "math": r"is (.*)\.$", "choice": "(.)$"}[kind]
    for asked, said in _SHOWN[style][kind]:
        found = re.search(r"\\boxed\{(.*)\}$" if style == "steps" else bare, said)
        assert found
        gold = found[1].strip("$")
        assert grade(said, Answer(kind, gold)).verdict == "correct", asked
        if match := re.match(r"What is (\d+) ([+×]) (\d+)\?$", asked):
            left, right = int(match[1]), int(match[3])
            assert int(gold) == (left + right if match[2] == "+" else left * right)


def test_shown_confidences_are_read_and_spread() -> None:
    values = [parse_probability(said) for _, said in _SHOWN_VERBALIZED]
    assert None not in values
    assert min(values) < 0.3  # type: ignore[type-var]
    assert max(values) > 0.7  # type: ignore[type-var]


def test_no_mini_question_is_shown_and_no_shown_fact_is_asked() -> None:
    rows = [
        row
        for dataset in ("mini-arithmetic", "mini-capitals", "mini-elements", "mini-exam")
        for split in mini.SPLITS
        for row in mini.rows(dataset, split)
    ]
    answers = [turns for by_kind in _SHOWN.values() for turns in by_kind.values()]
    shown = {asked.partition("\n")[0] for turns in (*answers, _SHOWN_VERBALIZED) for asked, _ in turns}
    assert not shown & {row["question"] for row in rows}
    places = {"Japan", "Tokyo", "Egypt", "Cairo", "Peru", "Lima", "Portugal", "Lisbon", "Canada", "Ottawa"}
    elements = {"helium", "carbon", "silver", "gold"}
    for row in rows:
        words = set(re.findall(r"\w+", row["question"]))
        assert not words & (places | elements)
        assert row["answer"] not in places | elements


def test_digests_tell_prompts_and_wordings_apart() -> None:
    question = Question("q", "Why?", Answer("short", "so"))
    prompts = [ask(question, style) for ask in ASKING for style in STYLES]
    digests = {prompt_digest(messages) for messages in prompts}
    assert len(digests) == 6  # P(True) is one prompt in every style, verbalized confidence one but in the paper's
    assert all(re.fullmatch("[0-9a-f]{16}", digest) for digest in digests)
    assert template_digest("short") != template_digest("paper")


def test_a_lone_surrogate_has_a_digest() -> None:
    assert prompt_digest(({"role": "user", "content": "\ud800"},)) != prompt_digest(({"role": "user", "content": "?"},))


@pytest.mark.parametrize("ask", ASKING)
def test_unknown_style(ask: object) -> None:
    with pytest.raises(InputError, match="unknown prompt style 'long'; known: paper, short, steps"):
        ask(QUESTIONS["short"], "long")  # type: ignore[operator]
    with pytest.raises(InputError, match="unknown prompt style 'long'"):
        template_digest("long")  # type: ignore[arg-type]
