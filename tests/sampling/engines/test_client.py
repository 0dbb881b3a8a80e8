"""The client of a server: what passes, what does not, and what it never shows."""

import os
import re
import threading
import time
from typing import Any

import pytest

from capcal_lib.errors import InputError
from capcal_lib.runs.store import Sample
from capcal_lib.sampling.engines import Failure, client
from capcal_lib.sampling.engines.openai import OpenAIEngine
from tests.sampling.chat_server import ChatServer, Fault, cut, echo, raw, slow, status
from tests.sampling.engines.served import (
    MODEL,
    QUESTIONS,
    SAMPLING,
    always,
    draw,
    first,
    open_at,
    requests,
    said,
)


@pytest.mark.parametrize(
    "fault",
    [
        status(429, "slow down"),
        status(500, "out of memory"),
        cut,
        raw(b'{"choices": [{"index": 0, "mess'),
        slow(0.2),
    ],
    ids=["429", "500", "cut", "half", "slow"],
)
def test_what_passes_is_waited_for(
    calm: tuple[list[Sample], list[dict[str, Any]]], fault: Fault
) -> None:
    with ChatServer(fault=first(3, fault)) as server:
        rows, failures = draw(open_at(server), requests(3, 20))
        assert not failures
        assert rows == calm[0]
        assert len(server.asked) <= 60 + 3


def test_retry_after_is_honoured() -> None:
    times: list[float] = []

    def later(number: int, body: dict[str, Any]) -> Fault | None:
        times.append(time.monotonic())
        return status(429, Retry_After="1") if number == 0 else None

    with ChatServer(fault=later) as server:
        rows, _ = draw(open_at(server), requests(1, 1))
    assert len(rows) == 1
    assert times[1] - times[0] >= 1.0


@pytest.mark.parametrize(
    ("fault", "quiet", "line"),
    [
        (
            status(429, "slow down", Retry_After="1"),
            0.7,
            f"is away: {said(429, 'slow down')}; it is asked again for up to 5 s",
        ),
        (slow(1.3), 1, "has not answered for 1 s; still waiting, up to 3600 s for an answer"),
    ],
    ids=["429", "hang"],
)
def test_a_wait_says_what_it_waits_for(
    fault: Fault,
    quiet: float,
    line: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(client, "QUIET_SECONDS", quiet)
    with ChatServer(fault=first(1, fault)) as server:
        engine = open_at(server)
        rows, _ = draw(engine, requests(1, 1))
        assert caplog.messages == [f"{server.url} {line}"]
        caplog.clear()
        draw(engine, requests(3, 20))
        assert caplog.messages == [], "a server that answers is not waited for"
    assert len(rows) == 1


def test_a_retry_after_longer_than_the_patience_is_not_waited_for() -> None:
    with ChatServer(fault=always(status(429, "come back tomorrow", Retry_After="86400"))) as server:
        rows, failures = draw(open_at(server), requests(1, 1))
        assert not rows
        assert len(server.asked) == 1
    reason = f"the server was away for longer than 5 s: {said(429, 'come back tomorrow')}"
    assert failures[0].reason == reason


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (status(500, "out of memory"), f"{said(500, 'out of memory')}, after 4 tries"),
        (
            raw(b"<html>\n\x1b[2J"),
            "an answer that cannot be read: status 200: <html> \\x1b[2J, after",
        ),
        (
            raw(b'{"choices": []}'),
            'an answer that cannot be read: status 200: {"choices": []}, after',
        ),
        (raw(b"It is Paris.", Content_Encoding="gzip"), "failed to decode it"),
    ],
)
def test_what_does_not_pass_fails_after_four_attempts(fault: Fault, reason: str) -> None:
    with ChatServer(fault=always(fault)) as server:
        rows, [failure] = draw(open_at(server), requests(1, 1))
        assert not rows
        assert (failure.question_id, failure.sample_indices) == (QUESTIONS[0].id, (0,))
        assert reason in failure.reason
        assert failure.reason.endswith(", after 4 tries")
        assert len(server.asked) == 4


def test_an_answer_is_utf_8_whatever_the_server_calls_it() -> None:
    named = {"Content_Type": "application/json; charset=latin-1"}
    text = '{"choices": [{"message": {"content": "Zürich"}, "finish_reason": "stop"}]}'
    good = raw(text.encode(), **named)
    with ChatServer(fault=always(good)) as server:
        rows, failures = draw(open_at(server), requests(1, 1))
        assert ([row.response for row in rows], failures) == (["Zürich"], [])


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (rb"a \ud83d", "a \ufffd"),
        (rb"\ud83d\ud83d\ude00", "\ufffd\N{GRINNING FACE}"),
        (rb"\\ud83d", r"\ud83d"),
        (b"caf\xe9", "caf\ufffd"),
    ],
)
def test_what_is_no_text_is_replaced_and_the_answer_is_kept(written: bytes, read: str) -> None:
    content = b'{"choices": [{"message": {"content": "%b"}, "finish_reason": "stop"}]}' % written
    with ChatServer(fault=always(raw(content))) as server:
        rows, failures = draw(open_at(server), requests(1, 1))
    assert ([row.response for row in rows], failures) == ([read], [])


def test_an_answer_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "ANSWER_SECONDS", 0.05)
    with ChatServer(fault=always(slow(0.5))) as server:
        _, [failure] = draw(open_at(server), requests(1, 1))
    assert failure.reason.endswith("Read timed out. (read timeout=0.05), after 4 tries")


def test_what_is_refused_is_not_asked_again() -> None:
    with ChatServer(fault=always(status(400, "no\x07 " + 5000 * "x"))) as server:
        rows, failures = draw(open_at(server), requests(2, 1))
        assert not rows
        assert len(server.asked) == 2
    for failure in failures:
        assert failure.reason.startswith(said(400, "no\x07 xxx").removesuffix('"}}'))
        assert len(failure.reason) < 350
        assert failure.reason.isprintable()


def test_a_server_that_lets_nobody_in_ends_everything_at_once() -> None:
    def refuse_all_but_the_first(number: int, body: Any) -> Fault | None:
        if not number:
            return None
        time.sleep(0.2)  # so that the first answer comes first
        return status(401, "who?")

    with ChatServer(fault=refuse_all_but_the_first) as server:
        engine = open_at(server, in_flight=16)
        stream = engine.sample(requests(40, 16), SAMPLING, 0)
        assert not isinstance(next(stream), Failure)  # what was drawn before is given
        refused = f"{server.url} refuses access: {said(401, 'who?')}; check OPENAI_API_KEY"
        with pytest.raises(InputError, match=re.escape(refused)):
            list(stream)
        assert len(server.asked) <= 32


def test_one_long_retry_after_does_not_cost_the_other_questions() -> None:
    bad = QUESTIONS[3].text

    def later(number: int, body: dict[str, Any]) -> Fault | None:
        return status(503, Retry_After="900") if bad in body["messages"][-1]["content"] else None

    with ChatServer(fault=later) as server:
        rows, [failure] = draw(open_at(server, in_flight=1), requests(8, 1))
    assert (failure.question_id, len(rows)) == (QUESTIONS[3].id, 7)


SECRET = "sk-4f5b/abc="


def test_the_key_is_sent_and_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET + "\r\n")
    with ChatServer(fault=always(echo(400))) as server:
        _, failures = draw(open_at(server), requests(2, 1))
        repeated = said(400, f"bad Bearer {SECRET}\x1b[2J")
        assert {failure.reason for failure in failures} == {repeated}
        for code in (401, 503):
            server.listing = status(code)
            with pytest.raises(InputError, match=f"status {code}: ") as refused:
                open_at(server)
            assert SECRET not in str(refused.value)


@pytest.mark.parametrize("key", ["sk-a b", "sk-é"])
def test_a_key_that_no_header_can_carry_is_refused_unseen(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "environ", {**os.environ, "OPENAI_API_KEY": key})
    with pytest.raises(
        InputError, match=r"^OPENAI_API_KEY holds a space or another character that no key has"
    ) as error:
        OpenAIEngine(MODEL, base_url="http://127.0.0.1:9/v1")
    assert "sk-" not in str(error.value)


@pytest.mark.parametrize(
    "address",
    [
        "http://me:pass@host/v1",
        "http://me:pass@[::1/v1",
        "host/v1?key=pass",
        "http://me:pass@[::1]:99999/v1",
    ],
)
def test_an_address_in_the_wrong_form_is_refused_unseen(address: str) -> None:
    with pytest.raises(InputError, match=r"^OPENAI_BASE_URL must be an address such as") as error:
        OpenAIEngine(MODEL, base_url=address)
    assert "pass" not in str(error.value)


def test_a_server_in_error_all_the_time_ends_the_run_with_its_samples_kept() -> None:
    def break_down(number: int, body: dict[str, Any]) -> Fault | None:
        return status(500, "out of memory") if number >= 16 else None

    with ChatServer(fault=break_down) as server:
        rows, failures = draw(open_at(server, patience=1.0, in_flight=16), requests(40, 16))
        assert len(server.asked) < 16 + 4 * 624, "after the patience, each is tried once"
    assert len(rows) == 16
    assert len(failures) == 624
    assert failures[-1].reason.startswith(said(500, "out of memory"))


def test_a_server_that_dies_and_comes_back_within_the_patience(
    calm: tuple[list[Sample], list[dict[str, Any]]],
) -> None:
    with ChatServer() as server:
        engine = open_at(server, patience=30.0, in_flight=32)
        stream = engine.sample(requests(3, 20), SAMPLING, 0)
        rows = list(next(stream))  # type: ignore[arg-type]
        server.stop()
        back = threading.Timer(0.4, server.start)
        back.start()
        for group in stream:
            assert not isinstance(group, Failure)
            rows += group
        back.join()
    assert sorted(rows, key=lambda row: (row.question_id, row.sample_index)) == calm[0]


def test_a_server_that_stays_away_ends_the_run_with_the_rest_failed() -> None:
    with ChatServer() as server:
        engine = open_at(server, patience=0.3, in_flight=32)
        stream = engine.sample(requests(40, 16), SAMPLING, 0)
        rows = list(next(stream))  # type: ignore[arg-type]
        server.stop()
        failed = 0
        for group in stream:
            if isinstance(group, Failure):
                assert group.reason.startswith("the server was away for longer than 0.3 s: ")
                failed += len(group.sample_indices)
            else:
                rows += group
        assert failed
        assert len(rows) + failed == 640
        server.start()
