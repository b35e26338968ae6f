"""The examples in docstrings give what they say, and every public function of the tools has one."""

import doctest
import importlib
import inspect
import pkgutil

import matplotlib
import pytest
from test_bad_input import FUNCTIONS

import course
import helpers

matplotlib.use("agg")
MODULES = [
    module.name
    for package in (helpers, course)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if not module.name.endswith("__main__")
]
# public functions without an example, and why
REASONS = {
    "needs a real model, which takes longer than an example may; the lessons show it": (
        "collapse.last_token_distance collapse.copying_prompt collapse.copying_margins "
        "intervention.turns intervention.read"
    ),
    "trains": "gnn.accuracy gnn.train gnn.fit",
    "writes files, or needs a server or a full disk": "checkpoints.save data.download data.room",
    "rope.rotate has one": "rope.turn",
}
WITHOUT = {name for names in REASONS.values() for name in names.split()}


def examples() -> dict[str, doctest.DocTest]:
    """Those of functions, and of classes with their methods, under whatever decorators they have."""
    found, finder = {}, doctest.DocTestFinder(exclude_empty=True)
    for name in MODULES:
        module = importlib.import_module(name)
        for inner, value in vars(module).items():
            if getattr(value, "__module__", None) == name and (inspect.isclass(value) or callable(value)):
                tests = finder.find(inspect.unwrap(value), f"{name}.{inner}", module, vars(module))
                found |= {test.name: test for test in tests if test.examples}
    return found


EXAMPLES = examples()


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_gives_what_it_says(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(EXAMPLES[name], out=said.append, clear_globs=False)
    assert runner.failures == 0, "".join(said)


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if not n.startswith(("probe.", "models."))])
def test_a_public_function_has_an_example(name):
    documented = ">>>" in (inspect.getdoc(FUNCTIONS[name]) or "")
    assert documented != (name in WITHOUT), f"write an example (>>>) into the docstring of {name}, or a reason here"
