# Every command that a person or CI runs. A machine needs Python 3.11+ and make. All packages go into .venv from the
# lock files. Stamps in .venv/ make a repeated run quick.

PYTHON ?= $(shell for candidate in python3 python3.13 python3.12 python3.11; do \
	$$candidate -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$candidate; break; }; done)
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check --no-input
RUN_STAMP := $(VENV)/.installed-run
DEV_STAMP := $(VENV)/.installed-dev
QUICK := "not e2e and not browser and not nightly and not slow"

.DEFAULT_GOAL := help
.PHONY: help demo serve install test slow smoke coverage e2e browser formats packages ray bench bench-audit bench-compare profile bench-bounds bench-peers bench-cel soak fuzz fuzz-differential fuzz-doors fuzz-yaml nightly fuzz-server deploy docs site sbom release precision rule-homes lock clean

help: ## print this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "make %-18s %s\n", $$1, $$2}'

demo: $(RUN_STAMP) ## five scenes on this machine alone: serve, deny, translate, audit, simulate
	@$(BIN)/claimgate demo

serve: $(RUN_STAMP) ## the same server, kept running until Ctrl-C
	@$(BIN)/claimgate demo --serve

install: $(RUN_STAMP) ## create .venv/bin/claimgate

test: $(DEV_STAMP) ## everything CI runs: lint, format, types, tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m compileall -q certs claimgate tests webhook # hundreds of tests start a process, which may not write bytecode
	$(BIN)/python -m pytest -n auto --dist worksteal -m $(QUICK)

slow: $(DEV_STAMP) ## tests that take half a minute each, and the other rows of long tables
	$(BIN)/python -m pytest -n auto -m slow tests

smoke: $(DEV_STAMP) ## two minutes of tests that another interpreter may break: make smoke PYTHON=python3.13 VENV=.venv-3.13
	$(BIN)/python -m pytest -n auto --dist worksteal -m $(QUICK) $(SMOKE)
SMOKE := tests/cel tests/server tests/schema tests/settings tests/test_extras.py tests/test_integrations.py tests/test_private_api.py

coverage: $(DEV_STAMP) ## the tests with branch coverage, which takes twice as long
	$(BIN)/python -m pytest -n auto --dist worksteal -m $(QUICK) --cov --cov-branch --cov-report=term:skip-covered

e2e: $(DEV_STAMP) ## against a real kube-apiserver (KUBEBUILDER_ASSETS or /usr/local/kubebuilder/bin)
	$(BIN)/python -m pytest tests/e2e -m e2e

bench: $(DEV_STAMP) ## reviews per second and processor time over TLS, of objects that differ, and the cost of policies
	$(BIN)/python -m tests.bench.bench_server
	$(BIN)/python -m tests.bench.bench_shipped
	$(BIN)/python -m tests.bench.count_calls
	$(BIN)/python -m tests.bench.bench_start

bench-audit: $(DEV_STAMP) ## audit 100,000 objects: memory, processes, beside gator (GATOR=/path/to/gator), and a log of 1 GB; ARGS="--objects 5000 --log-mb 50" for less
	$(BIN)/python -m tests.bench.bench_audit $(ARGS)

bench-compare: $(DEV_STAMP) ## this checkout beside another one, servers in turn: make bench-compare OTHER=/path/to/checkout
	$(BIN)/python -m tests.bench.compare $(OTHER)

profile: $(DEV_STAMP) ## where the time of one review goes: make profile REVIEW=file ARGS="--phase mutate --context DIR"
	@test -n "$(REVIEW)" || { echo "make: name a recorded review, such as make profile REVIEW=review.json" >&2; exit 2; }
	$(BIN)/python -m tests.bench.profile_review $(REVIEW) $(ARGS)

bench-bounds: $(DEV_STAMP) ## hostile requests beside ordinary ones: answer times, growth, memory; ten minutes
	$(BIN)/python -m tests.bench.bounds

bench-peers: $(DEV_STAMP) ## claimgate beside Gatekeeper and Kyverno, which Go builds from their modules first
	$(BIN)/python -m tests.bench.peers $(PEERS)

soak: $(DEV_STAMP) ## ten minutes of hostile and ordinary load with reloads and killed workers; SOAK=--minutes=60 for longer, SOAK=--never-repeating=FILE for names that never repeat
	$(BIN)/python -m tests.bench.bounds.soak $(SOAK)

bench-cel: $(DEV_STAMP) ## the CEL engine alone
	$(BIN)/python -m tests.bench.bench_cel

fuzz: $(DEV_STAMP) ## 100,000 random CEL expressions, every wrong value, and property tests with many more examples
	$(BIN)/python -m tests.fuzz.cel 100000
	$(BIN)/python -m tests.fuzz.deadlines 20000
	CLAIMGATE_TESTS=all $(BIN)/python -m pytest -n auto --dist worksteal tests/policies
	$(BIN)/python -m pytest tests/evaluation/test_one_template.py tests/fuzz tests/test_regular_expressions.py -m nightly
	$(BIN)/python -m pytest -m $(QUICK) --hypothesis-profile=fuzz $(shell grep -rl --include='test_*.py' 'from hypothesis' tests)

fuzz-yaml: $(DEV_STAMP) ## 100,000 random YAML texts, read by the quick reader and by the parser; YAML=1000000 for more
	$(BIN)/python -m tests.fuzz.yaml_readers $(or $(YAML),100000) 29 tests/data

fuzz-differential: $(DEV_STAMP) ## 20,000 random reviews, answered by a process that lives on and by a fresh one; REVIEWS=100000 for more
	$(BIN)/python -m tests.fuzz.differential $(or $(REVIEWS),20000)

fuzz-doors: $(DEV_STAMP) ## 10,000 reviews, answered by replay and by a running server; DOORS=100000 for more
	$(BIN)/python -m tests.fuzz.doors $(or $(DOORS),10000)

browser: $(DEV_STAMP) ## the playground, the HTML report and the site that `make site` built in a real browser (chromium and chromedriver); AXE=axe.min.js looks for barriers, PICTURES=DIR keeps pictures
	CLAIMGATE_AXE=$(AXE) CLAIMGATE_PICTURES=$(PICTURES) $(BIN)/python -m pytest tests/playground tests/report tests/test_site_in_browser.py -m browser

formats: $(DEV_STAMP) ## reports and alerts against the schemas and programs of those who read them: make formats VALIDATORS=DIR (docs/formats.md)
	CLAIMGATE_VALIDATORS=$(VALIDATORS) $(BIN)/python -m pytest tests/report tests/deploy/test_alerts.py -m nightly -rs

packages: $(DEV_STAMP) ## what the action and pipx install and what the Dockerfile makes, downloaded and used as written; commands of all pages
	$(BIN)/python -m pytest tests/test_integrations.py tests/deploy/test_image.py tests/test_page_blocks.py -m nightly

ray: ## audits and backtests on a local Ray of two workers and from an object store, beside a single process; 1 GB in .venv-ray
	@$(MAKE) --no-print-directory VENV=.venv-ray .venv-ray/.installed-ray
	.venv-ray/bin/python -m pytest tests/commands/test_ray.py -m nightly -rs

nightly: slow fuzz site browser formats packages ray release fuzz-yaml fuzz-differential fuzz-doors bench-bounds soak ## all that takes too long for `make test` and needs no API server: hours

fuzz-server: $(DEV_STAMP) ## 3,000 random CEL expressions, compared with a real kube-apiserver's answers; FUZZ_SERVER=KUBECONFIG names one
	$(BIN)/python -m tests.fuzz.cel 3000 --server $(FUZZ_SERVER)

deploy: $(RUN_STAMP) ## write the parts of deploy/ that follow from the policies and from deploy/base anew
	@$(BIN)/python deploy/generate.py

precision: $(DEV_STAMP) ## how often each rule speaks of manifests, beside what was judged: make precision MANIFESTS=/path ARGS=-v
	$(BIN)/python -m tests.precision $(or $(MANIFESTS),../shared/data/manifests) $(ARGS)

rule-homes: $(DEV_STAMP) ## draw 50 rules at random, with where each is found: SEED=26
	$(BIN)/python -m tests.facts.draw_rules --seed $(or $(SEED),26)

docs: $(DEV_STAMP) deploy ## write everything that follows from rules, facts, policies and settings anew: docs, README, deploy/base
	$(BIN)/python -m pytest -q --update-golden tests/facts/test_declared.py # alone, because the others read this file when they start
	$(BIN)/python -m pytest -q --update-golden tests/facts/test_reference.py tests/policies/test_rules.py tests/policies/test_late_failures.py
	$(BIN)/python -m tests.test_readme
	$(BIN)/python -m tests.man_page
	$(BIN)/python -m tests.verbs_page
	$(BIN)/python -m tests.options_page
	$(BIN)/python -m tests.user_text_page

sbom: $(DEV_STAMP) ## the bill of materials of requirements.lock in dist/, CycloneDX 1.6
	$(BIN)/python -m tests.sbom

release: $(DEV_STAMP) ## wheel, sdist, chart, image context, kubectl plug-in and bill of materials in dist/, checked; publishes nothing
	$(BIN)/python -m tests.release

site: $(RUN_STAMP) ## the documentation as a site in build/site; fails on a link that leads nowhere
	@$(PIP) install --no-deps --require-hashes -r requirements-docs.lock
	$(BIN)/python -m tests.documentation_site

lock: $(DEV_STAMP) ## write the lock files anew from pyproject.toml: newest versions, hashes, no host
	$(PIP) install uv
	$(BIN)/uv pip compile $(COMPILE) pyproject.toml --extra all -o requirements.lock
	$(BIN)/uv pip compile $(COMPILE) pyproject.toml --extra all --group dev -o requirements-dev.lock
	$(BIN)/uv pip compile $(COMPILE) pyproject.toml --extra ray --group ray-tests -o requirements-ray.lock
	$(BIN)/uv pip compile $(COMPILE) --group build -o requirements-build.lock
	$(BIN)/uv pip compile $(COMPILE) --group docs -o requirements-docs.lock
COMPILE := --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	--no-emit-index-url --no-emit-find-links

clean: ## remove everything that make made
	rm -rf .venv .venv-* .demo .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage build dist

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "make: no Python 3.11 or newer found; install one or say make PYTHON=/path/to/python3" >&2; exit 2; }
	@echo "creating $(VENV) with $(PYTHON)" >&2
	@$(PYTHON) -m venv $(VENV)

# The build backend also comes from a lock file. With build isolation, pip would download it unchecked.
# A lock file names every package. With --no-deps pip looks for no other version, so a new release cannot break an install.
$(RUN_STAMP): requirements.lock requirements-build.lock pyproject.toml | $(VENV)/bin/python
	@echo "installing locked dependencies" >&2
	@$(PIP) install --no-deps --require-hashes -r requirements-build.lock
	@$(PIP) install --no-deps --require-hashes -r requirements.lock
	@$(PIP) install --no-deps --no-build-isolation --no-index --editable .
	@$(BIN)/python -m compileall -q webhook certs claimgate # as pip does: saves a third of the start-up time
	@touch $@

$(DEV_STAMP): requirements-dev.lock $(RUN_STAMP)
	@echo "installing locked development dependencies" >&2
	@$(PIP) install --no-deps --require-hashes -r requirements-dev.lock
	@$(PIP) check
	@touch $@

# a separate folder, because object store drivers and the Kubernetes client need different releases of the same packages
$(VENV)/.installed-ray: requirements-ray.lock requirements-build.lock pyproject.toml | $(VENV)/bin/python
	@echo "installing Ray" >&2
	@$(PIP) install --no-deps --require-hashes -r requirements-build.lock
	@$(PIP) install --no-deps --require-hashes -r requirements-ray.lock
	@$(PIP) install --no-deps --no-build-isolation --no-index --editable .
	@$(PIP) check
	@touch $@
