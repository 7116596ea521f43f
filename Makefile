# Two commands: `make up` runs the main job on the embedded sandbox, `make test` runs the tests.
ENV ?= sandbox
VENV := .venv
SITE = $(wildcard $(VENV)/lib/python3*/site-packages)
# What every command imports. Compiled once here, since some machines are told never to write bytecode at import.
IMPORTED = attr attrs cattrs pydantic pydantic_core typer rich pygments yaml boto3 botocore urllib3 grpc google pulumi \
  moto/core moto/ec2 moto/iam moto/ssm moto/utilities moto/moto_server werkzeug jinja2 \
  numba llvmlite numpy highspy
# The search of packing, compiled to machine code and kept on disk, so that no first plan waits for it.
COMPILE_SEARCH = -c 'from engine.scheduling.packing.compiled import compile_ahead; compile_ahead()'
PYTHON ?= python3
# A sandbox is not asked about: it costs nothing and touches nothing. Any other environment is.
YES = $(if $(filter sandbox sandbox-%,$(ENV)),--yes)

.PHONY: up test lint lock clean bench bench-packing bench-mix bench-growth bench-scattered bench-burst bench-policy bench-reaction bench-steady fuzz

up: $(VENV)/.synced
	$(VENV)/bin/nodewright up $(ENV) $(YES)

test: $(VENV)/.synced-dev lint
	$(VENV)/bin/nodewright doctor --install --all
	$(VENV)/bin/pytest $(PYTEST_ARGS)

lint: $(VENV)/.synced-dev
	@$(VENV)/bin/ruff check engine tests tools __main__.py
	@$(VENV)/bin/ruff format --check engine tests tools __main__.py
	@$(VENV)/bin/mypy
	@$(VENV)/bin/lint-imports

$(VENV)/bin/uv:
	@echo 'Setting up: a virtual environment, the locked packages' >&2
	@$(PYTHON) -c 'import sys; sys.exit("nodewright needs Python 3.11 or later; name one: make PYTHON=python3.12 ...") if sys.version_info < (3, 11) else None'
	@$(PYTHON) -m venv $(VENV)
	@$(VENV)/bin/python -m pip --quiet --disable-pip-version-check install uv

$(VENV)/.synced: $(VENV)/bin/uv requirements.lock pyproject.toml
	@test -e $(VENV)/.synced-dev || $(VENV)/bin/uv pip sync --quiet --require-hashes requirements.lock
	@test ! -e $(VENV)/.synced-dev || $(VENV)/bin/uv pip sync --quiet --require-hashes requirements-dev.lock
	@$(VENV)/bin/uv pip install --quiet --no-deps --no-build-isolation --editable .
	@$(VENV)/bin/python -m compileall -q -j 0 engine $(addprefix $(SITE)/,$(IMPORTED))
	@$(VENV)/bin/python $(COMPILE_SEARCH)
	@touch $@

$(VENV)/.synced-dev: $(VENV)/bin/uv requirements-dev.lock pyproject.toml
	@$(VENV)/bin/uv pip sync --quiet --require-hashes requirements-dev.lock
	@$(VENV)/bin/uv pip install --quiet --no-deps --no-build-isolation --editable .
	@$(VENV)/bin/python -m compileall -q -j 0 engine $(addprefix $(SITE)/,$(IMPORTED))
	@$(VENV)/bin/python $(COMPILE_SEARCH)
	@touch $(VENV)/.synced $@

# What has a number to reach is measured, not tested. Run these on a quiet machine.
bench: bench-packing bench-mix bench-growth bench-scattered bench-burst bench-policy bench-reaction bench-steady

bench-packing: $(VENV)/.synced
	$(VENV)/bin/python tools/bench_packing.py $(PACKING_ARGS)

bench-mix: $(VENV)/.synced
	$(VENV)/bin/python tools/bench_mix.py $(MIX_ARGS)

bench-growth: $(VENV)/.synced
	$(VENV)/bin/python tools/bench_growth.py $(GROWTH_ARGS)

bench-scattered: $(VENV)/.synced
	$(VENV)/bin/python tools/bench_scattered.py $(SCATTERED_ARGS)

bench-burst: $(VENV)/.synced
	$(VENV)/bin/nodewright doctor --install --all
	$(VENV)/bin/python -m tools.bench_burst $(BURST_ARGS)

bench-policy: $(VENV)/.synced
	$(VENV)/bin/python tools/bench_policy.py $(POLICY_ARGS)

bench-reaction: $(VENV)/.synced
	$(VENV)/bin/nodewright doctor --install --all
	$(VENV)/bin/python tools/bench_reaction.py $(BENCH_ARGS)

bench-steady: $(VENV)/.synced
	$(VENV)/bin/nodewright doctor --install --all
	$(VENV)/bin/python tools/bench_steady.py $(STEADY_ARGS)

# Files and expressions changed at random: FUZZ=100000 of them by default. `make test` tries 2,000.
FUZZ ?= 100000
fuzz: $(VENV)/.synced
	$(VENV)/bin/python tools/fuzz_policy.py --cases $(FUZZ) $(FUZZ_ARGS)

# The locks hold versions and hashes, no addresses.
lock: $(VENV)/bin/uv
	@$(VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url \
	  --no-emit-find-links --extra sandbox --extra build pyproject.toml --output-file requirements.lock
	@$(VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url \
	  --no-emit-find-links --extra sandbox --extra build --group dev pyproject.toml --constraint requirements.lock \
	  --output-file requirements-dev.lock

clean:
	rm -rf $(VENV) .nodewright .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
