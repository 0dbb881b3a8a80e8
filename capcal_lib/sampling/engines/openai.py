"""Draw from any server that speaks OpenAI's chat completions, such as ``vllm serve`` on one machine
or many.
"""

import asyncio
import logging
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
from pydantic import BaseModel, ValidationError

from capcal_lib.errors import InputError
from capcal_lib.manifests import Model, Sampling
from capcal_lib.questions.reasoning import split_reasoning
from capcal_lib.runs.samples import Sample
from capcal_lib.sampling import engines
from capcal_lib.sampling.engines import SAMPLES_A_REQUEST, Failure, Request
from capcal_lib.sampling.engines.chat import answer_start
from capcal_lib.sampling.engines.client import Away, Client, Refused, Unanswered, words

SAMPLES_IN_FLIGHT = 1024  # more than one GPU runs at once, and as many as a server of eight wants
PATIENCE = 600.0  # seconds to wait for a server that is away
MOST_LOGPROBS = 20  # most that the protocol gives
TEMPLATE_TOKENS = 1024  # more than a chat template adds to its messages
LISTING_SECONDS = 30.0

# Servers that fill in what a request leaves open from the model's own settings, and take it where
# it is said.
OPEN_SERVERS = ("vllm", "sglang", "llamacpp")

# Of the words that servers have for how an answer ended: those of its limit, and of their own
# interference. All others, such as stop, eos_token or end_turn, are natural.
LIMIT = re.compile(r"length|max\w*tokens|token\w*limit", re.IGNORECASE)
INTERFERENCE = re.compile(
    r"filter|safety|error|abort|cancel|block|prohibit|recitation", re.IGNORECASE
)
DATE = re.compile(r"[-@:](\d{4}|\d{4}-?\d{2}-?\d{2}|latest)")

Group = list[Sample] | Failure
Job = tuple[Request, tuple[int, ...]]  # samples of one question with consecutive indices


class OpenAIEngine:
    """Sample through an OpenAI-compatible server, with at most ``in_flight`` samples under way.

    The server must list the model as its manifest's ``served_as`` says, else under its name or that
    of its hub repository. Its address, up to ``/v1``, and its key are given, or stand in
    ``OPENAI_BASE_URL`` and ``OPENAI_API_KEY``; neither the key nor a password in the address is
    ever shown. ``patience`` and what is asked again are those of `Client`; what cannot be drawn is
    a `Failure`. A setting that the manifest names under ``omit`` is not sent.

    One request asks for up to 16 samples of one question (``n``), or for one where the server does
    not do ``n``. vLLM gives choice i of a request the request's seed + i, which is what is sent, so
    a sample is the same whatever is asked beside it, up to rounding. Where a server counts tokens
    for all choices together, they are divided in proportion to the length of the texts; vLLM is
    asked for the tokens of each. Where it counts none, or what cannot be, they are 0: unknown."""

    family = "openai"

    def __init__(
        self,
        model: Model,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        patience: float = PATIENCE,
        in_flight: int = SAMPLES_IN_FLIGHT,
    ) -> None:
        if in_flight < 1:
            raise InputError(f"at least 1 sample must be in flight; got {in_flight}")
        self.model = model
        self.in_flight = in_flight
        key = api_key or os.environ.get("OPENAI_API_KEY", "")
        address = base_url or os.environ.get("OPENAI_BASE_URL", "")
        self.client = Client(address, key, patience=patience)
        hubs = dict.fromkeys(way.hub for way in model.weights if way.hub)
        self.names = [model.served_as] if model.served_as else [model.name, *hubs]
        self.name, self.software = self._listed()
        self.does_n: bool | None = None  # None until a server has shown it

    def close(self) -> None:
        """Do nothing: no connection is kept."""

    def sample(self, requests: Sequence[Request], sampling: Sampling, seed: int) -> Iterator[Group]:
        """Draw every wanted sample, yielding those of a request as it is answered, in no particular
        order.

        A prompt that leaves no room for an answer in ``context_tokens`` makes a `Failure`, too.
        """
        most = min(SAMPLES_A_REQUEST, self.in_flight)
        jobs = [
            (request, part)
            for request in requests
            for part in engines.consecutive(request.sample_indices, most)
        ]
        drawing = _Drawing(self, sampling, seed)
        yield from drawing.client.each(
            jobs, drawing.draw, self.in_flight, weight=lambda job: len(job[1])
        )

    def next_token_logprobs(
        self, requests: Sequence[Request], words: Sequence[str], sampling: Sampling, seed: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return log-probabilities and tokens as `Engine` says; NaN, too, for a word not among the
        20 likeliest tokens.

        These are all that the protocol gives: such a word has at most the probability of the
        twentieth. Replies are drawn whole, since a server does not say whether its model reasons;
        where what it gives the probabilities of is not the answer that it gives, the row is NaN. So
        is that of a question that was not answered, and why is logged. vLLM gives probabilities at
        temperature 1, whatever the settings."""
        result = np.full((len(requests), len(words)), np.nan)
        tokens = np.zeros(len(requests), dtype=np.int64)
        drawing = _Drawing(self, sampling, seed)
        read = list[int]()

        async def ask(row: int, emit: Callable[[str], None]) -> None:
            try:
                answer = await drawing.post(
                    requests[row], logprobs=True, top_logprobs=MOST_LOGPROBS
                )
            except Unanswered as error:
                emit(str(error))
                return
            given = answer.choices[0].logprobs
            if given is None or not given.content:
                emit("the server gives no log-probabilities")
                return
            pieces = [place.token for place in given.content]
            response = answer.choices[0].message.parts[1].strip()
            start = answer_start(pieces)
            answered, ends, rest = "".join(pieces[start or 0 :]).lstrip().partition(response or " ")
            if (
                start is None or answered or not ends or rest.strip()[:1] not in ("", "<")
            ):  # a mark may end it
                tokens[row] = len(pieces)
                return
            tokens[row] = start + 1
            read.append(row)
            logprobs = {
                token.token: min(token.logprob, 0.0) for token in given.content[start].top_logprobs
            }
            result[row] = [logprobs.get(word, np.nan) for word in words]

        unanswered = drawing.client.each(range(len(requests)), ask, self.in_flight)
        engines.warn_unanswered(unanswered, len(requests))
        if read and np.isnan(result[read]).all():  # the server's fault, so that all are asked anew
            tokens[read] = 0
            lacking = f"none of {', '.join(words)} is among the likeliest tokens of any answer"
            engines.warn_unanswered([lacking] * len(read), len(requests))
        return result, tokens

    def hidden_states(self, _: Sequence[Request]) -> np.ndarray:
        """Refuse: the protocol has none."""
        raise InputError(
            "a server gives no hidden states; extract them with --engine transformers or --engine "
            "vllm"
        )

    def _listed(self) -> tuple[str, str]:
        """Return the name under which the server lists the model, and the software that it says it
        is.
        """
        client = self.client

        async def ask(path: str, emit: Callable[[_Listing], None]) -> None:
            emit(await client.ask("GET", path, _Listing.model_validate_json, LISTING_SECONDS))

        try:
            [listing] = client.each(["/models"], ask, 1)
        except Away as error:
            raise InputError(f"no server answers at {client.url}: {error}") from None
        except Unanswered as error:
            raise InputError(
                f"{client.url}/models: {error}; does OPENAI_BASE_URL end in /v1?"
            ) from None
        listed = {card.id: card.owned_by for card in listing.data}
        alike = [one for one in listed if any(same_model(one, name) for name in self.names)]
        for name in [name for name in self.names if name in listed] + alike[:1]:
            return name, listed[name] or ""
        raise InputError(
            f"the server at {client.url} lists {client.show(', '.join(listed)) or 'no model'}, not "
            f"{' or '.join(self.names)}; serve the model under that name, with vLLM: "
            f"--served-model-name {self.names[0]}; or say in its manifest served_as"
        )

    def body(self, request: Request, sampling: Sampling, **options: Any) -> dict[str, Any]:
        """Put the messages and the settings in the words of the protocol."""
        body: dict[str, Any] = {
            "model": self.name,
            "messages": list(request.messages),
            "max_tokens": sampling.max_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
        }
        if self.software in OPEN_SERVERS:
            body |= {"top_k": sampling.top_k or -1, "min_p": 0.0, "repetition_penalty": 1.0}
        elif sampling.top_k is not None:
            body["top_k"] = sampling.top_k
        if self.software == "vllm":
            body["return_token_ids"] = True
        switches = self.model.chat_template
        if switches:
            body["chat_template_kwargs"] = switches
        if "reasoning_effort" in switches:  # gpt-oss has no template in vLLM, but this
            body["reasoning_effort"] = switches["reasoning_effort"]
        body |= options
        return {name: value for name, value in body.items() if name not in self.model.omit}

    def check_name(self, answered: str) -> None:
        """Refuse the answer of another model; note a name that differs by a date or a folder."""
        if answered in self.known:
            return
        shown = self.client.show(answered)
        if not any(same_model(answered, name) for name in self.known):
            raise Unanswered(
                f"the server answered as another model, {shown!r}, not as {self.name!r}; where it "
                "is the same, say so in the manifest with served_as"
            )
        self.known.add(answered)
        logging.getLogger(__name__).warning(f"the server calls {self.name!r} {shown!r}")

    @cached_property
    def known(self) -> set[str]:
        """Return the names by which the model has been called."""
        return {self.name, *self.names}


class _Drawing:
    """One call to an engine."""

    def __init__(self, engine: OpenAIEngine, sampling: Sampling, seed: int) -> None:
        self.engine = engine
        self.sampling = sampling
        self.seed = seed
        self.client = copy(engine.client)
        self.prompts: dict[str, int] = {}  # tokens, by question id
        self.reading: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def post(
        self, request: Request, first: int = 0, choices: int = 1, **options: Any
    ) -> "_Answer":
        """Ask for samples from index ``first`` on; the answer is this model's, with so many
        choices.
        """
        options["seed"] = engines.question_seed(self.seed, request.question.id) + first
        if choices > 1:
            options["n"] = choices
        if "max_tokens" not in options:
            options["max_tokens"] = await self._limit(request)

        def read(content: bytes) -> _Answer:
            answer = _read(content, choices)
            if answer.model:
                self.engine.check_name(answer.model)
            return answer

        body = self.engine.body(request, self.sampling, **options)
        return await self.client.post("/chat/completions", body, read)

    async def draw(self, job: Job, emit: Callable[[Group], None]) -> None:
        """Draw consecutive samples of a question, with one request where the server does ``n``."""
        request, indices = job
        engine = self.engine
        many = len(indices) > 1
        if many and engine.does_n is False:
            await asyncio.gather(*(self.draw((request, (index,)), emit) for index in indices))
            return
        try:
            answer = await self.post(request, indices[0], len(indices))
        except _OtherCount:
            engine.does_n = False
            await self.draw(job, emit)
        except Unanswered as error:
            alone = None
            if many and isinstance(error, Refused) and not engine.does_n:
                alone = await self._alone(request, indices[0])
            if alone is None:
                emit(Failure(request.question.id, indices, str(error)))
                return
            engine.does_n = False
            self._emit(request, indices[:1], alone, emit)
            await self.draw((request, indices[1:]), emit)
        else:
            if many and engine.does_n is None:
                engine.does_n = True
            self._emit(request, indices, answer, emit)

    async def _alone(self, request: Request, index: int) -> "_Answer | None":
        """Ask for one sample of what was refused: if that is answered, ``n`` was the matter."""
        try:
            return await self.post(request, index)
        except Unanswered:
            return None

    async def _limit(self, request: Request) -> int:
        """Return how many tokens an answer may have: ``max_tokens``, or what the prompt leaves of
        the context.
        """
        most = self.sampling.max_tokens
        context = self.sampling.context_tokens
        longest = TEMPLATE_TOKENS + sum(
            len(message["content"].encode()) for message in request.messages
        )
        if longest + most <= context:  # a token is a byte at least
            return most
        name = request.question.id
        async with self.reading[name]:
            if name not in self.prompts:  # one token tells how many the prompt has, where it does
                answer = await self.post(request, max_tokens=1)
                self.prompts[name] = _count(answer.usage, "prompt_tokens", 1 << 31)
        prompt = self.prompts[name]
        if prompt >= context:
            raise Unanswered(
                f"the prompt has {prompt} tokens, which leaves no room for an answer in "
                f"context_tokens = {context}"
            )
        return min(most, context - prompt)

    def _emit(
        self,
        request: Request,
        indices: tuple[int, ...],
        answer: "_Answer",
        emit: Callable[[Group], None],
    ) -> None:
        name = request.question.id
        prompt = _count(answer.usage, "prompt_tokens", self.sampling.context_tokens)
        counts = _tokens(answer, self.sampling.max_tokens)
        samples = []
        for index, choice, tokens in zip(indices, answer.choices, counts, strict=True):
            end = choice.finish_reason or ""
            if INTERFERENCE.search(end):
                how = self.client.show(end)
                emit(Failure(name, (index,), f"the server ended an answer with {how!r}"))
                continue
            reasoning, response = choice.message.parts
            samples.append(
                Sample(
                    question_id=name,
                    sample_index=index,
                    response=response,
                    reasoning=reasoning,
                    finish_reason="length" if LIMIT.search(end) else "stop",
                    prompt_tokens=prompt,
                    completion_tokens=tokens,
                )
            )
        if samples:
            emit(samples)


def same_model(name: str, other: str) -> bool:
    """Tell whether two names are of one model: but for case, folders, ``.gguf`` and a date at the
    end of one.

    >>> same_model("openai/gpt-4.1-mini-2025-04-14", "gpt-4.1-mini")
    True
    >>> same_model("/models/X.gguf", "x"), same_model("qwen3-80b", "qwen3-8b")
    (True, False)
    """
    plain = [one.rpartition("/")[2].casefold().removesuffix(".gguf") for one in (name, other)]
    short, long = sorted(plain, key=len)
    rest = long.removeprefix(short)
    return rest == "" or (rest != long and DATE.fullmatch(rest) is not None)


class _Card(BaseModel):
    id: str
    owned_by: str | None = None


class _Listing(BaseModel):
    data: list[_Card]


class _Message(BaseModel):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None

    @property
    def parts(self) -> tuple[str | None, str]:
        """Return the reasoning, from its own field or from the text, and the answer."""
        apart = self.reasoning_content or self.reasoning
        reasoning, response = split_reasoning(self.content or "")
        return ("\n".join(filter(None, (apart, reasoning))) or None, response)


class _Token(BaseModel):
    token: str
    logprob: float


class _Place(BaseModel):
    token: str
    top_logprobs: list[_Token]


class _Logprobs(BaseModel):
    content: list[_Place] | None = None


class _Choice(BaseModel):
    message: _Message
    index: int = 0
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None
    token_ids: list[int] | None = None


class _Answer(BaseModel):
    choices: list[_Choice]
    model: str | None = None  # some do not say
    usage: Any = None  # likewise


class _OtherCount(Exception):
    """The server gave more or fewer choices than it was asked for."""


def _read(content: bytes, choices: int) -> _Answer:
    """Read an answer that must hold so many choices."""
    try:
        answer = _Answer.model_validate_json(content)
    except ValidationError as error:
        text = content.decode(errors="replace")
        if (said := words(text)) != text:  # an error, though the status is 200
            raise ValueError(said) from None
        first = error.errors(include_url=False)[0]
        raise ValueError(f"{'.'.join(map(str, first['loc']))} {first['msg']}".strip()) from None
    answer.choices.sort(key=lambda choice: choice.index)
    if [choice.index for choice in answer.choices] != list(range(choices)):
        if choices > 1 and answer.choices:
            raise _OtherCount
        raise ValueError(f"{len(answer.choices)} choices where {choices} were asked for")
    return answer


def _count(usage: Any, name: str, most: int) -> int:
    """Return a number of tokens, 1 to ``most``; 0 where the server says none, or what cannot be."""
    value = usage.get(name) if isinstance(usage, dict) else None
    return int(value) if isinstance(value, int | float) and 1 <= value <= most else 0


def _tokens(answer: _Answer, most: int) -> list[int]:
    """Return the number of tokens of each choice: its own, or its share of them all by the length
    of the text.
    """
    counts = [len(choice.token_ids or ()) for choice in answer.choices]
    if all(1 <= count <= most for count in counts):
        return counts
    total = _count(answer.usage, "completion_tokens", most * len(counts))
    if total < len(counts):
        return [0] * len(counts)
    lengths = [
        1 + sum(len(part or "") for part in choice.message.parts) for choice in answer.choices
    ]
    ends = np.cumsum(lengths) / sum(lengths) * (total - len(counts))  # beside one token of each
    return [min(1 + int(share), most) for share in np.diff(ends.round(), prepend=0)]
