# Every command of the project. `make help` lists them; `make demo` and `make test` do their own set-up.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
CLUSTER ?= embedded
NAME ?= default
DIR ?= tests/recorded/vectors
STATE ?= tests/recorded/adopt/mid_flight.jsonl.gz
bench: DIR := $(or $(filter-out tests/recorded/vectors,$(DIR)),tests/recorded/bench)

help: ## list the commands
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(STAMP): requirements-dev.lock pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-dev.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

setup: $(STAMP) ## install the pinned Python packages into .venv

lock: ## pin the dependencies again (needs uv)
	uv pip compile --quiet --python-version 3.11 --generate-hashes --no-emit-index-url pyproject.toml -o requirements.lock
	uv pip compile --quiet --python-version 3.11 --generate-hashes --no-emit-index-url pyproject.toml --group dev -o requirements-dev.lock

format: $(STAMP) ## format the code
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

lint: $(STAMP) ## format, lint, types, import contracts
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

check: lint ## lint and the fast tests (under two minutes)
	@$(BIN)/python -m tests.run check

test: $(STAMP) ## everything
	@$(BIN)/python -m tests.run test

demo: $(STAMP) ## play the story: pods get nodes, a disruption is called off, a worker is killed (CLUSTER=real for real servers)
ifeq ($(CLUSTER),real)
	@$(BIN)/python -m testbed.demo
else
	@$(BIN)/dovetail demo
endif

testbed: $(STAMP) ## build the control plane of the test bed, or say where it was found
	@$(BIN)/python -m testbed.plane build

cluster: $(STAMP) ## leave a control plane running, with a kubeconfig for kubectl (NAME=b for a second one)
	@$(BIN)/python -m testbed.plane start --name $(NAME)

up: $(STAMP) ## start everything on real servers, worker included, and print one JSON line (NAME=b for a second one)
	@$(BIN)/python -m testbed.up start --name $(NAME)

down: $(STAMP) ## stop what `make up` and `make cluster` started under that NAME
	@$(BIN)/python -m testbed.up stop --name $(NAME)

vectors: $(STAMP) ## compare with recorded results (DIR=folder; recorded AWS traffic: ONLY="case …" LANES=2 OUT=file)
	@$(BIN)/python -m acceptance.vectors $(DIR) $(if $(ONLY),--only $(ONLY)) $(if $(LANES),--lanes $(LANES)) $(if $(OUT),--out $(OUT))

bench: $(STAMP) ## run benchmark inputs, print a table (DIR=folder, OUT=folder for the answers)
	@$(BIN)/python -m acceptance.bench $(DIR) $(OUT)

soak: $(STAMP) ## the many repetitions: kills, rounds with two workers, lost databases
	@$(BIN)/python -m tests.run soak

adopt: $(STAMP) ## take over clusters that Karpenter left in mid-flight (STATE=file.jsonl.gz), print N passed, N failed
	@$(BIN)/python -m acceptance.adopt $(STATE)

crds: $(STAMP) ## write deploy/crds from the models
	@$(BIN)/python -m dovetail.api.crds deploy/crds

.PHONY: help setup lock format lint check test demo testbed cluster up down vectors bench soak adopt crds
