# busso: `make train` on a fresh machine, `make test` before every commit.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
TOOLS := $(VENV)/.tools
ARGS ?=
# The scripts of an environment have its path: those of a moved clone do not run, those of a copy run the other clone.
MOVED := $(shell [ ! -e $(BIN)/pip ] || [ -L $(VENV) ] || { [ -x $(BIN)/python ] && grep -qF "$(CURDIR)/$(BIN)/" $(BIN)/pip; } || echo yes)
PYTEST = $(BIN)/pytest --durations=30
# Tests start hundreds of processes, each of which would compile every source anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install moved warm train tensorboard tournament test test-all lint format types imports unit slow cluster soak faults other-python bench bench-quick clean docs settings-page pictures

help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(READY) warm ## create .venv with what playing and training need, pinned, and compile what every start would

$(READY): pyproject.toml constraints.txt $(if $(MOVED),moved)
	@$(PYTHON) -c 'import sys; sys.exit("busso needs Python 3.11 or newer; say make PYTHON=python3.X") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(if $(MOVED),--clear) $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[export,sweep,tune]'
	@touch $(READY)

moved:
	@echo "$(VENV) is of another place or Python: it is made anew" >&2

WARM = $(BIN)/busso warm || echo "commands compile when they start" >&2

# Warm before the first test: else several processes of the tests compile the same functions at once.
$(TOOLS): $(READY)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	$(BIN)/pip install --quiet --constraint constraints.txt --no-deps hydra-optuna-sweeper # pip refuses it beside our Optuna
	@$(WARM)
	@touch $(TOOLS)

warm: $(READY) ## compile what commands would compile at their first start; the code is kept in ~/.cache/busso
	@$(WARM)

train: $(READY) ## train Tressette for nine minutes and show the result; ARGS="learner.lr=1e-4 ..." overrides settings
	$(BIN)/busso train $(ARGS)

tensorboard: $(READY) ## show the curves of all runs in a browser
	$(BIN)/tensorboard --logdir runs

tournament: $(READY) ## the trained agent, the champion, a search and rule players, every pair; ARGS as for train
	$(BIN)/busso tournament 'players=[runs/tressette/default,champion,monte_carlo:samples:20,greedy,random]' $(ARGS)

# Checks of one process each, two at a time; pytest has both CPUs.
test: $(TOOLS) ## the checks before a commit: all but slow tests and those on a Slurm
	@start=$$(date +%s) && $(MAKE) --no-print-directory -j 2 lint types imports docs && $(MAKE) --no-print-directory unit && \
	took=$$(($$(date +%s) - start)) && \
	printf 'make test took %d:%02d (aim: under 8:00 on two cores with AVX2)\n' $$((took / 60)) $$((took % 60))

test-all: test slow cluster ## all checks

lint: $(TOOLS) ## ruff: lint and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(TOOLS) ## format the code and mend what ruff can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(TOOLS) ## mypy --strict
	$(BIN)/mypy

imports: $(TOOLS) ## who may import whom
	$(BIN)/lint-imports

unit: $(TOOLS) ## pytest without slow tests; ARGS="-k replay" and the like
	$(PYTEST) -n 2 --dist worksteal --ignore tests/slurm -m 'not slow' $(ARGS)

# They wait for clusters and processes half of the time, so there are more of them than CPUs.
slow: $(TOOLS) ## pytest of the slow tests
	$(PYTEST) -n 3 --dist worksteal --ignore tests/slurm -m slow $(ARGS)

# In one process: there is one cluster.
cluster: $(TOOLS) ## pytest of slurm/ on a Slurm of two nodes, as root with Debian's packages; else skipped with the reason
	$(PYTEST) -s tests/slurm $(ARGS)

SOAK_MINUTES ?= 60
soak: $(TOOLS) ## kill a run with Ray for an hour (SOAK_MINUTES=60), and fail where anything grows
	$(BIN)/python -m tests.soak --minutes $(SOAK_MINUTES) $(ARGS)

faults: $(TOOLS) ## seed faults one at a time and see whether the tests catch them; ARGS="n-step-one-too-many" the named ones
	$(BIN)/python -m tests.faults $(ARGS)

other-python: $(TOOLS) ## busso under the newest other Python of this machine; ARGS=--cuda also with a PyTorch for GPUs
	$(BIN)/python -m tests.other_python $(ARGS)

# Warnings are errors: a link to a page or heading that is missing, a name that no docstring explains.
docs: $(TOOLS) ## build the pages as a site in build/site, with the API from docstrings
	$(BIN)/python -m sphinx -W --keep-going -E -q -b html -c docs -d build/doctrees . build/site
	@echo "open build/site/index.html"

settings-page: $(TOOLS) ## write docs/reference/settings.md from conf/
	$(BIN)/python docs/settings.py

pictures: $(TOOLS) ## take the pictures of the tables in README; ARGS="spike menu" those named
	$(BIN)/python docs/pictures.py $(ARGS)

bench: $(TOOLS) ## measure the figures of docs/explanation/performance.md five times; ARGS="update rollout" the named ones, ARGS=--commit to keep them
	$(BIN)/python -m tests.bench --runs 5 $(ARGS)

bench-quick: $(TOOLS) ## compare ratios with the committed ones; fails when one has fallen by more than 10%
	$(BIN)/python -m tests.bench --quick

clean: ## remove .venv and caches; runs stay
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis busso.egg-info build
	find . -name __pycache__ -prune -exec rm -rf {} +
