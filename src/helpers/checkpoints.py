"""The course's own trained decoders: weights as safetensors, beside each a model card that says how to make them again.

A card is a JSON file with the decoder's arguments, the task's and its vocabulary, how it was trained, with what result,
and the hash of the weights. `load` refuses what does not fit its card.
"""

import dataclasses
import json
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from helpers import data, require, tasks
from helpers.transformer import Decoder

TASKS = {"Counting": tasks.Counting, "Copying": tasks.Copying}


class Trained(NamedTuple):
    """A decoder that was trained, the task it was trained for, and its model card."""

    model: Decoder
    task: Any
    card: dict


def names() -> list[str]:
    """The checkpoints that come with the course.

    >>> "copying" in names()
    True
    """
    return sorted(path.stem for path in (data.folder() / "checkpoints").glob("*.safetensors"))


def save(path: str | Path, model: Decoder, task: Any, decoder: dict, **facts: Any) -> Path:
    """Write the weights to `path` and the card beside them, with the ending .json.

    Args:
        decoder: the arguments that `model` was made with, but for the vocabulary, which is the task's.
        facts: what else the card shall say: what it is, how it was trained, the command, results, limits.

    Raises:
        ValueError: path does not end in .safetensors, the model is not what `decoder` makes, or the task is none of
            `helpers.tasks`.
        OSError: the files cannot be written.
    """
    path = Path(require.instance("path", path, str | Path, "a path"))
    if path.suffix != ".safetensors" or not path.parent.is_dir():
        raise ValueError(f"path must end in .safetensors, in a folder that is there, not {str(path)!r}")
    require.instance("model", model, Decoder, "a Decoder")
    if type(task).__name__ not in TASKS:
        raise ValueError(f"task must be one of {', '.join(TASKS)}, not {require.said(task)}")
    problem = _misfit(_decoder(decoder, task, "decoder"), model.state_dict())
    if problem:
        raise ValueError(f"decoder must be the arguments that the model was made with, but {problem}")
    save_file({name: value.contiguous() for name, value in model.state_dict().items()}, path)
    settings = {field.name: getattr(task, field.name) for field in dataclasses.fields(task)}
    card = {
        **facts,
        "task": {"name": type(task).__name__, **settings},
        "vocabulary": list(task.vocabulary),
        "decoder": decoder,
        "parameters": sum(value.numel() for value in model.parameters()),
        "sha256": data.sha256(path),
    }
    path.with_suffix(".json").write_text(json.dumps(card, indent=1, ensure_ascii=False) + "\n")
    return path


def load(name: str | Path) -> Trained:
    """A checkpoint of the course by its name, or another one by the path of its .safetensors file.

    Raises:
        ValueError: there is none, its card is missing or broken, or the weights do not fit the card.

    >>> trained = load("copying")
    >>> tokens, _ = trained.task.encode(["1110"], ["last"])
    >>> trained.task.vocabulary[trained.model(tokens)[0, -1].argmax()]
    '0'
    """
    require.instance("name", name, str | Path, "the name of a checkpoint, or a path")
    path = Path(name)
    if path.suffix != ".safetensors":
        path = data.folder() / "checkpoints" / f"{require.choice('name', str(name), names())}.safetensors"
    card_path = path.with_suffix(".json")
    for file in (path, card_path):
        if not file.is_file():
            raise ValueError(f"name must be a checkpoint with its card, but there is no {file.name} beside it")
    card = _read(card_path)
    kind = require.choice(f"the task in {card_path.name}", card["task"].get("name"), TASKS)
    settings = {key: tuple(v) if isinstance(v, list) else v for key, v in card["task"].items() if key != "name"}
    try:
        task = TASKS[kind](**settings)
    except TypeError as error:
        raise ValueError(f"name must have a card that fits the course: {card_path.name} says {error}") from None
    if list(task.vocabulary) != card["vocabulary"]:
        raise ValueError(f"name must have a card that fits the course: {card_path.name} is of another vocabulary")
    model = _decoder(card["decoder"], task, card_path.name)
    try:
        weights = load_file(path)
    except SafetensorError as error:
        raise ValueError(f"name must be whole: {path.name} is damaged ({str(error).splitlines()[0]})") from None
    if problem := _misfit(model, weights):
        raise ValueError(f"name must fit its card {card_path.name}, but {problem}")
    if data.sha256(path) != card["sha256"]:
        raise ValueError(f"name must fit its card {card_path.name}, but the weights have another SHA-256")
    model.load_state_dict(weights)
    return Trained(model.eval().requires_grad_(False), task, card)


def _read(path: Path) -> dict:
    try:
        card = json.loads(path.read_text())
    except ValueError:
        raise ValueError(f"name must have a card in JSON, but {path.name} cannot be read") from None
    wanted = {"task": dict, "decoder": dict, "vocabulary": list, "sha256": str}
    if not isinstance(card, dict) or not all(isinstance(card.get(key), kind) for key, kind in wanted.items()):
        raise ValueError(f"name must have a card with {', '.join(wanted)}, which {path.name} lacks")
    return card


def _decoder(arguments: object, task: Any, name: str) -> Decoder:
    with torch.random.fork_rng(devices=[]):  # the first weights are thrown away: nobody else's numbers change
        try:
            return Decoder(len(task.vocabulary), **arguments)
        except TypeError:
            raise ValueError(f"{name} must hold arguments of Decoder, not {require.said(arguments)}") from None


def _misfit(model: Decoder, weights: dict[str, torch.Tensor]) -> str:
    """What does not fit, in words, or nothing."""
    ours = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    theirs = {name: tuple(value.shape) for name, value in weights.items()}
    for name in sorted({*ours, *theirs}):
        if ours.get(name) != theirs.get(name):
            return f"{name} is {theirs.get(name, 'missing')} in the weights and {ours.get(name, 'missing')} in the card"
    return ""
