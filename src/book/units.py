"""Split a page into units, which are translated one by one in a PO file next to the page.

An example is `chapters/talk.zh.po`. A unit is a paragraph, a heading, a list item, a row of a table
or a line of a cue, with its English as the `msgid`. Sentences that code produces have the context
"said", with `{}` for a number and `{a}` for words (`helpers.words`). These are the strings and
comments of the cells that a page shows, and the words that functions draw or print. A string that
must stay in the code as it is has the context "code" as well. A unit that changed since it was
translated is `fuzzy`, with the old English after `#|`. A unit that the page no longer has stays at
the end of the file after `#~`. So no translation is lost, and a sentence that comes back gets its
translation back.
"""

import ast
import csv
import difflib
import io
import re
import tokenize
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from course.editions import SAID, Entry, patterns, read, read_all
from helpers import style, words

# the PO functions are imported from the module that notebooks use
__all__ = ["SAID", "Entry", "patterns", "read", "read_all"]
DATA = Path(__file__).resolve().parents[2] / "data"
CODE = "code"
MATH = re.compile(r"\$\$?[^$]+\$\$?")
ROW = re.compile(r"\|[\s:|-]+\|?")
FENCE = re.compile(r"(`{3,}|~{3,}|:{3,})")
DIRECTIVE = re.compile(
    r"((?:`{3,}|:{3,})\{(?:stop|grid-item-card|admonition|note|warning|dropdown)\} *(?:\d+ +)?)(.*)"
)
BLOCK = re.compile(r"\s*(?:#+ |[-*+] |\d+[.)] |\||`{3}|:{3}|\$\$|<|%|>|:[\w-]+:|\()")
TAGGED = re.compile(r"((?:<[a-z][^>]*>\s*)*)(.*?)((?:\s*</[^>]+>)*)", re.S)
NUMBER = re.compile(r"(?<![\w.−-])[+−-]?\d+(?:,\d{3})*(?:\.\d+)?%?(?!\w|[.,]\d)")
# a value that is filled in later, in a string for `str.format`
FORMATTED = re.compile(r"\{\w*:[^{}\s]+\}|\{\}")
HOLE = re.compile("[\ue000-\uf8ff]")  # a value in an f-string while we look up its words
TOLD = {
    "label",
    "name",
    "caption",
    "alt",
    "title",
    "xlabel",
    "ylabel",
    "unit",
}  # arguments that contain text for readers, even if it is one word
OTHERS = {"columns", "index", "labels", "reader"}  # arguments that may contain text for readers


class Piece(NamedTuple):
    """Hold a piece of a text.

    `text` is a unit or empty. Around it is the text that all languages share.
    """

    before: str
    text: str = ""
    after: str = ""


def prose(text: str) -> bool:
    """Return whether a text has words besides formulas, code, tags and addresses.

    >>> prose("| $n$ | `n` |"), prose("$n$ ones")
    (False, True)
    """
    return bool(
        re.search(
            r"[A-Za-z]{2}|[一-鿿]", re.sub(r"`[^`]*`|<[^>]*>|\]\([^)]*\)", "", MATH.sub("", text))
        )
    )


def pieces(source: str) -> list[Piece]:
    """Split a Markdown text into pieces.

    Joined together the pieces give the text again, except for line ends within a paragraph.

    >>> [piece.text for piece in pieces("# One\\n\\nTwo\\nlines.\\n\\n- Three") if piece.text]
    ['One', 'Two lines.', 'Three']
    """
    split, lines, k, cue = [], source.split("\n"), 0, False
    while k < len(lines):
        line, start = lines[k], k
        k += 1
        if line.startswith("<!-- cue"):
            cue = True
        elif cue and line.strip() == "-->":
            cue = False
        elif cue:
            split.append(Piece("", line, "\n"))
            continue
        elif opened := DIRECTIVE.fullmatch(line):
            split.append(Piece(opened[1], opened[2], "\n"))
            continue
        elif (
            (fence := FENCE.match(line))
            and not line[fence.end() :].startswith("{")
            and line != fence[1]
        ):
            while k < len(lines) and not lines[k].startswith(fence[1]):  # a block of code
                k += 1
            k += 1
        elif line.startswith("$$"):
            while not (
                lines[k - 1].rstrip(" ,.").endswith("$$") and (k - 1 > start or len(line) > 4)
            ) and k < len(lines):
                k += 1
        elif (
            line.strip("> ")
            and not fence
            and not re.match(r"\s*(?:%|:[\w-]+:|\(\S+\)=)", line)
            and not ROW.fullmatch(line)
        ):
            lead = re.match(r"(?:\s*> ?)*\s*(?:#+ |[-*+] |\d+[.)] )?", line)[0]
            quote = re.match(r"(?:\s*> ?)*", lead)[0]
            texts = [line[len(lead) :]]
            while (
                k < len(lines)
                and not lead.lstrip("> ").startswith("#")
                and not texts[0].startswith("|")
                and lines[k].startswith(quote.rstrip())
                and lines[k][len(quote) :].strip()
                and not BLOCK.match(lines[k][len(quote) :])
            ):
                texts.append(lines[k][len(quote) :].strip())
                k += 1
            before, text, after = TAGGED.fullmatch(
                " ".join(part.rstrip() for part in texts)
            ).groups()
            if not re.match("<(?:summary|details|p|div)", before) or len(
                re.findall("<[a-z]", text)
            ) != text.count("</"):
                before, text, after = "", "".join((before, text, after)), ""
            split.append(
                Piece(lead + before, text, f"{after}\n")
                if prose(text)
                else Piece("\n".join(lines[start:k]) + "\n")
            )
            continue
        split.append(Piece("\n".join(lines[start:k]) + "\n"))
    split[-1] = (
        split[-1]._replace(after="")
        if split[-1].text
        else Piece(split[-1].before.removesuffix("\n"))
    )
    return split


def write(path: Path, entries: Iterable[Entry], commit: str = "") -> None:
    """Write a PO file.

    `commit` is the commit of the English page for which every unit was translated.
    """

    def line(name: str, text: str) -> str:
        for sign, escaped in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\t", "\\t")):
            text = text.replace(sign, escaped)
        return f'{name} "{text}"'

    head = [
        "Language: zh_CN",
        "MIME-Version: 1.0",
        "Content-Type: text/plain; charset=UTF-8",
        f"X-English: {commit}",
    ]
    blocks = [
        "\n".join(
            ['msgid ""', line("msgstr", "\n".join([*head, "Content-Transfer-Encoding: 8bit", ""]))]
        )
    ]
    for entry in sorted(entries, key=lambda entry: entry.obsolete):
        comments = [f"#: {entry.place}"] * bool(entry.place) + ["#, fuzzy"] * entry.fuzzy
        comments += [line("#| msgid", entry.previous)] * bool(entry.previous)
        lines = [line("msgctxt", entry.context or "")] * (entry.context is not None)
        lines += [line("msgid", entry.text), line("msgstr", entry.other)]
        blocks.append(
            "\n".join([*comments, *(f"#~ {row}" if entry.obsolete else row for row in lines)])
        )
    path.write_text("\n\n".join(blocks) + "\n")


def commit(path: Path) -> str:
    """Return the commit of the English page for which every unit was translated.

    The result is "" if no commit was recorded.
    """
    return re.search(r"X-English: (\w*)", path.read_text())[1] if path.exists() else ""


def likeness(first: str, second: str) -> float:
    """Return how similar two texts are, from 0 to 1.

    Short texts are compared by characters, and long texts by words.

    >>> first, last = (f"The head attends to the {place} token." for place in ("first", "last"))
    >>> round(likeness(first, last), 1)
    0.9
    """
    if max(len(first), len(second)) > 80:
        first, second = (re.findall(r"\w+|[^\w\s]", text) for text in (first, second))
    return difflib.SequenceMatcher(None, first, second, autojunk=False).ratio()


SAME_ENOUGH, SAME_CELL = 0.5, 0.2  # a text that stayed in its cell may differ more by this amount


def merged(entries: list[Entry], wanted: list[Entry]) -> list[Entry]:
    """Return the wanted units with their translations.

    A unit whose English changed gets the translation of the most similar old unit that no other
    unit has used. It is marked fuzzy and keeps the old English.
    """

    def kind(entry: Entry) -> str:
        return entry.context if entry.context in (SAID, CODE) else "text"

    known = {
        (e.text, kind(e)): e
        for e in sorted(entries, key=lambda e: bool(e.other))
        if not e.obsolete or e.other
    }
    known |= {(e.text, e.context): e for e in entries if not e.obsolete}
    units, open_units, used = [], [], set()
    for k, unit in enumerate(wanted):
        old = known.get((unit.text, unit.context)) or known.get((unit.text, kind(unit)))
        units.append(
            old._replace(place=unit.place, context=unit.context, obsolete=False) if old else unit
        )
        if old:
            used.add((old.text, old.context))
        else:
            open_units.append(k)
    loose = [e for e in entries if e.other and (e.text, e.context) not in used]
    pairs = []
    for k in open_units:
        for i, old in enumerate(loose):
            if kind(old) == kind(units[k]):
                near = (
                    SAME_CELL * (old.place == units[k].place and bool(old.place))
                    - 0.1 * old.obsolete
                )
                pairs.append((likeness(old.text, units[k].text) + near, k, i))
    free = set(range(len(loose)))
    for score, k, i in sorted(pairs, key=lambda pair: (-pair[0], pair[1:])):
        if score > SAME_ENOUGH and i in free and not units[k].other:
            free.remove(i)
            old = loose[i]
            units[k] = units[k]._replace(
                other=old.other, fuzzy=True, previous=old.previous or old.text
            )
    return units


def left(entries: list[Entry], units: list[Entry]) -> list[Entry]:
    """Return the translations that no unit uses, as obsolete entries.

    We never throw a translation away.
    """
    present = {(e.text, e.other) for e in units} | {(e.previous, e.other) for e in units}
    return [
        e._replace(obsolete=True)
        for e in entries
        if e.other and not present & {(e.text, e.other), (e.previous or e.text, e.other)}
    ]


def keeps(sources: Iterable[str]) -> Callable[[str], bool]:
    """Return a function that says whether a string in a page's code must stay as it is.

    A string must stay if code looks for it in other strings or in a table, or if it is a name.
    """
    within, exact = set(), {*style._READERS, *style._FATES}
    for source in sources:
        for node in ast.walk(parsed(source)):
            if isinstance(node, ast.Compare):
                sides = [
                    side for operand in (node.left, *node.comparators) for side in ast.walk(operand)
                ]
                looks_within = any(isinstance(op, ast.In | ast.NotIn) for op in node.ops)
                (within if looks_within else exact).update(
                    side.value
                    for side in sides
                    if isinstance(side, ast.Constant) and isinstance(side.value, str)
                )
        for name in re.findall(r'\bdata\.table\("([\w/]+)"', source):
            rows = csv.reader(
                line for line in (DATA / f"{name}.csv").open() if not line.startswith("#")
            )
            exact |= {cell for row in rows for cell in row}
    within = {text for text in within if prose(text)}

    def stays(text: str) -> bool:
        if text in exact:
            return True
        return any(re.search(rf"(?<!\w){re.escape(phrase)}(?!\w)", text) for phrase in within)

    return stays


def parsed(source: str) -> ast.Module:
    return ast.parse(re.sub(r"(?m)^[%!]", "#", source))


def strings(source: str) -> Iterator[tuple[ast.expr, bool]]:
    """Yield the strings in a piece of code that may be meant for a reader.

    With each we yield whether it surely is (several words, and not an index).
    """
    tree = parsed(source)
    above = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        if not (
            isinstance(node, ast.JoinedStr)
            or (isinstance(node, ast.Constant) and isinstance(node.value, str))
        ):
            continue
        parent = above[node]
        if isinstance(parent, ast.JoinedStr | ast.FormattedValue):
            continue
        call = above.get(parent) if isinstance(parent, ast.List | ast.Tuple) else parent
        name = ast.unparse(call.func) if isinstance(call, ast.Call) else ""
        if name.endswith((".query", ".eval")) or (
            isinstance(parent, ast.keyword) and parent.arg not in TOLD | OTHERS
        ):
            continue
        text = FORMATTED.sub("0", HOLE.sub("0", template(node)[0]))
        several = bool(re.search(r"[A-Za-z]{2}.*\s|\s.*[A-Za-z]{2}", text))
        is_told = isinstance(parent, ast.keyword | ast.IfExp) or name.startswith("predict.")
        index = isinstance(parent, ast.Subscript) or isinstance(above.get(parent), ast.Subscript)
        if several or is_told or nested(node):
            yield node, several and not index


def nested(node: ast.expr) -> list[ast.Constant]:
    """Return the strings within the values of an f-string.

    Keys of one word, such as `answer` in `row['answer']`, are left out, because they must not
    change.
    """
    values = [
        part.value for part in getattr(node, "values", []) if isinstance(part, ast.FormattedValue)
    ]
    every = [inner for value in values for inner in ast.walk(value)]
    keys = {inner.slice for inner in every if isinstance(inner, ast.Subscript)}
    return [
        inner
        for inner in every
        if isinstance(inner, ast.Constant)
        and isinstance(inner.value, str)
        and not (inner in keys and " " not in inner.value)
    ]


def template(node: ast.expr) -> tuple[str, list[str]]:
    """Split a string into its text and the source code of its inserted values.

    The text has a placeholder character for each value.
    """
    values: list[str] = []

    def sign(value: str) -> str:
        values.append(value)
        return chr(0xE000 + len(values) - 1)

    if isinstance(node, ast.Constant):
        return FORMATTED.sub(lambda match: sign(match[0]), node.value), values
    text = "".join(
        part.value
        if isinstance(part, ast.Constant)
        else sign(ast.unparse(ast.JoinedStr([part]))[2:-1])
        for part in node.values
    )
    return text, values


def holes(text: str, values: list[str] = ()) -> str:
    """Convert a text to an entry with placeholders.

    `{}` stands for a number or a value that is formatted as a number, and `{a}` for any other
    value.

    >>> holes("right at 16, bf16")
    'right at {}, bf16'
    """
    names = iter("abcdefghijklmnopqrstuvwxyz")

    def hole(sign: re.Match) -> str:
        value = values[ord(sign[0]) - 0xE000]
        number = re.search(r":[^\]\[(){}'\"]*[\ddfg%,]\}$", value) or re.match(
            r"\{(?:int|len|round|style\.number)\(|\{\}", value
        )
        return "{}" if number else f"{{{next(names)}}}"

    return HOLE.sub(hole, NUMBER.sub("{}", text))


def matched(text: str, table: dict[str, str]) -> tuple[str, str] | None:
    """Return the entry for a string in code, and the string in the other language.

    We skip an entry whose translation has other placeholders than its English, because it follows
    an older English.

    >>> matched("7 tokens", {"{} tokens": "{} 个 token"})
    ('{} tokens', '7 个 token')
    >>> matched("7 tokens", {"{} tokens": "{} 个 token，共 {}"})
    >>> matched("so many tokens", {"{a} tokens": "{} 个 token"})
    """
    for english, translation in table.items():
        pattern, named = form(english)
        needed = re.findall(r"\{(\w*)\}", translation)
        if needed.count("") > sum(map(str.isdigit, named)) or {*needed} - {"", *named}:
            continue
        if match := pattern.fullmatch(text):
            values = dict(zip(named, match.groups(), strict=True))
            order = map(str, range(len(named)))
            fill = lambda hole: values[hole[1] or next(order)]  # noqa: B023, E731
            return english, re.sub(r"\{(\w*)\}", fill, translation)
    return None


@lru_cache(maxsize=8192)
def form(english: str) -> tuple[re.Pattern, list[str]]:
    """Return a pattern that matches the template of an entry in the code.

    We also return the names of its placeholders, with numbers counted from "0".
    """
    fits = words._pattern(english, HOLE.pattern)
    return fits, [name[1:] for name in fits.groupindex]


def comments(source: str) -> Iterator[tokenize.TokenInfo]:
    for token in tokenize.generate_tokens(io.StringIO(re.sub(r"(?m)^[%!]", "#", source)).readline):
        if (
            token.type == tokenize.COMMENT
            and prose(token.string)
            and source.split("\n")[token.start[0] - 1][:1] not in "%!"
        ):
            yield token


def of_code(
    source: str, place: str, entries: list[Entry], stays: Callable[[str], bool]
) -> Iterator[Entry]:
    """Yield the units of a code cell, which are the entries of its strings and comments.

    A string or comment without an entry gets a new one.
    """
    table = patterns([e._replace(other=e.other or e.text, fuzzy=False) for e in entries])
    own_code = {e.text for e in entries if e.context == CODE}
    for node, is_asked in strings(source):
        text, values = template(node)
        unit = holes(text, values)
        if known := matched(text, table):
            yield Entry(known[0], "", SAID, place)
        elif is_asked and not stays(text) and unit not in own_code:
            yield Entry(unit, "", SAID, place)
        if unit in own_code:
            yield Entry(unit, unit, CODE, place)
    for token in comments(source):
        text = token.string.lstrip("# ")
        yield Entry((matched(text, table) or [text])[0], "", SAID, place)


def in_code(source: str, entries: Iterable[Entry], stays: Callable[[str], bool]) -> str:
    """Return a code cell with its strings and comments in the other language.

    Only these texts change, and the code stays the same.

    >>> table = [Entry("{} bits", "{} 比特", SAID), Entry("so it is", "如此", SAID)]
    >>> in_code('print(f"{x:.2f} bits")  # so it is', table, lambda text: False)
    'print(f"{x:.2f} 比特")  # 如此'
    >>> three = 3 * '"'  # an f-string of several lines stays one
    >>> in_code(f"print(f{three}{{x:.2f}} bits{three})", table, lambda text: False)
    'print(f""\"{x:.2f} 比特""\")'
    """
    entries = list(entries)
    table, own_code = patterns(entries), {e.text for e in entries if e.context == CODE}
    lines, changes = source.split("\n"), []

    def other(text: str, values: list[str] = ()) -> str:
        match = None if holes(text, values) in own_code or stays(text) else matched(text, table)
        return match[1] if match else text

    for node, _ in strings(source):
        changed = False
        for part in nested(node):
            changed |= other(part.value) != part.value
            part.value = other(part.value)
        text, values = template(node)
        if changed or other(text, values) != text:
            start, end = lines[node.lineno - 1].encode(), lines[node.end_lineno - 1].encode()
            columns = (
                len(start[: node.col_offset].decode()),
                len(end[: node.end_col_offset].decode()),
            )
            # the quotes in the source, because within an f-string they differ
            quote = re.match(r'\w*("""|.)', lines[node.lineno - 1][columns[0] :])[1]
            new = literal(other(text, values), values, node, quote)
            changes.append(((node.lineno, columns[0]), (node.end_lineno, columns[1]), new))
    for token in comments(source):
        if match := matched(token.string.lstrip("# "), table):
            changes.append((token.start, token.end, f"# {match[1]}"))
    for (row, column), (last, end), new in sorted(changes, reverse=True):
        lines[row - 1 : last] = [lines[row - 1][:column] + new + lines[last - 1][end:]]
    return "\n".join(lines)


def legend(source: str, entries: Iterable[Entry]) -> str:
    """Add a comment to a cell, which translates the English names in its code.

    Code uses some names to look something up, so we cannot translate these names in the code. The
    comment tells readers how the outputs show them.

    >>> print(legend('show({"turned": 1})', [Entry("turned", "旋转之后", SAID)]))
    show({"turned": 1})
    # 输出里的中文：turned 旋转之后
    """
    table, pairs = patterns(entries), {}
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            translation = table.get(node.value, "")
            if re.search("[一-鿿]", translation):
                pairs[node.value] = translation
    lines = [""]
    for english, translation in pairs.items():
        part = f"{english} {translation}"
        if lines[-1] and len(lines[-1]) + len(part) > 60:
            lines.append("")
        lines[-1] += f"；{part}" if lines[-1] else part
    comment = "\n".join(
        f"# {'输出里的中文：' if k == 0 else ''}{line}" for k, line in enumerate(lines) if line
    )
    return f"{source}\n{comment}" if comment else source


def literal(text: str, values: list[str], node: ast.expr, quote: str = '"') -> str:
    """Write a string as a Python literal.

    A string that was on several lines gets as many lines as it needs. A docstring stays a
    docstring.
    """
    if quote == '"""':
        body = HOLE.sub(lambda sign: values[ord(sign[0]) - 0xE000], text).replace("\\", "\\\\")
        prefix = "f" if isinstance(node, ast.JoinedStr) and HOLE.search(text) else ""
        return f"{prefix}{quote}{body}{quote}"
    several = node.end_lineno > node.lineno
    parts = [""]
    for part in (
        re.findall(r"[^，。；：]*[，。；：][*”）]*|[^，。；：]+$", text) if several else [text]
    ):
        if len(parts[-1] + part) > 44 and parts[-1]:
            parts.append("")
        parts[-1] += part
    written, put = [], isinstance(node, ast.JoinedStr)
    for part in parts:
        plain = part.replace("\\", "\\\\").replace(quote, f"\\{quote}").replace("\n", "\\n")
        plain = plain.replace("{", "{{").replace("}", "}}") if put and HOLE.search(part) else plain
        shown = HOLE.sub(
            lambda sign: values[ord(sign[0]) - 0xE000].replace(quote, "'\""[quote == "'"]), plain
        )
        written.append(("f" if put and shown != plain else "") + f"{quote}{shown}{quote}")
    return ("\n" + " " * node.col_offset).join(written)


def shape(source: str) -> str:
    """Return code with all words removed from its strings.

    The result is the same in every language, so it shows whether a translation changed the code.
    """
    tree = parsed(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            node.values = sorted(
                (v for v in node.values if isinstance(v, ast.FormattedValue)), key=ast.dump
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = "".join(sorted(FORMATTED.findall(node.value)))
    return ast.dump(tree)


def differing(english: str, other: str) -> list[str]:
    """Return the formulas and numbers of an English text that its translation does not have.

    Ones and zeros are skipped, because they may be digits of a sequence.

    >>> differing("At $n$ = 12, 3 of 4 fail.", "$n$ = 12 时，4 个里有 3 个失败。")
    []
    >>> differing("12 fail", "13 个失败")
    ['12']
    """
    lacking = Counter(MATH.findall(english)) - Counter(MATH.findall(other))
    plain, translated = (
        re.sub(r"`[^`]*`|\]\([^)]*\)|\{\w*\}", "", MATH.sub("", text)) for text in (english, other)
    )
    figures = re.compile(r"\d+(?:[.,]\d+)*")
    return [*lacking, *sorted(set(figures.findall(plain)) - set(figures.findall(translated)))]
