# `make` alone lists the targets. Each one makes .venv by itself and installs what it
# needs there; a change of pyproject.toml installs again.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest
# One process more than there are cores, because many tests wait for servers and workers.
MANY = --numprocesses $(shell $(PYTHON) -c 'import os; print(min((os.cpu_count() or 1) + 1, 8))') --dist worksteal
# Each has a core, where a test does not ask for threads.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

# The extras behind the stamp files .venv/.installed-<kind>.
EXTRAS_run := all
EXTRAS_bench := all,bench
EXTRAS_paper := all,paper
EXTRAS_test := all,test
EXTRAS_checks := all,checks
EXTRAS_lint := all,dev
EXTRAS_setup := all,checks,dev

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test lint bench bench-quality paper paper-quick setup clean \
	test-seeds test-threads test-oldest sameness properties fuzz coverage mutants soak audit dist

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-14s %s\n", $$1, $$2}' Makefile

demo: $(VENV)/.installed-run ## find clusters and outliers in a small data set, write a report
	$(BIN)/corral demo --output demo-output --force

test: $(VENV)/.installed-test ## run the tests and the examples in docstrings
	$(ONE_THREAD) $(PYTEST) $(MANY)

test-seeds: $(VENV)/.installed-test ## the tests, those that draw their data with a hundred seeds
	$(ONE_THREAD) CORRAL_TEST_SEEDS=100 $(PYTEST) $(MANY)

test-threads: $(VENV)/.installed-checks ## fits, questions, measures, files and progress in four threads at once
	$(PYTEST) -p run-parallel --parallel-threads 4 tests/test_threads.py tests/test_progress.py \
		tests/test_explain.py tests/test_metrics.py tests/sameness/test_same.py

sameness: $(VENV)/.installed-test ## the same answers over threads, processes and kernels of BLAS and NumPy
	CORRAL_SAMENESS=1 $(PYTEST) tests/sameness

test-oldest: $(VENV)/.installed-checks ## the tests with the oldest versions of all dependencies that are allowed
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(VENV)-oldest
	$(BIN)/uv pip install --quiet --python $(VENV)-oldest --resolution lowest-direct --editable '.[all,test]'
	$(VENV)-oldest/bin/python -m pytest $(MANY)

properties: $(VENV)/.installed-test ## laws of the method, on a thousand generated cases each
	CORRAL_PROPERTY_EXAMPLES=1000 $(PYTEST) $(MANY) tests/properties

fuzz: $(VENV)/.installed-test ## ten thousand broken inputs to each reader and command
	CORRAL_FUZZ_CASES=10000 $(PYTEST) $(MANY) tests/fuzz

coverage: $(VENV)/.installed-checks ## which lines and branches the tests reach; fails below 95 % of the branches
	$(BIN)/coverage erase
	$(ONE_THREAD) $(BIN)/coverage run -m pytest $(MANY)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report
	$(BIN)/python scripts/branches

mutants: $(VENV)/.installed-checks ## whether the tests notice mistakes that are put in
	$(BIN)/python scripts/mutants

soak: $(VENV)/.installed-test ## a thousand fits in a row, millions of rows, the smallest and the widest shapes
	CORRAL_SOAK=1 $(PYTEST) --durations 0 tests/load

audit: $(VENV)/.installed-checks ## known weaknesses of what a user of corral[all] installs
	$(BIN)/uv pip compile --quiet --upgrade --python $(BIN)/python --extra all --generate-hashes --output-file $(VENV)/audit.txt pyproject.toml
	$(BIN)/python scripts/audit $(VENV)/audit.txt

dist: $(VENV)/.installed-checks ## build wheel and sdist, and test what they install
	scripts/dist $(BIN)/python

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

clean: ## remove the environments, caches and outputs
	rm -rf $(VENV) .venv-* demo-output dist htmlcov mutants .coverage .coverage.*
	rm -rf .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -prune -exec rm -rf {} +

$(VENV)/.installed-%: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$(EXTRAS_$*)]'
	@touch $@

# A half-made environment is removed, so that the next call starts again.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "corral needs Python 3.11 or newer. Name one with: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }
