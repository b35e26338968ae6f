"""What the claims of chapter 5 are decided by, each measured by a small function; words and rules stand in its table."""

import math
from collections.abc import Sequence

import pandas as pd
import torch

from course.chapter5 import measures
from course.claims import Numbers, called
from course.experiments import protocol, slashes
from helpers import attention, data, models, probe, rope
from helpers.models import LanguageModel

FAR = [1, 10, 100, 1000, 10_000, 100_000]
QUARTERS = list(measures.BAND_NAMES)

# Closed forms ------------------------------------------------------------------------------------------


def bound_decays() -> Numbers:
    """The bound at the distances 0 and `FAR`, and at how many of the first 250 steps it rises."""
    steps = rope.decay_bound(torch.arange(251), 128, 1e4).diff()
    return {"bound": rope.decay_bound(torch.tensor([0, *FAR]), 128, 1e4).tolist(), "rises": int((steps > 0).sum())}


def gaussian_scores() -> Numbers:
    """Over √d the standard deviation of the scores at the distances `FAR`; the largest mean, and how many standard errors."""
    scores = measures.gaussian_scores(FAR, 20_000)
    means, spread = scores.mean(0).abs(), scores.std(0)
    errors = float((means / spread).max()) * math.sqrt(len(scores))
    return {"spread": spread.tolist(), "mean": float(means.max()) * math.sqrt(128), "errors": errors}


def any_distance_can_be_the_favourite() -> Numbers:
    """For each distance a random query, and its key turned by that distance: where the largest of 10,000 logits is."""
    wanted, found = [0, 1, 50, 700, 5000, 9999], []
    theta, m = rope.frequencies(64, 1e4), torch.arange(10_000).double()
    queries = torch.randn(len(wanted), 1, 64, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for query, distance in zip(queries, wanted, strict=True):
        key = rope.rotate(query, torch.tensor([float(distance)]), theta)
        found.append(int((rope.rotate(key.expand(len(m), -1), -m, theta) @ query[0]).argmax()))
    return {"wanted": wanted, "found": found}


def no_positions_no_diagonal() -> Numbers:
    """The largest weight on itself in a first layer, plain and turned, and the least of a head in a second one."""
    plain, turned = (measures.weights_without_positions(turn=turn) for turn in (False, True))
    second = measures.second_layer_without_positions(64, 8 * 64**2).diagonal()
    return {
        "heads": len(plain),
        "plain": float(plain.max()),
        "turned": float(turned.max()),
        "second": float(second.min()),
    }


def rope_makes_places() -> Numbers:
    """The scale that a diagonal and a previous-token head take, and the least weight on their places that it gives."""
    theta = rope.frequencies(128, 1e4)
    scales = [rope.slash_scale(theta, 4096, offset=offset) for offset in (0, 1)]
    reached = [float(rope.slash_attention(theta, 1024, k, scale).diagonal(-k).min()) for k, scale in enumerate(scales)]
    return {"scales": scales, "reached": reached, "one": rope.slash_scale(torch.ones(1), 4096)}


def one_frequency_loses_content() -> Numbers:
    """By frequency, the first distance at which a query scores a key of each of 64 angles negatively, infinity where none is.

    A token with no score at all then leads, whatever the angle between query and key.
    """
    around = torch.arange(64, dtype=torch.float64) * 2 * math.pi / 64
    keys, query = torch.stack([around.cos(), around.sin()], 1), torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    first = {}
    for theta in (1.0, 0.01, 1e-4):
        m = torch.arange(math.ceil(2 * math.pi / theta) + 2)
        negative = rope.rotate(query.expand(len(m), -1), m, torch.tensor([theta])) @ keys.T < 0
        first[theta] = torch.where(negative.any(0), negative.int().argmax(0).double(), math.inf).tolist()
    return {"first": first}


def lead_is_the_cosine_sum() -> Numbers:
    distances = [1, 100, 1000, 4096]
    mean, error = measures.lead(distances)
    exact = 2 * rope.cosine_sum(torch.tensor(distances), 128, 1e4)
    errors = float(((mean - exact) / error).abs().max())
    return {"distances": distances, "simulated": mean.tolist(), "exact": exact.tolist(), "errors": errors}


def base_for(context: int) -> Numbers:
    """The smallest base that passes, the published one, whether they are the same to two digits, and where that fails."""
    published = data.table("reported/rope_base_bound").set_index("context").published[context]
    found = measures.smallest_bases()[context]
    return {
        "found": found,
        "published": published,
        "same": f"{found:.1e}" == f"{published:.1e}",
        "fails": rope.first_negative(128, float(published), context),
        "numbers": {"base": (float(published), found)},
    }


def larger_bases_pass() -> Numbers:
    """By context, the bases up to twice the smallest that fail."""
    failed = {}
    for context in (1024, 4096, 16384):
        bases = [measures.smallest_bases()[context] * (1 + k / 200) for k in range(1, 200)]
        failed[context] = [base for base in bases if rope.first_negative(128, base, context) is not None]
    return {"failed": failed}


def shipped_models_obey() -> Numbers:
    rows = data.table("reported/rope_models")
    negative = [row.model for row in rows.itertuples() if rope.first_negative(row.width, float(row.base), row.context)]
    return {"negative": negative, "shipped": len(rows)}


def larger_base_reaches_further() -> Numbers:
    """The first negative sum of five powers of ten, and of two bases close to each other."""
    bases = {"tenfold": [1e2, 1e3, 1e4, 1e5, 1e6], "close": [4300.0, 4350.0]}
    return {name: [rope.first_negative(128, base, 1 << 20) for base in each] for name, each in bases.items()}


# In a language model -----------------------------------------------------------------------------------


def _heads(model: LanguageModel | None, seed: int | None = None, text: int = 0) -> measures.Heads:
    """Every head of the model on a stretch of the prose, or on random tokens of a seed."""
    return measures.heads_on_text(model or models.default(), seed, text)


def _none(model: LanguageModel | None) -> ValueError:
    return ValueError(f"no head of {called(model)} looks at one distance, so it cannot decide")


def fast_pairs_are_small_but_at_the_ends(model: LanguageModel | None = None) -> Numbers:
    """The norms of the fastest quarter over the layer's mean, by layer: at the ends, and the mean between them."""
    found = _heads(model)
    norms = torch.stack([found.queries.mean(1), found.keys.mean(1)])
    share = (norms / norms.mean(-1, keepdim=True))[..., : norms.shape[-1] // 4].mean(-1)
    first, last = share[:, [0, -1]].mean(0).tolist()
    return {"first": first, "last": last, "between": float(share[:, 1:-1].mean())}


def first_layers_previous_last_diagonal(model: LanguageModel | None = None) -> Numbers:
    """The best slash of a layer, diagonal and previous: mean of the first and the last third, and the strongest's layer."""
    best = _heads(model).slashes[:, :, :2].max(1).values
    third = len(best) // 3
    return {
        "early": best[:third].mean(0).tolist(),
        "late": best[-third:].mean(0).tolist(),
        "strongest": (best.argmax(0) + 1).tolist(),
        "third": third,
        "layers": len(best),
    }


def fast_pairs_are_noise_between_the_ends() -> Numbers:
    """Loss added between the ends without each quarter of the pairs, and the least and most without random ones."""
    rows = data.table("silenced_layers").groupby("heads").mean(numeric_only=True)
    rows = rows.loc[[name for name, (_, inside) in measures.LAYERS.items() if not inside]]
    random = rows.filter(like="random")
    return {"quarters": rows[QUARTERS], "least": random.min(axis=1), "most": random.max(axis=1)}


def slow_pairs_carry_the_sink() -> Numbers:
    """Loss added outside the heads of places without a quarter, the same with the sink's logit kept, and what that leaves."""
    rows = data.table("silenced_layers").query("heads == 'outside'").groupby("sink")[QUARTERS].mean()
    silenced, kept = rows.loc["silenced"].to_dict(), rows.loc["kept"].to_dict()
    return {"silenced": silenced, "kept": kept, "left": {name: kept[name] / silenced[name] for name in QUARTERS}}


def silenced_quarters(model: LanguageModel | None = None, where: Sequence[str] = ("outside",)) -> Numbers:
    """By place of the heads, the loss added by silencing each quarter of the pairs, mean of the texts, by threshold.

    With the `least` and the `most` that a quarter but the fastest adds.
    """
    table, found = measures.silenced_table(model), {}
    for place in where:
        rows = table[(table["where"] == place) & (table.threshold > 0) & (table.heads > 0)]
        if rows.empty:
            raise _none(model)
        rows = rows.groupby("threshold")[QUARTERS].mean()
        found[place] = rows.assign(least=rows[QUARTERS[1:]].min(axis=1), most=rows[QUARTERS[1:]].max(axis=1))
    return found


def previous_token_is_the_sink(model: LanguageModel | None = None) -> Numbers:
    found = _heads(model)
    previous, sinks = found.slashes[..., 1] > attention.STRONG, found.sinks > attention.STRONG
    if not bool(previous.any()):
        raise _none(model)
    return {
        "previous": int(previous.sum()),
        "sinks": int(sinks.sum()),
        "both": int((previous & sinks).sum()),
        "chance": float(previous.sum() * sinks.double().mean()),
        "weight": float(found.sinks[previous].mean()),
    }


def slashes_survive_random_tokens(model: LanguageModel | None = None) -> Numbers:
    """Which heads of each kind stay on another text and on random tokens, and the share of all that do."""
    natural, stay = _heads(model), {}
    for text, other in {"another text": _heads(model, text=1), "random tokens": _heads(model, seed=0)}.items():
        stay[text] = {
            kind: [float(other.slashes[head]) > attention.STRONG for head in measures.slash_heads(natural, offset)]
            for kind, offset in (("previous-token", 1), ("diagonal", 0))
        }
    every = [each for kinds in stay.values() for kept in kinds.values() for each in kept]
    if not every:
        raise _none(model)
    return {"stay": stay, "share": sum(every) / len(every)}


def slash_heads_are_rank_one(model: LanguageModel | None = None) -> Numbers:
    table = measures.rank_table(_heads(model))
    if not table.heads.get("slash heads"):
        raise _none(model)
    share = table[["share, queries", "share, keys"]].mean(axis=1)
    return {"slashes": share["slash heads"], "others": share["other heads"], "heads": table.heads["slash heads"]}


def fast_pairs_make_the_slash(model: LanguageModel | None = None) -> Numbers:
    """The mean slash score of the previous-token heads, and with one quarter of the pairs left out of their logits."""
    read, heads = model or models.default(), measures.slash_heads(_heads(model), 1)
    if not heads:
        raise _none(model)
    theta, parts = probe.rotary_frequencies(read), probe.queries_and_keys(read, measures.prose(read))

    def score(pairs: set[int]) -> float:
        one = [[x[head : head + 1] for x in parts[layer]] for layer, head, _ in heads]
        return sum(float(measures.weights(*each, theta, pairs)[0].diagonal(-1).mean()) for each in one) / len(one)

    every = set(range(len(theta)))
    left = {name: score(every - set(measures.band(k, len(theta)))) for k, name in enumerate(QUARTERS)}
    return {"whole": score(every), "left": left}


# In trained decoders -----------------------------------------------------------------------------------


def _rows(spectrum: str, shared: float = 0.0) -> pd.DataFrame:
    """The trained decoders of one spectrum with the usual base, by the strength of a vector that all embeddings share."""
    rows = data.table("slash_emergence")
    return rows[(rows.spectrum == spectrum) & (rows.shared == shared) & (rows.base == 1e4)]


def learned_slashes(offsets: Sequence[int] = (1, 4)) -> Numbers:
    """By spectrum, the slash that training makes at some offsets: with the base 10,000, and with the short one."""
    rows = data.table("slash_emergence").query("shared == 0")
    means = rows[rows.offset.isin(offsets)].groupby(["base", "spectrum"]).slash.mean()
    return {"means": means[1e4], "short": means[slashes.SHORT_BASE]}


def partial_rotation_helps() -> Numbers:
    """How far the quarter that 0.75-RoPE stops would turn, and how much more of a slash than RoPE it has."""
    means = learned_slashes()["means"]
    return {"turn": 31 * float(rope.frequencies(32, 1e4)[12]), "gain": means["0.75-RoPE"] - means["RoPE"]}


def positions_alleviate() -> Numbers:
    """By question and length, how often each is right, and how far the better and the worse encoding is ahead of none."""
    race, columns = data.table("race"), {f"score_{n}": n for n in (16, 128)}
    right = race.groupby(["task", "entry"])[list(columns)].mean().rename(columns=columns).stack().unstack("entry")
    right = right.loc[["last", "retrieval"], ["RoPE", "ALiBi", "NoPE"]]
    gains = right[["RoPE", "ALiBi"]].sub(right.NoPE, axis=0)
    return {
        "right": right,
        "better": gains.max(axis=1),
        "worse": gains.min(axis=1),
        "chance": {task: protocol.CHANCE[task] for task in ("last", "retrieval")},
        "seeds": race.seed.nunique(),
    }


def trained_slashes_generalise() -> Numbers:
    """Slashes on tokens never seen: with a shared vector, three times as strong, taken away, none, and without positions."""
    rows = _rows("RoPE", 1.0)
    return {
        "unseen": rows.slash_unseen.tolist(),
        "strong": _rows("RoPE", 3.0).slash_unseen.tolist(),
        "without": rows.slash_unseen_without.mean(),
        "plain": _rows("RoPE").slash_unseen.mean(),
        "none": _rows("NoPE", 1.0).slash_unseen.mean(),
    }


def the_condition_is_needed() -> Numbers:
    """How the part in common orders the slashes on unseen tokens, and these where it is small, large, and taken away.

    Of the decoders with a vector in the embeddings, in the layer norm, or nowhere, trained equally long.
    """
    rows = data.table("slash_common")
    rows = rows[(rows.spectrum == "RoPE") & (rows.steps == rows.steps.min())]
    part, slash = rows[["common_queries_unseen", "common_keys_unseen"]].min(axis=1), rows.slash_unseen
    return {
        "runs": len(rows),
        "order": float(part.corr(slash, method="spearman")),
        "low": slash[part < 0.6].max(),
        "high": slash[part > 0.8].min(),
        "taken": rows[rows.strength == 1].slash_unseen_without.max(),
    }


def training_makes_rank_one() -> Numbers:
    """Share of the largest squared singular value in queries and keys, and in queries without positions."""
    rows = _rows("RoPE")
    shares = {
        when: [rows[f"share_{part}_{kind}"].mean() for part in ("queries", "keys")]
        for when, kind in (("before", "untrained"), ("after", "uniform"), ("unseen", "unseen"))
    }
    return shares | {"control": _rows("NoPE").share_queries_uniform.mean()}
