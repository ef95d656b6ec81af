# Every target does its own set-up from a fresh clone.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# Every archive that is fetched must have one of the sums in constraints.txt.
HASHED := $(PIP) install --require-hashes --constraint constraints.txt
READY := $(VENV)/.ready
LOWEST := build/lowest

.PHONY: help setup demo test thorough lint golden bench fuzz nightly docs wheel constraints clean

help: ## what can be made
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(READY) ## virtual environment with the package installed

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	# The pip that Python brings takes pins and hashes from requirements only, not from constraints.
	sed -n '/^pip==/,/[^\\]$$/p' constraints.txt > $(VENV)/wanted.txt
	$(PIP) install --require-hashes --requirement $(VENV)/wanted.txt
	$(BIN)/python .ci/names.py build dev > $(VENV)/wanted.txt
	$(HASHED) --requirement $(VENV)/wanted.txt
	# An editable install has no hash: what it needs is there by now, so it fetches nothing.
	$(PIP) install --no-deps --no-build-isolation --no-index --editable .
	touch $@

demo: setup ## recover a picture from contaminated data, with a report to look at
	$(BIN)/robustphase demo

# One thread for each worker: together they use every core, and two threads each would wait for each other.
# Workers begin with halves of the list, so that fixtures of a module are made once, and take from each other in the end.
# What pytest makes of the test modules is kept, whatever is set: it takes each worker as long as a room of tests.
PYTEST := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n auto --dist worksteal
LINT := $(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy

test: setup ## lint, types and tests
	# Lint and types are checked meanwhile, and speak when the tests are done; both must pass.
	@($(LINT)) > $(VENV)/lint.log 2>&1 & lint=$$!; \
		$(PYTEST); tested=$$?; \
		wait $$lint; linted=$$?; cat $(VENV)/lint.log; \
		test $$tested -eq 0 && test $$linted -eq 0

thorough: setup ## the tests, with all repetitions
	ROBUSTPHASE_THOROUGH=1 $(PYTEST)

lint: setup
	$(LINT)

golden: setup ## write the golden results of the engine anew
	$(BIN)/python tests/golden/test_engine.py

bench: setup ## performance ratios, measured side by side
	$(BIN)/python .ci/names.py bench > $(VENV)/wanted.txt
	$(HASHED) --requirement $(VENV)/wanted.txt
	$(BIN)/python -m benchmarks

fuzz: setup ## try to break the file readers, checkpoints and fits for two minutes
	$(BIN)/python -m benchmarks.fuzz_files 120

nightly: setup ## the same for ten minutes; then a hundred kills of fits and of workers (half an hour in all)
	$(BIN)/python -m benchmarks fuzz_files --seed $$(date +%s)
	$(BIN)/python -m benchmarks kill_fits
	$(BIN)/python -m benchmarks kill_workers

docs: setup ## HTML documentation in docs/_build/html
	$(BIN)/python .ci/names.py docs > $(VENV)/wanted.txt
	$(HASHED) --requirement $(VENV)/wanted.txt
	rm -rf docs/api/generated docs/examples docs/_build/html # pages of what is gone would be built again
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html
	$(BIN)/python docs/check_reference.py docs/_build/html/objects.inv
	$(BIN)/python docs/check_pages.py docs/_build/html
	@echo "open docs/_build/html/index.html"

wheel: setup ## archives in dist, the wheel tried in an empty environment with the lowest versions allowed
	rm -rf dist $(LOWEST)
	# The wheel is made from the source archive, as others will make it; what both need is there, so nothing is fetched.
	$(BIN)/python -m build --no-isolation
	$(BIN)/python .ci/archive.py dist/*.tar.gz
	$(BIN)/python -m venv $(LOWEST)
	$(BIN)/python .ci/lowest.py > $(LOWEST)/requirements.txt
	$(LOWEST)/bin/python -m pip --disable-pip-version-check --quiet install --only-binary :all: \
		--requirement $(LOWEST)/requirements.txt dist/*.whl
	$(LOWEST)/bin/python -I -W error .ci/smoke.py $(LOWEST)/requirements.txt

constraints: ## write constraints.txt anew from the newest versions, with their hashes
	$(PYTHON) -m venv --clear $(VENV)
	$(PIP) install --upgrade pip
	$(PIP) install --editable '.[all]' --group build --group dev --group docs --group bench
	$(BIN)/python -m pip freeze --all --exclude-editable --exclude setuptools > constraints.txt
	$(BIN)/python .ci/hashes.py constraints.txt
	touch $(READY)

clean: ## remove the environment and everything generated
	rm -rf $(VENV) build dist docs/_build docs/api/generated docs/examples .mypy_cache .ruff_cache .pytest_cache .hypothesis
