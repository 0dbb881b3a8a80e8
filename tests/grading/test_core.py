"""Grading as a whole: reasons, hostile text, gold answers, files."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capcal_lib.errors import InputError
from capcal_lib.grading import Verdict, canonical, grade, grade_file, grade_many
from capcal_lib.grading.compare import LONGEST
from capcal_lib.manifests import Kind
from capcal_lib.questions import Answer
from tests.grading.answers import GOLDS, outcomes


@pytest.mark.parametrize(
    ("kind", "response", "expected"),
    [
        ("number", r"\boxed{several}", Verdict("incorrect", "several", "boxed")),
        (
            "math",
            r"\boxed{" + "x+" * 400 + "1}",
            Verdict("incorrect", ("x+" * 250)[:499] + "…", "boxed"),
        ),
        (
            "short",
            "The answer is ... .\nReally.",
            Verdict("no_answer", None, "nothing extractable"),
        ),
    ],
)
def test_verdicts_carry_answer_and_reason(kind: Kind, response: str, expected: Verdict) -> None:
    assert grade(response, Answer(kind, GOLDS[kind])) == expected


def test_aliases_are_right_answers_too() -> None:
    answer = Answer("short", "Istanbul", ("Constantinople", "Byzantium"))
    assert outcomes([(text, answer) for text in ("Byzantium", "constantinople", "Ankara")]) == [
        "correct",
        "correct",
        "incorrect",
    ]
    math_answer = Answer("math", "x+1", ("y+1",))
    assert outcomes([(rf"\boxed{{{text}}}", math_answer) for text in ("1+y", "1+x", "1+z")]) == [
        "correct",
        "correct",
        "incorrect",
    ]


PIECES = re.findall(
    r"\S+",
    r"\boxed{ \fbox{ { } \ $ \frac \sqrt ^ _ ( ) [ ] , 1 20 x ! = \cup \pm \text{ and \le < % . | "
    r"\infty & \\ \{ \} C B) ** ① ² ½ \begin{pmatrix} \end{pmatrix} answer: #### <think> </think>",
)
TEXTS = st.lists(st.sampled_from([*PIECES, " ", "\n", "the answer is "]), max_size=25).map("".join)


@given(TEXTS | st.text(max_size=300), st.sampled_from(sorted(GOLDS)))
@settings(max_examples=50)
def test_any_text_has_a_verdict(text: str, kind: Kind) -> None:
    check_verdict(text, kind)
    check_verdict("\\boxed{" + text + "}", kind)


def check_verdict(text: str, kind: Kind) -> None:
    verdict = grade_many([(text, Answer(kind, GOLDS[kind]))])[0]
    assert verdict.verdict in ("correct", "incorrect", "no_answer", "not_scored")
    assert (verdict.extracted is None) == (verdict.verdict == "no_answer")
    assert verdict.extracted is None or 0 < len(verdict.extracted.encode()) <= 4 * LONGEST
    if verdict.extracted is not None:
        assert isinstance(canonical(verdict.extracted, kind), str)


@pytest.mark.parametrize(
    "unit", ["a", "\n", "{", "\\boxed{", "answer is ", "**", "\\text{", "1,", "<think>"]
)
def test_a_million_characters_are_no_trouble(unit: str) -> None:
    text = unit * (1_000_000 // len(unit))
    verdicts = outcomes([(text, Answer(kind, gold)) for kind, gold in GOLDS.items()])
    assert {*verdicts} <= {"no_answer", "incorrect"}


def test_code_is_never_run(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    for text in (
        f"__import__('pathlib').Path({str(mark)!r}).touch()",
        rf"\write18{{touch {mark}}}",
        f"open({str(mark)!r},'w')",
    ):
        for kind in GOLDS:
            assert grade(rf"\boxed{{{text}}}", Answer(kind, GOLDS[kind])).verdict != "correct"
    assert not mark.exists()


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            Answer("number", "several"),
            "the gold answer 'several' is not a number; use the kind 'math' or 'short'",
        ),
        (Answer("choice", "Paris"), "the gold answer 'Paris' is not a letter from A to Z"),
        (Answer("math", "x" * 501), f"the gold answer '{'x' * 79} is longer than 500 characters"),
    ],
)
def test_gold_answers_must_read_as_their_kind(answer: Answer, message: str) -> None:
    with pytest.raises(InputError) as caught:
        grade("", answer)
    assert str(caught.value) == message


def write_rows(path: Path, *lines: object) -> Path:
    path.write_text(
        "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines),
        encoding="utf-8",
    )
    return path


def test_a_file_is_graded_row_by_row(tmp_path: Path) -> None:
    source = write_rows(
        tmp_path / "in.jsonl",
        {
            "question_id": "01",
            "sample_index": 3,
            "id": 3,
            "kind": "short",
            "gold": "Paris",
            "aliases": ["Lutetia"],
            "response": "lutetia",
        },
        {"kind": "math", "gold": "x+1", "response": r"\boxed{1+x}"},
        "",
        {"kind": "choice", "gold": "B", "aliases": None, "response": "\ud800"},
        {"kind": "short", "gold": "東京", "response": "東京"},
    )
    target = tmp_path / "out.jsonl"
    target.write_text("old")
    with target.open() as old:  # a reader of the old file keeps it: the new one is put in its place
        assert grade_file(source, target) == 4
        assert old.read() == "old"
    assert [json.loads(line) for line in target.read_text(encoding="utf-8").splitlines()] == [
        {
            "question_id": "01",
            "sample_index": 3,
            "verdict": "correct",
            "extracted": "lutetia",
            "reason": "bare line",
        },
        {"verdict": "correct", "extracted": "1+x", "reason": "boxed"},
        {"verdict": "no_answer", "extracted": None, "reason": "empty response"},
        {"verdict": "correct", "extracted": "東京", "reason": "bare line"},
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "out.jsonl"]


GOOD = {"kind": "number", "gold": "4", "response": "4"}


TEXTS_ONLY = "row 1: kind, gold and response must be texts"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("{", "cannot be read: line 2"),
        ("[1]", "cannot be read: line 2: not a JSON object"),
        ({**GOOD, "kind": "maths"}, "row 1: unknown answer kind 'maths'; known: choice, math, "),
        ({"kind": "number", "gold": "4"}, TEXTS_ONLY),
        ({**GOOD, "aliases": "4"}, TEXTS_ONLY),
        ({**GOOD, "gold": " "}, "row 1: the gold answer must be a text and not empty; got ' '"),
        ({**GOOD, "gold": "some"}, "row 1: the gold answer 'some' is not a number"),
    ],
)
def test_a_bad_row_is_refused_and_nothing_written(
    tmp_path: Path, row: object, message: str
) -> None:
    source, target = write_rows(tmp_path / "in.jsonl", GOOD, row, GOOD), tmp_path / "out.jsonl"
    target.write_text("old")
    with pytest.raises(InputError) as caught:
        grade_file(source, target)
    assert message in str(caught.value)
    assert str(source) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert target.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 2


def test_files_that_cannot_be_read_or_written_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"absent.jsonl: there is no such file"):
        grade_file(tmp_path / "absent.jsonl", tmp_path / "out.jsonl")
    source = write_rows(tmp_path / "in.jsonl", GOOD)
    with pytest.raises(InputError, match=r"cannot write .*out.jsonl: No such file"):
        grade_file(source, tmp_path / "absent" / "out.jsonl")


def test_only_regular_files_other_than_the_input_are_written(tmp_path: Path) -> None:
    source = write_rows(tmp_path / "in.jsonl", GOOD)
    (tmp_path / "link").symlink_to(source)
    for target in (source, tmp_path / "link", tmp_path, Path("/dev/null")):
        with pytest.raises(InputError, match="it is the input, or not a regular file"):
            grade_file(source, target)
    assert source.read_text() == json.dumps(GOOD) + "\n"
