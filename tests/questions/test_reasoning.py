"""Reasoning and answer: every room that reads a response parts them alike."""

import time

import pytest

from capcal_lib.confidence.verbalized import parse_probability
from capcal_lib.grading import grade
from capcal_lib.grading.judge import read_grade
from capcal_lib.questions import Answer
from capcal_lib.questions.reasoning import answer_start, opened, split_reasoning
from capcal_lib.sampling.engines import chat

FINAL = "<|start|>assistant<|channel|>final<|message|>"
ANSWERED = [  # what stands for A is the answer
    "A",
    "\n\nA",
    "<think>hm</think>A",
    "<think>\n\n</think>\n\nA",
    "hm</think>A",  # the prompt has opened it
    "<think>a</think>b<think>c</think>A",
    "<think>0.1 CORRECT \\boxed{8}</think>A",
    "<think >hm</think >A",
    "<THINK>hm</THINK>A",
    "<thinking>hm</thinking>A",
    "<thought>hm</thought>A",
    "<reasoning>hm</reasoning>A",
    "<scratchpad>hm</scratchpad>A",
    "<seed:think>hm</seed:think>A",
    "<|begin_of_thought|>hm<|end_of_thought|>A",
    "<|start_thinking|>hm<|end_thinking|>A",
    "\u25c1think\u25b7hm\u25c1/think\u25b7A",
    "[THINK]hm[/THINK]A",
    f"<|channel|>analysis<|message|>hm<|end|>{FINAL}A",
    f"<|channel|>analysis<|message|>hm<|end|>{FINAL}A<|return|>",
    f"<|channel|>analysis<|message|>hm<|end|>{FINAL}8<|end|>{FINAL}A",
    "<|channel|>final<|message|>A",
    "<|channel|>final <|constrain|>json<|message|>A",
    "It is written <|channel|>final<|message|>A",
    "analysisHm.assistantfinalA",
    "Here is my thought process: \\boxed{8}, 0.1 CORRECT\n\nHere is my response: A",
    " Here's my thought process:\n8\nHere's my response:\nA",
    "Thinking...\n\\boxed{8}, 0.1 CORRECT\n...done thinking.\n\nA",
]
UNFINISHED = [  # nothing is
    "",
    "<think>A",
    " <think>hm, A",
    "<think>hm</think><think>A",
    "8</think>b<think>A",
    "<THINK>A",
    "<think >A",
    "<thinking>A",
    "<thought>A",
    "<reasoning>A",
    "<scratchpad>A",
    "<seed:think>A",
    "<|begin_of_thought|>A",
    "<|start_thinking|>A",
    "\u25c1think\u25b7A",
    "[THINK]maybe A",
    "<|channel|>analysis",
    "<|channel|>analysis<|message|>A",
    "<|channel|>commentary<|message|>A<|end|>",
    "<|channel|>finale<|message|>A",
    f"<|channel|>analysis<|message|>A<|end|>{FINAL}",
    "analysisHm. A",
    "Thinking...\nA",
]
CASES = [(text, True) for text in ANSWERED] + [(text, False) for text in UNFINISHED]


@pytest.mark.parametrize(("text", "answered"), CASES)
def test_all_rooms_part_reasoning_and_answer_alike(text: str, answered: bool) -> None:
    assert split_reasoning(text.replace("A", "Paris"))[1].strip() == "Paris" * answered
    verdict = grade(text.replace("A", "7"), Answer("number", "7")).verdict
    assert verdict == ("correct" if answered else "no_answer")
    assert parse_probability(text.replace("A", "0.9")) == (0.9 if answered else None)
    assert read_grade(text.replace("A", "CORRECT")) == ("correct" if answered else "not_scored")


def test_tokens_are_parted_where_the_text_is() -> None:
    for text, answered in CASES:
        start = chat.answer_start(list(text))
        assert start == (text.index("A") if answered and "A" in text else None), text


@pytest.mark.parametrize(
    ("text", "reasoning"),
    [
        ("A", None),
        ("<think>hm</think>A", "hm"),
        ("<think>\n\n</think>\n\nA", None),
        ("<think>a</think>b<think>c</think>A", "a\nb\nc"),
        ("[THINK]hm, A", "hm, A"),
        (f"<|channel|>analysis<|message|>hm<|end|>{FINAL}A<|return|>", "hm"),
        (
            "<|channel|>analysis<|message|>a<|end|>"
            "<|start|>assistant<|channel|>commentary<|message|>b",
            "a\nb",
        ),
        ("<|channel|>final<|message|>A", None),
        ("analysisHm.assistantfinalA", "analysisHm."),
        ("Here is my thought process: hm\n\nHere is my response: A", "hm"),
        ("Thinking...\nhm\n...done thinking.\n\nA", "hm"),
    ],
)
def test_the_reasoning_is_kept_without_its_marks(text: str, reasoning: str | None) -> None:
    assert split_reasoning(text)[0] == reasoning


@pytest.mark.parametrize(
    "text",
    [
        "Here is my thought process: 6 + 1. The answer is 7.",
        "8? Here is my thought process: 6 + 1. Here is my response: The answer is 7.",
        "Thinking... The answer is 7.",
        "8?\nThinking...\n6 + 1\n...done thinking.\nThe answer is 7.",
    ],
)
def test_plain_words_of_other_models_open_no_reasoning(text: str) -> None:
    assert split_reasoning(text) == (None, text)
    assert grade(text, Answer("number", "7")).verdict == "correct"


def test_a_reasoning_may_be_opened_or_closed_by_the_prompt() -> None:
    prompts = ["<seed:think>\n", "[THINK]", "<think></think>\n", "[/THINK]", "<think> 2", ""]
    assert [opened(prompt) for prompt in prompts] == [True, True, False, False, None, None]
    assert split_reasoning("<think>hm\nHere is my response: A") == ("hm", " A")


def test_the_answer_of_harmony_may_hold_angle_brackets() -> None:
    assert split_reasoning(f"{FINAL}x < y") == (None, "x < y")


@pytest.mark.parametrize(
    "piece", ["<|channel|>a<|message|>", "</think>", "Here is my thought process:"]
)
def test_hostile_text_takes_time_in_proportion(piece: str) -> None:
    start = time.process_time()
    split_reasoning(piece * 50_000)
    answer_start(f"analysis{piece}" * 20_000)
    assert time.process_time() - start < 20
