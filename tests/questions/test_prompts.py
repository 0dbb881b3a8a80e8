"""The words a model is asked in."""

import itertools
import re
from pathlib import Path
from typing import get_args

import pytest

from capcal_lib.confidence.verbalized import parse_probability
from capcal_lib.errors import InputError
from capcal_lib.grading import grade
from capcal_lib.manifests import Kind, PromptStyle, load_prompts
from capcal_lib.places import MANIFESTS
from capcal_lib.questions import Answer, Question
from capcal_lib.questions.prompts import (
    Messages,
    ask_for_answer,
    completion_answer,
    completion_text,
    p_true_messages,
    prompt_digest,
    template_digest,
    verbalized_messages,
)
from tests.questions import builtin as mini

QUESTIONS = {
    kind: Question("q", "Is {this} 100% \\boxed{x}?", Answer(kind, "A")) for kind in get_args(Kind)
}
STYLES = sorted(path.stem for path in MANIFESTS.glob("prompts/*.yaml"))


def answer_messages(question: Question, style: PromptStyle) -> Messages:
    return ask_for_answer(question, load_prompts(style))


ASKING = (answer_messages, verbalized_messages, p_true_messages)


def test_a_chat_that_ends_with_the_question() -> None:
    for ask, style, question in itertools.product(ASKING, STYLES, QUESTIONS.values()):
        messages = ask(question, style)
        turns = ["user", "assistant"] * (len(messages) // 2) + ["user"]
        assert [message["role"] for message in messages] == turns
        assert question.text in messages[-1]["content"]


def test_a_number_of_examples() -> None:
    asked = {
        style: answer_messages(QUESTIONS["short"], style)
        for style in ("short", "short@0", "short@1", "short@9")
    }
    assert asked["short@0"] == asked["short"][-1:]
    assert asked["short@1"] == asked["short"][:2] + asked["short"][-1:]
    assert asked["short@9"] == asked["short"]
    one, short, nine = (load_prompts(style) for style in ("short@1", "short", "short@9"))
    assert template_digest(one) != template_digest(short) == template_digest(nine)
    for style in ("short@10", "short@x", "short@", "short@-1", "paper@1", "none@1"):
        with pytest.raises(InputError, match="unknown prompt style"):
            answer_messages(QUESTIONS["short"], style)


@pytest.mark.parametrize("kind", QUESTIONS)
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
        '- 0.9-1.0: "Almost certain"\nReason about your uncertainty and confidence, and then '
        "provide a probability P between 0.0 and 1.0 in the format of \\boxed{P}."
    )


def test_p_true_is_the_papers_in_every_style() -> None:
    question = Question("q", "Why?", Answer("short", "so"))
    expected = (
        "Question: Why?\n\nAre you able to answer the question correctly?\n"
        "Answer with only a single word: Yes or No."
    )
    assert [p_true_messages(question, style)[0]["content"] for style in STYLES] == [expected] * len(
        STYLES
    )


@pytest.mark.parametrize("kind", QUESTIONS)
@pytest.mark.parametrize("style", ["short", "steps", "completion"])
def test_shown_answers_are_right_and_the_grader_reads_them(style: PromptStyle, kind: Kind) -> None:
    bare = {
        "short": r"is (.*)\.$",
        "number": r"(\d+)\.?$",
        "math": r"is (.*)\.$",
        "choice": "(.)$",
    }[kind]
    for asked, said in load_prompts(style).examples[kind]:
        found = re.search(r"\\boxed\{(.*)\}$" if style == "steps" else bare, said)
        assert found
        gold = found[1].strip("$")
        assert grade(said, Answer(kind, gold)).verdict == "correct", asked
        if match := re.match(r"What is (\d+) ([+×]) (\d+)\?$", asked):
            left, right = int(match[1]), int(match[3])
            assert int(gold) == (left + right if match[2] == "+" else left * right)


def test_shown_confidences_are_read_and_spread() -> None:
    values = [parse_probability(said) for _, said in load_prompts("short").verbalized_examples]
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
    prompts = [load_prompts(style) for style in STYLES]
    turns = [
        turn
        for each in prompts
        for turns in (*each.examples.values(), each.verbalized_examples)
        for turn in turns
    ]
    shown = {asked.partition("\n")[0] for asked, _ in turns}
    assert not shown & {row["question"] for row in rows}
    places = {
        "Japan",
        "Tokyo",
        "Egypt",
        "Cairo",
        "Peru",
        "Lima",
        "Portugal",
        "Lisbon",
        "Canada",
        "Ottawa",
    }
    elements = {"helium", "carbon", "silver", "gold"}
    for row in rows:
        words = set(re.findall(r"\w+", row["question"]))
        assert not words & (places | elements)
        assert row["answer"] not in places | elements


def test_digests_tell_prompts_and_wordings_apart() -> None:
    question = Question("q", "Why?", Answer("short", "so"))
    prompts = [ask(question, style) for ask in ASKING for style in STYLES]
    digests = {prompt_digest(messages) for messages in prompts}
    assert (
        len(digests) == 7
    )  # P(True) is one prompt in every style, verbalized confidence one but in the paper's
    assert all(re.fullmatch("[0-9a-f]{16}", digest) for digest in digests)
    assert template_digest(load_prompts("short")) != template_digest(load_prompts("paper"))


def test_the_words_of_recorded_runs_are_unchanged() -> None:
    digests = {
        "paper": "d86366ed6c2e1906",
        "short": "f3d3db17136ae002",
        "steps": "26d8b44151f0ceae",
    }
    assert {style: template_digest(load_prompts(style)) for style in digests} == digests


@pytest.mark.parametrize(
    ("options", "letters"), [(4, "A, B, C or D"), (2, "A or B"), (6, "A, B, C, D, E or F")]
)
def test_the_letters_asked_for_are_those_of_the_options(options: int, letters: str) -> None:
    question = Question("q", "Which?", Answer("choice", "A"), options=options)
    (message,) = answer_messages(question, "paper")
    assert f"the letter of the right option, {letters}, inside" in message["content"]
    assert answer_messages(question, "short")[-1]["content"] == "Which?", "without an instruction"


def test_a_completion_prompt_is_one_text() -> None:
    text = completion_text(answer_messages(QUESTIONS["number"], "completion"))
    assert text.startswith("Q: What is 4 + 3?\nA: 4 + 3 = 7\n\nQ: What is 20")
    assert text.endswith("\n\nQ: Is {this} 100% \\boxed{x}?\nA:")
    assert completion_answer(" The answer is 6.\n\nQ: What is 4?\nA: 4") == "The answer is 6."
    assert completion_answer(" The answer is 6.") == "The answer is 6."
    prompts = load_prompts("completion")
    assert template_digest(prompts) != prompt_digest(prompts.examples), "Q: and A: count"


def test_ones_own_prompts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "terse.yaml").write_text(
        "name: terse\ninstructions: {short: 'One word. {question}'}\n"
        "verbalized: 'P? {question}'\np_true: '{question} Yes or No?'\n"
    )
    monkeypatch.setenv("CAPCAL_MANIFESTS", str(tmp_path))
    question = Question("q", "Why?", Answer("short", "so"))
    asked = [ask(question, "terse")[-1]["content"] for ask in ASKING]
    assert asked == ["Why?\n\nOne word. {question}", "P? Why?", "Why? Yes or No?"]
    ours = {template_digest(load_prompts(style)) for style in STYLES}
    assert template_digest(load_prompts("terse")) not in ours


def test_unknown_style() -> None:
    with pytest.raises(
        InputError, match="unknown prompt style 'long'; known: completion, paper, short, steps"
    ):
        load_prompts("long")
