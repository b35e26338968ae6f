"""What chapter 6 draws: functions that return a figure and the sentence that states its finding."""

import pandas as pd
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from helpers import data, differential, style
from helpers.chapter6 import measures, race

BLUE, RED, GREEN, PURPLE, BLACK, GREY = style.COLOURS.values()


# Lesson ------------------------------------------------------------------------------------------------


def cancel(signal: float, correlation: float, n: int) -> tuple[Figure, str]:
    """One signed row at lambda 0.8, and answer, noise and the answer's share against lambda."""
    first, second = measures.noisy_logits(signal, correlation, n, draws=40)
    a, b = first.softmax(-1), second.softmax(-1)
    lams = torch.linspace(0, 1, 21)
    rows = [a - lam * b for lam in lams]
    answer = torch.stack([row[:, 0].mean() for row in rows])
    noise = torch.stack([row[:, 1:].abs().sum(-1).mean() for row in rows])
    share = answer / (answer + noise)
    best = int(share.argmax())
    row = rows[16][0]
    below = float((rows[16][:, 1:] < 0).double().mean())
    figure = Figure(figsize=(11.0, 4.2))
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.3))
    heavy = torch.cat([each[0, 1:].topk(15).indices + 1 for each in (a, b)])
    places = torch.tensor([*range(15), *range(16, 31)])
    left.bar(places, a[0, heavy], 0.9, color="#cccccc")
    left.bar(places, row[heavy], 0.45, color=[RED if w < 0 else BLUE for w in row[heavy]])
    left.axhline(0, color=BLACK, lw=1)
    left.set(ylabel="weight", title="Before (grey) and at λ = 0.8")
    left.set_xticks([7, 23], ["heaviest keys\nof map 1", "of map 2"])
    left.grid(axis="x", visible=False)
    right.plot(lams, share, color=BLUE, label="answer's share")
    right.plot(lams, answer, color=BLACK, ls="--", label="answer")
    right.plot(lams, noise, color=RED, ls=":", label="noise")
    right.plot(lams[best], share[best], "o", color=BLUE)
    right.set(xlabel="λ", ylabel="weight", ylim=(0, 1.6), title=f"Share {share[0]:.2f} → {share[best]:.2f}")
    right.legend(loc="upper left", ncols=3, fontsize=12, handlelength=1.3, columnspacing=0.9)
    gain = float(share[best] / share[0])
    figure.suptitle(
        f"Correlation {correlation:g}: {'nothing gained' if gain < 1.05 else f'{gain:.1f} times the share'} at the best λ",
        x=0.01, ha="left", weight="bold",
    )  # fmt: skip
    return figure, (
        f"Answer's share {share[0]:.2f} at λ = 0, best {share[best]:.2f} at λ = {lams[best]:.2f}, {share[16]:.2f} at "
        f"λ = 0.8, where {below:.0%} of the noise weights are negative."
    )


def noise_left() -> tuple[Axes, str]:
    """What is left of the noise against the cosine of the two patterns: closed form, and simulated rows."""
    cosine = torch.linspace(0, 1, 101, dtype=torch.float64)
    ax = style.axes("λ = 0.8 helps only where the noises agree by more than 0.40", "cosine of the two noise patterns", "noise left")  # fmt: skip
    for lam, colour in ((0.2, GREEN), (0.5, PURPLE), (0.8, RED)):
        ax.plot(cosine, measures.left(cosine, lam), color=colour, label=f"λ = {lam}")
    ax.plot(cosine, (1 - cosine.square()).sqrt(), color=BLUE, ls="--", label="best λ")
    ax.axhline(1, color=BLACK, lw=1)
    worst = 0.0
    for spread in (1.0, 1.5, 2.0):
        for correlation in (0.0, 0.5, 0.9):
            for lam, colour in ((0.8, RED), (None, BLUE)):
                x, y = measures.simulated_left(correlation, spread, lam)
                exact = float(measures.left(x, x if lam is None else lam))
                worst = max(worst, abs(y - exact))
                ax.plot(x, y, "o", mfc="none", mew=2, color=colour)
    ax.set(xlim=(0, 1), ylim=(0, 1.4))
    ax.legend(loc="lower left")
    even = 0.8 / 2
    ax.set_title(f"λ = 0.8 helps only where the noises agree by more than {even:.2f}")
    independent = float(measures.left(0.0, 0.8))
    return ax, (
        f"With λ = 0.8 unrelated noise grows to {independent:.2f} of its size; patterns with a cosine of 0.9 leave "
        f"{float(measures.left(0.9, 0.8)):.2f}. Circles: simulated rows of 4,096 keys, within {worst:.2f} of the curves."
    )


def schedule() -> tuple[Axes, str]:
    """Where lambda starts in each layer, and the scale of a head."""
    layers = range(1, 29)
    start = [differential.lambda_init(layer) for layer in layers]
    ax = style.axes(f"From {start[0]:.1f} in layer 1 to {start[-1]:.2f} in layer 28", "layer (from 1)", "value")
    ax.plot(layers, start, "o-", ms=5, color=BLUE, label="λ_init")
    ax.plot(layers, [1 - x for x in start], "s--", ms=5, color=RED, label="1 − λ_init")
    ax.set_ylim(0, 1)
    style.label(ax)
    return ax, f"λ_init is {start[0]:.2f} in layer 1, {start[3]:.2f} in layer 4 and {start[-1]:.3f} in layer 28."


def gradient_ratio() -> tuple[Axes, str]:
    """Gradient of the query weights over a plain Transformer's, at the start of training, by length."""
    table = measures.gradient_table()
    chosen = table[table.layer == 3].pivot(index="n", columns="kind", values="queries")
    ax = style.axes("", "n (tokens)", "gradient of W_Q / Transformer's", log="xy")
    for kind, colour in zip(measures.KINDS[1:], (BLUE, GREEN, RED), strict=True):
        ax.plot(chosen.index, chosen[kind], "o-", color=colour, label=kind)
    ax.axhline(1, color=BLACK, lw=1)
    ax.set_xticks(list(chosen.index), [str(n) for n in chosen.index])
    ax.minorticks_off()
    style.label(ax)
    low, high = chosen["DIFF"].iloc[[0, -1]]
    plain = chosen[measures.KINDS[3]]
    ax.set_title(f"At the start the norm makes gradients {low:.0f} to {high:.0f} times larger")
    return ax, (
        f"Layer 3, fresh weights: with norm and scale {low:.1f} to {high:.1f} times the Transformer's gradient; without "
        f"them {plain.min():.1f} to {plain.max():.1f} times. Geometric mean of three seeds."
    )


def retrieval() -> tuple[Axes, str]:
    """Table 2 of Ye et al."""
    table = data.table("reported/differential_retrieval")
    last = table.iloc[-1]
    ax = style.axes(
        f"Reported: {last.transformer:.2f} against {last['diff']:.2f} with six needles", "needles", "accuracy"
    )
    ax.plot(table.needles, table["diff"], "o--", mfc="white", mew=2, color=BLUE, label="DIFF")
    ax.plot(table.needles, table.transformer, "s--", mfc="white", mew=2, color=RED, label="Transformer")
    ax.set(ylim=(0, 1.05), xticks=list(table.needles))
    style.label(ax)
    return ax, "Needles and accuracy, Transformer and DIFF: " + "; ".join(
        f"{int(row.needles)}: {row.transformer:.2f}, {row.diff_:.2f}" for row in table.rename(columns={"diff": "diff_"}).itertuples()
    )  # fmt: skip


def answer_mass() -> tuple[Axes, str]:
    """Table 3 of Ye et al."""
    table = data.table("reported/differential_attention_mass")
    mean = table.mean()
    rest = [1 - mean[f"answer_{who}"] - mean[f"noise_{who}"] for who in ("transformer", "diff")]
    ax = style.axes(
        f"Reported: noise {mean.noise_transformer:.2f} → {mean.noise_diff:.2f}, and {rest[1]:.0%} is neither",
        "depth of the answer (% of the context)", "normalised attention",
    )  # fmt: skip
    for column, colour, mark, label in (
        ("noise_transformer", RED, "s", "noise, Transformer"),
        ("answer_diff", BLUE, "o", "answer, DIFF"),
        ("answer_transformer", RED, "o", "answer, Transformer"),
        ("noise_diff", BLUE, "s", "noise, DIFF"),
    ):
        ax.plot(table.depth, table[column], mark + ("-" if "answer" in column else "--"), mfc="white", mew=2, color=colour, label=label)  # fmt: skip
    ax.set_ylim(-0.02, 0.7)
    style.label(ax)
    return ax, (
        f"Mean over depths: answer {mean.answer_transformer:.2f} (Transformer) and {mean.answer_diff:.2f} (DIFF), noise "
        f"{mean.noise_transformer:.2f} and {mean.noise_diff:.2f}; {rest[0]:.0%} and {rest[1]:.0%} are in neither column."
    )


def counting() -> tuple[Axes, str]:
    """One row, its noise summed with signs and by size."""
    table = measures.counted()
    ways = list(table.columns[1:])
    ax = style.axes("", "noise summed …", "weight")
    for k, (name, colour) in enumerate(zip(table.index, (GREY, RED, BLUE), strict=True)):
        places = [i + 0.27 * (k - 1) for i in range(2)]
        bars = ax.bar(places, table.loc[name, ways], 0.25, color=colour, label=name)
        ax.bar_label(bars, fmt="%.2f", size=14)
    ax.set_xticks(range(2), ["with signs", "by size"])
    ax.grid(axis="x", visible=False)
    ax.set_ylim(0, 1.5)
    ax.legend(loc="upper left")
    signed, sized = (table.loc["difference, independent noise", way] for way in ways)
    ax.set_title(f"The same row has a noise of {signed:.2f} or of {sized:.2f}")
    return ax, (
        f"λ = 0.8, answer {table.answer.iloc[0]:.2f} in all three. With signs the noise falls from {table[ways[0]].iloc[0]:.2f} to "
        f"{signed:.2f} even when it is independent; by size it is {sized:.2f} then, and {table[ways[1]].iloc[2]:.2f} when correlated."
    )


def ablations() -> tuple[Axes, str]:
    """Table 6 of Ye et al."""
    table = data.table("reported/differential_ablations")
    loss = table.set_index("model").loss
    base, own = loss["Transformer"], loss["DIFF Transformer"]
    ax = style.axes("", "", "")
    names = list(table.model)[::-1]
    gaps = [float(value - own) for value in table.loss][::-1]
    colours = [GREY if "Transformer" in n and n != "DIFF Transformer" else RED if g > base - own else BLUE for n, g in zip(names, gaps, strict=True)]  # fmt: skip
    ax.barh(names, gaps, color=colours, height=0.6)
    for y, gap in enumerate(gaps):
        ax.text(gap + 0.001, y, f"+{gap:.3f}" if gap else f"{own:.3f}", va="center", size=14)
    ax.set_xlabel("validation loss above DIFF's")
    ax.grid(axis="y", visible=False)
    ax.set_xlim(0, 0.075)
    norm = own - loss["DIFF, no head norm"]
    plain = loss["Transformer, half the heads, head norm"] - loss["Transformer, half the heads"]
    ax.set_title(f"Norm: DIFF {norm:.3f}, plain {plain:.3f}".replace("-", "−"))
    return ax, "Reported validation loss: " + "; ".join(
        f"{row.model} {row.loss:.3f}" for row in table.itertuples()
    ) + "."


def panel(content: str, n: int) -> tuple[Figure, str]:
    """Twelve maps from the same logits to weights, on the same axes."""
    logits, places = measures.panel_logits(content, n)
    figure = Figure(figsize=(12.0, 5.4))
    axes = figure.subplots(3, 4, sharex=True, sharey=True).flatten()
    answers, totals = {}, {}
    for ax, way in zip(axes, measures.MAPS, strict=True):
        weights = way.call(logits)
        answers[way.name] = float(weights[places].sum()) if places else 0.0
        totals[way.name] = float(weights.sum())
        colours = [BLACK if i in places else RED if w < 0 else BLUE for i, w in enumerate(weights.tolist())]
        ax.vlines(range(n), 0, weights, color=colours, lw=max(1.4, 90 / n))
        for i in places:
            ax.plot(i, weights[i], "o", color=BLACK, ms=5)
        ax.axhline(0, color=BLACK, lw=0.8)
        ax.set_title(way.name, size=14)
        words = (
            f"answer {answers[way.name]:.2f}\nsum {totals[way.name]:.2f}" if places else f"sum {totals[way.name]:.2f}"
        )
        ax.text(
            0.97,
            0.93,
            words,
            transform=ax.transAxes,
            ha="right",
            va="top",
            size=13,
            bbox={"fc": "white", "ec": "none", "pad": 1, "alpha": 0.85},
        )
        ax.set_ylim(-0.25, 1.05)
        ax.tick_params(labelsize=11)
    if places:
        best = [name for name, value in answers.items() if value > 0.9 * len(places) and totals[name] < 1.5]
        least = min(answers, key=answers.get)
        finding = f"Answer: softmax {answers['softmax']:.2f}; least by {least} ({answers[least]:.2f})."
        title = f"{content.capitalize()} among {n} keys: softmax gives {answers['softmax']:.2f}"
        if len(places) == 1:
            finding += f" Above 0.9: {', '.join(best) or 'none'}."
    else:
        silent = [name for name, value in totals.items() if value < 0.1]
        title = f"{content.capitalize()}, {n} keys: {len(silent)} of 12 say nothing"
        finding = f"Weights that sum to less than 0.1: {', '.join(silent) or 'none'}. Softmax hands out all of its 1."
    figure.suptitle(title, x=0.01, ha="left", weight="bold")
    return figure, finding


# The race ----------------------------------------------------------------------------------------------

VERDICTS = {"baseline": BLACK, "better": GREEN, "worse": RED, "no difference": GREY}
NAMES = {
    "retrieval": "retrieval",
    "first": "first copy",
    "last": "last copy",
    "counting": "counting",
    "language": "language loss",
}


def _grid(titles: list[str], names: list[str], width: float, height: float) -> tuple[Figure, list[Axes]]:
    """Panels side by side that share their rows, one a name, the first on top."""
    figure = Figure(figsize=(width, height))
    panels = list(figure.subplots(1, len(titles), sharey=True, squeeze=False)[0])
    for ax, title in zip(panels, titles, strict=True):
        ax.set_title(title, loc="center", size=14)
        ax.set_yticks(range(len(names)), names)
        ax.set_ylim(len(names) - 0.4, -0.6)
        ax.tick_params(axis="x", labelsize=11)
        ax.tick_params(axis="y", length=0)
        ax.locator_params(axis="x", nbins=3)
    return figure, panels


def race_table(rows: pd.DataFrame, own: pd.DataFrame | None = None) -> tuple[Figure, str]:
    """Entries by tasks: score at the trained length (open) and beyond it (filled, 95 % intervals), and time a step.

    Args:
        rows: `race.table()`.
        own: rows of `race.enter`, drawn below.
    """
    found, trained = race.compare(rows), race.compare(rows, "score_16")
    names = [*rows.entry.unique()]
    tasks = [task for task in race.TASKS if task in set(rows.task)]
    mine = [] if own is None else [*own.entry.unique()]
    titles = [NAMES[task] for task in tasks] + ["ms a step"]
    figure, panels = _grid(titles, names + mine, max(11, 1.65 * len(titles) + 3.1), 0.34 * len(names + mine) + 1.5)
    for ax, task in zip(panels, tasks, strict=False):
        here = found[found.task == task].set_index("entry")
        for y, name in enumerate(names):
            row, colour = here.loc[name], VERDICTS[here.verdict[name]]
            ax.plot([row.low, row.high], [y, y], color=colour, lw=2.5)
            ax.plot(row["mean"], y, "o", color=colour, ms=8)
        start = trained[trained.task == task].set_index("entry")["mean"]
        ax.plot(start[names], range(len(names)), "o", mfc="none", mec=BLACK, ms=8, mew=1.2)
        ax.axvline(here["mean"][race.BASELINE], color=BLACK, lw=1, ls=":")
        if task != "language":
            ax.set_xlim(-0.05, 1.08)
            ax.set_xticks([0, 0.5, 1])
    _cost(panels[-1], rows, names)
    if own is not None:
        _own(panels, tasks, race.with_longer(own), len(names))
    judged = found[(found.verdict != "baseline") & found.entry.isin(race.REMEDIES) & (found.task != "language")]
    counts = judged.verdict.value_counts()
    better, worse, same = (int(counts.get(kind, 0)) for kind in ("better", "worse", "no difference"))
    figure.suptitle(
        f"Beyond the trained length, against {race.BASELINE}: {better} better, {worse} worse, {same} no difference (without language)",
        size=16, weight="bold", x=0.01, ha="left",
    )  # fmt: skip
    lists = {
        kind: "; ".join(
            f"{NAMES[task]}: {', '.join(part.entry)}"
            for task, part in judged[judged.verdict == kind].groupby("task", sort=False)
        )
        or "none"
        for kind in ("better", "worse")
    }
    return figure, (
        f"Against {race.BASELINE}, better: {lists['better']}. Worse: {lists['worse']}. All else: no difference. "
        + (language(rows) if "language" in tasks else "")
    )


def language(rows: pd.DataFrame) -> str:
    """The control: who loses less with length than the baseline, and that the decoder that hardly looks back loses least."""
    found = race.compare(rows)
    found = found[found.task == "language"].set_index("entry")
    here = rows[rows.task == "language"].groupby("entry")[f"score_{race.LENGTHS[-1]}"].mean()
    better = [name for name in race.REMEDIES if found.verdict[name] == "better"]
    least, base = found["mean"].idxmin(), race.BASELINE
    who = f"the decoder that {least.removeprefix('control: ')}" if least in race.CONTROLS else least
    return (
        f"Language: {', '.join(better) or 'none'} lose less than {base} beyond the trained length, but {who} has the lowest "
        f"loss ({found['mean'][least]:.2f}; {base} {found['mean'][base]:.2f}, at {race.LENGTHS[-1]} {here[base]:.2f}; "
        f"letter frequencies alone {race.CHANCE['language']:.2f})."
    )


def _cost(ax: Axes, rows: pd.DataFrame, names: list[str]) -> None:
    times = rows.groupby("entry").step_ms.median()
    ax.barh(range(len(names)), times[names], 0.6, color=GREY)
    ax.set_xlim(0, None)


def _own(panels: list[Axes], tasks: list[str], own: pd.DataFrame, start: int) -> None:
    """The learner's rows, in a colour of their own."""
    for y, (_, part) in enumerate(own.groupby("entry", sort=False), start):
        for ax, task in zip(panels, tasks, strict=False):
            here = part[part.task == task]
            if len(here):
                mean, low, high = race.interval(here.longer)
                if len(here) > 1:
                    ax.plot([low, high], [y, y], color=PURPLE, lw=2.5)
                ax.plot(mean, y, "D", color=PURPLE, ms=8)
                ax.plot(here.score_16.mean(), y, "D", mfc="none", mec=PURPLE, ms=8)
        panels[-1].barh(y, part.step_ms.median(), 0.6, color=PURPLE)


def lengths(rows: pd.DataFrame, task: str) -> tuple[Axes, str]:
    """Score against length for every remedy of a task; the worst at the longest is named, and the best if there is one."""
    means = rows[(rows.task == task) & rows.entry.isin(race.REMEDIES)].groupby("entry", sort=False)
    means = means[[f"score_{n}" for n in race.LENGTHS]].mean()
    last, low = means.iloc[:, -1], task == "language"
    order = last.sort_values(ascending=low)
    best, level, longest = order.index[0], f"{order.iloc[0]:.2f}", race.LENGTHS[-1]
    tied = sum(f"{value:.2f}" == level for value in order)
    found = race.compare(rows, f"score_{longest}").set_index(["task", "entry"]).verdict[task, best]
    named = {best: GREEN} if tied == 1 and found == "better" else {}
    named |= {race.BASELINE: BLACK, order.index[-1]: RED, "differential": BLUE}
    word = "loss (nats)" if low else "accuracy"
    if tied > 1:
        title = f"{NAMES[task]}: {tied} of {len(order)} are at {level} at {longest}"
    elif found == "better":
        title = f"{NAMES[task]}: {best} is ahead of {race.BASELINE} at {longest}"
    else:
        title = f"{NAMES[task]}: at {longest} none is told from {race.BASELINE} as better"
    ax = style.axes(title, "length (trained on up to 16)", word, log="x")
    ax.axhline(race.CHANCE[task], color=GREY, ls=":", lw=1.5)
    ax.text(race.LENGTHS[0], race.CHANCE[task] + 0.01, "letter frequencies" if low else "guessing", size=12, color=GREY)
    lines, more = [], ""
    for name, row in means.iterrows():
        line = ax.plot(race.LENGTHS, row, color=named.get(name, "#c4c4c4"), lw=3 if name in named else 1.5, label=name)
        lines += line if name in named else []
    if low:  # the control that hardly looks back
        blind = rows[(rows.task == task) & rows.entry.isin(race.CONTROLS)][list(means.columns)].mean()
        lines += ax.plot(race.LENGTHS, blind, "--", color=PURPLE, label="control")
        more = f", control {blind.iloc[-1]:.2f}"
        if blind.iloc[-1] < order.iloc[0]:
            ax.set_title(f"{NAMES[task]}: at {longest} the blind control is lowest")
    ax.set_xticks(race.LENGTHS, race.LENGTHS)
    ax.minorticks_off()
    style.label(ax, lines)
    listed = ", ".join(f"{name} {value:.2f}" for name, value in order.items() if name in named)
    return ax, f"{NAMES[task]} at {race.LENGTHS[-1]}, {word}, mean of {rows.seed.nunique()} seeds: {listed}{more}."


def masses(rows: pd.DataFrame, heads: pd.DataFrame, task: str = "retrieval") -> tuple[Figure, str]:
    """Attention to the answer (mean of heads, and the best head of each question) and to noise, at two lengths.

    Args:
        rows: `race.table()`.
        heads: `race.heads_table()`.
        task: one that both tables have.
    """
    names, short, long = race.REMEDIES, race.TRAINED, race.LENGTHS[-1]
    panels = {
        "answer, best head": (heads, "best", GREEN),
        "answer, mean of heads": (rows, "answer", BLUE),
        "noise, mean of heads": (rows, "noise", RED),
    }
    figure, axes = _grid(list(panels), names, 13.0, 0.27 * len(names) + 1.4)  # low: its text stays large on a slide
    ends = {}
    for ax, (title, (table, what, colour)) in zip(axes, panels.items(), strict=True):
        means = table[table.task == task].groupby("entry")[[f"{what}_{short}", f"{what}_{long}"]].mean().loc[names]
        for y, (low, high) in enumerate(means.values):
            ax.plot([low, high], [y, y], color="#c4c4c4", lw=3, zorder=1)
        ax.plot(means.iloc[:, 0], range(len(names)), "o", mfc="white", mec=BLACK, ms=8)
        ax.plot(means.iloc[:, 1], range(len(names)), "o", color=colour, ms=9)
        ax.set_xlim(-0.03, 1.03)
        ax.set_xlabel("share of the attention", size=13)
        ends[title] = means.iloc[:, 1]
    best, mean = ends["answer, best head"].sort_values(ascending=False), ends["answer, mean of heads"]
    figure.suptitle(
        f"{NAMES[task]}: {best.index[0]} keeps {best.iloc[0]:.2f} in the best head, {mean[best.index[0]]:.2f} in the mean",
        size=16, weight="bold", x=0.01, ha="left",
    )  # fmt: skip
    listed = ", ".join(f"{name} {value:.2f}" for name, value in best[:3].items())
    return figure, (
        f"{NAMES[task]} at {long}, best head of each question: {listed}, {race.BASELINE} {best[race.BASELINE]:.2f}. "
        f"Open: at {short}."
    )


def _pair(rows: pd.DataFrame, task: str, columns: dict[str, str], title: str, log: bool = False) -> tuple[Figure, str]:
    """Two or more columns of the table side by side, a point a seed and the mean as a bar."""
    names, here = race.REMEDIES, rows[rows.task == task]
    figure, panels = _grid(list(columns.values()), names, 10.5, 0.34 * len(names) + 1.6)
    said = []
    for ax, (column, label) in zip(panels, columns.items(), strict=True):
        means = here.groupby("entry")[column].mean().loc[names]
        for y, name in enumerate(names):
            values = here[here.entry == name][column]
            ax.plot(values, [y] * len(values), "o", ms=5, color=GREY, alpha=0.7)
            ax.plot(means[name], y, "|", ms=18, mew=3, color=BLUE if name != race.BASELINE else BLACK)
        if log:
            ax.set_xscale("log")
        said.append(
            f"{label}: least {means.idxmin()} {means.min():.3g}, most {means.idxmax()} {means.max():.3g}, {race.BASELINE} {means[race.BASELINE]:.3g}"
        )
    figure.suptitle(title, size=16, weight="bold", x=0.01, ha="left")
    return figure, "; ".join(said) + "."


def share_and_score(rows: pd.DataFrame, task: str = "retrieval") -> tuple[Axes, str]:
    """Does who attends most to the answer also answer best? A point a remedy, means at the longest length."""
    longest = race.LENGTHS[-1]
    columns = [f"answer_{longest}", f"score_{longest}"]
    means = rows[(rows.task == task) & rows.entry.isin(race.REMEDIES)].groupby("entry", sort=False)[columns].mean()
    rho, _ = race.rank_correlation(rows, task)
    ax = style.axes(
        f"{NAMES[task]}: share and accuracy, rank correlation {rho:.2f}",
        f"share of the attention on the answer, {longest} tokens",
        "accuracy",
    )
    named = {
        race.BASELINE,
        "differential",
        means[columns[0]].idxmax(),
        means[columns[1]].idxmax(),
        means[columns[1]].idxmin(),
    }
    ax.plot(means[columns[0]], means[columns[1]], "o", ms=9, color=GREY)
    for name, (share, score) in means.iterrows():
        if name in named:
            ax.plot(share, score, "o", ms=10, color=BLACK if name == race.BASELINE else BLUE)
            ax.annotate(name, (share, score), xytext=(8, 4), textcoords="offset points", size=13)
    ax.margins(x=0.2, y=0.12)
    return ax, f"Rank correlation with accuracy: {correlations(rows, task)}."


def correlations(rows: pd.DataFrame, task: str = "retrieval") -> str:
    """How the shares go with accuracy at the longest length: on the answer, without the two best entries, on noise."""
    best = rows[(rows.task == task) & rows.entry.isin(race.REMEDIES)].groupby("entry")[f"score_{race.LENGTHS[-1]}"]
    two = best.mean().nlargest(2).index
    found = {
        f"share on the answer, {len(race.REMEDIES)} remedies": race.rank_correlation(rows, task),
        f"without {two[0]} and {two[1]}": race.rank_correlation(rows, task, without=two),
        "share on noise": race.rank_correlation(rows, task, "noise"),
    }
    return ", ".join(f"{name} {rho:.2f} (p = {p:.2g})" for name, (rho, p) in found.items())


def controls(rows: pd.DataFrame) -> pd.DataFrame:
    """Beyond the trained length: what must fail beside the baseline, with what guessing gives."""
    means = rows.groupby(["entry", "task"], sort=False).longer.mean().unstack("task")[list(race.TASKS)]
    table = means.loc[[race.BASELINE, *race.CONTROLS]].rename(columns=NAMES)
    table.loc["guessing"] = [race.CHANCE[task] for task in race.TASKS]
    return table


def claims_of_the_talk(rows: pd.DataFrame) -> pd.DataFrame:
    """For each remedy of the talk's last slide: verdict by task against the baseline, beyond the trained length."""
    found = race.compare(rows).set_index(["entry", "task"])
    table = {}
    for name in [*race.POSITIONS, *race.PHYSICAL.values()]:
        table[name] = {NAMES[task]: _signed(found.loc[name, task]) for task in race.TASKS if task != "language"}
    return pd.DataFrame(table).T


def _signed(row: pd.Series) -> str:
    return "–" if row.verdict == "no difference" else f"{row.verdict} ({row.gap:+.2f})"


def outliers(rows: pd.DataFrame) -> tuple[Figure, str]:
    """Largest over median, of logits and of final states, and what rounding to four bits does."""
    columns = {"outlier_logits": "logits", "outlier_states": "states", "quantisation_error": f"{race.BITS}-bit error"}
    figure, finding = _pair(rows, "retrieval", columns, f"Outliers and the error of {race.BITS} bits at retrieval")
    wide = rows[rows.task == "retrieval"].pivot(index="seed", columns="entry", values="quantisation_error")
    others, base = [name for name in race.REMEDIES if name != race.BASELINE], wide[race.BASELINE]
    p = race.holm([race.paired(wide[name], base) for name in others])
    above = [name for name in others if wide[name].min() > base.max()]
    sure = [name for name, each in zip(others, p, strict=True) if each < 0.05 and wide[name].mean() > base.mean()]
    return figure, (
        f"{finding} Every run loses more in {race.BITS} bits than all of {race.BASELINE}'s: {', '.join(above) or 'none'}; "
        f"more by the corrected test: {', '.join(sure) or 'none'}."
    )


def ranks(rows: pd.DataFrame) -> tuple[Figure, str]:
    """Effective rank of the final states, and the last-token distance at the trained and the longest length."""
    short, long = race.TRAINED, race.LENGTHS[-1]
    columns = {
        "effective_rank": "effective rank",
        f"distance_{short}": f"distance at {short}",
        f"distance_{long}": f"at {long}",
    }
    means = rows[(rows.task == "retrieval") & rows.entry.isin(race.REMEDIES)].groupby("entry")[list(columns)].mean()
    fallen = int((means.iloc[:, 2] < means.iloc[:, 1]).sum())
    return _pair(rows, "retrieval", columns, f"The distance falls in {fallen} of {len(means)} remedies")


# What the lab says -------------------------------------------------------------------------------------


def protocol(rows: pd.DataFrame) -> str:
    """The budget in words, from the settings and the table."""
    kept = rows[rows.entry.isin(race.REMEDIES)]
    apart = kept.groupby("task").parameters.agg(lambda p: p.max() / p.min() - 1).max()
    budget = race.BUDGET
    return (
        f"**Everybody gets** {budget['layers']} layers of width {budget['width']}, {kept.parameters.min():,} to "
        f"{kept.parameters.max():,} parameters (within one task they differ by {apart:.1%} at most), {rows.steps.iloc[0]} steps "
        f"of {budget['rows']} rows with up to {race.TRAINED} pairs, digits, letters or characters, and the questions, AdamW at {budget['rate']}, {rows.seed.nunique()} seeds. "
        f"**Tests** on {', '.join(map(str, race.LENGTHS))} of them. {len(rows)} runs, {rows.seconds.sum() / 60:.0f} minutes "
        "in all on shared cores."
    )


def examples() -> pd.DataFrame:
    """One row of each task in words."""
    lines = {}
    for task in race.TASKS:
        ids, targets = race.TASKS[task](8, 1)(torch.Generator().manual_seed(1))
        words = race.vocabulary(task)
        asked = (targets[0] >= 0).nonzero().flatten()
        text = ("" if task == "language" else " ").join(words[k] for k in ids[0] if k)
        right = ("" if task == "language" else " ").join(words[k] for k in targets[0][asked])
        lines[NAMES[task].removesuffix(" loss")] = {"tokens": text, "to be named": right}
    return pd.DataFrame(lines).T


def legend(rows: pd.DataFrame) -> str:
    """What the marks of the table mean."""
    count = len(race.REMEDIES) - 1
    return (
        f"Open: at length {race.TRAINED}. Filled: mean at longer ones, 95 % interval over {rows.seed.nunique()} seeds. "
        f"Green better, orange worse, grey no difference: paired t test, Holm's correction over all comparisons with {race.BASELINE}. "
        f"Purple: trained on this page. {count} remedies and a control."
    )


def _best_heads(heads: pd.DataFrame) -> pd.DataFrame:
    long, short = race.LENGTHS[-1], race.TRAINED
    columns = [f"best_{long}", f"sharp_{long}", f"one_{long}", f"best_{short}"]
    means = heads.groupby(["task", "entry"])[columns].mean()
    return means.set_axis(["best", "sharp", "one", "short"], axis=1)


def told_positions(rows: pd.DataFrame, heads: pd.DataFrame) -> str:
    """What was found about the first half of the talk's last slide."""
    base, long, found = race.BASELINE, race.LENGTHS[-1], _best_heads(heads)
    right = rows.groupby(["task", "entry"])[f"score_{long}"].mean()
    mean = rows[rows.task == "retrieval"].groupby("entry")[f"answer_{long}"].mean()
    best = right["retrieval"][race.POSITIONS].idxmax()
    share, plain = found.loc["retrieval", best], found.loc["retrieval", base]
    top = found.loc["last"].loc[race.POSITIONS, "best"].idxmax()
    return (
        f"**At retrieval** {best} names {right['retrieval', best]:.2f} of the answers on {long} tokens ({base} "
        f"{right['retrieval', base]:.2f}). The head that looks at an answer most gives it {share.best:.2f} of its attention "
        f"({base} {plain.best:.2f}), more than {race.SHARP} in {share.sharp:.0%} of the questions. Heads share the questions "
        f"out: the mean over heads is {mean[best]:.2f}, and no head has more than {share.one:.2f} over all questions.\n\n"
        f"**At the last copy** no position encoding has more than {found.best['last', top]:.2f} in the best head ({top}, "
        f"which names {right['last', top]:.2f} of the digits)."
    )


def told_physical(rows: pd.DataFrame, heads: pd.DataFrame) -> str:
    """What was found about the second half of the talk's last slide."""
    found, long = race.compare(rows).set_index(["entry", "task"]), race.LENGTHS[-1]
    sure = race.compare(heads, f"best_{long}").set_index(["entry", "task"])
    lines = []
    for what, entry in race.PHYSICAL.items():
        verdicts = {NAMES[task]: found.loc[entry, task] for task in ("retrieval", "first", "last")}
        listed = ", ".join(f"{name} {row.gap:+.2f} ({row.verdict})" for name, row in verdicts.items())
        line = f"**{what.capitalize()}**, {entry}: {listed}."
        if what in race.STANDINS:
            line += f" It is only {race.STANDINS[what]}."
        if what == "windows":
            ours, theirs = (_best_heads(heads).loc["last", name] for name in (entry, race.BASELINE))
            line += (
                f" At the last copy its best head keeps {ours.best:.2f} on the answer at {long} ({ours.short:.2f} at "
                f"{race.TRAINED}), {race.BASELINE}'s {theirs.best:.2f} ({theirs.short:.2f}); corrected p = "
                f"{sure.p[entry, 'last']:.1g}."
            )
        lines.append(line)
    return "\n\n".join(lines)


def hypotheses(rows: pd.DataFrame, heads: pd.DataFrame) -> str:
    """The lesson's five hypotheses, each by its own rule, as a table in Markdown.

    H1 fails if a position encoding is right in 0.9 of retrieval beyond the trained length; H2 and H5 if no paired test,
    corrected, finds one of their entries better; H3 if the sharper maps lose more than half of what softmax loses from the
    trained to the longest length; H4 if no test (paired over seeds, corrected) finds that less than all noise is left.
    """
    base, short, long = race.BASELINE, race.TRAINED, race.LENGTHS[-1]
    found = race.compare(rows).set_index(["entry", "task"])
    synthetic = [task for task in race.TASKS if task != "language"]

    def better(*entries: str) -> str:
        pairs = [(e, t) for e in entries for t in synthetic if found.verdict[e, t] == "better"]
        return "; ".join(f"{e} at {NAMES[t]}" for e, t in pairs) or "none"

    mean = rows[rows.task == "retrieval"].groupby("entry")[["longer", f"score_{short}", f"score_{long}"]].mean()
    kept = [f"{name} {mean.longer[name]:.2f}" for name in race.POSITIONS if mean.longer[name] >= 0.9]
    start, end = mean[f"score_{short}"], mean[f"score_{long}"]
    sharper, two = ["scalable softmax", "adaptive temperature"], ["differential", "differential, version 2"]
    lost, ends = start - end, ", ".join(f"{end[name]:.2f}" for name in sharper)
    noises, left = {}, []
    for name in two:
        here = heads[(heads.task == "retrieval") & (heads.entry == name)]
        parts = {what: here[[f"{what}_1", f"{what}_2"]].mean(axis=1) for what in ("cosine", "half", "left")}
        noises[name] = ", ".join(f"{part.mean():.2f}" for part in parts.values())
        left.append((parts["left"].mean(), race.paired(parts["left"], [1.0] * len(here))))
    p = race.holm([each for _, each in left])
    less = any(size < 1 and each < 0.05 for (size, _), each in zip(left, p, strict=True))
    physical, says = better(*race.PHYSICAL.values()), better("off-by-one softmax", "gated attention")
    lines = [
        ("H1: positions give no extreme attention", "one keeps retrieval", ", ".join(kept) or "none", not kept),
        ("H2: physical intervention does", "none is better", f"better: {physical}", physical != "none"),
        (
            "H3: a sharper map is enough",
            "it fades as softmax does",
            f"{start[base]:.2f} → {ends} ({base} {end[base]:.2f}); better: {better(*sharper)}",
            min(lost[sharper]) < lost[base] / 2,
        ),
        (
            "H4: a difference ignores noise",
            "its noises do not agree, or it gains without that",
            f"cosine, λ/2, noise left: {noises[two[0]]}; version 2: {noises[two[1]]}; better: {better(*two)}",
            less,
        ),
        ("H5: saying nothing counts", "none is better", f"better: {says}", says != "none"),
    ]
    head = "| hypothesis | it fails if | found | so it |\n|---|---|---|---|\n"
    return head + "\n".join(
        f"| {name} | {rule} | {what} | {'stands' if stands else 'fails'} |" for name, rule, what, stands in lines
    )


def answer(rows: pd.DataFrame, heads: pd.DataFrame) -> str:
    """The answer to the lab's question and to the course's."""
    found, long = race.compare(rows), race.LENGTHS[-1]
    found = found[found.entry.isin(race.REMEDIES) & (found.task != "language")]
    better = (
        found[found.verdict == "better"].groupby("entry").task.agg(lambda tasks: ", ".join(NAMES[t] for t in tasks))
    )
    listed = "; ".join(f"**{name}** ({tasks})" for name, tasks in better.items()) or "none"
    best = heads.groupby(["entry", "task"])[f"best_{long}"].mean().unstack("task").loc[race.REMEDIES]
    kept = {task: (best[task].idxmax(), best[task].max(), best[task][race.BASELINE]) for task in ("retrieval", "last")}
    told = ", ".join(
        f"**{name}** keeps {share:.2f} on the answer at {NAMES[task]} ({race.BASELINE} {base:.2f})"
        for task, (name, share, base) in kept.items()
    )
    both = [name for name in race.REMEDIES if (best.loc[name] > race.SHARP).all()]
    return (
        f"Better than {race.BASELINE} beyond the trained length, by a test that can say no: {listed}. Can attention be made "
        f"to ignore? One task at a time: in the best head, on {long} tokens, {told}. Above {race.SHARP} at both: "
        f"{', '.join(both) or 'none'}. {language(rows)}"
    )
