# Every routine of this project, set-up included. `make help` lists them; the README has the plain
# commands for a machine without make.

VENV   ?= .venv
PY     := $(VENV)/bin/python
STAMP  := $(VENV)/.up-to-date
NBVAL  := --nbval --nbval-current-env --nbval-cell-timeout=60
export VENV

.DEFAULT_GOAL := help
.PHONY: help install lab test quick fuzz lint format bench frameworks notebooks lock

help: ## list what make can do here
	@echo "usage: make TARGET [ARGS='further arguments'] [PYTHON=/path/to/python3.12]"
	@echo
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/\1|\2/p' Makefile | \
	    while IFS='|' read -r name what; do printf '  %-10s %s\n' "$$name" "$$what"; done
	@echo
	@echo "Each sets up $(VENV) first, where that is missing or out of date."

# Set-up runs again only where the pins or the project's own metadata have changed since.
$(STAMP): binder/requirements.txt pyproject.toml tools/setup.sh
	@bash tools/setup.sh $(VENV)

install: $(STAMP) ## set up the environment, or bring it up to date
	@echo "$(VENV) is up to date; next: make lab, or make test"

lab: $(STAMP) ## open JupyterLab on the first notebook
	@exec sh tools/lab.sh $(ARGS)

test: $(STAMP) ## run all tests: units, browser, and every notebook
	$(PY) -m pytest $(NBVAL) $(ARGS)

quick: $(STAMP) ## run the unit tests alone, with a few cases of what make test goes through whole
	$(PY) -m pytest -p no:nbval --quick -m "not browser" $(ARGS) tests

fuzz: $(STAMP) ## try a million hostile streams on the adapters (ARGS='--seed 7' for others)
	$(PY) -m agentlib.conformance.fuzz $(ARGS)
	$(PY) tests/second_gate_fuzz.py

lint: $(STAMP) ## check style, format and types
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy

format: $(STAMP) ## put every file into the project's format
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

bench: $(STAMP) ## measure, and compare with the last run (ARGS='imports assembly' for a part)
	$(PY) -m benchmarks $(ARGS)

frameworks: $(STAMP) ## attack published frameworks, each in its own environment (ARGS='llm agno')
	$(PY) tools/frameworks.py $(ARGS)

notebooks: $(STAMP) ## run every notebook again in place, and leave nothing volatile in it
	$(PY) tools/notebooks.py $(ARGS)

lock: ## write the lock file anew, with the newest versions that run on Python 3.11
	$(or $(PYTHON),$(PY)) tools/lock.py
