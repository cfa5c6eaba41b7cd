# Everything runs in an environment of its own, made with nothing but Python and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TORCH := torch==2.13.0

.PHONY: demo test test-all lint format bench docs clean

demo: $(VENV)/.ready-run  ## run the main job: an exercise, recorded and explained
	$(BIN)/whygrad run examples/gradient_lab.py

test: $(VENV)/.ready-dev  ## lint, format, types, tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -n 2 -m "not slow"

test-all: test  ## the slow tests too
	$(BIN)/pytest -n 2 -m slow

lint: $(VENV)/.ready-dev
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(VENV)/.ready-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.ready-dev  ## measured ratios; takes some minutes
	$(BIN)/python -m benchmarks

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.ready-run: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet --editable .
	touch $@

$(VENV)/.ready-dev: pyproject.toml $(VENV)/.ready-run
	$(BIN)/pip install --quiet $(TORCH)
	$(BIN)/pip install --quiet --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
