# Everything a contributor types. GNU make, Python 3.11 and pip are all that must be there.
PYTHON ?= python3
VENV ?= .venv
DEMO_FLAGS ?=
bin := $(VENV)/bin
pip := $(bin)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: help demo test check format docs clean

help:  ## what can be made
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

demo: $(VENV)/.train  ## train an agent on game:GuessTheNumber-v0-easy from nothing
	$(bin)/gem train $(DEMO_FLAGS)

test: $(VENV)/.train $(VENV)/.dev  ## run the tests
	$(bin)/pytest

check: $(VENV)/.train $(VENV)/.dev  ## ruff, mypy, architecture, imports, documents, and every game against its promises
	$(bin)/ruff format --check .
	$(bin)/ruff check .
	$(bin)/mypy
	$(bin)/python scripts/docs_cli.py --check
	$(bin)/python scripts/docs_api.py --check
	$(bin)/pytest tests/test_architecture.py tests/test_import.py tests/test_docs.py
	$(bin)/gem check 'game:*'
	$(bin)/gem replay tests/playthroughs

format: $(VENV)/.dev  ## let ruff rewrite what it can
	$(bin)/ruff check --fix .
	$(bin)/ruff format .

docs: $(VENV)/.train $(VENV)/.dev  ## write the generated references and recorded games anew
	$(bin)/python scripts/docs_cli.py
	$(bin)/python scripts/docs_api.py
	$(bin)/gem replay tests/playthroughs --update --ids 'game:*'

clean:  ## remove the virtual environment and all caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/.train: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(pip) --editable '.[train]'
	touch $@

$(VENV)/.dev: $(VENV)/.train
	$(pip) --editable '.[train,dev]'
	touch $@
