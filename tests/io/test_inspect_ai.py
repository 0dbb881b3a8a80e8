"""Logs of inspect_ai, as JSON and in archives that nobody should trust."""

import json
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import pytest

from capcal_lib import rows
from capcal_lib.errors import InputError
from capcal_lib.io import logs
from capcal_lib.io.tables import read_file
from tests.io.files import LOG, accuracy, epoch, inspect, read_log


def test_the_settings_stand_in_the_header_and_tokens_with_the_sample(tmp_path: Path) -> None:
    choice = {"message": {"content": "x", "reasoning": "Hm."}, "stop_reason": "max_tokens"}
    usage = {"input_tokens": 5, "output_tokens": 9}
    sample = epoch(0, "C", output={"choices": [choice], "usage": usage})
    plan = {"steps": [], "config": {"temperature": 0.7, "max_tokens": 64}}
    path = inspect(tmp_path / "log.json", sample, plan=plan)
    log = read_log([path])
    [found] = log.samples.to_dict("records")
    assert log.settings == {"temperature": 0.7, "max_tokens": 64}
    assert (found["prompt_tokens"], found["completion_tokens"]) == (5, 9)
    assert (found["reasoning"], found["finish_reason"]) == ("Hm.", "length")


def test_what_a_sample_without_choices_was_scored_counts(tmp_path: Path) -> None:
    samples = [epoch(n, score, output={"choices": []}) for n, score in enumerate("CCCCII")]
    path = inspect(tmp_path / "log.json", *samples)
    assert {*read_log([path]).samples["verdict"]} == {"correct", "incorrect"}
    assert accuracy(path) == (4, 6)


def test_a_sample_that_failed_is_left_out(tmp_path: Path) -> None:
    failed = epoch(1, {}, error={"message": "boom", "traceback": "", "traceback_ansi": ""})
    path = inspect(tmp_path / "log.eval", epoch(0, "C"), failed)
    assert accuracy(path) == (1, 1)
    assert read_file(path).notes[0] == "1 request without a response left out"


@pytest.mark.parametrize("asked", ["Text.", [{"role": "system", "content": "Be."}], []])
def test_odd_messages_are_read(tmp_path: Path, asked: Any) -> None:
    asked = asked or [{"role": "user", "content": None}]
    samples = [epoch(n, score, input=asked) for n, score in enumerate("CI")]
    assert accuracy(inspect(tmp_path / "log.json", *samples)) == (1, 2)


def test_a_log_that_was_cut_off_has_its_header_in_its_journal(tmp_path: Path) -> None:
    path = inspect(tmp_path / "log.eval", epoch(0, "C"), plan={"config": {"temperature": 0.3}})
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name.replace("header.json", "_journal/start.json"), content)
    assert read_log([path]).settings == {"temperature": 0.3}


def test_a_log_without_samples_says_so(tmp_path: Path) -> None:
    path = inspect(tmp_path / "log.json", status="error")
    with pytest.raises(InputError, match="status error, with no samples in it"):
        read_file(path)


def test_an_archive_is_bounded_in_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "UNPACKED_BYTES", 1000)
    samples = [epoch(n, "C", output=" " * 400_000) for n in range(4)]
    path = inspect(tmp_path / "log.eval", *samples)
    with pytest.raises(InputError, match=r"log.eval: not a log of inspect_ai: it unpacks to more"):
        read_log([path])


def test_each_member_of_an_archive_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "MEMBER_BYTES", 1 << 12)
    path = inspect(tmp_path / "bomb.eval", epoch(0, "C", output=" " * (1 << 20)))
    with pytest.raises(InputError, match=r"samples/0_epoch_1.json is larger than"):
        read_log([path])
    monkeypatch.setattr(logs, "MEMBER_BYTES", 60)
    with pytest.raises(InputError, match=r"counts\.eval: "):
        read_log([LOG.with_name("counts.eval")])
    (tmp_path / "no.eval").write_bytes(b"PK nothing")
    with pytest.raises(InputError, match="not a log of inspect_ai"):
        read_log([tmp_path / "no.eval"])


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED])
def test_an_archive_that_lies_about_its_size_unpacks_to_little(tmp_path: Path, method: int) -> None:
    size = 1 << 26
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("header.json", json.dumps({"eval": {"task": "t"}}))
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
