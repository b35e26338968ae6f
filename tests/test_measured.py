"""What a build measured once: it is taken again where everything that it hangs on is the same, and nowhere else."""

import shutil

import matplotlib.mathtext
import pytest
import torch
from conftest import ROOT
from matplotlib import rc_context
from matplotlib.figure import Figure
from test_dependencies import source  # noqa: F401  two packages, of two chapters over three tools
from tiny_models import tiny

from book import kernels, measured
from course.build import dependencies
from course.training import checkpoints
from helpers import models, probe, transformer

pytestmark = pytest.mark.slow  # `make test` runs it, `make check` does not


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """What takes no time is kept, too."""
    monkeypatch.setattr(measured, "LEAST", 0)


@pytest.fixture
def root(source):  # noqa: F811
    for name in ("requirements.txt", "constraints.txt"):
        shutil.copy(ROOT / name, source.parent)
    return source.parent


@pytest.fixture
def asked(tmp_path):
    """A function of a model that is kept, and how often it measured."""
    calls = []

    def loss(model, ids, scale=1.0):
        calls.append(scale)
        return probe.loss(model, ids) * scale

    place = tmp_path / "loss"
    place.mkdir()
    function = measured.kept(loss, place, "code")
    return lambda *given, **named: (function(*given, **named), len(calls))


IDS = torch.tensor([5, 6, 7, 8])


def test_what_was_asked_is_taken_however_it_was_asked(asked):
    found, count = asked(tiny("llama"), IDS)
    assert count == 1
    assert asked(tiny("llama"), ids=IDS.clone(), scale=1.0) == (found, 1), (
        "another copy of the same weights"
    )


def test_another_argument_another_weight_a_hook_or_another_attention_is_measured(asked):
    model = tiny("llama")
    found, _ = asked(model, IDS)
    assert asked(model, IDS.flip(0))[1] == 2
    assert asked(model, IDS, 2.0) == (2 * found, 3)
    assert asked(tiny("llama", seed=1), IDS)[1] == 4
    with probe.patch_queries_and_keys(model, lambda layer, name, x: 2 * x):
        changed, count = asked(model, IDS)
    assert (changed != found, count) == (True, 5)
    with probe.attention_knockout(model, 0):
        hidden, count = asked(model, IDS)
    assert (hidden != found, count) == (True, 6)
    assert asked(model, IDS) == (found, 6), "and without them it is the same model"
    model.model.train()  # dropout may act
    assert asked(model, IDS)[1] == 7
    model.model.eval()
    assert asked(model, IDS) == (found, 7)
    with torch.no_grad():
        next(model.model.parameters())[7, 0] += 1  # in place: the tensors are where they were
    assert asked(model, IDS)[1] == 8
    next(model.model.parameters()).data.zero_()  # which no version tells
    assert asked(model, IDS)[1] == 9
    assert asked(tiny("llama", attention="eager"), IDS)[1] == 10


def test_a_network_in_the_place_of_one_that_is_gone_is_another():
    """What is made after another is freed often lies where that one lay, tensor by tensor."""
    found = set()
    for seed in range(6):
        torch.manual_seed(seed)
        found.add(measured.weights(torch.nn.Linear(8, 8)))
    assert len(found) == 6


def test_a_figure_is_known_by_what_it_draws_and_what_code_of_the_course_draws_is_drawn_each_time(
    tmp_path,
):
    calls = []
    function = measured.kept(lambda figure, alt: calls.append(alt), tmp_path, "code")

    def asked(alt="A line.", formatter=None, **said):
        figure = Figure(layout="constrained")
        ax = figure.subplots()
        ax.plot([1, 2], label="1")
        ax.set(**said)
        if formatter:
            ax.xaxis.set_major_formatter(formatter)
        function(figure, alt)
        return len(calls)

    assert [
        asked(),
        asked(),
        asked("Another."),
        asked(title="One"),
        asked(xlim=(0, 3)),
        asked(),
    ] == [1, 1, 2, 3, 4, 4]
    with rc_context({"svg.fonttype": "none"}):
        assert [asked(), asked()] == [5, 5], "a setting that counts once it is drawn"
    assert [asked(formatter=dependencies.meaning), asked(formatter=dependencies.meaning)] == [6, 7]
    assert [asked(gid=checkpoints.Trained), asked(gid=checkpoints.Trained)] == [8, 9]


def test_numbers_drawn_at_random_are_drawn_again(tmp_path):
    calls = []

    def drawn(n):
        calls.append(n)
        return torch.rand(n)

    function = measured.kept(drawn, tmp_path, "code")

    def both(seed):
        torch.manual_seed(seed)
        return [*function(2).tolist(), torch.rand(1).item()]

    first = both(0)
    assert both(0) == first, "what comes after it, too"
    assert calls == [2]
    assert both(1) != first
    assert len(calls) == 2


def test_what_cannot_be_told_or_is_too_large_is_measured_each_time(tmp_path):
    calls = []

    def measure(given):
        calls.append(given)
        return torch.zeros(measured.MOST) if given == "large" else given

    function = measured.kept(measure, tmp_path, "code")
    assert list(function(x for x in (1, 2))) == [1, 2], "an iterator is not used up"
    for given in (lambda: 1, torch.Generator(), "large"):
        for _ in range(2):
            function(given)
    assert len(calls) == 7
    assert [*tmp_path.iterdir()] == []


CHANGES = {
    "a comment": ("src/helpers/tool.py", "import math  # of Python\n", False),
    "a function": ("src/helpers/tool.py", "import math\ndef more(): ...\n", True),
    "a table": ("data/measured.csv", "x\n1\n", True),
    "a table that nobody reads": ("data/reported/old.csv", "x\n1\n", False),
    "what is installed": ("constraints.txt", "torch==9.9\n", True),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_changed_comment_measures_nothing_and_what_a_function_hangs_on_measures_anew(root, what):
    (root / "src/helpers/maths.py").write_text("from helpers import runs, tool\n")
    before = measured.code("helpers.maths", root)
    name, text, anew = CHANGES[what]
    (root / name).write_text(text)
    assert (measured.code("helpers.maths", root) != before) == anew


def test_other_kernels_of_the_processor_measure_anew(root, monkeypatch):
    monkeypatch.delenv("ATEN_CPU_CAPABILITY", False)
    before = measured.code("helpers.maths", root)
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "default")
    assert measured.code("helpers.maths", root) != before
    monkeypatch.delenv("ATEN_CPU_CAPABILITY")
    monkeypatch.setattr(dependencies.importlib.metadata, "version", lambda name: "9.9")
    assert measured.code("helpers.maths", root) != before


def test_each_function_that_is_kept_is_there():
    for name, functions in measured.ASKED.items():
        assert set(functions) <= set(vars(pytest.importorskip(name)))


def test_what_hangs_on_a_class_that_the_key_does_not_hold_is_measured_each_time(tmp_path):
    """The code of a network's own class, or of a page's, may change while the numbers in it stay."""
    calls, reached = [], dependencies.files("import helpers.probe")
    function = measured.kept(calls.append, tmp_path, "code", reached)
    page = type("Page", (torch.nn.Linear,), {"__module__": "__main__"})
    for given, count in (
        (tiny("llama"), 1),
        (page(2, 2), 2),
        (transformer.Decoder(5, 4, 1), 2),
        (checkpoints.Trained, 2),
    ):
        calls.clear()
        function(given)
        function(given)
        assert len(calls) == count, given


def test_who_first_loads_the_language_model_in_a_kernel_has_the_one_that_is_there(monkeypatch):
    loaded = []

    def load(name=models.DEFAULT, dtype="fp32", device=None, attention="sdpa", tokenizer=None):
        loaded.append((name, dtype, torch.rand(1)))
        return tiny("llama")

    monkeypatch.setattr(models, "load", load)
    before = torch.get_rng_state()
    kernels.load_once()
    assert torch.equal(torch.get_rng_state(), before)
    models.load(dtype="bf16")
    models.load("another", device="cpu")
    assert len(loaded) == 3
    first, second = models.load(models.DEFAULT, device="cpu"), models.load(device="cpu")
    assert (len(loaded), first is second) == (4, False), "and the next loads its own"


def test_a_text_in_tex_is_parsed_once_for_all_canvases(monkeypatch):
    parser = matplotlib.mathtext.MathTextParser
    monkeypatch.setattr(
        parser, "_parse_cached", parser._parse_cached
    )  # is what it was after this test
    kernels.parse_once()
    parsers = [parser(kind) for kind in ("agg", "agg", "path")]
    drawn, again, lines = (each.parse("$x^2$", 100) for each in parsers)
    assert drawn is again
    assert (type(drawn).__name__, type(lines).__name__) == ("RasterParse", "VectorParse")
    assert parsers[0].parse("$x^2$", 200).width > 1.5 * drawn.width
