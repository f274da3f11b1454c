# Everything a developer does with this checkout. `make` alone lists the targets.
.DEFAULT_GOAL := help
.PHONY: help demo demo-clean cluster cluster-stop cluster-clean images venv lint servers wheel \
        test test-unit test-component test-long test-cluster test-day-two conformance fuzz bench chaos edges mutations docs
.NOTPARALLEL:

PYTHON := .venv/bin/python
PYTEST := $(PYTHON) -m pytest
SOURCES := engine/espha operator/espha_operator tools tests

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | \
	  while IFS='|' read -r target text; do printf '  make %-15s %s\n' "$$target" "$$text"; done

demo: cluster images ## a highly available deployment on real input, two failovers, and the proof
	@$(PYTHON) -m tools.demo

demo-clean: venv ## delete what the demo and killed tests made; the cluster stays
	@$(PYTHON) -m tools.clean

cluster: venv ## bring up the local Kubernetes cluster (seconds if it is there)
	@$(PYTHON) -m tools.offline_cluster up

cluster-stop: venv ## stop the cluster, with all that runs in it; `make cluster` starts it again
	@$(PYTHON) -m tools.offline_cluster stop

cluster-clean: venv ## delete the cluster, and stop Docker if it was started here
	@$(PYTHON) -m tools.offline_cluster delete

images: venv ## build the images, and load them into the cluster if it is there
	@$(PYTHON) -m tools.images

servers: venv
	@$(PYTHON) -m tools.servers

venv: ## make .venv from requirements.lock, with what the machine misses for it
	@sh tools/bootstrap.sh

lint: venv ## check style, formatting, types, layers and the chart
	@echo "ruff check";         $(PYTHON) -m ruff check .
	@echo "ruff format";        $(PYTHON) -m ruff format --check .
	@echo "mypy";               $(PYTHON) -m mypy $(SOURCES)
	@echo "lint-imports";       PYTHONPATH=engine:operator:tests:. .venv/bin/lint-imports
	@echo "helm lint, kubeconform"; $(PYTHON) -m tools.chart

test: lint cluster-stop jars servers ## lint, then unit, conformance, component and cluster tests; ends the demo
	@$(PYTEST) -n 2 tests/unit tests/conformance
	@$(PYTEST) tests/component
	@$(MAKE) --no-print-directory test-cluster

test-unit: venv ## the pure parts
	@$(PYTEST) -n 2 tests/unit

test-component: jars servers ## engines and adapters as processes, with a real Kafka and ZooKeeper
	@$(PYTEST) tests/component

test-long: jars servers ## further tests of engines, half a minute or more each, that `make test` leaves out
	@$(PYTEST) tests/component -m long

test-cluster: cluster demo-clean images ## the whole on the local cluster
	@$(PYTEST) tests/cluster

test-day-two: export ESPHA_WORKERS := 3
test-day-two: cluster demo-clean images jars servers ## roll-outs, drains and losses on a cluster with three workers; long
	@$(PYTEST) tests/day_two

conformance: venv ## run the corpus of public ESP projects, and write the page of results
	@PYTHONPATH=engine:operator:tests:. $(PYTHON) -m conformance

chaos: jars ## break engines and servers under load: make chaos CHAOS="--faults list"
	@PYTHONPATH=engine:tests:. $(PYTHON) -m chaos $(CHAOS)

edges: jars servers ## kill adapters under load: make edges EDGES="--kills 20 --rotations 10"
	@PYTHONPATH=engine:tests:. $(PYTHON) -m edges $(EDGES)

mutations: jars ## take out what protects each invariant, and see its test fail: make mutations MUTATIONS="--numbers 1-50"
	@PYTHONPATH=engine:tests:. $(PYTHON) -m mutations $(MUTATIONS)

fuzz: venv ## 10,000 damaged models and 10,000 damaged lines of CSV, in some minutes
	@ESPHA_FUZZ=10000 $(PYTEST) tests/unit/fuzz

docs: venv ## the documentation's site, into build/site
	@NO_MKDOCS_2_WARNING=1 $(PYTHON) -m mkdocs build --strict --quiet

wheel: venv ## dist/espha-*.whl, with our jar in it
	@$(PYTHON) -m tools.wheel

bench: jars ## measurements that need no cluster
	@$(PYTEST) tests/bench --ignore=tests/bench/test_fifty_deployments.py --ignore=tests/bench/test_wait.py

.PHONY: jars
jars: venv
	@$(PYTHON) -m tools.jars >/dev/null
