"""The report: on tiny decoders of many makes, its faults in one sentence each, and its numbers those of the labs."""

import errno
import functools
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_models import byte_tokenizer, prose_tokenizer, save, tiny

from course import report, scorecard
from course.chapter2 import measures as measures2
from course.chapter3 import measures as measures3
from course.chapter5 import measures as measures5
from course.evidence import claims
from course.exercises.workshop import parts
from course.report import line, own, page, runner, trained
from course.report.sections import SECTIONS
from course.report.subject import PLANS, Subject, free_memory
from course.runs import asked
from course.training import checkpoints
from course.training.tasks import Copying
from helpers import collapse, data, models, probe, rope
from helpers.transformer import Decoder

pytestmark = pytest.mark.slow  # `make test` runs it, `make check` does not

MAKES = ("llama", "qwen2", "qwen3", "gemma3_text", "mistral", "phi", "gpt_neox", "gpt2", "olmo")
# sections that cannot be read in which make, and a word of the sentence that says so
LEFT_OUT = {
    "gemma3_text": dict.fromkeys(("frequencies", "silenced"), "sets of rotary frequencies"),
    "phi": dict.fromkeys(("frequencies", "silenced"), "16 dimensions of a head"),
    "gpt_neox": dict.fromkeys(("frequencies", "silenced"), "16 dimensions of a head"),
    "gpt2": dict.fromkeys(("frequencies", "silenced", "base"), "no rotary positions"),
}


def saved(folder: Path, make: str, **fields) -> Path:
    """A random decoder of a make in a folder."""
    return save(
        folder, tiny(make, **({"max_position_embeddings": 2048, "num_hidden_layers": 2} | fields))
    )


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A function from a make to its folder, made once."""
    root = tmp_path_factory.mktemp("makes")
    return functools.cache(lambda make: saved(root / make, make))


@pytest.fixture
def unpictured(monkeypatch):
    """Pictures are drawn elsewhere."""
    monkeypatch.setattr(page.widget, "image", lambda figure, alt: '<img alt="drawn elsewhere">')


@pytest.fixture
def quick(short, unpictured, monkeypatch):
    """Every section in seconds."""
    monkeypatch.setattr(asked, "NEW_BEGUN", 4)


@pytest.fixture
def cheap(short, unpictured):
    """Two sections of a few passes, for what is about files and not about numbers."""
    return ["base", "heads"]


@pytest.mark.parametrize("make", MAKES)
def test_every_make_has_a_report_and_what_does_not_apply_says_why(make, folders, tmp_path, quick):
    files = report.run(str(folders(make)), tmp_path)
    found = report.read(files.numbers)
    assert list(found["sections"]) == list(SECTIONS)
    for name, part in found["sections"].items():
        wanted = LEFT_OUT.get(make, {}).get(name)
        if wanted is None:
            assert part["status"] == "measured", f"{name}: {part['why']}"
        else:
            assert part["status"] == "does not apply"
            assert wanted in part["why"]
    text = files.page.read_text()
    assert text.count("<img ") >= sum(
        part["status"] == "measured" for part in found["sections"].values()
    )
    assert "NaN" not in files.numbers.read_text()
    assert not list(tmp_path.glob(".*"))


def test_gemma_has_a_sum_for_each_of_its_two_bases(folders, tmp_path, quick):
    found = report.read(
        report.run(str(folders("gemma3_text")), tmp_path, sections=["base"]).numbers
    )
    kinds = found["sections"]["base"]["numbers"]["kinds"]
    assert len(kinds) == 2
    assert sorted(each["limit"] for each in kinds.values()) == [16, 2048]


def test_the_page_holds_everything_and_asks_no_other_host(folders, tmp_path, short):
    text = report.run(str(folders("llama")), tmp_path, sections=["base", "heads"]).page.read_text()
    for word in ('src="http', "<link", "<script", "@import", "url("):
        assert word not in text
    for word in ("prefers-color-scheme:dark", "@media print", 'lang="en"', "viewport", 'alt="'):
        assert word in text
    assert len(text) < 2_000_000
    assert str(folders("llama").parent) not in text, "no path of a machine stands in a report"
    assert models.DEFAULT in text, "it stands beside the default one"
    assert "no: prompts are given as they are" in text


# Numbers ------------------------------------------------------------------------------------------------


def test_numbers_are_those_of_the_labs(folders):
    """With the full plan each section gives what the labs' own measures give, on a tiny decoder."""
    subject, plan = Subject(str(folders("llama")), device="cpu"), PLANS[-1]
    model = subject.model

    def numbers(name: str) -> dict:
        return SECTIONS[name].measure(subject, plan)

    def same(found, wanted):
        torch.testing.assert_close(
            torch.as_tensor(found).double(), torch.as_tensor(wanted).double(), rtol=2e-4, atol=2e-4
        )

    sinks = numbers("sinks")
    table = measures2.sink_table(model)
    same([row["sink heads"] for row in sinks["table"]], table["sink heads"].to_numpy())
    tokens = measures2.texts(model, measures2.TOKENS)["harbour"]
    same(numbers("heard")["norms"], probe.sensitivity(model, tokens, probes=30).norms)
    ids = measures3.ones(model)
    states = probe.last_representations(model, ids)
    coarse = models.load(folders("llama"), dtype="bf16", device="cpu")
    lab = measures3.controlled(states, probe.last_representations(coarse, ids))["its own"]
    precision = numbers("precision")
    same(precision["signal"], lab.signal[1:])
    same(precision["types"]["bf16"]["floor"], lab.floor[1:])
    same(
        list(precision["types"]["bf16"]["late"].values()),
        list(measures3.resolution_from(lab).values()),
    )
    grid = [6, 22, 50, 102, 202]
    commas = numbers("commas")
    assert commas["grid"] == grid
    same(
        commas["curves"]["commas"],
        collapse.last_token_distance(model, grid, sequence="111,", period=4),
    )
    varied = measures3.random_digits(max(grid), grid)
    same(
        commas["curves"]["random digits"],
        collapse.last_token_distance(model, grid, sequence=varied),
    )
    copying = numbers("copying")
    wanted = collapse.copying_margins(model, [5, 300])
    at = [copying["digits"].index(n) for n in (5, 300)]
    for (place, question), pair in wanted.items():
        for found, margin in zip(copying["margins"][f"{place}|{question}"], pair, strict=True):
            same([found[k] for k in at], margin)
    ids = measures5.prose(model)
    natural = measures5.heads(model, ids)
    same(numbers("heads")["slashes"]["prose"], natural.slashes)
    same(numbers("frequencies")["queries"], natural.queries.mean(1))
    silenced = numbers("silenced")
    same(silenced["plain"], probe.loss(model, ids))
    losses = measures5.ablations(model, ids, controls=3)
    same([silenced["losses"][name] for name in losses], list(losses.values()))


def test_numbers_of_the_default_are_the_committed_ones():
    """What the course has in tables is read from them: hiding, counting, and pairs silenced in some heads."""
    found = next(each for each in report.committed() if each["model"]["name"] == models.DEFAULT)
    rows = found["sections"]["hiding"]["numbers"]["rows"]
    table = data.table("hiding_smollm2")
    assert len(rows) == len(table)
    assert [row["loss"] for row in rows] == pytest.approx(table["loss"].tolist(), rel=1e-5)
    silenced = data.table("silenced_pairs")
    mean = silenced[(silenced.threshold == 0.15) & (silenced["where"] == "inside")].fastest.mean()
    assert found["sections"]["silenced"]["numbers"]["where"]["inside"]["fastest"] == pytest.approx(
        mean, rel=1e-5
    )
    assert all(part["status"] == "measured" for part in found["sections"].values())
    assert found["settings"]["plan"] == "full"
    assert {part["plan"] for part in found["sections"].values()} == {"full"}
    told = [claim for part in found["sections"].values() for claim in part["claims"]]
    assert [claim["name"] for claim in told if claim["verdict"] is None] == []


def test_committed_reports_fit_the_schema_and_their_verdicts_are_the_scorecards():
    from expected import EXPECTED

    for each in report.committed():
        told = [c for part in each["sections"].values() for c in part["claims"]]
        assert {c["name"] for c in told} <= set(claims.CLAIMS)
        if each["model"]["name"] == models.DEFAULT:
            for claim in told:
                assert claim["verdict"] is None or claim["verdict"] in EXPECTED[claim["name"]][0], (
                    claim["name"]
                )


def test_the_report_has_every_claim_that_takes_a_model():
    listed = [name for section in SECTIONS.values() for name in section.claims]
    wanted = [each.name for each in scorecard.claims() if each.asks_a_model]
    assert sorted(listed) == sorted(wanted)
    for name, section in SECTIONS.items():
        assert all(claims.CLAIMS[each].chapter == section.chapter for each in section.claims), name


def test_sections_are_shown_at_headings_that_exist(root):
    for section in SECTIONS.values():
        place, _, heading = section.shown.partition("#")
        notebook = json.loads((root / "chapters" / f"{place}.ipynb").read_text())
        text = "\n".join(
            "".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "markdown"
        )
        assert any(
            row.lstrip("# ") == heading for row in text.splitlines() if row.startswith("#")
        ), section.shown


def test_a_section_that_must_fail_does():
    """Controls: the same numbers with the effect taken out are told as without trouble, with it as trouble."""
    base = {"digits": [5, 50]}
    right = {"first|first": [[3.0, 3.0], [-3.0, -3.0]], "last|last": [[3.0, 3.0], [-3.0, -3.0]]}
    other = {"first|last": [[0.0, 0.0]] * 2, "last|first": [[0.0, 0.0]] * 2}
    late = right | {"last|last": [[3.0, -3.0], [-3.0, -3.0]]}
    never = {key: [[-1.0, -1.0], [-1.0, -1.0]] for key in right}
    levels = [
        SECTIONS["copying"].tell(base | {"margins": m | other}, "x") for m in (right, late, never)
    ]
    assert [told.level for told in levels] == ["fine", "trouble", "trouble"]
    assert "from 50 digits on" in levels[1].short
    assert "say nothing about longer strings" in levels[2].short


# Judgements, stopping, memory ---------------------------------------------------------------------------------


def hidden(numbers, late, control):
    """Losses, made up: 3 nats, and so much more with the first token or the control hidden from token 25 on."""
    for row in numbers["rows"]:
        row["loss"] = 3.0 + (row["since"] == 25) * {1: late, measures2.CONTROL: control}.get(
            row["token"], 0.0
        )


def blurred(numbers, **first):
    for kind, n in first.items():
        numbers["types"][kind].update(first_wrong=n, late={"right one of all": 0.5 if n else 1.0})


def eight_bits(numbers, cost, spared=0.0):
    numbers["losses"] |= {
        "8": numbers["plain"] + cost,
        "8, first token exact": numbers["plain"] + spared,
    }


@pytest.mark.parametrize(
    ("name", "change", "level", "words"),
    [
        ("sinks", lambda n: n["giant"].update(times=51), "note", "51 times the median, which is a massive activation"),
        ("sinks", lambda n: n["giant"].update(times=49), "fine", "61% of the heads have a sink"),
        ("hiding", lambda n: None, "note", "a cache that drops old tokens must keep the first token"),
        ("hiding", lambda n: hidden(n, 2.0, 0.1), "note", "raises the loss by 2.0 nats, so a cache that drops old tokens must keep the first token"),
        ("hiding", lambda n: hidden(n, 2.0, 1.0), "fine", "changes the loss by 2.0 nats"),
        ("hiding", lambda n: hidden(n, 0.4, 0.0), "fine", "changes the loss by"),
        ("precision", lambda n: blurred(n, bf16=30, fp16=12), "trouble", "first at n = 12,"),
        ("precision", lambda n: blurred(n, bf16=12, fp16=30), "trouble", "first at n = 12,"),
        ("precision", lambda n: blurred(n, bf16=None, fp16=7), "trouble", "in fp16, a search confuses n ones"),
        ("precision", lambda n: blurred(n, bf16=None, fp16=None), "fine", "distinguish n from n + 1"),
        ("precision", lambda n: n["types"].update(fp16={"why": "too large"}), "trouble", "the range of fp16"),
        ("outliers", lambda n: eight_bits(n, 0.11), "trouble", "mostly because of the first token"),
        ("outliers", lambda n: eight_bits(n, 0.09), "fine", "8-bit activations raise the loss by only"),
    ],
)  # fmt: skip
def test_a_judgement_turns_with_its_numbers(root, name, change, level, words):
    """Those of the embedded model, and changed ones."""
    found = json.loads((root / "data/reports/smollm2-135m-instruct.json").read_text())["sections"][
        name
    ]["numbers"]
    change(found)
    told = SECTIONS[name].tell(found, "x")
    assert told.level == level
    assert words in told.short


def test_what_needs_a_look_stands_first():
    levels = {"a": "fine", "b": None, "c": "trouble", "d": "note"}
    found = {k: {"level": v, "short": "", "title": k, "numbers": {}} for k, v in levels.items()}
    assert [name for name, _ in page.in_short({"sections": found})] == ["c", "d", "a", "b"]


def test_a_report_goes_on_where_it_stopped(folders, tmp_path, cheap, monkeypatch):
    name, calls, real = str(folders("llama")), [], runner._section

    def counted(section, subject, plan):
        calls.append(section.name)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(section, subject, plan)

    monkeypatch.setattr(runner, "_section", counted)
    with pytest.raises(KeyboardInterrupt):
        report.run(name, tmp_path, sections=cheap)
    (parts,) = tmp_path.iterdir()
    assert re.fullmatch(r"\.llama-[0-9a-f]{12}\.parts", parts.name)
    report.run(name, tmp_path, sections=cheap)
    assert calls == ["base", "heads", "heads"]
    assert sorted(each.name for each in tmp_path.iterdir()) == ["llama.html", "llama.json"]


def test_a_report_grows_and_nothing_in_it_is_lost(
    folders, tmp_path, short, unpictured, monkeypatch
):
    """A part over the whole, another plan or number type, other weights of one configuration: none takes another's place."""
    monkeypatch.setattr(runner, "PLANS", (short, short._replace(name="full")))
    name, out = str(folders("llama")), tmp_path / "out"
    whole = report.read(report.run(name, out, sections=["base", "heads"]).numbers)
    monkeypatch.setattr(runner, "_now", lambda: "2030-01-01 00:00 UTC")
    files = report.run(name, out, sections=["base"])
    grown = report.read(files.numbers)
    assert list(grown["sections"]) == ["heads", "base"]
    assert grown["sections"]["heads"] == whole["sections"]["heads"]
    assert (
        grown["sections"]["base"]["made"]
        == "2030-01-01 00:00 UTC"
        != whole["sections"]["base"]["made"]
    )
    report.run(name, out, sections=["base"], plan="short")
    fine = report.read(report.run(name, out, sections=["base"], dtype="fp64").numbers)["model"][
        "weights_sha256"
    ][:6]
    other = tiny("llama", seed=1, max_position_embeddings=2048, num_hidden_layers=2)
    files = report.run(str(save(tmp_path / "later/llama", other)), out, sections=["base"])
    tag = report.read(files.numbers)["model"]["weights_sha256"][:6]
    made = {
        "llama.html",
        "llama.json",
        "llama-short.json",
        f"llama-{fine}-fp64.json",
        f"llama-{tag}.json",
    }
    assert {each.name for each in out.iterdir()} == made
    assert report.read(out / "llama.json") == grown
    text = files.page.read_text()
    for column in (f"llama, {tag}, ", ", short, fp32", f"llama, {fine}, full, fp64"):
        assert column in text, "the page is drawn from all that are there"
    assert "Do its heads" not in text
    assert whole["sections"]["heads"]["title"] in text


def test_another_file_in_the_way_is_left_as_it_is(folders, tmp_path, cheap, said):
    arguments = (str(folders("llama")), "--out", str(tmp_path), "--only", *cheap)
    (tmp_path / "llama.json").write_text("{}")
    assert "llama.json: report must fit" in said(*arguments)
    (tmp_path / "llama.json").unlink()
    os.mkfifo(tmp_path / "llama.html")
    assert "a regular file" in said(*arguments)
    assert [each.name for each in tmp_path.iterdir()] == ["llama.html"]


def test_checkpoints_of_one_training_are_drawn_as_its_course(root):
    (found,) = (each for each in report.committed() if each["model"]["name"] == models.DEFAULT)
    part, reports = found["sections"]["base"], []
    for step in "123":
        model = found["model"] | {"weights_sha256": step * 64}
        headline = part["headline"] | {"base": float(step)}
        reports.append(
            found | {"model": model, "sections": {"base": part | {"headline": headline}}}
        )
    text = page.html(reports)
    assert "Over the checkpoints" in text
    assert f"1 {models.DEFAULT}, 111111, 2 {models.DEFAULT}, 222222" in text
    assert text.count("<img ") == 4
    assert "Over the checkpoints" not in page.html(reports[:2]) + page.html(
        [*reports, found | {"model": found["model"] | {"configuration_sha256": "0" * 64}}]
    )


@pytest.mark.parametrize(
    ("error", "fits", "tried", "status", "words"),
    [
        (
            torch.OutOfMemoryError("CUDA out of memory"),
            "short",
            ["full", "middle", "short"],
            "measured",
            "",
        ),
        (
            torch.OutOfMemoryError("CUDA out of memory"),
            "",
            ["full", "middle", "short"],
            "out of memory",
            "choose a smaller",
        ),
        (
            RuntimeError("shapes differ"),
            "",
            ["full"],
            "failed",
            "RuntimeError: shapes differ (a fault of the course",
        ),
    ],
)
def test_out_of_memory_takes_a_smaller_piece_and_another_error_does_not(
    folders, error, fits, tried, status, words
):
    subject, section, seen = Subject(str(folders("llama")), device="cpu"), SECTIONS["base"], []

    def measure(subject, plan):
        seen.append(plan.name)
        if plan.name != fits:
            raise error
        return section.measure(subject, plan)

    found = runner._section(section._replace(measure=measure), subject, PLANS[-1])
    assert (seen, found["status"], found["plan"]) == (tried, status, tried[-1])
    assert words in (found["why"] or "")


def test_a_copy_that_does_not_fit_is_a_sentence(folders, monkeypatch):
    subject = Subject(str(folders("llama")), device="cpu")
    monkeypatch.setattr("course.report.subject.free_memory", lambda device: 10)
    with pytest.raises(ValueError, match="a copy in bf16 needs"), subject.copy("bf16"):
        pass
    assert free_memory(torch.device("cpu")) > 1e6


def test_layers_may_be_shared_out(folders):
    """`device="auto"` loads with a device map; here all layers land on the one device that there is."""
    model = models.load(folders("llama"), device="auto")
    plain = models.load(folders("llama"), device="cpu")
    ids = measures3.ones(plain, 12)
    torch.testing.assert_close(
        probe.last_representations(model, ids).cpu(),
        probe.last_representations(plain, ids),
        rtol=1e-4,
        atol=1e-4,
    )


# Bad input --------------------------------------------------------------------------------------------------


@pytest.fixture
def said(capsys):
    """What the command line ends with: status 2 and one sentence."""

    def run(*arguments: str) -> str:
        with pytest.raises(SystemExit) as end:
            line.main([*arguments])
        output, error = capsys.readouterr()
        assert (end.value.code, output) == (2, "")
        sentences = [row for row in error.splitlines() if row.startswith("python -m course.report")]
        assert len(sentences) == 1, error
        assert "Traceback" not in error
        return sentences[0]

    return run


def test_a_name_or_folder_that_is_no_model_is_one_sentence(tmp_path, said, monkeypatch):
    out = str(tmp_path / "out")
    monkeypatch.setattr(models, "_unreachable", lambda name: True)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    (tmp_path / "empty").mkdir()
    wrong = {
        "no-such/model-at-all": "the hub cannot be reached",
        str(tmp_path / "empty"): "contains no config.json",
    }
    for name, words in (wrong | {str(tmp_path / "not there"): "no folder"}).items():
        assert words in said(name, "--out", out)
    assert not list(Path(out).glob("*"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["copying", "--plan", "soon"], "invalid choice: 'soon'"),
        (["copying", "--threads", "0"], "--threads must be an integer from 1 to 1024"),
        (["copying", "--threads", "1000000"], "--threads must be an integer from 1 to 1024"),
        (["copying", "--out", __file__], "is a file"),
        (["n" * 130], "at most 120"),
        (["模" * 41], "at most 120 letters (40 Chinese ones)"),
    ],
)
def test_a_bad_argument_is_one_sentence_before_anything_is_measured(
    arguments, words, tmp_path, said
):
    assert words in said("--out", str(tmp_path / "out"), *arguments)
    assert not [*tmp_path.rglob("*.json")]


def test_a_device_that_is_not_there_is_one_sentence(folders, tmp_path, said):
    for name, device in (
        (str(folders("llama")), "no-such-device"),
        ("copying", "no-such-device"),
        ("copying", "meta"),
    ):
        assert "is not available here" in said(name, "--out", str(tmp_path), "--device", device)


def test_a_disk_that_fills_up_leaves_nothing_half_written(
    folders, tmp_path, cheap, said, monkeypatch
):
    def refuse(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("os.fsync", refuse)
    sentence = said(str(folders("llama")), "--out", str(tmp_path), "--only", *cheap)
    assert "the disk is full" in sentence
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_digits_that_merge_are_said_on_the_page(tmp_path, cheap):
    folder = saved(tmp_path / "merges", "llama", tokenizer=prose_tokenizer(True))
    text = report.run(str(folder), tmp_path / "out", sections=cheap).page.read_text()
    assert "digits are not one token each" in text


def test_a_tokenizer_without_a_first_token_says_so(tmp_path, quick):
    tokenizer = byte_tokenizer()
    tokenizer.bos_token = tokenizer.eos_token = None
    folder = saved(tmp_path / "none", "llama", tokenizer=tokenizer)
    parts = ["sinks", "precision", "heads", "base", "copying"]
    found = report.read(report.run(str(folder), tmp_path / "out", sections=parts).numbers)
    assert found["model"]["first_token"] is None
    assert found["model"]["opening"]["how"] == "nothing, as the tokenizer does it"
    assert (
        "neither a BOS nor" in found["sections"].pop("precision")["why"]
    )  # ones need another token in front
    assert "neither a BOS nor" in found["sections"].pop("sinks")["why"]
    assert {part["status"] for part in found["sections"].values()} == {"measured"}


@pytest.mark.parametrize("make", ["llama", "gpt2"])
def test_a_short_context_says_what_it_cannot_hold(make, tmp_path, quick):
    folder = saved(tmp_path / "short", make, max_position_embeddings=64)
    found = report.read(report.run(str(folder), tmp_path / "out").numbers)
    for name in ("sinks", "hiding", "heads", "outliers", "copying", "counting"):
        assert "the context is 64" in found["sections"][name]["why"], name
    assert found["sections"]["precision"]["status"] == "measured"
    assert found["sections"]["heard"]["status"] == "measured"


def test_a_sum_over_the_context_is_that_of_the_chapter():
    """The first negative sum is `rope.first_negative`'s, found by another search; the least and largest enclose each sum."""
    for width, base, limit in ((64, 1e5, 8192), (128, 1e4, 4096), (128, 4300, 1024)):
        theta = rope.frequencies(width, base)
        found = measures5.sums_over_context(theta, limit)
        assert found["first_negative"] == rope.first_negative(width, base, limit)
        assert (
            (min(found["least"]) < 0)
            == (found["negative"] > 0)
            == (found["first_negative"] is not None)
        )
        sums = (torch.arange(1, limit)[:, None] * theta).cos().mean(-1)
        assert min(found["least"]) == pytest.approx(float(sums.min()))
        assert found["least"][0] <= float(sums[0]) <= found["largest"][0]


def test_a_report_that_is_none_is_named(tmp_path):
    for text, words in (("{", "is not JSON"), ("{}", "fit the schema"), ("[]", "fit the schema")):
        (tmp_path / "x.json").write_text(text)
        with pytest.raises(ValueError, match=words):
            report.read(tmp_path / "x.json")
    with pytest.raises(ValueError, match="no file"):
        report.read(tmp_path / "y.json")


def test_what_stands_in_a_report_is_text_and_no_markup(folders, tmp_path, cheap):
    found = report.read(report.run(str(folders("llama")), tmp_path, sections=cheap).numbers)
    found["model"]["name"] = "<script>alert(1)</script>"
    found["sections"]["base"] |= {
        "status": "does not apply",
        "numbers": None,
        "why": "a <b>tag</b>",
    }
    text = page.html([report.check(found)]) + page.comparison([found])
    assert "<script>" not in text
    assert "<b>tag" not in text


# Several models, and a process that is killed --------------------------------------------------------------------


def test_several_models_stand_side_by_side_and_are_measured_once(folders, tmp_path, cheap):
    line_of = [
        str(folders("llama")),
        str(folders("olmo")),
        "--out",
        str(tmp_path),
        "--compare",
        "--only",
        *cheap,
    ]
    line.main(line_of)
    made = {"llama.html", "llama.json", "olmo.html", "olmo.json", "compare.html"}
    assert {each.name for each in tmp_path.iterdir()} == made
    text = (tmp_path / "compare.html").read_text()
    assert all(f">{name}<" in text for name in ("llama", "olmo"))
    before = (tmp_path / "llama.json").stat().st_mtime_ns
    line.main(line_of)
    assert (tmp_path / "llama.json").stat().st_mtime_ns == before, (
        "a report that is there is not made again"
    )


@pytest.mark.slow
def test_a_killed_run_leaves_whole_files_and_goes_on(folders, tmp_path, unpictured, capsys):
    """A process is killed after its first section; started again, here, it keeps what was done."""
    arguments = [str(folders("llama")), "--out", str(tmp_path), "--only", "base", "heads", "heard"]
    run = subprocess.Popen(
        [sys.executable, "-m", "course.report", *arguments], stderr=subprocess.DEVNULL
    )
    end = time.monotonic() + 300
    while (
        not [*tmp_path.glob(".llama-*.parts/base.json")]
        and time.monotonic() < end
        and run.poll() is None
    ):
        time.sleep(0.02)
    run.kill()
    run.wait()
    for path in tmp_path.rglob("*.json"):
        json.loads(path.read_text())
    line.main(arguments)
    assert re.search("[12] of 3 sections to do", capsys.readouterr().err)
    assert report.read(tmp_path / "llama.json")["sections"].keys() == {"base", "heads", "heard"}


@pytest.mark.slow
def test_the_embedded_model_in_short(tmp_path, unpictured):
    """What is read from its tables, or must have numbers: all else takes the way of a tiny decoder and of the labs."""
    names = "hiding precision copying counting silenced".split()
    found = report.read(report.run(models.DEFAULT, tmp_path, plan="short", sections=names).numbers)
    parts = found["sections"]
    assert all(part["status"] == "measured" for part in parts.values())
    assert parts["hiding"]["claims"][0]["verdict"]
    assert parts["copying"]["level"] == "trouble"  # it is wrong at five digits
    assert parts["precision"]["numbers"]["types"]["fp16"]["first_wrong"] is None
    assert 20 < parts["precision"]["numbers"]["types"]["bf16"]["first_wrong"] < 128
    assert found["peak_bytes"] < 6e9


# A checkpoint of the course --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", checkpoints.names())
def test_a_checkpoint_is_the_same_decoder_as_a_report_reads_it(name):
    found = trained.checkpoint(name)
    model = trained.language_model(found, name, device="cpu")
    ids = torch.randint(
        len(found.task.vocabulary), (3, 40), generator=torch.Generator().manual_seed(0)
    )
    torch.testing.assert_close(model.model(ids).logits, found.model(ids), rtol=1e-4, atol=1e-4)


def test_a_checkpoint_has_a_report_with_what_its_tokens_allow(tmp_path, unpictured):
    found = report.read(report.run("copying", tmp_path).numbers)
    parts = found["sections"]
    assert {name for name, part in parts.items() if part["status"] == "measured"} == {
        "precision",
        "copying",
        "base",
    }
    assert "not one of the 6 tokens of copying" in parts["heads"]["why"]
    assert "trained for another task, Copying" in parts["counting"]["why"]
    assert all(
        "about language models" in claim["why"]
        for part in parts.values()
        for claim in part["claims"]
    )
    numbers = parts["copying"]["numbers"]
    for place in ("first", "last"):  # the lab's strings with a 0 are the same
        wanted = checkpoints.copying(checkpoints.load("copying"), numbers["digits"], place, "0")[
            "margin"
        ]
        margins = torch.tensor(numbers["margins"][f"{place}|{place}"][0]).double()
        torch.testing.assert_close(margins, wanted, rtol=2e-4, atol=2e-4)
    assert parts["copying"]["level"] == "trouble"  # it breaks beyond its training


def test_a_checkpoint_that_counts_is_right_in_its_training_and_not_beyond(tmp_path, unpictured):
    part = report.read(report.run("counting", tmp_path, sections=["counting", "base"]).numbers)[
        "sections"
    ]["counting"]
    assert part["headline"]["right at the lengths of training (%)"] > 95
    assert part["headline"]["right beyond (%)"] < 50
    assert part["level"] == "note"


def test_a_checkpoint_of_another_kind_or_without_its_card_is_one_sentence(tmp_path, said):
    arguments = {"width": 16, "heads": 2, "layers": 1, "encoding": "NoPE", "window": 3}
    decoder = Decoder(len(Copying().vocabulary), **arguments)
    path = checkpoints.save(
        tmp_path / "small.safetensors", decoder, Copying(lengths=(2, 5)), arguments
    )
    out = str(tmp_path / "out")
    assert "no window" in said(str(path), "--out", out)
    path.with_suffix(".json").unlink()
    assert "put its card" in said(str(path), "--out", out)
    assert not list(Path(out).glob("*"))


# A decoder of one's own -----------------------------------------------------------------------------------------


def of_ones_own(folder, name="what", change="") -> Path:
    """The course's decoder as `my-decoder.safetensors`, but for one of its weights, what its head says, or its notes."""
    weights, said, path = load_file(parts.COURSE), {}, folder / parts.FILE
    if name == parts.NOTES:
        (folder / name).write_text(change)
    else:
        (said if isinstance(change, str) else weights)[name] = change
    save_file({each: weight for each, weight in weights.items() if weight is not None}, path, said)
    return path


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("right", "[1]", "object of JSON, in braces, not [1]"),
        ("right", "x", "object of JSON, in braces, not 'x'"),
        ("right", '{"16": []}', "number from 0 to 1, not []"),
        ("design", "[]", "object of JSON, in braces, not []"),
        ("design", '{"to": 1}', "positions, window, map, not 'to'"),
        ("design", '{"map": []}', "one of softmax, stick, not []"),
        ("embedding.weight", None, "embedding.weight is missing"),
        ("embedding.weight", torch.ones(()), "shape ()"),
        ("head.weight", torch.ones(45, 8), "a tensor of shape (45, 32), not"),
        ("gate", torch.ones(1), "gate does not belong"),
        ("head.weight", torch.full((45, 32), torch.nan), "head.weight must hold finite"),
        ("head.weight", torch.full((45, 32), 3e38), "answers must hold finite"),
        (parts.NOTES, "[", "object of JSON"),
        (parts.NOTES, '{"2": "x"}', "object, not 'x'"),
        (parts.NOTES, '{"2": {"sentence": 3}}', "string, not 3"),
        (parts.NOTES, '{"7": {"last": []}}', "number, not []"),
    ],
)  # fmt: skip
def test_a_file_that_holds_no_decoder_of_ones_own_is_one_sentence(
    name, change, words, tmp_path, said
):
    sentence = said(str(of_ones_own(tmp_path, name, change)), "--out", str(tmp_path / "out"))
    assert name in sentence or "answers" in words
    assert words in sentence


@pytest.mark.parametrize(
    "option", ["compare", "plan short", "only base", "device cpu", "dtype bf16"]
)
def test_a_decoder_of_ones_own_has_no_options(option, tmp_path, said):
    assert "Leave out" in said(
        str(of_ones_own(tmp_path)), "--out", str(tmp_path), *f"--{option}".split()
    )


def test_reports_of_two_decoders_of_one_name_stand_beside_one_another(
    tmp_path, said, monkeypatch, unpictured
):
    monkeypatch.setattr(own, "measured", lambda model: {"0": parts.notes()["0"]})
    first = report.run(str(of_ones_own(tmp_path)), tmp_path).numbers
    before = first.read_text()
    path = str(of_ones_own(tmp_path, "head.weight", torch.ones(45, 32)))
    second = report.run(path, tmp_path)
    assert first.read_text() == before
    assert report.run(path, tmp_path) == second, "renewed: the report beside it is no card"
    second.numbers.write_text("{}")
    assert "is another report" in said(path, "--out", str(tmp_path))
    assert "an existing file" in said(str(tmp_path / "no.safetensors"), "--out", str(tmp_path))
    with pytest.raises(ValueError, match="Leave out"):
        report.run(path, tmp_path, dtype="bf16")
