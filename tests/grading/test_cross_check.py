"""The second opinion, two graders on a run, near misses, and a short fuzz run."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from capcal_lib.cli import app
from capcal_lib.errors import InputError
from capcal_lib.grading import Verdict, grade_many, pool
from capcal_lib.grading.cross_check import cross_check, write_disputed
from capcal_lib.grading.second_opinion import second_opinion
from capcal_lib.grading.verdicts import FILE, SCHEMA, grade_run, read_verdicts
from capcal_lib.manifests import ROOT, Kind
from capcal_lib.questions import Answer
from capcal_lib.runs import Run
from capcal_lib.runs.files import write_table
from capcal_lib.sampling.draw import sample

HERE = ROOT / "tests" / "grading"
NEAR_MISSES = [
    json.loads(line)
    for line in (HERE / "near_misses.jsonl").read_text(encoding="utf-8").splitlines()
]
BAD = "</script><script>alert(1)</script>\"'\u202e\x00\n,"


# --- answers that are nearly equal, and answers that are


def test_near_misses_are_wrong_and_what_is_equal_is_right() -> None:
    verdicts = grade_many(
        [(rf"\boxed{{{pair['response']}}}", Answer("math", pair["gold"])) for pair in NEAR_MISSES]
    )
    wrong = [
        (pair["gold"], pair["response"], verdict.verdict)
        for pair, verdict in zip(NEAR_MISSES, verdicts, strict=True)
        if (verdict.verdict == "correct") != pair["equal"]
    ]
    assert wrong == []
    assert sum(not pair["equal"] for pair in NEAR_MISSES) >= 190
    assert len(NEAR_MISSES) >= 300


def test_the_second_opinion_on_them_is_the_same_or_written_down() -> None:
    """``second`` is what the libraries say of a pair where they are wrong; each of these was looked
    at.
    """
    cases = [(rf"\boxed{{{pair['response']}}}", "math", (pair["gold"],)) for pair in NEAR_MISSES]
    opinions = pool.settle(second_opinion, cases, workers=2, time_limit=3.0)
    found = [
        (pair["gold"], pair["response"], opinion)
        for pair, opinion in zip(NEAR_MISSES, opinions, strict=True)
    ]
    assert found == [
        (pair["gold"], pair["response"], pair.get("second", pair["equal"])) for pair in NEAR_MISSES
    ]


@pytest.mark.parametrize(
    ("kind", "gold", "response", "right"),
    [
        ("math", r"\frac{x+1}{2}", r"\boxed{0.5x+0.5}", True),
        ("math", r"\frac{x+1}{2}", r"\boxed{x+1/2}", False),
        ("math", "(1,2)", r"\boxed{(2,1)}", False),
        ("math", r"3 \pm \sqrt{2}", r"\boxed{3-\sqrt2, 3+\sqrt2}", True),
        ("number", "1234.5", "Some work.\nSo it costs $1,234.50.", True),
        ("number", "7", "7 or 8", False),
        ("number", "0.5", r"\boxed{\frac{1}{2}}", True),
        ("choice", "C", "The answer is C.", True),
        ("choice", "C", "The answer is B.", False),
        ("choice", "C", r"So \boxed{\text{(C) water}}", True),
        ("short", "Marie Curie", "The answer is Marie Currie.", True),
        ("short", "1969", "1970", False),
        ("short", "Paris", "<think>London</think>Paris", True),
        ("number", "7", "", False),
    ],
)
def test_the_second_opinion_reads_and_compares_on_its_own(
    kind: Kind, gold: str, response: str, right: bool
) -> None:
    assert second_opinion(response, kind, (gold,)) is right


# --- a run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = sample("simulated", "mini-exam", k=4, limit=6, store=tmp_path).run.folder
    grade_run(Run(folder))
    return folder


def dispute(folder: Path, rows: int) -> None:
    """Turn the first verdicts round, so that the second grader disputes them."""
    table = read_verdicts(Run(folder))
    table.loc[: rows - 1, "verdict"] = [
        "incorrect" if verdict == "correct" else "correct" for verdict in table["verdict"][:rows]
    ]
    version = pq.read_schema(folder / FILE).metadata[b"grader"]
    written = pa.Table.from_pandas(table, schema=SCHEMA, preserve_index=False)
    write_table(folder / FILE, written.replace_schema_metadata({"grader": version}))


def test_disputed_answers_are_listed_and_their_share_counted(run: Path, tmp_path: Path) -> None:
    calm, share = cross_check(Run(run))
    assert (len(calm), share.estimate) == (0, 0.0)
    dispute(run, 3)  # of one question's four samples
    table, share = cross_check(Run(run))
    assert table["samples"].sum() == 3
    assert table["samples"].is_monotonic_decreasing
    assert share.estimate == pytest.approx(3 / 24)
    assert share.low <= 3 / 24 <= share.high
    for name in ("disputed.csv", "disputed.jsonl"):
        grade = [
            "grade",
            "--model",
            "simulated",
            "--dataset",
            "mini-exam",
            "--store",
            str(tmp_path),
        ]
        done = CliRunner().invoke(app, [*grade, "--audit", str(tmp_path / name)])
        assert "two graders disagree on 12.50%" in done.output
        assert done.exit_code == 0
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "disputed.csv"), table, check_dtype=False)
    pd.testing.assert_frame_equal(
        pd.read_json(tmp_path / "disputed.jsonl", lines=True), table, check_dtype=False
    )


def test_text_of_models_stays_in_its_cell(tmp_path: Path) -> None:
    table = pd.DataFrame({"question_id": ["q"], "response": [BAD], "samples": [1]})
    for name in ("bad.csv", "bad.jsonl"):
        write_disputed(table, tmp_path / name)
    assert json.loads((tmp_path / "bad.jsonl").read_text())["response"] == BAD
    assert pd.read_csv(tmp_path / "bad.csv")["response"].tolist() == [BAD]
    with pytest.raises(InputError, match=r"cannot write .*: it is no regular file"):
        write_disputed(table, tmp_path)


def test_formulas_are_no_formulas_in_a_spreadsheet(tmp_path: Path) -> None:
    said = ["=HYPERLINK(1)", "+1", "@SUM(1)", "-2+3", "\t=1", "-5", "plain", "a=b"]
    write_disputed(pd.DataFrame({"extracted": said, "samples": -1}), tmp_path / "said.csv")
    read = pd.read_csv(tmp_path / "said.csv", dtype={"extracted": str})
    assert read["extracted"].tolist() == [f"'{text}" for text in said[:5]] + said[5:]
    assert read["samples"].tolist() == [-1] * len(said)


def test_a_run_must_be_graded(tmp_path: Path) -> None:
    folder = sample("simulated", "mini-exam", k=1, limit=1, store=tmp_path).run.folder
    with pytest.raises(InputError, match=r"no verdicts in .*; make them with"):
        cross_check(Run(folder))


# --- the fuzz run, in short


def fuzz_module() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "fuzz_grading", ROOT / "benchmarks" / "fuzz_grading.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_nothing_is_lost_in_a_short_fuzz_run() -> None:
    counts, wrong = fuzz_module().fuzz(1_500, seed=7, batch=500)
    assert wrong == []
    assert sum(counts.values()) == 1_500
    assert len({key[1] for key in counts}) >= 3


def test_the_fuzz_run_notices_what_is_lost_or_wrong() -> None:
    faults, pairs = fuzz_module().faults, [("7", Answer("number", "7"))]
    assert faults(pairs, grade_many(pairs)) == []
    assert faults(pairs, []) == ["1 responses, 0 verdicts"]
    assert len(faults(pairs, [Verdict("no_answer", "7", "phrase")])) == 1
