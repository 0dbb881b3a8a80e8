"""What other harnesses write, as their own reports of faults show it; made up anew."""

import json
import re
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from capcal_lib import rows as row_files
from capcal_lib.errors import InputError
from capcal_lib.io.importing import import_samples
from capcal_lib.io.logs import list_files, read_log
from capcal_lib.io.tables import read_file
from capcal_lib.questions import load_questions


def write(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def inspect(path: Path, *scores: Any, **change: Any) -> Path:
    """A log of ten free answers that no rule could grade, with the scores given."""
    samples = [
        {
            "id": number,
            "epoch": 1,
            "input": f"Explain {number}.",
            "target": "A good explanation.",
            "output": {"choices": [{"message": {"content": "It is so."}}]},
            "scores": score if isinstance(score, dict) else {"judge": {"value": score}},
        }
        | change
        for number, score in enumerate(scores)
    ]
    log = {"version": 2, "status": "success", "eval": {"task": "t"}, "plan": {}, "samples": samples}
    path.write_text(json.dumps(log))
    return path


def harness(number: int, *texts: str, target: Any = "4", **change: Any) -> dict[str, Any]:
    row = {
        "doc_id": number,
        "doc": {"question": f"What is {number}?"},
        "target": target,
        "arguments": {"gen_args_0": {"arg_0": "What?", "arg_1": {"temperature": 0.5}}},
        "resps": [list(texts)],
        "metrics": ["exact_match"],
    }
    return row | change


def accuracy(path: Path, **options: Any) -> tuple[int, int]:
    table = read_file(path, **options).table
    return int(table["correct"].sum()), int(table["total"].sum())


@pytest.mark.parametrize(
    ("values", "right", "scored"),
    [
        (["C"] * 8 + ["I", "P"], 8, 9),
        ([1.0] * 8 + [0.0, "P"], 8, 9),
        ([1] * 8 + [0, float("nan")], 8, 9),
        (["CORRECT"] * 7 + ["INCORRECT", "NOT_ATTEMPTED", ""], 7, 9),
        (["Correct."] * 3 + ["incorrect!", None], 3, 4),
        (["yes"] * 3 + ["No", "n/a"], 3, 4),
        (["Y"] * 3 + ["n", None], 3, 4),
        (["T", "F", "F", None], 1, 3),
        (["P", "F", "P", None], 2, 3),
        (["pass", "FAILED", "right", "wrong", None], 2, 4),
        ([True, False, "true", "False", None], 2, 4),
        ([1.0] * 8 + [-1.0] * 6 + [None], 8, 14),
        ([0, -0.0, 1, None], 1, 3),
        ([100.0, 0.0, 100, None], 2, 3),
        (["100%", "0.0 %", "100 %", ""], 2, 3),
        ([" C ", "i ", "C", "N", "P"], 2, 4),
        (["TRUE", "FALSE", "TRUE", "Partial"], 2, 3),
        (["incorrect", "no_answer", "correct", "not_scored"], 1, 3),
    ],
)
def test_a_verdict_that_is_no_yes_or_no_concerns_its_own_sample(
    tmp_path: Path, values: list[Any], right: int, scored: int
) -> None:
    path = inspect(tmp_path / "log.json", *values)
    assert accuracy(path) == (right, scored)
    [taken, left_out, *_] = read_file(path).notes
    assert taken == "verdicts of the log: judge; its scorers: judge"
    assert left_out.startswith("1 sample without yes or no left out; read as")
    assert "read as yes or no: correct/incorrect" in left_out


UNKNOWN = [
    ([0.65], "0.65"),
    ([0.2, 0.4, 1.0, 0.7], "0.2, 0.4, 0.7, 1"),
    ([1.0] * 8 + [0.0, 0.5], "0, 0.5, 1"),
    (["A", "B", "C-"], "a, b, c-"),
    (["A"] * 10 + ["B"] * 5 + ["C"] * 25, "a, b, c"),
    (["C", "D", "F"], "c, d, f"),
    (["yes"] * 9 + ["perhaps"], "perhaps"),
    ([1, 0, -1], "-1, 0, 1"),
    ([1, 0, 100], "0, 1, 100"),
    ([1, 2, 3, 4, 5], "1, 2, 3, 4, 5"),
    (["C", "I", 1], "1, c, i"),
    (["T", "Y"], "t, y"),
    (["100%", "50%"], "100%, 50%"),
]


@pytest.mark.parametrize(("values", "said"), UNKNOWN)
def test_a_scale_of_which_a_value_is_unknown_is_refused_and_graded_if_asked(
    tmp_path: Path, values: list[Any], said: str
) -> None:
    path = inspect(tmp_path / "log.json", *values)
    named = re.escape(f"scores (judge) are no yes or no on each sample (judge has {said}), and")
    with pytest.raises(InputError, match=named + ".* --regrade"):
        read_file(path)
    assert accuracy(path, regrade=True) == (0, len(values))
    rows = [
        {"question_id": n, "gold": "x", "response": "x", "verdict": v} for n, v in enumerate(values)
    ]
    table = write(tmp_path / "rows.jsonl", *rows)
    named = re.escape(f"(verdict has {said}); write correct or incorrect")
    with pytest.raises(InputError, match="^not every verdict is read as.*" + named):
        read_file(table)
    assert accuracy(table, regrade=True) == (len(values), len(values))


def test_scorers_that_compare_leave_what_they_do_not_say_to_the_rules(tmp_path: Path) -> None:
    rows = [harness(n, "4", metrics=["f1"], f1=[0.4, 1.0][n]) for n in range(2)]
    path = write(tmp_path / "samples_f1.jsonl", *rows)
    assert accuracy(path) == (2, 2)
    [note] = read_file(path).notes
    assert note == "the log has no verdict on each sample (f1 has 0.4, 1): the rules grade it"
    with pytest.raises(InputError, match=r"\(f1 has 0.4, 1\)"):
        read_file(path, scorer="f1")


def test_metrics_that_an_older_harness_does_not_name_are_its_verdicts(tmp_path: Path) -> None:
    rows = [harness(n, "4", exact_match=[1.0, 0.0, "P"][n % 3]) for n in range(9)]
    named = accuracy(write(tmp_path / "samples_named.jsonl", *rows))
    for row in rows:
        del row["metrics"]
    path = write(tmp_path / "samples_older.jsonl", *rows)
    assert accuracy(path) == named == (3, 6)
    assert read_file(path).notes[0] == "verdicts of the log: exact_match; its scorers: exact_match"
    bare = [{name: row[name] for name in row if name != "exact_match"} for row in rows]
    assert accuracy(write(tmp_path / "samples_bare.jsonl", *bare)) == (9, 9)  # by the rules


@pytest.mark.parametrize("name", ["humaneval", "wmt"])
def test_tasks_that_no_rule_grades_are_taken_at_their_word_or_refused(
    tmp_path: Path, name: str
) -> None:
    metric = {"humaneval": "pass@1", "wmt": "bleu"}[name]
    single = [harness(n, "x", metrics=[metric], **{metric: float(n % 2)}) for n in range(4)]
    assert accuracy(write(tmp_path / f"samples_{name}.jsonl", *single)) == (2, 4)
    rolling = [harness(n, metrics=["word_perplexity"]) | {"resps": [[-123.4]]} for n in range(2)]
    with pytest.raises(InputError, match="the responses are no texts, but perhaps log-likelihoods"):
        read_file(write(tmp_path / "samples_rolling.jsonl", *rolling))
    several = [harness(0, *"abcd", metrics=[metric], **{metric: 0.75})]
    with pytest.raises(InputError, match=f"scores .{metric}. are no yes or no on each sample"):
        read_file(write(tmp_path / "samples_more.jsonl", *several))


def test_the_scorer_is_said_and_can_be_chosen(tmp_path: Path) -> None:
    both = [{"refused": {"value": 0.0}, "match": {"value": "CI"[n == 4]}} for n in range(5)]
    path = inspect(tmp_path / "log.json", *both)
    assert accuracy(path) == (4, 5), "words of what is correct go before numbers of anything"
    assert read_file(path).notes[0] == "verdicts of the log: match; its scorers: refused, match"
    assert accuracy(path, scorer="refused") == (0, 5)
    with pytest.raises(InputError, match="unknown scorer 'other'; known: match, refused"):
        read_file(path, scorer="other")
    f1 = [
        harness(n, "x", metrics=["f1", "em"], f1=[0.4, 1.0, 0.6][n], em=[0, 1, 0][n])
        for n in range(3)
    ]
    assert accuracy(write(tmp_path / "samples_f1.jsonl", *f1)) == (1, 3)
    filters = [
        harness(n, "x", filter=kept, exact_match=float(kept == "flexible-extract"))
        for n in range(3)
        for kept in ("strict-match", "flexible-extract")
    ]
    path = write(tmp_path / "samples_gsm8k.jsonl", *filters)
    assert accuracy(path) == (0, 3), "of scorers that say equally much, the first"
    assert accuracy(path, scorer="flexible-extract") == (3, 3)


def test_repeated_rows_are_no_repeated_samples(tmp_path: Path) -> None:
    strict, flexible = [1.0, 0.0, 0.0], [1.0, 1.0, 0.0]
    rows = [harness(n, "x", exact_match=score[n]) for n in range(3) for score in (strict, flexible)]
    path = write(tmp_path / "samples_old.jsonl", *rows)
    assert accuracy(path) == (1, 3), "two filters without a name are one sample, as the first says"
    padded = [harness(n, "x", exact_match=1.0, filter="none") for n in (0, 1, 2, 0)]
    assert accuracy(write(tmp_path / "samples_padded.jsonl", *padded)) == (3, 3)
    assert read_file(tmp_path / "samples_padded.jsonl").notes[0].startswith("1 repeated row left")
    rows = [harness(n, "x", exact_match=1.0) for n in (0, 1, 2, 0, 1)]
    assert accuracy(write(tmp_path / "samples_padded.jsonl", *rows)) == (3, 3), "without filters"
    assert read_file(tmp_path / "samples_padded.jsonl").notes[0].startswith("2 repeated rows left")
    rows = [harness(n, "x", exact_match=1.0, filter=kept) for n in (0, 1, 0) for kept in "ab"]
    assert accuracy(write(tmp_path / "samples_padded.jsonl", *rows)) == (2, 2), "of both filters"
    rows = [harness(n, "4", "4", exact_match=1.0, filter="none") for n in (0, 1, 0)]
    assert accuracy(write(tmp_path / "samples_padded.jsonl", *rows)) == (4, 4), "equal samples"
    different = [harness(0, text, exact_match=1.0) for text in "xy"]
    assert accuracy(write(tmp_path / "samples_drawn.jsonl", *different)) == (2, 2)
    log = json.loads(inspect(tmp_path / "log.json", "C", "I").read_text())
    log["samples"].append(log["samples"][0])
    path.with_name("log.json").write_text(json.dumps(log))
    found = read_file(tmp_path / "log.json")
    assert found.table["total"].tolist() == [1, 1]
    assert found.notes[0] == "1 repeated row left out: the same sample again"


def test_rows_of_a_table_are_samples_each_whatever_they_are_numbered_by(tmp_path: Path) -> None:
    """Only logs have several rows of one sample."""
    row = {"doc_id": 7, "epoch": 1, "gold": "4", "target": "5"}
    rows = [row | {"response": text} for text in ("4", "4", "5")]
    path = write(tmp_path / "rows.jsonl", *rows)
    assert accuracy(path) == (2, 3)
    assert read_log([path]).samples["question_id"].tolist() == ["7"] * 3


def test_each_format_keeps_its_settings_and_tokens_in_its_own_places(tmp_path: Path) -> None:
    settings = {"temperature": 0.7, "max_gen_toks": 64, "top_p": 0.9}
    old, new = [["What?", settings]], {"gen_args_0": {"arg_0": "What?", "arg_1": settings}}
    for arguments in (old, new):
        row = harness(0, "x", arguments=arguments, doc={"text": "?"})
        [sample] = read_log([write(tmp_path / "samples_a.jsonl", row)]).samples.to_dict("records")
        assert (sample["question"], sample["temperature"]) == ("What?", 0.7)
        assert (sample["max_tokens"], sample["top_p"]) == (64, 0.9)
    choice = {"message": {"content": "x", "reasoning": "Hm."}, "stop_reason": "max_tokens"}
    usage = {"input_tokens": 5, "output_tokens": 9}
    path = inspect(tmp_path / "log.json", "C", output={"choices": [choice], "usage": usage})
    [sample] = read_log([path]).samples.to_dict("records")
    assert (sample["prompt_tokens"], sample["completion_tokens"]) == (5, 9)
    assert (sample["reasoning"], sample["finish_reason"]) == ("Hm.", "max_tokens")
    row = batch(choice, {"text": "y"})
    row["response"]["body"]["usage"] = {"prompt_tokens": 5, "completion_tokens": 9}
    table = read_log([write(tmp_path / "batch.jsonl", row)]).samples
    assert table["response"].tolist() == ["x", "y"]
    assert table["prompt_tokens"].tolist() == [5, 5]
    assert table["completion_tokens"].isna().all(), "of both together, and of none alone"


def test_a_harness_row_without_a_text_is_a_request_without_a_response(tmp_path: Path) -> None:
    rows = [harness(0, "4"), harness(1)]
    for row in rows:
        del row["metrics"]
    log = read_log([write(tmp_path / "samples_a.jsonl", *rows)])
    assert log.samples["response"].tolist() == ["4"]
    assert log.notes[0] == "1 request without a response left out"


def batch(*choices: Any) -> dict[str, Any]:
    return {"custom_id": "a", "response": {"status_code": 200, "body": {"choices": choices}}}


@pytest.mark.parametrize(
    "choice",
    [
        {"message": {"content": None}, "finish_reason": "length"},
        {"message": {"content": None, "refusal": "No."}, "finish_reason": "stop"},
        {"message": {"content": None, "reasoning": "Wait."}, "finish_reason": "stop"},
        {"message": {"content": ""}, "finish_reason": "stop"},
        {"message": {"content": []}, "finish_reason": "stop"},
    ],
)
def test_a_model_that_stopped_without_text_has_answered(tmp_path: Path, choice: Any) -> None:
    log = read_log([write(tmp_path / "batch.jsonl", batch(choice))])
    assert log.samples["response"].tolist() == [""]


def test_a_request_without_a_response_is_no_answer(tmp_path: Path) -> None:
    answer = {"message": {"content": "Oslo"}, "finish_reason": "stop"}
    withheld = {"message": {"content": None}, "finish_reason": "content_filter"}
    failed = {"custom_id": "a", "response": None, "error": {"message": "expired"}}
    rows = [batch(answer), batch(withheld, answer), batch(), failed]
    log = read_log([write(tmp_path / "batch.jsonl", *rows)])
    assert log.samples["response"].tolist() == ["Oslo", "Oslo"]
    assert log.notes[0] == "3 requests without a response left out"
    row = {"question_id": "a", "gold": "4"}
    texts: list[Any] = ["4", None, float("nan"), "", 5]
    path = write(tmp_path / "rows.jsonl", *(row | {"response": text} for text in texts))
    assert read_log([path]).samples["response"].tolist() == ["4", "", "5"]
    assert accuracy(path) == (1, 3)
    frame = pd.DataFrame({"question_id": "a", "gold": "4", "response": ["4", None, ""]})
    frame.to_parquet(tmp_path / "rows.parquet")
    assert accuracy(tmp_path / "rows.parquet") == (1, 2)
    judged = [row | {"response": None, "verdict": v} for v in ("correct", "incorrect")]
    with pytest.raises(InputError, match="no samples with a response in it"):
        read_log([write(path, *judged)])


def test_numbers_and_truths_are_texts_that_a_table_changed(tmp_path: Path) -> None:
    rows = [{"question_id": "a", "gold": 42, "response": 42}]
    rows += [{"question_id": "b", "gold": True, "response": True}]
    path = write(tmp_path / "rows.jsonl", *rows)
    assert read_log([path]).samples["response"].tolist() == ["42", "True"]
    assert accuracy(path) == (2, 2)
    listed = write(path, {"question_id": "a", "gold": "b", "response": ["a", "b"]})
    with pytest.raises(InputError, match=r"rows.jsonl, row 0: a list of texts .*a row a sample"):
        read_log([listed])


def test_an_inspected_sample_without_choices_is_as_its_score_says(tmp_path: Path) -> None:
    path = inspect(tmp_path / "log.json", *"CCCCII", output={"choices": []})
    assert {*read_log([path]).samples["verdict"]} == {"correct", "no_answer"}
    assert accuracy(path) == (4, 6)


INTERVALS = [
    ("[-2,7]", r"\boxed{[-2,7]}", r"\boxed{-2}"),
    ("[0,1)", r"\boxed{[0,1)}", r"\boxed{[0,1]}"),
    ("[1, 2, 3]", r"\boxed{[1,2,3]}", r"\boxed{1}"),
]


@pytest.mark.parametrize(("gold", "right", "wrong"), INTERVALS)
def test_an_answer_in_brackets_stays_a_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gold: str, right: str, wrong: str
) -> None:
    monkeypatch.chdir(tmp_path)
    row = {"question_id": "a", "question": "Solve.", "gold": gold}
    path = write(tmp_path / "rows.jsonl", row | {"response": right}, row | {"response": wrong})
    import_samples(
        [path], model="m", dataset="d", store=tmp_path, kind="math", settings={"temperature": 1.0}
    )
    assert load_questions("d")[0].answer.gold == gold
    row = {"doc": {}, "target": gold}
    assert read_log([write(path, harness(0, "x") | row)]).items.loc["0", "gold"] == gold


def test_targets_are_lists_where_all_of_a_log_are(tmp_path: Path) -> None:
    listed = "['Sunset Blvd', 'Sunset Boulevard']"
    rows = [harness(0, "Sunset Boulevard", "x", target=listed), harness(1, "a", target='["b"]')]
    path = write(tmp_path / "samples_triviaqa.jsonl", *rows)
    items = read_log([path]).items
    assert items["gold"].tolist() == ["Sunset Blvd", "b"]
    assert items["aliases"].tolist() == [("Sunset Boulevard",), ()]
    assert accuracy(path) == (1, 3)
    one = read_log([write(path, rows[0], harness(1, "a", target="[sic]"))]).items.loc["0", "gold"]
    assert one == listed, "a text among texts"


def test_tasks_of_a_group_keep_their_questions_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    files = [
        write(
            tmp_path / f"samples_mmlu_{task}_2025-01-01T10-00-00.jsonl",
            *(harness(n, "B", target="B", doc={"question": f"{task} {n}?"}) for n in range(2)),
        )
        for task in ("law", "art")
    ]
    asked: dict[str, Any] = {"model": "m", "store": tmp_path / "store"}
    import_samples(files, dataset="mmlu-both", **asked)
    names = [question.id for question in load_questions("mmlu-both")]
    assert names == ["mmlu_law/0", "mmlu_law/1", "mmlu_art/0", "mmlu_art/1"]
    import_samples(files[:1], dataset="one", **asked)
    with pytest.raises(
        InputError,
        match=r"question '0' of the file is 'art 0\?' with the answer 'B', in one 'law 0",
    ):
        import_samples(files[1:], dataset="one", **asked)
    assert list_files([tmp_path]) == sorted(files)
    with pytest.raises(InputError, match="store: a folder without logs, samples_"):
        read_log([tmp_path / "store"])


def test_a_list_of_right_answers_is_bounded_before_it_is_read(tmp_path: Path) -> None:
    rows = [harness(0, "a", target="['a', 'b']"), harness(1, "a", target=f"[{'1,' * 40_000}]")]
    items = read_log([write(tmp_path / "samples_long.jsonl", *rows)]).items
    assert items.loc["0", "gold"] == "['a', 'b']", "a text, since the other is taken for one"
    assert len(items.loc["1", "gold"]) == 80_002


def test_an_archive_is_bounded_in_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_files, "UNPACKED_BYTES", 1000)
    with zipfile.ZipFile(tmp_path / "log.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(4):
            text = json.dumps({"id": number, "epoch": 1, "output": " " * 400_000})
            archive.writestr(f"samples/{number}_epoch_1.json", text)
    with pytest.raises(InputError, match=r"log.eval: not a log of inspect_ai: it unpacks to more"):
        read_log([tmp_path / "log.eval"])


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
def test_an_archive_that_lies_about_its_size_unpacks_to_little(tmp_path: Path, method: int) -> None:
    size = 1 << 26
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("samples/1_epoch_1.json", b'{"id": 1, "epoch": 1}' + b" " * size)
    content = path.read_bytes()
    stated = (size + 21).to_bytes(4, "little")
    assert content.count(stated) == 2, "before the member, and in the list of all"
    path.write_bytes(content.replace(stated, (21).to_bytes(4, "little")))
    tracemalloc.start()
    with pytest.raises(InputError, match="not a log of inspect_ai: Bad CRC-32"):
        read_log([path])
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < size / 4


def test_other_formats_are_read_or_named(tmp_path: Path) -> None:
    rows = [harness(n, "x", exact_match=1.0) for n in range(2)]
    for name in ("samples_a.jsonl", "samples_a.json"):
        (tmp_path / name).write_text(json.dumps(rows, indent=1))
        assert accuracy(tmp_path / name) == (2, 2), "an array"
    for content, message in (
        ({"results": {}, "configs": {}}, "give samples_"),
        (
            {"adapter_spec": {}, "request_states": []},
            "scenario state of HELM.*write a row a sample",
        ),
        ({"score": 0.5, "convos": []}, "results of simple-evals"),
        ({"doc": {"id": "0"}, "model_response": {}}, "details of lighteval.*write a row a sample"),
        ({"eval": {}, "plan": {}, "status": "error"}, "status error, with no samples in it"),
        ({"accuracy": 50.0, "details": {}}, "no 'question_id'; write a row a sample"),
    ):
        (tmp_path / "other.json").write_text(json.dumps(content))
        with pytest.raises(InputError, match=message):
            read_file(tmp_path / "other.json")


@pytest.mark.parametrize("asked", ["Text.", [{"role": "system", "content": "Be."}], []])
def test_a_log_of_odd_messages_is_read(tmp_path: Path, asked: Any) -> None:
    path = inspect(
        tmp_path / "log.json", "C", "I", input=asked or [{"role": "user", "content": None}]
    )
    assert accuracy(path) == (1, 2)
    older = json.loads(path.read_text())
    for sample in older["samples"]:
        sample["score"] = sample.pop("scores")["judge"]
    path.write_text(json.dumps(older))
    assert accuracy(path) == (1, 2), "before format 2 a sample had one score"
