"""Loading: the mini sets, local copies, the hub's layout, and everything that can be wrong with
them.
"""

import gzip
import itertools
import json
import logging
import random
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capcal_lib import manifests
from capcal_lib.errors import InputError
from capcal_lib.manifests import MANIFESTS, dataset_names, load_dataset
from capcal_lib.questions import (
    Answer,
    Question,
    at_hand,
    check_questions,
    load_questions,
    load_split,
    planned_rows,
    questions_digest,
    subset,
    subsets,
    with_options,
)

MINI_SETS = [name for name in dataset_names() if load_dataset(name).builtin]
LOCAL_SPLITS = [
    (name, split)
    for name in dataset_names()
    for split, entry in load_dataset(name).splits.items()
    if entry.local is not None
]
Rows = list[dict[str, Any]]


@pytest.fixture
def unpinned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Copies of the manifests that allow any rows, so that a few serve."""
    folder = Path(shutil.copytree(MANIFESTS, tmp_path / "manifests"))
    for path in folder.glob("datasets/*.yaml"):
        if path.stem in MINI_SETS:
            continue
        path.write_text(
            re.sub(r"^    (rows|hub_rows|digest): .*\n", "", path.read_text(), flags=re.MULTILINE)
        )
    monkeypatch.setattr(manifests, "MANIFESTS", folder)
    return folder


@pytest.fixture
def data_dir(tmp_path: Path, unpinned: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that CAPCAL_DATA_DIR names."""
    monkeypatch.setenv("CAPCAL_DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "data"


def write(folder: Path, name: str, rows: Rows) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    return path


GSM8K = [
    {"id": "gsm8k/test/0", "question": " How many?\n", "answer": "2+2=<<2+2=4>>4\n#### 4"},
    {"id": "gsm8k/test/1", "question": "How much?", "answer": "So\n#### 1,000"},
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


# The built-in sets


@pytest.mark.parametrize("name", MINI_SETS)
def test_mini_sets_match_their_manifests(name: str) -> None:
    for split in load_dataset(name).splits:
        assert check_questions(name, split, load_questions(name, split)) == "matches"


def test_mini_sets_need_no_folder(data_dir: Path) -> None:
    assert not data_dir.exists()
    assert load_questions("mini-capitals", limit=3)


def test_the_split_is_the_evaluated_one_by_default() -> None:
    assert load_questions("mini-exam") == load_questions("mini-exam", "test")


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
    monkeypatch.setattr(subsets, "SUBSET_SEED", 43)
    assert set(subset(every, 9)) != set(few)


def test_an_exam_question_shows_its_options() -> None:
    for question in load_questions("mini-exam"):
        assert question.answer.kind == "choice"
        lines = question.text.splitlines()
        assert [line[:3] for line in lines[1:]] == ["A. ", "B. ", "C. ", "D. "]
        (right,) = question.answer.aliases
        assert f"{question.answer.gold}. {right}" in lines


# The local copies


def test_rows_become_questions(data_dir: Path) -> None:
    write(data_dir, "gsm8k/test.jsonl.gz", GSM8K)
    assert load_questions("gsm8k") == (
        Question("gsm8k/test/0", "How many?", Answer("number", "4")),
        Question("gsm8k/test/1", "How much?", Answer("number", "1,000")),
    )


def test_triviaqa_is_unwrapped_and_its_aliases_kept_once(data_dir: Path) -> None:
    rows = [
        {
            "id": "t/0",
            "question": '"Who sang ""Hey Jude""?"',
            "aliases": ["The Beatles", " Beatles ", "The Beatles"],
        },
        {"id": "t/1", "question": '"Hello" and "bye" are what?', "aliases": ["greetings"]},
        {"id": "t/2", "question": '"Who?" asked "whom"', "aliases": ["me", ""]},
    ]
    write(data_dir, "triviaqa/validation.jsonl.gz", rows)
    first, second, third = load_questions("triviaqa")
    assert first == Question(
        "t/0", 'Who sang "Hey Jude"?', Answer("short", "The Beatles", ("Beatles",))
    )
    assert second.text == '"Hello" and "bye" are what?'
    assert third.text == '"Who?" asked "whom"'
    assert third.answer.aliases == ()


def test_mathematics_without_an_answer_is_left_out(data_dir: Path) -> None:
    row = {
        "problem": "Find $x$.",
        "answer": "\\frac12",
        "subject": "Algebra",
        "unique_id": "train/algebra/1.json",
    }
    write(
        data_dir,
        "math/train12k.jsonl.gz",
        [row | {"answer": "", "unique_id": "train/algebra/0.json"}, row],
    )
    assert load_questions("math500", "train") == (
        Question("math/train/algebra/1.json", "Find $x$.", Answer("math", "\\frac12"), "Algebra"),
    )


# The hub's layout, from a folder instead of the hub, through the same library

HUB: dict[str, Rows] = {
    "triviaqa": [
        {
            "question": "Who?",
            "question_id": "tc_1",
            "answer": {"value": "Ada", "aliases": ["Ada", "Countess"], "normalized_value": "ada"},
        }
    ],
    "simpleqa": [
        {
            "metadata": "{'topic': 'Art', 'answer_type': 'Person'}",
            "problem": " Who? ",
            "answer": "Ada ",
        },
        {"metadata": "", "problem": "When?", "answer": "1815"},
    ],
    "simpleqa-verified": [
        {"original_index": 7, "problem": " Who? ", "answer": "Ada ", "topic": "Art", "urls": []}
    ],
    "triviaqa-1000": [
        {
            "question": "Who?",
            "question_id": f"tc_{number}",
            "answer": {
                "value": f"Ada {number}",
                "aliases": aliases,
                "normalized_value": "ada",
            },
        }
        # A block of web pages, then one of Wikipedia's, which has most questions again.
        for numbers, aliases in (
            (range(1200), ["Ada", "Countess", ""]),
            (range(1199, 300, -1), ["Lovelace"]),
        )
        for number in numbers
    ],
    "gsm8k": [{key: row[key] for key in ("question", "answer")} for row in GSM8K],
    "math500": [
        {
            "problem": "Find $x$.",
            "answer": "2",
            "subject": "Algebra",
            "level": 1,
            "unique_id": "test/algebra/7.json",
        }
    ],
    "aime25": [
        {"id": str(number), "problem": f"Find {number}.", "answer": f"{number}^\\circ"}
        for number in range(30)
    ],
    "mmlu": [
        {"question": "Which?", "subject": subject, "choices": ["w", "x", "y", "z"], "answer": 2}
        for subject in ("anatomy", "anatomy", "virology")
    ],
    "gpqa": [
        {
            "Record ID": f"rec{number}",
            "Question": "Which?",
            "Correct Answer": "right\n",
            "Incorrect Answer 1": "wrong 1",
            "Incorrect Answer 2": "wrong 2",
            "Incorrect Answer 3": "wrong 3",
            "Subdomain": "Genetics",
        }
        for number in range(40)
    ],
}


@pytest.fixture
def hub(tmp_path: Path, unpinned: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Manifests whose repositories are folders with a few rows in the columns of the hub."""
    import datasets

    for name, rows in HUB.items():
        dataset = load_dataset(name)
        entry = dataset.splits[dataset.evaluation_split]
        repository = tmp_path / name
        repository.mkdir()
        (repository / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (repository / "README.md").write_text(
            f"---\nconfigs:\n- config_name: {entry.config or 'default'}\n  data_files:\n"
            f"  - split: {entry.hub_split}\n    path: rows.jsonl\n---\n"
        )
        path = unpinned / "datasets" / f"{name}.yaml"
        text = path.read_text().replace(f"hub: {entry.hub}", f"hub: {repository}")
        path.write_text(text.replace(f"revision: {entry.revision}", "revision: null"))
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.delenv("CAPCAL_DATA_DIR", raising=False)
    datasets.disable_progress_bars()
    yield
    datasets.enable_progress_bars()


@pytest.mark.usefixtures("hub")
def test_the_hubs_columns() -> None:
    assert load_questions("triviaqa") == (
        Question("triviaqa/validation/0", "Who?", Answer("short", "Ada", ("Countess",))),
    )
    assert load_questions("simpleqa") == (
        Question("simpleqa/0", "Who?", Answer("short", "Ada"), "Art"),
        Question("simpleqa/1", "When?", Answer("short", "1815")),
    )
    assert [question.id for question in load_questions("gsm8k")] == ["gsm8k/test/0", "gsm8k/test/1"]
    assert [question.answer.gold for question in load_questions("gsm8k")] == ["4", "1,000"]
    (problem,) = load_questions("math500")
    assert problem == Question(
        "math/test/algebra/7.json", "Find $x$.", Answer("math", "2"), "Algebra"
    )
    exam = load_questions("aime25")
    assert [exam[number].id for number in (0, 14, 15, 29)] == [
        "aime2025/I-1",
        "aime2025/I-15",
        "aime2025/II-1",
        "aime2025/II-15",
    ]
    assert exam[7].answer == Answer("number", "7")
    first, _, last = load_questions("mmlu")
    assert first.text == "Which?\nA. w\nB. x\nC. y\nD. z"
    assert first.answer == Answer("choice", "C", ("y",))
    assert (first.id, last.id) == ("mmlu/validation/anatomy/0", "mmlu/validation/virology/0")


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
def test_the_papers_simpleqa() -> None:
    assert load_questions("simpleqa-verified") == (
        Question("7", "Who?", Answer("short", "Ada"), "Art"),
    )


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
def test_gpqa_options_are_shuffled_once_for_each_question() -> None:
    questions = load_questions("gpqa")
    assert questions == load_questions("gpqa")
    assert {question.answer.gold for question in questions} == set("ABCD")
    for question in questions:
        assert f"{question.answer.gold}. right" in question.text.splitlines()
        order = ["right", "wrong 1", "wrong 2", "wrong 3"]
        random.Random(42 + int(question.id.removeprefix("gpqa/rec"))).shuffle(order)
        assert [line[3:] for line in question.text.splitlines()[1:]] == order


@pytest.mark.usefixtures("hub")
def test_the_training_questions_of_triviaqa_keep_their_official_ids(tmp_path: Path) -> None:
    path = tmp_path / "manifests" / "datasets" / "triviaqa.yaml"
    path.write_text(path.read_text().replace("hub_split: train", "hub_split: validation"))
    assert [question.id for question in load_questions("triviaqa", "train")] == [
        "triviaqa/train/tc_1"
    ]


@pytest.mark.usefixtures("hub")
def test_a_repository_out_of_reach_names_both_ways(tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "gsm8k")
    logger = logging.getLogger("huggingface_hub")
    level = logger.level
    with pytest.raises(InputError) as raised:
        load_questions("gsm8k")
    assert logger.level == level
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


# Faults


def test_unknown_names() -> None:
    with pytest.raises(InputError, match="unknown data set 'gsm9k'; known: aime25"):
        load_questions("gsm9k")
    with pytest.raises(
        InputError, match="unknown split of mmlu 'train'; known: dev, test, validation"
    ):
        load_questions("mmlu", "train")
    with pytest.raises(InputError, match="unknown split of mmlu 'train'"):
        check_questions("mmlu", "train", ())


@pytest.mark.parametrize("limit", [0, -1, 2.0, "3", True])
def test_bad_limits(limit: Any) -> None:
    with pytest.raises(InputError, match=r"limit must be a whole number from 1 to .*; got "):
        load_questions("mini-exam", limit=limit)


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
        with pytest.raises(InputError, match=r"test\.jsonl\.gz, row \d+: cannot be read: "):
            load_questions("gsm8k")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "row 1: cannot be read: Expecting"),
        ("[1]", "row 1: cannot be read: not a JSON object"),
        (
            '{"id": "b", "question": "Why?"}',
            "row 1: no column 'answer'; this is not GSM8K as expected, it has id, q",
        ),
        (
            '{"id": "b", "question": "Why?", "answer": "1"}',
            "row 1: malformed (no #### before the final answer)",
        ),
        (
            '{"id": "b", "question": "Why?", "answer": "#### "}',
            "row 1: malformed (the gold answer must be a text",
        ),
        (
            '{"id": "b", "question": " ", "answer": "#### 1"}',
            "row 1: malformed (the question or an option is empty)",
        ),
        (
            '{"id": "gsm8k/test/0", "question": "Why?", "answer": "#### 1"}',
            "the id 'gsm8k/test/0' appears twice",
        ),
    ],
)
def test_malformed_rows(data_dir: Path, line: str, message: str) -> None:
    path = write(data_dir, "gsm8k/test.jsonl.gz", GSM8K[:1])
    path.write_bytes(gzip.compress(f"{json.dumps(GSM8K[0])}\n{line}\n".encode()))
    with pytest.raises(InputError) as raised:
        load_questions("gsm8k")
    assert str(raised.value).startswith(("CAPCAL_DATA_DIR/gsm8k/test.jsonl.gz, ", str(path)))
    assert message in str(raised.value)


def test_malformed_options(data_dir: Path) -> None:
    row = {
        "id": "m",
        "subject": "anatomy",
        "question": "Which?",
        "choices": ["w", "x"],
        "answer": "D",
    }
    write(data_dir, "mmlu/val.jsonl.gz", [row])
    with pytest.raises(InputError, match="row 0: malformed"):
        load_questions("mmlu")


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
        InputError, match=r"pins: digest [0-9a-f]{16}, the manifest has d0106938f864f7fd; take"
    ):
        load_questions("simpleqa")


def test_an_empty_split(data_dir: Path) -> None:
    write(data_dir, "gsm8k/test.jsonl.gz", [])
    with pytest.raises(InputError, match="there are no questions"):
        load_questions("gsm8k")


def test_answers_are_checked() -> None:
    with pytest.raises(
        InputError, match="unknown answer kind 'numeric'; known: choice, math, number, short"
    ):
        Answer("numeric", "1")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="must be a text that is not empty; got ''"):
        Answer("short", "")


# Digests

TEXTS = st.text(max_size=20)
QUESTIONS = st.builds(
    Question,
    id=TEXTS,
    text=TEXTS,
    answer=st.builds(
        Answer,
        kind=st.sampled_from(["math", "number", "choice", "short"]),
        gold=TEXTS.filter(str.strip),
        aliases=st.lists(TEXTS, max_size=3).map(tuple),
    ),
)


@given(questions=st.lists(QUESTIONS, min_size=1, max_size=4))
def test_a_digest_holds_what_is_asked_and_right_and_nothing_else(questions: list[Question]) -> None:
    digest = questions_digest(questions)
    turned = [
        replace(each, answer=replace(each.answer, aliases=each.answer.aliases[::-1]))
        for each in questions
    ]
    renamed = [replace(each, id=f"{each.id}x", subject="x") for each in questions]
    assert questions_digest(turned) == questions_digest(renamed) == digest
    first = questions[0]
    for other in (
        replace(first, text=f"{first.text}x"),
        replace(first, answer=replace(first.answer, gold=f"{first.answer.gold}x")),
        replace(first, answer=replace(first.answer, aliases=(*first.answer.aliases, "x"))),
        replace(
            first,
            answer=replace(first.answer, kind="math" if first.answer.kind != "math" else "short"),
        ),
    ):
        assert questions_digest([other, *questions[1:]]) != digest
    assert questions_digest([*questions, first]) != digest


def test_a_difference_is_told() -> None:
    questions = load_questions("mini-exam")
    assert check_questions("mini-exam", "test", questions[1:]) == "101 rows, the manifest has 102"
    assert check_questions("mini-exam", "test", questions[::-1]).startswith("digest ")
    assert check_questions("gpqa", "test", questions[:1] * 198) == "198 rows, pinned by no digest"


def test_options_are_lettered() -> None:
    assert with_options(" Which?\n", [" a", "b "]) == "Which?\nA. a\nB. b"


# The real copies


@pytest.mark.parametrize(("name", "split"), LOCAL_SPLITS)
def test_real_copies_match_their_manifests(
    name: str, split: str, real_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAPCAL_DATA_DIR", str(real_data))
    questions = load_questions(name, split)
    assert check_questions(name, split, questions) == "matches"
    assert {question.answer.kind for question in questions} == {load_dataset(name).kind}
    assert all(question.text == question.text.strip() for question in questions)


def test_real_rows(real_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAPCAL_DATA_DIR", str(real_data))
    assert load_questions("gsm8k")[0].answer == Answer("number", "18")
    assert load_questions("aime25")[0].answer == Answer("number", "70")
    assert all(question.answer.gold.isdecimal() for question in load_questions("aime25"))
    assert load_questions("simpleqa")[0].answer.gold == "Michio Sugeno"
    assert load_questions("simpleqa")[0].subject == "Science and technology"
    assert load_questions("math500")[0].answer.gold == "\\left( 3, \\frac{\\pi}{2} \\right)"
    first = load_questions("mmlu")[0]
    assert (first.answer, first.subject) == (Answer("choice", "A", ("4",)), "abstract_algebra")
    assert not any(
        question.text.startswith('"') and '""' in question.text
        for question in load_questions("triviaqa")
    )
    test, train = (
        {q.text for q in load_questions("math500", split)} for split in ("test", "train")
    )
    assert not test & train


def test_what_is_on_this_machine_is_at_hand(
    monkeypatch: pytest.MonkeyPatch, real_data: Path
) -> None:
    monkeypatch.delenv("CAPCAL_DATA_DIR", raising=False)
    assert at_hand("mini-exam", "test")
    assert not at_hand("gsm8k", "test")
    monkeypatch.setenv("CAPCAL_DATA_DIR", str(real_data))
    assert at_hand("gsm8k", "test")
    assert not at_hand("gpqa", load_dataset("gpqa").evaluation_split)
