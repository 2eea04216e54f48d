# Every command of the project. `make help` lists them; `make demo` and `make test` do their own set-up.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
CLUSTER ?= embedded
NAME ?= default
DIR ?= ../shared/vectors

help: ## list the commands
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(STAMP): requirements-dev.lock pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

setup: $(STAMP) ## install the pinned Python packages into .venv

lock: ## pin the dependencies again (needs uv)
	uv pip compile --quiet --python-version 3.11 --generate-hashes --no-emit-index-url pyproject.toml -o requirements.lock
	uv pip compile --quiet --python-version 3.11 --generate-hashes --no-emit-index-url pyproject.toml --group dev -o requirements-dev.lock

format: $(STAMP) ## format the code
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

check: $(STAMP) ## format, lint, types, import contracts, fast tests (under two minutes)
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m tests.run -m "not temporal and not cluster and not soak"

test: $(STAMP) ## everything
	@$(BIN)/python -m tests.run -m "not soak"

vectors: $(STAMP) ## compare our engines with recorded results (DIR=folder)
	@$(BIN)/python -m tests.vectors $(DIR)

.PHONY: vectors help setup lock format check test
