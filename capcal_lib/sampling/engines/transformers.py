"""Draw samples from a model on this machine with transformers, many samples of a question at once.

What prompts have in common is read once, and so is what samples have in common. A finished sample
leaves the batch at once, and samples of the next question take its place."""

import math
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import takewhile
from logging import getLogger
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import capcal_lib.sampling.engines.shared_prefix as shared_prefix
from capcal_lib.errors import InputError
from capcal_lib.manifests import Model, Sampling
from capcal_lib.sampling.engines import Request, hashed, pool_layers
from capcal_lib.sampling.engines.chat import LocalEngine, Prompt, Reply, encode_all, turn_ends
from capcal_lib.sampling.engines.shared_prefix import Branch, Group, Stream
from capcal_lib.sampling.engines.token_sampling import draw_tokens
from capcal_lib.sampling.weights import ensure_weights
from capcal_lib.text import counted, sanitize

ATTENTION = "capcal_shared_prefix"  # our name among the attention functions of transformers
SAMPLES_IN_FLIGHT = 256
CACHE_BYTES = 2 << 30  # for the keys and values of the answers in flight
# How far logits may be from those of another way to read the same tokens, in standard deviations.
# Bfloat16 rounds by .04, or .2 where experts are chosen; what ignores the prompt is .8 apart.
ROUNDING = {torch.float32: 1e-3}
COARSE_ROUNDING = 0.4
# settings of attention that looks at less than all, or otherwise
UNLIKE = ("sliding_window", "attn_logit_softcapping")


class TransformersEngine(LocalEngine):
    """Sample with transformers, in the manifest's ``dtype``, or else in the checkpoint's own type
    on a GPU and in float32 on the CPU.

    Every decoder-only model gives its hidden states and log-probabilities. Samples are drawn from
    those whose attention goes through transformers' attention interface, as most do, and sees the
    whole text. Sliding windows, attention sinks, soft caps and linear attention are refused, and so
    is every other network that goes on from a prompt's keys and values to something else than it
    reads.

    Rounding: sums in another batch size differ by about 1e-6, or 1e-2 in bfloat16. A draw closer
    than that changes.

    ``folder`` holds the weights; None gets them through `ensure_weights`.
    """

    family = "transformers"

    def __init__(self, model: Model, folder: Path | None = None) -> None:
        folder = folder or ensure_weights(model)
        self.model = model
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        dtype = model.dtype or ("auto" if self.device.type == "cuda" else "float32")
        self.tokenizer, network = open_checkpoint(model.name, folder, dtype)
        self.network = network.to(self.device).eval()
        config = self.network.config
        text = config.get_text_config()
        self.positions = getattr(text, "max_position_embeddings", None) or math.inf
        ends = np.ravel(self.network.generation_config.eos_token_id)  # one, several or None
        self.ends = {*ends.tolist(), self.tokenizer.eos_token_id} - {None}
        self.ends |= turn_ends(self.tokenizer, model)
        self._cache: Any = None
        self._cached: list[int] = []  # whose keys and values the cache has
        unlike = {*(getattr(config, "layer_types", None) or ())} - {"full_attention"}
        unlike |= {name for name in UNLIKE if getattr(config, name, None)}
        self.shares_prefixes = not unlike and self.network._supports_attention_backend
        if self.shares_prefixes:
            self.network.set_attn_implementation(ATTENTION)
            self.shares_prefixes = self._steps_as_it_reads()
        if not self.shares_prefixes:
            self.network.set_attn_implementation("eager")  # the others leave out soft caps

    def close(self) -> None:
        """Give back the memory of the network and of its cache."""
        del self.network, self._cache
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    def _draw(self, prompts: list[Prompt], sampling: Sampling, seed: int) -> Iterator[Reply | None]:
        if not prompts:
            return
        if not self.shares_prefixes:
            raise InputError(
                "the transformers engine cannot sample with the attention of a "
                f"{self.network.config.model_type!r} model; use --engine vllm"
            )
        longest = max(prompt.limit for prompt in prompts)
        cap = max(1, min(SAMPLES_IN_FLIGHT, CACHE_BYTES // self.token_bytes // longest))
        waiting = []
        for prompt in sorted(prompts, key=lambda one: one.tokens):
            name = prompt.question_id
            streams = [
                (index, np.random.Generator(np.random.Philox(key=hashed(seed, name, index))))
                for index in prompt.sample_indices  # the same whatever else is drawn
            ]
            for start in range(0, len(streams), cap):
                waiting.append(Branch(Group(prompt), (), streams[start : start + cap], 0))
        tails: dict[int, tuple[Tensor, Tensor]] = {}
        branches: list[Branch] = []
        while waiting or branches:
            logits = [self._step(branches, tails)] if branches else []
            free = cap - sum(len(branch.streams) for branch in branches)
            while waiting and len(waiting[-1].streams) <= free:
                branches.append(waiting.pop())
                free -= len(branches[-1].streams)
                logits.append(self._begin(branches[-1].group))
            children = self._children(branches, torch.cat(logits), sampling)
            branches = []
            for child in children:
                prompt = child.group.prompt
                ended = child.tokens[-1] in self.ends
                if ended or len(child.tokens) == prompt.limit:
                    indices = [index for index, _ in child.streams]
                    yield Reply(prompt, indices, child.tokens, ended)
                else:
                    branches.append(child)
            yield None

    def _logprobs(self, prompts: list[list[int]], tokens: list[int]) -> np.ndarray:
        result = np.empty((len(prompts), len(tokens)))
        for row in _in_order(prompts):
            logits = self._read(self.network, prompts[row], logits_to_keep=1).logits[0, -1]
            result[row] = logits.double().log_softmax(-1)[tokens].cpu().numpy()
        return result

    def hidden_states(self, requests: Sequence[Request], layers: str = "mean") -> np.ndarray:
        """Return hidden states as `Engine` says, without computing the head over the vocabulary."""
        result = np.empty((len(requests), self.network.config.hidden_size), dtype=np.float32)
        prompts = encode_all(self.tokenizer, self.model, requests)
        for row in _in_order(prompts):
            read = self._read(self.network.get_decoder(), prompts[row], output_hidden_states=True)
            states = torch.stack([state[0, -1].float() for state in read.hidden_states])
            result[row] = pool_layers(states, layers).cpu().numpy()
        return result

    @torch.inference_mode()
    def _read(self, network: Any, prompt: list[int], **options: Any) -> Any:
        """Return the network's output for a prompt. Tokens that it shares with the prompt before
        are not read again.
        """
        from transformers import DynamicCache

        if not self.shares_prefixes:  # its cache may be of another kind
            return network(torch.tensor([prompt], device=self.device), use_cache=False, **options)
        pairs = zip(prompt[:-1], self._cached, strict=False)
        shared = len([*takewhile(lambda pair: pair[0] == pair[1], pairs)])
        if shared:
            self._cache.crop(shared - len(self._cached))  # a negative number: that many less
        else:
            self._cache = DynamicCache()
        self._cached = []  # as long as it is not read whole
        ids = torch.tensor([prompt[shared:]], device=self.device)
        output = network(ids, past_key_values=self._cache, use_cache=True, **options)
        self._cached = prompt
        return output

    def _children(self, parents: list[Branch], logits: Tensor, sampling: Sampling) -> list[Branch]:
        """Draw the next token of every sample in flight, and return the resulting branches."""
        rows = [row for row, parent in enumerate(parents) for _ in parent.streams]
        uniforms = [numbers.random() for parent in parents for _, numbers in parent.streams]
        drawn = draw_tokens(
            logits,
            torch.tensor(rows, device=self.device),
            torch.tensor(uniforms, dtype=torch.float64, device=self.device),
            sampling,
        )
        tokens = iter(drawn.tolist())
        children = []
        for row, parent in enumerate(parents):
            streams_of_token = defaultdict[int, list[Stream]](list)
            for stream in parent.streams:
                streams_of_token[next(tokens)].append(stream)
            # A branch that has just begun was not in the batch before, so no row there is its own:
            # any will do, as all of it is masked.
            row_before = row if parent.tokens else 0
            for token, streams in streams_of_token.items():
                children.append(Branch(parent.group, (*parent.tokens, token), streams, row_before))
        return children

    def _begin(self, group: Group) -> Tensor:
        """Read a prompt, keep its keys and values, and return the logits of the first token,
        (1, vocabulary).
        """
        logits: Tensor = self._read(self.network, group.prompt.tokens, logits_to_keep=1).logits[0]
        group.prefix = [
            (layer.keys[0].clone(), layer.values[0].clone()) for layer in self._cache.layers
        ]
        return logits

    def _steps_as_it_reads(self) -> bool:
        """Return whether the network continues five tokens alike, read whole, and as four and one
        step.
        """
        vocabulary = self.network.get_input_embeddings().num_embeddings
        tokens = [vocabulary * place // 6 for place in range(1, 6)]
        group = Group(Prompt("", tokens[:4], 1, (), completes=True, opened=None))
        try:
            whole = self._read(self.network, tokens, logits_to_keep=1).logits[0]
            self._begin(group)
            step = self._step([Branch(group, tuple(tokens[4:]), [], 0)], {})
        except Exception:  # its cache or its layers are of another kind
            return False
        self.token_bytes = sum(one[:, :1].nbytes for pair in group.prefix for one in pair)
        apart = float((whole - step).float().std() / whole.float().std())
        return apart < ROUNDING.get(self.network.dtype, COARSE_ROUNDING)

    @torch.inference_mode()
    def _step(self, branches: list[Branch], tails: dict[int, tuple[Tensor, Tensor]]) -> Tensor:
        """Return the next-token logits of every branch, (n_branches, vocabulary)."""
        ids = torch.tensor([[branch.tokens[-1]] for branch in branches], device=self.device)
        positions = [
            [len(branch.group.prompt.tokens) + len(branch.tokens) - 1] for branch in branches
        ]
        logits: Tensor = self.network(
            ids,
            position_ids=torch.tensor(positions, device=self.device),
            use_cache=False,
            attend=shared_prefix.SharedPrefixAttention(branches, tails, self.device),
        ).logits
        return logits[:, 0]


def open_checkpoint(name: str, folder: Path, dtype: str) -> tuple[Any, Any]:
    """Return a model's tokenizer and network; `InputError` if transformers cannot open them, or if
    the network lacks tensors.
    """
    with warnings.catch_warnings():
        # tqdm wants widgets in a notebook
        warnings.filterwarnings("ignore", message="IProgress not found")
        from transformers import AutoModelForCausalLM, AutoTokenizer
        from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, sdpa_mask
        from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
        from transformers.utils import logging

    ALL_ATTENTION_FUNCTIONS.register(ATTENTION, shared_prefix.attention)
    ALL_MASK_ATTENTION_FUNCTIONS.register(ATTENTION, sdpa_mask)
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]  # no table of missing tensors
    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
        opened: Any = AutoModelForCausalLM.from_pretrained(
            folder, dtype=dtype, trust_remote_code=False, output_loading_info=True
        )
    except Exception as error:  # of transformers, or of a package that reads quantised weights
        raise InputError(f"transformers could not open {name!r}: {sanitize(error)}") from error
    finally:
        logging.set_verbosity(verbosity)
    network, report = opened
    if missing := sorted(report["missing_keys"]):
        raise InputError(
            f"the weights of {name!r} lack {counted(len(missing), 'tensor')}, such as "
            f"{missing[0]}; save the checkpoint again with every tensor under its own name"
        )
    if unknown := sorted(report["unexpected_keys"]):
        getLogger(__name__).warning(
            f"the network of {name!r} does not use {counted(len(unknown), 'tensor')} of its "
            f"weights, such as {unknown[0]}"
        )
    return tokenizer, network


def _in_order(prompts: list[list[int]]) -> list[int]:
    """Return the places of prompts, sorted so that equal beginnings are neighbours."""
    return sorted(range(len(prompts)), key=prompts.__getitem__)
