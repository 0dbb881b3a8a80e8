"""Keeping one position's hidden states, on networks built as vLLM builds its own."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from capcal_lib.errors import InputError
from capcal_lib.sampling.engines import pool_layers
from capcal_lib.sampling.engines.vllm import PositionWatcher, last_row

torch = pytest.importorskip("torch")

LAYERS, WIDTH = 3, 4
Tensor = Any


class TwoPartLayer(torch.nn.Module):  # type: ignore[misc, name-defined]
    """As most of vLLM's: the residual apart, added in place when the layer begins."""

    def forward(
        self, positions: Tensor, hidden_states: Tensor, residual: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        residual = hidden_states.clone() if residual is None else residual.add_(hidden_states)
        return torch.sin(residual) + positions[:, None], residual


class WholeLayer(torch.nn.Module):  # type: ignore[misc, name-defined]
    """As in networks that vLLM takes from transformers: with a batch of one in front, and other
    names.
    """

    def forward(self, hidden_states: Tensor, position_ids: Tensor | None = None) -> Tensor:
        assert position_ids is not None
        return hidden_states + torch.sin(hidden_states) + position_ids[..., None]


class Norm(torch.nn.Module):  # type: ignore[misc, name-defined]
    def forward(self, states: Tensor, residual: Tensor | None = None) -> Any:
        return states / 2 if residual is None else ((states + residual) / 2, residual)


class Decoder(torch.nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self, layer: type) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(layer() for _ in range(LAYERS))
        self.norm = Norm()

    def forward(self, states: Tensor, positions: Tensor) -> Tensor:
        if isinstance(self.layers[0], WholeLayer):
            states = states[None]
            for layer in self.layers:
                states = layer(states, position_ids=positions[None])
            return self.norm(states)[0]
        residual = None
        for layer in self.layers:
            states, residual = layer(positions, states, residual)
        return self.norm(states, residual)[0]


class Network(torch.nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self, layer: type = TwoPartLayer, dtype: Any = torch.float32) -> None:
        super().__init__()
        self.model = Decoder(layer)
        self.dtype = dtype

    def forward(self, input_ids: Tensor, positions: Tensor) -> Tensor:
        return self.model(embed(input_ids).to(self.dtype), positions)


class Worker(PositionWatcher):
    def __init__(self, network: Any, layers: int = LAYERS) -> None:
        self.get_model = lambda: network
        self.model_config = SimpleNamespace(get_total_num_hidden_layers=lambda: layers)

    def read(self, *passes: tuple[list[int], list[int]], prompt: list[int]) -> np.ndarray:
        self.watch_prompt(prompt)
        for ids, positions in passes:
            self.get_model()(input_ids=torch.tensor(ids), positions=torch.tensor(positions))
        states, self.seen = self.end_watch()
        return np.frombuffer(states, dtype=np.float32).reshape(-1, WIDTH)


def embed(ids: Tensor) -> Tensor:
    return torch.cos(ids[:, None] * torch.arange(1.0, WIDTH + 1))


def expected(token: int, position: int) -> np.ndarray:
    """The states at a position: in these networks they depend on no other, and both kinds come to
    the same.
    """
    states = [embed(torch.tensor([token]))[0]]
    for _ in range(LAYERS):
        states.append(states[-1] + torch.sin(states[-1]) + position)
    states[-1] = states[-1] / 2
    return torch.stack(states).numpy()


@pytest.mark.parametrize("layer", [TwoPartLayer, WholeLayer])
def test_the_states_are_what_enters_each_layer_and_leaves_the_norm(layer: type) -> None:
    worker, ids = Worker(Network(layer)), [5, 6, 7]
    states = worker.read((ids, [0, 1, 2]), prompt=ids)
    np.testing.assert_allclose(states, expected(7, 2), rtol=1e-6)


def test_only_the_pass_over_the_position_counts_and_padding_does_not() -> None:
    """A prompt read in parts, its beginning cached, and rows behind its end that repeat an older
    position.
    """
    worker, prompt = Worker(Network()), [*range(40, 72), 5, 6, 7, 8]
    parts = ([5, 6], [32, 33]), ([7, 8, 9, 9], [34, 35, 35, 35])
    states = worker.read(*parts, prompt=prompt)
    np.testing.assert_allclose(states, expected(8, 35), rtol=1e-6)


@pytest.mark.parametrize("layer", [TwoPartLayer, WholeLayer])
def test_passes_that_are_not_over_the_prompt_do_not_count(layer: type) -> None:
    """As a rank runs them to keep pace with another: over what its buffers hold, of the prompt
    before as far as another one's prompt is long, and of this one again.
    """
    prompt = [5, 6, 7]
    own = prompt, [0, 1, 2]
    before = [1, 2, 3, 4, 9, 9, 9, 9], [0, 1, 2, 3, 0, 0, 0, 0]
    same_end = [4, 4, 6, 7, 9, 9], [0, 1, 2, 3, 2, 2]
    after = [*prompt, 4, 9, 9, 9, 9], [0, 1, 2, 3, 0, 0, 0, 0]
    one_token = [1], [0]
    states = expected(7, 2)
    for passes in (
        [own],
        [before, own],
        [same_end, own],
        [own, after],
        [one_token, before, own, after, one_token, own],
    ):
        np.testing.assert_allclose(
            Worker(Network(layer)).read(*passes, prompt=prompt), states, rtol=1e-6
        )
    worker = Worker(Network(layer))
    assert worker.read(before, same_end, prompt=prompt).size == 0
    assert worker.seen == (
        "0 states of the last token in 2 runs of the network, where 4 are expected"
    )


def test_a_network_that_is_given_no_tokens_is_read_by_positions() -> None:
    positions = torch.tensor([0, 1, 2, 0])
    assert last_row([5, 6, 7], positions, None) == 2
    assert last_row([5, 6, 7, 8], positions, None) is None
    assert last_row([5, 6, 7], positions, torch.tensor([5, 6, 7, 0])) == 2
    assert last_row([5, 6, 7], positions, torch.tensor([5, 5, 7, 0])) is None
    assert last_row([7], positions, torch.tensor([7, 6, 7, 0])) == 0


def test_states_of_bfloat16_are_pooled_in_float32() -> None:
    worker, asked = Worker(Network(dtype=torch.bfloat16)), ([5, 6, 7], [0, 1, 2])
    every = torch.tensor(worker.read(asked, prompt=[5, 6, 7]))
    assert (every.bfloat16().float() == every).all()
    mean = pool_layers(every, "mean")
    assert (mean.bfloat16().float() != mean).any()


def test_layers_are_pooled_by_the_mean_the_largest_or_taken_alone() -> None:
    states = torch.tensor([[1.0, -4.0], [2.0, -1.0], [6.0, -1.0]])
    assert pool_layers(states, "mean").tolist() == [3, -2]
    assert pool_layers(states, "max").tolist() == [6, -1]
    assert pool_layers(states, "0").tolist() == [1, -4]
    assert pool_layers(states, "2").tolist() == [6, -1]
    with pytest.raises(InputError, match="the model's layers are 0 to 2; got 3"):
        pool_layers(states, "3")


class OtherNames(torch.nn.Module):  # type: ignore[misc, name-defined]
    def forward(self, _: Tensor, x: Tensor, residual: Tensor | None) -> tuple[Tensor, Tensor]:
        return x, x if residual is None else residual


def test_nothing_is_given_where_the_layers_cannot_be_told() -> None:
    compiled = Network()
    compiled.forward = lambda **_: None  # which passes its modules by
    renamed = Network()
    renamed.transformer = renamed.model
    del renamed.model
    renamed.forward = lambda input_ids, positions: renamed.transformer(embed(input_ids), positions)
    for network, layers, states in (
        (compiled, LAYERS, 0),
        (renamed, LAYERS, 0),
        (Network(OtherNames), LAYERS, 1),  # behind the norm alone
        (Network(), LAYERS + 1, LAYERS + 1),
    ):
        worker = Worker(network, layers)
        assert worker.read(([5, 6], [0, 1]), prompt=[5, 6]).size == 0
        assert worker.seen.startswith(f"{states} states of the last token in 1 run of ")
    assert Worker(Network()).read(([5, 6], [0, 1]), prompt=[5, 6, 7]).size == 0  # never read whole


def test_a_compiled_network_is_read_as_it_is_written_and_compiled_again() -> None:
    """vLLM compiles a part unless ``do_not_compile``; a part that never is stays so."""
    network = Network()
    network.model.do_not_compile = False
    network.model.norm.do_not_compile = True
    worker = Worker(network)
    worker.watch_prompt([5, 6])
    assert (network.model.do_not_compile, network.model.norm.do_not_compile) == (True, True)
    worker.end_watch()
    assert (network.model.do_not_compile, network.model.norm.do_not_compile) == (False, True)


def test_the_network_is_left_as_it_was() -> None:
    network = Network()
    worker = Worker(network)
    worker.read(([5, 6], [0, 1]), prompt=[5, 6])
    network(input_ids=torch.tensor([5]), positions=torch.tensor([1]))
    assert len(worker.watched_states) == LAYERS + 1
    assert not any(
        module._forward_pre_hooks or module._forward_hooks for module in network.modules()
    )
