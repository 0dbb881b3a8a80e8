"""Draw from any server that speaks OpenAI's chat completions, such as ``vllm serve`` on one machine
or many.
"""

import logging
import os
import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from pydantic import BaseModel, model_validator
from pydantic_core import from_json

from capcal_lib.errors import InputError
from capcal_lib.manifests import Model, Sampling
from capcal_lib.questions.reasoning import split_reasoning
from capcal_lib.runs.store import FinishReason, Sample
from capcal_lib.sampling.engines import Failure, Request, question_seed, warn_unanswered
from capcal_lib.sampling.engines.chat import answer_start
from capcal_lib.sampling.engines.client import Client, Unanswered
from capcal_lib.text import sanitize

SAMPLES_IN_FLIGHT = 1024  # more than one GPU runs at once, and as many as a server of eight wants
MOST_LOGPROBS = 20  # most that the protocol gives
LISTING_SECONDS = 30.0

# What servers fill in from the model's own settings where a request leaves it open, and which of
# them take it where it is said.
OPEN_SERVERS = ("vllm", "sglang", "llamacpp")
LEFT_OFF = {"top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0}

# What may stand after the name of a model in that of the same model.
SUFFIX = r"(\.gguf)?([-@:](\d{4}|\d{4}-?\d{2}-?\d{2}|latest))?"

# Of the words that servers have for how an answer ended: those of its limit, and of their own
# interference. All others, such as stop, eos_token or end_turn, are natural.
LIMIT = re.compile(r"length|max\w*tokens|token\w*limit", re.IGNORECASE)
INTERFERENCE = re.compile(
    r"filter|safety|error|abort|cancel|block|prohibit|recitation", re.IGNORECASE
)

THOUGHT = re.compile(r"think|thought|reason", re.IGNORECASE)  # types of parts that are reasoning


class OpenAIEngine:
    """Sample through an OpenAI-compatible server, one request per sample, with at most
    ``in_flight`` requests at a time (default 1,024).

    The server must list the model under its manifest's ``served_as``, or else under its name or its
    hub repository's. Its address, up to ``/v1``, is ``base_url`` or ``OPENAI_BASE_URL``; its key is
    ``OPENAI_API_KEY``. Our messages never show the key or a password in the address, unless the
    server's own words repeat it. `Client` decides which requests are sent again; samples that
    cannot be drawn become a `Failure`. Settings that the manifest lists under ``omit`` are not
    sent.

    If a server counts no tokens, or an impossible number, they are 0: unknown. The server's own
    limit on prompt and answer together applies, not ``context_tokens``."""

    family = "openai"

    def __init__(
        self, model: Model, *, base_url: str | None = None, in_flight: int | None = None
    ) -> None:
        self.model = model
        in_flight = SAMPLES_IN_FLIGHT if in_flight is None else in_flight
        if in_flight < 1:
            raise InputError(f"in_flight must be at least 1; got {in_flight}")
        address = base_url or os.environ.get("OPENAI_BASE_URL", "")
        self.client = Client(address, os.environ.get("OPENAI_API_KEY", ""), in_flight)
        self.name, self.software = self._listed()
        self.known = {self.name}  # names by which the server has answered

    def sample(
        self, requests: Sequence[Request], sampling: Sampling, seed: int
    ) -> Iterator[list[Sample] | Failure]:
        """Draw every wanted sample, yielding each when it is answered, in no particular order."""

        async def draw(job: tuple[Request, int]) -> list[Sample] | Failure:
            request, index = job
            name = request.question.id
            try:
                answer = await self._ask(request, sampling, seed, index)
            except Unanswered as error:
                return Failure(name, (index,), str(error))
            [choice] = answer.choices
            end = choice.finish_reason or ""
            if INTERFERENCE.search(end):
                return Failure(name, (index,), f"the server ended an answer with {sanitize(end)!r}")
            reasoning, response = choice.message.parts
            finish: FinishReason = "length" if LIMIT.search(end) else "stop"
            prompt = _count(answer.usage, "prompt_tokens", sampling.context_tokens)
            tokens = _count(answer.usage, "completion_tokens", sampling.max_tokens)
            return [Sample(name, index, response, reasoning, finish, prompt, tokens)]

        jobs = ((request, index) for request in requests for index in request.sample_indices)
        return self.client.stream(jobs, draw, pause=[])

    def next_token_logprobs(
        self, requests: Sequence[Request], words: Sequence[str], sampling: Sampling, seed: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return log-probabilities and tokens as described in `Engine`; also NaN for a word that is
        not among the 20 likeliest tokens.

        The protocol gives no more than 20: another word has at most the probability of the
        twentieth. Replies are drawn whole, since a server does not say whether its model reasons.
        The row is NaN if the probabilities do not belong to the answer, or if the question was not
        answered; then the reason is logged. vLLM gives probabilities at temperature 1, whatever the
        settings."""
        result = np.full((len(requests), len(words)), np.nan)
        tokens = np.zeros(len(requests), dtype=np.int64)
        wanted = {"logprobs": True, "top_logprobs": MOST_LOGPROBS}

        async def read(row: int) -> str:
            """Read a row; return why there is no answer, if so."""
            try:
                [choice] = (await self._ask(requests[row], sampling, seed, **wanted)).choices
            except Unanswered as error:
                return str(error)
            places = choice.logprobs.content if choice.logprobs else []
            if not any(place.top_logprobs for place in places):
                return "the server gives no log-probabilities"
            pieces = [place.token for place in places]
            start = answer_start(pieces)
            tokens[row] = len(pieces)
            response = choice.message.parts[1].strip()
            answer = rf"\s*{re.escape(response)}\s*(<|$)"  # a mark may end it
            if start is not None and response and re.match(answer, "".join(pieces[start:])):
                tokens[row] = start + 1
                logprobs = {top.token: min(top.logprob, 0.0) for top in places[start].top_logprobs}
                result[row] = [logprobs.get(word, np.nan) for word in words]
            return ""

        failed = self.client.stream(range(len(requests)), read)
        warn_unanswered(filter(None, failed), len(requests))
        return result, tokens

    def hidden_states(self, _: Sequence[Request], layers: str = "mean") -> np.ndarray:  # noqa: ARG002
        """Raise `InputError`: the protocol has no hidden states."""
        raise InputError(
            "a server gives no hidden states; use --engine transformers or --engine vllm"
        )

    def _listed(self) -> tuple[str, str]:
        """Return the name under which the server lists the model, and the software that it says it
        is.
        """
        model = self.model
        hubs = [way.hub for way in model.weights if way.hub]
        names = [model.served_as] if model.served_as else [model.name, *hubs]
        client = self.client
        ask = partial(client.ask, read=read_listing, seconds=LISTING_SECONDS)
        try:
            [listed] = client.stream(["/models"], ask)
        except Unanswered as error:
            raise InputError(
                f"no server answers at {client.url}: {error}; does OPENAI_BASE_URL end in /v1?"
            ) from None
        for name in names:
            if name in listed:
                return name, listed[name]
        raise InputError(
            f"the server at {client.url} lists {sanitize(', '.join(listed)) or 'no model'}, not "
            f"{' or '.join(names)}; serve the model under that name (with vLLM: "
            f"--served-model-name {names[0]}), or set served_as in its manifest"
        )

    async def _ask(
        self, request: Request, sampling: Sampling, seed: int, index: int = 0, **options: Any
    ) -> "_Answer":
        """Ask for a sample of a question in the words of the protocol; the answer is this
        model's.
        """
        switches = self.model.chat_template
        body: dict[str, Any] = {
            "model": self.name,
            "messages": list(request.messages),
            "max_tokens": sampling.max_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "seed": question_seed(seed, request.question.id) + index,
        }
        if self.software in OPEN_SERVERS:
            body |= LEFT_OFF
        if sampling.top_k is not None:
            body["top_k"] = sampling.top_k
        if switches:
            body["chat_template_kwargs"] = switches
        if "reasoning_effort" in switches:  # gpt-oss has no template in vLLM, but this
            body["reasoning_effort"] = switches["reasoning_effort"]
        body |= options
        sent = {name: value for name, value in body.items() if name not in self.model.omit}
        answer = await self.client.post("/chat/completions", sent, _Answer.model_validate_json)
        name = answer.model or self.name
        if name not in self.known:
            shown = sanitize(name)
            same = rf"(.*/)?{re.escape(self.name.rpartition('/')[2])}{SUFFIX}"
            if not re.fullmatch(same, name, re.IGNORECASE):
                raise Unanswered(
                    f"the server answered as another model, {shown!r}, not as {self.name!r}; where "
                    "it is the same, say so in the manifest with served_as"
                )
            self.known.add(name)
            logging.getLogger(__name__).warning(f"the server calls {self.name!r} {shown!r}")
        return answer


def read_listing(content: bytes) -> dict[str, str]:
    """Read what models a server lists, and which software it says that it is.

    >>> read_listing(b'{"data": [{"id": "a", "owned_by": "vllm"}]}'), read_listing(b'["a"]')
    ({'a': 'vllm'}, {'a': ''})
    """
    listing = from_json(content)
    if isinstance(listing, dict):
        listing = listing.get("data", listing.get("models"))
    if not isinstance(listing, list):
        raise ValueError("no list of models")
    listed = {}
    for card in listing:
        if isinstance(card, str):
            listed[card] = ""
        elif isinstance(card, dict):
            names = (card.get(key) for key in ("id", "name", "model"))
            name = next((name for name in names if name and isinstance(name, str)), None)
            owner = card.get("owned_by")
            if name:
                listed[name] = owner if isinstance(owner, str) else ""
    return listed


class _Part(BaseModel):
    """One of several parts of an answer, which holds its words under one of these names."""

    type: str = "text"
    text: str | None = None
    refusal: str | None = None
    thinking: "str | list[_Part] | None" = None
    reasoning: "str | list[_Part] | None" = None
    summary: "str | list[_Part] | None" = None

    @property
    def words(self) -> str | None:
        for words in (self.text, self.refusal, self.thinking, self.reasoning, self.summary):
            if isinstance(words, list):
                return "".join(part.words or "" for part in words)
            if words is not None:
                return words
        return None

    @model_validator(mode="after")
    def _has_words(self) -> "_Part":
        if self.words is None and not THOUGHT.search(self.type):  # a thought may be redacted
            raise ValueError("a part without words")
        return self


class _Message(BaseModel):
    content: str | list[str | _Part] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None

    @property
    def parts(self) -> tuple[str | None, str]:
        """Return the reasoning, from its own field, parts or text, and the answer."""
        thoughts = [self.reasoning_content or self.reasoning]
        content = self.content or ""
        if isinstance(content, list):
            texts = []
            for part in content:
                if isinstance(part, str):
                    texts.append(part)
                elif THOUGHT.search(part.type):
                    thoughts.append(part.words)
                else:
                    texts.append(part.words or "")
            content = "".join(texts)
        reasoning, response = split_reasoning(content)
        return ("\n".join(filter(None, (*thoughts, reasoning))) or None, response)


class _Token(BaseModel):
    token: str
    logprob: float


class _Place(BaseModel):
    token: str
    top_logprobs: list[_Token]


class _Logprobs(BaseModel):
    content: list[_Place]


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None


class _Answer(BaseModel):
    choices: tuple[_Choice]
    model: str | None = None  # some do not say
    usage: Any = None  # likewise


def _count(usage: Any, name: str, most: int) -> int:
    """Return a number of tokens, 1 to ``most``; 0 where the server says none, or what cannot be."""
    value = usage.get(name) if isinstance(usage, dict) else None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if type(value) is int and 1 <= value <= most:
        return value
    return 0
