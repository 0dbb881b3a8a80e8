"""Time the linear probe against minibatch SGD at the paper's size, on one synthetic set of features.

Run: python benchmarks/probe.py [--epochs 3]

SGD is the paper's recipe (momentum 0.9, batch 32, 100 epochs), once over tensors that lie in memory and once over a
DataLoader that hands out one question at a time. A few epochs are run; the time shown is the fastest of them times
100, and the scores are those after the few. The learning rate is the best of four of the paper's grid; the search is
not in the time. The probe's own time is the fastest of three fits.
"""

import argparse
import time
from collections.abc import Callable, Iterable

import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset

from capcal_lib.metrics import capability_brier
from capcal_lib.probes import LinearProbe

QUESTIONS, HELD_OUT, FEATURES, SAMPLES = 7_473, 1_000, 4_096, 100  # GSM8K, and the hidden size of the 7B and 8B models
BATCH, EPOCHS, DECAY = 32, 100, 1e-2
RATES = (5e-3, 2e-3, 1e-3, 5e-4)

Batches = Callable[[], Iterable[tuple[torch.Tensor, torch.Tensor]]]


def main() -> None:
    """Print the times, their ratios and what each probe scores."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=3, help="epochs to measure (default 3)")
    epochs = parser.parse_args().epochs

    features, correct = synthetic(np.random.default_rng(0))
    total = np.full(len(correct), SAMPLES)
    train, test = slice(QUESTIONS), slice(QUESTIONS, None)
    inputs, targets = torch.from_numpy(features[train]), torch.from_numpy(correct[train] / SAMPLES).float()
    loader = DataLoader(TensorDataset(inputs, targets), batch_size=BATCH, shuffle=True)

    def slices() -> Iterable[tuple[torch.Tensor, torch.Tensor]]:
        for rows in torch.randperm(len(inputs)).split(BATCH):
            yield inputs[rows], targets[rows]

    def report(name: str, seconds: float, weights: np.ndarray, bias: float, ours: float) -> None:
        logits = features.astype(np.float64) @ weights + bias
        mu = correct[train] / SAMPLES
        loss = np.mean(np.logaddexp(0, logits[train]) - mu * logits[train]) + DECAY / 2 * weights @ weights
        brier = capability_brier(1 / (1 + np.exp(-logits[test])), correct[test], total[test])
        print(f"{name:<66}{seconds:9.2f} s{seconds / ours:8.1f} x   objective {loss:.5f}   held-out Brier {brier:.5f}")

    print(f"{QUESTIONS} questions, {FEATURES} features, {torch.get_num_threads()} threads")
    LinearProbe().fit(features[:50, :50], correct[:50], total[:50])  # imports are not timed
    fits = []
    for _ in range(3):
        started = time.perf_counter()
        probe = LinearProbe(weight_decay=DECAY).fit(features[train], correct[train], total[train])
        fits.append(time.perf_counter() - started)
    report("LinearProbe, at its optimum", min(fits), probe.weights, probe.bias, min(fits))

    rate = min(RATES, key=lambda rate: sgd(slices, rate, epochs)[-1])
    for name, batches in (("tensors in memory", slices), ("DataLoader", lambda: loader)):
        epoch, weights, bias, _ = sgd(batches, rate, epochs)
        label = f"SGD, {name}, rate {rate:g}, after {epochs} epochs; time x {EPOCHS}"
        report(label, epoch * EPOCHS, weights, bias, min(fits))


def synthetic(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Make correlated features, one of them huge as in real models, and counts that depend on 40 directions."""
    rows, latent = QUESTIONS + HELD_OUT, 1_024
    hidden = rng.standard_normal((rows, latent), dtype=np.float32) * np.arange(1, latent + 1, dtype=np.float32) ** -0.6
    features = 0.3 * hidden @ rng.standard_normal((latent, FEATURES), dtype=np.float32)
    features += 0.05 * rng.standard_normal(features.shape, dtype=np.float32)
    features[:, 7] += 50
    logits = hidden[:, :40] @ rng.standard_normal(40) * 1.5 + 0.3
    return features, rng.binomial(SAMPLES, 1 / (1 + np.exp(-logits)))


def sgd(batches: Batches, rate: float, epochs: int) -> tuple[float, np.ndarray, float, float]:
    """Train a probe; return the fastest epoch's seconds, weights, bias and the last epoch's mean loss."""
    torch.manual_seed(0)
    layer = torch.nn.Linear(FEATURES, 1)
    torch.nn.init.xavier_uniform_(layer.weight)
    torch.nn.init.zeros_(layer.bias)
    optimizer = torch.optim.SGD(layer.parameters(), lr=rate, momentum=0.9, weight_decay=DECAY)
    seconds = []
    for _ in range(epochs):
        started, losses = time.perf_counter(), []
        for inputs, targets in batches():
            loss = torch.nn.functional.binary_cross_entropy_with_logits(layer(inputs)[:, 0], targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        seconds.append(time.perf_counter() - started)
    return min(seconds), layer.weight.detach()[0].double().numpy(), layer.bias.item(), float(np.mean(losses))


if __name__ == "__main__":
    main()
