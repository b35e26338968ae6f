"""What the pages say, written down, as `tests/drawn` does it with what they draw.

What is computed (outputs, claims, reports, sentences of drawings) is held word by word. Of what an author typed are held
the words that make it true or false: numbers, signs, negations, directions and names. A nicer sentence that asserts the
same changes nothing here; another assertion does, and whoever reads the change sees which.
"""

import ast
import json
import re
import tomllib
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bs4
import nbformat
import units
import yaml
from pages import pages

ROOT = Path(__file__).resolve().parents[2]
NUMBERS = """zero one two three four five six seven eight nine ten eleven twelve twenty thirty fifty hundred thousand million half
halves third quarter twice double triple once single dozen"""
NEGATIONS = """no not none never neither nor nothing nobody cannot without hardly except unless only instead un- less-than fails
fail holds hold wrong right true false same equal differs different"""
DIRECTIONS = """more most less least fewer few many higher highest lower lowest above below over under larger largest smaller
smallest big small greater rise rises rising rose grow grows growing grew shrink shrinks fall falls falling fell increase increases
decrease decreases before after early earlier earliest late later latest first last next previous left right near nearer nearest far
farther further up down upper longer longest shorter shortest long short better best worse worst wide wider narrow deep deeper
shallow fast faster slow slower strong stronger weak weaker all every each some any both always often seldom rarely exactly about at
most than toward towards away from to into in out inside outside within beyond between against gain gains lose loses lost keep keeps
kept add adds take takes new old start starts end ends beginning middle forward backward ahead behind sooner"""
TERMS = """causal softmax sink sinks retrieval counting recall copying copy row column rows columns token tokens query queries key
keys value values head heads layer layers width depth band bands frequency frequencies base differential window star path ring tree
graph hop hops edge edges node nodes slope slopes resistance position positions content noise signal mean median share shares weight
weights state states vector bf fp float model models decoder decoders entropy temperature window prefix mask uniform average sum
difference product ratio logit logits gradient loss step steps seed seeds digit digits letter letters word words prompt prompts
reader readers writer training trained untrained random proof theorem paper claim claims"""
CHINESE = """不 没 无 未 非 否 别 大 小 多 少 高 低 上 下 前 后 早 晚 长 短 升 降 增 减 先 左 右 远 近 强 弱 好 坏 最 都 只 全 每 更 超 内 外 进
出 从 到 首 末 头 尾 对 错 真 假 同 异 快 慢 宽 窄 深 浅 新 旧 一 二 三 四 五 六 七 八 九 十 百 千 万 半 倍 零 两 列 行 层 词 键 值 查 询 和 差 积
均 权 重 图 边 点 路 环 树 星 窗 汇 塌 缩 坍 计 数 位 置 频 率 噪 声 信 号 加 乘 除 至 过 仍 已 才 就 也 又 再 正 负 因 果 源 端 根 叶 份 额"""
WORDS = set(" ".join((NUMBERS, NEGATIONS, DIRECTIONS, TERMS)).split())
CHARACTERS = "".join(CHINESE.split())
ASSERTS = re.compile(
    r"(?:[−+±~≈<>≤≥=×·÷/^-]\s?)?\d[\d,.]*(?:\s?[%‰])?"  # a number with its sign
    r"|[<>≤≥≠≈∝→←↑↓√∞]|(?<= )[−-](?= )"
    r"|\\(?:le|ge|ll|gg|lt|gt|ne|frac|cdot|times|sqrt|sum|prod|log|exp|infty|min|max|alpha|beta|lambda|theta|sigma)\b"
    r"|n't\b|\bun(?=[a-z]{4})"
    r"|[A-Za-z][\w'’]*"
    rf"|[{CHARACTERS}]"
)
COUNT = re.compile(r"(?:(?<![\w.)])[-+])?(?<!\d)\d[\d,]*(?:\.\d+)?(?: × 10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+|e[-+]?\d+)?%?")
LINK = re.compile(r"\]\([^)]*\)|https?://\S+|</?\w[^>]*>")


def facts(text: str) -> str:
    """The words of a text that make it true or false, in their order.

    >>> facts("RoPE's heads do *not* rise above 0.30, as Ye et al. said.")
    'RoPE heads not rise above 0.30 Ye'
    """
    text, found, start = LINK.sub(" ", text), [], True
    for hit in ASSERTS.finditer(text):
        word = re.sub(r"\s", "", hit[0]).replace("’", "'")
        plain = word.removesuffix("'s")
        if not (word[0].isalpha() and word.isascii()):
            found.append(word.rstrip(".,"))
        elif plain.lower() in WORDS:
            found.append(plain.lower())
        elif plain.endswith("n't"):
            found.append("not")
        elif re.search("[A-Z_0-9]", plain if not start else plain[1:]) or (len(plain) == 1 and plain not in "aAI"):
            found.append(plain)
        start = bool(re.match(r"""[.:?!]?['"”*_)]*(\s*\n|(?<=[.:?!'"”*_)])\s)""", text[hit.end() : hit.end() + 6]))
    return " ".join(found)


def leaves(value: Any, place: str = "") -> Iterator[tuple[str, str]]:
    """The texts of a table with their places."""
    if isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for name, inner in pairs:
            yield from leaves(inner, f"{place}.{name}" if place and isinstance(value, dict) else place or str(name))
    elif isinstance(value, str):
        yield place, value


def strings(code: str) -> Iterator[tuple[str, str]]:
    """The sentences in Python, by the function or the name that they stand in; docstrings are not said."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse("\n".join("" if re.match(r"\s*[%!]", line) else line for line in code.splitlines()))
    for top in tree.body:
        inner: set[ast.AST] = set()
        for node in ast.walk(top):
            if isinstance(node, ast.JoinedStr):
                inner |= {part for part in node.values if isinstance(part, ast.Constant)}
                text = "".join(p.value if isinstance(p, ast.Constant) else f" {ast.unparse(p)} " for p in node.values)
            elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                inner.add(node.value)
                continue
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in inner:
                text = node.value
            else:
                continue
            if " " in text.strip():
                yield (
                    getattr(top, "name", "") or next((n.id for n in ast.walk(top) if isinstance(n, ast.Name)), ""),
                    text,
                )


SOURCES = (
    *pages(".po", ".yml"),
    *sorted(p for p in (ROOT / "src/course").rglob("*.toml") if p.name != "tables.toml"),
    *sorted((ROOT / "src/course/drawing/words").glob("*.json")),
    *sorted(p for n in ("checks", "telling", "line", "page", "sections", "answer", "talk") for p in (ROOT / "src/course").rglob(f"{n}.py")),
    *sorted((ROOT / "src/course").rglob("*.jinja")),
    ROOT / "src/course/scorecard/__init__.py",
    ROOT / "tools/slides.py",
)  # fmt: skip


def texts(path: Path) -> list[tuple[str, str]]:
    """What an author typed into a file and a reader reads, with the place of each text."""
    text = path.read_text()
    if path.suffix == ".ipynb":
        found = []
        for cell in json.loads(text)["cells"]:
            source = "".join(cell["source"])
            if cell["cell_type"] == "markdown":
                found.append((cell["id"], source))
            elif "google.colab" not in source:
                found += [(cell["id"], said) for _, said in strings(source)]
        return found
    if path.suffix == ".md":
        return [(f"{k}", part) for k, part in enumerate(re.split(r"(?m)^(?=#{1,3} )", text))]
    if path.suffix == ".py":
        return [*strings(text)]
    if path.suffix == ".jinja":
        return [("words", line) for line in visible(re.sub(r"(?s)\{[%#].*?[%#]\}", "\n", text))]
    if path.suffix == ".po":  # the English side stands on its page
        return [(entry.place or "words", entry.other) for entry in units.read(path)]
    read = {".toml": tomllib.loads, ".json": json.loads, ".yml": yaml.safe_load}[path.suffix]
    return [(" ".join(place.split()), said) for place, said in leaves(read(text))]


def typed(path: Path) -> dict[str, str]:
    """What the texts of a file assert, place by place."""
    found: dict[str, list[str]] = {}
    for place, said in texts(path):
        found.setdefault(place, []).append(facts(said))
    return {place: line for place, lines in found.items() if (line := " | ".join(filter(None, lines)))}


def visible(text: str, drawn: bool = True) -> list[str]:
    """What a reader of some HTML reads, or hears: its text, a line a block, rows of tables, and the words for pictures.

    What stands in pictures counts where `drawn`.
    """
    soup = bs4.BeautifulSoup(text, "html.parser")
    said = []
    for picture in [] if drawn else soup.find_all("svg"):
        picture.clear()
    for script in soup.find_all("script", type="application/json"):
        held = json.loads(script.string or "{}")
        frames = [told for _, told in held.get("frames", ())] if isinstance(held, dict) else []
        said += [f"frame: {told}" for told in dict.fromkeys(frames)]
    for gone in soup.find_all(["style", "script"]):
        gone.decompose()
    for item in soup.find_all(True):
        for name in ("alt", "aria-label", "title"):
            if item.get(name):
                item.insert(0, f" [{item[name]}] ")
    for text in soup.find_all(string=True):
        text.replace_with(re.sub(r"\s+", " ", text))
    for item in soup.find_all(["td", "th"]):
        item.append(" | ")
    for item in soup.find_all(
        ["p", "tr", "li", "div", "h2", "h3", "h4", "dt", "dd", "figcaption", "details", "section", "br", "option"]
    ):
        item.append("\n")
    lines = (" ".join(line.split()).strip(" |") for line in soup.get_text().splitlines())
    return [*filter(None, lines), *said]


def outputs(notebook: nbformat.NotebookNode, drawn: bool = True) -> dict[str, list[str]]:
    """What each cell of an executed notebook says: text, Markdown, tables, what stands around pictures."""
    found: dict[str, list[str]] = {}
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            held = output.get("data", {})
            if "text/html" in held:
                lines = visible("".join(held["text/html"]), drawn)
            else:
                text = held.get("text/markdown") or held.get("text/plain") or output.get("text", "")
                lines = [line.rstrip() for line in "".join(text).splitlines() if line.strip()]
            if "stderr" != output.get("name"):
                found.setdefault(cell.id, []).extend(lines)
    return {name: lines for name, lines in found.items() if lines}


def asserted(lines: list[str]) -> tuple[Counter, set[str]]:
    """The numbers of a cell's output, with their signs, and the names in it; what is said twice in one place counts once.

    >>> asserted(["In RoPE −0.5, then 1,024。", "[In RoPE −0.5, then 1,024]"])
    (Counter({'-0.5': 1, '1024': 1}), {'RoPE'})
    """
    once = {part.strip(" |.。") for line in lines for part in re.split(r"[\[\]]", line.removeprefix("frame: "))}
    plain = [re.sub("[⺀-鿿＀-￯“”]|[、。《》「」]", " ", part).replace("−", "-") for part in once]
    numbers = Counter(found.replace(",", "") for part in plain for found in COUNT.findall(part))
    return numbers, {name for part in plain for name in re.findall(r"[A-Z][\w-]*[A-Z\d]", part)}
