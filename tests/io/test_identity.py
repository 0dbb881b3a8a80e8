"""Whose sample is it: two runs are told apart, and a sample counts once however often it comes."""

from pathlib import Path
from typing import Any

import pytest

from capcal_lib.errors import InputError
from capcal_lib.io.tables import read_file
from tests.io.files import accuracy, batch, epoch, harness, inspect, read_log, reply, write

ONE, TWO = "2025-01-01T00-00-00.000000", "2025-01-02T00-00-00.000000"


def hot(number: int, text: str, temperature: float = 0.5, **change: Any) -> dict[str, Any]:
    row = harness(number, text, exact_match=float(text == "4"), **change)
    row["arguments"]["gen_args_0"]["arg_1"]["temperature"] = temperature
    return row


def ten(text: str, **change: Any) -> list[dict[str, Any]]:
    return [hot(number, text, **change) for number in range(10)]


def test_two_models_of_a_batch_are_named(tmp_path: Path) -> None:
    rows = [batch(f"q{n}", reply("4")) for n in range(2)]
    rows[1]["response"]["body"]["model"] = "gpt-4o-2024-08-06"
    with pytest.raises(
        InputError, match="with model gpt-4o-mini-2024-07-18, gpt-4o-2024-08-06; give"
    ):
        read_log([write(tmp_path / "out.jsonl", *rows)])


@pytest.mark.parametrize(
    ("name", "values"),
    [("model", "ab"), ("max_tokens", "89"), ("task", "ab"), ("reasoning_effort", "lh")],
)
def test_two_runs_in_one_table_are_named(tmp_path: Path, name: str, values: str) -> None:
    """Of samples, of confidences, or of counts."""
    path, mine = tmp_path / "rows.csv", tmp_path / "mine.csv"
    one, other = values
    mine.write_text("question_id,confidence\na,0.5\n")
    for heads, cells, key in (
        ("response,verdict", "x,1", None),
        ("confidence,correct", "0.5,1", None),
        ("correct", "1", path),
    ):
        path.write_text(f"question_id,{name},{heads}\na,{one},{cells}\na,{other},{cells}\n")
        said = f"samples of several runs, with {name} {one}, {other}; give each run a file"
        with pytest.raises(InputError, match=said):
            read_file(mine if key else path, key=key)


def test_two_models_are_named(tmp_path: Path) -> None:
    files = [
        write(tmp_path / f"org__{name}" / f"samples_gsm8k_{ONE}.jsonl", *ten(text))
        for name, text in (("a", "4"), ("b", "5"))
    ]
    with pytest.raises(InputError, match="samples of several runs, with model org__a, org__b"):
        read_log(files)
    assert accuracy(files[0]) == (10, 10)
    logs = [
        inspect(tmp_path / f"{name}.eval", epoch(0, "C"), eval={"task": "t", "model": name})
        for name in "ab"
    ]
    with pytest.raises(InputError, match="samples of several runs, with model a, b; give"):
        read_log(logs)


def test_two_temperatures_and_two_prompts_of_one_model_are_told_apart(tmp_path: Path) -> None:
    cold = write(tmp_path / "m" / f"samples_a_{ONE}.jsonl", *ten("4", temperature=0.1))
    warm = write(tmp_path / "m" / f"samples_a_{TWO}.jsonl", *ten("5", temperature=0.9))
    with pytest.raises(InputError, match=r"several runs, with temperature 0\.1, 0\.9"):
        read_log([cold, warm])
    for change in ({"arg_0": "What is 1?"}, {"top_k": 1}):
        other = ten("5", temperature=0.1)
        for row in other:
            request = row["arguments"]["gen_args_0"]
            request.update({"arg_0": change["arg_0"]} if "arg_0" in change else {})
            request["arg_1"].update({} if "arg_0" in change else change)
        with pytest.raises(InputError, match="question '0' was asked in two ways"):
            read_log([cold, write(warm, *other)])
    seeded = ten("5", temperature=0.1)
    for row in seeded:
        row["arguments"]["gen_args_0"]["arg_1"]["seed"] = 7
    assert len(read_log([cold, write(warm, *seeded)]).samples) == 20, "another draw"


@pytest.mark.parametrize(
    "plan",
    [
        {"steps": [{"solver": "chain_of_thought"}, {"solver": "generate"}], "config": {}},
        {"steps": [{"solver": "generate"}], "config": {"reasoning_effort": "high"}},
    ],
)
def test_two_solvers_and_two_efforts_of_inspect_are_told_apart(
    tmp_path: Path, plan: dict[str, Any]
) -> None:
    one = inspect(tmp_path / "a.eval", epoch(0, "C"))
    two = inspect(tmp_path / "b.eval", epoch(0, "I", response="No."), plan=plan)
    with pytest.raises(InputError, match="question '0' was asked in two ways"):
        read_log([one, two])
    again = {"steps": [{"solver": "generate"}], "config": {"seed": 7, "max_connections": 2}}
    two = inspect(tmp_path / "b.eval", epoch(0, "I", response="It is not."), plan=again)
    assert len(read_log([one, two]).samples) == 2, "another seed is another draw"


def test_two_tasks_are_named(tmp_path: Path) -> None:
    """They may number other questions alike, or ask the same ones."""
    files = [
        write(tmp_path / f"samples_{task}_{ONE}.jsonl", *ten(text))
        for task, text in (("gsm8k", "4"), ("gsm8k_cot", "5"))
    ]
    said = "samples of several runs, with task gsm8k, gsm8k_cot; give each run a file of its own"
    with pytest.raises(InputError, match=said):
        read_log(files)


def test_the_same_samples_again_are_refused_and_another_draw_is_none(tmp_path: Path) -> None:
    texts = ["4" if number < 6 else "5" for number in range(10)]
    first = [hot(number, text) for number, text in enumerate(texts)]
    one = write(tmp_path / "m" / f"samples_gsm8k_{ONE}.jsonl", *first)
    two = write(tmp_path / "m" / f"samples_gsm8k_{TWO}.jsonl", *first)
    with pytest.raises(InputError, match=f"{two} has the samples of {one} again; give one of them"):
        read_log([one, two])
    assert len(read_log([one, write(two, *first[:9], hot(9, "4"))]).samples) == 20
    with pytest.raises(InputError, match=f"{two} has the samples of {one} again"):
        read_log([one, write(two, *first[5:], hot(10, "4"))])  # of some questions and of others
    with pytest.raises(InputError, match="row 10: question '0' stands there twice"):
        read_log([write(two, *first, *first)])


def test_a_sample_of_two_logs_is_refused(tmp_path: Path) -> None:
    """As a log and its retry have it, or a log and its scored copy."""
    done = [epoch(number, "C") for number in range(6)]
    failed = epoch(6, {}, error={"message": "boom", "traceback": "", "traceback_ansi": ""})
    one = inspect(tmp_path / "1_t.eval", *done, failed, status="error")
    two = inspect(tmp_path / "2_t.eval", *done, epoch(6, "I"))
    with pytest.raises(
        InputError, match=r"2_t\.eval, row 0: question '0' has the uuid of an earlier one; give one"
    ):
        read_log([one, two])
    rows = [batch(f"q{n}", reply("4"), reply("5")) for n in range(3)]
    files = [write(tmp_path / f"{name}.jsonl", *rows) for name in "ab"]
    with pytest.raises(
        InputError, match=r"b\.jsonl, row 0: question 'q0' has the uuid of an earlier one"
    ):
        read_log(files)
    rows = [batch(f"q{n}", reply("4"), reply("6"), request=f"later{n}") for n in range(3)]
    assert len(read_log([files[0], write(files[1], *rows)]).samples) == 12


@pytest.mark.parametrize("name", ["sample", "uuid"])
def test_a_numbered_sample_that_comes_twice_is_refused(tmp_path: Path, name: str) -> None:
    row = {"question_id": "a", "response": "x", "verdict": 1}
    with pytest.raises(InputError, match=f"row 2: question 'a' has the {name} of an earlier one"):
        read_log([write(tmp_path / "rows.jsonl", *(row | {name: n} for n in (1, 2, 1)))])
    rows = [row | {name: 1}, row | {name: 1, "question_id": "b"}]
    path = write(tmp_path / "rows.jsonl", *rows)
    if name == "sample":
        assert accuracy(path) == (2, 2)
    else:
        with pytest.raises(InputError, match="row 1: question 'b' has the uuid of an earlier"):
            read_log([path])
    path = tmp_path / "mine.csv"
    path.write_text("question_id,sample,confidence,correct\na,0,0.5,1\na,0,0.5,0\n")
    with pytest.raises(InputError, match="row 1: question 'a' has a sample twice"):
        read_file(path)
