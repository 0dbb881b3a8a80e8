"""Loading: the mini sets, local copies, the hub's layout, and everything that can be wrong with
them."""

import gzip
import itertools
import json
import random
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from capcal_lib.errors import InputError
from capcal_lib.manifests import dataset_names, load_dataset
from capcal_lib.questions import (
    Answer,
    at_hand,
    check_questions,
    load_questions,
    load_split,
    planned_rows,
    sets,
    subset,
)
from tests.questions.files import GSM8K, HUB, MINI_SETS, write

LOCAL_SPLITS = [
    (name, split)
    for name in dataset_names()
    for split, entry in load_dataset(name).splits.items()
    if entry.local is not None
]


def test_planned_rows_are_those_of_the_hub_unless_a_copy_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CAPCAL_DATA_DIR", raising=False)
    assert planned_rows("math500", "train") == 11_498
    assert planned_rows("gpqa", "test") == 198
    monkeypatch.setenv("CAPCAL_DATA_DIR", str(tmp_path))
    assert planned_rows("math500", "train") == 11_998
    assert planned_rows("math500", "valid") == 500  # of which there is no copy


@pytest.mark.parametrize("name", MINI_SETS)
def test_mini_sets_match_their_manifests(name: str) -> None:
    for split in load_dataset(name).splits:
        assert check_questions(name, split, load_questions(name, split)) == "matches"


def test_training_questions_are_none_of_those_evaluated(tmp_path: Path, unpinned: Path) -> None:
    """Rows keep their number in the larger set, which the options of GPQA follow from."""
    places = {
        "google/simpleqa-verified": [{"original_index": 1, "problem": "New?", "answer": "b"}],
        "basicv8vc/SimpleQA": [{"problem": f"Q{n}", "answer": "a"} for n in range(3)],
        "gneubig/aime-1983-2024": [
            {"ID": f"{year}-1", "Year": year, "Question": "How many?", "Answer": 7}
            for year in (1983, 2024, 2023)
        ],
    }
    for name in ("later-simpleqa", "later-aime"):
        path = unpinned / "datasets" / f"{name}.yaml"
        text = path.read_text()
        for hub, rows in places.items():
            file = tmp_path / f"{hub.replace('/', '-')}.jsonl"
            file.write_text("".join(json.dumps(row) + "\n" for row in rows))
            text = re.sub(
                rf"hub: {hub}\n(    config: .*\n)?    hub_split: .*\n    revision: .*\n",
                f"file: {file}\n",
                text,
            )
        path.write_text(text)
    assert [one.id for one in load_questions("later-simpleqa", "eval")] == ["1"]
    assert [one.id for one in load_questions("later-simpleqa", "train")] == ["0", "2"]
    assert [one.id for one in load_questions("later-aime", "1983-2023")] == ["1983-1", "2023-1"]
    assert load_questions("later-aime", "1983-2023")[0].answer == Answer("number", "7")


@pytest.mark.usefixtures("hub")
def test_the_papers_thousand_of_triviaqa() -> None:
    questions = load_questions("triviaqa-1000")
    random.seed(42)
    chosen = random.sample(
        list(dict.fromkeys(row["question_id"] for row in HUB["triviaqa-1000"])), 1000
    )
    assert len(questions) == 1000
    assert {question.id for question in questions} == set(chosen)
    assert [int(question.id[3:]) for question in questions] == sorted(
        int(name[3:]) for name in chosen
    )
    for question in questions:  # of the first of its copies
        assert question.answer == Answer("short", f"Ada {question.id[3:]}", ("Ada", "Countess"))


@pytest.mark.usefixtures("hub")
def test_a_repository_out_of_reach_names_both_ways(tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "gsm8k")
    with pytest.raises(InputError) as raised:
        load_questions("gsm8k")
    message = str(raised.value)
    assert "could not be loaded" in message
    assert message.endswith(
        "; set CAPCAL_DATA_DIR to a folder with gsm8k/test.jsonl.gz, or leave it unset and be "
        "online with the `datasets` library"
    )
    assert "\n" not in message
    shutil.rmtree(tmp_path / "gpqa")
    with pytest.raises(
        InputError, match=r"be online .* library, accept the terms of .* and log in"
    ):
        load_questions("gpqa")


@pytest.mark.usefixtures("hub")
def test_the_revision_that_was_loaded_is_known(tmp_path: Path) -> None:
    _, source = load_split("gsm8k")
    assert re.fullmatch(
        re.escape(f"{tmp_path / 'gsm8k'}, revision ") + "[0-9a-f]{16}", source
    )  # of a local folder


def test_a_local_copy_is_named_without_its_machine(data_dir: Path) -> None:
    write(data_dir, "gsm8k/test.jsonl.gz", GSM8K)
    assert load_split("gsm8k")[1] == "CAPCAL_DATA_DIR/gsm8k/test.jsonl.gz"


def test_unknown_names() -> None:
    with pytest.raises(InputError, match="unknown data set 'gsm9k'; known: aime25"):
        load_questions("gsm9k")
    with pytest.raises(
        InputError, match="unknown split of mmlu 'train'; known: dev, test, validation"
    ):
        load_questions("mmlu", "train")
    with pytest.raises(InputError, match="unknown split of mmlu 'train'"):
        check_questions("mmlu", "train", ())


def test_a_missing_file(data_dir: Path) -> None:
    with pytest.raises(InputError) as raised:
        load_questions("gsm8k")
    assert f"{data_dir / 'gsm8k/test.jsonl.gz'} does not exist" in str(raised.value)
    assert "leave it unset and be online with the `datasets` library" in str(raised.value)


def test_corrupt_files(data_dir: Path) -> None:
    path = write(data_dir, "gsm8k/test.jsonl.gz", GSM8K * 50)
    whole = path.read_bytes()
    for content in (whole[:-12], whole[:20], b"not gzip", gzip.compress(b"\xff\xfe")):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"test\.jsonl\.gz: cannot be read: "):
            load_questions("gsm8k")


def test_other_questions_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAPCAL_DATA_DIR", str(tmp_path))
    write(
        tmp_path,
        "simpleqa/test.jsonl.gz",
        [{"id": "mine", "question": "Why?", "answer": "so", "topic": ""}],
    )
    with pytest.raises(
        InputError,
        match=r"not the questions of SimpleQA \(test\) that .* pins: 1 rows, .* has 4326",
    ):
        load_questions("simpleqa")
    rows = [
        {"id": str(number), "question": "Why?", "answer": "so", "topic": ""}
        for number in range(4326)
    ]
    write(tmp_path, "simpleqa/test.jsonl.gz", rows)
    with pytest.raises(
        InputError, match=r"pins: digest [0-9a-f]{16}, the manifest has d0106938f864f7fd; use"
    ):
        load_questions("simpleqa")


def test_an_empty_split(data_dir: Path) -> None:
    write(data_dir, "gsm8k/test.jsonl.gz", [])
    with pytest.raises(InputError, match=r"no questions of GSM8K \(test\) in it; add"):
        load_questions("gsm8k")


def test_a_difference_is_told() -> None:
    questions = load_questions("mini-exam")
    assert check_questions("mini-exam", "test", questions[1:]) == "101 rows, the manifest has 102"
    assert check_questions("mini-exam", "test", questions[::-1]).startswith("digest ")
    assert check_questions("gpqa", "test", questions[:1] * 198) == "198 rows, pinned by no digest"


@pytest.mark.parametrize(("name", "split"), LOCAL_SPLITS)
def test_real_copies_match_their_manifests(
    name: str, split: str, real_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAPCAL_DATA_DIR", str(real_data))
    questions = load_questions(name, split)
    assert check_questions(name, split, questions) == "matches"
    assert {question.answer.kind for question in questions} == {load_dataset(name).kind}
    assert all(question.text == question.text.strip() for question in questions)


def test_what_is_on_this_machine_is_at_hand(
    monkeypatch: pytest.MonkeyPatch, real_data: Path
) -> None:
    monkeypatch.delenv("CAPCAL_DATA_DIR", raising=False)
    assert at_hand("mini-exam", "test")
    assert not at_hand("gsm8k", "test")
    monkeypatch.setenv("CAPCAL_DATA_DIR", str(real_data))
    assert at_hand("gsm8k", "test")
    assert not at_hand("gpqa", load_dataset("gpqa").evaluation_split)


def test_a_limit_takes_a_subset_that_a_larger_limit_contains() -> None:
    every = load_questions("mini-exam")
    taken = [load_questions("mini-exam", limit=limit) for limit in (1, 7, 30, 31, 10_000)]
    assert [len(few) for few in taken] == [1, 7, 30, 31, len(every)]
    assert all(set(few) < set(more) for few, more in itertools.pairwise(taken))
    assert all(list(few) == sorted(few, key=every.index) for few in taken)
    assert taken[1] != every[:7]
    assert taken[-1] == every


def test_a_subset_depends_on_the_seed_and_not_on_the_order(monkeypatch: pytest.MonkeyPatch) -> None:
    every = load_questions("mini-exam")
    few = subset(every, 9)
    assert set(subset(every[::-1], 9)) == set(few)
    positions = [every.index(question) for question in subset(every, len(every) // 2)]
    assert 0.4 < sum(positions) / len(positions) / len(every) < 0.6  # from the whole split
    monkeypatch.setattr(sets, "SUBSET_SEED", 43)
    assert set(subset(every, 9)) != set(few)


@pytest.mark.parametrize("limit", [0, 2.0, True])
def test_bad_limits(limit: Any) -> None:
    with pytest.raises(InputError, match=r"limit must be a whole number from 1 to .*; got "):
        load_questions("mini-exam", limit=limit)
