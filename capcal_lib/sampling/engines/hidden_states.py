"""Hidden states out of vLLM: what its workers, which hold the network, learn to keep."""

from inspect import signature
from typing import TYPE_CHECKING, Any

from capcal_lib.sampling.engines.base import Layers

if TYPE_CHECKING:
    from torch import Tensor


class PositionWatcher:
    """Keep the hidden states of one position, in float32. vLLM mixes this into its workers, and calls it by name.

    It looks at what enters each layer and at what the final norm puts out, so the network has to run as it is
    written, not compiled, with one prompt at a time.
    """

    get_model: Any  # the worker's, and so is
    model_config: Any

    def watch_position(self, position: int) -> None:
        """Keep the states at this position from now on."""
        network = self.get_model()
        decoder = getattr(network, "model", None)
        layers, norm = getattr(decoder, "layers", ()), getattr(decoder, "norm", None)
        self.watched_states: list[Tensor] = []
        here: Tensor

        def begin(_: Any, __: Any, named: dict[str, Any]) -> None:
            nonlocal here
            here = (named["positions"] == position).nonzero()[:1, 0]  # empty while an earlier part is read

        def enter(layer: Any, given: tuple[Any, ...], named: dict[str, Any]) -> None:
            inputs = signature(layer.forward).bind(*given, **named).arguments
            if "hidden_states" in inputs:
                # The stream of states comes whole, or in two parts whose sum the layer takes when it begins.
                parts = [inputs["hidden_states"], inputs.get("residual")]
                self.watched_states.append(sum(part.flatten(0, -2)[here] for part in parts if part is not None).float())

        def leave(_: Any, __: Any, normed: Any) -> None:
            normed = normed[0] if isinstance(normed, tuple) else normed
            self.watched_states.append(normed.flatten(0, -2)[here].float())

        self.watching = [network.register_forward_pre_hook(begin, with_kwargs=True)]
        self.watching += [layer.register_forward_pre_hook(enter, with_kwargs=True) for layer in layers]
        if norm is not None:
            self.watching.append(norm.register_forward_hook(leave))

    def end_watch(self, layers: Layers) -> bytes:
        """Return the states, pooled as asked, as bytes: none where they are not one a layer and one more."""
        import torch

        for hook in self.watching:
            hook.remove()
        states = torch.cat(self.watched_states) if self.watched_states else torch.empty(0)
        if len(states) != self.model_config.get_total_num_hidden_layers() + 1:
            return b""
        pooled = states if layers == "all" else states.mean(0) if layers == "mean" else states.amax(0)
        return bytes(pooled.cpu().numpy().tobytes())
