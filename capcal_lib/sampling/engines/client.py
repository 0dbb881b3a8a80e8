"""Send many requests to a server at a time, and repeat those that fail for a while."""

import logging
import math
import queue
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from time import monotonic
from typing import Any, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import urllib3
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    sleep_using_event,
    wait_exception,
    wait_random_exponential,
)
from urllib3.exceptions import DecodeError, HTTPError, ReadTimeoutError

from capcal_lib.errors import InputError
from capcal_lib.text import sanitize

TRIES = 4  # for a request that is answered by an error or in a form that cannot be read
PATIENCE = 600.0  # seconds to wait for a server that is away
ANSWER_SECONDS = 3600.0  # generous, because to give up on slow answers would favour short ones
CONNECT_SECONDS = 30.0
PAUSE_SECONDS = 1.0
THREADS = "requests"  # their name
QUIET_SECONDS = 5.0  # without any answer, after which a line says what is waited for
SHORTEST_WAIT, LONGEST_WAIT = 0.5, 30.0  # seconds between two attempts, at most, unless the server
LONGEST_RETRY_AFTER = 300.0  # asks for more, which it may up to here
AWAY = (429, 502, 503, 504)  # too busy, or restarting behind a gateway
QUOTED_BYTES = 2_000  # of an answer that is told of
FILES = 256  # that this process has open beside its connections, at most
# Half of a pair that only together says a letter, behind what is no such half, in JSON.
HALF = re.compile(rb"(\\\\|\\u(?i:d[89ab])\w\w\\u(?i:d[c-f])\w\w)|\\u(?i:d[89a-f])\w\w")

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
    minutes). After other server errors and malformed answers, a request is tried four times at
    most. If the server has answered no request for ``patience`` seconds, every later one is tried
    once. Refused requests (4xx) are not repeated. `InputError` if the server denies access (401,
    403), or if the address or the key is malformed; they are not shown. After five seconds without
    any answer, the reason is logged."""

    def __init__(self, address: str, key: str, in_flight: int) -> None:
        key = key.strip() or "EMPTY"  # as servers without keys take; Windows' line ends leave a \r
        if not re.fullmatch("[!-~]+", key):
            raise InputError(
                "OPENAI_API_KEY holds a space or another character that no key has; set it again"
            )
        try:
            url = urlsplit(address.strip())
            is_address = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
        except ValueError:
            is_address = False
        if not is_address or url.query or url.fragment or "@" in url.netloc:
            raise InputError(
                "OPENAI_BASE_URL must be an address such as http://127.0.0.1:8000/v1; a key goes "
                "into OPENAI_API_KEY"
            )
        self.url = f"{url.scheme}://{url.netloc}{url.path}".rstrip("/")
        settings: dict[str, Any] = {
            "headers": {"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
            "timeout": urllib3.Timeout(connect=CONNECT_SECONDS, read=ANSWER_SECONDS),
            "maxsize": in_flight,
            "retries": False,
        }
        proxies = {} if proxy_bypass(url.netloc) else getproxies()
        proxy = proxies.get(url.scheme) or proxies.get("all")
        self.pool = urllib3.PoolManager(**settings)
        if proxy:
            self.pool = urllib3.ProxyManager(proxy, **settings)
        self.in_flight = in_flight
        self.patience = PATIENCE
        self.stopped = threading.Event()
        self._hear()

    def stream(
        self, items: Iterable[T], do: Callable[[T], R], *, pause: R | None = None
    ) -> Iterator[R]:
        """Yield what ``do(item)``, which may ask the server, returns for every item, as it comes,
        and ``pause``, if there is one, after each second in which nothing comes.

        The threads end with the process, so an interrupt need not wait for them."""
        with suppress(ImportError, ValueError, OSError):  # no such module on Windows
            import resource

            soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, self.in_flight + FILES), hard))
        todo: queue.SimpleQueue[tuple[T] | None] = queue.SimpleQueue()
        done: queue.SimpleQueue[tuple[R] | Exception] = queue.SimpleQueue()

        def work() -> None:
            while (item := todo.get()) is not None:
                try:
                    done.put((do(*item),))
                except Exception as error:
                    done.put(error)

        self.stopped = threading.Event()
        self._hear()
        items = iter(items)
        under_way = threads = 0
        heard, told_after = monotonic(), QUIET_SECONDS
        try:
            for item in islice(items, self.in_flight):
                todo.put((item,))
                threading.Thread(target=work, name=THREADS, daemon=True).start()
                under_way = threads = threads + 1
            while under_way:
                try:
                    result = done.get(timeout=PAUSE_SECONDS)
                except queue.Empty:
                    waited = monotonic() - heard
                    if waited >= told_after:
                        self._tell(waited)
                        told_after = 2 * waited
                    if pause is not None:
                        yield pause
                    continue
                heard, told_after = monotonic(), QUIET_SECONDS
                if isinstance(result, Exception):
                    raise result
                under_way -= 1
                for item in islice(items, 1):
                    todo.put((item,))
                    under_way += 1
                yield result[0]
        finally:
            self.stopped.set()
            for _ in range(threads):
                todo.put(None)
            self.pool.clear()

    def _tell(self, waited: float) -> None:
        """Log the reason for waiting."""
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

    def _hear(self) -> None:
        """Note that the server has answered a request."""
        self._away_since = math.inf
        self._away_why = ""

    def post(self, path: str, body: dict[str, Any], read: Callable[[bytes], T]) -> T:
        """Post a body as JSON and return what ``read`` makes of the answer, over failures that
        pass.

        `Unanswered` if the server refuses, or the patience or the attempts run out.
        """
        attempts = Retrying(
            retry=retry_if_exception_type((Bad, Away)),
            wait=wait_random_exponential(SHORTEST_WAIT, LONGEST_WAIT)
            + wait_exception(lambda error: getattr(error, "after", 0.0)),
            stop=self._is_enough,
            sleep=sleep_using_event(self.stopped),
            reraise=True,
        )
        try:
            return attempts(self.ask, path, read, body)
        except Bad as error:
            raise Unanswered(f"{error}, after {TRIES} tries") from None
        except Away as error:
            raise Unanswered(
                f"the server was away for longer than {self.patience:g} s: {error}"
            ) from None

    def _is_enough(self, state: RetryCallState) -> bool:
        """Tell whether to give up after an attempt that failed."""
        assert state.outcome
        error = state.outcome.exception()
        now = monotonic()
        self._away_since = min(self._away_since, now)
        self._away_why = str(error)
        if isinstance(error, Bad) and state.attempt_number >= TRIES:
            return True
        until = now + state.upcoming_sleep
        return self.stopped.is_set() or until >= self._away_since + self.patience

    def ask(
        self,
        path: str,
        read: Callable[[bytes], T],
        body: dict[str, Any] | None = None,
        **options: Any,
    ) -> T:
        """Ask once, and return what ``read`` makes of the answer.

        An answer is text in UTF-8, whatever the server calls it, with U+FFFD for what is none.
        `Away`, `Bad` or another `Unanswered` where there is no such answer; a ValueError of
        ``read`` makes a bad one."""
        try:
            method = "POST" if body else "GET"
            answer = self.pool.request(method, self.url + path, json=body, **options)
        except (ReadTimeoutError, DecodeError) as error:
            raise Bad(sanitize(error)) from None
        except HTTPError as error:
            raise Away(sanitize(error)) from None
        status = answer.status
        if status == 200:
            try:
                found = read(readable(answer.data))
            except ValueError:
                raise Bad(f"an answer that cannot be read: {_words(answer)}") from None
            self._hear()
            return found
        words = _words(answer)
        if status in AWAY:
            away = Away(words)
            with suppress(KeyError, ValueError):  # none, or a date
                away.after = min(LONGEST_RETRY_AFTER, float(answer.headers["Retry-After"]))
            raise away
        if status >= 500:
            raise Bad(words)
        if status in (401, 403):
            raise InputError(f"{self.url} refuses access: {words}; check OPENAI_API_KEY")
        self._hear()
        raise Unanswered(words)


def readable(content: bytes) -> bytes:
    r"""Put U+FFFD in the place of what no reader of JSON takes: bytes that are no UTF-8, and a half
    of a pair, as a server writes that cuts a smiley in two.

    >>> readable(rb'"\ud83d\ude00 \ud83d"')
    b'"\\ud83d\\ude00 \\ufffd"'
    """
    whole = HALF.sub(lambda half: half[1] or rb"\ufffd", content)
    return whole.decode("utf-8", "replace").encode()


def _words(answer: urllib3.BaseHTTPResponse) -> str:
    """Say what a server answered."""
    quoted = answer.data[:QUOTED_BYTES].decode("utf-8", "replace")
    return f"status {answer.status}: {sanitize(quoted)}"
