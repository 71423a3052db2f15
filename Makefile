# Everything runs from .venv, which is created on first use and needn't be activated.
# `make demo` has its own small environment, .venv-demo, without the development tools.

PYTHON ?= python3
VENV := .venv
DEMO_VENV := .venv-demo
BIN := $(VENV)/bin
# Named after the interpreter, so that another one recreates the environment.
READY := $(VENV)/.ready-$(subst /,_,$(PYTHON))
DEMO_READY := $(DEMO_VENV)/.ready-$(subst /,_,$(PYTHON))

# pyright would otherwise ask a registry for a newer release of itself on every run.
PYRIGHT := PYRIGHT_PYTHON_USE_BUNDLED_PYRIGHT=1 PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(BIN)/pyright

.DEFAULT_GOAL := help
.PHONY: help demo test test-model test-bench test-langfuse4 lint bench bench-quick bench-judge torture audit sbom \
	picture lock clean
.DELETE_ON_ERROR:

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s  %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(DEMO_READY) ## Set up and run the main job on bundled data, without any key
	@PATH="$(CURDIR)/$(DEMO_VENV)/bin:$$PATH" scripts/demo

# Tests have no network, so the real models that they use are fetched first.
SMALL_MODEL := smollm2-135m-instruct-q4_1
JUDGE_MODEL := qwen2.5-coder-1.5b-instruct-q4_k_m
pull = $(BIN)/jurybox model pull $(1)

# Screenshots of the pages for manual inspection: light, dark, in a narrow window.
SCREENSHOTS := .cache/screenshots

test: $(READY) ## Run the test suite in parallel
	@scripts/browser
	@$(call pull,$(SMALL_MODEL))
	@rm -rf $(SCREENSHOTS)
	@env -u PYTHONDONTWRITEBYTECODE JURYBOX_SCREENSHOTS=$(SCREENSHOTS) $(BIN)/python -m pytest -q

test-model: $(READY) ## Run the tests on the embedded judge (fetches 1.1 GB once; takes minutes)
	@$(call pull,$(SMALL_MODEL))
	@$(call pull,$(JUDGE_MODEL))
	@$(BIN)/python -m pytest -q -n 0 -m judge_model

test-bench: $(READY) ## Check that every benchmark works, with a few samples
	@$(BIN)/python -m pytest -q -n 0 -m benchmark

# The previous major version of the SDK, placed before the one in requirements.lock.
LANGFUSE4 := .cache/langfuse4

test-langfuse4: $(READY) ## Run the Langfuse tests with the previous major version of its SDK
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-input --no-deps --upgrade \
		--require-hashes --only-binary :all: --target $(LANGFUSE4) -r requirements-langfuse4.lock
	@PYTHONPATH=$(LANGFUSE4) $(BIN)/python -m pytest -q tests/spec/test_langfuse.py

lint: $(READY) ## Check style, format, types and architecture
	@$(BIN)/ruff check --quiet --output-format concise .
	@$(BIN)/ruff format --check --quiet .
	@$(PYRIGHT)
	@$(BIN)/lint-imports --no-logo --cache-dir .cache/import-linter

# Other tools are installed into .cache/peers the first time. BENCH passes options on, such as
# BENCH='--only floor jurybox inspect --sizes 1000 --repeats 1'.
bench: $(READY) ## Measure jurybox, and other tools side by side (takes about 25 minutes)
	@$(BIN)/python benchmarks/startup.py
	@$(BIN)/python benchmarks/rubric.py
	@$(BIN)/python benchmarks/safety.py
	@$(BIN)/python benchmarks/companion.py
	@$(BIN)/python benchmarks/pages.py
	@$(BIN)/python benchmarks/spread.py
	@$(BIN)/python benchmarks/capacity.py
	@$(BIN)/python benchmarks/side_by_side.py $(BENCH)

bench-quick: $(READY) ## Measure jurybox alone, against a fake endpoint (takes a minute)
	@$(BIN)/python benchmarks/quick.py

bench-judge: $(READY) ## Measure how often the embedded judge is right (fetches 1.1 GB once)
	@$(call pull,$(JUDGE_MODEL))
	@$(BIN)/python benchmarks/judge.py
	@$(BIN)/python benchmarks/judge_fit.py

# 10,000 samples through a storm, 50 kills on each database, every reader fuzzed for ten minutes, one
# per core, a flood: this takes hours. Not a part of `make test`.
MINUTES ?= 10
torture: $(READY) ## Run storms, kills, fuzzing and a flood (MINUTES=0.1 for a short one)
	@$(BIN)/python benchmarks/torture.py --minutes $(MINUTES)

# These tools have their own environment, because of their thirty dependencies.
AUDIT := .cache/audit
$(AUDIT)/bin/pip-audit:
	@$(PYTHON) -m venv $(AUDIT)
	@$(AUDIT)/bin/pip install --quiet pip-audit cyclonedx-bom

audit: $(AUDIT)/bin/pip-audit ## Look for known vulnerabilities in the locked dependencies
	@$(AUDIT)/bin/pip-audit --strict --requirement requirements.lock --disable-pip --no-deps

sbom: $(AUDIT)/bin/pip-audit ## Write sbom.json (CycloneDX) from the locked dependencies
	@$(AUDIT)/bin/cyclonedx-py requirements requirements.lock --output-format JSON --output-file sbom.json

picture: $(READY) ## Update the pictures in README.md and docs/
	@scripts/browser
	@$(BIN)/python scripts/picture.py
	@JURYBOX_PICTURES=docs/images $(BIN)/python -m pytest -q -n 0 tests/browser/test_looks.py

lock: ## Choose the newest dependencies and write the lock files
	@scripts/lock "$(PYTHON)"

clean: ## Remove all generated files
	@rm -rf $(VENV) $(DEMO_VENV) .cache .jurybox/demo build dist
	@find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): pyproject.toml requirements.lock
	@scripts/setup "$(PYTHON)" $(VENV)
	@touch $@

$(DEMO_READY): pyproject.toml requirements-demo.lock
	@scripts/setup "$(PYTHON)" $(DEMO_VENV) requirements-demo.lock
	@touch $@
