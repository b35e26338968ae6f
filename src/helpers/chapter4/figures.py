"""What chapter 4 draws: functions that return a figure and the sentence that states its finding."""

from collections.abc import Callable

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from helpers import collapse, compute, counting, data, style
from helpers.chapter4 import measures

BLUE, RED, GREEN, PURPLE, BLACK, GREY = style.COLOURS.values()


# Lesson: softmax and the count ---------------------------------------------------------------------------

UNITS = {"only ones": "1", "1 zero, 1 one": "01", "1 zero, 3 ones": "0111"}


def copies(setup: str, unit: str, dtype: str) -> tuple[Axes, str]:
    """How far the last state moves when one more copy of a string is written."""
    found = measures.steps(UNITS[unit], setup, dtype)
    floor = 1e-17
    last = max((k for k, seen in zip(found.copies, found.seen(), strict=True) if seen), default=0)
    if last == 0:
        title = "One more copy changes nothing but rounding"
    elif last == found.copies[-1]:
        title = f"One more copy is seen up to {last} copies and beyond"
    else:
        title = f"One more copy is lost in rounding after {last} cop{'y' if last == 1 else 'ies'}"
    ax = style.axes(title, "copies k of the string", "relative to the state", log="xy")
    ax.plot(found.copies, [max(x, floor) for x in found.change], "o-", color=style.TYPES[dtype])
    ax.plot(found.copies, [max(x, floor) for x in found.error], "--", color=GREY)
    ax.set_ylim(floor / 3, 1e5)
    ax.text(0.02, 0.95, "— change from k to k + 1 copies", color=style.TYPES[dtype], transform=ax.transAxes, va="top")
    ax.text(0.02, 0.87, "- - its rounding error", color=GREY, transform=ax.transAxes, va="top")
    return ax, (
        f"{setup}, {unit}, {dtype}: from 1 copy to 2 the state moves by {found.change[0]:.1e} of its size, "
        f"from {found.copies[-1]} to {found.copies[-1] + 1} by {found.change[-1]:.1e}; the rounding error of this is {found.error[-1]:.1e}."
    )


def readout() -> tuple[Axes, str]:
    """The count read off the first token's rounded weight, and how wrong it is."""
    limits = {name: counting.first_token_limit(name) for name in ("bf16", "fp16", "fp32")}
    ax = style.axes(
        "; ".join(f"{name} counts to {limit:,}" for name, limit in limits.items()),
        "ones after the first token",
        "error of the count read",
        log="x",
    )
    ax.set_title(ax.get_title(loc="left"), fontsize=15)
    ax.axvspan(10, 200, color="#EEF4FA", zorder=0)
    ax.text(45, 3.3, "lengths of\nthe paper", ha="center", color=BLUE, size=13)
    ax.axvline(measures.ASKED, color=GREY, lw=1.5, ls=":")
    ax.text(measures.ASKED * 1.1, 3.6, "314", color=GREY, size=13)
    n = torch.unique(torch.logspace(0, 8, 4000, dtype=torch.float64).round())
    for k, (name, limit) in enumerate(limits.items()):
        alpha = collapse.round_to(1 / (1 + n), compute.dtype(name))
        error = ((1 / alpha - 1).round() - n).clamp(-4, 4)
        wrong = error.ne(0)
        ax.plot(n[wrong], error[wrong] + 0.12 * (k - 1), ".", ms=3, color=style.TYPES[name], rasterized=True)
        ax.plot([1, limit], [0.12 * (k - 1)] * 2, color=style.TYPES[name], lw=4, label=name)
        ax.annotate(
            name, (limit, 0), (0, -30), textcoords="offset points", ha="center", color=style.TYPES[name], weight="bold"
        )
    ax.set(ylim=(-4.4, 4.4), xlim=(1, 1e8))
    return ax, (
        "The count read from the first token's weight 1/(1 + n), rounded once, is right up to "
        + ", ".join(f"{limit:,} ({name})" for name, limit in limits.items())
        + "."
    )


def lead_costs() -> tuple[Axes, str]:
    """How far the first token counts when its logit leads the others'."""
    leads = [-4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6]
    found = {name: [counting.first_token_limit(name, lead) for lead in leads] for name in ("bf16", "fp16")}
    zero, far = leads.index(0), leads.index(4)
    ax = style.axes(
        f"bf16 counts to {found['bf16'][zero]} without a lead, to {found['bf16'][far]} with a lead of 4",
        "lead of the first token's logit",
        "largest count",
    )
    ax.set_yscale("symlog", linthresh=10)
    for name, limits in found.items():
        ax.plot(leads, limits, "o-", color=style.TYPES[name], label=name)
    style.label(ax)
    ends = ", ".join(f"{name} {limits[0]} to {limits[-1]}" for name, limits in found.items())
    best = {name: max(zip(limits, leads, strict=True)) for name, limits in found.items()}
    return ax, (
        f"Largest count from a lead of {leads[0]} to one of {leads[-1]}: {ends}; "
        + ", ".join(f"best {limit} at {lead} ({name})" for name, (limit, lead) in best.items())
        + "."
    )


def by_bits(reach: Callable[[int], float]) -> tuple[Axes, str]:
    """How far the first token's weight counts, by the bits in which it is stored: `reach` tells it."""
    bits = range(3, 13)
    limits = [reach(b) for b in bits]
    factor = (limits[-1] / limits[0]) ** (1 / (len(limits) - 1))
    ax = style.axes(f"One bit more counts {factor:.2f} times as far", "significant bits of the weight", "largest count")
    ax.set_yscale("log")
    ax.plot(bits, limits, "o-", color=BLUE, label="read right")
    ax.plot(bits, [2**b for b in bits], "--", color=GREY, label="2 to the bits")
    for name, b in (("bf16", 8), ("fp16", 11)):
        limit = limits[b - bits[0]]
        ax.annotate(
            f"{name}: {limit:,.0f}",
            (b, limit),
            (8, -22),
            textcoords="offset points",
            color=style.TYPES[name],
            weight="bold",
        )
    style.label(ax)
    return ax, (
        f"From {bits[0]} to {bits[-1]} bits the largest count goes from {limits[0]:,.0f} to {limits[-1]:,.0f}, "
        f"{factor:.2f} times as far for each bit."
    )


# Lesson: width -------------------------------------------------------------------------------------------


def widths(vocabulary: int, codes: str, length: int) -> tuple[Axes, str]:
    """The share of symbols counted right from the sum of their codes, by width."""
    tried = sorted({max(1, round(vocabulary * k / 16)) for k in range(1, 20)} | {vocabulary - 1, vocabulary})
    shares = [measures.counted(vocabulary, width, codes, length) for width in tried]
    sure = [counting.longest_counted(counting.welch_bound(vocabulary, width)) for width in tried]
    exact = [width for width, share in zip(tried, shares, strict=True) if share == 1]
    title = f"All counts right from width {exact[0]}" if exact else f"At most {max(shares):.0%} of the counts are right"
    if exact and any(share < 1 for width, share in zip(tried, shares, strict=True) if width > exact[0]):
        title = f"All counts right at {len(exact)} of {len(tried)} widths"
    ax = style.axes(title, "width / vocabulary", "counts that are right")
    ax.plot([width / vocabulary for width in tried], shares, "o-", color=BLUE)
    ax.axvline(1, color=GREY, lw=1.5, ls="--")
    ax.text(1.01, 0.05, "width =\nvocabulary", color=GREY, size=13)
    ax.set(ylim=(-0.03, 1.06), xlim=(0, 1.21))
    half = tried.index(vocabulary // 2)
    below = tried.index(vocabulary - 1)
    return ax, (
        f"{vocabulary} symbols, {codes} codes, {length} tokens: {shares[half]:.0%} right at half the width, "
        f"{shares[below]:.0%} one below it, {shares[tried.index(vocabulary)]:.0%} at it. No codes of half the width are "
        f"right for every sequence longer than {sure[half]}."
    )


def focus(vocabulary: int = 64) -> tuple[Axes, str]:
    """What a head that looks for one symbol pays for a narrow width: the scale of its logits."""
    tried = [8, 12, 16, 24, 32, 40, 48, 56, 60, 63]
    mu = [counting.coherence(counting.codes(vocabulary, width)) for width in tried]
    ax = style.axes("", "width", "logit scale that counts for sure")
    found = {}
    for length, colour in ((100, BLUE), (10_000, RED)):
        found[length] = [counting.focus_scale(x, length) for x in mu]
        ax.plot(tried, found[length], "o-", color=colour, label=f"{length:,} tokens")
    quarter = tried.index(vocabulary // 4)
    ax.set_title(f"A quarter of the width is enough at a scale of {found[100][quarter]:.0f}")
    ax.set_ylim(0)
    style.label(ax)
    return ax, (
        f"{vocabulary} symbols: width {vocabulary // 4} needs a logit scale of {found[100][quarter]:.1f} for 100 tokens and "
        f"{found[10_000][quarter]:.1f} for 10,000; width {tried[-1]} needs {found[100][-1]:.1f} and {found[10_000][-1]:.1f}."
    )


# Lesson: tokens ------------------------------------------------------------------------------------------


ROWS = 5  # of tokens that are drawn


def written(text: str, items: int) -> tuple[Figure, str]:
    """The tokens of `items` items in one of the writings of `measures.TEXTS`."""
    return tokens(measures.TEXTS[text](items), items)


def tokens(text: str, items: int | None = None) -> tuple[Figure, str]:
    """A text cut into the tokens of the model in use, one box a token."""
    found = measures.pieces(text)
    names = [piece.replace(" ", "␣").replace("\n", "⏎") or "∅" for piece in found]
    names = [name if len(name) <= 40 else f"{name[:38]}…" for name in names]
    places, x, y = [], 0.0, 0
    for name in names:
        width = 0.95 * len(name) + 0.7
        x, y = (0.0, y + 1) if x + width > 58 else (x, y)
        if y == ROWS:
            break
        places.append((x, y, width - 0.35))
        x += width
    figure = Figure(figsize=(9.0, 3.9))
    ax = figure.subplots()
    ax.set(xlim=(0, 60), ylim=(-ROWS - 0.5, 0.5), xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    ax.grid(False)
    for k, (x, y, width) in enumerate(places):
        look = {"fc": ("#DCEBF7", "#FBE6D6")[k % 2], "ec": (BLUE, RED)[k % 2], "lw": 1}
        box = "round,pad=0,rounding_size=0.15"
        ax.add_patch(FancyBboxPatch((x, -y - 0.38), width, 0.74, boxstyle=box, **look))
        ax.text(x + width / 2, -y - 0.03, names[k], ha="center", va="center", family="monospace", size=12)
    if len(places) < len(found):
        ax.text(0, -ROWS, f"… and {len(found) - len(places)} more", color=GREY, size=13, va="center")
    what = f"{len(text)} characters" if items is None else f"{items} items"
    title = f"{what} in {len(found)} token{'s' * (len(found) != 1)}, {len(set(found))} different"
    figure.suptitle(title, x=0.01, ha="left", weight="bold")
    longest = max(found, key=len, default="")
    return figure, f"{title}. The longest token has {len(longest)} character{'s' * (len(longest) != 1)}."


# Lesson: reported answers --------------------------------------------------------------------------------


def reported(guess: int) -> tuple[Axes, str]:
    """The talk's answers to 314 ones, beside a model that always names one number."""
    table = measures.answers()
    ax = style.axes("", "answer", "", height=5.2)
    names = list(dict.fromkeys(table.model))
    marks = {"ones": ("o", BLUE), "comma_separated": ("s", RED), "groups_of_five": ("^", GREEN)}
    for k, (writing, (mark, colour)) in enumerate(marks.items()):
        rows = table[table.writing == writing]
        places = [len(names) - 1 - names.index(model) + 0.2 * (1 - k) for model in rows.model]
        ax.plot(rows.answer, places, mark, mfc="none", mew=2.5, ms=11, color=colour, label=measures.WRITINGS[writing])
    ax.axvline(measures.ASKED, color=BLACK, lw=2)
    ax.text(measures.ASKED + 3, -0.75, "314, the truth", size=13)
    ax.axvline(guess, color=GREY, lw=2, ls="--")
    side = "right" if guess < measures.ASKED else "left"
    ax.text(guess + (3 if side == "left" else -3), -0.75, f"always {guess}", size=13, color=GREY, ha=side)
    ax.set_yticks(range(len(names)), names[::-1])
    ax.set(ylim=(-1, len(names) - 0.4), xlim=(20, 520))
    ax.legend(loc="lower right", bbox_to_anchor=(1.0, 0.08))
    given = table.answer.dropna()
    nearer = int(((given - measures.ASKED).abs() < abs(guess - measures.ASKED)).sum())
    ax.set_title(f"{nearer} of {len(given)} answers beat always saying {guess}; {int(given.eq(314).sum())} are right")
    return ax, (
        f"Mean error of the {len(given)} answers {(given - measures.ASKED).abs().mean():.0f}, of always saying {guess} "
        f"{abs(guess - measures.ASKED)}; nearer than that: {nearer}."
    )


def always_one_number(guess: int) -> tuple[Axes, str]:
    """The error by length of a model that always names one number, in tasks with all and with seven tenths ones."""
    lengths = measures.PAPER_LENGTHS
    lines = {task: measures.always(guess, lengths, task) for task in ("ones", "zeros and ones")}
    means = {task: sum(errors) / len(errors) for task, errors in lines.items()}
    ax = style.axes(
        f"Always {guess}: at most {max(lines['ones']):.0f} off, and best at {guess} ones",
        "length n",
        "absolute error",
    )
    for errors, colour, name in zip(lines.values(), (BLUE, RED), ("n ones", "0.7 n ones"), strict=True):
        ax.plot(lengths, errors, "o-", color=colour, label=name)
    row = data.table("reported/counting_figures").query("quantity == 'largest absolute error'").iloc[0]
    ax.axhline(row.value, color=BLACK, lw=1.5, ls="--")
    ax.text(12, row.value + 2, f"largest error in the paper's Figure 3, task 2: about {row.value:.0f}", size=13)
    ax.set_ylim(0, max(112, 1.12 * max(lines["ones"])))
    style.label(ax)
    return ax, (
        f"Mean error over n = 10, 20, …, 200: {means['ones']:.1f} for n ones, {means['zeros and ones']:.1f} where seven in "
        f"ten are ones; largest {max(lines['ones']):.0f}."
    )


def bases(trials: int) -> tuple[Axes, str]:
    """The talk's accuracies by base, with the intervals they would have for a number of strings."""
    table, (low, high) = measures.base_intervals(trials), measures.plain_interval(trials)
    above = measures.separated(trials)
    ax = style.axes(
        f"With {trials:,} strings: {above} of {len(table)} bases above the plain string",
        "base of RoPE",
        "accuracy (%)",
        log="x",
    )
    ax.axhspan(low, high, color="#F7DCC8", zorder=0)
    ax.axhline(measures.PLAIN_ACCURACY, color=RED, lw=2)
    ax.text(1.0, measures.PLAIN_ACCURACY, "without separators", color=RED, size=13, va="bottom")
    errors = [table.accuracy_percent - table.low, table.high - table.accuracy_percent]
    ax.errorbar(table.base, table.accuracy_percent, errors, fmt="o", mfc="white", mew=2, color=BLUE, capsize=4)
    ax.text(0.02, 0.93, "with separators", color=BLUE, size=13, transform=ax.transAxes)
    ax.set_ylim(0, max(2.2, 1.15 * float(table.high.max())))
    rho, p = measures.base_trend()
    return ax, (
        f"Had each point {trials:,} strings, 95 % intervals of {above} of {len(table)} bases lie above that without "
        f"separators. Rank correlation with the base {rho:+.2f} (p = {p:.2f})."
    )
