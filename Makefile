# The project's commands. Needs Python 3.11 or newer, pip and make; all else goes into .venv.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
PEERS  := $(VENV)/.peers

.DEFAULT_GOAL := help
.PHONY: help book pdf linkcheck test peers notebooks bench lint serve clean lock

help:  ## list these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

book: $(READY)  ## build the HTML book from clean into _build/html
	$(BIN)/python -m tools.build_book

pdf: $(READY)  ## print the whole book into _build/pdf/locbook.pdf (needs Chromium)
	$(BIN)/python -m tools.pdf

linkcheck: $(READY)  ## ask every address outside the book whether it is there (needs the network)
	$(BIN)/python -m tools.linkcheck

test: $(READY)  ## run all tests; every notebook's stored output is one of them
	$(BIN)/python -m pytest

peers: $(PEERS)  ## install the heavy peers (PyTorch, faiss, KeOps) that some tests and benchmarks compare with

notebooks: $(READY)  ## execute each chapter's .py and rewrite its .ipynb (CHAPTER=03 for one)
	$(BIN)/python -m tools.notebooks $(CHAPTER)

bench: $(READY)  ## measure locbook beside its peers
	$(BIN)/python -m benchmarks

lint: $(READY)  ## run the pre-commit hooks on all files
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/pre-commit run --all-files

serve: book  ## build the book and serve it on port 8000
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory _build/html 8000

clean:  ## remove what was built (.venv stays)
	rm -rf _build build locbook.egg-info .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

lock: $(READY)  ## pin all requirements anew in requirements.lock
	$(BIN)/uv pip compile requirements.in -o requirements.lock --universal -p 3.11 --no-header --no-annotate --upgrade

# Some systems ship Python without ensurepip; there virtualenv makes the environment.
# uv takes seconds where pip takes minutes; where uv does not run, pip reads the same lock.
$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=...")'
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV) || { \
		$(PYTHON) -m pip install --quiet --target $(VENV)/bootstrap virtualenv \
		&& PYTHONPATH=$(VENV)/bootstrap $(PYTHON) -m virtualenv --quiet $(VENV); }
	@$(BIN)/python -m pip install --quiet "$$(grep '^uv==' requirements.lock)" || true
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps -r requirements.lock \
		|| $(BIN)/python -m pip install --quiet --no-deps -r requirements.lock
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

# The lock is the constraint: a peer must fit what is there, and changes none of it.
$(PEERS): $(READY) requirements-peers.txt
	$(BIN)/python -m pip install --quiet --constraint requirements.lock -r requirements-peers.txt
	@touch $@
