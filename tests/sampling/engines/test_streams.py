"""Many requests at a time, stopped early or beside another loop."""

import threading
import time
from pathlib import Path

import pytest

from capcal_lib.runs import files
from capcal_lib.runs.run import Run
from capcal_lib.runs.store import read_samples
from capcal_lib.sampling.draw import sample as draw_samples
from capcal_lib.sampling.engines import client
from tests.folders import list_runs
from tests.sampling.chat_server import ChatServer, slow
from tests.sampling.engines.served import MODEL, SAMPLING, always, draw, first, open_at, requests


def test_closing_early_stops_the_requests() -> None:
    with ChatServer(fault=always(slow(0.05))) as server:
        stream = open_at(server, in_flight=2).sample(requests(50, 1), SAMPLING, 0)
        next(stream)
        stream.close()  # type: ignore[attr-defined]
        time.sleep(0.5)  # until what was on its way has come in
        asked = len(server.asked)
        time.sleep(0.5)
        assert asked == len(server.asked) < 50
    assert not [thread for thread in threading.enumerate() if thread.name == client.THREADS]


def test_a_silent_second_is_said_if_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "PAUSE_SECONDS", 0.1)

    def wait(seconds: float) -> float:
        time.sleep(seconds)
        return seconds

    stream = client.Client("http://127.0.0.1:9/v1", "", 2).stream
    found = list(stream([0.35, 0.0], wait, pause=-1.0))
    assert found[0] == 0
    assert found[-1] == 0.35
    assert {*found[1:-1]} == {-1.0}
    assert list(stream([0.35, 0.0], wait)) == [0.0, 0.35]


def test_answers_are_written_while_a_server_is_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill then loses the answers of the last seconds, however long the others take."""
    monkeypatch.setattr(client, "PAUSE_SECONDS", 0.1)
    monkeypatch.setattr(files, "WRITE_SECONDS", 0.2)
    with ChatServer(fault=first(1, slow(2.0))) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        given = {"k": 2, "limit": 4, "engine": "openai", "store": tmp_path}
        drawing = threading.Thread(
            target=draw_samples, args=(MODEL.name, "mini-capitals"), kwargs=given
        )
        drawing.start()
        time.sleep(1.3)
        (folder,) = list_runs(tmp_path)
        assert len(read_samples(Run(folder))) == 7
        assert drawing.is_alive()
        drawing.join()
    assert len(read_samples(Run(folder))) == 8


def test_as_many_samples_are_under_way_as_were_wished() -> None:
    with ChatServer(fault=always(slow(0.3))) as server:
        rows, _ = draw(open_at(server, in_flight=32), requests(3, 16))
        assert 16 <= server.most_at_once <= 32
    assert len(rows) == 48
