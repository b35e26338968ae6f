"""Write what follows from a configuration, as sentences and as a page.

The command is `python -m course.report config.json --out reports`. `rows` turns the numbers of
`configuration.facts` into sentences of `sentences.json`, in English or Chinese. The page in the
browser (`frontend/live/configuration.js`) uses the same sentences.
"""

import json
import math
from collections.abc import Callable, Mapping
from decimal import ROUND_HALF_UP, Context, Decimal
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

from course.build.files import writable, write
from course.report import configuration, page, store
from course.report.configuration import WORDS

THREE = Context(prec=3, rounding=ROUND_HALF_UP)
MARKS = {"breaks": "▲ ", "late": "● ", "open": "? ", "holds": "✓ ", "note": ""}


class Row(NamedTuple):
    """Hold one consequence of a configuration for a table.

    The fields are a name, a state (breaks, holds, late, open or note), a sentence, a formula and a
    chapter.
    """

    key: str
    name: str
    state: str
    text: str
    formula: str
    chapter: int


def say(value: float | str) -> str:
    """Format a number with commas, and with at most three digits if it is not an integer.

    A text is returned unchanged.

    >>> say(131072), say(0.3125), say(5_063_255.79), say(500_000.0)
    ('131,072', '0.313', '5,063,256', '500,000')
    """
    if isinstance(value, str):
        return value
    if value == int(value) or abs(value) >= 1000:
        return f"{math.floor(value + 0.5):,}"
    return format(THREE.create_decimal(Decimal(value)).normalize(), "f")


def size(count: float) -> str:
    """Format a number of bytes in the largest unit that fits.

    >>> size(2**30), size(1_536), size(100)
    ('1 GiB', '1.5 KiB', '100 bytes')
    """
    for unit, power in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if count >= 2**power:
            return f"{say(count / 2**power)} {unit}"
    return f"{say(count)} bytes"


class Writer:
    """Fill in the sentences of one language with the numbers of one configuration."""

    def __init__(self, facts: Mapping, language: str = "en") -> None:
        self.facts, self.language, self.found = facts, language, []

    def fill(self, key: str, state: str, **slots: float | str) -> str:
        text = WORDS["rows"][key][state][self.language]
        return text.format(**{name: say(value) for name, value in slots.items()})

    def part(self, name: str, **slots: float | str) -> str:
        return WORDS["parts"][name][self.language].format(**{k: say(v) for k, v in slots.items()})

    def add(self, key: str, state: str, text: str) -> None:
        row = WORDS["rows"][key]
        self.found.append(
            Row(key, row["name"][self.language], state, text, row["formula"], row["chapter"])
        )

    def rows(self) -> list[Row]:
        """Return what follows from the configuration, as rows in the order of the page."""
        self._length()
        self._reach()
        self._base()
        self._rest()
        self._layers()
        return self.found

    def _length(self) -> None:
        facts, n, context = self.facts, self.facts["tokens"], self.facts["context"]
        if not context:
            self.add("length", "open", self.fill("length", "open", n=n))
            return
        state = "breaks" if n > context else "holds"
        text = self.fill("length", state, n=n, context=context, times=n / context)
        if facts["original"] and facts["original"] < context:
            text += self.fill("length", "stretched", original=facts["original"])
        self.add("length", state, text)

    def _reach(self) -> None:
        facts, n = self.facts, self.facts["tokens"]
        count, reached = len(facts["layers"]), facts["reached"]
        state = {0: "breaks", 1: "holds"}.get(reached or 0, "late")
        furthest = facts["arrives"][-1]
        text = self.fill(
            "reach",
            state,
            n=n,
            layers=count,
            all=facts["sees_all"],
            reached=reached,
            left=count - reached + 1,
            furthest=furthest + 1,
            span=furthest,
        )
        if facts["states"]:
            text += self.fill("reach", "state", states=facts["states"])
        self.add("reach", state, text)

    def _base(self) -> None:
        for rope in self.facts["rope"]:
            if not rope["layers"]:
                continue
            who = self.part(rope["kind"]) if rope["kind"] in WORDS["parts"] else ""
            slots = {
                "who": who,
                "base": rope["base"],
                "pairs": rope["pairs"],
                "limit": rope["limit"],
                "type": rope["type"],
            }
            if not rope["known"]:
                self.add("base", "open", self.fill("base", "open", **slots))
                continue
            scaled = rope["type"] != "default"
            slots["scaling"] = self.fill("base", "scaled", **slots) if scaled else ""
            state = "breaks" if rope["first_negative"] else "holds"
            text = self.fill("base", state, **slots, first=rope["first_negative"])
            if rope["smallest_base"]:
                text += self.fill("base", "least", least=rope["smallest_base"])
                if rope["first_negative"] and rope["base"] >= rope["smallest_base"] and not scaled:
                    text += self.fill("base", "gap")
            else:
                text += self.fill("base", "none", **slots)
            self.add("base", state, text)
            slots |= {"slow": rope["slow"], "zero": rope["still"], "period": rope["period"] or 0.0}
            self.add(
                "pairs", "note", self.fill("pairs", "still" if rope["still"] else "note", **slots)
            )
        if not any(rope["layers"] for rope in self.facts["rope"]):
            state = self.facts["position"] or "none"
            text = self.fill("positions", state, context=self.facts["context"] or 0)
            self.add("positions", "note", text)

    def _rest(self) -> None:
        facts, n = self.facts, self.facts["tokens"]
        if facts["bits_each"]:
            needed = n * facts["bits_each"]
            state = "breaks" if needed > facts["bits"] else "holds"
            fits = math.floor(facts["bits"] / facts["bits_each"])
            slots = {"needed": math.floor(needed + 0.5), "fits": fits, "n": n}
            self.add("capacity", state, self.fill("capacity", state, bits=facts["bits"], **slots))
        else:
            self.add("capacity", "open", self.fill("capacity", "open", bits=facts["bits"]))
        if facts["span"]:
            state = "breaks" if facts["counts"] and facts["span"] > facts["counts"] else "holds"
            counts = facts["counts"] or configuration.TOKENS
            text = self.fill(
                "rounding", state, format=facts["format"], counts=counts, span=facts["span"]
            )
            text += "" if facts["format_said"] else self.fill("rounding", "assumed")
            self.add("rounding", state, text)
        if facts["lead"] is not None:
            text = self.fill("shares", "open", n=facts["span"], lead=facts["lead"])
            window = facts["window"]
            if window and 2 < window < facts["span"]:
                text += self.fill("shares", "window", window=window, smaller=math.log(window - 1))
            self.add("shares", "open", text)
        slots = {
            "size": size(facts["cache"]),
            "each": size(facts["cache_each"]),
            "n": n,
            "bytes": facts["bytes"],
        }
        state = "latent" if facts["latent"] else "note"
        self.add("cache", "note", self.fill("cache", state, width=facts["latent"], **slots))

    def _layers(self) -> None:
        facts, counts, unknown = self.facts, {}, []
        for mixes, window, rotates, chunked, kind in facts["layers"]:
            if mixes == "attention":
                name = "chunk" if chunked else "window" if window else "all"
                description = self.part(name, window=window or 0) + self.part(
                    "rotates" if rotates else "still"
                )
                if kind not in KNOWN_KINDS and kind not in unknown:
                    unknown.append(kind)
            else:
                both = "both" if mixes.startswith("attention") else "state"
                description = self.part("conv", window=window) if window else self.part(both)
            counts[description] = counts.get(description, 0) + 1
        kinds = self.part("between").join(
            f"{count} × {description}" for description, count in counts.items()
        )
        state = "unknown" if unknown else "note"
        self.add(
            "layers", "note", self.fill("layers", state, kinds=kinds, names=", ".join(unknown))
        )
        if facts["local"]:
            self.add("design", "note", self.fill("design", "note", window=facts["window"] or 0))
        state = "has" if facts["kind"] == "diffllama" else "note"
        self.add("difference", "note", self.fill("difference", state))


KNOWN_KINDS = ("full_attention", "sliding_attention", "chunked_attention", "attention")


def rows(config: Mapping, tokens: int | None = None, language: str = "en") -> list[Row]:
    """Return what follows from a configuration for a text of n tokens, as table rows.

    If `tokens` is None, n is the model's context length.

    >>> table = rows(configuration.known("llama-2-7b"), 100_000)
    >>> [row.key for row in table if row.state == "breaks"]
    ['length', 'base', 'capacity', 'rounding']
    """
    return Writer(configuration.facts(config, tokens), language).rows()


def short(table: list[Row], tokens: int, language: str = "en") -> str:
    """Summarise in one sentence what breaks according to the rows."""
    names = list(dict.fromkeys(row.name for row in table if row.state == "breaks"))
    text = WORDS["short"]["breaks" if names else "holds"][language]
    between = "、" if language == "zh" else ", "
    return text.format(n=say(tokens), count=len(names), names=between.join(names))


def run(
    name: str, where: Path, say_line: Callable[[str], None], tokens: int | None = None
) -> tuple[Path, Path]:
    """Write the page and the JSON file of a configuration into a folder, and return the two paths.

    Raises:
        ValueError: if the file is not a configuration, the length is out of bounds, or another file
            is in the way.
    """
    config, path = configuration.read(name), Path(name).expanduser()
    title = str(config.get("_name_or_path") or config.get("model_type") or path.parent.name)
    facts = configuration.facts(config, tokens)
    table = Writer(facts).rows()
    stem = store.slug(f"{title} configuration")
    files = [writable(where / f"{stem}.{kind}") for kind in ("html", "json")]
    summary = short(table, facts["tokens"])
    for line in (summary, *(f"{MARKS[row.state]}{row.name}: {row.text}" for row in table)):
        say_line(line)
    report = {
        "what": "a configuration",
        "name": title,
        "facts": facts,
        "rows": [row._asdict() for row in table],
        "unknown": WORDS["unknown"]["en"],
    }
    write(files[1], json.dumps(report, indent=1, ensure_ascii=False) + "\n", "rows")
    write(files[0], html(title, table, summary), "rows")
    return files[0], files[1]


def html(title: str, findings: list[Row], summary: str) -> str:
    """Return the page of a configuration as HTML."""
    table = [
        (row.name, [MARKS[row.state] + row.text, row.formula, f"chapter {row.chapter}"])
        for row in findings
    ]
    body = Markup("<p>{}</p>").format(summary)
    body += page.HTML.table(
        ["what follows", "formula", "where"], table, "What the configuration says"
    )
    unknown = Markup("").join(
        Markup("<li>{}</li>").format(point) for point in WORDS["unknown"]["en"]
    )
    body += Markup("<h2>What it cannot say</h2><ul>{}</ul>").format(unknown)
    return page.HTML.document(f"{title}: its configuration", body, page.STYLE).lstrip()
