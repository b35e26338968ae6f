"""The pages for those who teach: their minutes are the decks', their rows are there, and no plan is longer than it says."""

import csv
import html
import itertools
import json
import re

import pytest
import teaching
import yaml

from book import plans, questions
from book.chapters import minutes

CHAPTERS = "123456"
DECKS = [*((chapter, kind) for chapter in CHAPTERS for kind in ("lesson", "lab")), ("7", "lesson")]


@pytest.mark.parametrize("name", ["hour", "day"])
def test_a_plan_fits_its_time_and_leaves_some_for_questions(root, name):
    made = plans.plan(root, name)
    planned = sum(each["minutes"] for each in made["rows"])
    left = made["minutes"] - planned
    assert 0.05 * made["minutes"] <= left <= 0.25 * made["minutes"], (
        f"{name}: {left:g} minutes are left for questions"
    )
    saved = sum(each["minutes"] for each in made["rows"] if each["drop"])
    assert saved >= 0.15 * made["minutes"], (
        "what may be left out gives back a sixth of the time or so"
    )
    drops = sorted(each["drop"] for each in made["rows"] if each["drop"])
    assert drops == list(range(1, len(drops) + 1))


def test_a_term_has_twelve_weeks_whose_minutes_add_up_and_none_plays_two_decks(root):
    weeks, plan = plans.weeks(root, "term"), (root / "chapters/plans/term.yml").read_text()
    given, played = yaml.safe_load(plan)["weeks"], []
    assert len(weeks) == 12
    for k, (week, told) in enumerate(zip(weeks, given, strict=True), 1):
        for kind in ("lecture", "class"):
            most = {"lecture": 90, "class": 85}[
                kind
            ]  # five minutes of a class are left to change over
            assert 45 <= week[kind]["minutes"] <= most, (
                f"week {k}: the {kind} takes {week[kind]['minutes']:g} minutes"
            )
            said = map(int, re.findall(r"\((\d+) min\)", told[kind].get("do", "")))
            assert sum(said) == told[kind].get("minutes", 0), (
                f"week {k}: what the {kind} does is not what it takes"
            )
        assert len(told["lecture"].get("decks", [])) <= 1, f"week {k} plays two decks"
        assert k == 12 or "uestions (" in told["lecture"]["do"], (
            f"week {k} has no minutes for questions"
        )
        played += told["lecture"].get("decks", [])
    assert [f"{c} {kind}" for c, kind in DECKS] == plans.decks(root)
    assert len(played) == len(set(played))
    for name in {f"{c} {kind}" for c, kind in DECKS} - set(played):
        assert f"{name.split()[1].capitalize()} {name[0]}" in plan, (
            f"{name} is neither played nor read"
        )
    tasks = [text for week in weeks for text, _ in week["class"]["links"]]
    assert len(tasks) == len(set(tasks))


def plan_of_the_term(root):
    return yaml.safe_load((root / "chapters/plans/term.yml").read_text())


@pytest.mark.parametrize("size", [0, 1], ids=["twenty", "forty"])
@pytest.mark.parametrize("weeks", [12, 10, 8])
def test_a_term_holds_its_groups_and_its_people(root, weeks, size):
    plan, term = plan_of_the_term(root), plans.terms(root)[weeks]
    size, taught = plan["sizes"][size], {*range(1, 13)} - {*term["leave_out"]}
    assert len(taught) == weeks
    presenting = {k: plan["weeks"][k - 1]["lecture"].get("present", 0) for k in taught}
    assert sum(presenting.values()) == size["students"] / size["group"]
    for k, groups in presenting.items():
        parts = re.findall(
            r"Presentations? [^()]*\((\d+) min\)", plan["weeks"][k - 1]["lecture"]["do"]
        )
        assert sum(map(int, parts)) == groups * plan["minutes"]["present"], f"week {k}"
    assert {*term["ask"]} <= taught
    assert sum(term["ask"].values()) == size["students"] / size["classes"]
    assert all(people * plan["minutes"]["ask"] <= 80 for people in term["ask"].values()), (
        "and five to change over"
    )
    assert term["drawn"] in taught


@pytest.mark.parametrize("weeks", [12, 10, 8])
def test_marks_of_a_term_are_those_of_what_it_teaches(root, weeks):
    plan, term = plan_of_the_term(root), plans.terms(root)[weeks]
    assert sum(term["marks"].values()) == 100
    taught = [each for k, each in enumerate(plan["weeks"], 1) if k not in term["leave_out"]]
    played = {int(name[0]) for week in taught for name in week["lecture"].get("decks", [])}
    assert played == {*term["chapters"]}, "the examination is on what was taught"
    said = " ".join(week["class"].get("do", "") for week in taught)
    pages = {int(page) for page in re.findall(r"Now yours (\d)", said)}
    named = (
        {*range(1, 7)}
        if "six pages" in term["decoder"]
        else {*map(int, re.findall(r"\d", term["decoder"]))}
    )
    assert named == pages, "the pages that are marked are those of the classes"
    assert ("workshop" in term["decoder"]) == ("workshop" in said)
    first, last = re.search(r"of (\d) to (\d)", term["count"]).groups()
    assert {*range(int(first), int(last) + 1)} == {*term["chapters"]} - {7}
    assert sum(row["marks"] for row in questions.drawn(2027, root, term["chapters"])) == 30


def test_the_syllabus_says_the_marks_of_twelve_weeks(root):
    text, page = (root / "chapters/syllabus.md").read_text(), teaching.by_term(root)
    assert [int(n) for n in re.findall(r"\| (\d+)% \|", text)] == [
        *plans.terms(root)[12]["marks"].values()
    ]
    assert all(f"{weeks} weeks" in page for weeks in (12, 10, 8))
    assert "{questions} pool" in text


def test_all_halves_of_the_refresher_are_read_before_they_are_needed(root):
    read = [week["read"] for week in plan_of_the_term(root)["weeks"]]
    assert "refresher, first half" in read[0]
    assert "refresher, second half" in read[1]
    assert "refresher, floating point" in read[3]


@pytest.mark.parametrize("name", ["hour", "day"])
def test_a_shortened_plan_counts_its_questions_too(root, name):
    made = plans.plan(root, name)
    saved = sum(each["minutes"] for each in made["rows"] if each["drop"])
    assert f"the plan takes {made['minutes'] - saved:g} minutes" in teaching.shown(made)


def test_the_pages_of_steps_take_in_the_term_the_minutes_that_they_say(root):
    plan = (root / "chapters/plans/term.yml").read_text()
    for path in [*root.glob("chapters/*/yours.ipynb"), *root.glob("chapters/[07]-*/build.ipynb")]:
        chapter = path.parent.name[0]
        title = {"0": "Build it,", "7": "The workshop:"}.get(chapter, f"Now yours {chapter}:")
        planned = re.findall(rf"{title}[^()]*\((\d+) min\)", plan)
        assert planned == [str(json.loads(path.read_text())["metadata"]["workshop"]["minutes"])], (
            title
        )


@pytest.mark.parametrize(("chapter", "kind"), DECKS)
def test_the_cues_of_a_deck_add_up_to_what_the_plans_say(root, chapter, kind):
    path = plans.part(root, f"{chapter} {kind}")
    found = plans.slides(path)
    assert (
        sum(each["minutes"] for each in found)
        == json.loads(path.read_text())["metadata"]["lecture"]["minutes"]
    )
    assert plans.row(root, {"decks": [f"{chapter} {kind}"]})["minutes"] == minutes(path)
    assert len({each["place"] for each in found}) == len(found)
    assert all(each["heading"] for each in found)


@pytest.mark.parametrize(("chapter", "kind"), DECKS)
def test_every_deck_says_what_to_leave_out_first(root, chapter, kind):
    name = f"{chapter} {kind}"
    rows, whole = plans.shorter(root, name), minutes(plans.part(root, name))
    assert len({each["id"] for each in rows}) == len(rows)
    assert [whole - each["left"] for each in rows] == list(
        itertools.accumulate(each["minutes"] for each in rows)
    )
    assert 8 <= whole - rows[-1]["left"] <= whole / 3, (
        "room for a derivation or for questions, and a lecture is left"
    )
    needed = {each for part in yaml.safe_load((root / "chapters/plans/hour.yml").read_text())["rows"] for each in part.get("slides", [])}  # fmt: skip
    assert not needed & {f"{name}#{each['id']}" for each in rows}, (
        "what the shortest plan shows is not left out"
    )
    assert rows[0]["heading"] in html.unescape(teaching.by_deck(root))
    assert (
        kind == "lab"
        or chapter == "7"
        or rows[1]["heading"] in html.unescape(teaching.sizes(root, chapter))
    )


def test_a_place_in_a_deck_is_that_of_the_built_deck(root, visit):
    path = plans.part(root, "2 lesson")
    page = visit(f"slides/{path.parent.name}-{path.stem}.html")
    for each in plans.slides(path)[1:4]:
        page.evaluate(f"() => {{ location.hash = '{each['place']}' }}")
        page.wait_for_function(
            f"() => Reveal.getCurrentSlide().innerText.includes({json.dumps(each['heading'])})"
        )


def test_a_plan_names_what_is_not_there(root):
    for given, said in (
        ({"slides": ["2 lesson#nothing"]}, "no slide of 2 lesson has the id 'nothing'"),
        ({"decks": ["8 lesson"]}, "not '8 lesson'"),
        ({"exercises": ["2.99"]}, "no exercise 2.99"),
    ):
        with pytest.raises(ValueError, match=said):
            plans.row(root, given)


def test_mistakes_are_those_of_the_checks(root):
    assert teaching.known((root / "tests/cases/checks.toml").read_text()) == {
        "9.1": ("First", ["You forgot the root.", "Twice."]),
        "9.2": ("Second", ["“up”: It falls: the mean."]),
    }


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_chapter_has_its_mistakes_and_something_live(root, chapter):
    found = teaching.known((root / f"src/course/exercises/chapter{chapter}.toml").read_text())
    assert found
    assert sum(len(said) for _, said in found.values()) >= 30
    assert "<li>" in teaching.mistakes(root, chapter)
    live = teaching.stage(root, chapter)
    assert "../drawings/" in live
    assert chapter == "1" or "../live/" in live


def test_a_heading_that_the_page_quotes_exists(root):
    told = re.sub(
        r"```.*?```", "", (root / "chapters/teaching-chapters.md").read_text(), flags=re.S
    )
    pages = "".join(path.read_text() for path in root.glob("chapters/[1-9]*/*.ipynb"))
    quoted = re.findall(r'page (?:under|at) "([^"]+)"', told)
    assert quoted
    assert [heading for heading in quoted if f"# {heading}" not in pages] == []


def test_the_link_of_the_page_is_that_of_the_lab(root):
    from helpers import intervention

    lab = plans.part(root, "3 lab")
    source = next(
        "".join(c["source"])
        for c in json.loads(lab.read_text())["cells"]
        if c["id"] == "live-3-link"
    )
    link = eval(source, {"intervention": intervention})
    address = link.address.removeprefix("../../").replace("&", "&amp;")
    assert f'href="../{address}"' in teaching.stage(root, "3")


def test_the_files_hold_the_rows_of_the_page(root):
    files = teaching.files(root)
    assert set(files) == {"hour", "day", "term"}
    assert len(files["term"]) == 13
    for name in ("hour", "day"):
        rows = [int(float(row[1]) * 2) for row in files[name][1:]]
        assert rows == [int(each["minutes"] * 2) for each in plans.plan(root, name)["rows"]]


def test_the_page_shows_the_minutes_and_gives_the_files(root, visit):
    page = visit("chapters/teaching.html")
    for name, table in zip(("hour", "day"), page.locator("table.sitting").all(), strict=True):
        shown = [
            float(text.removesuffix(" min"))
            for text in table.locator("tbody td:nth-child(2)").all_inner_texts()
        ]
        made = plans.plan(root, name)
        assert shown[:-1] == [each["minutes"] for each in made["rows"]]
        assert sum(shown) == made["minutes"]
        with (root / f"_build/html/teaching/{name}.csv").open(newline="") as file:
            assert list(csv.reader(file)) == teaching.files(root)[name]
