# Two commands to know: `make run` and `make test`. Both set up their own environment.
PY ?= python3
VENV := .venv
BIN := $(VENV)/bin
CHIP ?= sm_90a

.PHONY: setup run test test-all lint bench tables timing gpu docs clean

$(BIN)/.ready: pyproject.toml
	$(PY) -m venv $(VENV)
	$(BIN)/pip install -q -e '.[test]'
	touch $@

setup: $(BIN)/.ready

run: setup
	$(BIN)/python examples/first_light.py

test: setup
	$(BIN)/python -m pytest -n 2 -m "not slow"

test-all: setup
	$(BIN)/python -m pytest -n 2

lint: setup
	$(BIN)/ruff check sassay tests benchmarks examples
	$(BIN)/mypy

bench: setup
	$(BIN)/python benchmarks/run_all.py

gpu: setup
	$(BIN)/pip install -q -e '.[gpu]' || true  # a machine without network has its own cuda-python
	$(BIN)/python benchmarks/gpu.py $(GPU)

docs: setup
	$(BIN)/pip install -q -e '.[docs]'
	$(BIN)/mkdocs build --strict

tables: setup
	$(BIN)/python -m sassay.isa.probe $(CHIP)

timing: setup
	$(BIN)/python -m sassay.bench.mine_timing $(CUBINS)

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache
