"""Rows of lm-evaluation-harness."""

from pathlib import Path

import pytest

from capcal_lib.errors import InputError
from capcal_lib.io.harness import task_of
from capcal_lib.io.tables import read_file
from tests.io.files import accuracy, harness, read_log, write


@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("samples_gsm8k_2025-01-01T10-00-00.123456.jsonl", "gsm8k"),
        ("samples_mmlu_pro_2025.jsonl", "mmlu_pro_2025"),
        ("samples_a.jsonl.gz", "a"),
        ("my_samples_a.jsonl", "my_samples_a"),
    ],
)
def test_the_task_stands_in_the_name_of_the_file(name: str, task: str) -> None:
    assert task_of(Path("logs", name)) == task


def test_the_settings_stand_in_the_request(tmp_path: Path) -> None:
    settings = {"until": [], "temperature": 0.7, "max_gen_toks": 64, "top_p": 0.9}
    row = harness(0, "x", doc={"text": "?"})
    row["arguments"] = {"gen_args_0": {"arg_0": "What?", "arg_1": settings}}
    log = read_log([write(tmp_path / "samples_a.jsonl", row)])
    [sample] = log.samples.to_dict("records")
    assert (log.items["question"].item(), sample["temperature"]) == ("What?", 0.7)
    assert (sample["max_tokens"], sample["top_p"]) == (64, 0.9)


def test_metrics_that_an_older_harness_does_not_name_are_its_verdicts(tmp_path: Path) -> None:
    rows = [harness(n, "4", exact_match=[1.0, 0.0, "P"][n % 3]) for n in range(9)]
    named = accuracy(write(tmp_path / "samples_named.jsonl", *rows))
    for row in rows:
        del row["metrics"], row["filter"]
    path = write(tmp_path / "samples_older.jsonl", *rows)
    assert accuracy(path) == named == (3, 6)
    assert read_file(path).notes[0] == "verdicts of the log: exact_match; its scorers: exact_match"
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
    said = "samples_mmlu.jsonl, row 0: log-likelihoods of given answers, of which nothing was sam"
    with pytest.raises(InputError, match=said):
        read_file(write(tmp_path / "samples_mmlu.jsonl", row))


def test_repeated_rows_are_no_repeated_samples(tmp_path: Path) -> None:
    padded = [harness(n, "x") for n in (0, 1, 2, 0)]
    path = write(tmp_path / "samples_padded.jsonl", *padded)
    assert accuracy(path) == (3, 3)
    assert read_file(path).notes[0].startswith("1 repeated row left out: the same sample again")
    rows = [harness(n, "x", filter=kept) for n in (0, 1, 0) for kept in "ab"]
    assert accuracy(write(path, *rows)) == (2, 2), "of both filters"
    rows = [harness(n, "4", "4") for n in (0, 1, 0)]
    assert accuracy(write(path, *rows)) == (4, 4), "equal samples of a row are several"
    rows = [harness(n, "4", "5", "6", filter=kept) for n in (0, 1) for kept in "ab"]
    found = read_file(write(path, *rows))
    assert found.table["total"].tolist() == [3, 3]
    assert not any("left out" in note for note in found.notes), "a filter says something new"


def test_a_request_that_an_older_harness_lists_is_refused(tmp_path: Path) -> None:
    row = harness(0, "4", arguments=[["What is 0?", {"until": []}]])
    with pytest.raises(InputError, match="row 0: arguments that are a list, as earlier versions"):
        read_file(write(tmp_path / "samples_a.jsonl", row))
