"""Accelerators: what is measured on one that has no float64, on one that is full, and on the one that is there.

The first two are pretended (tests/devices.py), so they run everywhere.
"""

import doctest
import inspect

import pytest
import torch
from conftest import ROOT
from devices import LittleMemory, WithoutFloat64, load_without_float64
from tiny_models import save, tiny

from course import report
from helpers import attention, collapse, compute, intervention, models, probe, rope

IDS = torch.arange(1, 60)
MEASURES = {
    "layers": lambda model: len(probe.layers(model)),
    "opening": lambda model: probe.opening(model).tokens,
    "head_scores": lambda model: probe.head_scores(model, IDS).sink,
    "sensitivity": lambda model: probe.sensitivity(model, IDS[:12], 4).norms,
    "attention_rows": lambda model: probe.attention_rows(model, IDS),
    "attention_maps": lambda model: attention.sink_score(probe.attention_maps(model, IDS)),
    "hidden": lambda model: _loss_without_first(model),
    "rotary_frequencies": lambda model: probe.rotary_frequencies(model),
    "queries_and_keys": lambda model: probe.queries_and_keys(model, IDS)[0][0],
    "last_token_distance": lambda model: collapse.last_token_distance(model, [4, 6]),
    "read": lambda model: (
        intervention.read(model, IDS, rope=intervention.turns(model, len(IDS))).logits
    ),
}


def _loss_without_first(model) -> torch.Tensor:
    with probe.attention_knockout(model, 0):
        return torch.tensor(probe.loss(model, IDS))


@pytest.fixture
def without_float64(monkeypatch):
    monkeypatch.setattr(compute, "_WITHOUT_FLOAT64", {"mps", "cpu"})


@pytest.mark.parametrize("name", MEASURES)
def test_measure_without_float64_equals_cpu(name, without_float64):
    expected = MEASURES[name](tiny("llama"))
    there = tiny("llama")
    with WithoutFloat64(there.model):
        found = MEASURES[name](there)
    assert torch.equal(torch.as_tensor(found), torch.as_tensor(expected))


def test_float64_on_pretended_device_is_refused():
    model = tiny("llama")
    with WithoutFloat64(model.model), pytest.raises(TypeError, match="float64"):
        model.model(IDS[None]).logits.double()
    with WithoutFloat64(model.model):
        assert model.model(IDS[None]).logits.cpu().double().dtype == torch.float64


def test_rotation_without_float64_equals_cpu(without_float64):
    x, theta = torch.randn(5, 8), rope.frequencies(8, 1e4)
    there = torch.nn.Parameter(x.clone())
    module = torch.nn.Module()
    module.x = there
    with WithoutFloat64(module):
        found = rope.rotate(module.x, torch.arange(5), theta)
    assert torch.equal(found.detach(), rope.rotate(x, torch.arange(5), theta))


@pytest.mark.slow
def test_report_without_float64_fails_nowhere(tmp_path, monkeypatch):
    folder = save(tmp_path / "tiny", tiny("llama", max_position_embeddings=1024))
    with load_without_float64(monkeypatch.setattr):
        numbers = report.read(report.run(str(folder), tmp_path / "out", plan="short").numbers)
    failed = {
        name: each["why"]
        for name, each in numbers["sections"].items()
        if each["status"] == "failed"
    }
    assert not failed


def test_head_scores_in_little_memory_take_smaller_blocks():
    model, ids = tiny("gemma2", max_position_embeddings=1024), torch.arange(200) % 100
    expected = probe.head_scores(model, ids)
    with LittleMemory(4 * 100 * 200 * 4) as memory:
        found = probe.head_scores(model, ids)
    assert memory.refused
    torch.testing.assert_close(found.sink, expected.sink, atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    "words",
    ["CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate(handle)", "MPS backend out of memory"],
)
def test_shrink_after_backend_memory_error_halves(words):
    tried = []

    def call(chunk):
        tried.append(chunk)
        if chunk > 2:
            raise RuntimeError(words)
        return chunk

    assert compute.shrink(call, 8) == 2
    assert tried == [8, 4, 2]


ACCELERATED = compute.device().type != "cpu"
MODULES = (probe, collapse, intervention)


@pytest.mark.gpu
@pytest.mark.skipif(not ACCELERATED, reason="there is no accelerator")
@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_examples_on_the_accelerator_give_the_same(module, monkeypatch):
    model = models.load()
    monkeypatch.setattr(models, "default", lambda: model)
    finder, runner = (
        doctest.DocTestFinder(exclude_empty=True),
        doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE),
    )
    for name, value in vars(module).items():
        if getattr(value, "__module__", None) == module.__name__ and callable(value):
            for test in finder.find(inspect.unwrap(value), name, module, vars(module)):
                runner.run(test)
    assert runner.failures == 0


@pytest.mark.gpu
@pytest.mark.skipif(not ACCELERATED, reason="there is no accelerator")
@pytest.mark.parametrize("name", MEASURES)
def test_measure_on_the_accelerator_equals_cpu(name):
    expected, there = tiny("llama"), tiny("llama")
    there = models.LanguageModel(there.model.to(compute.device()), there.tokenizer)
    found = torch.as_tensor(MEASURES[name](there)).cpu()
    torch.testing.assert_close(
        found, torch.as_tensor(MEASURES[name](expected)), atol=1e-4, rtol=1e-3
    )


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.skipif(not ACCELERATED, reason="there is no accelerator")
def test_report_on_the_accelerator_fails_nowhere(tmp_path):
    folder = save(tmp_path / "tiny", tiny("llama", max_position_embeddings=1024))
    numbers = report.read(report.run(str(folder), tmp_path / "out", plan="short").numbers)
    assert not [name for name, each in numbers["sections"].items() if each["status"] == "failed"]


def test_no_tensor_becomes_float64_before_it_is_on_the_cpu():
    paths = [*(ROOT / "src").rglob("*.py"), *(ROOT / "chapters").rglob("*.ipynb")]
    assert [path.name for path in paths if ".double().cpu()" in path.read_text()] == []
