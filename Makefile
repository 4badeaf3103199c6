# Every target sets up what it needs, once. `make` alone lists them.
# Another interpreter: make setup PYTHON=python3.13

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements.lock
MODEL  := $(or $(MINFER_MODELS),data/models)/SmolLM2-135M-Instruct.Q4_1.gguf
SOURCE := $(wildcard minfer_lib/*.py minfer_lib/*/*.py minfer_lib/*/*/*.py)

# The prompt reaches the shell through the environment, unexpanded: quotes and dollar signs stay what they are.
PROMPT ?= The capital of France is
override PROMPT := $(value PROMPT)
export PROMPT

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup lab generate bench book test test-browser lint lock clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

setup: $(VENV)/.warm  ## virtual environment, packages, model, compiled kernels

lab: setup  ## open the course in JupyterLab, on your own copies in work/
	@$(BIN)/minfer start --lab

generate: setup  ## continue a text: make generate PROMPT="Once upon a time"
	@$(BIN)/minfer generate --greedy -- "$$PROMPT"

bench: setup  ## tokens/s beside what this machine's memory allows
	@$(BIN)/minfer bench

book: $(VENV)/.book $(VENV)/.warm  ## every notebook run and written to book/, as pages that need no kernel
	@$(BIN)/python -m minfer_lib.lessons.book notebooks book

test: lint $(MODEL)  ## all tests but those in a browser; without a network, those of the downloaded model are skipped
	$(BIN)/python -m pytest

test-browser: $(VENV)/.browser $(VENV)/.warm  ## the notebooks in a real JupyterLab (needs Chromium)
	$(BIN)/python -m pytest -m browser tests/browser

lint: $(VENV)/.test  ## ruff, and no outputs in notebooks
	$(BIN)/ruff check .
	$(BIN)/nbstripout --verify --keep-id --extra-keys metadata.language_info.version notebooks/*.ipynb

lock: $(VENV)/.installed  ## write requirements.lock anew: the newest releases that work together
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	UV_CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 \
	  --fork-strategy fewest --all-extras pyproject.toml -o requirements.lock

clean:  ## remove the environment and caches; keeps work/ and the model
	rm -rf $(VENV) build book *.egg-info .pytest_cache .ruff_cache .hypothesis
	find minfer_lib tests -name __pycache__ -type d -prune -exec rm -rf {} +

# The steps of the set-up. Each leaves a file behind, so that a second call has nothing to do.

$(VENV)/.installed: pyproject.toml requirements.lock
	@command -v $(PYTHON) >/dev/null || { echo "There is no $(PYTHON) here. Install Python 3.11 or newer."; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "minfer needs Python 3.11 or newer, and this is $$($(PYTHON) --version)."; \
	  echo "If a newer one is installed, name it: make setup PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { \
	  echo "No virtual environment could be made. On Debian and Ubuntu: apt install python3-venv"; exit 1; }
	@echo "Installing packages; this takes a minute or two."
	@$(PIP) -e .
	@touch $@

$(VENV)/.test: $(VENV)/.installed
	@$(PIP) -e ".[test]"
	@touch $@

$(VENV)/.book: $(VENV)/.installed
	@$(PIP) -e ".[book]"
	@touch $@

$(VENV)/.browser: $(VENV)/.test
	@$(PIP) -e ".[test,browser]"
	@touch $@

$(MODEL): | $(VENV)/.installed
	@$(BIN)/minfer fetch || echo "Going on with the small model of the repository, data/austen."

$(VENV)/.warm: $(VENV)/.installed $(SOURCE) | $(MODEL)
	@$(BIN)/minfer warmup
	@touch $@
