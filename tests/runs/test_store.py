import hashlib
import json
import os
import random
import resource
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from capcal_lib.errors import InputError
from capcal_lib.manifests import Sampling, load_model
from capcal_lib.runs import Run, find_run, open_runs
from capcal_lib.runs import store as store_module
from capcal_lib.runs.artifacts import VERDICTS
from capcal_lib.runs.files import SUMS, files_of, read_sums, read_table, write_table
from capcal_lib.runs.run import Identity, Record, choose_runs, differences, list_fitting, run_of
from capcal_lib.runs.samples import Sample
from capcal_lib.runs.store import KEY, open_writer, read_samples, stream_samples, writer_at_work
from tests.folders import list_runs, run_folder

IDENTITY = Identity(
    model="m",
    weights="w",
    dataset="d",
    split="test",
    questions="q",
    prompt_style="short",
    prompt_template="t",
    chat_template={},
    sampling=Sampling(temperature=1.0, max_tokens=8, context_tokens=64),
    engine="simulated",
    seed=0,
)
RECORD = Record(identity=IDENTITY, made_with={"capcal": "test"})


def row(question: str, index: int, response: str = "Paris") -> Sample:
    return Sample(question, index, response, None, "stop", 10, 2)


def keys(folder: Path) -> list[tuple[str, int]]:
    samples = read_samples(Run(folder))
    return list(zip(samples["question_id"], samples["sample_index"], strict=True))


def test_rows_come_back_as_they_went_in(tmp_path: Path) -> None:
    odd = 'two\nlines, a "quote", a NUL \0, a right-to-left mark \u200f and é'
    with open_writer(tmp_path, RECORD) as writer:
        writer.append([row("b", 1), row("a", 0, odd)])
    samples = read_samples(run_of(tmp_path, IDENTITY))
    assert samples["question_id"].tolist() == ["a", "b"]
    assert samples["response"].tolist() == [odd, "Paris"]
    assert samples["reasoning"].isna().all()


def test_half_a_surrogate_pair_is_replaced_and_stops_nothing(tmp_path: Path) -> None:
    with open_writer(tmp_path, RECORD) as writer:
        writer.append([replace(row("a", 0, "x\ud800y"), reasoning="\udfffz")])
    samples = read_samples(run_of(tmp_path, IDENTITY))
    assert samples["response"].tolist() == ["x?y"]
    assert samples["reasoning"].tolist() == ["?z"]


def test_raising_k_asks_only_for_what_is_missing(tmp_path: Path) -> None:
    with open_writer(tmp_path, RECORD) as writer:
        writer.append([row("a", 0), row("a", 1), row("b", 1)])
    with open_writer(tmp_path, RECORD) as writer:
        assert writer.missing({"a": 2, "b": 2, "c": 2}) == {"b": (0,), "c": (0, 1)}
        assert writer.missing({"a": 1}) == {}
        assert writer.missing({"a": 4}) == {"a": (2, 3)}


def test_a_row_is_never_written_twice(tmp_path: Path) -> None:
    with open_writer(tmp_path, RECORD) as writer:
        writer.append([row("a", 0)])
        with pytest.raises(ValueError, match="sample 0 of a is there already"):
            writer.append([row("a", 0, "other")])
    assert read_samples(run_of(tmp_path, IDENTITY))["response"].tolist() == ["Paris"]


def test_shards_are_sealed_and_the_journal_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "ROWS_PER_SHARD", 3)
    with open_writer(tmp_path, RECORD) as writer:
        for index in range(7):
            writer.append([row("a", index)])
    folder = run_folder(tmp_path, IDENTITY)
    assert [pq.read_metadata(path).num_rows for path in sorted(folder.glob("samples-*"))] == [
        3,
        3,
        1,
    ]
    assert not (folder / "journal").exists()
    assert keys(folder) == [("a", index) for index in range(7)]


def journal_only(tmp_path: Path, rows: int) -> tuple[Path, bytes]:
    """Leave a run as a kill would: rows in the journal, none sealed."""
    with open_writer(tmp_path, RECORD) as writer:
        for index in range(rows):
            writer.append([row("a", index)])
        content = (writer.folder / "journal").read_bytes()
    folder = run_folder(tmp_path, IDENTITY)
    for path in [*folder.glob("samples-*"), folder / SUMS]:
        path.unlink()
    (folder / "journal").write_bytes(content)
    return folder, content


def test_a_journal_cut_at_any_byte_loses_only_the_torn_line(tmp_path: Path) -> None:
    folder, content = journal_only(tmp_path, 4)
    ends = [position + 1 for position, byte in enumerate(content) if byte == ord("\n")]
    for cut in {*range(0, len(content), 9), *ends, *(end - 1 for end in ends)}:
        for path in [*folder.glob("samples-*"), folder / SUMS]:
            path.unlink(missing_ok=True)
        (folder / "journal").write_bytes(content[:cut])
        whole = sum(end <= cut for end in ends)
        assert keys(folder) == [("a", index) for index in range(whole)]
        with open_writer(tmp_path, RECORD) as writer:
            torn = cut - [0, *ends][whole]
            assert writer.notes == (
                [f"cut off a torn tail of {torn} bytes that an earlier stop had left"] * bool(torn)
            )
            assert writer.missing({"a": 4}) == ({"a": tuple(range(whole, 4))} if whole < 4 else {})
            writer.append([row("a", index) for index in range(whole, 4)])
        assert keys(folder) == [("a", index) for index in range(4)]


def test_rows_in_both_shard_and_journal_count_once(tmp_path: Path) -> None:
    folder, content = journal_only(tmp_path, 3)
    with open_writer(tmp_path, RECORD):
        pass
    (folder / "journal").write_bytes(content)  # killed after sealing, before emptying
    assert keys(folder) == [("a", index) for index in range(3)]
    with open_writer(tmp_path, RECORD) as writer:
        writer.append([row("a", 3)])
    assert keys(folder) == [("a", index) for index in range(4)]
    assert sum(pq.read_metadata(path).num_rows for path in folder.glob("samples-*")) == 4


def test_killed_writers_lose_nothing_that_was_appended(tmp_path: Path) -> None:
    """Kill a real process at random moments until the run is whole."""
    script = textwrap.dedent("""
        import sys, time
        from pathlib import Path
        from tests.runs.test_store import RECORD, row
        from capcal_lib.runs import store
        store.ROWS_PER_SHARD = 40
        with store.open_writer(Path(sys.argv[1]), RECORD) as writer:
            for question, indices in writer.missing({f"q{n}": 5 for n in range(60)}).items():
                for index in indices:
                    writer.append([row(question, index, f"{question}:{index}")])
                    print(question, index, flush=True)
                    time.sleep(0.001)
    """)
    rng = random.Random(0)
    said: set[tuple[str, int]] = set()
    root = Path(__file__).resolve().parents[2]
    for attempt in range(5):
        process = subprocess.Popen(
            [sys.executable, "-c", script, str(tmp_path)],
            stdout=subprocess.PIPE,
            text=True,
            cwd=root,
        )
        assert process.stdout
        lines = 300 if attempt == 4 else rng.randrange(5, 60)
        for line in process.stdout:
            question, index = line.split()
            assert (question, int(index)) not in said
            said.add((question, int(index)))
            lines -= 1
            if lines == 0:
                process.kill()
        process.stdout.close()
        process.wait()
        assert said <= set(keys(run_folder(tmp_path, IDENTITY)))
    samples = read_samples(run_of(tmp_path, IDENTITY))
    assert len(samples) == 300
    assert all(
        response == f"{q}:{i}"
        for q, i, response in samples[["question_id", "sample_index", "response"]].values
    )


def test_a_second_writer_is_refused_and_told_who_holds_the_run(tmp_path: Path) -> None:
    with (
        open_writer(tmp_path, RECORD),
        pytest.raises(InputError, match=rf"is being written by pid {os.getpid()} on "),
    ):
        open_writer(tmp_path, RECORD).__enter__()
    with open_writer(tmp_path, RECORD):
        pass


def test_another_setting_is_another_run_and_the_difference_is_named(tmp_path: Path) -> None:
    other = IDENTITY.model_copy(
        update={"seed": 1, "sampling": IDENTITY.sampling.model_copy(update={"top_p": 0.9})}
    )
    assert other.key != IDENTITY.key
    for identity in (IDENTITY, other):
        with open_writer(tmp_path, Record(identity=identity, made_with={})) as writer:
            writer.append([row("a", 0)])
    one, two = run_folder(tmp_path, IDENTITY), run_folder(tmp_path, other)
    assert list_runs(tmp_path) == sorted([one, two])
    assert differences(IDENTITY, other) == ["seed: 0 / 1", "top_p: 1.0 / 0.9"]


def test_of_several_runs_one_is_chosen(tmp_path: Path) -> None:
    usual = IDENTITY.model_copy(
        update={
            "model": "simulated",
            "dataset": "mini-exam",
            "sampling": load_model("simulated").sampling,
        }
    )
    cooler = usual.sampling.model_copy(update={"temperature": 0.25})
    identities = {
        "usual": usual,
        "seeded": usual.model_copy(update={"seed": 1}),
        "cool": usual.model_copy(update={"sampling": cooler}),
        "both": usual.model_copy(update={"sampling": cooler, "seed": 1}),
    }
    runs = {}
    for name, identity in identities.items():
        with open_writer(tmp_path, Record(identity=identity, made_with={})) as writer:
            runs[name] = writer.run
        assert find_run(tmp_path, "simulated", "mini-exam", "test") == runs["usual"], (
            "the manifest's own, and seed 0"
        )
    where = tmp_path, "simulated", "mini-exam", "test"
    choices = {
        "seed=1": "seeded",
        "temperature=0.25": "cool",
        "temperature=0.25,seed=1": "both",
        "seed=0": "usual",
    }
    choices |= {run.folder.name: name for name, run in runs.items()} | {
        runs["both"].folder.name[:8]: "both"
    }
    for said, name in choices.items():
        assert find_run(*where, said) == runs[name]
    assert list_fitting(*where, "seed=1") == sorted([runs["seeded"], runs["both"]])
    with pytest.raises(
        InputError, match=r"no samples of .* with seed=7 in .*; make them with: capcal sample"
    ):
        find_run(*where, "seed=7")
    with pytest.raises(InputError, match=r"unknown setting 'sead'; .* seed"):
        find_run(*where, "sead=1")
    assert (
        runs["both"].options
        == f"--model simulated --dataset mini-exam --split test --run {runs['both'].folder.name}"
    )
    other = usual.model_copy(update={"weights": "another"})
    with open_writer(tmp_path, Record(identity=other, made_with={})):
        pass
    with pytest.raises(
        InputError, match=r"2 runs of simulated on .* differ in weights: .*; choose one with --run"
    ):
        find_run(*where)
    with open_writer(tmp_path, Record(identity=other, made_with={})) as writer:
        writer.append([row("a", 0)])
    assert find_run(*where) == run_of(tmp_path, other), "one without samples blocks no other"
    chosen = choose_runs(tmp_path, "seed=1", tmp_path.with_name("chosen"))
    assert {run.folder.name for run in open_runs(chosen)} == {
        runs["seeded"].folder.name,
        runs["both"].folder.name,
    }


def test_a_type_of_weights_is_a_setting_that_older_runs_go_without() -> None:
    rounded = IDENTITY.model_copy(update={"dtype": "bfloat16"})
    content = IDENTITY.model_dump(mode="json", exclude={"dtype"})
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    assert IDENTITY.key == hashlib.sha256(canonical.encode()).hexdigest()[:12]
    assert rounded.key != IDENTITY.key
    assert differences(IDENTITY, rounded) == ["dtype: None / bfloat16"]


def test_a_missing_run_names_the_command_that_makes_it(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match="capcal sample --model m --dataset d --split test --k 100"
    ):
        find_run(tmp_path, "m", "d", "test")


def journal(store: Path, *rows: Sample) -> bytes:
    with open_writer(store, RECORD) as writer:
        writer.append(rows)
        return (writer.folder / "journal").read_bytes()


@pytest.mark.parametrize("rows_per_shard", [2, 4, 7, 100])
def test_a_stream_has_the_rows_of_the_run_each_once_a_few_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows_per_shard: int
) -> None:
    pending = journal(
        tmp_path / "other", row("a", 1, "answer 1"), row("a", 0, "answer 0"), row("z", 0)
    )
    folder = shards(tmp_path, monkeypatch)
    (folder / "journal").write_bytes(pending)
    monkeypatch.setattr(store_module, "ROWS_PER_SHARD", rows_per_shard)
    parts = list(stream_samples(Run(folder), ["response"]))
    assert max(map(len, parts)) <= max(rows_per_shard, 3)  # the journal comes whole
    assert list(parts[0]) == [*KEY, "response"]
    whole = pd.concat(parts).sort_values(KEY, ignore_index=True)
    pd.testing.assert_frame_equal(whole, read_samples(Run(folder), ["response"]))


def test_a_stream_takes_the_memory_of_a_few_shards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "ROWS_PER_SHARD", 100)
    with open_writer(tmp_path, RECORD) as writer:
        for start in range(0, 2_000, 100):
            writer.append(
                [row("a", index, "x" * 10_000) for index in range(start, start + 100)]
            )  # a megabyte
    before = pa.total_allocated_bytes()
    most = max(
        pa.total_allocated_bytes() - before for _ in stream_samples(run_of(tmp_path, IDENTITY))
    )
    assert most < 6 << 20


def test_a_stream_refuses_two_different_rows_under_one_key(tmp_path: Path) -> None:
    folder, content = journal_only(tmp_path, 1)
    with open_writer(tmp_path, RECORD):
        pass
    (folder / "journal").write_bytes(content)
    assert [len(rows) for rows in stream_samples(Run(folder))] == [1]
    (folder / "journal").write_bytes(journal(tmp_path / "other", row("a", 0, "another")))
    with pytest.raises(InputError, match="two different rows for sample 0 of a"):
        list(stream_samples(Run(folder)))


def test_two_different_rows_under_one_key_are_refused(tmp_path: Path) -> None:
    with open_writer(tmp_path, RECORD) as writer:
        writer.append([row("a", 0)])
    folder = run_folder(tmp_path, IDENTITY)
    with open_writer(tmp_path / "elsewhere", RECORD) as writer:
        writer.append([replace(row("a", 0), response="Rome")])
    shard = run_folder(tmp_path / "elsewhere", IDENTITY) / "samples-00000.parquet"
    shard.rename(folder / "samples-00001.parquet")
    with pytest.raises(InputError, match="two different rows for sample 0 of a"):
        read_samples(Run(folder))


@pytest.mark.parametrize("content", [b"", b"PAR1", b"not parquet at all"])
def test_a_corrupt_shard_is_one_clear_line(tmp_path: Path, content: bytes) -> None:
    with open_writer(tmp_path, RECORD) as writer:
        writer.append([row("a", 0)])
    folder = run_folder(tmp_path, IDENTITY)
    (folder / "samples-00000.parquet").write_bytes(content)
    with pytest.raises(
        InputError, match=r"samples-00000.parquet: missing or corrupt .*restore the file"
    ) as caught:
        read_samples(Run(folder))
    assert "\n" not in str(caught.value)


def test_a_corrupt_record_is_one_clear_line(tmp_path: Path) -> None:
    with open_writer(tmp_path, RECORD):
        pass
    folder = run_folder(tmp_path, IDENTITY)
    (folder / "run.json").write_text(json.dumps({"identity": {}}))
    (folder / SUMS).unlink()
    with pytest.raises(InputError, match=r"run.json: missing or corrupt run record") as caught:
        _ = Run(folder).record
    assert "\n" not in str(caught.value)


def test_a_place_that_cannot_be_written_is_one_clear_line() -> None:
    with pytest.raises(InputError, match=r"cannot be written .*; choose another --store"):
        open_writer(Path("/proc/nothing"), RECORD).__enter__()


def test_a_full_disk_keeps_what_was_written(tmp_path: Path) -> None:
    with open_writer(tmp_path, RECORD) as writer:
        writer.append([row("a", 0)])
    folder = run_folder(tmp_path, IDENTITY)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    def write_too_much() -> None:
        with open_writer(tmp_path, RECORD) as writer:
            writer.append([row("a", 1)])
            writer.append([row("a", 2, "x" * 100_000)])

    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
        with pytest.raises(InputError, match="the disk is full"):
            open_writer(tmp_path, RECORD).__enter__()
        resource.setrlimit(
            resource.RLIMIT_FSIZE, (8192, limits[1])
        )  # a small file may be written, a large one not
        with pytest.raises(InputError, match="the disk is full; what was written is kept"):
            write_too_much()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert keys(folder)[:2] == [("a", 0), ("a", 1)]
    with open_writer(tmp_path, RECORD) as writer:
        assert writer.missing({"a": 3}) == {"a": (2,)}
        writer.append([row("a", 2)])
    assert keys(folder) == [("a", 0), ("a", 1), ("a", 2)]


# Damage from outside


def shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int = 3) -> Path:
    """Make a run of a few shards with two rows each."""
    monkeypatch.setattr(store_module, "ROWS_PER_SHARD", 2)
    with open_writer(tmp_path, RECORD) as writer:
        for index in range(2 * number):
            writer.append([row("a", index, f"answer {index}")])
    return run_folder(tmp_path, IDENTITY)


@pytest.mark.parametrize("keep", [0, 3, 200, -1])
def test_a_damaged_shard_is_set_aside_and_its_rows_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep: int
) -> None:
    folder = shards(tmp_path, monkeypatch)
    path = folder / "samples-00001.parquet"
    path.write_bytes(path.read_bytes()[:keep])
    with open_writer(tmp_path, RECORD) as writer:
        assert writer.notes == [
            "samples-00001.parquet was damaged: set aside as samples-00001.parquet.damaged; its "
            "rows are drawn again"
        ]
        assert writer.missing({"a": 6}) == {"a": (2, 3)}
        writer.append([row("a", 2), row("a", 3)])
    names = sorted(path.name for path in folder.glob("samples-*"))
    assert names == [
        f"samples-0000{number}.parquet{'.damaged' * (number == 1)}" for number in range(4)
    ]
    assert keys(folder) == [("a", index) for index in range(6)]
    assert read_samples(Run(folder))["response"].tolist()[4:] == ["answer 4", "answer 5"]


def test_a_flipped_bit_in_a_shard_is_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shards(tmp_path, monkeypatch, 1)
    path = folder / "samples-00000.parquet"
    content = bytearray(path.read_bytes())
    where = content.index(b"answer")  # compression leaves the first occurrence as it is
    content[where] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(InputError, match="missing or corrupt"):
        read_samples(Run(folder))
    with open_writer(tmp_path, RECORD) as writer:
        assert writer.missing({"a": 2}) == {"a": (0, 1)}


def test_verdicts_of_lost_rows_go_with_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shards(tmp_path, monkeypatch)
    verdicts = pa.table({"question_id": ["a"] * 6, "sample_index": list(range(6))})
    pq.write_table(verdicts, folder / VERDICTS.name)
    with open_writer(tmp_path, RECORD) as writer:
        assert writer.notes == []
    (folder / "samples-00002.parquet").write_bytes(b"")
    with open_writer(tmp_path, RECORD) as writer:
        assert any("removed the verdicts" in note for note in writer.notes)
    assert not (folder / VERDICTS.name).exists()


def test_the_remains_of_a_killed_sealing_are_cleared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shards(tmp_path, monkeypatch, 1)
    (folder / ".samples-00001.parquet.123").write_bytes(b"half")
    with open_writer(tmp_path, RECORD):
        pass
    assert not list(folder.glob(".samples-*"))


@pytest.mark.parametrize("content", ["", '{"identity": {"model": "m", "we'])
def test_a_torn_record_is_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    folder = shards(tmp_path, monkeypatch)
    (folder / "run.json").write_text(content)
    with open_writer(tmp_path, RECORD) as writer:
        assert writer.notes == ["run.json was damaged: written anew"]
        assert writer.missing({"a": 6}) == {}
    assert Run(folder).record == RECORD


def test_an_edited_record_is_refused_by_readers_and_mended_by_writers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shards(tmp_path, monkeypatch)
    path = folder / "run.json"
    path.write_text(path.read_text().replace('"seed": 0', '"seed": 1'))
    with pytest.raises(InputError, match="its digest is not the one in SHA256SUMS"):
        _ = Run(folder).record
    (folder / SUMS).unlink()
    with pytest.raises(
        InputError, match=r"its settings are those of run \w{12}, not of its folder"
    ) as caught:
        _ = Run(folder).record
    assert "\n" not in str(caught.value)
    with open_writer(tmp_path, RECORD) as writer:
        assert writer.notes == ["run.json was damaged: written anew"]
    assert Run(folder).record == RECORD


def test_one_column_is_read_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = shards(tmp_path, monkeypatch)
    samples = read_samples(Run(folder), ["completion_tokens"])
    assert list(samples) == ["question_id", "sample_index", "completion_tokens"]
    assert len(samples) == 6


def test_vectors_come_back_exactly_and_their_alike_bytes_compress(tmp_path: Path) -> None:
    states = np.random.default_rng(0).normal(size=(400, 4, 64)).astype(np.float16)
    states[0, 0, :3] = [np.nan, np.inf, -0.0]
    rows = pa.FixedSizeListArray.from_arrays(states.ravel(), 64)
    table = pa.table(
        {
            "question_id": ["the same long name of a question"] * 400,
            "layers": pa.FixedSizeListArray.from_arrays(rows, 4),
        }
    )
    path = tmp_path / "features.parquet"
    write_table(path, table)
    columns = pq.read_table(path).column("layers").combine_chunks()
    assert columns.flatten().flatten().to_numpy().tobytes() == states.tobytes()
    assert path.stat().st_size < 0.95 * states.nbytes


def test_the_writer_is_known_while_it_writes(tmp_path: Path) -> None:
    with open_writer(tmp_path, RECORD) as writer:
        assert (writer_at_work(Run(writer.folder)) or "").startswith(f"pid {os.getpid()} on ")
    assert writer_at_work(Run(writer.folder)) is None
    assert writer_at_work(Run(tmp_path / "nothing")) is None


def test_a_large_journal_is_sealed_before_it_has_many_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "BYTES_PER_SHARD", 10_000)
    with open_writer(tmp_path, RECORD) as writer:
        for index in range(3):
            writer.append([row("a", index, "x" * 6_000)])
        assert len(list(writer.folder.glob("samples-*"))) == 1
        assert writer.rows == 3


def flipped(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place % len(content)] ^= 1 << place % 7
    path.write_bytes(bytes(content))


def test_a_damaged_line_of_the_journal_costs_that_line(tmp_path: Path) -> None:
    folder, content = journal_only(tmp_path, 5)
    for place in {*range(0, len(content), 11), len(content) // 5 - 1}:
        (folder / "journal").write_bytes(content)
        flipped(folder / "journal", place)
        there = keys(folder)
        assert set(there) < {("a", index) for index in range(5)}
        assert len(there) >= (3 if content[place] == ord("\n") else 4)
    flipped(folder / "journal", 20)
    with open_writer(tmp_path, RECORD) as writer:
        assert any(
            "damaged lines of the journal; their rows are drawn again" in note
            for note in writer.notes
        )
        writer.append([row("a", index) for index in writer.missing({"a": 5})["a"]])
    assert keys(folder) == [("a", index) for index in range(5)]


def test_every_file_has_its_digest_and_a_flip_anywhere_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shards(tmp_path, monkeypatch)
    assert sorted(read_sums(folder)) == [path.name for path in files_of(folder)]
    done = subprocess.run(
        ["sha256sum", "--check", "--quiet", SUMS], cwd=folder, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "")
    rng = random.Random(0)
    before = read_samples(Run(folder))
    for path in [*files_of(folder), folder / SUMS]:
        content = path.read_bytes()
        for _ in range(25):
            flipped(path, rng.randrange(1 << 30))
            with suppress(InputError):
                _ = Run(folder).record
                pd.testing.assert_frame_equal(read_samples(Run(folder)), before)
                assert path.name == SUMS  # of another file
            path.write_bytes(content)


def test_a_footer_that_cannot_be_decoded_sets_the_shard_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a digest on record, whatever the reading of a footer raises."""
    folder = shards(tmp_path, monkeypatch, 1)
    path = folder / "samples-00000.parquet"
    content = path.read_bytes()
    for place in range(len(content) - 700, len(content) - 8, 3):
        path.write_bytes(content)
        (folder / SUMS).unlink(missing_ok=True)
        flipped(path, place)
        with open_writer(tmp_path, RECORD) as writer:
            assert len(writer.notes) == (writer.rows == 0)
        (folder / f"{path.name}.damaged").unlink(missing_ok=True)


def test_a_write_that_was_stopped_leaves_a_file_that_its_record_fits(tmp_path: Path) -> None:
    """Stop before each of the three changes that a write makes."""
    for stop in range(3):
        path = tmp_path / str(stop) / "a.parquet"
        path.parent.mkdir()
        write_table(path, pa.table({"a": [0]}))
        stops_before(stop, lambda path=path: write_table(path, pa.table({"a": [1]})))
        assert read_table(path)["a"].to_pylist() == [int(stop > 1)]
        write_table(path.with_name("b.parquet"), pa.table({"b": [2]}))
        assert {name: len(known) for name, known in read_sums(path.parent).items()} == {
            "a.parquet": 1,
            "b.parquet": 1,
        }
        assert not list(path.parent.glob(".*"))
        read_table(path)


def stops_before(step: int, write: Callable[[], None]) -> None:
    """Interrupt a write before its first, second or third change on the disk."""
    real, left = Path.replace, step

    def replace_or_stop(path: Path, target: Path) -> Path:
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
        return real(path, target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "replace", replace_or_stop)
        with pytest.raises(KeyboardInterrupt):
            write()


def test_names_that_are_paths_are_refused() -> None:
    for name in ("/elsewhere/x", "../../evil", "..", "a/b", "", "a b", "\x1b[2J"):
        content = IDENTITY.model_dump(mode="json") | {"model": name}
        with pytest.raises(ValidationError, match="String should match pattern"):
            Identity.model_validate_json(json.dumps(content))


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_a_folder_that_may_not_be_written_is_one_clear_line(tmp_path: Path) -> None:
    with open_writer(tmp_path, RECORD):
        pass
    child = os.fork()
    if not child:  # pragma: no cover
        os.setuid(65534)
        try:
            write_table(tmp_path / "a.parquet", pa.table({"a": [1]}))
        except InputError as error:
            os._exit(0 if "cannot be written" in str(error) or "Permission" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_ctrl_c_waits_until_a_batch_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Press it in the middle of appending and again in the middle of sealing."""
    pressed = []

    def press(real):  # type: ignore[no-untyped-def]
        def call(*arguments):  # type: ignore[no-untyped-def]
            pressed.append(1)
            signal.raise_signal(signal.SIGINT)
            return real(*arguments)

        return call

    monkeypatch.setattr(store_module, "_journal_line", press(store_module._journal_line))
    monkeypatch.setattr(store_module.files, "write_table", press(store_module.files.write_table))

    def interrupted() -> None:
        with open_writer(tmp_path, RECORD) as writer:
            writer.append([row("a", 0), row("a", 1)])
            pytest.fail("the first press ends it here")

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert len(pressed) == 3
    folder = run_folder(tmp_path, IDENTITY)
    assert keys(folder) == [("a", 0), ("a", 1)]
    assert sorted(path.name for path in folder.iterdir()) == [
        "SHA256SUMS", "lock", "run.json", "samples-00000.parquet", "sums.lock",
    ]  # fmt: skip
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
