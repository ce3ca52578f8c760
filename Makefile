# Two commands do everything: `make demo` shows it, `make test` proves it.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
NATIVE := .venv/.native
READER := .venv/.reader

.PHONY: setup demo test test-fast check bench prove lock clean

setup: $(READY) $(NATIVE)

$(READY): requirements.lock pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "installing what requirements.lock names (first time: about a minute)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $(READY)

# Seals events faster; everything works without it, so a machine without cargo goes on.
$(NATIVE): $(READY) crates/sealer/Cargo.toml crates/sealer/Cargo.lock $(wildcard crates/sealer/src/*.rs)
	@if command -v cargo >/dev/null; then \
	  echo "building the native sealer (first time: under a minute)"; \
	  VIRTUAL_ENV=$(CURDIR)/.venv CARGO_TARGET_DIR=$(CURDIR)/.venv/cargo $(BIN)/maturin develop --quiet --release --locked \
	    -m crates/sealer/Cargo.toml >.venv/native.log 2>&1 \
	    || echo "no native sealer: its build failed (.venv/native.log says why; rm $(NATIVE) to try again); going on without"; \
	else echo "no native sealer: cargo is not installed (rm $(NATIVE) once it is); going on without"; fi
	@touch $(NATIVE)

# Folds the golden corpus in another language; its tests are skipped on a machine without cargo.
$(READER): $(READY) crates/reader/Cargo.toml crates/reader/Cargo.lock $(wildcard crates/reader/src/*.rs crates/reader/src/*/*.rs)
	@if command -v cargo >/dev/null; then \
	  echo "building the reader of the golden corpus (first time: about two minutes)"; \
	  CARGO_TARGET_DIR=$(CURDIR)/.venv/cargo-reader cargo build --quiet --release --locked --manifest-path crates/reader/Cargo.toml \
	    >.venv/reader.log 2>&1 \
	    || echo "no reader: its build failed (.venv/reader.log says why); its tests build it again"; \
	else echo "no reader: cargo is not installed (rm $(READER) once it is); its tests are skipped"; fi
	@touch $(READER)

demo: setup
	@$(BIN)/streams demo

test: check $(READER)
	@$(BIN)/pytest tests -n 2 --dist loadscope --no-loadscope-reorder

test-fast: setup
	@$(BIN)/pytest tests/unit tests/contract -m "not stack" -n 2

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

lock: setup
	@$(BIN)/python -m pip install --quiet uv
	@$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate \
	  --python-version 3.11 --extra local --extra kv --extra graph --extra snowflake --extra bigquery --extra nats --extra kubernetes --extra dev pyproject.toml -o requirements.lock

clean:
	rm -rf .venv .streams .streams-demo
