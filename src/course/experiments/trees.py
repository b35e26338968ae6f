"""The table of runs on Tree-NeighborsMatch, the problem of Alon & Yahav (2021)."""

import argparse
import functools
from collections.abc import Sequence

from course.experiments import sweep
from helpers import compute
from helpers.gnn import DEPTHS, KEYS, KINDS, LAYERS, fit


def main(arguments: Sequence[str] | None = None) -> None:
    """Fill a table of training runs, one row a run; rows that are there already are not run again."""
    parser = argparse.ArgumentParser(prog="python -m course.experiments.trees", description=main.__doc__)
    parser.add_argument("--depths", type=int, nargs="+", default=[*DEPTHS], choices=DEPTHS)
    parser.add_argument("--kinds", nargs="+", default=[*KINDS], choices=KINDS)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--fully-adjacent", action="store_true", help="the last layer hears all nodes")
    parser.add_argument("--key", choices=KEYS, default="root", help="who knows the question")
    parser.add_argument("--epochs", type=int, default=100, help="a run ends before if it makes no error for one")
    parser.add_argument("--device", default=compute.device().type)
    sweep.options(parser)
    chosen = parser.parse_args(arguments)
    changed = chosen.fully_adjacent or chosen.key != "root"
    kinds = [kind for kind in chosen.kinds if kind in LAYERS or not changed]
    if chosen.epochs < 1:
        parser.error(f"--epochs must be 1 or more, not {chosen.epochs}")
    if not kinds:
        parser.error("'attention' and 'star' take no fully adjacent layer and no other --key than root")
    settings = sweep.grid(
        depth=chosen.depths,
        kind=kinds,
        seed=chosen.seeds,
        width=[chosen.width],
        fully_adjacent=[chosen.fully_adjacent],
        key=[chosen.key],
        epochs_allowed=[chosen.epochs],
    )
    sweep.run_line(parser, arguments, functools.partial(fit, device=chosen.device), settings)


if __name__ == "__main__":
    main()
