"""How many faults in what is typed would tests/test_said.py see? python tools/inject.py [how many of each]

Faults of five classes are put, one at a time, into texts of pages, cues, captions, hints, reports and the Chinese edition,
drawn by a seed; a fault is seen if what the text asserts changes. Clean controls change the wording alone. The words that
are exchanged here are chosen without the lists of `tests/said`.
"""

import random
import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

import said  # noqa: E402

from course import significance  # noqa: E402

OPPOSITES = """higher:lower larger:smaller rises:falls more:fewer above:below before:after first:last better:worse longer:shorter
increases:decreases grows:shrinks early:late near:far wide:narrow deep:shallow fast:slow strong:weak up:down most:least climbs:drops
doubles:halves improves:worsens always:sometimes all:some succeeds:fails reaches:leaves heavy:light sharp:flat easier:harder
upwards:downwards outer:inner left:right forward:backward""".split()
NAMES = """RoPE:ALiBi NoPE:RoPE Barbero:Alon Ye:Su softmax:sparsemax retrieval:recall counting:copying keys:values queries:keys bf16:fp16
head:layer row:column tree:path lesson:lab Jacobian:average causal:bidirectional width:depth SmolLM2:Gemma sink:window mean:median
Veličković:Topping noise:signal tokens:letters decoder:encoder""".split()
CHINESE = {
    "negation": ["会:不会", "能:不能", "是:不是", "没有:有", "不:", "无法:可以"],
    "direction": ["高:低", "大:小", "多:少", "前:后", "增:减", "第一:最后", "更:不那么", "远:近", "长:短", "强:弱"],
    "name": [
        "RoPE:ALiBi",
        "键:值",
        "头:层",
        "词元:字母",
        "噪声:信号",
        "第一个 token:最后一个 token",
        "检索:计数",
        "图:树",
    ],
}
SAME = """show:display shows:displays therefore:so however:but use:employ called:named begin:start also:too asked:requested
here:there's picture:drawing question:problem people:persons look:watch the:this""".split()


def swapped(text: str, pairs: list[str], rng: random.Random, ends: str = r"\b") -> str | None:
    """The text with one word of some pair exchanged, where it has one."""
    ways = [(a, b) for pair in pairs for a, b in (pair.split(":"), reversed(pair.split(":"))) if a]
    hits = [(m, b) for a, b in ways for m in re.finditer(rf"{ends}{re.escape(a)}{ends}", text)]
    if not hits:
        return None
    m, b = rng.choice(hits)
    return text[: m.start()] + b + text[m.end() :]


def number(text: str, rng: random.Random) -> str | None:
    hits = [*re.finditer(r"(?<![\w.])\d[\d,.]*\d|(?<![\w.])\d(?![\w])", text)]
    if not hits:
        return None
    m = rng.choice(hits)
    at = rng.choice([k for k in range(m.start(), m.end()) if text[k].isdigit()])
    return text[:at] + rng.choice([d for d in "123456789" if d != text[at]]) + text[at + 1 :]


def sign(text: str, rng: random.Random) -> str | None:
    hits = [*re.finditer(r"(?<=[\s(=$])([−+-]?)(?=\d)", text), *re.finditer(r"(?<=\s)[−+](?=\s)|[<>≤≥]", text)]
    if not hits:
        return None
    m = rng.choice(hits)
    other = {"<": ">", ">": "<", "≤": "≥", "≥": "≤", "−": "+", "+": "−", "-": "", "": "−"}[m[0]]
    return text[: m.start()] + other + text[m.end() :]


def negation(text: str, rng: random.Random) -> str | None:
    without = [*re.finditer(r"\b(?:not|no|never) ", text)]
    into = [*re.finditer(r"\b(?:is|are|was|can|does|do|will|has|have) (?!not)", text)]
    if not without + into:
        return None
    m = rng.choice(without + into)
    return text[: m.start()] + text[m.end() :] if m in without else text[: m.end()] + "not " + text[m.end() :]


def injected(kind: str, text: str, chinese: bool, rng: random.Random) -> str | None:
    if kind in ("number", "sign"):
        return {"number": number, "sign": sign}[kind](text, rng)
    if chinese:
        return swapped(text, CHINESE[kind], rng, "")
    if kind == "negation":
        return negation(text, rng)
    return swapped(text, OPPOSITES if kind == "direction" else NAMES, rng)


def place(path: Path, text: str) -> str:
    """What kind of text it is."""
    if path.suffix == ".po":
        return "Chinese"
    if path.suffix == ".ipynb":
        return "cue" if text.startswith("<!-- cue") else "caption" if "\n" not in text and len(text) < 400 else "page"
    return "report" if "report" in path.parts else "hint" if "checks" in path.as_posix() else "page"


def main(count: int = 60) -> None:
    rng = random.Random(0)
    pools = defaultdict(list)
    for path in said.SOURCES:
        for _, text in said.texts(path):
            if " " in text.strip() or path.suffix == ".po":
                pools[place(path, text)].append(text)
    for kind in ("number", "sign", "negation", "name", "direction", "control"):
        seen, missed, tried = 0, [], 0
        while tried < count:
            where = sorted(pools)[tried % len(pools)]
            text = rng.choice(pools[where])
            if kind == "control":
                new = (
                    None
                    if where == "Chinese" and "，" not in text
                    else swapped(text, SAME, rng) or text.replace(" ", "\n", 1)
                )
            else:
                new = injected(kind, text, where == "Chinese", rng)
            if new is None or new == text:
                continue
            tried += 1
            found = said.facts(new) != said.facts(text)
            seen += found
            if found == (kind == "control"):
                missed.append(
                    (
                        where,
                        *next(((a, b) for a, b in zip(text.split(), new.split(), strict=False) if a != b), ("", "")),
                    )
                )
        low, high = significance.share_interval(seen, tried)[-2:]
        print(
            f"{kind:10} {seen} of {tried} seen, {seen / tried:.0%} ({low:.0%} to {high:.0%}); wrongly told: {missed[:8]}"
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
