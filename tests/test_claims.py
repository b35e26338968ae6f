"""Every claim on the scorecard runs, says what it found, and has a verdict that its evidence allows."""

import ast
import json
import re
import sys

import pytest
from expected import EVIDENCE, EXPECTED

from course import claims, scorecard, sources
from course.claims import CORRECTED, FAILS, HOLDS, LITTLE, OPEN, UNABLE, UNFIT, together, verdict, weigh
from helpers import data, models, style

CLAIMS = {each.name: each for each in scorecard.claims()}  # what is measured: rows without parts, and parts
ROWS = {each.name: each for each in scorecard.rows()}


@pytest.mark.parametrize("name", CLAIMS)
def test_claim_measures_and_has_a_verdict_that_is_expected(name, monkeypatch):
    """Those that need no language model: in all half a minute of one core."""

    def unloaded(*_, **__):
        pytest.skip("needs the language model: a slow test measures it")

    for loader in ("load", "embedded"):
        monkeypatch.setattr(models, loader, unloaded)
    measured_as_expected(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", CLAIMS)
def test_claim_measures_and_has_a_verdict_that_is_expected_whatever_it_needs(name):
    measured_as_expected(name)


def measured_as_expected(name):
    assert name in EXPECTED, f"tests/expected must say which verdicts {name} may have, and why"
    allowed, why = EXPECTED[name]
    found = scorecard.measure(CLAIMS[name])
    assert re.search(r"\d", found.measured), f"what {name} has measured must hold a number, not {found.measured!r}"
    assert found.verdict in allowed, f"{found.verdict} is not expected ({why}): {found.measured}"
    for reported, measured in found.numbers.values():
        assert all(x is None or abs(x) < float("inf") for x in (reported, measured))


def test_expectations_are_about_claims_that_exist():
    missing, gone = set(CLAIMS) - set(EXPECTED), set(EXPECTED) - set(CLAIMS)
    assert not missing, f"tests/expected must say which verdicts {', '.join(sorted(missing))} may have, and why"
    assert not gone, f"tests/expected names claims that are gone: {', '.join(sorted(gone))}"
    for allowed, why in EXPECTED.values():
        assert allowed <= set(claims.VERDICTS)
        assert why


def test_every_claim_of_the_talk_has_its_words(root):
    """Three readings of ours once stood as claims of its author."""
    quoted = scorecard.quotations()
    theirs = {name for name, claim in CLAIMS.items() if claim.source is sources.TALK}  # rows of parts gather them
    assert not theirs - set(quoted), "a claim of the talk needs its words in data/reported/talk_quotations.csv"
    assert not set(quoted) - theirs, "words are quoted for a claim that has another source"
    for name, (chinese, english) in quoted.items():
        assert re.search(r"“.+” \(slide \d+\)$", chinese), name
        assert len(english) > 10, name


def _made_up(claim):
    """A measurement at once, with the verdict that is expected."""
    if claim.parts:
        return claims.Found("2 parts", together(_made_up(CLAIMS[part]).verdict for part in claim.parts))
    return claims.Found("1 < 2", sorted(EXPECTED[claim.name][0])[0])


def test_every_claim_stands_once_in_a_row_of_its_paper_and_what_does_not_hold_comes_first(monkeypatch):
    monkeypatch.setattr(scorecard, "measure", _made_up)
    page = scorecard.papers().data
    assert sorted(re.findall(r'<details id="(\w+)"', page)) == sorted(scorecard.CLAIMS)
    assert sorted(re.findall(r'<details id="(\w+)"[^>]*class="card-row"', page)) == sorted(ROWS)
    for paper in page.split("<section")[1:]:
        fails = [verdict == FAILS for verdict in re.findall(r'data-verdict="([^"]+)"[^>]*class="card-row"', paper)]
        assert fails == sorted(fails, reverse=True)
    rows = json.loads(re.search(r'id="claims">(.*?)</script>', page, re.S)[1])
    assert {row["name"] for row in rows} == set(scorecard.CLAIMS)
    assert all(row["address"].endswith(f"#{row['name']}") for row in rows)


def test_a_row_of_parts_measures_nothing_itself_and_shares_its_parts_with_no_other():
    parts = [part for row in ROWS.values() for part in row.parts]
    assert len(set(parts)) == len(parts)
    assert set(parts) | {name for name, row in ROWS.items() if not row.parts} == set(CLAIMS)
    for row in ROWS.values():
        assert len({CLAIMS[part].chapter for part in row.parts} | {row.chapter}) == 1, row.name
        assert bool(row.parts) == (row.function is None)
    assert len(ROWS) <= 130


def test_a_row_of_parts_holds_as_its_parts_do():
    assert together([HOLDS, HOLDS]) == HOLDS
    assert together([HOLDS, CORRECTED]) == together([HOLDS, HOLDS, OPEN]) == CORRECTED
    assert together([HOLDS, HOLDS, FAILS]) == together([OPEN, FAILS]) == FAILS
    assert together([HOLDS, OPEN]) == together([OPEN, OPEN, UNFIT]) == OPEN
    assert together([LITTLE]) == LITTLE


@pytest.mark.parametrize("name", CLAIMS)
def test_every_claim_says_when_it_holds_and_what_its_correction_is(name):
    """A reader can check the rule against the numbers; who reads "with a correction" reads which."""
    claim, allowed = CLAIMS[name], EXPECTED[name][0]
    assert claim.rule, f"{name} needs a rule"
    assert claim.rule.startswith(("holds if", "counts ", "repeats what the source reports"))
    if allowed == {CORRECTED}:
        assert claim.correction, f"{name} holds with a correction: say which"
    assert bool(scorecard.correction(claim, claims.Found("1", CORRECTED)))
    assert scorecard.correction(claim, claims.Found("1", HOLDS)) == ""


@pytest.mark.parametrize("name", CLAIMS)
def test_every_row_answers_three_controls_or_refuses_them(name):
    said = scorecard.controls(CLAIMS[name])
    assert tuple(said) == scorecard.CONTROLS
    assert all(said.values())
    assert scorecard.evidence(CLAIMS[name]) in scorecard.REFUSED


def test_the_table_of_controls_names_rows_and_kinds_that_there_are():
    table = data.table("controls")
    assert set(table.claim) <= set(CLAIMS), f"no claims: {sorted(set(table.claim) - set(CLAIMS))}"
    assert table.claim.is_unique
    assert set(table.evidence) <= set(scorecard.REFUSED)


def test_a_row_says_in_how_many_models_it_holds():
    assert scorecard.models_of("first_token_is_a_sink")["SmolLM2-135M-Instruct"] == HOLDS
    assert scorecard.models_of("width_bound") == {}
    row = scorecard._row(CLAIMS["first_token_is_a_sink"], claims.Found("1", HOLDS))
    assert re.search(r"holds in \d of \d models: .*SmolLM2-135M-Instruct", row)


@pytest.mark.parametrize("name", CLAIMS)
def test_claim_points_to_a_page_and_a_heading_that_exist(name, root):
    page, _, heading = CLAIMS[name].shown.partition("#")
    notebook = json.loads((root / "chapters" / f"{page}.ipynb").read_text())
    text = "\n".join("".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "markdown")
    assert heading in re.findall(r"^#+ (.+)$", text, re.M), f"{page} has no heading {heading!r}"


def test_sources_are_in_the_references(root):
    known = re.findall(r"url = \{(\S+)\}", (root / "references.bib").read_text())
    for name, source in vars(sources).items():
        if isinstance(source, sources.Source) and not source.url.startswith(("https://github.com/", "about")):
            assert source.url in known, name


@pytest.mark.parametrize("name", CLAIMS)
def test_no_verdict_is_written_down(name):
    """A constant decides before anything is measured, be it `verdict(False, part)` or `verdict(whole, fit=False)`."""
    for call in ast.walk(ast.parse(CLAIMS[name].verdict, mode="eval")):
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") in claims.RULES:
            for given in [*call.args, *(keyword.value for keyword in call.keywords)]:
                assert not isinstance(given, ast.Constant), (
                    f"{name}: {ast.unparse(call)} must follow from what is measured"
                )


@pytest.mark.parametrize("name", EVIDENCE)
def test_made_up_evidence_gives_each_verdict_that_a_claim_may_have(name, monkeypatch):
    """Whatever a claim passes to `verdict` can be turned by what it measures."""
    possible, reasons = set(), {"run": LITTLE, "fit": UNFIT, "able": UNABLE, "decided": OPEN}

    def spied(whole, part=None, **rest):
        possible.update({HOLDS, FAILS}, {CORRECTED} if part is not None else (), (reasons[each] for each in rest))
        return verdict(whole, bool(part), **rest)

    def spied_weigh(agree, against, **rest):
        agree = list(agree)  # of two cells the larger half is both
        possible.update({HOLDS, FAILS}, {CORRECTED} if len(agree) > 2 else (), (reasons[each] for each in rest))
        return weigh(agree, against, **rest)

    for rule, spy in (("verdict", spied), ("weigh", spied_weigh)):
        monkeypatch.setitem(claims.RULES, rule, spy)
    for wanted, numbers in [(wanted, each) for wanted, ways in EVIDENCE[name].items() for each in ways]:
        assert CLAIMS[name].decide(numbers or CLAIMS[name].function()) == wanted, numbers
    assert set(EVIDENCE[name]) == possible


def test_each_verdict_has_its_sign_and_its_colour():
    """A tick is green, a cross orange: exchanged, every row would say the contrary."""
    named = {verdict: (sign, style.COLOURS[colour].lower()) for verdict, (sign, colour) in {
        HOLDS: ("✓", "green"), CORRECTED: ("≈", "blue"), FAILS: ("✗", "vermillion"), OPEN: ("…", "grey"),
        LITTLE: ("○", "grey"), UNFIT: ("◊", "purple"), UNABLE: ("?", "purple"),
    }.items()}  # fmt: skip
    assert named == scorecard.LOOKS


def test_verdicts_follow_from_evidence():
    assert verdict(True) == verdict(True, False) == HOLDS
    assert verdict(False, True) == CORRECTED
    assert verdict(False) == FAILS
    assert verdict(True, decided=False) == OPEN
    assert verdict(True, decided=False, able=False) == UNABLE
    assert verdict(True, fit=False, able=False) == UNFIT
    assert verdict(True, run=False, fit=False) == LITTLE


def test_a_correction_needs_most_cells_and_none_the_other_way():
    """One cell of fifteen, by chance, made a row hold with a correction; eleven against it did not unmake it."""
    assert weigh([True] * 3, [False] * 3) == HOLDS
    assert weigh([True, True, False], [False] * 3) == CORRECTED
    assert weigh([True, True, False], [False, False, True]) == FAILS
    assert weigh([True, False], [False] * 2) == FAILS
    assert weigh([True] + [False] * 14, [False] * 15) == FAILS
    assert weigh([], []) == LITTLE
    assert weigh([True] * 3, [False] * 3, fit=False) == UNFIT
    with pytest.raises(ValueError, match="against must not hold"):
        weigh([True], [True])
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        weigh([True], [])


def test_a_row_that_only_quotes_has_too_little_evidence():
    assert claims.quoted({"share": (0.63, None)}) == LITTLE
    with pytest.raises(ValueError, match="share"):
        claims.quoted({"share": (0.63, 0.7)})


def test_a_table_of_claims_says_what_is_wrong_with_it(tmp_path):
    table, good = tmp_path / "chapter1.toml", 'shown = "1-over-squashing/lesson#The graph"'
    module = sys.modules["course.chapter1.claims"]
    for text, said in (
        ('[width_bound]\nstatement = ""\nshown = "1-over-squashing/lesson"', "shown must be"),
        (f'[no_such_function]\nstatement = ""\n{good}', "there is no no_such_function"),
        (f'[a_row]\nstatement = ""\n{good}\nparts = ["gone"]', "gone"),
    ):
        table.write_text(text)
        with pytest.raises(ValueError, match=said):
            claims.read(table, module)
    table.write_text(f'[x]\ncall = "figure_3"\ngiven = {{ kind = "gcn" }}\nstatement = ""\n{good}')
    assert claims.read(table, module)["x"].function.keywords == {"kind": "gcn"}


def test_claims_draw_nothing(root):
    for path in root.glob("src/course/chapter*/claims.py"):
        assert not re.search(r"import.*\b(figures|style\.axes|matplotlib)\b", path.read_text()), path


def test_unknown_chapter_is_named():
    with pytest.raises(ValueError, match="chapter must be one of"):
        scorecard.claims(99)


def test_a_claim_is_measured_once_until_what_it_depends_on_changes(tmp_path, monkeypatch):
    calls = []

    def measured():
        calls.append(1)
        return {"share": 0.5, "numbers": {"a number": (None, 0.5)}}

    told = {"measured": "{share} < {1}", "verdict": "verdict(share < 1)"}
    claim = next(iter(CLAIMS.values()))._replace(function=measured, **told)
    monkeypatch.setattr(scorecard, "_kept", lambda claim: tmp_path / "claims/x.json")
    assert scorecard.measure(claim) == scorecard.measure(claim) == ("0.5 < 1", HOLDS, {"a number": (None, 0.5)})
    assert len(calls) == 1
    monkeypatch.setattr(scorecard, "_kept", lambda claim: tmp_path / "claims/y.json")
    scorecard.measure(claim)
    assert len(calls) == 2
    assert [p.name for p in (tmp_path / "claims").glob("*.json")] == ["y.json"]


def test_a_row_shows_text_as_text_and_numbers_side_by_side():
    claim = next(iter(CLAIMS.values()))._replace(statement="a < b", reported="x & y")
    row = scorecard._row(claim, claims.Found("1 <n", UNABLE, {"r = 2": (1.0, 0.25)}))
    for shown in (
        "a &lt; b",
        "x &amp; y",
        "1 &lt;n",
        ">?<span",
        " this model cannot decide<",
        "<td>1</td><td>0.25</td>",
        f'id="{claim.name}"',
    ):
        assert shown in row


def test_kinds_of_claims_are_told_apart_and_what_was_varied_is_shown():
    claim = next(iter(CLAIMS.values()))._replace(theorem=True, varied="n < 9; not d")
    row = scorecard._row(claim, claims.Found("1", HOLDS))
    assert 'data-kind="theorem"' in row
    assert "<dt>Varied</dt><dd>n &lt; 9; not d</dd>" in row
    assert scorecard.kind(claim._replace(theorem=False, source=sources.COURSE)) == "finding"


def test_colab_opens_a_claim_at_its_section_where_there_is_an_address(tmp_path, monkeypatch):
    claim = CLAIMS["width_bound"]._replace(shown="1-x/lesson#A (heading)")
    monkeypatch.setattr(scorecard.closure, "tables", lambda: tmp_path / "data")
    assert scorecard.colab(claim) == ""
    (tmp_path / "_config.yml").write_text("repository:\n  url: https://github.com/o/n\n  branch: main\n")
    (tmp_path / "chapters/1-x").mkdir(parents=True)
    cells = [{"id": "one", "source": ["# A\n"]}, {"id": "two", "source": ["### A (heading)\n", "words"]}]
    (tmp_path / "chapters/1-x/lesson.ipynb").write_text(json.dumps({"cells": cells}))
    there = "https://colab.research.google.com/github/o/n/blob/main/chapters/1-x/lesson.ipynb#scrollTo=two"
    assert scorecard.colab(claim) == there


@pytest.mark.site
def test_the_scorecard_leads_to_sections_that_exist(root):
    pages = {}
    for each in scorecard.CLAIMS.values():
        page, _, heading = each.shown.partition("#")
        text = pages.setdefault(page, (root / f"_build/html/chapters/{page}.html").read_text())
        assert f'id="{scorecard.slug(heading)}"' in text, f"{page}.html has no section for {heading!r}"


def test_the_answer_names_claims_of_its_chapters(root):
    """The closing page: each place of loss rests on claims of its own chapter, and its ten findings are claims."""
    from course.scorecard import answer

    for each in answer.BOTTLENECKS:
        for name in each.evidence:
            assert CLAIMS[name].chapter in (each.chapter, 7), f"{name} is no claim of chapter {each.chapter}"
    named = [each.claim for each in answer.FINDINGS]
    assert len(set(named)) == len(named) == 10
    assert set(named) <= set(CLAIMS)
    assert {CLAIMS[name].chapter for name in named} == {1, 2, 3, 4, 5, 7}, (
        "every act but the sixth, whose finding the race settles, is among the ten"
    )


@pytest.mark.slow
def test_the_findings_are_written_for_what_is_measured():
    from course.scorecard import answer

    for each in answer.FINDINGS:
        assert scorecard.measure(CLAIMS[each.claim]).verdict == each.verdict, f"write the finding of {each.claim} anew"


def test_a_sentence_is_shown_with_the_verdict_that_it_was_written_for(monkeypatch):
    from course.scorecard import answer

    for each in answer.FINDINGS:
        assert each.verdict in EXPECTED[each.claim][0], each.claim
        assert not re.search(r"\d\.\d", each.sentence), f"{each.claim}: a measured number is not typed"
    measured = {"first": (None, 12.0), "second": (None, 1234.0), "third": (None, 5.0)}
    monkeypatch.setattr(scorecard, "measure", lambda claim: claims.Found("seen", "holds", measured))
    counts = next(each for each in answer.FINDINGS if each.claim == "first_token_reach")
    monkeypatch.setattr(answer, "FINDINGS", (counts,))
    assert "in bf16 it counts to 12, in fp16 to 1,234" in answer.findings().data
    monkeypatch.setattr(answer, "FINDINGS", (counts._replace(verdict="does not hold here"),))
    assert counts.headline not in answer.findings().data, "a sentence that was written for another verdict"
    assert CLAIMS[counts.claim].statement in answer.findings().data
    monkeypatch.setattr(answer, "FINDINGS", (counts._replace(claim="no_such_claim"),))
    with pytest.raises(ValueError, match="name must be one of"):
        answer.findings()
