"""Logs that other harnesses wrote about questions made for these tests; and files that nobody
should trust.
"""

import gzip
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from capcal_lib.confidence.of_run import estimate
from capcal_lib.errors import InputError
from capcal_lib.grading.judgements import judge_run
from capcal_lib.grading.verdicts import grade_run, read_verdicts
from capcal_lib.io import importing
from capcal_lib.io.importing import import_samples
from capcal_lib.manifests import load_dataset, load_model, write_new
from capcal_lib.places import OWN_MANIFESTS
from capcal_lib.questions import load_questions, subjects_of
from capcal_lib.results import Counting, costs, load_results
from capcal_lib.runs import Run
from capcal_lib.runs.merge import merge
from capcal_lib.runs.status import run_status
from capcal_lib.runs.store import read_samples
from tests.folders import list_runs, verify_run
from tests.io.files import batch, reply, write

LOGS = Path(__file__).parent / "logs"
HOT = {"temperature": 1.0}
Take = Callable[..., importing.Imported]


@pytest.fixture
def take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Take:
    (tmp_path / "own").mkdir()
    monkeypatch.setenv(OWN_MANIFESTS, str(tmp_path / "own"))

    def take(
        *files: Path, model: str = "toy", dataset: str = "counts", **more: Any
    ) -> importing.Imported:
        return import_samples(files, model=model, dataset=dataset, store=tmp_path / "store", **more)

    return take


def outcomes(folder: Path) -> dict[str, list[str]]:
    grade_run(Run(folder))
    table = read_verdicts(Run(folder))
    return {str(name): group["verdict"].tolist() for name, group in table.groupby("question_id")}


def test_a_log_of_lm_evaluation_harness(take: Take, tmp_path: Path) -> None:
    done = take(LOGS / "samples_counts.jsonl")
    assert (done.new, done.present, done.run.identity.seed) == (9, 0, 0)
    texts = read_samples(done.run).groupby("question_id")["response"].agg(list).to_dict()
    assert texts["0"] == ["8", "The answer is 6", "seven"]
    # four replies in turn: 8, 6, seven, 7; the answers are 8, 6 and 7
    right, wrong = "correct", "incorrect"
    assert outcomes(done.run.folder)["0"][:2] == [right, wrong]
    assert outcomes(done.run.folder)["1"] == [wrong, wrong, right]
    assert outcomes(done.run.folder)["2"][1:] == [right, wrong]
    assert load_dataset("counts").kind == "number"
    assert load_questions("counts")[0].text == "How many legs does a spider have?"
    assert load_model("toy").sampling.temperature == 0.7
    checked = verify_run(done.run)
    assert checked.problems == []
    assert "imported from samples_counts.jsonl (sha256 " in str(checked)
    assert run_status(done.run)["lacking"] == 0
    assert load_results(tmp_path / "store", "toy")["correct"].tolist() == [1, 1, 2]
    again = take(LOGS / "samples_counts.jsonl")
    assert (again.new, again.present, again.run.folder) == (0, 9, done.run.folder)
    assert not any(note.startswith("wrote ") for note in again.notes)


def test_a_model_of_imported_samples_is_not_asked(take: Take) -> None:
    run = take(LOGS / "samples_counts.jsonl").run
    with pytest.raises(InputError, match=r"capcal confidence --model .* --store .* --from FILE"):
        estimate(run, "p-true")
    grade_run(run)
    assert run_status(run)["command"] == ""
    [part] = run.folder.glob("samples-*.parquet")
    part.unlink()
    assert run_status(run)["command"] == f"capcal import FILE {run.options}"


def test_a_log_of_inspect_with_epochs(take: Take) -> None:
    done = take(LOGS / "counts.eval")
    samples = read_samples(done.run)
    assert samples.groupby("question_id").size().to_dict() == {"3": 3, "w1": 3, "w2": 3}
    assert set(samples["completion_tokens"]) == {3}
    assert load_model("toy").sampling.temperature == 0.7
    two = next(one for one in load_questions("counts") if one.id == "w2").answer
    assert (two.kind, two.gold, two.aliases) == ("number", "6", ("six",))
    for row, verdict in zip(samples.itertuples(), read_verdicts_of(done.run.folder), strict=True):
        gold = {"3": "7", "w1": "8", "w2": "6"}[row.question_id]
        assert (verdict == "correct") == (gold in row.response), "as inspect's match says it"


def read_verdicts_of(folder: Path) -> list[str]:
    grade_run(Run(folder))
    return read_verdicts(Run(folder))["verdict"].tolist()


def test_choices_and_given_verdicts(take: Take, tmp_path: Path) -> None:
    graded = take(LOGS / "even.eval", dataset="even", settings=HOT, regrade=True)
    question = load_questions("even")[0]
    assert question.text == "Which is even?\nA. 1\nB. 2\nC. 3"
    assert question.answer.gold == "B"
    theirs = take(LOGS / "even.eval", dataset="even", model="other", settings=HOT)
    assert (graded.judged, theirs.judged) == (False, True)
    assert read_verdicts_of(graded.run.folder) == read_verdicts(theirs.run)["verdict"].tolist()
    assert sorted(read_verdicts(theirs.run)["verdict"]) == ["correct", "incorrect"]
    before = (theirs.run.folder / "verdicts.parquet").read_bytes()
    assert grade_run(theirs.run).new == 0
    take(LOGS / "even.eval", dataset="even", model="other", settings=HOT)
    assert (theirs.run.folder / "verdicts.parquet").read_bytes() == before
    assert verify_run(theirs.run).problems == []
    assert run_status(theirs.run)["verdicts"] == "yes"
    [merged] = merge(tmp_path / "both", [theirs.run.folder])
    assert merged.notes == ()
    assert len(load_results(tmp_path / "both", "other")) == 1


def test_batch_output_on_questions_that_are_known(take: Take, tmp_path: Path) -> None:
    one, two = load_questions("mini-capitals")[:2]
    cut = partial(reply, finish_reason="length")
    rows = [
        batch(one.id, cut(one.answer.gold), cut("Atlantis")),
        batch(two.id, cut(two.answer.gold)),
        batch(two.id, status=500),
    ]
    names = {"model": "simulated", "dataset": "mini-capitals"}
    done = take(write(tmp_path / "out.jsonl", *rows), **names)
    assert done.new == 3
    assert done.notes[0] == "1 request without a response left out"
    samples = read_samples(done.run).set_index("question_id")
    assert samples.loc[two.id, "completion_tokens"] == 4
    assert set(samples["finish_reason"]) == {"length"}
    assert outcomes(done.run.folder) == {one.id: ["correct", "incorrect"], two.id: ["correct"]}
    assert verify_run(done.run).problems == [], "of which there are not equally many"
    assert costs(Counting(tmp_path / "store", "simulated")).empty, "nobody was asked"
    more = write(tmp_path / "more.jsonl", batch(one.id, cut("a third")))
    done = take(tmp_path / "out.jsonl", more, **names)
    assert (done.new, done.present) == (1, 3)


TABLE = [
    {"key": "a", "n": 0, "said": "Rome", "right": "Rome", "ok": "correct"},
    {"key": "a", "n": 1, "said": "Oslo", "right": "Rome", "ok": "incorrect"},
    {"key": "b", "n": 0, "said": "", "right": "Oslo", "ok": "no_answer"},
]
MAPPED = {"question_id": "key", "sample": "n", "response": "said", "gold": "right"}


@pytest.mark.parametrize(
    ("suffix", "what"),
    [(".jsonl.gz", "gold"), (".csv", "gold"), (".parquet", "gold"), (".csv", "verdict")],
)
def test_any_table_with_mapped_columns(take: Take, tmp_path: Path, suffix: str, what: str) -> None:
    path, table = tmp_path / f"mine{suffix}", pd.DataFrame(TABLE)
    columns = MAPPED if what == "gold" else {**MAPPED, "verdict": "ok"}
    if what == "verdict":
        del columns["gold"]
    if suffix == ".csv":
        table.to_csv(path, index=False)
    elif suffix == ".parquet":
        table.to_parquet(path)
    else:
        path.write_bytes(gzip.compress(table.to_json(orient="records", lines=True).encode()))
    done = take(path, columns=columns, settings={"temperature": 0.5, "top_p": 0.9})
    assert outcomes(done.run.folder) == {"a": ["correct", "incorrect"], "b": ["no_answer"]}
    assert verify_run(done.run).problems == []
    assert set(read_samples(done.run)["finish_reason"]) == {"stop"}
    assert (load_model("toy").sampling.temperature, load_model("toy").sampling.top_p) == (0.5, 0.9)
    if what == "verdict":
        with pytest.raises(InputError, match="grades short and mathematical answers only"):
            judge_run(done.run, "simulated")


def test_settings_of_a_csv_are_numbers(take: Take, tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("id,gold,response,temperature,top_p,max_tokens\na,2,2,0.7,,64\n")
    take(path)
    sampling = load_model("toy").sampling
    assert (sampling.temperature, sampling.max_tokens) == (0.7, 64)
    path.write_text("id,gold,response,temperature\na,2,2,hot\n")
    with pytest.raises(
        InputError, match=r"mine\.csv, row 0: .* has a temperature that is no number: .*hot"
    ):
        take(path)
    path.write_text("id,gold,response\n,2,2\n")
    with pytest.raises(InputError, match=r"mine\.csv, row 0: question '' has no question_id"):
        take(path)


def test_a_benchmark_takes_no_other_answers(take: Take, tmp_path: Path) -> None:
    one = load_questions("mini-capitals")[0]
    row = {"question_id": 7, "question": one.text, "response": "x", "gold": one.answer.gold}
    done = take(write(tmp_path / "a.jsonl", row), model="simulated", dataset="mini-capitals")
    assert read_samples(done.run)["question_id"].tolist() == [one.id], "found by its text"
    for change, message in (
        (
            {"gold": "Atlantis"},
            r"with the answer 'Atlantis', in mini-capitals .*; is this the right --dataset",
        ),
        (
            {"question": "What?"},
            r"question '7' of the file is not in mini-capitals, whose ids look like",
        ),
    ):
        with pytest.raises(InputError, match=message):
            take(
                write(tmp_path / "a.jsonl", row | change),
                model="simulated",
                dataset="mini-capitals",
            )
    assert len(list_runs(tmp_path / "store")) == 1


def good(**change: Any) -> dict[str, Any]:
    return {"question_id": "q", "response": "1", "gold": "1"} | change


BAD: dict[str, tuple[Any, str]] = {
    "empty": ("", "the table has no rows"),
    "deep": ("[" * 100_000, "cannot be read: line 1: maximum recursion"),
    "no response": ([{"question_id": "q"}], "no column response; needed"),
    "no temperature": (
        [good()],
        "at which temperature 'toy' was sampled; say it: --temperature 0.7",
    ),
    "no gold": ([{"question_id": "q", "response": "1", "t": 1}], "neither answers nor verdicts"),
    "a lone gold": ([good(), good(question_id="r", gold=None)], "neither answers nor verdicts"),
    "another gold": (
        [good(), good(gold="2")],
        "has another answer, text or subject in an earlier row; mend",
    ),
    "twice": (
        [good(sample=0), good(sample=0, response="2")],
        "row 1: question 'q' has the sample of an earlier one; give one of the logs, or table.",
    ),
    "no number": (
        [good(sample="first")],
        "row 0: question 'q' has a sample that is no number: {'sample': 'first'}",
    ),
    "half a log": ([{"doc_id": 0, "resps": [["a"]]}], "bad.jsonl, row 0: no 'arguments'"),
    "half a batch": (
        [{"custom_id": "q", "response": [1]}],
        "bad.jsonl, row 0: 'list' object has no",
    ),
}


def test_a_response_that_was_left_out_leaves_a_gap_which_a_later_file_fills(
    take: Take, tmp_path: Path
) -> None:
    rows = [good(sample=0), good(sample=1, response=None), good(sample=2, response="2")]
    first = take(write(tmp_path / "a.jsonl", *rows), settings={"temperature": 0.7})
    assert "1 request without a response left out" in first.notes
    assert read_samples(first.run)["sample_index"].tolist() == [0, 2]
    assert outcomes(first.run.folder) == {"q": ["correct", "incorrect"]}
    mended = [*rows[::2], good(sample=1, response="3")]
    again = take(write(tmp_path / "b.jsonl", *mended), settings={"temperature": 0.7})
    assert (again.new, again.present) == (1, 2)
    assert read_samples(again.run)["response"].tolist() == ["1", "3", "2"]


def test_a_setting_that_is_given_goes_before_that_of_the_file(take: Take, tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", good(temperature=0.2))
    assert take(path, settings={"temperature": 0.7}).run.identity.sampling.temperature == 0.7


@pytest.mark.parametrize(("rows", "message"), BAD.values(), ids=BAD)
def test_a_bad_file_is_one_line_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: Any, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "bad.jsonl"
    path.write_text(rows) if isinstance(rows, str) else write(path, *rows)
    settings = {} if "temperature" in message else HOT
    with pytest.raises(InputError) as refused:
        import_samples([path], model="toy", dataset="mine", store=Path("store"), settings=settings)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)
    assert [*tmp_path.rglob("*")] == [path]


def test_a_killed_import_is_given_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "capcal.d" / "datasets"
    folder.mkdir(parents=True)
    path = write(tmp_path / "a.jsonl", good())
    (folder / "mine.jsonl").write_text("half")  # of one that was killed before its manifest
    names = {"model": "toy", "dataset": "mine", "store": Path("store")}
    assert import_samples([path], settings=HOT, **names).new == 1
    with pytest.raises(InputError, match="exists already"):
        write_new("dataset", "mine")
    (folder / "other.jsonl").write_text("half")
    assert write_new("dataset", "other")[-1].name == "other.yaml"
    assert len(load_questions("other")) == 3


@settings(
    max_examples=25,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(damage=st.data())
@pytest.mark.usefixtures("take")
def test_a_damaged_log_is_refused_in_one_line_or_read(
    tmp_path_factory: pytest.TempPathFactory, damage: st.DataObject
) -> None:
    name = damage.draw(st.sampled_from(["counts.eval", "counts.json", "samples_counts.jsonl"]))
    content = bytearray((LOGS / name).read_bytes())
    for _ in range(damage.draw(st.integers(1, 4))):
        content[damage.draw(st.integers(0, len(content) - 1))] = damage.draw(st.integers(0, 255))
    folder = tmp_path_factory.mktemp("damaged")
    path = folder / name
    path.write_bytes(content[: damage.draw(st.integers(len(content) // 2, len(content)))])
    names = {"model": "toy", "dataset": f"d{folder.name}", "store": folder}
    try:
        import_samples([path], settings=HOT, **names)
    except InputError as error:
        refused, written = str(error), [*folder.glob("toy")]
    else:
        return
    assert "\n" not in refused
    assert written == []


@pytest.mark.parametrize("name", ["../../x", "", "x" * 200])
def test_a_name_that_is_no_part_of_a_path_is_refused(take: Take, tmp_path: Path, name: str) -> None:
    file = write(tmp_path / "a.jsonl", good())
    for names in ({"model": name}, {"dataset": name}):
        with pytest.raises(InputError, match="invalid name"):
            take(file, settings=HOT, **names)
    assert not any(one.is_file() for one in (tmp_path / "own").rglob("*"))


def test_other_content_under_the_number_of_a_sample_is_refused(take: Take, tmp_path: Path) -> None:
    take(write(tmp_path / "a.jsonl", good()), settings=HOT)
    more = write(tmp_path / "b.jsonl", good(response="2"))
    with pytest.raises(
        InputError, match=r"sample 0 of question 'q' is another in .*; nothing .* all files at once"
    ):
        take(more)
    run = Run(list_runs(tmp_path / "store")[0])
    assert read_samples(run)["response"].tolist() == ["1"]
    take(tmp_path / "a.jsonl", more)
    assert read_samples(run)["response"].tolist() == ["1", "2"]


def test_odd_names_and_texts_survive(take: Take, tmp_path: Path) -> None:
    odd = "ä/../\x1b[2J\n𝕏"
    folder = tmp_path / "a b\udcff"
    folder.mkdir()
    row = good(question_id=odd, response="\ud800 1", question=f"{odd}?")
    done = take(write(folder / "x.jsonl", row), settings={"temperature": 0.0})
    assert read_samples(done.run)[["question_id", "response"]].to_numpy().tolist() == [[odd, " 1"]]
    assert verify_run(done.run).problems == []
    assert "\x1b" not in str(verify_run(done.run))
    shutil.rmtree(folder)
    assert done.run.record.identity.sampling.temperature == 0


def test_samples_are_numbered_as_they_come(take: Take, tmp_path: Path) -> None:
    rows = [
        {"question_id": name, "response": f"{name} {number}", "verdict": number % 2, "t": 0}
        for number in range(5)
        for name in "ba"
    ]
    done = take(write(tmp_path / "a.jsonl", *rows), settings=HOT)
    assert done.new == 10
    samples = read_samples(done.run)
    assert samples["response"].tolist() == [f"{name} {n}" for name in "ab" for n in range(5)]
    verdicts = read_verdicts(done.run)
    of_five = [*["incorrect", "correct"] * 2, "incorrect"]
    assert verdicts["verdict"].tolist() == of_five * 2
    assert verify_run(done.run).problems == []


@pytest.mark.parametrize(("subject", "clustered"), [("law", True), (None, False)])
def test_subjects_of_imported_questions_vary_as_a_whole(
    take: Take, tmp_path: Path, subject: str | None, clustered: bool
) -> None:
    """Where one question lacks its subject, each is a group of its own."""
    rows = [
        {"question_id": f"q{n}", "response": "4", "gold": "4", "subject": name}
        for n, name in enumerate(["art", "art", subject])
    ]
    take(write(tmp_path / "mine.jsonl", *rows), settings=HOT)
    assert load_dataset("counts").clustered == clustered
    ids = ["q0", "q1", "q2"]
    found = subjects_of("counts", "test", ids)
    assert found == (["art", "art", "law"] if clustered else None)
