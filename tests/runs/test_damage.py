"""What is missing or damaged in a run is an error, or is named; no row is silently absent."""

import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from capcal_lib.confidence.of_run import estimate
from capcal_lib.errors import InputError
from capcal_lib.grading.verdicts import grade_run
from capcal_lib.probes.coordinates import keep_coordinates
from capcal_lib.probes.features import extract
from capcal_lib.results import describe_runs, load_results
from capcal_lib.runs import Run, open_runs
from capcal_lib.runs import files as files_module
from capcal_lib.runs import store as store_module
from capcal_lib.runs.artifacts import ARTIFACTS, VERDICTS, artifact_of
from capcal_lib.runs.status import run_status
from capcal_lib.runs.store import open_writer, problems_of, remove_run
from capcal_lib.sampling.draw import sample

SET = "mini-exam"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with all that a run can have beside it, of two shards and a journal."""
    store = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store_module, "ROWS_PER_SHARD", 8)
        run = sample("simulated", SET, k=4, limit=4, store=store).run
        train = sample("simulated", SET, split="train", k=2, limit=4, store=store).run
    for each in (run, train):
        grade_run(each)
        extract(each)
    estimate(run, "p-true")
    keep_coordinates(train, run)
    return store


@pytest.fixture
def store(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "store"))


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "gone": Path.unlink,
    "changed": flip,
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-9]),
    "empty": lambda path: path.write_bytes(b""),
}
FILES = [
    "verdicts.parquet",
    "confidence-p-true.parquet",
    "features.parquet",
    "coordinates.parquet",
    "samples-00000.parquet",
    "samples-00001.parquet",
    "sessions.jsonl",
    "run.json",
]


def test_a_whole_store_has_no_problems(store: Path) -> None:
    assert load_results(store, "simulated").attrs["problems"] == []
    assert describe_runs(store, "simulated").attrs["problems"] == []
    assert [problems_of(run) for run in open_runs(store)] == [(), ()]


@pytest.mark.parametrize("how", DAMAGE)
@pytest.mark.parametrize("name", FILES)
def test_a_lost_or_changed_file_is_an_error_or_named(store: Path, name: str, how: str) -> None:
    (run,) = open_runs(store, split="test")
    before = load_results(store, "simulated", k_eval=4)
    DAMAGE[how](run.folder / name)
    with suppress(InputError):
        after = load_results(store, "simulated", k_eval=4)
        assert any(name in problem for problem in after.attrs["problems"])
        shared = after.index.intersection(before.index)
        columns = [column for column in before if column in after]
        assert after.loc[shared, columns].to_dict() == before.loc[shared, columns].to_dict()
    with suppress(InputError):
        assert any(name in problem for problem in run_status(run).problems)


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"00000000 {}\n", "1 damaged lines"), (b"half a line", "ends in half a line")],
)
def test_a_damaged_journal_is_named(store: Path, content: bytes, words: str) -> None:
    (run,) = open_runs(store, split="test")
    (run.folder / "journal").write_bytes(content)
    assert any(words in problem for problem in load_results(store, "simulated").attrs["problems"])
    assert any(words in problem for problem in run_status(run).problems)


def test_a_training_run_whose_features_are_gone_is_named(store: Path) -> None:
    (run,) = open_runs(store, split="train")
    (run.folder / "features.parquet").unlink()
    (problem,) = load_results(store, "simulated", datasets=[SET]).attrs["problems"]
    assert problem.startswith("mini-exam (train): features.parquet is gone")


def test_a_file_is_read_once_until_it_changes(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Path] = []
    digest = files_module.file_digest

    def noted(path: Path) -> str:
        read.append(path)
        return digest(path)

    monkeypatch.setattr(files_module, "file_digest", noted)
    (run,) = open_runs(store, split="test")
    assert problems_of(run) == problems_of(run) == ()
    assert len(read) == len(set(read)) == len(files_module.files_of(run.folder))
    flip(run.folder / "verdicts.parquet")
    assert problems_of(run)
    assert {path.name for path in read[len(set(read)) :]} == {"verdicts.parquet"}


def test_what_is_gone_names_the_command_that_makes_it(store: Path) -> None:
    (run,) = open_runs(store, split="test")
    (run.folder / "verdicts.parquet").unlink()
    with pytest.raises(InputError, match=r"is gone, though .*; make them with: capcal grade"):
        load_results(store, "simulated", datasets=[SET])


def test_no_store_is_no_empty_table(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere is not a folder; name a run store"):
        load_results(tmp_path / "nowhere", "simulated")


def test_a_kind_of_file_is_known_by_its_name() -> None:
    assert artifact_of("verdicts.parquet") is VERDICTS
    names = ["confidence-x.parquet", "features-max.parquet", "features.part-00000.parquet"]
    assert [str(artifact_of(name) and artifact_of(name).title) for name in names] == [  # type: ignore[union-attr]
        "confidences",
        "hidden states",
        "hidden states",
    ]
    assert artifact_of("samples-00000.parquet") is None
    assert len({each.name for each in ARTIFACTS}) == len(ARTIFACTS)


def test_a_value_is_made_again_after_a_change_and_only_then(store: Path) -> None:
    (run,) = open_runs(store, split="test")
    made = []

    def make(one: Run, word: str) -> str:
        made.append(word)
        return word * 2

    assert run.cached(make, "a") == run.cached(make, "a") == "aa"
    assert run.cached(make, "b") == "bb"
    (run.folder / "notes.txt").touch()
    assert run.cached(make, "a") == "aa"
    assert made == ["a", "b", "a"]


def test_a_removed_run_leaves_nothing_and_one_at_work_stays(store: Path) -> None:
    run, other = open_runs(store)
    with open_writer(store, run.record), pytest.raises(InputError, match="is being written by pid"):
        remove_run(run)
    remove_run(run)
    assert open_runs(store) == [other]
    remove_run(other)
    assert list(store.iterdir()) == []
