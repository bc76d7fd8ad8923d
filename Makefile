# `make` alone lists the targets. Each one makes .venv by itself and installs what it
# needs there; a change of pyproject.toml installs again.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# The extras behind the stamp files .venv/.installed-<kind>.
EXTRAS_run := all
EXTRAS_bench := all,bench
EXTRAS_paper := all,paper
EXTRAS_test := all,test
EXTRAS_lint := all,dev
EXTRAS_setup := all,test,dev

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test lint bench bench-quality paper paper-quick setup clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-14s %s\n", $$1, $$2}' Makefile

demo: $(VENV)/.installed-run ## find clusters and outliers in a small data set, write a report
	$(BIN)/corral demo --output demo-output

test: $(VENV)/.installed-test ## run the tests and the examples in docstrings
	$(BIN)/python -m pytest --numprocesses auto --maxprocesses 8 --dist worksteal

lint: $(VENV)/.installed-lint ## check style, formatting and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy src/corral

bench: $(VENV)/.installed-bench ## measure the speed, as ratios
	$(BIN)/python -m benchmarks.speed

bench-quality: $(VENV)/.installed-paper ## print how good the results are, on averages over suites
	$(BIN)/python -m benchmarks.paper quality

paper: $(VENV)/.installed-paper ## make all tables and figures of the paper, beside its numbers
	$(BIN)/python -m benchmarks.paper all

paper-quick: $(VENV)/.installed-paper ## the same on a few small data sets, in a minute
	$(BIN)/python -m benchmarks.paper quick

setup: $(VENV)/.installed-setup ## install everything, with the pre-commit hooks
	$(BIN)/pre-commit install

clean: ## remove the environment, caches and outputs
	rm -rf $(VENV) demo-output dist .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -prune -exec rm -rf {} +

$(VENV)/.installed-%: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$(EXTRAS_$*)]'
	@touch $@

# A half-made environment is removed, so that the next call starts again.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "corral needs Python 3.11 or newer. Name one with: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }
