"""The examples in docstrings give what they say, and every public function of the tools has one."""

import doctest
import importlib
import inspect
import pkgutil

import matplotlib
import pytest
from test_bad_input import FUNCTIONS
from test_house import names

import course
import helpers

matplotlib.use("agg")
MODULES = [
    module.name
    for package in (helpers, course)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if not module.name.endswith("__main__")
]
# public functions of the course without an example, and why
WITHOUT = {
    "trains": {"gnn.accuracy", "gnn.train", "gnn.fit"},
    "writes weights": {"checkpoints.save"},
    "needs a model, and chapter 2's tables show it": {
        "interventions.with_hidden",
        "interventions.contributions",
        "interventions.scaled",
    },
}


def examples() -> dict[str, doctest.DocTest]:
    """Those of functions, and of classes with their methods, under whatever decorators they have."""
    found, finder = {}, doctest.DocTestFinder(exclude_empty=True)
    for name in MODULES:
        module = importlib.import_module(name)
        for inner, value in vars(module).items():
            if getattr(value, "__module__", None) == name and (
                inspect.isclass(value) or callable(value)
            ):
                tests = finder.find(inspect.unwrap(value), f"{name}.{inner}", module, vars(module))
                found |= {test.name: test for test in tests if test.examples}
    return found


EXAMPLES = examples()


def loads(name: str) -> bool:
    """Whether an example runs the language model."""
    return any(
        "default()" in each.source or "load()" in each.source for each in EXAMPLES[name].examples
    )


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow) if loads(name) else name for name in EXAMPLES],
)
def test_an_example_gives_what_it_says(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(EXAMPLES[name], out=said.append, clear_globs=False)
    assert runner.failures == 0, "".join(said)


CALLED = {
    name: value
    for name, value in names("helpers").items()
    if callable(value) and not inspect.isclass(value) and "._" not in name
}
OWN = {
    name: value for name, value in FUNCTIONS.items() if not value.__module__.startswith("helpers")
}


@pytest.mark.parametrize("name", [*CALLED, *OWN])
def test_a_public_function_has_an_example(name):
    documented = ">>>" in (inspect.getdoc({**CALLED, **OWN}[name]) or "")
    assert documented != (name in set().union(*WITHOUT.values())), (
        f"write an example (>>>) into the docstring of {name}, or a reason here"
    )
