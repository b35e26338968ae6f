"""Present a checkpoint of the course to a report as an equivalent GPT-NeoX with its own tokens.

The vocabulary of a checkpoint is that of its task. So we can only ask it what it was trained for,
and read its hidden states.
"""

import dataclasses
import itertools
import re
from collections.abc import Sequence
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

from course import training
from course.training import checkpoints, tasks
from course.training.checkpoints import Trained
from helpers import compute
from helpers.models import LanguageModel

STRINGS = 20  # the number of strings of each length


def checkpoint(name: str) -> Trained | None:
    """Load the course checkpoint with this name or this .safetensors path.

    The result is None if the name refers to another model.

    >>> checkpoint("copying").task.lengths, checkpoint("org/copying")
    ((1, 16), None)
    """
    path = Path(name).expanduser()
    if path.is_dir() or not (name in checkpoints.names() or path.suffix == ".safetensors"):
        return None
    return checkpoints.load(name if name in checkpoints.names() else path)


class Tokens:
    """Provide the part of a tokenizer that the measures use, for the questions of a task."""

    chat_template = None
    eos_token_id = None

    def __init__(self, name: str, task: tasks.Counting | tasks.Copying):
        self.name, self.vocabulary = name, task.vocabulary
        self.bos_token_id = self.vocabulary.index(tasks.START)
        answers = (
            {str(k) for k in range(task.most + 1)} if isinstance(task, tasks.Counting) else set()
        )
        symbols = sorted(set(self.vocabulary) - answers, key=len, reverse=True)
        self.cut = re.compile("|".join(map(re.escape, symbols)) + r"|(\s+)|(.)")

    def __len__(self) -> int:
        return len(self.vocabulary)

    def __call__(self, text: str, **_) -> dict[str, list[int]]:
        pieces = [piece for piece in self.cut.finditer(text) if piece[1] is None]
        for piece in pieces:
            if piece[2] is not None:
                raise ValueError(
                    f"this measure needs a text with {piece[2]!r}, which is not one of the "
                    f"{len(self)} tokens of {self.name}"
                )
        return {"input_ids": [self.vocabulary.index(piece[0]) for piece in pieces]}

    def decode(self, ids: Sequence[int] | Tensor) -> str:
        return " ".join(self.vocabulary[int(k)] for k in ids)


def language_model(
    trained: Trained, name: str, dtype: str = "fp32", device: str | None = None
) -> LanguageModel:
    """Load the weights of a course decoder into a GPT-NeoX that computes the same.

    The measures that read language models then work for the decoder as well.

    Raises:
        ValueError: if the decoder encodes positions in another way than by RoPE, has a window, or
            has no norms. A decoder without positions is allowed.
    """
    card = trained.card["decoder"]
    turns = {"RoPE": card.get("turning", 1.0), "NoPE": 0.0}.get(card.get("encoding", "NoPE"))
    if turns not in (0.0, 1.0) or card.get("window") is not None or not card.get("norm", True):
        raise ValueError(
            f"{name} must have RoPE or no positions, no window, and norms, "
            "because a report can read no other checkpoint"
        )
    ours, blocks = trained.model, list(trained.model.blocks)
    width, heads = ours.head.in_features, blocks[0].heads
    config = GPTNeoXConfig(
        vocab_size=len(trained.task.vocabulary),
        hidden_size=width,
        num_hidden_layers=len(blocks),
        num_attention_heads=heads,
        intermediate_size=blocks[0].mlp[0].out_features,
        hidden_act="gelu",
        use_parallel_residual=False,
        attention_bias=False,
        max_position_embeddings=trained.task.lengths[1] + 2,
        bos_token_id=1,
        eos_token_id=None,
        pad_token_id=0,
        rope_parameters={
            "rope_type": "default",
            "rope_theta": card.get("base", 1e4),
            "partial_rotary_factor": turns,
        },
    )
    weights = {
        "gpt_neox.embed_in.weight": ours.embedding.weight,
        "lm_head.weight": ours.head.weight,
        **{
            f"gpt_neox.final_layer_norm.{part}": getattr(ours.norm, part)
            for part in ("weight", "bias")
        },
    }
    for k, block in enumerate(blocks):
        parts = {
            "attention.query_key_value.weight": block.qkv.weight.view(3, heads, -1, width)
            .transpose(0, 1)
            .reshape(-1, width),
            "attention.dense.weight": block.out.weight,
        }
        for theirs, module in (
            ("input_layernorm", block.norm1),
            ("post_attention_layernorm", block.norm2),
            ("mlp.dense_h_to_4h", block.mlp[0]),
            ("mlp.dense_4h_to_h", block.mlp[2]),
        ):
            parts |= {f"{theirs}.{part}": getattr(module, part) for part in ("weight", "bias")}
        weights |= {f"gpt_neox.layers.{k}.{part}": value for part, value in parts.items()}
    network = GPTNeoXForCausalLM._from_config(
        config, dtype=compute.dtype(dtype), attn_implementation="sdpa"
    )
    network.load_state_dict(weights)
    network.config._name_or_path = name
    place = compute.device(None if device == "auto" else device)
    return LanguageModel(network.eval().requires_grad_(False).to(place), Tokens(name, trained.task))


def copying_margins(
    model: LanguageModel, task: tasks.Copying, lengths: Sequence[int]
) -> dict[tuple[str, str], tuple[Float[Tensor, " lengths"], Float[Tensor, " lengths"]]]:
    """Measure `collapse.copying_margins` for a decoder that was trained to copy.

    The strings consist of ones with another digit at the first or last position, written in the
    words of the task.
    """
    zero, one = (task.vocabulary.index(digit) for digit in "01")
    margins: dict[tuple[str, str], tuple] = {}
    for place, question in itertools.product(tasks.PLACES, tasks.PLACES):
        rows = []
        for digit in "01":
            strings = [
                digit + "1" * (n - 1) if place == "first" else "1" * (n - 1) + digit
                for n in lengths
            ]
            logits = [_last(model, task.encode([string], [question])[0]) for string in strings]
            rows.append(
                torch.stack([logit[0, zero] - logit[0, one] for logit in logits]).float().cpu()
            )
        margins[place, question] = (rows[0], rows[1])
    return margins


def answers(model: LanguageModel, task: tasks.Counting, lengths: Sequence[int]) -> list[dict]:
    """Let the decoder answer `STRINGS` counting questions of each length.

    The strings are drawn as in training, and the result has one row per string.
    """
    rows = []
    for n in lengths:
        questions = dataclasses.replace(task, lengths=(n, n), size=STRINGS)
        tokens, targets = questions.encode(questions.strings(torch.Generator().manual_seed(n)))
        predicted = _last(model, tokens).argmax(-1).tolist()
        for right, answered in zip(
            targets[targets != training.UNASKED].tolist(), predicted, strict=True
        ):
            right, answered = task.vocabulary[right], task.vocabulary[answered]
            rows.append(
                {
                    "length": n,
                    "count": int(right),
                    "answer": int(answered) if answered.isdigit() else None,
                }
            )
    return rows


@torch.inference_mode()
def _last(model: LanguageModel, tokens: Tensor) -> Float[Tensor, "b v"]:
    """Return the logits at the last token of questions that all have the same length."""
    return model.model(tokens.to(model.model.device), use_cache=False).logits[:, -1]
