"""The drawings: their mathematics against Python's, their text, and the drawings themselves in Chromium."""

import contextlib
import itertools
import json
import math
import re

import pytest
import torch
import waves
import yours
from conftest import AXE, ROOT, SCRIPTS, in_words, javascript, watched
from stills import drawn, measured, stills

from book import browser
from course import drawing
from course.chapter2 import measures as measures2
from course.chapter6 import measures as measures6
from course.maths import constructions, counting, normalizers, rewiring
from course.runs import comparison
from helpers import attention, collapse, graphs, rope, words

pytestmark = pytest.mark.slow  # `make test` runs it, `make check` does not

NAMES = list(drawing.DRAWINGS)


def assert_equal(calls, expected, least=1e-12):
    for call, got, wanted in zip(calls, javascript("mathematics", calls), expected, strict=True):
        pairs = zip(flat(got), flat(wanted), strict=True)
        assert all(math.isclose(a, b, rel_tol=1e-9, abs_tol=least) for a, b in pairs), (
            call,
            got,
            wanted,
        )


def flat(value):
    return [x for item in value for x in flat(item)] if isinstance(value, list) else [value]


def test_clocks_turn_and_add_up_as_in_python():
    grid = [(width, base) for width in (2, 16, 64) for base in (10, 1e4, 5e5)]
    calls = [("frequencies", pair) for pair in grid]
    assert_equal(calls, [rope.frequencies(*pair).tolist() for pair in grid])
    calls = [("cosineSum", (distance, *pair)) for pair in grid for distance in (0, 1, 7, 128, 4096)]
    assert_equal(calls, [rope.cosine_sum(*given).item() for _, given in calls])


def test_the_machine_attends_and_rounds_as_in_python():
    for n, layers, kept, weight in (
        (1, 1, 0, 0),
        (7, 4, 0, 0),
        (1000, 4, 0, 0),
        (9, 2, 0.5, 0.3),
        (300, 2, 0.9, 0.1),
    ):
        row = attention.influence([constructions.sink(n, weight)] * layers, kept)[-1].tolist()
        assert_equal([("uniformInfluence", (n, layers, kept, weight))], [row])
    states = torch.rand(30, generator=torch.Generator().manual_seed(0)).double()
    for kept, weight in ((0.0, 0.0), (0.95, 0.8)):
        matrix = attention.influence([constructions.sink(30, weight)], kept)
        assert_equal([("spread", (states.tolist(), kept, weight))], [(matrix @ states).tolist()])
    mask = attention.window_mask(30, 2)
    mask[-1, 4] = True
    sources = [row.nonzero()[:, 0].tolist() for row in mask]
    assert_equal(
        [("averaged", (states.tolist(), sources))], [(attention.uniform(mask) @ states).tolist()]
    )
    assert_equal([("softmax", ((9 * states).tolist(),))], [(9 * states).softmax(0).tolist()])
    for first, end in ((0, 4), (4, 8)):
        wanted = torch.cos(107 * rope.frequencies(16, 1e4)[first:end]).sum().item()
        assert_equal([("cosineSum", (107, 16, 1e4, first, end))], [wanted])
    sharp = 9 * states - 4
    maps = {"softmaxOffByOne": normalizers.softmax_off_by_one, "scalableSoftmax": normalizers.scalable_softmax,
            "topK": normalizers.top_k, "entmax15": normalizers.entmax15, "adaptiveEntmax": normalizers.adaptive_entmax,
            "stickBreaking": lambda row: normalizers.stick_breaking(row.expand(30, 30))[-1]}  # fmt: skip
    assert_equal(
        [(name, (sharp.tolist(),)) for name in maps],
        [weigh(sharp).tolist() for weigh in maps.values()],
    )
    numbers = [
        0.0,
        1.0,
        -1.0,
        257.0,
        1 - 1 / 511,
        1 - 1 / 512,
        *(1 / n for n in range(1, 400)),
        3.1e-4,
        -0.7,
    ]
    calls = [("roundTo", (x, kind)) for x in numbers for kind in ("fp32", "fp16", "bf16")]
    assert_equal(
        calls,
        [collapse.round_to(torch.tensor([x]).double(), kind).item() for _, (x, kind) in calls],
    )


def two(x):
    x *= 1 + 1e-12  # JavaScript rounds a tie up
    return f"{x:,.0f}" if x >= 1000 else f"{float(f'{x:.2g}'):g}"


def told_of_collapse(n, kind):
    k = torch.arange(16).double()
    one, odd = torch.cos(2 * k), torch.cos(3 * k + 1)
    shares = [
        attention.influence([constructions.sink(length, 0)] * 2)[-1][0] for length in (n + 1, n + 2)
    ]
    a, b = (collapse.round_to(one + share * (odd - one), kind) for share in shares)
    count = int((a == b).sum())
    told = {0: "all 16 numbers differ", 16: "all 16 numbers are the same"}.get(
        count, f"{count} of 16 numbers are the same"
    )
    return f"ones, {told} in {kind}"


def told_of_positions(n, p):
    near, found = turned_heads(n, p)
    return (
        f"Head 1 gives {two(100 * near[n - 1])}% of its attention to the previous token. "
        f"Head 2 gives {two(100 * found[p])}% to the orange token, which is {n - p} token"
    )


def told_of_noise(n, p, lam=0.8, agree=0.9):
    one, other = subtracted_maps(n, p, lam, agree)
    rest, others = one - other, torch.arange(n + 1) != p
    left = rest[others].norm() / one[others].norm()
    return f"leaves {two(100 * left)}% of the noise and {two(100 * rest[p] / one[p])}% of the answer's weight"


@pytest.mark.parametrize("n", [1, 2, 3, 40, 188, 189])
def test_the_machine_says_what_the_package_gives(n):
    """The numbers of five stops, computed once more by the package from the definition of the machine."""
    p = min(max(1, 1 + math.floor(0.6 * n + 0.5)), max(1, n - 1))
    expected = {
        kind: ({"at": 3, "type": kind}, told_of_collapse(n, kind))
        for kind in ("bf16", "fp16", "fp32")
    }
    expected |= {5: ({"at": 5}, told_of_positions(n, p)), 6: ({"at": 6}, told_of_noise(n, p))}
    for kept, weight in ((0.0, 0.0), (0.5, 0.36)):
        row = attention.influence([constructions.sink(n + 1, weight / 2)] * 2, kept)[-1]
        state = {"at": 2, "kept": kept, "sink": weight}
        expected[kept] = (
            state | {"quiet": False},
            f"vector, {two(100 * row[0])}% comes from the first token",
        )
        # a sink that says nothing leaves a state as it is
        quiet = (1 - weight / 2) * attention.uniform(
            attention.causal_mask(n + 1)
        ) + weight / 2 * torch.eye(n + 1)
        row = attention.influence([quiet.double()] * 2, kept)[-1]
        expected["quiet", kept] = (state, f"and {two(100 * row[-1])}% from the last token itself")
    limit = counting.first_token_limit("bf16")
    expected["limit"] = ({"at": 4}, f"first fails at {limit + 1} ones")
    said = [
        told
        for _, _, told in drawn("machine", [{"n": n} | state for state, _ in expected.values()])[0]
    ]
    assert all(wanted in told for (_, wanted), told in zip(expected.values(), said, strict=True)), (
        said
    )
    assert ("cannot tell" in said[-1]) == (n == limit + 1)


def test_the_machine_draws_every_length():
    states = [
        {"at": stop, "n": n, "token": token}
        for stop in range(8)
        for n in (1, 2, 4096)
        for token in (0, 1)
    ]
    assert "NaN" not in str(drawn("machine", states)[0])


def test_the_machine_has_chinese_for_all_it_says():
    """If not: `words/machine.zh.json` has all that it says, then `python tools/stills.py`."""
    table, parts = drawing.words_of("machine", "zh"), drawing.numbers("machine")["race"]
    kinds = [
        {},
        {"sink": 0.5, "quiet": False},
        {"edges": "path", "type": "fp32"},
        {"edges": "edge", "swap": True, "both": True, "first": False},
    ]
    kinds += [{"head": 1}, {"head": 2}, {"weights": "model"}, {"weights": "model", "head": 2}]
    states = [
        {"at": at, "n": n, "width": w}
        for at in range(8)
        for n in (1, 2, 40, 314)
        for w in (360, 720)
    ]
    states = [state | kind for state in states for kind in kinds] + [
        {"at": 7, "part": part} for part in parts
    ]
    (pictures, missing), (english, _) = drawn("machine", states, "zh"), drawn("machine", states)
    assert missing == []
    with in_words(table):
        for (_, _, said), (_, _, told) in zip(english, pictures, strict=True):
            assert told == "".join(
                words.translated(part) for part in re.split(r"(?<=[.?]) (?=[A-Z])", said)
            )
        assert words._missing == []


RACE = [
    (task, bet) for task, runs in drawing.numbers("waves")["scores"].items() for bet in ["", *runs]
]
CHAIN = {
    "graph": "own",
    "xs": [0.1, 0.2, 0.3, 0.4],
    "ys": [0.1, 0.2, 0.3, 0.4],
    "source": 0,
    "edges": "0-1.1-2",
}
# of each drawing, in which states it says all that it can say: every choice of each of these with every other
SAYS = {
    "squash": [
        {"view": ["colours", "share", "current"], "hops": [0, 1, 2, 16], "tool": ["join", "source", "target"]},
        {key: [value] for key, value in CHAIN.items()}
        | {"view": ["colours", "share", "current"], "hops": [0, 1, 3], "target": [1, 2, 3], "opened": ["", "1-2"], "picked": [-1, 1]},
    ],
    "river": [{"layers": [1, 2, 8], "residual": [0, 0.5], "sink": [0, 0.5], "token": [1, 6], "cell": [-1, 0, 5]}, {"mask": ["1" * 78]}],
    "barcodes": [{"tokens": ["ones", "digits"], "type": ["fp32", "bf16"], "window": [0, 1], "at": [0, 6, 12]}],
    "needle": [{"copies": [1, 2, 4000], "odd": [True, False], "pattern": ["1", "10", "110"], "type": ["bf16", "fp32"], "zoom": [0, 0.5, 1]}],
    "clocks": [{"distance": [0, 1, 24], "phases": [[0] * 8, [1] * 8], "pairs": [[1] * 8, [0] * 8, [1] + [0] * 7]}],
    "waves": [
        {"agreement": [0, 0.4, 0.9], "ratio": [0.3, 1, 2], "lambda": [0, 0.8, 1.2]},
        *({"view": ["race"], "task": [task], "bet": [bet], "run": [0, 0.5, 3]} for task, bet in RACE),
    ],
    "yours": [
        {"real": [True, False], "back": [0, 1, 2, 3, 6, 18, 19]},
        {"text": ["", "one", "one one", "one " * 30], "back": [0, 1]},
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", SAYS)
def test_a_drawing_has_chinese_for_all_it_says(name):
    """If not: `words/<name>.zh.json` has all that it says, then `python tools/stills.py`."""
    states = [
        dict(zip(each, values, strict=True))
        for each in SAYS[name]
        for values in itertools.product(*each.values())
    ]
    pictures, missing = drawn(
        name, [state | {"width": w} for state in states for w in (360, 720)], "zh"
    )
    assert missing == []
    said = re.findall(r">([^<>]+)<", "".join(picture for _, picture, _ in pictures)) + [
        told for *_, told in pictures
    ]
    assert [text for text in said if re.search("[A-Za-z]{2} [a-z]{2,} [a-z]{2}", text)] == []


def test_the_machine_shows_two_heads_of_the_model_at_the_stop_on_positions():
    yours = drawing.numbers("yours")
    words, copy = yours["text"].split(), yours["text"].split().index("cat") + 1
    looks = [rows[-1] for rows in yours["maps"]]
    state = {"weights": "model", "token": (copy - 1) / len(words), "n": 314}
    [(_, picture, told), (_, _, toy)] = drawn("machine", [{"at": 5} | state, {"at": 6} | state])[0]
    assert all(f">{word}</text>" in picture for word in words)
    assert f"{looks[0][-2]:.0%} of its attention goes to the token before" in told
    assert f"{looks[1][copy]:.0%} goes to the orange token, {len(words) - copy} back" in told
    assert f"and {looks[1][0]:.0%} to the first token" in told
    assert "noise" in toy, "no other stop has them"


def test_the_machine_quotes_what_was_measured():
    """If not: `python tools/stills.py`."""
    assert drawing.numbers("machine") == measured()


def test_the_lights_are_the_race():
    """What the last stop lights is what the table of the race calls kept, and for no place that no task asks."""
    won = comparison.successes(comparison.table()).set_index(["entry", "task"])
    places = {"the count (4)": ("counting", "kept"), "positions (5)": ("last", "success"),
              "the noise of the others (6)": ("retrieval", "success")}  # fmt: skip
    states = [{"at": 7, "part": part} for part in drawing.numbers("machine")["race"]]
    for state, (_, _, told) in zip(states, drawn("machine", states)[0], strict=True):
        lit = [
            place
            for place, (task, column) in places.items()
            if won.loc[(state["part"], task), column]
        ]
        dark = [place for place in places if place not in lit]
        lights, leaves = (re.sub(", (?=[^,]*$)", " and ", ", ".join(x)) for x in (lit, dark))
        assert (
            f"Of the 3 places that the race tests, this design lights {lights or 'none'}. "
            f"It leaves {leaves} dark."
        ) in told
    for page, says in (("welcome.md", "The benchmark has tasks for three of the six places."),
                        ("answer.ipynb", "Three of the six bottlenecks had no task in the race."),
                        ("answer.zh.po", "六处里有三处，比赛里没有相应的任务。")):  # fmt: skip
        assert says in (ROOT / "chapters" / page).read_text(), page


def turned_heads(n, p, swap=False):
    """The last token's weights in the head for the token before and in the one for the content of token p."""
    theta, d = rope.frequencies(16, 1e4), torch.arange(n, -1, -1)[:, None]
    near, far = (theta[4:], theta[:4]) if swap else (theta[:4], theta[4:])
    content = torch.cos(d * far).sum(1) * (d[:, 0] == n - p)
    return (6 * torch.cos((d - 1) * near).sum(1)).softmax(0), (6 * content).softmax(0)


def subtracted_maps(n, p, lam, agree):
    k, answer = torch.arange(1, n + 2).double(), 4 * torch.eye(n + 1).double()[p]
    noise = [
        math.sqrt(2) * torch.cos(2 * math.pi * k * step) for step in (0.6180339887, 0.4142135624)
    ]
    return (noise[0] + answer).softmax(0), lam * (
        agree * noise[0] + math.sqrt(1 - agree**2) * noise[1]
    ).softmax(0)


def test_arcs_are_as_wide_as_the_weights_of_their_stop():
    """Each token has an arc of its own here; in both layers the widest to the narrowest is as its weight to the other's."""
    n, p = 21, 14
    equal = torch.full((n + 1,), 1 / (n + 1)).double()
    first = torch.eye(n + 1).double()[0]
    wanted = {stop: ({}, (equal, equal)) for stop in (1, 2, 3, 4)}
    wanted |= {stop: ({}, turned_heads(n, p)) for stop in (5, 7)} | {
        6: ({}, subtracted_maps(n, p, 0.8, 0.9))
    }
    cases = [({"at": stop} | more, heads) for stop, (more, heads) in wanted.items()] + [
        ({"at": 2, "kept": 0.5, "sink": 0.4}, (0.5 * equal, 0.5 * (0.6 * equal + 0.4 * first))),
        ({"at": 5, "swap": True}, turned_heads(n, p, True)),
        ({"at": 6, "lam": 0.3, "agree": 0.2}, subtracted_maps(n, p, 0.3, 0.2)),
    ]
    for (state, heads), (_, picture, told) in zip(
        cases, drawn("machine", [{"n": n} | s for s, _ in cases])[0], strict=True
    ):
        strokes = re.findall(
            r'<path d="([^"]*)" class="\w+" data-part="head([12])" style="stroke-width:([\d.]+)"',
            picture,
        )
        streams = re.search(r'<g data-part="streams"><path d="([^"]*)"', picture)[1]
        places = [float(x) for x in re.findall(r"M([\d.]+) ", streams)]
        widths = {}
        for way, head, width in strokes:
            for x, y in re.findall(r"M(\d+) (\d+)C", way):
                widths[
                    int(head), int(y), min(range(n + 1), key=lambda k: abs(places[k] - int(x)))
                ] = float(width)
        layers = {layer for _, layer, _ in widths}
        assert (len(layers), len(places)) == (2, n + 1), state
        for layer in layers:
            scale = max(widths.get((1, layer, k), 0) for k in range(n + 1)) / float(heads[0].max())
            for head, weights in enumerate(heads, 1):
                for k, weight in enumerate(weights.tolist()):
                    assert abs(widths.get((head, layer, k), 0) - scale * weight) < 0.17, (
                        state,
                        head,
                        k,
                    )
        if state["at"] == 5:  # the two weights that the sentence names
            named = [float(x) / 100 for x in re.findall(r"([\d.]+)%", told)]
            assert named == pytest.approx([float(heads[0][n - 1]), float(heads[1][p])], rel=0.03)


def test_a_head_that_is_opened_says_the_weights_of_its_arcs():
    """The largest in the last token's row, whose they are, and what the others sum to."""
    for n in (2, 40, 314):
        p = min(max(1, 1 + math.floor(0.6 * n + 0.5)), max(1, n - 1))
        cases = [
            (5, turned_heads(n, p)),
            (5.2, turned_heads(n, p)),
            (6, subtracted_maps(n, p, 0.8, 0.9)),
        ]
        states = [
            ({"n": n, "at": at, "head": k}, rows[k - 1]) for at, rows in cases for k in (1, 2)
        ]
        for (_, row), (_, picture, told) in zip(
            states, drawn("machine", [s for s, _ in states])[0], strict=True
        ):
            names = {
                0: "The first token",
                n - 1: "The token before",
                n: "The last token itself",
                p: "The orange token",
            }
            found = re.findall(
                r"((?:The|Token) [^:.]*): ([\d.]+(?: × 10[⁻⁰-⁹¹²³]+)?)\.(?: |$)", told
            )
            assert 2 <= len(found) <= 4, told
            weights = [
                float(
                    x.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")).replace(" × 10", "e")
                )
                for _, x in found
            ]
            assert weights == pytest.approx([*row.sort(descending=True).values[: len(found) - 1].tolist(), float(row.sum()) - sum(weights[:-1])], rel=6e-3, abs=6e-3 * float(row.max()) + 1e-9)  # fmt: skip
            for (name, _), weight in zip(found[:-1], weights, strict=False):
                token = next((k for k, known in names.items() if known == name), None)
                assert float(
                    row[int(name.split()[1]) if token is None else token]
                ) == pytest.approx(weight, rel=6e-3)
            assert all(f">{name}<" in picture for name, _ in found)


@pytest.mark.parametrize(
    ("at", "told"), [(5, ["Head 1 in", "Head 2 in"]), (6, ["Map 1 in", "λ times map 2 in"])]
)
def test_a_head_opens_by_mouse_finger_and_keyboard(stand, at, told):
    for view in ({}, {"has_touch": True, "is_mobile": True, "viewport": PHONE}):
        page = stand("machine", f"#drawing=machine&at={at}", reduced_motion="reduce", **view)
        says = page.locator(".drawing-says")
        closed = says.inner_text()
        for k, answer in enumerate(told, 1):
            head = named(page, f"head{k}")
            touch = head.tap if view else head.click
            for way, *given in ((head.press, "Enter"), (head.press, " "), (touch,)):
                way(*given)
                seen(page)
                assert answer in says.inner_text()
                assert head.get_attribute("aria-pressed") == "true"
                way(*given)
                seen(page)
                assert says.inner_text() == closed
        assert page.errors == []


def arcs(picture):
    """The width of each arc of `yours` by head and by the token from which it comes."""
    found = re.findall(r'data-part="head([12])" data-token="(\d+)" style="stroke-width:([\d.]+)"', picture)  # fmt: skip
    return {(int(head), int(token)): float(width) for head, token, width in found}


@pytest.mark.parametrize("back", [0, 1, 5, 19])
def test_arcs_of_ones_own_words_are_as_wide_as_the_weights(back):
    """The toy's two rows follow from their definition; those of the real model are the ones stored."""
    numbers = drawing.numbers("yours")
    words = ["", *numbers["text"].split()]
    i = len(words) - 1 - back
    far = torch.arange(i, -1, -1)
    same = torch.tensor([bool(j) and words[j] == words[i] for j in range(i)] + [False])
    theta = rope.frequencies(16, 1e4)
    near = (6 * torch.cos((far - 1)[:, None] * theta[:4]).sum(1)).softmax(0)
    found = (6 * torch.cos(far[:, None] * theta[4:]).sum(1) * same).softmax(0)
    toy = [near.tolist(), found.tolist()]
    stored = [rows[i] for rows in numbers["maps"]]
    pictures, _ = drawn("yours", [{"back": back}, {"back": back, "real": True}])
    for (_, picture, _), rows in zip(pictures, (toy, stored), strict=True):
        drawn_arcs = arcs(picture)
        for head, row in enumerate(rows, 1):
            for j, weight in enumerate(row):
                width = drawn_arcs.get((head, j), 0)
                assert width == pytest.approx(12 * weight, abs=0.07), (head, j)


def test_the_stored_weights_are_those_of_the_model():
    """If not: `python tools/yours.py`."""
    stored, found = drawing.numbers("yours"), json.loads(json.dumps(yours.measured()))
    assert flat(found.pop("maps")) == pytest.approx(flat(stored.pop("maps")), abs=2e-3)
    assert found == stored


def test_a_card_of_ones_own_words_is_drawn_and_its_address_brings_them_back(stand):
    page = stand("yours")
    assert page.get_by_role("button", name="Share").is_hidden(), "the course's words are not theirs"
    page.locator(".drawing-words input").fill("a b c a")
    seen(page)
    assert "the same word, 3 words back" in page.locator(".drawing-says").inner_text()
    assert page.get_by_label("weights of SmolLM2-135M").is_disabled()
    assert page.locator(".yours-model").is_visible()
    page.get_by_role("button", name="Share").press("Enter")
    page.wait_for_function("document.querySelector('.yours-share img')?.naturalWidth")
    size = page.locator(".yours-share img").evaluate("e => [e.naturalWidth, e.naturalHeight]")
    assert size == [1200, 630]
    address = page.locator(".yours-share input").input_value()
    again = stand("yours", address[address.index("#") :])
    seen(again)
    assert again.locator(".drawing-words input").input_value() == "a b c a"
    assert page.errors == again.errors == []


def test_the_river_flows_as_in_python():
    masks = [attention.causal_mask(5), attention.window_mask(12, 3), attention.window_mask(12, 2)]
    for mask in masks:
        rows = attention.uniform(mask)
        for weight, residual in ((0.0, 0.0), (0.3, 0.5), (0.95, 0.8)):
            matrix = (1 - weight) * rows
            matrix[:, 0] += weight
            assert_equal([("sink", (mask.int().tolist(), weight))], [matrix.tolist()])
            layers = [
                torch.eye(len(matrix)),
                *(attention.influence([matrix] * k, residual) for k in range(1, 5)),
            ]
            assert_equal(
                [("influence", (matrix.tolist(), 4, residual))],
                [[each.tolist() for each in layers]],
            )
            assert_equal(
                [("heard", (layers[-1][-1].tolist(),))], [float(measures2.heard(layers[-1][-1]))]
            )
    assert torch.equal(
        constructions.sink(5, 0.3),
        0.7 * attention.uniform(masks[0]) + 0.3 * torch.eye(5).double()[0],
    )


def test_the_needle_points_as_in_python_and_boxes_are_the_numbers_of_the_type():
    calls = [
        ("massOnOnes", (z, o, lead))
        for z in (0, 1, 7, 4000)
        for o in (1, 3, 900)
        for lead in (0.0, 1.0, -2.0)
    ]
    assert_equal(calls, [counting.mass_on_ones(*given) for _, given in calls])
    for kind, dtype in (("bf16", torch.bfloat16), ("fp16", torch.float16)):
        every = torch.arange(1, 0x4000, dtype=torch.int16).view(dtype).double()
        wanted = every[(every >= 1 / 300) & (every <= 1 / 250)].tolist()
        assert_equal([("floats", (1 / 300, 1 / 250, kind, 10_000))], [wanted])


def test_what_is_left_of_the_waves_is_as_in_python():
    grid = [
        (c / 10, lam / 10, ratio)
        for c in range(11)
        for lam in range(13)
        for ratio in (0.2, 1.0, 2.0)
    ]
    assert_equal(
        [("noiseLeft", g) for g in grid],
        [measures6.noise_left(c, lam * ratio).item() for c, lam, ratio in grid],
    )


def test_the_bets_are_on_the_table_of_the_race():
    """If not: `python tools/waves.py`."""
    assert json.loads(waves.FILE.read_text()) == waves.scores()


def test_graphs_average_and_conduct_as_in_python():
    for name in ("path", "cycle", "tree", "barbell", "grid", "expander", "karate"):
        graph = graphs.family(name, 12)
        matrix = graphs.adjacency(graph).tolist()
        assert_equal(
            [("averaging", (matrix,))], [graphs.adjacency(graph, "row", loops=True).tolist()]
        )
        assert_equal(
            [("effectiveResistance", (matrix,))],
            [rewiring.effective_resistance(graph).tolist()],
            1e-9,
        )
        added = [
            sorted(e[:2]) for e in rewiring.rewire(graph, "gtr", 1).edges(data="added") if e[2]
        ]
        assert javascript("mathematics", [("openingEdge", (matrix,))]) == added


@pytest.mark.parametrize("name", NAMES)
def test_a_drawing_is_small_and_asks_nobody(name):
    body = drawing.show(name).body
    assert len(drawing.script(name)) < 90_000
    assert "document.currentScript" not in body
    assert "import" not in drawing.module(name).replace("important", "")
    assert "http" not in body.replace("http://www.w3.org/2000/svg", "")


@pytest.mark.parametrize("name", NAMES)
def test_a_drawing_is_a_module_as_anywidget_takes_it(name, tmp_path):
    (tmp_path / "module.mjs").write_text(drawing.module(name))
    assert javascript("module", (tmp_path / "module.mjs").as_uri()) == "function"


def test_the_still_pictures_are_what_the_drawings_give():
    """If not: `python tools/stills.py`."""
    now = stills()
    assert now == {path.stem: path.read_text() for path in (drawing.HERE / "still").iterdir()}
    assert now["machine-0"].count(">1</text>") == 314, "the guess shows all of them"


def test_bad_data_is_refused_and_a_script_in_it_stays_data():
    with pytest.raises(ValueError, match="name must be one of"):
        drawing.show("nonsense")
    with pytest.raises(ValueError, match="data must hold only values that JSON"):
        drawing.show("clocks", x=math.nan)
    with pytest.raises(ValueError, match="data must hold only values that JSON"):
        drawing.show("clocks", x=object())
    assert "</script><b>" not in drawing.show("clocks", x="</script><b>").body


PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def stands(chromium, tmp_path_factory):
    """A folder, its address, and the page in which drawings are opened one after the other: a new one takes as long again."""
    folder = tmp_path_factory.mktemp("stands")
    with browser.served(folder) as address:
        context = chromium.new_context()
        page = watched(context, address)
        page.asked = []
        page.on("request", lambda request: page.asked.append(request.url))
        yield folder, address, page
        context.close()


@pytest.fixture
def stand(chromium, stands):
    """Open a drawing alone on its page, with everything else blocked; errors and requests are noted."""
    folder, address, usual = stands
    with contextlib.ExitStack() as stack:

        def open_drawing(
            name,
            link="",
            viewport=None,
            color_scheme="light",
            reduced_motion="no-preference",
            **touch,
        ):
            (folder / "drawings").mkdir(exist_ok=True)
            (folder / f"drawings/{name}.html").write_text(drawing.page(name))
            page = usual
            if touch:
                context = chromium.new_context(**touch)
                stack.callback(context.close)
                page = watched(context, address)
            else:
                page.goto("about:blank")
                page.errors.clear()
                page.asked.clear()
            page.emulate_media(color_scheme=color_scheme, reduced_motion=reduced_motion)
            page.set_viewport_size(viewport or {"width": 900, "height": 900})
            page.goto(f"{address}/drawings/{name}.html{link}")
            page.wait_for_selector(".drawing-stage .item")
            return page

        yield open_drawing


# what keys move: a control, or a hand of a drawing without one
MOVED = ":is(.drawing-controls :is(select, input[type=range]), .item[role=slider])"


def seen(page):
    page.evaluate(SCRIPTS["drawn"])
    return page.locator(".drawing-stage > g").first.inner_html()


@pytest.mark.parametrize("name", NAMES)
def test_a_drawing_is_accessible_fits_a_phone_and_asks_nobody(stand, name):
    for options in ({}, {"color_scheme": "dark"}, {"viewport": PHONE}):
        page = stand(name, **options)
        assert page.errors == []
        assert [
            url
            for url in page.asked
            if not url.endswith(f"/{name}.html") and not url.startswith("data:")
        ] == []
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        page.add_script_tag(path=AXE)
        assert page.evaluate(SCRIPTS["violations"]) == []


@pytest.mark.parametrize("name", NAMES)
def test_every_control_and_every_hand_moves_by_keyboard(stand, name):
    page = stand(name, reduced_motion="reduce")
    for box in page.locator(".drawing-controls input[type=range]:visible").all():
        before = seen(page), page.locator(".drawing-says").inner_text()
        box.focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        if (seen(page), page.locator(".drawing-says").inner_text()) == before:
            page.keyboard.press("Home")
        assert (seen(page), page.locator(".drawing-says").inner_text()) != before
    for item in page.locator('.drawing-stage .item[role="slider"]').all():
        before = seen(page)
        item.focus()
        page.keyboard.press("ArrowRight")
        if seen(page) == before:
            page.keyboard.press("ArrowLeft")
        assert seen(page) != before, item.get_attribute("aria-label")
    assert page.errors == []


@pytest.mark.parametrize("name", NAMES)
def test_a_hand_drags_by_mouse_and_a_frame_is_short(stand, name):
    page = stand(name)
    item = page.locator(".drawing-stage .item:is(.free, .flat)").last
    item.scroll_into_view_if_needed()
    (x, y), before = middle(item), seen(page)
    drag(page, (x, y), (x - 25, y + 20))
    assert seen(page) != before
    quick = any(
        page.evaluate(SCRIPTS["frame"]) < 50 for _ in range(3)
    )  # whatever else the processor does
    assert quick, "milliseconds, the middle one of twenty frames"
    assert page.errors == []


def swipe(page, item, right, down):
    """A finger on the middle of an item, and twelve small moves."""
    session, (x, y) = page.context.new_cdp_session(page), middle(item)
    way = [{"x": x + right * k / 12, "y": y + down * k / 12} for k in range(13)]
    for k, point in enumerate(way):
        kind = "touchMove" if k else "touchStart"
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [point]})
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


# what follows the finger in one direction or both; steps are at most ten pixels
FOLLOWS = {
    "machine": ("token", 48, 0), "squash": ("node0", 48, 36), "river": ("token", 48, 0), "barcodes": ("here", 48, 0),
    "needle": ("end", 48, 0), "clocks": ("here", 48, 0), "waves": ("tip", 48, 36),
    "yours": ("reader", -48, 0),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_finger_drags_all_the_way_and_the_page_stands_still(stand, name):
    """Where `touch-action` does not reach, the browser takes the finger after some ten pixels, to scroll."""
    page = stand(name, has_touch=True, is_mobile=True, viewport=PHONE | {"height": 420})
    part, right, down = FOLLOWS[name]
    page.evaluate(SCRIPTS["fingers"])
    assert page.evaluate("document.documentElement.scrollHeight > innerHeight + 60"), (
        "the page could scroll"
    )
    item = named(page, part)
    item.scroll_into_view_if_needed()
    before, there = middle(item), page.evaluate("scrollY")
    swipe(page, item, right, down)
    seen(page)
    assert page.evaluate("fingers") == {"pointermove": 12, "pointerup": 1}
    assert page.evaluate("scrollY") == there
    goal = [(k, before[k] + way) for k, way in enumerate((right, down)) if way]
    page.wait_for_function(SCRIPTS["followed"], arg=[part, goal], timeout=30_000)


@pytest.mark.parametrize("name", NAMES)
def test_a_link_carries_the_state(stand, name):
    page = stand(name, reduced_motion="reduce")
    page.locator(f"{MOVED}:visible").first.focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft"):
        page.keyboard.press(key)
    now, link = seen(page), page.locator(".drawing-link").get_attribute("href")
    other = stand(name, link[link.index("#") :])
    assert seen(other) == now


def test_a_link_of_nonsense_draws_all_the_same(stand):
    for odd in ("xs=", "xs=0.5", "xs=a,b&ys=0", "graph=constructor"):
        page = stand("squash", f"#drawing=squash&{odd}")
        assert page.locator(".drawing-stage .item").count() == 15
        assert page.errors == [], odd


@pytest.mark.parametrize("name", NAMES)
def test_a_word_lights_what_it_names(stand, name):
    page = stand(name)
    for word in page.locator("[data-light]:visible").all():
        word.hover()
        assert page.locator(".drawing-stage .lit").count() > 0, word.get_attribute("data-light")


def test_the_machine_in_a_lesson_says_what_it_is_and_leads_to_the_front_page(stand):
    assert (
        stand("machine")
        .locator(".machine-whole a")
        .get_attribute("href")
        .endswith("chapters/welcome.html")
    )


def test_a_drawing_plays_stops_and_starts_over(stand):
    page = stand("squash")
    hops = page.get_by_role("slider", name="hops")
    hops.press("End")
    button = page.locator(".drawing-play button")
    button.click()
    page.wait_for_function(
        "() => { const x = Number(document.querySelector('input[type=range]').value); return x > 0 && x < 9; }"
    )
    assert "Stop" in button.inner_text()
    button.click()
    page.wait_for_selector('.drawing-play button:has-text("Hop")')
    hops.press("End")
    for _ in range(2):
        hops.press("ArrowLeft")
    button.click()
    page.wait_for_function("Number(document.querySelector('input[type=range]').value) === 16")
    page.wait_for_selector('.drawing-play button:has-text("▶ Hop")')  # at its end by itself
    calm = stand("squash", reduced_motion="reduce")
    calm.get_by_label("hops").press("Home")
    calm.locator(".drawing-play button").click()
    # a press is a step
    calm.wait_for_function(
        "document.querySelector('input[type=range]').value === '1'", timeout=10_000
    )


def test_a_word_in_emphasis_below_a_drawing_lights_its_part(chromium):
    page = chromium.new_page()
    page.set_content(
        f"<body><section>{drawing.show('river').body}<p>The <em>last token</em>, an <em>idea</em>.</p></section></body>"
    )
    page.wait_for_selector("p em.drawing-word")
    assert page.locator("p em.drawing-word").count() == 1
    page.locator("p em").first.focus()
    assert page.locator(".drawing-stage [data-part=last].lit").count() > 0
    page.close()


def test_drawings_live_beside_each_other_and_in_a_shadow_tree(stand):
    page = stand("clocks")
    page.evaluate(SCRIPTS["shadow"], drawing.show("clocks").body)
    assert (
        page.evaluate(
            "document.querySelector('body > div').shadowRoot.querySelectorAll('.item').length"
        )
        > 8
    )
    assert page.errors == []


@pytest.mark.parametrize("name", NAMES)
def test_a_drawing_moves_in_a_sandboxed_frame(stand, name):
    """As on Colab: scripts run, in a frame of no origin, and links to the book are left out."""
    page = stand("clocks")
    page.evaluate(SCRIPTS["sandbox"], drawing.show(name).body)
    frame = page.frame_locator("iframe")
    says = frame.locator(".drawing-says")
    frame.locator(".drawing-stage .item").first.wait_for(state="attached")
    before = says.inner_text()
    frame.locator(f"{MOVED}:visible").first.focus()
    for key in ("Home", "ArrowRight", "ArrowDown", "ArrowDown"):
        page.keyboard.press(key)
    page.wait_for_timeout(200)
    assert says.inner_text() != before
    assert not frame.locator(".drawing-link").is_visible()
    assert page.errors == []


def middle(item):
    box = item.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def named(page, part):
    return page.locator(f'.drawing-stage .item[data-id="{part}"]')


def drag(page, start, end):
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move(*end, steps=6)
    page.mouse.up()


def stop(number):
    return lambda page: page.locator(".drawing-steps button").nth(number).click()


def choose(name, option):
    return lambda page: page.get_by_role("combobox", name=name).first.select_option(option)


def tick(name, on=True):
    return lambda page: page.get_by_label(name).set_checked(on)


def slide(key, *names):
    return lambda page: [page.locator(".drawing-controls").get_by_role("slider", name=name, exact=True).press(key) for name in names]  # fmt: skip


def press(name):
    return lambda page: page.get_by_role("button", name=name).click()


def cut_an_edge(page):
    for name in ("node0", "node1"):
        page.mouse.click(*middle(named(page, name)))


def paint_the_mask(page):
    x, y = middle(named(page, "mask"))
    page.get_by_label("mask").first.select_option("previous")
    drag(page, (x - 90, y + 102), (x + 60, y + 102))


def agree(page):
    x, y = middle(named(page, "tip"))
    drag(page, (x, y), (x + 70, y + 40))


DONE = [
    ("clocks", [lambda page: page.locator("input[type=range]").first.press("PageUp"), press("Tune the peak")], "No other distance up to 128 scores higher"),
    ("machine", [stop(2)], "an equal share is 0.32%"),
    ("machine", [stop(3)], told_of_collapse(314, "bf16")),
    ("machine", [stop(4), tick("a first token", False)], "the last vector is the same for 1, 314 or any number of ones"),
    ("machine", [stop(5)], told_of_positions(314, 189)),
    ("machine", [stop(6)], told_of_noise(314, 189)),
    ("machine", [stop(7), choose("swapped part", "local RoPE, global NoPE")], "this design lights positions (5) and the noise of the others (6). It leaves"),
    ("squash", [choose("look at", "current"), press("The edge that lowers the total resistance most")], "lowers the total resistance of all pairs: 368 → 272 ohms"),
    ("squash", [choose("graph", "path"), slide("Home", "hops"), slide("ArrowRight", "hops")], "50% of the reader's state is colour: all of it one of the 8"),
    ("squash", [choose("look at", "current"), cut_an_edge], "No current can flow"),
    ("river", [paint_the_mask], "had equal weights"),
    ("needle", [tick("one odd token", False)], "the same needle, 0.5, because softmax depends on the ratio"),
    ("waves", [agree], "of the noise goes"),
    ("waves", [lambda page: page.evaluate("location.hash = 'drawing=waves&view=race'"), choose("your bet", "NoPE"), slide("End", "length")], "(mean of"),
    ("waves", [slide("End", "size of the second", "λ")], "no agreement is enough for a gain"),
    ("waves", [slide("Home", "λ")], "nothing is subtracted: the noise stays as it was"),
    ("barcodes", [lambda page: page.locator("input[type=range]").press("End"), tick("window of 32")], "all 576 numbers of the last state are identical bit for bit"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "steps", "told"), DONE, ids=[told[:40] for _, _, told in DONE])
def test_what_the_hand_does_the_sentence_says(stand, name, steps, told):
    page = stand(name, reduced_motion="reduce")
    before = page.locator(".drawing-says").inner_text()
    for step in steps:
        step(page)
        seen(page)
    says = page.locator(".drawing-says").inner_text()
    assert says != before
    assert told in says
    assert page.errors == []


SEES = {  # each mask of the river: whether token i looks at token j, which is not after it
    "causal": lambda i, j: True,
    "window": lambda i, j: i - j < 3,
    "previous": lambda i, j: i - j < 2,
    "blocks": lambda i, j: i // 4 == j // 4,
    "stride": lambda i, j: (i - j) % 3 == 0,
}


def test_the_rivers_masks_are_what_their_names_say(stand):
    page = stand("river", reduced_motion="reduce")
    options = page.get_by_label("mask").first.locator("option")
    assert [option.get_attribute("value") for option in options.all()] == [*SEES, "painted"]
    for kind, sees in SEES.items():
        choose("mask", kind)(page)
        seen(page)
        mask = torch.tensor([[j <= i and sees(i, j) for j in range(12)] for i in range(12)])
        share = attention.influence([attention.uniform(mask)] * 4)[-1, 5].item()
        said = page.locator(".drawing-says").inner_text()
        assert f"After 4 layers, {two(100 * share)}% of the last token's state" in said, kind


def test_between_two_lengths_the_race_says_their_mean(stand):
    def share(place):
        page = stand("waves", f"#drawing=waves&view=race&bet=NoPE&run={place}")
        seen(page)
        said = page.locator(".drawing-says").inner_text()
        return float(re.search(r"right in ([\d.]+)%", said)[1])

    low, high = share(1), share(2)
    assert low != high
    assert share(1.5) == pytest.approx((low + high) / 2, abs=0.1)
