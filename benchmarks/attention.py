"""Scores of all heads, and what the last state feels of each token: time, peak memory and error, in one run.

python benchmarks/attention.py --lengths 2048 8192 --peer-to 2048 --threads 2

Each measurement runs in a process of its own, whose peak memory the operating system tells. The peer holds every map
(`output_attentions=True`); it is run up to `--peer-to` tokens, for it needs 72 GB at 8,192.
"""

import argparse
import json
import resource
import subprocess
import sys
import time

import torch

from helpers import attention, models, probe
from helpers.models import mixing

TEXT = "A court heard on Monday that the river had risen twice since the bridge was built. "
PARTS = ("streaming", "peer", "exact", "randomised")


def tokens(model: models.LanguageModel, n: int) -> torch.Tensor:
    once = probe.encode(model, TEXT)
    return torch.cat([probe.opening(model).tokens, once.repeat(-(-n // len(once)))])[:n]


@torch.inference_mode()
def full_maps(model: models.LanguageModel, ids: torch.Tensor) -> torch.Tensor:
    """What a course would do without a probe: all maps at once, then the scores of each layer."""
    with mixing._attending(model.model, "eager"):
        maps = model.model(ids[None], use_cache=False, output_attentions=True, logits_to_keep=1).attentions
    return torch.stack([torch.stack([attention.sink_score(a[0]), attention.slash_score(a[0], 1)]) for a in maps])


def measure(part: str, n: int, probes: int, repeats: int) -> dict:
    """Seconds (the best of some runs) and peak memory in GB, in this process; for sensitivities the norms too."""
    model = models.load(device="cpu")
    ids = tokens(model, n)
    call = {
        "streaming": lambda: probe.head_scores(model, ids),
        "peer": lambda: full_maps(model, ids),
        "exact": lambda: probe.sensitivity(model, ids),
        "randomised": lambda: probe.sensitivity(model, ids, probes),
    }[part]
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        found = call()
        seconds.append(time.perf_counter() - start)
    norms = {"norms": found.norms.tolist(), "errors": found.errors.tolist()} if part in PARTS[2:] else {}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return {"seconds": min(seconds), "gigabytes": peak, **norms}


def apart(part: str, n: int, options: argparse.Namespace) -> dict:
    """`measure` in a process of its own."""
    command = [sys.executable, __file__, "--measure", part, "--lengths", str(n), "--threads", str(options.threads)]
    command += ["--probes", str(options.probes), "--repeats", str(options.repeats)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lengths", type=int, nargs="+", default=[2048, 8192])
    parser.add_argument("--peer-to", type=int, default=2048)
    parser.add_argument("--tokens", type=int, default=48, help="of the sensitivities")
    parser.add_argument("--probes", type=int, default=52)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--measure", choices=PARTS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.measure:
        print(json.dumps(measure(options.measure, options.lengths[0], options.probes, options.repeats)))
        return
    print(f"{models.DEFAULT}, {options.threads} threads, torch {torch.__version__}")
    print("tokens part        seconds  peak GB")
    for n in options.lengths:
        for part in PARTS[: 2 if n <= options.peer_to else 1]:
            found = apart(part, n, options)
            print(f"{n:6} {part:10} {found['seconds']:8.1f} {found['gigabytes']:8.2f}", flush=True)
    exact, random = (apart(part, options.tokens, options) for part in PARTS[2:])
    for part, found in (("exact", exact), ("randomised", random)):
        print(f"{options.tokens:6} {part:10} {found['seconds']:8.1f} {found['gigabytes']:8.2f}", flush=True)
    truth, norms = torch.tensor(exact["norms"]), torch.tensor(random["norms"])
    errors = (norms / truth - 1).abs()
    told = (torch.tensor(random["errors"]) / truth).mean()
    print(
        f"{options.probes} directions: {exact['seconds'] / random['seconds']:.1f} times less time; "
        f"root mean square error {errors.square().mean().sqrt():.1%}, largest {errors.max():.1%}, mean error bar {told:.1%}"
    )


if __name__ == "__main__":
    main()
