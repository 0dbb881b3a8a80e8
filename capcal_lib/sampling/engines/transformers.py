"""Draw from a model on this machine with transformers: many samples of a question at once.

What prompts have in common is read once, and so is what samples have; finished samples leave the
batch at once and the next question's samples join."""

import hashlib
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import capcal_lib.sampling.engines.shared_prefix as shared_prefix
from capcal_lib.errors import InputError
from capcal_lib.manifests import Model, Sampling
from capcal_lib.runs.samples import FinishReason, Sample
from capcal_lib.sampling.engines import Request, check_shape
from capcal_lib.sampling.engines.chat import (
    answer_limit,
    begin_answers,
    decode,
    encode,
    single_tokens,
)
from capcal_lib.sampling.engines.shared_prefix import Branch, Group, Stream, Tails
from capcal_lib.sampling.engines.token_sampling import draw_tokens
from capcal_lib.sampling.weights import ensure_weights

ATTENTION = "capcal_shared_prefix"  # our name among the attention functions of transformers
SAMPLES_IN_FLIGHT = 256
CACHE_BYTES = 2 << 30  # for the keys and values of the answers in flight
# settings of attention that looks at less than all, or otherwise
UNLIKE = ("sliding_window", "attn_logit_softcapping")


class TransformersEngine:
    """Sample with transformers: in the manifest's ``dtype``, else the checkpoint's own on a GPU and
    float32 on the CPU.

    For decoder-only models whose attention goes through transformers' attention interface, as most
    do, and looks at all that was said; sliding windows, attention sinks, soft caps and linear
    attention are refused.

    Rounding: sums of another batch size differ by about 1e-6, in bfloat16 by 1e-2, and a draw
    inside it changes.

    ``folder`` holds the weights; None gets them through `ensure_weights`.
    """

    family = "transformers"

    def __init__(self, model: Model, folder: Path | None = None) -> None:
        with warnings.catch_warnings():
            warnings.filterwarnings(
                "ignore", message="IProgress not found"
            )  # tqdm wants widgets in a notebook
            from transformers import AutoModelForCausalLM, AutoTokenizer
            from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, sdpa_mask
            from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
            from transformers.utils import logging

        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        folder = folder or ensure_weights(model)
        self.model = model
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.tokenizer: Any = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
        ALL_ATTENTION_FUNCTIONS.register(ATTENTION, shared_prefix.attention)
        ALL_MASK_ATTENTION_FUNCTIONS.register(ATTENTION, sdpa_mask)
        network: Any = AutoModelForCausalLM.from_pretrained(
            folder,
            dtype=model.dtype or ("auto" if self.device.type == "cuda" else "float32"),
            attn_implementation=ATTENTION,
            trust_remote_code=False,
        )
        self.network = network.to(self.device).eval()
        config = self.network.config
        check_shape(model, config.num_hidden_layers, config.hidden_size)
        plain = set(getattr(config, "layer_types", None) or ["full_attention"])
        others = [name for name in UNLIKE if getattr(config, name, None)]
        if plain != {"full_attention"} or others or not self.network._supports_attention_backend:
            raise InputError(
                "the transformers engine cannot do the attention of a "
                f"{config.model_type!r} model; use vllm"
            )
        ends = self.network.generation_config.eos_token_id
        self.ends = {*(ends if isinstance(ends, list) else [ends]), self.tokenizer.eos_token_id} - {
            None
        }
        self._cache: Any = None
        self._prompt: list[int] = []  # whose keys and values the cache has

    def close(self) -> None:
        """Give back the memory of the network, and of what it has read."""
        del self.network, self._cache
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    def sample(
        self, requests: Sequence[Request], sampling: Sampling, seed: int
    ) -> Iterator[list[Sample]]:
        """Draw every wanted sample, yielding those of a question together."""
        for group in self._draw(requests, sampling, seed):
            samples = []
            for tokens, streams in group.done:
                said = *self._said(group, tokens), len(group.prompt), len(tokens)
                samples += [Sample(group.question_id, index, *said) for index, _ in streams]
            yield samples

    def _draw(self, requests: Sequence[Request], sampling: Sampling, seed: int) -> Iterator[Group]:
        """Yield each question, or part of its samples, when all of them have ended."""
        wanted = [request for request in requests if request.sample_indices]
        prompts = [encode(self.tokenizer, self.model, request) for request in wanted]
        limits = [
            answer_limit(prompt, request, sampling)
            for prompt, request in zip(prompts, wanted, strict=True)
        ]
        longest = max(limits, default=1)
        cap = max(1, min(SAMPLES_IN_FLIGHT, CACHE_BYTES // self._token_bytes() // longest))
        waiting = []
        for prompt, limit, request in sorted(
            zip(prompts, limits, wanted, strict=True), key=lambda one: one[0]
        ):
            name = request.question.id
            streams = [_stream(seed, name, index) for index in request.sample_indices]
            for start in range(0, len(streams), cap):
                waiting.append(Group(name, prompt, limit, streams[start : start + cap]))
        tails = Tails(min(cap, sum(len(group.streams) for group in waiting)), longest)
        active: list[Group] = []
        branches: list[Branch] = []
        while waiting or active:
            roots = []
            in_flight = sum(len(branch.streams) for branch in branches)
            while waiting and (not active or in_flight + len(waiting[-1].streams) <= cap):
                group = waiting.pop()
                in_flight += len(group.streams)
                active.append(group)
                roots.append(Branch(group, (), group.streams))
            branches = self._advance(branches, roots, sampling, tails)
            for group in list(active):
                if sum(len(streams) for _, streams in group.done) == len(group.streams):
                    active.remove(group)
                    yield group

    def next_token_logprobs(
        self, requests: Sequence[Request], words: Sequence[str], sampling: Sampling, seed: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return log-probabilities and tokens as `Engine` says."""

        def draw(asked: list[Request]) -> Iterator[tuple[str, tuple[int, ...]]]:
            return (
                (group.question_id, group.done[0][0]) for group in self._draw(asked, sampling, seed)
            )

        begun, tokens = begin_answers(self.tokenizer, self.model, requests, draw)
        single = single_tokens(self.tokenizer, words)
        result = np.full((len(requests), len(words)), np.nan)
        for place, prompt in self._in_order(begun):
            logits = self._read(self.network, prompt, logits_to_keep=1).logits[0, -1]
            logprobs = logits.double().log_softmax(-1)[list(single.values())]
            result[place, list(single)] = logprobs.cpu().numpy()
        return result, tokens

    def hidden_states(self, requests: Sequence[Request]) -> np.ndarray:
        """Return hidden states as `Engine` says; the head over the vocabulary is left out."""
        shape = len(requests), self.network.config.hidden_size
        result = np.empty(shape, dtype=np.float32)
        for place, prompt in self._in_order(dict(enumerate(requests))):
            read = self._read(self.network.get_decoder(), prompt, output_hidden_states=True)
            states = torch.stack([state[0, -1].float() for state in read.hidden_states])
            result[place] = states.mean(0).cpu().numpy()
        return result

    def _in_order(self, requests: dict[int, Request]) -> list[tuple[int, list[int]]]:
        """Return places and prompts, those that begin alike one after the other."""
        prompts = [
            (place, encode(self.tokenizer, self.model, request))
            for place, request in requests.items()
        ]
        return sorted(prompts, key=lambda one: one[1])

    @torch.inference_mode()
    def _read(self, network: Any, prompt: list[int], **options: Any) -> Any:
        """Return what the network puts out for a prompt, reading it from where it parts from the
        one before.
        """
        from transformers import DynamicCache

        known = 0
        for token, other in zip(prompt[:-1], self._prompt, strict=False):
            if token != other:
                break
            known += 1
        if known:
            self._cache.crop(known - len(self._prompt))
        else:
            self._cache = DynamicCache()
        self._prompt = []  # as long as it is not read whole
        ids = torch.tensor([prompt[known:]], device=self.device)
        read = network(ids, past_key_values=self._cache, use_cache=True, **options)
        self._prompt = prompt
        return read

    def _token_bytes(self) -> int:
        """Size of the keys and values of one token in all layers."""
        config = self.network.config
        heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        head_dim = (
            getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        )
        return int(2 * config.num_hidden_layers * heads * head_dim * self.network.dtype.itemsize)

    @torch.inference_mode()
    def _advance(
        self, branches: list[Branch], roots: list[Branch], sampling: Sampling, tails: Tails
    ) -> list[Branch]:
        """Draw the next token of every sample in flight and return the branches that go on."""
        parents = [*branches, *roots]
        logits = [self._step(branches, tails)] if branches else []
        logits += [self._begin(root.group) for root in roots]
        counts = torch.tensor([len(parent.streams) for parent in parents])
        rows = torch.arange(len(parents)).repeat_interleave(counts)
        uniforms = [numbers.random() for parent in parents for _, numbers in parent.streams]
        drawn = draw_tokens(
            torch.cat(logits),
            rows.to(self.device),
            torch.tensor(uniforms, dtype=torch.float64, device=self.device),
            sampling,
        )
        tokens = iter(drawn.tolist())
        children = []
        for parent in parents:
            by_token: dict[int, list[Stream]] = {}
            for stream in parent.streams:
                by_token.setdefault(next(tokens), []).append(stream)
            for token, streams in by_token.items():
                child = Branch(
                    group=parent.group,
                    tokens=(*parent.tokens, token),
                    streams=streams,
                    row=parent.row,
                )
                if token in self.ends or len(child.tokens) == child.group.limit:
                    child.group.done.append((child.tokens, child.streams))
                else:
                    children.append(child)
        tails.place(children)
        return children

    def _begin(self, group: Group) -> Tensor:
        """Read a prompt, keep its keys and values, and return the logits of the first token,
        (1, vocabulary).
        """
        logits: Tensor = self._read(self.network, group.prompt, logits_to_keep=1).logits[0]
        layers = self._cache.layers
        group.prefix = [(layer.keys[0].clone(), layer.values[0].clone()) for layer in layers]
        return logits

    def _step(self, branches: list[Branch], tails: Tails) -> Tensor:
        """Return the next-token logits of every branch, (n_branches, vocabulary)."""
        ids = torch.tensor([[branch.tokens[-1]] for branch in branches], device=self.device)
        positions = [[len(branch.group.prompt) + len(branch.tokens) - 1] for branch in branches]
        logits: Tensor = self.network(
            ids,
            position_ids=torch.tensor(positions, device=self.device),
            use_cache=False,
            attend=shared_prefix.SharedPrefixAttention(branches, tails, self.device),
        ).logits
        return logits[:, 0]

    def _said(self, group: Group, tokens: tuple[int, ...]) -> tuple[str, str | None, FinishReason]:
        """Return an answer's response, its reasoning, and how it finished."""
        ended = tokens[-1] in self.ends
        reasoning, response = decode(
            self.tokenizer, self.model, group.prompt, tokens[:-1] if ended else tokens
        )
        return response, reasoning, "stop" if ended else "length"


def _stream(seed: int, question_id: str, sample_index: int) -> Stream:
    """Return a sample's index with its own random numbers, the same whatever else is drawn."""
    name = hashlib.sha256(repr((seed, question_id, sample_index)).encode()).digest()
    return sample_index, np.random.Generator(
        np.random.Philox(key=int.from_bytes(name[:16], "little"))
    )
