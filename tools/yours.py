"""Compute the numbers of the drawing `yours`.

They are the embedded model's attention weights of two heads on its words, and GPT-4o's answer when
it was asked to count the ones. `python tools/yours.py` writes `numbers/yours.json`, which takes a
few seconds on one CPU core.
"""

import json
from pathlib import Path

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from course.chapter4 import measures
from helpers import models, probe

ROOT = Path(__file__).resolve().parents[1]

TEXT = "the cat saw the dog and the dog saw the bird but the bird saw the sky above the cat"
ASKED = "GPT-4o"
ONES = 314


def places() -> tuple[Bool[Tensor, "n n"], Bool[Tensor, "n n"]]:
    """Return which earlier positions belong to each word, in two ways.

    The first result marks the position of the previous word. The second marks the earlier positions
    that have the same word. Rows are the words, after a row for the first token.
    """
    words = ["", *TEXT.split()]
    same = torch.tensor([[a == b for b in words] for a in words]).tril(-1)
    return torch.eye(len(words), dtype=torch.bool).roll(-1, 1).tril(-1), same


def strongest(maps: Float[Tensor, "l h n n"], where: Bool[Tensor, "n n"]) -> tuple[int, int]:
    """Return the layer and head with the largest mean attention weight on the given positions.

    The mean is over the rows that have such a position.
    """
    share = (maps * where).sum(-1)[..., where.any(1)].mean(-1)
    return divmod(int(share.argmax()), maps.shape[1])


@torch.inference_mode()
def measured() -> dict:
    """Return both heads with their weights, and GPT-4o's answer from the talk's table."""
    model = models.load(attention="eager")
    words = [probe.encode(model, f" {word}") for word in TEXT.split()]
    ids = torch.cat([probe.first_token(model), *words])
    if any(len(word) != 1 for word in words):
        raise ValueError("the text must consist of words that are one token each")
    maps = torch.stack(model.model.model(ids[None], output_attentions=True).attentions)[:, 0]
    heads = [strongest(maps, where) for where in places()]
    table = measures.answers().query("model == @ASKED and writing == 'ones'")
    return {
        "model": "SmolLM2-135M",
        "text": TEXT,
        "heads": heads,
        "maps": [
            [[round(x, 4) for x in row[: i + 1]] for i, row in enumerate(maps[head].tolist())]
            for head in heads
        ],
        "ones": ONES,
        "asked": ASKED,
        "answer": int(table.answer.item()),
    }


if __name__ == "__main__":
    text = json.dumps(measured(), separators=(",", ":"))
    (ROOT / "src/course/drawing/numbers/yours.json").write_text(text + "\n")
