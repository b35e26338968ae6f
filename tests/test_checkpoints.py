"""Checkpoints of the course: they load, do what their cards say, and what does not fit its card is refused."""

import json
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file

from course import training
from course.training import checkpoints
from course.training.tasks import Copying
from helpers import data
from helpers.transformer import Decoder

SMALL = {"width": 16, "heads": 2, "layers": 1, "encoding": "NoPE", "window": 3}


def small(folder):
    torch.manual_seed(0)
    model = Decoder(len(Copying().vocabulary), **SMALL)
    return model, checkpoints.save(
        folder / "small.safetensors", model, Copying(lengths=(2, 5)), SMALL, what="a test"
    )


@pytest.mark.parametrize("name", checkpoints.names())
def test_a_checkpoint_does_what_its_card_says(name):
    trained = checkpoints.load(name)
    assert {"what", "trained", "results", "limits", "command"} <= set(trained.card)
    results = trained.card["results"]
    n = trained.task.lengths[1]
    inside = training.accuracy(trained.model, replace(trained.task, size=256), count=4)
    there = training.accuracy(
        trained.model, replace(trained.task, lengths=(n, n), size=256), count=1
    )
    assert inside == pytest.approx(results["accuracy at the lengths of training"], abs=0.005)
    assert there == pytest.approx(results[f"accuracy at length {n}"], abs=0.01)
    assert inside > 0.9, "it can do its task at the lengths of training"
    size = (data.folder() / "checkpoints" / f"{name}.safetensors").stat().st_size
    assert size < 600_000
    assert not trained.model.training
    assert not any(value.requires_grad for value in trained.model.parameters())


def test_what_was_saved_comes_back(tmp_path):
    model, path = small(tmp_path)
    trained = checkpoints.load(path)
    assert trained.task == Copying(lengths=(2, 5))
    assert trained.card["what"] == "a test"
    tokens, _ = trained.task.encode(["0110"], ["first"])
    torch.testing.assert_close(trained.model(tokens), model(tokens))
    assert trained.model.blocks[0].window == 3


def test_loading_leaves_the_random_numbers_of_others_alone(tmp_path):
    _, path = small(tmp_path)
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    checkpoints.load(path)
    assert torch.equal(torch.rand(3), expected)


def change(path, **values):
    """Write other values into a checkpoint's card."""
    card = json.loads(path.with_suffix(".json").read_text())
    path.with_suffix(".json").write_text(json.dumps(card | values))


def other_weights(path):
    save_file({name: value + 1 for name, value in load_file(path).items()}, path)


def fewer_weights(path):
    save_file(
        {name: value for name, value in load_file(path).items() if name != "head.weight"}, path
    )


FAULTS = {
    "of another width": (
        lambda path: change(path, decoder=SMALL | {"width": 32}),
        "but .* in the weights and .* card",
    ),
    "more than the memory holds": (
        lambda path: change(path, decoder=SMALL | {"width": 10**7}),
        "but .* in the weights and",
    ),
    "of another depth": (
        lambda path: change(path, decoder=SMALL | {"layers": 2}),
        "blocks.1.* missing in the weights",
    ),
    "other weights": (other_weights, "SHA-256 of the weights differs"),
    "a weight is gone": (fewer_weights, "head.weight is missing"),
    "another vocabulary": (lambda path: change(path, vocabulary=["a", "b"]), "another vocabulary"),
    "an argument nobody knows": (
        lambda path: change(path, decoder={"depth": 3}),
        "arguments of Decoder",
    ),
    "a task nobody knows": (
        lambda path: change(path, task={"name": "Sorting"}),
        "must be one of Counting",
    ),
    "a setting nobody knows": (
        lambda path: change(path, task={"name": "Copying", "x": 1}),
        "card that fits",
    ),
    "no hash": (lambda path: change(path, sha256=None), "must have a card with"),
    "no JSON": (lambda path: path.with_suffix(".json").write_text("{"), "not readable JSON"),
    "no card": (lambda path: path.with_suffix(".json").unlink(), "no small.json"),
    "cut off": (lambda path: path.write_bytes(path.read_bytes()[:100]), "damaged"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_does_not_fit_its_card_is_refused(fault, tmp_path):
    _, path = small(tmp_path)
    spoil, said = FAULTS[fault]
    spoil(path)
    with pytest.raises(ValueError, match=said) as caught:
        checkpoints.load(path)
    assert "\n" not in str(caught.value)


def test_what_cannot_be_saved_is_named(tmp_path):
    model, _ = small(tmp_path)
    with pytest.raises(ValueError, match="decoder must hold the arguments"):
        checkpoints.save(tmp_path / "x.safetensors", model, Copying(), SMALL | {"width": 32})
    with pytest.raises(ValueError, match="path must end in"):
        checkpoints.save(tmp_path / "x.pt", model, Copying(), SMALL)
