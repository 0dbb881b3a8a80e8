"""Runs: which settings make another, and how one of several is found."""

import hashlib
import json
import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from capcal_lib.errors import InputError
from capcal_lib.manifests import load_model
from capcal_lib.runs import Run, find_run, open_runs
from capcal_lib.runs.artifacts import LAYER_FEATURES, VERDICTS
from capcal_lib.runs.merge import merge
from capcal_lib.runs.run import Choice, Identity, Record, differences, list_fitting, run_of
from capcal_lib.runs.status import survey
from capcal_lib.runs.store import open_writer, read_samples, remove_run
from tests.runs.rows import IDENTITY, RECORD, row, shards


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
    choices: list[tuple[Choice, str]] = [
        ({"seed": 1}, "seeded"),
        ({"temperature": 0.25}, "cool"),
        ({"temperature": 0.25, "seed": 1}, "both"),
        ({"seed": 0, "top_k": None}, "usual"),
        (runs["both"].folder.name[:8], "both"),
    ]
    choices += [(run.folder.name, name) for name, run in runs.items()]
    for choice, name in choices:
        assert find_run(*where, choice) == runs[name]
    assert list_fitting(*where, {"seed": 1}) == sorted([runs["seeded"], runs["both"]])
    with pytest.raises(InputError, match=r"unknown setting 'sead'; known: .* seed"):
        find_run(*where, {"sead": 1})
    with pytest.raises(
        InputError, match=r"no samples of .* with seed=7 in .*; make them with: capcal sample"
    ):
        find_run(*where, {"seed": 7})
    assert (
        runs["both"].options
        == f"--model simulated --dataset mini-exam --split test --run {runs['both'].folder.name} "
        f"--store {runs['both'].folder.parents[2]}"
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


def test_a_type_of_weights_is_a_setting_that_older_runs_go_without() -> None:
    rounded = IDENTITY.model_copy(update={"dtype": "bfloat16"})
    content = IDENTITY.model_dump(mode="json", exclude={"dtype"})
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    assert IDENTITY.key == hashlib.sha256(canonical.encode()).hexdigest()[:12]
    assert rounded.key != IDENTITY.key
    assert differences(IDENTITY, rounded) == ["dtype: None / bfloat16"]


def test_names_that_are_paths_are_refused() -> None:
    for name in ("/elsewhere/x", "../../evil", "..", "a/b", "", "a b", "\x1b[2J"):
        content = IDENTITY.model_dump(mode="json") | {"model": name}
        with pytest.raises(ValidationError, match="String should match pattern"):
            Identity.model_validate_json(json.dumps(content))


@pytest.mark.parametrize("depth", [1, 3])
def test_a_link_out_of_a_store_is_no_way_to_anothers_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, depth: int
) -> None:
    ours = shards(tmp_path / "ours", monkeypatch)
    before = {path: path.read_bytes() for path in ours.iterdir()}
    place = Path(*ours.parts[-3:][:depth])
    link = tmp_path / "stranger" / place
    link.parent.mkdir(parents=True)
    link.symlink_to(tmp_path / "ours" / place)
    calls = (
        lambda: find_run(tmp_path / "stranger", "m", "d", "test"),
        lambda: open_runs(tmp_path / "stranger"),
        lambda: open_writer(tmp_path / "stranger", RECORD).__enter__(),
        lambda: merge(tmp_path / "stranger", [tmp_path / "ours"]),
    )
    for call in calls:
        with pytest.raises(InputError, match=r"is a link to .*, outside this store"):
            call()
    assert {path: path.read_bytes() for path in ours.iterdir()} == before


def test_a_store_may_be_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = shards(tmp_path / "ours", monkeypatch)
    (tmp_path / "link").symlink_to("ours")
    (run,) = open_runs(tmp_path / "link")
    assert len(read_samples(run)) == 6
    with open_writer(tmp_path / "link", RECORD) as writer:
        writer.append([row("b", 0)])
    assert len(read_samples(Run(folder))) == 7
    remove_run(run)
    assert not folder.exists()


def test_a_damaged_run_hides_no_other(tmp_path: Path) -> None:
    for seed in range(2):
        identity = IDENTITY.model_copy(update={"seed": seed, "dataset": f"d{seed}"})
        with open_writer(tmp_path, Record(identity=identity, made_with={})) as writer:
            writer.append([row("a", 0)])
    first, second = open_runs(tmp_path)
    (first.folder / "run.json").write_bytes(b"\xff")
    assert open_runs(tmp_path, dataset="d1") == open_runs(tmp_path, seed=1) == [second]
    assert open_runs(tmp_path, dataset="d0") == [first]
    table = survey(tmp_path)
    assert table["next"].tolist() == ["verify", "grade"]
    assert table["samples"].tolist()[1] == 1
    assert "run.json" in table["problems"][0][0]


def test_what_a_run_lacks_is_made_by_a_command_with_its_options(tmp_path: Path) -> None:
    with open_writer(tmp_path, RECORD) as writer:
        run = writer.run
    command = f"make them with: capcal features {run.options} --layers 7"
    with pytest.raises(InputError, match=f"no features-7 in {re.escape(str(run))}; {command}$"):
        run.read(LAYER_FEATURES, "7", option=" --layers 7")
    with pytest.raises(InputError, match=f"make them with: capcal grade {run.options}$"):
        run.read(VERDICTS)
