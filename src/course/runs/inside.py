"""Test counting within the trained lengths, to find what fails even without new lengths.

These runs are in `data/counting_inside.csv`, `counting_edge.csv`, `counting_asked.csv`,
`counting_written.csv` and `counting_symbols.csv`.
"""

import copy
from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from course import training
from course.runs import sweep, trained
from course.training import Batch
from course.training.tasks import Counting, RunningCount
from helpers.transformer import Decoder

STEPS_A_LETTER = (
    trained.STEPS["counting"] // trained.LONGEST
)  # the budget grows with the longest string


def task(
    longest: int, size: int = trained.BATCH, tokens: str = "characters", most: int | None = None
) -> RunningCount:
    """Build the task of counting the letters so far, after each of `longest` letters."""
    return RunningCount(lengths=(1, longest), tokens=tokens, most=most or longest, size=size)


@torch.no_grad()
def read(
    model: Decoder, drawn: RunningCount, seed: int = 10**6
) -> tuple[Bool[Tensor, "b n"], Float[Tensor, "b n"]]:
    """Measure a decoder's answers at every position of new strings.

    Returns:
        Two tensors with one entry per string and position. The first says whether the answer is
            right. The second is the margin in logits, the logit of the right answer minus the
            largest other logit. Positions without a question count as right and have the margin
            NaN.
    """
    right, margins = [], []
    for part in range(0, drawn.size, 128):
        ids, targets = task(drawn.lengths[1], 128, drawn.tokens, drawn.most)(
            torch.Generator().manual_seed(seed + part)
        )
        logits, unasked = model(ids).float(), targets == training.UNASKED
        right_token = targets.clamp(min=0)[..., None]
        of_right = logits.gather(-1, right_token)[..., 0]
        next_best = logits.scatter(-1, right_token, -torch.inf).amax(-1)
        margins.append((of_right - next_best).masked_fill(unasked, torch.nan))
        right.append((of_right > next_best) | unasked)
    return torch.cat(right)[:, 1:], torch.cat(margins)[:, 1:]


def separation(
    known: Float[Tensor, "m d"], rounded: Float[Tensor, "m d"], labels: Int[Tensor, " m"]
) -> dict[str, float]:
    """Measure how far apart the hidden states of neighbouring counts are.

    We use only the upper half of the counts.

    Returns:
        Three medians over these counts c.
        `gap`: the distance between the mean states of c and c + 1, divided by the mean norm of a
            state.
        `spread`: the standard deviation of the states along this direction, divided by the same
            distance.
        `rounding`: the root mean square of the change that bf16 makes along this direction, divided
            by the same distance.
    """
    size, rows = float(known.norm(dim=1).mean()), []
    for c in range(int(labels.max()) // 2, int(labels.max())):
        low, high = labels == c, labels == c + 1
        if min(int(low.sum()), int(high.sum())) < 3:
            continue
        between = known[high].mean(0) - known[low].mean(0)
        gap = between.norm()
        along = between / gap
        spread = ((known[low] - known[low].mean(0)) @ along).std() / gap
        rounding = ((rounded[low] - known[low]) @ along).square().mean().sqrt() / gap
        rows.append(torch.stack([gap / size, spread, rounding]))
    return dict(
        zip(("gap", "spread", "rounding"), torch.stack(rows).median(0).values.tolist(), strict=True)
    )


def run(encoding: str, width: int, longest: int, steps: int, seed: int) -> sweep.Setting:
    """Train one decoder on strings of up to `longest` letters, and test it there and beyond."""
    drawn = task(longest)
    torch.manual_seed(seed)
    model = Decoder(len(drawn.vocabulary), width, 4, 2, encoding=encoding)
    losses = trained.train(model, drawn, steps, seed)
    small = copy.deepcopy(model).to(torch.bfloat16)
    quarters = [q * longest // 4 - 1 for q in range(1, 5)]
    row = {"loss": sum(losses[-20:]) / 20}
    for name, network in (("", model), ("bf16_", small)):
        right, margins = read(network, task(longest, 512))
        share = right.double().mean(0)
        row |= {f"{name}right_{q}": float(share[n]) for q, n in enumerate(quarters, 1)}
        row[f"{name}least"] = float(share.min())
        if not name:
            poor = (share < trained.LEARNED).nonzero()
            row["holds_to"] = (
                int(poor[0]) if len(poor) else longest
            )  # right at every length up to this one
            for q in (1, 4):
                low, middle = (
                    margins[:, quarters[q - 1]].quantile(torch.tensor([0.05, 0.5])).tolist()
                )
                row |= {f"margin_low_{q}": low, f"margin_{q}": middle}
    beyond, margins = read(model, task(3 * longest // 2, 512, most=longest))
    is_asked = ~margins.isnan()
    row |= {
        f"beyond_{q}": float(beyond[:, n][is_asked[:, n]].double().mean())
        for q, n in ((5, 5 * longest // 4 - 1), (6, 3 * longest // 2 - 1))
    }
    parts = []
    for part, size in ((1, 2048), (2, 512)):
        ids, targets = task(longest, size)(torch.Generator().manual_seed(2 * 10**6 + part))
        parts.append((ids, targets[:, -1] - drawn.vocabulary.index("0")))
    (ids, labels), (new, right) = parts
    layers, fresh = trained.states(model, ids), trained.states(model, new)
    for name, k in (("probe_1", 0), ("probe", -1)):
        row[name] = trained.share(trained.linear_probe(layers[k], labels), fresh[k], right)
    mixed = trained.shuffled(labels, seed)
    row["probe_shuffled"] = trained.share(trained.linear_probe(layers[-1], mixed), fresh[-1], right)
    row |= separation(layers[-1][:512], trained.states(small, ids[:512])[-1], labels[:512])
    y, zero = drawn.vocabulary.index("y"), drawn.vocabulary.index("<s>")
    ones = torch.cat([torch.tensor([zero]), torch.full((longest,), y)])[None]
    with torch.no_grad():
        line = model.states(ones)[0, 1:]
    for q in (1, 2, 4):
        n = min(q * longest // 4, longest - 1)
        row[f"ones_{q}"] = float((line[n] - line[n - 1]).norm() / line[n].norm())
    return {
        name: round(value, 5) if isinstance(value, float) else value for name, value in row.items()
    }


# Test the edge, the supervision and the width -----------------------------------------------------

BEFORE = (0, 1, 2, 4, 8, 16)  # letters before the longest string, at which the edge is tested


def edge_run(encoding: str, longest: int, steps: int, seed: int) -> sweep.Setting:
    """Train one decoder as `run` does, and test it at the last positions seen in training.

    The number of steps can be chosen, so that we can see whether more training helps at these
    positions.
    """
    drawn = task(longest)
    torch.manual_seed(seed)
    model = Decoder(len(drawn.vocabulary), 64, 4, 2, encoding=encoding)
    losses = trained.train(model, drawn, steps, seed)
    share = read(model, task(longest, 1024))[0].double().mean(0)
    row = {"loss": sum(losses[-20:]) / 20, "least": float(share.min())}
    row |= {f"before_{k}": float(share[max(0, longest - 1 - k)]) for k in BEFORE}
    return {name: round(value, 5) for name, value in row.items()}


ASKED = ("every letter", "the end")


def asked_run(encoding: str, asked: str, steps: int, seed: int) -> sweep.Setting:
    """Train one decoder on strings of 1 to `LONGEST` letters, with one of two kinds of questions.

    The decoder must give the count after every letter, or only at the end.
    """
    ends = Counting(lengths=(1, trained.LONGEST), most=trained.LONGEST, size=trained.BATCH)
    model = trained.decoder("counting", trained.COUNTING, encoding, 1e4, 0, seed)
    drawn = trained.COUNTING if asked == "every letter" else ends
    # each count has the same total weight at each length
    losses = trained.train(model, drawn, steps, seed, trained.COUNTING.weights)
    row = {"loss": sum(losses[-20:]) / 20}
    row |= {f"right_{n}": trained.share_right(model, drawn, n, 512) for n in (4, 8, 12, 16)}
    return {name: round(value, 5) for name, value in row.items()}


FAR = (16, 32, 64, 128)  # letters at which a counter that writes is tested
WRITES = "every letter, and reads its answers"


def written(ids: Int[Tensor, "b n"], targets: Int[Tensor, "b n"]) -> Batch:
    """Insert the right count after each letter of a `RunningCount` batch, except the last one.

    A sequence becomes `<s> y 1 x 1 y`. The questions are at the letters.
    """
    read = torch.stack([ids[:, 1:], targets[:, 1:]], 2).flatten(1)[:, :-1]
    answers = torch.stack(
        [targets[:, 1:], torch.full_like(targets[:, 1:], training.UNASKED)], 2
    ).flatten(1)[:, :-1]
    return torch.cat([ids[:, :1], read], 1), torch.cat([targets[:, :1], answers], 1)


@torch.no_grad()
def writes(model: Decoder, ids: Int[Tensor, "b n"]) -> Int[Tensor, " b"]:
    """Return a decoder's last answer if it reads its own earlier answers.

    The decoder gets the letters one by one, and each of its answers is written after the letter.
    """
    text = ids[:, :1]
    for letter in ids[:, 1:].T:
        text = torch.cat([text, letter[:, None]], 1)
        answer = model(text)[:, -1].argmax(-1)
        text = torch.cat([text, answer[:, None]], 1)
    return answer


def written_run(encoding: str, window: int, asked: str, steps: int, seed: int) -> sweep.Setting:
    """Train one decoder to count in one of three ways, and test it far beyond the trained lengths.

    The decoder gives the count at the end, gives it after every letter, or writes the running count
    into the text.
    """
    ends = Counting(lengths=(1, trained.LONGEST), most=trained.LONGEST, size=trained.BATCH)
    ways = {
        "the end": ends,
        "every letter": trained.COUNTING,
        WRITES: lambda drawn: written(*trained.COUNTING(drawn)),
    }
    model = trained.decoder("counting", trained.COUNTING, encoding, 1e4, window, seed)
    losses = trained.train(model, ways[asked], steps, seed, trained.COUNTING.weights)
    row, hit = (
        {"loss": sum(losses[-20:]) / 20},
        lambda right: round(float(right.double().mean()), 5),
    )
    for n in FAR:
        strings, _ = trained._questions(trained.COUNTING, n, 102, 1_000)
        ids, targets = trained.COUNTING.rows(
            torch.tensor([[letter == "y" for letter in s] for s in strings]).long()
        )
        zero, last = trained.COUNTING.vocabulary.index("0"), targets[:, -1]
        low = last <= zero + trained.LONGEST // 2
        answers = (
            writes(model, ids)
            if asked == WRITES
            else trained.answers(model, ways[asked], strings) + zero
        )
        row |= {f"right_{n}": hit(answers == last), f"low_{n}": hit((answers == last)[low])}
        row |= {f"given_{n}": None, f"follows_{n}": None}
        if asked == WRITES:  # its answer if everything that it reads is right, or too large by one
            predicted = [
                model(written(ids, targets + k)[0][low])[:, -1].argmax(-1) - k for k in (0, 1)
            ]
            row |= {
                f"given_{n}": hit(predicted[0] == last[low]),
                f"follows_{n}": hit(predicted[1] == last[low]),
            }
    return row | {"loss": round(row["loss"], 5)}


LETTERS, MOST = (
    32,
    8,
)  # letters of a string of many symbols, and the largest count of one symbol that is a question


def histograms(symbols: int, size: int = trained.BATCH) -> Callable[[torch.Generator], Batch]:
    """Build the task of counting how often the current symbol has occurred so far.

    There is a question at each of `LETTERS` symbols, as long as the count is at most `MOST`. The
    symbols of a string have unequal probabilities, in proportion to exp(2 z) with z normal, so that
    large counts occur with a vocabulary of any size. Token 0 begins the string, tokens 1 to
    `symbols` are the symbols, and the tokens after them are the counts 1 to `MOST`.
    """

    def drawn(generator: torch.Generator) -> Batch:
        shares = torch.randn(size, symbols, generator=generator).mul(2).exp()
        letters = torch.multinomial(shares, LETTERS, replacement=True, generator=generator) + 1
        count = (letters[:, :, None] == letters[:, None, :]).tril().sum(-1)
        start = torch.zeros(size, 1, dtype=torch.long)
        targets = torch.where(count <= MOST, symbols + count, training.UNASKED)
        return torch.cat([start, letters], 1), torch.cat(
            [torch.full_like(start, training.UNASKED), targets], 1
        )

    return drawn


def symbols_run(symbols: int, width: int, steps: int, seed: int) -> sweep.Setting:
    """Train one decoder without positions to count several symbols, and test it for each count."""
    drawn = histograms(symbols)
    often = drawn(torch.Generator().manual_seed(10**7))[1]
    for part in range(1, 16):
        often = torch.cat([often, drawn(torch.Generator().manual_seed(10**7 + part))[1]])
    often = torch.bincount(often[often > 0], minlength=symbols + MOST + 1).float()
    weights = torch.where(often > 0, 1 / often, 0.0) * often.sum() / MOST
    torch.manual_seed(seed)
    model = Decoder(symbols + MOST + 1, width, 4, 2, encoding="NoPE")
    losses = trained.train(model, drawn, steps, seed, weights)
    ids, targets = histograms(symbols, 512)(torch.Generator().manual_seed(10**6))
    with torch.no_grad():
        named = torch.cat([model(part).argmax(-1) for part in ids.split(128)])
    shares = [
        float((named == targets)[targets == symbols + c].double().mean())
        for c in range(1, MOST + 1)
    ]
    row = {"loss": sum(losses[-20:]) / 20, "right": sum(shares) / MOST, "least": min(shares)}
    return {name: round(value, 5) for name, value in row.items()}
