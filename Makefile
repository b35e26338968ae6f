# Each target sets up what it needs. The README says what they are for.
PYTHON ?= python3
BIN := .venv/bin
SOURCES := $(shell find chapters src/helpers data -type f -not -name '*.pyc' -not -path '*/.ipynb_checkpoints/*') \
  _config.yml _toc.yml references.bib $(wildcard _static/* sphinx_ext/*.py)
export PATH := $(CURDIR)/$(BIN):$(PATH)

.PHONY: book slides test lab sync bench clean

book: _build/html/.ready

_build/html/.ready: .venv/.ready frontend/dist/.ready $(SOURCES) $(wildcard slides/lecture/*) tools/slides.py
	$(BIN)/jupyter-book build . -W -n --keep-going --path-output .
	$(MAKE) slides
	touch $@

slides: .venv/.ready frontend/dist/.ready
	mkdir -p _build/html
	cp -r frontend/dist/mathjax frontend/dist/reveal _build/html/
	$(BIN)/python tools/slides.py

test: book .venv-colab/.ready
	$(BIN)/python tools/browser.py
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m pytest

lab: .venv/.ready
	$(BIN)/jupyter lab chapters

sync: .venv/.ready
	$(BIN)/python tools/sync.py

bench: .venv/.ready
	for file in benchmarks/*.py; do $(BIN)/python $$file; done

# torch first: on a machine without a GPU its own requirement would otherwise be met with a CUDA build
.venv/.ready: requirements.txt pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -qq --upgrade pip
	$(BIN)/python -m pip install -qq $$(grep '^torch==' requirements.txt)
	$(BIN)/python -m pip install -qq -r requirements.txt
	$(BIN)/python -m pip install -qq --no-deps --editable .
	touch $@

# What Colab has, with the course's package installed from a wheel and nothing else of the source tree
.venv-colab/.ready: tests/colab-constraints.txt pyproject.toml $(shell find src/helpers data -type f -not -name '*.pyc')
	test -d .venv-colab || $(PYTHON) -m venv .venv-colab
	.venv-colab/bin/python -m pip install -qq --upgrade pip
	.venv-colab/bin/python -m pip install -qq $$(grep '^torch==' requirements.txt)
	.venv-colab/bin/python -m pip install -qq -c tests/colab-constraints.txt nbclient ipykernel notebook .
	.venv-colab/bin/python -m pip install -qq -c tests/colab-constraints.txt --no-deps --force-reinstall .
	touch $@

frontend/dist/.ready: .venv/.ready frontend/package.json frontend/package-lock.json tools/frontend.sh
	tools/frontend.sh
	touch $@

clean:
	rm -rf .venv .venv-colab _build frontend/dist frontend/node_modules .pytest_cache .hypothesis .ruff_cache
	find . -name __pycache__ -prune -exec rm -rf {} +
