# Every target sets up all it needs; `make demo` and `make test` work on a fresh machine with Python 3.11+.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --disable-pip-version-check --quiet

.PHONY: demo docs docs-test test long-test browser ray-test upgrade-test deploy-test shaped-links-test test-faults recovery lint wheel bench mutants quick reproduce format clean

demo: $(VENV)/.light
	$(BIN)/mtcd demo --out runs/demo

# three workers on two cores: tests of federations often wait
test: $(VENV)/.test
	OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n 3 --dist worksteal

# what takes longest: many examples, whole figures, scikit-learn's checks
long-test: $(VENV)/.test
	OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n 3 --dist worksteal -m long

# the page of `mtcd report` in Chromium
browser: $(VENV)/.browser
	.ci/chromium
	OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n 2 tests/browser

# real processes: faults, cables that are cut, the tutorial, an older version, a party behind a firewall or a proxy
upgrade-test: $(VENV)/.test
	OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n 2 tests/operations

# the engine and sweeps on Ray: actors, workers, nodes and drivers that die
ray-test: $(VENV)/.test
	OPENBLAS_NUM_THREADS=1 $(BIN)/pytest tests/ray

# the Dockerfile line by line, and the services of the compose file, in namespaces: needs root
deploy-test: $(VENV)/.test
	OPENBLAS_NUM_THREADS=1 $(BIN)/pytest tests/deploy

# simulated time against real processes over links of given bandwidths, in namespaces: needs root
shaped-links-test: $(VENV)/.test
	OPENBLAS_NUM_THREADS=1 $(BIN)/pytest tests/shaped

test-faults: $(VENV)/.test
	PYTHONPATH=tests OPENBLAS_NUM_THREADS=1 $(BIN)/python -m faulty

recovery: $(VENV)/.test
	PYTHONPATH=tests OPENBLAS_NUM_THREADS=1 $(BIN)/python -m faulty.recovery

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# the site, in build/site; a page that is behind the code fails
docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

# every block of every page is run or checked
docs-test: $(VENV)/.docs
	OPENBLAS_NUM_THREADS=1 $(BIN)/pytest documentation

wheel: $(VENV)/.lint
	PYTHON=$(BIN)/python .ci/wheel

format: $(VENV)/.lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.test
	$(BIN)/python -m benchmarks

MUTANTS ?= 300
SEED ?= 0
TEST_SECONDS ?= 120
mutants: $(VENV)/.mutants
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.mutants --count $(MUTANTS) --seed $(SEED) --seconds $(TEST_SECONDS)

quick: $(VENV)/.light
	$(BIN)/mtcd reproduce all --quick --out runs/quick

reproduce: $(VENV)/.light
	$(BIN)/mtcd reproduce all --out docs/figures --page docs/reproduction.md

clean:
	rm -rf $(VENV) runs results build .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

$(VENV)/.python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.light: $(VENV)/.python pyproject.toml constraints.txt
	$(PIP) install -c constraints.txt -e .
	touch $@

$(VENV)/.test: $(VENV)/.python pyproject.toml constraints.txt
	$(PIP) install -c constraints.txt -e '.[test]'
	touch $@ $(VENV)/.light

$(VENV)/.lint: $(VENV)/.test
	$(PIP) install -c constraints.txt -e '.[test,lint]'
	touch $@

$(VENV)/.browser: $(VENV)/.test
	$(PIP) install -c constraints.txt -e '.[test,browser]'
	touch $@

$(VENV)/.docs: $(VENV)/.test
	$(PIP) install -c constraints.txt -e '.[test,docs]'
	touch $@

$(VENV)/.mutants: $(VENV)/.test
	$(PIP) install -c constraints.txt -e '.[test,mutants]'
	touch $@
