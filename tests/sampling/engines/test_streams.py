"""Many requests at a time, stopped early or beside another loop."""

import threading
import time
from typing import Any

from capcal_lib.runs.store import Sample
from tests.sampling.chat_server import ChatServer, slow
from tests.sampling.engines.served import SAMPLING, always, draw, open_at, requests


def test_closing_early_stops_the_requests() -> None:
    with ChatServer(fault=always(slow(0.05))) as server:
        stream = open_at(server, in_flight=2).sample(requests(50, 1), SAMPLING, 0)
        next(stream)
        stream.close()  # type: ignore[attr-defined]
        time.sleep(0.5)  # until what was on its way has come in
        asked = len(server.asked)
        time.sleep(0.5)
        assert asked == len(server.asked) < 50
    assert not [thread for thread in threading.enumerate() if thread.name == "requests"]


def test_it_works_where_a_loop_is_running(calm: tuple[list[Sample], list[dict[str, Any]]]) -> None:
    import asyncio

    with ChatServer() as server:

        async def cell() -> list[Sample]:
            return draw(open_at(server), requests(3, 20))[0]

        assert asyncio.run(cell()) == calm[0]


def test_as_many_samples_are_under_way_as_were_wished() -> None:
    with ChatServer(fault=always(slow(0.3))) as server:
        rows, _ = draw(open_at(server, in_flight=32), requests(3, 16))
        assert 16 <= server.most_at_once <= 32
    assert len(rows) == 48
