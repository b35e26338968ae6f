"""The training loop: the same numbers from the same seed, also when it was stopped and went on."""

import functools
import math

import pytest
import torch

from course import training
from course.runs.slashes import copying
from helpers.transformer import Decoder

BATCHES = functools.partial(copying, offset=1, length=8, batch=2)


def small(seed=0):
    torch.manual_seed(seed)
    return Decoder(64, width=16, heads=1, layers=1)


def weights(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def test_a_run_that_was_stopped_ends_as_one_that_was_not(tmp_path):
    whole, first, second = small(), small(), small(seed=1)
    expected = training.fit(whole, BATCHES, steps=8, warmup=4)
    training.fit(first, BATCHES, steps=5, warmup=4, checkpoint=tmp_path / "run.safetensors")
    seen = []
    losses = training.fit(
        second, BATCHES, steps=8, warmup=4, checkpoint=tmp_path / "run.safetensors",
        watch=lambda step, model: seen.append(step), every=2,
    )  # fmt: skip
    assert losses == expected
    assert torch.equal(weights(second), weights(whole))
    assert seen == [6, 8]


def test_a_step_is_adam_on_the_cross_entropy_of_the_targets_that_count():
    ours, theirs = small(), small()
    training.fit(ours, BATCHES, steps=1, rate=1e-3, warmup=0, seed=2)
    ids, targets = BATCHES(torch.Generator().manual_seed(2 * 1_000_003 + 1))
    optimiser = torch.optim.Adam(theirs.parameters(), lr=1e-3)
    chosen = theirs(ids).log_softmax(-1)[:, 1:].gather(-1, targets[:, 1:, None])
    (-chosen.mean()).backward()
    optimiser.step()
    torch.testing.assert_close(weights(ours), weights(theirs), rtol=1e-5, atol=1e-7)


def test_it_watches_from_the_first_step_and_leaves_the_model_ready():
    model, seen = small(), []
    training.fit(model, BATCHES, steps=5, watch=lambda step, m: seen.append(step), every=2)
    assert seen == [0, 2, 4, 5]
    assert not model.training


def ragged(generator):
    """Say each token again, in rows of a length of the batch's own."""
    n = int(torch.randint(4, 9, (), generator=generator))
    ids = torch.randint(1, 64, (2, n), generator=generator)
    targets = ids.clone()
    targets[:, ::2] = training.UNASKED
    return ids, targets


def test_models_trained_together_are_trained_as_each_alone():
    alone, together = [small(s) for s in range(3)], [small(s) for s in range(3)]
    expected = [
        training.fit(m, ragged, steps=12, rate=0.01, seed=s)
        for m, s in zip(alone, (5, 6, 7), strict=True)
    ]
    losses = training.fit_together(together, ragged, steps=12, rate=0.01, seeds=(5, 6, 7))
    torch.testing.assert_close(torch.tensor(losses), torch.tensor(expected), rtol=1e-4, atol=1e-5)
    for one, other in zip(alone, together, strict=True):
        torch.testing.assert_close(weights(one), weights(other), rtol=1e-3, atol=1e-4)
        assert not other.training
    shifted = training.fit_together([small(0)], ragged, steps=12, rate=0.01, seeds=(6,))
    assert abs(shifted[0][-1] - expected[0][-1]) > 0.01, (
        "the control: other batches give another loss"
    )


def test_a_model_that_is_done_leaves_and_the_others_go_on_as_before():
    models, asked = [small(s) for s in range(3)], []

    def until(model):
        asked.append(next(k for k, other in enumerate(models) if other is model))
        return asked[-1] == 1 or (asked[-1] == 0 and len(asked) > 3)

    losses = training.fit_together(models, ragged, steps=12, until=until, every=4)
    assert asked == [0, 1, 2, 0, 2]
    assert [len(each) for each in losses] == [8, 4, 12]
    for seed, each in enumerate(losses):
        alone = small(seed)
        expected = training.fit(alone, ragged, steps=len(each), seed=seed)
        torch.testing.assert_close(torch.tensor(each), torch.tensor(expected), rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(weights(models[seed]), weights(alone), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [({"models": []}, "models"), ({"models": [small(), Decoder(64, 32, 1, 1)]}, "same architecture"), ({"models": [3]}, "models"),
     ({"seeds": (1,)}, "seeds"), ({"steps": 0}, "steps"), ({"until": 3}, "until"), ({"every": 0}, "every"),
     ({"rate": 1e30}, "rate must be smaller"), ({"batches": 3}, "batches")],
)  # fmt: skip
def test_bad_input_to_training_together_is_named(arguments, named):
    with pytest.raises(ValueError, match=named):
        training.fit_together(
            **{"models": [small(), small(1)], "batches": ragged, "steps": 5} | arguments
        )


@pytest.mark.parametrize(("wrong", "share"), [(0, 1.0), (1, 0.0)])
def test_accuracy_counts_the_targets_that_count(wrong, share):
    class Knows(torch.nn.Linear):
        def forward(self, ids):
            return torch.nn.functional.one_hot((ids.roll(1, 1) + wrong) % 64, 64).float()

    assert training.accuracy(Knows(1, 1), BATCHES) == share


@pytest.mark.parametrize(
    ("arguments", "named"),
    [({"steps": 0}, "steps"), ({"steps": 2.5}, "steps"), ({"every": 0}, "every"), ({"warmup": -1}, "warmup"), ({"model": None}, "model"),
     ({"rate": math.nan}, "rate"), ({"rate": 0}, "rate"), ({"seed": -1}, "seed"), ({"watch": 3}, "watch"), ({"batches": 3}, "batches"),
     ({"rate": 1e30}, "rate must be smaller"), ({"weights": torch.ones(2, 2)}, "weights"), ({"batches": lambda g: None}, "batches"),
     ({"batches": lambda g: (torch.zeros(2, 3).long(), torch.zeros(2, 4).long())}, "batches")],
)  # fmt: skip
def test_bad_input_is_named(arguments, named):
    with pytest.raises(ValueError, match=named):
        training.fit(**{"model": small(), "batches": BATCHES, "steps": 5} | arguments)


def test_a_checkpoint_of_another_run_and_targets_that_none_counts_are_named(tmp_path):
    training.fit(small(), BATCHES, steps=1, checkpoint=tmp_path / "run.safetensors")
    with pytest.raises(ValueError, match="checkpoint"):
        training.fit(small(), BATCHES, steps=5, seed=9, checkpoint=tmp_path / "run.safetensors")
    with pytest.raises(ValueError, match="count"):
        training.accuracy(small(), BATCHES, count=0)
    with pytest.raises(ValueError, match="target that counts"):
        training.accuracy(
            small(), lambda g: (torch.zeros(1, 2).long(), torch.full((1, 2), training.UNASKED))
        )


def test_along_a_cosine_the_last_step_changes_nothing():
    """The rate is 0 there: one step fewer leaves the same weights, and without the cosine it does not."""
    for cosine in (True, False):
        before, after = small(), small()
        seen = []
        training.fit(
            before,
            BATCHES,
            steps=6,
            cosine=cosine,
            watch=lambda s, m, seen=seen: seen.append(weights(m)),
            every=1,
        )
        assert torch.equal(seen[-1], seen[-2]) == cosine
        training.fit(after, BATCHES, steps=6, cosine=cosine)
        assert torch.equal(weights(before), weights(after))


def test_a_weight_of_zero_leaves_a_token_out():
    """Two targets, one of them without weight: the loss is that of the other one alone."""

    def both(generator):
        return torch.tensor([[1, 2]]), torch.tensor([[3, 4]])

    def one(generator):
        return torch.tensor([[1, 2]]), torch.tensor([[3, training.UNASKED]])

    weighed = torch.ones(64)
    weighed[4] = 0
    models = [small(), small()]
    losses = [
        training.fit(models[0], both, steps=3, weights=weighed),
        training.fit(models[1], one, steps=3),
    ]
    assert losses[0] == pytest.approx(losses[1], abs=1e-6)
