# The commands for contributors. They need GNU make, Python 3.11 and pip.
PYTHON ?= python3
VENV ?= .venv
PYTHON12 ?= python3.12
DEMO_FLAGS ?=
FUZZ_FLAGS ?=
bin := $(VENV)/bin
axe := $(VENV)/axe/node_modules/axe-core/axe.min.js
pip := $(bin)/python -m pip install --quiet --disable-pip-version-check
# Exported, so that the package's build environment is pinned as well.
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt

.PHONY: help demo test test-viewer test-exchange test-terminal test-containers test-container-hacks test-tau fuzz attack attack-all check format docs clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

demo: $(VENV)/.train  ## train an agent on game:GuessTheNumber-v0-easy from scratch
	$(bin)/gem train --until greedy=.99,sampled=.9 --eval-every 10 --eval-episodes 256 $(DEMO_FLAGS)

test: $(VENV)/.train $(VENV)/.dev  ## run the tests, in two processes
	$(bin)/pytest -n 2 --dist loadfile

fuzz: $(VENV)/.train $(VENV)/.dev  ## grade math answers with fresh seeds, beside math-verify; FUZZ_FLAGS='--seconds 600'
	$(bin)/python tests/graders/fuzz_math.py $(FUZZ_FLAGS)

test-viewer: $(VENV)/.viewer  ## test gem view in headless Chromium (Debian: apt-get install chromium chromium-driver)
	test -f $(axe) || npm install --silent --no-audit --no-fund --prefix $(VENV)/axe axe-core \
	  || echo "npm could not install axe-core; the accessibility tests are skipped"
	GEM_TEST_VIEWER=1 GEM_AXE=$(axe) $(bin)/pytest -rs tests/viewer

test-exchange: $(VENV)/.dev  ## test the exports and imports of gem eval with inspect-ai and verifiers, in an environment of their own
	test -x build/exchange/bin/python || $(PYTHON) -m venv build/exchange
	PIP_CONSTRAINT= build/exchange/bin/python -m pip install --quiet --disable-pip-version-check inspect-ai==0.3.285 verifiers==0.4.0
	$(bin)/pytest -rs tests/evaluate/test_exchange.py

test-terminal: $(VENV)/.dev  ## every reward hack, 100 seeds per template, all wrong solutions of the terminal tasks, all faults of swe:Mini
	$(bin)/pytest -n 2 -m exhaustive tests/envs/terminal tests/envs/swe

test-containers: $(VENV)/.dev  ## play task folders in containers of podman, or of docker with GEM_TEST_ENGINE=docker; scripts/make-test-image makes the image
	$(bin)/pytest -rs -m containers tests/envs/containers tests/envs/swe tests/sandbox/test_container_machine.py

test-container-hacks: $(VENV)/.dev  ## every reward hack in containers; takes up to an hour
	$(bin)/pytest -rs -m 'containers and (exhaustive or not exhaustive)' tests/envs/containers/test_hacks_in_containers.py

test-tau:  ## compare with the evaluators of TAU-bench and tau2-bench; needs Python 3.12 and both checkouts in $$GEM_DATA
	@test -d "$(GEM_DATA)/tau-bench" -a -d "$(GEM_DATA)/tau2-bench" || { echo "test-tau needs checkouts of tau-bench and tau2-bench in \$$GEM_DATA"; exit 2; }
	@$(PYTHON12) -c "" 2>/dev/null || { echo "test-tau needs Python 3.12, as tau2 does: PYTHON12=/path/to/python3.12"; exit 2; }
	test -x build/tau/bin/python || $(PYTHON12) -m venv build/tau
	PIP_CONSTRAINT= build/tau/bin/python -m pip install --quiet --disable-pip-version-check -e '$(GEM_DATA)/tau2-bench' -e '.[eval]' pytest hypothesis cloudpickle
	GEM_TEST_TAU=1 build/tau/bin/python -m pytest -rs -s tests/envs/tau

attack: $(VENV)/.train $(VENV)/.dev  ## run the hostile programs against the sandbox, in two settings
	$(bin)/pytest -m attack

attack-all: $(VENV)/.train $(VENV)/.dev  ## the same in every setting (an hour; repeat it to continue); updates benchmarks/results/attacks.md
	cd tests/sandbox && $(CURDIR)/$(bin)/python -m envelope all --table $(CURDIR)/benchmarks/results/attacks.md

check: $(VENV)/.train $(VENV)/.dev  ## ruff, mypy, architecture, imports, documents, recorded games
	$(bin)/ruff format --check .
	$(bin)/ruff check .
	$(bin)/mypy
	$(bin)/python scripts/docs.py --check
	$(bin)/pytest tests/test_architecture.py tests/test_import.py tests/test_docs.py
	$(bin)/gem replay tests/playthroughs

format: $(VENV)/.dev  ## format the code and apply ruff's fixes
	$(bin)/ruff check --fix .
	$(bin)/ruff format .

docs: $(VENV)/.train $(VENV)/.dev  ## regenerate the references and recorded games
	$(bin)/python scripts/docs.py
	$(bin)/gem replay tests/playthroughs --update --ids 'game:*'
	$(bin)/gem replay tests/playthroughs --update --ids 'tool:*'
	$(bin)/gem replay tests/playthroughs --update --ids 'webshop:Mini'
	$(bin)/gem replay tests/playthroughs --update --ids 'web:*'
	$(bin)/gem replay tests/playthroughs --update --ids 'desk:*'
	$(bin)/gem replay tests/playthroughs --update --ids 'code:Warmup-*'

clean:  ## remove the virtual environment and all caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/.train: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	@echo "Installing PyTorch and the other dependencies into $(VENV). This takes minutes, and a few GB if pip finds no CPU build."
	$(pip) --editable '.[train]'
	touch $@

$(VENV)/.dev: $(VENV)/.train
	$(pip) --editable '.[all,dev]'
	touch $@

$(VENV)/.viewer: $(VENV)/.dev
	$(pip) 'selenium>=4.20'
	touch $@
