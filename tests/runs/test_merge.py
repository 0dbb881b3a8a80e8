"""Stores from several machines become one."""

import resource
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from capcal_lib.confidence.of_run import estimate, place_confidence, read_confidence
from capcal_lib.errors import InputError
from capcal_lib.grading.verdicts import grade_run, read_verdicts, write_verdicts
from capcal_lib.probes.features import extract, read_features
from capcal_lib.questions import load_questions
from capcal_lib.results import load_results
from capcal_lib.runs import Run
from capcal_lib.runs.artifacts import CONFIDENCES, FEATURES, GIVEN
from capcal_lib.runs.files import write_table
from capcal_lib.runs.merge import merge
from capcal_lib.runs.sessions import read_lines
from capcal_lib.runs.status import run_status
from capcal_lib.runs.store import open_writer, read_samples
from capcal_lib.sampling.draw import sample
from tests.folders import list_runs, verify_run
from tests.runs.rows import RECORD, row

SET = "mini-exam"


def bytes_of(store: Path) -> dict[str, bytes]:
    return {
        path.relative_to(store).as_posix(): path.read_bytes()
        for path in store.rglob("*")
        if path.is_file() and not path.name.endswith("lock")
    }


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    """Two machines: one drew many samples of few questions, the other few of many; they overlap."""
    one, other = tmp_path / "one", tmp_path / "other"
    for store, k, limit in ((one, 6, 3), (other, 2, 5)):
        folder = sample("simulated", SET, k=k, limit=limit, store=store).run.folder
        grade_run(Run(folder))
        estimate(Run(folder), "p-true")
        extract(Run(folder))
    return one, other


def test_one_run_of_two_has_the_rows_and_facts_of_both(
    two: tuple[Path, Path], tmp_path: Path
) -> None:
    one, other = two
    into = tmp_path / "all"
    taken = merge(into, [one, other])
    assert [(run.rows, run.present, run.notes) for run in taken] == [(18, 0, ()), (4, 6, ())]
    (folder,) = list_runs(into)
    apart = tmp_path / "apart"
    sample("simulated", SET, k=2, limit=5, store=apart)
    whole = sample("simulated", SET, k=6, limit=3, store=apart).run.folder
    pd.testing.assert_frame_equal(read_samples(Run(folder)), read_samples(Run(whole)))
    grade_run(Run(whole))
    assert grade_run(Run(folder)).new == 4
    pd.testing.assert_frame_equal(read_verdicts(Run(folder)), read_verdicts(Run(whole)))
    counts = [load_results(each, "simulated")[["correct", "total"]] for each in (into, apart)]
    pd.testing.assert_frame_equal(*counts)
    assert len(read_confidence(Run(folder), "p-true")) == len(read_features(Run(folder))[0]) == 5
    assert len(read_lines(Run(folder))) == 2
    assert verify_run(Run(folder)).problems == []


def test_merging_again_or_in_another_order_changes_nothing(
    two: tuple[Path, Path], tmp_path: Path
) -> None:
    into = tmp_path / "all"
    merge(into, two)
    before = bytes_of(into)
    assert [run.rows for run in merge(into, two[::-1])] == [0, 0]
    assert [run.rows for run in merge(into, [into])] == [0]
    assert bytes_of(into) == before
    merge(tmp_path / "turned", two[::-1])
    (one,), (turned,) = list_runs(into), list_runs(tmp_path / "turned")
    pd.testing.assert_frame_equal(read_samples(Run(one)), read_samples(Run(turned)))


def conflicting(tmp_path: Path) -> tuple[Path, Path]:
    one, other = tmp_path / "one", tmp_path / "other"
    with open_writer(one, RECORD) as writer:
        writer.append([row("a", 0), row("b", 1)])
    with open_writer(other, RECORD) as writer:
        writer.append([row("a", 0), replace(row("b", 1), response="Rome"), row("c", 0)])
    return one, other


@pytest.mark.parametrize(
    "sources", [lambda one, other: (one, [other]), lambda one, other: (one / "new", [one, other])]
)
def test_a_sample_that_differs_is_named_and_nothing_is_written(
    tmp_path: Path, sources: Callable[[Path, Path], tuple[Path, list[Path]]]
) -> None:
    into, merged = sources(*conflicting(tmp_path))
    before = bytes_of(tmp_path)
    with pytest.raises(
        InputError,
        match=r"1 samples have two different rows in .*one.*, .*other.*nothing was written",
    ) as caught:
        merge(into, merged)
    assert "\n" not in str(caught.value)
    assert bytes_of(tmp_path) == before


def test_a_confidence_takes_the_place_of_a_missing_one(tmp_path: Path) -> None:
    both, other = (question.id for question in load_questions(SET)[:2])
    said = {"a": {both: 0.25}, "b": {both: 0.5, other: 0.75}}
    for name, shares in said.items():
        run = sample("simulated", SET, k=1, store=tmp_path / name).run
        rows = [{"question_id": one, "confidence": share} for one, share in shares.items()]
        place_confidence(run, "mine", rows)
    for stores in ("ab", "ba", "aba"):
        for name in stores:
            [*merge(tmp_path / stores, [tmp_path / name])]
        (folder,) = list_runs(tmp_path / stores)
        found = read_confidence(Run(folder), "mine")["confidence"].dropna()
        assert found.to_dict() == {both: said[stores[0]][both], other: 0.75}


def test_what_was_made_in_another_way_is_left_out_and_said(
    two: tuple[Path, Path], tmp_path: Path
) -> None:
    (run,) = list_runs(two[1])
    path = Run(run).path(CONFIDENCES, "p-true")
    write_table(path, pq.read_table(path).replace_schema_metadata({"words": "others"}))
    older = Run(run).path(FEATURES)
    write_table(older, FEATURES.read(older).drop_columns("prompt"))
    first, second = merge(tmp_path / "all", two)
    assert first.notes == ()
    told = "which was made with other settings than"
    assert [told in note for note in second.notes] == [True, True]
    (folder,) = list_runs(tmp_path / "all")
    assert len(read_confidence(Run(folder), "p-true")) == 3


def test_verdicts_that_came_with_samples_are_those_of_both(
    two: tuple[Path, Path], tmp_path: Path
) -> None:
    for store in two:
        [run] = map(Run, list_runs(store))
        verdicts = read_verdicts(run).assign(reason="given")
        write_verdicts(run, verdicts, GIVEN)
    merge(tmp_path / "all", two)
    [run] = map(Run, list_runs(tmp_path / "all"))
    assert len(read_verdicts(run)) == 22
    assert run_status(run)["verdicts"] == "yes"
    assert verify_run(run).problems == []


def test_a_folder_without_runs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is neither a run nor a store with runs"):
        merge(tmp_path / "all", [tmp_path])


def test_a_damaged_file_is_named_and_the_rest_is_taken_once_it_is_deleted(
    two: tuple[Path, Path], tmp_path: Path
) -> None:
    (run,) = list_runs(two[0])
    (run / "features.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match=r"features.parquet: .*delete it and make it again"):
        merge(tmp_path / "all", two)
    (run / "features.parquet").unlink()
    assert [merged.notes for merged in merge(tmp_path / "all", two)] == [(), ()]
    (folder,) = list_runs(tmp_path / "all")
    assert (len(read_features(Run(folder))[0]), len(read_verdicts(Run(folder)))) == (5, 18)


def test_a_full_disk_is_one_clear_line_and_loses_nothing(
    two: tuple[Path, Path], tmp_path: Path
) -> None:
    sample("simulated", SET, k=7, limit=4, store=two[0])
    (run,) = list_runs(two[0])
    before = bytes_of(two[0])
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    calls: list[Callable[[], object]] = [
        lambda: grade_run(Run(run)),
        lambda: estimate(Run(run), "p-true"),
        lambda: extract(Run(run)),
        lambda: merge(tmp_path / "new", two),
        lambda: merge(*two[::-1][:1], [two[0]]),
    ]
    for call in calls:
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (300, limits[1]))  # no file may be larger
            with pytest.raises(
                InputError, match="the disk is full; what was written is kept"
            ) as caught:
                call()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert "\n" not in str(caught.value)
    assert bytes_of(two[0]) == before
    assert grade_run(Run(run)).new > 0
    for _ in range(2):
        merged = merge(two[1], [two[0]])
    assert merged[0].rows == 0
    (folder,) = list_runs(two[1])
    grade_run(Run(folder))
    assert [
        problem for problem in verify_run(Run(folder)).problems if "missing" not in problem
    ] == []
    assert not list(tmp_path.rglob(".*.tmp"))
