"""Send many requests to a server at a time, and repeat those that fail for a while."""

import asyncio
import logging
import math
import random
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from itertools import cycle
from time import monotonic
from typing import Any, TypeVar

import httpx2

from capcal_lib.errors import InputError
from capcal_lib.sampling.engines.streams import stream_results
from capcal_lib.text import sanitize

TRIES = 4  # for a request whose answer cannot be used, or takes longer than the time limit
ANSWER_SECONDS = 3600.0  # generous, because to give up on slow answers would favour short ones
CONNECT_SECONDS = 30.0
PATIENCE = 600.0  # seconds to wait for a server that is away
QUIET_SECONDS = 5.0  # without any answer, after which a line says what is waited for
SHORTEST_WAIT, LONGEST_WAIT = 0.5, 30.0  # seconds between two attempts, at most, unless the server
LONGEST_RETRY_AFTER = 300.0  # asks for more, which it may up to here
ADDRESS = re.compile(r"https?://[^/?#][^?#]*")
CONNECTIONS_A_POOL = 32  # a pool looks at all of its connections for every request
AWAY = (429, 502, 503, 504)  # too busy, or restarting behind a gateway
ANSWER = 1 << 26  # bytes of an answer, at most; the likeliest words at each token take many
QUOTED_BYTES = 2_000  # of an answer that is told of
# Half of a pair that only together says a letter, behind what is no such half, in JSON.
HALF = re.compile(rb"(\\\\|\\u(?i:d[89ab])\w\w\\u(?i:d[c-f])\w\w)|\\u(?i:d[89a-f])\w\w")
FILES = 256  # that this process has open beside its connections, at most

T = TypeVar("T")
R = TypeVar("R")

logger = logging.getLogger(__name__)


class Unanswered(Exception):
    """The server gave no usable answer; the message says why."""


class Bad(Unanswered):
    """An unusable answer; the next attempt may succeed."""


class Away(Unanswered):
    """The server is away, or asks clients to wait."""

    after = 0.0  # seconds


class Client:
    """Send requests to a server, waiting while it is away and trying again after bad answers.

    While the server is away, restarting or too busy (no connection, 429, 502, 503, 504), requests
    are repeated after growing, varying waits, or as long as ``Retry-After`` says (at most five
    minutes). If it has answered no request for ``patience`` seconds, every later one is tried once.
    After other server errors, and malformed or slow answers, a request is tried four times at most.
    Refused requests (4xx) are not repeated. `InputError` if the server denies access (401, 403), or
    if the address or the key is malformed; they are not shown. After five seconds without any
    answer, the reason is logged."""

    def __init__(self, address: str, key: str, in_flight: int) -> None:
        key = key.strip() or "EMPTY"  # as servers without keys take; Windows' line ends leave a \r
        if not re.fullmatch("[!-~]+", key):
            raise InputError(
                "OPENAI_API_KEY holds a space or another character that no key has; set it again"
            )
        try:
            url = httpx2.URL(address.strip())
        except httpx2.InvalidURL:
            url = httpx2.URL()
        self.url = str(url.copy_with(username=None, password=None)).rstrip("/")
        if not (ADDRESS.fullmatch(self.url) and 0 < (url.port or 80) < 1 << 16):
            raise InputError("OPENAI_BASE_URL must be an address such as http://127.0.0.1:8000/v1")
        self.settings: dict[str, Any] = {
            "base_url": url,  # a name and a password in it go before the key
            "headers": {"Authorization": f"Bearer {key}"},
            "timeout": httpx2.Timeout(None, connect=CONNECT_SECONDS),
            "limits": httpx2.Limits(),
            "verify": httpx2.create_ssl_context(),
        }
        self.in_flight = in_flight
        self.patience = PATIENCE

    def stream(
        self, items: Iterable[T], do: Callable[[T], Awaitable[R]], *, pause: R | None = None
    ) -> Iterator[R]:
        """Yield what ``do(item)``, which may ask the server, returns for every item, as
        `stream_results` does.
        """
        return stream_results(
            items, do, in_flight=self.in_flight, around=self._connected(), pause=pause
        )

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[None]:
        with suppress(ImportError, ValueError, OSError):  # no such module on Windows
            import resource

            soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, self.in_flight + FILES), hard))
        self._hear()
        async with AsyncExitStack() as stack:
            pools = [
                await stack.enter_async_context(httpx2.AsyncClient(**self.settings))
                for _ in range(0, self.in_flight, CONNECTIONS_A_POOL)
            ]
            self._pools = cycle(pools)
            telling = asyncio.create_task(self._tell_of_waiting())
            stack.callback(telling.cancel)
            yield

    def _hear(self) -> None:
        """Note that the server has answered, whatever it said."""
        self._heard = monotonic()
        self._away_since = math.inf
        self._away_why = ""

    async def _tell_of_waiting(self) -> None:
        """Log the reason for waiting once the server has been silent for a while, and again each
        time the silence has doubled.
        """
        told_after = QUIET_SECONDS
        while True:
            await asyncio.sleep(QUIET_SECONDS / 10)
            waited = monotonic() - self._heard
            if waited < told_after:
                continue
            told_after *= 2
            if self._away_why:
                logger.warning(
                    f"{self.url} is away: {self._away_why}; it is asked again for up to "
                    f"{self.patience:g} s"
                )
            else:
                logger.warning(
                    f"{self.url} has not answered for {waited:.0f} s; still waiting, up to "
                    f"{ANSWER_SECONDS:g} s for an answer"
                )

    async def post(self, path: str, body: dict[str, Any], read: Callable[[bytes], T]) -> T:
        """Post a body as JSON and return what ``read`` makes of the answer, over failures that
        pass.

        `Unanswered` if the server refuses, or the patience or the attempts run out.
        """
        bad = 0
        wait = SHORTEST_WAIT
        while True:
            after = 0.0
            try:
                return await self.ask(path, read, body)
            except Bad as error:
                bad += 1
                if bad == TRIES:
                    raise Unanswered(f"{error}, after {TRIES} tries") from None
            except Away as error:
                after = error.after
                self._away_why = str(error)
                now = monotonic()
                self._away_since = min(self._away_since, now)
                if now + after >= self._away_since + self.patience:
                    raise Unanswered(
                        f"the server was away for longer than {self.patience:g} s: {error}"
                    ) from None
            await asyncio.sleep(max(after, random.uniform(0, min(wait, LONGEST_WAIT))))
            wait *= 2

    async def ask(
        self,
        path: str,
        read: Callable[[bytes], T],
        body: dict[str, Any] | None = None,
        seconds: float | None = None,
    ) -> T:
        """Ask once, and return what ``read`` makes of the answer, within so many seconds in all.

        An answer is text in UTF-8, whatever the server calls it, with U+FFFD for what is none.
        `Away`, `Bad` or another `Unanswered` where there is no such answer; a ValueError of
        ``read`` makes a bad one."""
        seconds = seconds or ANSWER_SECONDS
        content = bytearray()
        method = "POST" if body else "GET"
        try:
            async with (
                asyncio.timeout(seconds),
                next(self._pools).stream(method, path, json=body) as answer,
            ):
                async for piece in answer.aiter_bytes():
                    content += piece
                    if len(content) > ANSWER:
                        raise Bad(f"an answer of more than {ANSWER:,} bytes")
        except TimeoutError:
            raise Bad(f"no answer within {seconds:g} s") from None
        except httpx2.RequestError as error:
            kind = Bad if isinstance(error, httpx2.DecodingError) else Away
            raise kind(sanitize(error) or type(error).__name__) from None
        status = answer.status_code
        if status == 200:
            self._hear()
            try:
                return read(readable(bytes(content)))
            except ValueError:
                raise Bad(f"an answer that cannot be read: {_words(status, content)}") from None
        words = _words(status, content)
        if status in AWAY:
            away = Away(words)
            with suppress(KeyError, ValueError):  # none, or a date
                away.after = min(LONGEST_RETRY_AFTER, float(answer.headers["Retry-After"]))
            raise away
        self._hear()
        if status in (401, 403):
            raise InputError(f"{self.url} refuses access: {words}; check OPENAI_API_KEY")
        if status >= 500:
            raise Bad(words)
        raise Unanswered(words)


def readable(content: bytes) -> bytes:
    r"""Put U+FFFD in the place of what no reader of JSON takes: bytes that are no UTF-8, and a half
    of a pair, as a server writes that cuts a smiley in two.

    >>> readable(rb'"\ud83d\ude00 \ud83d"')
    b'"\\ud83d\\ude00 \\ufffd"'
    """
    whole = HALF.sub(lambda half: half[1] or rb"\ufffd", content)
    return whole.decode("utf-8", "replace").encode()


def _words(status: int, content: bytes | bytearray) -> str:
    """Say what a server answered."""
    return f"status {status}: {sanitize(content[:QUOTED_BYTES].decode('utf-8', 'replace'))}"
