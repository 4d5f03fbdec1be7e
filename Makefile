# Every target sets up what it needs in .venv, through constraints.txt.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: install demo test lint types imports tests bench docs clean

install: .venv/installed

.venv/installed: pyproject.toml constraints.txt hatch_build.py src/lengthwise/models/native.c
	$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "lengthwise needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[dev]"
	touch $@

demo: install
	$(BIN)/lengthwise demo

test: lint types imports tests

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: install
	$(BIN)/pyright

imports: install
	$(BIN)/lint-imports

tests: install
	$(BIN)/pytest --numprocesses 2 --dist worksteal

bench: install
	$(BIN)/python benchmarks/counts_against_tokens.py
	$(BIN)/python benchmarks/evaluation_length.py
	$(BIN)/python benchmarks/ensemble_size.py
	$(BIN)/python benchmarks/limit_evaluation.py 1e7

# The code blocks of all pages in full, then the pages, with the examples run.
docs: .venv/docs
	$(BIN)/python docs/run_blocks.py
	$(BIN)/sphinx-build --fail-on-warning --keep-going docs docs/_build/html

.venv/docs: .venv/installed
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[docs]"
	touch $@

clean:
	rm -rf .venv docs/_build
