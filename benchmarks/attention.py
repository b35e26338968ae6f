"""Scores of all heads, and what the last state feels of each token: time, peak memory and error, in
one run.

python benchmarks/attention.py --lengths 2048 8192 --peer-to 2048 --threads 2
python benchmarks/attention.py --lengths 2048 8192 32768 --layers 2 --only-scores

With `--layers` the model keeps its first layers alone, and may read longer texts than it was
trained on: for times, which are those of a layer times their number.

Each measurement runs in a process of its own, whose peak memory the operating system tells.
"logsumexp" is `head_scores`, "by rows" the same with a token hidden from nobody, which takes blocks
of rows, and "forward" the model without any score. "all maps" holds every map
(`output_attentions=True`), and "TransformerLens" and "nnsight", where they are installed, reduce
each map as it comes, which is the best use of both. These run up to `--peer-to` tokens: at 8,192
all maps need 72 GB. Seconds are of the processor, beside those of the clock: a busy machine counts
only in the latter.

Two layers of SmolLM2-135M, one thread of a busy machine, 2026-11-29, torch 2.13.0, transformers
5.23.0, TransformerLens 4.3.0, nnsight 0.8.1; seconds of the processor, peak memory in GB:

    tokens   logsumexp    by rows      forward      all maps     TransformerLens  nnsight
     2,048    0.6  0.85    0.8  0.87    0.6  0.83    6.1  1.80    6.1  1.86       4.9  1.66
     8,192    3.8  1.11    6.9  1.17    3.9  1.11   not run      not run         not run
    32,768   42.2  1.70   93.3  2.20   40.6  1.63   not run      not run         not run
"""

import argparse
import importlib.util
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable

import torch

from helpers import attention, models, probe
from helpers.models import mixing

TEXT = "A court heard on Monday that the river had risen twice since the bridge was built. "
OURS, SENSITIVITIES = ("logsumexp", "by rows", "forward"), ("exact", "randomised")
PEERS = {"all maps": "transformers", "TransformerLens": "transformer_lens", "nnsight": "nnsight"}
PARTS = (*OURS, *PEERS, *SENSITIVITIES)


def tokens(model: models.LanguageModel, n: int) -> torch.Tensor:
    once = probe.encode(model, TEXT)
    return torch.cat([probe.opening(model).tokens, once.repeat(-(-n // len(once)))])[:n]


def scores_of_map(pattern: torch.Tensor) -> torch.Tensor:
    """Return the sink and slash scores of a layer's heads (2, heads) from its whole map."""
    return torch.stack([attention.sink_score(pattern), attention.slash_score(pattern, 1)])


@torch.inference_mode()
def all_maps(model: models.LanguageModel, ids: torch.Tensor) -> torch.Tensor:
    """What a course would do without a probe: all maps at once, then the scores of each layer."""
    with mixing._attending(model.model, "eager"):
        maps = model.model(
            ids[None], use_cache=False, output_attentions=True, logits_to_keep=1
        ).attentions
    return torch.stack([scores_of_map(layer[0]) for layer in maps])


def lens(model: models.LanguageModel) -> Callable[[torch.Tensor], torch.Tensor]:
    """Wrap the model in TransformerLens; what comes back reduces each layer's map in a hook."""
    from transformer_lens.model_bridge import TransformerBridge

    model.model.set_attn_implementation("eager")
    bridge = TransformerBridge.boot_transformers(
        model.name, hf_model=model.model, tokenizer=model.tokenizer
    )

    @torch.inference_mode()
    def head_scores(ids: torch.Tensor) -> torch.Tensor:
        scores = {}

        def reduce(pattern: torch.Tensor, hook) -> torch.Tensor:
            layer = int(hook.name.split(".")[1])
            scores[layer] = scores_of_map(pattern[0])
            return pattern

        hooks = [(lambda name: name.endswith("attn.hook_pattern"), reduce)]
        bridge.run_with_hooks(ids[None], fwd_hooks=hooks)
        return torch.stack([scores[layer] for layer in sorted(scores)])

    return head_scores


def sight(model: models.LanguageModel) -> Callable[[torch.Tensor], torch.Tensor]:
    """Wrap the model in nnsight; what comes back reduces each layer's map inside a trace."""
    from nnsight import NNsight

    model.model.set_attn_implementation("eager")
    traced = NNsight(model.model)

    @torch.inference_mode()
    def head_scores(ids: torch.Tensor) -> torch.Tensor:
        with traced.trace(ids[None], use_cache=False, logits_to_keep=1):
            scores = list().save()  # nnsight saves a list that is made by this call
            for layer in traced.model.layers:
                scores.append(scores_of_map(layer.self_attn.output[1][0]))
        return torch.stack(list(scores))

    return head_scores


@torch.inference_mode()
def plain(model: models.LanguageModel, ids: torch.Tensor) -> torch.Tensor:
    """The model as it is, on its fused kernel."""
    return model.model(ids[None], use_cache=False, logits_to_keep=1).logits


def keep_layers(model: models.LanguageModel, count: int, n: int) -> None:
    """Cut a decoder after its first layers, and let it read n tokens, in place."""
    network = model.model.base_model
    network.layers = network.layers[:count]
    model.model.config.num_hidden_layers = count
    model.model.config.max_position_embeddings = n


def measure(part: str, n: int, probes: int, repeats: int, layers: int) -> dict:
    """Seconds (the best of some runs) and peak memory in GB, in this process; for sensitivities
    the norms too.
    """
    model = models.load(device="cpu")
    if layers:
        keep_layers(model, layers, n)
    ids = tokens(model, n)
    wrapped = {"TransformerLens": lens, "nnsight": sight}
    if part in wrapped:
        theirs = wrapped[part](model)
    call = {
        "logsumexp": lambda: probe.head_scores(model, ids),
        "by rows": lambda: probe.head_scores(model, ids, hide=n - 1, since=n - 1),
        "forward": lambda: plain(model, ids),
        "all maps": lambda: all_maps(model, ids),
        "TransformerLens": lambda: theirs(ids),
        "nnsight": lambda: theirs(ids),
        "exact": lambda: probe.sensitivity(model, ids),
        "randomised": lambda: probe.sensitivity(model, ids, probes),
    }[part]
    seconds, processor = [], []
    probe.layers(model)  # found once a model
    for _ in range(repeats):
        start, work = time.perf_counter(), time.process_time()
        found = call()
        seconds.append(time.perf_counter() - start)
        processor.append(time.process_time() - work)
    norms = (
        {"norms": found.norms.tolist(), "errors": found.errors.tolist()}
        if part in SENSITIVITIES
        else {}
    )
    if part in ("logsumexp", "by rows"):
        norms = {"scores": torch.stack([found.sink, found.slash[..., 1]], 1).tolist()}
    if part in PEERS:
        norms = {"scores": found.tolist()}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return {"seconds": min(seconds), "processor": min(processor), "gigabytes": peak, **norms}


def apart(part: str, n: int, options: argparse.Namespace) -> dict:
    """`measure` in a process of its own."""
    command = [
        sys.executable,
        __file__,
        "--measure",
        part,
        "--lengths",
        str(n),
        "--threads",
        str(options.threads),
    ]
    command += ["--probes", str(options.probes), "--repeats", str(options.repeats)]
    command += ["--layers", str(options.layers)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def installed_peers(n: int, peer_to: int) -> list[str]:
    """Return the peers to run on n tokens: those that are installed, on texts that they can
    hold.
    """
    if n > peer_to:
        return []
    return [name for name, module in PEERS.items() if importlib.util.find_spec(module)]


def tell(n: int, part: str, found: dict) -> None:
    times = f"{found['seconds']:8.1f} {found['processor']:12.1f}"
    print(f"{n:6} {part:15} {times} {found['gigabytes']:8.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lengths", type=int, nargs="+", default=[2048, 8192])
    parser.add_argument("--peer-to", type=int, default=2048)
    parser.add_argument("--tokens", type=int, default=48, help="of the sensitivities")
    parser.add_argument("--probes", type=int, default=52)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--layers", type=int, default=0, help="the first ones alone; 0: all")
    parser.add_argument("--only-scores", action="store_true", help="and no sensitivities")
    parser.add_argument("--measure", choices=PARTS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.measure:
        n, repeats = options.lengths[0], options.repeats
        print(json.dumps(measure(options.measure, n, options.probes, repeats, options.layers)))
        return
    print(
        f"{models.DEFAULT}, {options.layers or 'all'} layers, {options.threads} threads, "
        f"torch {torch.__version__}"
    )
    print("tokens part             clock s  processor s  peak GB")
    for n in options.lengths:
        scores = {}
        for part in (*OURS, *installed_peers(n, options.peer_to)):
            found = apart(part, n, options)
            tell(n, part, found)
            scores[part] = torch.tensor(found.get("scores", []))
        for part, theirs in scores.items():
            if len(theirs) and part != "logsumexp":
                off = (scores["logsumexp"] - theirs).abs().max()
                print(f"{n:6} largest difference of a score to {part}: {off:.1e}", flush=True)
    if options.only_scores:
        return
    exact, random = (apart(part, options.tokens, options) for part in SENSITIVITIES)
    for part, found in zip(SENSITIVITIES, (exact, random), strict=True):
        tell(options.tokens, part, found)
    truth, norms = torch.tensor(exact["norms"]), torch.tensor(random["norms"])
    errors = (norms / truth - 1).abs()
    told = (torch.tensor(random["errors"]) / truth).mean()
    print(
        f"{options.probes} directions: {exact['seconds'] / random['seconds']:.1f} times less time; "
        f"root mean square error {errors.square().mean().sqrt():.1%}, largest {errors.max():.1%}, "
        f"mean error bar {told:.1%}"
    )


if __name__ == "__main__":
    main()
