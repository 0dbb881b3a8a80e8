"""Whose sample is it: two runs are told apart, and a sample counts once however often it comes."""

import json
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


def test_two_models_in_one_folder_of_the_harness_are_named(tmp_path: Path) -> None:
    write(tmp_path / "out" / "org__a" / f"samples_gsm8k_{ONE}.jsonl", *ten("4"))
    write(tmp_path / "out" / "org__b" / f"samples_gsm8k_{TWO}.jsonl", *ten("5"))
    with pytest.raises(
        InputError, match=r"out: samples of several runs, with model org__a, org__b"
    ):
        read_file(tmp_path / "out")
    assert accuracy(tmp_path / "out" / "org__a") == (10, 10)


def test_two_models_beside_each_other_are_named_by_their_results(tmp_path: Path) -> None:
    """As --output_path out/a.json writes them, without a folder a model."""
    for name, text, time in (("a", "4", ONE), ("b", "5", TWO)):
        write(tmp_path / f"samples_gsm8k_{time}.jsonl", *ten(text))
        results = {"results": {}, "configs": {}, "model_name": f"org/{name}"}
        (tmp_path / f"{name}_{time}.json").write_text(json.dumps(results))
    with pytest.raises(InputError, match=r"with model org__a, org__b"):
        read_file(tmp_path)


def test_two_models_of_inspect_are_named(tmp_path: Path) -> None:
    spec = {"task": "t", "task_id": "T"}
    for name, score in (("a", "C"), ("b", "I")):
        samples = [epoch(number, score) for number in range(5)]
        inspect(tmp_path / f"{name}.eval", *samples, eval=spec | {"model": f"lab/{name}"})
    with pytest.raises(InputError, match="samples of several runs, with model lab/a, lab/b; give"):
        read_file(tmp_path)


def test_two_models_of_a_batch_are_named(tmp_path: Path) -> None:
    rows = [batch(f"q{n}", reply("4")) for n in range(2)]
    rows[1]["response"]["body"]["model"] = "gpt-4o-2024-08-06"
    with pytest.raises(
        InputError, match="with model gpt-4o-mini-2024-07-18, gpt-4o-2024-08-06; give"
    ):
        read_log([write(tmp_path / "out.jsonl", *rows)])


@pytest.mark.parametrize(
    ("name", "values"),
    [("model", ("a", "b")), ("max_tokens", (9, 10)), ("reasoning_effort", ("low", "high"))],
)
@pytest.mark.parametrize("form", ["rows.jsonl", "rows.csv", "confidences.csv", "key.csv"])
def test_two_runs_in_one_table_are_named(
    tmp_path: Path, name: str, values: tuple[Any, Any], form: str
) -> None:
    """Of samples, of confidences, or of counts."""
    rows = [
        {"question_id": f"q{n % 5}", name: values[n // 5], "response": "x", "verdict": n // 5}
        for n in range(10)
    ]
    path, key = tmp_path / form, None
    if form == "rows.jsonl":
        write(path, *rows)
    elif form == "rows.csv":
        lines = [",".join(map(str, row.values())) for row in rows]
        path.write_text("\n".join([",".join(rows[0]), *lines]))
    elif form == "confidences.csv":
        lines = [f"{row['question_id']},{row[name]},0.5,{row['verdict']}" for row in rows]
        path.write_text("\n".join([f"question_id,{name},confidence,correct", *lines]))
    else:
        key = path
        lines = [f"{row['question_id']},{row[name]},{row['verdict']}" for row in rows]
        key.write_text("\n".join([f"question_id,{name},correct", *lines]))
        path = tmp_path / "mine.csv"
        path.write_text("question_id,confidence\nq0,0.5\n")
    said = f"{form}: samples of several runs, with {name} {values[0]}, {values[1]}; give each run"
    with pytest.raises(InputError, match=said):
        read_file(path, key=key)


def test_two_temperatures_and_two_prompts_of_one_model_are_told_apart(tmp_path: Path) -> None:
    cold = write(tmp_path / "m" / f"samples_a_{ONE}.jsonl", *ten("4", temperature=0.1))
    warm = write(tmp_path / "m" / f"samples_a_{TWO}.jsonl", *ten("5", temperature=0.9))
    with pytest.raises(InputError, match=r"several runs, with temperature 0\.1, 0\.9"):
        read_log([cold, warm])
    shots = ten("5", temperature=0.1)
    for row in shots:
        row["arguments"]["gen_args_0"]["arg_0"] = "What is 1?\n4\n\nWhat?"
    with pytest.raises(InputError, match="question '0' was asked in two ways, with another pr"):
        read_log([cold, write(warm, *shots)])
    greedy = ten("5", temperature=0.1)
    for row in greedy:
        row["arguments"]["gen_args_0"]["arg_1"]["top_k"] = 1
    with pytest.raises(InputError, match="question '0' was asked in two ways"):
        read_log([cold, write(warm, *greedy)])
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
    inspect(tmp_path / "a.eval", epoch(0, "C"))
    inspect(tmp_path / "b.eval", epoch(0, "I"), plan=plan)
    with pytest.raises(InputError, match="question '0' was asked in two ways"):
        read_file(tmp_path)
    again = {"steps": [{"solver": "generate"}], "config": {"seed": 7, "max_connections": 2}}
    inspect(tmp_path / "b.eval", epoch(0, "I", response="It is not."), plan=again)
    assert accuracy(tmp_path) == (1, 2), "another seed is another draw"


def test_two_tasks_on_the_same_documents_are_named(tmp_path: Path) -> None:
    files = [
        write(tmp_path / f"samples_{task}_{ONE}.jsonl", *ten(text))
        for task, text in (("gsm8k", "4"), ("gsm8k_cot", "5"))
    ]
    said = "question '0' is of several tasks, gsm8k, gsm8k_cot; give each task apart"
    with pytest.raises(InputError, match=said):
        read_log(files)
    rows = [
        {"question_id": f"q{n % 5}", "task": "ab"[n // 5], "response": "x", "verdict": n // 5}
        for n in range(10)
    ]
    with pytest.raises(InputError, match="question 'q0' is of several tasks, a, b"):
        read_file(write(tmp_path / "rows.jsonl", *rows))
    lines = [f"{row['question_id']},{row['task']},0.5,{row['verdict']}" for row in rows]
    path = tmp_path / "mine.csv"
    path.write_text("\n".join(["question_id,dataset,confidence,correct", *lines]))
    with pytest.raises(InputError, match="question 'q0' is of several tasks, a, b"):
        read_file(path)


def test_the_same_command_again_is_a_copy_and_another_draw_is_none(tmp_path: Path) -> None:
    texts = ["4" if number < 6 else "5" for number in range(10)]
    first = [hot(number, text) for number, text in enumerate(texts)]
    one = write(tmp_path / "m" / f"samples_gsm8k_{ONE}.jsonl", *first)
    two = write(tmp_path / "m" / f"samples_gsm8k_{TWO}.jsonl", *first)
    found = read_file(tmp_path / "m")
    assert found.table["total"].tolist() == [1] * 10
    assert f"{two}: 10 samples left out: they are those of {one} again" in found.notes
    write(two, *first[:9], hot(9, "4"))
    assert accuracy(tmp_path / "m") == (13, 20), "another draw, in which one answer differs"
    write(two, *first, *(hot(number, "4") for number in range(10, 12)))
    assert accuracy(tmp_path / "m") == (8, 12), "a copy that goes on"


def test_a_retried_log_beside_the_failed_one_counts_once(tmp_path: Path) -> None:
    spec = {"eval": {"task": "t", "task_id": "T", "model": "m"}}
    done = [epoch(number, "C") for number in range(6)]
    failed = epoch(6, {}, error={"message": "boom", "traceback": "", "traceback_ansi": ""})
    inspect(tmp_path / "1_t.eval", *done, failed, status="error", **spec)
    rest = [epoch(number, "I") for number in range(6, 10)]
    inspect(tmp_path / "2_t.eval", *done, *rest, **spec)
    found = read_file(tmp_path)
    assert found.table["total"].tolist() == [1] * 10
    assert found.notes[0] == "6 repeated rows left out: the same sample again"
    assert not any("without a response" in note for note in found.notes), "it was tried again"
    again = [epoch(number, "C", response="Another draw.") for number in range(6)]
    inspect(tmp_path / "3_t.eval", *again, eval={"task": "t", "task_id": "U", "model": "m"})
    assert accuracy(tmp_path) == (12, 16)


def test_a_scored_copy_counts_once_with_the_scores_of_both(tmp_path: Path) -> None:
    samples = [epoch(number, {"match": {"value": "C"}}) for number in range(3)]
    scored = [sample | {"scores": {"judge": {"value": "I"}}} for sample in samples]
    inspect(tmp_path / "a.eval", *samples)
    inspect(tmp_path / "a-scored.eval", *scored)
    assert accuracy(tmp_path, scorer="match") == (3, 3)
    assert accuracy(tmp_path, scorer="judge") == (0, 3)
    changed = [sample | {"scores": {"match": {"value": "I"}}} for sample in samples]
    inspect(tmp_path / "a-scored.eval", *changed)
    with pytest.raises(InputError, match="a sample of question '0' is there twice, with two verd"):
        read_file(tmp_path)
    assert accuracy(tmp_path, regrade=True) == (0, 3)


@pytest.mark.parametrize("form", ["rows.jsonl", "confidences.csv"])
def test_a_numbered_sample_counts_once_or_is_refused(tmp_path: Path, form: str) -> None:
    def table(*verdicts: int) -> Path:
        path = tmp_path / form
        rows = [
            {"question_id": f"q{n}", "sample": 0, "response": "x", "verdict": verdict}
            for verdict in verdicts
            for n in range(10)
        ]
        if form == "rows.jsonl":
            return write(path, *rows)
        lines = [f"{row['question_id']},0,0.5,{row['verdict']}" for row in rows]
        path.write_text("\n".join(["question_id,sample,confidence,correct", *lines]))
        return path

    assert accuracy(table(1, 1)) == (10, 10)
    notes = read_file(table(1, 1)).notes
    assert "10 repeated rows left out: the same sample again" in notes
    with pytest.raises(InputError, match=r"question 'q0' (is there|has a sample) twice, with "):
        read_file(table(0, 1))


def test_a_sample_of_a_table_is_known_by_its_uuid(tmp_path: Path) -> None:
    row = {"question_id": "a", "response": "x", "verdict": 1}
    path = write(tmp_path / "rows.jsonl", *(row | {"uuid": name} for name in "uvuw"))
    assert accuracy(path) == (3, 3)


def test_the_output_of_a_batch_counts_once(tmp_path: Path) -> None:
    rows = [batch(f"q{n}", reply("4"), reply("5")) for n in range(3)]
    files = [write(tmp_path / f"{name}.jsonl", *rows) for name in "ab"]
    assert len(read_log(files).samples) == 6
    other = [batch(f"q{n}", reply("4"), reply("5"), request=f"later{n}") for n in range(3)]
    other[0]["response"]["body"]["choices"][0]["message"]["content"] = "another"
    assert len(read_log([files[0], write(files[1], *other)]).samples) == 12
