"""Every claim on the scorecard runs, says what it found, and has a verdict that its evidence allows."""

import ast
import html
import json
import random
import re
import sys

import pytest
from expected import EVIDENCE, EXPECTED

from course import scorecard
from course.evidence import claims, null_controls, null_tables, sources, turns
from course.evidence.claims import together
from course.evidence.rules import (
    AGREE,
    ASKED_FIRST,
    CORRECTED,
    FAILS,
    HOLDS,
    LITTLE,
    OPEN,
    RULES,
    UNABLE,
    UNFIT,
    VERDICTS,
    Rule,
    Threshold,
    beyond,
    compared,
    rule,
    weigh,
)
from course.scorecard import rulers
from helpers import data, models, style

CLAIMS = {
    each.name: each for each in scorecard.claims()
}  # what is measured: rows without parts, and parts
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
    strict = CLAIMS[name].chapter in (1, 2, 3, 5)
    held = null_controls.wrong(found.nulls, found.verdict if strict else HOLDS)
    assert not held or CLAIMS[name].rule.null, (
        f"{name} holds of nothing ({held}): mend the rule, or say in `null` why"
    )
    assert re.search(r"\d", found.measured), (
        f"what {name} has measured must hold a number, not {found.measured!r}"
    )
    undecided = found.words == scorecard.NOT_TURNED  # the rule is asked once its turn is run
    assert found.verdict in allowed or undecided, (
        f"{found.verdict} is not expected ({why}): {found.measured}"
    )
    for reported, measured in found.numbers.values():
        assert all(x is None or abs(x) < float("inf") for x in (reported, measured))


def test_expectations_are_about_claims_that_exist():
    missing, gone = set(CLAIMS) - set(EXPECTED), set(EXPECTED) - set(CLAIMS)
    assert not missing, (
        f"tests/expected must say which verdicts {', '.join(sorted(missing))} may have, and why"
    )
    assert not gone, f"tests/expected names claims that are gone: {', '.join(sorted(gone))}"
    for allowed, why in EXPECTED.values():
        assert allowed <= set(VERDICTS)
        assert why


def test_every_claim_of_the_talk_has_its_words(root):
    """Three readings of ours once stood as claims of its author."""
    quoted = scorecard.quotations()
    theirs = {
        name for name, claim in CLAIMS.items() if claim.source is sources.TALK
    }  # rows of parts gather them
    assert not theirs - set(quoted), "a claim of the talk needs its words in data/sources.csv"
    note = {name for name, claim in CLAIMS.items() if claim.source is sources.NOTE}
    assert not set(quoted) - theirs - note - set(scorecard.READ_INTO_THE_TALK), (
        "quoted for a claim of another source"
    )
    for name, (chinese, english) in quoted.items():
        assert re.search(r"“.+” \((slide \d+|note)\)$", chinese), name
        assert len(english) > 10, name


def _made_up(claim):
    """A measurement at once, with the verdict that is expected."""
    if claim.parts:
        return claims.Found(
            "2 parts", together(_made_up(CLAIMS[part]).verdict for part in claim.parts)
        )
    return claims.Found("1 < 2", sorted(EXPECTED[claim.name][0])[0])


def test_every_claim_stands_once_in_a_row_of_its_paper_and_what_does_not_hold_comes_first(
    monkeypatch,
):
    monkeypatch.setattr(scorecard, "measure", _made_up)
    page = scorecard.papers().data
    assert sorted(re.findall(r'<details id="(\w+)"', page)) == sorted(scorecard.CLAIMS)
    assert sorted(re.findall(r'<details id="(\w+)"[^>]*class="card-row"', page)) == sorted(ROWS)
    for paper in page.split("<section")[1:]:
        fails = [
            verdict == FAILS
            for verdict in re.findall(r'data-verdict="([^"]+)"[^>]*class="card-row"', paper)
        ]
        assert fails == sorted(fails, reverse=True)
    rows = json.loads(re.search(r'id="claims">(.*?)</script>', page, re.S)[1])
    key = re.search(r'<p class="card-key">(.*?)</p>', page)[1]
    for verdict, (sign, _) in scorecard.LOOKS.items():
        assert f"<b>{sign}</b> {verdict}" in key
    assert {row["name"] for row in rows} == set(scorecard.CLAIMS)
    assert all(row["address"].endswith(f"#{row['name']}") for row in rows)


def test_a_row_of_parts_measures_nothing_itself_and_shares_its_parts_with_no_other():
    parts = [part for row in ROWS.values() for part in row.parts]
    assert len(set(parts)) == len(parts)
    assert set(parts) | {name for name, row in ROWS.items() if not row.parts} == set(CLAIMS)
    for row in ROWS.values():
        assert len({CLAIMS[part].chapter for part in row.parts} | {row.chapter}) == 1, row.name
        assert bool(row.parts) == (row.function is None)


def test_a_row_of_parts_holds_as_its_parts_do():
    assert together([HOLDS, HOLDS]) == HOLDS
    assert together([HOLDS, CORRECTED]) == together([HOLDS, HOLDS, OPEN]) == CORRECTED
    assert together([HOLDS, HOLDS, FAILS]) == together([OPEN, FAILS]) == FAILS
    assert together([HOLDS, OPEN]) == together([OPEN, OPEN, UNFIT]) == OPEN
    assert together([LITTLE]) == LITTLE


@pytest.mark.parametrize("name", CLAIMS)
def test_every_claim_says_when_it_holds_and_what_nothing_is(name):
    """A reader can check the rule against the numbers; who reads "with a correction" reads which."""
    asked = CLAIMS[name].rule
    assert asked.text.startswith("The claim holds if ")
    assert asked.nothing or asked.null, f"{name} must say what nothing is, or why there is none"
    for sentence, _ in asked.conditions.values():
        assert not re.search(r"[{}]|^holds if|^in part|\.$", sentence), f"{name}: {sentence}"


def test_a_condition_asks_no_number_that_has_no_name(root):
    """Sixteen rules once decided by thresholds that their reader was not told."""
    for path in root.glob("src/course/chapter*/claims.py"):
        for made in ast.walk(ast.parse(path.read_text())):
            for half in (
                made.keywords
                if isinstance(made, ast.Call) and ast.unparse(made.func) == "rule"
                else ()
            ):
                if isinstance(half.value, ast.Tuple) and half.arg != "nothing":
                    condition = half.value.elts[1]
                    places = {id(x) for part in ast.walk(condition) if isinstance(part, ast.Subscript)
                              for x in ast.walk(part.slice)}  # fmt: skip
                    for each in ast.walk(condition):
                        number = isinstance(each, ast.Constant) and type(each.value) in (int, float)
                        if number and id(each) not in places:  # 2 * sum(…) > len(…): more than half
                            assert each.value in (0, 1, 2), (
                                f"{path}:{each.lineno}: {each.value} needs a name"
                            )


def test_each_claim_about_a_language_model_was_asked_of_its_untrained_twin():
    """Where the twin holds, the rule is no finding about training, and says so."""
    assert set(scorecard.twins()) == {each["claim"] for each in rulers.TWINS}
    for name, (verdict, measured) in scorecard.twins().items():
        assert verdict in VERDICTS
        assert verdict != HOLDS or CLAIMS[name].rule.null, (
            f"{name} holds of random weights: say in `null` why it may"
        )
        assert measured in scorecard.of_nothing(CLAIMS[name], claims.Found("1", HOLDS))


def test_the_report_on_the_embedded_model_says_what_the_card_says():
    """A row once held with a correction, and beside it stood that it holds in this model."""
    for name in CLAIMS:
        said = scorecard.models_of(name).get(models.DEFAULT)
        assert said is None or said in EXPECTED[name][0], name


@pytest.mark.parametrize("name", CLAIMS)
def test_every_row_answers_three_controls_or_refuses_them(name):
    said = scorecard.controls(CLAIMS[name])
    assert tuple(said) == scorecard.CONTROLS
    assert all(said.values())
    assert scorecard.evidence(CLAIMS[name]) in scorecard.REFUSED


@pytest.mark.parametrize("name", CLAIMS)
def test_every_claim_names_a_ruler_that_was_tried(name):
    assert re.search(r"gives .+, but .+ is true", scorecard.calibration(CLAIMS[name]))


def test_rulers_are_read_again():
    """A few of the quick ones; an answer that is known is no threshold to tune."""
    table = data.table("rulers").set_index(["ruler", "case"])
    assert set(table.index) == set(rulers.KNOWN)
    for (ruler, case), (truth, _) in rulers.KNOWN.items():
        assert table.truth[ruler, case] == pytest.approx(truth)
        if (
            ruler
            in (
                "share kept, by an average",
                "sink score",
                "slash score",
                "read-out",
                "attention on the answer",
            )
            and "weights" not in case
        ):
            assert rulers.read(ruler, case)["reads"] == pytest.approx(
                table.reads[ruler, case], abs=0.02
            )
    with pytest.raises(ValueError, match="must be new"):
        rulers.known("codes", next(case for ruler, case in rulers.KNOWN if ruler == "codes"), 0.0)(
            float
        )


def test_the_table_of_controls_names_rows_and_kinds_that_there_are():
    table = data.table("controls")
    assert set(table.claim) <= set(CLAIMS), f"no claims: {sorted(set(table.claim) - set(CLAIMS))}"
    assert table.claim.is_unique
    assert set(table.evidence) <= set(scorecard.REFUSED)


def test_a_row_says_in_how_many_models_it_holds():
    assert scorecard.models_of("first_token_is_a_sink")["SmolLM2-135M-Instruct"] == HOLDS
    assert scorecard.models_of("width_bound") == {}
    row = scorecard._row(CLAIMS["first_token_is_a_sink"], claims.Found("1", HOLDS))
    assert re.search(r"of \d models: holds in \d.*SmolLM2-135M-Instruct", row)


def test_a_row_says_which_model_was_not_asked_and_why(monkeypatch):
    said = {"a": (HOLDS, None), "b": (None, "too long")}
    found = {model: {"ones_collapse": each} for model, each in said.items()} | {"c": {}}
    monkeypatch.setattr(scorecard, "_reported", lambda: found)
    told = scorecard._more(CLAIMS["ones_collapse"], claims.Found("1", HOLDS))["Models"]
    missing = "no verdict for b: too long; no verdict for c: its report has not this section"
    assert told == f"of 1 model: holds in 1: a, holds; {missing}"
    assert scorecard.unasked(CLAIMS["width_bound"]) == {}


@pytest.mark.parametrize("name", EVIDENCE)
def test_a_row_says_how_near_its_evidence_came_or_that_no_threshold_decided(name):
    for wanted, ways in EVIDENCE[name].items():
        for numbers in filter(None, ways):
            seen = CLAIMS[name].rule.decide(numbers).compared
            told = scorecard._more(CLAIMS[name], claims.Found("1", wanted, compared=seen))[
                "Distance to the thresholds"
            ]
            assert ("is required; " in told) == bool(seen) == (scorecard.YES_OR_NO not in told)
            if CLAIMS[name].rule.each and wanted not in ASKED_FIRST.values():
                assert f"{AGREE}, for a correction (to hold, all must agree)" in told, (
                    "half of the cases is a threshold, too"
                )


@pytest.mark.parametrize("name", CLAIMS)
def test_claim_points_to_a_page_and_a_heading_that_exist(name, root):
    page, _, heading = CLAIMS[name].shown.partition("#")
    notebook = json.loads((root / "chapters" / f"{page}.ipynb").read_text())
    text = "\n".join(
        "".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "markdown"
    )
    assert heading in re.findall(r"^#+ (.+)$", text, re.M), f"{page} has no heading {heading!r}"


def test_sources_are_in_the_references(root):
    known = re.findall(r"url = \{(\S+)\}", (root / "references.bib").read_text())
    for name, source in vars(sources).items():
        if isinstance(source, sources.Source) and not source.url.startswith("about"):
            assert source.url in known, name


@pytest.mark.parametrize("name", EVIDENCE)
def test_made_up_evidence_gives_each_verdict_that_a_claim_may_have(name):
    """Each half of a rule can be turned by what is measured."""
    asked = CLAIMS[name].rule
    possible = {HOLDS, FAILS} | ({CORRECTED} if asked.part or asked.against else set())
    possible |= {verdict for half, verdict in ASKED_FIRST.items() if half in asked.conditions}
    made_up = [(wanted, each) for wanted, ways in EVIDENCE[name].items() for each in ways]
    for wanted, numbers in made_up:
        assert asked.decide(numbers or CLAIMS[name].function()).verdict == wanted, numbers
    few = (
        asked.each and max(len(list(asked.ask("each", each))) for _, each in made_up if each) < 8
    )  # a coin may give 6 of 7
    assert set(EVIDENCE[name]) >= possible - ({CORRECTED} if few else set())


@pytest.mark.parametrize("name", EVIDENCE)
def test_what_is_said_of_a_verdict_is_a_half_of_the_rule(name):
    """A correction that its own numbers deny once stood on the card."""
    asked = CLAIMS[name].rule
    for wanted, ways in EVIDENCE[name].items():
        for numbers in filter(None, ways):
            _, words, _ = asked.decide(numbers)
            assert (words == "") == (wanted == HOLDS) or wanted == HOLDS, words
            if wanted not in (HOLDS, LITTLE):
                assert any(sentence in words for sentence, _ in asked.conditions.values()), words


def test_a_rule_is_made_of_one_sentence_and_one_condition_a_half():
    half = Threshold(0.5)

    @rule(
        "made_up",
        holds=(f"both are above {half:g}", lambda a, b: min(a, b) > half),
        part=(f"the first is above {half:g}", lambda a: a > half),
        fit=("a was measured", lambda a: a >= 0),
        nothing=("a coin", {"a": 0.5, "b": 0.5}),
    )
    def measured():
        return {}

    made = claims.RULES.pop("made_up")
    assert made.text == (
        "The claim holds if both are above 0.5. It holds with a correction if the first is above "
        "0.5. A verdict requires that a was measured. Otherwise this set-up cannot decide"
    )
    assert made.decide({"a": 0.6, "b": 0.7})[:2] == (HOLDS, "")
    verdict, words, seen = made.decide({"a": 0.6, "b": 0.4})
    assert (verdict, words) == (CORRECTED, "the claim holds in this form: the first is above 0.5")
    assert [tuple(one) for one in seen] == [
        ("holds", "above", 0.5, [0.4]),
        ("part", "above", 0.5, [0.6]),
    ]
    assert made.decide({"a": 0.1, "b": 0.4}).verdict == FAILS
    assert made.decide({"a": -1, "b": 1})[:2] == (
        UNFIT,
        "a verdict requires that a was measured, and this is not so",
    )
    assert null_controls.verdicts(made, {"a": 0.6, "b": 0.7}) == {"a coin": FAILS}
    with pytest.raises(ValueError, match=r"must hold \['b'\]"):
        made.decide({"a": 0.6})
    with pytest.raises(ValueError, match="must have either the condition holds"):
        rule("x", part=("", lambda: True))(measured)
    with pytest.raises(ValueError, match="must have one rule"):
        rule("width_bound", holds=("", lambda: True))(measured)


def test_nothing_in_a_profile_is_flat_shuffled_and_reversed():
    """A flat profile once was "a broad arm", and one that fell threefold was, too."""

    def asked(each):
        rule("made_up", holds=("", each))(lambda: {})
        return null_controls.verdicts(
            claims.RULES.pop("made_up"), {"profile": [1.0, 2.0, 3.0, 4.0]}
        )

    falls = asked(lambda profile: profile[-1] > profile[0] + 2)
    assert falls[null_controls.FLAT] == falls[null_controls.REVERSED] == FAILS
    careless = asked(lambda profile: profile[-1] > 2)
    assert null_controls.wrong(careless) == [null_controls.FLAT, null_controls.SHUFFLED]


DEALT = [name for name, claim in CLAIMS.items() if claim.rule.dealt]


@pytest.mark.parametrize("name", DEALT)
def test_runs_under_dealt_labels_do_not_reach_the_verdict(name):
    """What a rule says of runs whose labels mean nothing, it may not say of the runs."""
    asked, function = CLAIMS[name].rule, CLAIMS[name].function
    found = null_tables.of_tables(asked, function)
    assert list(found) == [null_tables.DEALT]
    assert not null_controls.wrong(found, asked.decide(function()).verdict)


def test_dealt_labels_stay_inside_their_groups_and_end_with_the_block():
    plain = data.table("clamped_smollm2")
    with null_tables.dealt({"clamped_smollm2": ("change", "text")}, 1):
        mixed = data.table("clamped_smollm2")
    assert not mixed.change.equals(plain.change)
    for text, part in plain.groupby("text"):
        assert sorted(mixed[mixed.text == text].change) == sorted(part.change)
    assert data.table("clamped_smollm2").equals(plain)


def test_a_mark_remembers_what_was_compared_with_it():
    two = Threshold(2)
    with compared() as seen:
        assert (3 > two, 1.0 > two * 1, 9 < 10 - two) == (True, False, False)
    assert [(one.asked, one.mark, one.values) for one in seen] == [
        ("above", 2, [3]),
        ("above", 2, [1]),
        ("below", -2, [-1]),
    ]
    assert isinstance(two, float)
    assert f"{two:.0f}" == "2"


def test_a_mark_times_a_negative_number_changes_its_side():
    two = Threshold(2)
    with compared() as seen:
        assert (-3 < -two, -3 > two * -1, -1 > two * -1) == (True, False, True)
    assert [(one.asked, one.mark, one.values) for one in seen] == [
        ("below", -2, [-3]),
        ("below", 2, [3]),
        ("below", 2, [1]),
    ]


def test_each_verdict_has_its_sign_and_its_colour():
    """A tick is green, a cross orange: exchanged, every row would say the contrary."""
    named = {verdict: (sign, style.COLOURS[colour].lower()) for verdict, (sign, colour) in {
        HOLDS: ("✓", "green"), CORRECTED: ("≈", "blue"), FAILS: ("✗", "vermillion"), OPEN: ("…", "grey"),
        LITTLE: ("○", "grey"), UNFIT: ("◊", "purple"), UNABLE: ("?", "purple"),
    }.items()}  # fmt: skip
    assert named == scorecard.LOOKS


def test_a_correction_needs_most_cells_and_none_the_other_way():
    """One cell of fifteen, by chance, made a row hold with a correction; eleven against it did not unmake it."""
    assert weigh([True] * 3, [False] * 3) == HOLDS
    assert weigh([True] * 7 + [False], [False] * 8) == CORRECTED
    assert weigh([True, True, False], [False, False, True]) == FAILS
    assert weigh([], []) == LITTLE
    with pytest.raises(ValueError, match="against must not hold"):
        weigh([True], [True])
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        weigh([True], [])


@pytest.mark.parametrize("agreeing", [0, 1, 4, 6])
def test_undecided_cases_are_no_evidence_against_a_claim(agreeing):
    """One case of two undecided once read "does not hold here"; four of seven is a coin."""
    agree = [True] * agreeing + [False] * (7 - agreeing)
    assert weigh(agree, [False] * 7) == LITTLE
    assert weigh([True, False], [False, False]) == LITTLE


@pytest.mark.parametrize("agrees", [True, False])
def test_no_rule_by_case_decides_on_one_case(agrees):
    """Fourteen rules once held of a single graph, text or seed."""
    rule = Rule(dict, each=("it agrees", lambda cells: cells))
    assert rule.decide({"cells": [agrees]}).verdict == LITTLE
    assert rule.decide({"cells": [agrees] * 2}).verdict == (HOLDS if agrees else FAILS)


def test_only_rules_whose_cases_are_tests_over_seeds_may_have_one():
    alone = {name for name, each in RULES.items() if each.each and each.least < 2}
    assert alone
    assert all("test" in RULES[name].each[0] for name in alone)


def test_one_case_of_63_at_two_errors_is_not_beyond_its_error():
    """Of 63 comparisons of nothing with nothing three in four tables have one at two errors."""
    assert beyond([2.0] + [0.0] * 62)[0] is False
    assert beyond([4.0] + [0.0] * 62)[0] is True
    normal = random.Random(0)
    tables = [[normal.gauss(0, 1) for _ in range(63)] for _ in range(200)]
    assert sum(any(beyond(table)) for table in tables) < 0.1 * len(tables)


def test_a_table_of_claims_says_what_is_wrong_with_it(tmp_path):
    table, good = tmp_path / "chapter1.toml", 'shown = "1-over-squashing/lesson#The graph"'
    module = sys.modules["course.chapter1.claims"]
    for text, said in (
        ('[width_bound]\nstatement = ""\nshown = "1-over-squashing/lesson"', "shown must be"),
        (f'[no_such_rule]\nstatement = ""\n{good}', "no_such_rule must have a rule"),
        (f'[a_row]\nstatement = ""\n{good}\nparts = ["gone"]', "gone"),
        (f'[width_bound]\nstatement = "It is"\n{good}', "must have ruler, assumes, would_change"),
    ):
        table.write_text(text)
        with pytest.raises(ValueError, match=said):
            claims.read(table, module)
    words = "\n".join(f'{key} = "words"' for key in claims.ASKED)
    table.write_text(f"[width_bound]\n{words}\n{good}")
    with pytest.raises(ValueError, match=r"must have rows in chapter1\.toml.*'tree_closed_form'"):
        claims.read(table, module)


def test_claims_draw_nothing(root):
    for path in root.glob("src/course/chapter*/claims.py"):
        assert not re.search(r"import.*\b(figures|style\.axes|matplotlib)\b", path.read_text()), (
            path
        )


def test_unknown_chapter_is_named():
    with pytest.raises(ValueError, match="chapter must be one of"):
        scorecard.claims(99)


def test_a_claim_is_measured_once_until_what_it_depends_on_changes(tmp_path, monkeypatch):
    calls = []

    def measured():
        calls.append(1)
        return {"share": 0.5, "numbers": {"a number": (None, 0.5)}}

    rule(
        "made_up",
        holds=("it is below 1", lambda share: share < Threshold(1)),
        nothing=("one", {"share": 1.0}),
    )(measured)
    monkeypatch.setitem(claims.RULES, "made_up", claims.RULES.pop("made_up"))
    claim = next(iter(CLAIMS.values()))._replace(
        name="made_up", function=measured, measured="{share} < {1}"
    )
    monkeypatch.setattr(scorecard, "_kept", lambda claim: tmp_path / "claims/x.json")
    first, again = scorecard._measured(claim), scorecard._measured(claim)
    assert first[:4] == again[:4] == ("0.5 < 1", HOLDS, {"a number": (None, 0.5)}, "")
    assert first.nulls == again.nulls == {"one": FAILS}
    assert [list(one) for one in again.compared] == [["holds", "below", 1.0, [0.5]]]
    assert len(calls) == 1
    monkeypatch.setattr(scorecard, "_kept", lambda claim: tmp_path / "claims/y.json")
    scorecard._measured(claim)
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


@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_says_what_it_assumes_and_what_could_turn_it(name):
    claim = CLAIMS[name]
    assert claim.assumes, f"{name} must say what has to be so besides, and nobody measured"
    assert claim.would_change_if, f"{name} must say what, not run here, could turn its verdict"
    row = scorecard._row(claim, claims.Found("1", HOLDS))
    assert "<dt>Assumes</dt>" in row
    assert ("<dt>Could change the verdict, not run</dt>" in row) == (
        turns.of(name).outcome == turns.NOT_RUN
    )


def test_colab_opens_a_claim_at_its_section_where_there_is_an_address(tmp_path, monkeypatch):
    claim = CLAIMS["width_bound"]._replace(shown="1-x/lesson#A (heading)")
    monkeypatch.setattr(scorecard.dependencies, "tables", lambda: tmp_path / "data")
    assert scorecard.colab(claim) == ""
    (tmp_path / "_config.yml").write_text(
        "repository:\n  url: https://github.com/o/n\n  branch: main\n"
    )
    (tmp_path / "chapters/1-x").mkdir(parents=True)
    cells = [
        {"id": "one", "source": ["# A\n"]},
        {"id": "two", "source": ["### A (heading)\n", "words"]},
    ]
    (tmp_path / "chapters/1-x/lesson.ipynb").write_text(json.dumps({"cells": cells}))
    there = "https://colab.research.google.com/github/o/n/blob/main/chapters/1-x/lesson.ipynb#scrollTo=two"
    assert scorecard.colab(claim) == there


@pytest.mark.site
def test_the_scorecard_leads_to_sections_that_exist(root):
    pages = {}
    for each in scorecard.CLAIMS.values():
        page, _, heading = each.shown.partition("#")
        text = pages.setdefault(page, (root / f"_build/html/chapters/{page}.html").read_text())
        assert f'id="{scorecard.slug(heading)}"' in text, (
            f"{page}.html has no section for {heading!r}"
        )


def test_the_answer_names_claims_of_its_chapters(root):
    """The closing page: each place of loss rests on claims of its own chapter, and its ten findings are claims."""
    from course.scorecard import answer

    for each in answer.BOTTLENECKS:
        for name in each.evidence:
            assert CLAIMS[name].chapter in (each.chapter, 7), (
                f"{name} is no claim of chapter {each.chapter}"
            )
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
        assert scorecard.measure(CLAIMS[each.claim]).verdict == each.verdict, (
            f"write the finding of {each.claim} anew"
        )


def test_a_sentence_is_shown_with_the_verdict_that_it_was_written_for(monkeypatch):
    from course.scorecard import answer

    for each in answer.FINDINGS:
        assert each.verdict in EXPECTED[each.claim][0], each.claim
        assert not re.search(r"\d\.\d", each.sentence), (
            f"{each.claim}: a measured number is not typed"
        )
    measured = {"first": (None, 12.0), "second": (None, 1234.0), "third": (None, 5.0)}
    monkeypatch.setattr(scorecard, "measure", lambda claim: claims.Found("seen", "holds", measured))
    counts = next(each for each in answer.FINDINGS if each.claim == "first_token_reach")
    for each, item in zip(answer.FINDINGS, answer.findings().data.split("<li>")[1:], strict=True):
        judged = html.escape(CLAIMS[each.claim].statement)
        link = f'<a href="scorecard.ipynb#{each.claim}">holds</a>'
        assert f"✓</strong> {judged}: {link}" in item, (
            "the mark stands beside the sentence that it judges"
        )
    links = re.findall(r"<a [^>]*>(.*?)</a>", answer.findings().data + answer.table().data)
    assert max(map(len, links)) <= len("does not hold here"), "a link is a word or two, no sentence"
    assert answer.table().data.count("<strong") == sum(
        answer.table().data.count(f"✓</strong> {html.escape(CLAIMS[name].statement)}: ")
        for name in {name for each in answer.BOTTLENECKS for name in each.evidence}
    )
    monkeypatch.setattr(answer, "FINDINGS", (counts,))
    assert "in bf16, softmax can count to 12, in fp16 to 1,234" in answer.findings().data
    monkeypatch.setattr(answer, "FINDINGS", (counts._replace(verdict="does not hold here"),))
    assert counts.headline not in answer.findings().data, (
        "a sentence that was written for another verdict"
    )
    assert CLAIMS[counts.claim].statement in answer.findings().data
    monkeypatch.setattr(answer, "FINDINGS", (counts._replace(claim="no_such_claim"),))
    with pytest.raises(ValueError, match="name must be one of"):
        answer.findings()


def test_an_installed_course_keeps_no_measurement(tmp_path, monkeypatch):
    """Beside its data lies the `pyproject.toml` of helpers, and nothing that says which versions a number is of."""
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.setattr(scorecard.dependencies, "tables", lambda: tmp_path / "_data")
    assert scorecard._kept(claims.CLAIMS["width_bound"]) is None
