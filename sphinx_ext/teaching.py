"""Write the pages for teachers, with plans and with common mistakes of students.

We read both from the decks, the exercises and their checks. `{plan} hour` shows the rows of
`chapters/plans/hour.yml` with the minutes from the decks. `{shorter}` lists for each deck which
slides to leave out first, from `chapters/plans/shorter.yml`. `{terms}` shows terms of twelve, ten
and eight weeks, and their marks. `{mistakes} 3` lists the mistakes in the cues of chapter 3 and the
sentences of its checks. `{athand} 3` shows the chapter's minutes and what can be done live.
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
    """Return the table of terms as HTML.

    The table shows which parts are left out, when students are examined, which parts move, and how
    much each part of the mark counts.
    """
    all_terms = [*terms(root).values()]

    def mark(term: dict, part: str) -> str:
        chapters = term["chapters"]
        details = {"assignments": term["count"], "decoder": term["decoder"]}
        details["examination"] = f"chapters {chapters[0]} to {chapters[-1]}"
        return f"{term['marks'][part]}%" + (f": {words(details[part])}" if part in details else "")

    rows = {
        "Weeks left out": [", ".join(map(str, term["leave_out"])) or "none" for term in all_terms],
        "Oral questions, five minutes each": [
            "; ".join((f"{n} people in week {k}") for k, n in term["ask"].items())
            for term in all_terms
        ],
        "The drawn assignment": [f"handed out in week {term['drawn']}" for term in all_terms],
        **{
            f"Marks: {part}": [mark(term, part) for term in all_terms]
            for part in all_terms[0]["marks"]
        },
        "What changes": [words(term["moves"]) or "nothing" for term in all_terms],
    }
    head = ("", *(f"{term['weeks']} weeks" for term in all_terms))
    return table(
        head, [(f"<strong>{name}</strong>", *cells) for name, cells in rows.items()], "plan"
    )


def out(root: Path, name: str) -> str:
    """Return links to the slides of a deck that may be left out, in their order."""
    path = part(root, name)
    return ", then ".join(
        (
            f'“<a href="{deck(path)}{slide["place"]}">{html.escape(slide["heading"])}</a>” '
            f"({slide['minutes']:g} min)"
        )
        for slide in shorter(root, name)
    )


def by_deck(root: Path) -> str:
    """Return a table of all decks as HTML.

    The table shows the length of each deck, what to leave out first, and the length that remains.
    """
    rows = []
    for name in decks(root):
        path, least = part(root, name), shorter(root, name)[-1]["left"]
        linked = f'<a href="{deck(path)}">{name}</a>'
        rows.append((linked, f"{minutes(path):g} min", out(root, name), f"{least:g} min"))
    return table(
        ("Deck", "Takes", "Leave out, in this order", "Then it takes"),
        rows,
        "plan row-cards",
    )


def clock(at: float) -> str:
    """Format minutes as hours and minutes, such as 1:05."""
    return f"{int(at // 60)}:{int(at % 60):02d}"


def linked(links: list[tuple[str, str]]) -> str:
    """Return links as HTML, one per line."""
    return "<br>".join(f'<a href="{where}">{html.escape(text)}</a>' for text, where in links)


def shown(sitting: dict) -> str:
    """Return the table of a plan for one sitting as HTML.

    The table shows the times, the lengths, the topics, what the audience can do afterwards, and
    what to leave out first. On a screen with room, the times, the lengths and what to leave out
    stand below each other, so that the sentences have wide columns.
    """
    at, rows = 0.0, []
    for row in sitting["rows"]:
        what = "<br>".join(filter(None, (linked(row["links"]), words(row["do"]))))
        rows.append(
            (clock(at), f"{row['minutes']:g} min", what, words(row["they"]), f"{row['drop']}")
        )
        at += row["minutes"]
    rows.append(
        (
            clock(at),
            f"{sitting['minutes'] - at:g} min",
            "Questions, and parts that took longer.",
            "",
            "",
        )
    )
    saved = sum(row["minutes"] for row in sitting["rows"] if row["drop"])
    left = sitting["minutes"] - saved
    note = (
        "Short of time? Some rows have a number under “Leave out”. Leave out these rows in the "
        f"order of their numbers. Without all of them, the plan takes {left:g} minutes, including "
        "the questions."
    )
    head = ("At", "Takes", "What", "Afterwards they can", "Leave out")
    return (
        f"<p>{words(sitting['for'])}</p>{table(head, rows, 'plan row-cards sitting')}<p>{note}</p>"
    )


def by_week(schedule: list[dict]) -> str:
    """Return the table of a term with its weeks as HTML."""

    def cell(lesson: dict) -> str:
        decks = linked([link for link in lesson["links"] if "exercises.html" not in link[1]])
        tasks = [
            (text.split()[0], where) for text, where in lesson["links"] if "exercises.html" in where
        ]
        numbers = ", ".join(f'<a href="{where}">{number}</a>' for number, where in tasks)
        parts = [
            decks,
            f"Exercises {numbers}." * bool(tasks),
            words(lesson["do"]),
            f"<small>{lesson['minutes']:g} min</small>",
        ]
        return "<br>".join(filter(None, parts))

    rows = [
        (
            f"Week {k}",
            words(week["read"]),
            cell(week["lecture"]),
            cell(week["class"]),
            words(week["project"]),
            words(week["they"]),
        )
        for k, week in enumerate(schedule, 1)
    ]
    return table(
        ("Week", "Read before", "Lecture", "Class", "Project", "Afterwards they can"),
        rows,
        "plan row-cards always",
    )


def table(head: tuple[str, ...], rows: list[tuple[str, ...]], kind: str) -> str:
    """Return an HTML table with a head, rows and a class."""
    names = "".join(f'<th scope="col">{name}</th>' for name in head)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>" for cells in rows)
    return (
        f'<table class="table {kind}"><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>'
    )


def words(text: str) -> str:
    """Convert a sentence to HTML, with its formulas and its code."""
    marked = re.sub(r"`(.+?)`", r"<code>\1</code>", html.escape(text, quote=False))
    return re.sub(
        r"\$(.+?)\$", r'<span class="math notranslate nohighlight">\\(\1\\)</span>', marked
    )


def value(node: ast.expr):
    """Evaluate an expression of strings and numbers in the code, such as `32 * "1"`."""
    return eval(compile(ast.Expression(node), "", "eval"), {"__builtins__": {}})


def known(table: str) -> dict[str, tuple[str, list[str]]]:
    """Read the titles and the named mistakes of the exercises in a chapter's table.

    The mistakes are those of calls and of predictions.
    """
    exercises = {}
    for row in tomllib.loads(table).values():
        if "number" in row:
            sentences = []
            exercises[row["number"]] = row["title"], sentences
        sentences += [line.partition(" :: ")[2] for line in row.get("mistakes", "").splitlines()]
        sentences += [
            f"“{guess}”: {why}"
            for guess, why in row.get("guesses", {}).items()
            if guess != row["true"]
        ]
    return {
        number: (title, list(dict.fromkeys(sentences)))
        for number, (title, sentences) in exercises.items()
    }


def opened(mistake: str) -> str:
    """Return a mistake of a cue as a sentence with a subject and a capital letter.

    >>> opened("they take small for zero.")
    'Students take small for zero.'
    >>> opened("nearly all say yes.")
    'Nearly all say yes.'
    """
    named = re.sub(r"^they\b", "Students", mistake)
    return named[:1].upper() + named[1:]


def mistakes(root: Path, chapter: str) -> str:
    """Return a folded list of common mistakes for a chapter.

    The cues of its decks expect these mistakes from listeners, or its checks recognise them.
    """
    items = [
        (
            f"<li>{words(opened(slide['wrong']))} <small>(On the slide “<a "
            f'href="{deck(path)}{slide["place"]}">{html.escape(slide["heading"])}</a>”.)</small></li>'
        )
        for kind in ("lesson", "sinks", "lab")
        for path in root.glob(f"chapters/{chapter}-*/{kind}.ipynb")
        for slide in slides(path)
        if slide["wrong"]
    ]
    checks = {
        number: entry
        for number, entry in known(
            (root / f"src/course/exercises/chapter{chapter}.toml").read_text()
        ).items()
        if entry[1]
    }
    named = "".join(
        f"<p><strong>{number} {html.escape(title)}</strong></p>"
        f"<ul>{''.join(f'<li>{words(sentence)}</li>' for sentence in sentences)}</ul>"
        for number, (title, sentences) in checks.items()
    )
    many = sum(len(sentences) for _, sentences in checks.values())
    return (
        "<details><summary>Common mistakes of listeners, slide by slide "
        f"({len(items)})</summary><ul>{''.join(items)}</ul></details>"
        f"<details><summary>Mistakes that the checks recognise ({many})</summary>"
        f"{named}</details>"
    )


def sizes(root: Path, chapter: str) -> str:
    """Describe how many minutes the parts of a chapter take.

    The parts are the chapter's lesson, its page on sinks if it has one, its lab and its exercises.
    """
    parts = []
    (folder,) = root.glob(f"chapters/{chapter}-*")
    for kind in (kind for kind in PARTS if (folder / f"{kind}.ipynb").exists()):
        path = part(root, f"{chapter} {kind}")
        many = (
            f"{len(exercises(path))} exercises"
            if kind == "exercises"
            else f"{len(slides(path))} slides"
        )
        where = f"{path.parent.name}/{kind}.html"
        parts.append(f'<a href="{where}">{kind}</a> {minutes(path)} min, {many}')
    room = (
        "<p><strong>Short of time?</strong> Leave out these slides, in this order: "
        f"{out(root, f'{chapter} lesson')}.</p>"
    )
    return f"<p>{' · '.join(parts)}</p>{room}"


def stage(root: Path, chapter: str) -> str:
    """Return a list of what can be done live in a chapter.

    The list has the drawing of the lesson, and the lab's link with all settings.
    """
    sources = {
        kind: [
            "".join(c["source"])
            for c in json.loads(part(root, f"{chapter} {kind}").read_text())["cells"]
        ]
        for kind in ("lesson", "lab")
    }
    links = [
        f'<a href="../drawings/{name}.html">the drawing “{name}”</a> on a separate page'
        for name in re.findall(r'^drawing\.show\("(\w+)"', "\n".join(sources["lesson"]), re.M)
    ]
    for source in sources["lab"]:
        if source.startswith("intervention.link("):
            call = ast.parse(source).body[0].value
            state = {keyword.arg: value(keyword.value) for keyword in call.keywords}
            page = state.pop("page", "index")
            written = {
                k: str(v).lower() if isinstance(v, bool) else str(v) for k, v in state.items()
            }
            address = f"../live/{page}.html#{urllib.parse.urlencode(written)}"
            links.append(
                f'<a href="{html.escape(address)}">{html.escape(value(call.args[0]))}</a>, in '
                "the page"
            )
    return f"<p><strong>Live:</strong> {' · '.join(links)}.</p>"


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
    """Show a plan on a page, with the directive `{plan}`."""

    def html(self, root: Path, name: str) -> str:
        shape = by_week(weeks(root, name)) if name == "term" else shown(plan(root, name))
        return (
            f'{shape}<p><a href="../teaching/{name}.csv" download>This plan as a table to edit '
            "(CSV)</a></p>"
        )


class Terms(_Shown):
    """Show the terms of three lengths on a page, with the directive `{terms}`."""

    required_arguments = 0

    def html(self, root: Path) -> str:
        return by_term(root)


class Shorter(_Shown):
    """Show what each deck can leave out, with the directive `{shorter}`."""

    required_arguments = 0

    def html(self, root: Path) -> str:
        return by_deck(root)


class Mistakes(_Shown):
    """Show the common mistakes for a chapter, with the directive `{mistakes}`."""

    def html(self, root: Path, chapter: str) -> str:
        return mistakes(root, chapter)


class AtHand(_Shown):
    """Show the minutes of a chapter and what can be done live, with the directive `{athand}`."""

    def html(self, root: Path, chapter: str) -> str:
        return sizes(root, chapter) + stage(root, chapter)


def files(root: Path) -> dict[str, list[list[str]]]:
    """Return the plans as rows of plain text, keyed by name."""

    def names(part: dict) -> str:
        return "; ".join([text for text, _ in part["links"]] + [part["do"]] * bool(part["do"]))

    tables = {}
    for name in ("hour", "day"):
        at, rows = 0.0, [["at", "minutes", "what", "after it they can", "leave out"]]
        for week in plan(root, name)["rows"]:
            rows.append(
                [clock(at), f"{week['minutes']:g}", names(week), week["they"], str(week["drop"])]
            )
            at += week["minutes"]
        tables[name] = rows
    tables["term"] = [
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
    for k, week in enumerate(weeks(root, "term"), 1):
        lecture, lesson = week["lecture"], week["class"]
        middle = [
            names(lecture),
            f"{lecture['minutes']:g}",
            names(lesson),
            f"{lesson['minutes']:g}",
        ]
        tables["term"].append([str(k), week["read"], *middle, week["project"], week["they"]])
    return tables


def write_files(app, error):
    """Write the plans as CSV files at the end of a build."""
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
