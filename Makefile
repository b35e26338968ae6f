# Each target sets up what it needs. The README says what they are for.
PYTHON ?= python3
BIN := .venv/bin
LEFT_OUT := $(shell sed -n '/^exclude_patterns/s/.*\[\(.*\)\]/\1/p' _config.yml | tr -d '",')
SOURCES := $(shell find chapters src sphinx_ext data -type f -not -path '*/__pycache__/*' $(LEFT_OUT:%=-not -path '%/*')) \
  _config.yml _toc.yml references.bib $(wildcard _static/*)
export PATH := $(CURDIR)/$(BIN):$(PATH)
# each notebook is a process of its own: compiling what it imports takes ten seconds, once and not each time
unexport PYTHONDONTWRITEBYTECODE

.PHONY: book pages scripts slides live pdf zip look lint check test lab handouts sync chapter exercise bench times clean

book: _build/html/.ready

_build/html/.ready: .venv/.ready frontend/dist/.ready $(SOURCES) $(wildcard slides/lecture/* frontend/live/*) tools/live.py
	$(MAKE) -j 2 pages live
	touch $@

# all pages, and then all decks (`sphinx_ext/lectures.py`); warnings come last, where one looks for them
pages: .venv/.ready scripts
	$(BIN)/jupyter-book build . -W -n --keep-going --path-output . 2> _build/warnings.txt; \
	  status=$$?; cat _build/warnings.txt >&2; exit $$status

live: .venv/.ready frontend/dist/.ready
	$(BIN)/python tools/live.py

scripts: frontend/dist/.ready
	mkdir -p _build/html
	cp -r frontend/dist/mathjax frontend/dist/reveal _build/html/

slides: .venv/.ready scripts
	$(BIN)/python tools/slides.py

# the book as one PDF an edition, which the welcome page then links
pdf: book
	$(BIN)/python tools/pdf.py

# the whole book as one zip, to be read offline, which the welcome page then links
zip: book
	$(BIN)/python tools/archive.py

# pictures of all pages and slides, to be looked at; `make look ONLY=lesson` takes those with this in their name
look: book
	$(BIN)/python tools/look.py $(ONLY)

# names, types and form, of Python and of JavaScript
lint: .venv/.ready frontend/dist/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	frontend/node_modules/.bin/tsc -p frontend
	$(BIN)/python tools/voice.py

# while you work: lint, and every test that needs no book and takes no minute; `make test` runs them all
check: lint
	$(BIN)/python -m pytest -q -n auto --dist worksteal -m "not slow and not site and not colab"

test: book
	$(MAKE) -j 2 lint .venv-colab/.ready
	$(BIN)/python -m book.browser
	$(BIN)/python -m pytest -n auto --dist worksteal

# JupyterLab asks at its first start whether it may tell news
QUIET := .venv/etc/jupyter/labconfig/page_config.json
lab: .venv/.ready $(QUIET)
	$(BIN)/jupyter lab chapters

$(QUIET): | .venv/.ready
	$(BIN)/jupyter labextension disable @jupyterlab/apputils-extension:announcements

# the pages to write in, beside the chapters; one that is there may have somebody's work in it, and stays
handouts: .venv/.ready
	$(BIN)/python tools/assignments.py make _build/assignments
	@mkdir -p chapters/handouts
	@for file in _build/assignments/handouts/*; do \
	  [ -e chapters/handouts/$${file##*/} ] || cp $$file chapters/handouts/; done; ls chapters/handouts/*

sync: .venv/.ready
	$(BIN)/python tools/sync.py

# begin a chapter, or an exercise in the place of another: make exercise NUMBER=2.7 NAME=loudest TITLE="The loudest token"
chapter exercise: .venv/.ready
	@$(BIN)/python tools/$@.py "$(NUMBER)" "$(NAME)" "$(TITLE)"

bench: .venv/.ready
	@failed=; for file in benchmarks/*.py; do $(BIN)/python $$file || failed="$$failed $$file"; done; \
	  [ -z "$$failed" ] || { echo "failed:$$failed"; exit 1; }

# what the commands take, three times in a fresh clone of this commit, on an idle machine: the README's table
times: .venv/.ready
	$(BIN)/python tools/times.py --runs 3

.venv/.ready: requirements.txt constraints.txt pyproject.toml tools/environment.py
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null || { \
	  echo "This needs Python 3.11 to 3.14, and $(PYTHON) is $$(command -v $(PYTHON) >/dev/null && $(PYTHON) --version 2>&1 || echo not there): name one, as in 'make PYTHON=python3.12 book'."; exit 1; }
	$(PYTHON) tools/environment.py book
	touch $@

.venv-colab/.ready: .venv/.ready tests/colab-constraints.txt $(shell find src data -type f -not -name '*.pyc')
	$(BIN)/python tools/environment.py colab
	touch $@

frontend/dist/.ready: .venv/.ready frontend/package.json frontend/package-lock.json tools/frontend.sh
	tools/frontend.sh
	touch $@

clean:
	rm -rf .venv .venv-colab _build frontend/dist frontend/node_modules .pytest_cache .hypothesis .ruff_cache
	find . \( -name __pycache__ -o -name .ipynb_checkpoints \) -prune -exec rm -rf {} +
