import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capcal_lib.confidence.of_run import asked_model
from capcal_lib.errors import InputError
from capcal_lib.manifests import Sampling, load_dataset, load_model
from capcal_lib.places import RECORDED_RUNS
from capcal_lib.questions import Answer, load_questions, subset
from capcal_lib.runs import Run, find_run
from capcal_lib.runs.sessions import read_lines
from capcal_lib.runs.store import read_samples
from capcal_lib.sampling.draw import can_sample_here, describe, sample
from tests.folders import list_runs, verify_run

SET = "mini-exam"
QUESTIONS = load_questions(SET)
MODEL = load_model("simulated")


def rows(folder: Path) -> list[tuple[object, ...]]:
    return list(read_samples(Run(folder)).itertuples(index=False, name=None))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """Six samples of each of five questions, drawn at once."""
    return read_samples(
        sample("simulated", SET, k=6, limit=5, store=tmp_path_factory.mktemp("once")).run
    )


def test_raising_k_draws_only_what_is_missing(tmp_path: Path) -> None:
    first = sample("simulated", SET, k=2, limit=5, store=tmp_path)
    assert (first.new, first.present) == (10, 0)
    before = rows(first.run.folder)
    second = sample("simulated", SET, k=3, limit=5, store=tmp_path)
    assert (second.run.folder, second.new, second.present) == (first.run.folder, 5, 10)
    assert set(before) < set(rows(second.run.folder))
    assert len(rows(second.run.folder)) == 15


def test_other_settings_are_another_run_and_its_confidences_are_asked_with_them(
    tmp_path: Path,
) -> None:
    usual = sample("simulated", SET, k=2, limit=3, store=tmp_path).run.folder
    others = {"temperature": 0.3, "max_tokens": 6, "prompt_style": "short@2"}
    drawn = sample("simulated", SET, k=2, limit=3, store=tmp_path, settings=others)
    run = drawn.run.record.identity
    assert (run.sampling.temperature, run.sampling.max_tokens, run.prompt_style) == (
        0.3,
        6,
        "short@2",
    )
    assert run.sampling.context_tokens == Run(usual).record.identity.sampling.context_tokens
    assert drawn.run.folder != usual
    assert sample("simulated", SET, k=2, limit=3, store=tmp_path, settings=others).new == 0
    model = asked_model(drawn.run)
    assert (model.sampling, model.prompt_style) == (run.sampling, "short@2")
    assert verify_run(drawn.run).problems == []
    refused = {
        "temperature": (-1.0, "temperature: Input should be greater than or equal to 0"),
        "max_tokens": (0, "max_tokens: Input should be greater"),
        "tempreature": (0.5, "tempreature: Extra inputs"),
        "prompt_style": ("short@10", "unknown prompt style 'short@10': short has 9 examples"),
    }
    for name, (value, message) in refused.items():
        with pytest.raises(InputError, match=message):
            sample("simulated", SET, k=2, store=tmp_path, settings={name: value})
    assert len(list_runs(tmp_path)) == 2


@settings(max_examples=5, deadline=None)
@given(steps=st.lists(st.tuples(st.integers(1, 6), st.integers(1, 5)), max_size=4))
def test_any_way_of_getting_there_gives_the_rows_of_one_undisturbed_run(
    undisturbed: pd.DataFrame,
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[int, int]],
) -> None:
    store = tmp_path_factory.mktemp("steps")
    present: set[tuple[str, int]] = set()
    for k, limit in [*steps, (6, 5)]:
        wanted = {
            (question.id, index) for question in subset(QUESTIONS, limit) for index in range(k)
        }
        drawn = sample("simulated", SET, k=k, limit=limit, store=store)
        assert drawn.new == len(wanted - present)
        assert drawn.present == len(wanted & present)
        present |= wanted
    pd.testing.assert_frame_equal(read_samples(drawn.run), undisturbed)


def test_a_run_that_was_stopped_goes_on(tmp_path: Path, undisturbed: pd.DataFrame) -> None:
    def stop(done: int, wanted: int) -> None:
        assert wanted == 30
        if done > 12:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sample("simulated", SET, k=6, limit=5, store=tmp_path, progress=stop)
    resumed = sample("simulated", SET, k=6, limit=5, store=tmp_path)
    assert resumed.present > 12
    assert resumed.new == 30 - resumed.present
    pd.testing.assert_frame_equal(read_samples(resumed.run), undisturbed)


def test_a_session_is_kept_where_something_was_drawn(tmp_path: Path) -> None:
    folder = sample("simulated", SET, k=2, limit=2, store=tmp_path).run.folder
    sample("simulated", SET, k=1, limit=1, store=tmp_path)
    (one,) = read_lines(Run(folder))
    assert json.loads(one)["ask"] == {"questions": 2, "k": 2}


def test_progress_counts_to_what_is_missing(tmp_path: Path) -> None:
    sample("simulated", SET, k=1, limit=4, store=tmp_path)
    seen: list[tuple[int, int]] = []
    sample(
        "simulated",
        SET,
        k=3,
        limit=4,
        store=tmp_path,
        progress=lambda done, wanted: seen.append((done, wanted)),
    )
    assert seen == [(2, 8), (4, 8), (6, 8), (8, 8)]


def test_the_same_seed_gives_the_same_rows_and_another_others(
    tmp_path: Path, undisturbed: pd.DataFrame
) -> None:
    same = sample("simulated", SET, k=6, limit=5, store=tmp_path)
    pd.testing.assert_frame_equal(read_samples(same.run), undisturbed)
    other = sample("simulated", SET, k=6, limit=5, store=tmp_path, seed=1)
    assert other.run.folder != same.run.folder
    assert (read_samples(other.run)["response"] != undisturbed["response"]).any()


@pytest.mark.parametrize(("dataset", "split"), [("mini-capitals", "test"), ("mini-exam", "train")])
def test_the_recorded_simulated_run_is_reproduced_row_by_row(
    tmp_path: Path, dataset: str, split: str
) -> None:
    recorded = read_samples(find_run(RECORDED_RUNS, "simulated", dataset, split))
    again = read_samples(
        sample("simulated", dataset, split=split, k=10, limit=7, store=tmp_path).run
    )
    asked = {question.id for question in load_questions(dataset, split, limit=7)}
    wanted = recorded[recorded["question_id"].isin(asked) & (recorded["sample_index"] < 10)]
    assert len(again) == 70
    pd.testing.assert_frame_equal(again, wanted.reset_index(drop=True))


def test_the_record_says_with_what_the_run_was_made(tmp_path: Path) -> None:
    record = sample("simulated", SET, k=1, limit=1, store=tmp_path, seed=3).run.record
    assert record.identity.model_dump(include={"model", "dataset", "split", "engine", "seed"}) == {
        "model": "simulated", "dataset": SET, "split": "test", "engine": "simulated", "seed": 3,
    }  # fmt: skip
    assert record.made_with["questions"] == "matches"
    assert record.made_with["questions_from"] == "built in"
    assert {"started", "machine", "python", "capcal", "torch"} <= record.made_with.keys()


def test_the_record_keeps_no_login_of_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://me:secret@host/v1")
    record = describe(MODEL, SET, "test", QUESTIONS, engine="openai", seed=0)
    assert record.made_with["server"] == "host/v1"
    assert "secret" not in record.model_dump_json()


def key(**changes: object) -> str:
    """Return the key of the run that these changes of the model or of the call make."""
    call = {"dataset": SET, "split": "test", "questions": QUESTIONS, "seed": 0}
    call["engine"] = "simulated"
    model = MODEL.model_copy(
        update={name: value for name, value in changes.items() if name not in call}
    )
    call |= {name: value for name, value in changes.items() if name in call}
    return describe(model, **call).identity.key  # type: ignore[arg-type]


def sampling(**changes: object) -> Sampling:
    return MODEL.sampling.model_copy(update=changes)


DECISIVE: dict[str, dict[str, object]] = {
    "model": {"name": "another"},
    "data set": {"dataset": "mini-capitals"},
    "split": {"split": "train"},
    "fewer questions": {"questions": QUESTIONS[1:]},
    "another order": {"questions": QUESTIONS[::-1]},
    "another text": {"questions": (replace(QUESTIONS[0], text="Which?"), *QUESTIONS[1:])},
    "another answer": {
        "questions": (replace(QUESTIONS[0], answer=Answer("choice", "D")), *QUESTIONS[1:])
    },
    "weights": {"weights": load_model("smollm2-135m").weights[:1]},
    "prompt style": {"prompt_style": "paper"},
    "chat template": {"chat_template": {"enable_thinking": False}},
    "temperature": {"sampling": sampling(temperature=0.7)},
    "top_p": {"sampling": sampling(top_p=0.9)},
    "top_k": {"sampling": sampling(top_k=20)},
    "max_tokens": {"sampling": sampling(max_tokens=17)},
    "context_tokens": {"sampling": sampling(context_tokens=1024)},
    "engine": {"engine": "transformers"},
    "seed": {"seed": 1},
}


def test_every_setting_that_decides_a_row_makes_another_run() -> None:
    assert len({key(), *(key(**change) for change in DECISIVE.values())}) == len(DECISIVE) + 1


def test_circumstances_make_no_other_run() -> None:
    assert key(notes="another day", title="A model", parameters=7) == key()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": 0}, r"k is the number of samples per question and must be at least 1; got 0"),
        ({"k": 1 << 30}, r"a question has at most 1,048,576 samples; got k = 1,073,741,824"),
        ({"settings": {"temperature": float("inf")}}, r"temperature: Input should be a finite"),
        (
            {"limit": 0},
            r"limit must be a whole number from 1 to .*; got 0",
        ),
        ({"split": "eval"}, r"unknown split of mini-exam 'eval'; known: test, train"),
        ({"engine": "cloud"}, r"unknown engine 'cloud'; known: "),
    ],
)
def test_bad_input_is_refused_and_leaves_nothing(
    tmp_path: Path, arguments: dict[str, object], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        sample("simulated", SET, store=tmp_path / "store", **({"k": 1} | arguments))  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_a_model_can_be_sampled_where_its_weights_and_the_questions_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAPCAL_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("CAPCAL_DATA_DIR", str(tmp_path))
    assert can_sample_here(MODEL, load_dataset(SET))
    assert not can_sample_here(load_model("smollm2-135m"), load_dataset(SET))
    assert not can_sample_here(MODEL, load_dataset("gsm8k"))
