"""Draw from any server that speaks OpenAI's chat completions, such as ``vllm serve`` on one machine
or many, with OpenAI's own client.
"""

import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, TypeVar

import numpy as np

from capcal_lib.errors import InputError, naming_extra
from capcal_lib.manifests import Model, Sampling
from capcal_lib.questions.reasoning import split_reasoning
from capcal_lib.runs.store import FinishReason, Sample
from capcal_lib.sampling.engines import Failure, Request, question_seed, warn_unanswered
from capcal_lib.sampling.engines.chat import answer_start
from capcal_lib.text import sanitize

SAMPLES_IN_FLIGHT = 256
RETRIES = 40  # about five minutes for a server that restarts or is too busy
SECONDS = 3600.0  # for an answer; to give up on slow answers would favour short ones
MOST_LOGPROBS = 20  # most that the protocol gives
# What these servers fill in from the model's own settings where a request leaves it open.
OPEN_SERVERS = ("vllm", "sglang", "llamacpp")
LEFT_OFF = {"top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0}
# What may stand after the name of a model in that of the same model.
SUFFIX = r"(\.gguf)?([-@:](\d{4}|\d{4}-?\d{2}-?\d{2}|latest))?"
QUIET_SECONDS = 5  # without any answer, after which a line says that it is waited for

T = TypeVar("T")
R = TypeVar("R")


class OpenAIEngine:
    """Sample through an OpenAI-compatible server, one request per sample, with at most
    ``in_flight`` requests at a time (default 256).

    The server must list the model under its manifest's ``served_as``, or else under its name or its
    hub repository's. Its address, up to ``/v1``, is ``base_url`` or ``OPENAI_BASE_URL``; its key is
    ``OPENAI_API_KEY``. The client asks again for five minutes while the server is away, too busy or
    in error (no connection, 429, 5xx); `InputError` after that, or where access is denied. A sample
    that the server refuses otherwise (4xx) becomes a `Failure`. Settings that the manifest lists
    under ``omit`` are not sent. The server's own limit on prompt and answer together applies, not
    ``context_tokens``. If it counts no tokens, they are 0: unknown."""

    family = "openai"

    def __init__(
        self, model: Model, *, base_url: str | None = None, in_flight: int | None = None
    ) -> None:
        self.in_flight = SAMPLES_IN_FLIGHT if in_flight is None else in_flight
        if self.in_flight < 1:
            raise InputError(f"in_flight must be at least 1; got {in_flight}")
        self.model = model
        self.url = (base_url or os.environ.get("OPENAI_BASE_URL", "")).strip()
        key = os.environ.get("OPENAI_API_KEY", "").strip() or "EMPTY"
        with naming_extra():
            from openai import OpenAI, OpenAIError
        try:
            self.client = OpenAI(
                base_url=self.url, api_key=key, max_retries=RETRIES, timeout=SECONDS
            )
            listed = self.client.with_options(max_retries=2, timeout=30.0).models.list().data
        except OpenAIError as error:
            raise self._why(error) from None
        known = {card.id: card.owned_by for card in listed}
        hubs = [way.hub for way in model.weights if way.hub]
        names = [model.served_as] if model.served_as else [model.name, *hubs]
        served = [name for name in names if name in known]
        if not served:
            raise InputError(
                f"the server at {self.url} lists {sanitize(', '.join(known)) or 'no model'}, not "
                f"{' or '.join(names)}; serve the model under that name (with vLLM: "
                f"--served-model-name {names[0]}), or set served_as in its manifest"
            )
        self.name = served[0]
        self.fills_in = known[self.name] in OPEN_SERVERS

    def sample(
        self, requests: Sequence[Request], sampling: Sampling, seed: int
    ) -> Iterator[list[Sample] | Failure]:
        """Draw every wanted sample, yielding each when it is answered, in no particular order."""

        def draw(job: tuple[Request, int]) -> list[Sample] | Failure:
            request, index = job
            name = request.question.id
            answer = self._ask(request, sampling, seed, index)
            if isinstance(answer, str):
                return Failure(name, (index,), answer)
            choice = answer.choices[0]
            end = choice.finish_reason
            if end in ("content_filter", "error", "abort"):
                return Failure(name, (index,), f"the server ended an answer with {end!r}")
            finish: FinishReason = "length" if end in ("length", "max_tokens") else "stop"
            reasoning, response = _parts(choice.message)
            prompt_tokens = getattr(answer.usage, "prompt_tokens", None) or 0
            tokens = getattr(answer.usage, "completion_tokens", None) or 0
            return [Sample(name, index, response, reasoning, finish, prompt_tokens, tokens)]

        jobs = ((request, index) for request in requests for index in request.sample_indices)
        return do_in_threads(draw, jobs, self.in_flight, pause=[])

    def next_token_logprobs(
        self, requests: Sequence[Request], words: Sequence[str], sampling: Sampling, seed: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return log-probabilities and tokens as described in `Engine`; also NaN for a word that is
        not among the 20 likeliest tokens, of which the protocol gives no more.

        Replies are drawn whole, since a server does not say whether its model reasons."""
        result = np.full((len(requests), len(words)), np.nan)
        tokens = np.zeros(len(requests), dtype=np.int64)

        def read(row: int) -> str:
            """Read a row; return why there is no answer, if so."""
            wanted = {"logprobs": True, "top_logprobs": MOST_LOGPROBS}
            answer = self._ask(requests[row], sampling, seed, **wanted)
            if isinstance(answer, str):
                return answer
            choice = answer.choices[0]
            places = (choice.logprobs and choice.logprobs.content) or []
            if not any(place.top_logprobs for place in places):
                return "the server gives no log-probabilities"
            pieces = [place.token for place in places]
            start = answer_start(pieces)
            tokens[row] = len(pieces)
            # A server that keeps reasoning apart may give the tokens of the reasoning alone.
            _, response = _parts(choice.message)
            read_text = "".join(pieces[start:]).partition("<")[0].strip()
            if start is not None and read_text and read_text == response.strip():
                tokens[row] = start + 1
                likely = {one.token: min(one.logprob, 0.0) for one in places[start].top_logprobs}
                result[row] = [likely.get(word, np.nan) for word in words]
            return ""

        failed = do_in_threads(read, range(len(requests)), self.in_flight)
        warn_unanswered(filter(None, failed), len(requests))
        return result, tokens

    def hidden_states(self, _: Sequence[Request], layers: str = "mean") -> np.ndarray:  # noqa: ARG002
        """Raise `InputError`: the protocol has no hidden states."""
        raise InputError("a server gives no hidden states; use --engine transformers")

    def _ask(
        self, request: Request, sampling: Sampling, seed: int, index: int = 0, **more: Any
    ) -> Any:
        """Ask for a sample; return the answer, or why the server refuses it."""
        from openai import APIStatusError, OpenAIError

        switches = self.model.chat_template
        extra: dict[str, Any] = dict(LEFT_OFF) if self.fills_in else {}
        if sampling.top_k is not None:
            extra["top_k"] = sampling.top_k
        if switches:
            extra["chat_template_kwargs"] = switches
        if "reasoning_effort" in switches:  # gpt-oss has no template in vLLM, but this
            extra["reasoning_effort"] = switches["reasoning_effort"]
        body: dict[str, Any] = {
            "max_tokens": sampling.max_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "seed": question_seed(seed, request.question.id) + index,
            "extra_body": {key: extra[key] for key in extra if key not in self.model.omit},
        }
        sent = {key: value for key, value in body.items() if key not in self.model.omit}
        messages = list(request.messages)
        try:
            answer = self.client.chat.completions.create(
                model=self.name, messages=messages, **sent, **more
            )
        except APIStatusError as error:
            if error.status_code in (400, 404, 413, 422):  # this request; others end the run
                return sanitize(error)
            raise self._why(error) from None
        except OpenAIError as error:
            raise self._why(error) from None
        if not getattr(answer, "choices", None):
            return f"an answer without choices: {sanitize(str(answer))}"
        if not isinstance(answer.choices[0].message.content, str | None):
            return "an answer that is no text"
        same = rf"(.*/)?{re.escape(self.name.rpartition('/')[2])}{SUFFIX}"
        if not re.fullmatch(same, answer.model or self.name, re.IGNORECASE):
            return (
                f"the server answered as another model, {sanitize(answer.model)!r}, not as "
                f"{self.name!r}; where it is the same, say so in the manifest with served_as"
            )
        return answer

    def _why(self, error: Exception) -> InputError:
        """Say in one line why the server gives no answers."""
        from openai import AuthenticationError, PermissionDeniedError

        if isinstance(error, AuthenticationError | PermissionDeniedError):
            return InputError(f"{self.url} refuses access: {sanitize(error)}; check OPENAI_API_KEY")
        return InputError(
            f"no answer from {self.url}: {sanitize(error)}; does OPENAI_BASE_URL end in /v1? What "
            "was drawn is kept, and the same command goes on from there"
        )


def _parts(message: Any) -> tuple[str | None, str]:
    """Return the reasoning, from its own field or the text, and the answer."""
    apart = getattr(message, "reasoning_content", None) or getattr(message, "reasoning", None)
    reasoning, response = split_reasoning(message.content or "")
    texts = [text for text in (apart, reasoning) if text]
    # Half of a surrogate pair, as a server writes that cuts a smiley in two, cannot be stored.
    reasoning, response = (
        text.encode("utf-8", "replace").decode() for text in ("\n".join(texts), response)
    )
    return reasoning or None, response


def do_in_threads(
    do: Callable[[T], R], items: Iterable[T], threads: int, *, pause: R | None = None
) -> Iterator[R]:
    """Yield what ``do(item)`` returns for every item, as it comes, and ``pause``, if there is one,
    after each second in which nothing comes; a long wait is logged.

    The threads end with the process, so an interrupt need not wait for them."""
    todo: SimpleQueue[tuple[T] | None] = SimpleQueue()
    done: SimpleQueue[R | Exception] = SimpleQueue()

    def work() -> None:
        while (item := todo.get()) is not None:
            try:
                done.put(do(*item))
            except Exception as error:
                done.put(error)

    items = iter(items)
    under_way = waited = 0
    quiet = QUIET_SECONDS
    for item in islice(items, threads):
        todo.put((item,))
        under_way += 1
        Thread(target=work, daemon=True).start()
    try:
        while under_way:
            try:
                result = done.get(timeout=1.0)
            except Empty:
                waited += 1
                if waited == quiet:
                    logging.getLogger(__name__).warning(
                        f"the server has not answered for {waited} s; still waiting"
                    )
                    quiet *= 2
                if pause is not None:
                    yield pause
                continue
            under_way -= 1
            waited, quiet = 0, QUIET_SECONDS
            for item in islice(items, 1):
                todo.put((item,))
                under_way += 1
            if isinstance(result, Exception):
                raise result
            yield result
    finally:
        for _ in range(threads):
            todo.put(None)
