"""Two graders on a run: rates, the drawn agreements, the page, labels; and what labels say of the grader."""

import html
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from capcal_lib.cli import app
from capcal_lib.errors import InputError
from capcal_lib.grading import Verdict, grade_many
from capcal_lib.grading.cross_check import (
    Pair,
    SecondLook,
    agreement,
    corrected_accuracy,
    label_row,
    read_labels,
    second_look,
)
from capcal_lib.grading.page import MOST_LISTED, page, write_page
from capcal_lib.grading.verdicts import FILE, SCHEMA, grade_run, read_verdicts
from capcal_lib.manifests import RECORDED_RUNS, ROOT
from capcal_lib.questions import Answer, Question, load_questions
from capcal_lib.sampling.draw import sample
from capcal_lib.sampling.files import write_table
from capcal_lib.sampling.store import find_run

LABELS = ROOT / "tests" / "grading" / "grading_labels.jsonl"
BAD = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'\u202e\ud800\x00"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = sample("simulated", "mini-exam", k=4, limit=6, store=tmp_path).folder
    grade_run(folder)
    return folder


def dispute(folder: Path, rows: int) -> None:
    """Turn the first verdicts round, so that the second grader disputes them."""
    table = read_verdicts(folder)
    table.loc[: rows - 1, "verdict"] = [
        "incorrect" if verdict == "correct" else "correct" for verdict in table["verdict"][:rows]
    ]
    version = pq.read_schema(folder / FILE).metadata[b"grader"]
    written = pa.Table.from_pandas(table, schema=SCHEMA, preserve_index=False)
    write_table(folder / FILE, written.replace_schema_metadata({"grader": version}))


def test_rates_are_counted_by_pair_and_by_sample(run: Path) -> None:
    calm = second_look(run)
    assert (calm.disagreements, calm.by_pair.estimate, calm.by_sample.estimate) == ((), 0.0, 0.0)
    dispute(run, 3)  # of one question's four samples
    look = second_look(run)
    assert look.samples == 24
    assert sum(pair.samples for pair in look.disagreements) == 3
    assert look.by_sample.estimate == pytest.approx(3 / 24)
    assert look.by_pair.estimate == pytest.approx(len(look.disagreements) / look.pairs)
    assert look.by_sample.low <= 3 / 24 <= look.by_sample.high
    assert [pair.samples for pair in look.disagreements] == sorted(
        (p.samples for p in look.disagreements), reverse=True
    )


def test_drawn_agreements_stand_for_all_of_them_and_follow_the_seed(run: Path) -> None:
    dispute(run, 3)
    look = second_look(run, agreements=5)
    assert sum(pair.weight for pair in look.agreements) == pytest.approx(24 - 3)
    assert not any(pair.disagreement for pair in look.agreements)
    drawn = [
        [pair.question.id for pair in second_look(run, agreements=5, seed=seed).agreements] for seed in (0, 0, 1, 2)
    ]
    assert drawn[0] == drawn[1]
    assert drawn[1:] != [drawn[0]] * 3
    assert second_look(run, agreements=0).agreements == ()
    with pytest.raises(InputError, match="agreements must be 0 or more; got -1"):
        second_look(run, agreements=-1)


def test_what_counts_as_a_disagreement() -> None:
    question = Question("q", "?", Answer("number", "4"))
    verdicts = {name: Verdict(name, None if name == "no_answer" else "4", "x") for name in VERDICTS}  # type: ignore[arg-type]
    differ = {
        (one, two)
        for one in VERDICTS
        for two in VERDICTS[:3]
        if Pair(question, "", verdicts[one], verdicts[two], 1, 1.0).disagreement
    }
    assert differ == {
        ("correct", "incorrect"),
        ("correct", "no_answer"),
        ("incorrect", "correct"),
        ("no_answer", "correct"),
        *(("not_scored", two) for two in VERDICTS[:3]),
    }


VERDICTS = ("correct", "incorrect", "no_answer", "not_scored")


def test_a_run_must_be_graded(tmp_path: Path) -> None:
    folder = sample("simulated", "mini-exam", k=1, limit=1, store=tmp_path).folder
    with pytest.raises(InputError, match="is not graded; grade it with"):
        second_look(folder)


# --- the page


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def hostile(run: Path, pairs: int = 1) -> SecondLook:
    question = Question(f"q{BAD}", BAD, Answer("short", f"gold{BAD}", (f"alias{BAD}",) * 40))
    pair = Pair(question, BAD + "x" * 100_000, Verdict("correct", BAD, BAD), Verdict("incorrect", BAD, BAD), 3, 3.0)
    return replace(second_look(run), disagreements=(pair,) * pairs, agreements=(pair,))


def test_text_of_models_cannot_leave_its_place(run: Path) -> None:
    text = page(hostile(run))
    parser = Tags()
    parser.feed(text)
    names = [tag for tag, _ in parser.tags]
    assert names.count("script") == 1
    assert "img" not in names
    assert not any(name.startswith("on") for _, attributes in parser.tags for name in attributes)
    assert len(text) < 60_000
    assert not re.search("[\ud800\x00\u202e]", text)
    row = next(attributes["data-row"] for tag, attributes in parser.tags if tag == "article")
    assert json.loads(str(row))["question_id"] == f"q{BAD}"


def test_the_page_needs_nothing_from_outside_and_runs_only_its_script(run: Path, tmp_path: Path) -> None:
    dispute(run, 3)
    look = second_look(run)
    assert write_page(look, tmp_path / "page.html") == len(look.disagreements) + len(look.agreements)
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert not re.findall(r"(?:https?:)?//[a-z]", re.sub(r"<pre.*?</pre>", "", text, flags=re.DOTALL))
    assert "default-src 'none'" in text
    assert "prefers-color-scheme: dark" in text
    for pair in look.disagreements:
        assert html.escape(pair.question.id) in text
    rows = [json.loads(html.unescape(row)) for row in re.findall(r'data-row="([^"]*)"', text)]
    assert rows == [label_row(pair) for pair in (*look.disagreements, *look.agreements)]


def test_long_lists_are_cut_and_say_so(run: Path) -> None:
    text = page(hostile(run, MOST_LISTED + 7))
    assert f"The {MOST_LISTED} most frequent of {MOST_LISTED + 7} are listed." in text
    assert text.count("<article") == MOST_LISTED + 1


def test_a_page_that_cannot_be_written_is_one_line(run: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot write .*: Is a directory"):
        write_page(second_look(run), tmp_path)


# --- labels


def write(path: Path, *rows: object) -> Path:
    path.write_text(
        "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows), encoding="utf-8"
    )
    return path


ROW = {
    "question_id": "q",
    "extracted": None,
    "first": "correct",
    "second": "no_answer",
    "samples": 2,
    "weight": 2.0,
    "correct": True,
}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "has no labels; make some with: capcal grade --audit OUT.html"),
        (["{"], "line 1: not valid JSON"),
        (["[" * 100_000], "line 1: not valid JSON"),
        ([ROW, {"question_id": "q"}], "line 2: 'extracted' is missing; a row has question_id, extracted, first"),
        ([[1]], "line 1: 'question_id' is missing"),
        ([{**ROW, "correct": "yes"}], "line 1: 'correct' must be true, false or null; got 'yes'"),
        ([{**ROW, "weight": -1}], "line 1: 'weight' must be a number from 0; got -1"),
    ],
)
def test_labels_that_are_none(tmp_path: Path, rows: list[object], message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        read_labels(write(tmp_path / "labels.jsonl", *rows))


def test_labels_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read .*: No such file"):
        read_labels(tmp_path / "none.jsonl")


def test_agreement_is_the_weighted_share() -> None:
    labels = pd.DataFrame(
        {
            "first": ["correct", "incorrect", "no_answer", "correct", "not_scored", "correct"],
            "second": ["correct"] * 6,
            "correct": [1.0, 1.0, 0.0, 0.0, 1.0, float("nan")],
            "weight": [5.0, 1.0, 2.0, 2.0, 9.0, 9.0],
        }
    )
    share = agreement(labels)
    assert share.estimate == pytest.approx(7 / 10)
    assert 0 < share.low < 0.7 < share.high < 1
    assert agreement(labels, "second").estimate == pytest.approx(15 / 19)
    many = pd.concat([labels] * 50)
    assert agreement(many).high - agreement(many).low < (share.high - share.low) / 4
    with pytest.raises(InputError, match="no answer is labelled right or wrong"):
        agreement(labels[labels["correct"].isna()])


# --- the grader's own error, on answers of real models that were labelled by hand


def test_the_grader_agrees_with_the_labels() -> None:
    labels = read_labels(LABELS)
    assert labels["correct"].notna().sum() >= 400
    assert (labels["first"] == "correct").ne(labels["second"] == "correct").sum() >= 50
    assert agreement(labels).estimate >= 0.995
    assert agreement(labels[labels["correct"] == 0]).estimate == 1.0  # no false positive


def test_the_labels_speak_of_this_grader() -> None:
    """The verdicts in the file are those that the grader gives now, wherever the response is there."""
    rows = [json.loads(line) for line in LABELS.read_text(encoding="utf-8").splitlines()]
    rows = [row for row in rows if "response" in row and "/mini-" in row["run"]]
    assert len(rows) >= 350
    answers: dict[str, Answer] = {}
    for run in {row["run"] for row in rows}:
        dataset, split = run.split("/")[1].rsplit("-", 1)
        answers |= {question.id: question.answer for question in load_questions(dataset, split)}
    verdicts = grade_many([(row["response"], answers[row["question_id"]]) for row in rows])
    assert [(verdict.verdict, verdict.extracted) for verdict in verdicts] == [
        (row["first"], row["extracted"]) for row in rows
    ]


# --- the command


def test_the_command_writes_the_page_and_reads_labels(tmp_path: Path) -> None:
    sample("simulated", "mini-exam", k=2, limit=3, store=tmp_path)
    grade = ["grade", "--model", "simulated", "--dataset", "mini-exam", "--store", str(tmp_path)]
    done = CliRunner().invoke(app, [*grade, "--audit", str(tmp_path / "page.html")])
    assert done.exit_code == 0
    assert "two graders disagree on 0.00% [0.00%, 0.00%] of samples" in done.output
    assert (tmp_path / "page.html").exists()
    done = CliRunner().invoke(app, [*grade, "--labels", str(LABELS)])
    assert done.exit_code == 0
    for what in ("agreement with the labels", "sensitivity", "specificity"):
        assert re.search(rf"^{what} (99|100)\.\d\d% \[9\d\.\d\d%, (99|100)\.\d\d%\]$", done.output, re.MULTILINE)
    assert "expected accuracy, corrected for these" in done.output


def test_accuracy_is_corrected_for_the_error_that_labels_tell(run: Path) -> None:
    mean = (read_verdicts(run)["verdict"] == "correct").mean()
    labels = pd.DataFrame(
        {
            "first": ["correct"] * 80 + ["incorrect"] * 120,
            "correct": [1.0] * 100 + [0.0] * 100,
            "weight": [1.0] * 200,
        }
    )
    assert corrected_accuracy(run, labels).estimate == pytest.approx(min(1.0, mean / 0.8))


def test_recorded_runs_are_disputed_seldom() -> None:
    folder = find_run(RECORDED_RUNS, "smollm2-135m", "mini-exam", "train")
    look = second_look(folder)
    assert 0 < look.by_sample.estimate < 0.01
