import pandas as pd
import torch

from course.claims import CORRECTED, FAILS, HOLDS


def _hiding(late: float, early: float, control: float = 0.0, spread: float = 2.0, heir: float = 100.0):
    """A made-up table of one text: losses above 3 nats, and how far a change spreads without the sink."""
    rows = {
        (0, 1): (0.0, 1.0, 200.0, 0.4),
        (1, 1): (early, 1.0, heir, heir / 300),
        (1, 25): (late, spread, 2.0, 0.01),
        (6, 25): (control, 1.0, 200.0, 0.4),
    }
    names = ("loss", "spread", "times", "attention")
    found = [{"token": t, "since": s, "heir": 2} | dict(zip(names, row, strict=True)) for (t, s), row in rows.items()]
    table = pd.DataFrame(found)
    chosen = {
        "_hiding": lambda token, since, model: table[(table.token == token) & (table.since == since)].reset_index()
    }
    parts = pd.DataFrame({"loss": 1.0, "spread": [spread, 1.0, 1.0]}, index=["mass", "value", "heads"])
    parts.index = pd.MultiIndex.from_product([parts.index, ["text"]], names=["change", "text"])
    return chosen | {"_parts": lambda: parts}


def _columns(choose):
    """One frame of columns for each experiment."""
    return {"_hiding": lambda token, since, model: pd.DataFrame(choose(token, since))}


def _profile(fresh: torch.Tensor, trained: torch.Tensor):
    return {
        "_profile": lambda text, network="trained", model=None: (trained if network == "trained" else fresh).double()
    }


def _ranks(rollout: list[float], mask: list[float], values: list[float]):
    table = pd.DataFrame([rollout, mask, values], index=["rollout", "mask alone", "norm-based rollout"])
    return {"_proxies": lambda model, kept: table}


FALLING = torch.linspace(2, 0.5, 48)
U = torch.cat([torch.tensor([9.0]), torch.linspace(2, 0.5, 46), torch.tensor([3.0])])
TURNED = torch.cat([U[:1], U[1:-1].flip(0), U[-1:]])
VALLEY = torch.cat([torch.full((16,), 2.0), torch.ones(16), torch.full((16,), 3.0)])
EVIDENCE = {
    "early_tokens_have_more_influence": {
        HOLDS: _profile(FALLING, FALLING),
        CORRECTED: _profile(FALLING, VALLEY),
        FAILS: _profile(VALLEY, VALLEY),
    },
    "primacy_is_topology_recency_is_learned": {
        HOLDS: _profile(U, VALLEY),
        CORRECTED: _profile(U, U),
        FAILS: _profile(VALLEY, VALLEY),
    },
    "untrained_network_has_a_u": {
        HOLDS: _profile(U, U),
        CORRECTED: _profile(TURNED, U),
        FAILS: _profile(FALLING, U),
    },
    "massive_activations_go_with_the_sink": {
        HOLDS: _hiding(2, 0),
        CORRECTED: _columns(lambda token, since: {"times": [99.0], "attention": [0.4], "heir": [2]}),
        FAILS: _hiding(2, 0, heir=3),
    },
    "sinks_slow_mixing": {
        HOLDS: _hiding(2, 0),
        CORRECTED: _columns(
            lambda token, since: {"spread": [1.0, 1.0] if token != 1 else [2.0, 1.0] if since > 1 else [1.1, 1.1]}
        ),
        FAILS: _hiding(2, 0, spread=0.9),
    },
    "hiding_the_sink_breaks_the_model": {
        HOLDS: _hiding(2, 2),
        CORRECTED: _hiding(2, 0),
        FAILS: _hiding(0.1, 0),
    },
    "sink_values_are_small": {
        HOLDS: {"_value_ratio": lambda tokens, model: torch.full((2, 3), 0.2)},
        CORRECTED: {"_value_ratio": lambda tokens, model: torch.tensor([[0.2, 0.7, 0.3]])},
        FAILS: {"_value_ratio": lambda tokens, model: torch.full((2, 3), 1.5)},
    },
    "rollout_is_no_jacobian": {
        HOLDS: _ranks([0.1, 0.1], [0.2, 0.2], [0.3, 0.3]),
        CORRECTED: _ranks([0.1, 0.1, 0.5], [0.2, 0.2, 0.2], [0.3, 0.3, 0.3]),  # above the mask in one text of three
        FAILS: _ranks([0.9, 0.9], [0.2, 0.2], [0.3, 0.3]),
    },
}
