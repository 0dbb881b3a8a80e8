"""Rows of lm-evaluation-harness."""

from pathlib import Path

import pytest

from capcal_lib.errors import InputError
from capcal_lib.io.tables import read_file
from tests.io.files import accuracy, harness, read_log, write


def test_the_settings_stand_in_the_request(tmp_path: Path) -> None:
    settings = {"until": [], "temperature": 0.7, "max_gen_toks": 64, "top_p": 0.9}
    row = harness(0, "x", doc={"text": "?"})
    row["arguments"] = {"gen_args_0": {"arg_0": "What?", "arg_1": settings}}
    log = read_log([write(tmp_path / "samples_a.jsonl", row)])
    assert log.items["question"].item() == "What?"
    assert log.settings == {"temperature": 0.7, "max_tokens": 64, "top_p": 0.9}


def test_columns_name_fields_of_a_row(tmp_path: Path) -> None:
    rows = [
        harness(n, "4", doc={"question": f"{n}?", "answer": {"value": "ab"[n]}, "topic": "law"})
        for n in range(2)
    ]
    path = write(tmp_path / "samples_a.jsonl", *rows)
    columns = {"gold": "doc.answer.value", "subject": "doc.topic"}
    items = read_log([path], columns).items
    assert items[["gold", "subject"]].to_numpy().tolist() == [["a", "law"], ["b", "law"]]
    assert accuracy(path) == (2, 2), "the metric's"
    assert accuracy(path, columns={"verdict": "doc_id"}) == (1, 2)
    with pytest.raises(InputError, match="row 0: no 'other'"):
        read_log([path], {"gold": "doc.other"})
    with pytest.raises(InputError, match="unknown column 'golden'; known: "):
        read_log([path], {"golden": "doc.answer"})


def test_metrics_that_an_older_harness_does_not_name_are_its_verdicts(tmp_path: Path) -> None:
    rows = [harness(n, "4", exact_match=[1.0, 0.0, "P"][n % 3]) for n in range(9)]
    named = accuracy(write(tmp_path / "samples_named.jsonl", *rows))
    for row in rows:
        del row["metrics"], row["filter"]
    path = write(tmp_path / "samples_older.jsonl", *rows)
    assert accuracy(path) == named == (3, 6)
    assert read_file(path).notes[0] == "verdicts by exact_match"
    bare = [{name: row[name] for name in row if name != "exact_match"} for row in rows]
    assert accuracy(write(tmp_path / "samples_bare.jsonl", *bare)) == (9, 9), "by the rules"


def test_a_row_without_a_text_is_a_request_without_a_response(tmp_path: Path) -> None:
    log = read_log([write(tmp_path / "samples_a.jsonl", harness(0, "4"), harness(1))])
    assert log.samples["response"].tolist() == ["4"]
    assert log.notes[0] == "1 request without a response left out"


def test_log_likelihoods_are_no_samples(tmp_path: Path) -> None:
    """As of MMLU: a request an option, each with a pair of texts, its score and whether it led."""
    options = {
        f"gen_args_{n}": {"arg_0": "Q\nAnswer:", "arg_1": f" {x}"} for n, x in enumerate("ABCD")
    }
    pairs = [[["-4.3", "False"]], [["-0.1", "True"]], [["-5", "False"]], [["-6", "False"]]]
    row = harness(0, target="1", metrics=["acc"], acc=1.0, arguments=options, resps=pairs)
    said = "samples_mmlu.jsonl, row 0: log-likelihoods of given answers; take a task"
    with pytest.raises(InputError, match=said):
        read_file(write(tmp_path / "samples_mmlu.jsonl", row))


def test_filters_of_a_row_are_of_the_same_samples(tmp_path: Path) -> None:
    rows = [harness(n, "4", "5", "6", filter=kept) for n in (0, 1) for kept in "ab"]
    found = read_file(write(tmp_path / "samples_a.jsonl", *rows))
    assert found.table["total"].tolist() == [3, 3]
    with pytest.raises(
        InputError, match="row 4: question '0' stands there twice; equal lines go by: sort -u"
    ):
        read_file(write(tmp_path / "samples_a.jsonl", *rows, rows[0]))


def test_a_request_that_an_older_harness_lists_is_refused(tmp_path: Path) -> None:
    row = harness(0, "4", arguments=[["What is 0?", {"until": []}]])
    with pytest.raises(InputError, match="row 0: arguments that are a list: a log of an earlier"):
        read_file(write(tmp_path / "samples_a.jsonl", row))
