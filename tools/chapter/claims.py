"""Measure the claims of chapter NUMBER.

Each function belongs to a row of the chapter's table, and this row states the claim in words.
"""

import torch

from course.evidence.rules import Numbers, Threshold, rule
from helpers import attention

LENGTHS = (8, 64, 512)
EVEN = Threshold(1e-9)


@rule(
    holds=(f"off by less than {EVEN:.0e} at each length", lambda off: max(off) < EVEN),
    nothing=("the equal weights of the last row only", lambda: {"off": [0.2, 0.06, 0.01]}),
)
def NAME_first_share() -> Numbers:
    """Measure how far the sink score of uniform causal attention is from H_n / n."""
    scores = [
        float(attention.sink_score(attention.uniform(attention.causal_mask(n)))) for n in LENGTHS
    ]
    harmonic = [float((1 / torch.arange(1, n + 1).double()).sum()) / n for n in LENGTHS]
    return {"off": [abs(a - b) for a, b in zip(scores, harmonic, strict=True)], "scores": scores}
