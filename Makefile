# Every command of the project. `make help` lists them; `make demo` and `make test` do their own set-up.
SHELL := /bin/bash
# Each worker, sandbox and command loads some hundred files; without their compiled forms that is most of its start.
unexport PYTHONDONTWRITEBYTECODE
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEMO_STAMP := $(VENV)/.runs
DOCS_STAMP := .dovetail/docs/.installed
SITE ?= $(CURDIR)/.dovetail/site
SITE_CONFIG ?= mkdocs.yml
CLUSTER ?= embedded
NAME ?= default
DIR ?= tests/recorded/vectors
STATE ?= tests/recorded/adopt/mid_flight.jsonl.gz
bench: DIR := $(or $(filter-out tests/recorded/vectors,$(DIR)),tests/recorded/bench)

help: ## list the commands
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

# uv installs several packages at a time. Where pip has an index of its own, uv is told of it.
UV := $(BIN)/uv
PINNED = $(UV) pip install --no-deps --require-hashes $${PIP_INDEX_URL:+--default-index "$$PIP_INDEX_URL"}
OURSELVES = $(UV) pip install --python $(BIN)/python --no-deps --no-build-isolation --editable .

$(UV): requirements-tools.lock
	@test -x $(BIN)/python || { echo "setup: a Python environment in $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-tools.lock
	@touch $@

$(STAMP): requirements-dev.lock pyproject.toml | $(UV)
	@echo "setup: the pinned packages of development and tests"
	@$(PINNED) --python $(BIN)/python -r requirements-dev.lock
	@$(OURSELVES)
	@touch $@ $(DEMO_STAMP)

$(DEMO_STAMP): requirements-demo.lock pyproject.toml | $(UV)
	@echo "setup: the pinned packages that run"
	@$(PINNED) --python $(BIN)/python -r requirements-demo.lock
	@$(OURSELVES)
	@touch $@

$(DOCS_STAMP): requirements-docs.lock | $(UV)
	@$(UV) venv --quiet --clear --python $(BIN)/python $(@D)
	@$(PINNED) --quiet --python $(@D)/bin/python -r requirements-docs.lock
	@touch $@

setup: $(STAMP) ## install the pinned Python packages into .venv

lock: ## pin the dependencies again (needs uv)
	uv pip compile --quiet --python-version 3.11 --generate-hashes --no-emit-index-url pyproject.toml -o requirements.lock
	uv pip compile --quiet --python-version 3.11 --generate-hashes --no-emit-index-url pyproject.toml --group dev -o requirements-dev.lock
	uv pip compile --quiet --python-version 3.11 --generate-hashes --no-emit-index-url -c requirements-dev.lock pyproject.toml --extra codec --extra otlp -o requirements-image.lock
	uv pip compile --quiet --python-version 3.11 --generate-hashes --no-emit-index-url -c requirements-dev.lock pyproject.toml --group demo -o requirements-demo.lock
	uv pip compile --quiet --python-version 3.11 --generate-hashes --no-emit-index-url --group pyproject.toml:docs -o requirements-docs.lock
	uv pip compile --quiet --python-version 3.11 --generate-hashes --no-emit-index-url --group pyproject.toml:tools -o requirements-tools.lock

format: $(STAMP) ## format the code
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

lint: $(STAMP) ## format, lint, types, import contracts
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

check: $(STAMP) $(DOCS_STAMP) ## lint, the site and the fast tests, side by side
	@$(MAKE) --no-print-directory --jobs $(if $(filter output-sync,$(.FEATURES)),--output-sync=target) lint docs fast

fast: $(STAMP)
	@$(BIN)/python -m tests.run check

test: $(STAMP) ## everything
	@$(BIN)/python -m tests.run test

pythons: $(STAMP) ## a short trial of each other Python that is promised and is on this machine
	@$(BIN)/python -m tests.pythons

coverage: $(STAMP) ## the share of the product's lines that the fast tests run
	@$(BIN)/python -m tests.run coverage

demo: $(if $(filter real,$(CLUSTER)),$(STAMP),$(DEMO_STAMP)) ## play the story: pods get nodes, a disruption is called off, a worker is killed (KEEP=1 leaves it running, CHANGE=1: an image by steps, CLUSTER=real for real servers)
ifeq ($(CLUSTER),real)
	@$(BIN)/python -m testbed.demo
else
	@$(BIN)/dovetail demo $(if $(KEEP),--keep) $(if $(CHANGE),--change)
endif

testbed: $(STAMP) ## build the control plane of the test bed, or say where it was found
	@$(BIN)/python -m testbed.plane build

cluster: $(STAMP) ## leave a control plane running, with a kubeconfig for kubectl (NAME=b for a second one)
	@$(BIN)/python -m testbed.plane start --name $(NAME)

up: $(STAMP) ## start everything on real servers, print what to type and one JSON line (NAME=b for a second one, OUTPUT=none: no JSON)
	@$(BIN)/python -m testbed.up start --name $(NAME) -o $(or $(OUTPUT),json)

node: $(STAMP) ## leave a cluster running whose nodes are real (kubelet, containerd), with our image on them: what kind gives (NODES=3, NAME=b; root on Linux)
	@$(BIN)/python -m testbed.node start --name $(NAME) --nodes $(or $(NODES),1) -o $(or $(OUTPUT),json)

temporal: $(STAMP) ## leave a Temporal running as it is run in earnest: four services, PostgreSQL, TLS (NAME=b; needs Debian's postgresql)
	@$(BIN)/python -m testbed.temporal start --name $(NAME) -o $(or $(OUTPUT),json)

down: $(STAMP) ## stop what `make up`, `make node`, `make temporal` and `make cluster` started under that NAME
	@$(BIN)/python -m testbed.up stop --name $(NAME)

vectors: $(STAMP) ## compare with recorded results (DIR=folder; recorded AWS traffic: ONLY="case …" LANES=2 OUT=file)
	@$(BIN)/python -m acceptance.vectors $(DIR) $(if $(ONLY),--only $(ONLY)) $(if $(LANES),--lanes $(LANES)) $(if $(OUT),--out $(OUT))

bench: $(STAMP) ## run benchmark inputs, print a table (DIR=folder, OUT=folder for the answers, POLICY=cost, LEAST_SECONDS=30)
	@POLICY=$(POLICY) LEAST_SECONDS=$(LEAST_SECONDS) COST_SECONDS=$(COST_SECONDS) COST_SPOT_CHANCE=$(COST_SPOT_CHANCE) $(BIN)/python -m acceptance.bench $(DIR) $(OUT)

soak: $(STAMP) ## the many repetitions, hours of them; writes docs/soak.md (ONLY="tests/…", CHANGED=main: what a change since then touches)
	@$(BIN)/python -m tests.run soak $(if $(CHANGED),--changed $(CHANGED),$(ONLY))

peer: $(STAMP) ## Karpenter's own end-to-end suites against a worker on kwok (ONLY="text of specs", LANES=3); writes docs/peer.md
	@$(BIN)/python -m testbed.peer $(if $(ONLY),--only "$(ONLY)") $(if $(LANES),--lanes $(LANES))

adopt: $(STAMP) ## take over clusters that Karpenter left in mid-flight (STATE=file.jsonl.gz), print N passed, N failed
	@$(BIN)/python -m acceptance.adopt $(STATE)

record: $(STAMP) ## record a history of each branch of the workflows (VERSION=0.2.0); none is ever overwritten
	@test -n "$(VERSION)" || { echo "VERSION: not set; it names the version whose workflows are recorded"; exit 2; }
	@$(BIN)/python -m tests.replay.record branches --version $(VERSION)

crds: $(STAMP) ## write deploy/crds from the models
	@$(BIN)/python -m dovetail.api.crds deploy/crds

reference: $(STAMP) ## write docs/reference from the code, the pages of the rule book and the tables of the soak
	@$(BIN)/python -m docs.tools.reference docs/reference
	@$(BIN)/python -m docs.tools.reference.rule_book docs/rules
	@$(BIN)/python -m docs.tools.soak_page

picture: $(STAMP) ## play the story and draw the pictures of the README: terminal (two stories), top, page (needs Chromium); draw the recorded day
	@$(BIN)/dovetail demo | $(BIN)/python -m docs.tools.terminal_picture docs/pictures/demo.txt -
	@$(BIN)/dovetail demo --change | $(BIN)/python -m docs.tools.terminal_picture docs/pictures/change.txt -
	@$(BIN)/python -m tests.cli.pictures docs/pictures
	@$(BIN)/python -m research.days.picture docs/pictures/day.json
	@$(BIN)/python -m research.days.picture docs/pictures/vendors-week.json
	@$(BIN)/python -m research.days.picture docs/pictures/dollars-and-moves.json

docs: $(SITE)/index.html ## build the documentation site into .dovetail/site, strictly, where a page has changed

# Folders are among what `find` lists, so that a page that is gone counts as a change. mkdocs writes pages before it fails, and with its own
# --quiet a strict build is not strict: warnings that are not logged are not counted.
$(SITE)/index.html: $(DOCS_STAMP) $(SITE_CONFIG) docs/. $(shell find docs -mindepth 1)
	@said=$$(NO_MKDOCS_2_WARNING=1 $(<D)/bin/mkdocs build --strict --config-file $(SITE_CONFIG) --site-dir $(SITE) 2>&1) \
		|| { echo "$$said"; rm -f $@; exit 1; }

.PHONY: help setup lock format lint check fast test pythons coverage demo testbed cluster up node temporal down vectors bench soak peer adopt record crds reference picture docs
