"""Time the linear probe against minibatch SGD at the paper's size, on one synthetic set of
features.

Run: OMP_NUM_THREADS=1 python benchmarks/probe.py [--rounds 5]

SGD is the paper's recipe (momentum 0.9, batch 32, 100 epochs, each scored on validation questions,
the best kept): once as its authors run it, over a DataLoader that fetches one question at a time,
and once as lean as torch can, over slices of tensors that lie in memory. Each round fits the probe
and runs one epoch of each, one after the other; shown are medians of processor time and, in
brackets, of the clock, with their ratios, an epoch's times 100, and the scores after the epochs
that were run (give 100 rounds for those of the whole recipe). The learning rate is the best of four
of the paper's grid; the search is not in the time. Beside them stands scipy's L-BFGS on the weights
as they are, in double precision, from zero."""

import argparse
import time
from collections.abc import Callable, Iterable

import numpy as np
import torch
from scipy.optimize import minimize
from scipy.special import expit
from torch.utils.data import DataLoader, Dataset

from capcal_lib.metrics import capability_brier
from capcal_lib.probes import LinearProbe

QUESTIONS, VALIDATION, HELD_OUT = (
    7_473,
    1_319,
    1_000,
)  # the first two are GSM8K's training and test set
FEATURES, SAMPLES = 4_096, 100  # the hidden size of the 7B and 8B models
BATCH, EPOCHS, DECAY = 32, 100, 1e-2
RATES = (5e-3, 2e-3, 1e-3, 5e-4)

Data = tuple[torch.Tensor, torch.Tensor]
Batches = Callable[[], Iterable[Data]]


def now() -> np.ndarray:
    """Processor time and the clock, in seconds."""
    return np.array([time.process_time(), time.perf_counter()])


class Items(Dataset):  # type: ignore[type-arg]
    """Questions that are fetched one by one."""

    def __init__(self, data: Data) -> None:
        self.inputs, self.targets = data

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, row: int) -> Data:
        return self.inputs[row], self.targets[row]


class Sgd:
    """Training by the paper's recipe, an epoch at a time."""

    def __init__(self, batches: Batches, validation: Batches, rate: float) -> None:
        torch.manual_seed(0)
        self.batches, self.validation = batches, validation
        self.seconds: list[np.ndarray] = []
        self.lowest = np.inf
        self.layer = torch.nn.Linear(FEATURES, 1)
        torch.nn.init.xavier_uniform_(self.layer.weight)
        torch.nn.init.zeros_(self.layer.bias)
        self.optimizer = torch.optim.SGD(
            self.layer.parameters(), lr=rate, momentum=0.9, weight_decay=DECAY
        )

    def loss(
        self, inputs: torch.Tensor, targets: torch.Tensor, reduction: str = "mean"
    ) -> torch.Tensor:
        """Return the cross-entropy of a batch."""
        logits = self.layer(inputs)[:, 0]
        return torch.nn.functional.binary_cross_entropy_with_logits(
            logits, targets, reduction=reduction
        )

    def epoch(self) -> float:
        """Train for one epoch, keep its weights if they are the best so far, and return its
        validation loss.
        """
        started = now()
        for batch in self.batches():
            loss = self.loss(*batch)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        with torch.no_grad():
            score = sum(self.loss(*batch, reduction="sum").item() for batch in self.validation())
        if score < self.lowest:
            self.lowest = score
            self.best = self.layer.weight.detach()[0].double().numpy(), self.layer.bias.item()
        self.seconds.append(now() - started)
        return score


def main() -> None:
    """Print the times, their ratios and what each probe scores."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--rounds", type=int, default=5, help="fits, and epochs of each loop (default 5)"
    )
    rounds = parser.parse_args().rounds

    features, correct = synthetic(np.random.default_rng(0))
    total = np.full(len(correct), SAMPLES)
    train, validation, test = np.split(np.arange(len(correct)), [QUESTIONS, QUESTIONS + VALIDATION])
    inputs, targets = (
        torch.from_numpy(features[:QUESTIONS]),
        torch.from_numpy(correct[train] / SAMPLES).float(),
    )
    held_out = (
        torch.from_numpy(features[validation]),
        torch.from_numpy(correct[validation] / SAMPLES).float(),
    )

    def slices() -> Iterable[Data]:
        for rows in torch.randperm(len(inputs)).split(BATCH):
            yield inputs[rows], targets[rows]

    items = DataLoader(Items((inputs, targets)), batch_size=BATCH, shuffle=True)
    items_held_out = DataLoader(Items(held_out), batch_size=BATCH)

    print(
        f"{QUESTIONS} questions, {FEATURES} features, {torch.get_num_threads()} threads; "
        "processor time (clock)"
    )
    LinearProbe(weight_decay=DECAY).fit(
        features[:1_100, :1_100], correct[:1_100], total[:1_100]
    )  # loads libraries
    rate = min(RATES, key=lambda rate: Sgd(slices, lambda: [held_out], rate).epoch())
    loops = {
        f"SGD, one question at a time, rate {rate:g}": Sgd(
            lambda: items, lambda: items_held_out, rate
        ),
        f"SGD, tensors in memory, rate {rate:g}": Sgd(slices, lambda: [held_out], rate),
    }
    fits = []
    for _ in range(rounds):
        started = now()
        probe = LinearProbe(weight_decay=DECAY).fit(
            features[:QUESTIONS], correct[train], total[train]
        )
        fits.append(now() - started)
        for loop in loops.values():
            loop.epoch()

    def plain() -> np.ndarray:
        rows = features[:QUESTIONS].astype(np.float64)
        centre = rows.mean(axis=0)
        rows -= centre
        mu = correct[train] / SAMPLES

        def slope(point: np.ndarray) -> tuple[float, np.ndarray]:
            logits = rows @ point[:-1] + point[-1]
            errors = (expit(logits) - mu) / len(mu)
            value = np.mean(np.logaddexp(0, logits) - mu * logits)
            gradient = np.append(errors @ rows + DECAY * point[:-1], errors.sum())
            return value + DECAY / 2 * point[:-1] @ point[:-1], gradient

        options = {"ftol": 0, "gtol": 1e-6, "maxiter": 2_000, "maxfun": 4_000}
        found = minimize(
            slope, np.zeros(FEATURES + 1), jac=True, method="L-BFGS-B", options=options
        )
        found.x[-1] -= centre @ found.x[:-1]
        return np.asarray(found.x)

    started = now()
    optimum = plain()
    scipy_seconds = now() - started

    def report(name: str, seconds: np.ndarray, weights: np.ndarray, bias: float) -> None:
        logits = features.astype(np.float64) @ weights + bias
        mu = correct[train] / SAMPLES
        loss = (
            np.mean(np.logaddexp(0, logits[train]) - mu * logits[train])
            + DECAY / 2 * weights @ weights
        )
        brier = capability_brier(1 / (1 + np.exp(-logits[test])), correct[test], total[test])
        (processor, clock), (ratio, by_clock) = seconds, seconds / np.median(fits, axis=0)
        times = f"{processor:8.2f} s ({clock:.2f} s){ratio:7.1f} x ({by_clock:.1f} x)"
        print(f"{name:<48}{times}   objective {loss:.5f}   held-out Brier {brier:.5f}")

    report("LinearProbe, at its optimum", np.median(fits, axis=0), probe.coef_, probe.intercept_)
    report("scipy's L-BFGS as it is", scipy_seconds, optimum[:-1], optimum[-1])
    for name, loop in loops.items():
        report(f"{name}, {EPOCHS} epochs", EPOCHS * np.median(loop.seconds, axis=0), *loop.best)


def synthetic(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Make correlated features, one of them huge as in real models, and counts that depend on 40
    directions.
    """
    rows, latent = QUESTIONS + VALIDATION + HELD_OUT, 1_024
    hidden = (
        rng.standard_normal((rows, latent), dtype=np.float32)
        * np.arange(1, latent + 1, dtype=np.float32) ** -0.6
    )
    features = 0.3 * hidden @ rng.standard_normal((latent, FEATURES), dtype=np.float32)
    features += 0.05 * rng.standard_normal(features.shape, dtype=np.float32)
    features[:, 7] += 50
    logits = hidden[:, :40] @ rng.standard_normal(40) * 1.5 + 0.3
    return features, rng.binomial(SAMPLES, 1 / (1 + np.exp(-logits)))


if __name__ == "__main__":
    main()
