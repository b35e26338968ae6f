"""Save and load the decoders that the course has trained, each with its model card.

The weights are a safetensors file. The model card beside it is a JSON file that says how to train
the decoder again. It has the arguments of the decoder, the task and its vocabulary, the training
settings and results, and the hash of the weights. `load` refuses weights that do not fit their
card.
"""

import dataclasses
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from course import training
from course.build import files
from course.training import tasks
from helpers import data, require
from helpers.transformer import Decoder

TASKS = {"Counting": tasks.Counting, "RunningCount": tasks.RunningCount, "Copying": tasks.Copying}


class Trained(NamedTuple):
    """Hold a trained decoder with its task and its model card.

    Attributes:
        model: the decoder.
        task: the task that the decoder was trained for.
        card: the content of the model card, which is a JSON file.
    """

    model: Decoder
    task: Any
    card: dict


def names() -> list[str]:
    """List the names of the checkpoints that come with the course, for use with `load`.

    >>> "copying" in names()
    True
    """
    return sorted(path.stem for path in (data.folder() / "checkpoints").glob("*.safetensors"))


def save(path: str | Path, model: Decoder, task: Any, decoder: dict, **facts: Any) -> Path:
    """Write the weights to `path` and the model card to the same path with the ending .json.

    Args:
        decoder: the arguments that `model` was made with, except the vocabulary, which comes from
            the task.
        facts: further entries of the card, such as what the model is, how it was trained, the
            command, its results and limits.

    Raises:
        ValueError: if path does not end in .safetensors, the model is not what `decoder` makes, or
            the task is not from `course.training.tasks`.
        OSError: if the files cannot be written.
    """
    path = files.weights(path)
    require.instance("model", model, Decoder, "a Decoder")
    if type(task).__name__ not in TASKS:
        raise ValueError(f"task must be one of {', '.join(TASKS)}, not {require.brief(task)}")
    problem = _misfit(_decoder(decoder, task, "decoder"), model.state_dict())
    if problem:
        raise ValueError(
            f"decoder must hold the arguments with which the model was made, but {problem}"
        )
    save_file({name: value.contiguous() for name, value in model.state_dict().items()}, path)
    settings = {field.name: getattr(task, field.name) for field in dataclasses.fields(task)}
    card = {
        **facts,
        "task": {"name": type(task).__name__, **settings},
        "vocabulary": list(task.vocabulary),
        "decoder": decoder,
        "parameters": sum(value.numel() for value in model.parameters()),
        "sha256": _digest(path),
    }
    path.with_suffix(".json").write_text(json.dumps(card, indent=1, ensure_ascii=False) + "\n")
    return path


def load(name: str | Path) -> Trained:
    """Load a checkpoint of the course by its name, or a checkpoint of yours by its path.

    Raises:
        ValueError: if the file does not exist, its card is missing or broken, or the weights do not
            fit the card.

    >>> trained = load("copying")
    >>> tokens, _ = trained.task.encode(["1110"], ["last"])
    >>> trained.task.vocabulary[trained.model(tokens)[0, -1].argmax()]
    '0'
    """
    require.instance("name", name, str | Path, "the name of a checkpoint, or a path")
    path = Path(name)
    if path.suffix != ".safetensors":
        path = (
            data.folder()
            / "checkpoints"
            / f"{require.choice('name', str(name), names())}.safetensors"
        )
    card_path = path.with_suffix(".json")
    if not path.is_file():
        raise ValueError(f"name must be an existing file, not {str(path)!r}")
    if not card_path.is_file():
        raise ValueError(
            f"name must be a checkpoint with its card, but its folder has no {card_path.name}"
        )
    card = _read(card_path)
    kind = require.choice(f"the task in {card_path.name}", card["task"].get("name"), TASKS)
    settings = {
        key: tuple(v) if isinstance(v, list) else v
        for key, v in card["task"].items()
        if key != "name"
    }
    try:
        task = TASKS[kind](**settings)
    except TypeError as error:
        raise ValueError(
            f"name must have a card that fits the course, but {card_path.name} does not: {error}"
        ) from None
    if list(task.vocabulary) != card["vocabulary"]:
        raise ValueError(
            f"name must have a card that fits the course, but checkpoint {path.name} "
            "was trained with another vocabulary"
        )
    with torch.device("meta"):  # only shapes, because a card may ask for more memory than there is
        sketch = _decoder(card["decoder"], task, card_path.name)
    try:
        weights = load_file(path)
    except SafetensorError as error:
        raise ValueError(
            f"name must be a complete checkpoint, but {path.name} is damaged "
            f"({str(error).splitlines()[0]})"
        ) from None
    if problem := _misfit(sketch, weights):
        raise ValueError(f"name must fit its card {card_path.name}, but {problem}")
    if _digest(path) != card["sha256"]:
        raise ValueError(
            f"name must fit its card {card_path.name}, but the SHA-256 of the weights "
            "differs from the one in the card"
        )
    model = _decoder(card["decoder"], task, card_path.name)
    model.load_state_dict(weights)
    return Trained(model.eval().requires_grad_(False), task, card)


def copying(
    trained: Trained, lengths: Sequence[int], place: str, digit: str
) -> dict[str, Float[Tensor, " lengths"]]:
    """Measure how well a copying decoder distinguishes strings of n digits as n grows.

    In each string, all digits are the same except `digit`, which is at the position that the
    question asks for ("first" or "last").

    Returns:
        Five measures, each with one value per length.
        "margin": the logit of `digit` minus the logit of the other digit, which is positive if the
            answer is right.
        "control": the same difference of logits for a string in which all digits are the other
            digit. The control is negative if the answer is right.
        "distance": the L1 distance between the hidden states that give these two differences.
        "repeated": the L1 distance between the hidden states for the string and for the same string
            with its last digit repeated, as in Theorem B.3 of Barbero et al. (2024).
        "swapped": how much `digit` changes the logits if the question asks for the other position.
            It should be zero.

    Raises:
        ValueError: if `trained` is not a checkpoint of a copying decoder, a length is below 2, or
            the place or the digit is unknown.

    >>> found = copying(load("copying"), [4, 8], "last", "0")
    >>> bool((found["margin"] > 0).all()), bool((found["control"] < 0).all())
    (True, True)
    """
    require.instance("trained", trained, Trained, "what checkpoints.load returns")
    model, task = (
        trained.model,
        require.instance("the task of trained", trained.task, tasks.Copying, "Copying"),
    )
    lengths = require.integers("lengths", lengths, 2, 100_000)
    swapped = tasks.PLACES[1 - tasks.PLACES.index(require.choice("place", place, tasks.PLACES))]
    other = "1" if require.choice("digit", digit, ("0", "1")) == "0" else "0"
    ids = [task.vocabulary.index(each) for each in (digit, other)]
    rows = []
    for n in lengths:
        same = other * n
        string = digit + same[1:] if place == "first" else same[1:] + digit
        tokens, targets = task.encode(
            [string, same, string + string[-1], string, same], [place] * 3 + [swapped] * 2
        )
        with torch.no_grad():
            states = model.states(tokens)[targets != training.UNASKED]
            logits = model.head(states)
        margin = (logits[:, ids[0]] - logits[:, ids[1]]).double()
        distance = (states[0] - states[1:3]).double().abs().sum(-1)
        rows.append(torch.stack([margin[0], margin[1], *distance, margin[3] - margin[4]]))
    return dict(
        zip(
            ("margin", "control", "distance", "repeated", "swapped"),
            torch.stack(rows).T,
            strict=True,
        )
    )


def _digest(path: str | Path) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def _read(path: Path) -> dict:
    try:
        card = json.loads(path.read_text())
    except ValueError:
        raise ValueError(
            f"name must have a card in JSON, but {path.name} is not readable JSON"
        ) from None
    wanted = {"task": dict, "decoder": dict, "vocabulary": list, "sha256": str}
    if not isinstance(card, dict) or not all(
        isinstance(card.get(key), kind) for key, kind in wanted.items()
    ):
        raise ValueError(
            f"name must have a card with {', '.join(wanted)}, but {path.name} lacks at "
            "least one of them"
        )
    return card


def _decoder(arguments: object, task: Any, name: str) -> Decoder:
    with torch.random.fork_rng(
        devices=[]
    ):  # these first weights are thrown away and must not change anyone else's random numbers
        try:
            return Decoder(len(task.vocabulary), **arguments)
        except TypeError:
            raise ValueError(
                f"{name} must hold arguments of Decoder, not {require.brief(arguments)}"
            ) from None


def _misfit(model: Decoder, weights: dict[str, torch.Tensor]) -> str:
    """Name the first weight that does not fit the model card, or return "" if all weights fit."""
    ours = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    theirs = {name: tuple(value.shape) for name, value in weights.items()}
    for name in sorted({*ours, *theirs}):
        if ours.get(name) != theirs.get(name):
            there, here = theirs.get(name, "missing"), ours.get(name, "missing")
            return f"{name} is {there} in the weights and {here} in the card"
    return ""
