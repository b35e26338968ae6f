"""Repeat chapter 3's measurements with another token, penalty or precision.

The verdicts on the claims might change under these conditions.
"""

import copy
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from course.chapter3 import measures
from helpers import data, models, probe
from helpers.models import LanguageModel


def ridge(
    x: Float[Tensor, "m d"], y: Float[Tensor, " m"], asked: Float[Tensor, "k d"], penalty: float
) -> Float[Tensor, " k"]:
    """Fit a linear probe of y with a given penalty, and apply it to the vectors in `asked`.

    The penalty is in units of the mean eigenvalue. `measures.read_out` is the same probe, but it
    chooses the penalty from the data.
    """
    x, y, asked = x.double(), y.double(), asked.double()
    rows = x - x.mean(0)
    gram = rows @ rows.T
    gram += penalty * gram.trace() / len(gram) * torch.eye(len(gram), dtype=gram.dtype)
    weights = rows.T @ torch.linalg.solve(gram, y - y.mean())
    return (asked - x.mean(0)) @ weights + y.mean()


def fixed_penalties(penalties: Sequence[float]) -> dict[str, dict[float, float] | list | str]:
    """Fit linear probes of n to the states of `measures.READ` ones in bf16, with fixed penalties.

    The probes are fitted on even n and tested on odd n.

    Returns:
        own, isotropic: the median error of each penalty, with bf16's own errors and with isotropic
            errors of the same length
        left_out: both errors with the penalty that `measures.read_out` chooses
        chosen: this penalty, as text
    """
    start, stop = measures.READ
    states = measures.passes(stop)
    exact, rounded = (states[kind][:stop].cpu().double() for kind in ("fp32", "bf16"))
    n = torch.arange(start, stop)
    even, odd = n % 2 == 0, n % 2 == 1
    found = {}
    for name, errors in (("own", "its own"), ("isotropic", "isotropic")):
        seen = measures.replaced(exact[start:], rounded[start:], errors)
        fits = {
            penalty: ridge(seen[even], n[even], seen[odd], penalty) for penalty in penalties
        } | {None: measures.read_out(seen[even], n[even], seen[odd])}
        found[name] = {
            penalty: float((read - n[odd]).abs().median()) for penalty, read in fits.items()
        }
    left_out = [found[name].pop(None) for name in ("own", "isotropic")]
    return found | {"left_out": left_out, "chosen": "from 1e-9 to 10"}


def right_of_two(names: Sequence[str], low: int, high: int) -> dict[str, dict[str, float]]:
    """Return how often a rounded state is nearer to its own exact state than to the next one.

    The states are those of n copies of a token, and the next state is that of n + 1 copies.
    The result is keyed by format and token.
    """

    def states(model: LanguageModel, name: str) -> Tensor:
        unit = probe.encode(model, name)[-1:]
        ids = torch.cat([probe.first_token(model), unit.repeat(high + 1)])
        return probe.last_representations(model, ids).float().cpu()

    exact = models.default()
    kinds = {kind: models.load(dtype=kind, device="cpu") for kind in ("bf16", "fp16")}
    found = {kind: {} for kind in kinds}
    for name in names:
        true = states(exact, name)
        for kind, model in kinds.items():
            pair = measures.resolution(true, states(model, name)).pair
            found[kind][name] = float(pair[low:high].double().mean())
    return found


@torch.inference_mode()
def recovered_from_bf16(
    layers: Sequence[int] = (1, 10, 30), tokens: int = 20
) -> dict[str, float | dict[int, int]]:
    """Recover a prompt as `measures.matched` does, but from hidden states in bf16.

    Returns:
        missed: for each layer, the number of tokens whose nearest candidate in fp32 is a wrong one
        own: the largest distance of a right candidate, as a fraction of the length of the state
        other: the smallest distance of a wrong candidate, as the same fraction
        candidates: the number of candidates
    """
    model, rounded = models.default(), models.load(dtype="bf16", device="cpu")
    prose, first = probe.encode(model, data.prose()), probe.first_token(model)
    prompt, candidates = prose[:tokens], prose.unique()

    def states(each: LanguageModel, ids: Tensor, cache=None) -> tuple[Tensor, object]:
        out = each.model(ids, past_key_values=cache, use_cache=True, output_hidden_states=True)
        return torch.stack([out.hidden_states[k].float() for k in layers]), out.past_key_values

    target = states(rounded, torch.cat([first, prompt])[None])[0][:, 0, 1:]
    cache, distances = states(model, first[None])[1], []
    for k, token in enumerate(prompt):
        copied = copy.deepcopy(cache)
        copied.batch_repeat_interleave(len(candidates))
        guesses = states(model, candidates[:, None], copied)[0][:, :, 0]
        length = target[:, k].norm(dim=-1, keepdim=True)
        distances.append((guesses - target[:, None, k]).norm(dim=-1) / length)
        cache = states(model, token[None, None], cache)[1]
    found, right = torch.stack(distances, 1), candidates == prompt[:, None]
    wrong = found.argmin(-1) != right.long().argmax(-1)
    return {
        "missed": dict(zip(layers, wrong.sum(1).tolist(), strict=True)),
        "own": float(found[:, right].max()),
        "other": float(found.masked_fill(right, torch.inf).min()),
        "candidates": len(candidates),
    }
