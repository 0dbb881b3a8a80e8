"""Ask a server for many things at a time, over the failures that pass; nothing that it sends is
trusted.
"""

import asyncio
import json
import math
import queue
import re
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from time import monotonic, time
from typing import Any, TypeVar
from urllib.parse import quote

import httpx2
from anyio.from_thread import start_blocking_portal
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception_type,
    stop_after_attempt,
    wait_random_exponential,
)

from capcal_lib.errors import InputError, sanitize

ATTEMPTS = 4  # for a request whose answer cannot be read, or takes longer than the time limit
ANSWER_SECONDS = 3600.0  # generous, because to give up on slow answers would favour short ones
CONNECT_SECONDS = 30.0
IDLE_SECONDS = 300.0  # between two pieces of an answer that has begun
LONGEST_WAIT = 30.0  # seconds between two attempts, unless the server asks for more,
LONGEST_RETRY_AFTER = 300.0  # which it may up to here
BODY_BYTES = 32 << 20  # of one answer
BYTES_IN_FLIGHT = 128 << 20  # of all answers that are being received
REFUSAL_BYTES = 64 << 10  # of a refusal; the rest of it is not read
KEY_LENGTH = 16
ESCAPED = re.compile(r"\\u00([2-7][0-9A-Fa-f])")  # a letter that JSON spells out
AWAY = (429, 502, 503, 504)  # too busy, or restarting behind a gateway

T = TypeVar("T")
R = TypeVar("R")


class Unanswered(Exception):
    """The server did not answer; the message says why."""


class Refused(Unanswered):
    """The server answered that it will not (a status of 4xx)."""


class Away(Unanswered):
    """The server is away, or asks to be left alone for ``after`` seconds."""

    def __init__(self, reason: str, after: float = 0.0) -> None:
        super().__init__(reason)
        self.after = after


class Bad(Unanswered):
    """An answer that cannot be used; the next may be better."""


@dataclass(frozen=True)
class Server:
    """A server's address without the password that it may have come with, and what every request
    says.
    """

    url: str
    headers: dict[str, str] = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)

    @classmethod
    def locate(cls, address: str, key: str) -> "Server":
        """Check an address and a key; one in the wrong form is refused without being shown."""
        key = key.strip()  # a file with Windows' line ends leaves a \r
        if not (key.isascii() and key.isprintable() and " " not in key):
            raise InputError(
                "OPENAI_API_KEY holds a space or a character that no key can have; set it anew"
            )
        try:
            url = httpx2.URL(address.strip())
        except (httpx2.InvalidURL, ValueError):
            url = httpx2.URL("")
        if url.scheme not in ("http", "https") or not url.host or url.query or url.fragment:
            shown = "what is there" if set("@?#") & set(address) else repr(sanitize(address))
            raise InputError(
                f"OPENAI_BASE_URL must be an address such as http://127.0.0.1:8000/v1; {shown} is "
                "none"
            )
        headers = {"Accept-Encoding": "identity"}  # what arrives is then as large as what was sent
        secrets = {key, quote(key, safe="")}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        if url.userinfo:
            basic = b64encode(f"{url.username}:{url.password}".encode()).decode()
            headers["Authorization"] = f"Basic {basic}"
            secrets |= {
                basic,
                url.userinfo.decode(),
                url.password or url.username,
                quote(url.password, safe=""),
            }
        plain = str(url.copy_with(username=None, password=None)).rstrip("/")
        return cls(plain, headers, tuple(sorted(secrets - {""}, key=len, reverse=True)))

    def clean(self, answer: bytes) -> bytes:
        """Take a key out of an answer, which is kept; what is shorter than a key may be a word of
        the answer.

        JSON can spell every letter in escapes, so an answer with any is written without them first.
        """
        keys = [secret for secret in self.secrets if len(secret) >= KEY_LENGTH]
        if keys and b"\\" in answer:
            try:
                answer = json.dumps(json.loads(answer), ensure_ascii=False).encode()
            except RecursionError:
                raise ValueError("nested too deeply") from None
        for key in keys:
            for spelled in (key, json.dumps(key)[1:-1]):
                answer = answer.replace(spelled.encode(), b"[redacted]")
        return answer

    def show(self, foreign: object) -> str:
        """Make text from the server fit for a message: one bounded line, without what is secret."""
        text = ESCAPED.sub(lambda escape: chr(int(escape[1], 16)), str(foreign))
        for secret in self.secrets:
            text = text.replace(secret, "[redacted]")
        return sanitize(text)

    def refusal(self, status: int, content: bytes) -> str:
        """Tell what the server said with a status other than 200."""
        text = content[:REFUSAL_BYTES].decode(errors="replace")
        try:
            said = json.loads(text)
            error = said.get("error", said)
            text = error["message"] if isinstance(error, dict) else error
        except (ValueError, AttributeError, KeyError, RecursionError):
            pass  # not the protocol's way to put it; shown as it is
        return f"status {status}: {self.show(text)}".removesuffix(": ")


class Client:
    """Ask a server, waiting while it is away and asking anew after bad answers.

    At most ``at_once`` requests are under way, whose answers take at most ``BYTES_IN_FLIGHT``
    together.

    While the server is away, restarting or too busy (no connection, 429, 502, 503, 504) it is asked
    again after waits that grow and vary, as long as ``Retry-After`` says (five minutes at most),
    for ``patience`` seconds in all; where none was answered for so long, every later request fails
    at once. After other server errors, and answers that are malformed, compressed, too large or too
    slow, it is asked four times at most. What it refuses (4xx) is not asked again; one that lets
    nobody in (401, 403) ends everything with an `InputError`."""

    def __init__(self, server: Server, *, patience: float, at_once: int) -> None:
        self.server = server
        self.patience = patience
        self.at_once = at_once
        self._gone: str | None = None
        self._heard = -math.inf  # when the server last answered, however
        self._free = asyncio.Semaphore(at_once)
        # Half of the bytes are shared evenly; an answer with more than its share waits for one of
        # few large places.
        self._share = BYTES_IN_FLIGHT // 2 // at_once
        self._large = asyncio.Semaphore(max(1, BYTES_IN_FLIGHT // 2 // BODY_BYTES))
        self._http = httpx2.AsyncClient(
            headers=server.headers,
            timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS),
            limits=httpx2.Limits(max_connections=at_once),
        )

    def each(
        self, items: Iterable[T], do: Callable[[T, Callable[[R], None]], Awaitable[None]]
    ) -> Iterator[R]:
        """Call ``do(item, emit)`` for every item, some at a time, and yield what it emits as it
        comes; then close.

        They run in a loop in a thread: this thread may have one (a notebook has). What one of them
        raises, and closing the iterator, as an interrupt does, stops the work at once."""
        results: queue.SimpleQueue[tuple[R] | None] = queue.SimpleQueue()
        waiting = iter(items)

        async def work() -> None:
            for item in waiting:
                await do(item, lambda result: results.put((result,)))

        async def run() -> None:
            async with aclosing(self), asyncio.TaskGroup() as group:
                for _ in range(self.at_once):
                    group.create_task(work())

        with start_blocking_portal(name="requests") as portal:
            running = portal.start_task_soon(run)
            running.add_done_callback(lambda _: results.put(None))
            try:
                while (result := results.get()) is not None:
                    yield result[0]
                if failure := running.exception():
                    raise failure.exceptions[0] if isinstance(failure, ExceptionGroup) else failure
            finally:
                running.cancel()

    async def aclose(self) -> None:
        """Close the connections, and wait until the loop has seen to it."""
        await self._http.aclose()
        await asyncio.sleep(0.01)

    async def post(
        self, path: str, body: dict[str, Any], read: Callable[[bytes], T], limit: int
    ) -> T:
        """Post a body as JSON and return what ``read`` makes of the answer, as `ask` does, over
        failures that pass.

        `Unanswered` where the server refuses, or the patience or the attempts have run out.
        """
        waits = wait_random_exponential(multiplier=0.5, max=LONGEST_WAIT)
        patiently = AsyncRetrying(
            retry=retry_if_exception_type(Away),
            wait=lambda state: max(waits(state), _after(state)),
            stop=lambda state: (
                self._gone is not None or state.idle_for + _after(state) >= self.patience
            ),
            reraise=True,
        )
        some_times = AsyncRetrying(
            retry=retry_if_exception_type(Bad),
            wait=waits,
            stop=stop_after_attempt(ATTEMPTS),
            reraise=True,
        )

        async def ask() -> T:
            if self._gone:
                raise Unanswered(self._gone)
            try:
                return await self.ask("POST", path, read, limit, ANSWER_SECONDS, json=body)
            except (Away, Bad) as error:
                error.__context__ = None  # the frames in which it was raised hold what was received
                raise error.with_traceback(None) from None

        async with self._free:
            try:
                return await patiently(some_times, ask)
            except Away as error:
                reason = f"the server was away for longer than {self.patience:g} s: {error}"
                if monotonic() - self._heard >= self.patience:
                    self._gone = reason
                raise Unanswered(reason) from None
            except Bad as error:
                raise Unanswered(f"{error} ({ATTEMPTS} times)") from None

    async def ask(
        self,
        method: str,
        path: str,
        read: Callable[[bytes], T],
        limit: int,
        seconds: float,
        **content: Any,
    ) -> T:
        """Ask once, and return what ``read`` makes of ``limit`` bytes at most, within so many
        seconds in all.

        `Away`, `Bad` or `Refused` where there is no such answer; a ValueError of ``read`` makes a
        bad one."""
        show = self.server.show
        try:
            async with (
                asyncio.timeout(seconds),
                AsyncExitStack() as place,
                self._http.stream(method, self.server.url + path, **content) as answer,
            ):
                status = answer.status_code
                data = await self._receive(
                    answer, min(limit, BODY_BYTES) if status == 200 else REFUSAL_BYTES, place
                )
                if status not in AWAY:
                    self._heard = monotonic()
                if status == 200:
                    return read(self.server.clean(data))
        except TimeoutError:
            raise Bad(f"no answer within {seconds:g} s") from None
        except ValueError as error:
            raise Bad(f"an answer that cannot be read: {show(error)}") from None
        except httpx2.TransportError as error:
            raise Away(show(error) or type(error).__name__) from None
        refusal = self.server.refusal(status, data)
        if status in (401, 403):
            raise InputError(f"{self.server.url} refuses access: {refusal}; check OPENAI_API_KEY")
        if status in AWAY:
            raise Away(refusal, _seconds(answer.headers.get("Retry-After", "")))
        raise Bad(refusal) if status >= 500 else Refused(refusal)

    async def _receive(self, answer: httpx2.Response, limit: int, place: AsyncExitStack) -> bytes:
        """Return a body as it was sent, or the beginning of a refusal, holding a large place where
        it is large.
        """
        coding = answer.headers.get("Content-Encoding", "identity")
        refused = answer.status_code != 200
        if coding != "identity" and not refused:  # a few bytes can stand for gigabytes
            raise Bad(
                f"an answer with the encoding {self.server.show(coding)!r}, which was not asked for"
            )
        data = bytearray()
        pieces = answer.aiter_raw()
        while piece := await self._next(pieces):
            if len(data) <= self._share < len(data) + len(piece):
                await place.enter_async_context(self._large)
            data += piece
            if len(data) > limit:
                if not refused:
                    raise Bad(f"an answer of more than {limit >> 20} MiB")
                break
        return bytes(data)

    async def _next(self, pieces: AsyncIterator[bytes]) -> bytes:
        """Return the next piece of an answer that is not empty; nothing at its end."""
        try:
            async with asyncio.timeout(IDLE_SECONDS):
                while not (piece := await anext(pieces, None)):
                    if piece is None:
                        return b""
                return piece
        except TimeoutError:
            raise Bad(f"an answer that stops for {IDLE_SECONDS:g} s on the way") from None


def _after(state: RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    return error.after if isinstance(error, Away) else 0.0


def _seconds(retry_after: str) -> float:
    """Read a Retry-After, in seconds or as a date: 0 where it makes no sense, and a few minutes at
    most.
    """
    try:
        seconds = float(retry_after)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(retry_after).timestamp() - time()
        except (ValueError, TypeError, OverflowError):
            return 0.0
    if 0 < seconds < math.inf:
        return min(seconds, LONGEST_RETRY_AFTER)
    return 0.0
