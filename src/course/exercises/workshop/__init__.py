"""Check the decoder that a reader builds in "Build it".

Each step is an exercise with a table of common mistakes. We also have correct versions of all
parts. A correct part has an argument `mistake`, a word that makes the part do something other than
what the step asks for. `course/exercises/workshop.toml` has a sentence for each mistake. If a
learner's part returns the same as our part with a mistake, the learner reads the sentence for this
mistake.
"""

import copy
import functools
import inspect
import itertools
import math  # noqa: F401  the table of mistakes computes with it
from collections.abc import Callable
from typing import Any

import torch
from IPython.display import HTML
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor, nn
from torch.nn import functional
from torch.optim.optimizer import register_optimizer_step_pre_hook

from course import exercises as checks
from course.exercises import Case, Right, Wrong, compare, exercise, filled, run
from course.exercises.workshop import parts
from course.exercises.workshop.parts import Block, Decoder, Places, rows
from course.exercises.workshop.parts import attended as _attend
from course.exercises.workshop.parts import right as share_right
from course.maths import normalizers
from course.training import tasks
from helpers import differential, rope, show, style

NEEDLE = tasks.Retrieval()
QUESTIONS = tasks.Retrieval().asked
refuse, reason = (
    functools.partial(checks.refuse, globals()),
    functools.partial(checks.reason, globals()),
)


def _normal(*shape: int, seed: int = 0) -> Tensor:
    return checks.normal(*shape, seed=seed).float()


def drawn(model: nn.Module, seed: int = 0) -> nn.Module:
    """Return a copy of a module with random weights that are large enough to test every part.

    The weights of the norms are random, too.
    """
    noisy, generator = copy.deepcopy(model), torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weights in sorted(noisy.named_parameters()):
            noise = torch.randn(weights.shape, generator=generator)
            weights.copy_(
                1 + noise / 2
                if "norm" in name and name.endswith("weight")
                else noise / weights.shape[-1] ** 0.5
            )
    return noisy


def _loaded(name: str, model: Any, like: nn.Module) -> nn.Module:
    """Load the weights of our module into the learner's module.

    Raises:
        Wrong: if the answer is not a module, or has other weights.
    """
    if not isinstance(model, nn.Module):
        raise Wrong(f"{name} must be an `nn.Module`, not {checks.shown(model)}.")
    for key, value in vars(model).items():
        if isinstance(value, list) and any(isinstance(part, nn.Module) for part in value):
            raise Wrong(
                f"{name} keeps modules in a list, `{key}`, where PyTorch finds no weights. "
                "Use `nn.ModuleList`."
            )
    mine, theirs = (
        {key: tuple(x.shape) for key, x in module.state_dict().items()} for module in (model, like)
    )
    unexpected, missing = sorted(set(mine) - set(theirs)), sorted(set(theirs) - set(mine))
    complaints = (
        [(f"{name} has weights that the step does not ask for: {', '.join(unexpected)}.")]
        if unexpected
        else []
    )
    complaints += (
        [f"{name} has no {', '.join(missing)}, but the check loads weights by these names."]
        if missing
        else []
    )
    if complaints:
        raise Wrong(" ".join(complaints))
    for key, shape in theirs.items():
        if mine[key] != shape:
            raise Wrong(f"{name} has {key} of shape {mine[key]}, but expected {shape}.")
    model.load_state_dict(like.state_dict())
    return model.eval()


class Made:
    """Turn a learner's class or function into a function of the cases.

    An error message shows the learner's own line. The search for a repair needs `again`, which
    builds the answer again from an edited function.
    """

    def __init__(self, act: Callable, original: Any, again: Callable | None = None):
        self.act, self.__code__ = (
            act,
            getattr(inspect.unwrap(original) if original else original, "__code__", None),
        )
        if again:
            self.own, self.again = original, again

    def __call__(self, *arguments: Any) -> Any:
        return self.act(*arguments)


def _class(name: str, answer: Any) -> None:
    filled(name, answer)
    if not isinstance(answer, type) or not issubclass(answer, nn.Module):
        raise Wrong(
            f"{name} must be a class, `class {name}(nn.Module)`, not {checks.shown(answer)}."
        )


def _against(
    name: str,
    answer: Callable,
    solution: Callable,
    given: list[Case],
    *unseen: Case,
    like: Any = None,
) -> Right:
    """Run `compare` for a step. The mistakes use the same weights as our solution.

    These weights are those of `like`.
    """
    row = checks.tables(globals())[name]
    return compare(
        globals(),
        row["call"],
        answer,
        solution,
        given,
        row["mistakes"],
        tolerance=1e-4,
        unseen=unseen,
        like=like,
    )


def by_place(x: Tensor) -> Tensor:
    """Scale every token by its position and every entry of a head by its index, to test rotations.

    Without this scaling, a wrong rotation might not change the result.
    """
    place, entry = torch.arange(x.shape[-2]), torch.arange(x.shape[-1])
    return x * (1 + place[:, None]) * (1 + entry / 8)


# Build it -----------------------------------------------------------------------------------------


@exercise
def embedding(ids: Any, table: Any, head: Any, logits: Any, loss: Any) -> Right:
    """Check the embedding and the head, and the loss of the first batch."""
    for name, part in (("embedding", table), ("head", head), ("logits", logits), ("loss", loss)):
        filled(name, part)
    refuse("embedding", "parts", table=table, head=head)
    predicted, value = (
        checks.tensor("logits", logits),
        checks.number("loss", getattr(loss, "detach", lambda: loss)()),
    )
    refuse("embedding", "shapes", logits=predicted)
    expected = head(table(ids)).detach().double()
    refuse("embedding", "numbers", logits=predicted, wanted=expected, ids=ids)
    flat, answers = expected.flatten(0, 1), _answers(ids).flatten()
    right = float(functional.cross_entropy(flat, answers))
    if not _near(value, right):
        refuse("embedding", "losses", loss=value, right=right, flat=flat, asked=answers, near=_near)
    refuse("embedding", "start", loss=value, table=table, head=head)
    return Right(
        f"45 tokens go in, 45 numbers come out, and the loss {value:.2f} is near log 45, which is "
        "3.81."
    )


def _near(one: float, other: Tensor | float) -> bool:
    return abs(one - float(other)) < 1e-3 * max(1.0, abs(one))


def _pairs(*shape: int, **settings: Any) -> tuple:
    return _normal(*shape, seed=1), _normal(*shape, seed=2), settings


@exercise
def attend(softmax: Any, answer: Any) -> Right:
    """Check causal attention weights, with a window and with another function than softmax."""
    logits = _normal(2, 3, 4, 5)
    mine = checks.tensor("softmax(logits)", run("softmax(logits)", softmax, logits))
    large = checks.tensor("softmax(logits)", run("softmax(1000 * logits)", softmax, 1_000 * logits))
    refuse(
        "attend", "softmaxes", gives=lambda x: _close(mine, x), logits=logits.double(), large=large
    )
    filled("attend", answer)
    cases = [
        Case("q, k", _pairs(2, 4, 9, 8)),
        Case("q, k", _pairs(1, 4, 5, 2)),
        Case("q, k, window=3", _pairs(2, 4, 9, 8, window=3)),
        Case("q, k, window=1", _pairs(1, 2, 6, 4, window=1)),
        Case("q, k, window=20", _pairs(1, 2, 6, 4, window=20)),
        Case("q, k, weigh=torch.sigmoid", _pairs(2, 4, 9, 8, weigh=torch.sigmoid)),
        Case("q, k, weigh=torch.isneginf", _pairs(1, 2, 6, 4, weigh=torch.isneginf)),
    ]
    again = lambda original: lambda q, k, settings: original(q, k, **settings)  # noqa: E731
    unseen = Case("q, k", _pairs(1, 3, 7, 6)), Case("q, k, window=4", _pairs(2, 2, 8, 4, window=4))
    _against("attend", Made(again(answer), answer, again), _attend, cases, *unseen)
    sentence = (
        "your weights are causal softmax weights, and they are also right with a window and with "
        "another `weigh`."
    )
    return Right(sentence, lambda: _drawn_map(answer))


def _numbers(values: Tensor) -> str:
    return ", ".join(f"{value:.2f}" for value in values.tolist())


def _drawn_map(answer: Callable) -> HTML:
    """Draw the learner's attention weights for 20 tokens.

    The queries and keys are those of the reference decoder.
    """
    model, ids = parts.read(parts.COURSE), rows(16, 5, 1)[0]
    with torch.no_grad():
        block, x = model.blocks[0], model.embed(ids)
        q, k, _ = block.qkv(block.norm1(x)).unflatten(-1, (3, 4, 8)).permute(2, 0, 3, 1, 4)
    weights = checks.tensor("attend(q, k)", run("attend(q, k)", answer, q, k))[0]
    place = NEEDLE.answers(ids)[0, -QUESTIONS:]
    attention = weights[:, torch.arange(16, 20), place]  # indexed by head and question
    head = int(attention.mean(1).argmax())
    names = NEEDLE.text(ids[0]).split()
    ax = Figure(figsize=(7.0, 6.4)).subplots()
    ax.imshow(weights[head], cmap="Blues", vmin=0, vmax=1)
    ax.set(xlabel="key: who is looked at", ylabel="query: who asks")
    ax.set_xticks(range(20), names, rotation=90)
    ax.set_yticks(range(20), names)
    ax.grid(False)
    for row, column in zip(range(16, 20), place.tolist(), strict=True):
        ax.add_patch(
            Rectangle(
                (column - 0.5, row - 0.5), 1, 1, fill=False, edgecolor=style.COLOURS["vermillion"]
            )
        )
    finding = (
        "The weights of your attend for queries and keys of a trained decoder, in "
        f"head {head + 1} of its first block. The darker a cell is, the larger is the weight. A "
        "frame marks the pair that answers a question. In this head, the four questions give their "
        f"pairs {_numbers(attention[head])}. A weight near 0 here is not your mistake, because "
        "each question needs only one head that finds its pair. In the best of the four heads, the "
        f"weights are {_numbers(attention.amax(0))}."
    )
    return show(ax, alt=finding, caption=finding)


BLOCKS = {
    "": {},
    "turn=by_place": {"turn": by_place},
    "window=3": {"window": 3},
    "weigh=torch.sigmoid": {"weigh": torch.sigmoid},
}


@exercise
def block(answer: Any) -> Right:
    """Check the weights, the values and the output of a block that has our weights."""
    _class("Block", answer)
    like = drawn(Block())
    module, x = _loaded("Block()", answer(), like), _normal(2, 5, 32, seed=4)
    refuse("block", mlp=module.mlp, like=like, x=x)

    def mine(settings: dict) -> nn.Module:
        return _loaded("Block()", answer(**settings), like)

    def theirs(settings: dict, mistake: str) -> nn.Module:
        return _loaded("Block()", Block(mistake=mistake, **settings), like)

    cases = [Case(text, (_normal(2, 9, 32, seed=3), settings)) for text, settings in BLOCKS.items()]
    cases.append(Case("", (_normal(3, 4, 32, seed=5), {})))
    for k, name in enumerate(("weights", "values")):
        answered = Made(
            lambda x, settings, k=k: _two(mine(settings).weights(x))[k],
            getattr(answer, "weights", None),
        )
        _against(
            name,
            answered,
            lambda x, settings, mistake="", k=k: theirs(settings, mistake).weights(x)[k],
            cases,
        )
    answered = Made(lambda x, settings: mine(settings)(x), answer.forward)
    _against(
        "block",
        answered,
        lambda x, settings, mistake="": theirs(settings, mistake)(x),
        cases,
        like=like,
    )
    calm, busy = module(x), run("Block()(x)", Made(lambda: module.train()(x), answer.forward))
    refuse("block", "training", same=_close(busy, calm))
    return Right(
        "your weights, values and output equal those of the reference block, also with `turn`, a "
        "window and another `weigh`."
    )


def _two(pair: Any) -> tuple:
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise Wrong("weights(x) must return two tensors, the weights and the values.")
    return pair


@exercise
def decoder(places: Any, answer: Any) -> Right:
    """Check the positions of a decoder, the input of its first block, and its logits."""
    _class("Places", places)
    _class("Decoder", answer)
    like = drawn(Places(), 1)
    table = Made(lambda n: _loaded("Places()", places(), like)(n), places.forward)
    _against("places", table, lambda n: like(n), [Case(f"{n}", (n,)) for n in (1, 7, 100)])
    makers = {
        "": lambda kind: kind(Block(), Block()),
        "where=Places()": lambda kind: kind(Block(), Block(), where=Places()),
        "tokens=50": lambda kind: kind(Block(), tokens=50),
    }
    likes = {text: drawn(make(Decoder), 2) for text, make in makers.items()}
    cases = [
        Case(f"{text or 'blocks'}, {n} pairs", (text, rows(n, count=3)[0]))
        for text in makers
        for n in (4, 9)
    ]

    def mine(text: str) -> nn.Module:
        return _loaded(f"Decoder({text})", makers[text](answer), likes[text])

    embed = Made(lambda text, ids: mine(text).embed(ids), getattr(answer, "embed", None))
    _against("embed", embed, lambda text, ids: likes[text].embed(ids), cases, like=likes)
    whole = Made(lambda text, ids: mine(text)(ids), answer.forward)
    _against("decoder", whole, lambda text, ids: likes[text](ids), cases, like=likes)
    count = sum(weights.numel() for weights in mine("where=Places()").parameters())
    return Right(f"your decoder has {count:,} parameters.")


GAIN = 20.0  # so that gradients become larger than 1, where people clip them


class Watched(nn.Module):
    """Record what a training loop does with a small decoder.

    We record the inputs, the gradients, and the optimisers whose `step` is called.
    """

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(45, 45)
        self.table.weight.data /= GAIN
        self.seen: list[Tensor] = []
        self.back: list[tuple[Tensor, Tensor]] = []
        self.gradients: list[Tensor] = []
        # kept here so that no two optimisers have the same address
        self.optimisers: list[torch.optim.Optimizer] = []
        self.changed = (
            False  # whether a gradient changed between `backward` and the optimiser's step
        )
        self.kept = 0.0
        self.table.weight.register_hook(self._now)
        self.table.weight.register_post_accumulate_grad_hook(self._after)

    def _now(self, gradient: Tensor) -> None:
        self.now = gradient.detach().clone()
        self.gradients.append(self.now)

    def stepping(self, optimiser: torch.optim.Optimizer, *_: Any) -> None:
        """Record an optimiser when its `step` is called.

        We also record whether the gradient is still the one that `backward` computed.
        """
        if optimiser not in self.optimisers:
            self.optimisers.append(optimiser)
        gradient, last = self.table.weight.grad, self.gradients[-1:]
        self.changed |= (
            gradient is not None and bool(last) and not torch.allclose(gradient, last[0])
        )

    def _after(self, weight: Tensor) -> None:
        self.kept = max(self.kept, float((weight.grad - self.now).abs().max()))

    def forward(self, ids: Tensor) -> Tensor:
        self.seen.append(ids.clone())
        logits = GAIN * self.table(ids)
        if logits.requires_grad:
            scores = logits.detach()
            logits.register_hook(lambda gradient: self.back.append((scores, gradient)))
        return logits


def _trained(
    train: Callable, steps: int, seed: int = 0, world: int = 0
) -> tuple[Watched, Any, Tensor, Tensor]:
    """Train a watched model for a few steps with the learner's function.

    The result has the watched model, what `train` returned, and the weights of the model's table
    before and after the training.

    Args:
        world: a seed for all random numbers that the learner's code draws without its own
            generator.
    """
    torch.manual_seed(world)
    model = Watched()
    before = model.table.weight.detach().clone()
    watching = register_optimizer_step_pre_hook(model.stepping)
    try:
        call = f"train(model, steps={steps}, seed={seed})"
        returned = run(call, Made(lambda: train(model, steps=steps, seed=seed), train))
    finally:
        watching.remove()
    return model, returned, before, model.table.weight.detach()


def _stepped(before: Tensor, gradients: list[Tensor]) -> Tensor:
    """Return what a weight becomes after AdamW's steps with these gradients.

    The learning rate is the one that the text of the exercise gives.
    """
    weight = nn.Parameter(before.clone())
    optimiser = torch.optim.AdamW([weight], lr=5e-3, weight_decay=0.0)
    for gradient in gradients:
        weight.grad = gradient.clone()
        optimiser.step()
    return weight.detach()


def _answers(ids: Tensor) -> Tensor:
    """Compute the targets of sequences from the sequences themselves."""
    place = NEEDLE.answers(ids)
    value = 1 + (ids.gather(1, place.clamp(min=0)) - 13) % 4
    return torch.where(place >= 0, value, -100)


@exercise
def training(train: Any, share: Any) -> Right:
    """Check a training loop (its batches, loss and steps) and a function for the accuracy."""
    filled("train", train)
    filled("right", share)
    model, returned, before, after = _trained(train, 1)
    refuse(
        "training",
        "returned",
        found=returned,
        model=model,
        steps=len(model.seen),
        back=len(model.back),
    )
    (ids,), (logits, gradient) = model.seen, model.back[0]
    targets = _answers(ids)
    is_asked = targets != -100
    expected = (
        (logits.softmax(-1) - functional.one_hot(targets.clamp(min=0), 45))
        * is_asked[..., None]
        / is_asked.sum()
    )
    idle = torch.ones(45, dtype=torch.bool).scatter(0, ids[is_asked], False)
    moved = (after - before).abs()
    names = {
        "gradient": gradient,
        "wanted": expected,
        "asked": is_asked,
        "logits": logits,
        "targets": targets,
        "ids": ids,
    }
    if not _close(gradient, expected):
        refuse("training", "loss", **names, near=_close)
    refuse("training", "step", moved=float(moved.max()), idle=float(moved[idle].max()))
    model, _, before, after = _trained(train, 4)
    kinds = {type(optimiser).__name__ for optimiser in model.optimisers}
    off = float((after - _stepped(before, model.gradients)).abs().max())
    refuse(
        "training",
        "steps",
        kinds=kinds,
        many=len(model.optimisers),
        changed=model.changed,
        kept=model.kept,
        off=off,
    )
    model, *_ = _trained(train, 150)
    again, with_other_seed = (
        _trained(train, 20, world=1)[0].seen,
        _trained(train, 20, seed=1)[0].seen,
    )
    lengths = {ids.shape[1] - QUESTIONS for ids in model.seen}
    count = {len(ids) for ids in model.seen}
    drew = {
        "lengths": lengths,
        "count": count,
        "repeats": _repeats(model.seen[:60]),
        "first": model.seen[:20],
        "again": again,
        "other": with_other_seed,
        "same": _same,
    }
    refuse("training", "rows", **drew, steps=len(model.seen), kept=model.kept)
    _share(share)
    return Right(
        "your loop draws rows of 4 to 16 pairs from its seed, and each step is a step of AdamW "
        "with a new gradient."
    )


def _same(one: list[Tensor], other: list[Tensor]) -> bool:
    return len(one) == len(other) and all(map(torch.equal, one, other))


def _repeats(seen: list[Tensor]) -> bool:
    return any(
        one.shape == other.shape and torch.equal(one, other)
        for one, other in itertools.combinations(seen, 2)
    )


def _close(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and torch.allclose(one, other, atol=1e-6, rtol=1e-3)


def _share(share: Callable) -> None:
    """Run the learner's `right` on models of known accuracy.

    These models answer the first few questions correctly and no others.
    """

    class Knows(nn.Module):
        def __init__(self, many: int):
            super().__init__()
            self.many, self.seen = many, []

        def forward(self, ids: Tensor) -> Tensor:
            self.seen.append(ids)
            answers = _answers(ids).clamp(min=0)
            answers[:, ids.shape[1] - QUESTIONS + self.many :] = 0
            return functional.one_hot(answers, 45).float()

    for many in (0, 1, 3, QUESTIONS):
        for n, count in ((8, 64), (20, 64), (8, 10)):
            call = f"right(model, {n}, rows={count})"
            model, twice = Knows(many), []
            for world in range(2):
                torch.manual_seed(world)
                returned = run(call, Made(lambda m=model, n=n, c=count: share(m, n, rows=c), share))
                twice.append(model.seen[-1] if model.seen else None)
            value = checks.number(call, returned)
            shown = twice[-1]
            again = shown is not None and _same(twice[:1], twice[1:])
            refuse(
                "right", "refused", call=call, again=again, value=value, wanted=many / QUESTIONS,
                n=n, count=count, shown=shown, near=_near, drawn=rows(n, 0, count)[0],
                questions=QUESTIONS, asked_wrong=not _near(value, many / QUESTIONS),
            )  # fmt: skip


@exercise
def works(model: Any) -> Right:
    """Check that a decoder answers correctly at a length at which it was trained."""
    return Right(f"the accuracy at 16 pairs is {_learned('first', model):.2f}, so it answers.")


def _learned(name: str, model: Any) -> float:
    filled(name, model)
    if not isinstance(model, nn.Module):
        raise Wrong(f"{name} must be a decoder, not {checks.shown(model)}.")
    accuracy = share_right(model, 16)
    if accuracy < 0.9:
        raise Wrong(
            f"{name} answers {accuracy:.2f} of the questions at 16 correctly, but it needs 0.9. "
            "Do all checks above say right? Then train it "
            "longer, `steps=800`, or with another seed before it, `torch.manual_seed(1)`."
        )
    return accuracy


# Break it -----------------------------------------------------------------------------------------


OTHER_ROWS = ("no norm", "state", "first", "sum", "best", "weights")


@functools.lru_cache(64)
def _jacobian(model: nn.Module, ids: tuple[int, ...], mistake: str) -> Tensor:
    """Compute the derivative of the last logits with respect to each entry of each embedding.

    The result is cached, because the search for a mistake needs it many times.
    """

    def last(x: Tensor) -> Tensor:
        for block in model.blocks:
            x = block(x)
        x = x if mistake == "no norm" else model.norm(x)
        row = (x if mistake == "state" else model.head(x))[0, 0 if mistake == "first" else -1]
        return {"sum": row.sum()[None], "best": row.max()[None], "weights": row.softmax(-1)}.get(
            mistake, row
        )

    return torch.autograd.functional.jacobian(last, model.embed(torch.tensor([ids])).detach())[:, 0]


def _heard(model: nn.Module, ids: Tensor, mistake: str = "") -> Tensor:
    if mistake.startswith("attention"):
        x = model.embed(ids)
        attention = []
        for block in model.blocks:
            attention.append(block.weights(x)[0][0, :, -1].mean(0))
            x = block(x)
        return attention[0] if mistake.endswith("below") else attention[-1]

    J = _jacobian(model, tuple(ids[0].tolist()), mistake if mistake in OTHER_ROWS else "")
    return {
        "squares": lambda: J.square().sum((0, 2)),
        "largest": lambda: J.abs().amax((0, 2)),
        "sizes": lambda: J.abs().sum((0, 2)),
        "mean": lambda: J.square().mean((0, 2)).sqrt(),
        "signs": lambda: J.sum((0, 2)),
        "spectral": lambda: torch.linalg.matrix_norm(J.transpose(0, 1), ord=2),
        "share": lambda: J.norm(dim=(0, 2)) / J.norm(dim=(0, 2)).sum(),
    }.get(mistake, lambda: J.norm(dim=(0, 2)))()


def _decoders() -> list[nn.Module]:
    models = [
        Decoder(Block(), Block()),
        Decoder(Block(), Block(), where=Places()),
        Decoder(Block(), Block(), Block()),
    ]
    models = [drawn(model, k).eval() for k, model in enumerate(models)]
    with torch.no_grad():
        for model, sharpest in zip(models, (0, 1, 1), strict=True):
            model.blocks[sharpest].qkv.weight.mul_(3)
    return models


@exercise
def heard(answer: Any, model: Any) -> Right:
    """Check a function for Jacobian norms on three decoders.

    The verdict then says which tokens influence the learner's own decoder.
    """
    cases = [
        Case("model, ids", (model_, rows(n, k, 1)[0]))
        for k, (model_, n) in enumerate(zip(_decoders()[:2], (5, 4), strict=True))
    ]
    filled("heard", answer)
    _against("heard", Made(answer, answer), _heard, cases)
    _learned("mine", model)
    ids = rows(16, 5, 1)[0]
    loud, place = _heard(model, ids), int(NEEDLE.answers(ids)[0, -1])
    others = (loud[:16].sum() - loud[place]) / 15
    return Right(
        "these are the norms of the Jacobian. In your decoder the pair that holds the answer has a "
        f"norm of {loud[place]:.2f}, and the other fifteen pairs have {others:.2f} on average."
    )


@exercise
def scattered(answer: Any) -> Right:
    """Check the random positions that a module draws in training, and its positions afterwards."""
    _class("Scattered", answer)
    like = Places()
    with torch.no_grad():
        like.table.weight.copy_(torch.arange(160.0)[:, None].expand(160, 32))
    module = _loaded("Scattered()", answer(), like)

    def places(n: int) -> Tensor:
        vectors = checks.tensor(
            f"Scattered()({n})", run(f"Scattered()({n})", Made(lambda: module(n), answer.forward))
        )
        refuse("scattered", "shapes", shape=tuple(vectors.shape), n=n)
        return vectors[:, 0]

    after = {n: places(n) for n in (20, 68, 132)}
    module.train()
    drawn_ = [places(20) for _ in range(40)]
    refuse("scattered", "drawn", drawn=drawn_, all=torch.stack(drawn_))
    even = {n: torch.linspace(0, 159, n).double() for n in after}
    refuse("scattered", "after", after=after, even=even)
    return Right(
        "in training you draw from all 160 positions, in increasing order, and after training the "
        "positions are evenly spaced from first to last."
    )


@torch.no_grad()
def attention_on_answer(model: nn.Module, ids: Tensor) -> Tensor:
    """Return each question's attention to its answer, in the head with the largest attention.

    The result has shape (blocks, rows, questions). The best head is chosen within each block. If
    you want one number per question, take the largest value over the blocks.
    """
    place, x, blocks = NEEDLE.answers(ids)[:, None, -QUESTIONS:, None], model.embed(ids), []
    for block in model.blocks:
        weights = block.weights(x)[0][:, :, -QUESTIONS:]
        on_answer = weights.gather(-1, place.expand(-1, weights.shape[1], -1, -1))[..., 0]
        blocks.append(on_answer.amax(1))
        x = block(x)
    return torch.stack(blocks)


@torch.no_grad()
def _sharp(model: nn.Module, ids: Tensor, mistake: str = "") -> float:
    place, x, best = NEEDLE.answers(ids)[:, None, :, None], model.embed(ids), []
    for block in model.blocks:
        share = block.weights(x)[0].gather(-1, place.clamp(min=0).expand(-1, 4, -1, -1))[..., 0]
        share = share if mistake == "all tokens" else share[:, :, -QUESTIONS:]
        heads = {"mean head": share.mean(1), "sum": share.sum(1), "first head": share[:, 0]}.get(
            mistake, share.amax(1)
        )
        best.append(
            {
                "best question": heads.max(),
                "one head": share.mean((0, 2)).max(),
                "last question": heads[:, -1].mean(),
            }.get(mistake, heads.mean())
        )
        x = block(x)
    return float(
        {"below": best[0], "above": best[-1], "mean layer": sum(best) / len(best)}.get(
            mistake, max(best)
        )
    )


@exercise
def sharp(answer: Any) -> Right:
    """Check a function for a question's attention on its answer, in three decoders."""
    filled("sharp", answer)
    row = checks.tables(globals())["sharp"]
    measured = {}
    for k, model in enumerate(_decoders()):
        for n in (8, 24):
            shown: list[Tensor] = []
            handle = model.embedding.register_forward_hook(
                lambda _m, given, _o, shown=shown: shown.append(given[0])
            )
            value = checks.number(
                f"sharp(model, {n})", run(f"sharp(model, {n})", Made(answer, answer), model, n)
            )
            handle.remove()
            refuse("sharp", "rows", shown=shown, n=n)
            measured[k, n] = (model, shown[-1], value)
    for mistake, sentence in [("", ""), *checks._rows(row["slips"])]:
        if all(
            abs(value - _sharp(model, ids, mistake.strip())) < 1e-4
            for model, ids, value in measured.values()
        ):
            if sentence:
                raise Wrong(sentence)
            return Right(
                "this is the attention on the answer in the best head of each question, averaged "
                "over the questions, in the best layer."
            )
    n, value, target = max(
        ((n, value, _sharp(model, ids)) for (_, n), (model, ids, value) in measured.items()),
        key=lambda x: abs(x[1] - x[2]),
    )
    raise Wrong(f"sharp(model, {n}) is {value:.4f} for a decoder where {target:.4f} is expected.")


# Mend it ------------------------------------------------------------------------------------------

THETA = rope.frequencies(8, 1e4).float()


def _turned(x: Tensor, mistake: str = "") -> Tensor:
    n = x.shape[1] if mistake == "heads" else x.shape[-2]
    angle = (
        (torch.arange(n) + (mistake == "from one"))[:, None]
        * THETA
        * (-1 if mistake == "back" else 1)
    )
    if mistake == "heads":
        angle = angle[:, None]
    elif mistake == "no place":
        angle = torch.ones(n, 1) * THETA
    c, s = angle.cos(), angle.sin()
    if mistake == "neighbours":
        a, b = x[..., ::2], x[..., 1::2]
        return torch.stack([a * c - b * s, a * s + b * c], -1).flatten(-2)
    if mistake == "then halves":
        a, b = x[..., ::2], x[..., 1::2]
        return torch.cat([a * c - b * s, a * s + b * c], -1)
    a, b = x.chunk(2, -1)
    pairs = {
        "sign": (a * c + b * s, a * s + b * c),
        "no minus": (a * c - b * s, a * s - b * c),
        "halves": (a * s + b * c, a * c - b * s),
        "cosine": (a * c, b * c),
        "shrunk": (a * c - a * s, b * s + b * c),
    }
    return torch.cat(pairs.get(mistake, (a * c - b * s, a * s + b * c)), -1)


@exercise
def turned(theta: Any, answer: Any) -> Right:
    """Check a tensor of four rotation angles, and a function that rotates by these angles."""
    filled("theta", theta)
    angles = checks.tensor("theta", theta)
    if not _close(angles, THETA.double()):
        refuse(
            "turned",
            "angles",
            theta=angles,
            right=THETA.double(),
            near=lambda x: _close(angles, x.double()),
        )
    filled("turned", answer)
    cases = [
        Case(text, (_normal(*shape, seed=k),))
        for k, (text, shape) in enumerate(
            {"x": (1, 4, 30, 8), "y": (2, 4, 5, 8), "one": (1, 4, 1, 8)}.items()
        )
    ]
    _against(
        "turned",
        Made(answer, answer, lambda original: original),
        _turned,
        cases,
        Case("x", (_normal(1, 4, 7, 8),)),
    )
    return Right("pair k rotates by its angle for each token, as in the reference.")


def _layered(settings: dict, mistake: str = "", turn: Callable = _turned) -> nn.Module:
    none = mistake == "no turn"
    near = {
        "turn": None if none else turn,
        "window": {"no window": None, "9": 9, "7": 7, "16": 16}.get(mistake, 8),
    }
    far = {"turn": turn} if mistake == "turn above" else {}
    if mistake == "window above":
        near["window"], far["window"] = None, 8
    if mistake == "windows":
        far["window"] = 8
    if mistake != "no map":
        (near if mistake == "map below" else far).update(settings)
    if mistake == "maps":
        near.update(settings)
    parts = [Block(**near), Block(**far)]
    return Decoder(*(parts[::-1] if mistake == "exchanged" else parts))


@exercise
def layered(answer: Any, mixed: Any, roped: Any) -> Right:
    """Check the logits of a decoder whose lower layer has a window.

    For the check, the decoder gets our weights. The verdict then reports the accuracies of the
    learner's two trained decoders.
    """
    filled("layered", answer)
    like = drawn(_layered({}), 3)
    cases = [
        Case(text, (rows(n, count=2)[0], settings))
        for n in (6, 30)
        for text, settings in {"": {}, "weigh=torch.sigmoid": {"weigh": torch.sigmoid}}.items()
    ]
    answered = Made(
        lambda ids, settings: _loaded("layered()", answer(**settings), like)(ids), answer
    )

    def theirs(ids: Tensor, settings: dict, mistake: str = "") -> Tensor:
        return _loaded("layered()", _layered(settings, mistake), like)(ids)

    _against("layered", answered, theirs, cases)
    _learned("mixed", mixed)
    _learned("roped", roped)
    shares = [share_right(model, 64) for model in (mixed, roped)]
    sentence = (
        "the lower layer has the window, and the upper layer has no positions. The accuracy at 64 "
        f"pairs is {shares[0]:.2f}, and with RoPE in both layers it is {shares[1]:.2f}."
    )
    return Right(
        sentence
        if shares[0] > shares[1]
        else f"{sentence} In your two runs the window did not help, but each is only one seed."
    )


def _logits(rows_: int, n: int, seed: int) -> Tensor:
    later = torch.ones(n, n).triu(1).bool()
    return _normal(rows_, 4, n, n, seed=seed).masked_fill(later, -torch.inf)


def _scaled(logits: Tensor, mistake: str = "") -> Tensor:
    hidden = torch.isneginf(logits)
    n = (
        torch.full_like(hidden.sum(-1, keepdim=True), hidden.shape[-1])
        if mistake == "all"
        else (~hidden).sum(-1, keepdim=True)
    )
    ln = n.log()
    factor = {
        "no 16": ln,
        "ratio": n / 16,
        "inverse": torch.tensor(16.0).log() / ln,
        "root": (ln / torch.tensor(16.0).log()).sqrt(),
        "divided": 16 / n,
        "one more": (n + 1).log() / torch.tensor(17.0).log(),
    }.get(mistake, ln / torch.tensor(16.0).log())
    if mistake == "infinite":
        return (logits * factor).softmax(-1)
    if mistake == "weights":
        return logits.softmax(-1) * factor
    longer = logits.masked_fill(hidden, 0) * factor
    if mistake == "let in":
        return longer.softmax(-1)
    longer = longer.masked_fill(hidden, -torch.inf)
    return longer if mistake == "logits" else longer.softmax(-2 if mistake == "queries" else -1)


@exercise
def scaled(answer: Any) -> Right:
    """Check a function for scalable softmax, by comparing each row with the course's function."""
    cases = [
        Case("logits", (_logits(1, 40, 1),)),
        Case("logits", (_logits(2, 5, 2),)),
        Case("logits", (_logits(1, 16, 3),)),
    ]
    filled("scaled", answer)
    _against("scaled", answer, _scaled, cases, Case("logits", (_logits(2, 9, 7),)))
    row = cases[0].arguments[0][0, 0, 19, :20]
    assert torch.allclose(
        _scaled(cases[0].arguments[0])[0, 0, 19, :20],
        normalizers.scalable_softmax(row, 1 / torch.tensor(16.0).log().item()),
        atol=1e-5,
    )
    return Right(
        "your weights equal softmax at 16 keys and are sharper for more keys, and a hidden key "
        "gets no weight."
    )


def _difference(logits: Tensor, mistake: str = "") -> Tensor:
    A = logits if mistake == "no softmax" else logits.softmax(-1)
    subtracted = {
        "behind": A.roll(-1, 1),
        "rows": A.roll(1, 0),
        "queries": A.roll(1, 2),
        "keys": A.roll(1, 3),
        "mean": A.mean(1, keepdim=True),
        "no neighbour": torch.cat([0 * A[:, :1], A[:, :-1]], 1),
        "itself": A,
    }.get(mistake, A.roll(1, 1))
    if mistake == "logits":
        return (
            logits.masked_fill(logits.isneginf(), -1e9)
            - 0.5 * logits.masked_fill(logits.isneginf(), 0).roll(1, 1)
        ).softmax(-1)
    difference_ = A - {"whole": 1.0, "plus": -0.5}.get(mistake, 0.5) * subtracted
    return {
        "half first": lambda: 0.5 * A - subtracted,
        "divided": lambda: difference_ / difference_.sum(-1, keepdim=True),
        "positive": difference_.relu,
    }.get(mistake, lambda: difference_)()


@exercise
def difference(answer: Any) -> Right:
    """Check a function for the difference of two heads' attention matrices."""
    cases = [
        Case("logits", (_logits(2, 9, 4),)),
        Case("logits", (_logits(1, 6, 5),)),
        Case("logits", (_logits(3, 3, 6),)),
    ]
    filled("difference", answer)
    _against("difference", answer, _difference, cases, Case("logits", (_logits(2, 5, 7),)))
    logits = cases[1].arguments[0]
    one = differential.difference(logits[0, 1, -1], logits[0, 0, -1], lam=0.5)
    assert torch.allclose(_difference(logits)[0, 1, -1], one, atol=1e-5)
    return Right("each head subtracts one half of the map of the head before it.")


# Now yours ----------------------------------------------------------------------------------------


def _steps(seen: Tensor) -> Tensor:
    heard, layers = torch.arange(len(seen)) == len(seen) - 1, torch.full((len(seen),), torch.inf)
    for step in range(len(seen)):
        layers[heard & layers.isinf()] = step
        heard = heard | seen[heard].any(0)
    return layers


@exercise
def steps(answer: Any) -> Right:
    """Check a function for the number of layers that a message needs under a mask."""
    return _against("steps", answer, _steps, checks.given(globals(), "steps"))


def _together(one: Tensor, other: Tensor, dtype: torch.dtype = torch.bfloat16) -> Tensor:
    return (one.to(dtype) == other.to(dtype)).all(-1)


@exercise
def together(answer: Any) -> Right:
    """Check a function that tests whether two vectors become equal in bf16."""
    return _against("together", answer, _together, checks.given(globals(), "together"))


def _held_out(
    X: Tensor,
    y: Tensor,
    fit: int = 0,
    test: int = 1,
    step: int = 2,
    one: float = 1.0,
    near: Callable = torch.round,
) -> Tensor:
    A = torch.cat([X, torch.full((len(X), 1), one)], 1)
    w = torch.linalg.lstsq(A[fit::step], y[fit::step, None], driver="gelsd").solution
    return (near(A @ w)[test::step, 0] == y[test::step]).double().mean()


def counted(n: int, d: int, seed: int) -> tuple[Tensor, Tensor]:
    X = checks.normal(n, d, seed=seed)
    return X, (X.sum(1) + 0.6 * checks.normal(n, seed=seed + 1) + 1).round()


@exercise
def held_out(answer: Any) -> Right:
    """Check a function that tests a linear probe on vectors to which the probe was not fitted."""
    return _against("held_out", answer, _held_out, checks.given(globals(), "held_out"))


def _spare(model: nn.Module, pair: int, mistake: str = "") -> nn.Module:
    spared = copy.deepcopy(model)
    out = {"neighbours": [2 * pair, 2 * pair + 1], "half": [pair], "from one": [pair - 1, pair + 3]}
    for block in spared.blocks[: 1 if mistake == "first block" else None]:
        rows_ = block.qkv.weight.data.view(3, 4, 8, 32)
        for k in {"values too": (0, 2), "values": (2,)}.get(mistake, (0,)):
            rows_[k, : 1 if mistake == "first head" else 4, out.get(mistake, [pair, pair + 4])] = 0
    return spared


@exercise
def spare(answer: Any) -> Right:
    """Check the logits of a decoder whose attention scores lack one rotary pair."""
    filled("spare", answer)
    whole = drawn(Decoder(Block(_turned), Block(_turned)), 1).eval()

    def asked(change: Callable, pair: int, *mistake: str) -> Tensor:
        model = copy.deepcopy(whole)
        made = change(model, pair, *mistake)
        same = all(map(torch.equal, model.state_dict().values(), whole.state_dict().values()))
        refuse("spare", "refused", made=made, same=same, pair=pair)
        return made(rows(6, pair, 2)[0])

    own = Made(lambda pair: asked(answer, pair), answer)
    _against("spare", own, functools.partial(asked, _spare), [Case(f"{k}", (k,)) for k in range(4)])
    return Right("this pair adds nothing to any score, and nothing else changes.")


def _agree(A: Tensor, place: Tensor, norm: float = 2.0, early: bool = False) -> Tensor:
    A = functional.normalize(A, norm, -1) if early else A
    noise = A.scatter(-1, place[:, None, None].expand(-1, A.shape[1], 1), 0.0)
    noise = noise if early else functional.normalize(noise, norm, -1)
    return (noise @ noise.mT).mean(0)


def noisy_weights(rows_: int, heads: int, n: int, seed: int) -> tuple[Tensor, Tensor]:
    return (2 * checks.normal(rows_, heads, n, seed=seed)).softmax(-1), torch.arange(rows_) % n


@exercise
def agree(answer: Any) -> Right:
    """Check a function for the cosine between the noise of pairs of heads."""
    return _against("agree", answer, _agree, checks.given(globals(), "agree"))
