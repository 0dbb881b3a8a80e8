"""What several engines are tried with."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from capcal_lib.runs.store import Sample
from capcal_lib.sampling.engines import client
from tests.sampling.chat_server import ChatServer
from tests.sampling.engines.served import draw, open_at, requests


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for tenths of a second where one waits for half a minute."""
    monkeypatch.setattr(client, "LONGEST_WAIT", 0.1)


@pytest.fixture(scope="session")
def calm() -> tuple[list[Sample], list[dict[str, Any]]]:
    """The rows of three questions, 20 samples each, from a server that behaves, and what it was
    asked.
    """
    with ChatServer() as server:
        rows, failures = draw(open_at(server), requests(3, 20))
    assert not failures
    return rows, server.asked


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatServer]:
    with ChatServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield server


@pytest.fixture(scope="session")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Any]]:
    from tests.sampling.engines.tiny_models import open_engines  # which needs torch

    yield from open_engines(tmp_path_factory)
