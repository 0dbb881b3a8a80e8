"""Ask a server for many things at a time, over the failures that pass."""

import asyncio
import json
import queue
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from contextlib import aclosing
from email.utils import parsedate_to_datetime
from time import time
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx2
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from capcal_lib.errors import sanitize

ATTEMPTS = 4  # for a request whose answer cannot be read, or takes longer than the time limit
ANSWER_SECONDS = 3600.0  # generous, because to give up on slow answers would favour short ones
CONNECT_SECONDS = 30.0
LONGEST_WAIT = 30.0  # seconds between two attempts, unless the server asks for more
BODY_BYTES = 64 << 20  # of one answer
REFUSAL_BYTES = 64 << 10  # of a refusal; the rest of it is not read
AWAY = (429, 502, 503, 504)  # too busy, or restarting behind a gateway

T = TypeVar("T")
R = TypeVar("R")


class Unanswered(Exception):
    """The server did not answer in the end; the message says why."""


class Refused(Unanswered):
    """The server answered that it will not (a status of 4xx)."""


class _Away(Exception):
    """The server is away, or asks to be left alone for ``after`` seconds."""

    def __init__(self, reason: str, after: float = 0.0) -> None:
        super().__init__(reason)
        self.after = after


class _Bad(Exception):
    """An answer that cannot be used; the next may be better."""


class Client:
    """Post to a server, waiting while it is away and asking anew after bad answers.

    Parameters
    ----------
    url, headers
        The server's address and what every request says.
    patience
        Seconds to wait, in all, for a server that is away. Once it has run out, every later request fails at once.
    at_once
        At most so many requests at a time.
    """

    def __init__(self, url: str, headers: dict[str, str], *, patience: float, at_once: int) -> None:
        self.url = url
        self.patience = patience
        self._gone: str | None = None
        self._free = asyncio.Semaphore(at_once)
        self._http = httpx2.AsyncClient(
            headers=headers,
            timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS),
            limits=httpx2.Limits(max_connections=at_once),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.aclose()

    async def post(self, path: str, body: dict[str, Any], read: Callable[[bytes], T]) -> T:
        """Post a body as JSON and return what ``read`` makes of the answer; its ValueError makes a bad answer.

        Raises
        ------
        Refused
            For a status of 4xx, with what the server said.
        Unanswered
            Where the patience or the attempts have run out.
        """
        waits = wait_random_exponential(multiplier=0.5, max=LONGEST_WAIT)
        patiently = AsyncRetrying(
            retry=retry_if_exception_type(_Away),
            wait=lambda state: max(waits(state), _after(state)),
            stop=self._patience_has_run_out,
            reraise=True,
        )
        some_times = AsyncRetrying(
            retry=retry_if_exception_type(_Bad), wait=waits, stop=stop_after_attempt(ATTEMPTS), reraise=True
        )

        async def ask() -> T:
            return await some_times(self._post, path, body, read)

        async with self._free:
            try:
                return await patiently(ask)
            except _Away as error:
                self._gone = f"the server was away for longer than {self.patience:g} s: {error}"
                raise Unanswered(self._gone) from None
            except _Bad as error:
                raise Unanswered(f"{error} ({ATTEMPTS} times)") from None

    def _patience_has_run_out(self, state: RetryCallState) -> bool:
        return self._gone is not None or state.idle_for + _after(state) >= self.patience

    async def _post(self, path: str, body: dict[str, Any], read: Callable[[bytes], T]) -> T:
        if self._gone:
            raise Unanswered(self._gone)
        try:
            async with (
                asyncio.timeout(ANSWER_SECONDS),
                self._http.stream("POST", f"{self.url}{path}", json=body) as answer,
            ):
                status = answer.status_code
                content = await _bounded(answer, BODY_BYTES if status == 200 else REFUSAL_BYTES)
        except TimeoutError:
            raise _Bad(f"no answer within {ANSWER_SECONDS:g} s") from None
        except httpx2.DecodingError as error:
            raise _Bad(f"an answer that cannot be decoded: {sanitize(error)}") from None
        except httpx2.TransportError as error:
            raise _Away(sanitize(error) or type(error).__name__) from None
        if status in AWAY:
            raise _Away(refusal(status, content), _seconds(answer.headers.get("Retry-After", "")))
        if status >= 500:
            raise _Bad(refusal(status, content))
        if status != 200:
            raise Refused(refusal(status, content))
        if len(content) > BODY_BYTES:
            raise _Bad(f"an answer of more than {BODY_BYTES >> 20} MiB")
        try:
            return read(content)
        except ValueError as error:
            raise _Bad(f"an answer that cannot be read: {sanitize(error)}") from None


def refusal(status: int, content: bytes) -> str:
    """Tell what a server said with a status other than 200, in one bounded line."""
    text = content[:REFUSAL_BYTES].decode(errors="replace")
    try:
        said = json.loads(text)
        error = said.get("error", said)
        text = error["message"] if isinstance(error, dict) else error
    except (ValueError, AttributeError, KeyError):
        pass  # not the protocol's way to put it; shown as it is
    return f"status {status}: {sanitize(text)}" if sanitize(text) else f"status {status}"


def in_thread(make: Callable[[], AsyncGenerator[R]]) -> Iterator[R]:
    """Yield what an async generator yields, from a loop in a thread: this thread may have one (a notebook has).

    Closing the iterator, as an interrupt does, stops the work at once.
    """
    results: queue.SimpleQueue[tuple[R] | BaseException | None] = queue.SimpleQueue()
    loop = asyncio.new_event_loop()

    async def pump() -> None:
        async with aclosing(make()) as generator:
            async for result in generator:
                results.put((result,))

    task = loop.create_task(pump())

    def run() -> None:
        try:
            loop.run_until_complete(task)
        except asyncio.CancelledError:
            results.put(None)
        except BaseException as error:
            results.put(error)
        else:
            results.put(None)
        finally:
            loop.run_until_complete(asyncio.sleep(0.01))  # a closed connection is gone in a later round of the loop

    thread = threading.Thread(target=run, name="requests", daemon=True)
    thread.start()
    try:
        while (result := results.get()) is not None:
            if isinstance(result, BaseException):
                raise result
            yield result[0]
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()
        loop.close()


async def each(
    items: Iterable[T], do: Callable[[T, Callable[[R], None]], Awaitable[None]], at_once: int
) -> AsyncGenerator[R]:
    """Call ``do(item, emit)`` for every item, so many at a time, and yield what it emits as it comes."""
    waiting = iter(items)
    done: asyncio.Queue[tuple[R] | None] = asyncio.Queue()

    async def work() -> None:
        try:
            for item in waiting:
                await do(item, lambda result: done.put_nowait((result,)))
        finally:
            done.put_nowait(None)

    workers = [asyncio.create_task(work()) for _ in range(at_once)]
    working = len(workers)
    try:
        while working:
            result = await done.get()
            if result is None:
                working -= 1
            else:
                yield result[0]
        for worker in workers:
            worker.result()  # raises what it raised
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)


async def _bounded(answer: httpx2.Response, limit: int) -> bytes:
    """Read at most a little more than ``limit`` bytes of a body, however much there is."""
    content = bytearray()
    async for piece in answer.aiter_bytes():
        content += piece
        if len(content) > limit:
            break
    return bytes(content)


def _after(state: RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    return error.after if isinstance(error, _Away) else 0.0


def _seconds(retry_after: str) -> float:
    """Read a Retry-After, in seconds or as a date; 0 where there is none."""
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(retry_after).timestamp() - time())
    except ValueError:
        return 0.0
