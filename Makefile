# Every target sets up all it needs; `make demo` and `make test` work on a fresh machine with Python 3.11+.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --disable-pip-version-check --quiet
# with bytecode kept, the tests of a worker are collected in half the time, and the processes that they start sooner
export PYTHONDONTWRITEBYTECODE :=
# workers share the cores: threads of BLAS and PyTorch that wait for each other take three times as long
ONE_THREAD := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1

.PHONY: demo docs docs-test test long-test fresh data-test browser ray-test upgrade-test deploy-test shaped-links-test test-pythons try-pythons test-faults recovery lint deletable wheel bench mutants slips refusals quick reproduce format environment clean

demo: $(VENV)/.light
	$(BIN)/mtcd demo --out runs/demo

# three workers on two cores: tests of federations often wait
test: $(VENV)/.test
	$(ONE_THREAD) $(BIN)/pytest -n 3 --dist worksteal

# what takes longest: many examples, whole figures, scikit-learn's checks; other files need not be collected for it
long-test: $(VENV)/.test
	$(ONE_THREAD) $(BIN)/pytest -n 3 --dist worksteal -m long $$(grep -rl --include='test_*.py' 'mark\.long' tests)

# new random examples for the tests that draw them, those that take longest too; `make test` takes the same every time
fresh: $(VENV)/.test
	$(ONE_THREAD) $(BIN)/pytest -n 3 --dist worksteal -m hypothesis --hypothesis-profile=fresh $$(grep -rl --include='test_*.py' hypothesis tests)

# the real data sets that are in the folder MTCD_DATA (docs/datasets.md)
data-test: $(VENV)/.test
	@test -d "$$MTCD_DATA" || { echo "Set MTCD_DATA to the folder of the data sets: docs/datasets.md" >&2; exit 1; }
	$(ONE_THREAD) $(BIN)/pytest -rs -m real_data $$(grep -rl --include='test_*.py' 'mark\.real_data' tests)

# the tests on several Pythons with the newest packages; `make try-pythons` trains once on each
PYTHONS ?= 3.11 3.12 3.13
test-pythons try-pythons: %-pythons:
	.ci/pythons $* $(PYTHONS)

# the page of `mtcd report` in Chromium
browser: $(VENV)/.browser
	.ci/chromium
	$(ONE_THREAD) $(BIN)/pytest -n 2 tests/processes/browser

# real processes: faults, cables that are cut, the tutorial, an older version, a party behind a firewall or a proxy
upgrade-test: $(VENV)/.test
	$(ONE_THREAD) $(BIN)/pytest -n 2 tests/processes/operations

# the engine and sweeps on Ray: actors, workers, nodes and drivers that die
ray-test: $(VENV)/.test
	$(ONE_THREAD) $(BIN)/pytest tests/processes/ray

# the Dockerfile line by line, and the services of the compose file, in namespaces: needs root
deploy-test: $(VENV)/.test
	$(ONE_THREAD) $(BIN)/pytest tests/processes/deploy

# simulated time against real processes over links of given bandwidths, in namespaces: needs root
shaped-links-test: $(VENV)/.test
	$(ONE_THREAD) $(BIN)/pytest tests/processes/shaped

test-faults: $(VENV)/.test
	PYTHONPATH=tests/support $(ONE_THREAD) $(BIN)/python -m faulty

recovery: $(VENV)/.test
	PYTHONPATH=tests/support $(ONE_THREAD) $(BIN)/python -m faulty.recovery

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# each feature that must be deletable is deleted in a copy, where the rest is imported and trains
deletable: $(VENV)/.test
	$(ONE_THREAD) $(BIN)/python -m benchmarks.deletable --required

# the site, in build/site; a page that is behind the code fails
docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

# every block of every page is run or checked
docs-test: $(VENV)/.docs
	$(ONE_THREAD) $(BIN)/pytest documentation

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
	$(ONE_THREAD) $(BIN)/python -m benchmarks.mutants --count $(MUTANTS) --seed $(SEED) --seconds $(TEST_SECONDS)

# slips that people make (a check, a field, a sort, a copy left out) instead of random changes
slips: $(VENV)/.mutants
	$(ONE_THREAD) $(BIN)/python -m benchmarks.mutants --slips --count $(MUTANTS) --seed $(SEED) --seconds $(TEST_SECONDS)

# every refusal of the federation and of privacy, and which of them no test triggers
refusals: $(VENV)/.test
	$(ONE_THREAD) $(BIN)/python -m pytest -p benchmarks.refusals -n 3 --dist worksteal

quick: $(VENV)/.light
	$(BIN)/mtcd reproduce all --quick --out runs/quick

reproduce: $(VENV)/.light
	$(BIN)/mtcd reproduce all --out docs/figures --page docs/reproduction.md

# one environment for all targets, in one go
environment: $(VENV)/.all

clean:
	rm -rf $(VENV) .venv-pythons runs results build .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

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

$(VENV)/.all: $(VENV)/.python pyproject.toml constraints.txt
	$(PIP) install -c constraints.txt -e '.[test,lint,browser,docs,mutants]'
	touch $(VENV)/.light $(VENV)/.test
	touch $(VENV)/.lint $(VENV)/.browser $(VENV)/.docs $(VENV)/.mutants $@
