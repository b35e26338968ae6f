"""Pages for those who teach: plans, and what students get wrong, both read from the decks, the
exercises and their checks.

`{plan} hour`: the rows of `chapters/plans/hour.yml` with the minutes that the decks say.
`{shorter}`: by deck, which slides to leave out first, from `chapters/plans/shorter.yml`. `{terms}`:
terms of twelve, ten and eight weeks, and their marks. `{mistakes} 3`: what the cues of chapter 3
say that listeners get wrong, and the sentences of its checks. `{athand} 3`: its minutes, and what
runs live.
"""

import ast
import csv
import html
import json
import re
import tomllib
import urllib.parse
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive

from book.assignments import handouts
from book.chapters import minutes
from book.plans import PARTS, deck, decks, exercises, part, plan, shorter, slides, terms, weeks


def by_term(root: Path) -> str:
    """The table of terms: what is left out, who is asked when, what moves, and what each part of
    the mark weighs.
    """
    made = [*terms(root).values()]

    def mark(each: dict, part: str) -> str:
        chapters = each["chapters"]
        said = {"assignments": each["count"], "decoder": each["decoder"]}
        said["examination"] = f"chapters {chapters[0]} to {chapters[-1]}"
        return f"{each['marks'][part]}%" + (f": {words(said[part])}" if part in said else "")

    rows = {
        "Weeks left out": [", ".join(map(str, each["leave_out"])) or "none" for each in made],
        "Asked for five minutes": [
            "; ".join(f"{n} people in week {k}" for k, n in each["ask"].items()) for each in made
        ],
        "The drawn assignment": [f"handed out in week {each['drawn']}" for each in made],
        **{f"Marks: {part}": [mark(each, part) for each in made] for part in made[0]["marks"]},
        "What moves": [words(each["moves"]) or "nothing" for each in made],
    }
    head = ("", *(f"{each['weeks']} weeks" for each in made))
    return table(
        head, [(f"<strong>{name}</strong>", *cells) for name, cells in rows.items()], "plan"
    )


def out(root: Path, name: str) -> str:
    """The slides of a deck that may be left out, as links, in their order."""
    path = part(root, name)
    return ", ".join(
        (
            f'{k}. <a href="{deck(path)}{each["place"]}">{html.escape(each["heading"])}</a> '
            f"({each['minutes']:g})"
        )
        for k, each in enumerate(shorter(root, name), 1)
    )


def by_deck(root: Path) -> str:
    """The table of all decks: how long each takes, what to leave out first, how long it takes
    then.
    """
    rows = []
    for name in decks(root):
        path, least = part(root, name), shorter(root, name)[-1]["left"]
        linked = f'<a href="{deck(path)}">{name}</a>'
        rows.append((linked, f"{minutes(path):g} min", out(root, name), f"{least:g} min"))
    return table(("Deck", "Takes", "Leave out, in this order (minutes)", "Then"), rows, "plan")


def clock(at: float) -> str:
    return f"{int(at // 60)}:{int(at % 60):02d}"


def linked(links: list[tuple[str, str]]) -> str:
    return "<br>".join(f'<a href="{where}">{html.escape(text)}</a>' for text, where in links)


def shown(made: dict) -> str:
    """The table of a plan for one sitting: when, how long, what, what they can do after it, what to
    leave out first.
    """
    at, rows = 0.0, []
    for each in made["rows"]:
        what = "<br>".join(filter(None, (linked(each["links"]), words(each["do"]))))
        rows.append(
            (clock(at), f"{each['minutes']:g} min", what, words(each["they"]), f"{each['drop']}")
        )
        at += each["minutes"]
    rows.append(
        (clock(at), f"{made['minutes'] - at:g} min", "Questions, and what ran over.", "", "")
    )
    saved = sum(each["minutes"] for each in made["rows"] if each["drop"])
    left = made["minutes"] - saved
    note = (
        "Short of time? Leave out what has a number in the last column, 1 first. "
        f"Without all of these, and with the questions, it takes {left:g} minutes."
    )
    head = ("At", "Takes", "What", "After it they can", "Leave out")
    return f"<p>{words(made['for'])}</p>{table(head, rows, 'plan sitting')}<p>{note}</p>"


def by_week(made: list[dict]) -> str:
    """The table of a term."""

    def cell(each: dict) -> str:
        decks = linked([link for link in each["links"] if "exercises.html" not in link[1]])
        tasks = [
            (text.split()[0], where) for text, where in each["links"] if "exercises.html" in where
        ]
        numbers = ", ".join(f'<a href="{where}">{number}</a>' for number, where in tasks)
        said = [
            decks,
            f"Exercises {numbers}." * bool(tasks),
            words(each["do"]),
            f"<small>{each['minutes']:g} min</small>",
        ]
        return "<br>".join(filter(None, said))

    rows = [
        (
            str(k),
            words(each["read"]),
            cell(each["lecture"]),
            cell(each["class"]),
            words(each["project"]),
            words(each["they"]),
        )
        for k, each in enumerate(made, 1)
    ]
    return table(
        ("Week", "Read before", "Lecture", "Class", "Project", "After it they can"), rows, "plan"
    )


def table(head: tuple[str, ...], rows: list[tuple[str, ...]], kind: str) -> str:
    names = "".join(f'<th scope="col">{name}</th>' for name in head)
    body = "".join(f"<tr>{''.join(f'<td>{each}</td>' for each in cells)}</tr>" for cells in rows)
    return (
        f'<table class="table {kind}"><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>'
    )


def words(text: str) -> str:
    """A sentence as HTML, with its formulas and its code."""
    marked = re.sub(r"`(.+?)`", r"<code>\1</code>", html.escape(text, quote=False))
    return re.sub(
        r"\$(.+?)\$", r'<span class="math notranslate nohighlight">\\(\1\\)</span>', marked
    )


def value(node: ast.expr):
    """What an expression of words and numbers stands for, such as `32 * "1"`."""
    return eval(compile(ast.Expression(node), "", "eval"), {"__builtins__": {}})


def known(table: str) -> dict[str, tuple[str, list[str]]]:
    """Title of each exercise of a chapter's table, and the mistakes that it names: of calls, and of
    predictions.
    """
    found = {}
    for row in tomllib.loads(table).values():
        if "number" in row:
            said = []
            found[row["number"]] = row["title"], said
        said += [line.partition(" :: ")[2] for line in row.get("mistakes", "").splitlines()]
        said += [
            f"“{guess}”: {why}"
            for guess, why in row.get("guesses", {}).items()
            if guess != row["true"]
        ]
    return {number: (title, list(dict.fromkeys(said))) for number, (title, said) in found.items()}


def mistakes(root: Path, chapter: str) -> str:
    """What listeners get wrong by the cues of a chapter's decks, and what its checks know,
    folded.
    """
    items = [
        (
            f"<li>{words(slide['wrong'])} <small><a "
            f'href="{deck(path)}{slide["place"]}">{html.escape(slide["heading"])}</a></small></li>'
        )
        for path in (part(root, f"{chapter} lesson"), part(root, f"{chapter} lab"))
        for slide in slides(path)
        if slide["wrong"]
    ]
    checks = {
        number: each
        for number, each in known(
            (root / f"src/course/exercises/chapter{chapter}.toml").read_text()
        ).items()
        if each[1]
    }
    rows = "".join(
        (
            f'<tr><th scope="row">{number} '
            f"{html.escape(title)}</th><td>{'<br>'.join(words(s) for s in said)}</td></tr>"
        )
        for number, (title, said) in checks.items()
    )
    many = sum(len(said) for _, said in checks.values())
    return (
        "<details><summary>What listeners get wrong, slide by slide "
        f"({len(items)})</summary><ul>{''.join(items)}</ul></details>"
        f"<details><summary>Mistakes that the checks know ({many})</summary>"
        f'<table class="table">{rows}</table></details>'
    )


def sizes(root: Path, chapter: str) -> str:
    """Minutes of a chapter's lesson, lab and exercises."""
    said = []
    for kind in PARTS:
        path = part(root, f"{chapter} {kind}")
        many = (
            f"{len(exercises(path))} exercises"
            if kind == "exercises"
            else f"{len(slides(path))} slides"
        )
        where = f"{path.parent.name}/{kind}.html"
        said.append(f'<a href="{where}">{kind}</a> {minutes(path)} min, {many}')
    room = (
        "<p><strong>Short of time?</strong> Leave out, in this order (minutes): "
        f"{out(root, f'{chapter} lesson')}.</p>"
    )
    return f"<p>{' · '.join(said)}</p>{room}"


def stage(root: Path, chapter: str) -> str:
    """What can be done live: the drawing of a chapter's lesson alone, and its lab's link with
    everything set.
    """
    sources = {
        kind: [
            "".join(c["source"])
            for c in json.loads(part(root, f"{chapter} {kind}").read_text())["cells"]
        ]
        for kind in ("lesson", "lab")
    }
    said = [
        f'<a href="../drawings/{name}.html">the drawing “{name}”</a> alone on the screen'
        for name in re.findall(r'^drawing\.show\("(\w+)"', "\n".join(sources["lesson"]), re.M)
    ]
    for source in sources["lab"]:
        if source.startswith("intervention.link("):
            call = ast.parse(source).body[0].value
            state = {each.arg: value(each.value) for each in call.keywords}
            page = state.pop("page", "index")
            written = {
                k: str(v).lower() if isinstance(v, bool) else str(v) for k, v in state.items()
            }
            address = f"../live/{page}.html#{urllib.parse.urlencode(written)}"
            said.append(
                f'<a href="{html.escape(address)}">{html.escape(value(call.args[0]))}</a>, in '
                "the page"
            )
    return f"<p><strong>Live:</strong> {' · '.join(said)}.</p>"


class _Shown(Directive):
    required_arguments = 1

    def run(self):
        env = self.state.document.settings.env
        env.note_reread()
        try:
            return [nodes.raw("", self.html(Path(env.srcdir), *self.arguments), format="html")]
        except (ValueError, OSError) as error:
            raise self.error(str(error)) from error


class Plan(_Shown):
    def html(self, root: Path, name: str) -> str:
        shape = by_week(weeks(root, name)) if name == "term" else shown(plan(root, name))
        return (
            f'{shape}<p><a href="../teaching/{name}.csv" download>This plan as a table to edit '
            "(CSV)</a></p>"
        )


class Terms(_Shown):
    required_arguments = 0

    def html(self, root: Path) -> str:
        return by_term(root)


class Shorter(_Shown):
    required_arguments = 0

    def html(self, root: Path) -> str:
        return by_deck(root)


class Mistakes(_Shown):
    def html(self, root: Path, chapter: str) -> str:
        return mistakes(root, chapter)


class AtHand(_Shown):
    def html(self, root: Path, chapter: str) -> str:
        return sizes(root, chapter) + stage(root, chapter)


def files(root: Path) -> dict[str, list[list[str]]]:
    """The plans as rows of plain text, by name."""

    def names(each: dict) -> str:
        return "; ".join([text for text, _ in each["links"]] + [each["do"]] * bool(each["do"]))

    found = {}
    for name in ("hour", "day"):
        at, rows = 0.0, [["at", "minutes", "what", "after it they can", "leave out"]]
        for each in plan(root, name)["rows"]:
            rows.append(
                [clock(at), f"{each['minutes']:g}", names(each), each["they"], str(each["drop"])]
            )
            at += each["minutes"]
        found[name] = rows
    found["term"] = [
        [
            "week",
            "read before",
            "lecture",
            "minutes",
            "class",
            "minutes",
            "project",
            "after it they can",
        ]
    ]
    for k, each in enumerate(weeks(root, "term"), 1):
        lecture, lesson = each["lecture"], each["class"]
        middle = [
            names(lecture),
            f"{lecture['minutes']:g}",
            names(lesson),
            f"{lesson['minutes']:g}",
        ]
        found["term"].append([str(k), each["read"], *middle, each["project"], each["they"]])
    return found


def write_files(app, error):
    if error is None and app.builder.format == "html" and "chapters/teaching" in app.env.found_docs:
        folder = Path(app.outdir) / "teaching"
        folder.mkdir(exist_ok=True)
        for name, rows in files(Path(app.srcdir)).items():
            with (folder / f"{name}.csv").open("w", newline="") as file:
                csv.writer(file).writerows(rows)
        for name, text in handouts(Path(app.srcdir)).items():
            (folder / name).write_text(text)


def setup(app):
    app.add_directive("plan", Plan)
    app.add_directive("shorter", Shorter)
    app.add_directive("terms", Terms)
    app.add_directive("mistakes", Mistakes)
    app.add_directive("athand", AtHand)
    app.connect("build-finished", write_files)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
