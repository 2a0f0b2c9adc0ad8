"""Triton with sassay-ptxas in ptxas's place. SASSAY_TRITON_PYTHON may name an interpreter that has Triton; skipped where none has."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import sassay
from sassay.pipeline import CompileOptions
from sassay.ptx.parser import parse

HERE = Path(__file__).resolve().parent
PYTHON = os.environ.get("SASSAY_TRITON_PYTHON") or (sys.executable if importlib.util.find_spec("triton") else "")
CHIPS = ("sm_90a", "sm_100a", "sm_120a")
pytestmark = pytest.mark.skipif(not PYTHON, reason="triton is not installed")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what Triton made of the kernels through sassay-ptxas."""
    folder = tmp_path_factory.mktemp("triton")
    tool = folder / "sassay-ptxas"
    tool.write_text(f"#!/bin/sh\nPYTHONPATH={HERE.parents[1]} exec {sys.executable} -m sassay.ptxas_cli \"$@\"\n")
    tool.chmod(0o755)
    places = {"TRITON_PTXAS_PATH": str(tool), "TRITON_PTXAS_BLACKWELL_PATH": str(tool), "TRITON_CACHE_DIR": str(folder / "cache")}
    done = subprocess.run(
        [PYTHON, str(HERE / "triton_kernels.py"), str(folder)], env=os.environ | places, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:] + done.stdout[-2000:]
    return folder


def run(folder: Path, name: str, chip: str, grid: int, args: list[object]) -> None:
    """Runs Triton's cubin in the emulator; parameters that Triton adds behind the declared ones are null pointers."""
    text = (folder / f"{name}-{chip}.ptx").read_text()
    entry = next(f for f in parse(text).functions if f.is_entry)
    cubin = (folder / f"{name}-{chip}.cubin").read_bytes()
    extra = [np.uint64(0)] * (len(entry.params) - len(args))
    sassay.emulate(cubin, name, (grid, 1, 1), (128, 1, 1), [*args, *extra], shared_bytes=int((folder / f"{name}-{chip}.txt").read_text().split()[1]))


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("name", ["vector_add", "softmax"])
def test_the_cubin_is_ours(compiled: Path, name: str, chip: str) -> None:
    text = (compiled / f"{name}-{chip}.ptx").read_text()
    cubin = (compiled / f"{name}-{chip}.cubin").read_bytes()
    assert sassay.read_cubin(cubin).target_name == chip
    assert cubin == sassay.compile(text, chip, CompileOptions(line_info=True)).cubin
    assert sassay.check(cubin) == []


@pytest.mark.parametrize("chip", CHIPS)
def test_vector_add(compiled: Path, chip: str) -> None:
    rng = np.random.default_rng(3)
    x, y, out = rng.standard_normal(2500).astype(np.float32), rng.standard_normal(2500).astype(np.float32), np.zeros(2500, np.float32)
    run(compiled, "vector_add", chip, 3, [x, y, out, np.int32(2500)])
    np.testing.assert_array_equal(out, x + y)


@pytest.mark.parametrize("chip", CHIPS)
def test_softmax(compiled: Path, chip: str) -> None:
    rng = np.random.default_rng(4)
    x, out = (rng.standard_normal((3, 700)) * 3).astype(np.float32), np.zeros(2100, np.float32)
    run(compiled, "softmax", chip, 3, [x.reshape(-1), out, np.int32(700), np.int32(700)])
    e = np.exp(x.astype(float) - x.max(1, keepdims=True))
    np.testing.assert_allclose(out.reshape(3, 700), e / e.sum(1, keepdims=True), rtol=1e-5, atol=1e-9)
