"""One training step of Tree-NeighborsMatch here and in PyTorch Geometric, in one run.

python benchmarks/gnn.py --depths 3 4 5 6 7 --kinds gcn gin gat ggnn --threads 2
"""

import argparse
import statistics
import time

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn import GATConv, GatedGraphConv, GCNConv, GINConv, TransformerConv

from course.training import gnn


class Reference(nn.Module):
    """The released model in PyTorch Geometric, on all nodes of all trees, with a `gnn.Network`'s
    weights.
    """

    def __init__(self, network: gnn.Network, kind: str):
        super().__init__()
        self.kind, self.fully_adjacent = kind, network.fully_adjacent
        self.keys = nn.Embedding.from_pretrained(network.keys.weight.detach().clone(), freeze=False)
        self.values = nn.Embedding.from_pretrained(
            network.values.weight.detach().clone(), freeze=False
        )
        if network.questions:
            self.questions = nn.Embedding.from_pretrained(
                network.questions.weight.detach().clone(), freeze=False
            )
        width = self.keys.embedding_dim
        self.convolutions = nn.ModuleList(
            convolution(kind, width, layer) for layer in network.layers
        )
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in network.norms)
        self.readout = nn.Linear(width, network.readout.out_features, bias=False)
        self.to(network.keys.weight.dtype)
        self.norms.load_state_dict(network.norms.state_dict())
        self.readout.load_state_dict(network.readout.state_dict())

    def forward(self, features: Tensor, edges: Tensor) -> Tensor:
        trees, nodes, parts = features.shape
        tables = (
            (self.keys, self.values, self.questions) if parts == 3 else (self.keys, self.values)
        )
        x = sum(
            table(part.flatten()) for table, part in zip(tables, features.unbind(-1), strict=True)
        )
        for number, layer in enumerate(self.convolutions, 1):
            if self.fully_adjacent and number == len(self.convolutions):
                edges = torch.stack(
                    [
                        torch.arange(trees * nodes),
                        torch.arange(trees).repeat_interleave(nodes) * nodes,
                    ]
                )
            new = layer(x, edges)
            new = F.relu(new) if self.kind in ("gcn", "gin") else new
            x = new if self.kind == "ggnn" else x + new
            x = self.norms[number - 1](x) if self.norms else x
        return self.readout(x[::nodes])


def convolution(kind: str, width: int, layer: nn.Module) -> nn.Module:
    """The layer of PyTorch Geometric that `layer` must equal, with its weights."""
    if kind == "gcn":
        state = {"lin.weight": layer.weight.T, "bias": layer.bias}
        conv = GCNConv(width, width)
    elif kind == "gin":
        parts = [(nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU()) for _ in range(2)]
        conv = GINConv(nn.Sequential(*parts[0], *parts[1]))
        state = {"eps": torch.zeros(1)}
        for linear, norm, place in zip(layer.linears, layer.batch_norms, (0, 3), strict=True):
            state |= {f"nn.{place}.{name}": value for name, value in linear.state_dict().items()}
            state |= {f"nn.{place + 1}.{name}": value for name, value in norm.state_dict().items()}
    elif kind == "gat":
        state = {"lin.weight": layer.weight.T, "bias": layer.bias}
        state |= {"att_src": layer.source, "att_dst": layer.target}
        conv = GATConv(width, width // gnn.HEADS, heads=gnn.HEADS)
    elif kind == "ggnn":
        state = {"weight": layer.weight[None]}
        state |= {f"rnn.{name}": value for name, value in layer.gru.state_dict().items()}
        conv = GatedGraphConv(width, 1)
    else:
        state = {f"lin_{name}.weight": getattr(layer, name).T for name in ("query", "key", "value")}
        conv = TransformerConv(width, width, bias=False, root_weight=False)
        state["lin_skip.weight"] = conv.lin_skip.weight
    conv = conv.to(next(layer.parameters()).dtype)
    conv.load_state_dict(state)
    return conv


def edges(task: gnn.TreeNeighborsMatch, trees: int) -> Tensor:
    """The edges of this many trees side by side: (2, trees (2 nodes - 1))."""
    return (task.edges[:, None] + (torch.arange(trees) * task.nodes)[:, None]).flatten(1)


def steps(kind: str, task: gnn.TreeNeighborsMatch, size: int, width: int = 32):
    """Two functions, ours and PyTorch Geometric's, that each take one training step on the same
    examples.
    """
    examples = task.train[torch.randperm(len(task.train))[:size]]
    network = gnn.build(kind, task.depth, width)
    reference = Reference(network, kind)
    features, tree_edges, label = (
        task.features(examples),
        edges(task, len(examples)),
        task.batch(examples).label,
    )

    def step(model, forward):
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)

        def once():
            optimizer.zero_grad()
            F.cross_entropy(forward(), label).backward()
            optimizer.step()

        return once

    ours = step(network, lambda: network(task.batch(examples)))
    return ours, step(reference, lambda: reference(features, tree_edges))


def seconds(functions, repeats: int) -> list[list[float]]:
    """Times of each function, called in turn so that a busy machine slows all of them."""
    times = [[] for _ in functions]
    for _ in range(repeats + 1):
        for function, spent in zip(functions, times, strict=True):
            start = time.perf_counter()
            function()
            spent.append(time.perf_counter() - start)
    return [spent[1:] for spent in times]


def median_ratio(here: list[float], there: list[float]) -> float:
    """Median over the repeats: each compares two steps taken one right after the other."""
    return statistics.median(b / a for a, b in zip(here, there, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--depths", type=int, nargs="+", default=[3, 4, 5, 6, 7])
    parser.add_argument("--kinds", nargs="+", default=["gcn", "gin", "gat", "ggnn"])
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    print(f"batch {options.batch}, width 32, {options.threads} threads, torch {torch.__version__}")
    print("depth kind  here ms  PyG ms  trees/s here  trees/s PyG  ratio")
    for depth in options.depths:
        task = gnn.TreeNeighborsMatch(depth)
        for kind in options.kinds:
            times = seconds(steps(kind, task, options.batch), options.repeats)
            here, there = map(statistics.median, times)
            rates = (
                f"{options.batch / here:12.0f} {options.batch / there:12.0f} "
                f"{median_ratio(*times):6.1f}"
            )
            print(f"{depth:5} {kind:5} {1e3 * here:7.1f} {1e3 * there:7.1f} {rates}", flush=True)


if __name__ == "__main__":
    main()
