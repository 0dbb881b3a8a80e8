"""Draw from any server that speaks OpenAI's chat completions, such as ``vllm serve`` on one machine
or many.
"""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from pydantic import BaseModel

from capcal_lib.errors import InputError
from capcal_lib.manifests import Model, Sampling
from capcal_lib.questions.reasoning import ends_first, split_reasoning
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


class OpenAIEngine:
    """Sample through an OpenAI-compatible server, one request per sample, with at most
    ``in_flight`` requests at a time (default 1,024).

    The server must list the model under its manifest's ``served_as``, or else under its name or its
    hub repository's. Its address, up to ``/v1``, is ``base_url`` or ``OPENAI_BASE_URL``; its key is
    ``OPENAI_API_KEY``. Our messages never show the key or a password in the address, unless the
    server's own words repeat it. `Client` decides which requests are sent again; samples that
    cannot be drawn become a `Failure`. Settings that the manifest lists under ``omit`` are not
    sent.

    A reply may end a reasoning that it has not begun: then the prompt begins it, and a reply that
    the limit cut before the end is reasoning and no answer. If a server counts no tokens, they are
    0: unknown. The server's own limit on prompt and answer together applies, not
    ``context_tokens``."""

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
        self.begun: bool | None = None  # whether the prompt begins a reasoning; None: not known yet

    def sample(
        self, requests: Sequence[Request], sampling: Sampling, seed: int
    ) -> Iterator[list[Sample] | Failure]:
        """Draw every wanted sample, yielding each when it is answered, in no particular order.

        Cut replies wait for the first one that tells whether they are reasoning."""

        def draw(job: tuple[Request, int]) -> list[Sample] | Failure:
            request, index = job
            name = request.question.id
            try:
                answer = self._ask(request, sampling, seed, index)
            except Unanswered as error:
                return Failure(name, (index,), str(error))
            [choice] = answer.choices
            end = choice.finish_reason or ""
            if INTERFERENCE.search(end):
                return Failure(name, (index,), f"the server ended an answer with {sanitize(end)!r}")
            reasoning, response = choice.message.parts
            usage = answer.usage or _Usage()
            counts = usage.prompt_tokens or 0, usage.completion_tokens or 0
            return [Sample(name, index, response, reasoning, choice.finish, *counts)]

        jobs = ((request, index) for request in requests for index in request.sample_indices)
        results: Iterator[list[Sample] | Failure] = self.client.stream(jobs, draw, pause=[])
        waiting: list[Sample] = []
        for result in results:
            if isinstance(result, Failure):
                yield result
                continue
            waiting += result
            if waiting and self.begun is None:
                yield []
            else:
                yield [self._parted(sample) for sample in waiting]
                waiting = []
        if waiting:
            yield waiting

    def _parted(self, sample: Sample) -> Sample:
        """Return a sample whose answer is none if the limit cut a reasoning that the prompt
        begins.
        """
        if self.begun and sample.finish_reason == "length" and sample.reasoning is None:
            return replace(sample, reasoning=sample.response or None, response="")
        return sample

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

        def ask(row: int) -> tuple[int, _Choice | str]:
            """Return a row and its reply, or why there is none."""
            try:
                [choice] = self._ask(requests[row], sampling, seed, **wanted).choices
            except Unanswered as error:
                return row, str(error)
            if not any(place.top_logprobs for place in choice.places):
                return row, "the server gives no log-probabilities"
            return row, choice

        failed = []
        for row, choice in [*self.client.stream(range(len(requests)), ask)]:
            if isinstance(choice, str):
                failed.append(choice)
                continue
            pieces = [place.token for place in choice.places]
            start = answer_start(pieces)
            tokens[row] = len(pieces)
            response = choice.message.parts[1].strip()
            answer = rf"\s*{re.escape(response)}\s*(<|$)"  # a mark may end it
            if (self.begun and choice.is_cut) or start is None or not response:
                continue
            if re.match(answer, "".join(pieces[start:])):
                tokens[row] = start + 1
                likely = choice.places[start].top_logprobs
                logprobs = {top.token: min(top.logprob, 0.0) for top in likely}
                result[row] = [logprobs.get(word, np.nan) for word in words]
        warn_unanswered(failed, len(requests))
        return result, tokens

    def hidden_states(self, _: Sequence[Request], layers: str = "mean") -> np.ndarray:  # noqa: ARG002
        """Raise `InputError`: the protocol has no hidden states."""
        raise InputError("a server gives no hidden states; use --engine transformers")

    def _listed(self) -> tuple[str, str]:
        """Return the name under which the server lists the model, and the software that it says it
        is.
        """
        model = self.model
        hubs = [way.hub for way in model.weights if way.hub]
        names = [model.served_as] if model.served_as else [model.name, *hubs]
        client = self.client
        try:
            listing = client.ask("/models", _Listing.model_validate_json, timeout=LISTING_SECONDS)
        except Unanswered as error:
            raise InputError(
                f"no server answers at {client.url}: {error}; does OPENAI_BASE_URL end in /v1?"
            ) from None
        listed = {card.id: card.owned_by or "" for card in listing.data}
        for name in names:
            if name in listed:
                return name, listed[name]
        raise InputError(
            f"the server at {client.url} lists {sanitize(', '.join(listed)) or 'no model'}, not "
            f"{' or '.join(names)}; serve the model under that name (with vLLM: "
            f"--served-model-name {names[0]}), or set served_as in its manifest"
        )

    def _ask(
        self,
        request: Request,
        sampling: Sampling,
        seed: int,
        index: int = 0,
        **options: Any,
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
        answer = self.client.post("/chat/completions", sent, _Answer.model_validate_json)
        same = rf"(.*/)?{re.escape(self.name.rpartition('/')[2])}{SUFFIX}"
        if not re.fullmatch(same, answer.model or self.name, re.IGNORECASE):
            raise Unanswered(
                f"the server answered as another model, {sanitize(answer.model)!r}, not as "
                f"{self.name!r}; where it is the same, say so in the manifest with served_as"
            )
        [choice] = answer.choices
        if ends_first(choice.message.content or ""):
            self.begun = True
        elif self.begun is None and not choice.is_cut:
            self.begun = False
        return answer


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
        """Return the reasoning, from its own field or the text, and the answer."""
        apart = self.reasoning_content or self.reasoning
        reasoning, response = split_reasoning(self.content or "")
        return "\n".join(filter(None, (apart, reasoning))) or None, response


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
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None

    @property
    def finish(self) -> FinishReason:
        return "length" if LIMIT.search(self.finish_reason or "") else "stop"

    @property
    def is_cut(self) -> bool:
        """Whether the limit cut a reply in which nothing tells reasoning from answer."""
        return self.finish == "length" and self.message.parts[0] is None

    @property
    def places(self) -> list[_Place]:
        return (self.logprobs and self.logprobs.content) or []


class _Usage(BaseModel):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Answer(BaseModel):
    choices: tuple[_Choice]
    model: str | None = None  # some do not say
    usage: _Usage | None = None  # likewise
