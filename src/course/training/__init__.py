"""Train the course's small models with one loop that gives the same numbers from the same seed.

The loop shows its progress and can write checkpoints, so a run that was stopped can continue.
"""

import contextlib
import copy
import json
import math
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import safetensors
import torch
from jaxtyping import Float, Int
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from helpers import compute, require

Batch = tuple[Int[Tensor, "b n"], Int[Tensor, "b n"]]
UNASKED = -100  # a target with this value does not count in the loss


def fit(
    model: nn.Module,
    batches: Callable[[torch.Generator], Batch],
    *,
    steps: int,
    rate: float = 3e-3,
    warmup: int = 20,
    cosine: bool = False,
    weights: Float[Tensor, " v"] | None = None,
    seed: int = 0,
    watch: Callable[[int, nn.Module], None] | None = None,
    every: int = 100,
    checkpoint: str | Path | None = None,
) -> list[float]:
    """Train `model` with AdamW and cross-entropy, and return the loss of every step.

    Each step t draws its batch from a separate random generator, made from `seed` and t. So a run
    that was stopped and is called again with the same `checkpoint` ends with the same weights as a
    run that was never stopped.

    Args:
        model: a module that maps tokens (b, n) to logits (b, n, v). We change its weights in place.
        batches: a function of a random generator that returns tokens and targets. Targets equal to
            `UNASKED` do not count.
        steps: the total number of steps, including the steps that the checkpoint already has.
        rate: the learning rate. It rises linearly over `warmup` steps and then stays constant.
        cosine: let the rate fall to 0 at the last step, along half a cosine.
        weights: the weight of each token as a target in the loss. If `None`, all tokens have the
            same weight.
        seed: the seed of the batches only. The caller is responsible for the initial weights, and
            calls `torch.manual_seed` before making the model.
        watch: a function that is called with the step and the model at step 0, every `every` steps,
            and at the end.
        every: the number of steps between two calls of `watch` and between two writes of the
            checkpoint.
        checkpoint: a safetensors file for the weights, the optimiser's state and the losses.

    Raises:
        ValueError: if `steps`, `every`, `rate`, `warmup` or `seed` is out of range, the checkpoint
            belongs to another run, or the loss is not finite.

    >>> _ = torch.manual_seed(0)
    >>> model = nn.Sequential(nn.Embedding(4, 8), nn.Linear(8, 4))
    >>> def repeat(generator):  # say each token again
    ...     tokens = torch.randint(4, (2, 8), generator=generator)
    ...     return tokens, tokens
    >>> losses = fit(model, repeat, steps=50, rate=0.1)
    >>> losses[-1] < 0.1 < losses[0], accuracy(model, repeat)
    (True, 1.0)
    """
    require.instance("model", model, nn.Module, "a torch module")
    require.function("batches", batches)
    if watch is not None:
        require.function("watch", watch)
    for name, value, least in (("steps", steps, 1), ("every", every, 1), ("warmup", warmup, 0)):
        require.integer(name, value, least)
    require.seed(seed)
    require.number("rate", rate, above=0)
    require.flag("cosine", cosine)
    place = next(model.parameters()).device
    if weights is not None:
        weights = require.tensor("weights", weights, "v").to(place)
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.0)
    run, turn = {"seed": seed, "rate": rate, "warmup": warmup}, math.pi / steps
    if cosine:
        run["falls to 0 at step"] = steps
    losses = (
        _resume(model, optimiser, Path(checkpoint), run)
        if checkpoint and Path(checkpoint).is_file()
        else []
    )
    if watch is not None and not losses:
        watch(0, model)
    bar = compute.progress(label="training", total=steps, initial=len(losses))
    model.train()
    for step in range(len(losses) + 1, steps + 1):
        ids, targets = _drawn(batches, seed * 1_000_003 + step)
        for group in optimiser.param_groups:
            group["lr"] = (
                rate
                * min(1.0, step / max(1, warmup))
                * (0.5 + 0.5 * math.cos(turn * step) if cosine else 1)
            )
        logits, targets = model(ids.to(place)).flatten(0, 1), targets.to(place).flatten()
        loss = nn.functional.cross_entropy(logits, targets, weights, ignore_index=UNASKED)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
        bar.update()
        if not torch.isfinite(loss):
            raise ValueError(
                f"rate must be smaller: with {rate} the loss was {losses[-1]} at step {step}"
            )
        if step % every == 0 or step == steps:
            bar.set_postfix(loss=f"{losses[-1]:.3f}")
            if watch is not None:
                watch(step, model)
            if checkpoint:
                _write(model, optimiser, Path(checkpoint), run, losses)
    bar.close()
    model.eval()
    return losses


def fit_together(
    models: Sequence[nn.Module],
    batches: Callable[[torch.Generator], Batch],
    *,
    steps: int,
    rate: float = 3e-3,
    warmup: int = 20,
    seeds: Sequence[int] | None = None,
    until: Callable[[nn.Module], bool] | None = None,
    every: int = 50,
) -> list[list[float]]:
    """Train several models of one architecture at once, each as `fit` would train it alone.

    Small models spend most of their time on starting operations. So we stack their weights, and
    `torch.vmap` runs all models in one call. The results agree with those of `fit` up to rounding.
    Each model gets the batches that `fit` would draw with the model's seed. Shorter batches are
    padded on the right with tokens 0 that do not count, which is why the models must be causal.

    Args:
        models: one or more models of one architecture. They are trained in place.
        batches, steps, rate, warmup: as for `fit`.
        seeds: the seeds of the batches, one per model. If `None`, they are 0, 1, …
        until: a function that is called with each model after every `every` steps. If it returns
            `True`, the model is not trained any further.
        every: the number of steps between two calls of `until`.

    Returns:
        For each model, a list with the loss of every step that the model took.

    Raises:
        ValueError: if there are no models, their shapes differ, there is not one seed per model, or
            for one of the reasons listed for `fit`.

    >>> models = []
    >>> for seed in (0, 1):
    ...     _ = torch.manual_seed(seed)
    ...     models.append(nn.Sequential(nn.Embedding(4, 8), nn.Linear(8, 4)))
    >>> def repeat(generator):
    ...     tokens = torch.randint(4, (2, 8), generator=generator)
    ...     return tokens, tokens
    >>> def is_learned(model):
    ...     return accuracy(model, repeat) == 1
    >>> losses = fit_together(models, repeat, steps=90, rate=0.1, until=is_learned, every=10)
    >>> all(len(each) < 90 for each in losses), [accuracy(model, repeat) for model in models]
    (True, [1.0, 1.0])
    """
    models = list(require.instance("models", models, Sequence, "a list of torch modules"))
    if not models or not all(isinstance(model, nn.Module) for model in models):
        raise ValueError("models must be a list of at least one torch module")
    shapes = [
        [(name, value.shape) for name, value in model.state_dict().items()] for model in models
    ]
    if any(
        shape != shapes[0] or type(model) is not type(models[0])
        for model, shape in zip(models, shapes, strict=True)
    ):
        raise ValueError(
            "models must have the same architecture, which means weights with the same "
            "names and shapes"
        )
    require.function("batches", batches)
    if until is not None:
        require.function("until", until)
    for name, value, least in (("steps", steps, 1), ("every", every, 1), ("warmup", warmup, 0)):
        require.integer(name, value, least)
    require.number("rate", rate, above=0)
    seeds = list(range(len(models)) if seeds is None else require.integers("seeds", seeds, 0))
    if len(seeds) != len(models):
        raise ValueError(
            f"seeds must hold one seed for each of the {len(models)} models, not {len(seeds)} seeds"
        )
    place = next(models[0].parameters()).device
    for model in models:
        model.train()
    weights, buffers = torch.func.stack_module_state(models)
    one = copy.deepcopy(models[0])

    def loss_of(weights: dict, buffers: dict, ids: Tensor, targets: Tensor) -> Tensor:
        logits = torch.func.functional_call(one, (weights, buffers), (ids,))
        return nn.functional.cross_entropy(
            logits.flatten(0, 1), targets.flatten(), ignore_index=UNASKED
        )

    def together(
        weights: dict, buffers: dict, ids: Tensor, targets: Tensor
    ) -> Float[Tensor, " models"]:
        if len(ids) == 1:  # a single model may do things that vmap cannot, such as look at a value
            only = ({name: value[0] for name, value in part.items()} for part in (weights, buffers))
            return loss_of(*only, ids[0], targets[0])[None]
        return torch.vmap(loss_of, randomness="different")(weights, buffers, ids, targets)

    optimiser = torch.optim.AdamW(weights.values(), lr=rate, weight_decay=0.0, foreach=True)
    running, losses = list(range(len(models))), [[] for _ in models]
    bar = compute.progress(label="training", total=steps)
    for step in range(1, steps + 1):
        drawn = [_drawn(batches, seeds[k] * 1_000_003 + step) for k in running]
        for group in optimiser.param_groups:
            group["lr"] = rate * min(1.0, step / max(1, warmup))
        ids, targets = (
            _stacked([pair[part] for pair in drawn], filler).to(place)
            for part, filler in ((0, 0), (1, UNASKED))
        )
        each = together(weights, buffers, ids, targets)
        optimiser.zero_grad()
        each.sum().backward()
        optimiser.step()
        for k, loss in zip(running, each.tolist(), strict=True):
            losses[k].append(loss)
        bar.update()
        if not torch.isfinite(each).all():
            raise ValueError(
                f"rate must be smaller: with {rate} the loss was {losses[running[0]][-1]} at step "
                f"{step}"
            )
        if step == steps or (until is not None and step % every == 0):
            _unstack(weights, [models[k] for k in running])
            if step == steps:
                break
            kept = [place for place, k in enumerate(running) if not until(models[k])]
            for k in running:
                models[k].train()
            if not kept:
                break
            if len(kept) < len(running):
                running = [running[place] for place in kept]
                weights, buffers, optimiser = _narrowed(weights, buffers, optimiser, kept)
    bar.close()
    for model in models:
        model.eval()
    return losses


@torch.no_grad()
def accuracy(
    model: nn.Module,
    batches: Callable[[torch.Generator], Batch],
    *,
    count: int = 4,
    seed: int = 10**6,
) -> float:
    """Return the fraction of targets that a model predicts correctly.

    The batches are ones that `fit` never draws.

    Args:
        count: the number of batches. They come from generators that `fit` does not use for any seed
            and step.

    >>> always_0 = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    >>> guess = nn.Embedding.from_pretrained(always_0)
    >>> accuracy(guess, lambda generator: (torch.tensor([[0, 1]]), torch.tensor([[0, 1]])))
    0.5
    """
    require.instance("model", model, nn.Module, "a torch module")
    require.function("batches", batches)
    require.integer("count", count, 1)
    require.seed(seed)
    right, asked = 0, 0
    for number in range(count):
        ids, targets = _drawn(batches, seed * 1_000_003 + 500_000 + number)
        place = next(model.parameters()).device
        counted = targets != UNASKED
        right += int((model(ids.to(place)).argmax(-1).cpu() == targets)[counted].sum())
        asked += int(counted.sum())
    if not asked:
        raise ValueError("batches must return at least one target that counts, not only UNASKED")
    return right / asked


def _drawn(batches: Callable[[torch.Generator], Batch], seed: int) -> Batch:
    drawn = batches(torch.Generator().manual_seed(seed))
    if not (
        isinstance(drawn, tuple)
        and len(drawn) == 2
        and all(isinstance(x, Tensor) and x.ndim == 2 for x in drawn)
    ):
        raise ValueError(
            f"batches must return tokens and targets, two tensors (b, n), not "
            f"{require.brief(drawn)}"
        )
    if drawn[0].shape != drawn[1].shape:
        raise ValueError(
            f"batches must return as many targets as tokens, not {[tuple(x.shape) for x in drawn]}"
        )
    return drawn


def _stacked(parts: list[Tensor], filler: int) -> Int[Tensor, "models b n"]:
    longest = max(part.shape[1] for part in parts)
    return torch.stack(
        [nn.functional.pad(part, (0, longest - part.shape[1]), value=filler) for part in parts]
    )


@torch.no_grad()
def _unstack(weights: dict[str, Tensor], models: Sequence[nn.Module]) -> None:
    for number, model in enumerate(models):
        for name, own in model.named_parameters():
            own.copy_(weights[name][number])


def _narrowed(
    weights: dict[str, Tensor],
    buffers: dict[str, Tensor],
    optimiser: torch.optim.Optimizer,
    kept: list[int],
) -> tuple[dict[str, Tensor], dict[str, Tensor], torch.optim.Optimizer]:
    """Return the stacked weights, buffers and optimiser for the models in `kept` only.

    We call this when some models have finished training, so that they need no more computation.
    """
    fewer = {name: value.detach()[kept].requires_grad_() for name, value in weights.items()}
    again = torch.optim.AdamW(
        fewer.values(), lr=optimiser.defaults["lr"], weight_decay=0.0, foreach=True
    )
    for name, value in weights.items():
        again.state[fewer[name]] = {
            what: kind if kind.ndim == 0 else kind[kept]
            for what, kind in optimiser.state[value].items()
        }
    return fewer, {name: value[kept] for name, value in buffers.items()}, again


def _write(
    model: nn.Module, optimiser: torch.optim.Optimizer, path: Path, run: dict, losses: list[float]
) -> None:
    state = {f"model.{name}": value.contiguous() for name, value in model.state_dict().items()}
    for number, values in optimiser.state_dict()["state"].items():
        state |= {
            f"optimiser.{number}.{name}": value.contiguous() for name, value in values.items()
        }
    fresh = path.with_name(path.name + ".part")
    save_file(state, fresh, metadata={"run": json.dumps(run), "losses": json.dumps(losses)})
    os.replace(fresh, path)  # the file is either complete or not there at all


def _resume(
    model: nn.Module, optimiser: torch.optim.Optimizer, path: Path, run: dict
) -> list[float]:
    with safetensors.safe_open(path, "pt") as file:
        facts = file.metadata() or {}
    if json.loads(facts.get("run", "null")) != run:
        raise ValueError(
            f"checkpoint must be from this run ({run}), but {path.name} is from "
            f"{facts.get('run', 'another run')}"
        )
    state = load_file(path)
    model.load_state_dict(
        {name[6:]: value for name, value in state.items() if name.startswith("model.")}
    )
    kept: dict[int, dict[str, Tensor]] = {}
    for name, value in state.items():
        if name.startswith("optimiser."):
            _, number, part = name.split(".", 2)
            kept.setdefault(int(number), {})[part] = value
    optimiser.load_state_dict(
        {"state": kept, "param_groups": optimiser.state_dict()["param_groups"]}
    )
    return json.loads(facts["losses"])


def seq_vcr_loss(
    x: Float[Tensor, "batch n d"],
    variance_weight: float = 1.0,
    covariance_weight: float = 0.004,
    eta: float = 0.001,
) -> Float[Tensor, ""]:
    """Compute the regulariser Seq-VCR of Arefin et al. (2025), which keeps hidden states different.

    Add it to the loss of a training run. At each position it rewards variance over the batch and
    penalises covariance between channels.

    The value is (1 / (n d)) sum_i sum_k [ variance_weight max(0, 1 - sqrt(C_kk + eta)) +
    covariance_weight sum_{l != k} C_kl^2 ], where C is the unbiased covariance over the batch at
    position i.

    Raises:
        ValueError: if x does not have three axes or has fewer than two sequences, or a weight or
            eta is negative.

    >>> x = torch.randn(256, 4, 16, generator=torch.Generator().manual_seed(0))
    >>> bool(seq_vcr_loss(0.001 * x) > seq_vcr_loss(x))
    True
    """
    require.tensor("x", x, "batch n d")
    if len(x) < 2:
        raise ValueError(f"x must have shape (batch >= 2, n, d), not {tuple(x.shape)}")
    for name, value in (
        ("variance_weight", variance_weight),
        ("covariance_weight", covariance_weight),
        ("eta", eta),
    ):
        require.number(name, value, 0)
    batch, n, d = x.shape
    centred = x - x.mean(0)
    covariance = torch.einsum("bnk,bnl->nkl", centred, centred) / (batch - 1)
    variance = covariance.diagonal(dim1=1, dim2=2)
    off_diagonal = covariance.square().sum() - variance.square().sum()
    spread = (1 - (variance + eta).sqrt()).clamp(min=0).sum()
    return require.finite(
        "x, or a weight,", (variance_weight * spread + covariance_weight * off_diagonal) / (n * d)
    )


@contextlib.contextmanager
def threads(count: int) -> Iterator[None]:
    """Run the `with` block with `count` CPU threads.

    One thread is faster than two for tiny models.

    >>> with threads(1):
    ...     torch.get_num_threads()
    1
    """
    require.integer("count", count, 1)
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
