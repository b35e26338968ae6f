import pandas as pd
import torch


def hiding(late: float, early: float, control: float = 0.0, spread: float = 2.0, heir: float = 100.0):
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


def columns(choose):
    """One frame of columns for each experiment."""
    return {"_hiding": lambda token, since, model: pd.DataFrame(choose(token, since))}


def profile(fresh: torch.Tensor, trained: torch.Tensor):
    return {
        "_profile": lambda text, network="trained", model=None: (trained if network == "trained" else fresh).double()
    }


def ranks(rollout: list[float], mask: list[float], values: list[float]):
    table = pd.DataFrame([rollout, mask, values], index=["rollout", "mask alone", "norm-based rollout"])
    return {"_proxies": lambda model, kept: table}


FALLING = torch.linspace(2, 0.5, 48)
U = torch.cat([torch.tensor([9.0]), torch.linspace(2, 0.5, 46), torch.tensor([3.0])])
TURNED = torch.cat([U[:1], U[1:-1].flip(0), U[-1:]])
VALLEY = torch.cat([torch.full((16,), 2.0), torch.ones(16), torch.full((16,), 3.0)])
UPWARD, DOWNWARD = [0.1, 0.2, 0.3], [0.3, 0.2, 0.1]


def squashed(tree, causal):
    """The worst-heard node's share at three numbers of layers, by the share kept."""
    found = {"tree": tree, "causal attention": causal}
    return {
        "measures.worst_heard": lambda layers, kept: {name: shares(kept) for name, shares in found.items()},
        "measures.measured_share": lambda: 0.9,
    }
