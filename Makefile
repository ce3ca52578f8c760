# Two commands do everything: `make demo` shows it, `make test` proves it.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: setup demo test test-fast check bench prove lock clean

setup: $(READY)

$(READY): requirements.lock pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "installing what requirements.lock names (first time: about a minute)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $(READY)

demo: setup
	@$(BIN)/streams demo

test: check
	@$(BIN)/pytest tests

test-fast: setup
	@$(BIN)/pytest tests/unit tests/contract -m "not stack"

check: setup
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

bench: setup
	@$(BIN)/streams bench append
	@$(BIN)/streams bench mirror

prove: setup
	@$(BIN)/streams prove

lock:
	@$(BIN)/python -m pip install --quiet uv
	@$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate \
	  --python-version 3.11 --extra local --extra kv --extra graph --extra snowflake --extra bigquery --extra dev pyproject.toml -o requirements.lock

clean:
	rm -rf .venv .streams .streams-demo
