"""Draw from any server that speaks OpenAI's chat completions, such as ``vllm serve`` on one machine
or many.
"""

import asyncio
import logging
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from pydantic import BaseModel

from capcal_lib.errors import InputError, sanitize
from capcal_lib.manifests import Model, Sampling
from capcal_lib.questions.reasoning import split_reasoning
from capcal_lib.runs.samples import FinishReason, Sample
from capcal_lib.sampling import engines
from capcal_lib.sampling.engines import SAMPLES_A_REQUEST, Failure, Request
from capcal_lib.sampling.engines.chat import answer_start
from capcal_lib.sampling.engines.client import Client, Refused, Unanswered
from capcal_lib.sampling.engines.streams import each

SAMPLES_IN_FLIGHT = 1024  # more than one GPU runs at once, and as many as a server of eight wants
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
SUFFIX = r"(\.gguf)?([-@:](\d{4}|\d{4}-?\d{2}-?\d{2}|latest))?"  # of a name of the same model

Group = list[Sample] | Failure
Job = tuple[Request, tuple[int, ...]]  # some of its samples


class OpenAIEngine:
    """Sample through an OpenAI-compatible server, with at most ``in_flight`` samples under way,
    1,024 where that is not said.

    The server must list the model as its manifest's ``served_as`` says, else under its name or that
    of its hub repository. Its address, up to ``/v1``, is given or stands in
    ``OPENAI_BASE_URL``, its key in ``OPENAI_API_KEY``. No message of ours shows the key or a
    password in the address, but one that a server repeats in its own words stays there. What is
    asked again is that of `Client`; what cannot be drawn is a `Failure`. A setting that the
    manifest names under ``omit`` is not sent.

    One request asks for up to 16 samples of one question (``n``), or for one where the server does
    not do ``n``. vLLM gives choice i of a request the request's seed + i, which is what is sent, so
    a sample is the same whatever is asked beside it, up to rounding. Where a server counts tokens
    for all choices together, they are divided evenly; vLLM is asked for the tokens of each. Where
    it counts none, or what cannot be, they are 0: unknown."""

    family = "openai"

    def __init__(
        self, model: Model, *, base_url: str | None = None, in_flight: int | None = None
    ) -> None:
        self.model = model
        in_flight = SAMPLES_IN_FLIGHT if in_flight is None else in_flight
        if in_flight < 1:
            raise InputError(f"at least 1 sample must be in flight; got {in_flight}")
        address = base_url or os.environ.get("OPENAI_BASE_URL", "")
        self.client = Client(address, os.environ.get("OPENAI_API_KEY", ""), in_flight)
        hubs = [way.hub for way in model.weights if way.hub]
        names = [model.served_as] if model.served_as else [model.name, *hubs]
        self.name, self.software = self._listed(names)
        self.known = {self.name, *names}  # by which the model has been called
        self.does_n = True  # until it has refused to

    def sample(self, requests: Sequence[Request], sampling: Sampling, seed: int) -> Iterator[Group]:
        """Draw every wanted sample, yielding each when its request is answered, in no particular
        order.

        A prompt that leaves no room for an answer in ``context_tokens`` makes a `Failure`, too.
        """
        most = min(SAMPLES_A_REQUEST, self.client.in_flight)
        jobs = (
            (request, request.sample_indices[start : start + most])
            for request in requests
            for start in range(0, len(request.sample_indices), most)
        )
        drawn = each(
            jobs,
            _Call(self, sampling, seed).draw,
            in_flight=self.client.in_flight,
            weight=lambda job: len(job[1]),
            around=self.client.connected(),
        )
        return (group for groups in drawn for group in groups)

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
        call = _Call(self, sampling, seed)

        async def ask(row: int) -> str:
            """Read a row; return why there is no answer, if so."""
            asked = {"logprobs": True, "top_logprobs": MOST_LOGPROBS}
            try:
                [choice] = (await call.post(requests[row], **asked)).choices
            except Unanswered as error:
                return str(error)
            places = choice.logprobs.content if choice.logprobs else ()
            if not any(place.top_logprobs for place in places):
                return "the server gives no log-probabilities"
            tokens[row] = len(places)
            pieces = [place.token for place in places]
            start = answer_start(pieces)
            response = choice.message.parts[1].strip()
            answer = rf"\s*{re.escape(response)}\s*(<|$)"  # a mark may end it
            if start is not None and response and re.match(answer, "".join(pieces[start:])):
                tokens[row] = start + 1
                logprobs = {top.token: min(top.logprob, 0.0) for top in places[start].top_logprobs}
                result[row] = [logprobs.get(word, np.nan) for word in words]
            return ""

        client = self.client
        rows = range(len(requests))
        failed = each(rows, ask, in_flight=client.in_flight, around=client.connected())
        engines.warn_unanswered(filter(None, failed), len(requests))
        return result, tokens

    def hidden_states(self, _: Sequence[Request]) -> np.ndarray:
        """Refuse: the protocol has none."""
        raise InputError(
            "a server gives no hidden states; extract them with --engine transformers or --engine "
            "vllm"
        )

    def _listed(self, names: Sequence[str]) -> tuple[str, str]:
        """Return the name under which the server lists the model, and the software that it says it
        is.
        """
        client = self.client
        ask = partial(client.ask, read=_Listing.model_validate_json, seconds=LISTING_SECONDS)
        try:
            [listing] = each(["/models"], ask, in_flight=1, around=client.connected())
        except Unanswered as error:
            raise InputError(
                f"no server answers at {client.url}: {error}; does OPENAI_BASE_URL end in /v1?"
            ) from None
        listed = {card.id: card.owned_by or "" for card in listing.data}
        for name in (*names, *listed):
            if name in listed and any(same_model(name, one) for one in names):
                return name, listed[name]
        raise InputError(
            f"the server at {client.url} lists {sanitize(', '.join(listed)) or 'no model'}, not "
            f"{' or '.join(names)}; serve the model under that name, with vLLM: "
            f"--served-model-name {names[0]}; or say in its manifest served_as"
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


@dataclass
class _Call:
    """What is asked of a server with one seed and the same settings."""

    engine: OpenAIEngine
    sampling: Sampling
    seed: int
    # Answers of one token, by id of the request.
    prompts: dict[int, "asyncio.Future[_Answer]"] = field(default_factory=dict)

    async def post(
        self, request: Request, first: int = 0, choices: int = 1, **options: Any
    ) -> "_Answer":
        """Ask for samples from index ``first`` on; the answer is this model's, with so many
        choices.
        """
        engine = self.engine
        options["seed"] = engines.question_seed(self.seed, request.question.id) + first
        if choices > 1:
            options["n"] = choices
        if "max_tokens" not in options:
            options["max_tokens"] = await self._limit(request)

        def read(content: bytes) -> _Answer:
            answer = _Answer.model_validate_json(content)
            answer.choices.sort(key=lambda choice: choice.index)
            if len(answer.choices) != choices:
                wrong = f"{len(answer.choices)} choices where {choices} were asked for"
                raise Refused(wrong) if answer.choices else ValueError(wrong)
            if answer.model and answer.model not in engine.known:
                shown = sanitize(answer.model)
                if not any(same_model(answer.model, one) for one in engine.known):
                    raise Unanswered(
                        f"the server answered as another model, {shown!r}, not as {engine.name!r}; "
                        "where it is the same, say so in the manifest with served_as"
                    )
                engine.known.add(answer.model)
                logging.getLogger(__name__).warning(f"the server calls {engine.name!r} {shown!r}")
            return answer

        body = engine.body(request, self.sampling, **options)
        return await engine.client.post("/chat/completions", body, read)

    async def _limit(self, request: Request) -> int:
        """Return how many tokens an answer may have: ``max_tokens``, or what the prompt leaves of
        the context.
        """
        most = self.sampling.max_tokens
        context = self.sampling.context_tokens
        longest = sum(len(message["content"].encode()) for message in request.messages)
        if longest + TEMPLATE_TOKENS + most <= context:  # a token is a byte at least
            return most
        if id(request) not in self.prompts:  # one token tells how many the prompt has
            self.prompts[id(request)] = asyncio.ensure_future(self.post(request, max_tokens=1))
        prompt = _count((await self.prompts[id(request)]).usage, "prompt_tokens", 1 << 31)
        if prompt >= context:
            raise Unanswered(
                f"the prompt has {prompt} tokens, which leaves no room for an answer in "
                f"context_tokens = {context}"
            )
        return min(most, context - prompt)

    async def draw(self, job: Job) -> list[Group]:
        """Draw samples of a question, those in a row with one request where the server does ``n``.

        Of several that are refused the first is asked for alone; if that is answered, ``n`` was the
        matter, and it is not asked for again."""
        request, indices = job
        name = request.question.id
        engine = self.engine
        has_gaps = indices[-1] - indices[0] >= len(indices)
        if has_gaps or (len(indices) > 1 and not engine.does_n):
            alone = await asyncio.gather(*(self.draw((request, (index,))) for index in indices))
            return [group for groups in alone for group in groups]
        try:
            answer = await self.post(request, indices[0], len(indices))
        except Unanswered as error:
            if isinstance(error, Refused) and len(indices) > 1:
                first = await self.draw((request, indices[:1]))
                if not isinstance(first[0], Failure):
                    engine.does_n = False
                    return first + await self.draw((request, indices[1:]))
            return [Failure(name, indices, str(error))]
        most = self.sampling.max_tokens
        prompt = _count(answer.usage, "prompt_tokens", self.sampling.context_tokens)
        total = _count(answer.usage, "completion_tokens", most * len(indices))
        groups: list[Group] = []
        for index, choice in zip(indices, answer.choices, strict=True):
            end = choice.finish_reason or ""
            if INTERFERENCE.search(end):
                how = sanitize(end)
                groups.append(Failure(name, (index,), f"the server ended an answer with {how!r}"))
                continue
            tokens = len(choice.token_ids or ())
            if not 1 <= tokens <= most:
                tokens = total // len(indices)
            reasoning, response = choice.message.parts
            finish: FinishReason = "length" if LIMIT.search(end) else "stop"
            groups.append([Sample(name, index, response, reasoning, finish, prompt, tokens)])
        return groups


def same_model(name: str, other: str) -> bool:
    """Tell whether two names are of one model: but for case, folders, ``.gguf`` and a date at the
    end of one.

    >>> same_model("openai/gpt-4.1-mini-2025-04-14", "gpt-4.1-mini")
    True
    >>> same_model("/models/X.gguf", "x"), same_model("qwen3-80b", "qwen3-8b")
    (True, False)
    """
    short, long = sorted((one.rpartition("/")[2].casefold() for one in (name, other)), key=len)
    return re.fullmatch(re.escape(short) + SUFFIX, long) is not None


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
    content: list[_Place]


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


def _count(usage: Any, name: str, most: int) -> int:
    """Return a number of tokens, 1 to ``most``; 0 where the server says none, or what cannot be."""
    value = usage.get(name) if isinstance(usage, dict) else None
    return int(value) if isinstance(value, int | float) and 1 <= value <= most else 0
