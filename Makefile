# Everything runs in .venv, which each target sets up first (tools/setup). A second time that
# takes no time. Needed beforehand: make and Python 3.11 or newer.

SHELL := /bin/sh
.DEFAULT_GOAL := help
# Only what is installed in .venv counts.
unexport PYTHONPATH PYTHONHOME
.PHONY: help demo dashboard test test-deep lint bench docs lock clean setup pictures check-style check-types check-layers doctest checks

BIN := .venv/bin
# Two workers are enough to halve the time; more than four mostly start up.
PYTEST := $(BIN)/python -m pytest
PARALLEL := --numprocesses auto --maxprocesses 4 --dist worksteal
# One worker has the shared Spark session; the tests that start, kill and await processes run beside it.
IN_GROUPS := --numprocesses 2 --dist loadgroup

help:  ## Show what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort | awk -F '\t' '{printf "  make %-10s %s\n", $$1, $$2}'

demo: setup  ## See it work: a year of flights through Spark, ten windows, a late flight, what sharing saved
	@echo '==> Running the demonstration'
	@$(BIN)/muntin demo --spark

dashboard: setup  ## Serve a live page over the flights: slices, windows, results, and a query to change
	@$(BIN)/muntin dashboard --open

test: checks  ## Everything that must hold: style, types, layers, doctests, tests
	@echo '==> Tests'
	@$(PYTEST) -q $(PARALLEL) --ignore tests/project --ignore tests/spark
	@echo '==> Tests on Spark'
	@$(PYTEST) -q $(IN_GROUPS) tests/spark

test-deep: checks  ## The same with at least 100,000 random scenarios, the long tests, other Pythons and pysparks (more than an hour)
	@echo '==> Tests, deep'
	@$(PYTEST) -q $(PARALLEL) --ignore tests/project --ignore tests/spark -m 'deep or not deep' --hypothesis-profile deep
	@echo '==> Tests on Spark'
	@$(PYTEST) -q $(IN_GROUPS) tests/spark -m 'deep or not deep'
	@tools/test-pythons
	@tools/test-pysparks

# Doctests take one core, most of the time to compile: the other one looks at style and types meanwhile.
checks: setup
	@$(MAKE) --no-print-directory --jobs 2 doctest lint

lint: check-style check-types check-layers  ## Style, types and the direction of imports

check-style: setup
	@echo '==> Style: ruff'
	@$(BIN)/ruff check --quiet --output-format concise .
	@$(BIN)/ruff format --quiet --check . || { echo 'ruff format would change the files that it lists: run $(BIN)/ruff format'; $(BIN)/ruff format --check .; exit 1; }

check-types: setup
	@echo '==> Types: mypy --strict'
	@$(BIN)/mypy --no-error-summary

check-layers: setup
	@echo '==> Imports point one way: import-linter'
	@$(BIN)/lint-imports --no-logo >build/import-linter.txt 2>&1 || { cat build/import-linter.txt; exit 1; }

# In one process, and before the tests: what the examples compile stands in Numba's cache on disk
# when the parallel workers of the tests start, so that none compiles what another does.
doctest: setup
	@echo '==> Doctests of the sources and the examples of the documentation'
	@$(PYTEST) -q --doctest-modules src benchmarks tests/project

bench: setup  ## Measure the core beside limits of the machine, the techniques of the papers, polars and DuckDB
	@echo '==> Benchmark of the core'
	@$(BIN)/python -m benchmarks core

docs: setup  ## Build the documentation into build/docs
	@echo '==> Documentation'
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo 'Open build/docs/index.html'

pictures: setup  ## Draw the pictures of the documentation anew, and run the notebooks
	@$(BIN)/python -m tools.draw_pictures
	@$(BIN)/python -m tools.run_notebooks

lock:  ## Choose the versions anew (UPGRADE=1: the newest) and write the lock file
	@echo '==> Resolving versions'
	@tools/lock

clean:  ## Remove the environment, caches and what was built
	@echo '==> Removing .venv, build and caches'
	@rm -rf .venv build dist src/muntin/shipped .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	@find src benchmarks tests -name __pycache__ -type d -prune -exec rm -rf {} +

setup:
	@tools/setup
	@mkdir -p build
