"""Train the networks on Tree-NeighborsMatch epoch by epoch, with the rules of the released code."""

import math
import time
from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor, nn
from torch.nn import functional as F

from course.training.gnn.networks import Attention, Network, Star, build
from course.training.gnn.task import TreeNeighborsMatch
from helpers import compute, require

BATCH = {2: 64, 3: 64, 4: 1024, 5: 1024, 6: 1024, 7: 2048, 8: 2048}
BLOCK = 10


class Epoch(NamedTuple):
    """Record one pass over the training set.

    Attributes:
        epoch: the number of the epoch.
        seconds: the time since the start of the training.
        loss, train_accuracy: averages over the steps of the epoch, as in the released code.
        test_accuracy: the accuracy on the test set after the epoch.
    """

    epoch: int
    seconds: float
    loss: float
    train_accuracy: float
    test_accuracy: float


def accuracy(
    network: nn.Module, task: TreeNeighborsMatch, examples: Int[Tensor, " examples"]
) -> float:
    """Measure the fraction of these examples that the network answers correctly."""
    _check_network(network, task)
    examples = require.tensor("examples", examples, "examples", "whole").long()
    if examples.min() < 0 or examples.max() >= task.leaves * len(task.orders):
        raise ValueError(
            f"examples must be from 0 to {task.leaves * len(task.orders) - 1}, the examples of "
            f"the task"
        )
    training, device = network.training, network.readout.weight.device
    network.eval()
    with torch.no_grad():
        batches = [task.batch(part).to(device) for part in examples.split(4096)]
        correct = sum((network(batch).argmax(1) == batch.label).sum().item() for batch in batches)
    network.train(training)
    return correct / len(examples)


def train(
    network: nn.Module,
    task: TreeNeighborsMatch,
    seconds: float = math.inf,
    epochs: int = 50_000,
    seed: int = 0,
    rate: float = 1e-3,
) -> Iterator[Epoch]:
    """Train with the rules of the released code, and yield one `Epoch` per pass over the data.

    For a table, write `pandas.DataFrame(train(network, task, seconds=60))`.

    The optimiser is Adam at `rate` (1e-3 in the released code), with batches of `BATCH[depth]`.
    Every 100 epochs (1000 at depth 2) we compare the mean training accuracy since the last
    comparison with the best one so far. If it has not improved 10 times in a row, the rate is
    halved, and after 20 times the training ends. Training also ends after an epoch without an
    error, and at the first epoch past `seconds` or `epochs`. The released scripts accumulate
    gradients over parts of a batch of 2048, while we use the batch as a whole. The two differ only
    in GIN's batch statistics.

    Raises:
        ValueError: if the network is not from `build` or was built for another depth, or an
            argument is out of range.
    """
    _check_network(network, task)
    if not (isinstance(seconds, float) and seconds == math.inf):
        require.number("seconds", seconds, above=0)
    require.integer("epochs", epochs, 1)
    require.number("rate", rate, above=0, most=1)
    return _epochs(
        network, task, seconds, epochs, torch.Generator().manual_seed(require.seed(seed)), rate
    )


def _check_network(network: nn.Module, task: TreeNeighborsMatch) -> None:
    require.instance("network", network, (Network, Attention, Star), "what gnn.build returns")
    require.instance("task", task, TreeNeighborsMatch, "a TreeNeighborsMatch")
    if network.readout.out_features != task.leaves + 1:
        raise ValueError(f"network must be built for the depth of the task, which is {task.depth}")


def _epochs(network, task, seconds, epochs, generator, rate) -> Iterator[Epoch]:
    device = network.readout.weight.device
    optimizer = torch.optim.Adam(
        network.parameters(), lr=rate, fused=device.type in ("cpu", "cuda")
    )
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(
        optimizer, "max", 0.5, 10, threshold_mode="abs"
    )
    period, recent, best, waited = 1000 if task.depth == 2 else 100, [], 0.0, 0
    start = time.perf_counter()
    for number in compute.progress(range(1, epochs + 1), f"depth {task.depth}"):
        network.train()
        order = task.train[torch.randperm(len(task.train), generator=generator)]
        total, correct = 0.0, 0
        for examples in order.split(BATCH[task.depth]):
            batch = task.batch(examples).to(device)
            logits = network(batch)
            loss = F.cross_entropy(logits, batch.label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach() * len(examples)
            correct += (logits.detach().argmax(1) == batch.label).sum()
        recent.append(float(correct) / len(order))
        elapsed = time.perf_counter() - start
        test = accuracy(network, task, task.test)
        yield Epoch(number, elapsed, float(total) / len(order), recent[-1], test)
        if recent[-1] == 1 or elapsed > seconds:
            return
        if len(recent) == period:
            mean, recent = sum(recent) / period, []
            scheduler.step(mean)
            best, waited = (mean, 0) if mean > best + 1e-4 else (best, waited + 1)
            if waited == 20:
                return


def fit(
    kind: str,
    depth: int,
    seed: int,
    width: int,
    fully_adjacent: bool,
    key: str,
    epochs_allowed: int,
    device: str | None = None,
) -> dict[str, str | int]:
    """Train one network and return one row of the results table.

    Training ends when the network makes no error for an epoch, or after `epochs_allowed` epochs.

    Args:
        device: the device, or `None` for the accelerator if there is one.

    Returns:
        One row of the table. Its `curve` has the mean training accuracy of each block of ten epochs
            (the last block may be shorter), so that two runs can be compared at equal epochs.
            `ended` is "fitted", "epochs" or, by the released rule, "stalled".

    Raises:
        ValueError: if the device does not exist, the kind or the key is unknown, `epochs_allowed`,
            the seed, the depth or the width is out of range, or this kind of network cannot be
            `fully_adjacent` or have the key everywhere.
    """
    require.integer("epochs_allowed", epochs_allowed, 1)
    device = compute.device().type if device is None else require.text("device", device)
    try:
        torch.empty(0, device=device)
    except (RuntimeError, ValueError, AssertionError):
        raise ValueError(
            f"device must be available here, for example 'cpu', not {require.brief(device)}"
        ) from None
    compute.seed(require.seed(seed))
    task = TreeNeighborsMatch(depth)
    network = build(kind, depth, width, fully_adjacent, key).to(device)
    run = list(train(network, task, epochs=epochs_allowed, seed=seed))
    accuracies = [epoch.train_accuracy for epoch in run]
    blocks = [accuracies[start : start + BLOCK] for start in range(0, len(run), BLOCK)]
    return {
        "epochs": len(run),
        "steps": len(run) * math.ceil(len(task.train) / BATCH[depth]),
        "ended": "fitted"
        if accuracies[-1] == 1
        else "epochs"
        if len(run) == epochs_allowed
        else "stalled",
        "best_train_accuracy": f"{max(accuracies):.4f}",
        "end_train_accuracy": f"{accuracy(network, task, task.train):.4f}",
        "end_test_accuracy": f"{run[-1].test_accuracy:.4f}",
        "chance": f"{1 / task.leaves:.4f}",
        "curve": " ".join(f"{sum(block) / len(block):.3f}" for block in blocks),
        "device": torch.cuda.get_device_name() if torch.device(device).type == "cuda" else device,
    }
