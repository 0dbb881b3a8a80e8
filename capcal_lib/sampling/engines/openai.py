"""Draw from any server that speaks OpenAI's chat completions, such as ``vllm serve`` on one machine
or many.
"""

import asyncio
import math
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, Field, ValidationError

from capcal_lib.errors import InputError
from capcal_lib.manifests import Model, Sampling
from capcal_lib.questions.reasoning import split_reasoning
from capcal_lib.runs.samples import FinishReason, Sample
from capcal_lib.sampling import engines
from capcal_lib.sampling.engines import SAMPLES_A_REQUEST, Failure, Request
from capcal_lib.sampling.engines.chat import answer_start
from capcal_lib.sampling.engines.client import Away, Client, Refused, Server, Unanswered

REQUESTS_IN_FLIGHT = 64
PATIENCE = 600.0  # seconds to wait for a server that is away
MOST_LOGPROBS = 20  # most that the protocol gives
TEMPLATE_TOKENS = 1024  # more than a chat template adds to its messages
ANSWER_BYTES, TOKEN_BYTES = (
    1 << 20,
    512,
)  # at most of an answer, and more for every token that is asked for
LISTING_BYTES = 4 << 20
LISTING_SECONDS = 30.0

# Servers that fill in what a request leaves open from the model's own settings, and take it where
# it is said.
OPEN_SERVERS = ("vllm", "sglang", "llamacpp")

Group = list[Sample] | Failure
Job = tuple[Request, tuple[int, ...]]  # samples of one question with consecutive indices


class OpenAIEngine:
    """Sample through an OpenAI-compatible server, at most ``requests_in_flight`` requests at a
    time.

    The server must list the model as its manifest's ``served_as`` says, else under its name or that
    of its hub repository. Its address, up to ``/v1``, and its key are given, or stand in
    ``OPENAI_BASE_URL`` and ``OPENAI_API_KEY``; neither the key nor a password in the address is
    ever shown. ``patience`` and what is asked again are those of `Client`; what cannot be drawn is
    a `Failure`.

    One request asks for up to 16 samples of one question (``n``), or for one where the server does
    not do ``n``. vLLM gives choice i of a request the request's seed + i, which is what is sent, so
    a sample is the same whatever is asked beside it, up to rounding. Where a server counts tokens
    for all choices together, they are divided in proportion to the length of the texts; vLLM is
    asked for the tokens of each."""

    family = "openai"

    def __init__(
        self,
        model: Model,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        patience: float = PATIENCE,
        requests_in_flight: int = REQUESTS_IN_FLIGHT,
    ) -> None:
        if base_url is None:
            engines.check_engine(model, self.family)
        self.model = model
        self.patience = patience
        self.requests_in_flight = requests_in_flight
        key = api_key or os.environ.get("OPENAI_API_KEY", "")
        self.server = Server.locate(base_url or os.environ["OPENAI_BASE_URL"], key)
        hubs = dict.fromkeys(way.hub for way in model.weights if way.hub)
        self.names = [model.served_as] if model.served_as else [model.name, *hubs]
        self.name, self.software = self._listed()
        self.does_n: bool | None = None  # None until a server has shown it

    def sample(self, requests: Sequence[Request], sampling: Sampling, seed: int) -> Iterator[Group]:
        """Draw every wanted sample, yielding those of a request as it is answered, in no particular
        order.

        A prompt that leaves no room for an answer in ``context_tokens`` makes a `Failure`, too.
        """
        jobs = [
            (request, part)
            for request in requests
            for part in engines.consecutive(request.sample_indices)
        ]
        drawing = _Drawing(self, sampling, seed)
        yield from drawing.client.each(jobs, drawing.draw)

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
            response = answer.choices[0].message.parts()[1].strip()
            start = answer_start(pieces)
            answered, ends, rest = "".join(pieces[start or 0 :]).lstrip().partition(response or " ")
            if (
                start is None or answered or not ends or rest.strip()[:1] not in ("", "<")
            ):  # a mark may end it
                tokens[row] = answer.usage.completion_tokens
                return
            tokens[row] = start + 1
            read.append(row)
            logprobs = {
                token.token: min(token.logprob, 0.0) for token in given.content[start].top_logprobs
            }
            result[row] = [logprobs.get(word, np.nan) for word in words]

        engines.warn_unanswered(drawing.client.each(range(len(requests)), ask), len(requests))
        if read and np.isnan(result[read]).all():  # the server's fault, so that all are asked anew
            tokens[read] = 0
            lacking = f"none of {', '.join(words)} is among the likeliest tokens of any answer"
            engines.warn_unanswered([lacking] * len(read), len(requests))
        return result, tokens

    def hidden_states(self, *_: Any, **__: Any) -> np.ndarray:
        """Refuse: the protocol has none."""
        raise InputError(
            "a server gives no hidden states; extract them with --engine transformers or --engine "
            "vllm"
        )

    def _listed(self) -> tuple[str, str]:
        """Return the name under which the server lists the model, and the software that it says it
        is.
        """
        url = self.server.url
        client = self.client()

        async def ask(path: str, emit: Callable[[_Listing], None]) -> None:
            emit(
                await client.ask(
                    "GET", path, _Listing.model_validate_json, LISTING_BYTES, LISTING_SECONDS
                )
            )

        try:
            [listing] = client.each(["/models"], ask)
        except Away as error:
            raise InputError(f"no server answers at {url}: {error}") from None
        except Unanswered as error:
            raise InputError(f"{url}/models: {error}; does OPENAI_BASE_URL end in /v1?") from None
        listed = {card.id: card.owned_by for card in listing.data}
        for name in self.names:
            if name in listed:
                return name, listed[name]
        raise InputError(
            f"the server at {url} lists {self.server.show(', '.join(listed)) or 'no model'}, not "
            f"{' or '.join(self.names)}; serve the model under that name, with vLLM: "
            f"--served-model-name {self.names[0]}"
        )

    def client(self) -> Client:
        """Return a client for one call of the engine."""
        return Client(self.server, patience=self.patience, at_once=self.requests_in_flight)

    def body(self, request: Request, sampling: Sampling) -> dict[str, Any]:
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
        if self.model.chat_template:
            body["chat_template_kwargs"] = self.model.chat_template
        if (
            "reasoning_effort" in self.model.chat_template
        ):  # gpt-oss has no template in vLLM, but this
            body["reasoning_effort"] = self.model.chat_template["reasoning_effort"]
        return body


class _Drawing:
    """One call to an engine."""

    def __init__(self, engine: OpenAIEngine, sampling: Sampling, seed: int) -> None:
        self.engine = engine
        self.sampling = sampling
        self.seed = seed
        self.client = engine.client()
        self.trial = asyncio.Lock()
        self.prompts: dict[str, int] = {}  # tokens, by question id
        self.reading: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def post(self, request: Request, first: int = 0, **options: Any) -> "_Answer":
        """Ask for samples from index ``first`` on; the answer is this model's, with ``n`` choices,
        or one.
        """
        body = self.engine.body(request, self.sampling) | options
        body["seed"] = engines.question_seed(self.seed, request.question.id) + first
        choices = options.get("n", 1)
        most = math.inf  # tokens of the prompt, where one only wants to know them
        if "max_tokens" not in options:
            body["max_tokens"] = await self._limit(request)
            most = self.sampling.context_tokens

        def read(content: bytes) -> _Answer:
            answer = _read(content, choices)
            said = choices * body["max_tokens"]
            usage = answer.usage
            if not (0 < usage.prompt_tokens <= most and choices <= usage.completion_tokens <= said):
                raise ValueError(
                    f"{usage.prompt_tokens} tokens read and {usage.completion_tokens} written, "
                    "which cannot be"
                )
            if answer.model and answer.model not in self.engine.names:
                other = self.client.server.show(answer.model)
                raise Unanswered(
                    f"the server answered as another model, {other!r}, not as {self.engine.name!r}"
                )
            return answer

        limit = ANSWER_BYTES + TOKEN_BYTES * choices * body["max_tokens"] * (
            5 if "logprobs" in body else 1
        )
        return await self.client.post("/chat/completions", body, read, limit)

    async def draw(self, job: Job, emit: Callable[[Group], None]) -> None:
        """Draw consecutive samples of a question, with one request where the server does ``n``."""
        request, indices = job
        if len(indices) > 1 and self.engine.does_n is False:
            await asyncio.gather(*(self.draw((request, (index,)), emit) for index in indices))
            return
        try:
            answer = await self.post(request, indices[0], n=len(indices))
        except _OtherCount:
            self.engine.does_n = False
            await self.draw(job, emit)
        except Unanswered as error:
            if isinstance(error, Refused) and len(indices) > 1 and not await self._does_n(request):
                await self.draw(job, emit)
            else:
                emit(Failure(request.question.id, indices, str(error)))
        else:
            if len(indices) > 1 and self.engine.does_n is None:
                self.engine.does_n = True
            self._emit(request, indices, answer, emit)

    async def _does_n(self, request: Request) -> bool:
        """Find out, once, whether what was refused is ``n``: then one sample of the same question
        is not.
        """
        async with self.trial:
            if self.engine.does_n is None:
                try:
                    await self.post(request, max_tokens=1)
                    self.engine.does_n = False
                except Unanswered:
                    self.engine.does_n = True  # for all that is known
            return self.engine.does_n

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
            if name not in self.prompts:  # one token tells how many the prompt has
                self.prompts[name] = (await self.post(request, max_tokens=1)).usage.prompt_tokens
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
        samples = []
        for index, choice, tokens in zip(indices, answer.choices, _tokens(answer), strict=True):
            if choice.finish_reason not in ("stop", "length"):
                how = self.client.server.show(choice.finish_reason)
                emit(Failure(name, (index,), f"the server ended an answer with {how!r}"))
                continue
            finish: FinishReason = "stop" if choice.finish_reason == "stop" else "length"
            reasoning, response = choice.message.parts()
            samples.append(
                Sample(
                    question_id=name,
                    sample_index=index,
                    response=response,
                    reasoning=reasoning,
                    finish_reason=finish,
                    prompt_tokens=answer.usage.prompt_tokens,
                    completion_tokens=tokens,
                )
            )
        if samples:
            emit(samples)


_Count = Annotated[int, Field(ge=0, le=2**31 - 1)]  # what the store holds


class _Card(BaseModel):
    id: str
    owned_by: str = ""


class _Listing(BaseModel):
    data: list[_Card]


class _Message(BaseModel):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None

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
    index: int
    message: _Message
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None
    token_ids: list[int] | None = None


class _Usage(BaseModel):
    prompt_tokens: _Count
    completion_tokens: _Count


class _Answer(BaseModel):
    model: str | None = None  # some do not say
    choices: Annotated[list[_Choice], Field(max_length=SAMPLES_A_REQUEST)]
    usage: _Usage


class _OtherCount(Exception):
    """The server gave more or fewer choices than it was asked for."""


def _read(content: bytes, choices: int) -> _Answer:
    """Read an answer that must hold so many choices."""
    try:
        answer = _Answer.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise ValueError(f"{'.'.join(map(str, first['loc']))} {first['msg']}".strip()) from None
    answer.choices.sort(key=lambda choice: choice.index)
    if [choice.index for choice in answer.choices] != list(range(choices)):
        if choices > 1:
            raise _OtherCount
        raise ValueError(f"{len(answer.choices)} choices where one was asked for")
    return answer


def _tokens(answer: _Answer) -> list[int]:
    """Return the number of tokens of each choice: its own, or its share of them all by the length
    of the text.
    """
    if all(choice.token_ids for choice in answer.choices):
        return [len(choice.token_ids or ()) for choice in answer.choices]
    lengths = [
        1 + sum(len(part or "") for part in choice.message.parts()) for choice in answer.choices
    ]
    ends = np.cumsum(lengths) / sum(lengths) * answer.usage.completion_tokens
    return [int(tokens) for tokens in np.diff(ends.round(), prepend=0)]
