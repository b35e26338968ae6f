"""Provide the decoder of the page "Build it".

The workshop uses these parts, and so do readers who have not built a decoder of their own. A
`mistake` is a short text that makes a part do something other than what the step asks for. The
checks recognise a learner's mistake by comparing the learner's part with a part that has this
mistake.
"""

import copy
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional

from course.build import files
from course.maths import normalizers
from helpers import compute, data, require, rope
from helpers.words import translated

FILE = "my-decoder.safetensors"
NOTES = "my-notes.json"
# the decoder that the code of the page gives with seed 0
COURSE = data.folder() / "workshop/decoder.safetensors"
# Settings of the page "Train it here" that these parts have, too.
DESIGN = {
    "positions": ("learned", "none", "RoPE", "mixed"),
    "window": (0, 8),
    "map": ("softmax", "stick"),
}


def softmax(logits: Tensor) -> Tensor:
    """Return the attention weights for logits, over the last axis."""
    return logits.softmax(-1)


def batch(n: int, generator: torch.Generator, rows: int = 32) -> tuple[Tensor, Tensor]:
    """Draw sequences of n pairs and four questions, with their targets, as the page does."""
    order = torch.rand(rows, 8, generator=generator).argsort(1)
    asked_keys, others = order[:, :4], order[:, 4:]
    key = others.gather(1, torch.randint(4, (rows, n), generator=generator))
    place = torch.rand(rows, n, generator=generator).argsort(1)[:, :4]
    key = key.scatter(1, place, asked_keys)
    value = torch.randint(4, (rows, n), generator=generator)
    ids = torch.cat([13 + 4 * key + value, 5 + asked_keys], 1)
    targets = torch.full_like(ids, -100)
    targets[:, -4:] = 1 + value.gather(1, place)
    return ids, targets


def rows(n: int, seed: int = 0, count: int = 32) -> tuple[Tensor, Tensor]:
    """Return the sequences and targets for this seed."""
    return batch(n, torch.Generator().manual_seed(seed), count)


@torch.no_grad()
def right(model: nn.Module, n: int, rows: int = 64) -> float:
    """Return a decoder's accuracy on sequences of n pairs that were not drawn in training."""
    ids, targets = batch(n, torch.Generator().manual_seed(10**6 + n), rows)
    return float((model(ids).argmax(-1) == targets)[targets != -100].double().mean())


def attended(q: Tensor, k: Tensor, settings: dict, mistake: str = "") -> Tensor:
    weigh, window = settings.get("weigh", softmax), settings.get("window")
    weigh = {"no map": lambda x: x, "own map": softmax, "queries": lambda x: x.softmax(-2)}.get(
        mistake, weigh
    )
    n, d = q.shape[-2:]
    q, k = (k, q) if mistake == "exchanged" else (q, k)
    root = {"no root": 1.0, "d": d, "tokens": n**0.5, "width": (d * q.shape[1]) ** 0.5}.get(
        mistake, d**0.5
    )
    logits = q @ k.mT / root
    gap = torch.arange(n)[:, None] - torch.arange(n)
    far = (
        n
        if window is None or mistake == "no window"
        else window + {"one more": 1, "one less": -1}.get(mistake, 0)
    )
    hidden = {
        "open": gap >= n,
        "itself alone": gap <= 0,
        "no mask": gap >= far,
        "turned": (gap > 0) | (gap <= -far),
        "not itself": (gap <= 0) | (gap >= far),
        "window alone": gap >= far if window else gap < 0,
        "two sides": gap.abs() >= far if window else gap < 0,
    }.get(mistake, (gap < 0) | (gap >= far))
    if mistake == "after":
        return weigh(logits).masked_fill(hidden, 0.0)
    return weigh(logits.masked_fill(hidden, {"zero": 0.0, "finite": -1e9}.get(mistake, -torch.inf)))


class Block(nn.Module):
    def __init__(self, turn: Callable | None = None, mistake: str = "", **settings: Any):
        super().__init__()
        self.turn, self.mistake, self.settings = turn, mistake, settings
        self.qkv, self.out = nn.Linear(32, 96, bias=False), nn.Linear(32, 32, bias=False)
        self.mlp = nn.Sequential(nn.Linear(32, 128), nn.GELU(), nn.Linear(128, 32))
        self.norm1, self.norm2 = nn.LayerNorm(32), nn.LayerNorm(32)

    def weights(self, x: Tensor) -> tuple[Tensor, Tensor]:
        mistake = self.mistake
        x = {
            "raw": lambda x: x,
            "norm2 first": self.norm2,
            "normed twice": lambda x: self.norm1(self.norm1(x)),
        }.get(mistake, self.norm1)(x)
        parts = self.qkv(x)
        if mistake == "turn early" and self.turn:
            q, k, v = parts.chunk(3, -1)
            parts = torch.cat([self.turn(q), self.turn(k), v], -1)
        if mistake == "by head":
            q, k, v = parts.unflatten(-1, (4, 3, 8)).permute(3, 0, 2, 1, 4)
        elif mistake == "entries":
            q, k, v = parts.unflatten(-1, (3, 8, 4)).permute(2, 0, 4, 1, 3)
        elif mistake == "rows":
            q, k, v = (part.reshape(len(x), 4, -1, 8) for part in parts.chunk(3, -1))
        else:
            q, k, v = parts.unflatten(-1, (3, 4, 8)).permute(2, 0, 3, 1, 4)
        q, k, v = {"kqv": (k, q, v), "vqk": (k, v, q), "qvk": (q, v, k)}.get(mistake, (q, k, v))
        turn = self.turn if self.turn and mistake not in ("no turn", "turn early") else lambda x: x
        q, k = (
            q if mistake == "keys alone" else turn(q),
            k if mistake == "queries alone" else turn(k),
        )
        v = turn(v) if mistake == "values too" else v
        settings = {
            name: setting
            for name, setting in self.settings.items()
            if mistake not in ("no settings", f"no {name}")
        }
        return attended(q, k, settings), v

    def forward(self, x: Tensor) -> Tensor:
        mistake, (A, v) = self.mistake, self.weights(x)
        heads = (A @ v).flatten(2) if mistake == "merged" else (A @ v).transpose(1, 2).flatten(2)
        heads = heads.reshape(x.shape) if mistake == "merged" else heads
        y = heads if mistake == "no out" else self.out(heads)
        y = y + {"no residual": 0.0, "normed residual": self.norm1(x)}.get(mistake, x)
        return y if mistake == "half" else y + self.mlp(self.norm2(y))


class Places(nn.Module):
    def __init__(self, scattered: bool = False):
        super().__init__()
        self.table, self.scattered = nn.Embedding(160, 32), scattered

    def forward(self, n: int) -> Tensor:
        drawn = (
            torch.rand(160).argsort()[:n].sort().values
            if self.training
            else torch.linspace(0, 159, n).round()
        )
        return self.table(drawn.long() if self.scattered else torch.arange(n))


class Decoder(nn.Module):
    def __init__(self, *blocks: nn.Module, where: nn.Module | None = None, tokens: int = 45):
        super().__init__()
        self.embedding, self.head = nn.Embedding(tokens, 32), nn.Linear(32, tokens, bias=False)
        self.blocks, self.norm, self.where = nn.ModuleList(blocks), nn.LayerNorm(32), where

    def embed(self, ids: Tensor) -> Tensor:
        if ids.ndim != 2:
            raise ValueError(
                "ids must have the shape (rows, n), which is (1, n) for one row, not "
                f"{tuple(ids.shape)}"
            )
        return self.embedding(ids) + (self.where(ids.shape[1]) if self.where else 0)

    def states(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        return self.norm(x)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.states(self.embed(ids)))


def attend(
    q: Tensor, k: Tensor, weigh: Callable[[Tensor], Tensor] = softmax, window: int | None = None
) -> Tensor:
    """Return causal attention weights (rows, heads, n, n).

    Queries and keys have shape (rows, heads, n, d).
    """
    return attended(q, k, {"weigh": weigh, "window": window})


def train(model: nn.Module, steps: int = 400, seed: int = 0) -> nn.Module:
    """Train a decoder as on the page, with AdamW at a learning rate of 0.005.

    The sequences have 4 to 16 pairs.
    """
    generator = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.0)
    for _ in range(steps):
        n = int(torch.randint(4, 17, (1,), generator=generator))
        ids, targets = batch(n, generator)
        loss = functional.cross_entropy(model(ids).flatten(0, 1), targets.flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return model.eval()


def exchanged(
    model: Decoder, turn: Callable | None = None, where: bool = True, **settings: Any
) -> Decoder:
    """Return a copy of a decoder with the same weights in which some parts are replaced.

    You can replace the rotation and, for example, the function for the attention weights. Settings
    that you do not give stay as they are. If `where` is false, the copy has no table of positions,
    and it has no rotation unless `turn` gives one.
    """
    changed = copy.deepcopy(model)
    for block in changed.blocks:
        block.turn, block.settings = (
            turn or (block.turn if where else None),
            block.settings | settings,
        )
    changed.where = changed.where if where else None
    return changed.eval()


def untrained(model: Decoder, seed: int = 0) -> Decoder:
    """Return a copy of a decoder with new weights, drawn by PyTorch's own rules from a seed."""
    fresh = copy.deepcopy(model)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(require.seed(seed))
        for module in fresh.modules():
            getattr(module, "reset_parameters", lambda: None)()
    return fresh


# One's own decoder, from page to page -------------------------------------------------------------


def shelf() -> Path:
    """Return the folder in which a reader's decoder is kept.

    On Colab this is the mounted drive, and otherwise the parent of the notebook's folder.
    """
    drive, folder = Path("/content/drive/MyDrive"), Path.cwd()
    if compute.building():  # on the book's pages we leave no file in the sources
        return Path(tempfile.gettempdir())
    if drive.is_dir():
        return drive
    return folder if folder.name == "content" else folder.parent


def keep(model: nn.Module, path: Path | str | None = None, **facts: str) -> Path:
    """Write a decoder's weights to one file, and print the path.

    By default the file is `my-decoder.safetensors` in `shelf()`.

    Raises:
        ValueError: if the model is not a module, or path does not end in .safetensors.
        OSError: if the file cannot be written.
    """
    require.instance("model", model, nn.Module, "a decoder")
    path = files.weights(shelf() / FILE if path is None else path)
    # so that `mine` can see if the decoder has parts that these pages do not know
    if "right" not in facts:
        facts["right"] = json.dumps({"16": round(right(model, 16), 3)})
    save_file(
        {name: weights.contiguous() for name, weights in model.state_dict().items()}, path, facts
    )
    print(translated(f"Saved in {_named(path)}."))
    return path


def _named(path: Path) -> str:
    """Return the text that tells the reader where a file is.

    On a built page the text has only the name of the file, because the folder is one of the machine
    that built the page.
    """
    return path.name if compute.building() else str(path)


def note(chapter: str, sentence: str, **numbers: float) -> None:
    """Save the reader's sentence about a decoder and its numbers for one chapter.

    The file is `my-notes.json` in the decoder's folder. We print each number, and for comparison
    the number of the reference decoder if there is one.

    Raises:
        ValueError: if chapter or sentence is not a text, a number is not finite, or the file does
            not contain notes.
    """
    require.text("chapter", chapter, empty=False)
    require.text("sentence", sentence, empty=False)
    path, numbers = (
        shelf() / NOTES,
        {name: round(require.number(name, number), 3) for name, number in numbers.items()},
    )
    saved = notes(path)
    saved[chapter] = {"sentence": sentence, **numbers}
    path.write_text(json.dumps(saved, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for name, number in notes().get(chapter, {}).items() if numbers else ():
        if name in numbers:
            reference = translated(f"the reference decoder has {number:.2f}")
            print(f"{numbers[name]:.2f}   {reference}   {translated(name)}")
    confirmation = translated(
        "Saved, but your sentence is not finished yet."
        if unfinished(sentence)
        else (f"Saved. Your sentences so far: {len(saved)}.")
    )
    print(f"{confirmation} ({_named(path)})")


def unfinished(sentence: str) -> bool:
    """Return whether a sentence still has a gap: three dots, an ellipsis, or a line to write on.

    >>> unfinished("Mine loses a prompt first to …, at n = 8."), unfinished("It hears itself.")
    (True, False)
    """
    return any(gap in sentence for gap in ("...", "…", "__"))


def notes(path: Path | None = None) -> dict[str, dict]:
    """Read a file of notes as a dictionary keyed by chapter.

    Without a path, the notes are those on the reference decoder. If the file does not exist, the
    dictionary is empty.

    Raises:
        ValueError: if the file does not contain notes.
    """
    read = path is None or (path.exists() and not compute.building())
    path = path or data.folder() / "workshop/notes.json"
    if path.is_dir():
        raise ValueError(f"{path.name} must be a file, not a folder")
    saved = _object(path.name, path.read_bytes() if read else "{}")
    for chapter, row in saved.items():
        for name, value in require.instance(
            f"{path.name}, chapter {chapter},", row, dict, "an object"
        ).items():
            what = f"{path.name}, chapter {chapter}, {name!r}"
            require.text(what, value) if name == "sentence" else require.number(what, value)
    return saved


def _object(what: str, text: str | bytes) -> dict:
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        parsed = text
    return require.instance(what, parsed, dict, "an object of JSON, in braces")


def mine(path: Path | str | None = None) -> Decoder:
    """Load the reader's own decoder, or the reference decoder if there is none.

    We read the file that `keep` wrote, and print which decoder was loaded.

    Raises:
        ValueError: if there is no file at the given path, or if the file is damaged or contains no
            decoder of this page.
    """
    if (
        path is not None
        and not Path(require.instance("path", path, str | Path, "a path")).is_file()
    ):
        raise ValueError(f"path must be an existing file, not {str(path)!r}")
    path = Path(path or shelf() / FILE)
    is_own = path.is_file() and not compute.building()
    model = read(path if is_own else COURSE)
    missing = (
        f"The reference decoder, because there is no {FILE} here yet. “Build it” makes this file."
    )
    print(translated("Your own decoder." if is_own else missing))
    return model


def _turned(x: Tensor) -> Tensor:
    return rope.turn(x, torch.arange(x.shape[-2]), rope.frequencies(x.shape[-1], 1e4), "half")


def _of_the_page(design: dict, layer: int) -> dict[str, Any]:
    """Return the block settings of a decoder that the page "Train it here" saved.

    If the file does not describe the decoder's design, the result is empty.
    """
    for name, value in design.items():
        known = DESIGN[require.choice("what its design names", name, DESIGN)]
        if value not in known:
            raise ValueError(
                f"the {name} in its design must be one of {', '.join(map(str, known))}, not "
                f"{require.brief(value)}. If a decoder has parts that Build it does not "
                "have, read it with course.runs.entries.kept"
            )
    positions, weights = design.get("positions", "learned"), design.get("map", "softmax")
    mixed = positions == "mixed"
    settings = {"turn": _turned} if positions == "RoPE" or (mixed and layer == 0) else {}
    if weights == "stick" and not (mixed and layer == 0):
        settings["weigh"] = normalizers.stick_breaking
    return settings | ({"window": 8} if design.get("window") and layer == 0 else {})


def read(path: Path) -> Decoder:
    """Load the decoder in a file that `keep` or the page "Train it here" wrote.

    Raises:
        ValueError: if the file is damaged, or holds no decoder of these pages.
    """
    try:
        weights = load_file(path)
        with safe_open(path, "pt") as file:
            facts = file.metadata() or {}
        design, measured = (
            _object(f'its "{name}"', facts.get(name, "{}")) for name in ("design", "right")
        )
        shape = (
            tuple(weights["embedding.weight"].shape) if "embedding.weight" in weights else (45, 32)
        )
        if shape not in ((45, 32), (46, 32)):
            raise ValueError(
                f"its embedding.weight has shape {shape}, but these pages need 45 tokens "
                "and width 32. If it is a checkpoint of the course, put its card "
                f"{path.stem}.json beside it"
            )
        blocks = {name.split(".")[1] for name in weights if name.startswith("blocks.")}
        where = Places() if "where.table.weight" in weights else None
        blocks_ = (Block(**_of_the_page(design, k)) for k in range(len(blocks) or 1))
        model = Decoder(*blocks_, where=where, tokens=shape[0]).eval()
        for name, tensor in model.state_dict().items():
            if name not in weights:
                raise ValueError(f"its {name} is missing")
            require.tensor(f"its {name}", weights[name].float(), " ".join(map(str, tensor.shape)))
        if more := weights.keys() - model.state_dict():
            raise ValueError(f"its {min(more)} does not belong to such a decoder")
        model.load_state_dict(weights)
        require.tensor("what it answers", model(rows(16)[0]).detach(), "rows n tokens")
        accuracy = right(model, 16)
        then = require.number('"16" in its "right"', measured.get("16", accuracy), 0, 1)
        if abs(accuracy - then) > 0.15:
            raise ValueError(
                f"the accuracy at 16 pairs was {then:.2f} after training, but it is {accuracy:.2f} "
                "if we build the decoder from the parts of these pages, so the decoder has "
                "another number of heads, a window, or other positions"
            )
    except (SafetensorError, ValueError) as error:
        why = error if isinstance(error, ValueError) else "it is not a complete safetensors file"
        raise ValueError(
            f"path must be a decoder of “Build it”, but {path.name} is not: {why}"
        ) from None
    return model.requires_grad_(False)


def make() -> None:
    """Train the reference decoder again, as `python -m course.exercises.workshop` does."""
    began = time.time()
    torch.manual_seed(0)
    model = train(Decoder(Block(), Block(), where=Places()))
    COURSE.parent.mkdir(exist_ok=True)
    facts = {
        "command": "python -m course.exercises.workshop",
        "what": (
            "the decoder of Build it: two blocks of four heads, width 32, learned places; "
            "400 steps, seed 0"
        ),
        "right": json.dumps({n: round(right(model, n), 3) for n in (16, 64)}),
        "torch": torch.__version__,
        "seconds": f"{time.time() - began:.0f}",
    }
    keep(model, COURSE, **facts)
    print(facts)
